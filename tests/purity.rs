//! The pure modules do no I/O.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The clippy lint forbids functions by name; this test finds I/O that the lint has no name for.
#[test]
fn pure_modules_have_no_io() {
    let forbidden = [
        "async ",
        "tokio",
        "kube::",
        "std::fs",
        "std::env",
        "std::process",
        "std::thread",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "SystemTime",
        "Instant::",
    ];
    let mut read = 0;
    let modules = ["audit", "audit_log", "cni", "deploy", "json", "output", "policy", "resources", "review", "yaml"];
    for module in modules {
        let mut files = sources(&root().join("src").join(module));
        files.push(root().join("src/visible.rs"));
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            for word in forbidden {
                assert!(!text.contains(word), "{} has `{word}`", file.display());
            }
            read += 1;
        }
    }
    assert!(read > 20, "only {read} files checked");
}
