//! Instructions for one judgement, counted by valgrind: the same number on any machine, however busy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench has nobody to answer to"
)]
#![allow(unreachable_pub, missing_docs, reason = "nobody links against this")]

use std::process::{Command, ExitCode};

mod subjects;

fn main() -> ExitCode {
    if let Some(rounds) = std::env::var("NADMIT_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()) {
        work(rounds, &std::env::var("NADMIT_BENCH_SUBJECT").unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("valgrind is not there: no instructions counted");
        return ExitCode::SUCCESS;
    }
    println!("| read and judged | instructions |\n|---|---|");
    for (subject, rounds) in [
        ("operator NAD", 200),
        ("SriovNetwork", 200),
        ("config of 64 KiB", 16),
        ("config of 1 MiB", 1),
        ("status of a node", 16),
    ] {
        match (instructions(0, subject), instructions(rounds, subject)) {
            (Some(none), Some(all)) => println!("| {subject} | {} |", (all - none) / rounds),
            _ => return ExitCode::FAILURE,
        }
    }
    ExitCode::SUCCESS
}

fn work(rounds: u64, subject: &str) {
    let json = match subject {
        "SriovNetwork" => subjects::network(),
        "config of 64 KiB" => subjects::large_nad(64 << 10),
        "config of 1 MiB" => subjects::large_nad(1 << 20),
        _ => subjects::operator_nad(),
    };
    if subject == "status of a node" {
        let (review, policy) = (subjects::node_state_review(), nadmit::policy::Policy::default());
        for _ in 0..rounds {
            std::hint::black_box(subjects::answer_status(std::hint::black_box(&review), &policy));
        }
        return;
    }
    let facts = subjects::facts();
    for _ in 0..rounds {
        std::hint::black_box(subjects::judge_once(std::hint::black_box(&json), &facts));
    }
}

/// Runs this program under valgrind and reads the total off what it prints.
fn instructions(rounds: u64, subject: &str) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .env("NADMIT_BENCH_ROUNDS", rounds.to_string())
        .env("NADMIT_BENCH_SUBJECT", subject)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let total = text.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse();
    total.ok()
}
