//! The token in the registered paths: the replicas create, share and rotate it, and every called replica knows it.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::api::Api;
use crate::cluster::{TestCluster, alone};
use crate::processes::wait;
use crate::replicas::await_effect;
use crate::writers::Writers;

const SECRETS: &str = "/api/v1/namespaces/nadmit/secrets";
const SECRET: &str = "/api/v1/namespaces/nadmit/secrets/nadmit-token";
const QUICK: [&str; 2] = ["--propagation-time", "1800ms"];

fn configuration(phase: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{phase}webhookconfigurations/nadmit")
}

/// The path of the first entry of a configuration.
pub fn registered_path(api: &Api, phase: &str) -> String {
    let stored = api.get(&configuration(phase)).unwrap();
    stored["webhooks"][0]["clientConfig"]["service"]["path"].as_str().unwrap().to_owned()
}

/// The CA that webhooks trust, PEM.
pub fn bundle(api: &Api) -> String {
    let stored = api.get(&configuration("validating")).unwrap();
    let encoded = stored["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
    String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
}

fn text(secret: &Value, key: &str) -> String {
    let encoded = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
}

/// The token of both configurations; all paths have the same one.
fn registered_token(api: &Api) -> String {
    let mut tokens = BTreeSet::new();
    for phase in ["mutating", "validating"] {
        for entry in api.get(&configuration(phase)).unwrap()["webhooks"].as_array().unwrap() {
            let path = entry["clientConfig"]["service"]["path"].as_str().unwrap();
            tokens.insert(path.rsplit('/').next().unwrap().to_owned());
        }
    }
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    tokens.pop_first().unwrap()
}

/// Removes the tokens from all paths, as a version without tokens does.
fn register_plain(api: &Api) {
    for phase in ["mutating", "validating"] {
        let mut stored = api.get(&configuration(phase)).unwrap();
        for entry in stored["webhooks"].as_array_mut().unwrap() {
            let path = entry["clientConfig"]["service"]["path"].as_str().unwrap();
            let plain = path.rsplit_once('/').unwrap().0.to_owned();
            entry["clientConfig"]["service"]["path"] = plain.into();
        }
        api.patch(&configuration(phase), &json!({ "webhooks": stored["webhooks"] }));
    }
}

#[test]
fn token_rotation_loses_no_write() {
    let _alone = alone();
    let mut cluster = TestCluster::start();
    let watch = cluster.admin.watch(SECRETS);
    for _ in 0..3 {
        cluster.start_replica(&["--leaf-lifetime", "6s", "--propagation-time", "1500ms"]);
    }
    await_effect(&cluster.admin);
    assert_eq!(registered_token(&cluster.admin).len(), 64);
    let writers = Writers::start(&cluster.jane);
    let (mut seen, until) = (BTreeSet::new(), Instant::now() + Duration::from_secs(120));
    while seen.len() < 4 {
        assert!(Instant::now() < until, "only {} tokens were registered", seen.len());
        let path = registered_path(&cluster.admin, "validating");
        seen.insert(path);
        thread::sleep(Duration::from_millis(50));
    }
    let written = writers.end();
    println!("{} tokens, {written} admissions, none failed", seen.len());
    // A token is first the next one, then the current one, then the only one; the one for audit events does not change.
    let events = watch.of("nadmit-token");
    let audit: BTreeSet<_> = events.iter().map(|event| text(&event.object, "audit-events")).collect();
    assert_eq!(audit.len(), 1);
    for pair in events.windows(2) {
        let [before, after] =
            [&pair[0], &pair[1]].map(|event| ["current", "next", "previous"].map(|key| text(&event.object, key)));
        let is_step = match (before[1].as_str(), before[2].as_str()) {
            ("", "") => after[0] == before[0] && !after[1].is_empty(),
            (next, "") => after == [next, "", &before[0]],
            _ => after == [&before[0], "", ""],
        };
        assert!(is_step, "{before:?} {after:?}");
    }
    for server in &cluster.nadmits {
        assert_eq!(server.metric("nadmit_reviews_unanswered_total{reason=\"unknown_token\"}"), 0.0);
        assert!(!seen.iter().any(|path| server.log_text().contains(path)), "a token is in the log");
    }
}

#[test]
fn deleted_or_replaced_token_secret_loses_no_write() {
    let _alone = alone();
    let mut cluster = TestCluster::start();
    for _ in 0..2 {
        cluster.start_replica(&QUICK);
    }
    await_effect(&cluster.admin);
    let writers = Writers::start(&cluster.jane);
    let other = "ab".repeat(32);
    let replaced = json!({ "data": { "current": BASE64_STANDARD.encode(&other), "next": null, "previous": null } });
    let garbage = json!({ "data": { "current": BASE64_STANDARD.encode("not a token"), "made": null } });
    for (what, data) in [("replaced", Some(replaced)), ("garbage", Some(garbage)), ("deleted", None)] {
        let old = registered_token(&cluster.admin);
        match data {
            None => cluster.admin.delete(SECRET),
            Some(data) => drop(cluster.admin.patch(SECRET, &data)),
        }
        // In the end everything is as before, with one token, which is new.
        let new = wait("another token", || {
            let secret = cluster.admin.get(SECRET)?;
            let path = registered_path(&cluster.admin, "validating");
            let is_alone = ["next", "previous"].iter().all(|key| text(&secret, key).is_empty());
            let is_new = !path.ends_with(&old) && path.ends_with(&text(&secret, "current"));
            (is_alone && is_new && !text(&secret, "current").is_empty()).then_some(path)
        });
        assert_eq!(what == "replaced", new.ends_with(&other), "{what}");
    }
    // A replica that starts at this moment, without any state.
    cluster.admin.delete(SECRET);
    let number = cluster.start_replica(&QUICK);
    println!("{} admissions, none failed", writers.end());
    for server in &cluster.nadmits[..=number] {
        assert_eq!(server.metric("nadmit_reviews_unanswered_total{reason=\"unknown_token\"}"), 0.0);
    }
}

/// A version without tokens has registered nadmit, and its replicas are replaced one by one.
#[test]
fn upgrade_to_token_paths_loses_no_write() {
    let _alone = alone();
    let mut cluster = TestCluster::start();
    for _ in 0..2 {
        cluster.start_replica(&["--propagation-time", "4s"]);
    }
    await_effect(&cluster.admin);
    cluster.kill_nadmit();
    register_plain(&cluster.admin);
    for _ in 0..2 {
        cluster.start_replica(&["--propagation-time", "4s"]);
    }
    assert_eq!(registered_path(&cluster.admin, "validating"), "/validate");
    await_effect(&cluster.admin);
    let writers = Writers::start(&cluster.jane);
    wait("paths with a token", || (registered_path(&cluster.admin, "validating").len() > 64).then_some(()));
    registered_token(&cluster.admin);
    // When the API server does not use the old paths any more, they are closed.
    wait("the end of paths without a token", || {
        let server = cluster.nadmit();
        let trust = crate::client::Trust::in_ca(bundle(&cluster.admin).as_bytes()).named("nadmit.nadmit.svc");
        let answer = crate::client::block_on(async {
            let mut client =
                crate::client::Client::connect(server.https, &trust, crate::client::Http::One).await.unwrap();
            client.post("/validate", "{}").await.unwrap()
        });
        (answer.status == 503).then_some(())
    });
    println!("{} admissions, none failed", writers.end());
}

/// With a supplied certificate, nadmit still creates its own token.
#[test]
fn supplied_certificate_also_uses_a_token() {
    let mut cluster = TestCluster::start();
    let number = cluster.start_supplied();
    cluster.join_service(number);
    await_effect(&cluster.admin);
    assert_eq!(registered_token(&cluster.admin), text(&cluster.admin.get(SECRET).unwrap(), "current"));
}
