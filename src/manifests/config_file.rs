//! `.nadmit.yaml`: what holds for all manifests of a repository.
//!
//! It may come from a stranger, so nothing it says leads out of its repository: neither its policy, nor itself by a symbolic link.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::ignore::repository_of;
use super::{IgnoreList, Input, InputError};
use crate::json::line_column;
use crate::policy::closest;
use crate::visible::cause;
use crate::yaml::{Documents, MapEntry, YamlNode, YamlValue};

/// The name of the file.
pub const CONFIG_FILE: &str = ".nadmit.yaml";
/// The largest one that is read.
const MAX_BYTES: u64 = 1 << 20;
const KEYS: [&str; 4] = ["policy", "operatorNamespace", "resourcePrefix", "exclude"];

/// The configuration of a repository.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it was found.
    pub path: PathBuf,
    /// The policy file, below the root of the repository.
    pub policy: Option<PathBuf>,
    /// The namespace of the SR-IOV operator.
    pub operator_namespace: Option<String>,
    /// The domain that the operator prepends to resource names.
    pub resource_prefix: Option<String>,
    /// What is left out of directories, relative to the directory of this file.
    pub exclude: Option<IgnoreList>,
}

/// Why a configuration is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] InputError),
    /// An I/O error.
    #[error("cannot read configuration \"{path}\": {}", cause(problem))]
    Io {
        /// The file.
        path: String,
        /// The I/O error; part of the message, so not a source.
        problem: io::Error,
    },
    /// It is larger than a configuration is.
    #[error("{0}: larger than 1 MiB")]
    TooLarge(String),
    /// It is not a regular file, or a symbolic link that leads out of the repository.
    #[error("{0}: not a regular file of this repository; pass --no-config to ignore it")]
    Foreign(String),
    /// Something in it is wrong.
    #[error("{path}: line {line}: {problem}")]
    Content {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl ConfigFile {
    /// The configuration that holds in a directory: the closest one, from there up to the root of the repository. Outside of a
    /// repository only the directory itself counts, because anybody may write into a directory above it, such as `/tmp`.
    pub fn find(directory: &Path) -> Result<Option<Self>, ConfigFileError> {
        let real = fs::canonicalize(directory).map_err(|problem| io_error(directory, problem))?;
        let root = repository_of(&real).unwrap_or(&real);
        let mut shown = PathBuf::new();
        for above in real.ancestors().take_while(|above| above.starts_with(root)) {
            let path = above.join(CONFIG_FILE);
            if fs::symlink_metadata(&path).is_ok() {
                return Self::read(shown.join(CONFIG_FILE), &path, root).map(Some);
            }
            shown.push("..");
        }
        Ok(None)
    }

    /// Reads a configuration that was named. Its policy must be in its repository, too.
    pub fn open(path: &Path) -> Result<Self, ConfigFileError> {
        let real = fs::canonicalize(path).map_err(|problem| io_error(path, problem))?;
        let directory = real.parent().unwrap_or(&real);
        Self::read(path.to_owned(), &real, repository_of(directory).unwrap_or(directory))
    }

    fn read(shown: PathBuf, path: &Path, root: &Path) -> Result<Self, ConfigFileError> {
        let real = fs::canonicalize(path).map_err(|problem| io_error(&shown, problem))?;
        let metadata = fs::metadata(&real).map_err(|problem| io_error(&shown, problem))?;
        if !metadata.is_file() || !real.starts_with(root) {
            return Err(ConfigFileError::Foreign(shown.display().to_string()));
        }
        if metadata.len() > MAX_BYTES {
            return Err(ConfigFileError::TooLarge(shown.display().to_string()));
        }
        let text = Input::File(real.into()).text()?.into_owned();
        // Paths in it are relative to the directory in which it was found.
        let directory = path.parent().unwrap_or(root);
        let reader = Reader { path: &shown, text: &text, directory, root };
        let (policy, operator_namespace, resource_prefix, exclude) = reader.keys()?;
        Ok(Self { path: shown, policy, operator_namespace, resource_prefix, exclude })
    }
}

type Keys = (Option<PathBuf>, Option<String>, Option<String>, Option<IgnoreList>);

/// The text of a configuration, and where it is.
struct Reader<'r> {
    path: &'r Path,
    text: &'r str,
    directory: &'r Path,
    root: &'r Path,
}

