//! A control plane with the operator's kinds, the operator, and nadmit: everything a test needs, and nothing that outlives it.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use rcgen::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::certificates::{Authority, Identity};
use crate::harness::{Server, run};
use crate::objects::{Kind, OPERATOR};
use crate::processes::{Process, free_port, used, wait};
use crate::service::Service;

/// The prefix the operator is told to put in front of resource names.
pub const PREFIX: &str = "openshift.io";

/// Which templates the operator renders NADs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Those it comes with.
    Upstream,
    /// The same without the resourceName.
    Faulty,
    /// The same with a VLAN that is another each time: the operator sees its own write, renders again, and writes again.
    Restless,
}

/// The file whose presence has the API server write an audit log.
const AUDIT_POLICY: &str = "audit-policy.yaml";

/// The file whose presence has it send audit events.
const AUDIT_WEBHOOK: &str = "audit-webhook.kubeconfig";

/// Who is who: a token is the user's short name.
const USERS: [(&str, &str, &str); 7] = [
    ("admin", "admin", "system:masters"),
    ("operator", "system:serviceaccount:openshift-sriov-network-operator:sriov-network-operator", "system:masters"),
    ("jane", "jane", "people"),
    ("putter", "putter", "people"),
    ("robot", "system:serviceaccount:apps:robot", "people"),
    ("nadmit", "system:serviceaccount:nadmit:nadmit", "system:authenticated"),
    ("auditor", "system:serviceaccount:nadmit:nadmit-audit", "system:authenticated"),
];

/// Held for reading by every cluster, and for writing by a test that must not share the machine.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// The machine, for a test whose times count: it waits until no other test has a cluster, and no other gets one before it ends.
pub struct Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

/// See [`Alone`].
pub fn alone() -> Alone {
    let held = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    IS_ALONE.set(true);
    Alone(held)
}

/// A cluster; it is gone when this is dropped.
pub struct Cluster {
    // Dropped in this order: who asks goes before who is asked.
    operator: Option<Process>,
    pub(crate) nadmits: Vec<Server>,
    controllers: Process,
    /// `None` only while it is being started again.
    api_server: Option<Process>,
    etcd: Process,
    pub(crate) service: Service,
    pub(crate) authority: Authority,
    pub(crate) identity: Identity,
    bin: PathBuf,
    etcd_url: String,
    port: u16,
    pub(crate) directory: TempDir,
    /// `None` for a test that is alone anyway.
    _share: Option<RwLockReadGuard<'static, ()>>,
    /// Everything is allowed to this one.
    pub admin: Api,
    /// Someone who may write NADs and networks.
    pub jane: Api,
}

impl Cluster {
    /// A control plane that knows the kinds; no operator, no nadmit.
    pub fn start() -> Self {
        Self::start_with(|_| ())
    }

    /// The same with an audit log, see [`Self::audit_log`].
    pub fn with_audit_log(policy: &str) -> Self {
        Self::start_with(|dir| fs::write(dir.join(AUDIT_POLICY), policy).unwrap())
    }

    /// The same, and its audit events go where that kubeconfig leads, too.
    pub fn with_audit_webhook(policy: &str, kubeconfig: &str) -> Self {
        Self::start_with(|dir| {
            fs::write(dir.join(AUDIT_POLICY), policy).unwrap();
            fs::write(dir.join(AUDIT_WEBHOOK), kubeconfig).unwrap();
        })
    }

    fn start_with(prepare: impl FnOnce(&Path)) -> Self {
        let share = (!IS_ALONE.get()).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
        let bin = std::env::var_os("NADMIT_CLUSTER_BIN").expect("NADMIT_CLUSTER_BIN: `make e2e` sets it");
        let bin = PathBuf::from(bin);
        let mut directory = tempfile::Builder::new().prefix("nadmit-cluster-").tempdir().unwrap();
        // Until this is a cluster there is nothing that would know whether the test has failed.
        directory.disable_cleanup(true);
        let dir = directory.path();
        let etcd_url = format!("http://127.0.0.1:{}", free_port());
        let port = free_port();
        write_files(dir, port);
        prepare(dir);
        let mut etcd = Process::start("etcd", dir, &mut etcd(&bin, dir, &etcd_url));
        let mut api_server = Process::start("kube-apiserver", dir, &mut api_server(&bin, dir, &etcd_url, port));
        wait("the API server's certificate", || {
            etcd.check();
            api_server.check();
            dir.join("certs/apiserver.crt").exists().then_some(())
        });
        let admin = wait("the API server", || {
            api_server.check();
            is_ready(&bin, dir).then(|| Api::new(&dir.join("admin.kubeconfig")))
        });
        let mut controllers = Command::new(bin.join("kube-controller-manager"));
        controllers.arg(format!("--kubeconfig={}/admin.kubeconfig", dir.display())).args([
            "--secure-port=0",
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            "--controllers=garbage-collector-controller,namespace-controller",
        ]);
        let authority = Authority::new("nadmit of the tests");
        let cluster = Self {
            operator: None,
            nadmits: Vec::new(),
            controllers: Process::start("kube-controller-manager", dir, &mut controllers),
            api_server: Some(api_server),
            etcd,
            service: Service::start(),
            identity: authority.issue("nadmit", &["127.0.0.1", "nadmit.nadmit.svc"]),
            authority,
            jane: Api::new(&dir.join("jane.kubeconfig")),
            admin,
            bin,
            etcd_url,
            port,
            directory,
            _share: share,
        };
        cluster.furnish();
        cluster
    }

