//! `nadmit check` over thousands of files: time, and memory as it grows with them.
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

use std::fs;
use std::path::Path;
use std::process::Command;

use process::run;

/// Every other file is a network, the rest are NADs that networks own.
fn write_manifests(directory: &Path, count: usize) {
    for number in 0..count {
        let (name, namespace) = (format!("telco-net-{:06}", number / 2), format!("apps-{:03}", number % 50));
        let text = if number % 2 == 0 {
            format!(
                "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwork\nmetadata:\n  name: {name}\n  namespace: openshift-sriov-network-operator\nspec:\n  \
                 resourceName: cx7anl244\n  networkNamespace: {namespace}\n  vlan: 100\n  ipam: |\n    {{\n      \"type\": \"whereabouts\",\n      \
                 \"range\": \"10.20.0.0/24\"\n    }}\n"
            )
        } else {
            format!(
                "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  annotations:\n    \
                 k8s.v1.cni.cncf.io/resourceName: openshift.io/cx7anl244\nspec:\n  config: '{{\n    \"cniVersion\": \"1.0.0\",\n    \"type\": \"sriov\",\n    \
                 \"vlan\": 100,\n    \"ipam\": {{\"type\": \"host-local\", \"subnet\": \"10.56.217.0/24\"}}\n  }}'\n"
            )
        };
        fs::write(directory.join(format!("{number:06}.yaml")), text).expect("a file");
    }
}

fn nadmit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(["check", "--output", "json"]);
    command
}

fn main() {
    println!("| files | time | files/s | peak memory |\n|---|---|---|---|");
    let mut measured = Vec::new();
    for count in [10_000, 40_000] {
        let directory = tempfile::tempdir().expect("a directory");
        write_manifests(directory.path(), count);
        let (time, peak) = (0..3).map(|_| run(nadmit().arg(directory.path()))).min().expect("three runs");
        println!(
            "| {count} | {:.2} s | {:.0} | {:.1} MiB |",
            time.as_secs_f64(),
            count as f64 / time.as_secs_f64(),
            peak as f64 / (1 << 20) as f64
        );
        measured.push((count as u64, peak));
    }
    if let [(few, small), (many, large)] = measured.as_slice() {
        println!("\n{} bytes for each further network or NAD", large.saturating_sub(*small) / (many - few));
    }
}
