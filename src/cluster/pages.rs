//! A list, page by page.

use std::time::Duration;

use tokio::time::timeout;
use tracing::warn;

use super::collection::Page;
use super::{Cluster, Failed};
use crate::supervise::contained;

/// Objects in one page of a list, where they are not known to be large.
const PAGE: usize = 500;
/// How long a page may take.
const ANSWER: Duration = Duration::from_secs(30);

/// Where in a list somebody is.
pub(super) struct Pages<'a> {
    /// The address of the collection, and which of its objects are wanted, if not all are.
    address: &'a str,
    selector: &'a str,
    limit: usize,
    next: Option<String>,
}

impl<'a> Pages<'a> {
    pub(super) fn of(address: &'a str, selector: &'a str) -> Self {
        Self { address, selector, limit: PAGE, next: Some(String::new()) }
    }

    /// The same with fewer objects, or more, in one page.
    pub(super) fn by(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The text of the page that comes next; `None` where there are no more, or there is no such kind. Where the objects are so large
    /// that the page is, it has fewer of them.
    pub(super) async fn next(&mut self, cluster: &Cluster) -> Result<Option<String>, Failed> {
        let Some(next) = self.next.take() else { return Ok(None) };
        loop {
            let mut path = format!("{}?limit={}{}", self.address, self.limit, self.selector);
            if !next.is_empty() {
                path += &format!("&continue={next}");
            }
            match timeout(ANSWER, cluster.get(&path)).await.map_err(|_| Failed::Silent)? {
                Err(Failed::TooLarge) if self.limit > 1 => self.limit = (self.limit / 8).max(1),
                answer => return answer,
            }
        }
    }

    /// Goes on after a page. Without this call there is no next one.
    pub(super) fn after(&mut self, page: &Page<'_>) {
        self.next = (!page.next.is_empty()).then(|| page.next.to_string());
    }
}

impl Cluster {
    /// Each object of a collection, as text. False where there is no such kind.
    pub(super) async fn each(
        &self,
        address: &str,
        selector: &str,
        visit: impl FnMut(&str) + Send,
    ) -> Result<bool, Failed> {
        self.first(usize::MAX, address, selector, visit).await
    }

    /// The same for that many of them.
    pub(super) async fn first(
        &self,
        most: usize,
        address: &str,
        selector: &str,
        mut visit: impl FnMut(&str) + Send,
    ) -> Result<bool, Failed> {
        let mut pages = Pages::of(address, selector).by(most.min(PAGE));
        let (mut is_there, mut left) = (false, most);
        while left > 0
            && let Some(text) = pages.next(self).await?
        {
            is_there = true;
            let page = Page::read(&text)?;
            for object in page.objects.iter().take(left) {
                // One object must not hide the others.
                if let Err(panicked) = contained(|| visit(object)) {
                    warn!(address, problem = %panicked, "an object cannot be read and is left out");
                }
            }
            left = left.saturating_sub(page.objects.len());
            pages.after(&page);
        }
        Ok(is_there)
    }
}
