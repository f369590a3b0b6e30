//! The replicas of nadmit in a cluster, with the arguments of the Deployment.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use tempfile::TempDir;

use crate::api::Api;
use crate::client::{Client, Http, Trust, block_on};
use crate::cluster::TestCluster;
use crate::harness::{TestServer, nadmit};
use crate::objects::{self, annotated};
use crate::processes::wait;

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/nadmit/deployments/nadmit";
const CERTIFICATE: &str = "/api/v1/namespaces/nadmit/secrets/nadmit-tls";
const POLICY: &str = "/api/v1/namespaces/nadmit/configmaps/nadmit-policy";

impl TestCluster {
    /// Starts a nadmit, and waits until the API server calls it.
    pub fn deploy(&mut self) {
        self.start_nadmit();
        await_effect(&self.admin);
    }

    /// The same with a policy.
    pub fn deploy_with(&mut self, policy: &str) {
        self.set_policy(policy);
        self.deploy();
    }

    /// Changes the policy of all replicas.
    pub fn set_policy(&self, policy: &str) {
        self.admin.patch(POLICY, &json!({ "data": { "policy.yaml": policy } }));
    }

    /// Starts another replica; when it is ready, it is added to the Service. Returns its number.
    pub fn start_nadmit(&mut self) -> usize {
        self.start_replica(&[])
    }

    /// The same with more arguments.
    pub fn start_replica(&mut self, more: &[&str]) -> usize {
        let server = self.replica(more);
        wait("a ready replica", || self.is_ready(&server).then_some(()));
        self.service.add(server.https);
        self.nadmits.push(server);
        self.nadmits.len() - 1
    }

    /// Starts a replica that finds the Service by itself; when it is ready, it is not added to the Service. Returns its number.
    pub fn start_without_address(&mut self) -> usize {
        let server = TestServer::launch(self.command(&[]), tempfile::tempdir().unwrap());
        wait("a ready replica", || self.is_ready(&server).then_some(()));
        self.nadmits.push(server);
        self.nadmits.len() - 1
    }

    /// Runs nadmit with the arguments of the Deployment and the permissions of its ServiceAccount. Only its addresses and its mounted files
    /// are of this machine.
    pub fn replica(&self, more: &[&str]) -> TestServer {
        let address = format!("--service-address={}", self.service.address);
        TestServer::launch(self.command(&[&[&*address], more].concat()), tempfile::tempdir().unwrap())
    }

    fn command(&self, more: &[&str]) -> Command {
        let deployment = self.admin.get(DEPLOYMENT).unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert!(container["command"].is_null() && container["env"].is_null(), "{container:#}");
        let arguments = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
        let here = |argument: &str| match argument.split_once('=') {
            Some((option @ ("--listen" | "--metrics-listen"), _)) => format!("{option}=127.0.0.1:0"),
            Some((option, "/etc/nadmit/client-ca/ca.crt")) => format!("{option}={}", self.client_ca().display()),
            _ => argument.to_owned(),
        };
        let mut command = nadmit(&arguments.map(here).collect::<Vec<_>>());
        command.arg(format!("--kubeconfig={}", self.kubeconfig("nadmit").display()));
        command.arg("--shutdown-grace=1s").args(more);
        command
    }

    /// Whether its readiness probe succeeds. Before that a Service does not send requests to it.
    fn is_ready(&self, server: &TestServer) -> bool {
        self.readyz(server, "/readyz").0 == 200
    }

    /// The status and the text of a health endpoint; 0 if it cannot be asked.
    pub fn readyz(&self, server: &TestServer, path: &str) -> (u16, String) {
        let Some(secret) = self.admin.get(CERTIFICATE) else { return (0, String::new()) };
        let ca = BASE64_STANDARD.decode(secret["data"]["ca.crt"].as_str().unwrap_or_default()).unwrap();
        let trust = Trust::in_ca(&ca).named("nadmit.nadmit.svc");
        let probe = async {
            let mut client = Client::connect(server.https, &trust, Http::One).await.ok()?;
            client.send("GET", path, &[], Vec::new()).await.ok()
        };
        block_on(probe).map_or((0, String::new()), |answer| (answer.status.as_u16(), answer.text()))
    }

    /// Starts a replica that registers itself with a supplied certificate; it is not in the Service yet.
    pub fn start_supplied(&mut self) -> usize {
        let (directory, service) = (TempDir::new().unwrap(), self.service.address);
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (cert, key) = (file("tls.crt", &self.identity.chain), file("tls.key", &self.identity.key));
        let ca = file("ca.crt", &self.authority.pem());
        let mut command = nadmit(&["serve", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--register"]);
        command.args(["--tls-cert", &cert, "--tls-key", &key, "--ca-bundle", &ca]);
        command.arg("--policy-configmap=nadmit-policy").arg("--kubeconfig").arg(self.kubeconfig("nadmit"));
        command.arg(format!("--service-address={service}")).arg("--shutdown-grace=1s");
        self.nadmits.push(TestServer::launch(command, directory));
        self.nadmits.len() - 1
    }

    /// The client CA, as the pod has it.
    fn client_ca(&self) -> PathBuf {
        let file = self.directory.path().join("client-ca.crt");
        let ca = self.admin.get("/api/v1/namespaces/nadmit/configmaps/nadmit-client-ca").unwrap();
        fs::write(&file, ca["data"]["ca.crt"].as_str().unwrap()).unwrap();
        file
    }

    /// Adds a nadmit to the Service.
    pub fn join_service(&self, number: usize) {
        self.service.add(self.nadmits[number].https);
    }

    /// Kills all nadmits, and removes them from the Service at once.
    pub fn kill_nadmit(&mut self) {
        for server in std::mem::take(&mut self.nadmits) {
            self.remove(server);
        }
    }

    /// Kills the replica with that process id.
    pub fn kill_one(&mut self, pid: u32) {
        let number = self.nadmits.iter().position(|server| server.pid() == pid).unwrap();
        let server = self.nadmits.remove(number);
        self.remove(server);
    }

    fn remove(&self, mut server: TestServer) {
        self.service.remove(server.https);
        server.signal("KILL");
        server.ended();
        self.keep_log(&server);
    }

    /// Writes its log next to those of the other processes, for debugging.
    pub(crate) fn keep_log(&self, server: &TestServer) {
        let _ = fs::write(self.directory().join(format!("nadmit-{}.log", server.pid())), server.log_text());
    }

    /// Ends the oldest nadmit as a rollout does: removes it from the Service, sends SIGTERM, and waits.
    pub fn end_oldest_nadmit(&mut self) {
        let mut server = self.nadmits.remove(0);
        self.service.remove(server.https);
        server.signal("TERM");
        assert!(server.ended().success(), "{}", server.log_text());
        self.keep_log(&server);
    }

    /// The newest replica.
    pub fn nadmit(&self) -> &TestServer {
        self.nadmits.last().unwrap()
    }
}

/// Waits until the API server calls nadmit: configurations take effect some time after they are stored.
pub fn await_effect(api: &Api) {
    let dry_run = format!("{}?dryRun=All", objects::nads("default"));
    let repairable = objects::nad("probe", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"probe.io/x"}"#);
    wait("a repair", || api.try_create(&dry_run, &repairable).ok().filter(|nad| annotated(nad) == Some("probe.io/x")));
    let is_ours = |error: &crate::api::ApiRejection| error.message.contains("denied the request");
    wait("a denial", || api.try_create(&dry_run, &objects::nad("probe", "not JSON")).err().filter(is_ours));
}
