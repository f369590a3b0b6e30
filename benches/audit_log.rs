//! `nadmit audit-log` beside the least that any reader of such a log does, and its memory as the log grows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench has nobody to answer to"
)]
#![allow(unreachable_pub, missing_docs, reason = "nobody links against this")]

mod process;

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use nadmit::audit_log::lines::each_line;
use nadmit::audit_log::report::Report;
use nadmit::audit_log::{LogScan, LogScope};
use process::run;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A status write as the shipped policy has it recorded: about 3 KB, with a node state of two cards in it, twice.
fn write(number: usize, out: &mut String) {
    let (node, version, second) = (number % 500, 1000 + number, number / 10);
    let mut interfaces = String::new();
    for card in 0..2 {
        let _ = write!(
            interfaces,
            r#"{}{{"name":"ens{card}f0","mac":"0c:42:a1:00:{card:02}:{:02x}","driver":"mlx5_core","pciAddress":"0000:3b:00.{card}","vendor":"15b3","deviceID":"101d","mtu":9000,"numVfs":8,"totalvfs":8,"linkSpeed":"100000 Mb/s","linkType":"ETH","eSwitchMode":"legacy","externallyManaged":false,"Vfs":[{{"vfID":0,"name":"ens{card}f0v0","mac":"aa:bb:cc:dd:ee:01","pciAddress":"0000:3b:01.0","driver":"mlx5_core","vendor":"15b3","deviceID":"101e","mtu":9000}},{{"vfID":1,"name":"ens{card}f0v1","mac":"aa:bb:cc:dd:ee:02","pciAddress":"0000:3b:01.1","driver":"mlx5_core","vendor":"15b3","deviceID":"101e","mtu":9000}}]}}"#,
            if card == 0 { "" } else { "," },
            number % 256,
        );
    }
    let stated =
        if number.is_multiple_of(3) { String::new() } else { format!(r#","resourceVersion":"{}""#, version - 1) };
    let _ = writeln!(
        out,
        r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"512c54e0-decd-4ea7-84f1-{number:012x}","stage":"ResponseComplete","requestURI":"/apis/sriovnetwork.openshift.io/v1/namespaces/openshift-sriov-network-operator/sriovnetworknodestates/node-{node}/status?fieldManager=config-daemon","verb":"patch","user":{{"username":"system:serviceaccount:openshift-sriov-network-operator:sriov-network-config-daemon","groups":["system:serviceaccounts","system:authenticated"]}},"sourceIPs":["10.0.0.7"],"userAgent":"sriov-network-config-daemon/v0.0.0 (linux/amd64) kubernetes/$Format","objectRef":{{"resource":"sriovnetworknodestates","namespace":"openshift-sriov-network-operator","name":"node-{node}","apiGroup":"sriovnetwork.openshift.io","apiVersion":"v1","subresource":"status"}},"responseStatus":{{"metadata":{{}},"code":200}},"requestObject":{{"metadata":{{"name":"node-{node}"{stated}}},"status":{{"syncStatus":"InProgress","interfaces":[{interfaces}]}}}},"responseObject":{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkNodeState","metadata":{{"creationTimestamp":"2026-11-16T20:23:05Z","generation":7,"name":"node-{node}","resourceVersion":"{version}","uid":"eb167c2c-1a59-49fe-888b-f68c0be7ed75"}},"spec":{{"interfaces":[]}},"status":{{"syncStatus":"InProgress","interfaces":[{interfaces}]}}}},"requestReceivedTimestamp":"2026-11-16T{:02}:{:02}:{:02}.064935Z","stageTimestamp":"2026-11-16T{:02}:{:02}:{:02}.083707Z","annotations":{{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding"}}}}"#,
        second / 3600 % 24,
        second / 60 % 60,
        second % 60,
        second / 3600 % 24,
        second / 60 % 60,
        second % 60,
    );
}

