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

#[path = "../tests/serve/certificates.rs"]
#[allow(dead_code, reason = "shared with the tests of the server")]
mod certificates;
#[path = "../tests/serve/client.rs"]
#[allow(dead_code, reason = "shared with the tests of the server")]
mod client;
#[path = "../tests/serve/corpus.rs"]
mod corpus;
mod load;
#[path = "../tests/serve/stalled.rs"]
mod stalled;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Trust;
use load::{Load, LoadResult, LoadTarget};
use nadmit::tls::Development;
use stalled::Stalled;

/// As `nadmit` itself has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How many pairs of runs; the median counts.
const RUNS: usize = 5;
const CONNECTIONS: usize = 16;
const RATE: f64 = 5_000.0;
const MILLION: u64 = 1_000_000;

/// Reviews a second beside stalled requests: far from saturated, so that it shows who waits for whom.
const HONEST: f64 = 500.0;
/// How many of the worst reviews are asked for at once.
const WORST: usize = 64;

/// A server as a process of its own.
struct BenchServer {
    process: Child,
    target: LoadTarget,
    address: SocketAddr,
    ca: String,
    /// From its start to its first answer.
    ready: Duration,
}

impl BenchServer {
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
        let (address, ca) = (address.parse().expect("an address"), ca());
        let target = LoadTarget::new(address, &ca);
        runtime.block_on(target.connect()).expect("a connection");
        Self { process, target, address, ca, ready: started.elapsed() }
    }

    /// The processor time it has used, in seconds.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // User and system time, in hundredths of a second.
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap_or_default() / 100.0).sum()
    }

    fn rss(&self) -> f64 {
        self.memory("VmRSS:")
    }

    /// The most it ever held.
    fn peak(&self) -> f64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, which: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
    }
}

impl Drop for BenchServer {
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
    worst(&runtime);
    attacked(&runtime, Duration::from_secs(if quick { 3 } else { 6 }));
    if std::env::args().any(|argument| argument == "--attacks") {
        return;
    }
    let servers = [
        ("bare", BenchServer::bare(&runtime, false)),
        ("decodes", BenchServer::bare(&runtime, true)),
        ("nadmit", BenchServer::nadmit(&runtime)),
    ];
    let seconds = Duration::from_secs(if quick { 2 } else { 5 });
    let run = |server: &BenchServer, rate: Option<f64>| {
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
                median(outcomes.iter().map(LoadResult::rate).collect()),
                of(0.5),
                of(0.99),
                of(0.999),
                median(outcomes.iter().map(LoadResult::cpu_each).collect()) * 1e6,
                server.rss()
            );
        }
        let [wire, others @ ..] = &outcomes;
        for ((label, _), own) in servers.iter().skip(1).zip(others) {
            let ratio =
                |of: &dyn Fn(&LoadResult) -> f64| median(own.iter().zip(wire).map(|(o, w)| of(o) / of(w)).collect());
            println!(
                "\n{label} : bare, median of the pairs: throughput {:.2}, p50 {:.2}, p99 {:.2}, p99.9 {:.2}",
                ratio(&LoadResult::rate),
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

/// Honest reviews beside 256 stalled ones on 16 connections, and beside none, in turn.
fn attacked(runtime: &tokio::runtime::Runtime, seconds: Duration) {
    let server = BenchServer::nadmit(runtime);
    let load = || Load { connections: CONNECTIONS, rate: Some(HONEST), length: seconds };
    runtime.block_on(load().run(&server.target));
    let mut pairs = Vec::new();
    for _ in 0..RUNS {
        let undisturbed = runtime.block_on(load().run(&server.target));
        let beside = runtime.block_on(async {
            let trust = Trust::in_ca(server.ca.as_bytes());
            let path = "/validate".to_owned();
            let target = stalled::Target { address: server.address, trust, path, length: 4_000 };
            let stalled = Stalled::start(&target, 0, 16);
            while stalled.begun() < 256 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            load().run(&server.target).await
        });
        pairs.push((undisturbed, beside));
    }
    let of = |which: &dyn Fn(&(LoadResult, LoadResult)) -> f64| median(pairs.iter().map(which).collect());
    println!("\n{HONEST} reviews a second beside 256 stalled requests on 16 connections, median of {RUNS} pairs\n");
    println!("| | p50 | p99 |\n|---|---|---|");
    println!(
        "| undisturbed | {:.3} ms | {:.3} ms |",
        of(&|it| it.0.quantile(0.5) * 1e3),
        of(&|it| it.0.quantile(0.99) * 1e3)
    );
    println!(
        "| attacked | {:.3} ms | {:.3} ms |",
        of(&|it| it.1.quantile(0.5) * 1e3),
        of(&|it| it.1.quantile(0.99) * 1e3)
    );
    println!(
        "\np99 attacked : undisturbed, median of the pairs: {:.2}",
        of(&|it| it.1.quantile(0.99) / it.0.quantile(0.99))
    );
}

/// The reviews that take the most memory, many at once, and what a fresh server holds at most.
fn worst(runtime: &tokio::runtime::Runtime) {
    println!("\n| the worst reviews, {WORST} at once | answered | peak |\n|---|---|---|");
    let all = BenchServer::nadmit(runtime);
    for (name, body) in corpus::worst() {
        let server = BenchServer::nadmit(runtime);
        let answered = runtime.block_on(load::flood(&server.target, WORST, WORST * 4, &body));
        runtime.block_on(load::flood(&all.target, WORST, WORST * 2, &body));
        println!("| {name}, {} KiB | {answered} of {} | {:.1} MiB |", body.len() >> 10, WORST * 4, server.peak());
    }
    println!("| all of them, one after the other | | {:.1} MiB |", all.peak());
}

/// A fresh server, and what it holds on the way to a million reviews.
fn memory(runtime: &tokio::runtime::Runtime) {
    let server = BenchServer::nadmit(runtime);
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
