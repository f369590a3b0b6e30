//! From parser events to nodes: anchors, merge keys, limits.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Chain, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};

use crate::json;

use super::{Entry, Error, Node, Scalar, Style, Value, resolve};

/// The deepest nesting that is read; each level costs a stack frame.
const MAX_DEPTH: usize = 128;
/// How much one document may take before it counts as a bomb.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// How many bytes its anchors and aliases may add.
    aliased: usize,
    /// How many values it may hold, those of aliases not counted.
    values: usize,
}

/// For the files of a person, who waits for nobody but themselves.
const OF_FILES: Bounds = Bounds { aliased: 16 << 20, values: usize::MAX };
/// For what is sent to a server, which judges several at once. The template has no anchors: whoever adds one changes what it means.
const OF_REQUESTS: Bounds = Bounds { aliased: 0, values: 1 << 12 };
/// The parser keeps what it was handed as four-byte characters: hand it little at a time.
const CHUNK: usize = 8 << 10;

/// A comment behind the last line: the parser looks a few characters ahead without asking whether they are there.
const PADDING: &[u8] = b"\n#           ";

/// The documents of a text, one after the other; one that cannot be read does not hide the next. They are cut apart as the
/// Kubernetes tools do it, at every line that begins with three dashes, before anything is parsed.
pub struct Documents<'t> {
    text: &'t str,
    /// Where the next document begins; `None` after the last.
    next: Option<usize>,
    /// Line numbers are counted up to here, and so many there were.
    counted: usize,
    line: usize,
    bounds: Bounds,
}

/// One document of a stream.
#[derive(Debug)]
pub struct Document {
    /// The line it begins on, from 1.
    pub line: usize,
    /// Its content, or why there is none.
    pub node: Result<Node, Error>,
}

impl<'t> Documents<'t> {
    /// The documents in a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, next: Some(0), counted: 0, line: 1, bounds: OF_FILES }
    }

    /// The same within narrower bounds: a text that is meant to be small, and that somebody else wrote.
    pub fn small(text: &'t str) -> Self {
        Self { bounds: OF_REQUESTS, ..Self::new(text) }
    }

    /// The next part between two separators: its offset and its text.
    fn next_part(&mut self) -> Option<(usize, &'t str)> {
        let start = self.next.take()?;
        let rest = self.text.get(start..)?;
        let mut end = rest.len();
        for (at, _) in rest.match_indices("\n---") {
            let after = rest.get(at + 4..).unwrap_or_default();
            let line = after.lines().next().unwrap_or_default();
            if !line.is_empty() && !line.starts_with([' ', '\t']) {
                continue;
            }
            // What stands on the separator's own line belongs to the document it begins, unless it is a comment.
            let is_bare = line.trim_start().is_empty() || line.trim_start().starts_with('#');
            let behind = start + at + 4 + after.find('\n').map_or(after.len(), |newline| newline + 1);
            self.next = Some(if is_bare { behind } else { start + at + 1 });
            end = at + 1;
            break;
        }
        let part = rest.get(..end).unwrap_or_default();
        // Files that were joined together may leave a byte order mark in the middle.
        let text = part.strip_prefix('\u{feff}').unwrap_or(part);
        Some((start + part.len() - text.len(), text))
    }
}

impl Documents<'_> {
    fn document(&self, part: &str, offset: usize) -> Option<Document> {
        // What begins like JSON is read as JSON, if it is JSON: its escapes are not quite YAML's.
        if part.trim_start().starts_with('{')
            && let Ok(json) = json::Document::parse_unbounded(part, MAX_DEPTH)
        {
            let line = self.line + newlines(part, 0..json.root.span.start as usize);
            return Some(Document { line, node: Ok(from_json(json.root, offset)) });
        }
        Composer::new(part, offset, self.line, self.bounds).document()
    }
}

