//! Finding and reading input files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file that is read: a dump of ten thousand objects fits, a disk image does not.
const MAX_BYTES: u64 = 64 << 20;

/// A text to be read, perhaps more than once.
#[derive(Debug)]
pub enum Input {
    /// A file, read when it is needed.
    File(Box<Path>),
    /// What can be read only once: standard input, a pipe.
    Text(Box<Once>),
}

/// A text that was read at once, because it cannot be read again.
#[derive(Debug)]
pub struct Once {
    name: String,
    text: String,
}

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// An I/O error.
    #[error("{name}: {problem}")]
    Io {
        /// The file.
        name: String,
        /// The I/O error; part of the message, so not a source.
        problem: io::Error,
    },
    /// It is larger than we read.
    #[error("{0}: larger than 64 MiB; split the file")]
    TooLarge(String),
    /// It is not text.
    #[error("{name}: line {line}: not UTF-8 text (byte {offset})")]
    NotText {
        /// The file.
        name: String,
        /// The line of the first byte that is none.
        line: usize,
        /// That byte.
        offset: usize,
    },
    /// A directory that contains itself.
    #[error("{0}: symbolic link to a parent directory; not followed")]
    Loop(String),
}

impl Input {
    fn once(name: &str, text: String) -> Self {
        Self::Text(Box::new(Once { name: name.to_owned(), text }))
    }

    /// How it is named in reports.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::File(path) => path.to_string_lossy(),
            Self::Text(once) => once.name.as_str().into(),
        }
    }

    /// Its text.
    pub fn text(&self) -> Result<std::borrow::Cow<'_, str>, InputError> {
        match self {
            Self::File(path) => read(path).map(Into::into),
            Self::Text(once) => Ok(once.text.as_str().into()),
        }
    }
}

/// The inputs behind the paths of a command line: files as they are, directories with all the manifests below them in the
/// order of their names, `-` for standard input.
pub fn inputs(paths: &[PathBuf]) -> (Vec<Input>, Vec<InputError>) {
    let mut found = InputCollector::default();
    for path in paths {
        if path.as_os_str() == "-" {
            match text_of(&mut io::stdin().lock(), "-", 0) {
                Ok(text) => found.inputs.push(Input::once("-", text)),
                Err(error) => found.errors.push(error),
            }
        } else {
            found.add(path, &mut BTreeSet::new(), true);
        }
    }
    (found.inputs, found.errors)
}

#[derive(Default)]
struct InputCollector {
    inputs: Vec<Input>,
    errors: Vec<InputError>,
}

impl InputCollector {
    fn add(&mut self, path: &Path, above: &mut BTreeSet<PathBuf>, named: bool) {
        match fs::metadata(path) {
            Err(problem) => self.errors.push(io_error(path, problem)),
            Ok(metadata) if metadata.is_dir() => self.add_directory(path, above),
            Ok(metadata) if metadata.is_file() => {
                if named || is_manifest(path) {
                    self.inputs.push(Input::File(path.into()));
                }
            }
            // A pipe, as from a shell's `<(…)`.
            Ok(_) if named => match File::open(path).map_err(|problem| io_error(path, problem)) {
                Ok(mut file) => match text_of(&mut file, &path.to_string_lossy(), 0) {
                    Ok(text) => self.inputs.push(Input::once(&path.to_string_lossy(), text)),
                    Err(error) => self.errors.push(error),
                },
                Err(error) => self.errors.push(error),
            },
            Ok(_) => {}
        }
    }

    fn add_directory(&mut self, path: &Path, above: &mut BTreeSet<PathBuf>) {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(problem) => return self.errors.push(io_error(path, problem)),
        };
        if !above.insert(real.clone()) {
            return self.errors.push(InputError::Loop(path.to_string_lossy().into_owned()));
        }
        match entries(path) {
            Err(problem) => self.errors.push(io_error(path, problem)),
            Ok(entries) => {
                for entry in entries {
                    self.add(&entry, above, false);
                }
            }
        }
        above.remove(&real);
    }
}

/// The entries of a directory by name, without hidden ones.
fn entries(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

/// Whether a file in a directory is a manifest. A kustomization is not an object and need not have a kind.
fn is_manifest(path: &Path) -> bool {
    let is = |extension: &str| path.extension().is_some_and(|found| found == extension);
    let is_kustomization = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("kustomization"));
    (is("yaml") || is("yml") || is("json")) && !is_kustomization
}

fn read(path: &Path) -> Result<String, InputError> {
    let mut file = File::open(path).map_err(|problem| io_error(path, problem))?;
    // Allocate the whole file at once: growing would copy it.
    let length = file.metadata().map_or(0, |metadata| metadata.len()).min(MAX_BYTES);
    text_of(&mut file, &path.to_string_lossy(), length as usize + 1)
}

fn text_of(reader: &mut dyn Read, name: &str, room: usize) -> Result<String, InputError> {
    let mut bytes = Vec::with_capacity(room);
    let limited = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    limited.map_err(|problem| InputError::Io { name: name.to_owned(), problem })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(InputError::TooLarge(name.to_owned()));
    }
    // A byte order mark is no part of the text, and editors leave one.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
        InputError::NotText { name: name.to_owned(), line, offset }
    })
}

fn io_error(path: &Path, problem: io::Error) -> InputError {
    InputError::Io { name: path.to_string_lossy().into_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_manifests_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("b/.git")).unwrap();
        for name in
            ["z.yaml", "a.json", "b/m.yml", "b/.git/x.yaml", "b/notes.txt", "kustomization.yaml", ".hidden.yaml"]
        {
            fs::write(at(name), "a: 1").unwrap();
        }
        std::os::unix::fs::symlink(directory.path(), at("b/loop")).unwrap();
        let (inputs, errors) = inputs(&[directory.path().to_owned(), at("b/notes.txt"), at("none")]);
        let names: Vec<_> =
            inputs.iter().map(|input| input.name().replace(&*directory.path().to_string_lossy(), "")).collect();
        assert_eq!(names, ["/a.json", "/b/m.yml", "/z.yaml", "/b/notes.txt"]);
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 2);
        assert!(errors.iter().any(|error| error.contains("b/loop: symbolic link to a parent directory")), "{errors:?}");
        assert!(errors.iter().any(|error| error.contains("none: No such file")), "{errors:?}");
    }

    #[test]
    fn rejects_non_utf8_files() {
        let mut bytes: &[u8] = b"a: 1\nb: \xff\n";
        let error = text_of(&mut bytes, "x.yaml", 0).unwrap_err();
        assert_eq!(error.to_string(), "x.yaml: line 2: not UTF-8 text (byte 8)");
        let mut marked: &[u8] = b"\xef\xbb\xbfa: 1";
        assert_eq!(text_of(&mut marked, "x.yaml", 0).unwrap(), "a: 1");
        let mut endless = io::repeat(b' ');
        assert!(matches!(text_of(&mut endless, "x", 0), Err(InputError::TooLarge(_))));
    }
}