    /// With the operator, and nadmit.
    pub fn with_nadmit(template: Template) -> Self {
        let mut cluster = Self::start();
        cluster.deploy();
        cluster.start_operator(template);
        cluster
    }

    /// With the operator alone.
    pub fn without_nadmit(template: Template) -> Self {
        let mut cluster = Self::start();
        cluster.start_operator(template);
        cluster
    }

    /// The kinds, the operator's namespace and its Deployment (which nobody runs), and who may do what.
    fn furnish(&self) {
        let crds = self.bin.join("crds");
        let out = self.kubectl("admin", &["create", "-f", crds.to_str().unwrap()], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let roles = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/furniture.yaml"));
        let out = self.kubectl("admin", &["create", "-f", "-"], &roles.unwrap());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let out = self.kubectl("admin", &["wait", "--for=condition=Established", "crd", "--all"], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        for kind in Kind::ALL {
            wait(kind.name(), || self.admin.get(&kind.path()));
        }
        wait("NADs", || self.admin.get(&crate::objects::nads("default")));
        self.install();
    }

    pub fn start_operator(&mut self, template: Template) {
        let bindata = self.bin.join("bindata");
        let templates = match template {
            Template::Upstream => bindata.join("upstream"),
            Template::Faulty => bindata.join("faulty"),
            Template::Restless => restless(&bindata.join("upstream"), self.directory.path()),
        };
        let mut command = Command::new(self.bin.join("operator"));
        command.env("RESOURCE_PREFIX", PREFIX).arg(format!("--namespace={OPERATOR}"));
        command.arg(format!("--kubeconfig={}", self.kubeconfig("operator").display()));
        command.arg(format!("--bindata={}", templates.display()));
        let mut operator = Process::start("operator", self.directory.path(), &mut command);
        wait("the operator", || {
            operator.check();
            (operator.log().matches("Starting workers").count() == 3).then_some(())
        });
        self.operator = Some(operator);
    }

    /// Tells the operator to end, as a kubelet does, and waits until it has; its log.
    pub fn end_operator(&mut self) -> String {
        self.operator.take().unwrap().end()
    }

    /// Kills the operator. Its Deployment knows.
    pub fn stop_operator(&mut self) {
        self.operator = None;
        self.operator_is_available(0);
    }

    /// Says so in the status of the operator's Deployment, as the kubelet would have it said.
    pub fn operator_is_available(&self, pods: u32) {
        let path = format!("/apis/apps/v1/namespaces/{OPERATOR}/deployments/sriov-network-operator/status");
        let status = json!({ "replicas": pods, "readyReplicas": pods, "availableReplicas": pods });
        self.admin.patch(&path, &json!({ "status": status }));
    }

    /// All that the operator logged.
    pub fn operator_log(&self) -> Vec<Value> {
        let log = self.operator.as_ref().unwrap().log();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What the operator logged as errors, of which a word is given.
    pub fn operator_errors(&self, about: &str) -> Vec<String> {
        let log = self.operator.as_ref().unwrap().log();
        let is_one = |line: &&str| line.contains(r#""level":"error""#) && line.contains(about);
        log.lines().filter(is_one).map(str::to_owned).collect()
    }

    /// How much processor time each part has used so far.
    pub fn used(&self) -> Vec<(&'static str, Duration)> {
        let nadmits = self.nadmits.iter().map(|nadmit| ("nadmit", nadmit.pid()));
        let operator = self.operator.iter().map(|operator| ("operator", operator.id()));
        let api_server = self.api_server.iter().map(|server| ("API server", server.id()));
        let rest = [("etcd", self.etcd.id()), ("controllers", self.controllers.id()), ("test", std::process::id())];
        nadmits.chain(operator).chain(api_server).chain(rest).map(|(name, id)| (name, used(id))).collect()
    }

    /// How often the operator looked at a network.
    pub fn reconciles(&self, kind: Kind, name: &str) -> usize {
        self.count(kind, name, "Reconciling")
    }

    /// How often the operator failed on a network.
    pub fn failures(&self, kind: Kind, name: &str) -> usize {
        self.count(kind, name, "Reconciler error")
    }

    /// How often the operator's write of a NAD came too late.
    pub fn conflicts(&self, kind: Kind, name: &str) -> usize {
        let is_conflict = |line: &&Value| line["error"].as_str().unwrap_or_default().contains("has been modified");
        let log = self.operator_log();
        of(&log, kind, name, "Couldn't update NetworkAttachmentDefinition").filter(is_conflict).count()
    }

    fn count(&self, kind: Kind, name: &str, words: &str) -> usize {
        of(&self.operator_log(), kind, name, words).count()
    }

    /// Kills the API server, does that, and starts the API server again.
    pub fn without_api_server(&mut self, meanwhile: impl FnOnce(&Self)) {
        self.api_server = None;
        meanwhile(self);
        let dir = self.directory.path();
        let mut command = api_server(&self.bin, dir, &self.etcd_url, self.port);
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

    /// Where its logs are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the API server writes its audit log, if it has a policy for one.
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

    /// Runs kubectl as one of the users, with that on its standard input.
    pub fn kubectl(&self, user: &str, arguments: &[&str], input: &str) -> Output {
        let given = self.directory.path().join(format!("input-{:?}", thread::current().id()));
        fs::write(&given, input).unwrap();
        let mut command = Command::new(self.bin.join("kubectl"));
        command.arg(format!("--kubeconfig={}", self.kubeconfig(user).display()));
        command.arg(format!("--cache-dir={}/kubectl", self.directory.path().display()));
        // The editor of somebody who changes a number and tidies up.
        command.env("KUBE_EDITOR", "sed -i -e s/200/300/ -e '/cni.cncf.io.resourceName:/d'");
        command.args(arguments).stdin(fs::File::open(given).unwrap());
        run(command)
    }
}

impl Drop for Cluster {
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

/// The operator's lines about a network that begin with those words.
fn of<'l>(log: &'l [Value], kind: Kind, name: &'l str, words: &'l str) -> impl Iterator<Item = &'l Value> {
    log.iter().filter(move |line| {
        let text = line["msg"].as_str().unwrap_or_default();
        text.starts_with(words) && line["controllerKind"] == kind.name() && line["name"] == name
    })
}

/// The templates of which one never settles, made in that directory.
fn restless(upstream: &Path, directory: &Path) -> PathBuf {
    let templates = directory.join("restless");
    for file in ["ovs/ovs-cni-config.yaml", "sriov/sriov-cni-config.yaml"] {
        let file = Path::new("manifests/cni-config").join(file);
        let template = fs::read_to_string(upstream.join(&file)).unwrap();
        fs::create_dir_all(templates.join(&file).parent().unwrap()).unwrap();
        fs::write(templates.join(&file), template.replace("{{.SriovCniVlan}}", "{{randInt 1 4000}}")).unwrap();
    }
    templates
}

/// The files that the processes read.
fn write_files(dir: &Path, port: u16) {
    let mut tokens = String::new();
    for (token, user, group) in USERS {
        tokens += &format!("{token},{user},{token},\"{group}\"\n");
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": {
                "server": format!("https://127.0.0.1:{port}"), "certificate-authority": dir.join("certs/apiserver.crt") } }],
            "users": [{ "name": "it", "user": { "token": token } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        fs::write(dir.join(format!("{token}.kubeconfig")), kubeconfig.to_string()).unwrap();
    }
    fs::write(dir.join("tokens.csv"), tokens).unwrap();
    let accounts = KeyPair::generate().unwrap();
    fs::write(dir.join("sa.key"), accounts.serialize_pem()).unwrap();
    fs::write(dir.join("sa.pub"), accounts.public_key_pem()).unwrap();
}

fn etcd(bin: &Path, dir: &Path, url: &str) -> Command {
    let mut command = Command::new(bin.join("etcd"));
    command.arg(format!("--data-dir={}/etcd", dir.display()));
    command.args(["--unsafe-no-fsync", "--log-level=warn", "--listen-peer-urls=http://127.0.0.1:0"]);
    command.arg(format!("--listen-client-urls={url}")).arg(format!("--advertise-client-urls={url}"));
    command
}

fn api_server(bin: &Path, dir: &Path, etcd: &str, port: u16) -> Command {
    let mut command = Command::new(bin.join("kube-apiserver"));
    if dir.join(AUDIT_POLICY).exists() {
        command.arg(format!("--audit-policy-file={}/{AUDIT_POLICY}", dir.display()));
        command.arg(format!("--audit-log-path={}/audit.log", dir.display()));
    }
    if dir.join(AUDIT_WEBHOOK).exists() {
        command.arg(format!("--audit-webhook-config-file={}/{AUDIT_WEBHOOK}", dir.display()));
        command.args(["--audit-webhook-batch-max-size=100", "--audit-webhook-batch-max-wait=1s"]);
        command.args(["--audit-webhook-truncate-enabled", "--audit-webhook-truncate-max-batch-size=4194304"]);
    }
    let dir = dir.display();
    command.args([
        format!("--etcd-servers={etcd}"),
        format!("--secure-port={port}"),
        format!("--cert-dir={dir}/certs"),
    ]);
    command.arg(format!("--token-auth-file={dir}/tokens.csv"));
    command.arg(format!("--service-account-key-file={dir}/sa.pub"));
    command.arg(format!("--service-account-signing-key-file={dir}/sa.key"));
    command.args([
        "--bind-address=127.0.0.1",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
    ]);
    command
}

fn is_ready(bin: &Path, dir: &Path) -> bool {
    let mut command = Command::new(bin.join("kubectl"));
    command.arg(format!("--kubeconfig={}/admin.kubeconfig", dir.display())).args(["get", "--raw", "/readyz"]);
    run(command).status.success()
}
