//! The outputs of a run: each a format, and where it goes.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tempfile::NamedTempFile;

use crate::output::{Format, JudgedDocument, RewrittenObject, Summary};

/// Where an output goes.
#[derive(Clone, Debug)]
pub(super) enum Destination {
    Stdout,
    Stderr,
    Discard,
    File(PathBuf),
}

/// All outputs of a run. What is written to a file appears there at the end, whole.
#[derive(Default)]
pub(super) struct Outputs(Vec<Output>);

struct Output {
    format: Box<dyn Format + Send>,
    sink: Sink,
    is_first: bool,
}

enum Sink {
    Stream(BufWriter<Box<dyn Write + Send + Sync>>),
    /// Replaces the file at its end.
    Replace(BufWriter<NamedTempFile>, PathBuf),
    /// Nobody reads it: not wanted, or the reader of standard output left, but other outputs remain.
    Closed,
}

impl Outputs {
    /// Adds an output, and opens its file.
    pub(super) fn add(&mut self, format: Box<dyn Format + Send>, destination: &Destination) -> anyhow::Result<()> {
        let sink = match destination {
            Destination::Stdout => Sink::Stream(BufWriter::new(Box::new(io::stdout()))),
            Destination::Stderr => Sink::Stream(BufWriter::new(Box::new(io::stderr()))),
            Destination::Discard => Sink::Closed,
            Destination::File(path) => {
                let opened = Sink::open(path).with_context(|| format!("cannot write \"{}\"", path.display()))?;
                ensure!(
                    !self.0.iter().any(|other| other.sink.is_same_file(&opened)),
                    "two outputs go to \"{}\"",
                    path.display()
                );
                opened
            }
        };
        self.0.push(Output { format, sink, is_first: true });
        Ok(())
    }

    /// A document in each of the formats.
    pub(super) fn render(&self, judged: &JudgedDocument<'_>) -> Vec<String> {
        self.0.iter().map(|output| output.format.document(judged)).collect()
    }

    /// Writes the text before the first document.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.each(|output| {
            let begin = output.format.begin();
            output.sink.write(&begin)
        })
    }

    /// Writes a document, rendered in each of the formats.
    pub(super) fn write(&mut self, rendered: &[String]) -> io::Result<()> {
        let mut chunks = rendered.iter();
        self.each(|output| match chunks.next() {
            Some(chunk) if !chunk.is_empty() => {
                if !output.is_first {
                    output.sink.write(output.format.between())?;
                }
                output.is_first = false;
                output.sink.write(chunk)
            }
            _ => Ok(()),
        })
    }

    /// Adds a note for readers.
    pub(super) fn note(&self, note: &str) {
        self.0.iter().for_each(|output| output.format.note(note.to_owned()));
    }

    /// Adds write loops found by an observation.
    pub(super) fn rewritten(&self, objects: &[RewrittenObject]) {
        self.0.iter().for_each(|output| output.format.rewritten(objects.to_vec()));
    }

    /// Writes the text after the last document, and puts the files in their places.
    pub(super) fn end(mut self, summary: &Summary) -> anyhow::Result<()> {
        self.each(|output| {
            let end = output.format.end(summary);
            output.sink.write(&end)?;
            output.sink.flush()
        })?;
        self.0.into_iter().try_for_each(|output| output.sink.put_in_place())
    }

    /// Does something with every output. If the reader of standard output leaves, the files are still written.
    fn each(&mut self, mut act: impl FnMut(&mut Output) -> io::Result<()>) -> io::Result<()> {
        let is_alone = self.0.len() == 1;
        for output in &mut self.0 {
            match act(output) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !is_alone => output.sink = Sink::Closed,
                result => result?,
            }
        }
        Ok(())
    }
}

/// Writes an output that is one text: to a file, in one step, or to standard output.
pub(super) fn write_whole(file: Option<&Path>, text: &str) -> anyhow::Result<()> {
    write_parts(file, [text])
}

