//! The reference of releases: what is assumed of each program, and since when it reads a key.

use std::fmt::Write;

use crate::cni::readers;
use crate::cni::releases::{Program, Since};
use crate::cni::schema::{Field, Type};

const INTRODUCTION: &str = "\
<!-- Generated from src/cni by `make generate`. -->

# Releases

What a program does with a config changes between its releases. The policy can name the oldest release in use of each one (`versions`);
`nadmit doctor` shows those that it finds in the images of DaemonSets.

- A value that the release in use rejects is denied. If the policy names no release, it is denied if the oldest assumed release rejects it too, and is
  otherwise a warning that says from which release on.
- A key that the release in use does not read is a warning (`nad/unknown-key`), because the setting has no effect, except for keys about logs and keys
  within a value. What is wrong with the value of such a key is not reported.
- Name the oldest release: nodes with a newer one may read what it ignores. Paths on the node (`sriov/host-file`) are reported in any case.
- What doctor shows is a hint: whoever may create a DaemonSet can show any release.
- A `cniVersion` that the release in use does not support is denied (`nad/cni-version`).

| program | oldest assumed | CNI 1.0.0 from | CNI 1.1.0 from |
|---|---|---|---|
";

/// The reference, in Markdown.
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    for program in Program::all() {
        let cni = |version: &str| program.supports_cni(version).map(first).unwrap_or_default();
        let (oldest, [one, two]) = (program.oldest_assumed(), ["1.0.0", "1.1.0"].map(cni));
        let _ = writeln!(text, "| {} | {oldest} | {one} | {two} |", program.name());
    }
    text.push_str("\nThe keys that were added later:\n\n| plugin | key | read from |\n|---|---|---|\n");
    let plugins = readers::KNOWN.iter().map(|(kind, fields)| (*kind, *fields));
    let ipam = readers::IPAM.iter().map(|(kind, fields, _)| (*kind, *fields));
    for (kind, fields) in plugins.chain(ipam).filter(|(kind, _)| *kind != "multus-shim") {
        if let Some(program) = Program::of(kind) {
            write_keys(&mut text, kind, program, "", fields);
        }
    }
    text
}

/// A row for each key that was added later, also within other keys.
fn write_keys(text: &mut String, kind: &str, program: Program, above: &str, fields: &[Field]) {
    for field in fields {
        let key = format!("{above}{}", field.key);
        if let Some(release) = field.since {
            let first = first(Since { program, release });
            let _ = writeln!(text, "| `{kind}` | `{key}` | {} {first} |", program.name());
        }
        let mut holds = &field.holds;
        while let Type::Pointer(of) | Type::Fresh(of) | Type::List(of) = holds {
            holds = of;
        }
        if let Type::Object(fields) = holds {
            write_keys(text, kind, program, &format!("{key}."), fields);
        }
    }
}

fn first(since: Since) -> String {
    since.first().map_or_else(|| "(no release yet)".to_owned(), |release| release.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_docs_is_this_one() {
        assert_eq!(markdown(), include_str!("../../docs/releases.md"));
    }

    #[test]
    fn a_key_without_a_release_is_marked() {
        let (program, release) = (Program::CniPlugins, crate::cni::releases::UNRELEASED);
        assert_eq!(first(Since { program, release }), "(no release yet)");
        assert_eq!(first(Since { program, release: [1, 7, 0] }), "1.7");
    }
}