/// A JSON value as a node. Of equal keys the last one counts.
fn from_json(value: json::Value<'_>, offset: usize) -> Node {
    let place = |span: json::Span| offset + span.start as usize..offset + span.end as usize;
    let span = place(value.span);
    let (style, value) = match value.kind {
        json::Kind::Null => (Style::Plain, Value::Null),
        json::Kind::Bool(flag) => (Style::Plain, Value::Bool(flag)),
        json::Kind::Number(text) => match text.parse() {
            Ok(number) => (Style::Plain, Value::Number(number)),
            Err(_) => (Style::Plain, Value::String(text.into_owned())),
        },
        json::Kind::String(text) => (Style::DoubleQuoted, Value::String(text.into_owned())),
        json::Kind::Array(elements) => {
            (Style::Plain, Value::List(elements.into_iter().map(|element| from_json(element, offset)).collect()))
        }
        json::Kind::Object(members) => {
            let mut seen = HashSet::new();
            let last = members.into_iter().rev().filter(|member| seen.insert(member.key.clone()));
            let mut entries: Vec<_> = last
                .map(|member| Entry {
                    key: member.key.into_owned(),
                    key_span: place(member.key_span),
                    node: from_json(member.value, offset),
                })
                .collect();
            entries.reverse();
            (Style::Plain, Value::Map(entries))
        }
    };
    Node { span, style, value }
}

impl Iterator for Documents<'_> {
    type Item = Document;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (offset, part) = self.next_part()?;
            self.line += newlines(self.text, self.counted..offset);
            self.counted = offset;
            if let Some(document) = self.document(part, offset) {
                return Some(document);
            }
        }
    }
}

fn newlines(text: &str, range: Range<usize>) -> usize {
    text.as_bytes().get(range).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
}

struct Composer<'t> {
    part: &'t str,
    parser: Parser<BufReader<Chain<&'t [u8], &'static [u8]>>>,
    /// Where the part begins in the whole text.
    offset: usize,
    line: usize,
    last_line: usize,
    /// Anchored nodes, and about how many bytes each takes.
    anchors: HashMap<String, (Rc<Node>, usize)>,
    aliased: usize,
    values: usize,
    bounds: Bounds,
}

impl<'t> Composer<'t> {
    fn new(part: &'t str, offset: usize, line: usize, bounds: Bounds) -> Self {
        let mut parser = Parser::new();
        let end: &[u8] = if part.ends_with('\n') { PADDING.trim_ascii_start() } else { PADDING };
        let capacity = CHUNK.min(part.len() + end.len());
        parser.set_input(BufReader::with_capacity(capacity, part.as_bytes().chain(end)));
        parser.set_encoding(Encoding::Utf8);
        let last_line = line + part.trim_end().matches('\n').count();
        Self { part, parser, offset, line, last_line, anchors: HashMap::new(), aliased: 0, values: 0, bounds }
    }

    /// The one document of the part, if there is any.
    fn document(&mut self) -> Option<Document> {
        loop {
            let event = match self.next() {
                Ok(event) => event,
                Err(error) => return Some(Document { line: error.line, node: Err(error) }),
            };
            match event.data {
                EventData::StreamStart { .. } | EventData::DocumentStart { .. } => {}
                EventData::StreamEnd | EventData::DocumentEnd { .. } => return None,
                _ => {
                    let line = self.line_of(event.start_mark);
                    let node = self.node_from(event, 0);
                    return Some(Document { line, node: node.and_then(|node| self.end().map(|()| node)) });
                }
            }
        }
    }

    /// Behind the one value of a document there is nothing more.
    fn end(&mut self) -> Result<(), Error> {
        let event = self.next()?;
        match event.data {
            // The parser notices what follows only when it is asked for more.
            EventData::DocumentEnd { .. } => self.next().map(drop),
            _ => Err(self.error_at(event.start_mark, "text follows after the document's value".to_owned())),
        }
    }

