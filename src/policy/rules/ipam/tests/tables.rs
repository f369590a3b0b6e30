//! IPAM sections, and their findings.

use super::assert_found;

/// How host-local reads its ranges.
#[test]
fn host_local() {
    assert_found(
        "host-local",
        &[
            (r#""subnet":"10.1.0.0/24""#, &[]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.10","rangeEnd":"10.1.0.20","gateway":"10.1.0.1""#, &[]),
            (r#""subnet":"fd00::/64""#, &[]),
            (r#""subnet":"10.1.0.0/30""#, &[]),
            (r#""subnet":"fd00::/126""#, &[]),
            (r#""subnet":"10.1.0.0/024""#, &[]),
            (r#""subnet":"10.1.0.5/24""#, &["host-local-range deny /subnet"]),
            (r#""subnet":"10.1.0.0/31""#, &["host-local-range deny /subnet"]),
            (r#""subnet":"fd00::/127""#, &["host-local-range deny /subnet"]),
            (r#""subnet":"10.1.0.0""#, &["host-local-range deny /subnet"]),
            (r#""subnet":"010.1.0.0/24""#, &["host-local-range deny /subnet"]),
            (r#""subnet":"""#, &["host-local-range deny /subnet"]),
            (r#""subnet":null"#, &["host-local-range deny /subnet"]),
            (r#""subnet":"::ffff:10.1.0.0/120""#, &["host-local-range deny /subnet"]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"10.2.0.1""#, &["host-local-range deny /rangeStart"]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"x""#, &["host-local-range deny /rangeStart"]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"","rangeEnd":null,"gateway":"""#, &[]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"fd00::1""#, &["host-local-range deny /rangeStart"]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"::ffff:10.1.0.9""#, &[]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.0""#, &[]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.255""#, &[]),
            (r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.5/24""#, &["host-local-range deny /rangeStart"]),
            (r#""subnet":"10.1.0.0/24","rangeEnd":"10.1.0.0""#, &["host-local-range deny /rangeEnd"]),
            (
                r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.20","rangeEnd":"10.1.0.10""#,
                &["host-local-range deny /rangeStart"],
            ),
            (r#""subnet":"10.1.0.0/24","rangeEnd":"10.2.0.1""#, &["host-local-range deny /rangeEnd"]),
            (
                r#""subnet":"10.1.0.0/24","rangeStart":"10.1.1.5","rangeEnd":"10.2.0.1""#,
                &["host-local-range deny /rangeStart"],
            ),
            (r#""subnet":"10.1.0.0/24","gateway":"10.9.0.1""#, &[]),
            (r#""subnet":"10.1.0.0/24","gateway":"010.1.0.1""#, &["host-local-range deny /gateway"]),
            (
                r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.5","rangeEnd":"10.1.0.5","gateway":"10.1.0.5""#,
                &["host-local-range deny /subnet"],
            ),
            (
                r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.1","rangeEnd":"10.1.0.1""#,
                &["host-local-range deny /subnet"],
            ),
            ("", &["host-local-range deny"]),
            (r#""rangeStart":"10.1.0.1""#, &["host-local-range deny"]),
            (r#""ranges":[]"#, &["host-local-range deny"]),
            (r#""ranges":[[]]"#, &["host-local-range deny /ranges/0"]),
            (r#""ranges":[null]"#, &["host-local-range deny /ranges/0"]),
            (r#""ranges":[[{}]]"#, &["host-local-range deny /ranges/0/0"]),
            (r#""ranges":[[null]]"#, &["host-local-range deny /ranges/0/0"]),
            (r#""ranges":[{"subnet":"10.1.0.0/24"}]"#, &["nad/field-type deny /ranges/0"]),
            (r#""ranges":[["10.1.0.0/24"]]"#, &["nad/field-type deny /ranges/0/0"]),
            (r#""ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}]]"#, &[]),
            (
                r#""ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"fd00::/64"}]]"#,
                &["host-local-range deny /ranges/0/1/subnet"],
            ),
            (
                r#""ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"10.1.0.0/25"}]]"#,
                &["host-local-range deny /ranges/0/1/subnet"],
            ),
            (
                r#""ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.1.0.0/24"}]]"#,
                &["host-local-range deny /ranges/1/0/subnet"],
            ),
            (
                r#""ranges":[[{"subnet":"10.1.0.0/24","rangeEnd":"10.1.0.20"}],[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.21"}]]"#,
                &[],
            ),
            (
                r#""subnet":"10.1.0.0/24","ranges":[[{"subnet":"10.1.0.0/24"}]]"#,
                &["host-local-range deny /ranges/0/0/subnet"],
            ),
            (r#""gateway":"10.1.0.1","ranges":[[{"subnet":"10.1.0.0/24"}]]"#, &["ignored warn /gateway"]),
            (r#""gateway":"x","ranges":[[{"subnet":"10.1.0.0/24"}]]"#, &["host-local-range deny /gateway"]),
        ],
    );
}

/// How static reads its addresses.
#[test]
fn static_addresses() {
    assert_found(
        "static",
        &[
            (r#""addresses":[{"address":"10.0.0.1/24","gateway":"10.0.0.254"}]"#, &[]),
            (
                r#""addresses":[{"address":"10.0.0.1/24","version":"4"},{"address":"10.0.0.2/24"},{"address":"fd00::1/64"}]"#,
                &[],
            ),
            (r#""addresses":[{"address":"::ffff:10.0.0.1/120"}]"#, &[]),
            (r#""addresses":[{"address":"10.0.0.1/24","gateway":""}]"#, &[]),
            (r#""addresses":[{"address":"10.0.0.1/24","gateway":"fd00::1"}]"#, &[]),
            (r#""addresses":[{"address":"10.0.0.1"}]"#, &["static-address deny /addresses/0/address"]),
            (r#""addresses":[{"address":"10.0.0.1/33"}]"#, &["static-address deny /addresses/0/address"]),
            (r#""addresses":[{"address":"010.0.0.1/24"}]"#, &["static-address deny /addresses/0/address"]),
            (r#""addresses":[{"address":"10.0.0.1 /24"}]"#, &["static-address deny /addresses/0/address"]),
            (r#""addresses":[{"address":""}]"#, &["static-address deny /addresses/0/address"]),
            (r#""addresses":[{"address":null}]"#, &["static-address deny /addresses/0"]),
            (r#""addresses":[{}]"#, &["static-address deny /addresses/0"]),
            (r#""addresses":[null]"#, &["static-address deny /addresses/0"]),
            (r#""addresses":[{"Address":"10.0.0.1/24"}]"#, &["static-address deny /addresses/0/Address"]),
            (
                r#""addresses":[{"address":"10.0.0.1/24","gateway":"10.0.0.254/24"}]"#,
                &["static-address deny /addresses/0/gateway"],
            ),
            (r#""addresses":["10.0.0.1/24"]"#, &["nad/field-type deny /addresses/0"]),
            (r#""addresses":[{"address":"10.0.0.1/24","version":4}]"#, &["nad/field-type deny /addresses/0/version"]),
            (r#""addresses":[]"#, &["no-address warn"]),
            ("", &["no-address warn"]),
        ],
    );
}

/// How dhcp reads its options.
#[test]
fn dhcp_options() {
    let provided = |bytes: usize| format!(r#""provide":[{{"option":"host-name","value":"{}"}}]"#, "x".repeat(bytes));
    assert_found(
        "dhcp",
        &[
            ("", &[]),
            (r#""daemonSocketPath":"/run/cni/dhcp.sock","priority":5"#, &["sriov/host-file warn /daemonSocketPath"]),
            (r#""provide":[{"option":"host-name","value":"v"},{"option":"12","fromArg":"K8S_POD_NAME"}]"#, &[]),
            (r#""provide":[{"option":"012","value":"v"},{"option":"000"},{"option":"255"}]"#, &[]),
            (r#""request":[{"skipDefault":true},{"option":""},{"option":"routers"},null]"#, &[]),
            (r#""provide":[{"option":"domain-name-servers","value":"v"}]"#, &["dhcp-option deny /provide/0/option"]),
            (r#""request":[{"option":"Host-Name"}]"#, &["dhcp-option deny /request/0/option"]),
            (&provided(255), &[]),
            (&provided(256), &["dhcp-option deny /provide/0/value"]),
            (&provided(300), &["dhcp-option deny /provide/0/value"]),
            (r#""provide":[{"option":"256","value":"v"}]"#, &["dhcp-option deny /provide/0/option"]),
            (r#""provide":[{"option":"-1"}]"#, &["dhcp-option deny /provide/0/option"]),
            (r#""provide":[{"option":"+1"}]"#, &["dhcp-option deny /provide/0/option"]),
            (r#""provide":[{"value":"v"}]"#, &["dhcp-option deny /provide/0"]),
            (r#""provide":[null]"#, &["dhcp-option deny /provide/0"]),
            (r#""provide":[{"option":12}]"#, &["nad/field-type deny /provide/0/option"]),
            (r#""routes":[{"dst":"x"}],"gateway":"10.0.0.1""#, &["ignored warn /routes", "ignored warn /gateway"]),
        ],
    );
}

/// How whereabouts reads its ranges.
#[test]
fn whereabouts_ranges() {
    assert_found(
        "whereabouts",
        &[
            (r#""range":"10.1.0.0/24""#, &[]),
            (r#""range":"10.1.0.5/24","gateway":"010.1.0.1""#, &[]),
            (r#""range":"010.1.0.0/24""#, &[]),
            (r#""range":"::ffff:10.1.0.0/120","range_start":"10.1.0.5""#, &[]),
            (r#""range":"10.1.0.10-10.1.0.20/24""#, &[]),
            (r#""range":"10.1.0.0-10.1.0.255/24""#, &[]),
            (r#""range":"fd00::10-fd00::20/64""#, &[]),
            (r#""range":"10.1.0.0/24","range_start":"010.1.0.10","range_end":"10.1.0.20""#, &[]),
            (r#""range":"10.1.0.0/24","range_start":"10.1.0.0","range_end":"10.1.0.255""#, &[]),
            (r#""range":"10.1.0.0/24","exclude":["10.1.0.0/28","10.1.0.30"]"#, &[]),
            (r#""ipRanges":[{"range":"10.1.0.0/24"},{"range":"fd00::/64"}]"#, &[]),
            (r#""addresses":[{"address":"010.0.0.1/24"}]"#, &[]),
            (r#""range":"10.1.0.0""#, &["whereabouts-range deny /range"]),
            (r#""range":"10.1.0.0/24 ""#, &["whereabouts-range deny /range"]),
            (r#""range":"10.9.0.1-10.1.0.20/24""#, &["whereabouts-range deny /range"]),
            (r#""range":"10.1.0.10-10.1.0.20""#, &["whereabouts-range deny /range"]),
            (r#""range":"10.1.0.10 - 10.1.0.20/24""#, &["whereabouts-range deny /range"]),
            (r#""range":"10.1.0.10-fd00::20/64""#, &["whereabouts-range deny /range"]),
            (r#""range":"10.1.0.0/30""#, &[]),
            (r#""range":"10.1.0.0/31""#, &["whereabouts-range warn /range"]),
            (r#""range":"fd00::/128""#, &["whereabouts-range warn /range"]),
            (r#""range":"10.1.0.0/24","gateway":"10.1.0.1/24""#, &["whereabouts-range deny /gateway"]),
            (r#""range":"10.1.0.0/24","Gateway":"x""#, &["nad/ambiguous-key warn /Gateway"]),
            (r#""range":"10.1.0.0/24","exclude":["10.1.0.1-10.1.0.5"]"#, &["whereabouts-range deny /exclude/0"]),
            (r#""range":"10.1.0.0/24","exclude":["10.1.0.010"]"#, &["whereabouts-range deny /exclude/0"]),
            (r#""range":"10.1.0.0/24","exclude":[null]"#, &["whereabouts-range deny /exclude/0"]),
            (
                r#""range":"10.1.0.0/24","exclude":["10.1.0.128/25","10.1.0.0/25"]"#,
                &["whereabouts-range deny /exclude"],
            ),
            (
                r#""range":"10.1.0.0/24","range_end":"10.1.0.15","exclude":["10.1.0.0/28"]"#,
                &["whereabouts-range deny /exclude"],
            ),
            (r#""ipRanges":[{}]"#, &["whereabouts-range deny /ipRanges/0"]),
            (r#""ipRanges":[null]"#, &["whereabouts-range deny /ipRanges/0"]),
            (
                r#""ipRanges":[{"range":"10.1.0.0/24","range_start":"010.1.0.1"}]"#,
                &["whereabouts-range deny /ipRanges/0/range_start"],
            ),
            (
                r#""ipRanges":[{"range":"10.1.0.0/24","exclude":["x"]}]"#,
                &["whereabouts-range deny /ipRanges/0/exclude/0"],
            ),
            (r#""addresses":[{"address":"10.0.0.1"}]"#, &["whereabouts-range deny /addresses/0/address"]),
            (r#""range":"10.1.0.0/24","range_start":"x""#, &["ignored warn /range_start"]),
            (r#""range":"10.1.0.0/24","range_start":"10.9.0.1""#, &["ignored warn /range_start"]),
            (
                r#""range":"10.1.0.0/24","range_start":"10.1.0.255","range_end":"fd00::1""#,
                &["ignored warn /range_start", "ignored warn /range_end"],
            ),
            (
                r#""range":"10.1.0.0/24","range_start":"10.1.0.20","range_end":"10.1.0.10""#,
                &["ignored warn /range_end"],
            ),
            (r#""range":"10.1.0.20-10.1.0.10/24""#, &["ignored warn /range"]),
            (r#""range":"10.1.0.5-10.1.0.10/24","range_start":"10.1.0.7""#, &["ignored warn /range_start"]),
            (r#""range":"10.1.0.0/24","exclude":["10.9.0.0/24"]"#, &["ignored warn /exclude/0"]),
            (
                r#""ipRanges":[{"range":"10.1.0.0/24","gateway":"10.1.0.1"}],"exclude":["x"]"#,
                &["ignored warn /exclude", "ignored warn /ipRanges/0/gateway"],
            ),
            (r#""ipRanges":[{"range":"10.1.0.0/24"}],"exclude":[],"range_start":"","range_end":"""#, &[]),
            (r#""ipRanges":[{"range":"10.1.0.0/24"}],"range_end":"10.1.0.9""#, &["ignored warn /range_end"]),
            (r#""range":"10.1.0.0/24","node_slice_size":"/28""#, &[]),
            (r#""range":"10.1.0.0/24","node_slice_size":"/28","exclude":["10.1.0.0/24"]"#, &[]),
            (r#""range":"10.1.0.0/24","enable_l3":true,"exclude":["10.1.0.0/24"]"#, &[]),
            (r#""range":"10.1.0.0/24","node_slice_size":"/20""#, &["whereabouts-range warn /node_slice_size"]),
            (r#""range":"""#, &["no-address warn"]),
            ("", &["no-address warn"]),
        ],
    );
}

/// How each plugin reads routes.
#[test]
fn routes() {
    assert_found(
        "host-local",
        &[
            (
                r#""subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1","mtu":1400},{"dst":"10.0.0.5/8","gw":""}]"#,
                &[],
            ),
            (r#""subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0"}]"#, &["route deny /routes/0/dst"]),
            (r#""subnet":"10.1.0.0/24","routes":[{"dst":null}]"#, &["route deny /routes/0/dst"]),
            (r#""subnet":"10.1.0.0/24","routes":[{"gw":"10.1.0.1"}]"#, &["route deny /routes/0"]),
            (r#""subnet":"10.1.0.0/24","routes":[{}]"#, &["route deny /routes/0"]),
            (r#""subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0/0","gw":"x"}]"#, &["route deny /routes/0/gw"]),
            // Each spelling of a key is read, and rejected if it is wrong; which one counts depends on the reader.
            (
                r#""subnet":"10.1.0.0/24","routes":[{"Dst":"x","dst":"0.0.0.0/0"}]"#,
                &["nad/ambiguous-key warn /routes/0/dst"],
            ),
            (
                r#""subnet":"10.1.0.0/24","routes":[{"DST":null,"dst":"0.0.0.0/0"}]"#,
                &["nad/ambiguous-key warn /routes/0/dst"],
            ),
            (
                r#""subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0/0","GW":"x","gw":""}]"#,
                &["nad/ambiguous-key warn /routes/0/gw"],
            ),
            (r#""subnet":"10.1.0.0/24","routes":[null]"#, &["route warn /routes/0"]),
            (r#""subnet":"10.1.0.0/24","routes":[{"dst":"::/0","gw":"10.1.0.1"}]"#, &["route warn /routes/0/gw"]),
            (r#""subnet":"10.1.0.0/24","routes":["0.0.0.0/0"]"#, &["nad/field-type deny /routes/0"]),
        ],
    );
    assert_found(
        "static",
        &[(r#""addresses":[{"address":"10.0.0.1/24"}],"routes":[{"dst":"default"}]"#, &["route deny /routes/0/dst"])],
    );
    assert_found(
        "whereabouts",
        &[(r#""range":"10.1.0.0/24","routes":[{"dst":"010.0.0.0/8"}]"#, &["route deny /routes/0/dst"])],
    );
}

/// How each plugin reads the keys of the others.
#[test]
fn dialects() {
    assert_found(
        "whereabouts",
        &[
            (r#""subnet":"10.1.0.0/24""#, &["wrong-dialect deny /subnet"]),
            (
                r#""subnet":"10.1.0.0/24","rangeStart":"10.1.0.5","rangeEnd":"10.1.0.9""#,
                &["wrong-dialect deny /subnet"],
            ),
            (r#""ranges":[[{"subnet":"10.1.0.0/24"}]]"#, &["wrong-dialect deny /ranges"]),
            (
                r#""subnet":"10.1.0.0/24","configuration_path":"/etc/x.conf""#,
                &["sriov/host-file warn /configuration_path", "wrong-dialect warn /subnet"],
            ),
            (r#""range":"10.1.0.0/24","subnet":"10.1.0.0/24""#, &["ignored warn /subnet"]),
            (r#""subnet":null"#, &["no-address warn"]),
        ],
    );
    assert_found(
        "host-local",
        &[
            (r#""range":"10.1.0.0/24""#, &["wrong-dialect deny /range"]),
            (r#""ipRanges":[{"range":"10.1.0.0/24"}]"#, &["wrong-dialect deny /ipRanges"]),
            (r#""addresses":[{"address":"10.0.0.1/24"}]"#, &["wrong-dialect deny /addresses"]),
            (
                r#""subnet":"10.1.0.0/24","exclude":["10.1.0.1"],"range_start":"10.1.0.5""#,
                &["ignored warn /range_start", "ignored warn /exclude"],
            ),
            (r#""subnet":"10.1.0.0/24","dns":{"nameservers":["10.1.0.1"]}"#, &["ignored warn /dns"]),
        ],
    );
    assert_found(
        "static",
        &[
            (r#""subnet":"10.1.0.0/24""#, &["wrong-dialect deny /subnet"]),
            (r#""range":"10.1.0.0/24""#, &["wrong-dialect deny /range"]),
            (r#""addresses":[{"address":"10.0.0.1/24"}],"gateway":"10.0.0.254""#, &["ignored warn /gateway"]),
        ],
    );
    assert_found("nv-ipam", &[(r#""subnet":"x""#, &[])]);
}
