//! Modules depend only on lower layers, and no type name is defined twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// From the entry points down. A module may use the modules in the lines below it, and none in its own line.
const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["server"],
    &["cluster"],
    &["audit", "audit_log"],
    &["deploy"],
    &["supervise"],
    &["manifests"],
    &["tls"],
    &["telemetry"],
    &["denials"],
    &["output"],
    &["review"],
    &["policy"],
    &["resources"],
    &["cni"],
    &["visible"],
    &["yaml"],
    &["json"],
];
/// The layers inside `cluster`.
const CLUSTER: &[&[&str]] = &[&["map"], &["leader", "doctor"], &["identity"], &["cache"], &["client"]];

fn rank(layers: &[&[&str]], module: &str) -> Option<usize> {
    layers.iter().position(|layer| layer.contains(&module))
}

fn every_file(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            every_file(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The Rust files that are not tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    every_file(directory, &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs"));
    files
}

/// The lines of a file without comments and without tests, which are at its end.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    // `mod tests;` may be anywhere; `mod tests {` starts the tests at the end.
    let is_end = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(is_end).unwrap_or(lines.len());
    let code = lines.into_iter().take(end).enumerate();
    code.map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()))
}

/// The name after each occurrence of a prefix: `cluster` in `crate::cluster::client`.
fn named<'l>(line: &'l str, prefix: &'l str) -> impl Iterator<Item = &'l str> {
    line.match_indices(prefix).map(move |(at, _)| {
        let rest = &line[at + prefix.len()..];
        &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
    })
}

fn upward(root: &str, prefix: &str, layers: &[&[&str]]) -> (Vec<String>, usize) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let (mut wrong, mut uses) = (Vec::new(), 0);
    for file in sources(&src) {
        let relative = file.strip_prefix(&src).unwrap();
        let first = relative.iter().next().unwrap().to_str().unwrap();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        if ["lib", "main", "mod"].contains(&module) {
            continue;
        }
        let from = rank(layers, module).unwrap_or_else(|| panic!("{root}/{module} has no layer"));
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            for to in named(line, prefix).filter(|to| *to != module) {
                let Some(below) = rank(layers, to) else { continue };
                uses += 1;
                if below <= from {
                    wrong.push(format!("{}:{number} uses {to}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    (wrong, uses)
}

/// `src/` is built without the tests, and refers to none of their files.
#[test]
fn no_source_depends_on_the_tests() {
    let mut files = Vec::new();
    every_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for (at, line) in text.lines().enumerate() {
            assert!(!line.contains("tests/"), "{}:{} names a path in tests/: {line}", file.display(), at + 1);
        }
    }
    assert!(files.len() > 300, "only {} files checked", files.len());
}

#[test]
fn no_module_uses_one_above_it() {
    for (root, prefix, layers, at_least) in
        [("src", "crate::", LAYERS, 200), ("src/cluster", "crate::cluster::", CLUSTER, 50)]
    {
        let (wrong, uses) = upward(root, prefix, layers);
        assert!(wrong.is_empty(), "uses of a higher layer:\n{}", wrong.join("\n"));
        assert!(uses > at_least, "only {uses} uses of other modules found in {root}");
    }
}

/// The type that a line defines. Indented associated types do not count.
fn defined(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => code.strip_prefix("pub ").unwrap_or(code),
    };
    let (keyword, rest) = code.split_once(' ')?;
    let is_type = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    is_type.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()).flatten()
}

#[test]
fn no_type_name_is_defined_twice() {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            if let Some(name) = defined(line) {
                found.entry(name.to_owned()).or_default().push(format!("{}:{number}", file.display()));
            }
        }
    }
    assert!(found.len() > 300, "only {} types found", found.len());
    found.retain(|_, places| places.len() > 1);
    assert!(found.is_empty(), "one name, several types: {found:#?}");
}

/// The lines that `is_match` accepts, outside of the file or directory where they belong, and the number of those inside.
fn outside(home: &str, is_match: impl Fn(&str) -> bool) -> (Vec<String>, usize) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut outside, mut inside) = (Vec::new(), 0);
    for file in sources(&src) {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text).filter(|(_, line)| is_match(line)) {
            if file.starts_with(src.join(home)) {
                inside += 1;
            } else {
                outside.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    (outside, inside)
}

/// One file builds all paths of the API server, from checked names.
#[test]
fn api_paths_are_made_in_one_place() {
    let (wrong, inside) = outside("cluster/client/path.rs", |line| line.contains("\"/api"));
    assert!(wrong.is_empty(), "API paths in other files:\n{}", wrong.join("\n"));
    assert!(inside > 0, "no API path found");
}

/// Review, check, audit and doctor look facts up in different ways, but one module assembles them.
#[test]
fn facts_about_other_objects_are_gathered_in_one_place() {
    let fields = ["named_owner", "networks_here", "knows_networks", "claimants", "claimants_read", "nad_here"];
    let is_set = |line: &str| {
        let code = line.trim_start();
        fields.iter().any(|field| {
            let set = [format!("{field}: "), format!(".{field} = ")].iter().any(|set| code.contains(set.as_str()));
            set && !["pub ", "let "].iter().any(|other| code.starts_with(other))
        })
    };
    let (wrong, inside) = outside("policy/facts", is_set);
    assert!(wrong.is_empty(), "facts are set in other modules:\n{}", wrong.join("\n"));
    assert!(inside > 4, "only {inside} found in `policy/facts`");
}
