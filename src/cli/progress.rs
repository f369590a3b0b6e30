//! A bar for those who wait.

use std::io::{self, IsTerminal, Write};

const WIDTH: usize = 30;

/// A progress bar on standard error. It shows itself only to a person, and only where there is much to do.
pub(super) struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    shown: Option<usize>,
    is_open: bool,
}

impl Progress {
    /// A bar for so many steps; hidden if they are fewer than is worth one, or if nobody watches.
    pub(super) fn new(what: &'static str, total: usize, worth_it: usize) -> Self {
        let visible = total >= worth_it && io::stderr().is_terminal();
        Self { what, total: if visible { total } else { 0 }, done: 0, shown: None, is_open: false }
    }

    /// A bar for nobody knows how many steps yet; hidden if nobody watches.
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

    /// Makes room for other output; the next step shows the bar again.
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
    fn the_bar_fills() {
        assert_eq!(super::bar("checking", 0), format!("checking [{}]   0 %", " ".repeat(30)));
        assert_eq!(super::bar("checking", 50), format!("checking [{}{}]  50 %", "#".repeat(15), " ".repeat(15)));
        assert_eq!(super::bar("reading", 100), format!("reading [{}] 100 %", "#".repeat(30)));
    }
}
