//! Two controllers both read "no plan yet", and both write one. The second one must get an error.

use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::api::{Api, ApiRejection};
use crate::audit_log::{POLICY, logged, report};
use crate::cluster::TestCluster;
use crate::processes::wait;

const ROUNDS: usize = 200;
const PLANS: &str = "/apis/example.com/v1/namespaces/default/plans";

/// How a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Put,
    Merge,
    Json,
    Apply { force: bool },
}

/// A way to write, for two writers.
#[derive(Clone, Copy, Debug)]
struct WriteStyle {
    name: &'static str,
    verb: Verb,
    /// Whether both writers are one controller that reconciles twice at once.
    share_manager: bool,
    /// Whether they state the version that they have read.
    states: bool,
}

const fn way(name: &'static str, verb: Verb, share_manager: bool, states: bool) -> WriteStyle {
    WriteStyle { name, verb, share_manager, states }
}

const fn apply(force: bool) -> Verb {
    Verb::Apply { force }
}

/// Ways to write in which the API server alone lets two writers overwrite each other.
const BLIND: [WriteStyle; 5] = [
    way("merge", Verb::Merge, false, false),
    way("json", Verb::Json, false, false),
    way("apply-force", apply(true), false, false),
    way("apply-one-manager", apply(false), true, false),
    way("apply-force-one-manager", apply(true), true, false),
];

/// Ways to write that the API server guards itself: a PUT by the version, an apply by the owner of the field.
const COMPARED: [WriteStyle; 2] = [way("put", Verb::Put, false, false), way("apply", apply(false), false, false)];

/// Ways to write that prove to nadmit that they are based on the stored object.
const STATED: [WriteStyle; 7] = [
    way("stated-merge", Verb::Merge, false, true),
    way("stated-merge-one-manager", Verb::Merge, true, true),
    way("stated-json", Verb::Json, false, true),
    way("stated-apply", apply(false), false, true),
    way("stated-apply-force", apply(true), false, true),
    way("stated-apply-one-manager", apply(false), true, true),
    way("stated-apply-force-one-manager", apply(true), true, true),
];

/// One of the two writers.
struct Writer<'a> {
    api: &'a Api,
    way: WriteStyle,
    name: &'static str,
    /// Its user agent.
    agent: &'a str,
}

impl Writer<'_> {
    fn send(&self, method: &str, address: &str, kind: &str, body: &Value) -> Result<Value, ApiRejection> {
        self.api.send_as(self.agent, method, address, kind, Some(body))
    }

    fn manager(&self) -> &str {
        if self.way.share_manager { "planner" } else { self.name }
    }

    /// Writes a plan, based on that object.
    fn write(&self, read: &Value) -> Result<Value, ApiRejection> {
        let name = read["metadata"]["name"].as_str().unwrap();
        let address = format!("{PLANS}/{name}/status?fieldManager={}", self.manager());
        let version = &read["metadata"]["resourceVersion"];
        let stated = format!("if-resource-version.nadmit.io/{}", self.manager());
        let status = json!({ "plan": self.name });
        let mut body = json!({ "status": status });
        if self.way.states {
            body["metadata"] = json!({ "annotations": { &stated: version } });
        }
        match self.way.verb {
            Verb::Put => {
                let mut whole = read.clone();
                whole["status"] = status;
                self.send("PUT", &address, "application/json", &whole)
            }
            Verb::Merge => self.send("PATCH", &address, "application/merge-patch+json", &body),
            Verb::Json => {
                let mut steps = vec![json!({ "op": "add", "path": "/status", "value": status })];
                if self.way.states {
                    let annotations = &body["metadata"]["annotations"];
                    steps.push(json!({ "op": "add", "path": "/metadata/annotations", "value": annotations }));
                }
                self.send("PATCH", &address, "application/json-patch+json", &json!(steps))
            }
            Verb::Apply { force } => {
                body["apiVersion"] = "example.com/v1".into();
                body["kind"] = "Plan".into();
                body["metadata"]["name"] = name.into();
                let address = format!("{address}&force={force}");
                self.send("PATCH", &address, "application/apply-patch+yaml", &body)
            }
        }
    }
}

/// The results of all rounds.
#[derive(Debug, Default, PartialEq, Eq)]
struct RoundCounts {
    /// Plans that were stored, and overwritten by a writer that had not seen them.
    lost: usize,
    /// Objects that have a plan at the end.
    planned: usize,
    /// Writes that got a conflict.
    conflicts: usize,
    /// Writes that were denied for another reason.
    denied: usize,
}

fn plan(object: &Value) -> Option<&str> {
    object["status"]["plan"].as_str()
}

