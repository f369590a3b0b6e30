use super::*;
use crate::policy::{Lookup, NadFact, NamespaceState};
use crate::resources::{NAD_GROUP, NETWORK_GROUP, ObjectKey};

#[test]
fn fresh_cache_avoids_live_reads() {
    let caches = Caches::new(&crate::telemetry::Metrics::default().caches);
    let sriov = [NetworkKind::Sriov];
    assert_eq!(caches.prefix("op"), None, "the cache is not synced");
    assert!(!caches.has_no_network(&sriov, &ObjectKey::new("apps", "net")), "the cache is not synced");

    let spec = r#"{"template":{"spec":{"containers":[{},{"env":[{"name":"A","value":"b"},{"name":"RESOURCE_PREFIX","value":"vendor.io"}]}]}}}"#;
    let deployment =
        |namespace: &str, spec: &str| object("apps", "Deployment", namespace, "sriov-network-operator", spec);
    put(&caches.deployments, &[deployment("op", spec), deployment("bare", "{}")]);
    assert_eq!(caches.prefix("op"), Some(Some("vendor.io".to_owned())));
    assert_eq!((caches.prefix("bare"), caches.prefix("elsewhere")), (Some(None), Some(None)));

    put(&caches.networks[0], &[object(NETWORK_GROUP, "SriovNetwork", "apps", "net", "{}")]);
    assert!(!caches.has_no_network(&sriov, &ObjectKey::new("apps", "net")));
    assert!(
        caches.has_no_network(&sriov, &ObjectKey::new("apps", "other"))
            && caches.has_no_network(&sriov, &ObjectKey::new("op", "net"))
    );
    assert!(
        !caches.has_no_network(&NetworkKind::ALL, &ObjectKey::new("apps", "other")),
        "the caches of the other kinds are not synced"
    );
}

fn put<K: Summarize>(cache: &Cache<K>, objects: &[String]) {
    let mut store = K::default();
    crate::cluster::cache::watch::tests::put(&mut store, objects);
    cache.replace(CacheState::Known(store));
}

/// The facts of a review without discovered operators.
fn known(caches: &Caches, object: &Object<'_>) -> Facts {
    let base = Facts { operators: caches.operators(), ..Facts::default() };
    base.gather(object, caches, &Policy::default())
}

fn object(api: &str, kind: &str, namespace: &str, name: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"{api}/v1","kind":"{kind}","metadata":{{"name":"{name}","namespace":"{namespace}"}},"spec":{spec}}}"#
    )
}

#[test]
fn unsynced_cache_is_unknown_and_synced_cache_is_absent() {
    let metrics = crate::telemetry::Metrics::default();
    let caches = Caches::new(&metrics.caches);
    let text = object(NETWORK_GROUP, "SriovNetwork", "op", "net", r#"{"networkNamespace":"apps"}"#);
    let network = Object::read(&text).unwrap().unwrap();
    let nad_text = object(NAD_GROUP, "NetworkAttachmentDefinition", "apps", "net", "{}");
    let nad = Object::read(&nad_text).unwrap().unwrap();

    let facts = known(&caches, &network);
    assert_eq!((facts.target_namespace, facts.nad_here), (Lookup::Unknown, Lookup::Unknown));
    assert!(facts.networks_here.is_empty() && facts.offered.is_none() && facts.operators == Operators::Unknown);
    assert_eq!((caches.candidates(), known(&caches, &nad).claimants), (None, None));
    assert!(metrics.text().contains("nadmit_cache_missed_total{kind=\"Namespace\"} 1\n"));
    assert_eq!(caches.unknown().len(), 9);

    put(&caches.namespaces, &[]);
    put(&caches.nads, &[]);
    put(&caches.policies, &[]);
    put(&caches.deployments, &[object("apps", "Deployment", "op", "sriov-network-operator", "{}")]);
    caches.configs.replace(CacheState::NotInstalled);
    caches.claims.classes.replace(CacheState::NotInstalled);
    for cache in &caches.networks {
        cache.replace(CacheState::NotInstalled);
    }
    let facts = known(&caches, &network);
    assert_eq!((facts.target_namespace, facts.nad_here), (Lookup::Absent, Lookup::Absent));
    assert_eq!(facts.offered.as_deref(), Some([].as_slice()));
    assert_eq!(caches.candidates(), Some(vec!["op".to_owned()]), "a Deployment of that name proves nothing");
    assert!(caches.is_candidate("op") && !caches.is_candidate("apps") && facts.operators == Operators::Unknown);
    assert!(caches.unknown().is_empty());
    assert!(metrics.text().contains("nadmit_cache_missed_total{kind=\"Namespace\"} 1\n"), "none was missed again");

    put(&caches.namespaces, &[r#"{"metadata":{"name":"apps"}}"#.to_owned()]);
    put(&caches.nads, std::slice::from_ref(&nad_text));
    put(&caches.networks[0], std::slice::from_ref(&text));
    put(&caches.networks[2], &[object(NETWORK_GROUP, "OVSNetwork", "apps", "net", "{}")]);
    caches.policies.replace(CacheState::NotInstalled);
    let facts = known(&caches, &network);
    assert_eq!(facts.target_namespace, Lookup::Found(NamespaceState::Active));
    assert_eq!(facts.nad_here, Lookup::Found(NadFact::default()));
    let here: Vec<_> = facts.networks_here.iter().map(|network| network.id.to_string()).collect();
    assert_eq!(here, ["SriovNetwork op/net", "OVSNetwork apps/net"]);
    assert_eq!(facts.offered, None, "without the CRD the offered resources are unknown");

    // Facts that end up in a stored value are read live.
    let facts = known(&caches, &nad);
    assert_eq!((facts.named_owner, facts.networks_here, facts.knows_networks), (Lookup::Unknown, Vec::new(), false));
    let claimants: Vec<_> = facts.claimants.iter().flatten().map(|network| network.id.to_string()).collect();
    assert_eq!(claimants, ["SriovNetwork op/net", "OVSNetwork apps/net"]);
}
