use crate::policy::rules::testing::found;

/// Findings for a chain of these plugins, with a CNI version that all of them support.
fn chain(plugins: &str) -> Vec<String> {
    found(&format!(r#"{{"cniVersion":"1.0.0","name":"net","plugins":[{plugins}]}}"#))
}

/// If each plugin were compared with all others, this would take minutes.
#[test]
fn long_chains_are_judged_in_one_pass() {
    let many = |plugin: &str, count: usize| vec![plugin; count].join(",");
    let keys: String = (0..20_000).map(|number| format!(r#""k{number}":0,"#)).collect();
    for plugin in [r#"{"type":"vrf"}"#, r#"{"type":"sbr"}"#, r#"{"type":"bandwidth","ingressRate":1,"ingressBurst":1}"#]
    {
        let plugins = many(plugin, 10_000);
        for versions in
            [r#""cniVersion":"0.2.0""#.to_owned(), format!(r#""cniVersions":[{}]"#, many(r#""1.0.0""#, 10_000))]
        {
            let config = format!(r#"{{{keys}{versions},"name":"net","plugins":[{{"type":"sriov"}},{plugins}]}}"#);
            assert!(found(&config).len() < 100, "{plugin}");
        }
    }
}

#[test]
fn order() {
    for kind in ["tuning", "sbr", "bandwidth", "rdma", "portmap", "firewall"] {
        let alone = format!(r#"{{"cniVersion":"1.0.0","type":"{kind}"}}"#);
        assert_eq!(found(&alone), ["meta/chain-order deny /type"], "{kind}");
        let plugin = format!(r#"{{"type":"{kind}"}}"#);
        assert_eq!(chain(&plugin), ["meta/chain-order deny /plugins/0/type"], "{kind}");
        let device = r#"{"type":"macvlan","ipam":{"type":"dhcp"}}"#;
        assert_eq!(chain(&format!("{device},{plugin}")), Vec::<String>::new(), "{kind}");
        let swapped = format!(r#"{plugin},{{"type":"sriov"}}"#);
        assert_eq!(chain(&swapped), ["meta/chain-order deny /plugins/0/type"], "{kind}");
    }
    assert_eq!(chain(r#"{"type":"tuning","prevResult":{"cniVersion":"1.0.0"}}"#), Vec::<String>::new());
    assert_eq!(chain(r#"{},{"type":"tuning"}"#), ["nad/no-plugin deny /plugins/0"]);
}

#[test]
fn vrf() {
    for (members, want) in [
        (r#","vrfname":"blue""#, &[] as &[&str]),
        (r#","vrfname":"123456789012345""#, &[]),
        ("", &["meta/vrf deny /plugins/1/type"]),
        (r#","vrfname":null"#, &["meta/vrf deny /plugins/1/type"]),
        (r#","vrfname":"""#, &["meta/vrf deny /plugins/1/vrfname"]),
        (r#","vrfname":"1234567890123456""#, &["meta/vrf deny /plugins/1/vrfname"]),
        (r#","vrfname":"a/b""#, &["meta/vrf deny /plugins/1/vrfname"]),
        (r#","vrfname":"a b""#, &["meta/vrf deny /plugins/1/vrfname"]),
        (r#","vrfname":5"#, &["nad/field-type deny /plugins/1/vrfname"]),
    ] {
        assert_eq!(chain(&format!(r#"{{"type":"sriov"}},{{"type":"vrf"{members}}}"#)), want, "{members}");
    }
}

#[test]
fn versions() {
    for (version, vrf, bandwidth) in [
        ("", true, true),
        (r#""cniVersion":"","#, true, true),
        (r#""cniVersion":"0.2.0","#, true, true),
        (r#""cniVersion":"0.3.0","#, true, false),
        (r#""cniVersion":"0.3.1","#, false, false),
        (r#""cniVersion":"0.2.0","cniVersions":["0.2.0","1.0.0"],"#, false, false),
    ] {
        for (plugin, rule, is_denied) in [
            (r#"{"type":"vrf","vrfname":"blue"}"#, "meta/vrf", vrf),
            (r#"{"type":"bandwidth"}"#, "meta/bandwidth", bandwidth),
        ] {
            let config = format!(r#"{{{version}"plugins":[{{"type":"x"}},{plugin}]}}"#);
            let place = if version.is_empty() { "/plugins/1/type" } else { "/cniVersion" };
            let want: Vec<_> = is_denied.then(|| format!("{rule} deny {place}")).into_iter().collect();
            assert_eq!(found(&config), want, "{config}");
        }
    }
}

#[test]
fn bandwidth() {
    for (device, members, want) in [
        ("bridge", r#""ingressRate":1000,"ingressBurst":1000"#, &[] as &[&str]),
        ("bridge", r#""ingressRate":0,"ingressBurst":0"#, &[]),
        ("bridge", r#""ingressRate":1000"#, &["meta/bandwidth deny /plugins/1/ingressRate"]),
        ("bridge", r#""egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/egressBurst"]),
        ("bridge", r#""egressRate":0,"egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/egressBurst"]),
        ("bridge", r#""egressRate":1,"egressBurst":34359738359"#, &[]),
        ("bridge", r#""egressRate":1,"egressBurst":34359738360"#, &["meta/bandwidth deny /plugins/1/egressBurst"]),
        ("bridge", r#""egressRate":"1","egressBurst":5"#, &["nad/field-type deny /plugins/1/egressRate"]),
        ("sriov", r#""ingressRate":0,"ingressBurst":0"#, &[]),
        ("sriov", r#""ingressRate":1000,"ingressBurst":1000"#, &["meta/bandwidth deny /plugins/1/type"]),
        ("sriov", r#""ingressRate":1000"#, &["meta/bandwidth deny /plugins/1/ingressRate"]),
        ("sriov", r#""ingressBurst":1000"#, &["meta/bandwidth deny /plugins/1/ingressBurst"]),
        ("ib-sriov", r#""egressRate":1000,"egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/type"]),
        ("macvlan", r#""egressRate":1000,"egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/type"]),
        ("ipvlan", r#""egressRate":1000,"egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/type"]),
        ("macvlan", r#""egressRate":0,"egressBurst":0"#, &[]),
    ] {
        let got = chain(&format!(r#"{{"type":"{device}"}},{{"type":"bandwidth",{members}}}"#));
        assert_eq!(got, want, "{device} {members}");
    }
    let limits = r#"{"type":"bandwidth","egressRate":1000,"egressBurst":1000}"#;
    assert_eq!(
        chain(&format!(r#"{{"type":"sriov"}},{{"type":"tuning"}},{limits}"#)),
        ["meta/bandwidth deny /plugins/2/type"]
    );
    assert_eq!(chain(&format!(r#"{{"type":"sriov"}},{{"type":"other"}},{limits}"#)), Vec::<String>::new());
    let other = r#"{"type":"bandwidth","ingressRate":1000,"ingressBurst":1000}"#;
    assert_eq!(chain(&format!(r#"{{"type":"bridge"}},{limits},{other}"#)), Vec::<String>::new());
    let again = ["meta/bandwidth warn /plugins/2/type"];
    assert_eq!(chain(&format!(r#"{{"type":"bridge"}},{limits},{limits}"#)), again);
    assert_eq!(chain(&format!(r#"{{"type":"bridge"}},{limits},{{"type":"bandwidth"}}"#)), Vec::<String>::new());
}

/// Every plugin is called with the same name for the interface.
#[test]
fn a_second_interface() {
    for (plugins, want) in [
        (r#"{"type":"bridge"},{"type":"bridge"}"#, &["meta/chain-order deny /plugins/1/type"] as &[&str]),
        (r#"{"type":"bridge"},{"type":"tuning"},{"type":"macvlan"}"#, &["meta/chain-order deny /plugins/2/type"]),
        // The VF may have no kernel interface.
        (r#"{"type":"sriov"},{"type":"macvlan"}"#, &[]),
        (r#"{"type":"macvlan"},{"type":"sriov"}"#, &[]),
        (r#"{"type":"bridge"},{"type":"other"}"#, &[]),
        (r#"{"type":"other"},{"type":"bridge"}"#, &[]),
    ] {
        assert_eq!(chain(plugins), want, "{plugins}");
    }
}

#[test]
fn sbr() {
    for (device, want) in [
        (r#""type":"sriov""#, true),
        (r#""type":"sriov","ipam":{}"#, true),
        (r#""type":"sriov","ipam":null"#, true),
        (r#""type":"ib-sriov","ipam":{"type":""}"#, true),
        (r#""type":"sriov","ipam":{"type":"dhcp"}"#, false),
        (r#""type":"macvlan""#, true),
        (r#""type":"bridge""#, true),
        (r#""type":"bridge","ipam":{"type":"dhcp"}"#, false),
        (r#""type":"other""#, false),
    ] {
        let want: Vec<_> = want.then(|| "meta/sbr deny /plugins/1/type".to_owned()).into_iter().collect();
        assert_eq!(chain(&format!(r#"{{{device}}},{{"type":"sbr"}}"#)), want, "{device}");
    }
    for (table, is_wrong) in [("1", false), ("4294967295", false), ("0", true), ("-1", true), ("4294967296", true)] {
        let plugins = format!(r#"{{"type":"bridge","ipam":{{"type":"dhcp"}}}},{{"type":"sbr","table":{table}}}"#);
        let want: Vec<_> = is_wrong.then(|| "meta/sbr warn /plugins/1/table".to_owned()).into_iter().collect();
        assert_eq!(chain(&plugins), want, "{table}");
    }
    let bridge = r#"{"type":"bridge","ipam":{"type":"dhcp"}}"#;
    assert_eq!(chain(&format!(r#"{bridge},{{"type":"sbr"}},{{"type":"sbr"}}"#)), ["meta/sbr warn /plugins/2/type"]);
}

#[test]
fn options_of_firewall_and_portmap() {
    let table: &[(&str, &[&str])] = &[
        (r#"{"type":"firewall","ingressPolicy":"same-bridge"}"#, &[]),
        (r#"{"type":"firewall","ingressPolicy":"closed"}"#, &["plugin/firewall-policy warn /plugins/1/ingressPolicy"]),
        (r#"{"type":"portmap","markMasqBit":0,"backend":"nftables"}"#, &[]),
        (r#"{"type":"portmap","externalSetMarkChain":"X"}"#, &[]),
        (r#"{"type":"portmap","markMasqBit":32}"#, &["plugin/portmap deny /plugins/1/markMasqBit"]),
        (r#"{"type":"portmap","markMasqBit":-1}"#, &["plugin/portmap deny /plugins/1/markMasqBit"]),
        (
            r#"{"type":"portmap","markMasqBit":1,"externalSetMarkChain":"X"}"#,
            &["plugin/portmap deny /plugins/1/externalSetMarkChain"],
        ),
        (r#"{"type":"portmap","conditionsV4":["-s","10.0.0.0/8"],"conditionsV6":[""]}"#, &[]),
        (r#"{"type":"portmap","conditionsV4":["ip","saddr"]}"#, &["plugin/portmap warn /plugins/1/conditionsV4"]),
        (
            r#"{"type":"portmap","backend":"nftables","conditionsV4":["ip"],"conditionsV6":["!","-s"]}"#,
            &["plugin/portmap warn /plugins/1/conditionsV6"],
        ),
        (
            r#"{"type":"portmap","backend":"nftables","externalSetMarkChain":"X"}"#,
            &["plugin/portmap warn /plugins/1/externalSetMarkChain"],
        ),
        (r#"{"type":"portmap","backend":"pf"}"#, &["plugin/portmap warn /plugins/1/backend"]),
    ];
    for (plugin, want) in table {
        assert_eq!(chain(&format!(r#"{{"type":"bridge"}},{plugin}"#)), *want, "{plugin}");
    }
    for (version, is_supported) in [("0.3.1", false), ("", false), ("0.4.0", true), ("1.1.0", true)] {
        let config = format!(
            r#"{{"cniVersion":"{version}","name":"net","plugins":[{{"type":"bridge"}},{{"type":"firewall"}}]}}"#
        );
        let denied = found(&config).contains(&"plugin/firewall-version deny /cniVersion".to_owned());
        assert_eq!(denied, !is_supported, "{version}");
    }
}