/// Creates so many objects without a plan, and lets two writers reconcile them.
fn contend(admin: &Api, api: &Api, way: WriteStyle, mode: &str, rounds: usize) -> RoundCounts {
    let agent = format!("{mode}/{}", way.name);
    let names: Vec<_> = (0..rounds).map(|round| format!("{}-{mode}-{round}", way.name)).collect();
    for name in &names {
        let plan = json!({ "apiVersion": "example.com/v1", "kind": "Plan", "metadata": { "name": name } });
        admin.create(PLANS, &plan);
    }
    let barrier = Barrier::new(2);
    let run = |name: &'static str| {
        let writer = Writer { api, way, name, agent: &agent };
        names.iter().map(|object| reconcile(&writer, object, &barrier)).collect::<Vec<_>>()
    };
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(|| run("beta"));
        (run("alpha"), other.join().unwrap())
    });
    let mut outcome = RoundCounts::default();
    for ((name, alpha), beta) in names.iter().zip(first).zip(second) {
        let stored = admin.get(&format!("{PLANS}/{name}")).unwrap();
        assert!(stored["metadata"]["annotations"].is_null(), "the stated version must not be stored: {stored:#}");
        outcome.planned += usize::from(plan(&stored).is_some());
        for (writer, answer) in [("alpha", alpha), ("beta", beta)] {
            match answer {
                Ok(()) if plan(&stored) != Some(writer) => outcome.lost += 1,
                Ok(()) => {}
                Err(error) if error.code == 409 => outcome.conflicts += 1,
                Err(_) => outcome.denied += 1,
            }
        }
    }
    println!("{mode} {}: {outcome:?}", way.name);
    outcome
}

/// Reads; if there is no plan, writes one. After a conflict it reads again, and finds the plan of the other.
fn reconcile(writer: &Writer<'_>, object: &str, barrier: &Barrier) -> Result<(), ApiRejection> {
    let address = format!("{PLANS}/{object}");
    let read = writer.api.get(&address).unwrap();
    assert_eq!(plan(&read), None);
    barrier.wait();
    let answer = writer.write(&read).map(drop);
    // No writer reads the next object before both are done with this one.
    barrier.wait();
    if let Err(error) = &answer
        && error.code == 409
    {
        assert!(
            plan(&writer.api.get(&address).unwrap()).is_some(),
            "a conflict without another write: {}",
            error.message
        );
    }
    answer
}

fn each(admin: &Api, api: &Api, ways: &[WriteStyle], mode: &str, check: impl Fn(WriteStyle, RoundCounts) + Sync) {
    each_for(ROUNDS, admin, api, ways, mode, check);
}

fn each_for(
    rounds: usize,
    admin: &Api,
    api: &Api,
    ways: &[WriteStyle],
    mode: &str,
    check: impl Fn(WriteStyle, RoundCounts) + Sync,
) {
    thread::scope(|scope| {
        for way in ways {
            let check = &check;
            scope.spawn(move || check(*way, contend(admin, api, *way, mode, rounds)));
        }
    });
}

impl TestCluster {
    /// Creates a CRD with a status, and its RBAC objects.
    pub fn create_plan_crd(&self) {
        let out = self.kubectl("admin", &["create", "-f", "-"], include_str!("plans.yaml"));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        wait("the kind", || self.admin.get(PLANS));
        for (user, verb) in [("jane", "patch"), ("putter", "update")] {
            let may = ["auth", "can-i", verb, "plans.example.com/x", "--subresource=status"];
            wait("the permissions", || self.kubectl(user, &may, "").status.success().then_some(()));
        }
    }
}

const ONE_EACH: RoundCounts = RoundCounts { lost: 0, planned: ROUNDS, conflicts: ROUNDS, denied: 0 };

#[test]
fn nadmit_prevents_lost_status_updates() {
    let mut cluster = TestCluster::start();
    cluster.create_plan_crd();
    let putter = cluster.user("putter");
    {
        let (admin, jane) = (&cluster.admin, &cluster.jane);
        each(admin, jane, &BLIND, "alone", |way, outcome| {
            assert!(outcome.lost > 0 && outcome.conflicts == 0, "{way:?} {outcome:?}");
        });
        each(admin, jane, &COMPARED, "alone", |way, outcome| assert_eq!(outcome, ONE_EACH, "{way:?}"));
        // A stated version has no effect without nadmit.
        each(admin, jane, &STATED[..1], "alone", |way, outcome| assert!(outcome.lost > 0, "{way:?}"));
    }

    cluster.deploy_with("status: {resources: {example.com/plans: {strict: true}}}\n");
    let (admin, jane) = (&cluster.admin, &cluster.jane);
    let probe = Writer { api: jane, way: BLIND[0], name: "alpha", agent: "probe" };
    let plan = json!({ "apiVersion": "example.com/v1", "kind": "Plan", "metadata": { "name": "probe" } });
    let made = admin.create(PLANS, &plan);
    wait("the guard", || probe.write(&made).err());

    each(admin, jane, &BLIND, "strict", |way, outcome| match way.verb {
        // A patch proves nothing: it is denied, whichever writer is first.
        Verb::Merge | Verb::Json | Verb::Put => {
            assert_eq!(outcome, RoundCounts { denied: 2 * ROUNDS, ..RoundCounts::default() }, "{way:?}");
        }
        // The first apply of a field takes it from no other manager.
        Verb::Apply { .. } => {
            assert_eq!(outcome, RoundCounts { planned: ROUNDS, denied: ROUNDS, ..RoundCounts::default() }, "{way:?}");
        }
    });
    // A PUT by a user who may also patch looks like a patch.
    each(admin, jane, &COMPARED[..1], "strict", |way, outcome| assert_eq!(outcome.denied, 2 * ROUNDS, "{way:?}"));
    each(admin, &putter, &COMPARED[..1], "putter", |way, outcome| assert_eq!(outcome, ONE_EACH, "{way:?}"));
    each(admin, jane, &COMPARED[1..], "strict", |way, outcome| assert_eq!(outcome, ONE_EACH, "{way:?}"));
    each(admin, jane, &STATED, "strict", |way, outcome| assert_eq!(outcome, ONE_EACH, "{way:?}"));
}

