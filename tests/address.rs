//! The address of the repository has one place, `repository` in Cargo.toml. Everything else that names it has the same owner; `make
//! generate` writes it there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What comes before the owner wherever the address is named.
const BEFORE: [&str; 5] = ["//github.com/", "ghcr.io/", "uses: ", "--repo ", "raw.githubusercontent.com/"];
/// And what comes after it.
const AFTER: [&str; 2] = ["/nadmit", "/charts/nadmit"];

/// The owner in the address of Cargo.toml.
fn owner() -> &'static str {
    let path = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://github.com/");
    path.and_then(|path| path.strip_suffix("/nadmit"))
        .expect("`repository` in Cargo.toml: https://github.com/OWNER/nadmit")
}

/// The text with that owner in each address of nadmit, and how many addresses it has.
fn with_owner(text: &str, owner: &str) -> (String, usize) {
    let mut new = String::new();
    let mut rest = text;
    let mut count = 0;
    while let Some((at, before)) =
        BEFORE.iter().filter_map(|before| Some((rest.find(before)? + before.len(), *before))).min_by_key(|(at, _)| *at)
    {
        let (head, tail) = rest.split_at(at);
        new += head;
        let end = tail.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(tail.len());
        let (found, after) = tail.split_at(end);
        if AFTER.iter().any(|suffix| after.starts_with(suffix)) {
            count += 1;
            // Names in a registry are lower-case; the placeholder stands out everywhere.
            let is_lower = before == "ghcr.io/" && owner != "OWNER";
            new += &if is_lower { owner.to_lowercase() } else { owner.to_owned() };
        } else {
            new += found;
        }
        rest = after;
    }
    (new + rest, count)
}

/// The files that people read or copy: pages, manifests of packages and integrations.
fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["", "docs", "deploy", ".github/workflows"]
        .iter()
        .flat_map(|directory| fs::read_dir(root().join(directory)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|end| ["md", "toml", "yml", "yaml"].iter().any(|known| end == *known))
        })
        .collect();
    files.sort();
    assert!(files.len() > 25, "{files:?}");
    files
}

#[test]
fn every_address_has_the_owner_of_cargo_toml() {
    let is_generating = std::env::var_os("GENERATE").is_some_and(|value| value == "1");
    let mut found = 0;
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        let (want, count) = with_owner(&text, owner());
        found += count;
        if is_generating && want != text {
            fs::write(&path, want).unwrap();
            continue;
        }
        assert!(
            text == want,
            "{}: an address of another owner than in Cargo.toml; run `make generate`",
            path.display()
        );
    }
    assert!(found > 10, "only {found} addresses");
}

#[test]
fn addresses_are_found() {
    let text = "https://github.com/OWNER/nadmit/x ghcr.io/OWNER/charts/nadmit uses: OWNER/nadmit@v1 --repo OWNER/nadmit \
                https://github.com/other/repository github.com/rhysd/nadmit";
    let want = "https://github.com/Team-1/nadmit/x ghcr.io/team-1/charts/nadmit uses: Team-1/nadmit@v1 --repo Team-1/nadmit \
                https://github.com/other/repository github.com/rhysd/nadmit";
    assert_eq!(with_owner(text, "Team-1"), (want.to_owned(), 4));
    assert_eq!(with_owner("ghcr.io/team/nadmit:1", "OWNER"), ("ghcr.io/OWNER/nadmit:1".to_owned(), 1));
}
