//! Texts that were written to do harm: to the terminal of their readers, or to the parser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nadmit::json::LineIndex;
use nadmit::manifests::documents;
use nadmit::yaml::Documents;
use serde_json::{Value, json};

use crate::serve::harness::TestServer;

/// Clears a terminal, reverses the following text, and has no width.
const NASTY: &str = "\u{1b}[2J\u{202e}\u{2066}\u{200b}\u{7f}\u{9b}x";
/// The same text, escaped.
const SHOWN: &str = "\\u{1b}[2J\\u{202e}\\u{2066}\\u{200b}\\u{7f}\\u{9b}x";

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(arguments).env_remove("NADMIT_POLICY").output().unwrap()
}

/// Whether a terminal or a browser interprets the character; nadmit itself writes the line breaks.
fn is_interpreted(character: char) -> bool {
    (character.is_control() && character != '\n')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn assert_plain(what: &str, text: &str) {
    let found = text.find(is_interpreted);
    assert_eq!(found, None, "{what}: {:?}", found.map(|at| &text[at.saturating_sub(40)..]));
}

/// A manifest with a denied and a repaired object, and such text in its name, its namespace, a key and a value.
fn manifest(directory: &Path) -> PathBuf {
    let config = json!({
        "cniVersion": "1.0.0",
        "type": "sriov",
        "link_state": NASTY,
        "vlan": NASTY,
        "ipam": { "type": NASTY },
        NASTY: 1,
    });
    let nad = json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": format!("n{NASTY}"), "namespace": format!("s{NASTY}\nerror: forged") },
        "spec": { "config": format!("{config:#}") },
    });
    let network = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": { "name": format!("m{NASTY}"), "namespace": format!("s{NASTY}") },
        "spec": { "resourceName": format!("r{NASTY}"), "networkNamespace": NASTY, "ipam": NASTY, "linkState": NASTY },
    });
    let repaired = json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "net", "annotations": { "x": NASTY } },
        "spec": { "config": json!({"cniVersion": "1.0.0", "type": "sriov", "resourceName": "openshift.io/a", "x": NASTY}).to_string() },
    });
    let file = directory.join(format!("f{NASTY}.yaml"));
    fs::write(&file, [nad, network, repaired].map(|object| object.to_string()).join("\n---\n")).unwrap();
    file
}

#[test]
fn untrusted_text_is_escaped_in_every_human_output() {
    let directory = tempfile::tempdir().unwrap();
    let file = manifest(directory.path());
    let file = file.to_str().unwrap();
    for arguments in [
        &["--output", "human"] as &[_],
        &["--output", "human", "--diff"],
        &["--output", "github"],
        &["--output", "html"],
    ] {
        let output = run(&[&["check", file], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_plain(arguments[1], &text);
        assert_plain("standard error", &String::from_utf8(output.stderr).unwrap());
        // The file name (except in the page), the object names, and the values.
        for want in [format!("n{SHOWN}"), format!("m{SHOWN}"), format!("s{SHOWN}")] {
            assert!(text.contains(&want), "{arguments:?}: no {want} in {text}");
        }
        let is_page = arguments.contains(&"html");
        assert!(is_page || !text.lines().any(|line| line.starts_with("error: forged")), "{text}");
    }
    // nadmit itself writes the colours; nothing else is interpreted.
    let coloured = run(&["check", file, "--color", "always"]);
    let text = String::from_utf8(coloured.stdout).unwrap();
    assert!(text.contains("\u{1b}[") && !text.contains("\u{1b}[2J") && !text.contains('\u{202e}'), "{text:?}");
}

#[test]
fn machine_formats_keep_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let file = manifest(directory.path());
    let file = file.to_str().unwrap();
    let report: Value = serde_json::from_slice(&run(&["check", file, "--output", "json"]).stdout).unwrap();
    let text = report.to_string();
    assert!(text.contains(&Value::from(format!("n{NASTY}")).to_string()), "{text}");
    let sarif: Value = serde_json::from_slice(&run(&["check", file, "--output", "sarif"]).stdout).unwrap();
    assert!(sarif.to_string().contains('\u{202e}'), "{sarif}");
    // XML cannot represent the escape character.
    let junit = String::from_utf8(run(&["check", file, "--output", "junit"]).stdout).unwrap();
    assert!(junit.contains("\u{fffd}[2J\u{202e}") && !junit.contains('\u{1b}'), "{junit:?}");
}

#[test]
fn file_errors_stay_on_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("a{NASTY}\nerror: forged.yaml"));
    fs::write(&file, "a: [").unwrap();
    let missing = directory.path().join(format!("b{NASTY}\nerror: forged.yaml"));
    for (command, file) in [("check", &file), ("check", &missing), ("audit-log", &missing)] {
        let output = run(&[command, file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(SHOWN), "{command}: {text}");
        assert_plain(command, &text);
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{command}: {text}");
    }
    let output = run(&["check", "--policy", file.to_str().unwrap(), "examples/telco.yaml"]);
    assert_plain("policy", &String::from_utf8(output.stderr).unwrap());
}

