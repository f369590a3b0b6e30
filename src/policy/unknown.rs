//! Keys and values that the policy file does not have, in words: what was likely meant, instead of a list of everything.

use super::closest;

/// More known words than this are not listed.
const MAX_LISTED: usize = 6;

/// What is wrong, from the message of serde: an unknown key or word is explained, every other message stays.
pub(super) fn explained(problem: &str) -> String {
    key_or_word(problem).unwrap_or_else(|| problem.to_owned())
}

fn key_or_word(problem: &str) -> Option<String> {
    let (sort, rest) = match problem.strip_prefix("unknown field `") {
        Some(rest) => ("key", rest),
        None => ("value", problem.strip_prefix("unknown variant `")?),
    };
    let (word, expected) = rest.rsplit_once("`, expected ")?;
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let meant = match closest(word, known.iter().copied()) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.len() <= MAX_LISTED => {
            let known: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
            format!("the {sort}s are {}", known.join(", "))
        }
        None => "`nadmit schema` lists them".to_owned(),
    };
    Some(match sort {
        "key" => format!("there is no such key; {meant}"),
        _ => format!("there is no such value as `{word}`; {meant}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_explained() {
        let many = "`aa`, `bb`, `cc`, `dd`, `ee`, `ff`, `rules`";
        for (problem, want) in [
            (format!("unknown field `rule`, expected one of {many}"), "there is no such key; did you mean `rules`?"),
            (
                format!("unknown field `zzzz`, expected one of {many}"),
                "there is no such key; `nadmit schema` lists them",
            ),
            (
                "unknown field `zzzz`, expected `users` or `namespaces`".to_owned(),
                "there is no such key; the keys are `users`, `namespaces`",
            ),
            (
                "unknown variant `enfroce`, expected `enforce` or `audit`".to_owned(),
                "there is no such value as `enfroce`; did you mean `enforce`?",
            ),
            (
                "unknown variant `loud`, expected `enforce` or `audit`".to_owned(),
                "there is no such value as `loud`; the values are `enforce`, `audit`",
            ),
            ("unknown field `a`, expected `b`, expected `c`".to_owned(), "there is no such key; the keys are `c`"),
            ("missing field `names`".to_owned(), "missing field `names`"),
            ("unknown field `".to_owned(), "unknown field `"),
        ] {
            assert_eq!(explained(&problem), want);
        }
    }
}
