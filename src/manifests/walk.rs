//! Finding input files: those that are named, and those in directories.
//!
//! Not by the `ignore` crate, which does not report what it leaves out: here it is counted with its reason. And nothing outside of the
//! repository is read, also not through a symbolic link.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};

use super::files::io_error;
use super::ignore::{IgnoreList, is_ignored, is_repository, repository_of};
use super::kustomize::{ChangedFiles, Kustomizations};
use super::{Input, InputError};

/// The inputs behind the paths of a command line, and what was left out of directories.
#[derive(Debug, Default)]
pub struct FoundInputs {
    /// The inputs, in the order of the paths, and in directories in the order of their names.
    pub inputs: Vec<Input>,
    /// What cannot be read.
    pub errors: Vec<InputError>,
    /// How many files and directories are ignored.
    pub ignored: usize,
    /// How many symbolic links are not followed.
    pub links: usize,
    /// The patches of kustomizations.
    pub patches: Vec<PathBuf>,
    /// The files in directories whose objects kustomizations change.
    pub changed: ChangedFiles,
}

/// Finds the inputs behind paths: files as they are, directories with all the manifests below them, `-` for standard input.
///
/// In a directory, hidden entries are left out, and what `exclude` or a `.gitignore` of its repository ignores. A path that is named itself is
/// never left out.
pub fn inputs(paths: &[PathBuf], exclude: &[IgnoreList]) -> FoundInputs {
    let mut walk = Walk { exclude, found: FoundInputs::default(), kustomizations: Kustomizations::default() };
    for path in paths {
        if let Err(error) = walk.named(path) {
            walk.found.errors.push(error);
        }
    }
    // Only now all kustomizations are known: one may name a file in a directory before it.
    walk.take_patches();
    FoundInputs { changed: walk.kustomizations.changed_files(), ..walk.found }
}

struct Walk<'e> {
    exclude: &'e [IgnoreList],
    found: FoundInputs,
    kustomizations: Kustomizations,
}

/// A directory on the way down, and what holds for its entries.
struct Directory<'d> {
    /// As it was named.
    path: &'d Path,
    /// From the root, without symbolic links.
    real: &'d Path,
    /// Symbolic links may not lead out of here: the repository, or without one the directory that was named.
    bounds: &'d Path,
    is_in_repository: bool,
}

impl Walk<'_> {
    fn named(&mut self, path: &Path) -> Result<(), InputError> {
        if path.as_os_str() == "-" {
            self.found.inputs.push(Input::once(&mut io::stdin().lock(), "-")?);
            return Ok(());
        }
        let error = |problem| io_error(path, problem);
        let metadata = fs::metadata(path).map_err(error)?;
        if metadata.is_dir() {
            let real = fs::canonicalize(path).map_err(error)?;
            return self.named_directory(path, &real);
        }
        self.found.inputs.push(if metadata.is_file() {
            Input::File(path.into())
        } else {
            // A pipe, as from a shell's `<(…)`.
            Input::once(&mut File::open(path).map_err(error)?, &path.to_string_lossy())?
        });
        Ok(())
    }

    fn named_directory(&mut self, path: &Path, real: &Path) -> Result<(), InputError> {
        let root = repository_of(real);
        let mut lists = Vec::new();
        if let Some(root) = root {
            let mut above: Vec<&Path> = real.ancestors().skip(1).take_while(|above| above.starts_with(root)).collect();
            above.reverse();
            for above in above {
                lists.extend(IgnoreList::of_directory(above)?);
            }
        }
        let bounds = root.unwrap_or(real);
        self.directory(&Directory { path, real, bounds, is_in_repository: root.is_some() }, &mut lists);
        Ok(())
    }

    /// The entries of a directory. `lists` are the patterns of the directories above it, in the same repository.
    fn directory(&mut self, directory: &Directory<'_>, lists: &mut Vec<IgnoreList>) {
        let above = lists.len();
        let listed = entries(directory.path).map_err(|problem| io_error(directory.path, problem));
        match listed.and_then(|entries| Ok((entries, directory.ignore_list()?))) {
            Err(error) => self.found.errors.push(error),
            Ok((entries, list)) => {
                lists.extend(list);
                self.kustomizations.add(directory.real);
                for entry in entries {
                    if let Err(problem) = self.entry(directory, &entry, lists) {
                        self.found.errors.push(io_error(&entry.path(), problem));
                    }
                }
            }
        }
        lists.truncate(above);
    }

    fn take_patches(&mut self) {
        let (patches, found) = (&self.kustomizations.patches, &mut self.found.patches);
        if patches.is_empty() {
            return;
        }
        self.found.inputs.retain(|input| match input {
            Input::Found(path) if fs::canonicalize(path).is_ok_and(|real| patches.contains(&real)) => {
                found.push(path.to_path_buf());
                false
            }
            _ => true,
        });
    }

    fn entry(&mut self, above: &Directory<'_>, entry: &DirEntry, lists: &mut Vec<IgnoreList>) -> io::Result<()> {
        let path = entry.path();
        let real = above.real.join(entry.file_name());
        let file_type = entry.file_type()?;
        let leads_to_directory = file_type.is_symlink() && path.is_dir();
        if !(file_type.is_dir() || leads_to_directory || is_manifest(&path)) {
            return Ok(());
        }
        let is_directory = file_type.is_dir();
        if is_ignored(lists, &real, is_directory) || is_ignored(self.exclude, &real, is_directory) {
            self.found.ignored += 1;
        } else if is_directory {
            let below = Directory { path: &path, real: &real, ..*above };
            if is_repository(&real) {
                // A repository in a repository has its own rules.
                self.directory(&Directory { bounds: &real, is_in_repository: true, ..below }, &mut Vec::new());
            } else {
                self.directory(&below, lists);
            }
        } else if file_type.is_file() || (file_type.is_symlink() && above.contains_target(&path)) {
            self.found.inputs.push(Input::Found(path.into()));
        } else if file_type.is_symlink() {
            self.found.links += 1;
        }
        Ok(())
    }
}