impl Reader<'_> {
    fn keys(&self) -> Result<Keys, ConfigFileError> {
        let mut keys = Keys::default();
        for entry in self.entries()? {
            match entry.key.as_str() {
                "policy" => keys.0 = Some(self.policy(&entry)?),
                "operatorNamespace" => keys.1 = Some(self.string(&entry.key, &entry.node)?.to_owned()),
                "resourcePrefix" => keys.2 = Some(self.string(&entry.key, &entry.node)?.to_owned()),
                "exclude" => keys.3 = Some(self.exclude(&entry)?),
                unknown => {
                    let known = match closest(unknown, KEYS) {
                        Some(close) => format!("did you mean `{close}`?"),
                        None => format!("the keys are {}", KEYS.map(|key| format!("`{key}`")).join(", ")),
                    };
                    return Err(
                        self.wrong(entry.key_span.start, &format!("`{unknown}`: there is no such key; {known}"))
                    );
                }
            }
        }
        Ok(keys)
    }

    /// The entries of the only document.
    fn entries(&self) -> Result<Vec<MapEntry>, ConfigFileError> {
        let mut documents = Documents::new(self.text);
        let Some(document) = documents.next() else { return Ok(Vec::new()) };
        let node = document.node.map_err(|error| {
            let problem = format!("column {}: {}", error.column, error.problem);
            self.wrong_line(error.line, problem)
        })?;
        if let Some(second) = documents.next() {
            let problem = "a configuration has one document, but a second one starts here";
            return Err(self.wrong_line(second.line, problem.to_owned()));
        }
        match node.value {
            YamlValue::Null => Ok(Vec::new()),
            YamlValue::Map(entries) => Ok(entries),
            _ => Err(self.wrong(node.span.start, "expected a mapping")),
        }
    }

    fn string<'n>(&self, key: &str, node: &'n YamlNode) -> Result<&'n str, ConfigFileError> {
        let text = node.as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| self.wrong(node.span.start, &format!("`{key}`: expected a text that is not empty")))
    }

    /// The path of the policy, after symbolic links.
    fn policy(&self, entry: &MapEntry) -> Result<PathBuf, ConfigFileError> {
        let given = self.string("policy", &entry.node)?;
        let wrong = |problem: String| self.wrong(entry.node.span.start, &format!("`policy`: {problem}"));
        let real = fs::canonicalize(self.directory.join(given))
            .map_err(|problem| wrong(format!("cannot read \"{given}\": {}", cause(&problem))))?;
        if !real.starts_with(self.root) {
            return Err(wrong(format!("\"{given}\" is outside of the repository of this file; pass it with --policy")));
        }
        // A pipe would block.
        if !real.is_file() {
            return Err(wrong(format!("\"{given}\" is not a file")));
        }
        Ok(real)
    }

    fn exclude(&self, entry: &MapEntry) -> Result<IgnoreList, ConfigFileError> {
        let Some(list) = entry.node.as_list() else {
            return Err(self.wrong(entry.node.span.start, "`exclude`: expected a list of patterns"));
        };
        let patterns = list.iter().map(|node| self.string("exclude", node).map(ToOwned::to_owned));
        let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
        IgnoreList::new(self.directory.to_owned(), &patterns).map_err(|(number, problem)| {
            let start = list.get(number).map_or(entry.node.span.start, |node| node.span.start);
            self.wrong(start, &format!("`exclude`: {problem}"))
        })
    }

    fn wrong(&self, offset: usize, problem: &str) -> ConfigFileError {
        let (line, column) = line_column(self.text, offset);
        self.wrong_line(line, format!("column {column}: {problem}"))
    }

    fn wrong_line(&self, line: usize, problem: String) -> ConfigFileError {
        ConfigFileError::Content { path: self.path.display().to_string(), line, problem }
    }
}

