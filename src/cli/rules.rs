//! `nadmit rules`.

use anyhow::bail;
use clap::Args;

use super::{EXIT_CLEAN, print};
use crate::output::reference;
use crate::policy::rules;

/// List the rules, or explain one
#[derive(Debug, Args)]
pub(super) struct Rules {
    /// The rule to explain, for example nad/resource-name-missing
    id: Option<String>,
    /// Print the whole reference as Markdown
    #[arg(long, conflicts_with = "id")]
    markdown: bool,
}

impl Rules {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        match &self.id {
            None if self.markdown => print(&reference::markdown()),
            None => print(&reference::table()),
            Some(id) => match rules::find(id) {
                Some(rule) => print(&reference::explain(rule)),
                None => match rules::closest(id) {
                    Some(close) => bail!("unknown rule `{id}`; did you mean `{}`?", close.id),
                    None => bail!("unknown rule `{id}`; `nadmit rules` lists all rules"),
                },
            },
        }
        .map(|_| EXIT_CLEAN)
    }
}
