//! The cases of every rule, as data: `tests/cases/<rule>/<name>/`.
//!
//! - `input.yaml`: the manifests; all are judged, each with the others as facts. Those of the cases `bad` and `good` are the examples
//!   of the rule, `src/policy/rules/examples/<rule>/`.
//! - `expect.yaml`: exactly the findings, and the patch of the first document if the case checks it.
//! - `policy.yaml`: a policy, if the case does not use the default one.
//! - `admission.yaml`: facts that a manifest does not have (user, old object, facts of the cluster; `sub_resource: status` for a
//!   status write). Entry points without these facts skip the case. Those of the cases `bad` and `good` are beside the examples,
//!   as `bad.facts.yaml` and `good.facts.yaml`: the reference shows them.

mod facts;

use std::fs;
use std::path::{Path, PathBuf};

use nadmit::json::LineIndex;
use nadmit::manifests::{Assumptions, Index, Manifest, ManifestDocument, documents};
use nadmit::policy::{Facts, Policy, Prefix, StatusWrite, Subject, Verdict, judge, judge_status};
use nadmit::resources::Object;
use nadmit::yaml::Documents;
use serde::Deserialize;
use serde_json::Value;

use facts::Admission;

/// One finding, as the cases write it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    #[serde(default)]
    pub document: usize,
    pub rule: String,
    pub action: String,
    pub pointer: String,
    pub config_pointer: Option<String>,
}

/// What a case expects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub findings: Vec<Expected>,
    /// The patch of the first document.
    pub patch: Option<Value>,
}

/// A case on disk.
pub struct Case {
    pub name: String,
    /// The directory with its expectation, and its policy if it has one.
    pub directory: PathBuf,
    /// The file with its manifests.
    pub input_file: PathBuf,
    pub input: String,
    pub expect: Expect,
    pub policy: Policy,
    /// The policy file, if there is one.
    pub policy_text: Option<String>,
    admission: Option<Admission>,
}

impl Case {
    /// Whether the manifests alone decide the findings.
    pub fn is_offline(&self) -> bool {
        self.admission.is_none()
    }

    /// The user that writes, if the case names one.
    pub fn user(&self) -> Option<&str> {
        self.admission.as_ref()?.user.as_deref()
    }

    /// Whether the case is a status write.
    pub fn is_status(&self) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.sub_resource.as_deref() == Some("status"))
    }

    /// Whether the case audits a stored object instead of judging a write.
    pub fn is_stored(&self) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.facts.stored.is_some())
    }

    /// The old object as JSON text, if the case is an update.
    pub fn old(&self) -> Option<String> {
        self.admission.as_ref()?.old.as_ref().map(ToString::to_string)
    }

    /// Every document, as JSON text.
    pub fn documents(&self) -> Vec<String> {
        self.manifests().iter().map(|manifest| manifest.node.to_json()).collect()
    }

    fn manifests(&self) -> Vec<Manifest> {
        let mut manifests = Vec::new();
        documents(&LineIndex::of(&self.input), &mut |document| match document {
            ManifestDocument::Manifest(manifest) => manifests.push(manifest),
            ManifestDocument::Unreadable { line, problem, .. } => panic!("{}: line {line}: {problem}", self.name),
        });
        manifests
    }

    /// Judges the case's manifests in process.
    pub fn judge(&self) -> Vec<(String, Verdict)> {
        self.judge_manifests().into_iter().map(|(_, json, verdict)| (json, verdict)).collect()
    }

    /// The same, each with the manifest that it is about.
    pub fn judge_manifests(&self) -> Vec<(Manifest, String, Verdict)> {
        let judged = self.manifests().into_iter().filter_map(|manifest| {
            let (json, verdict) = self.judge_one(&manifest)?;
            Some((manifest, json, verdict))
        });
        judged.collect()
    }

    /// All facts of the case when that object is written: from its other manifests, and
    /// from its other facts.
    pub fn facts(&self, object: &Object<'_>) -> Facts {
        let mut facts = self.index().facts(object, &assumptions(), &self.policy);
        if let Some(admission) = &self.admission {
            admission.facts.add_to(&mut facts);
        }
        facts
    }

    fn index(&self) -> Index {
        let (lines, file) = (LineIndex::of(&self.input), self.input_file.file_name().unwrap().to_string_lossy());
        let mut index = Index::default();
        self.manifests().iter().for_each(|manifest| index.add(manifest, &file, &lines));
        index.finish()
    }

    fn judge_one(&self, manifest: &Manifest) -> Option<(String, Verdict)> {
        let json = manifest.node.to_json();
        if self.is_status() {
            let verdict = self.judge_status(&json);
            return Some((json, verdict));
        }
        let object = Object::read(&json).unwrap()?;
        let facts = self.facts(&object);
        let nothing = Admission::default();
        let admission = self.admission.as_ref().unwrap_or(&nothing);
        let old_json = admission.old.as_ref().map(ToString::to_string);
        assert_eq!(
            old_json.is_some(),
            admission.operation.as_deref() == Some("UPDATE"),
            "{}: an update has an old object",
            self.name
        );
        let old = old_json.as_deref().map(|json| Object::read(json).unwrap().unwrap());
        let subject =
            Subject { object: &object, old: old.as_ref(), writer: admission.user.as_deref(), is_final: false };
        let mut verdict = judge(&subject, &facts, &self.policy);
        self.index().locate_related(&mut verdict);
        Some((json, verdict))
    }
}

