//! Which files hold objects that a kustomization changes before they are applied.
//!
//! Such an object is judged as it is written, and what a patch adds or replaces is not seen. So its findings only warn.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{list, read};
use crate::manifests::Input;
use crate::policy::ChangedPart;
use crate::yaml::{Documents, YamlNode};

/// The keys that may change every field of every object of a kustomization.
const CHANGES_EVERYTHING: [&str; 4] = ["components", "replacements", "transformers", "vars"];
/// The keys that change only the metadata of every object: name and namespace, by which the policy and other objects find it.
const CHANGES_METADATA: [&str; 4] = ["commonAnnotations", "namePrefix", "nameSuffix", "namespace"];

/// The kinds of objects that are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedKinds {
    /// What is changed of all kinds.
    all: Option<ChangedPart>,
    /// The kinds that patches change.
    kinds: BTreeSet<String>,
}

/// The changed kinds in each file, by its path without symbolic links.
#[derive(Debug, Default)]
pub struct ChangedFiles(HashMap<PathBuf, ChangedKinds>);

/// What kustomizations include and change, by their directories.
#[derive(Debug, Default)]
pub(super) struct Graph(HashMap<PathBuf, Kustomization>);

#[derive(Debug, Default)]
struct Kustomization {
    /// Files, and directories of other kustomizations.
    includes: Vec<PathBuf>,
    changes: ChangedKinds,
}

impl ChangedKinds {
    /// What is changed of objects of a kind.
    pub fn part_of(&self, kind: &str) -> Option<ChangedPart> {
        if self.kinds.contains(kind) { Some(ChangedPart::Everything) } else { self.all }
    }

    fn is_empty(&self) -> bool {
        self.all.is_none() && self.kinds.is_empty()
    }

    /// Adds other changes; whether there are more now.
    fn merge(&mut self, other: &Self) -> bool {
        let before = (self.all, self.kinds.len());
        self.all = self.all.max(other.all);
        self.kinds.extend(other.kinds.iter().cloned());
        before != (self.all, self.kinds.len())
    }

    /// What a kustomization itself changes.
    fn of(kustomization: &YamlNode, directory: &Path) -> Self {
        let is_given = |key: &str| {
            kustomization.get(key).is_some_and(|value| !matches!(&*value.to_json(), "null" | "\"\"" | "[]" | "{}"))
        };
        let metadata = CHANGES_METADATA.into_iter().any(is_given).then_some(ChangedPart::Metadata);
        let everything = CHANGES_EVERYTHING.into_iter().any(is_given).then_some(ChangedPart::Everything);
        let mut changes = Self { all: everything.max(metadata), kinds: BTreeSet::new() };
        for patch in list(kustomization, "patches").iter().chain(list(kustomization, "patchesJson6902")) {
            match patch.get("target").map(|target| target.get("kind").and_then(YamlNode::as_str)) {
                // Otherwise it is a regular expression, or absent, which selects every kind.
                Some(Some(kind)) if is_word(kind) => drop(changes.kinds.insert(kind.to_owned())),
                Some(_) => changes.all = Some(ChangedPart::Everything),
                None => {
                    let inline = patch.get("patch").and_then(YamlNode::as_str);
                    let path = patch.get("path").and_then(YamlNode::as_str);
                    let text = inline.map(ToOwned::to_owned).or_else(|| read(&directory.join(path?)));
                    changes.add_patch(text.as_deref());
                }
            }
        }
        for patch in list(kustomization, "patchesStrategicMerge").iter().filter_map(YamlNode::as_str) {
            let file = read(&directory.join(patch));
            changes.add_patch(Some(file.as_deref().unwrap_or(patch)));
        }
        changes
    }

    /// Adds what a patch without a target changes: the objects of the kinds that it names.
    fn add_patch(&mut self, text: Option<&str>) {
        let Some(text) = text else { return };
        for document in Documents::new(text) {
            let node = document.node.ok();
            match node.as_ref().and_then(|node| node.get("kind")).and_then(YamlNode::as_str) {
                Some(kind) => drop(self.kinds.insert(kind.to_owned())),
                None => self.all = Some(ChangedPart::Everything),
            }
        }
    }
}

impl ChangedFiles {
    /// What is changed in an input that was found in a directory; `None` if nothing is, or if it was named itself.
    pub fn in_input(&self, input: &Input) -> Option<&ChangedKinds> {
        if input.is_named() { None } else { self.of(input.path()?) }
    }

    fn of(&self, path: &Path) -> Option<&ChangedKinds> {
        // Without kustomizations that change something, no path has to be resolved.
        if self.0.is_empty() { None } else { self.0.get(&fs::canonicalize(path).ok()?) }
    }
}