impl Directory<'_> {
    fn ignore_list(&self) -> Result<Option<IgnoreList>, InputError> {
        if self.is_in_repository { IgnoreList::of_directory(self.real) } else { Ok(None) }
    }

    /// Whether a symbolic link leads to a file inside the bounds. Links to directories are not followed: they could form loops, or lead to the
    /// same files in exponentially many ways.
    fn contains_target(&self, link: &Path) -> bool {
        fs::canonicalize(link).is_ok_and(|target| target.starts_with(self.bounds) && target.is_file())
    }
}

/// The entries of a directory by name, without hidden ones such as `.git`.
fn entries(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            entries.push(entry);
        }
    }
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// Whether a file in a directory can be a manifest, by its name.
fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|found| found == "yaml" || found == "yml" || found == "json")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The inputs below a directory, and how many entries are ignored and how many links not followed.
    fn found(root: &Path, exclude: &[&str]) -> (Vec<String>, usize, usize) {
        let real = fs::canonicalize(root).unwrap();
        let patterns: Vec<String> = exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
        let list = IgnoreList::new(real, &patterns).unwrap();
        let found = inputs(&[root.to_owned()], &[list]);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        let prefix = format!("{}/", root.to_string_lossy());
        let names = found.inputs.iter().map(|input| input.name().replacen(&prefix, "", 1)).collect();
        (names, found.ignored, found.links)
    }

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn finds_manifests_in_order() {
        let names =
            ["z.yaml", "a.json", "b/m.yml", "b/.git.yaml", "b/notes.txt", "b/.hidden/x.yaml", "b/kustomization.yaml"];
        let directory = tree(&names.map(|name| (name, "a: 1")));
        let at = |name: &str| directory.path().join(name);
        let found = inputs(&[directory.path().to_owned(), at("b/notes.txt"), at("none")], &[]);
        let names: Vec<_> =
            found.inputs.iter().map(|input| input.name().replace(&*directory.path().to_string_lossy(), "")).collect();
        assert_eq!(names, ["/a.json", "/b/kustomization.yaml", "/b/m.yml", "/z.yaml", "/b/notes.txt"]);
        assert!(matches!(found.inputs.last(), Some(Input::File(_))));
        assert!(matches!(found.inputs.first(), Some(Input::Found(_))));
        let [error] = found.errors.as_slice() else { panic!("{:?}", found.errors) };
        assert!(error.to_string().contains("none: No such file"), "{error}");
    }

    #[test]
    fn ignore_files_hold_only_in_a_repository() {
        let files = [(".gitignore", "b.yaml\n"), ("a.yaml", ""), ("b.yaml", "")];
        let directory = tree(&files);
        assert_eq!(found(directory.path(), &[]), (vec!["a.yaml".to_owned(), "b.yaml".to_owned()], 0, 0));
        fs::create_dir(directory.path().join(".git")).unwrap();
        assert_eq!(found(directory.path(), &[]), (vec!["a.yaml".to_owned()], 1, 0));
    }

    #[test]
    fn ignore_files_of_all_directories_count() {
        let directory = tree(&[
            (".git", "gitdir: elsewhere\n"),
            (".gitignore", "*.gen.yaml\n/top.yaml\nout/\n"),
            ("top.yaml", ""),
            ("x/top.yaml", ""),
            ("x/a.gen.yaml", ""),
            ("x/.gitignore", "!a.gen.yaml\n/b.yaml\n"),
            ("x/b.yaml", ""),
            ("x/y/b.yaml", ""),
            ("x/y/a.gen.yaml", ""),
            ("x/y/b.gen.yaml", ""),
            ("x/out/c.yaml", ""),
            ("x/out/.gitignore", "!c.yaml\n"),
            ("module/.git/config", ""),
            ("module/a.gen.yaml", ""),
        ]);
        let want = ["module/a.gen.yaml", "x/a.gen.yaml", "x/top.yaml", "x/y/a.gen.yaml", "x/y/b.yaml"];
        assert_eq!(found(directory.path(), &[]), (want.map(str::to_owned).into(), 4, 0));
        // From a directory below, the files above it count as well.
        let below = ["a.gen.yaml", "b.yaml"].map(str::to_owned).into();
        assert_eq!(found(&directory.path().join("x/y"), &[]), (below, 1, 0));
        // What is named is judged.
        assert_eq!(found(&directory.path().join("x/out"), &[]), (vec!["c.yaml".to_owned()], 0, 0));
    }

    #[test]
    fn excludes_are_patterns_from_their_base() {
        let directory = tree(&["a.yaml", "x/a.yaml", "x/b.yaml", "x/y/b.yaml"].map(|name| (name, "")));
        for (exclude, want, ignored) in [
            (&["a.yaml"] as &[_], &["x/b.yaml", "x/y/b.yaml"] as &[&str], 2),
            (&["/a.yaml"], &["x/a.yaml", "x/b.yaml", "x/y/b.yaml"], 1),
            (&["x/"], &["a.yaml"], 1),
            (&["x/*", "!x/a.yaml"], &["a.yaml", "x/a.yaml"], 2),
        ] {
            let want: Vec<String> = want.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(found(directory.path(), exclude), (want, ignored, 0), "{exclude:?}");
        }
    }

    #[test]
    fn patches_are_set_aside_in_directories_only() {
        let directory = tree(&[
            ("patches/a.yaml", ""),
            ("z/kustomization.yaml", "patches: [{path: ../patches/a.yaml}, {path: b.yaml}]\nresources: [c.yaml]\n"),
            ("z/b.yaml", ""),
            ("z/c.yaml", ""),
        ]);
        let at = |name: &str| directory.path().join(name);
        let found = inputs(&[directory.path().to_owned(), at("z/b.yaml")], &[]);
        assert_eq!(found.patches, [at("patches/a.yaml"), at("z/b.yaml")]);
        let names: Vec<_> = found.inputs.iter().map(|input| input.path().unwrap().to_owned()).collect();
        assert_eq!(names, [at("z/c.yaml"), at("z/kustomization.yaml"), at("z/b.yaml")]);
    }

    #[test]
    fn links_stay_inside_and_form_no_loops() {
        let directory =
            tree(&[("repo/.git/config", ""), ("repo/base/a.yaml", ""), ("repo/x/b.yaml", ""), ("secret.yaml", "")]);
        let at = |name: &str| directory.path().join(name);
        for (target, link) in [
            (at("repo"), "repo/x/loop"),
            (at("repo/base"), "repo/x/base"),
            (at("repo/base/a.yaml"), "repo/x/a.yaml"),
            (at("secret.yaml"), "repo/x/secret.yaml"),
            (at("nowhere"), "repo/x/dangling.yaml"),
            (at("nowhere"), "repo/x/dangling.txt"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        assert_eq!(found(&at("repo/x"), &[]), (vec!["a.yaml".to_owned(), "b.yaml".to_owned()], 0, 4));
        symlink(at("repo/x"), at("link")).unwrap();
        assert_eq!(found(&at("link"), &[]).0.len(), 2, "a link that is named is followed");
    }
}
