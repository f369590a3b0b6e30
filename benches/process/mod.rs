//! The binary as a process.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs the binary to its end; how long it took, and the most memory it held, in bytes.
pub fn run(command: &mut Command) -> (Duration, u64) {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("the binary");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let high = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let high = high.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(high.unwrap_or_default());
        std::thread::sleep(Duration::from_millis(1));
    }
    (start.elapsed(), peak * 1024)
}
