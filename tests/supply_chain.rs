//! The image, and the dependencies of nadmit: licences, sources, bans and duplicates, by the lists in deny.toml. `make deny` checks more
//! with cargo-deny; these tests run each time, and install nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::not_run::not_run;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The entries of a list in deny.toml that has one entry per line.
fn listed(key: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let (_, after) = text.split_once(&format!("\n{key} = [\n")).unwrap_or_else(|| panic!("no list `{key}`"));
    let (list, _) = after.split_once("\n]").unwrap();
    let entry = |line: &str| line.split('"').nth(1).unwrap_or_else(|| panic!("`{key}`: {line}")).to_owned();
    list.lines().map(entry).collect()
}

/// A package: its name, its version, its licence, and its source if that is not crates.io.
struct Package {
    name: String,
    version: String,
    licence: String,
    elsewhere: Option<String>,
}

/// The packages that are built for this platform, by these kinds of dependencies.
fn packages(edges: &str) -> Vec<Package> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--offline", "--prefix=none", "--format={p}|{l}", "--edges", edges]);
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: BTreeSet<&str> =
        text.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty()).collect();
    let package = |line: &&str| {
        let (package, licence) = line.split_once('|').unwrap();
        let package = package.replace(" (proc-macro)", "");
        let mut words = package.splitn(3, ' ').map(str::to_owned);
        let (name, version) = (words.next().unwrap(), words.next().unwrap().replace('v', ""));
        Package { name, version, licence: licence.to_owned(), elsewhere: words.next() }
    };
    let packages: Vec<_> = lines.iter().map(package).collect();
    assert!(packages.len() > 100, "only {} packages", packages.len());
    packages
}

/// Whether the allowed licences satisfy a licence expression: one side of `OR`, both sides of `AND`. Parentheses hold one expression.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.trim().replace('/', " OR ");
    let split = |by: &str| -> Option<(String, String)> {
        let mut depth = 0_i32;
        expression.char_indices().find_map(|(at, letter)| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            let rest = expression[at..].strip_prefix(by).filter(|_| depth == 0)?;
            Some((expression[..at].to_owned(), rest.to_owned()))
        })
    };
    if let Some((one, other)) = split(" OR ") {
        return is_allowed(&one, allowed) || is_allowed(&other, allowed);
    }
    if let Some((one, other)) = split(" AND ") {
        return is_allowed(&one, allowed) && is_allowed(&other, allowed);
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner, allowed),
        None => allowed.contains(expression.trim()),
    }
}

#[test]
fn license_expressions_are_parsed() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "ISC".to_owned()]);
    for (expression, want) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("ISC AND (GPL-3.0 OR MIT)", true),
        ("ISC AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Zlib", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), want, "{expression}");
    }
}

#[test]
fn every_dependency_is_allowed() {
    let (licences, banned, twice) = (listed("allow"), listed("deny"), listed("skip"));
    let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
    for Package { name, version, licence, elsewhere } in packages("normal,build,dev") {
        let is_clarified = deny.contains(&format!("[[licenses.clarify]]\ncrate = \"{name}\"\n"));
        assert!(is_clarified || is_allowed(&licence, &licences), "{name} {version}: `{licence}`");
        assert!(!banned.contains(&name), "{name} is banned");
        assert!(elsewhere.is_none() || name == "nadmit", "{name}: from {elsewhere:?}");
    }
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Package { name, version, .. } in packages("normal,build") {
        versions.entry(name).or_default().push(version);
    }
    let mut unused = twice.clone();
    for (name, found) in versions.iter().filter(|(_, found)| found.len() > 1) {
        let is_known = |version: &&String| twice.contains(&format!("{name}@{version}"));
        assert!(
            found.iter().filter(is_known).count() + 1 >= found.len(),
            "{name} is built in several versions: {found:?}"
        );
        unused.retain(|entry| !found.iter().any(|version| *entry == format!("{name}@{version}")));
    }
    assert!(unused.is_empty(), "listed in `skip`, but built in one version only: {unused:?}");
}

