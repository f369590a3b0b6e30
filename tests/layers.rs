//! Modules depend only on lower layers, which CONTRIBUTING.md and src/lib.rs list in the same order; no type name is defined twice, and no
//! file is long.

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
/// The layers inside `audit`.
const AUDIT: &[&[&str]] = &[
    &["explain", "map"],
    &["pod"],
    &["chain"],
    &["context"],
    &["nad_writers"],
    &["stored_object"],
    &["finding_index", "rewrites"],
];

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

/// What stands in a path for a list: `{` in `crate::{a, b}`.
const LIST: &str = "{";

/// The names of a path, up to a list; none of what is no path.
fn path_names(mut rest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    loop {
        if rest.starts_with(LIST) {
            names.push(LIST);
            return names;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        names.extend(Some(name).filter(|name| !name.is_empty()));
        match behind.strip_prefix("::") {
            Some(next) if !name.is_empty() => rest = next,
            _ => return names,
        }
    }
}

/// The paths in a line of a module, from the root of the crate on: what follows `crate::`, and what `super::` leads to.
fn paths<'l>(line: &'l str, module: &[&'l str]) -> Vec<Vec<&'l str>> {
    let is_start = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let of_crate = line.match_indices("crate::").filter(|(at, _)| is_start(*at));
    let mut paths: Vec<Vec<&str>> = of_crate.map(|(at, start)| path_names(&line[at + start.len()..])).collect();
    for (at, _) in line.match_indices("super::").filter(|(at, _)| is_start(*at)) {
        let (mut rest, mut base) = (&line[at..], module);
        while let Some(next) = rest.strip_prefix("super::") {
            rest = next;
            base = &base[..base.len().saturating_sub(1)];
        }
        paths.push(base.iter().copied().chain(path_names(rest)).collect());
    }
    paths
}

/// The path of the module in a file.
fn module_of(relative: &Path) -> Vec<&str> {
    let names = relative.iter().map(|name| name.to_str().unwrap());
    let mut module: Vec<&str> = names.map(|name| name.strip_suffix(".rs").unwrap_or(name)).collect();
    if module.last().is_some_and(|last| ["lib", "main", "mod"].contains(last)) {
        module.pop();
    }
    module
}

/// What a line of a module uses against the order of the layers inside `root`, and how many other modules there it uses.
fn upward_in(line: &str, module: &[&str], root: &[&str], layers: &[&[&str]]) -> (Vec<String>, usize) {
    let (mut wrong, mut uses) = (Vec::new(), 0);
    let Some(&from) = module.strip_prefix(root).and_then(<[&str]>::first) else { return (wrong, uses) };
    let own = rank(layers, from).unwrap_or_else(|| panic!("{root:?} {from} has no layer"));
    for path in paths(line, module) {
        let Some(&to) = path.strip_prefix(root).and_then(<[&str]>::first).filter(|to| **to != from) else { continue };
        if to == LIST {
            wrong.push("names several modules at once: write one `use` for each".to_owned());
        }
        let Some(below) = rank(layers, to) else { continue };
        uses += 1;
        if below <= own {
            wrong.push(format!("uses {to}"));
        }
    }
    (wrong, uses)
}

fn upward(root: &[&str], layers: &[&[&str]]) -> (Vec<String>, usize) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut wrong, mut uses) = (Vec::new(), 0);
    for file in sources(&src) {
        let module = module_of(file.strip_prefix(&src).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            let (upward, used) = upward_in(line, &module, root, layers);
            uses += used;
            wrong.extend(upward.iter().map(|how| format!("{}:{number} {how}: {}", file.display(), line.trim())));
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
    let all: [(&[&str], _, _); 3] = [(&[], LAYERS, 200), (&["cluster"], CLUSTER, 50), (&["audit"], AUDIT, 15)];
    for (root, layers, at_least) in all {
        let (wrong, uses) = upward(root, layers);
        assert!(wrong.is_empty(), "uses of a higher layer:\n{}", wrong.join("\n"));
        assert!(uses > at_least, "only {uses} uses of other modules found in {root:?}");
    }
}

#[test]
fn every_way_to_name_a_higher_module_is_seen() {
    let cluster: &[&str] = &["cluster"];
    for (module, root, line, is_wrong) in [
        (&["policy", "judge"] as &[&str], &[] as &[&str], "use crate::review::Review;", true),
        (&["policy", "judge"], &[], "let review = crate::review::read(crate::json::parse(text));", true),
        (&["policy", "judge"], &[], "use crate::json::Value;", false),
        (&["policy", "judge"], &[], "use crate::policy::{Action, Facts};", false),
        (&["policy", "judge"], &[], "use crate::{json, review};", true),
        (&["policy", "judge"], &[], "use super::super::review::Review;", true),
        (&["policy", "judge"], &[], "use super::super::{json, review};", true),
        (&["policy", "judge"], &[], "use super::super::json::Value;", false),
        (&["policy", "rules", "pod"], &[], "use super::super::finding::Findings;", false),
        (&["policy", "rules", "pod"], &[], "use super::super::super::review::Review;", true),
        (&["policy"], &[], "use super::review::Review;", true),
        (&["policy"], &[], "pub(super) use judge::{Subject, judge};", false),
        (&["cluster", "cache", "live"], cluster, "use crate::cluster::leader::audit::Auditor;", true),
        (&["cluster", "cache", "live"], cluster, "use super::super::leader::audit::Auditor;", true),
        (&["cluster", "cache", "live"], cluster, "use crate::cluster::{cache, client};", true),
        (&["cluster", "cache", "live"], cluster, "use super::{Caches, prefix};", false),
        (&["cluster"], cluster, "pub use doctor::canary::Canary;", false),
    ] {
        let layers = if root.is_empty() { LAYERS } else { CLUSTER };
        let (wrong, _) = upward_in(line, module, root, layers);
        assert_eq!(!wrong.is_empty(), is_wrong, "{module:?}: {line}");
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

/// The Rust files, with their tests, the other tests, the benchmarks and the fuzz targets.
fn all_rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for directory in ["src", "tests", "benches", "fuzz/fuzz_targets"] {
        every_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), &mut files);
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(files.len() > 550, "only {} files found", files.len());
    files
}

#[test]
fn no_type_name_is_defined_twice() {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for file in all_rust_files() {
        let text = fs::read_to_string(&file).unwrap();
        for (at, line) in text.lines().enumerate() {
            if let Some(name) = defined(line) {
                found.entry(name.to_owned()).or_default().push(format!("{}:{}", file.display(), at + 1));
            }
        }
    }
    assert!(found.len() > 400, "only {} types found", found.len());
    found.retain(|_, places| places.len() > 1);
    assert!(found.is_empty(), "one name, several types: {found:#?}");
}

#[test]
fn no_file_has_more_than_400_lines() {
    for file in all_rust_files() {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 400, "{} has {lines} lines: divide it by subject", file.display());
    }
}

/// What is between the first backticks of each row of a table whose first cell has them.
fn first_cells<'t>(text: &'t str, start: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| line.strip_prefix(start)?.split('|').next())
}

