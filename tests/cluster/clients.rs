//! Client certificates: with one option nadmit answers only an API server that presents its certificate, and with two files the API server
//! presents it.

use std::fs;

use crate::certificates::TestAuthority;
use crate::client::{Client, Http, Trust, block_on};
use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::install::printed;
use crate::objects::{nad, nads};
use crate::processes::wait;
use crate::replicas::await_effect;

const UNKNOWN: &str = "nadmit_reviews_unanswered_total{reason=\"unknown_caller\"}";

#[test]
fn client_certificate_is_required() {
    let callers = TestAuthority::new("callers");
    let own = callers.issue("kube-apiserver", &[]);
    let mut cluster = TestCluster::start_with(|dir, service| {
        // The steps of an administrator, except that Services elsewhere have port 443.
        let admission = dir.join("admission");
        let out = run(nadmit(&["install", "--admission-files", admission.to_str().unwrap()]));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let kubeconfig = admission.join("webhooks.kubeconfig");
        let text = fs::read_to_string(&kubeconfig).unwrap();
        let port = format!("nadmit.nadmit.svc:{}", service.port());
        fs::write(&kubeconfig, text.replace("name: nadmit.nadmit.svc\n", &format!("name: {port:?}\n"))).unwrap();
        fs::write(admission.join("client.crt"), &own.chain).unwrap();
        fs::write(admission.join("client.key"), &own.key).unwrap();
    });
    let ca = cluster.directory().join("callers.crt");
    fs::write(&ca, callers.pem()).unwrap();
    let usual = printed(&[]);
    let option = ["--client-ca", ca.to_str().unwrap(), "--client-name", "kube-apiserver"];
    for object in printed(&option).into_iter().filter(|object| !usual.contains(object)) {
        let out = cluster.kubectl("admin", &["apply", "-f", "-"], &object.to_string());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    cluster.deploy();
    await_effect(&cluster.admin);
    assert_eq!(cluster.nadmit().metric(UNKNOWN), 0.0);

    // Other clients of the Service have no certificate, one of another CA, or one with another name.
    let secret = cluster.admin.get("/api/v1/namespaces/nadmit/secrets/nadmit-tls").unwrap();
    let bundle = {
        use base64::Engine;
        base64::prelude::BASE64_STANDARD.decode(secret["data"]["ca.crt"].as_str().unwrap()).unwrap()
    };
    let trust = || Trust::in_ca(&bundle).named("nadmit.nadmit.svc");
    let path = {
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
        let registered = cluster.admin.get(path).unwrap();
        registered["webhooks"][0]["clientConfig"]["service"]["path"].as_str().unwrap().to_owned()
    };
    let answer = |trust: Trust| {
        block_on(async {
            let mut client = Client::connect(cluster.nadmit().https, &trust, Http::One).await.ok()?;
            Some(client.post(&path, "{}").await.ok()?.status.as_u16())
        })
    };
    assert_eq!(answer(trust()), Some(403));
    assert_eq!(answer(trust().showing(&callers.issue("kubelet", &[]))), Some(403));
    assert_eq!(answer(trust().showing(&TestAuthority::new("others").issue("kube-apiserver", &[]))), None);
    assert_eq!(answer(trust().showing(&own)), Some(400), "the request is accepted, but the body is not a review");

    // An API server without its certificate is rejected, and the webhook that fails closed reports it.
    fs::remove_dir_all(cluster.directory().join("admission")).unwrap();
    cluster.without_api_server(|_| ());
    let sriov = nad("net", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#);
    wait("a failed webhook call", || {
        let error = cluster.jane.try_create(&nads("default"), &sriov).err()?;
        error.message.contains("failed calling webhook").then_some(())
    });
    assert!(cluster.nadmit().metric(UNKNOWN) >= 3.0);
}
