//! What `cargo package` takes along suffices to build: each file that the code includes is in it. Nothing is compiled for that.

use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The entries of `include` in Cargo.toml, from the root.
fn included() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let line = manifest.lines().find(|line| line.starts_with("include = [")).unwrap();
    line.split('"').skip(1).step_by(2).map(|entry| entry.strip_prefix('/').unwrap().to_owned()).collect()
}

/// The files below a directory that hold code.
fn code(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// A path without `..`, relative to the repository.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.strip_prefix(root()).unwrap().components() {
        if part == Component::ParentDir {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts
}

/// The texts of the calls of the macros that include files, in a file of code.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    let behind = |name: &'static str| text.split(name).skip(1);
    behind("include_str!(").chain(behind("include_bytes!(")).map(|rest| rest.split(';').next().unwrap_or(rest))
}

#[test]
fn every_included_file_is_in_the_package() {
    let included = included();
    let is_packed = |path: &Path| included.iter().any(|entry| path.starts_with(entry));
    for entry in &included {
        assert!(root().join(entry).exists(), "Cargo.toml includes /{entry}, which does not exist");
    }
    let mut files = Vec::new();
    code(&root().join("src"), &mut files);
    let mut checked = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for call in calls(&text) {
            let Some(name) = call.split('"').nth(1) else { continue };
            // With `concat!`, the name begins at the root, and only its directory is known here.
            let path = if call.starts_with("concat!") {
                let name = call.split('"').find(|part| part.starts_with('/')).unwrap();
                root().join(name.trim_start_matches('/'))
            } else {
                file.parent().unwrap().join(name)
            };
            let path = normal(&path);
            assert!(is_packed(&path), "{} includes {}, which is not in the package", file.display(), path.display());
            assert!(root().join(&path).exists(), "{}: {} does not exist", file.display(), path.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} files");
    for needed in ["src/main.rs", "src/lib.rs", "README.md", "LICENSE", "Cargo.lock"] {
        assert!(is_packed(Path::new(needed)), "{needed}");
    }
    assert!(!is_packed(Path::new("tests/tests.rs")) && !is_packed(Path::new("deploy/chart/values.yaml")));
}