#[test]
fn every_list_of_the_modules_has_the_order_of_the_layers() {
    let read = |path| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let modules: Vec<&str> = LAYERS.concat();
    let spans = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let lib = read("src/lib.rs");
    let of_lib: Vec<String> = first_cells(&lib, "//! | ").flat_map(spans).collect();
    assert_eq!(of_lib, modules, "the table of src/lib.rs (left) and the layers (right)");
    let inside: Vec<&str> = CLUSTER.concat();
    let row = lib.lines().find(|line| line.starts_with("//! | [`cluster`]")).unwrap();
    let linked: Vec<&str> = row.split("](cluster::").skip(1).filter_map(|link| link.split(')').next()).collect();
    assert_eq!(linked, inside, "the row of `cluster` in src/lib.rs (left) and its layers (right)");
    let cluster = read("src/cluster/mod.rs");
    let of_cluster: Vec<String> = first_cells(&cluster, "//! | ").flat_map(spans).collect();
    assert_eq!(of_cluster, inside, "the table of src/cluster/mod.rs (left) and its layers (right)");
    let audit = read("src/audit/mod.rs");
    let of_audit: Vec<String> = first_cells(&audit, "//! | ").flat_map(spans).collect();
    assert_eq!(of_audit, AUDIT.concat(), "the table of src/audit/mod.rs (left) and its layers (right)");
    let contributing = read("CONTRIBUTING.md");
    let (_, table) = contributing.split_once("| where | what | pure |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let listed: Vec<String> = first_cells(table, "| ").flat_map(spans).collect();
    let expected = modules.iter().flat_map(|module| match *module {
        "cluster" => inside.iter().map(|part| format!("src/cluster/{part}/")).collect(),
        "supervise" | "visible" => vec![format!("src/{module}.rs")],
        other => vec![format!("src/{other}/")],
    });
    assert_eq!(listed, expected.collect::<Vec<_>>(), "the table of CONTRIBUTING.md (left) and the layers (right)");
}

/// Whoever adds a rule finds the file for it in CONTRIBUTING.md.
#[test]
fn every_file_of_rules_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let contributing = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let (_, list) = contributing.split_once("\n- **A rule** ").unwrap();
    let (list, _) = list.split_once("\n- **").unwrap();
    let rules = root.join("src/policy/rules");
    let mut checked = 0;
    for file in sources(&rules) {
        if fs::read_to_string(&file).unwrap().lines().any(|line| line.starts_with("rule! {")) {
            let name = file.strip_prefix(&rules).unwrap().iter().next().unwrap().to_str().unwrap();
            let name = name.strip_suffix(".rs").map_or_else(|| format!("`{name}/`"), |name| format!("`{name}`"));
            assert!(list.contains(&name), "CONTRIBUTING.md does not name {}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} files with rules found");
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
