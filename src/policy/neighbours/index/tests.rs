use super::*;
use crate::resources::{Nad, Object};

/// The summary of a NAD with a config.
fn summary(key: &ObjectKey, config: &str) -> NetworkUse {
    let json = serde_json::json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": key.name(), "namespace": key.namespace() }, "spec": { "config": config },
    })
    .to_string();
    let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("{json}") };
    NetworkUse::of(&nad)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("apps", name)
}

fn vlan(id: u16, ipam: &str) -> String {
    format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"vlan","master":"eth1","vlanId":{id},"ipam":{{{ipam}}}}}"#)
}

fn whereabouts(range: &str, network_name: &str) -> String {
    format!(r#""type":"whereabouts","range":"{range}","network_name":"{network_name}""#)
}

fn names(found: &[Arc<NeighbourFact>]) -> Vec<&str> {
    found.iter().map(|nad| nad.key.name()).collect()
}

/// The neighbours of each of some NADs.
fn found(nads: &[(&str, String)]) -> Vec<String> {
    let mut index = NeighbourIndex::default();
    for (name, config) in nads {
        index.put(&key(name), summary(&key(name), config));
    }
    let line = |(name, config): &(&str, String)| {
        format!("{name}: {}", names(&index.neighbours(&key(name), &summary(&key(name), config))).join(" "))
    };
    nads.iter().map(line).collect()
}

#[test]
fn pools_with_the_same_addresses_find_each_other() {
    let local = |subnet: &str, name: &str| {
        vlan(5, &format!(r#""type":"host-local","subnet":"{subnet}""#))
            .replace(r#""name":"n""#, &format!(r#""name":"{name}""#))
    };
    let nads = [
        ("a", vlan(5, &whereabouts("10.0.0.0/24", "x"))),
        ("b", vlan(5, &whereabouts("10.0.0.128/25", "x"))),
        ("c", vlan(5, &whereabouts("10.0.0.200-10.0.0.210/24", "y"))),
        ("d", vlan(6, &whereabouts("10.0.0.0/24", "x"))),
        ("e", vlan(6, &whereabouts("10.0.0.0/24", "z"))),
        ("f", local("10.0.1.0/24", "one")),
        ("g", local("10.0.1.0/24", "two")),
        ("h", local("10.0.1.0/24", "one")),
        ("i", vlan(5, r#""type":"static","addresses":[{"address":"10.0.1.77/16"}]"#)),
    ];
    let want = ["a: c d", "b: c d", "c: a b", "d: a b e", "e: d", "f: g i", "g: f h i", "h: g i", "i: f g h"];
    assert_eq!(found(&nads), want);
}

#[test]
fn slices_and_networks_of_ovn_find_those_that_differ() {
    let slices = |range: &str, size: &str| {
        let size = if size.is_empty() { String::new() } else { format!(r#","node_slice_size":"{size}""#) };
        format!(
            r#"{{"cniVersion":"1.0.0","name":"n","type":"macvlan","ipam":{{"type":"whereabouts","range":"{range}"{size}}}}}"#
        )
    };
    let nads = [
        ("a", slices("10.0.0.0/16", "/24")),
        ("b", slices("10.0.0.5/16", "/24")),
        ("c", slices("10.0.0.0/16", "24")),
        ("d", slices("10.1.0.0/16", "")),
        ("e", slices("10.2.0.0/16", "")),
    ];
    assert_eq!(found(&nads), ["a: c d e", "b: c d e", "c: a b d e", "d: a b c", "e: a b c"]);
    let ovn = |name: &str, network: &str, rest: &str| {
        format!(
            r#"{{"cniVersion":"1.0.0","name":"{network}","type":"ovn-k8s-cni-overlay","netAttachDefName":"apps/{name}",{rest}}}"#
        )
    };
    let nads = [
        ("a", ovn("a", "blue", r#""topology":"layer2""#)),
        ("b", ovn("b", "blue", r#""topology":"layer2""#)),
        ("c", ovn("c", "blue", r#""topology":"layer3","role":"primary""#)),
        ("d", ovn("d", "red", r#""topology":"layer3","role":"primary""#)),
        ("e", ovn("wrong", "blue", r#""topology":"localnet""#)),
    ];
    assert_eq!(found(&nads), ["a: c", "b: c", "c: a b d", "d: c", "e: a b c"]);
}

#[test]
fn the_index_follows_changes_and_leaves_nothing_behind() {
    let mut index = NeighbourIndex::default();
    let put = |index: &mut NeighbourIndex, name: &str, range: &str, network_name: &str| {
        index.put(&key(name), summary(&key(name), &vlan(5, &whereabouts(range, network_name))));
    };
    put(&mut index, "a", "10.0.0.0/24", "x");
    put(&mut index, "b", "10.0.0.0/24", "y");
    assert_eq!(index.neighbour_keys(&key("a")), [key("b")]);
    put(&mut index, "b", "10.0.1.0/24", "y");
    assert!(index.neighbour_keys(&key("a")).is_empty() && index.neighbour_keys(&key("b")).is_empty());
    put(&mut index, "b", "10.0.0.9-10.0.0.9/24", "y");
    assert_eq!(index.neighbour_keys(&key("b")), [key("a")]);
    // Its config hands out nothing any more.
    index.put(&key("a"), summary(&key("a"), "{}"));
    index.remove(&key("b"));
    index.remove(&key("never"));
    assert_eq!(index.count(), 0);
    assert!(
        index.pools.is_empty()
            && index.shared.is_empty()
            && index.slices.is_empty()
            && index.ovn.is_empty()
            && index.primary.is_empty()
    );
}

#[test]
fn manifests_of_one_nad_count_once_and_only_if_they_agree() {
    let config = |range: &str| vlan(5, &whereabouts(range, "x"));
    let of = |name: &str, range: &str| summary(&key(name), &config(range));
    let network = |name: &str| NetworkId {
        kind: crate::resources::NetworkKind::Sriov,
        namespace: "op".to_owned(),
        name: name.to_owned(),
    };
    let own = summary(&key("own"), &vlan(5, &whereabouts("10.0.0.0/16", "own")));
    let mut index = NeighbourIndex::default();
    index.add(&key("same"), of("same", "10.0.0.0/24"));
    index.add(&key("same"), of("same", "10.0.0.0/24"));
    index.add(&key("differs"), of("differs", "10.0.0.0/24"));
    index.add(&key("differs"), of("differs", "10.0.1.0/24"));
    index.add(&key("differs"), of("differs", "10.0.0.0/24"));
    index.add_rendered(&key("same"), network("same"), of("same", "10.0.2.0/24"));
    index.add_rendered(&key("rendered"), network("rendered"), of("rendered", "10.0.3.0/24"));
    assert_eq!(names(&index.neighbours(&key("own"), &own)), ["rendered", "same"]);
    // Two networks render one NAD.
    let other = NetworkId { namespace: "other".to_owned(), ..network("rendered") };
    index.add_rendered(&key("rendered"), other, of("rendered", "10.0.3.0/24"));
    assert_eq!(names(&index.neighbours(&key("own"), &own)), ["same"]);
}

/// However many NADs there are, few are reported, and always the same: the oldest.
#[test]
fn few_of_many_neighbours_are_reported() {
    let mut index = NeighbourIndex::default();
    for number in (0..100).rev() {
        let name = format!("n{number:03}");
        let mut nad = summary(&key(&name), &vlan(5, &whereabouts("10.0.0.0/24", &name)));
        nad.created = (number == 50).then(|| "2026-11-01T00:00:00Z".parse().unwrap());
        index.put(&key(&name), nad);
    }
    let own = summary(&key("own"), &vlan(5, &whereabouts("10.0.0.0/24", "own")));
    assert_eq!(names(&index.neighbours(&key("own"), &own)), ["n000", "n001", "n002", "n003"]);
}

#[test]
fn a_nad_that_is_deleted_matters_to_none() {
    let json = serde_json::json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "n", "namespace": "apps", "deletionTimestamp": "2026-11-01T00:00:00Z" },
        "spec": { "config": vlan(5, &whereabouts("10.0.0.0/24", "x")) },
    })
    .to_string();
    let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("{json}") };
    assert!(NetworkUse::of(&nad).is_empty());
    assert!(!NetworkUse::of(&Nad { meta: crate::resources::Meta::default(), ..nad }).is_empty());
}

/// However many NADs a tenant adds that do not conflict with one, those that do are found.
#[test]
fn nads_that_do_not_conflict_hide_no_others() {
    let mut index = NeighbourIndex::default();
    let mut put = |name: String, config: &str| {
        let key = ObjectKey::new("evil", &name);
        index.put(&key, summary(&key, config));
    };
    for number in 0..300_u16 {
        // On VLANs of their own, with the same addresses; and in the same pool of whereabouts, with some of them.
        let local = vlan(1000 + number, r#""type":"host-local","subnet":"10.0.0.0/8""#);
        put(format!("other-{number}"), &local.replace(r#""name":"n""#, &format!(r#""name":"e{number}""#)));
        put(format!("same-{number}"), &vlan(5, &whereabouts(&format!("10.0.5.{}-10.0.5.250/24", number % 200), "a")));
        put(format!("tag-{number}"), &vlan(1000 + number, &whereabouts("10.0.5.0/24", "unshared")));
    }
    let (a, b) = (vlan(5, &whereabouts("10.0.5.0/24", "a")), vlan(5, &whereabouts("10.0.5.0/24", "b")));
    index.put(&key("b"), summary(&key("b"), &b));
    assert_eq!(names(&index.neighbours(&key("a"), &summary(&key("a"), &a))), ["b"]);

    let ovn = |namespace: &str, name: &str, rest: &str| {
        format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","type":"ovn-k8s-cni-overlay","netAttachDefName":"{namespace}/{name}",{rest}}}"#
        )
    };
    let mut index = NeighbourIndex::default();
    for number in 0..300_u16 {
        for (name, names_itself, rest) in [
            ("mtu", true, format!(r#""topology":"layer2","mtu":{}"#, 1000 + number)),
            ("wrong", false, format!(r#""topology":"layer2","subnets":"10.{}.0.0/24""#, number % 256)),
        ] {
            let key = ObjectKey::new("evil", &format!("{name}-{number}"));
            let config = ovn("evil", if names_itself { key.name() } else { "x" }, &rest);
            index.put(&key, summary(&key, &config));
        }
    }
    let other = ObjectKey::new("victim", "other");
    index.put(&other, summary(&other, &ovn("victim", "other", r#""topology":"layer3""#)));
    let own = summary(&key("own"), &ovn("apps", "own", r#""topology":"layer2""#));
    assert_eq!(names(&index.neighbours(&key("own"), &own)), ["other"]);
}

/// NADs of other namespaces do not displace those of the same namespace, whose conflicts are denied.
#[test]
fn those_of_the_namespace_are_found_besides() {
    let ovn = |key: &ObjectKey, rest: &str| {
        let config = format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","type":"ovn-k8s-cni-overlay","netAttachDefName":"{key}",{rest}}}"#
        );
        summary(key, &config)
    };
    let slices = |key: &ObjectKey, size: &str| {
        let config = format!(
            r#"{{"cniVersion":"1.0.0","name":"n","type":"macvlan","ipam":{{"type":"whereabouts","range":"10.0.0.0/16","node_slice_size":"{size}"}}}}"#
        );
        summary(key, &config)
    };
    for is_ovn in [true, false] {
        let of = |key: &ObjectKey, number: usize| match is_ovn {
            true => ovn(key, &format!(r#""topology":"layer2","mtu":{}"#, 1000 + number)),
            false => slices(key, &format!("/{}", number % 100)),
        };
        let mut index = NeighbourIndex::default();
        for number in 0..20 {
            let key = ObjectKey::new("a", &format!("x{number}"));
            index.put(&key, of(&key, number));
        }
        let (near, own) = (ObjectKey::new("z", "near"), ObjectKey::new("z", "own"));
        // The same config as one of the others, which is older.
        index.put(&near, of(&near, 0));
        let found = index.neighbours(&own, &of(&own, 50));
        assert!(found.iter().any(|nad| nad.key == near), "{found:?}");
        assert_eq!(found.len(), 1 + MAX_NEIGHBOURS, "{found:?}");
    }
}

#[test]
fn to_a_nad_whose_manifests_disagree_nothing_matters() {
    let of = |name: &str, range: &str| summary(&key(name), &vlan(5, &whereabouts(range, name)));
    let mut index = NeighbourIndex::default();
    index.add(&key("a"), of("a", "10.0.0.0/24"));
    index.add(&key("b"), of("b", "10.0.0.0/24"));
    assert_eq!(names(&index.neighbours(&key("b"), &of("b", "10.0.0.0/24"))), ["a"]);
    index.add(&key("b"), of("b", "10.0.0.0/25"));
    assert!(index.neighbours(&key("b"), &of("b", "10.0.0.0/24")).is_empty());
    assert!(index.neighbours(&key("a"), &of("a", "10.0.0.0/24")).is_empty());
}