/// What fills the logs of most clusters: a read at level Metadata.
fn read(number: usize, out: &mut String) {
    let _ = writeln!(
        out,
        r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"40a57b18-ddc6-409f-8fad-{number:012x}","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication","verb":"get","user":{{"username":"system:kube-scheduler","groups":["system:authenticated"]}},"sourceIPs":["10.0.0.7"],"userAgent":"kube-scheduler/v1.34.1 (linux/amd64) kubernetes/abc/leader-election","objectRef":{{"resource":"configmaps","namespace":"kube-system","name":"extension-apiserver-authentication","apiVersion":"v1"}},"responseStatus":{{"metadata":{{}},"code":200}},"requestReceivedTimestamp":"2026-11-16T20:23:05.064935Z","stageTimestamp":"2026-11-16T20:23:05.083707Z","annotations":{{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}}}}"#
    );
}

/// So many MB, of which every `one_in`-th line is a status write.
fn log(megabytes: usize, one_in: usize) -> String {
    let mut text = String::new();
    for number in 0_usize.. {
        if text.len() >= megabytes * 1_000_000 {
            break;
        }
        if number.is_multiple_of(one_in) { write(number, &mut text) } else { read(number, &mut text) }
    }
    text
}

/// The best of five, in MB of uncompressed log per second.
fn rate(text: &str, mut work: impl FnMut()) -> f64 {
    let time = (0..5)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .expect("five runs");
    text.len() as f64 / 1e6 / time.as_secs_f64()
}

fn scan(input: &[u8]) -> Report {
    let mut scan = LogScan::new(LogScope::default());
    each_line(input, |line| scan.line(line)).expect("a log");
    Report::of(&scan, Vec::new(), 10)
}

fn nadmit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(["audit-log", "--output", "json"]);
    command
}

fn main() {
    println!(
        "| log, one core | lines only | nadmit | nadmit, gzip | serde_json::Value per line | nadmit : Value |\n|---|---|---|---|---|---|"
    );
    for (name, one_in) in [("status writes only", 1), ("one write in twenty lines", 20)] {
        let text = log(64, one_in);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory");
        let compressed = encoder.finish().expect("memory");
        let lines = rate(&text, || {
            let mut count = 0;
            each_line(text.as_bytes(), |_| count += 1).expect("a log");
            black_box(count);
        });
        let nadmit = rate(&text, || drop(black_box(scan(text.as_bytes()))));
        let gzip = rate(&text, || drop(black_box(scan(&compressed))));
        let value = rate(&text, || {
            for line in text.lines() {
                black_box(serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
            }
        });
        println!(
            "| {name} | {lines:.0} MB/s | {nadmit:.0} MB/s | {gzip:.0} MB/s | {value:.0} MB/s | {:.1} |",
            nadmit / value
        );
    }
    println!("\n| the binary over a file | time | MB/s | peak memory |\n|---|---|---|---|");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    let part = log(100, 1);
    let mut file = fs::File::create(&path).expect("a file");
    let mut size = 0;
    for parts in [1, 9] {
        for _ in 0..parts {
            file.write_all(part.as_bytes()).expect("room");
            size += part.len();
        }
        row(&format!("{} MB", size / 1_000_000), size, &[&path]);
    }
    // Every third line is another server's.
    let servers = [0, 1, 2].map(|server| {
        let path = directory.path().join(format!("server-{server}.log"));
        let lines: Vec<_> = part.lines().skip(server).step_by(3).collect();
        fs::write(&path, lines.join("\n") + "\n").expect("room");
        path
    });
    row("100 MB of three servers", part.len(), &servers.each_ref());
}

/// What the binary takes for these files, the best of three.
fn row(name: &str, size: usize, files: &[&PathBuf]) {
    let (time, peak) = (0..3).map(|_| run(nadmit().args(files))).min().expect("three runs");
    println!(
        "| {name} | {:.2} s | {:.0} | {:.1} MiB |",
        time.as_secs_f64(),
        size as f64 / 1e6 / time.as_secs_f64(),
        peak as f64 / (1 << 20) as f64
    );
}
