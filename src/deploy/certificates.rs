//! The serving certificate, if nadmit does not create it itself.

use serde_json::{Value, json};

use super::{CERTIFICATE, CertificateSource, Options, namespaced_metadata, set};

/// The ConfigMap into which OpenShift writes its service CA.
const SERVICE_CA: &str = "nadmit-service-ca";
/// The mount path of the certificate.
const FILES: &str = "/etc/nadmit/tls";
/// The mount path of a separate CA.
const CA_FILES: &str = "/etc/nadmit/ca";

/// The objects that request the certificate.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    match options.certificates {
        CertificateSource::Own | CertificateSource::Secret => Vec::new(),
        CertificateSource::CertManager => cert_manager(options),
        CertificateSource::OpenShift => {
            let mut metadata = namespaced_metadata(options, SERVICE_CA);
            set(&mut metadata, "annotations", json!({ "service.beta.openshift.io/inject-cabundle": "true" }));
            vec![json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })]
        }
    }
}

/// The arguments of nadmit.
pub(super) fn arguments(options: &Options) -> Vec<String> {
    let bundle = match options.certificates {
        CertificateSource::Own => return vec![format!("--tls-secret={CERTIFICATE}")],
        CertificateSource::CertManager | CertificateSource::Secret => format!("{FILES}/ca.crt"),
        CertificateSource::OpenShift => format!("{CA_FILES}/service-ca.crt"),
    };
    vec![format!("--tls-cert={FILES}/tls.crt"), format!("--tls-key={FILES}/tls.key"), format!("--ca-bundle={bundle}")]
}

/// The volumes with their mount paths.
pub(super) fn volumes(options: &Options) -> Vec<(Value, &'static str)> {
    let secret = (json!({ "name": "tls", "secret": { "secretName": CERTIFICATE } }), FILES);
    let service_ca = (json!({ "name": "ca", "configMap": { "name": SERVICE_CA } }), CA_FILES);
    match options.certificates {
        CertificateSource::Own => Vec::new(),
        CertificateSource::CertManager | CertificateSource::Secret => vec![secret],
        CertificateSource::OpenShift => vec![secret, service_ca],
    }
}

/// The annotations of the Service.
pub(super) fn service_annotations(options: &Options) -> Option<Value> {
    let is_openshift = options.certificates == CertificateSource::OpenShift;
    is_openshift.then(|| json!({ "service.beta.openshift.io/serving-cert-secret-name": CERTIFICATE }))
}

/// A long-lived CA and a leaf that is renewed: the CA does not change with the leaf.
fn cert_manager(options: &Options) -> Vec<Value> {
    let super::ServiceRef { namespace, service } = &options.home;
    let issuer = |name: &str, spec: Value| json!({ "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": namespaced_metadata(options, name), "spec": spec });
    let certificate = |name: &str, spec: Value| {
        let metadata = namespaced_metadata(options, name);
        json!({ "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata, "spec": spec })
    };
    let key = json!({ "algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always" });
    vec![
        issuer("nadmit-self-signed", json!({ "selfSigned": {} })),
        certificate(
            "nadmit-ca",
            json!({
                "isCA": true,
                "commonName": "nadmit-ca",
                "secretName": "nadmit-ca",
                "duration": "87600h",
                "privateKey": key,
                "issuerRef": { "group": "cert-manager.io", "kind": "Issuer", "name": "nadmit-self-signed" },
            }),
        ),
        issuer("nadmit-ca", json!({ "ca": { "secretName": "nadmit-ca" } })),
        certificate(
            CERTIFICATE,
            json!({
                "secretName": CERTIFICATE,
                "duration": "2160h",
                "dnsNames": [format!("{service}.{namespace}.svc"), format!("{service}.{namespace}.svc.cluster.local")],
                "privateKey": key,
                "usages": ["digital signature", "server auth"],
                "issuerRef": { "group": "cert-manager.io", "kind": "Issuer", "name": "nadmit-ca" },
            }),
        ),
    ]
}
