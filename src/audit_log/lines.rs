//! The lines of a log, plain or compressed; only the current line is in memory.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use memchr::memchr;

/// The longest line that is read. An object has at most 3 MiB or so, and an event may hold it twice.
pub const MAX_LINE: usize = 8 << 20;
/// How much is read at once. It stays in the processor's cache.
const CHUNK: usize = 128 << 10;

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, without its end.
    Whole(&'a [u8]),
    /// The last line without a line break: the server may still be writing it.
    Unfinished(&'a [u8]),
    /// A line that is too long and was skipped.
    TooLong,
}

/// Reads a log to its end. Whether it is compressed is seen from its first bytes.
pub fn each_line(input: impl Read, mut each: impl FnMut(Line<'_>)) -> io::Result<()> {
    let mut lines = LogLines::of(input)?;
    while let Some(line) = lines.next_line()? {
        each(line);
    }
    Ok(())
}

/// A log, line by line.
pub struct LogLines<'r> {
    input: Box<dyn BufRead + 'r>,
    limit: usize,
    /// A line that takes several reads, as far as it was read.
    begun: Vec<u8>,
    /// How many bytes of the input's buffer belong to the line that was returned last.
    given: usize,
}

/// Where the next line is.
enum NextLine {
    /// In the input's buffer, with this length.
    Here(usize),
    /// In `begun`, put together from several reads.
    Together {
        has_end: bool,
    },
    TooLong,
    Nothing,
}

impl<'r> LogLines<'r> {
    /// The lines of a log, compressed or not.
    pub fn of(input: impl Read + 'r) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(CHUNK, input);
        let is_compressed = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn BufRead> = match is_compressed {
            true => Box::new(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(input))),
            false => Box::new(input),
        };
        Ok(Self::split(input, MAX_LINE))
    }

    fn split(input: Box<dyn BufRead + 'r>, limit: usize) -> Self {
        Self { input, limit, begun: Vec::new(), given: 0 }
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.input.consume(std::mem::take(&mut self.given));
        self.begun.clear();
        Ok(match self.find()? {
            NextLine::Here(length) => {
                self.given = length + 1;
                // The line is in the buffer already, so this reads nothing more.
                self.input.fill_buf()?.get(..length).map(Line::Whole)
            }
            NextLine::Together { has_end: true } => Some(Line::Whole(&self.begun)),
            NextLine::Together { has_end: false } => Some(Line::Unfinished(&self.begun)),
            NextLine::TooLong => Some(Line::TooLong),
            NextLine::Nothing => None,
        })
    }

    fn find(&mut self) -> io::Result<NextLine> {
        let mut is_too_long = false;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(match (is_too_long, self.begun.is_empty()) {
                    (true, _) => NextLine::TooLong,
                    (false, false) => NextLine::Together { has_end: false },
                    (false, true) => NextLine::Nothing,
                });
            }
            let end = memchr(b'\n', chunk);
            let length = end.unwrap_or(chunk.len());
            if is_too_long || self.begun.len() + length > self.limit {
                is_too_long = true;
                self.begun = Vec::new();
            } else if end.is_some() && self.begun.is_empty() {
                return Ok(NextLine::Here(length));
            } else {
                self.begun.extend_from_slice(chunk.get(..length).unwrap_or_default());
            }
            self.input.consume(length + usize::from(end.is_some()));
            match end {
                Some(_) if is_too_long => return Ok(NextLine::TooLong),
                Some(_) => return Ok(NextLine::Together { has_end: true }),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Returns a few bytes per read, as a pipe may.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    fn shown(line: Line<'_>) -> String {
        match line {
            Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Line::Unfinished(bytes) => format!("{}…", String::from_utf8_lossy(bytes)),
            Line::TooLong => "too long".to_owned(),
        }
    }

    #[test]
    fn splits_lines_independently_of_read_sizes() {
        // (text, lines with a limit of 5 bytes)
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("a\nbc\n", &["a", "bc"]),
            ("a\n\nb", &["a", "", "b…"]),
            ("12345\n123456\nx\n", &["12345", "too long", "x"]),
            ("123456", &["too long"]),
            ("123456789012345\nab\n", &["too long", "ab"]),
            ("\n\n", &["", ""]),
        ];
        for (text, want) in table {
            for piece in [1, 2, 3, 7, 100] {
                let mut lines = Vec::new();
                let input = BufReader::with_capacity(4, Drops(text.as_bytes(), piece));
                let mut split = LogLines::split(Box::new(input), 5);
                while let Some(line) = split.next_line().unwrap() {
                    lines.push(shown(line));
                }
                assert_eq!(lines, *want, "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn compressed_logs_are_recognised() {
        let compress = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        // Two concatenated streams are read as one.
        let both = [compress("a\nb"), compress("c\nd\n")].concat();
        let mut lines = Vec::new();
        each_line(both.as_slice(), |line| lines.push(shown(line))).unwrap();
        assert_eq!(lines, ["a", "bc", "d"]);
        // Lines before the damage count; the damage is an error.
        let whole = compress(&"a line of some length\n".repeat(10_000));
        let mut seen = 0;
        let result = each_line(whole.get(..whole.len() - 9).unwrap(), |_| seen += 1);
        assert!(result.is_err() && seen > 0, "{seen} lines, {result:?}");
    }

    /// Fails once with each error before it goes on.
    struct Failing(Vec<io::ErrorKind>);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0.pop().map_or(Ok(0), |kind| Err(kind.into()))
        }
    }

    #[test]
    fn an_interrupted_read_is_repeated() {
        let kind_of = |errors| {
            LogLines::split(Box::new(BufReader::new(Failing(errors))), 5).next_line().map(|line| line.is_none())
        };
        assert!(kind_of(vec![io::ErrorKind::Interrupted]).unwrap());
        assert_eq!(kind_of(vec![io::ErrorKind::BrokenPipe]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
