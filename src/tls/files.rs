//! Certificates from files, reloaded on change. They are never written.
//!
//! The files are compared by content, at intervals: a Secret volume changes by swapping a link two directories up, which causes
//! no event on the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Material, Served, TlsError};

/// How often a file that may change is read.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The files, and what was last seen in them.
pub struct Files {
    chain: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    seen: Material,
    /// Whether the last read failed, which is logged once.
    is_gone: bool,
}

impl Files {
    /// Reads the files.
    pub fn open(chain: PathBuf, key: PathBuf, client_ca: Option<PathBuf>) -> Result<(Self, Served), TlsError> {
        let seen = read(&chain, &key, client_ca.as_deref())?;
        let served = seen.serve()?;
        Ok((Self { chain, key, client_ca, seen, is_gone: false }, served))
    }

    /// The new certificate, if the files changed. A rejected one is not checked again until it changes.
    pub fn reread(&mut self) -> Option<Result<Served, TlsError>> {
        let found = read(&self.chain, &self.key, self.client_ca.as_deref());
        let was_gone = std::mem::replace(&mut self.is_gone, found.is_err());
        match found {
            Ok(material) if material == self.seen => None,
            Ok(material) => {
                let served = material.serve();
                self.seen = material;
                Some(served)
            }
            Err(_) if was_gone => None,
            Err(error) => Some(Err(error)),
        }
    }
}

fn read(chain: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Material, TlsError> {
    let read =
        |path: &Path| fs::read(path).map_err(|source| TlsError::Read { path: path.display().to_string(), source });
    Ok(Material { chain: read(chain)?, key: read(key)?, client_ca: client_ca.map(read).transpose()? })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::Development;
    use super::*;

    /// A mounted Secret: `tls.crt -> ..data/tls.crt`, `..data -> ..2026_11`.
    struct Volume {
        directory: tempfile::TempDir,
        generation: usize,
    }

    impl Volume {
        fn swap(&mut self, material: &Material) {
            self.generation += 1;
            let at = |name: &str| self.directory.path().join(name);
            let real = format!("..{}", self.generation);
            fs::create_dir(at(&real)).unwrap();
            fs::write(at(&real).join("tls.crt"), &material.chain).unwrap();
            fs::write(at(&real).join("tls.key"), &material.key).unwrap();
            symlink(&real, at("..new")).unwrap();
            fs::rename(at("..new"), at("..data")).unwrap();
        }
    }

    #[test]
    fn reloads_a_swapped_volume_and_rejects_a_bad_pair_once() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (one, two) = (Development::make(&[]).unwrap().material, Development::make(&[]).unwrap().material);
        let mut volume = Volume { directory: tempfile::tempdir().unwrap(), generation: 0 };
        let at = |name: &str| volume.directory.path().join(name);
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), at(name)).unwrap();
        }
        let (chain, key) = (at("tls.crt"), at("tls.key"));
        assert!(Files::open(chain.clone(), key.clone(), None).is_err());
        volume.swap(&one);
        let (mut files, _) = Files::open(chain, key, None).unwrap();
        assert!(files.reread().is_none());
        volume.swap(&two);
        assert!(files.reread().unwrap().is_ok());
        assert!(files.reread().is_none());
        volume.swap(&Material { key: one.key.clone(), ..two.clone() });
        assert!(files.reread().unwrap().is_err());
        assert!(files.reread().is_none());
        volume.swap(&one);
        assert!(files.reread().unwrap().is_ok());
        fs::remove_file(volume.directory.path().join("..data")).unwrap();
        assert!(files.reread().unwrap().is_err());
        assert!(files.reread().is_none());
        volume.swap(&two);
        assert!(files.reread().unwrap().is_ok());
    }
}
