//! Client certificates: nadmit accepts only clients with a certificate of a CA, and the API server presents one.
//!
//! On nadmit's side this is a ConfigMap with the CA, a volume and two arguments. On the API server's side an administrator adds
//! two files: an AdmissionConfiguration, and a kubeconfig with the certificate for each webhook.

use serde_json::{Value, json};

use super::{Options, ServiceRef, namespaced_metadata};
use crate::yaml::emit;

/// The ConfigMap with the CA.
const CONFIG_MAP: &str = "nadmit-client-ca";
/// Its key.
const KEY: &str = "ca.crt";
/// The mount path of the CA.
const FILES: &str = "/etc/nadmit/client-ca";
/// The default directory of the API server's files on a control-plane node.
pub const DIRECTORY: &str = "/etc/kubernetes/nadmit";
/// The AdmissionConfiguration.
const ADMISSION: &str = "admission.yaml";
/// The kubeconfig for the webhooks.
const KUBECONFIG: &str = "webhooks.kubeconfig";

/// Required client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The CA, PEM.
    pub ca: String,
    /// The required name in the certificate; `None` for any name.
    pub name: Option<String>,
}

impl Clients {
    /// The ConfigMap with the CA.
    pub(super) fn object(&self, options: &Options) -> Value {
        let metadata = namespaced_metadata(options, CONFIG_MAP);
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { KEY: self.ca } })
    }

    /// The arguments of `nadmit serve`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("--client-ca={FILES}/{KEY}")];
        arguments.extend(self.name.iter().map(|name| format!("--client-name={name}")));
        arguments
    }
}

/// The volume with the CA, and where it is mounted.
pub(super) fn volume() -> (Value, &'static str) {
    (json!({ "name": "client-ca", "configMap": { "name": CONFIG_MAP } }), FILES)
}

/// The files that the API server needs, by name, as they belong into a directory on each control-plane node. Beside them are the
/// certificate, `client.crt`, and its key, `client.key`.
pub fn admission_files(home: &ServiceRef, directory: &str) -> Vec<(&'static str, String)> {
    let directory = directory.trim_end_matches('/');
    let plugin = |name: &str| {
        json!({
            "name": name,
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": format!("{directory}/{KUBECONFIG}"),
            },
        })
    };
    let admission = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook")],
    });
    let certificate = json!({
        "client-certificate": format!("{directory}/client.crt"),
        "client-key": format!("{directory}/client.key"),
    });
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        // The user name selects the webhooks of this Service.
        "users": [{ "name": format!("{}.{}.svc", home.service, home.namespace), "user": certificate }],
    });
    vec![(ADMISSION, emit::stream(&[admission])), (KUBECONFIG, emit::stream(&[kubeconfig]))]
}
