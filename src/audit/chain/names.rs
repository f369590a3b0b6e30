//! Lists of names that stay short.

use std::fmt;

/// How many names are listed.
const MAX_NAMES: usize = 3;

/// The first of some names, and how many there are.
#[derive(Default)]
pub(in crate::audit) struct FirstNames<'n> {
    first: Vec<&'n str>,
    pub(in crate::audit) count: usize,
}

impl<'n> FirstNames<'n> {
    pub(in crate::audit) fn push(&mut self, name: &'n str) {
        self.count += 1;
        if self.first.len() < MAX_NAMES {
            self.first.push(name);
        }
    }
}

impl<'n> FromIterator<&'n str> for FirstNames<'n> {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        let mut listed = Self::default();
        names.into_iter().for_each(|name| listed.push(name));
        listed
    }
}

impl fmt::Display for FirstNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.count.saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
