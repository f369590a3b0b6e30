//! The pure rooms stay pure, and what is generated stays current.

use std::fs;
use std::path::{Path, PathBuf};

use nadmit::output::reference;
use nadmit::policy::Policy;

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

/// The lint catches calls by name; this catches what it has no name for.
#[test]
fn pure_rooms_know_no_outside() {
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
    for room in ["cni", "json", "yaml", "resources", "policy", "output"] {
        let room = root().join("src").join(room);
        let files = if room.is_dir() { sources(&room) } else { vec![room.with_extension("rs")] };
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for word in forbidden {
                assert!(!text.contains(word), "{} has `{word}`", file.display());
            }
            read += 1;
        }
    }
    assert!(read > 20, "only {read} files looked at");
}

fn is_current(file: &str, want: &str) {
    let found = fs::read_to_string(root().join(file)).unwrap_or_default();
    assert!(found == want, "{file} is not what the code generates; run `make generate`");
}

#[test]
fn the_rule_reference_is_current() {
    is_current("docs/rules.md", &reference::markdown());
}

#[test]
fn the_policy_schema_is_current() {
    is_current("docs/policy.schema.json", &format!("{:#}\n", Policy::schema()));
}
