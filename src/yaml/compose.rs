//! From parser events to nodes: anchors, merge keys, limits.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::{Entry, Error, Node, Scalar, Style, Value, resolve};

/// The deepest nesting that is read; each level costs a stack frame.
const MAX_DEPTH: usize = 128;
/// How many nodes aliases may add to one document before it counts as a bomb.
const MAX_ALIASED: usize = 100_000;

/// The documents of a text, one after the other; one that cannot be read does not hide the next.
pub struct Documents<'t> {
    parser: Parser<'t, StrInput<'t>>,
    ended: bool,
}

/// One document of a stream.
#[derive(Debug)]
pub struct Document<'t> {
    /// The line it begins on, from 1.
    pub line: usize,
    /// Its content, or why there is none.
    pub node: Result<Node<'t>, Error>,
}

impl<'t> Documents<'t> {
    /// The documents in a text.
    pub fn new(text: &'t str) -> Self {
        Self { parser: Parser::new_from_str(text), ended: false }
    }

    fn read_next(&mut self) -> Option<Result<Document<'t>, Error>> {
        loop {
            let (event, span) = match self.parser.next_event()? {
                Ok(next) => next,
                Err(error) => return Some(Err(scan_error(&error))),
            };
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => return None,
                Event::DocumentStart(..) => {
                    let mut composer = Composer { parser: &mut self.parser, anchors: HashMap::new(), aliased: 0 };
                    let line = composer.first_line().unwrap_or(span.start.line());
                    return Some(composer.node(0).map(|node| Document { line, node: Ok(node) }));
                }
                _ => {}
            }
        }
    }
}

impl<'t> Iterator for Documents<'t> {
    type Item = Document<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.read_next()? {
            Ok(document) => Some(document),
            Err(error) => {
                // Go on behind the next `---`; a parser that cannot has nothing more to say.
                self.ended = !matches!(self.parser.proceed_next_document(), Ok(true));
                Some(Document { line: error.line, node: Err(error) })
            }
        }
    }
}

struct Composer<'p, 't> {
    parser: &'p mut Parser<'t, StrInput<'t>>,
    /// Anchored nodes, and how many nodes each is.
    anchors: HashMap<usize, (Node<'t>, usize)>,
    aliased: usize,
}

impl<'t> Composer<'_, 't> {
    /// The line of the document's first node: what a person takes for its beginning.
    fn first_line(&mut self) -> Option<usize> {
        self.parser.peek().and_then(Result::ok).map(|(_, span)| span.start.line())
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Error> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Err(Error { line: 0, column: 0, problem: "the document ends too early".to_owned() }),
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node<'t>, Error> {
        let (event, span) = self.next()?;
        self.node_from(event, &span, depth)
    }

