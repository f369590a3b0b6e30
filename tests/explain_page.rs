//! The page of `nadmit explain` in a real browser: many pods, and its picture in the documentation.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tempfile::TempDir;

use crate::browser::Browser;

const NADS: usize = 2_000;
const PODS: usize = 4_000;
const NODES: usize = 300;
/// The most that such a page may take for each pod.
const MAX_BYTES_OF_A_POD: usize = 4 << 10;
/// The most that the picture in the documentation may take.
const MAX_PICTURE_BYTES: usize = 200 << 10;

/// A page, in a file of its own.
struct Page {
    path: PathBuf,
    bytes: usize,
    _directory: TempDir,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(file: &str) -> Page {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("explain.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(["explain", "--no-config", file, "-o", &format!("html={}", path.display())]).current_dir(root());
    let out = command.env_remove("NADMIT_POLICY").output().unwrap();
    assert!(out.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&out.stderr));
    let bytes = fs::metadata(&path).unwrap().len().try_into().unwrap();
    Page { path, bytes, _directory: directory }
}

fn large() -> Page {
    let mut text = String::new();
    for number in 0..NODES {
        let _ = write!(
            text,
            "{{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {{\"name\": \"node-{number}\", \"labels\": {{\"rack\": \"{}\"}}}}}}\n---\n",
            number % 20
        );
    }
    for number in 0..NADS {
        let _ = write!(
            text,
            "{{\"apiVersion\": \"k8s.cni.cncf.io/v1\", \"kind\": \"NetworkAttachmentDefinition\", \"metadata\": {{\"name\": \"net-{number}\", \"namespace\": \"team-{}\"}}, \
             \"spec\": {{\"config\": \"{{\\\"cniVersion\\\": \\\"1.0.0\\\", \\\"type\\\": \\\"macvlan\\\", \\\"master\\\": \\\"ens{}\\\"}}\"}}}}\n---\n",
            number % 200,
            number % 8
        );
    }
    for number in 0..PODS {
        let nad = number % 200 + 200 * (number * 7 % (NADS / 200));
        let _ = write!(
            text,
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"pod-{number}\", \"namespace\": \"team-{}\", \
             \"annotations\": {{\"k8s.v1.cni.cncf.io/networks\": \"net-{nad}\"}}}}, \"spec\": {{\"nodeSelector\": {{\"rack\": \"{}\"}}, \"containers\": []}}}}\n---\n",
            number % 200,
            number % 20
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large.yaml");
    fs::write(&file, text).unwrap();
    page(file.to_str().unwrap())
}

/// How long something takes, until the page is laid out again, in milliseconds.
fn time(browser: &mut Browser, what: &str) -> f64 {
    let timed = format!(
        "(() => {{ const from = performance.now(); {what}; document.body.offsetHeight; return performance.now() - from; }})()"
    );
    browser.value(&timed).as_f64().unwrap()
}

#[test]
fn thousands_of_pods_are_searched() {
    let page = large();
    assert!(page.bytes < PODS * MAX_BYTES_OF_A_POD, "{} bytes", page.bytes);
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let load = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
    let search = |words: &str| {
        format!(
            "const search = document.getElementById('search'); search.value = {words:?}; search.dispatchEvent(new Event('input'))"
        )
    };
    let steps = [
        ("first search", search("pod-1")),
        ("search", search("team-199 net1")),
        ("search for nothing", search("")),
        ("open a pod", "document.querySelector('.entry summary').click()".to_owned()),
    ];
    let times: Vec<_> = steps.iter().map(|(name, step)| (*name, time(&mut browser, step))).collect();
    println!("{} KiB, loaded after {load} ms, then in ms: {times:.0?}", page.bytes >> 10);
    // Far above what is measured on an idle machine: a busy one must not fail.
    assert!(times.iter().all(|(_, time)| *time < 10_000.0), "{times:?}");
    let shown = "[...document.querySelectorAll('.entry')].filter((one) => one.checkVisibility()).length";
    browser.open(&page.path, "#q=pod-3999");
    assert_eq!(browser.value(shown), 2, "its interface, and the pod itself");
}

/// docs/explain.png is the page of the example; with `GENERATE=1` it is taken again.
#[test]
fn picture_of_explained_pods_is_small() {
    let path = root().join("docs/explain.png");
    if std::env::var_os("GENERATE").is_some_and(|value| value == "1") {
        let Some(mut browser) = Browser::start() else { return };
        browser.resize(1200, 900);
        browser.open(&page("tests/shown/explain.yaml").path, "");
        browser.value("document.querySelector('.entry summary').click()");
        fs::write(&path, BASE64_STANDARD.decode(browser.picture()).unwrap()).unwrap();
    }
    let picture = fs::read(path).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() < MAX_PICTURE_BYTES, "{} bytes", picture.len());
}
