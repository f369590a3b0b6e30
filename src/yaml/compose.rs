//! From parser events to nodes: anchors, merge keys, limits.

mod nodes;

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Chain, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};

use crate::json;

use nodes::{from_json, key_text, merge, size};

use super::{MapEntry, Scalar, Style, YamlError, YamlNode, YamlValue, resolve};

/// The deepest nesting that is read; each level costs a stack frame.
const MAX_DEPTH: usize = 128;
/// Limits against YAML bombs.
#[derive(Clone, Copy, Debug)]
struct DocumentLimits {
    /// How many bytes its anchors and aliases may add.
    aliased: usize,
    /// How many values it may hold, those of aliases not counted.
    values: usize,
}

/// For local files.
const OF_FILES: DocumentLimits = DocumentLimits { aliased: 16 << 20, values: usize::MAX };
/// For requests, which are judged concurrently. The operator's template has no anchors, so one in its rendering is injected.
const OF_REQUESTS: DocumentLimits = DocumentLimits { aliased: 0, values: 1 << 12 };
/// The parser buffers input as four-byte characters, so it gets small chunks.
const CHUNK: usize = 8 << 10;

/// A comment after the last line: the parser reads a few characters ahead without a bounds check.
const PADDING: &[u8] = b"\n#           ";

/// The documents of a text, one after the other; one that cannot be read does not hide the next. They are cut apart as the
/// Kubernetes tools do it, at every line of three dashes, alone or followed by a blank, before anything is parsed.
pub struct Documents<'t> {
    text: &'t str,
    /// Where the next document begins; `None` after the last.
    next: Option<usize>,
    /// `line` is the number of the line at this byte.
    counted: usize,
    line: usize,
    bounds: DocumentLimits,
}

/// One document of a stream.
#[derive(Debug)]
pub struct YamlDocument {
    /// The line it begins on, from 1.
    pub line: usize,
    /// Its part of the whole text, comments and separators of other forms included.
    pub part: Range<usize>,
    /// Its content, or why there is none.
    pub node: Result<YamlNode, YamlError>,
}

impl<'t> Documents<'t> {
    /// The documents in a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, next: Some(0), counted: 0, line: 1, bounds: OF_FILES }
    }

    /// The same with narrower limits, for small untrusted texts.
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
            // Text on the separator line belongs to the document it starts, unless it is a comment.
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
    fn document(&self, part: &str, offset: usize) -> Option<YamlDocument> {
        // Valid JSON is parsed as JSON, because its escapes differ from those of YAML.
        if part.trim_start().starts_with('{')
            && let Ok(json) = json::Document::parse_unbounded(part, MAX_DEPTH)
        {
            let line = self.line + newlines(part, 0..json.root.span.start as usize);
            return Some(YamlDocument {
                line,
                part: offset..offset + part.len(),
                node: Ok(from_json(json.root, offset)),
            });
        }
        Composer::new(part, offset, self.line, self.bounds).document()
    }
}

impl Iterator for Documents<'_> {
    type Item = YamlDocument;

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
    anchors: HashMap<String, (Rc<YamlNode>, usize)>,
    aliased: usize,
    values: usize,
    bounds: DocumentLimits,
}

impl<'t> Composer<'t> {
    fn new(part: &'t str, offset: usize, line: usize, bounds: DocumentLimits) -> Self {
        let mut parser = Parser::new();
        let end: &[u8] = if part.ends_with('\n') { PADDING.trim_ascii_start() } else { PADDING };
        let capacity = CHUNK.min(part.len() + end.len());
        parser.set_input(BufReader::with_capacity(capacity, part.as_bytes().chain(end)));
        parser.set_encoding(Encoding::Utf8);
        let last_line = line + part.trim_end().matches('\n').count();
        Self { part, parser, offset, line, last_line, anchors: HashMap::new(), aliased: 0, values: 0, bounds }
    }

