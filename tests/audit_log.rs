//! `nadmit audit-log` as a process: its output for scripts and people, and the page in a real browser.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::browser::Browser;

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

/// The page in a real browser, with mouse and keyboard.
#[test]
fn the_page_works_in_a_browser() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    fs::write(&page, run(&["-o", "html", "shown/audit.log"]).stdout).unwrap();
    let Some(mut browser) = Browser::start() else { return };
    const SHOWN: &str =
        "[...document.querySelectorAll('tbody:not([hidden])')].map((body) => body.textContent.toLowerCase())";
    const OPENED: &str = "[...document.querySelectorAll('.details')].filter((row) => row.checkVisibility()).length";
    let texts = |value: Value| -> Vec<String> { serde_json::from_value(value).unwrap() };

    // Search, by keyboard: the first Tab focuses the search field.
    browser.open(&page, "");
    let all = texts(browser.value(SHOWN)).len();
    assert!(all > 8, "{all} rows");
    browser.press("Tab", 9, "");
    browser.write("REPAIRER telco");
    let found = texts(browser.value(SHOWN));
    assert!(!found.is_empty() && found.len() < all, "{found:?}");
    assert!(found.iter().all(|row| row.contains("repairer") && row.contains("telco")), "{found:?}");
    assert!(browser.value("document.querySelector('.count').textContent").as_str().unwrap().contains(" of "));

    // Filter: by the arrow keys, and by the address.
    browser.open(&page, "");
    browser.value("document.querySelector('select').focus()");
    browser.press("ArrowDown", 40, "");
    let only = browser.value("document.querySelector('select').value");
    assert_eq!(only, "audit-log/blind-status-write");
    let keys = "[...document.querySelector('table').querySelectorAll('tbody:not([hidden]) tr:first-child td:first-child')].map((cell) => cell.textContent)";
    assert_eq!(browser.value(keys), serde_json::json!([only, only]));
    browser.open(&page, "#only=audit-log/blind-status-write");
    assert_eq!(browser.value(keys), serde_json::json!([only, only]));

    // A click opens a row, and the Enter key closes it.
    browser.open(&page, "");
    assert_eq!(browser.value(OPENED), 0);
    browser.click("tbody button");
    assert_eq!(browser.value(OPENED), 1);
    assert_eq!(browser.value("document.querySelector('tbody button').ariaExpanded"), "true");
    browser.press("Enter", 13, "\r");
    assert_eq!(browser.value(OPENED), 0);
    browser.open(&page, "#q=telco&open=1");
    assert_eq!(browser.value(OPENED), 2, "the finding and the loop");
    assert_eq!(browser.value("document.querySelectorAll('tbody:not([hidden]) .strip .mark').length"), 24);

    // The page requests nothing, and its Content-Security-Policy would block requests.
    let requested = browser.requests();
    assert_eq!(requested.len(), 1, "{requested:?}");
    assert!(requested[0].starts_with("file://") && requested[0].contains("report.html"), "{requested:?}");
    browser.value("addEventListener('securitypolicyviolation', (event) => document.title = event.violatedDirective)");
    browser.value("void (document.body.append(new Image()), document.images[0].src = 'http://127.0.0.1:9/')");
    let until = Instant::now() + Duration::from_secs(60);
    while browser.value("document.title") != "img-src" {
        assert!(Instant::now() < until, "the Content-Security-Policy did not block the image");
    }

    // Light, dark and print.
    browser.open(&page, "");
    let mut seen = Vec::new();
    for (medium, scheme) in [("screen", "light"), ("screen", "dark"), ("print", "dark")] {
        browser.prefer(medium, scheme);
        let colours = browser.value(
            "(() => { const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]; })()",
        );
        let controls = browser.value(
            "[...document.querySelectorAll('input, select')].filter((control) => control.checkVisibility()).length",
        );
        seen.push((
            colours,
            controls.as_u64().unwrap() > 0,
            browser.value(OPENED).as_u64().unwrap() > 0,
            browser.picture(),
        ));
    }
    let [(light, ..), (dark, ..), (paper, ..)] = &seen[..] else { panic!("expected three screenshots") };
    assert_ne!(light, dark);
    assert_eq!(*paper, serde_json::json!(["rgb(0, 0, 0)", "rgb(255, 255, 255)"]));
    // (controls, opened rows): a printed page has no controls, and all rows are open.
    assert_eq!(
        seen.iter().map(|page| (page.1, page.2)).collect::<Vec<_>>(),
        [(true, false), (true, false), (false, true)]
    );
    assert!(seen[0].3 != seen[1].3 && seen[0].3 != seen[2].3, "the screenshots are equal");
    browser.prefer("", "light");
    // "%PDF-", in base 64.
    assert!(browser.printed().starts_with("JVBERi0"));
}