    fn next(&mut self) -> Result<Event, Error> {
        // The parser panics on a few texts that nobody writes (`[!a,]`). They are errors like any other here.
        let parser = AssertUnwindSafe(|| self.parser.parse());
        let Ok(event) = catch_unwind(parser) else {
            return Err(self.error_at(Mark::default(), "it cannot be read as YAML".to_owned()));
        };
        event.map_err(|error| {
            let mark = error.problem_mark().unwrap_or_default();
            let problem = match error.context() {
                Some(context) => format!("{} {context}", error.problem()),
                None => error.problem().to_owned(),
            };
            self.error_at(mark, problem)
        })
    }

    fn node(&mut self, depth: usize) -> Result<Node, Error> {
        let event = self.next()?;
        self.node_from(event, depth)
    }

    fn node_from(&mut self, event: Event, depth: usize) -> Result<Node, Error> {
        let Event { data, start_mark: start, end_mark: end, .. } = event;
        if depth > MAX_DEPTH {
            return Err(self.error_at(start, format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        self.values += 1;
        if self.values > self.bounds.values {
            return Err(self.error_at(start, format!("it holds more than {} values", self.bounds.values)));
        }
        let (node, anchor) = match data {
            EventData::Scalar { anchor, tag, value, style, .. } => {
                (self.scalar(value, style, tag.as_deref(), start, end)?, anchor)
            }
            EventData::SequenceStart { anchor, .. } => (self.list(start, depth)?, anchor),
            EventData::MappingStart { anchor, .. } => (self.map(start, depth)?, anchor),
            EventData::Alias { anchor } => return self.alias(&anchor, start),
            _ => return Err(self.error_at(start, "a value is expected here".to_owned())),
        };
        if let Some(name) = anchor {
            let size = size(&node);
            self.add_aliased(size, start)?;
            self.anchors.insert(name, (Rc::new(node.clone()), size));
        }
        Ok(node)
    }

    fn alias(&mut self, name: &str, mark: Mark) -> Result<Node, Error> {
        // An alias inside its own anchor finds nothing either: a node is stored when it is complete.
        let Some((node, size)) = self.anchors.get(name).cloned() else {
            return Err(self.error_at(mark, format!("the alias `{name}` refers to nothing before it")));
        };
        self.add_aliased(size, mark)?;
        Ok((*node).clone())
    }

    fn add_aliased(&mut self, size: usize, mark: Mark) -> Result<(), Error> {
        self.aliased += size;
        if self.aliased <= self.bounds.aliased {
            return Ok(());
        }
        let problem = match self.bounds.aliased >> 20 {
            0 => "it has an anchor".to_owned(),
            most => format!("its anchors and aliases expand to more than {most} MiB"),
        };
        Err(self.error_at(mark, problem))
    }

    fn list(&mut self, start: Mark, depth: usize) -> Result<Node, Error> {
        let mut nodes = Vec::new();
        loop {
            let event = self.next()?;
            if event.data == EventData::SequenceEnd {
                return Ok(self.plain(Value::List(nodes), start, event.end_mark));
            }
            nodes.push(self.node_from(event, depth + 1)?);
        }
    }

    fn map(&mut self, start: Mark, depth: usize) -> Result<Node, Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut merges = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let event = self.next()?;
            let mark = event.start_mark;
            if event.data == EventData::MappingEnd {
                for node in merges {
                    if !merge(&mut entries, &mut seen, node) {
                        return Err(self.error_at(start, "`<<` takes a mapping or a list of them".to_owned()));
                    }
                }
                return Ok(self.plain(Value::Map(entries), start, event.end_mark));
            }
            let key = self.node_from(event, depth + 1)?;
            let is_merge = key.style == Style::Plain && key.as_str() == Some("<<");
            let Some(text) = key_text(key.value) else {
                return Err(self.error_at(mark, "a key must be a text, a number or a boolean".to_owned()));
            };
            let node = self.node(depth + 1)?;
            if is_merge {
                merges.push(node);
                continue;
            }
            if !seen.insert(text.clone()) {
                return Err(self.error_at(mark, format!("the key `{text}` stands twice in one mapping")));
            }
            entries.push(Entry { key: text, key_span: key.span, node });
        }
    }

    fn scalar(
        &self,
        text: String,
        style: ScalarStyle,
        tag: Option<&str>,
        start: Mark,
        end: Mark,
    ) -> Result<Node, Error> {
        let style = match style {
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
            _ => Style::Plain,
        };
        let is_text = match tag.map(|tag| tag.strip_prefix("tag:yaml.org,2002:").unwrap_or(tag)) {
            None => style != Style::Plain,
            Some(tag) => !matches!(tag, "int" | "float" | "bool" | "null"),
        };
        let value = match if is_text { Scalar::String } else { resolve(&text) } {
            Scalar::Null => Value::Null,
            Scalar::Bool(flag) => Value::Bool(flag),
            Scalar::String => Value::String(text),
            Scalar::Int(integer) => {
                let number = i64::try_from(integer).map(Into::into).or_else(|_| u64::try_from(integer).map(Into::into));
                number.map_or_else(|_| Value::String(text), Value::Number)
            }
            // Go writes a whole number without its point.
            Scalar::Float(float) if float.fract() == 0.0 && float.abs() < 1e15 => Value::Number((float as i64).into()),
            Scalar::Float(float) => match serde_json::Number::from_f64(float) {
                Some(number) => Value::Number(number),
                None => return Err(self.error_at(start, format!("`{text}` has no place in JSON"))),
            },
        };
        let mut span = self.span(start, end);
        span.start += self.properties(start, end);
        Ok(Node { span, style, value })
    }

    /// How many bytes an anchor and a tag take in front of a scalar.
    fn properties(&self, start: Mark, end: Mark) -> usize {
        let text = self.part.get(start.index as usize..end.index as usize).unwrap_or_default();
        let mut rest = text;
        while rest.starts_with(['&', '!']) {
            rest = rest.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
        }
        text.len() - rest.len()
    }

    fn plain(&self, value: Value, start: Mark, end: Mark) -> Node {
        Node { span: self.span(start, end), style: Style::Plain, value }
    }

    fn span(&self, start: Mark, end: Mark) -> Range<usize> {
        let start = self.offset + start.index as usize;
        start..(self.offset + end.index as usize).max(start)
    }

    fn line_of(&self, mark: Mark) -> usize {
        self.line + mark.line as usize
    }

    fn error_at(&self, mark: Mark, problem: String) -> Error {
        // What is missed at the end is missed behind the last line.
        let line = self.line_of(mark).min(self.last_line);
        Error { line, column: mark.column as usize + 1, problem }
    }
}

/// Adds what `<<` brings: keys that are not there yet, earlier sources first. False if it brings no mapping.
fn merge(entries: &mut Vec<Entry>, seen: &mut HashSet<String>, node: Node) -> bool {
    match node.value {
        Value::Map(more) => {
            entries.extend(more.into_iter().filter(|entry| seen.insert(entry.key.clone())));
            true
        }
        Value::List(nodes) => nodes.into_iter().all(|node| merge(entries, seen, node)),
        _ => false,
    }
}

fn key_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

/// About how many bytes a node takes.
fn size(node: &Node) -> usize {
    size_of::<Node>()
        + match &node.value {
            Value::List(nodes) => nodes.iter().map(size).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.key.len() + size(&entry.node)).sum(),
            Value::String(text) => text.len(),
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        Documents::new(text)
            .map(|document| match document.node {
                Ok(node) => format!("{} {}", document.line, node.to_json()),
                Err(error) => format!("{} ! {}", document.line, error.problem),
            })
            .collect()
    }

