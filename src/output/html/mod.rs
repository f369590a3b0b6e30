//! A self-contained HTML report: no network, no other files. It supports light and dark mode, printing, search, and filters that combine.
//!
//! The URL fragment holds the view: `#q=words` searches, `&rule=…`, `&namespace=…` and the other facets filter, `&open=…` opens an
//! object, and `&open=*` all of them. Without scripts everything is shown, and each object can be opened.
//!
//! No template engine is in the tree: a page is a head, an overview, lists and a script, and all text goes through `escape`.

mod chart;
mod entry;
mod escape;
mod facet;
mod filters;
mod map;
mod overview;
mod page;
mod part;
mod report;
mod strip;
mod table;

pub(crate) use entry::Entry;
pub(crate) use facet::Facet;
pub(crate) use map::MapPage;
pub(crate) use overview::Figure;
pub(crate) use page::{HtmlList, HtmlPage};
pub(crate) use part::{EntryPart, ShownFinding};
pub use report::Html;
pub(crate) use table::HtmlRow;

/// The hash by which a Content-Security-Policy allows a script or style.
#[cfg(test)]
fn csp_hash(text: &str) -> String {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut hashes =
        provider.cipher_suites.iter().filter_map(|suite| suite.tls13()).map(|suite| suite.common.hash_provider);
    let sha256 = hashes.find(|hash| hash.output_len() == 32).unwrap();
    let hash = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, sha256.hash(text.as_bytes()));
    format!("sha256-{hash}")
}
