//! The admission protocol: what the API server requires, and what nadmit guarantees.

use std::fs;
use std::path::Path;

use nadmit::review::Endpoint::{Mutate, Validate};
use serde_json::{Value, json};

use super::client::{Client, Http, block_on, plain, plain_get};
use super::harness::TestServer;
use super::reviews::{DENIED, GOOD, REPAIRABLE, Reply, TestReview, V1, V1BETA1, path};

const BOTH: [nadmit::review::Endpoint; 2] = [Mutate, Validate];
const OPERATOR: &str = "system:serviceaccount:openshift-sriov-network-operator:sriov-network-operator";

fn ask(question: &TestReview, endpoint: nadmit::review::Endpoint) -> Reply {
    block_on(async { question.ask(&mut TestServer::shared().connect(Http::One).await, endpoint).await })
}

/// [`Reply::read`] checks uid, version, kind, patch type, status and annotations of each of these.
#[test]
fn responses_match_the_admission_api() {
    for version in [V1, V1BETA1] {
        let question = |object: &str| TestReview { version, ..TestReview::create(object) };
        assert_eq!(ask(&question(GOOD), Mutate).decision, "allow");
        assert_eq!(ask(&question(GOOD), Validate).decision, "allow");
        assert_eq!(ask(&question(REPAIRABLE), Mutate).decision, "patch");
        assert_eq!(ask(&question(REPAIRABLE), Validate).decision, "deny", "{version}: a skipped repair is denied");
        assert_eq!(ask(&question(DENIED), Mutate).decision, "allow", "{version}: the first webhook never denies");
        assert_eq!(ask(&question(DENIED), Validate).decision, "deny");
        assert_eq!(ask(&TestReview { version, ..TestReview::delete(REPAIRABLE) }, Mutate).decision, "allow");
        let operators = question(REPAIRABLE).by(OPERATOR);
        assert_eq!(ask(&operators, Validate).decision, "allow", "{version}: the operator is never denied");
    }
}

#[test]
fn uid_is_echoed() {
    for uid in ["x", "\"quoted\" \\ and {braced}", "ünïcode \u{1F980}", "tab\there", &"long".repeat(1000)] {
        for endpoint in BOTH {
            ask(&TestReview { uid: uid.to_owned(), ..TestReview::create(DENIED) }, endpoint);
        }
    }
}

#[test]
fn denial_names_field_and_reason() {
    let object = DENIED.replace(r#"\"type\":\"sriov\""#, r#"\"type\":\"sriov\",\"vlan\":4095,\"deviceid\":7"#);
    let reply = ask(&TestReview::create(&object), Validate);
    let details = &reply.status["details"];
    let subject = [&details["name"], &details["group"], &details["kind"]];
    assert_eq!(subject, [&json!("net"), &json!("k8s.cni.cncf.io"), &json!("NetworkAttachmentDefinition")]);
    let causes = reply.causes();
    assert!(causes.len() >= 2, "one cause for each finding: {reply:#?}");
    let has = |rule: &str, field: &str| {
        causes.iter().any(|(message, at)| message.contains(&format!("({rule})")) && *at == field)
    };
    assert!(has("sriov/vlan", "spec.config#/vlan"), "{causes:?}");
    assert!(causes.iter().any(|(message, _)| message.contains("(nad/resource-name-missing). Help: ")), "{causes:?}");
    let message = reply.status["message"].as_str().unwrap();
    for (cause, field) in &causes {
        assert!(message.contains(&format!("{field}: {cause}")), "{message}");
    }
}

/// An unreadable body is left to failurePolicy; a readable review always gets a response.
#[test]
fn unreadable_bodies_are_http_errors() {
    let whole = TestReview::create(GOOD).body();
    let changed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}: {whole}");
        whole.replacen(from, to, 1).into_bytes()
    };
    let mut latin = whole.clone().into_bytes();
    latin.insert(whole.find("jane").unwrap(), 0xe9);
    let unreadable = [
        Vec::new(),
        b" ".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        whole.as_bytes()[..whole.len() - 1].to_vec(),
        whole.as_bytes()[..whole.len() / 2].to_vec(),
        [whole.as_bytes(), b"x"].concat(),
        changed("AdmissionReview", "TokenReview"),
        changed("admission.k8s.io/v1", "admission.k8s.io/v2"),
        changed("\"uid\":\"705", "\"UID\":\"705"),
        changed("\"request\":", "\"response\":"),
        changed("\"CREATE\"", "\"EXPLODE\""),
        latin,
        vec![0; 1000],
        b"[".repeat(100_000),
        format!("{{\"request\":{}", "{\"object\":".repeat(50_000)).into_bytes(),
    ];
    let server = TestServer::shared();
    block_on(async {
        for http in [Http::One, Http::Two] {
            let mut client = server.connect(http).await;
            for body in &unreadable {
                for endpoint in BOTH {
                    let answer = client.post(path(endpoint), body.clone()).await.unwrap();
                    assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(body));
                    let words = answer.text();
                    assert!(words.contains("AdmissionReview") && words.len() < 500, "{words}");
                    assert_eq!(answer.header("retry-after"), "", "a retry would not help");
                }
            }
            TestReview::create(GOOD).ask(&mut client, Mutate).await;
        }
    });
}

