//! Findings: what is wrong with an object, and where.

use std::collections::BTreeMap;
use std::ops::Range;

use super::conditional::ConditionalValues;
use super::excuse::ExcuseReason;
use super::finding_text::FindingText;
use super::ratchet::{FindingLocation, JudgedObject, Ratchet};
use super::related::RelatedObject;
use super::{Action, Facts, MissingFact, Reference, Rule};
use crate::cni::edit::Edit;
use crate::cni::releases::{Since, Versions};
use crate::json::{Document, Span, line_column};
use crate::resources::Nad;

/// How many findings of one rule are reported for one object. A hostile object must not cause a huge response.
pub(crate) const MAX_PER_RULE: usize = 16;

/// One problem of an object.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Its action.
    pub action: Action,
    /// In audit mode: what would have been done.
    pub would: Option<Action>,
    /// Why the action is weaker than that of the rule.
    pub because: Option<ExcuseReason>,
    /// JSON pointer into the object.
    pub pointer: String,
    /// The place in the text at that pointer, if that text is JSON.
    pub config: Option<ConfigPlace>,
    /// The headline: what is wrong, with the value.
    pub message: String,
    /// The consequence at run time.
    pub note: String,
    /// How to fix it.
    pub help: String,
    /// Whether the key is wrong, and not its value.
    pub is_about_key: bool,
    /// Whether the stored object already has this denial (ratcheting).
    pub(crate) is_excused: bool,
    /// The other objects that it is about.
    pub related: Vec<RelatedObject>,
    /// The most severe action for this finding.
    pub(crate) ceiling: Action,
    /// The repairs for it.
    pub(crate) repairs: Vec<Repair>,
    /// What was certainly meant at its place, by the help: the key where it is about a key, else the value. Admission never writes it.
    pub(crate) replacement: Option<Box<str>>,
    /// Whether it holds whatever release reads the value.
    pub(crate) holds_in_any_release: bool,
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

/// A change that repairs a finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Repair {
    /// Set an annotation.
    Annotate(&'static str, String),
    /// Remove an annotation.
    RemoveAnnotation(&'static str),
    /// Edit `spec.config`.
    Config(Edit),
}

impl Finding {
    fn new(rule: &'static Rule, pointer: String, config: Option<ConfigPlace>, text: FindingText) -> Self {
        let FindingText { message, note, help } = text;
        Self {
            rule,
            action: rule.default,
            would: None,
            because: None,
            pointer,
            config,
            message,
            note,
            help,
            is_about_key: false,
            is_excused: false,
            related: Vec::new(),
            ceiling: Action::Deny,
            repairs: Vec::new(),
            replacement: None,
            holds_in_any_release: false,
        }
    }

    /// A finding about no place in an object; the rule says how to fix it.
    pub(crate) fn plain(rule: &'static Rule, action: Action, message: String, note: String) -> Self {
        Self { action, ..Self::new(rule, String::new(), None, FindingText::new(message, note, rule.fix)) }
    }

    /// Limits this finding to a warning.
    pub(crate) fn at_most_warn(&mut self) -> &mut Self {
        self.ceiling = Action::Warn;
        self
    }

    /// Keeps this finding as it is, whatever release reads the value.
    pub(crate) fn in_any_release(&mut self) -> &mut Self {
        self.holds_in_any_release = true;
        self
    }

    /// Marks the key as wrong, not its value.
    pub(crate) fn about_key(&mut self) -> &mut Self {
        self.is_about_key = true;
        self
    }

    /// Says what was certainly meant at this place, for those who ask for it to be written into their files.
    pub(crate) fn replaced_by(&mut self, meant: Option<&str>) -> &mut Self {
        self.replacement = meant.map(Into::into);
        self
    }

    /// Repairs if possible and enabled; otherwise at most a warning.
    pub(crate) fn never_denied(&mut self) -> &mut Self {
        self.ceiling = Action::Patch;
        self
    }

    /// Names other objects that it is about.
    pub(crate) fn related_to(&mut self, others: impl IntoIterator<Item = RelatedObject>) -> &mut Self {
        self.related.extend(others);
        self
    }

    /// Adds repairs.
    pub(crate) fn with_repairs(&mut self, repairs: impl IntoIterator<Item = Repair>) -> &mut Self {
        self.repairs.extend(repairs);
        self
    }
}

/// Collects the findings of the rules.
///
/// The decision does not depend on the number of findings: of each rule, up to [`MAX_PER_RULE`] are kept per decision class
/// ([`decision_class`]); the rest is dropped. How many are shown is limited later, when their actions are known.
#[derive(Debug)]
pub(crate) struct Findings<'d> {
    judged: JudgedObject<'d>,
    /// The releases in use.
    pub(crate) versions: &'d Versions,
    /// The values of the config that not every release reads.
    conditional: ConditionalValues,
    document: Option<&'d Document<'d>>,
    ratchet: Ratchet,
    list: Vec<Finding>,
    /// The latest finding, which its rule may still modify, and its span.
    latest: Option<(Finding, Option<Span>)>,
    missing: Option<MissingFact>,
    /// The missing fact for the final object; it does not displace one that is needed before.
    missing_at_final: Option<MissingFact>,
}

