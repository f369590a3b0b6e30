//! Every case of `tests/cases` over HTTPS: the server must give the same verdict as the judgement in process, and as `check`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nadmit::policy::{Action, ExcuseReason, Facts, Finding, Mode, Subject, Verdict, judge, rules};
use nadmit::resources::Object;
use nadmit::review::Endpoint;
use serde_json::Value;

use super::client::{Client, Http, block_on};
use super::harness::TestServer;
use super::reviews::{Reply, TestReview, V1BETA1};
use crate::case::{self, Case};

/// How many groups the cases of the default policy are split into, and how many servers run at once.
const PIECES: usize = 4;

#[derive(Debug, Default)]
struct CaseReply {
    objects: AtomicUsize,
    repaired: AtomicUsize,
    denied: AtomicUsize,
    like_check: AtomicUsize,
}

/// One server for each policy, and all cases of that policy on two connections, one of each protocol.
#[test]
fn each_case_over_https_matches_check() {
    let mut by_policy: BTreeMap<Option<String>, Vec<Case>> = BTreeMap::new();
    for case in case::all() {
        by_policy.entry(case.policy_text.clone()).or_default().push(case);
    }
    let mut jobs = Vec::new();
    for (policy, cases) in by_policy {
        let length = if policy.is_none() { cases.len().div_ceil(PIECES) } else { cases.len() };
        let mut cases = cases.into_iter().peekable();
        while cases.peek().is_some() {
            jobs.push((policy.clone(), cases.by_ref().take(length).collect::<Vec<Case>>()));
        }
    }
    let (jobs, seen) = (Mutex::new(jobs), CaseReply::default());
    thread::scope(|scope| {
        for _ in 0..PIECES {
            scope.spawn(|| {
                loop {
                    // Release the lock before the job runs.
                    let next = jobs.lock().unwrap().pop();
                    let Some((policy, cases)) = next else { break };
                    through_server(policy.as_deref(), &cases, &seen);
                }
            });
        }
    });
    let CaseReply { objects, repaired, denied, like_check } = seen;
    let [objects, repaired, denied, like_check] = [objects, repaired, denied, like_check].map(AtomicUsize::into_inner);
    assert!(
        objects > 400 && repaired > 10 && denied > 150 && like_check > 300,
        "{objects} objects, {repaired} repaired, {denied} denied, {like_check} compared with check"
    );
}

fn through_server(policy: Option<&str>, cases: &[Case], seen: &CaseReply) {
    let own = policy.map(TestServer::with_policy);
    let server = own.as_ref().unwrap_or_else(|| TestServer::shared());
    block_on(async {
        let (mut one, mut two) = (server.connect(Http::One).await, server.connect(Http::Two).await);
        for (number, case) in cases.iter().enumerate() {
            through_connection(case, if number % 2 == 0 { &mut one } else { &mut two }, seen).await;
        }
    });
}

async fn through_connection(case: &Case, client: &mut Client, seen: &CaseReply) {
    for object in &case.documents() {
        if case.is_status() {
            status_written(case, object, client).await;
            continue;
        }
        if !Object::read(object).is_ok_and(|object| object.is_some()) {
            continue;
        }
        let (sent, stored) = written(case, object, client, seen).await;
        older_version_and_dry_run(case, object, client, &sent).await;
        deletion(case, object, client).await;
        if is_decided_by_the_file(case) {
            let mut found = findings_of_replies(&sent, &stored);
            found.retain(|(rule, ..)| !NEED_WRITER.contains(&rule.as_str()));
            assert_eq!(found, findings_of_check(case), "{}", case.name);
            seen.like_check.fetch_add(1, Ordering::Relaxed);
        }
        seen.objects.fetch_add(1, Ordering::Relaxed);
    }
}