/// A readable review gets its own uid back, however malformed the rest of it is.
#[test]
fn malformed_objects_get_a_response() {
    let nad =
        |rest: &str| format!(r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition"{rest}}}"#);
    let objects = [
        "5".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "\"text\"".to_owned(),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#.to_owned(),
        nad(""),
        nad(r#","metadata":5,"spec":[]"#),
        nad(r#","metadata":{"annotations":7,"namespace":{}},"spec":{"config":{}}"#),
        nad(&format!(r#","spec":{{"config":"{}"}}"#, "[".repeat(100_000))),
        nad(&format!(r#","spec":{{"deep":{}1{}}}"#, "[".repeat(100), "]".repeat(100))),
    ];
    for object in &objects {
        for endpoint in BOTH {
            let reply = ask(&TestReview::create(object), endpoint);
            assert!(reply.warnings.iter().all(|warning| !warning.is_empty()), "{object}: {reply:?}");
        }
    }
    for question in [
        TestReview { object: None, ..TestReview::create("") },
        TestReview { object: None, ..TestReview::update(GOOD, "") },
    ] {
        assert_eq!(ask(&question, Validate).warnings.len(), 1, "a warning says that nothing was judged");
        assert!(ask(&question, Mutate).warnings.is_empty(), "only one of the two webhooks warns");
    }
}

/// Only judged kinds are repaired: not their status, not when they are deleted, and not other kinds.
#[test]
fn other_kinds_are_allowed() {
    let status = TestReview { sub_resource: "status".to_owned(), ..TestReview::update(GOOD, REPAIRABLE) };
    let connect = TestReview { operation: "CONNECT", ..TestReview::create(REPAIRABLE) };
    let other = TestReview::create(&REPAIRABLE.replace("k8s.cni.cncf.io/v1", "example.com/v1"));
    for question in [status, connect, other, TestReview::delete(REPAIRABLE)] {
        for endpoint in BOTH {
            let reply = ask(&question, endpoint);
            assert_eq!((reply.decision.as_str(), reply.rules.as_str()), ("allow", ""), "{question:?}");
        }
    }
}

/// Other fields, and earlier mutating webhooks, do not change the repair; the repair does not change their fields.
#[test]
fn patch_changes_nothing_else() {
    let with_more = REPAIRABLE.replace(
        r#""metadata":{"#,
        r#""future":[1,2.50,{"b":null,"a":1e3}],"metadata":{"labels":{"x":"y"},"annotations":{"b":"2","a":"1"},"finalizers":["f/g"],"#,
    );
    let reply = ask(&TestReview::create(&with_more), Mutate);
    let (mut before, mut after): (Value, Value) =
        (serde_json::from_str(&with_more).unwrap(), serde_json::from_str(&reply.applied_to(&with_more)).unwrap());
    let annotations = after["metadata"]["annotations"].as_object_mut().unwrap();
    assert_eq!(annotations.remove("k8s.v1.cni.cncf.io/resourceName"), Some(json!("openshift.io/cx7")));
    before["spec"]["config"] = Value::Null;
    after["spec"]["config"] = Value::Null;
    assert_eq!(before, after);
}

#[test]
fn unknown_paths_are_not_found() {
    let server = TestServer::shared();
    block_on(async {
        for http in [Http::One, Http::Two] {
            let mut client = server.connect(http).await;
            let mut status = async |method: &str, path: &str| {
                let answer = client.send(method, path, &[], Vec::new()).await.unwrap();
                (answer.status.as_u16(), answer.header("allow").to_owned())
            };
            for path in [
                "/",
                "/metrics",
                "/mutate/",
                "/mutate/x",
                "/Mutate",
                "/validate/..",
                "/healthz/x",
                "/debug/pprof",
                "//mutate",
            ] {
                for method in ["GET", "POST"] {
                    assert_eq!(status(method, path).await.0, 404, "{method} {path}");
                }
            }
            for (path, allowed) in
                [("/mutate", "POST"), ("/validate", "POST"), ("/healthz", "GET,HEAD"), ("/readyz", "GET,HEAD")]
            {
                for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
                    if !allowed.contains(method) {
                        assert_eq!(status(method, path).await, (405, allowed.to_owned()), "{method} {path}");
                    }
                }
            }
            let verbose = "[+]policy ok: default\nok\n";
            for (path, want) in
                [("/healthz", "ok\n"), ("/readyz", "ok\n"), ("/healthz?verbose", "ok\n"), ("/readyz?verbose", verbose)]
            {
                assert_eq!(client.send("GET", path, &[], Vec::new()).await.unwrap().text(), want, "{path}");
            }
        }
        for path in ["/", "/mutate", "/validate", "/healthz", "/readyz", "/metrics/"] {
            assert_eq!(plain_get(server.metrics, path).await.status, 404, "{path} beside the metrics");
        }
        assert_eq!(plain("POST", server.metrics, "/metrics").await.status, 405);
        let metrics = plain_get(server.metrics, "/metrics").await;
        assert!(metrics.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"));
    });
}

/// The API server sends JSON, curl sends a form, and some clients send no content type.
#[test]
fn content_type_and_query_are_ignored() {
    let server = TestServer::shared();
    block_on(async {
        let mut client = server.connect(Http::One).await;
        for kind in [
            "application/json",
            "application/json; charset=utf-8",
            "application/x-www-form-urlencoded",
            "text/plain",
            "",
        ] {
            for query in [
                "",
                "?timeout=10s",
                "?timeout=1s",
                "?timeout=30s&x=y",
                "?timeout=soon",
                "?timeout=0s",
                "?timeout=-1s",
                "?%ff",
                "?",
            ] {
                let question = TestReview::create(REPAIRABLE);
                let kinds = [("content-type", kind)];
                let headers = if kind.is_empty() { &[][..] } else { &kinds[..] };
                let answer = client.send("POST", &format!("/mutate{query}"), headers, question.body()).await.unwrap();
                assert!(Reply::read(&answer, &question, Mutate).patch.is_some(), "{kind} {query}");
            }
        }
    });
}

fn padded(megabytes: usize) -> String {
    let padding = "x".repeat(megabytes * 1_000_000);
    REPAIRABLE.replace(r#""metadata":{"#, &format!(r#""metadata":{{"annotations":{{"padding":"{padding}"}},"#))
}

/// The API server accepts objects of 3 MiB; a review may contain two of them.
#[test]
fn size_limit_of_reviews() {
    let server = TestServer::shared();
    let (large, larger, too_large) = (
        TestReview::create(&padded(3)),
        TestReview::update(&padded(3), &padded(3)),
        TestReview::create(&padded(9)).body(),
    );
    let rejected = |server: &TestServer| server.metric("nadmit_reviews_unanswered_total{reason=\"too_large\"}");
    let before = rejected(server);
    block_on(async {
        for http in [Http::One, Http::Two] {
            let mut client = server.connect(http).await;
            assert!(large.ask(&mut client, Mutate).await.patch.is_some(), "{http:?}");
            assert!(larger.ask(&mut client, Mutate).await.patch.is_some(), "{http:?}");
            let mut unlucky: Client = server.connect(http).await;
            match unlucky.post("/mutate", too_large.clone()).await {
                Ok(answer) => {
                    assert_eq!(answer.status, 413, "{http:?}");
                    assert!(answer.text().contains("8 MiB"), "{}", answer.text());
                }
                // The body is not read: a client that is still sending may miss the response.
                Err(error) => assert_eq!(http, Http::One, "{error}"),
            }
            assert!(large.ask(&mut client, Mutate).await.patch.is_some(), "{http:?}: others are not disturbed");
            assert!(large.ask(&mut server.connect(http).await, Mutate).await.patch.is_some(), "{http:?}");
        }
    });
    assert_eq!(rejected(server), before + 2.0);
}

/// The reviews of docs/serve.md.
#[test]
fn the_examples_are_decided_as_documented() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (file, mutate, validate) in [
        ("review.json", "patch", "allow"),
        ("review-good.json", "allow", "allow"),
        ("review-broken-ipam.json", "allow", "deny"),
        ("review-update.json", "allow", "deny"),
    ] {
        let body = fs::read_to_string(examples.join(file)).unwrap();
        let review: Value = serde_json::from_str(&body).unwrap();
        for (endpoint, want) in [(Mutate, mutate), (Validate, validate)] {
            let answer = TestServer::shared().post(path(endpoint), body.clone());
            let question =
                TestReview { uid: review["request"]["uid"].as_str().unwrap().to_owned(), ..TestReview::create("{}") };
            let reply = Reply::read(&answer, &question, endpoint);
            assert_eq!(reply.decision, want, "{file} {endpoint:?}");
        }
    }
}
