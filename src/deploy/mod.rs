//! The manifests of nadmit. `nadmit install` prints them, and the files under `deploy/` are generated from them.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod access;
pub mod backstop;
mod certificates;
pub mod clients;
mod conditions;
mod dashboard;
mod exempt_label;
pub mod files;
pub mod hook;
mod monitoring;
mod pods;
mod values_schema;
pub mod webhooks;
mod workload;

use serde_json::{Value, json};

/// The name of all singleton objects.
pub const NAME: &str = "nadmit";
/// The ValidatingAdmissionPolicy that warns about incomplete NADs if devices may come from claims; the denying one is called
/// `nadmit`.
const WARN_POLICY: &str = "nadmit-incomplete-nads-warn";
/// The ValidatingAdmissionPolicy that denies template injection.
const INJECTION_POLICY: &str = "nadmit-template-injection";
/// The namespace that is excluded from the webhooks.
pub const EXCLUDED_NAMESPACE: &str = "kube-system";
/// The label that, with the value "true", exempts a namespace from nadmit, for emergencies.
pub const EXEMPT: &str = "nadmit.io/exempt";
/// The Secret with the serving certificate.
pub const CERTIFICATE: &str = "nadmit-tls";
/// The Secret with the token of the registered paths.
pub const TOKEN: &str = "nadmit-token";
/// The ConfigMap with the policy.
pub const POLICY: &str = "nadmit-policy";
/// The key of the policy in its ConfigMap.
pub const POLICY_KEY: &str = "policy.yaml";
/// The HTTPS port of the pod.
const HTTPS_PORT: u16 = 8443;
/// The metrics port of the pod.
pub const METRICS_PORT: u16 = 9443;

/// The Service of nadmit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRef {
    /// The namespace that nadmit runs in.
    pub namespace: String,
    /// The Service name.
    pub service: String,
}

/// Where the serving certificate comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateSource {
    /// nadmit itself.
    #[default]
    Own,
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    OpenShift,
    /// Provided: the Secret has `tls.crt`, `tls.key` and `ca.crt`.
    Secret,
}

impl CertificateSource {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Own, Self::CertManager, Self::OpenShift, Self::Secret];

    /// The name in flags and chart values.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::CertManager => "cert-manager",
            Self::OpenShift => "openshift",
            Self::Secret => "secret",
        }
    }
}

/// The install options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace and Service.
    pub home: ServiceRef,
    /// The image.
    pub image: String,
    /// The number of replicas.
    pub replicas: u32,
    /// Where the certificate comes from.
    pub certificates: CertificateSource,
    /// The text of the policy.
    pub policy: String,
    /// Whether to include monitoring objects.
    pub monitoring: bool,
    /// Whether the API server itself denies incomplete NADs and template injection while nadmit is down.
    pub backstop: bool,
    /// Whether nadmit may create NADs, only in dry runs, to find who denies a missing one.
    pub dry_runs: bool,
    /// Whether the policy judges pods, which nadmit must read then.
    pub pods: bool,
    /// Required client certificates, if any.
    pub clients: Option<clients::Clients>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            home: ServiceRef { namespace: NAME.to_owned(), service: NAME.to_owned() },
            image: format!("nadmit:{}", env!("CARGO_PKG_VERSION")),
            replicas: 2,
            certificates: CertificateSource::default(),
            policy: "# The default policy: every key is optional.\n{}\n".to_owned(),
            monitoring: false,
            backstop: true,
            dry_runs: false,
            pods: false,
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
    objects.extend(webhooks::Phase::ALL.map(webhooks::empty_configuration));
    objects.extend(exempt_label::objects());
    if options.monitoring {
        objects.extend(monitoring::objects(options));
    }
    if options.backstop {
        objects.extend(backstop::objects());
    }
    if options.dry_runs {
        objects.extend(access::dry_runs(options));
    }
    if options.pods {
        objects.extend(access::pods(options));
    }
    objects
}

/// The objects for `nadmit audit` only: a namespace and read-only permissions.
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

/// The labels of all our objects.
fn labels() -> Value {
    json!({ "app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME })
}

/// The labels by which the pods are found.
fn selector() -> Value {
    json!({ "app.kubernetes.io/name": NAME })
}

/// The metadata of an object in nadmit's namespace.
fn namespaced_metadata(options: &Options, name: &str) -> Value {
    json!({ "name": name, "namespace": options.home.namespace, "labels": labels() })
}

/// The metadata of a cluster-scoped object.
fn cluster_metadata() -> Value {
    named(NAME)
}

/// The metadata of a cluster-scoped object with that name.
fn named(name: &str) -> Value {
    json!({ "name": name, "labels": labels() })
}
