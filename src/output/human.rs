//! Human-readable diagnostics in the style of a compiler.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Format, JudgedDocument, LocatedFinding, Summary, diff, excerpt, text};
use crate::policy::{Action, RelatedObject, SourcePlace};
use crate::visible;

/// Diagnostics with the offending text underlined, and a summary line.
pub struct Human {
    renderer: Renderer,
    with_diff: bool,
    /// What a user types to start nadmit.
    program: &'static str,
    /// Findings with a weaker action are not shown.
    weakest: Action,
}

impl Human {
    /// With colours or without; with the diff of each repair or without.
    pub fn new(colour: bool, with_diff: bool) -> Self {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        Self { renderer, with_diff, program: "nadmit", weakest: Action::Warn }
    }

    /// The same, where nadmit is started in another way.
    pub fn started_as(self, program: &'static str) -> Self {
        Self { program, ..self }
    }

    /// The same with the findings that are only recorded.
    pub fn with_recorded(self) -> Self {
        Self { weakest: Action::Audit, ..self }
    }

    fn finding(&self, judged: &JudgedDocument<'_>, placed: &LocatedFinding<'_>) -> String {
        let finding = placed.finding;
        let level = match finding.action {
            Action::Deny => Level::ERROR,
            Action::Patch => Level::INFO.with_name("patch"),
            Action::Warn => Level::WARNING,
            Action::Audit | Action::Off => Level::NOTE,
        };
        let title = level.primary_title(shown(&text::problem(finding))).id(finding.rule.id);
        let line = excerpt::line_of(judged.text, &placed.span);
        let source = shown(&text::named_source(judged));
        let mut group = if line.len() <= excerpt::MAX_LINE_BYTES {
            let (text, mark) = marked(judged.text, line, &placed.span);
            let snippet = Snippet::source(text).line_start(placed.line);
            title.element(snippet.path(source).annotation(AnnotationKind::Primary.span(mark)))
        } else {
            // For a file that is one long line, only an excerpt around the place is shown.
            let origin = Origin::path(source).line(placed.line).char_column(placed.column);
            let text = shown(judged.text.get(excerpt::around(judged.text, &placed.span)).unwrap_or_default());
            title.element(origin).element(Level::NOTE.with_name("text").message(text))
        };
        group = group.element(Level::NOTE.with_name("in").message(shown(&object(judged, placed))));
        if !finding.note.is_empty() {
            group = group.element(Level::NOTE.message(shown(&finding.note)));
        }
        if let Some(because) = &finding.because {
            group = group.element(Level::NOTE.message(shown(&text::why(because))));
        }
        group = group.element(Level::HELP.message(shown(&finding.help)));
        let mut report = vec![group];
        report.extend(finding.related.iter().map(other_object));
        format!("{}\n\n", self.renderer.render(&report))
    }
}

impl Format for Human {
    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        let shown = judged.findings.iter().filter(|placed| placed.finding.action >= self.weakest);
        let mut text: String = shown.map(|placed| self.finding(judged, placed)).collect();
        if let (true, Some((given, stored))) = (self.with_diff, &judged.change) {
            text += &visible::lines(&diff::unified(judged, given, stored));
            text.push('\n');
        }
        text
    }

    fn end(&self, summary: &Summary) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let mut line = format!("{} judged", count(summary.documents, "document"));
        line += &match (summary.deny, summary.patch, summary.warn) {
            (0, 0, 0) => ": no findings".to_owned(),
            (deny, patch, warn) => {
                let parts = [(deny, "denial"), (patch, "repair"), (warn, "warning")];
                let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
                format!(": {}", parts.join(", "))
            }
        };
        if summary.unreadable > 0 {
            line += &format!("; {} could not be read", summary.unreadable);
        }
        if summary.fixable > 0 {
            let fixable = count(summary.fixable, "finding");
            line += &format!("\n{fixable} can be fixed with `{} check --fix`", self.program);
        }
        line + "\n"
    }
}

/// Another object that a finding is about, and where its manifest is.
fn other_object(other: &RelatedObject) -> Group<'static> {
    let title = Level::NOTE.secondary_title(shown(&text::related(other)));
    match &other.place {
        Some(SourcePlace { file, line, column }) => {
            title.element(Origin::path(shown(file)).line(*line).char_column(*column))
        }
        None => Group::with_title(title),
    }
}

/// The lines of a finding as people may see them, and where in them its place is.
fn marked(text: &str, lines: Range<usize>, place: &Range<usize>) -> (String, Range<usize>) {
    let part = |range: Range<usize>| visible::lines(text.get(range).unwrap_or_default());
    let mut shown = part(lines.start..place.start).into_owned();
    let start = shown.len();
    shown += &part(place.clone());
    let end = shown.len();
    shown += &part(place.end..lines.end);
    (shown, start..end)
}

fn shown(text: &str) -> String {
    visible::line(text).into_owned()
}

/// Which object, and where in it.
fn object(judged: &JudgedDocument<'_>, placed: &LocatedFinding<'_>) -> String {
    let mut text = format!("{} {}", judged.kind, text::full_name(judged));
    if !placed.finding.pointer.is_empty() {
        text += &format!(", {}", placed.finding.pointer);
    }
    if let Some(place) = placed.finding.config.as_ref().filter(|place| !place.pointer.is_empty()) {
        text += &format!(" at {}", place.pointer);
    }
    text
}

#[cfg(test)]
mod tests;
