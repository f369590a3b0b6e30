//! As much of Markdown and of a shell as the pages use.

use std::collections::{BTreeSet, HashMap};

/// The text outside of code blocks.
pub fn prose(page: &str) -> String {
    let mut is_code = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

/// The code blocks with their languages, without the indentation of a list.
pub fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    for line in page.lines() {
        let code = line.trim_start();
        match (&mut open, code.strip_prefix("```")) {
            (None, Some(language)) => open = Some((line.len() - code.len(), language.to_owned(), String::new())),
            (None, None) => {}
            (Some(_), Some(_)) => blocks.extend(open.take().map(|(_, language, text)| (language, text))),
            (Some((indentation, _, text)), None) => {
                text.push_str(line.get(*indentation..).unwrap_or_default());
                text.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a code block does not end");
    blocks
}

/// The inline code of a page.
pub fn code_spans(page: &str) -> Vec<String> {
    let prose = prose(page);
    prose.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The targets of links and images.
pub fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let mut found = Vec::new();
    for line in prose.lines() {
        // Inline code has no links.
        let line: String = line.split('`').step_by(2).collect();
        found.extend(line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
    }
    found
}

/// The headings of a page with their levels.
pub fn headings(page: &str) -> Vec<(usize, String)> {
    let prose = prose(page);
    let heading = |line: &str| {
        let text = line.trim_start_matches('#');
        let level = line.len() - text.len();
        (level > 0 && text.starts_with(' ')).then(|| (level, text.trim().to_owned()))
    };
    prose.lines().filter_map(heading).collect()
}

/// The anchors that GitHub gives to the headings.
pub fn anchors(page: &str) -> BTreeSet<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    let mut anchors = BTreeSet::new();
    for (_, heading) in headings(page) {
        let letter = |letter: char| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        };
        let anchor: String = heading.to_lowercase().chars().filter_map(letter).collect();
        let earlier = count.entry(anchor.clone()).or_default();
        anchors.insert(if *earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
        *earlier += 1;
    }
    anchors
}

/// The text below a heading of the second level, with its subsections.
pub fn sections(page: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        match line.strip_prefix("## ") {
            Some(heading) if !is_code => sections.push((heading.to_owned(), String::new())),
            _ => {
                if let Some((_, text)) = sections.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    sections
}

/// The commands that a page shows, each as its words: the lines after a `$` in `console` blocks, and all in `sh` blocks.
pub fn commands(page: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for (language, text) in blocks(page) {
        let text = text.replace("\\\n", " ");
        let lines = text.lines().filter_map(|line| match language.as_str() {
            "console" => line.strip_prefix("$ "),
            "sh" => Some(line),
            _ => None,
        });
        commands.extend(lines.flat_map(simple_commands));
    }
    commands
}

/// The simple commands of a line: pipes and lists are split, quotes removed, redirections and comments left out.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    let mut is_redirected = false;
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | ';' | '<' | '>') => {
                if let (Some(word), Some(command)) = (word.take(), commands.last_mut()) {
                    if !is_redirected {
                        command.push(word);
                    }
                    is_redirected = false;
                }
                match letter {
                    '|' | '&' | ';' => commands.push(Vec::new()),
                    '<' | '>' => is_redirected = true,
                    _ => {}
                }
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

#[test]
fn pages_are_read_as_github_and_a_shell_read_them() {
    let page = "# A `b`, c\n[x](y.md#z) `[no](link)`\n\n1. in a list\n\n   ```console\n   $ nadmit check - \\\n     --diff | less  # why\n   output\n   ```\n\
                ## It's a\n## It's a\n```text\n## none\n[no](link)\n```\n";
    assert_eq!(links(page), ["y.md#z"]);
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), ["a-b-c", "its-a", "its-a-1"]);
    assert_eq!(code_spans(page), ["b", "[no](link)"]);
    assert_eq!(commands(page), [vec!["nadmit", "check", "-", "--diff"], vec!["less"]]);
    assert_eq!(simple_commands("a 'b c' > d && e=\"f\" #g"), [vec!["a", "b c"], vec!["e=f"]]);
    assert_eq!(sections(page)[1].1, "```text\n## none\n[no](link)\n```\n");
}
