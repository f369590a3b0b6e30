//! The chart of a release, read by the real Helm.

use std::path::Path;
use std::process::Command;

use crate::cluster::bin;

fn succeeds(mut command: Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn helm_reads_the_chart_of_a_release() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().unwrap();
    let (program, files) = (directory.path().join("nadmit"), directory.path().join("files"));
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_nadmit"));
    succeeds(strip);
    let mut dry_run = Command::new(root.join("deploy/release/dry-run"));
    dry_run.arg("--any-linkage").arg(&files).arg(&program).env("CARGO_NET_OFFLINE", "true");
    succeeds(dry_run);
    let helm = |verb: &[&str], chart: &Path| {
        let mut command = Command::new(bin().join("helm"));
        command.args(verb).arg(chart).env("HOME", directory.path());
        succeeds(command)
    };
    let archive = files.join(format!("nadmit-chart-{}.tgz", env!("CARGO_PKG_VERSION")));
    for verb in [&["show", "all"][..], &["template", "nadmit", "--kube-version", "1.34.0"]] {
        assert_eq!(helm(verb, &archive), helm(verb, &root.join("deploy/chart")), "{verb:?}");
    }
}
