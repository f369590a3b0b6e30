use serde_json::json;

use super::*;
use crate::deploy::ServiceRef;

fn wanted(bundle: &str) -> Vec<Value> {
    let home = ServiceRef { namespace: "n".to_owned(), service: "s".to_owned() };
    let address = Address { home, at: None, token: None };
    Phase::ALL.iter().map(|phase| configuration(*phase, &address, &Policy::default(), bundle)).collect()
}

#[test]
fn keeps_foreign_metadata_and_restores_own_fields() {
    for mut wanted in wanted("PEM") {
        annotate(&mut wanted, &Parameters { annotations: vec![("ours", "z".to_owned())], fits: true });
        let mut stored = wanted.clone();
        stored["metadata"]["labels"]["theirs"] = "x".into();
        stored["metadata"]["annotations"]["theirs"] = "y".into();
        stored["metadata"]["ownerReferences"] = json!([{ "kind": "ConfigMap", "name": NAME }]);
        stored["metadata"]["resourceVersion"] = "7".into();
        assert!(is_as_wanted(&stored, &wanted));
        let good = stored.clone();
        for (pointer, value) in [
            ("/webhooks/0/failurePolicy", json!("Ignore!")),
            ("/webhooks/0/clientConfig/caBundle", json!("")),
            ("/webhooks/0/objectSelector", json!({ "matchLabels": { "a": "b" } })),
            ("/webhooks/1/namespaceSelector", json!({})),
            ("/webhooks/0/matchConditions", json!([])),
            ("/webhooks", json!([])),
            ("/metadata/labels/app.kubernetes.io~1name", json!("other")),
            ("/metadata/annotations/ours", json!("")),
            ("/metadata/annotations", json!({ "theirs": "y" })),
            (
                "/metadata/ownerReferences",
                json!([{ "kind": "ClusterRole", "name": NAME }, { "kind": "ConfigMap", "name": NAME }]),
            ),
        ] {
            *stored.pointer_mut(pointer).unwrap() = value;
            assert!(!is_as_wanted(&stored, &wanted), "{pointer}");
            stored = fixed(stored, &wanted);
            assert_eq!(stored, good, "{pointer}");
            assert!(is_as_wanted(&stored, &wanted), "{pointer}");
        }
        // As in the manifests.
        let shipped = json!({ "kind": wanted["kind"], "metadata": { "name": NAME } });
        assert!(!is_as_wanted(&shipped, &wanted) && is_as_wanted(&fixed(shipped, &wanted), &wanted));
    }
}

#[test]
fn metric_is_zero_after_the_task_ends() {
    let metrics = crate::telemetry::Metrics::default();
    let shown = UnregisterOnDrop(metrics.registered.clone());
    shown.0.set(None);
    assert!(metrics.text().contains("nadmit_registered 1\n"));
    let panicked = crate::supervise::contained(move || {
        let _shown = shown;
        panic!("killed");
    });
    assert!(panicked.is_err() && metrics.text().contains("nadmit_registered 0\n"), "{}", metrics.text());
    assert!(metrics.text().contains("nadmit_registration_problem{problem=\"stopped\"} 1\n"), "{}", metrics.text());
}

#[test]
fn registered_bundle_is_the_common_one() {
    let stored: Vec<_> = wanted("PEM").into_iter().map(Some).collect();
    assert_eq!(registered_bundle(&stored).as_deref(), Some("PEM"));
    assert_eq!(registered_bundle(&[stored[0].clone(), None]).as_deref(), Some("PEM"), "one of them was deleted");
    assert_eq!(registered_bundle(&[None, None]), None);
    assert_eq!(registered_bundle(&[stored[0].clone(), Some(json!({ "metadata": {} }))]), None, "one has no entries");
    let mut one = stored;
    one[1].as_mut().unwrap()["webhooks"][2]["clientConfig"]["caBundle"] = "QQ==".into();
    assert_eq!(registered_bundle(&one), None);
}

#[test]
fn larger_bundle_is_kept_during_a_grace_period() {
    let make = || rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap().cert.pem();
    let (own, new) = (make(), make());
    let both = format!("{own}{new}");
    let mut state = RegistrationState::default();
    let start = Instant::now();
    for (stored, after, want) in [
        (None, 0, &own),
        (Some(&own), 1, &own),
        (Some(&new), 2, &own),
        (Some(&both), 3, &both),
        (Some(&both), 20, &both),
        (Some(&both), 23, &own),
        (Some(&own), 24, &own),
        (Some(&both), 25, &both),
        (Some(&"junk".to_owned()), 26, &own),
    ] {
        let chosen = state.choose(stored.cloned(), &own, start + Duration::from_secs(after));
        assert_eq!(&chosen, want, "after {after} seconds");
    }
}
