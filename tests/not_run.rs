//! Tests that need a program which is not on every machine.

use std::fs::OpenOptions;
use std::io::Write;

/// The file whose lines `make test` prints at its end, because libtest shows nothing of a test that passes.
const FILE: &str = "NADMIT_NOT_RUN";

/// Reports that the calling test does not run here. In CI it fails instead: there, everything is installed.
pub fn not_run(what: &str, how: &str) {
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "CI runs every test, but not {what}. {how}");
    let line = format!("*** NOT RUN: {what}. {how} ***\n");
    eprint!("{line}");
    if let Some(file) = std::env::var_os(FILE) {
        let written = OpenOptions::new().append(true).create(true).open(file);
        written.and_then(|mut file| file.write_all(line.as_bytes())).expect(FILE);
    }
}