/// A status write, at its own endpoint; the other endpoints have no findings for it.
async fn status_written(case: &Case, object: &str, client: &mut Client) {
    let asked = TestReview { sub_resource: "status".to_owned(), ..question(case, object) };
    let verdict = case.judge_status(object);
    let reply = asked.ask(client, Endpoint::Status).await;
    assert_eq!((reply.allowed, &reply.patch), (!verdict.denies(), &None), "{}: {reply:?}", case.name);
    let rules: Vec<String> =
        verdict.findings.iter().map(|found| format!("{}={}", found.rule.id, found.action.name())).collect();
    let found: Vec<&str> =
        reply.rules.split(',').map(|rule| rule.split('(').next().unwrap()).filter(|rule| !rule.is_empty()).collect();
    assert_eq!(found, rules, "{}", case.name);
    if let Some(denied) = verdict.findings.iter().find(|finding| finding.action == Action::Deny) {
        let is_conflict = ["status/stale", "status/contradicted", "status/regressed"].contains(&denied.rule.id);
        let want = if is_conflict { (409, "Conflict") } else { (422, "Invalid") };
        assert_eq!((&reply.status["code"], &reply.status["reason"]), (&want.0.into(), &want.1.into()), "{}", case.name);
    }
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        let reply = asked.ask(client, endpoint).await;
        assert_eq!((reply.allowed, &reply.patch, reply.rules.as_str()), (true, &None, ""), "{}", case.name);
    }
}

/// Where the API server sends an object last: pods have an endpoint of their own.
fn last_endpoint(object: &str) -> Endpoint {
    let is_workload = matches!(Object::read(object), Ok(Some(Object::Workload(_))));
    if is_workload { Endpoint::Pods } else { Endpoint::Validate }
}

/// The review that the API server sends for a write.
fn question(case: &Case, object: &str) -> TestReview {
    let question = match case.old() {
        Some(old) => TestReview::update(&old, object),
        None => TestReview::create(object),
    };
    question.by(case.user().unwrap_or("jane"))
}

/// A write as the API server handles it: repaired, and judged as it will be stored. A second repair changes nothing.
async fn written(case: &Case, object: &str, client: &mut Client, seen: &CaseReply) -> (Reply, Reply) {
    let first = verdict(case, object, false);
    let sent = question(case, object).ask(client, Endpoint::Mutate).await;
    compare(case, &sent, &first, Endpoint::Mutate);
    let repaired = sent.applied_to(object);
    let stored = question(case, &repaired).ask(client, last_endpoint(object)).await;
    compare(case, &stored, &verdict(case, &repaired, true), Endpoint::Validate);
    assert!(first.denies() || stored.allowed, "{}: denied after a repair: {stored:?}", case.name);
    let again = question(case, &repaired).ask(client, Endpoint::Mutate).await;
    assert_eq!(again.patch, None, "{}: the repair does not converge", case.name);
    if sent.patch.is_some() {
        // A write that skipped the repair.
        let skipped = question(case, object).ask(client, Endpoint::Validate).await;
        compare(case, &skipped, &verdict(case, object, true), Endpoint::Validate);
        seen.repaired.fetch_add(1, Ordering::Relaxed);
    }
    seen.denied.fetch_add(usize::from(!stored.allowed), Ordering::Relaxed);
    (sent, stored)
}

/// A review of the older version, and a dry run, get the same response.
async fn older_version_and_dry_run(case: &Case, object: &str, client: &mut Client, sent: &Reply) {
    let last = last_endpoint(object);
    let as_final = question(case, object).ask(client, last).await;
    for (endpoint, want) in [(Endpoint::Mutate, sent), (last, &as_final)] {
        let beta = TestReview { version: V1BETA1, ..question(case, object) };
        assert_eq!(beta.ask(client, endpoint).await, *want, "{}: v1beta1", case.name);
        let dry = TestReview { dry_run: true, ..question(case, object) };
        assert_eq!(dry.ask(client, endpoint).await, *want, "{}: dry run", case.name);
    }
}

