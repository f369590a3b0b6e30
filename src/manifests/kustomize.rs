//! Patches of kustomizations: they look like objects, but have only what they change.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Input;
use crate::yaml::{Documents, YamlNode};

/// The names that kustomize looks for.
const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The largest kustomization that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Adds the files that the kustomization of a directory applies as patches, without symbolic links.
///
/// What cannot be read here is no error: the kustomization itself is an input, and reported as such.
pub(super) fn add_patches(directory: &Path, patches: &mut HashSet<PathBuf>) {
    for file in FILES.map(|name| directory.join(name)) {
        if !fs::metadata(&file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES) {
            continue;
        }
        let Ok(text) = Input::File(file.into()).text().map(|text| text.into_owned()) else { continue };
        for document in Documents::new(&text).filter_map(|document| document.node.ok()) {
            let real = paths(&document).filter_map(|path| fs::canonicalize(directory.join(path)).ok());
            patches.extend(real.filter(|path| path.is_file()));
        }
    }
}

/// What a kustomization names as patches. One that stands in the kustomization itself is a path to nothing.
fn paths(kustomization: &YamlNode) -> impl Iterator<Item = &str> {
    let list = |key| kustomization.get(key).and_then(YamlNode::as_list).unwrap_or_default();
    let with_path = list("patches").iter().chain(list("patchesJson6902")).filter_map(|patch| patch.get("path"));
    with_path.chain(list("patchesStrategicMerge")).filter_map(YamlNode::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut patches = HashSet::new();
            add_patches(&root.join("overlay"), &mut patches);
            let want = ["overlay/a.yaml", "b.yaml", "overlay/c.yaml"].map(|name| root.join(name));
            assert_eq!(patches, HashSet::from(want), "{name}");
            fs::remove_file(root.join("overlay").join(name)).unwrap();
        }
        for broken in ["patches: [", "- patches\n", "patches: a.yaml\n", "patches:\n- [path]\n"] {
            fs::write(root.join("overlay/kustomization.yaml"), broken).unwrap();
            let mut patches = HashSet::new();
            add_patches(&root.join("overlay"), &mut patches);
            assert!(patches.is_empty(), "{broken}");
        }
    }
}