/// What determines the action of a finding, besides its rule.
fn decision_class(finding: &Finding) -> (Action, bool, bool) {
    (finding.ceiling, finding.repairs.is_empty(), finding.is_excused)
}

impl<'d> Findings<'d> {
    /// Creates a collector for an object with that config, if it could be parsed.
    pub(crate) fn new(
        judged: JudgedObject<'d>,
        document: Option<&'d Document<'d>>,
        ratchet: Ratchet,
        versions: &'d Versions,
    ) -> Self {
        Self {
            judged,
            versions,
            conditional: ConditionalValues::default(),
            document,
            ratchet,
            list: Vec::new(),
            latest: None,
            missing: None,
            missing_at_final: None,
        }
    }

    /// Notes that a value is read only by some releases, and perhaps not by those in use: what is wrong with it is a warning then, or
    /// nothing.
    pub(crate) fn add_conditional(&mut self, value: Span, since: Since, is_read: Option<bool>) {
        self.conditional.add(value, since, is_read);
    }

    /// The findings of `check` in the NAD rendered from this object; the ratchet of the stored object applies there too.
    pub(crate) fn of_rendered(
        &mut self,
        nad: &Nad<'_>,
        document: Option<&Document<'_>>,
        check: impl FnOnce(&mut Findings<'_>),
    ) -> Vec<Finding> {
        let mut inner =
            Findings::new(JudgedObject::Nad(nad), document, std::mem::take(&mut self.ratchet), self.versions);
        check(&mut inner);
        match inner.missing_at_final.take() {
            Some(MissingFact::NameVisibility(hidden)) => {
                hidden.into_iter().for_each(|reference| self.request_name(reference));
            }
            Some(missing @ MissingFact::Neighbours { .. }) => self.request(missing),
            _ => {}
        }
        let (found, _, ratchet) = inner.into_parts();
        self.ratchet = ratchet;
        found
    }

    /// A finding about the JSON inside `spec.config`, at the value or key with that span.
    pub(crate) fn config(
        &mut self,
        rule: &'static Rule,
        span: Span,
        headline: impl Into<String>,
        note: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        let text = FindingText::new(headline, note, help);
        self.add(Finding::new(rule, "/spec/config".to_owned(), None, text), Some(span))
    }

    /// A finding about a field of the object.
    pub(crate) fn object(
        &mut self,
        rule: &'static Rule,
        pointer: impl Into<String>,
        headline: impl Into<String>,
        note: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        self.add(Finding::new(rule, pointer.into(), None, FindingText::new(headline, note, help)), None)
    }

    /// A finding about a place in a text that could not be read as a document.
    pub(crate) fn text(
        &mut self,
        rule: &'static Rule,
        pointer: impl Into<String>,
        place: ConfigPlace,
        headline: impl Into<String>,
        note: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        self.add(Finding::new(rule, pointer.into(), Some(place), FindingText::new(headline, note, help)), None)
    }

    /// The JSON pointer of a value or key in the config.
    pub(crate) fn pointer(&self, span: Span) -> String {
        self.document.map(|document| document.pointer_to(span)).unwrap_or_default()
    }

    /// Whether that rule found something at exactly this place of the config.
    pub(crate) fn has_at(&self, rule: &'static Rule, span: Span) -> bool {
        let is_latest = |(finding, place): &(Finding, Option<Span>)| finding.rule == rule && *place == Some(span);
        let found = self.list.iter().filter(|finding| finding.rule == rule);
        let mut places = found.filter_map(|finding| finding.config.as_ref());
        self.latest.as_ref().is_some_and(is_latest) || places.any(|place| place.span == span.range())
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

    /// Adds a finding from a rendered NAD at its place in this object.
    pub(crate) fn add_relocated(&mut self, finding: Finding, pointer: String, config: Option<ConfigPlace>) {
        self.flush_latest();
        let Finding { rule, message, note, help, ceiling, is_excused, replacement, related, .. } = finding;
        let text = FindingText { message, note, help };
        // What is meant is known of the place in the text, and not of the field around it.
        let replacement = replacement.filter(|_| config.is_some());
        let new = Finding { ceiling, is_excused, replacement, related, ..Finding::new(rule, pointer, config, text) };
        self.push(new, None);
    }

    /// Records a missing fact.
    pub(crate) fn request(&mut self, missing: MissingFact) {
        if missing.is_for_final() {
            self.missing_at_final = Some(missing);
        } else {
            self.missing = Some(missing);
        }
    }

    /// Whether a finding about an object in that namespace may name an object of another one. If not, it records that the
    /// writer's permission could be checked.
    pub(crate) fn may_name(&mut self, reference: Reference, namespace: &str, facts: &Facts) -> bool {
        if facts.names.allow(&reference, namespace) {
            return true;
        }
        self.request_name(reference);
        false
    }

    /// Records that the writer's permission to read an object could be checked.
    fn request_name(&mut self, reference: Reference) {
        match &mut self.missing_at_final {
            Some(MissingFact::NameVisibility(hidden)) => hidden.push(reference),
            None => self.missing_at_final = Some(MissingFact::NameVisibility(vec![reference])),
            Some(_) => {}
        }
    }

    /// The findings, the missing fact for the final object or before it, and the remaining ratchet.
    pub(crate) fn into_parts_of(mut self, is_final: bool) -> (Vec<Finding>, Option<MissingFact>, Ratchet) {
        let missing = if is_final { self.missing_at_final.take() } else { self.missing.take() };
        let (list, _, ratchet) = self.into_parts();
        (list, missing, ratchet)
    }

    /// The findings, the missing fact, and the remaining ratchet.
    pub(crate) fn into_parts(mut self) -> (Vec<Finding>, Option<MissingFact>, Ratchet) {
        self.flush_latest();
        (self.list, self.missing, self.ratchet)
    }

    fn add(&mut self, finding: Finding, span: Option<Span>) -> &mut Finding {
        self.flush_latest();
        &mut self.latest.insert((finding, span)).0
    }

    /// Stores the latest finding: its rule is done with it.
    fn flush_latest(&mut self) {
        let Some((mut finding, span)) = self.latest.take() else { return };
        let place = span.filter(|_| !finding.holds_in_any_release);
        match place.and_then(|place| self.conditional.around(place)) {
            Some(value) if value.is_ignored => return,
            Some(value) => {
                finding.at_most_warn();
                finding.note = format!("{} ({})", finding.note, value.since);
            }
            None => {}
        }
        if finding.ceiling == Action::Deny {
            let about = FindingLocation { judged: self.judged, document: self.document, span };
            finding.is_excused = self.ratchet.excuses(&finding, &about);
        }
        self.push(finding, span);
    }

    fn push(&mut self, mut finding: Finding, span: Option<Span>) {
        let is_alike =
            |known: &&Finding| known.rule == finding.rule && decision_class(known) == decision_class(&finding);
        if self.list.iter().filter(is_alike).count() >= MAX_PER_RULE {
            // Repairs are not limited, otherwise the patch would not converge.
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
        finding.shorten();
        self.list.push(finding);
    }
}

/// Limits the number of findings per rule, keeping their order. Denials and repairs go before warnings.
pub(crate) fn limit_shown(findings: &mut Vec<Finding>) {
    if findings.len() <= MAX_PER_RULE {
        return;
    }
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.action > Action::Warn) {
        *shown.entry(finding.rule.id).or_default() += 1;
    }
    findings.retain(|finding| {
        let count = shown.entry(finding.rule.id).or_default();
        *count += usize::from(finding.action <= Action::Warn);
        finding.action > Action::Warn || *count <= MAX_PER_RULE
    });
}
