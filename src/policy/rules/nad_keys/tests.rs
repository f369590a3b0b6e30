use super::MAX_UNKNOWN;
use crate::policy::rules::testing::found;

#[test]
fn keys_at_the_top_of_a_list_are_stricter() {
    let list =
        |members: &str| found(&format!(r#"{{"cniVersion":"1.0.0",{members},"plugins":[{{"type":"macvlan"}}]}}"#));
    for good in [
        r#""loadOnlyInlinedPlugins":true"#,
        r#""loadOnlyInlinedPlugins":"True""#,
        r#""loadOnlyInlinedPlugins":"FALSE""#,
        r#""disableCheck":true"#,
    ] {
        assert_eq!(list(good), Vec::<String>::new(), "{good}");
    }
    for (bad, key) in [
        (r#""disableCheck":null"#, "/disableCheck"),
        (r#""disableGC":null"#, "/disableGC"),
        (r#""loadOnlyInlinedPlugins":null"#, "/loadOnlyInlinedPlugins"),
        (r#""loadOnlyInlinedPlugins":1"#, "/loadOnlyInlinedPlugins"),
        (r#""loadOnlyInlinedPlugins":"yes""#, "/loadOnlyInlinedPlugins"),
    ] {
        assert_eq!(list(bad), [format!("nad/field-type deny {key}")], "{bad}");
    }
}

/// Every spelling of `type` is decoded, also of one that does not count.
#[test]
fn every_type_of_a_section_is_a_string() {
    let ipam = |ipam: &str| found(&format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","master":"eth0",{ipam}}}"#));
    assert_eq!(ipam(r#""ipam":{"type":"dhcp"}"#), Vec::<String>::new());
    assert_eq!(ipam(r#""ipam":{"type":"a/b"}"#), ["nad/plugin-type deny /ipam/type"]);
    assert_eq!(ipam(r#""ipam":{"type":7}"#), ["nad/plugin-type deny /ipam/type"]);
    let null = ipam(r#""ipam":{"type":null}"#);
    assert!(!null.iter().any(|found| found.starts_with("nad/plugin-type")), "{null:?}");
    let two = ipam(r#""ipam":{"TYPE":7,"type":"dhcp"}"#);
    assert!(two.contains(&"nad/plugin-type deny /ipam/TYPE".to_owned()), "{two:?}");
    let both = ipam(r#""IPAM":{"type":"dhcp"},"ipam":{"type":"a/b"}"#);
    assert!(both.iter().any(|found| found.starts_with("nad/plugin-type deny")), "{both:?}");
}

/// A config whose types disagree may run as either program, and each has its own keys.
#[test]
fn both_programs_decode_their_own_keys() {
    let config = |members: &str| {
        found(&format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov","Type":"bridge",{members}}}"#))
    };
    let has = |found: &[String], want: &str| found.iter().any(|one| one == want);
    assert!(has(&config(r#""isGateway":5"#), "nad/field-type deny /isGateway"));
    assert!(has(&config(r#""vlanQoS":"5""#), "nad/field-type deny /vlanQoS"));
    assert!(!has(&config(r#""isGateway":true,"vlanQoS":5"#), "nad/field-type deny /isGateway"));
}

#[test]
fn only_so_many_unknown_keys_are_compared() {
    let config = |count: usize| {
        let keys: String = (0..count).map(|number| format!(r#","vlna{number}":1"#)).collect();
        format!(r#"{{"cniVersion":"1.0.0","type":"sriov"{keys}}}"#)
    };
    let of = |count| found(&config(count)).iter().filter(|found| found.starts_with("nad/unknown-key")).count();
    assert!(of(MAX_UNKNOWN) <= MAX_UNKNOWN);
    assert_eq!(of(MAX_UNKNOWN + 1), of(MAX_UNKNOWN) + 1);
    assert_eq!(of(MAX_UNKNOWN + 50), of(MAX_UNKNOWN) + 1);
}

/// What an IPAM plugin reads beside its section is reported once, even if the plugin that calls it reads the same.
#[test]
fn what_is_read_beside_ipam_is_decoded() {
    let config = |kind: &str, members: &str| {
        found(&format!(
            r#"{{"cniVersion":"1.0.0","type":"{kind}",{members},"ipam":{{"type":"host-local","subnet":"10.1.0.0/24"}}}}"#
        ))
    };
    let none: [&str; 0] = [];
    assert_eq!(config("macvlan", r#""args":{"cni":{"ips":["10.1.0.9"]}}"#), none);
    assert_eq!(config("macvlan", r#""args":{"cni":{"ips":"10.1.0.9"}}"#), ["nad/field-type deny /args/cni/ips"]);
    assert_eq!(config("bridge", r#""args":5"#), ["nad/field-type deny /args"]);
    let types = |found: Vec<String>| found.into_iter().filter(|one| one.starts_with("nad/field-type")).count();
    assert_eq!(types(config("bridge", r#""args":5,"isGatewai":true"#)), 1);
    assert_eq!(types(config("bridge", r#""args":{"cni":{"ips":"x"}},"mtu":"x""#)), 2);
}

/// The `type` that counts is judged with the chain, every other one here.
#[test]
fn every_spelling_of_type_is_decoded() {
    for (members, want) in [
        (r#""type":"macvlan","TYPE":7"#, "/TYPE"),
        (r#""TYPE":7,"type":"macvlan""#, "/TYPE"),
        (r#""TYPE":"macvlan","type":7"#, "/type"),
    ] {
        for (before, after, at) in [("", "", ""), (r#""plugins":[{"#, "}]", "/plugins/0")] {
            let config = format!(r#"{{"cniVersion":"1.0.0","name":"n",{before}"master":"eth0",{members}{after}}}"#);
            let all = found(&config);
            let types: Vec<_> = all.iter().filter(|found| found.starts_with("nad/plugin-type")).collect();
            assert_eq!(types, [&format!("nad/plugin-type deny {at}{want}")], "{config}");
        }
    }
}

/// Multus writes `deviceID` itself, in that spelling alone.
#[test]
fn a_device_in_another_spelling_is_decoded() {
    for (key, is_denied) in [("deviceID", false), ("deviceId", true)] {
        let found = found(&format!(r#"{{"cniVersion":"1.0.0","type":"sriov","{key}":5}}"#));
        let want = format!("nad/field-type deny /{key}");
        assert_eq!(found.contains(&want), is_denied, "{found:?}");
    }
}
