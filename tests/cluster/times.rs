//! The duration of each test. libtest does not report it, so each test appends a line to a file, which `run` prints at its end.

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::Instant;

/// The variable with the path of the file; without it nothing is written.
pub const FILE: &str = "NADMIT_CLUSTER_TIMES";

/// The running test. Each runs in its own thread with its name, so this is dropped when the test has ended.
struct Stopwatch {
    test: Option<String>,
    started: Instant,
}

thread_local! {
    static STOPWATCH: Stopwatch =
        Stopwatch { test: thread::current().name().map(str::to_owned), started: Instant::now() };
}

/// Starts the time of this test, unless it has started before. Waiting for the machine does not count.
pub fn start() {
    STOPWATCH.with(|_| ());
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        let (Some(test), Some(file)) = (&self.test, std::env::var_os(FILE)) else { return };
        let line = format!("{:8.1} s  {test}\n", self.started.elapsed().as_secs_f64());
        // One write, so that lines of tests that end at once do not mix. A lost time fails no test.
        let _ = OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
