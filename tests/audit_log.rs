//! `nadmit audit-log` as a process: its output for scripts and people.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

fn log() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shown/audit.log")
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.arg("audit-log").args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&run(&[&["-o", "json"], arguments].concat()).stdout).unwrap()
}

#[test]
fn table_output_snapshot() {
    let output = run(&["shown/audit.log"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!("table", text(&output.stdout));
}

#[test]
fn exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let broken = directory.path().join("broken.log");
    fs::write(&broken, "no event\n").unwrap();
    let broken = broken.to_str().unwrap();
    for (arguments, code) in [
        (&["shown/audit.log"] as &[_], 0),
        (&["--deny", "blind", "shown/audit.log"], 1),
        (&["--deny", "stale", "shown/audit.log"], 1),
        (&["--deny", "unchanged", "shown/audit.log"], 1),
        (&["--deny", "loop", "shown/audit.log"], 1),
        (&["--deny", "loop", "--loop-rate", "100", "shown/audit.log"], 0),
        (&["--deny", "blind", "--group", "apps", "shown/audit.log"], 0),
        (&["shown/none.log"], 2),
        (&["--deny", "blind", "shown/none.log", "shown/audit.log"], 2),
        (&[broken], 2),
        (&[], 2),
        (&["--loop-rate", "0", "shown/audit.log"], 2),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// A log gives the same report whether it is plain, compressed, rotated or piped.
#[test]
fn plain_compressed_rotated_and_piped_logs_agree() {
    let whole = fs::read(log()).unwrap();
    let mut want = json(&[log().to_str().unwrap()]);
    want["log"]["sources"] = Value::Null;
    let directory = tempfile::tempdir().unwrap();
    let middle = whole.iter().take(whole.len() / 2).rposition(|byte| *byte == b'\n').unwrap() + 1;
    let (older, newer) = whole.split_at(middle);
    let aside = directory.path().join("audit-2026-11-16T20-24-00.000.log.gz");
    let mut encoder = GzEncoder::new(File::create(aside).unwrap(), Compression::default());
    encoder.write_all(older).unwrap();
    encoder.finish().unwrap();
    fs::write(directory.path().join("audit.log"), newer).unwrap();
    let mut found = json(&[directory.path().to_str().unwrap()]);
    assert_eq!(found["log"]["sources"].as_array().unwrap().len(), 2);
    found["log"]["sources"] = Value::Null;
    assert_eq!(found, want);

    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    let output = command.args(["audit-log", "-o", "json", "-"]).stdin(File::open(log()).unwrap()).output().unwrap();
    let mut found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["log"]["sources"], serde_json::json!(["-"]));
    found["log"]["sources"] = Value::Null;
    assert_eq!(found, want);
}

/// Three servers wrote parts of one log: the report is the same, in whatever order the parts are named.
#[test]
fn logs_of_several_servers_are_read_in_the_order_of_time() {
    let whole = fs::read_to_string(log()).unwrap();
    let mut want = json(&[log().to_str().unwrap()]);
    want["log"]["sources"] = Value::Null;
    let directory = tempfile::tempdir().unwrap();
    let name = |server: usize| directory.path().join(format!("server-{server}.log"));
    let mut logs = vec![String::new(); 3];
    for (number, line) in whole.lines().enumerate() {
        logs[number % 3] += &format!("{line}\n");
    }
    for (server, text) in logs.iter().enumerate() {
        fs::write(name(server), text).unwrap();
    }
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let paths = order.map(name);
        let mut found = json(&paths.each_ref().map(|path| path.to_str().unwrap()));
        found["log"]["sources"] = Value::Null;
        assert_eq!(found, want, "{order:?}");
    }
    // More logs than may be open at once are rejected, with a hint.
    let many: Vec<_> = (0..65).map(|number| format!("{number}.log")).collect();
    let output = run(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("65 logs are too many"), "{}", text(&output.stderr));
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let log: Value = serde_json::from_slice(&run(&["-o", "sarif", "shown/audit.log"]).stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(matches!(result["level"].as_str(), Some("warning" | "note")));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "shown/audit.log");
        assert_eq!(result["partialFingerprints"]["finding/v1"].as_str().unwrap().len(), 16);
    }
}