/// The same with a text that comes in parts, because it is too large to be kept.
pub(super) fn write_parts(file: Option<&Path>, parts: impl IntoIterator<Item: AsRef<str>>) -> anyhow::Result<()> {
    let mut sink = match file {
        Some(path) => Sink::open(path).with_context(|| format!("cannot write \"{}\"", path.display()))?,
        None => Sink::Stream(BufWriter::new(Box::new(io::stdout()))),
    };
    for part in parts {
        sink.write(part.as_ref())?;
    }
    sink.flush()?;
    sink.put_in_place()
}

impl Sink {
    fn open(path: &Path) -> anyhow::Result<Self> {
        match fs::metadata(path) {
            // A device or a pipe, such as /dev/stderr, must not be replaced by a file.
            Ok(metadata) if !metadata.is_file() => {
                ensure!(!metadata.is_dir(), "it is a directory");
                let file = OpenOptions::new().write(true).open(path)?;
                Ok(Self::Stream(BufWriter::new(Box::new(file))))
            }
            // What a symbolic link leads to is replaced, not the link.
            Ok(metadata) => Self::replace(fs::canonicalize(path)?, Some(metadata.permissions())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = path.file_name().context("it has no name")?;
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = fs::canonicalize(directory.unwrap_or(Path::new(".")))?;
                Self::replace(directory.join(name), None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps the permissions of a file that exists.
    fn replace(path: PathBuf, permissions: Option<Permissions>) -> anyhow::Result<Self> {
        let directory = path.parent().context("it has no directory")?;
        let mut builder = tempfile::Builder::new();
        // As of any new file: the umask is applied.
        builder.prefix(".nadmit-").permissions(Permissions::from_mode(0o666));
        let file = builder.tempfile_in(directory)?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(Self::Replace(BufWriter::new(file), path))
    }

    fn is_same_file(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Replace(_, one), Self::Replace(_, two)) if one == two)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Stream(out) => out.write_all(text.as_bytes()),
            Self::Replace(out, _) => out.write_all(text.as_bytes()),
            Self::Closed => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(out) => out.flush(),
            Self::Replace(out, _) => out.flush(),
            Self::Closed => Ok(()),
        }
    }

    fn put_in_place(self) -> anyhow::Result<()> {
        let Self::Replace(out, path) = self else { return Ok(()) };
        let place = || format!("cannot write \"{}\"", path.display());
        let file = out.into_inner().with_context(place)?;
        file.persist(&path).with_context(place)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a text once, as a whole run does.
    struct Fixed(&'static str);

    impl Format for Fixed {
        fn document(&self, _: &JudgedDocument<'_>) -> String {
            String::new()
        }

        fn end(&self, _: &Summary) -> String {
            self.0.to_owned()
        }
    }

    fn outputs(path: &Path) -> anyhow::Result<Outputs> {
        let mut outputs = Outputs::default();
        outputs.add(Box::new(Fixed("new")), &Destination::File(path.to_owned()))?;
        Ok(outputs)
    }

    #[test]
    fn a_file_is_replaced_at_the_end_and_keeps_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut unfinished = outputs(&link).unwrap();
        unfinished.begin().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        unfinished.end(&Summary::default()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn an_unfinished_run_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        let mut unfinished = outputs(&path).unwrap();
        unfinished.begin().unwrap();
        drop(unfinished);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        outputs(&path).unwrap().end(&Summary::default()).unwrap();
        // Readable for others, as far as the umask allows it.
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        fs::write(directory.path().join("plain"), "").unwrap();
        assert_eq!(mode(&path), mode(&directory.path().join("plain")));
    }

    #[test]
    fn places_that_cannot_be_written_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        for (path, want) in [("", "it is a directory"), ("none/report", "No such file")] {
            let error = format!("{:#}", outputs(&directory.path().join(path)).err().unwrap());
            assert!(error.starts_with("cannot write ") && error.contains(want), "{error}");
        }
        // A device is written, and not replaced.
        outputs(Path::new("/dev/null")).unwrap().end(&Summary::default()).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let mut twice = outputs(&directory.path().join("report")).unwrap();
        let same = Destination::File(directory.path().join("./report"));
        assert!(twice.add(Box::new(Fixed("")), &same).unwrap_err().to_string().starts_with("two outputs go to "));
    }
}
