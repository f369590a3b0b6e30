//! The patterns of a `.gitignore`, with the meaning that git gives them.
//!
//! Written here, because each entry that is left out is counted, and because the time for a match must be bounded: patterns and
//! names may come from a stranger's repository. A match takes at most the product of both lengths, however many stars there are.

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    segments: Vec<Segment>,
    /// Whether the whole path is matched, and not only its last name.
    is_anchored: bool,
    directories_only: bool,
    /// Whether it takes back what earlier patterns ignore.
    pub(super) is_negated: bool,
}

/// What stands between two slashes.
#[derive(Debug)]
enum Segment {
    /// `**`: any number of names, also none.
    AnyNames,
    Name(Vec<Piece>),
}

/// A part of a name.
#[derive(Debug)]
enum Piece {
    /// `*`: any number of bytes, also none.
    AnyBytes,
    /// `?`
    AnyByte,
    Byte(u8),
    /// `[…]`: whether each byte belongs to it.
    Set(Box<[bool; 256]>),
}

/// A pattern that matches nothing, such as one whose bracket is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a pattern: a bracket or an escape does not end")]
pub struct MalformedPattern;

impl Pattern {
    /// Reads a line; `None` for one without a pattern.
    pub(super) fn parse(line: &[u8]) -> Result<Option<Self>, MalformedPattern> {
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let line = without_trailing_spaces(line.strip_suffix(b"\r").unwrap_or(line));
        let (is_negated, line) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
        let (directories_only, line) = line.strip_suffix(b"/").map_or((false, line), |rest| (true, rest));
        if line.is_empty() {
            return Ok(None);
        }
        let is_anchored = line.contains(&b'/');
        let line = line.strip_prefix(b"/").unwrap_or(line);
        let mut segments = Vec::new();
        for part in names(line)? {
            segments.push(match part {
                b"**" if is_anchored => Segment::AnyNames,
                name => Segment::Name(pieces(name)?),
            });
        }
        // At the end, it stands for everything inside: for at least one name.
        if matches!(segments.last(), Some(Segment::AnyNames)) {
            segments.push(Segment::Name(vec![Piece::AnyBytes]));
        }
        Ok(Some(Self { segments, is_anchored, directories_only, is_negated }))
    }

    /// Whether it matches a path, given as its names. Without a path below the base of the pattern, only the last name can match.
    pub(super) fn matches(&self, path: Option<&[&[u8]]>, name: &[u8], is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        let only = [name];
        let names = if self.is_anchored { path } else { Some(only.as_slice()) };
        names.is_some_and(|names| {
            matches(
                &self.segments,
                names,
                |segment| matches!(segment, Segment::AnyNames),
                |segment, name| matches!(segment, Segment::Name(pieces) if is_name(pieces, name)),
            )
        })
    }
}

/// What stands between the slashes of a pattern. One inside of brackets separates nothing; it matches nothing, either.
fn names(line: &[u8]) -> Result<Vec<&[u8]>, MalformedPattern> {
    let mut names = Vec::new();
    let (mut name, mut rest) = (line, line);
    while let Some((first, after)) = rest.split_first() {
        match first {
            b'/' => {
                names.push(name.get(..name.len() - rest.len()).unwrap_or_default());
                (name, rest) = (after, after);
                continue;
            }
            b'\\' if after.first() != Some(&b'/') => rest = after.get(1..).unwrap_or_default(),
            b'[' => {
                rest = after;
                set(&mut rest)?;
            }
            _ => rest = after,
        }
    }
    names.push(name);
    Ok(names)
}

fn is_name(pieces: &[Piece], name: &[u8]) -> bool {
    matches(
        pieces,
        name,
        |piece| matches!(piece, Piece::AnyBytes),
        |piece, byte| match piece {
            Piece::AnyBytes | Piece::AnyByte => true,
            Piece::Byte(wanted) => wanted == byte,
            Piece::Set(set) => set.get(usize::from(*byte)) == Some(&true),
        },
    )
}

