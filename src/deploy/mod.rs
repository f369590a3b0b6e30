//! The objects that nadmit consists of in a cluster. `nadmit install` prints them, and the manifests and the chart under `deploy/`
//! are made from them: there is one source.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod access;
pub mod backstop;
mod certificates;
pub mod clients;
mod conditions;
mod dashboard;
mod exempt_label;
pub mod files;
mod hook;
mod monitoring;
pub mod webhooks;
mod workload;
pub mod yaml;

use serde_json::{Value, json};

/// The name of everything that is there once.
pub const NAME: &str = "nadmit";
/// The ValidatingAdmissionPolicy that warns about incomplete NADs where claims may bring devices; the one that denies them has the
/// name of everything.
const WARNINGS: &str = "nadmit-incomplete-nads-warn";
/// The ValidatingAdmissionPolicy that denies template injection.
const INJECTION: &str = "nadmit-template-injection";
/// The namespace that nadmit is never asked about.
pub const SPARED_NAMESPACE: &str = "kube-system";
/// The label that, with the value "true", keeps a namespace away from nadmit: for emergencies.
pub const EXEMPT: &str = "nadmit.io/exempt";
/// The Secret with the serving certificate.
pub const CERTIFICATE: &str = "nadmit-tls";
/// The Secret with the token of the paths that are registered.
pub const TOKEN: &str = "nadmit-token";
/// The ConfigMap with the policy.
const POLICY: &str = "nadmit-policy";
/// Where reviews are answered in the pod.
const HTTPS_PORT: u16 = 8443;
/// Where metrics are.
const METRICS_PORT: u16 = 9443;

/// Where the API server finds nadmit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The namespace that nadmit runs in.
    pub namespace: String,
    /// The Service that leads to it.
    pub service: String,
}

/// Who makes the serving certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// nadmit itself.
    #[default]
    Own,
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    OpenShift,
    /// Somebody else: the Secret has `tls.crt`, `tls.key` and `ca.crt`.
    Secret,
}

impl Certificates {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Own, Self::CertManager, Self::OpenShift, Self::Secret];

    /// As flags and values of the chart spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::CertManager => "cert-manager",
            Self::OpenShift => "openshift",
            Self::Secret => "secret",
        }
    }
}

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it goes.
    pub home: Home,
    /// The image.
    pub image: String,
    /// How many replicas.
    pub replicas: u32,
    /// Who makes the certificate.
    pub certificates: Certificates,
    /// The policy file.
    pub policy: String,
    /// Whether the Prometheus operator's kinds are there, and Grafana.
    pub monitoring: bool,
    /// Whether the API server itself denies incomplete NADs and template injection while nadmit is down.
    pub backstop: bool,
    /// Whether nadmit may create NADs, which it does by dry runs alone, to learn who denies one that does not come.
    pub dry_runs: bool,
    /// Whose client certificates callers must show; `None`: nobody's.
    pub clients: Option<clients::Clients>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            home: Home { namespace: NAME.to_owned(), service: NAME.to_owned() },
            image: format!("nadmit:{}", env!("CARGO_PKG_VERSION")),
            replicas: 2,
            certificates: Certificates::default(),
            policy: "# The default policy: every key is optional.\n{}\n".to_owned(),
            monitoring: false,
            backstop: true,
            dry_runs: false,
            clients: None,
        }
    }
}

/// All objects, in the order in which they are to be created.
pub fn objects(options: &Options) -> Vec<Value> {
    let mut objects = vec![namespace(options)];
    objects.extend(access::objects(options));
    objects.extend(certificates::objects(options));
    objects.extend(options.clients.iter().map(|clients| clients.object(options)));
    objects.extend(workload::objects(options));
    objects.extend(webhooks::Phase::ALL.map(webhooks::unfilled));
    objects.extend(exempt_label::objects(options));
    if options.monitoring {
        objects.extend(monitoring::objects(options));
    }
    if options.backstop {
        objects.extend(backstop::objects());
    }
    if options.dry_runs {
        objects.extend(access::dry_runs(options));
    }
    objects
}

/// What an audit of the cluster needs, and nothing that judges writes: a namespace, and who may read.
pub fn audit_only(options: &Options) -> Vec<Value> {
    let mut objects = vec![namespace(options)];
    objects.extend(access::reader(options));
    objects
}

fn namespace(options: &Options) -> Value {
    let mut labels = labels();
    for mode in ["enforce", "warn", "audit"] {
        set(&mut labels, &format!("pod-security.kubernetes.io/{mode}"), "restricted".into());
    }
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": options.home.namespace, "labels": labels } })
}

/// Sets a member of an object.
pub(crate) fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(key.to_owned(), value);
    }
}

/// What every object of ours carries.
fn labels() -> Value {
    json!({ "app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME })
}

/// The labels by which the pods are found.
fn selector() -> Value {
    json!({ "app.kubernetes.io/name": NAME })
}

/// The head of an object in nadmit's namespace.
fn here(options: &Options, name: &str) -> Value {
    json!({ "name": name, "namespace": options.home.namespace, "labels": labels() })
}

/// The head of an object that is in no namespace.
fn anywhere() -> Value {
    named(NAME)
}

/// The head of an object of that name that is in no namespace.
fn named(name: &str) -> Value {
    json!({ "name": name, "labels": labels() })
}