/// The same writers while the API server records them: `audit-log` names every blind write that was accepted, by its method, and no
/// other. A write is blind if it stated no version, or stated it in nadmit's annotation while nadmit did not run.
#[test]
fn the_audit_log_names_every_blind_write_and_no_other() {
    const FEW: usize = 25;
    let policy = POLICY.replace("group: sriovnetwork.openshift.io", "group: example.com");
    let mut cluster = TestCluster::with_audit_log(&policy);
    cluster.create_plan_crd();
    let putter = cluster.user("putter");
    let want = Mutex::new(BTreeMap::new());
    let note = |mode: &str, is_guarded: bool, way: WriteStyle, outcome: &RoundCounts| {
        let rejected = outcome.conflicts + outcome.denied;
        let is_blind = way.verb != Verb::Put && !(way.states && is_guarded);
        let blind = if is_blind { 2 * FEW - rejected } else { 0 };
        want.lock().unwrap().insert(format!("{mode}/{}", way.name), (way.verb, blind, rejected));
    };
    let all = [&BLIND[..], &COMPARED, &STATED].concat();
    each_for(FEW, &cluster.admin, &cluster.jane, &all, "alone", |way, outcome| note("alone", false, way, &outcome));

    cluster.deploy_with("status: {resources: {example.com/plans: {strict: true}}}\n");
    let (admin, jane) = (&cluster.admin, &cluster.jane);
    let made = admin
        .create(PLANS, &json!({ "apiVersion": "example.com/v1", "kind": "Plan", "metadata": { "name": "probe" } }));
    let probe = Writer { api: jane, way: BLIND[0], name: "alpha", agent: "probe" };
    wait("the guard", || probe.write(&made).err());
    each_for(FEW, admin, jane, &all, "strict", |way, outcome| note("strict", true, way, &outcome));
    each_for(FEW, admin, &putter, &COMPARED[..1], "putter", |way, outcome| note("putter", true, way, &outcome));
    admin
        .send_as(
            "the-last",
            "PATCH",
            &format!("{PLANS}/probe"),
            "application/merge-patch+json",
            Some(&json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .unwrap();
    logged(&cluster, "the-last");

    let (report, _) = report(&cluster, &["--group", "example.com"]);
    let rows = report["writers"].as_array().unwrap().iter().filter(|row| row["resource"] == "plans.example.com/status");
    let mut rows: BTreeMap<_, _> = rows.map(|row| (row["agent"].as_str().unwrap(), row)).collect();
    // The number of probe writes before the guard was in force is unknown.
    rows.remove("probe");
    let want = want.into_inner().unwrap();
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), want.keys().map(String::as_str).collect::<Vec<_>>());
    let (mut made, mut named) = (0, 0);
    for (agent, (verb, blind, rejected)) in &want {
        let row = rows[agent.as_str()];
        let by = match verb {
            Verb::Put => "put",
            Verb::Merge => "merge_patch",
            Verb::Json => "json_patch",
            Verb::Apply { force: false } => "apply",
            Verb::Apply { force: true } => "forced_apply",
        };
        let count = |key: &str| row[key].as_u64().unwrap() as usize;
        assert_eq!(count("writes"), 2 * FEW, "{row}");
        assert_eq!((count("blind"), count("blind_unknown")), (*blind, 0), "{row}");
        assert_eq!(row["blind_by"][by].as_u64().unwrap() as usize, *blind, "{row}");
        assert_eq!(["stale", "conflicts", "denied", "refused"].map(count).iter().sum::<usize>(), *rejected, "{row}");
        (made, named) = (made + blind, named + count("blind"));
    }
    assert!(made > 10 * FEW, "only {made} blind writes");
    println!("{made} blind writes of {} made, {named} named", want.len() * 2 * FEW);
}