    /// The one document of the part, if there is any.
    fn document(&mut self) -> Option<YamlDocument> {
        loop {
            let event = match self.next() {
                Ok(event) => event,
                Err(error) => {
                    return Some(YamlDocument { line: error.line, part: self.whole_part(), node: Err(error) });
                }
            };
            match event.data {
                EventData::StreamStart { .. } | EventData::DocumentStart { .. } => {}
                EventData::StreamEnd | EventData::DocumentEnd { .. } => return None,
                _ => {
                    let line = self.line_of(event.start_mark);
                    let node = self.node_from(event, 0);
                    let node = node.and_then(|node| self.end().map(|()| node));
                    return Some(YamlDocument { line, part: self.whole_part(), node });
                }
            }
        }
    }

    fn whole_part(&self) -> Range<usize> {
        self.offset..self.offset + self.part.len()
    }

    /// Checks that nothing follows the value of a document.
    fn end(&mut self) -> Result<(), YamlError> {
        let event = self.next()?;
        match event.data {
            // The parser notices what follows only when it is asked for more.
            EventData::DocumentEnd { .. } => self.next().map(drop),
            _ => Err(self.error_at(event.start_mark, "unexpected text after the document's value".to_owned())),
        }
    }

    fn next(&mut self) -> Result<Event, YamlError> {
        // The parser panics on a few texts (`[!a,]`). They are reported as errors here.
        let parser = AssertUnwindSafe(|| self.parser.parse());
        let Ok(event) = catch_unwind(parser) else {
            return Err(self.error_at(Mark::default(), "not valid YAML".to_owned()));
        };
        event.map_err(|error| {
            let mut mark = error.problem_mark().unwrap_or_default();
            // What is missing at the end of the text belongs to what was opened before.
            if self.line_of(mark) > self.last_line {
                mark = error.context_mark().unwrap_or(mark);
            }
            let problem = match error.context() {
                Some(context) => format!("{} {context}", error.problem()),
                None => error.problem().to_owned(),
            };
            self.error_at(mark, problem)
        })
    }

    fn node(&mut self, depth: usize) -> Result<YamlNode, YamlError> {
        let event = self.next()?;
        self.node_from(event, depth)
    }