fn io_error(path: &Path, problem: io::Error) -> ConfigFileError {
    ConfigFileError::Io { path: path.display().to_string(), problem }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_closest_one_up_to_the_root_of_the_repository_counts() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at(".nadmit.yaml"), "operatorNamespace: outside\n");
        for directory in ["repo/.git", "repo/a/b", "repo/c/d", "other/e", "module/.git/x"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        write(&at("repo/.nadmit.yaml"), "operatorNamespace: root\n");
        write(&at("repo/a/.nadmit.yaml"), "operatorNamespace: a\n");
        write(&at("other/.nadmit.yaml"), "operatorNamespace: other\n");
        for (from, want) in [
            ("repo", Some((".nadmit.yaml", "root"))),
            ("repo/a", Some((".nadmit.yaml", "a"))),
            ("repo/a/b", Some(("../.nadmit.yaml", "a"))),
            ("repo/c/d", Some(("../../.nadmit.yaml", "root"))),
            ("module", None),
            ("other", Some((".nadmit.yaml", "other"))),
            ("other/e", None),
        ] {
            let found = ConfigFile::find(&at(from)).unwrap();
            let found = found.as_ref().map(|found| (found.path.to_str().unwrap(), found.operator_namespace.as_deref()));
            assert_eq!(found, want.map(|(path, namespace)| (path, Some(namespace))), "{from}");
        }
    }

    #[test]
    fn mistakes_are_errors_with_their_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".nadmit.yaml");
        write(&directory.path().join("p.yaml"), "mode: audit\n");
        for (text, want) in [
            ("polcy: p.yaml\n", "line 1: column 1: `polcy`: there is no such key; did you mean `policy`?"),
            ("\nexcludes: []\n", "line 2: column 1: `excludes`: there is no such key; did you mean `exclude`?"),
            ("a: 1\n", "there is no such key; the keys are `policy`, `operatorNamespace`, `resourcePrefix`, `exclude`"),
            ("operatorNamespace: 5\n", "line 1: column 20: `operatorNamespace`: expected a text"),
            ("resourcePrefix: ''\n", "`resourcePrefix`: expected a text that is not empty"),
            ("exclude: x\n", "line 1: column 10: `exclude`: expected a list of patterns"),
            ("exclude:\n- x\n- [y]\n", "line 3: column 3: `exclude`: expected a text"),
            ("exclude:\n- x\n- '[y'\n", "line 3: column 3: `exclude`: not a pattern"),
            ("policy: none.yaml\n", "line 1: column 9: `policy`: cannot read \"none.yaml\": no such file"),
            ("policy: .\n", "`policy`: \".\" is not a file"),
            ("- policy\n", "line 1: column 1: expected a mapping"),
            ("a: [\n", "line 1: column 4: did not find expected node content"),
            ("policy: p.yaml\n---\na: 1\n", "line 3: a configuration has one document"),
        ] {
            write(&path, text);
            let error = ConfigFile::find(directory.path()).unwrap_err().to_string();
            assert!(error.starts_with(".nadmit.yaml: ") && error.contains(want), "{error}\nwanted: {want}");
        }
        for text in ["", "# nothing\n", "{}\n", "policy: p.yaml\nexclude: [a, '!b']\nresourcePrefix: a.io\n"] {
            write(&path, text);
            assert!(ConfigFile::find(directory.path()).unwrap().is_some(), "{text}");
        }
    }

    /// A repository cannot make nadmit read, and show parts of, a file outside of it.
    #[test]
    fn nothing_leads_out_of_the_repository() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("repo/.git")).unwrap();
        write(&at("secret.yaml"), "password: x\n");
        write(&at("repo-secret.yaml"), "password: x\n");
        write(&at("repo/policies/p.yaml"), "mode: audit\n");
        symlink(at("secret.yaml"), at("repo/link.yaml")).unwrap();
        symlink(&root, at("repo/up")).unwrap();
        symlink(at("repo/policies/p.yaml"), at("repo/inside.yaml")).unwrap();
        let secret = at("secret.yaml").display().to_string();
        for policy in [
            "../secret.yaml",
            &secret,
            "link.yaml",
            "up/secret.yaml",
            "policies/../../secret.yaml",
            "../repo-secret.yaml",
        ] {
            write(&at("repo/.nadmit.yaml"), &format!("policy: {policy}\n"));
            for config in [ConfigFile::find(&at("repo/policies")), ConfigFile::open(&at("repo/.nadmit.yaml")).map(Some)]
            {
                let error = config.unwrap_err().to_string();
                assert!(error.contains("is outside of the repository of this file"), "{policy}: {error}");
            }
        }
        for policy in ["policies/p.yaml", "./policies/../policies/p.yaml", "inside.yaml"] {
            write(&at("repo/.nadmit.yaml"), &format!("policy: {policy}\n"));
            let found = ConfigFile::find(&at("repo")).unwrap().unwrap();
            assert_eq!(found.policy.as_deref(), Some(at("repo/policies/p.yaml").as_path()), "{policy}");
        }
        fs::remove_file(at("repo/.nadmit.yaml")).unwrap();
        symlink(at("secret.yaml"), at("repo/.nadmit.yaml")).unwrap();
        let error = ConfigFile::find(&at("repo")).unwrap_err().to_string();
        assert_eq!(error, ".nadmit.yaml: not a regular file of this repository; pass --no-config to ignore it");
        // Outside of a repository, the directory of the file is the limit.
        write(&at("plain/x/.nadmit.yaml"), "policy: ../p.yaml\n");
        write(&at("plain/p.yaml"), "mode: audit\n");
        assert!(ConfigFile::find(&at("plain/x")).unwrap_err().to_string().contains("outside of the repository"));
    }
}
