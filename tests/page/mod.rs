//! The HTML pages in a real browser: their filters, addresses, keys, copies and looks.

mod filters;
mod keyboard;
mod large;
mod looks;
mod untrusted;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::browser::Browser;

/// The names of the objects that are shown.
const NAMES: &str = "[...document.querySelectorAll('.entry')].filter((one) => one.checkVisibility()).map((one) => one.querySelector('b').textContent)";
/// The names of the objects that are open.
const OPEN: &str = "[...document.querySelectorAll('.entry')].filter((one) => one.checkVisibility() && one.firstChild.open).map((one) => one.querySelector('b').textContent)";

/// A page, in a file of its own.
struct ReportPage {
    path: PathBuf,
    html: String,
    _directory: TempDir,
}

/// The page of `nadmit check` for files named from the root of the repository.
fn check(files: &[&str]) -> ReportPage {
    page(&[&["check", "--output", "html"], files].concat())
}

fn page(arguments: &[&str]) -> ReportPage {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("NADMIT_POLICY");
    let html = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    fs::write(&path, &html).unwrap();
    ReportPage { path, html, _directory: directory }
}

/// The page of the examples.
fn sites() -> ReportPage {
    check(&["examples/sites.yaml"])
}

/// The page of an audit log.
fn log() -> ReportPage {
    page(&["audit-log", "--output", "html", "tests/shown/audit.log"])
}

/// The page of manifests without findings.
fn clean() -> ReportPage {
    check(&["tests/shown/good.yaml"])
}

/// The page of `number` objects, each with two findings.
fn many(number: usize) -> ReportPage {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("many.yaml");
    let mut text = String::new();
    for number in 0..number {
        text += &format!(
            "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: net-{number}\n  namespace: team-{}\n\
             spec:\n  config: '{{\"cniVersion\": \"1.0.0\", \"type\": \"macvlan\", \"mode\": \"mode-{number}\", \"ipam\": {{\"type\": \"static\", \
             \"addresses\": [{{\"address\": \"10.0.0.{number}\"}}]}}}}'\n---\n",
            number % 40
        );
    }
    fs::write(&file, text).unwrap();
    check(&[file.to_str().unwrap()])
}

fn strings(value: Value) -> Vec<String> {
    serde_json::from_value(value).unwrap()
}

/// The rows of a chart: each value, and its numbers.
fn chart(browser: &mut Browser, name: &str) -> Vec<String> {
    let rows = format!(
        "[...document.querySelectorAll('[data-chart={name}] tbody tr:not([hidden])')].map((row) => row.querySelector('button').value + ': ' + \
         [...row.querySelectorAll('td')].map((cell) => cell.textContent).join(' '))"
    );
    strings(browser.value(&rows))
}

fn choose(browser: &mut Browser, name: &str, value: &str) {
    browser.value(&format!(
        "(() => {{ const select = document.querySelector('select[name={name}]'); select.value = {value:?}; \
         select.dispatchEvent(new Event('change')); }})()"
    ));
}

/// Waits for the address, which is written with the next frame.
fn address(browser: &mut Browser) -> String {
    let frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(decodeURIComponent(location.hash)))))";
    browser.value(frames).as_str().unwrap().to_owned()
}
