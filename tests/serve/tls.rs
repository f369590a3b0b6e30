//! TLS: versions, certificate rotation, and client certificates.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nadmit::review::Endpoint::{Mutate, Validate};
use x509_parser::pem::parse_x509_pem;

use super::certificates::{Identity, TestAuthority};
use super::client::{Client, Http, Trust, block_on, raw};
use super::harness::{TestServer, put};
use super::reviews::{GOOD, TestReview};

const TAKEN: &str = "nadmit_certificate_reloads_total{result=\"taken\"}";
const REFUSED: &str = "nadmit_certificate_reloads_total{result=\"refused\"}";
const EXPIRY: &str = "nadmit_certificate_expiry_timestamp_seconds{certificate=\"serving\"}";

/// The status of a GET on a new connection, or the error.
fn status(server: &TestServer, trust: &Trust, path: &str) -> io::Result<u16> {
    block_on(async {
        let mut client = Client::connect(server.https, trust, Http::One).await?;
        let answer = client.send("GET", path, &[], Vec::new()).await.map_err(io::Error::other)?;
        Ok(answer.status.as_u16())
    })
}

fn posted(server: &TestServer, trust: &Trust, path: &str) -> io::Result<u16> {
    block_on(async {
        let mut client = Client::connect(server.https, trust, Http::One).await?;
        let answer = client.post(path, TestReview::create(GOOD).body()).await.map_err(io::Error::other)?;
        Ok(answer.status.as_u16())
    })
}

#[test]
fn both_versions_and_both_protocols() {
    let server = TestServer::shared();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for http in [Http::One, Http::Two] {
            block_on(async {
                let trust = server.trust().only(version);
                let mut client = Client::connect(server.https, &trust, http).await.unwrap();
                assert!(TestReview::create(GOOD).ask(&mut client, Validate).await.allowed);
            });
        }
    }
    for name in ["localhost", "127.0.0.1"] {
        assert_eq!(status(server, &server.trust().named(name), "/healthz").unwrap(), 200);
    }
    assert!(
        status(server, &server.trust().named("example.com"), "/healthz").is_err(),
        "the certificate is valid for no other name"
    );
    let stranger = Trust::in_ca(TestAuthority::new("stranger").pem().as_bytes());
    assert!(status(server, &stranger, "/healthz").is_err());
}

/// A client without TLS gets no data, and does not disturb others.
#[test]
fn plain_http_on_the_tls_port() {
    let server = TestServer::shared();
    let back = block_on(raw(server.https, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"));
    assert!(!String::from_utf8_lossy(&back).contains("HTTP"), "{back:?}");
    assert_eq!(server.get("/healthz").status, 200);
}

/// A mounted Secret: `tls.crt -> ..data/tls.crt`, and `..data` links to the current directory.
struct MountedSecret<'d>(&'d Path);

impl MountedSecret<'_> {
    fn swap(&self, generation: &str, chain: &str, key: &str) {
        let real = self.0.join(generation);
        fs::create_dir(&real).unwrap();
        fs::write(real.join("tls.crt"), chain).unwrap();
        fs::write(real.join("tls.key"), key).unwrap();
        symlink(generation, self.0.join("..data_tmp")).unwrap();
        fs::rename(self.0.join("..data_tmp"), self.0.join("..data")).unwrap();
    }

    /// The arguments that name its files.
    fn arguments(&self) -> Vec<String> {
        ["--tls-cert", "tls.crt", "--tls-key", "tls.key"]
            .map(
                |word| {
                    if word.starts_with('-') { word.to_owned() } else { self.0.join(word).to_str().unwrap().to_owned() }
                },
            )
            .to_vec()
    }
}

fn serve_volume(first: &Identity) -> TestServer {
    TestServer::start_with(|directory| {
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), directory.join(name)).unwrap();
        }
        let volume = MountedSecret(directory);
        volume.swap("..2026_11_01", &first.chain, &first.key);
        volume.arguments()
    })
}

fn expiry(chain: &str) -> f64 {
    let (_, pem) = parse_x509_pem(chain.as_bytes()).unwrap();
    pem.parse_x509().unwrap().validity().not_after.timestamp() as f64
}

