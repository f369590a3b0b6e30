//! Images for containerd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::files::{BUSYBOX, SOCKET};
use crate::harness::run;
use crate::processes::wait;

/// Loads an archive on the node with these files. containerd may still be starting.
pub fn import(root: &Path, archive: &Path) {
    let socket = root.join(SOCKET.trim_start_matches('/'));
    wait("containerd to load an image", || {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(&socket).args(["--namespace", "k8s.io", "images", "import"]).arg(archive);
        run(command).status.success().then_some(())
    });
}

/// Gives the image of nadmit another name.
pub fn tag(name: &str) {
    let mut command = Command::new("ctr");
    let image = format!("docker.io/library/nadmit:{}", env!("CARGO_PKG_VERSION"));
    command.args(["--address", SOCKET, "--namespace", "k8s.io", "images", "tag", &image, name]);
    assert!(run(command).status.success());
}

/// The names of all images.
pub fn images() -> Vec<String> {
    let mut command = Command::new("ctr");
    command.args(["--address", SOCKET, "--namespace", "k8s.io", "images", "list", "--quiet"]);
    String::from_utf8(run(command).stdout).unwrap().lines().map(str::to_owned).collect()
}

/// An image with nothing but busybox, which sleeps unless it is told otherwise.
pub fn busybox_image(dir: &Path) -> PathBuf {
    let work = dir.join("busybox");
    let root = work.join("root/bin");
    fs::create_dir_all(&root).unwrap();
    fs::copy("/bin/busybox", root.join("busybox")).unwrap();
    for applet in ["sh", "sleep", "ip", "wget", "cat"] {
        std::os::unix::fs::symlink("busybox", root.join(applet)).unwrap();
    }
    tar(&work.join("root"), &work.join("layer.tar"));
    let mut sum = Command::new("sha256sum");
    sum.arg(work.join("layer.tar"));
    let sum = String::from_utf8(run(sum).stdout).unwrap();
    let layer = format!("sha256:{}", sum.split(' ').next().unwrap());
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }, "os": "linux",
        "config": { "Entrypoint": ["/bin/sleep", "2147483647"] },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
    });
    let image = work.join("image");
    fs::create_dir_all(&image).unwrap();
    fs::rename(work.join("layer.tar"), image.join("layer.tar")).unwrap();
    fs::write(image.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{ "Config": "config.json", "RepoTags": [BUSYBOX], "Layers": ["layer.tar"] }]);
    fs::write(image.join("manifest.json"), manifest.to_string()).unwrap();
    let archive = work.join("busybox.tar");
    tar(&image, &archive);
    archive
}

fn tar(directory: &Path, file: &Path) {
    let mut command = Command::new("tar");
    command.arg("-C").arg(directory).arg("-cf").arg(file).arg(".");
    assert!(run(command).status.success());
}
