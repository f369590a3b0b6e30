//! Removes nadmit from a cluster.

use serde_json::Value;

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
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
        let failed = |path: &str, cause| UninstallError { path: path.to_owned(), cause };
        let namespace = ApiPath::namespace(&home.namespace).map_err(|cause| failed(&home.namespace, cause))?;
        for path in paths(&home).map_err(|cause| failed("an object of nadmit", cause))? {
            let gone = if path == namespace { self.delete_if_ours(&path).await } else { self.delete(&path).await };
            gone.map_err(|cause| failed(&path.to_string(), cause))?;
        }
        // Without nadmit, reports would become stale.
        for kind in ReportKind::ALL {
            let cleared = self.delete_labelled(ApiResource::report(kind), &[OURS]).await;
            cleared.map_err(|cause| failed(kind.plural, cause))?;
        }
        Ok(())
    }

    /// Deletes the webhook configurations. No replica may create them again.
    pub async fn unregister(&self) -> Result<(), UninstallError> {
        for path in configurations() {
            self.delete(&path).await.map_err(|cause| UninstallError { path: path.to_string(), cause })?;
        }
        Ok(())
    }

    /// A namespace created by somebody else may contain more than nadmit.
    async fn delete_if_ours(&self, path: &ApiPath) -> Result<(), ApiError> {
        let label = self.read(path).await?;
        let label = label.as_ref().and_then(|found| found.pointer("/metadata/labels/app.kubernetes.io~1name"));
        if label.and_then(Value::as_str) == Some(NAME) { self.delete(path).await } else { Ok(()) }
    }
}

/// The objects to delete, in order: webhook configurations first, so that no write waits for a stopped server. A replica of
/// version 0.1.0 recreates them while it may, so they are deleted again at the end.
fn paths(home: &ServiceRef) -> Result<Vec<ApiPath>, ApiError> {
    let mut all = Vec::new();
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
        for object in objects(&options) {
            let path = ApiPath::of_manifest(&object)?;
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    all.retain(|path| !configurations().any(|known| known == *path));
    let (permissions, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|path| path.to_string().contains("/clusterrole"));
    Ok(configurations().chain(permissions).chain(configurations()).chain(rest.into_iter().rev()).collect())
}

/// The API paths of the webhook configurations.
fn configurations() -> impl Iterator<Item = ApiPath> {
    Phase::ALL.into_iter().map(ApiPath::webhook)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uninstall_deletes_webhooks_first_and_namespace_last() {
        let paths = paths(&ServiceRef { namespace: "here".to_owned(), service: "hooks".to_owned() }).unwrap();
        let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
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
