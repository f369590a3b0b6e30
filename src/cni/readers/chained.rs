//! The plugins that change an interface which another one made, and Multus itself.

use super::devices::DEVICE;
use super::{BOOL_POINTER, INT_POINTER, STR_POINTER};
use crate::cni::schema::{FieldTable, INT, STRINGS, Type, UINT, UINT32, field, table};

pub(super) const TUNING: &FieldTable = &table(&[
    field("sysctl", Type::Map(&Type::Str)),
    field("mac", Type::Str),
    field("promisc", Type::Bool),
    field("mtu", INT),
    field("txQLen", INT_POINTER).since(1, 4, 0),
    field("allmulti", BOOL_POINTER),
    field("dataDir", Type::Str),
    field("runtimeConfig", Type::Object(&table(&[field("mac", Type::Str)]))),
    field("args", Type::Pointer(&Type::Object(&table(&[field("cni", Type::Pointer(&Type::Object(TUNING_ARGS)))])))),
]);

const TUNING_ARGS: &FieldTable = &table(&[
    field("sysctl", Type::Pointer(&Type::Map(&Type::Str))),
    field("mac", STR_POINTER),
    field("promisc", BOOL_POINTER),
    field("mtu", INT_POINTER),
    field("txQLen", INT_POINTER).since(1, 4, 0),
    field("allmulti", BOOL_POINTER),
]);

const RATES: &FieldTable = &table(&[
    field("ingressRate", UINT),
    field("ingressBurst", UINT),
    field("egressRate", UINT),
    field("egressBurst", UINT),
]);

pub(super) const BANDWIDTH: &FieldTable = &table(&[
    field("ingressRate", UINT),
    field("ingressBurst", UINT),
    field("egressRate", UINT),
    field("egressBurst", UINT),
    field("runtimeConfig", Type::Object(&table(&[field("bandwidth", Type::Pointer(&Type::Object(RATES)))]))),
]);

pub(super) const VRF: &FieldTable = &table(&[field("vrfname", Type::Str), field("table", UINT32)]);

pub(super) const SBR: &FieldTable = &table(&[
    field("table", INT_POINTER).since(1, 6, 0),
    field("gateways", STRINGS).unreleased(),
    field("addSourceHints", Type::Bool).unreleased(),
]);

pub(super) const RDMA: &FieldTable = &table(&[
    field("args", Type::Object(&table(&[field("cni", Type::Object(&table(&[field("debug", Type::Bool)])))]))),
    DEVICE,
]);

pub(super) const PORTMAP: &FieldTable = &table(&[
    field("backend", STR_POINTER).since(1, 6, 0),
    field("snat", BOOL_POINTER),
    field("conditionsV4", Type::Pointer(&STRINGS)),
    field("conditionsV6", Type::Pointer(&STRINGS)),
    field("masqAll", Type::Bool).since(1, 2, 0),
    field("markMasqBit", INT_POINTER),
    field("externalSetMarkChain", STR_POINTER),
]);

pub(super) const FIREWALL: &FieldTable = &table(&[
    field("backend", Type::Str),
    field("iptablesAdminChainName", Type::Str),
    field("firewalldZone", Type::Str),
    field("ingressPolicy", Type::Str).since(1, 1, 0),
]);

/// Multus as a plugin: what runs are its delegates.
pub(super) const MULTUS: &FieldTable = &table(&[
    field("delegates", Type::List(&Type::Map(&Type::Any))),
    field("clusterNetwork", Type::Str),
    field("defaultNetworks", STRINGS),
    field("confDir", Type::Str),
    field("cniDir", Type::Str),
    field("binDir", Type::Str),
    field("kubeconfig", Type::Str),
    field("logFile", Type::Str),
    field("logLevel", Type::Str),
    field("logToStderr", Type::Bool),
    field(
        "logOptions",
        Type::Pointer(&Type::Object(&table(&[
            field("maxAge", INT_POINTER),
            field("maxSize", INT_POINTER),
            field("maxBackups", INT_POINTER),
            field("compress", BOOL_POINTER),
        ]))),
    ),
    field("readinessindicatorfile", Type::Str),
    field("namespaceIsolation", Type::Bool),
    field("globalNamespaces", Type::Str),
    field("systemNamespaces", STRINGS),
    field("multusNamespace", Type::Str),
    field("auxiliaryCNIChainName", Type::Str).since(4, 2, 1),
    field("retryDeleteOnError", Type::Bool).since(4, 0, 0),
    // Only the program that passes the config on to a daemon decodes this one.
    field("daemonSocketDir", Type::Any),
]);
