//! When to use colours.

use std::io::{self, IsTerminal};

use clap::{Args, ValueEnum};

/// When to use colours.
#[derive(Debug, Args)]
pub(super) struct ColorArgs {
    /// When to use colours
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    color: ColorWhen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ColorWhen {
    /// On a terminal
    Auto,
    Always,
    Never,
}

impl ColorArgs {
    /// Whether what goes to a file has colours.
    pub(super) fn is_on_in_files(&self) -> bool {
        self.color == ColorWhen::Always
    }

    /// Whether what goes to the standard output has colours.
    pub(super) fn is_on(&self) -> bool {
        match self.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                io::stdout().is_terminal()
                    && anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }
}
