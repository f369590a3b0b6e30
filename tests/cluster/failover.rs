//! Failures of replicas with the shipped Deployment: of the leader, and of the API server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{TestCluster, alone};
use crate::objects::{TestNetworkKind, annotated, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;
use crate::replicas::await_effect;
use crate::writers::Writers;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/nadmit/leases/nadmit";
/// So many that the leader, which writes ten per second, is killed before it is done.
const NADS: usize = 60;
/// A lease lasts 15 seconds; a candidate tries every few seconds, and then has to scan everything.
const TAKEN_OVER: Duration = Duration::from_secs(40);

fn name(number: usize) -> String {
    format!("net-{number}")
}

/// The end of the holder's identity is its process id.
fn holder(cluster: &TestCluster) -> Option<u32> {
    let lease = cluster.admin.get(LEASE)?;
    lease["spec"]["holderIdentity"].as_str()?.rsplit('_').next()?.parse().ok()
}

#[test]
fn new_leader_finishes_the_completion() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    for number in 0..NADS {
        let config = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#;
        cluster.jane.create(&nads("apps"), &nad(&name(number), config));
    }
    let watch = cluster.admin.watch(&nads("apps"));
    let complete = || watch.now().iter().filter(|nad| annotated(nad) == Some("a.io/b")).count();
    cluster.start_nadmit();
    cluster.start_nadmit();
    wait("the first complete NADs", || (complete() >= 3).then_some(()));
    let leader = holder(&cluster).unwrap();
    cluster.kill_one(leader);
    let killed = Instant::now();
    let left = NADS - complete();
    assert!(left > NADS / 4, "only {left} were left");
    wait("the other NADs", || (complete() == NADS).then_some(()));
    println!("{left} were left, and complete {:.1?} after the leader was killed", killed.elapsed());
    assert!(killed.elapsed() < TAKEN_OVER, "{:?}", killed.elapsed());
    assert_ne!(holder(&cluster).unwrap(), leader);
    // Each NAD was written once.
    for number in 0..NADS {
        assert_eq!(watch.of(&name(number)).len(), 1, "{}", name(number));
    }
}

#[test]
fn api_server_restart_keeps_the_registration() {
    let _alone = alone();
    let mut cluster = TestCluster::start();
    cluster.start_nadmit();
    cluster.deploy();
    cluster.start_operator(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    let configuration = || {
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nadmit";
        cluster.admin.get(path).unwrap()
    };
    let before = configuration();
    cluster.without_api_server(|cluster| {
        cluster.nadmit().wait_for_line("list or watch failed, retrying");
    });
    let back = Instant::now();
    await_effect(&cluster.admin);
    println!("judged {:.1?} after the API server was back", back.elapsed());
    assert!(back.elapsed() < Duration::from_secs(15), "{:?}", back.elapsed());
    let writers = Writers::start(&cluster.jane);
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "apps", &json!({})));
    let nad = cluster.jane.wait(&nad_at("apps", "net"), |_| true);
    assert_eq!(annotated(&nad), Some("openshift.io/cx7"));
    // One of the existing replicas leads again.
    let renewed = |lease: &Value| lease["spec"]["renewTime"].clone();
    let lease = renewed(&cluster.admin.get(LEASE).unwrap());
    cluster.admin.wait(LEASE, |now| renewed(now) != lease);
    println!("{} admissions, none failed", writers.end());
    let after =
        cluster.admin.get("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nadmit").unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "the configuration was written without a change"
    );
}
