//! Reading input files.

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::path::Path;

/// The largest file that is read: a dump of ten thousand objects fits, a disk image does not.
const MAX_BYTES: u64 = 64 << 20;

/// A text to be read, perhaps more than once.
#[derive(Debug)]
pub enum Input {
    /// A file that was named, read when it is needed.
    File(Box<Path>),
    /// A file in a directory that was named.
    Found(Box<Path>),
    /// What can be read only once: standard input, a pipe.
    Text(Box<Once>),
    /// An input whose text was changed, and not written yet.
    Changed(Box<ChangedText>),
}

/// A text that was read at once, because it cannot be read again.
#[derive(Debug)]
pub struct Once {
    name: String,
    text: String,
}

/// A new text, and the input that it is of, which says what the text may hold.
#[derive(Debug)]
pub struct ChangedText {
    of: Input,
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
    /// A `.gitignore` that is larger than we read.
    #[error("{0}: larger than 1 MiB")]
    LargeIgnoreFile(String),
}

impl Input {
    /// Reads at once what cannot be read again.
    pub(super) fn once(reader: &mut dyn Read, name: &str) -> Result<Self, InputError> {
        Ok(Self::Text(Box::new(Once { name: name.to_owned(), text: text_of(reader, name, 0)? })))
    }

    /// Its file, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Found(path) => Some(path),
            Self::Text(_) => None,
            Self::Changed(changed) => changed.of.path(),
        }
    }

    /// Whether it was named itself, and not found in a directory.
    pub(super) fn is_named(&self) -> bool {
        match self {
            Self::File(_) | Self::Text(_) => true,
            Self::Found(_) => false,
            Self::Changed(changed) => changed.of.is_named(),
        }
    }

    /// Gives it another text, which is not written.
    pub fn set_text(&mut self, text: String) {
        let of = self.take_unchanged();
        *self = Self::Changed(Box::new(ChangedText { of, text }));
    }

    /// Takes the other text back: the input is again what was given.
    pub fn reset(&mut self) {
        *self = self.take_unchanged();
    }

    fn take_unchanged(&mut self) -> Self {
        let nothing = Once { name: String::new(), text: String::new() };
        match mem::replace(self, Self::Text(Box::new(nothing))) {
            Self::Changed(changed) => changed.of,
            given => given,
        }
    }

    /// How it is named in reports.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::File(path) | Self::Found(path) => path.to_string_lossy(),
            Self::Text(once) => once.name.as_str().into(),
            Self::Changed(changed) => changed.of.name(),
        }
    }

    /// Its text.
    pub fn text(&self) -> Result<std::borrow::Cow<'_, str>, InputError> {
        match self {
            Self::File(path) | Self::Found(path) => read(path).map(Into::into),
            Self::Text(once) => Ok(once.text.as_str().into()),
            Self::Changed(changed) => Ok(changed.text.as_str().into()),
        }
    }
}

fn read(path: &Path) -> Result<String, InputError> {
    let mut file = File::open(path).map_err(|problem| io_error(path, problem))?;
    // Allocate the whole file at once: growing would copy it.
    let length = file.metadata().map_or(0, |metadata| metadata.len()).min(MAX_BYTES);
    text_of(&mut file, &path.to_string_lossy(), length as usize + 1)
}

fn text_of(reader: &mut dyn Read, name: &str, capacity: usize) -> Result<String, InputError> {
    let mut bytes = Vec::with_capacity(capacity);
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

pub(super) fn io_error(path: &Path, problem: io::Error) -> InputError {
    InputError::Io { name: path.to_string_lossy().into_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

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
