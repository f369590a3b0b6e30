//! The page of a map in a real browser.

mod large;
mod looks;
mod untrusted;
mod views;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::browser::Browser;

/// The names of the rows that are shown.
const ROWS: &str = "[...document.querySelectorAll('#rows .name')].filter((one) => one.checkVisibility()).map((one) => one.textContent)";
/// The heading of the open item, or nothing.
const OPEN: &str = "document.querySelector('#detail h2')?.textContent ?? ''";

/// A page, in a file of its own.
struct RenderedMap {
    path: PathBuf,
    html: String,
    _directory: TempDir,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(file: &str) -> RenderedMap {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(["map", "--no-config", file]).current_dir(root()).env_remove("NADMIT_POLICY");
    let out = command.output().unwrap();
    let html = String::from_utf8(out.stdout).unwrap();
    assert!(html.starts_with("<!doctype html>"), "{}", String::from_utf8_lossy(&out.stderr));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("map.html");
    fs::write(&path, &html).unwrap();
    RenderedMap { path, html, _directory: directory }
}

/// The page of the example.
fn example() -> RenderedMap {
    page("tests/shown/map.yaml")
}

fn strings(value: Value) -> Vec<String> {
    serde_json::from_value(value).unwrap()
}

/// The text of a section of the open item, by its heading.
fn section(browser: &mut Browser, title: &str) -> String {
    let find = format!(
        "[...document.querySelectorAll('#detail section')].find((one) => one.querySelector('h3')?.textContent.startsWith({title:?}))?.textContent ?? ''"
    );
    browser.value(&find).as_str().unwrap().to_owned()
}

fn choose(browser: &mut Browser, name: &str, value: &str) {
    browser.value(&format!(
        "(() => {{ const select = document.getElementById({name:?}); select.value = {value:?}; select.dispatchEvent(new Event('change')); }})()"
    ));
}
