//! What is left out of a directory: by the `.gitignore` files of its repository, and by lists of patterns.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::InputError;
use super::files::io_error;
use super::glob::{MalformedPattern, Pattern};

/// The largest `.gitignore` that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Patterns, and the directory they are relative to.
#[derive(Debug)]
pub struct IgnoreList {
    base: PathBuf,
    patterns: Vec<Pattern>,
}

impl IgnoreList {
    /// Patterns as in a `.gitignore` of that directory, which is a path from the root without symbolic links. An error names the
    /// pattern by its number, from 0.
    pub fn new(base: PathBuf, patterns: &[String]) -> Result<Self, (usize, MalformedPattern)> {
        let parsed = patterns.iter().enumerate().filter_map(|(number, pattern)| {
            Pattern::parse(pattern.as_bytes()).map_err(|problem| (number, problem)).transpose()
        });
        Ok(Self { base, patterns: parsed.collect::<Result<_, _>>()? })
    }

    /// The `.gitignore` of a directory. A symbolic link is not followed, as in git.
    pub(super) fn of_directory(directory: &Path) -> Result<Option<Self>, InputError> {
        let path = directory.join(".gitignore");
        if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut text));
        read.map_err(|problem| io_error(&path, problem))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(InputError::LargeIgnoreFile(path.to_string_lossy().into_owned()));
        }
        let lines = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).split(|byte| *byte == b'\n');
        // To git, a malformed pattern matches nothing.
        let patterns = lines.filter_map(|line| Pattern::parse(line).unwrap_or_default()).collect();
        Ok(Some(Self { base: directory.to_owned(), patterns }))
    }

    /// Whether a path is ignored, by the last pattern that matches; `None` if none does.
    fn decide(&self, path: &Path, is_directory: bool) -> Option<bool> {
        let below: Option<Vec<&[u8]>> =
            path.strip_prefix(&self.base).ok().map(|below| below.iter().map(OsStrExt::as_bytes).collect());
        let name = path.file_name()?.as_bytes();
        let mut patterns = self.patterns.iter().rev();
        patterns.find(|pattern| pattern.matches(below.as_deref(), name, is_directory)).map(|found| !found.is_negated)
    }
}

/// Whether a path is ignored by lists that get more specific: the last one with an opinion counts.
pub(super) fn is_ignored(lists: &[IgnoreList], path: &Path, is_directory: bool) -> bool {
    lists.iter().rev().find_map(|list| list.decide(path, is_directory)).unwrap_or(false)
}

/// The root of the repository that a directory is in: the closest one above it, or itself, with a `.git`.
pub(super) fn repository_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|above| is_repository(above))
}

/// Whether it is the root of a work tree. In linked work trees and submodules, `.git` is a file.
pub(super) fn is_repository(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join(".git")).is_ok()
}
