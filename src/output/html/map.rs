//! The page of a map. Its rows are in it as JSON, and its script shows those that are looked at.
//!
//! What comes from objects is only in that JSON, from which no text can escape, and reaches the page as text.

use std::fmt::Write as _;

use crate::visible;

/// The script and style of the page; the Content-Security-Policy allows only these, by hash.
///
/// Its files share one scope, which is not that of the window.
const MAP_SCRIPT: &str = concat!(
    "\n\"use strict\";\n{\n",
    include_str!("map/data.js"),
    include_str!("map/relations.js"),
    include_str!("map/words.js"),
    include_str!("map/elements.js"),
    include_str!("map/filter.js"),
    include_str!("map/list.js"),
    include_str!("map/overview.js"),
    include_str!("map/impact.js"),
    include_str!("map/detail.js"),
    include_str!("map/address.js"),
    include_str!("page/step.js"),
    include_str!("map/keyboard.js"),
    include_str!("map/start.js"),
    "}\n",
);
const MAP_SCRIPT_HASH: &str = "sha256-cpNYzSAETez7psNfj142Nt+ZMfgSDplamwumltTcDOU=";
const MAP_STYLE: &str = concat!(
    "\n",
    include_str!("page/colours.css"),
    include_str!("page/layout.css"),
    include_str!("page/overview.css"),
    include_str!("page/filters.css"),
    include_str!("page/print.css"),
    include_str!("map/map.css"),
);
const MAP_STYLE_HASH: &str = "sha256-r1OHIoAsWEiB2EqIpgBEI0sT12Hdl456c8pMfzBfKvA=";

/// What is on the page before its script fills it.
const BODY: &str = include_str!("map/body.html");

/// A page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapPage<'a> {
    /// The map as JSON, in one line.
    pub(crate) json: &'a str,
}

impl MapPage<'_> {
    /// The whole page.
    pub(crate) fn render(&self) -> String {
        let mut out = String::with_capacity(self.json.len() + MAP_SCRIPT.len() + MAP_STYLE.len() + 4096);
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{MAP_STYLE_HASH}'; script-src '{MAP_SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>nadmit map</title>\n<style>{MAP_STYLE}</style>\n</head>\n<body>\n{BODY}<script type=\"application/json\" id=\"data\">"
        );
        embed(self.json, &mut out);
        let _ = writeln!(out, "</script>\n<script>{MAP_SCRIPT}</script>\n</body>\n</html>");
        out
    }
}

/// Writes JSON into an element of a page. No text in it can end the element or begin a comment, and characters that are obeyed rather
/// than shown, or not seen at all, become the text that names them.
fn embed(json: &str, out: &mut String) {
    let mut characters = json.chars();
    while let Some(character) = characters.next() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            // An escape of a quote or of a backslash stays; any other one is of a character that is not seen.
            '\\' => match characters.next() {
                Some(escaped @ ('"' | '\\' | '/')) => out.extend(['\\', escaped]),
                Some(other) => out.extend(['\\', '\\', other]),
                None => {}
            },
            hidden if visible::is_hidden(hidden) => {
                out.push('\\');
                out.extend(hidden.escape_unicode());
            }
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::csp_hash;
    use super::*;

    /// A browser runs the script only if its hash is the one in the page's head.
    #[test]
    fn map_hashes_match_script_and_style() {
        let found = [MAP_SCRIPT, MAP_STYLE].map(csp_hash);
        assert_eq!(found, [MAP_SCRIPT_HASH, MAP_STYLE_HASH], "the hashes of the script and of the style");
        // Neither holds what would end its element.
        assert!(!MAP_SCRIPT.contains("</") && !MAP_SCRIPT.contains("<!--") && !MAP_STYLE.contains("</"));
        // The script makes elements of texts and elements, never of text that is read as HTML.
        for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
            assert!(!MAP_SCRIPT.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn no_text_leaves_the_json() {
        for (text, shown) in [
            ("plain \"quoted\" back\\slash /", "plain \"quoted\" back\\slash /"),
            ("</script><script>&amp;<!-- ]]>", "</script><script>&amp;<!-- ]]>"),
            ("a\nb\u{1b}", "a\\nb\\u001b"),
            ("\u{202e}\u{2028}\u{e0041}", "\\u{202e}\\u{2028}\\u{e0041}"),
        ] {
            let mut out = String::new();
            embed(&serde_json::to_string(text).unwrap(), &mut out);
            assert!(!out.contains(['<', '>', '&', '\u{202e}', '\u{2028}']), "{out}");
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), shown);
        }
    }

    #[test]
    fn page_requests_nothing_else() {
        let html = MapPage { json: "{}" }.render();
        // The one address is a name: that of the elements of a picture.
        assert_eq!((html.matches("http:").count(), html.matches("http://www.w3.org/2000/svg").count()), (1, 1));
        assert!(!html.contains("https:") && !html.contains("src=") && !html.contains("unsafe"));
        assert_eq!(html.matches("<script").count(), 2);
    }
}
