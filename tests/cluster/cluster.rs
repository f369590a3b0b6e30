//! A control plane with the operator's CRDs, the operator, and nadmit: everything a test needs; all of it ends with the test.

use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::api::Api;
use crate::certificates::{Identity, TestAuthority};
use crate::control_plane::{
    AUDIT_POLICY, AUDIT_WEBHOOK, ApiServerHost, api_server, controllers, etcd, is_ready, write_files,
};
use crate::harness::{TestServer, run};
use crate::objects::TestNetworkKind;
use crate::operator::OperatorTemplate;
use crate::processes::{Process, free_port, used, wait};
use crate::service::Service;
use crate::times;

/// The configured prefix of the operator's resource names.
pub const PREFIX: &str = "openshift.io";

/// Locked for reading by every cluster, and for writing by a test that must not share the machine.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Exclusive use of the machine, for a test that measures times: it waits until no other test has a cluster, and blocks new ones
/// until it ends.
pub struct ExclusiveMachine(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

/// See [`ExclusiveMachine`].
pub fn alone() -> ExclusiveMachine {
    let held = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    IS_ALONE.set(true);
    times::start();
    ExclusiveMachine(held)
}

/// The directory of the programs.
pub fn bin() -> PathBuf {
    times::start();
    PathBuf::from(std::env::var_os("NADMIT_CLUSTER_BIN").expect("NADMIT_CLUSTER_BIN: `make e2e` sets it"))
}

/// A cluster; dropping this ends it.
pub struct TestCluster {
    // Dropped in this order: clients before their servers.
    pub(crate) operator: Option<Process>,
    pub(crate) nadmits: Vec<TestServer>,
    controllers: Process,
    /// `None` only during a restart.
    api_server: Option<Process>,
    etcd: Process,
    pub(crate) service: Service,
    pub(crate) authority: TestAuthority,
    pub(crate) identity: Identity,
    pub(crate) bin: PathBuf,
    etcd_url: String,
    place: ApiServerHost,
    port: u16,
    pub(crate) directory: TempDir,
    /// `None` for a test that runs alone.
    _share: Option<RwLockReadGuard<'static, ()>>,
    /// A user with all permissions.
    pub admin: Api,
    /// A user who may write NADs and networks.
    pub jane: Api,
}

impl TestCluster {
    /// A control plane with the CRDs; no operator, no nadmit.
    pub fn start() -> Self {
        Self::start_with(|_, _| ())
    }

    /// The same with an audit log, see [`Self::audit_log`].
    pub fn with_audit_log(policy: &str) -> Self {
        Self::start_with(|dir, _| fs::write(dir.join(AUDIT_POLICY), policy).unwrap())
    }

    /// The same, and it also sends its audit events to the server in that kubeconfig.
    pub fn with_audit_webhook(policy: &str, kubeconfig: &str) -> Self {
        Self::start_with(|dir, _| {
            fs::write(dir.join(AUDIT_POLICY), policy).unwrap();
            fs::write(dir.join(AUDIT_WEBHOOK), kubeconfig).unwrap();
        })
    }

    /// A control plane whose files the caller prepares, with the directory and the address of nadmit's Service.
    pub fn start_with(prepare: impl FnOnce(&Path, SocketAddr)) -> Self {
        let cluster = Self::start_at(ApiServerHost::Loopback, prepare);
        cluster.install();
        cluster
    }

    /// The same without nadmit's manifests, and in another place.
    pub fn start_at(place: ApiServerHost, prepare: impl FnOnce(&Path, SocketAddr)) -> Self {
        let share = (!IS_ALONE.get()).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
        let bin = bin();
        let mut directory = tempfile::Builder::new().prefix("nadmit-cluster-").tempdir().unwrap();
        // Keep the logs if the start fails; the cluster itself decides about them when it is dropped.
        directory.disable_cleanup(true);
        let dir = directory.path();
        let etcd_url = format!("http://127.0.0.1:{}", free_port());
        let port = free_port();
        write_files(dir, place, port);
        let service = Service::start();
        prepare(dir, service.address);
        let mut etcd = Process::start("etcd", dir, &mut etcd(&bin, dir, &etcd_url));
        let mut api_server = Process::start("kube-apiserver", dir, &mut api_server(&bin, dir, &etcd_url, place, port));
        wait("the API server's certificate", || {
            etcd.check();
            api_server.check();
            dir.join("certs/apiserver.crt").exists().then_some(())
        });
        let admin = wait("the API server", || {
            api_server.check();
            is_ready(&bin, dir).then(|| Api::new(&dir.join("admin.kubeconfig")))
        });
        let authority = TestAuthority::new("nadmit of the tests");
        let cluster = Self {
            operator: None,
            nadmits: Vec::new(),
            controllers: Process::start("kube-controller-manager", dir, &mut controllers(&bin, dir, place)),
            api_server: Some(api_server),
            etcd,
            service,
            identity: authority.issue("nadmit", &["127.0.0.1", "nadmit.nadmit.svc"]),
            authority,
            jane: Api::new(&dir.join("jane.kubeconfig")),
            admin,
            bin,
            etcd_url,
            place,
            port,
            directory,
            _share: share,
        };
        cluster.create_prerequisites();
        cluster
    }

    /// With the operator and nadmit.
    pub fn with_nadmit(template: OperatorTemplate) -> Self {
        let mut cluster = Self::start();
        cluster.deploy();
        cluster.start_operator(template);
        cluster
    }

    /// With the operator only.
    pub fn without_nadmit(template: OperatorTemplate) -> Self {
        let mut cluster = Self::start();
        cluster.start_operator(template);
        cluster
    }

    /// Creates the CRDs, the operator's namespace and its Deployment (which has no pods), and the RBAC objects.
    fn create_prerequisites(&self) {
        let crds = self.bin.join("crds");
        let out = self.kubectl("admin", &["create", "-f", crds.to_str().unwrap()], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let roles = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/base_objects.yaml"));
        let out = self.kubectl("admin", &["create", "-f", "-"], &roles.unwrap());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let out = self.kubectl("admin", &["wait", "--for=condition=Established", "crd", "--all"], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        for kind in TestNetworkKind::ALL {
            wait(kind.name(), || self.admin.get(&kind.path()));
        }
        wait("the CRD of NADs", || self.admin.get(&crate::objects::nads("default")));
    }

    /// The processor time of each part so far.
    pub fn used(&self) -> Vec<(&'static str, Duration)> {
        let nadmits = self.nadmits.iter().map(|nadmit| ("nadmit", nadmit.pid()));
        let operator = self.operator.iter().map(|operator| ("operator", operator.id()));
        let api_server = self.api_server.iter().map(|server| ("API server", server.id()));
        let rest = [("etcd", self.etcd.id()), ("controllers", self.controllers.id()), ("test", std::process::id())];
        nadmits.chain(operator).chain(api_server).chain(rest).map(|(name, id)| (name, used(id))).collect()
    }

    /// Kills the API server, runs `meanwhile`, and starts the API server again.
    pub fn without_api_server(&mut self, meanwhile: impl FnOnce(&Self)) {
        self.api_server = None;
        meanwhile(self);
        let dir = self.directory.path();
        let mut command = api_server(&self.bin, dir, &self.etcd_url, self.place, self.port);
        let api_server = self.api_server.insert(Process::start("kube-apiserver", dir, &mut command));
        wait("the API server", || {
            api_server.check();
            is_ready(&self.bin, dir).then_some(())
        });
    }

    /// Creates a namespace.
    pub fn namespace(&self, name: &str) {
        self.admin.create("/api/v1/namespaces", &json!({ "metadata": { "name": name } }));
    }

    /// Whether it serves claims for devices (DRA) in the version that nadmit reads; Kubernetes before 1.34 does not.
    pub fn has_device_claims(&self) -> bool {
        self.admin.get("/apis/resource.k8s.io/v1").is_some()
    }

    /// The directory of its logs.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of the API server's audit log, if it has an audit policy.
    pub fn audit_log(&self) -> PathBuf {
        self.directory.path().join("audit.log")
    }

    /// The kubeconfig of one of the users.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.directory.path().join(format!("{user}.kubeconfig"))
    }

    /// One of the users.
    pub fn user(&self, name: &str) -> Api {
        Api::new(&self.kubeconfig(name))
    }

    /// Runs kubectl as one of the users, with that text on its standard input.
    pub fn kubectl(&self, user: &str, arguments: &[&str], input: &str) -> Output {
        let given = self.directory.path().join(format!("input-{:?}", thread::current().id()));
        fs::write(&given, input).unwrap();
        let mut command = Command::new(self.bin.join("kubectl"));
        command.arg(format!("--kubeconfig={}", self.kubeconfig(user).display()));
        command.arg(format!("--cache-dir={}/kubectl", self.directory.path().display()));
        // An editor that changes a number and reformats the text.
        command.env("KUBE_EDITOR", "sed -i -e s/200/300/ -e '/cni.cncf.io.resourceName:/d'");
        command.args(arguments).stdin(fs::File::open(given).unwrap());
        run(command)
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if thread::panicking() {
            let end = |log: &str| {
                log.lines().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
            };
            if let Some(operator) = &self.operator {
                eprintln!("== the end of the operator's log\n{}", end(&operator.log()));
            }
            for nadmit in &self.nadmits {
                eprintln!("== the end of nadmit's log\n{}", end(&nadmit.log_text()));
                self.keep_log(nadmit);
            }
            eprintln!("== all logs are in {}", self.directory.path().display());
        }
        self.directory.disable_cleanup(thread::panicking());
    }
}
