//! The processes of a control plane: their commands, and the files that they read.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use rcgen::KeyPair;
use serde_json::json;

use crate::harness::run;

/// If this file exists, the API server writes an audit log.
pub const AUDIT_POLICY: &str = "audit-policy.yaml";

/// If this file exists, it sends audit events.
pub const AUDIT_WEBHOOK: &str = "audit-webhook.kubeconfig";

/// If this file exists, it presents client certificates to webhooks.
pub const ADMISSION: &str = "admission/admission.yaml";

/// If this file exists, it has the range of the cluster IPs.
pub const SERVICE_RANGE: &str = "service-range";

/// The users: a token is the user's short name.
const USERS: [(&str, &str, &str); 11] = [
    ("admin", "admin", "system:masters"),
    ("operator", "system:serviceaccount:openshift-sriov-network-operator:sriov-network-operator", "system:masters"),
    ("jane", "jane", "people"),
    ("putter", "putter", "people"),
    ("robot", "system:serviceaccount:apps:robot", "people"),
    ("nadmit", "system:serviceaccount:nadmit:nadmit", "system:authenticated"),
    ("auditor", "system:serviceaccount:nadmit:nadmit-audit", "system:authenticated"),
    // A tenant, who has all permissions in their own namespace, and their service account with the operator's name.
    ("tenant", "tom", "system:authenticated"),
    ("lookalike", "system:serviceaccount:tenant:sriov-network-operator", "system:serviceaccounts"),
    // An operator that Helm installed under another name, and one that nadmit's policy does not name.
    ("released", "system:serviceaccount:network-operator:network-operator-sriov", "system:serviceaccounts"),
    ("stranger", "system:serviceaccount:elsewhere:renderer", "system:serviceaccounts"),
];

/// Where the API server can be reached.
#[derive(Clone, Copy)]
pub enum ApiServerHost {
    /// Only by processes of the tests: there are no nodes.
    Loopback,
    /// Also by the pods of a node, which has this address.
    Node(Ipv4Addr),
}

impl ApiServerHost {
    fn address(self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Node(address) => address,
        }
    }
}

/// The files that the processes read.
pub fn write_files(dir: &Path, place: ApiServerHost, port: u16) {
    let address = place.address();
    let mut tokens = String::new();
    for (token, user, group) in USERS {
        tokens += &format!("{token},{user},{token},\"{group}\"\n");
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": {
                "server": format!("https://{address}:{port}"), "certificate-authority": dir.join("certs/apiserver.crt") } }],
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

/// etcd.
pub fn etcd(bin: &Path, dir: &Path, url: &str) -> Command {
    let mut command = Command::new(bin.join("etcd"));
    command.arg(format!("--data-dir={}/etcd", dir.display()));
    command.args(["--unsafe-no-fsync", "--log-level=warn", "--listen-peer-urls=http://127.0.0.1:0"]);
    command.arg(format!("--listen-client-urls={url}")).arg(format!("--advertise-client-urls={url}"));
    command
}

/// The API server, with an audit log if there is an audit policy.
pub fn api_server(bin: &Path, dir: &Path, etcd: &str, place: ApiServerHost, port: u16) -> Command {
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
    if dir.join(ADMISSION).exists() {
        command.arg(format!("--admission-control-config-file={}/{ADMISSION}", dir.display()));
    }
    let range = fs::read_to_string(dir.join(SERVICE_RANGE)).unwrap_or_else(|_| "10.0.0.0/24".to_owned());
    command.arg(format!("--service-cluster-ip-range={range}"));
    let dir = dir.display();
    command.args([
        format!("--etcd-servers={etcd}"),
        format!("--secure-port={port}"),
        format!("--cert-dir={dir}/certs"),
    ]);
    command.arg(format!("--token-auth-file={dir}/tokens.csv"));
    command.arg(format!("--service-account-key-file={dir}/sa.pub"));
    command.arg(format!("--service-account-signing-key-file={dir}/sa.key"));
    command.arg(format!("--bind-address={}", place.address()));
    command.args(["--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc"]);
    command.args(match place {
        ApiServerHost::Loopback => ["--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"],
        ApiServerHost::Node(_) => ["--kubelet-preferred-address-types=InternalIP", "--allow-privileged"],
    });
    command
}

/// The controllers: those that all tests need, or, for a node, all.
pub fn controllers(bin: &Path, dir: &Path, place: ApiServerHost) -> Command {
    let mut command = Command::new(bin.join("kube-controller-manager"));
    let dir = dir.display();
    command.arg(format!("--kubeconfig={dir}/admin.kubeconfig"));
    command.args(["--secure-port=0", "--leader-elect=false", "--use-service-account-credentials=false"]);
    match place {
        ApiServerHost::Loopback => command.arg("--controllers=garbage-collector-controller,namespace-controller"),
        ApiServerHost::Node(_) => command
            .arg(format!("--root-ca-file={dir}/certs/apiserver.crt"))
            .arg(format!("--service-account-private-key-file={dir}/sa.key")),
    };
    command
}

/// Whether the API server is ready.
pub fn is_ready(bin: &Path, dir: &Path) -> bool {
    let mut command = Command::new(bin.join("kubectl"));
    command.arg(format!("--kubeconfig={}/admin.kubeconfig", dir.display())).args(["get", "--raw", "/readyz"]);
    run(command).status.success()
}
