//! Text escaped for HTML. Everything that comes from outside passes through here. Five characters need no crate.

use crate::visible;

/// Text of several lines.
pub(super) fn lines(text: &str) -> String {
    html(&visible::lines(text))
}

/// The same of a sentence: what stands between backticks is code. One without a partner is only a backtick.
pub(super) fn sentence(text: &str) -> String {
    let escaped = lines(text);
    if escaped.matches('`').count() % 2 == 1 {
        return escaped;
    }
    let parts = escaped.split('`').enumerate();
    parts.map(|(number, part)| if number % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

/// Text of one line, such as a name; also as the value of an attribute.
pub(super) fn line(text: &str) -> String {
    html(&visible::line(text))
}

/// A name in camel case, which a narrow column may break between its words.
pub(super) fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 16);
    let mut word = String::new();
    for character in visible::line(name).chars() {
        if character.is_uppercase() && word.ends_with(char::is_lowercase) {
            out += &html(&word);
            out += "<wbr>";
            word.clear();
        }
        word.push(character);
    }
    out + &html(&word)
}

/// A text of ours, with names between backticks.
pub(super) fn with_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    for (number, part) in text.split('`').enumerate() {
        let part = line(part);
        out += &if number % 2 == 1 { format!("<code>{part}</code>") } else { part };
    }
    out
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_hidden_characters_are_escaped() {
        // (text, as one line, as several)
        for (text, one, several) in [
            ("</script>", "&lt;/script&gt;", "&lt;/script&gt;"),
            ("\" onload='x'&", "&quot; onload=&#39;x&#39;&amp;", "&quot; onload=&#39;x&#39;&amp;"),
            ("a\nb\u{1b}\u{202e}", "a\\nb\\u{1b}\\u{202e}", "a\nb\\u{1b}\\u{202e}"),
        ] {
            assert_eq!((line(text).as_str(), lines(text).as_str()), (one, several), "{text:?}");
        }
    }

    #[test]
    fn backticks_become_code() {
        for (text, want) in [
            ("a `vlan` outside 0 to 4094", "a <code>vlan</code> outside 0 to 4094"),
            ("`a<b>` and `c`", "<code>a&lt;b&gt;</code> and <code>c</code>"),
            ("plain", "plain"),
        ] {
            assert_eq!(with_code(text), want);
        }
    }

    #[test]
    fn camel_case_may_break_between_words() {
        for (name, want) in [
            ("NetworkAttachmentDefinition", "Network<wbr>Attachment<wbr>Definition"),
            ("SriovIBNetwork", "Sriov<wbr>IBNetwork"),
            ("a<B>C\u{1b}", "a&lt;B&gt;C\\u{1b}"),
            ("", ""),
        ] {
            assert_eq!(camel_case(name), want);
        }
    }
}
