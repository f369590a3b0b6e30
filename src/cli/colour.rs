//! When to use colours.

use std::io::{self, IsTerminal};

use clap::{Args, ValueEnum};

/// When to use colours.
#[derive(Debug, Args)]
pub(super) struct Colours {
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal
    Auto,
    Always,
    Never,
}

impl Colours {
    /// Whether what goes to the standard output has colours.
    pub(super) fn is_on(&self) -> bool {
        match self.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                io::stdout().is_terminal()
                    && anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }
}