/// The SBOM names each crate of the lock file that is linked, with its checksum, and is the same each time.
#[test]
fn the_sbom_lists_what_is_linked() {
    if Command::new("python3").arg("--version").output().is_err() {
        not_run("the SBOM", "Install python3.");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let file = directory.path().join(name);
        let mut command = Command::new(root().join("deploy/sbom"));
        command.arg("x86_64-unknown-linux-gnu").arg(&file).current_dir(root());
        let output = command.env("CARGO", env!("CARGO")).env("CARGO_NET_OFFLINE", "true").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(file).unwrap()
    };
    let text = make("one");
    assert_eq!(text, make("two"));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["bomFormat"], &document["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let parts = document["components"].as_array().unwrap();
    let named = |name: &str| parts.iter().find(|part| part["name"] == name);
    for name in ["rustls", "tokio", "kube-client", "libyaml-safer"] {
        let part = named(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(part["hashes"][0]["content"].as_str().map(str::len), Some(64), "{part}");
    }
    // Tests and build scripts are not in the binary.
    assert!(named("insta").is_none() && named("criterion").is_none() && named("cmake").is_none());
}

/// The image has the same bytes each time, and each engine finds the name that pods ask for. A kubelet completes `nadmit:1` like this.
#[test]
fn the_image_is_reproducible_and_has_its_full_name() {
    let directory = tempfile::tempdir().unwrap();
    // The beginnings of programs for both architectures.
    let [amd64, arm64] = [("amd64", 0x3e), ("arm64", 0xb7)].map(|(name, machine)| {
        let path = directory.path().join(name);
        fs::write(&path, [&[0; 18][..], &[machine, 0], name.as_bytes()].concat()).unwrap();
        path
    });
    let make = |name: &str, file: &str| {
        let file = directory.path().join(file);
        let mut command = Command::new(root().join("deploy/image"));
        command.arg(&file).arg(name).args([&amd64, &arm64]).env("SOURCE_DATE_EPOCH", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        file
    };
    let member = |archive: &Path, name: &str| -> Value {
        let output = Command::new("tar").arg("-xOf").arg(archive).arg(name).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(fs::read(make("nadmit:1", "one")).unwrap(), fs::read(make("nadmit:1", "two")).unwrap());
    for (name, full) in [
        ("nadmit:1", "docker.io/library/nadmit:1"),
        ("team/nadmit:1", "docker.io/team/nadmit:1"),
        ("quay.example/team/nadmit:1", "quay.example/team/nadmit:1"),
        ("registry:5000/nadmit:1", "registry:5000/nadmit:1"),
        ("localhost/nadmit:1", "localhost/nadmit:1"),
    ] {
        let archive = make(name, "named");
        let annotations = &member(&archive, "index.json")["manifests"][0]["annotations"];
        assert_eq!(annotations["io.containerd.image.name"], full);
        assert_eq!(annotations["org.opencontainers.image.ref.name"], "1");
        assert_eq!(member(&archive, "manifest.json")[0]["RepoTags"][0], name);
    }
    // Each architecture has its own program.
    let archive = make("nadmit:1", "both");
    let blob = |archive: &Path, digest: &Value| {
        let digest = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
        member(archive, &format!("blobs/sha256/{digest}"))
    };
    let list = blob(&archive, &member(&archive, "index.json")["manifests"][0]["digest"]);
    let mut layers = BTreeSet::new();
    for (index, architecture) in ["amd64", "arm64"].into_iter().enumerate() {
        let entry = &list["manifests"][index];
        assert_eq!(entry["platform"]["architecture"], architecture);
        let manifest = blob(&archive, &entry["digest"]);
        assert_eq!(blob(&archive, &manifest["config"]["digest"])["architecture"], architecture);
        layers.insert(manifest["layers"][0]["digest"].as_str().unwrap().to_owned());
    }
    assert_eq!(layers.len(), 2);
    fs::write(&amd64, "not a program").unwrap();
    let mut command = Command::new(root().join("deploy/image"));
    assert!(!command.arg(directory.path().join("none")).arg("nadmit:1").arg(&amd64).output().unwrap().status.success());
}

/// The build in the Dockerfile has every file that it needs, and ends with the program, the user and the command of `make image`.
#[test]
fn the_dockerfile_copies_what_the_build_needs() {
    let text = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let (build, image) = text.split_once("FROM scratch\n").unwrap();
    assert_eq!(
        image,
        "COPY --from=build /nadmit/target/release/nadmit /nadmit\nUSER 65532:65532\nENTRYPOINT [\"/nadmit\"]\n"
    );
    let copy = tempfile::tempdir().unwrap();
    for line in build.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let mut paths: Vec<&str> = line.split(' ').collect();
        let to = paths.pop().unwrap();
        for path in paths {
            let mut command = Command::new("cp");
            command.arg("-R").arg(root().join(path)).arg(copy.path().join(to));
            assert!(command.status().unwrap().success(), "{line}");
        }
    }
    let command = build.lines().filter_map(|line| line.strip_prefix("RUN ")).next_back().unwrap();
    assert_eq!(command, "cargo auditable build --release --locked --bin nadmit");
    // The dependencies are those of this build, and not compiled again.
    let mut command = Command::new(env!("CARGO"));
    command.args(["check", "--locked", "--offline", "--bin", "nadmit"]).current_dir(copy.path());
    let target = Path::new(env!("CARGO_BIN_EXE_nadmit")).ancestors().nth(2).unwrap();
    let output = command.env("CARGO_TARGET_DIR", target).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
