//! What a review costs over HTTPS, beside what the wire alone costs: the same load against `nadmit serve` and against a bare
//! server on the same stack that reads the body and answers with a fixed review.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench has nobody to answer to"
)]
#![allow(unreachable_pub, missing_docs, reason = "nobody links against this")]

mod load;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use load::{Load, Outcome, Target};
use nadmit::tls::Development;

/// As `nadmit` itself has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How many pairs of runs; the median counts.
const RUNS: usize = 5;
const CONNECTIONS: usize = 16;
const RATE: f64 = 5_000.0;
const MILLION: u64 = 1_000_000;

/// A server as a process of its own.
struct Server {
    process: Child,
    target: Target,
    /// From its start to its first answer.
    ready: Duration,
}

impl Server {
    fn nadmit(runtime: &tokio::runtime::Runtime) -> Self {
        let certs = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--cert-dir"]);
        command.arg(certs.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self::start(command, runtime, || std::fs::read_to_string(certs.path().join("ca.crt")).expect("a CA"))
    }

    /// One that reads the body and answers with a fixed review; or decodes it first, as any webhook must, and allows everything.
    fn bare(runtime: &tokio::runtime::Runtime, decodes: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let made = Development::make(&[]).expect("a certificate");
        command.env("BARE_CHAIN", String::from_utf8_lossy(&made.material.chain).into_owned());
        command.env("BARE_KEY", String::from_utf8_lossy(&made.material.key).into_owned());
        if decodes {
            command.env("BARE_DECODES", "");
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self::start(command, runtime, || made.ca)
    }

    /// Both print a line that has their address in it.
    fn start(mut command: Command, runtime: &tokio::runtime::Runtime, ca: impl FnOnce() -> String) -> Self {
        let started = Instant::now();
        let mut process = command.spawn().expect("a server");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let address =
            line.split("https://").nth(1).and_then(|rest| rest.split(['/', '\n']).next()).expect("an address");
        let target = Target::new(address.parse().expect("an address"), &ca());
        runtime.block_on(target.connect()).expect("a connection");
        Self { process, target, ready: started.elapsed() }
    }

    /// The processor time it has used, in seconds.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // User and system time, in hundredths of a second.
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap_or_default() / 100.0).sum()
    }

    fn rss(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    if std::env::var_os("BARE_KEY").is_some() {
        return runtime.block_on(load::bare());
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    let servers = [
        ("bare", Server::bare(&runtime, false)),
        ("decodes", Server::bare(&runtime, true)),
        ("nadmit", Server::nadmit(&runtime)),
    ];
    let seconds = Duration::from_secs(if quick { 2 } else { 5 });
    let run = |server: &Server, rate: Option<f64>| {
        let before = server.cpu();
        let mut outcome =
            runtime.block_on(Load { connections: CONNECTIONS, rate, length: seconds }.run(&server.target));
        outcome.cpu = server.cpu() - before;
        outcome
    };
    // All warm before anything counts.
    for (_, server) in &servers {
        run(server, None);
    }
    for (name, rate) in [("saturated", None), ("5,000 reviews a second", Some(RATE))] {
        let mut outcomes = servers.each_ref().map(|_| Vec::new());
        for _ in 0..RUNS {
            for ((_, server), outcomes) in servers.iter().zip(&mut outcomes) {
                outcomes.push(run(server, rate));
            }
        }
        println!("\n{name}, {CONNECTIONS} connections, median of {RUNS} runs\n");
        println!("| server | reviews/s | p50 | p99 | p99.9 | CPU per review | RSS |\n|---|---|---|---|---|---|---|");
        for ((label, server), outcomes) in servers.iter().zip(&outcomes) {
            let of = |quantile: f64| median(outcomes.iter().map(|outcome| outcome.quantile(quantile) * 1e3).collect());
            println!(
                "| {label} | {:.0} | {:.3} ms | {:.3} ms | {:.3} ms | {:.1} µs | {:.1} MiB |",
                median(outcomes.iter().map(Outcome::rate).collect()),
                of(0.5),
                of(0.99),
                of(0.999),
                median(outcomes.iter().map(Outcome::cpu_each).collect()) * 1e6,
                server.rss()
            );
        }
        let [wire, others @ ..] = &outcomes;
        for ((label, _), own) in servers.iter().skip(1).zip(others) {
            let ratio =
                |of: &dyn Fn(&Outcome) -> f64| median(own.iter().zip(wire).map(|(o, w)| of(o) / of(w)).collect());
            println!(
                "\n{label} : bare, median of the pairs: throughput {:.2}, p50 {:.2}, p99 {:.2}, p99.9 {:.2}",
                ratio(&Outcome::rate),
                ratio(&|outcome| outcome.quantile(0.5)),
                ratio(&|outcome| outcome.quantile(0.99)),
                ratio(&|outcome| outcome.quantile(0.999))
            );
        }
        let _ = std::io::stdout().flush();
    }
    for (label, server) in &servers {
        println!("\n{label}: ready after {:.0} ms", server.ready.as_secs_f64() * 1e3);
    }
    if !quick {
        memory(&runtime);
    }
}

/// A fresh server, and what it holds on the way to a million reviews.
fn memory(runtime: &tokio::runtime::Runtime) {
    let server = Server::nadmit(runtime);
    println!("\n| reviews | RSS |\n|---|---|\n| 0 | {:.1} MiB |", server.rss());
    let mut sent = 0;
    for goal in [MILLION / 10, MILLION / 2, MILLION] {
        sent += runtime.block_on(load::send(&server.target, CONNECTIONS, goal - sent));
        println!("| {sent} | {:.1} MiB |", server.rss());
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
