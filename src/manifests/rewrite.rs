//! Replacing the content of a file: never through a link that leads elsewhere, and never half of it.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The byte order mark that editors leave; it is no part of the text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a file is not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// An I/O error.
    #[error("{name}: cannot write the fixes: {problem}")]
    Io {
        /// The file.
        name: String,
        /// The I/O error; part of the message, so not a source.
        problem: io::Error,
    },
    /// It is elsewhere.
    #[error("{0}: not fixed, because it is a symbolic link out of the given paths; fix the file that it leads to")]
    Outside(String),
    /// Its permissions say no.
    #[error("{0}: not fixed, because it is read-only; make it writable first")]
    ReadOnly(String),
    /// Somebody else wrote it.
    #[error("{0}: not fixed, because it changed in the meantime; run the command again")]
    Changed(String),
}

/// The directories in which files may be rewritten.
#[derive(Debug, Default)]
pub struct Writable {
    roots: Vec<PathBuf>,
}

impl Writable {
    /// Those of the paths of a command line: a directory itself, and the directory of a file.
    pub fn below(paths: &[PathBuf]) -> Self {
        let directory = |path: &PathBuf| match fs::metadata(path).ok()?.is_dir() {
            true => path.canonicalize().ok(),
            false => parent(path).canonicalize().ok(),
        };
        Self { roots: paths.iter().filter_map(directory).collect() }
    }

    /// Replaces the text of a file that was read before. False if it has the new text already.
    pub fn rewrite(&self, path: &Path, before: &str, after: &str) -> Result<bool, RewriteError> {
        let name = || path.to_string_lossy().into_owned();
        let io_error = |problem| RewriteError::Io { name: name(), problem };
        let real = path.canonicalize().map_err(io_error)?;
        if !self.roots.iter().any(|root| real.starts_with(root)) {
            return Err(RewriteError::Outside(name()));
        }
        let metadata = fs::metadata(&real).map_err(io_error)?;
        if metadata.permissions().readonly() {
            return Err(RewriteError::ReadOnly(name()));
        }
        let bytes = fs::read(&real).map_err(io_error)?;
        let text = bytes.strip_prefix(MARK).unwrap_or(&bytes);
        if text == after.as_bytes() {
            return Ok(false);
        }
        if text != before.as_bytes() {
            return Err(RewriteError::Changed(name()));
        }
        let mark = if text.len() < bytes.len() { MARK } else { &[] };
        replace(&real, &metadata, &[mark, after.as_bytes()]).map_err(io_error)?;
        Ok(true)
    }
}

/// Writes a new file beside the old one and puts it in its place, so that nobody ever reads half of it.
fn replace(path: &Path, old: &Metadata, content: &[&[u8]]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".nadmit-").tempfile_in(parent(path))?;
    for part in content {
        file.write_all(part)?;
    }
    keep_owner(file.path(), old);
    // After the owner: a change of owner takes bits away.
    file.as_file().set_permissions(old.permissions())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Only root may give a file away; for everybody else the new file is theirs, as with an editor.
#[cfg(unix)]
fn keep_owner(path: &Path, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, lchown};
    let _ = lchown(path, Some(old.uid()), Some(old.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &Metadata) {}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Every entry of a directory, hidden ones too.
    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_keeps_its_mark_and_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.yaml");
        fs::write(&path, b"\xef\xbb\xbfa: 1").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let writable = Writable::below(&[directory.path().to_owned()]);
        assert!(writable.rewrite(&path, "a: 1", "a: 2").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"\xef\xbb\xbfa: 2");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(!writable.rewrite(&path, "a: 1", "a: 2").unwrap(), "it has the text already");
        assert_eq!(names(directory.path()), ["a.yaml"]);
    }

    #[test]
    fn what_must_not_be_written_is_not() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| inside.path().join(name);
        let elsewhere = outside.path().join("real.yaml");
        for path in [&elsewhere, &at("real.yaml"), &at("readonly.yaml"), &at("changed.yaml")] {
            fs::write(path, "a: 1").unwrap();
        }
        fs::write(at("changed.yaml"), "a: 3").unwrap();
        fs::set_permissions(at("readonly.yaml"), fs::Permissions::from_mode(0o444)).unwrap();
        symlink(&elsewhere, at("out.yaml")).unwrap();
        symlink(outside.path(), at("directory")).unwrap();
        symlink(at("real.yaml"), at("in.yaml")).unwrap();
        for writable in
            [Writable::below(&[inside.path().to_owned()]), Writable::below(&[at("out.yaml"), at("in.yaml")])]
        {
            for (name, want) in [
                ("out.yaml", "symbolic link out of the given paths"),
                ("directory/real.yaml", "symbolic link out of the given paths"),
                ("readonly.yaml", "read-only"),
                ("changed.yaml", "changed in the meantime"),
                ("absent.yaml", "cannot write the fixes"),
            ] {
                let error = writable.rewrite(&at(name), "a: 1", "a: 2").unwrap_err().to_string();
                assert!(error.contains(want), "{name}: {error}");
            }
        }
        assert_eq!(fs::read(&elsewhere).unwrap(), b"a: 1");
        // A link to a file that was given too is followed, and stays a link.
        let writable = Writable::below(&[inside.path().to_owned()]);
        assert!(writable.rewrite(&at("in.yaml"), "a: 1", "a: 2").unwrap());
        assert_eq!(fs::read(at("real.yaml")).unwrap(), b"a: 2");
        assert!(at("in.yaml").is_symlink());
        // A directory that is given as a link is where it leads.
        let writable = Writable::below(&[at("directory")]);
        assert!(writable.rewrite(&at("directory/real.yaml"), "a: 1", "a: 2").unwrap());
    }
}
