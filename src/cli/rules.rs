//! `nadmit rules`.

use anyhow::bail;
use clap::Args;

use super::{CLEAN, print};
use crate::output::reference;
use crate::policy::rules;

/// List the rules, or explain one
#[derive(Debug, Args)]
pub(super) struct Rules {
    /// The rule to explain, for instance nad/resource-name-missing
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
                    Some(close) => bail!("there is no rule `{id}`; did you mean `{}`?", close.id),
                    None => bail!("there is no rule `{id}`; `nadmit rules` lists them all"),
                },
            },
        }
        .map(|_| CLEAN)
    }
}
