//! Telemetry: one log line for each decision, and metrics whose label values callers cannot choose.

use std::collections::{BTreeMap, BTreeSet};

use nadmit::policy::{Class, rules};
use nadmit::review::Endpoint::{Mutate, Validate};

use super::client::{Http, block_on};
use super::harness::TestServer;
use super::reviews::{DENIED, GOOD, REPAIRABLE, TestReview};

/// The fields of a decision's log line, in alphabetical order.
const FIELDS: [&str; 15] = [
    "decision",
    "dry_run",
    "endpoint",
    "kind",
    "level",
    "message",
    "micros",
    "name",
    "namespace",
    "operation",
    "rules",
    "timestamp",
    "uid",
    "user",
    "would",
];

#[test]
fn one_log_line_per_decision_without_the_object() {
    let server = TestServer::start(&[]);
    let marked = |object: &str| {
        let object = object.replace(r#""metadata":{"#, r#""metadata":{"annotations":{"note":"marker-annotation"},"#);
        object.replace(r#"\"name\":\"net\""#, r#"\"name\":\"marker-config\""#)
    };
    let operators = TestReview::create(&marked(REPAIRABLE)).by("system:serviceaccount:a:b");
    let asked = [
        (TestReview::create(&marked(GOOD)), Validate, "allow", ""),
        (operators, Mutate, "patch", "nad/resource-name-missing=patch"),
        (TestReview::create(&marked(DENIED)), Validate, "deny", "nad/resource-name-missing=deny"),
        (TestReview { dry_run: true, ..TestReview::create(&marked(GOOD)) }, Mutate, "allow", ""),
        (TestReview::delete(&marked(DENIED)), Validate, "allow", ""),
        (TestReview::update(&marked(GOOD), &marked(GOOD)), Validate, "allow", ""),
    ];
    for (question, endpoint, decision, rules) in &asked {
        block_on(async { question.ask(&mut server.connect(Http::One).await, *endpoint).await });
        let line = server.log_of(&question.uid);
        let fields: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(fields, FIELDS, "{line}");
        let logged = ["level", "message", "decision", "rules", "would", "user", "kind", "namespace", "name"]
            .map(|field| line[field].as_str().unwrap());
        let user = question.user.as_str();
        assert_eq!(
            logged,
            ["INFO", "reviewed", decision, rules, "", user, "NetworkAttachmentDefinition", "apps", "net"],
            "{line}"
        );
        assert_eq!(line["endpoint"], endpoint.name());
        assert_eq!(line["operation"], question.operation.to_lowercase());
        assert_eq!(line["dry_run"], question.dry_run);
        assert!(line["micros"].is_u64(), "{line}");
    }
    server.post("/mutate", "marker-body");
    server.wait_for_log("about the bad body", |line| line["level"] == "WARN" && line["reason"] == "unreadable");
    let log = server.log_text();
    let decisions = log.lines().filter(|line| line.contains("\"decision\"")).count();
    assert_eq!(decisions, asked.len(), "{log}");
    assert!(!log.contains("marker"), "{log}");
}

/// Text of callers is escaped in either format, so that it cannot forge a log line.
#[test]
fn log_line_is_a_single_line() {
    let forged = "eve\n{\"level\":\"INFO\",\"message\":\"forged\"}\r\u{1b}[31m";
    let text = TestServer::start(&["--log-format", "text"]);
    for server in [TestServer::shared(), &text] {
        let unreadable = serde_json::json!({ "apiVersion": "v1", "kind": forged }).to_string();
        assert_eq!(server.post("/validate", unreadable).status, 400);
        let question = TestReview { uid: format!("last-{forged}"), ..TestReview::create(DENIED).by(forged) };
        block_on(async { question.ask(&mut server.connect(Http::One).await, Validate).await });
        server.wait_for_line("last-");
        let log = server.log_text();
        assert!(!log.contains('\u{1b}') && !log.contains('\r'), "{log}");
        assert!(log.lines().all(|line| !line.starts_with("{\"level\"")), "{log}");
    }
}

/// However long a name is, the decision is logged in a line of bounded length, and so is an error about an unreadable
/// body.
#[test]
fn log_line_length_is_bounded() {
    let server = TestServer::shared();
    let long = "ü".repeat(1 << 19);
    let object = GOOD.replace(r#""name":"net""#, &format!(r#""name":"{long}""#)).replace("apps", &long);
    let question = TestReview::create(&object).by(&long);
    block_on(async { question.ask(&mut server.connect(Http::One).await, Validate).await });
    let line = server.log_of(&question.uid);
    assert!(line["user"].as_str().unwrap().starts_with("üü"), "{line}");
    assert!(line.to_string().len() < 8192, "{} bytes", line.to_string().len());
    let unreadable = question.body().replace("\"CREATE\"", &format!("\"marked-{long}\""));
    let answer = server.post("/validate", unreadable);
    assert_eq!(answer.status, 400);
    assert!(answer.body.len() < 4096, "{} bytes", answer.body.len());
    let line = server.wait_for_log("about the bad body", |line| line.to_string().contains("marked-"));
    assert!(line.to_string().len() < 8192, "{} bytes", line.to_string().len());
}

/// A sample: its name and labels, and its value.
type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Parses the text strictly by the OpenMetrics standard, as far as nadmit uses it.
fn samples(text: &str) -> Samples {
    let body = text.strip_suffix("# EOF\n").expect("no `# EOF` at the end");
    let (mut samples, mut types) = (Samples::new(), BTreeMap::new());
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (what, name, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(["HELP", "TYPE", "UNIT"].contains(&what), "{line}");
            if what == "TYPE" {
                assert!(types.insert(name.to_owned(), value.to_owned()).is_none(), "{name} twice");
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').map_or((series, ""), |(name, labels)| {
            (name, labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}")))
        });
        let label = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or_else(|| panic!("{line}"));
            (key.to_owned(), value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap().to_owned())
        };
        let labels = labels.split(',').filter(|pair| !pair.is_empty()).map(label).collect();
        let family = types.keys().find(|family| {
            let suffix = name.strip_prefix(family.as_str());
            suffix.is_some_and(|suffix| ["", "_total", "_sum", "_count", "_bucket", "_info"].contains(&suffix))
        });
        assert!(family.is_some(), "{name} has no type");
        let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(samples.insert((name.to_owned(), labels), value).is_none(), "{series} twice");
    }
    samples
}

/// All allowed values of each label.
fn closed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rules = rules::RULES.iter().map(|rule| rule.id).collect();
    let set = |values: &[&'static str]| values.iter().copied().collect();
    BTreeMap::from([
        ("endpoint", set(&["mutate", "validate", "status", "pods", "in-use"])),
        ("class", Class::ALL.map(Class::name).into_iter().collect()),
        ("manager", set(&["operator", "daemon", "kubectl", "other", "unknown"])),
        (
            "kind",
            set(&[
                "NetworkAttachmentDefinition",
                "SriovNetwork",
                "SriovIBNetwork",
                "OVSNetwork",
                "SriovNetworkNodeState",
                "SriovNetworkNodePolicy",
                "SriovNetworkPoolConfig",
                "SriovOperatorConfig",
                "Pod",
                "Deployment",
                "StatefulSet",
                "DaemonSet",
                "Job",
                "CronJob",
                "VirtualMachine",
                "other",
            ]),
        ),
        ("operation", set(&["create", "update", "delete", "connect", "unknown"])),
        ("decision", set(&["allow", "patch", "deny"])),
        ("dry_run", set(&["true", "false"])),
        ("rule", rules),
        ("action", set(&["deny", "patch", "warn", "audit"])),
        (
            "reason",
            set(&[
                "unreadable",
                "too_large",
                "slow",
                "broken",
                "busy",
                "unavailable",
                "panicked",
                "unknown_caller",
                "unknown_token",
                "too_many",
                "displaced",
                "accept",
                "handshake",
                "handshake_timeout",
            ]),
        ),
        ("result", set(&["taken", "refused"])),
        ("task", set(&["https", "metrics", "files", "signals"])),
        ("certificate", set(&["serving"])),
        ("hash", set(&["default"])),
        ("version", set(&[env!("CARGO_PKG_VERSION")])),
    ])
}

/// Requests never create a new label value.
#[test]
fn metric_labels_are_a_closed_set() {
    let server = TestServer::shared();
    block_on(async {
        let mut client = server.connect(Http::Two).await;
        for number in 0..20 {
            let odd = format!("odd-{number}\"}} 1\n");
            let escaped = serde_json::to_string(&odd).unwrap();
            let escaped = escaped.trim_matches('"');
            let object = DENIED.replace("NetworkAttachmentDefinition", escaped).replace("apps", escaped);
            for endpoint in [Mutate, Validate] {
                TestReview::create(&object).by(&odd).ask(&mut client, endpoint).await;
                let named = DENIED.replace("\"apps\"", &format!("\"{escaped}\""));
                TestReview::create(&named).by(&odd).ask(&mut client, endpoint).await;
                client.send("POST", &format!("/odd-{number}"), &[("x-odd", "odd")], "odd").await.unwrap();
            }
        }
    });
    let text = server.metrics_text();
    assert!(!text.contains("odd"), "{text}");
    let closed = closed();
    for (name, labels) in samples(&text).keys() {
        for (label, value) in labels {
            if label == "le" && name.ends_with("_bucket") {
                continue;
            }
            let known = closed.get(label.as_str()).unwrap_or_else(|| panic!("{name} has a label {label}"));
            assert!(known.contains(value.as_str()), "{name}: {label}={value}");
        }
    }
}

#[test]
fn metrics_count_reviews_and_findings() {
    let server = TestServer::start(&[]);
    block_on(async {
        let mut client = server.connect(Http::One).await;
        for _ in 0..3 {
            TestReview::create(REPAIRABLE).ask(&mut client, Mutate).await;
        }
        TestReview::create(DENIED).ask(&mut client, Validate).await;
        TestReview { dry_run: true, ..TestReview::create(DENIED) }.ask(&mut client, Validate).await;
        TestReview::delete(DENIED).ask(&mut client, Validate).await;
        client.post("/validate", "{").await.unwrap();
    });
    let samples = samples(&server.metrics_text());
    let value = |name: &str, labels: &[(&str, &str)]| {
        let owned = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        samples.get(&(name.to_owned(), owned)).copied().unwrap_or_else(|| panic!("{name} {labels:?}: {samples:#?}"))
    };
    let reviews = |endpoint, operation, decision, dry_run| {
        let kind = ("kind", "NetworkAttachmentDefinition");
        let labels =
            [("endpoint", endpoint), kind, ("operation", operation), ("decision", decision), ("dry_run", dry_run)];
        value("nadmit_reviews_total", &labels)
    };
    assert_eq!(reviews("mutate", "create", "patch", "false"), 3.0);
    assert_eq!(reviews("validate", "create", "deny", "false"), 1.0);
    assert_eq!(reviews("validate", "create", "deny", "true"), 1.0);
    assert_eq!(reviews("validate", "delete", "allow", "false"), 1.0);
    let rule = ("rule", "nad/resource-name-missing");
    assert_eq!(value("nadmit_findings_total", &[rule, ("action", "patch")]), 3.0);
    assert_eq!(value("nadmit_findings_total", &[rule, ("action", "deny")]), 2.0);
    assert_eq!(value("nadmit_reviews_unanswered_total", &[("reason", "unreadable")]), 1.0);
    assert_eq!(value("nadmit_reviews_in_flight", &[]), 0.0);
    assert!(value("nadmit_connections", &[]) >= 1.0, "the scrape itself counts");
    assert_eq!(value("nadmit_policy_current", &[]), 1.0);
    assert_eq!(value("nadmit_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    let expiry = value("nadmit_certificate_expiry_timestamp_seconds", &[("certificate", "serving")]);
    assert!(expiry > jiff::Timestamp::now().as_second() as f64 + 86_400.0);
    assert_eq!(value("nadmit_review_duration_seconds_count", &[("endpoint", "mutate")]), 3.0);
    let mut last = 0.0;
    let bounds = ["0.00005", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "+Inf"];
    for bound in bounds {
        let count = value("nadmit_review_duration_seconds_bucket", &[("endpoint", "validate"), ("le", bound)]);
        assert!(count >= last, "{bound}");
        last = count;
    }
    assert_eq!(last, 3.0);
}
