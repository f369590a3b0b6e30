//! Removes nadmit from a cluster.

use serde_json::Value;

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::deploy::clients::Clients;
use crate::deploy::webhooks::Phase;
use crate::deploy::{CertificateSource, NAME, Options, ServiceRef, objects};
use crate::output::report::{OURS, ReportKind};

/// Why nadmit could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}")]
pub struct UninstallError {
    action: &'static str,
    path: String,
    #[source]
    cause: ApiError,
}

impl UninstallError {
    fn at(path: &ApiPath, cause: ApiError) -> Self {
        Self { action: "delete", path: path.to_string(), cause }
    }

    /// The same, where nothing would be deleted.
    fn reading(path: &ApiPath, cause: ApiError) -> Self {
        Self { action: "read", ..Self::at(path, cause) }
    }
}

impl Cluster {
    /// What [`uninstall`](Self::uninstall) would delete, as kubectl names it, or only the webhook configurations; nothing of it if
    /// nothing is installed. What may not be read may exist, and is listed.
    pub async fn installed(&self, home: &ServiceRef, registration_only: bool) -> Result<Vec<String>, UninstallError> {
        let mut lines = Vec::new();
        if registration_only {
            for path in configurations() {
                lines.extend(self.found(&path, |_| true).await?.map(|note| path.object_name() + note));
            }
            return Ok(lines);
        }
        let namespace = namespace_path(home)?;
        for path in paths(home).map_err(no_path)? {
            let line = if path == namespace {
                let note = self.found(&path, is_ours).await?;
                note.map(|note| format!("{}, with everything in it{note}", path.object_name()))
            } else {
                self.found(&path, |_| true).await?.map(|note| path.object_name() + note)
            };
            // The configurations are deleted twice.
            lines.extend(line.filter(|line| !lines.contains(line)));
        }
        for kind in ReportKind::ALL {
            let resource = ApiResource::report(kind);
            let path = ApiPath::all(resource).labelled(&[OURS]);
            let mut reports = 0;
            match self.for_each_object(&path, |_| reports += 1).await {
                Err(failed) if failed.is_forbidden() => lines.push(format!("{} of nadmit{UNREAD}", kind.plural)),
                listed => drop(listed.map_err(|cause| UninstallError::reading(&path, cause))?),
            }
            if reports > 0 {
                lines.push(format!("{reports} {} of nadmit", kind.plural));
            }
        }
        Ok(lines)
    }

    /// A note on an object that is deleted if it exists; `None` if it does not, or is somebody else's.
    async fn found(
        &self,
        path: &ApiPath,
        is_deleted: impl FnOnce(&Value) -> bool,
    ) -> Result<Option<&'static str>, UninstallError> {
        match self.read(path).await {
            Ok(found) => Ok(found.filter(is_deleted).map(|_| "")),
            Err(failed) if failed.is_forbidden() => Ok(Some(UNREAD)),
            Err(cause) => Err(UninstallError::reading(path, cause)),
        }
    }

    /// Deletes the webhook configurations, then everything else that was installed, then the reports. Missing objects are no
    /// error.
    pub async fn uninstall(&self, home: &ServiceRef) -> Result<(), UninstallError> {
        let namespace = namespace_path(home)?;
        for path in paths(home).map_err(no_path)? {
            let gone = if path == namespace { self.delete_if_ours(&path).await } else { self.delete(&path).await };
            gone.map_err(|cause| UninstallError::at(&path, cause))?;
        }
        // Without nadmit, reports would become stale.
        for kind in ReportKind::ALL {
            let cleared = self.delete_labelled(ApiResource::report(kind), &[OURS]).await;
            cleared.map_err(|cause| UninstallError { action: "delete", path: kind.plural.to_owned(), cause })?;
        }
        Ok(())
    }

    /// Deletes the webhook configurations. No replica may create them again.
    pub async fn unregister(&self) -> Result<(), UninstallError> {
        for path in configurations() {
            self.delete(&path).await.map_err(|cause| UninstallError::at(&path, cause))?;
        }
        Ok(())
    }

    /// A namespace created by somebody else may contain more than nadmit.
    async fn delete_if_ours(&self, path: &ApiPath) -> Result<(), ApiError> {
        if self.read(path).await?.as_ref().is_some_and(is_ours) { self.delete(path).await } else { Ok(()) }
    }
}

/// Said of an object that may exist.
const UNREAD: &str = ", if it exists: you may not read it";

fn is_ours(namespace: &Value) -> bool {
    namespace.pointer("/metadata/labels/app.kubernetes.io~1name").and_then(Value::as_str) == Some(NAME)
}

fn namespace_path(home: &ServiceRef) -> Result<ApiPath, UninstallError> {
    ApiPath::namespace(&home.namespace).map_err(|cause| UninstallError {
        action: "delete",
        path: home.namespace.clone(),
        cause,
    })
}

fn no_path(cause: ApiError) -> UninstallError {
    UninstallError { action: "delete", path: "an object of nadmit".to_owned(), cause }
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
            pods: true,
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
