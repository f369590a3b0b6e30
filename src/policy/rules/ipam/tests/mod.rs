//! The findings of this family of rules. Each row was run through the real IPAM plugin.

mod tables;

use crate::policy::rules::testing::{found, helps};

/// The findings in an sriov network with this IPAM section.
fn found_in(ipam: &str) -> Vec<String> {
    found(&format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov","ipam":{ipam}}}"#))
}

/// Asserts the findings in a section of that type with those members: `rule action place`, the place below `/ipam`, and the
/// rule without its family if that is this one.
fn assert_found(kind: &str, rows: &[(&str, &[&str])]) {
    for (members, want) in rows {
        let comma = if members.is_empty() { "" } else { "," };
        let short = |line: &String| line.replace(" /ipam", " ").trim_start_matches("ipam/").trim_end().to_owned();
        let found = found_in(&format!(r#"{{"type":"{kind}"{comma}{members}}}"#));
        assert_eq!(found.iter().map(short).collect::<Vec<_>>(), *want, "{kind}: {members}");
    }
}

/// The version, capabilities and arguments around the section.
#[test]
fn warns_or_denies_depending_on_the_plugin() {
    for (around, ipam, want) in [
        (
            r#""cniVersion":"1.0.0""#,
            r#"{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}"#,
            &[] as &[_],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}"#,
            &["ipam/host-local-range deny /ipam/ranges/1/0/subnet"],
        ),
        (
            r#""cniVersion":"""#,
            r#"{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}"#,
            &["ipam/host-local-range deny /ipam/ranges/1/0/subnet"],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"host-local","ranges":[[{"subnet":"fd00::/64"}],[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}"#,
            &["ipam/host-local-range deny /ipam/ranges/2/0/subnet"],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"10.2.0.0/24"}],[{"subnet":"fd00::/64"}]]}"#,
            &[],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"static","addresses":[{"address":"10.0.0.1/24"},{"address":"10.0.0.2/24"}]}"#,
            &["ipam/static-address deny /ipam/addresses/1/address"],
        ),
        (
            r#""cniVersion":"0.3.0""#,
            r#"{"type":"static","addresses":[{"address":"10.0.0.1/24"},{"address":"10.0.0.2/24"}]}"#,
            &[],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"static","addresses":[{"address":"10.0.0.1/24"},{"address":"fd00::1/64"}]}"#,
            &[],
        ),
        (
            r#""cniVersion":"0.1.0""#,
            r#"{"type":"whereabouts","addresses":[{"address":"10.0.0.1/24"},{"address":"10.0.0.2/24"}]}"#,
            &["ipam/whereabouts-range deny /ipam/addresses/1/address"],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"whereabouts","range":"10.1.0.0/24","ipRanges":[{"range":"10.2.0.0/24"}]}"#,
            &["ipam/ignored warn /ipam/ipRanges/0/range"],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"whereabouts","range":"10.1.0.0/24","addresses":[{"address":"10.0.0.1/24"}]}"#,
            &["ipam/ignored warn /ipam/addresses/0/address"],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"whereabouts","range":"10.1.0.0/24","ipRanges":[{"range":"fd00::/64"}]}"#,
            &[],
        ),
        (
            r#""cniVersion":"0.2.0""#,
            r#"{"type":"host-local","subnet":"10.1.0.0/24","routes":[{}]}"#,
            &["ipam/ignored warn /ipam/routes/0"],
        ),
        (r#""cniVersion":"1.0.0","capabilities":{"ips":true}"#, r#"{"type":"static"}"#, &[]),
        (r#""cniVersion":"1.0.0","args":{"cni":{"ips":["10.0.0.1/24"]}}"#, r#"{"type":"static"}"#, &[]),
        (
            r#""cniVersion":"1.0.0","args":{"cni":{"ips":["10.0.0.1"]}}"#,
            r#"{"type":"static"}"#,
            &["ipam/static-address warn /args/cni/ips/0"],
        ),
        (
            r#""cniVersion":"1.0.0","runtimeConfig":{"ips":["10.1.0.1","x"]}"#,
            r#"{"type":"host-local","subnet":"10.1.0.0/24"}"#,
            &["ipam/host-local-range warn /runtimeConfig/ips/1"],
        ),
        (
            r#""cniVersion":"1.0.0","runtimeConfig":{"ipRanges":[[{"subnet":"10.2.0.0/24"}],[]]}"#,
            r#"{"type":"host-local","subnet":"10.1.0.0/24"}"#,
            &["ipam/host-local-range warn /runtimeConfig/ipRanges/1"],
        ),
        (
            r#""cniVersion":"1.0.0","capabilities":{"ips":true}"#,
            r#"{"type":"static","addresses":[{"address":"x"}]}"#,
            &["ipam/static-address warn /ipam/addresses/0/address"],
        ),
        (
            r#""cniVersion":"1.0.0","capabilities":{"ips":true}"#,
            r#"{"type":"static","addresses":[{"address":"10.0.0.1/24","gateway":"x"}]}"#,
            &["ipam/static-address deny /ipam/addresses/0/gateway"],
        ),
        (
            r#""cniVersion":"1.0.0","capabilities":{"ips":true}"#,
            r#"{"type":"static","subnet":"10.1.0.0/24"}"#,
            &["ipam/ignored warn /ipam/subnet"],
        ),
        (
            r#""cniVersion":"1.0.0","capabilities":{"mac":true}"#,
            r#"{"type":"static"}"#,
            &["ipam/no-address warn /ipam"],
        ),
        (
            r#""cniVersion":"1.0.0","args":{"cni":{"ips":["10.0.0.9/24"]}}"#,
            r#"{"type":"static","addresses":[{"address":"x"}]}"#,
            &["ipam/static-address warn /ipam/addresses/0/address"],
        ),
        (
            r#""cniVersion":"1.0.0","capabilities":{"ipRanges":true}"#,
            r#"{"type":"host-local"}"#,
            &["ipam/no-address warn /ipam"],
        ),
        (
            r#""cniVersion":"1.0.0","capabilities":{"ipRanges":true}"#,
            r#"{"type":"host-local","range":"10.1.0.0/24"}"#,
            &["ipam/wrong-dialect warn /ipam/range"],
        ),
        (
            r#""cniVersion":"1.0.0","runtimeConfig":{"ipRanges":[[{"subnet":"10.1.0.0/24"}]]}"#,
            r#"{"type":"host-local"}"#,
            &["ipam/no-address warn /ipam"],
        ),
    ] {
        let config = format!(r#"{{{around},"name":"n","type":"sriov","ipam":{ipam}}}"#);
        assert_eq!(found(&config), want, "{config}");
    }
    // The library uses the highest version of this list.
    let config = r#"{"name":"n","cniVersion":"0.1.0","cniVersions":["0.1.0","1.0.0"],"plugins":[{"type":"sriov","ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}}]}"#;
    assert!(found(config).is_empty());
    // Which of two old ones it uses is its choice, too.
    let old = config.replace(r#"["0.1.0","1.0.0"]"#, r#"["0.1.0","0.2.0"]"#);
    assert!(!found(&old).iter().any(|found| found.starts_with("ipam/host-local-range")), "{:?}", found(&old));
    // Without it, a list has the one version that it names.
    let config = config.replace(r#""cniVersions":["0.1.0","1.0.0"],"#, "");
    assert_eq!(found(&config), ["ipam/host-local-range deny /plugins/0/ipam/ranges/1/0/subnet"]);
}

/// A range that host-local rejects, in every place of an IPAM section.
#[test]
fn denies_only_where_ipam_certainly_runs() {
    const BAD: &str = r#""ipam":{"type":"host-local","subnet":"x"}"#;
    let deny = "ipam/host-local-range deny /ipam/subnet";
    let warn = "ipam/host-local-range warn /ipam/subnet";
    for (plugin, want) in [
        (r#""type":"sriov""#, &[deny] as &[_]),
        (r#""type":"macvlan""#, &[deny]),
        (r#""type":"ib-sriov""#, &[deny]),
        (r#""type":"ib-sriov","vfioPciMode":false"#, &[deny]),
        (r#""type":"ib-sriov","vfioPciMode":true"#, &[]),
        (r#""type":"ovs","bridge":"br0""#, &[warn]),
        (r#""type":"somebody-elses""#, &[warn]),
    ] {
        let config = format!(r#"{{"cniVersion":"1.0.0","name":"n",{plugin},{BAD}}}"#);
        let ipam: Vec<String> = found(&config).into_iter().filter(|line| line.starts_with("ipam/")).collect();
        assert_eq!(ipam, want, "{config}");
    }
    let chain = format!(
        r#"{{"cniVersion":"1.0.0","name":"n","plugins":[{{"type":"sriov",{BAD}}},{{"type":"tuning",{BAD}}}]}}"#
    );
    assert_eq!(found(&chain), ["ipam/host-local-range deny /plugins/0/ipam/subnet"]);
}

/// Go decodes one spelling after the other into the same variable: structs are merged, null and empty lists start anew.
#[test]
fn merges_ipam_spellings_like_go() {
    for (section, want) in [
        (r#""IPAM":{"subnet":"10.1.0.0/24"},"ipam":{"type":"host-local"}"#, None),
        (r#""IPAM":{"type":"host-local","subnet":"10.1.0.0/24"},"ipam":{}"#, None),
        (
            r#""IPAM":{"type":"host-local","subnet":"10.1.0.1/24"},"ipam":{}"#,
            Some("ipam/host-local-range deny /IPAM/subnet"),
        ),
        (
            r#""IPAM":{"type":"host-local","subnet":"10.1.0.0/24"},"ipam":null"#,
            Some("ipam/host-local-range deny /ipam"),
        ),
        (
            r#""ipam":{"type":"host-local","Ranges":[[{"subnet":"10.1.0.0/24"}]],"ranges":[]}"#,
            Some("ipam/host-local-range deny /ipam"),
        ),
        (
            r#""ipam":{"type":"host-local","Ranges":[[{"subnet":"10.1.0.0/24"}]],"ranges":[[{"gateway":"10.1.0.1"}]]}"#,
            None,
        ),
        (
            r#""ipam":{"type":"host-local","Ranges":[[{"gateway":"x"}]],"ranges":[[{"subnet":"10.1.0.0/24"}]]}"#,
            Some("ipam/host-local-range deny /ipam/Ranges/0/0/gateway"),
        ),
        // whereabouts decodes its section into a new variable each time.
        (r#""IPAM":{"type":"whereabouts","range":"x"},"ipam":{"range":"10.1.0.0/24"}"#, None),
        (
            r#""IPAM":{"range":"10.1.0.0/24"},"ipam":{"type":"whereabouts","range":"x"}"#,
            Some("ipam/whereabouts-range deny /ipam/range"),
        ),
    ] {
        let found = found(&format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov",{section}}}"#));
        let denied: Vec<&str> = found.iter().map(String::as_str).filter(|line| line.contains(" deny ")).collect();
        assert_eq!(denied, want.into_iter().collect::<Vec<_>>(), "{section}");
    }
}

/// The work must be proportional to the text, even if it is hostile.
#[test]
fn hostile_ipam_is_judged_in_linear_time() {
    let list = |element: &dyn Fn(usize) -> String, count: usize| (0..count).map(element).collect::<Vec<_>>().join(",");
    let net = |i: usize| format!("10.{}.{}.0/24", i / 256 % 256, i % 256);
    let ranges = list(&|i| format!(r#"{{"subnet":"{}"}}"#, net(i)), 25_000);
    let sets = list(&|i| format!(r#"[{{"subnet":"{}"}}]"#, net(i)), 20_000);
    let bad = list(&|_| r#"{"dst":"x","gw":"y"}"#.to_owned(), 20_000);
    let excludes = list(&|i| format!(r#""{}""#, net(i)), 40_000);
    let addresses = list(&|_| r#"{"address":"x","gateway":"y"}"#.to_owned(), 20_000);
    for ipam in [
        format!(r#"{{"type":"host-local","ranges":[[{ranges}]]}}"#),
        format!(r#"{{"type":"host-local","ranges":[{sets}]}}"#),
        format!(r#"{{"type":"host-local","subnet":"10.1.0.0/24","routes":[{bad}]}}"#),
        format!(r#"{{"type":"whereabouts","range":"10.0.0.0/8","exclude":[{excludes}]}}"#),
        format!(r#"{{"type":"static","addresses":[{addresses}]}}"#),
        format!(r#"{{"type":"static","subnet":"{}"}}"#, "x".repeat(900_000)),
    ] {
        let found = found_in(&ipam);
        assert!(found.len() <= 20, "{}", found.len());
    }
}

/// Zeros in front are easy to overlook, so the help names them.
#[test]
fn help_names_what_is_wrong_with_an_excluded_address() {
    for (excluded, want) in [("10.1.0.010", "zeros"), ("10.1.0.x", "192.168.10.0/28"), ("", "192.168.10.0/28")] {
        let ipam = format!(r#"{{"type":"whereabouts","range":"10.1.0.0/24","exclude":["{excluded}"]}}"#);
        let helps = helps(&format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov","ipam":{ipam}}}"#));
        assert!(helps.len() == 1 && helps[0].contains(want), "{excluded} {helps:?}");
    }
}
