//! nadmit registers by the cluster IP of its Service, without DNS, and shows why it is not registered.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::control_plane::SERVICE_RANGE;
use crate::harness::TestServer;
use crate::monitoring::firing;
use crate::not_run::not_run;
use crate::processes::wait;
use crate::replicas::await_effect;
use crate::service::Service;

/// All of this range is this machine.
const RANGE: &str = "127.53.0.0/24";
const CLUSTER_IP: &str = "127.53.0.10";
const SERVICE: &str = "/api/v1/namespaces/nadmit/services/nadmit";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
/// How soon a lasting problem is shown.
const SHOWN: Duration = Duration::from_secs(10);

/// Whether a server shows a problem, and the alert fires for it as soon as Prometheus has scraped it.
fn problem(server: &TestServer, problem: &str) -> bool {
    let text = server.metrics_text();
    let is_shown = text.contains(&format!("nadmit_registration_problem{{problem=\"{problem}\"}} 1\n"));
    let fires = firing("NadmitRegistrationProblem", &[text]);
    assert_eq!(fires.contains(&format!("{{problem=\"{problem}\"}} 1")), is_shown, "{fires:?}");
    is_shown
}

#[test]
fn registers_by_cluster_ip_and_shows_why_not() {
    let address: SocketAddr = format!("{CLUSTER_IP}:443").parse().unwrap();
    if let Err(error) = TcpListener::bind(address) {
        not_run("the registration by cluster IP", &format!("It listens on {address}: {error}."));
        return;
    }
    let mut cluster = TestCluster::start_with(|dir, _| fs::write(dir.join(SERVICE_RANGE), RANGE).unwrap());
    cluster.admin.delete(SERVICE);
    let service = json!({ "metadata": { "name": "nadmit" }, "spec": { "clusterIP": CLUSTER_IP,
        "ports": [{ "name": "https", "port": 443 }] } });
    cluster.admin.create("/api/v1/namespaces/nadmit/services", &service);

    // Nobody listens at the cluster IP yet.
    let first = cluster.start_without_address();
    let started = Instant::now();
    wait("the reason", || problem(cluster.nadmit(), "unreachable").then_some(()));
    println!("shown after {:.1?}", started.elapsed());
    assert!(started.elapsed() < SHOWN);
    cluster.nadmit().wait_for_line(&format!("nadmit.nadmit.svc:443 at {address}"));
    assert_eq!(cluster.nadmit().metric("nadmit_registered"), 0.0);
    let verbose = cluster.readyz(cluster.nadmit(), "/readyz?verbose");
    assert!(verbose.1.contains("\n[-]registration failed: unreachable: "), "{verbose:?}");
    assert_eq!((verbose.0, verbose.1.ends_with("\nok\n")), (200, true), "{verbose:?}");
    assert_eq!(cluster.readyz(cluster.nadmit(), "/readyz"), (200, "ok\n".to_owned()));
    assert!(cluster.admin.get(VALIDATING).unwrap()["webhooks"].is_null());

    let reached = Service::start_at(address);
    reached.add(cluster.nadmits[first].https);
    wait("the registration", || (cluster.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
    await_effect(&cluster.admin);
    assert!(cluster.readyz(cluster.nadmit(), "/readyz?verbose").1.contains("\n[+]registration ok\n"));

    // A replica that cannot reach the Service: what is stored is correct, so it is registered.
    reached.remove(cluster.nadmits[first].https);
    cluster.kill_nadmit();
    cluster.start_without_address();
    wait("the metric", || (cluster.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
    // It must not write what it has not probed.
    let broken = json!({ "webhooks": [] });
    cluster.admin.patch(VALIDATING, &broken);
    let changed = Instant::now();
    wait("the reason", || problem(cluster.nadmit(), "unreachable").then_some(()));
    println!("shown after {:.1?}", changed.elapsed());
    assert!(changed.elapsed() < SHOWN);
    assert_eq!(cluster.nadmit().metric("nadmit_registered"), 0.0);
    assert_eq!(firing("NadmitNotRegistered", &[cluster.nadmit().metrics_text()]), ["{} 0"]);
    let entries = |stored: Value| stored["webhooks"].as_array().map_or(0, Vec::len);
    assert_eq!(entries(cluster.admin.get(VALIDATING).unwrap()), 0);
    reached.add(cluster.nadmit().https);
    cluster.admin.wait(VALIDATING, |now| entries(now.clone()) == 4);
    wait("the metric", || (cluster.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
}
