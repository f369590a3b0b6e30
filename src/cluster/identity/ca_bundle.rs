//! A CA bundle (PEM), and the file it may come from.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::watch;

use crate::cluster::identity::publish;
use crate::tls::POLL_INTERVAL;

/// The certificates in a bundle; `None` if it has none, or an invalid one.
pub(in crate::cluster) fn certificates(bundle: &str) -> Option<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle.as_bytes()).collect();
    read.ok().filter(|certificates| !certificates.is_empty())
}

/// Whether a bundle is a proper superset of another.
pub(in crate::cluster) fn is_more(bundle: &str, than: &str) -> bool {
    let (Some(these), Some(those)) = (certificates(bundle), certificates(than)) else { return false };
    let (these, those): (BTreeSet<_>, BTreeSet<_>) = (
        these.iter().map(|certificate| certificate.to_vec()).collect(),
        those.iter().map(|certificate| certificate.to_vec()).collect(),
    );
    these.is_superset(&those) && these.len() > those.len()
}

/// Publishes the content of a file to the channel; a file without certificates is ignored. Ends when there is no receiver.
pub async fn follow(path: PathBuf, bundle: watch::Sender<String>) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while !bundle.is_closed() {
        ticks.tick().await;
        let Ok(text) = tokio::task::block_in_place(|| std::fs::read_to_string(&path)) else { continue };
        if certificates(&text).is_none() {
            continue;
        }
        publish(&bundle, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_compare_as_sets_of_certificates() {
        let make = || rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap().cert.pem();
        let (old, new) = (make(), make());
        let both = format!("{old}{new}");
        for (bundle, than, want) in [
            (&both, &old, true),
            (&both, &new, true),
            (&both, &format!("{new}\n{old}"), false),
            (&old, &both, false),
            (&old, &new, false),
            (&"junk".to_owned(), &old, false),
            (&both, &String::new(), false),
        ] {
            assert_eq!(is_more(bundle, than), want);
        }
        assert_eq!(certificates("junk"), None);
        assert_eq!(certificates(&both).unwrap().len(), 2);
    }
}
