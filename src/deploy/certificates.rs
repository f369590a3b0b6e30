//! The serving certificate, where nadmit does not make it itself.

use serde_json::{Value, json};

use super::{CERTIFICATE, Certificates, Options, here, set};

/// The ConfigMap into which OpenShift writes its service CA.
const SERVICE_CA: &str = "nadmit-service-ca";
/// Where the certificate is in the pod.
const FILES: &str = "/etc/nadmit/tls";
/// Where a CA that is not beside it is.
const CA_FILES: &str = "/etc/nadmit/ca";

/// The objects that make others make the certificate.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    match options.certificates {
        Certificates::Own | Certificates::Secret => Vec::new(),
        Certificates::CertManager => cert_manager(options),
        Certificates::OpenShift => {
            let mut metadata = here(options, SERVICE_CA);
            set(&mut metadata, "annotations", json!({ "service.beta.openshift.io/inject-cabundle": "true" }));
            vec![json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })]
        }
    }
}

/// What nadmit is told of it.
pub(super) fn arguments(options: &Options) -> Vec<String> {
    let bundle = match options.certificates {
        Certificates::Own => return vec![format!("--tls-secret={CERTIFICATE}")],
        Certificates::CertManager | Certificates::Secret => format!("{FILES}/ca.crt"),
        Certificates::OpenShift => format!("{CA_FILES}/service-ca.crt"),
    };
    vec![format!("--tls-cert={FILES}/tls.crt"), format!("--tls-key={FILES}/tls.key"), format!("--ca-bundle={bundle}")]
}

/// The volumes, each with where it is mounted.
pub(super) fn volumes(options: &Options) -> Vec<(Value, &'static str)> {
    let secret = (json!({ "name": "tls", "secret": { "secretName": CERTIFICATE } }), FILES);
    let service_ca = (json!({ "name": "ca", "configMap": { "name": SERVICE_CA } }), CA_FILES);
    match options.certificates {
        Certificates::Own => Vec::new(),
        Certificates::CertManager | Certificates::Secret => vec![secret],
        Certificates::OpenShift => vec![secret, service_ca],
    }
}

/// What the Service says about it.
pub(super) fn service_annotations(options: &Options) -> Option<Value> {
    let is_openshift = options.certificates == Certificates::OpenShift;
    is_openshift.then(|| json!({ "service.beta.openshift.io/serving-cert-secret-name": CERTIFICATE }))
}

/// A CA of its own that lasts, and a leaf under it that is renewed: the CA does not change with the leaf.
fn cert_manager(options: &Options) -> Vec<Value> {
    let super::Home { namespace, service } = &options.home;
    let issuer = |name: &str, spec: Value| json!({ "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": here(options, name), "spec": spec });
    let certificate = |name: &str, spec: Value| {
        let metadata = here(options, name);
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