    fn node_from(&mut self, event: Event<'t>, span: &Span, depth: usize) -> Result<Node<'t>, Error> {
        if depth > MAX_DEPTH {
            return Err(error_at(span, format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        let anchor = event.anchor_id();
        let node = match event {
            Event::Scalar(text, style, _, tag) => scalar(text, style, tag.as_deref(), span)?,
            Event::SequenceStart(..) => self.list(span, depth)?,
            Event::MappingStart(..) => self.map(span, depth)?,
            Event::Alias(id) => return self.alias(id, span),
            _ => return Err(error_at(span, "a value is expected here".to_owned())),
        };
        if let Some(id) = anchor {
            let size = size(&node);
            self.anchors.insert(id, (node.clone(), size));
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<Node<'t>, Error> {
        // An alias inside its own anchor finds nothing here: the node is stored when it is complete.
        let Some((node, size)) = self.anchors.get(&id) else {
            return Err(error_at(span, "an alias refers to the value it stands in".to_owned()));
        };
        self.aliased += size;
        if self.aliased > MAX_ALIASED {
            return Err(error_at(span, format!("its aliases expand to more than {MAX_ALIASED} values")));
        }
        Ok(node.clone())
    }

    fn list(&mut self, start: &Span, depth: usize) -> Result<Node<'t>, Error> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => return Ok(collection(Value::List(nodes), start, &end)),
                (event, span) => nodes.push(self.node_from(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, start: &Span, depth: usize) -> Result<Node<'t>, Error> {
        let mut entries: Vec<Entry<'t>> = Vec::new();
        let mut merges = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                merge(&mut entries, merges);
                return Ok(collection(Value::Map(entries), start, &span));
            }
            let key_node = self.node_from(event, &span, depth + 1)?;
            let is_merge = key_node.style == Style::Plain && key_node.as_str() == Some("<<");
            let key = key_text(key_node.value).ok_or_else(|| error_at(&span, "a key must be a scalar".to_owned()))?;
            let node = self.node(depth + 1)?;
            if is_merge {
                merges.push(node);
                continue;
            }
            if !seen.insert(key.clone()) {
                return Err(error_at(&span, format!("the key `{key}` stands twice in one mapping")));
            }
            entries.push(Entry { key, key_span: key_node.span, node });
        }
    }
}

/// Adds what `<<` brings: keys that are not there yet, earlier sources first.
fn merge<'t>(entries: &mut Vec<Entry<'t>>, merges: Vec<Node<'t>>) {
    for node in merges {
        match node.value {
            Value::Map(more) => {
                for entry in more {
                    if !entries.iter().any(|known| known.key == entry.key) {
                        entries.push(entry);
                    }
                }
            }
            Value::List(nodes) => merge(entries, nodes),
            _ => {}
        }
    }
}

fn scalar<'t>(text: Cow<'t, str>, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Result<Node<'t>, Error> {
    let style = match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    };
    let is_text = style != Style::Plain || tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
    let value = match if is_text { Scalar::String } else { resolve(&text) } {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(flag),
        Scalar::String => Value::String(text),
        Scalar::Int(integer) => {
            let number = i64::try_from(integer).map(Into::into).or_else(|_| u64::try_from(integer).map(Into::into));
            number.map_or_else(|_| Value::String(text), Value::Number)
        }
        Scalar::Float(float) => match serde_json::Number::from_f64(float) {
            Some(number) => Value::Number(number),
            None => return Err(error_at(span, format!("`{text}` has no place in JSON"))),
        },
    };
    Ok(Node { span: bytes(span, span), style, value })
}

fn collection<'t>(value: Value<'t>, start: &Span, end: &Span) -> Node<'t> {
    Node { span: bytes(start, end), style: Style::Plain, value }
}

fn key_text(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text),
        Value::Null => Some(Cow::Borrowed("null")),
        Value::Bool(flag) => Some(Cow::Borrowed(if flag { "true" } else { "false" })),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::List(_) | Value::Map(_) => None,
    }
}

fn size(node: &Node<'_>) -> usize {
    match &node.value {
        Value::List(nodes) => 1 + nodes.iter().map(size).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|entry| size(&entry.node)).sum::<usize>(),
        _ => 1,
    }
}

fn bytes(start: &Span, end: &Span) -> Range<usize> {
    let from = start.start.byte_offset().unwrap_or_default();
    from..end.end.byte_offset().unwrap_or_default().max(from)
}

fn error_at(span: &Span, problem: String) -> Error {
    Error { line: span.start.line(), column: span.start.col() + 1, problem }
}

fn scan_error(error: &ScanError) -> Error {
    Error { line: error.marker().line(), column: error.marker().col() + 1, problem: error.info() }
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
            ("a: !!str 5\n", &[r#"1 {"a":"5"}"#]),
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

    #[test]
    fn limits_hold() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f")] {
            bomb += &format!("{name}: &{name} [*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of}]\n");
        }
        for (text, want) in [
            (bomb.as_str(), "aliases expand"),
            (&"[".repeat(100_000), "recursion limit"),
            (&"- ".repeat(200), "nested deeper"),
            ("a: &a [*a]\n", "alias"),
            ("a: 1\na: 2\n", "twice"),
            ("a: .inf\n", "no place in JSON"),
        ] {
            let documents = all(text);
            let first = documents.first().unwrap();
            assert!(first.contains(want), "{first}");
        }
    }
}