/// A deletion is allowed, and an object that is being deleted is not repaired.
async fn deletion(case: &Case, object: &str, client: &mut Client) {
    let mut leaving: Value = serde_json::from_str(object).unwrap();
    let user = case.user().unwrap_or("jane");
    for endpoint in [Endpoint::Mutate, Endpoint::Validate, Endpoint::Pods, Endpoint::InUse] {
        let deleted = TestReview::delete(object).by(user).ask(client, endpoint).await;
        let reply = (deleted.allowed, deleted.patch, deleted.rules.as_str(), deleted.warnings.len());
        assert_eq!(reply, (true, None, "", 0), "{}: deleted", case.name);
    }
    // If metadata is not an object, nothing can be added to it.
    let Some(meta) = leaving.as_object_mut().and_then(|object| object.get_mut("metadata")?.as_object_mut()) else {
        return;
    };
    meta.insert("deletionTimestamp".to_owned(), "2026-11-01T08:00:00Z".into());
    let leaving = leaving.to_string();
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        let reply = TestReview::update(&leaving, &leaving).by(user).ask(client, endpoint).await;
        assert_eq!((reply.allowed, &reply.patch), (true, &None), "{}: being deleted", case.name);
        // A deletionTimestamp in the sent object changes nothing.
        let sent = question(case, &leaving).ask(client, endpoint).await;
        let plain = question(case, object).ask(client, endpoint).await;
        assert_eq!((sent.allowed, sent.patch), (plain.allowed, plain.patch), "{}: sent as deleted", case.name);
    }
}

/// The verdict in process, with the same facts as the server.
fn verdict(case: &Case, object: &str, is_final: bool) -> Verdict {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let facts = Facts { today: Some(today), is_cluster: true, ..Facts::default() };
    let old = case.old();
    let old = old.as_deref().map(|old| Object::read(old).unwrap().unwrap());
    let object = Object::read(object).unwrap().unwrap();
    let subject = Subject { object: &object, old: old.as_ref(), writer: Some(case.user().unwrap_or("jane")), is_final };
    judge(&subject, &facts, &case.policy)
}

fn compare(case: &Case, reply: &Reply, verdict: &Verdict, endpoint: Endpoint) {
    let context = || format!("{} {endpoint:?}\n{reply:#?}\n{verdict:#?}", case.name);
    let is_mutate = endpoint == Endpoint::Mutate;
    let patch = (is_mutate && !verdict.patch.is_empty()).then(|| serde_json::to_vec(&verdict.patch).unwrap());
    assert_eq!(reply.patch, patch, "{}", context());
    assert_eq!(reply.allowed, is_mutate || !verdict.denies(), "{}", context());
    assert_eq!(reply.mode, if verdict.mode == Mode::Audit { "audit" } else { "enforce" }, "{}", context());
    let findings: Vec<&Finding> =
        verdict.findings.iter().filter(|finding| !is_mutate || finding.action == Action::Patch).collect();
    assert_eq!(listed(&reply.rules), words(findings.iter().map(|finding| (*finding, finding.action))), "{}", context());
    let would = findings.iter().filter_map(|finding| Some((*finding, finding.would?)));
    assert_eq!(listed(&reply.would), words(would), "{}", context());
    let denied = findings.iter().filter(|finding| finding.action == Action::Deny);
    let mut want: Vec<_> = denied.map(|finding| (without_spaces(&finding.sentence()), field(finding))).collect();
    let mut causes: Vec<_> =
        reply.causes().iter().map(|(message, field)| (without_spaces(message), (*field).to_owned())).collect();
    want.sort();
    causes.sort();
    assert_eq!(causes.len(), want.len(), "{}", context());
    for ((cause, at), (message, field)) in causes.iter().zip(&want) {
        assert!(cause.starts_with(message.as_str()) && at == field, "{}", context());
    }
    compare_warnings(reply, verdict, &findings, &context);
}

/// The reply has all warnings, unless the operator writes or there are too many.
fn compare_warnings(reply: &Reply, verdict: &Verdict, findings: &[&Finding], context: &dyn Fn() -> String) {
    let all = without_spaces(&reply.warnings.concat());
    if verdict.written_by_operator {
        assert_eq!(all, "", "{}", context());
        return;
    }
    let is_cut = reply.warnings.last().is_some_and(|last| last.starts_with("and "));
    let warned = findings.iter().filter(|finding| matches!(finding.action, Action::Warn | Action::Patch));
    for finding in warned.clone() {
        let would = finding.would.map(|action| format!("would {}: ", action.name())).unwrap_or_default();
        let want = without_spaces(&format!("{would}{}: {}", field(finding), finding.sentence()));
        assert!(all.contains(&want) || is_cut, "{}", context());
    }
    assert_eq!(warned.count() == 0, all.is_empty(), "{}", context());
}

