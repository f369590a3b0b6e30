//! A progress bar. No crate in the tree draws one, and this one line is no reason to add indicatif.

use std::io::{self, IsTerminal, Write};

const WIDTH: usize = 30;

/// A progress bar on standard error, shown only on a terminal and for large tasks.
pub(super) struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    shown: Option<usize>,
    is_open: bool,
}

impl Progress {
    /// A bar for a number of steps; hidden below a threshold, or without a terminal.
    pub(super) fn new(what: &'static str, total: usize, worth_it: usize) -> Self {
        let visible = total >= worth_it && io::stderr().is_terminal();
        Self { what, total: if visible { total } else { 0 }, done: 0, shown: None, is_open: false }
    }

    /// A bar with an unknown number of steps; hidden without a terminal.
    pub(super) fn open(what: &'static str) -> Self {
        Self { is_open: io::stderr().is_terminal(), ..Self::new(what, 0, 1) }
    }

    /// There are more steps than was known.
    pub(super) fn expect(&mut self, steps: usize) {
        if self.is_open {
            self.total += steps;
        }
    }

    /// Some steps are done.
    pub(super) fn advance(&mut self, steps: usize) {
        self.done += steps;
        let Some(percent) = (self.done * 100).checked_div(self.total) else { return };
        if self.shown != Some(percent) {
            self.shown = Some(percent);
            let _ = write!(io::stderr(), "\r{}", bar(self.what, percent.min(100)));
        }
    }

    /// Clears the bar for other output; the next step shows it again.
    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r{}\r", " ".repeat(WIDTH + 20));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(what: &str, percent: usize) -> String {
    let filled = percent * WIDTH / 100;
    format!("{what} [{}{}] {percent:3} %", "#".repeat(filled), " ".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    #[test]
    fn progress_bar_fills() {
        assert_eq!(super::bar("checking", 0), format!("checking [{}]   0 %", " ".repeat(30)));
        assert_eq!(super::bar("checking", 50), format!("checking [{}{}]  50 %", "#".repeat(15), " ".repeat(15)));
        assert_eq!(super::bar("reading", 100), format!("reading [{}] 100 %", "#".repeat(30)));
    }
}
