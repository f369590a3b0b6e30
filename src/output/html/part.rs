//! The parts of an opened entry.

use std::fmt::Write as _;

use super::escape;
use crate::policy::Action;
use crate::visible;

/// A part of the details.
pub(crate) enum EntryPart {
    /// A finding.
    Finding(Box<ShownFinding>),
    /// A few words.
    Text {
        /// What they are.
        title: &'static str,
        /// The words.
        text: String,
    },
    /// Text of which every blank counts, such as a log.
    Preformatted {
        /// What it is.
        title: &'static str,
        /// The text.
        text: String,
    },
    /// Lines that begin with a blank, `+` or `-`: an object and what admission would change.
    Change {
        /// The lines.
        lines: String,
        /// Whether all lines of the object are there.
        is_whole: bool,
    },
    /// An object as YAML.
    Object {
        /// The text.
        yaml: String,
        /// Whether it was cut.
        is_cut: bool,
    },
}

/// A finding as the page shows it.
pub(crate) struct ShownFinding {
    /// Its action.
    pub(crate) action: Action,
    /// The id of the rule.
    pub(crate) rule: &'static str,
    /// Where in the object it is.
    pub(crate) pointer: String,
    /// The line and the column in the file.
    pub(crate) place: String,
    /// The headline.
    pub(crate) message: String,
    /// The number of a line, and the line: before the value, the value, and after it.
    pub(crate) excerpt: Option<(usize, [String; 3])>,
    /// The consequence, and why the action is weaker than the rule's.
    pub(crate) notes: Vec<String>,
    /// How to fix it.
    pub(crate) help: String,
}

impl EntryPart {
    pub(super) fn render(&self, out: &mut String) {
        let _ = match self {
            Self::Finding(finding) => {
                finding.render(out);
                Ok(())
            }
            Self::Text { title, text } => {
                write!(out, "<section><h3>{title}</h3><p class=\"text lines\">{}</p></section>", escape::lines(text))
            }
            // A browser drops the first line break after the tag; without one it would be the text's own.
            Self::Preformatted { title, text } => {
                write!(out, "<section><h3>{title}</h3><pre>\n{}</pre></section>", escape::lines(text))
            }
            Self::Change { lines, is_whole } => {
                let is_exact = *is_whole && is_exact(lines);
                let button =
                    if is_exact { copy("stored", "Copy YAML", "Copy the repaired object") } else { String::new() };
                write!(
                    out,
                    "<section class=\"copied\"><div class=\"titled\"><h3>What admission would change</h3>{button}</div>\
                     <pre class=\"diff\">\n{}</pre></section>",
                    diff(lines)
                )
            }
            Self::Object { yaml, is_cut } => {
                let button = if *is_cut || !is_exact(yaml) {
                    String::new()
                } else {
                    copy("text", "Copy YAML", "Copy the object")
                };
                write!(
                    out,
                    "<details class=\"whole copied\"><summary>The whole object</summary>{button}<pre>\n{}</pre></details>",
                    escape::lines(yaml)
                )
            }
        };
    }
}

impl ShownFinding {
    fn render(&self, out: &mut String) {
        let word = self.action.name();
        let _ = write!(
            out,
            "<section class=\"finding {word}\"><h3><span class=\"sign\">{word}</span><span><code>{}</code>",
            self.rule
        );
        for detail in [&self.pointer, &self.place] {
            if !detail.is_empty() {
                let _ = write!(out, "<span class=\"soft text\">{}</span>", escape::line(detail));
            }
        }
        let _ = write!(out, "</span></h3><p class=\"message text\">{}</p>", escape::sentence(&self.message));
        if let Some((number, [before, value, after])) = &self.excerpt {
            let [before, value, after] = [before, value, after].map(|text| escape::lines(text));
            let _ =
                write!(out, "<pre class=\"excerpt\"><span>{number}</span>{before}<mark>{value}</mark>{after}</pre>");
        }
        *out += "<dl>";
        for note in &self.notes {
            let _ = write!(out, "<dt>Note</dt><dd class=\"text\">{}</dd>", escape::sentence(note));
        }
        if !self.help.is_empty() {
            let _ = write!(
                out,
                "<dt>Help</dt><dd class=\"copied fix\"><span class=\"text\">{}</span>{}</dd>",
                escape::sentence(&self.help),
                copy("text", "Copy help", "Copy the help")
            );
        }
        *out += "</dl></section>";
    }
}