    #[test]
    fn reads_documents_as_json() {
        for (text, want) in [
            ("a: 1\nb: [x, y, 'y', 0644, 1.5, ~]\n", &[r#"1 {"a":1,"b":["x",true,"y",420,1.5,null]}"#] as &[_]),
            ("# only a comment\n", &[]),
            ("---\na: 1\n---\n# c\nb: 2\n...\n", &[r#"2 {"a":1}"#, r#"5 {"b":2}"#]),
            ("{\n\t\"a\": \"\\u00e9\\n\",\n\t\"b\": [true]\n}", &[r#"1 {"a":"é\n","b":[true]}"#]),
            ("a: &a {k: 1, l: 2}\nb: {<<: *a, l: 3}\n", &[r#"1 {"a":{"k":1,"l":2},"b":{"l":3,"k":1}}"#]),
            ("1: a\ntrue: b\n", &[r#"1 {"1":"a","true":"b"}"#]),
            ("a: !!str 5\nb: !!int \"5\"\nc: ! 5\nd: !x 5\n", &[r#"1 {"a":"5","b":5,"c":"5","d":"5"}"#]),
            ("a: 1e3\nb: 1.5\n", &[r#"1 {"a":1000,"b":1.5}"#]),
            (
                "a: 1\n--- # c\nb: 2\n--- {c: 3}\n----\n",
                &[r#"1 {"a":1}"#, r#"3 {"b":2}"#, "4 ! did not find expected <document start>"],
            ),
            ("a: 1\n---\n\u{feff}b: 2\n", &[r#"1 {"a":1}"#, r#"3 {"b":2}"#]),
        ] {
            assert_eq!(all(text), want, "{text:?}");
        }
    }

    #[test]
    fn one_broken_document_does_not_hide_the_others() {
        let documents = all("a: 1\n---\nb: [1\n---\nc: 3\n");
        assert_eq!(documents.len(), 3, "{documents:?}");
        assert_eq!(documents.first().unwrap(), r#"1 {"a":1}"#);
        assert!(documents.get(1).unwrap().contains('!'), "{documents:?}");
        assert_eq!(documents.last().unwrap(), r#"5 {"c":3}"#);
    }

    /// Texts that make the parser itself panic, some of them reported to its authors and still open.
    #[test]
    fn a_panic_of_the_parser_is_an_error_of_that_document() {
        for text in ["[!,", "[!a,]", "{!a,}", "a: ''|\n 0", "- [!a, b]\n", "a: [!!,x]"] {
            let documents = all(&format!("{text}\n---\nb: 2\n"));
            assert!(documents.first().unwrap().contains('!'), "{text}: {documents:?}");
            assert_eq!(documents.last().unwrap().split_once(' ').unwrap().1, r#"{"b":2}"#, "{text}");
        }
    }

    #[test]
    fn what_is_sent_to_a_server_has_narrower_limits() {
        let bomb = format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(100), "*a,".repeat(1000));
        for (text, want) in
            [(bomb.as_str(), "it has an anchor"), (&format!("[{}]", "0,".repeat(5000)), "more than 4096 values")]
        {
            assert!(Documents::new(text).all(|document| document.node.is_ok()));
            let problem = Documents::small(text).next().unwrap().node.unwrap_err().problem;
            assert!(problem.contains(want), "{problem}");
        }
    }

    #[test]
    fn limits_hold() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f")] {
            bomb += &format!("{name}: &{name} [*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of}]\n");
        }
        for (text, want) in [
            (bomb.as_str(), "aliases expand"),
            (&format!("a: &a {}\nb: [{}]\n", "x".repeat(20_000), "*a,".repeat(50_000)), "aliases expand"),
            (&"[".repeat(100_000), "nested deeper"),
            (&"- ".repeat(200), "nested deeper"),
            ("a: &a [*a]\n", "alias"),
            ("a: 1\na: 2\n", "twice"),
            ("a: .inf\n", "no place in JSON"),
            ("<<: x\n", "takes a mapping"),
            ("~: x\n", "a key must be"),
            ("-x\n  f: g\n", "mapping values are not allowed"),
        ] {
            let documents = all(text);
            let first = documents.first().unwrap();
            assert!(first.contains(want), "{first}");
        }
    }
}