/// A text without the white space that wrapping changes.
fn without_spaces(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace() && !character.is_control()).collect()
}

/// A path as the API server writes it, with the path inside a JSON text after a `#`.
fn field(finding: &Finding) -> String {
    place(&finding.pointer, finding.config.as_ref().map(|place| place.pointer.as_str()))
}

fn place(pointer: &str, inside: Option<&str>) -> String {
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if token.contains(|character: char| !character.is_ascii_alphanumeric() && character != '_') {
            path += &format!("[{token}]");
        } else {
            path += &format!("{}{token}", if path.is_empty() { "" } else { "." });
        }
    }
    match inside.unwrap_or_default() {
        "" => path,
        inside => format!("{path}#{inside}"),
    }
}

/// The entries of an annotation; none is repeated.
fn listed(annotation: &str) -> BTreeSet<String> {
    let words: Vec<String> = annotation.split(',').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect();
    let set: BTreeSet<String> = words.iter().cloned().collect();
    assert_eq!(set.len(), words.len(), "{annotation}");
    set
}

fn words<'f>(findings: impl Iterator<Item = (&'f Finding, Action)>) -> BTreeSet<String> {
    let word = |(finding, action): (&Finding, Action)| {
        let because =
            finding.because.as_ref().map(ExcuseReason::name).map(|name| format!("({name})")).unwrap_or_default();
        format!("{}={}{because}", finding.rule.id, action.name())
    };
    findings.map(word).collect()
}

/// The rules that depend on the writer, which a file does not name.
const NEED_WRITER: [&str; 2] = ["nad/forged-owner", "network/forged-last-namespace"];

/// Whether the manifest alone decides: no facts from admission, no other manifests, no exception that expires.
fn is_decided_by_the_file(case: &Case) -> bool {
    // A variable is replaced before it is applied, so only `check` accepts it.
    let has_variables = case.name.ends_with("/variables");
    case.is_offline() && !has_variables && case.policy.exceptions.is_empty() && case.documents().len() == 1
}

/// A rule, its action, and the place if the action is to deny.
type ReplyText = (String, String, Option<String>);

/// The findings that the case expects from `check`, with the places of denials. Some rules deny only there, and warn in a cluster.
fn findings_of_check(case: &Case) -> BTreeSet<ReplyText> {
    let entry = |finding: &case::Expected| {
        let warns = rules::find(&finding.rule).unwrap().warns_in_cluster && finding.action == "deny";
        let action = if warns { "warn" } else { &finding.action };
        let place = (action == "deny").then(|| place(&finding.pointer, finding.config_pointer.as_deref()));
        (finding.rule.clone(), action.to_owned(), place)
    };
    case.expect.findings.iter().map(entry).collect()
}

/// The findings in the two replies to a write.
fn findings_of_replies(sent: &Reply, stored: &Reply) -> BTreeSet<ReplyText> {
    let mut found = BTreeSet::new();
    for word in sent.rule_list().into_iter().chain(stored.rule_list()) {
        let (rule, action) = word.split_once('=').unwrap();
        let action = action.split('(').next().unwrap();
        let is_of = |message: &str| message.contains(&format!("({rule})"));
        let places: Vec<_> = stored.causes().into_iter().filter(|(message, _)| is_of(message)).collect();
        if action == "deny" {
            assert!(!places.is_empty(), "{word} has no cause: {stored:?}");
            let places = places.iter().map(|(_, field)| (*field).to_owned());
            found.extend(places.map(|place| (rule.to_owned(), action.to_owned(), Some(place))));
        } else {
            found.insert((rule.to_owned(), action.to_owned(), None));
        }
    }
    found
}
