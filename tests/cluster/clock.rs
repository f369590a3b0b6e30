//! A replica whose clock is wrong: the shipped binary with a preloaded C library that shifts its time of day.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::run;

/// The compiled library; dropping this deletes it.
pub struct Clock(TempDir);

impl Clock {
    /// Compiles the library.
    pub fn compile() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
        compiler.arg(directory.path().join("clock.so")).arg(source);
        let output = run(compiler);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(directory)
    }

    /// Runs a command with a clock that is so many seconds ahead, or behind if negative.
    pub fn shift(&self, command: &mut Command, seconds: i64) {
        command.env("LD_PRELOAD", self.0.path().join("clock.so")).env("CLOCK_OFFSET", seconds.to_string());
    }
}