/// A button that copies the text beside it. Its label is made by the style, so that it is neither searched nor selected.
pub(super) fn copy(what: &str, label: &str, name: &str) -> String {
    format!(
        "<button class=\"copy needs-script {what}\" type=\"button\" data-copy=\"{what}\" data-label=\"{label}\" aria-label=\"{name}\"></button>"
    )
}

/// Whether a text is shown as it is: only then a copy of it is what it was.
fn is_exact(text: &str) -> bool {
    visible::lines(text) == text
}

/// Each line of a diff in an element for its kind.
fn diff(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for (number, line) in text.lines().enumerate() {
        let is_head = number < 2 && (line.starts_with("--- ") || line.starts_with("+++ "));
        let element = match line.as_bytes().first() {
            Some(b'+') if !is_head => Some("ins"),
            Some(b'-') if !is_head => Some("del"),
            _ => None,
        };
        let line = escape::lines(line);
        let _ = match element {
            Some(element) => writeln!(out, "<{element}>{line}</{element}>"),
            None => writeln!(out, "{line}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(part: &EntryPart) -> String {
        let mut out = String::new();
        part.render(&mut out);
        out
    }

    #[test]
    fn diff_marks_added_and_removed_lines() {
        // (diff, HTML)
        let table = [
            ("", ""),
            (" a\n+b\n-c\n", " a\n<ins>+b</ins>\n<del>-c</del>\n"),
            ("--- x\n+++ y\n@@ -1 +1 @@\n--- z\n", "--- x\n+++ y\n@@ -1 +1 @@\n<del>--- z</del>\n"),
            ("--- x\n+++ y\n--- z\n", "--- x\n+++ y\n<del>--- z</del>\n"),
            ("+<b>", "<ins>+&lt;b&gt;</ins>\n"),
        ];
        for (text, want) in table {
            assert_eq!(diff(text), want, "{text:?}");
        }
    }

    /// A copy would differ from the object where a part of it is cut or escaped.
    #[test]
    fn only_exact_texts_can_be_copied() {
        let object = |yaml: &str, is_cut| rendered(&EntryPart::Object { yaml: yaml.to_owned(), is_cut });
        let change = |lines: &str, is_whole| rendered(&EntryPart::Change { lines: lines.to_owned(), is_whole });
        for (html, want) in [
            (object("a: b\n", false), true),
            (object("a: b\n", true), false),
            (object("a: \u{202e}\n", false), false),
            (change(" a\n+b\n", true), true),
            (change(" a\n+b\n", false), false),
            (change(" a\n+\u{200b}\n", true), false),
        ] {
            assert_eq!(html.contains("data-copy="), want, "{html}");
        }
    }

    #[test]
    fn parts_of_a_finding_are_apart() {
        let html = rendered(&EntryPart::Finding(Box::new(ShownFinding {
            action: Action::Warn,
            rule: "nad/schema",
            pointer: "/spec".to_owned(),
            place: String::new(),
            message: "`<m>` is wrong".to_owned(),
            excerpt: Some((7, ["a: ".to_owned(), "<b>".to_owned(), ",".to_owned()])),
            notes: vec!["n".to_owned()],
            help: "remove one `".to_owned(),
        })));
        for want in [
            "<span class=\"sign\">warn</span><span><code>nad/schema</code><span class=\"soft text\">/spec</span></span></h3>",
            "<p class=\"message text\"><code>&lt;m&gt;</code> is wrong</p>",
            "<span>7</span>a: <mark>&lt;b&gt;</mark>,</pre>",
            "<dt>Note</dt><dd class=\"text\">n</dd><dt>Help</dt><dd class=\"copied fix\"><span class=\"text\">remove one `</span>",
        ] {
            assert!(html.contains(want), "{want}: {html}");
        }
    }
}
