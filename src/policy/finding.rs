//! What a rule says, and where.

use std::ops::Range;

use super::{Action, Rule, Wanted};
use crate::cni::edit::Edit;
use crate::json::{Document, Span, line_column};

/// How many findings of one rule are kept for one object. A hostile object must not become a hostile answer.
pub(crate) const MOST_PER_RULE: usize = 16;
/// How long a message may get; a value that a rule quotes may be of any length.
const MOST_WORDS: usize = 400;

/// One thing that is wrong with an object.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What is done about it.
    pub action: Action,
    /// In audit mode: what would have been done.
    pub would: Option<Action>,
    /// Why less is done than the rule asks for.
    pub because: Option<Because>,
    /// Where in the object.
    pub pointer: String,
    /// Where in the text at that pointer, if that text is JSON of its own.
    pub config: Option<ConfigPlace>,
    /// What is wrong and what happens at run time because of it.
    pub message: String,
    /// How to mend it.
    pub help: String,
    /// Whether the key is wrong, and not its value.
    pub is_about_key: bool,
    /// The text that is wrong, so that the same mistake is known again.
    pub(crate) offence: String,
    /// The most that may be done about this very finding.
    pub(crate) ceiling: Action,
    /// What mends it.
    pub(crate) repairs: Vec<Repair>,
}

/// A place in a JSON text that is itself a string in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigPlace {
    /// The JSON pointer in that text.
    pub pointer: String,
    /// The bytes of the decoded string.
    pub span: Range<usize>,
    /// The line in that text, from 1.
    pub line: usize,
    /// The column in that text, from 1.
    pub column: usize,
}

/// Why less is done about a finding than its rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The object is being deleted.
    Deleting,
    /// The object had the same finding before this write.
    Ratchet,
    /// The writer or the namespace is exempt.
    Exempt,
    /// The operator wrote it; refusing would only make it retry for ever.
    Operator,
    /// The policy excepts this object from this rule, for this reason.
    Exception(String),
}

impl Because {
    /// As reports spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deleting => "deleting",
            Self::Ratchet => "ratchet",
            Self::Exempt => "exempt",
            Self::Operator => "operator",
            Self::Exception(_) => "exception",
        }
    }
}

/// A change that mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Set an annotation.
    Annotate(&'static str, String),
    /// Take an annotation away.
    RemoveAnnotation(&'static str),
    /// Edit `spec.config`.
    Config(Edit),
}

impl Finding {
    /// Nothing worse than a warning comes of this one.
    pub(crate) fn at_most_warn(&mut self) -> &mut Self {
        self.ceiling = Action::Warn;
        self
    }

    /// It is the key that is wrong.
    pub(crate) fn about_key(&mut self) -> &mut Self {
        self.is_about_key = true;
        self
    }

    /// It is mended where that can be done and is wanted; where not, nothing worse than a warning comes of it.
    pub(crate) fn never_denied(&mut self) -> &mut Self {
        self.ceiling = Action::Patch;
        self
    }

    /// Adds what mends it.
    pub(crate) fn mended_by(&mut self, repairs: impl IntoIterator<Item = Repair>) -> &mut Self {
        self.repairs.extend(repairs);
        self
    }
}

/// Where rules put what they find.
#[derive(Debug)]
pub(crate) struct Findings<'d> {
    document: Option<&'d Document<'d>>,
    list: Vec<Finding>,
    wanted: Option<Wanted>,
    /// Where findings over the limit go.
    spare: Option<Finding>,
}

impl<'d> Findings<'d> {
    /// For the rules of an object whose config is that document, if it could be read.
    pub(crate) fn new(document: Option<&'d Document<'d>>) -> Self {
        Self { document, list: Vec::new(), wanted: None, spare: None }
    }

    /// A finding about the JSON inside `spec.config`, at the value or key with that span.
    pub(crate) fn config(
        &mut self,
        rule: &'static Rule,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        // Finding the place takes a walk through the document, which nobody needs for what is not kept.
        let place = self.document.filter(|_| !self.is_full(rule)).map(|document| {
            let (line, column) = line_column(document.text, span.start as usize);
            ConfigPlace { pointer: document.pointer_to(span), span: span.range(), line, column }
        });
        let offence = self.document.and_then(|document| document.text.get(span.range())).unwrap_or_default();
        let offence = shortened(offence, MOST_WORDS);
        let finding = self.add(rule, "/spec/config".to_owned(), place, message.into(), help.into());
        finding.offence = offence;
        finding
    }

    /// A finding about a field of the object.
    pub(crate) fn object(
        &mut self,
        rule: &'static Rule,
        pointer: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        self.add(rule, pointer.into(), None, message.into(), help.into())
    }

    /// A finding about a place in a text that could not be read as a document.
    pub(crate) fn text(
        &mut self,
        rule: &'static Rule,
        pointer: impl Into<String>,
        place: ConfigPlace,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        self.add(rule, pointer.into(), Some(place), message.into(), help.into())
    }

    /// The place of a value or key in the config, as a JSON pointer.
    pub(crate) fn pointer(&self, span: Span) -> String {
        self.document.map(|document| document.pointer_to(span)).unwrap_or_default()
    }

    /// Whether that rule found something at a pointer, above it or below it.
    pub(crate) fn covers(&self, rule: &'static Rule, pointer: &str) -> bool {
        let is_below = |below: &str, above: &str| {
            below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut places =
            self.list.iter().filter(|finding| finding.rule == rule).map(|finding| finding.pointer.as_str());
        places.any(|place| is_below(place, pointer) || is_below(pointer, place))
    }

    /// A finding made elsewhere, put in its place in this object.
    pub(crate) fn moved(&mut self, finding: Finding, pointer: String, config: Option<ConfigPlace>) {
        let Finding { rule, message, help, ceiling, offence, .. } = finding;
        let moved = self.add(rule, pointer, config, message, help);
        moved.ceiling = ceiling;
        moved.offence = offence;
    }

    /// Whether no more findings of that rule are kept.
    pub(crate) fn is_full(&self, rule: &'static Rule) -> bool {
        self.list.iter().filter(|known| known.rule == rule).count() >= MOST_PER_RULE
    }

    /// Notes what would have to be known.
    pub(crate) fn wants(&mut self, wanted: Wanted) {
        self.wanted = Some(wanted);
    }

    /// All of them, and what would have had to be known.
    pub(crate) fn into_parts(self) -> (Vec<Finding>, Option<Wanted>) {
        (self.list, self.wanted)
    }

    fn add(
        &mut self,
        rule: &'static Rule,
        pointer: String,
        config: Option<ConfigPlace>,
        message: String,
        help: String,
    ) -> &mut Finding {
        let finding = Finding {
            rule,
            action: rule.default,
            would: None,
            because: None,
            pointer,
            config,
            message: shortened(message, MOST_WORDS),
            help: shortened(help, MOST_WORDS),
            is_about_key: false,
            offence: String::new(),
            ceiling: Action::Deny,
            repairs: Vec::new(),
        };
        if self.is_full(rule) {
            return self.spare.insert(finding);
        }
        self.list.push_mut(finding)
    }
}

/// A text for people: all of it if it is short, else its beginning.
pub(crate) fn shortened(text: impl Into<String>, most: usize) -> String {
    let mut text = text.into();
    if text.len() > most
        && let Some((cut, _)) = text.char_indices().nth(most)
    {
        text.truncate(cut);
        text.push('…');
    }
    text
}