    fn node_from(&mut self, event: Event, depth: usize) -> Result<YamlNode, YamlError> {
        let Event { data, start_mark: start, end_mark: end, .. } = event;
        if depth > MAX_DEPTH {
            return Err(self.error_at(start, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.values += 1;
        if self.values > self.bounds.values {
            return Err(self.error_at(start, format!("more than {} values", self.bounds.values)));
        }
        let (node, anchor) = match data {
            EventData::Scalar { anchor, tag, value, style, .. } => {
                (self.scalar(value, style, tag.as_deref(), start, end)?, anchor)
            }
            EventData::SequenceStart { anchor, .. } => (self.list(start, depth)?, anchor),
            EventData::MappingStart { anchor, .. } => (self.map(start, depth)?, anchor),
            EventData::Alias { anchor } => return self.alias(&anchor, start),
            _ => return Err(self.error_at(start, "expected a value".to_owned())),
        };
        if let Some(name) = anchor {
            let size = size(&node);
            self.add_aliased(size, start)?;
            self.anchors.insert(name, (Rc::new(node.clone()), size));
        }
        Ok(node)
    }

    fn alias(&mut self, name: &str, mark: Mark) -> Result<YamlNode, YamlError> {
        // An alias inside its own anchor finds nothing either: a node is stored when it is complete.
        let Some((node, size)) = self.anchors.get(name).cloned() else {
            return Err(self.error_at(mark, format!("the alias `{name}` refers to nothing before it")));
        };
        self.add_aliased(size, mark)?;
        Ok((*node).clone())
    }

    fn add_aliased(&mut self, size: usize, mark: Mark) -> Result<(), YamlError> {
        self.aliased += size;
        if self.aliased <= self.bounds.aliased {
            return Ok(());
        }
        let problem = match self.bounds.aliased >> 20 {
            0 => "anchors are not allowed".to_owned(),
            most => format!("anchors and aliases expand to more than {most} MiB"),
        };
        Err(self.error_at(mark, problem))
    }

    fn list(&mut self, start: Mark, depth: usize) -> Result<YamlNode, YamlError> {
        let mut nodes = Vec::new();
        loop {
            let event = self.next()?;
            if event.data == EventData::SequenceEnd {
                return Ok(self.plain(YamlValue::List(nodes), start, event.end_mark));
            }
            nodes.push(self.node_from(event, depth + 1)?);
        }
    }

    fn map(&mut self, start: Mark, depth: usize) -> Result<YamlNode, YamlError> {
        let mut entries: Vec<MapEntry> = Vec::new();
        let mut merges = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let event = self.next()?;
            let mark = event.start_mark;
            if event.data == EventData::MappingEnd {
                for node in merges {
                    if !merge(&mut entries, &mut seen, node) {
                        return Err(self.error_at(start, "`<<` requires a mapping or a list of mappings".to_owned()));
                    }
                }
                return Ok(self.plain(YamlValue::Map(entries), start, event.end_mark));
            }
            let key = self.node_from(event, depth + 1)?;
            let is_merge = key.style == Style::Plain && key.as_str() == Some("<<");
            let Some(text) = key_text(key.value) else {
                return Err(self.error_at(mark, "a key must be a string, a number or a boolean".to_owned()));
            };
            let node = self.node(depth + 1)?;
            if is_merge {
                merges.push(node);
                continue;
            }
            if !seen.insert(text.clone()) {
                return Err(self.error_at(mark, format!("duplicate key `{text}`")));
            }
            entries.push(MapEntry { key: text, key_span: key.span, node });
        }
    }

    fn scalar(
        &self,
        text: String,
        style: ScalarStyle,
        tag: Option<&str>,
        start: Mark,
        end: Mark,
    ) -> Result<YamlNode, YamlError> {
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
            Scalar::Null => YamlValue::Null,
            Scalar::Bool(flag) => YamlValue::Bool(flag),
            Scalar::String => YamlValue::String(text),
            Scalar::Int(integer) => {
                let number = i64::try_from(integer).map(Into::into).or_else(|_| u64::try_from(integer).map(Into::into));
                number.map_or_else(|_| YamlValue::String(text), YamlValue::Number)
            }
            // Go writes a whole number without its point.
            Scalar::Float(float) if float.fract() == 0.0 && float.abs() < 1e15 => {
                YamlValue::Number((float as i64).into())
            }
            Scalar::Float(float) => match serde_json::Number::from_f64(float) {
                Some(number) => YamlValue::Number(number),
                None => return Err(self.error_at(start, format!("`{text}` cannot be represented in JSON"))),
            },
        };
        let mut span = self.span(start, end);
        span.start += self.properties(start, end);
        Ok(YamlNode { span, style, value })
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

    fn plain(&self, value: YamlValue, start: Mark, end: Mark) -> YamlNode {
        YamlNode { span: self.span(start, end), style: Style::Plain, value }
    }

    fn span(&self, start: Mark, end: Mark) -> Range<usize> {
        let start = self.offset + start.index as usize;
        // What was added behind the last line is no part of the text.
        let end = self.offset + (end.index as usize).min(self.part.len());
        start..end.max(start)
    }

    fn line_of(&self, mark: Mark) -> usize {
        self.line + mark.line as usize
    }

    fn error_at(&self, mark: Mark, problem: String) -> YamlError {
        let line = self.line_of(mark);
        if line <= self.last_line {
            return YamlError { line, column: mark.column as usize + 1, problem };
        }
        // Something is missing at the end: the last character is the place.
        let last = self.part.trim_end().rsplit('\n').next().unwrap_or_default();
        YamlError { line: self.last_line, column: last.chars().count().max(1), problem }
    }
}

#[cfg(test)]
mod tests;
