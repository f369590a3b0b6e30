//! The files of a log: the one that is being written, and those that were put aside when it had grown.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files in the order in which they were written. A directory stands for the logs in it; `audit.log` comes after
/// `audit-2026-11-16T20-23-05.064.log` and `audit-….log.gz`, which the API server names so when it puts them aside. The logs of different servers
/// stay in the order in which they were given.
pub fn in_order(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut found = Vec::new();
            for entry in fs::read_dir(path)? {
                let path = entry?.path();
                if path.is_file() && is_log(&path) {
                    found.push(path);
                }
            }
            found.sort();
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    let sets: Vec<_> = files.iter().map(|path| Part::of(path).set).collect();
    let first = |set: &PathBuf| sets.iter().position(|other| other == set);
    files.sort_by_cached_key(|path| {
        let part = Part::of(path);
        (first(&part.set), part.is_current, part.moment)
    });
    files.dedup();
    Ok(files)
}

fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".log", ".log.gz", ".jsonl", ".jsonl.gz"].iter().any(|end| name.ends_with(end))
}

/// A file of a set.
struct Part {
    /// The name of the file that all of them were.
    set: PathBuf,
    /// When it was put aside.
    moment: String,
    is_current: bool,
}

impl Part {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let (stem, end) = plain.rsplit_once('.').unwrap_or((plain, ""));
        let at = stem.len().saturating_sub(MOMENT.len());
        match stem.split_at_checked(at) {
            Some((before, moment)) if is_moment(moment) && before.ends_with('-') => {
                let set = format!("{}.{end}", before.trim_end_matches('-'));
                Self { set: path.with_file_name(set), moment: moment.to_owned(), is_current: false }
            }
            _ => Self { set: path.with_file_name(plain), moment: String::new(), is_current: true },
        }
    }
}

/// How the API server writes the moment into a name; the letter and the signs stand for themselves.
const MOMENT: &str = "0000-00-00T00-00-00.000";

fn is_moment(text: &str) -> bool {
    let fits = |(found, wanted): (char, char)| if wanted == '0' { found.is_ascii_digit() } else { found == wanted };
    text.chars().count() == MOMENT.len() && text.chars().zip(MOMENT.chars()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_aside_comes_first() {
        // (given, in order)
        let table: &[(&[&str], &[&str])] = &[
            (&["b.log", "a.log"], &["b.log", "a.log"]),
            (
                &["audit.log", "audit-2026-11-16T20-23-05.064.log", "audit-2026-11-15T20-23-05.064.log.gz"],
                &["audit-2026-11-15T20-23-05.064.log.gz", "audit-2026-11-16T20-23-05.064.log", "audit.log"],
            ),
            // Two servers.
            (
                &["m1/audit.log", "m2/audit.log", "m1/audit-2026-11-16T20-23-05.064.log"],
                &["m1/audit-2026-11-16T20-23-05.064.log", "m1/audit.log", "m2/audit.log"],
            ),
            (&["a.log", "a.log", "x-y.log", "é.log"], &["a.log", "x-y.log", "é.log"]),
        ];
        for (given, want) in table {
            let given: Vec<_> = given.iter().map(PathBuf::from).collect();
            let want: Vec<_> = want.iter().map(PathBuf::from).collect();
            assert_eq!(in_order(&given).unwrap(), want);
        }
    }

    #[test]
    fn a_directory_stands_for_its_logs() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["audit.log", "audit-2026-11-16T20-23-05.064.log.gz", "notes.txt"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let found = in_order(&[directory.path().to_owned()]).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["audit-2026-11-16T20-23-05.064.log.gz", "audit.log"]);
        assert!(in_order(&[directory.path().join("none")]).is_ok(), "opening it will tell");
    }
}