#[test]
fn secret_volume_reload_rejects_bad_certificates() {
    let (old, new) = (TestAuthority::new("old"), TestAuthority::new("new"));
    let names = ["127.0.0.1", "nadmit.nadmit.svc"];
    // An intermediate CA signs the second one: clients need the chain to find the root.
    let (first, second) = (old.issue("nadmit", &names), new.intermediate("between").issue("nadmit", &names));
    let (trust_old, trust_new) = (Trust::in_ca(old.pem().as_bytes()), Trust::in_ca(new.pem().as_bytes()));
    let server = serve_volume(&first);
    assert_eq!(server.announcement(), format!("serving https://{}", server.https));
    assert_eq!(status(&server, &trust_old, "/readyz").unwrap(), 200);
    assert_eq!(status(&server, &trust_old.clone().named("nadmit.nadmit.svc"), "/readyz").unwrap(), 200);
    assert!(status(&server, &trust_new, "/readyz").is_err());
    assert_eq!(server.metric(EXPIRY), expiry(&first.chain));
    let mut kept = block_on(async { Client::connect(server.https, &trust_old, Http::One).await.unwrap() });

    let volume = MountedSecret(server.directory.path());
    volume.swap("..2026_11_02", &second.chain, &second.key);
    server.wait_for_metric(TAKEN, 1.0);
    assert_eq!(status(&server, &trust_new, "/readyz").unwrap(), 200);
    assert!(status(&server, &trust_old, "/readyz").is_err());
    assert_eq!(server.metric(EXPIRY), expiry(&second.chain));
    let reply = block_on(TestReview::create(GOOD).ask(&mut kept, Validate));
    assert!(reply.allowed, "open connections stay open");

    for (number, (chain, key)) in [
        (second.chain.as_str(), first.key.as_str()),
        ("", second.key.as_str()),
        (&second.chain, "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n"),
    ]
    .into_iter()
    .enumerate()
    {
        volume.swap(&format!("..bad_{number}"), chain, key);
        server.signal("HUP");
        server.wait_for_metric(REFUSED, number as f64 + 1.0);
        assert_eq!(status(&server, &trust_new, "/readyz").unwrap(), 200, "the last valid pair stays in use");
    }
    assert_eq!((server.metric(TAKEN), server.metric(EXPIRY)), (1.0, expiry(&second.chain)));
    let line = server.wait_for_log("about the bad pair", |line| line["level"] == "ERROR");
    assert!(line["error"].as_str().unwrap().contains("do not match"), "{line}");
    assert!(!server.log_text().contains("PRIVATE"), "keys are never logged");

    volume.swap("..2026_11_03", &first.chain, &first.key);
    server.signal("HUP");
    server.wait_for_metric(TAKEN, 2.0);
    assert_eq!(status(&server, &trust_old, "/readyz").unwrap(), 200);
}

/// With a client CA, reviews need a client certificate; the kubelet's probes need none.
#[test]
fn client_certificate_can_be_required() {
    let (ours, theirs) = (TestAuthority::new("ours"), TestAuthority::new("theirs"));
    let server = TestServer::start_with(|directory| {
        let ca = directory.join("callers.crt");
        fs::write(&ca, ours.pem()).unwrap();
        vec!["--client-ca".to_owned(), ca.to_str().unwrap().to_owned()]
    });
    let api_server = ours.issue("kube-apiserver", &[]);
    let without_certificate = server.trust();
    let unknown_callers = "nadmit_reviews_unanswered_total{reason=\"unknown_caller\"}";
    assert_eq!(posted(&server, &without_certificate, "/mutate").unwrap(), 403);
    assert_eq!(posted(&server, &without_certificate, "/validate").unwrap(), 403);
    assert_eq!(server.metric(unknown_callers), 2.0);
    assert_eq!(status(&server, &without_certificate, "/healthz").unwrap(), 200);
    assert_eq!(status(&server, &without_certificate, "/readyz").unwrap(), 200);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let known = server.trust().only(version).showing(&api_server);
        assert_eq!(posted(&server, &known, "/mutate").unwrap(), 200);
        assert_eq!(posted(&server, &known, "/validate").unwrap(), 200);
        let forged = server.trust().only(version).showing(&theirs.issue("kube-apiserver", &[]));
        assert!(posted(&server, &forged, "/mutate").is_err(), "no handshake with a certificate of another CA");
        assert!(status(&server, &forged, "/healthz").is_err());
    }
    block_on(async {
        let trust = server.trust().showing(&api_server);
        let mut client = Client::connect(server.https, &trust, Http::Two).await.unwrap();
        assert!(TestReview::create(GOOD).ask(&mut client, Mutate).await.allowed);
    });
}

#[test]
fn client_name_can_be_required() {
    let (ours, later) = (TestAuthority::new("ours"), TestAuthority::new("later"));
    let server = TestServer::start_with(|directory| {
        let file = |name: &str, content: String| {
            put(&directory.join(name), content);
            directory.join(name).to_str().unwrap().to_owned()
        };
        let own = ours.issue("nadmit", &["127.0.0.1"]);
        let files = [
            ("--tls-cert", file("tls.crt", own.chain)),
            ("--tls-key", file("tls.key", own.key)),
            ("--client-ca", file("callers.crt", ours.pem())),
            ("--client-name", "kube-apiserver".to_owned()),
        ];
        files.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    });
    let trust = Trust::in_ca(ours.pem().as_bytes());
    let posted_by = |authority: &TestAuthority, common_name: &str, names: &[&str]| {
        posted(&server, &trust.clone().showing(&authority.issue(common_name, names)), "/validate")
    };
    assert_eq!(posted_by(&ours, "kube-apiserver", &[]).unwrap(), 200);
    assert_eq!(posted_by(&ours, "x", &["kube-apiserver"]).unwrap(), 200);
    for other in ["kubelet", "kube-apiserver.evil.example", "KUBE-APISERVER", ""] {
        assert_eq!(posted_by(&ours, other, &[]).unwrap(), 403, "{other}");
    }
    let misnamed = trust.clone().showing(&ours.issue("kubelet", &[]));
    assert_eq!(status(&server, &misnamed, "/healthz").unwrap(), 200);
    // The file with the client CA is reloaded like the others.
    assert!(posted_by(&later, "kube-apiserver", &[]).is_err());
    put(&server.directory.path().join("callers.crt"), ours.pem() + &later.pem());
    server.signal("HUP");
    server.wait_for_metric(TAKEN, 1.0);
    assert_eq!(posted_by(&later, "kube-apiserver", &[]).unwrap(), 200);
    assert_eq!(posted_by(&ours, "kube-apiserver", &[]).unwrap(), 200);
}
