//! The plugins that hand out addresses.

use super::{DNS, INT_POINTER};
use crate::cni::schema::{Field, FieldTable, INT, STRINGS, Type, field, table};

/// The fields of a route, most of which came with a release of the plugin.
const fn route(major: u16, minor: u16) -> [Field; 7] {
    [
        field("dst", Type::Network),
        field("gw", Type::Text),
        field("mtu", INT).since(major, minor, 0),
        field("advmss", INT).since(major, minor, 0),
        field("priority", INT).since(major, minor, 0),
        field("table", INT_POINTER).since(major, minor, 0),
        field("scope", INT_POINTER).since(major, minor, 0),
    ]
}

const ROUTE: &FieldTable = &table(&route(1, 6));
const ROUTES: Type = Type::List(&Type::Pointer(&Type::Fresh(&Type::Object(ROUTE))));
const ROUTE_OF_WHEREABOUTS: &FieldTable = &table(&route(0, 7));
const ROUTES_OF_WHEREABOUTS: Type = Type::List(&Type::Pointer(&Type::Fresh(&Type::Object(ROUTE_OF_WHEREABOUTS))));

/// What static and whereabouts have for `addresses`. The address in its exact spelling is a field of the plugin's own.
const ADDRESSES: Type = Type::List(&Type::Object(&table(&[
    field("address", Type::Str),
    field("gateway", Type::Text),
    field("Address", Type::Object(&table(&[field("IP", Type::Text), field("Mask", Type::Any)]))).quiet(),
    field("version", Type::Str),
])));

const RANGE: &FieldTable = &table(&[
    field("subnet", Type::Network),
    field("rangeStart", Type::Text),
    field("rangeEnd", Type::Text),
    field("gateway", Type::Text),
]);

pub(super) const HOST_LOCAL: &FieldTable = &table(&[
    field("type", Type::Str).quiet(),
    field("name", Type::Str),
    field("subnet", Type::Network),
    field("rangeStart", Type::Text),
    field("rangeEnd", Type::Text),
    field("gateway", Type::Text),
    field("ranges", Type::List(&Type::List(&Type::Object(RANGE)))),
    field("routes", ROUTES),
    field("dataDir", Type::Str),
    field("resolvConf", Type::Str),
]);

/// What host-local decodes beside its section.
pub(super) const BESIDE_HOST_LOCAL: &FieldTable = &table(&[
    field(
        "runtimeConfig",
        Type::Object(&table(&[
            field("ipRanges", Type::List(&Type::List(&Type::Object(RANGE)))),
            field("ips", Type::List(&Type::Pointer(&Type::Text))),
        ])),
    ),
    field("args", Type::Pointer(&Type::Object(&table(&[field("cni", Type::Pointer(&Type::Object(HOST_LOCAL_ARGS)))])))),
]);

const HOST_LOCAL_ARGS: &FieldTable = &table(&[field("ips", Type::List(&Type::Pointer(&Type::Text)))]);

/// What static decodes beside its section.
pub(super) const BESIDE_STATIC: &FieldTable = &table(&[
    field("runtimeConfig", Type::Object(&table(&[field("ips", STRINGS)]))),
    field(
        "args",
        Type::Pointer(&Type::Object(&table(&[field(
            "cni",
            Type::Pointer(&Type::Object(&table(&[field("ips", STRINGS)]))),
        )]))),
    ),
]);

pub(super) const STATIC: &FieldTable = &table(&[
    field("type", Type::Str).quiet(),
    field("name", Type::Str),
    field("addresses", ADDRESSES),
    field("routes", ROUTES),
    field("dns", DNS),
]);

pub(super) const DHCP: &FieldTable = &table(&[
    field("type", Type::Str).quiet(),
    field("daemonSocketPath", Type::Str),
    field("priority", INT).since(1, 6, 0),
    field(
        "request",
        Type::List(&Type::Object(&table(&[field("skipDefault", Type::Bool), field("option", Type::Str)]))),
    )
    .since(1, 1, 0),
    field(
        "provide",
        Type::List(&Type::Object(&table(&[
            field("option", Type::Str),
            field("value", Type::Str),
            field("fromArg", Type::Str),
        ]))),
    )
    .since(1, 1, 0),
]);

/// What only some releases of whereabouts know is of any type: the others ignore it.
pub(super) const WHEREABOUTS: &FieldTable = &table(&[
    field("type", Type::Str).quiet(),
    field("name", Type::Str),
    field("routes", ROUTES_OF_WHEREABOUTS),
    field("addresses", ADDRESSES),
    field(
        "ipRanges",
        Type::List(&Type::Object(&table(&[
            field("range", Type::Str),
            field("range_start", Type::Text),
            field("range_end", Type::Text),
            field("exclude", STRINGS),
        ]))),
    )
    .since(0, 6, 0),
    field("range", Type::Str),
    field("range_start", Type::Str),
    field("range_end", Type::Str),
    field("exclude", STRINGS),
    field("node_slice_size", Type::Str).since(0, 9, 0),
    field("gateway", Type::Str),
    field("dns", DNS),
    field("datastore", Type::Any),
    field("etcd_host", Type::Any),
    field("etcd_username", Type::Any),
    field("etcd_password", Type::Any),
    field("etcd_key_file", Type::Any),
    field("etcd_cert_file", Type::Any),
    field("etcd_ca_cert_file", Type::Any),
    field("log_file", Type::Str),
    field("log_level", Type::Str),
    field("enable_overlapping_ranges", Type::Bool),
    field("exclude_gateway", Type::Any),
    field("optimistic_ipam", Type::Any),
    field("enable_l3", Type::Any),
    field("sleep_for_race", INT),
    // In this spelling another field than the one above.
    field("Gateway", Type::Str),
    field("network_name", Type::Str).since(0, 6, 2),
    field("kubernetes", Type::Object(&table(&[field("kubeconfig", Type::Str), field("k8s_api_root", Type::Str)]))),
    field("configuration_path", Type::Str),
    field("reconciler_cron_expression", Type::Str),
    field("leader_lease_duration", INT),
    field("leader_renew_deadline", INT),
    field("leader_retry_period", INT),
    field("podName", Type::Str),
    field("podNamespace", Type::Str),
]);
