//! Tests that need a program which is not installed on every machine.

use std::fs::OpenOptions;
use std::io::Write;

/// The variable with the path of a file that `make test` prints at its end, because libtest hides the output of tests that pass.
const FILE: &str = "NADMIT_NOT_RUN";

/// Reports that the calling test cannot run on this machine. In CI it fails instead, because everything is installed there.
pub fn not_run(what: &str, how: &str) {
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "CI runs every test, but not {what}. {how}");
    let line = format!("*** NOT RUN: {what}. {how} ***\n");
    eprint!("{line}");
    if let Some(file) = std::env::var_os(FILE) {
        let written = OpenOptions::new().append(true).create(true).open(file);
        written.and_then(|mut file| file.write_all(line.as_bytes())).expect(FILE);
    }
}
