//! Client certificates: nadmit answers only callers that show a certificate of a CA, and the API server has one to show.
//!
//! nadmit's side is a ConfigMap with the CA, a volume and two arguments. The API server's side are two files that an administrator gives
//! it: an AdmissionConfiguration, and a kubeconfig that says which certificate to show to which webhook.

use serde_json::{Value, json};

use super::{Home, Options, here, yaml};

/// The ConfigMap with the CA.
const CONFIG_MAP: &str = "nadmit-client-ca";
/// Its key.
const KEY: &str = "ca.crt";
/// Where the CA is in the pod.
const FILES: &str = "/etc/nadmit/client-ca";
/// Where the API server's files are on a control-plane node, unless somebody chooses another directory.
pub const DIRECTORY: &str = "/etc/kubernetes/nadmit";
/// The AdmissionConfiguration.
const ADMISSION: &str = "admission.yaml";
/// The kubeconfig for the webhooks.
const KUBECONFIG: &str = "webhooks.kubeconfig";

/// Whose certificates callers must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The CA, PEM.
    pub ca: String,
    /// The name that must be in the certificate; `None`: any that the CA vouches for.
    pub name: Option<String>,
}

impl Clients {
    /// The ConfigMap with the CA.
    pub(super) fn object(&self, options: &Options) -> Value {
        let metadata = here(options, CONFIG_MAP);
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
pub fn admission_files(home: &Home, directory: &str) -> Vec<(&'static str, String)> {
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
        // The name says for which webhooks the certificate is: those of this Service.
        "users": [{ "name": format!("{}.{}.svc", home.service, home.namespace), "user": certificate }],
    });
    vec![(ADMISSION, yaml::stream(&[admission])), (KUBECONFIG, yaml::stream(&[kubeconfig]))]
}
