//! The lines of a log, plain or compressed, one after the other: nothing but the line at hand is held.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use memchr::memchr;

/// The longest line that is read. An object has at most 3 MiB or so, and an event may hold it twice.
pub const MAX_LINE: usize = 8 << 20;
/// How much is read at once. It stays in the processor's cache.
const CHUNK: usize = 128 << 10;

/// What stands between two line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, without its end.
    Whole(&'a [u8]),
    /// The last line, which has no end: the server may be writing it now.
    Unfinished(&'a [u8]),
    /// A line that is too long; it was stepped over.
    TooLong,
}

/// Reads a log to its end. Whether it is compressed is seen from its first bytes.
pub fn each_line(input: impl Read, each: impl FnMut(Line<'_>)) -> io::Result<()> {
    let mut input = BufReader::with_capacity(CHUNK, input);
    match input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        true => split(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(input)), MAX_LINE, each),
        false => split(input, MAX_LINE, each),
    }
}

fn split(mut input: impl BufRead, limit: usize, mut each: impl FnMut(Line<'_>)) -> io::Result<()> {
    // The beginning of a line whose end is not in what was read so far.
    let mut begun = Vec::new();
    let mut is_too_long = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            break;
        }
        let length = chunk.len();
        let mut rest = chunk;
        while let Some((line, behind)) = memchr(b'\n', rest).and_then(|end| rest.split_at_checked(end)) {
            rest = behind.get(1..).unwrap_or_default();
            if is_too_long || begun.len() + line.len() > limit {
                each(Line::TooLong);
            } else if begun.is_empty() {
                each(Line::Whole(line));
            } else {
                begun.extend_from_slice(line);
                each(Line::Whole(&begun));
            }
            begun.clear();
            is_too_long = false;
        }
        if is_too_long || begun.len() + rest.len() > limit {
            is_too_long = true;
            begun = Vec::new();
        } else {
            begun.extend_from_slice(rest);
        }
        input.consume(length);
    }
    match (is_too_long, begun.is_empty()) {
        (true, _) => each(Line::TooLong),
        (false, false) => each(Line::Unfinished(&begun)),
        (false, true) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Gives a few bytes at a time, as a pipe may.
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
    fn splits_whatever_the_pieces() {
        // (text, lines where a line may have 5 bytes)
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
                split(input, 5, |line| lines.push(shown(line))).unwrap();
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
        // Two that were put together are one.
        let both = [compress("a\nb"), compress("c\nd\n")].concat();
        let mut lines = Vec::new();
        each_line(both.as_slice(), |line| lines.push(shown(line))).unwrap();
        assert_eq!(lines, ["a", "bc", "d"]);
        // What was read before the damage counts; the damage is an error.
        let whole = compress(&"a line of some length\n".repeat(10_000));
        let mut seen = 0;
        let result = each_line(whole.get(..whole.len() - 9).unwrap(), |_| seen += 1);
        assert!(result.is_err() && seen > 0, "{seen} lines, {result:?}");
    }
}