/// Whether a pattern matches all items. Some of its parts match any number of them, the others exactly one.
///
/// If an item does not match, the last of the former takes one item more; an earlier one never needs to.
fn matches<P, T>(
    pattern: &[P],
    items: &[T],
    is_any_number: impl Fn(&P) -> bool,
    is_match: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut part, mut at) = (0, 0);
    // The part behind the last one that matches any number, and how far that one reaches.
    let mut last: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(part), items.get(at)) {
            (None, None) => return true,
            (Some(wanted), _) if is_any_number(wanted) => {
                part += 1;
                last = Some((part, at));
                continue;
            }
            (Some(wanted), Some(item)) if is_match(wanted, item) => {
                (part, at) = (part + 1, at + 1);
                continue;
            }
            _ => {}
        }
        match &mut last {
            Some((behind, reached)) if *reached < items.len() => {
                *reached += 1;
                (part, at) = (*behind, *reached);
            }
            _ => return false,
        }
    }
}

/// Without the spaces at the end, unless a backslash keeps the first of them.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let kept = line.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    let (text, spaces) = line.split_at_checked(kept).unwrap_or((line, &[]));
    let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    let end = kept + usize::from(backslashes % 2 == 1 && !spaces.is_empty());
    line.get(..end).unwrap_or(line)
}

fn pieces(name: &[u8]) -> Result<Vec<Piece>, MalformedPattern> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        pieces.push(match first {
            b'*' if matches!(pieces.last(), Some(Piece::AnyBytes)) => continue,
            b'*' => Piece::AnyBytes,
            b'?' => Piece::AnyByte,
            b'\\' => Piece::Byte(taken(&mut rest)?),
            b'[' => Piece::Set(set(&mut rest)?),
            other => Piece::Byte(*other),
        });
    }
    Ok(pieces)
}

/// The next byte, which must be there.
fn taken(rest: &mut &[u8]) -> Result<u8, MalformedPattern> {
    let (first, after) = rest.split_first().ok_or(MalformedPattern)?;
    *rest = after;
    Ok(*first)
}

/// What stands behind a `[`, with its end.
fn set(rest: &mut &[u8]) -> Result<Box<[bool; 256]>, MalformedPattern> {
    let mut set = Box::new([false; 256]);
    let mut add = |from: u8, to: u8, is_member: &dyn Fn(u8) -> bool| {
        for (byte, member) in (0..=u8::MAX).zip(set.iter_mut()) {
            *member |= (from..=to).contains(&byte) && is_member(byte);
        }
    };
    let is_negated = matches!(rest.first(), Some(b'!' | b'^'));
    if is_negated {
        taken(rest)?;
    }
    // A range begins at the byte before its hyphen.
    let mut before: Option<u8> = None;
    let mut is_first = true;
    loop {
        let byte = taken(rest)?;
        match byte {
            b']' if !is_first => break,
            b'-' if before.is_some() && !matches!(rest.first(), None | Some(b']')) => {
                let to = match taken(rest)? {
                    b'\\' => taken(rest)?,
                    to => to,
                };
                add(before.take().unwrap_or(to), to, &|_| true);
            }
            b'[' if rest.first() == Some(&b':') => {
                let end = rest.windows(2).skip(1).position(|pair| pair == b":]").ok_or(MalformedPattern)? + 1;
                let class = class(rest.get(1..end).unwrap_or_default()).ok_or(MalformedPattern)?;
                *rest = rest.get(end + 2..).unwrap_or_default();
                add(0, u8::MAX, &|byte| class(&byte));
                before = None;
            }
            other => {
                let literal = if other == b'\\' { taken(rest)? } else { other };
                add(literal, literal, &|_| true);
                before = Some(literal);
            }
        }
        is_first = false;
    }
    if is_negated {
        set.iter_mut().for_each(|member| *member = !*member);
    }
    Ok(set)
}

