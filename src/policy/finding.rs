//! What a rule says, and where.

use std::collections::BTreeMap;
use std::ops::Range;

use super::ratchet::{About, Judged, Ratchet};
use super::{Action, Facts, Reference, Rule, Wanted};
use crate::cni::edit::Edit;
use crate::json::{Document, Span, line_column};
use crate::resources::Nad;

/// How many findings of one rule are shown for one object. A hostile object must not become a hostile answer.
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
    /// Whether the stored object was denied for the same.
    pub(crate) is_excused: bool,
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Repair {
    /// Set an annotation.
    Annotate(&'static str, String),
    /// Take an annotation away.
    RemoveAnnotation(&'static str),
    /// Edit `spec.config`.
    Config(Edit),
}

impl Finding {
    fn new(rule: &'static Rule, pointer: String, config: Option<ConfigPlace>, message: String, help: String) -> Self {
        Self {
            rule,
            action: rule.default,
            would: None,
            because: None,
            pointer,
            config,
            message,
            help,
            is_about_key: false,
            is_excused: false,
            ceiling: Action::Deny,
            repairs: Vec::new(),
        }
    }

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
///
/// What is decided does not depend on how many findings there are: of each rule, so many are kept of each sort that is decided alike
/// ([`sort`]). Those beyond are dropped, and how many are shown is limited when it is known what is done about them.
#[derive(Debug)]
pub(crate) struct Findings<'d> {
    judged: Judged<'d>,
    document: Option<&'d Document<'d>>,
    ratchet: Ratchet,
    list: Vec<Finding>,
    /// The finding that was made last, to which its rule may still add, and where it is in the document.
    latest: Option<(Finding, Option<Span>)>,
    wanted: Option<Wanted>,
    /// The same about the object as it is stored: it does not displace what is wanted before that.
    wanted_at_last: Option<Wanted>,
}

/// What decides about a finding, besides its rule.
fn sort(finding: &Finding) -> (Action, bool, bool) {
    (finding.ceiling, finding.repairs.is_empty(), finding.is_excused)
}

impl<'d> Findings<'d> {
    /// For the rules of an object whose config is that document, if it could be read.
    pub(crate) fn new(judged: Judged<'d>, document: Option<&'d Document<'d>>, ratchet: Ratchet) -> Self {
        Self { judged, document, ratchet, list: Vec::new(), latest: None, wanted: None, wanted_at_last: None }
    }

    /// What `check` finds in a NAD that this object renders to; what the stored object excuses, it excuses there too.
    pub(crate) fn of_rendered(
        &mut self,
        nad: &Nad<'_>,
        document: Option<&Document<'_>>,
        check: impl FnOnce(&mut Findings<'_>),
    ) -> Vec<Finding> {
        let mut inner = Findings::new(Judged::Nad(nad), document, std::mem::take(&mut self.ratchet));
        check(&mut inner);
        let (found, _, ratchet) = inner.into_parts();
        self.ratchet = ratchet;
        found
    }

    /// A finding about the JSON inside `spec.config`, at the value or key with that span.
    pub(crate) fn config(
        &mut self,
        rule: &'static Rule,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        self.add(rule, "/spec/config".to_owned(), None, Some(span), message.into(), help.into())
    }

    /// A finding about a field of the object.
    pub(crate) fn object(
        &mut self,
        rule: &'static Rule,
        pointer: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        self.add(rule, pointer.into(), None, None, message.into(), help.into())
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
        self.add(rule, pointer.into(), Some(place), None, message.into(), help.into())
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
        let all = self.list.iter().chain(self.latest.as_ref().map(|(finding, _)| finding));
        let mut places = all.filter(|finding| finding.rule == rule).map(|finding| finding.pointer.as_str());
        places.any(|place| is_below(place, pointer) || is_below(pointer, place))
    }

    /// A finding made elsewhere, put in its place in this object.
    pub(crate) fn moved(&mut self, finding: Finding, pointer: String, config: Option<ConfigPlace>) {
        self.settle();
        let Finding { rule, message, help, ceiling, is_excused, .. } = finding;
        let new = Finding { ceiling, is_excused, ..Finding::new(rule, pointer, config, message, help) };
        self.keep(new, None);
    }

    /// Notes what would have to be known.
    pub(crate) fn wants(&mut self, wanted: Wanted) {
        if wanted.is_for_final() {
            self.wanted_at_last = Some(wanted);
        } else {
            self.wanted = Some(wanted);
        }
    }

    /// Whether a finding about an object in that namespace may name something of another. Where not, it is noted that somebody
    /// could ask whether the writer may read it.
    pub(crate) fn may_name(&mut self, reference: Reference, namespace: &str, facts: &Facts) -> bool {
        if facts.names.allow(&reference, namespace) {
            return true;
        }
        match &mut self.wanted_at_last {
            Some(Wanted::Names(hidden)) => hidden.push(reference),
            None => self.wanted_at_last = Some(Wanted::Names(vec![reference])),
            Some(_) => {}
        }
        false
    }

    /// All of them, what would have had to be known about the object as it is stored or before that, and what is recorded or left of the
    /// stored object's.
    pub(crate) fn into_parts_of(mut self, is_final: bool) -> (Vec<Finding>, Option<Wanted>, Ratchet) {
        let wanted = if is_final { self.wanted_at_last.take() } else { self.wanted.take() };
        let (list, _, ratchet) = self.into_parts();
        (list, wanted, ratchet)
    }

    /// All of them, what would have had to be known, and what is recorded or left of the stored object's.
    pub(crate) fn into_parts(mut self) -> (Vec<Finding>, Option<Wanted>, Ratchet) {
        self.settle();
        (self.list, self.wanted, self.ratchet)
    }

    fn add(
        &mut self,
        rule: &'static Rule,
        pointer: String,
        config: Option<ConfigPlace>,
        span: Option<Span>,
        message: String,
        help: String,
    ) -> &mut Finding {
        self.settle();
        let finding = Finding::new(rule, pointer, config, message, help);
        &mut self.latest.insert((finding, span)).0
    }

    /// Takes the latest finding in: its rule has said all about it.
    fn settle(&mut self) {
        let Some((mut finding, span)) = self.latest.take() else { return };
        if finding.ceiling == Action::Deny {
            let about = About { judged: self.judged, document: self.document, span };
            finding.is_excused = self.ratchet.excuses(&finding, &about);
        }
        self.keep(finding, span);
    }

    fn keep(&mut self, mut finding: Finding, span: Option<Span>) {
        let is_alike = |known: &&Finding| known.rule == finding.rule && sort(known) == sort(&finding);
        if self.list.iter().filter(is_alike).count() >= MOST_PER_RULE {
            // What is repaired is not limited, or the patch would not converge.
            let last = self.list.iter().rposition(|known| is_alike(&known)).and_then(|last| self.list.get_mut(last));
            if let Some(last) = last {
                last.repairs.append(&mut finding.repairs);
            }
            return;
        }
        if let (Some(document), Some(span)) = (self.document, span) {
            let (line, column) = line_column(document.text, span.start as usize);
            let pointer = document.pointer_to(span);
            finding.config = Some(ConfigPlace { pointer, span: span.range(), line, column });
        }
        finding.message = shortened(finding.message, MOST_WORDS);
        finding.help = shortened(finding.help, MOST_WORDS);
        self.list.push(finding);
    }
}

/// Leaves so many findings of each rule as are shown, in their order. What denies or is repaired goes before what is only mentioned.
pub(crate) fn show_some(findings: &mut Vec<Finding>) {
    if findings.len() <= MOST_PER_RULE {
        return;
    }
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.action > Action::Warn) {
        *shown.entry(finding.rule.id).or_default() += 1;
    }
    findings.retain(|finding| {
        let count = shown.entry(finding.rule.id).or_default();
        *count += usize::from(finding.action <= Action::Warn);
        finding.action > Action::Warn || *count <= MOST_PER_RULE
    });
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