impl Case {
    /// Judges the case's status write in process.
    pub fn judge_status(&self, object: &str) -> Verdict {
        let value: Value = serde_json::from_str(object).unwrap();
        let word = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let old = self.old().unwrap_or_else(|| panic!("{}: a status write needs an old object", self.name));
        let write = StatusWrite {
            group: word("/apiVersion").split_once('/').unwrap().0,
            resource: &(word("/kind").to_lowercase() + "s"),
            kind: word("/kind"),
            namespace: word("/metadata/namespace"),
            name: word("/metadata/name"),
            user: self.user().unwrap(),
            manager: "",
            object,
            old: &old,
        };
        judge_status(&write, &Facts::default(), &self.policy).unwrap().verdict
    }
}

/// The assumptions of `check`, on a fixed day.
fn assumptions() -> Assumptions {
    Assumptions {
        prefix: Prefix { value: "openshift.io".to_owned(), assumed: true },
        operator_namespace: None,
        today: "2026-11-01".parse().unwrap(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// All cases.
pub fn all() -> Vec<Case> {
    directories().iter().map(|directory| Case::read(directory)).collect()
}

/// The directories of all cases.
pub fn directories() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root(), &mut found);
    assert!(found.len() > 350, "only {} cases found", found.len());
    found
}

/// The name of the case in a directory: `<rule>/<name>`.
pub fn name_of(directory: &Path) -> String {
    directory.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    if entries.iter().all(|path| path.is_dir()) {
        entries.iter().for_each(|path| collect(path, found));
    } else {
        found.push(directory.to_owned());
    }
}

impl Case {
    pub fn read(directory: &Path) -> Self {
        let name = name_of(directory);
        let input_file = input_file(directory, &name);
        let read = |file: &str| fs::read_to_string(directory.join(file)).ok();
        let facts = read("admission.yaml").or_else(|| fs::read_to_string(input_file.with_extension("facts.yaml")).ok());
        let parse = |text: &str| -> Value {
            let node = Documents::new(text).next().unwrap_or_else(|| panic!("{name}: empty")).node.unwrap();
            serde_json::from_str(&node.to_json()).unwrap()
        };
        let expect = read("expect.yaml").unwrap_or_else(|| panic!("{name} has no expect.yaml"));
        Self {
            expect: serde_json::from_value(parse(&expect))
                .unwrap_or_else(|error| panic!("{name}: expect.yaml: {error}")),
            input: fs::read_to_string(&input_file).unwrap_or_else(|error| panic!("{}: {error}", input_file.display())),
            input_file,
            policy: read("policy.yaml").map_or_else(Policy::default, |text| Policy::parse(&text).unwrap()),
            policy_text: read("policy.yaml"),
            admission: facts.map(|text| {
                serde_json::from_value(parse(&text)).unwrap_or_else(|error| panic!("{name}: its facts: {error}"))
            }),
            directory: directory.to_owned(),
            name,
        }
    }

    /// The same case with other manifests.
    pub fn with_input(&self, input: String) -> Self {
        Self { input, ..Self::read(&self.directory) }
    }
}

/// The manifests of a case: its own, or the example of its rule.
fn input_file(directory: &Path, name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy/rules/examples");
    let (own, example) = (directory.join("input.yaml"), examples.join(format!("{name}.yaml")));
    assert_ne!(
        own.exists(),
        example.exists(),
        "{name}: there must be either {} or {}",
        own.display(),
        example.display()
    );
    if own.exists() { own } else { example }
}