/// The bytes of a named class: `[[:digit:]]`.
fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| byte.is_ascii_whitespace() || *byte == 0x0b,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, path: &str) -> bool {
        let (path, is_directory) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        let pattern = Pattern::parse(pattern.as_bytes()).unwrap().unwrap();
        pattern.matches(Some(&names), names.last().unwrap(), is_directory)
    }

    #[test]
    fn patterns_match_as_in_git() {
        for (pattern, matching, others) in [
            ("a.yaml", &["a.yaml", "x/a.yaml", "a.yaml/"] as &[_], &["b/a.yaml/c", "aa.yaml", "a-yaml"] as &[_]),
            ("*.yaml", &[".yaml", "a.yaml", "x/y/a.yaml"], &["a.yml", "a.yaml.b"]),
            ("/a", &["a", "a/"], &["x/a"]),
            ("x/a", &["x/a"], &["y/x/a", "a", "x/a/b"]),
            ("[ab][/c]", &["ac", "bc"], &["a/c", "a/", "x/ac"]),
            ("out/", &["out/", "x/out/"], &["out", "x/out"]),
            ("x/*", &["x/a", "x/.a"], &["x/a/b", "x"]),
            ("x/**", &["x/a", "x/a/b"], &["x", "y/x/a"]),
            ("**/a", &["a", "x/a", "x/y/a"], &["x/b"]),
            ("x/**/a", &["x/a", "x/y/a", "x/y/z/a"], &["a", "y/x/a", "x/a/b"]),
            ("x/**/**/a", &["x/a", "x/y/a"], &["x/b"]),
            ("**", &["a", "x/a"], &[]),
            ("/**", &["a", "x/a"], &[]),
            ("a**b", &["ab", "axxb", "x/acb"], &["a/b"]),
            ("**a/b", &["a/b", "xa/b"], &["x/a/b"]),
            ("a?c", &["abc"], &["ac", "abbc"]),
            ("[a-cx]1", &["b1", "x1"], &["d1", "-1"]),
            ("[!a-c]1", &["d1"], &["b1"]),
            ("[^a]", &["b"], &["a"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[\\]x]", &["]", "x"], &["\\"]),
            ("[[:digit:]_]", &["7", "_"], &["a", ":"]),
            ("\\!a", &["!a"], &["a"]),
            ("\\#a", &["#a"], &["a"]),
            ("\\*", &["*"], &["a"]),
            ("a  ", &["a"], &["a  "]),
            ("a\\  ", &["a "], &["a", "a  "]),
            ("a\r", &["a"], &[]),
            ("*a*b*c*", &["xaxbxcx", "abc"], &["acb"]),
        ] {
            for path in matching {
                assert!(is_match(pattern, path), "{pattern} must match {path}");
            }
            for path in others {
                assert!(!is_match(pattern, path), "{pattern} must not match {path}");
            }
        }
    }

    #[test]
    fn lines_without_a_pattern() {
        for line in ["", "   ", "# a", "/", "!", "\r"] {
            assert!(Pattern::parse(line.as_bytes()).unwrap().is_none(), "{line:?}");
        }
        for line in ["[", "[a", "[a-", "x/[", "a\\", "[[:nothing:]]", "[]", "[[:alpha"] {
            assert_eq!(Pattern::parse(line.as_bytes()).unwrap_err(), MalformedPattern, "{line}");
        }
        assert!(Pattern::parse(b"!a").unwrap().unwrap().is_negated);
    }

    /// Backtracking without a limit would not end.
    #[test]
    fn many_stars_take_bounded_time() {
        let name = "a".repeat(5000);
        assert!(!is_match(&format!("{}b", "*a".repeat(1000)), &name));
        let path = vec!["a"; 1500].join("/");
        assert!(!is_match(&format!("{}b", "**/a/".repeat(300)), &path));
    }

    #[test]
    fn without_a_path_only_names_match() {
        let matches = |pattern: &str| {
            let pattern = Pattern::parse(pattern.as_bytes()).unwrap().unwrap();
            pattern.matches(None, b"a", false)
        };
        assert!(matches("a") && matches("*") && !matches("/a") && !matches("x/a") && !matches("**/a"));
    }
}
