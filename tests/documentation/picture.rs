//! A picture of what a command prints on a terminal, as SVG: for a light and for a dark page, with text that can be selected.

use std::fmt::Write;

/// Sizes in pixels: the height of a line, the width that every monospaced font of this size fits into, and the margin.
const LINE: usize = 18;
const LETTER: usize = 8;
const MARGIN: usize = 16;

/// The colours of the text, by the class that a style of the terminal becomes, on a light and on a dark page.
const COLOURS: [(&str, &str, &str); 6] = [
    ("text", "#1f2328", "#f0f6fc"),
    ("red", "#cf222e", "#ff7b72"),
    ("green", "#116329", "#7ee787"),
    ("yellow", "#7d4e00", "#e3b341"),
    ("blue", "#0550ae", "#79c0ff"),
    ("cyan", "#1b7c83", "#76e3ea"),
];

/// The picture of a command and of its output, whose styles are escape sequences.
pub fn svg(title: &str, command: &str, output: &str) -> String {
    let lines: Vec<String> = std::iter::once(format!("\u{1b}[1m$ {command}\u{1b}[0m"))
        .chain(std::iter::once(String::new()))
        .chain(output.trim_end().lines().map(str::to_owned))
        .collect();
    let columns = lines.iter().map(|line| spans(line).iter().map(|(_, text)| text.chars().count()).sum()).max();
    let (width, height) = (columns.unwrap_or(0) * LETTER + 2 * MARGIN, lines.len() * LINE + 2 * MARGIN);
    let colours = |dark: bool| {
        COLOURS.map(|(class, light, night)| format!(".{class}{{fill:{}}}", if dark { night } else { light })).concat()
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-labelledby=\"title\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title id=\"title\">{}</title>\n\
         <style>text{{white-space:pre}}.bold{{font-weight:600}}.page{{fill:#f6f8fa;stroke:#d1d9e0}}{}\
         @media (prefers-color-scheme: dark){{.page{{fill:#151b23;stroke:#3d444d}}{}}}</style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        escaped(title),
        colours(false),
        colours(true),
        width - 1,
        height - 1,
    );
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = MARGIN + number * LINE + LINE * 3 / 4;
        write!(svg, "<text x=\"{MARGIN}\" y=\"{y}\">").unwrap();
        for (class, text) in spans(line) {
            write!(svg, "<tspan class=\"{class}\">{}</tspan>", escaped(&text)).unwrap();
        }
        svg += "</text>\n";
    }
    svg + "</svg>\n"
}

/// The parts of a line with their classes.
fn spans(line: &str) -> Vec<(String, String)> {
    let (mut colour, mut is_bold) = ("text", false);
    let mut spans: Vec<(String, String)> = Vec::new();
    for (number, part) in line.split("\u{1b}[").enumerate() {
        let mut text = part;
        if number > 0 {
            let (codes, rest) = part.split_once('m').expect("an escape sequence of a style");
            text = rest;
            for code in codes.split(';') {
                match code {
                    "" | "0" => (colour, is_bold) = ("text", false),
                    "1" => is_bold = true,
                    "91" | "31" => colour = "red",
                    "92" | "32" => colour = "green",
                    "93" | "33" => colour = "yellow",
                    "94" | "34" => colour = "blue",
                    "96" | "36" => colour = "cyan",
                    "97" | "37" => colour = "text",
                    _ => panic!("a style without a class: {code}"),
                }
            }
        }
        if !text.is_empty() {
            spans.push((format!("{colour}{}", if is_bold { " bold" } else { "" }), text.to_owned()));
        }
    }
    spans
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[test]
fn a_picture_has_the_styles_and_the_text() {
    let picture = svg("a <title>", "nadmit x", "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: a & b\n\nplain\n");
    assert!(picture.contains("<title id=\"title\">a &lt;title&gt;</title>"));
    assert!(picture.contains("<tspan class=\"red bold\">error</tspan><tspan class=\"text\">: a &amp; b</tspan>"));
    assert!(picture.contains("<tspan class=\"text bold\">$ nadmit x</tspan>"));
    assert_eq!(picture.matches("<text ").count(), 3, "an empty line has no text");
}
