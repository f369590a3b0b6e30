//! Kustomizations: the patches they apply look like objects, but have only what they change, and the objects they change are not yet
//! what is applied.

mod changes;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Input;
use crate::yaml::{Documents, YamlNode};
use changes::Graph;
pub use changes::{ChangedFiles, ChangedKinds};

/// The names that kustomize looks for.
const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The largest kustomization or patch that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The kustomizations in the directories that are walked. Every path is without symbolic links.
#[derive(Debug, Default)]
pub(super) struct Kustomizations {
    /// The files that they apply as patches.
    pub(super) patches: HashSet<PathBuf>,
    graph: Graph,
}

impl Kustomizations {
    /// Adds the kustomization of a directory, if it has one.
    ///
    /// What cannot be read here is no error: the kustomization itself is an input, and reported as such.
    pub(super) fn add(&mut self, directory: &Path) {
        for file in FILES.map(|name| directory.join(name)) {
            for document in read(&file).iter().flat_map(|text| Documents::new(text)) {
                let Ok(kustomization) = document.node else { continue };
                let real = paths(&kustomization).filter_map(|path| fs::canonicalize(directory.join(path)).ok());
                self.patches.extend(real.filter(|path| path.is_file()));
                self.graph.add(directory, &kustomization);
            }
        }
    }

    /// The files whose objects kustomizations change.
    pub(super) fn changed_files(self) -> ChangedFiles {
        self.graph.changed_files()
    }
}

/// The text of a file, if it is one and of a usual size.
fn read(file: &Path) -> Option<String> {
    let is_usual = fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES);
    if is_usual { Input::File(file.into()).text().ok().map(|text| text.into_owned()) } else { None }
}

/// The elements of a list in a kustomization.
fn list<'k>(kustomization: &'k YamlNode, key: &str) -> &'k [YamlNode] {
    kustomization.get(key).and_then(YamlNode::as_list).unwrap_or_default()
}

/// What a kustomization names as patches. One that stands in the kustomization itself is a path to nothing.
fn paths(kustomization: &YamlNode) -> impl Iterator<Item = &str> {
    let patches = list(kustomization, "patches").iter().chain(list(kustomization, "patchesJson6902"));
    let with_path = patches.filter_map(|patch| patch.get("path"));
    with_path.chain(list(kustomization, "patchesStrategicMerge")).filter_map(YamlNode::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patches(directory: &Path) -> HashSet<PathBuf> {
        let mut found = Kustomizations::default();
        found.add(directory);
        found.patches
    }

    #[test]
    fn patches_are_found_in_every_form() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("overlay")).unwrap();
        for name in ["overlay/a.yaml", "b.yaml", "overlay/c.yaml", "overlay/d.yaml"] {
            fs::write(root.join(name), "").unwrap();
        }
        let kustomization = "resources: [d.yaml]\npatches:\n- path: a.yaml\n- patch: '[]'\n- path: none.yaml\n\
                             patchesStrategicMerge:\n- ../b.yaml\n- |-\n  kind: A\npatchesJson6902:\n- path: c.yaml\n";
        for name in FILES {
            fs::write(root.join("overlay").join(name), kustomization).unwrap();
            let found = patches(&root.join("overlay"));
            let want = ["overlay/a.yaml", "b.yaml", "overlay/c.yaml"].map(|name| root.join(name));
            assert_eq!(found, HashSet::from(want), "{name}");
            fs::remove_file(root.join("overlay").join(name)).unwrap();
        }
        for broken in ["patches: [", "- patches\n", "patches: a.yaml\n", "patches:\n- [path]\n"] {
            fs::write(root.join("overlay/kustomization.yaml"), broken).unwrap();
            assert!(patches(&root.join("overlay")).is_empty(), "{broken}");
        }
    }
}
