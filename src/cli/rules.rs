//! `nadmit rules`.

use anyhow::bail;
use clap::Args;

use super::{EXIT_CLEAN, print};
use crate::output::reference;
use crate::policy::rules;
use crate::visible;

/// List the rules by family, or explain one
#[derive(Debug, Args)]
pub(super) struct Rules {
    /// The rule to explain, for example nad/resource-name-missing, or a family to list, for example nad
    #[arg(value_name = "RULE")]
    id: Option<String>,
    /// Print the whole reference as Markdown
    #[arg(long, conflicts_with = "id")]
    markdown: bool,
}

impl Rules {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        let text = match &self.id {
            None if self.markdown => reference::markdown(),
            None => reference::table(),
            Some(id) => match (rules::find(id), reference::table_of(id)) {
                (Some(rule), _) => reference::explain(rule),
                (None, Some(family)) => family,
                (None, None) => bail!("{}", unknown(id)),
            },
        };
        print(&text).map(|_| EXIT_CLEAN)
    }
}

/// What to say about an id that no rule has.
fn unknown(id: &str) -> String {
    let shown = visible::line(id);
    // The id without its family, or in the wrong one.
    let (_, name) = id.split_once('/').unwrap_or(("", id));
    let ids = rules::RULES.iter().map(|rule| rule.id);
    let mut close: Vec<&str> = ids.filter(|id| id.split_once('/').is_some_and(|(_, own)| own == name)).collect();
    if close.is_empty() {
        close.extend(rules::closest(id).map(|rule| rule.id));
    }
    match close.split_last() {
        None => format!("unknown rule `{shown}`; `nadmit rules` lists all rules"),
        Some((last, [])) => format!("unknown rule `{shown}`; did you mean `{last}`?"),
        Some((last, others)) => format!("unknown rule `{shown}`; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
