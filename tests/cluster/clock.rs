//! A replica whose clock is wrong: the shipped binary, in front of a C library that shifts its time of day.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::run;

/// The library, compiled; it is gone when this is dropped.
pub struct Clock(TempDir);

impl Clock {
    /// Compiles it.
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

    /// Lets a command run with a clock that is so many seconds ahead, or behind.
    pub fn shift(&self, command: &mut Command, seconds: i64) {
        command.env("LD_PRELOAD", self.0.path().join("clock.so")).env("CLOCK_OFFSET", seconds.to_string());
    }
}