impl Graph {
    pub(super) fn add(&mut self, directory: &Path, kustomization: &YamlNode) {
        let included = ["resources", "bases", "components"].into_iter().flat_map(|key| list(kustomization, key));
        let paths =
            included.filter_map(YamlNode::as_str).filter_map(|path| fs::canonicalize(directory.join(path)).ok());
        let entry = self.0.entry(directory.to_owned()).or_default();
        entry.includes.extend(paths);
        entry.changes.merge(&ChangedKinds::of(kustomization, directory));
    }

    /// Hands the changes of each kustomization on to all that it includes, until nothing is added any more.
    pub(super) fn changed_files(self) -> ChangedFiles {
        let mut reached: HashMap<PathBuf, ChangedKinds> = HashMap::new();
        for (directory, kustomization) in &self.0 {
            if !kustomization.changes.is_empty() {
                reached.insert(directory.clone(), kustomization.changes.clone());
            }
        }
        let mut open: Vec<PathBuf> = reached.keys().cloned().collect();
        let mut waiting: HashSet<PathBuf> = open.iter().cloned().collect();
        while let Some(directory) = open.pop() {
            waiting.remove(&directory);
            let Some(changes) = reached.get(&directory).cloned() else { continue };
            for included in self.0.get(&directory).into_iter().flat_map(|kustomization| &kustomization.includes) {
                let has_more = reached.entry(included.clone()).or_default().merge(&changes);
                if has_more && self.0.contains_key(included) && waiting.insert(included.clone()) {
                    open.push(included.clone());
                }
            }
        }
        ChangedFiles(reached)
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::super::Kustomizations;
    use super::*;

    /// A kustomization, and what it changes of NADs and networks.
    #[test]
    fn kinds_that_a_kustomization_changes() {
        let nad = "NetworkAttachmentDefinition";
        const METADATA: Option<ChangedPart> = Some(ChangedPart::Metadata);
        const EVERYTHING: Option<ChangedPart> = Some(ChangedPart::Everything);
        for (text, of_nads, of_networks) in [
            ("resources: [a.yaml]\n", None, None),
            ("images: [{name: a, newTag: b}]\nlabels: [{pairs: {a: b}}]\n", None, None),
            ("namespace: ''\nvars: []\ncommonAnnotations: {}\ncomponents:\n", None, None),
            ("namespace: a\n", METADATA, METADATA),
            ("commonAnnotations: {a: b}\n", METADATA, METADATA),
            ("components: [../c]\n", EVERYTHING, EVERYTHING),
            ("patches: [{patch: '[]', target: {kind: Deployment}}]\n", None, None),
            ("patches: [{patch: '[]', target: {kind: SriovNetwork}}]\n", None, EVERYTHING),
            ("patches: [{patch: '[]', target: {kind: '.*'}}]\n", EVERYTHING, EVERYTHING),
            ("patches: [{patch: '[]', target: {name: a}}]\n", EVERYTHING, EVERYTHING),
            ("patches: [{patch: 'kind: SriovNetwork'}]\n", None, EVERYTHING),
            ("patches: [{path: nad.yaml}]\n", EVERYTHING, None),
            ("patches: [{path: none.yaml}]\n", None, None),
            ("patches: [{patch: '[]'}]\n", EVERYTHING, EVERYTHING),
            ("patchesJson6902: [{path: nad.yaml, target: {kind: SriovNetwork}}]\n", None, EVERYTHING),
            ("patchesStrategicMerge: [nad.yaml]\n", EVERYTHING, None),
            ("patchesStrategicMerge:\n- |-\n  kind: NetworkAttachmentDefinition\n", EVERYTHING, None),
            ("namePrefix: a\npatches: [{patch: 'kind: SriovNetwork'}]\n", METADATA, EVERYTHING),
        ] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("nad.yaml"), format!("kind: {nad}\n")).unwrap();
            let node = Documents::new(text).next().unwrap().node.unwrap();
            let changes = ChangedKinds::of(&node, directory.path());
            assert_eq!((changes.part_of(nad), changes.part_of("SriovNetwork")), (of_nads, of_networks), "{text}");
        }
    }

    /// Changes reach what is included through other kustomizations, and end in loops.
    #[test]
    fn changes_reach_everything_that_is_included() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let mut found = Kustomizations::default();
        for (name, text) in [
            ("base", "resources: [nad.yaml, ../loop]\n"),
            ("loop", "resources: [../base, nad.yaml]\n"),
            ("prod", "resources: [../base, https://example.com/x]\nnamespace: prod\n"),
            ("plain", "resources: [nad.yaml]\n"),
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join("nad.yaml"), "").unwrap();
            fs::write(root.join(name).join("kustomization.yaml"), text).unwrap();
        }
        for name in ["base", "loop", "prod", "plain"] {
            found.add(&root.join(name));
        }
        let files = found.changed_files();
        let changed = |name: &str| {
            files.of(&root.join(name).join("nad.yaml")).is_some_and(|kinds| kinds.part_of("Pod").is_some())
        };
        assert_eq!(["base", "loop", "prod", "plain"].map(changed), [true, true, false, false]);
    }
}
