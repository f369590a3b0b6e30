//! Removes nadmit from a cluster.

use serde_json::Value;

use crate::cluster::client::{ApiError, Cluster};
use crate::deploy::clients::Clients;
use crate::deploy::webhooks::Phase;
use crate::deploy::{CertificateSource, NAME, Options, ServiceRef, objects};
use crate::output::report::{OURS, ReportKind};

/// Why nadmit could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot delete {path}")]
pub struct UninstallError {
    path: String,
    #[source]
    cause: ApiError,
}

impl Cluster {
    /// Deletes the webhook configurations, then everything else that was installed, then the reports. Missing objects are no
    /// error.
    pub async fn uninstall(&self, home: ServiceRef) -> Result<(), UninstallError> {
        let namespace = format!("/api/v1/namespaces/{}", home.namespace);
        for path in paths(&home) {
            let gone = if path == namespace { self.delete_if_ours(&path).await } else { self.delete(&path).await };
            gone.map_err(|cause| UninstallError { path, cause })?;
        }
        // Without nadmit, reports would become stale.
        for kind in ReportKind::ALL {
            let cleared = self.delete_labelled(kind.api_version, kind.plural, OURS).await;
            cleared.map_err(|cause| UninstallError { path: kind.plural.to_owned(), cause })?;
        }
        Ok(())
    }

    /// Deletes the webhook configurations. No replica may create them again.
    pub async fn unregister(&self) -> Result<(), UninstallError> {
        for path in configurations() {
            self.delete(&path).await.map_err(|cause| UninstallError { path, cause })?;
        }
        Ok(())
    }

    /// A namespace created by somebody else may contain more than nadmit.
    async fn delete_if_ours(&self, path: &str) -> Result<(), ApiError> {
        let label = self.read(path).await?;
        let label = label.as_ref().and_then(|found| found.pointer("/metadata/labels/app.kubernetes.io~1name"));
        if label.and_then(Value::as_str) == Some(NAME) { self.delete(path).await } else { Ok(()) }
    }
}

/// The objects to delete, in order: webhook configurations first, so that no write waits for a stopped server. A replica of
/// version 0.1.0 recreates them while it may, so they are deleted again at the end.
fn paths(home: &ServiceRef) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let clients = Clients { ca: String::new(), name: None };
    for certificates in CertificateSource::ALL {
        let options = Options {
            home: home.clone(),
            certificates,
            monitoring: true,
            backstop: true,
            dry_runs: true,
            clients: Some(clients.clone()),
            ..Options::default()
        };
        for path in objects(&options).iter().filter_map(path) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    all.retain(|path| !configurations().any(|known| known == *path));
    let (permissions, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|path| path.contains("/clusterrole"));
    configurations().chain(permissions).chain(configurations()).chain(rest.into_iter().rev()).collect()
}

/// The API paths of the webhook configurations.
fn configurations() -> impl Iterator<Item = String> {
    Phase::ALL.into_iter().map(|phase| format!("{}/{NAME}", phase.collection()))
}

/// The API path of an object.
fn path(object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion")?;
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let namespace = text("/metadata/namespace").map(|name| format!("/namespaces/{name}")).unwrap_or_default();
    let kind = text("/kind")?.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    Some(format!("{root}/{version}{namespace}/{plural}/{}", text("/metadata/name")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uninstall_deletes_webhooks_first_and_namespace_last() {
        let paths = paths(&ServiceRef { namespace: "here".to_owned(), service: "hooks".to_owned() });
        let at = |end: &str| paths.iter().position(|path| path.ends_with(end)).unwrap();
        assert_eq!(at("mutatingwebhookconfigurations/nadmit"), 0);
        assert!(paths[1].ends_with("/validatingwebhookconfigurations/nadmit"));
        assert_eq!(paths.iter().filter(|path| path.contains("webhookconfigurations")).count(), 4);
        assert!(at("/clusterroles/nadmit") < at("/namespaces/here/deployments/nadmit"));
        assert_eq!(at("/api/v1/namespaces/here"), paths.len() - 1);
        for path in [
            "/api/v1/namespaces/here/services/hooks",
            "/apis/networking.k8s.io/v1/namespaces/here/networkpolicies/nadmit",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/nadmit",
            "/apis/cert-manager.io/v1/namespaces/here/certificates/nadmit-tls",
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/nadmit",
        ] {
            assert_eq!(paths.iter().filter(|known| *known == path).count(), 1, "{path}");
        }
    }
}
