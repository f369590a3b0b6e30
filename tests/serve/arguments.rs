//! How the server starts: arguments, environment, its output, and its errors.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use nadmit::review::Endpoint;

use super::certificates::TestAuthority;
use super::client::{Client, Http, Trust, block_on};
use super::harness::{TestServer, nadmit, run};
use super::reviews::{Reply, TestReview};

/// The printed command works when it is pasted: the CA file and the review file exist, and the path responds.
fn assert_printed_command_works(server: &TestServer, directory: &Path) {
    let line = server.announcement();
    // Split it as a shell would.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"eval "set -- $0"; printf '%s\n' "$@""#, &line]);
    let pasted = String::from_utf8(run(shell).stdout).unwrap();
    let words: Vec<&str> = pasted.lines().collect();
    let ["curl", "--cacert", ca, "-d", file, url] = words[..] else { panic!("{line}") };
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(file.strip_prefix('@').unwrap());
    let body = fs::read_to_string(example).unwrap();
    let path = url.strip_prefix(&format!("https://{}", server.https)).unwrap_or_else(|| panic!("{line}"));
    let trust = Trust::in_ca(&fs::read(directory.join(ca)).unwrap());
    let answer = block_on(async {
        Client::connect(server.https, &trust, Http::One).await.unwrap().post(path, body.clone()).await.unwrap()
    });
    let uid = "705ab4f5-6393-11e8-b7cc-42010a800002";
    assert!(body.contains(uid));
    let question = TestReview { uid: uid.to_owned(), ..TestReview::create("{}") };
    assert!(Reply::read(&answer, &question, Endpoint::Mutate).patch.is_some(), "{line}");
}

fn serve_in(directory: &Path) -> Command {
    let mut command = nadmit(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    command.current_dir(directory);
    command
}

#[test]
fn printed_curl_command_works() {
    assert_printed_command_works(TestServer::shared(), Path::new("/"));
    // With a directory for certificates, the CA is written there.
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("certs")).unwrap();
    let here = directory.path().to_owned();
    let server = TestServer::launch(serve_in(&here), directory);
    assert!(server.announcement().contains(" certs/ca.crt "), "{}", server.announcement());
    assert_printed_command_works(&server, &here);
    // Without one, the CA is written to a temporary directory.
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().join("it's a $place");
    fs::create_dir(&here).unwrap();
    let mut command = serve_in(&here);
    command.env("TMPDIR", &here);
    let server = TestServer::launch(command, directory);
    assert_printed_command_works(&server, Path::new("/"));
}

#[test]
fn every_flag_is_an_environment_variable_too() {
    let help = String::from_utf8(run(nadmit(&["serve", "--help"])).stdout).unwrap();
    for flag in [
        "listen",
        "metrics-listen",
        "tls-cert",
        "tls-key",
        "cert-dir",
        "client-ca",
        "client-name",
        "policy",
        "cluster",
        "kubeconfig",
        "ca-lifetime",
        "leaf-lifetime",
        "propagation-time",
        "service-address",
        "log-format",
        "log-level",
        "shutdown-grace",
    ] {
        let variable = format!("[env: NADMIT_{}=]", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&format!("--{flag} ")) && help.contains(&variable), "{flag}: {help}");
    }
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.yaml");
    fs::write(&policy, "mode: audit\n").unwrap();
    let mut command = nadmit(&["serve"]);
    command
        .env("NADMIT_LISTEN", "127.0.0.1:0")
        .env("NADMIT_METRICS_LISTEN", "127.0.0.1:0")
        .env("NADMIT_CERT_DIR", directory.path())
        .env("NADMIT_POLICY", &policy)
        .env("NADMIT_LOG_FORMAT", "text");
    let server = TestServer::launch(command, directory);
    let reply = block_on(async {
        TestReview::create(super::reviews::DENIED).ask(&mut server.connect(Http::One).await, Endpoint::Validate).await
    });
    assert_eq!((reply.mode.as_str(), reply.allowed), ("audit", true));
    assert!(server.log_text().contains("INFO serving"), "the log is in text format: {}", server.log_text());
}

/// Whether the end of a message is repeated, as it is when an error both names its cause and has it as its source.
fn repeats_its_end(message: &str) -> bool {
    let parts: Vec<&str> = message.split(": ").collect();
    (1..=parts.len() / 2).any(|count| {
        let (before, last) = parts.split_at(parts.len() - count);
        before.ends_with(last)
    })
}

