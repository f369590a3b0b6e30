//! A list, page by page.

use std::time::Duration;

use tokio::time::timeout;
use tracing::warn;

use crate::cluster::client::collection::{ApiObject, ListPage};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::supervise::contained;

/// Objects per page of a list, unless they are large.
const PAGE_SIZE: usize = 500;
/// Objects in one page of those that are deleted.
const DELETED_PER_PAGE: usize = 100;
/// The timeout of a page.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The position in a paged list.
pub(in crate::cluster) struct ListPager<'a> {
    /// The collection.
    path: &'a ApiPath,
    limit: usize,
    next: Option<String>,
}

impl<'a> ListPager<'a> {
    pub(in crate::cluster) fn of(path: &'a ApiPath) -> Self {
        Self { path, limit: PAGE_SIZE, next: Some(String::new()) }
    }

    /// Sets the page size.
    pub(in crate::cluster) fn by(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The text of the next page; `None` at the end, or if the kind does not exist. If a page is too large, it is fetched with
    /// fewer objects.
    pub(in crate::cluster) async fn next(&mut self, cluster: &Cluster) -> Result<Option<String>, ApiError> {
        let Some(next) = self.next.take() else { return Ok(None) };
        loop {
            let path = self.path.page(self.limit, &next);
            match timeout(RESPONSE_TIMEOUT, cluster.get(&path)).await.map_err(|_| ApiError::Timeout)? {
                Err(ApiError::TooLarge) if self.limit > 1 => self.limit = (self.limit / 8).max(1),
                answer => return answer,
            }
        }
    }

    /// Advances after a page. Required before the next one.
    pub(in crate::cluster) fn after(&mut self, page: &ListPage<'_>) {
        self.next = (!page.next.is_empty()).then(|| page.next.to_string());
    }
}

impl Cluster {
    /// Deletes all objects of a namespaced resource with these labels; how many.
    pub(in crate::cluster) async fn delete_labelled(
        &self,
        resource: ApiResource,
        labels: &[(&str, &str)],
    ) -> Result<usize, ApiError> {
        let path = ApiPath::all(resource).labelled(labels);
        let mut pages = ListPager::of(&path).by(DELETED_PER_PAGE);
        let mut deleted = 0;
        while let Some(text) = pages.next(self).await? {
            let page = ListPage::read(&text)?;
            pages.after(&page);
            for ApiObject { key, .. } in page.objects.iter().filter_map(|stored| ApiObject::read(stored)) {
                self.delete(&ApiPath::object(resource, &key)?).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Each object of a collection, as text. False where there is no such kind.
    pub(in crate::cluster) async fn for_each_object(
        &self,
        path: &ApiPath,
        visit: impl FnMut(&str) + Send,
    ) -> Result<bool, ApiError> {
        self.first(usize::MAX, path, visit).await
    }

    /// The same for that many of them.
    pub(in crate::cluster) async fn first(
        &self,
        most: usize,
        path: &ApiPath,
        mut visit: impl FnMut(&str) + Send,
    ) -> Result<bool, ApiError> {
        let mut pages = ListPager::of(path).by(most.min(PAGE_SIZE));
        let (mut is_there, mut left) = (false, most);
        while left > 0
            && let Some(text) = pages.next(self).await?
        {
            is_there = true;
            let page = ListPage::read(&text)?;
            for object in page.objects.iter().take(left) {
                // One object must not break the others.
                if let Err(panicked) = contained(|| visit(object)) {
                    warn!(%path, problem = %panicked, "failed to read an object, skipping it");
                }
            }
            left = left.saturating_sub(page.objects.len());
            pages.after(&page);
        }
        Ok(is_there)
    }
}
