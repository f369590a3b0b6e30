//! The files of a server's log: the current one, and the rotated ones.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Groups files by server, each in the order they were written.
///
/// Files of one directory whose names differ only in the timestamp or number of their rotation belong to one server: `audit.log`
/// comes after `audit-2026-11-16T20-23-05.064.log` and `audit-….log.gz`, as the API server names them, and after `audit.log.1`
/// and `audit.log.2.gz`. All others belong to different servers. A directory stands for the logs in it.
pub(super) fn by_server(paths: &[PathBuf]) -> io::Result<Vec<Vec<PathBuf>>> {
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
    let mut servers: Vec<(PathBuf, Vec<(Age, PathBuf)>)> = Vec::new();
    for path in files {
        let Part { set, age } = Part::of(&path);
        match servers.iter_mut().find(|(known, _)| *known == set) {
            Some((_, files)) => files.push((age, path)),
            None => servers.push((set, vec![(age, path)])),
        }
    }
    let sorted = |(_, mut files): (PathBuf, Vec<(Age, PathBuf)>)| {
        files.sort();
        files.dedup();
        files.into_iter().map(|(_, path)| path).collect()
    };
    Ok(servers.into_iter().map(sorted).collect())
}

fn is_log(path: &Path) -> bool {
    let set = Part::of(path).set;
    set.extension().is_some_and(|extension| extension == "log" || extension == "jsonl")
}

/// A file of a set.
struct Part {
    /// The name of the file that all of them were.
    set: PathBuf,
    age: Age,
}

/// Ordered from oldest to newest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// Rotated at that time.
    RotatedAt(String),
    /// Rotated; the highest number is the oldest.
    Number(Reverse<u32>),
    /// Still being written.
    Current,
}

impl Part {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let (stem, end) = plain.rsplit_once('.').unwrap_or((plain, ""));
        let at = stem.len().saturating_sub(TIMESTAMP_PATTERN.len());
        let (set, age) = match (stem.split_at_checked(at), end.parse()) {
            (_, Ok(number)) => (stem.to_owned(), Age::Number(Reverse(number))),
            (Some((before, timestamp)), _) if is_timestamp(timestamp) && before.ends_with('-') => {
                (format!("{}.{end}", before.trim_end_matches('-')), Age::RotatedAt(timestamp.to_owned()))
            }
            _ => (plain.to_owned(), Age::Current),
        };
        Self { set: path.with_file_name(set), age }
    }
}

/// The timestamp format of rotated files; non-digits are literal.
const TIMESTAMP_PATTERN: &str = "0000-00-00T00-00-00.000";

fn is_timestamp(text: &str) -> bool {
    let fits = |(found, wanted): (char, char)| if wanted == '0' { found.is_ascii_digit() } else { found == wanted };
    text.chars().count() == TIMESTAMP_PATTERN.len() && text.chars().zip(TIMESTAMP_PATTERN.chars()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_files_are_read_first() {
        // (arguments, files by server and in order)
        let table: &[(&[&str], &[&[&str]])] = &[
            (&["b.log", "a.log"], &[&["b.log"], &["a.log"]]),
            (
                &["audit.log", "audit-2026-11-16T20-23-05.064.log", "audit-2026-11-15T20-23-05.064.log.gz"],
                &[&["audit-2026-11-15T20-23-05.064.log.gz", "audit-2026-11-16T20-23-05.064.log", "audit.log"]],
            ),
            (
                &["audit.log.1", "audit.log", "audit.log.10.gz", "audit.log.2.gz"],
                &[&["audit.log.10.gz", "audit.log.2.gz", "audit.log.1", "audit.log"]],
            ),
            (
                &["m1/audit.log", "m2/audit.log", "m1/audit-2026-11-16T20-23-05.064.log"],
                &[&["m1/audit-2026-11-16T20-23-05.064.log", "m1/audit.log"], &["m2/audit.log"]],
            ),
            (&["a.log", "a.log", "x-y.log", "é.log", "-"], &[&["a.log"], &["x-y.log"], &["é.log"], &["-"]]),
        ];
        for (given, want) in table {
            let given: Vec<_> = given.iter().map(PathBuf::from).collect();
            let want: Vec<Vec<_>> = want.iter().map(|files| files.iter().map(PathBuf::from).collect()).collect();
            assert_eq!(by_server(&given).unwrap(), want);
        }
    }

    #[test]
    fn directory_expands_to_its_logs() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["audit.log", "audit-2026-11-16T20-23-05.064.log.gz", "notes.txt", "notes.txt.1"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let found = by_server(&[directory.path().to_owned()]).unwrap();
        assert_eq!(found.len(), 1);
        let names: Vec<_> = found[0].iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["audit-2026-11-16T20-23-05.064.log.gz", "audit.log"]);
        assert!(by_server(&[directory.path().join("none")]).is_ok(), "opening the file will fail");
    }
}