/// Exit code 2, and one line with the problem and the file.
#[test]
fn invalid_flags_fail_at_startup() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let authority = TestAuthority::new("ca");
    let (one, two) = (authority.issue("one", &["localhost"]), authority.issue("two", &["localhost"]));
    let (cert, key, other_key) = (file("tls.crt", &one.chain), file("tls.key", &one.key), file("other.key", &two.key));
    let (broken, wrong) = (file("broken.yaml", "mode: [\n"), file("wrong.yaml", "mode: enforce\nrulez: {}\n"));
    let not_pem = file("not.pem", "hello\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, wanted) in [
        (vec!["--tls-cert", &cert], vec!["--tls-key"]),
        (vec!["--tls-key", &key], vec!["--tls-cert"]),
        (vec!["--tls-cert", &cert, "--tls-key", "nowhere.key"], vec!["nowhere.key", "No such file"]),
        (vec!["--tls-cert", &cert, "--tls-key", &other_key], vec!["tls.crt", "other.key", "do not match"]),
        (vec!["--tls-cert", &key, "--tls-key", &key], vec!["no certificate"]),
        (vec!["--tls-cert", &cert, "--tls-key", &key, "--cert-dir", "x"], vec!["--cert-dir"]),
        (vec!["--tls-key", &key, "--cert-dir", "x"], vec!["--cert-dir", "--tls-key"]),
        (
            vec!["--client-ca", "nowhere.crt"],
            vec!["cannot read client CA \"nowhere.crt\": no such file or directory\n"],
        ),
        (vec!["--client-ca", &not_pem], vec!["client CA", "no certificate"]),
        (vec!["--client-name", "kube-apiserver"], vec!["--client-ca"]),
        (vec!["--cert-dir", &not_pem], vec!["not.pem", "--cert-dir"]),
        (
            vec!["--policy", "nowhere.yaml"],
            vec!["cannot read policy file \"nowhere.yaml\": no such file or directory\n"],
        ),
        (vec!["--policy", &broken], vec!["broken.yaml", "line 1"]),
        (vec!["--policy", &wrong], vec!["wrong.yaml", "line 2", "rulez"]),
        (
            vec!["--kubeconfig", "nowhere.yaml"],
            vec!["cannot read the kubeconfig \"nowhere.yaml\": no such file or directory\n"],
        ),
        (vec!["--kubeconfig", &broken], vec!["kubeconfig"]),
        (vec!["--listen", &taken], vec!["cannot listen", &taken, "in use"]),
        (vec!["--metrics-listen", &taken], vec!["cannot listen", &taken, "in use"]),
        (vec!["--listen", "8443"], vec!["--listen", "8443"]),
        (vec!["--log-level", "hyper=loud"], vec!["--log-level", "hyper=loud"]),
        (vec!["--shutdown-grace", "soon"], vec!["--shutdown-grace", "soon"]),
        (vec!["--propagation-time", "0s"], vec!["--propagation-time", "between 1s and 1h"]),
        (vec!["--propagation-time", "61m"], vec!["--propagation-time", "between 1s and 1h"]),
        (vec!["--ca-lifetime", "87601h"], vec!["--ca-lifetime", "ten years"]),
        (vec!["--leaf-lifetime", "9999999999999h"], vec!["--leaf-lifetime"]),
        (vec!["--ca-lifetime", "539s"], vec!["--ca-lifetime", "9 times --propagation-time, 540s"]),
        (
            vec!["--leaf-lifetime", "6s", "--propagation-time", "2001ms"],
            vec!["--leaf-lifetime", "3 times --propagation-time, 6.003s"],
        ),
        (vec!["--service-address", "nadmit.example:443"], vec!["--service-address", "nadmit.example:443"]),
        (vec!["review.json"], vec!["review.json"]),
    ] {
        let mut command = nadmit(&["serve"]);
        for (flag, value) in [("--listen", "127.0.0.1:0"), ("--metrics-listen", "127.0.0.1:0")] {
            if !arguments.contains(&flag) {
                command.args([flag, value]);
            }
        }
        if !["--cert-dir", "--tls-cert", "--tls-key"].iter().any(|flag| arguments.contains(flag)) {
            command.arg("--cert-dir").arg(directory.path());
        }
        let output = run({
            command.args(&arguments).env("TMPDIR", directory.path());
            command
        });
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.starts_with("error: "), "{arguments:?}: {error}");
        assert!(!repeats_its_end(error.trim()), "{arguments:?}: {error}");
        for word in wanted {
            assert!(error.contains(word), "{arguments:?}: {error}\nwanted: {word}");
        }
        assert_eq!(output.stdout, b"", "{arguments:?}: nothing is printed on standard output");
    }
}