#[test]
fn audit_log_tables_escape_untrusted_text() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.log");
    let event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete",
        "auditID": "1", "verb": "update", "userAgent": format!("u{NASTY}\nx"), "user": { "username": NASTY },
        "objectRef": { "apiGroup": "sriovnetwork.openshift.io", "apiVersion": "v1", "resource": "sriovnetworks",
            "subresource": "status", "namespace": NASTY, "name": format!("n{NASTY}") },
        "responseStatus": { "code": 200 }, "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "stageTimestamp": "2026-01-01T00:00:00.100000Z",
    });
    // Many writes within a minute count as a loop.
    let lines: Vec<_> = (0..60)
        .map(|second| {
            event
                .to_string()
                .replace("00:00:00", &format!("00:00:{second:02}"))
                .replace("\"1\"", &format!("\"{second}\""))
        })
        .collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    for output in ["table", "html"] {
        let text = String::from_utf8(run(&["audit-log", "-o", output, file.to_str().unwrap()]).stdout).unwrap();
        assert_plain(output, &text);
        assert!(text.contains(&format!("u{SHOWN}")), "{output}: {text}");
    }
    let report: Value =
        serde_json::from_slice(&run(&["audit-log", "-o", "json", file.to_str().unwrap()]).stdout).unwrap();
    assert!(report.to_string().contains(&Value::from(format!("u{NASTY}\nx")).to_string()), "{report}");
}

#[test]
fn server_responses_and_logs_escape_untrusted_text() {
    let server = TestServer::start(&["--log-format", "text"]);
    let mut review: Value = serde_json::from_str(&fs::read_to_string("examples/review-good.json").unwrap()).unwrap();
    let config = json!({"cniVersion": "1.0.0", "type": "sriov", "link_state": NASTY, "vlan": NASTY, NASTY: 1});
    let request = review["request"].as_object_mut().unwrap();
    for (key, value) in [("name", format!("n{NASTY}")), ("namespace", format!("s{NASTY}\nERROR forged"))] {
        request.insert(key.to_owned(), value.clone().into());
        request["object"]["metadata"][key] = value.into();
    }
    request["object"]["spec"]["config"] = config.to_string().into();
    request["userInfo"] = json!({ "username": format!("u{NASTY}") });
    for path in ["/validate", "/mutate"] {
        let answer: Value = serde_json::from_str(&server.post(path, review.to_string()).text()).unwrap();
        let response = &answer["response"];
        let mut messages: Vec<&str> =
            response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        messages.extend(response["status"]["message"].as_str());
        for message in &messages {
            assert_plain(path, message);
        }
        assert!(
            path == "/mutate" || messages.iter().any(|message| message.contains("\\u{1b}[2J\\u{202e}")),
            "{answer:#}"
        );
    }
    server.wait_for_line("endpoint=\"mutate\"");
    let log = server.log_text();
    assert_plain("log", &log);
    assert!(log.contains(SHOWN) && !log.lines().any(|line| line.starts_with("ERROR forged")), "{log}");
}

fn hostile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

/// Each is an error of its own file, and the other files are judged.
#[test]
fn parser_panic_is_reported_and_other_files_are_checked() {
    let files: Vec<String> =
        fs::read_dir(hostile()).unwrap().map(|entry| entry.unwrap().path().to_str().unwrap().to_owned()).collect();
    let files = files.iter().map(String::as_str);
    let arguments: Vec<&str> =
        ["check", "--output", "json", "tests/shown/good.yaml"].into_iter().chain(files).collect();
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    for entry in fs::read_dir(hostile()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(errors.contains(&name), "{name} is not reported:\n{errors}");
    }
    assert!(!errors.contains("panicked at"), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["summary"]["documents"], 1, "{report:#}");
}

/// Pseudo-random numbers with a fixed seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Real manifests and the hostile texts, cut, doubled and joined at random: the parser returns documents or errors for all of them.
#[test]
fn parser_never_panics() {
    const PIECES: [&str; 30] = [
        "[", "]", "{", "}", ",", ":", ": ", "- ", "? ", "&a ", "*a", "!", "!a", "!!", "|", ">", "'", "\"", "\\", "#",
        "%", "@", "\n", "\n ", "\t", "---\n", "...", "<<: *a", "\u{feff}", "\u{85}",
    ];
    let mut seeds: Vec<String> = vec![String::new()];
    for directory in [hostile(), hostile().with_file_name("shown")] {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        seeds.extend(
            files
                .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
                .map(|path| fs::read_to_string(path).unwrap()),
        );
    }
    let rounds = std::env::var("HOSTILE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..rounds {
        let seed = &seeds[numbers.below(seeds.len())];
        let start = seed.floor_char_boundary(numbers.below(seed.len() + 1));
        let end = seed.ceil_char_boundary((start + numbers.below(200)).min(seed.len()));
        let mut text = seed[start..end].to_owned();
        for _ in 0..numbers.below(12) {
            let at = text.floor_char_boundary(numbers.below(text.len() + 1));
            let piece = PIECES[numbers.below(PIECES.len())];
            match numbers.below(3) {
                0 => text.insert_str(at, &piece.repeat(1 + numbers.below(4))),
                1 => text.truncate(at),
                _ => text += piece,
            }
        }
        let lines = LineIndex::of(&text);
        documents(&lines, &mut |_| {});
        for document in Documents::small(&text) {
            if let Ok(node) = document.node {
                let json = node.to_json();
                assert!(serde_json::from_str::<Value>(&json).is_ok(), "{text:?} became {json:?}");
            }
        }
    }
}
