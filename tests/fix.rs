//! `nadmit check --fix`: files before and after, and the command as a process.

mod properties;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nadmit::json::LineIndex;
use nadmit::manifests::fixed as fix_text;
use nadmit::policy::{Action, Finding, Fix, Verdict, changed};
use serde_json::Value;

use crate::case;

const LACKS_ANNOTATION: &str = "apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: net  # of the pods
spec:
  config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\", \"resourceName\": \"a.io/b\"}'
";
const IS_DENIED: &str = "apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: denied
spec:
  config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\"}'
";

fn nadmit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NADMIT_POLICY", "NADMIT_RESOURCE_PREFIX", "NADMIT_OPERATOR_NAMESPACE"] {
        command.env_remove(variable);
    }
    command
}

fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = nadmit(arguments).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    let writer = std::thread::spawn(move || drop(pipe.write_all(stdin.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The text after `check --fix -`.
fn fixed(before: &str) -> String {
    text(&run(&["check", "--fix", "-"], before).stdout)
}

/// The files `*.in.*` of `tests/fix`, each with its `*.out.*`.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fix");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let named = files.filter_map(|path| {
        let out = path.file_name()?.to_str()?.replace(".in.", ".out.");
        path.to_str()?.contains(".in.").then(|| (path.clone(), path.with_file_name(out)))
    });
    let mut pairs: Vec<_> = named.collect();
    pairs.sort();
    assert!(pairs.len() > 10, "only {} pairs", pairs.len());
    pairs
}

/// Only what is repaired changes, with any line break, with and without one at the end, and never a second time. After an
/// intended change, `GENERATE=1` writes the files; review their differences.
#[test]
fn files_are_fixed_in_place() {
    for (before, after) in pairs() {
        let given = fs::read_to_string(&before).unwrap();
        if std::env::var_os("GENERATE").is_some() {
            fs::write(&after, fixed(&given)).unwrap();
        }
        let want = fs::read_to_string(&after).unwrap();
        let variants: [fn(&str) -> String; 4] = [
            str::to_owned,
            |text| text.replace('\n', "\r\n"),
            |text| text.trim_end().to_owned(),
            |text| format!("# first\n---\n{text}"),
        ];
        for variant in variants {
            let (given, want) = (variant(&given), variant(&want));
            let got = fixed(&given);
            assert_eq!(got, want, "{}", before.display());
            assert_eq!(fixed(&got), got, "{}: fixed a second time", before.display());
        }
    }
}

/// Files in a directory of its own.
struct TestFiles(tempfile::TempDir);

impl TestFiles {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        Self(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    /// `nadmit check` on the whole directory: the exit code, standard output, and standard error without its closing line.
    fn check(&self, arguments: &[&str]) -> (i32, String, String) {
        let directory = self.path("");
        let all: Vec<&str> = ["check"].iter().chain(arguments).copied().chain([directory.as_str()]).collect();
        let output = run(&all, "");
        let shown = |bytes: &[u8]| text(bytes).replace(&directory, "");
        let error = shown(&output.stderr);
        let (error, closing_line) = error.trim_end().rsplit_once('\n').unwrap_or(("", error.trim_end()));
        assert!(closing_line.starts_with("nadmit: "), "{closing_line}");
        let error = if error.is_empty() { String::new() } else { format!("{error}\n") };
        (output.status.code().unwrap(), shown(&output.stdout), error)
    }
}

fn annotated() -> String {
    LACKS_ANNOTATION.replace(
        "  name: net  # of the pods\n",
        "  name: net  # of the pods\n  annotations:\n    k8s.v1.cni.cncf.io/resourceName: a.io/b\n",
    )
}

#[test]
fn the_remaining_findings_decide() {
    let files = TestFiles::new(&[("a.yaml", LACKS_ANNOTATION), ("b.yaml", &LACKS_ANNOTATION.replace("net", "other"))]);
    let (code, out, error) = files.check(&["--deny", "patch"]);
    assert_eq!((code, error.as_str()), (1, ""));
    assert!(
        out.ends_with("2 documents judged: 2 repairs\n2 findings can be fixed with `nadmit check --fix`\n"),
        "{out}"
    );
    let (code, out, error) = files.check(&["--fix", "--deny", "patch"]);
    assert_eq!((code, error.as_str()), (0, "fixed 2 findings in 2 files\n"));
    assert_eq!(out, "2 documents judged: no findings\n");
    assert_eq!(files.read("a.yaml"), annotated());
    let (code, _, error) = files.check(&["--fix"]);
    assert_eq!((code, error.as_str()), (0, "fixed 0 findings in 0 files\n"));
    fs::write(files.path("c.yaml"), IS_DENIED).unwrap();
    let (code, out, error) = files.check(&["--fix", "--output", "json"]);
    assert_eq!((code, error.as_str()), (1, "fixed 0 findings in 0 files\n"));
    assert!(serde_json::from_str::<Value>(&out).is_ok(), "{out}");
}

/// A file that is fixed may be what another one needs.
#[test]
fn fixes_in_one_file_show_what_is_wrong_in_another() {
    let owned = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fix/owned.in.yaml")).unwrap();
    let (network, nad) = owned.split_once("---\n").unwrap();
    let files =
        TestFiles::new(&[("nad.yaml", nad), ("network.yaml", &network.replace("networkNamespace", "networkNamespce"))]);
    let (code, out, error) = files.check(&["--fix"]);
    assert_eq!((code, error.as_str()), (0, "fixed 3 findings in 2 files\n"), "{out}");
    assert_eq!(files.read("network.yaml"), network);
    assert!(files.read("nad.yaml").contains("\"resourceName\": \"openshift.io/cx7\""), "{}", files.read("nad.yaml"));
}

#[test]
fn with_diff_nothing_is_written() {
    let files = TestFiles::new(&[("a.yaml", LACKS_ANNOTATION)]);
    let (code, out, error) = files.check(&["--fix", "--diff"]);
    let want = "--- a.yaml
+++ a.yaml
@@ -2,5 +2,7 @@
 kind: NetworkAttachmentDefinition
 metadata:
   name: net  # of the pods
+  annotations:
+    k8s.v1.cni.cncf.io/resourceName: a.io/b
 spec:
   config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\", \"resourceName\": \"a.io/b\"}'
";
    assert_eq!((code, out.as_str(), error.as_str()), (1, want, "would fix 1 finding in 1 file\n"));
    assert_eq!(files.read("a.yaml"), LACKS_ANNOTATION);
    fs::write(files.path("a.yaml"), annotated()).unwrap();
    assert_eq!(files.check(&["--fix", "--diff"]), (0, String::new(), "would fix 0 findings in 0 files\n".to_owned()));
    fs::write(files.path("a.yaml"), IS_DENIED).unwrap();
    assert_eq!(files.check(&["--fix", "--diff"]).0, 1);
}

/// The fixed text is the output, and the findings are beside it.
#[test]
fn standard_input_is_fixed_to_standard_output() {
    let output = run(&["check", "--fix", "-"], &format!("{LACKS_ANNOTATION}---\n{IS_DENIED}"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), format!("{}---\n{IS_DENIED}", annotated()));
    let error = text(&output.stderr);
    assert!(error.starts_with("fixed 1 finding in 1 file\n"), "{error}");
    assert!(
        error.contains("error[nad/resource-name-missing]") && error.contains("2 documents judged: 1 denial"),
        "{error}"
    );
    // What cannot be read is passed on as it is.
    let output = run(&["check", "--fix", "-"], "kind: [\n");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), "kind: [\n"));
    let output = run(&["check", "--fix", "-", "a.yaml"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--fix takes - alone"), "{}", text(&output.stderr));
}

#[test]
fn what_must_not_be_written_is_not() {
    let elsewhere = TestFiles::new(&[("real.yaml", LACKS_ANNOTATION)]);
    let files =
        TestFiles::new(&[("readonly.yaml", LACKS_ANNOTATION), ("z.yaml", &LACKS_ANNOTATION.replace("net", "z"))]);
    fs::set_permissions(files.path("readonly.yaml"), fs::Permissions::from_mode(0o444)).unwrap();
    symlink(elsewhere.path("real.yaml"), files.path("link.yaml")).unwrap();
    let (code, out, error) = files.check(&["--fix"]);
    assert_eq!(code, 2);
    let want = "error: readonly.yaml: not fixed, because it is read-only; make it writable first
fixed 1 finding in 1 file
";
    assert_eq!(error, want);
    assert!(out.ends_with("2 documents judged: 1 repair\n"), "the link out of the directory is not read: {out}");
    let linked = run(&["check", "--fix", &files.path("link.yaml")], "");
    assert_eq!(linked.status.code(), Some(2));
    let error = text(&linked.stderr);
    assert!(error.contains("link.yaml: not fixed, because it is a symbolic link out of the given paths"), "{error}");
    assert_eq!(elsewhere.read("real.yaml"), LACKS_ANNOTATION);
    assert_eq!(files.read("readonly.yaml"), LACKS_ANNOTATION);
    assert_ne!(files.read("z.yaml"), LACKS_ANNOTATION.replace("net", "z"));
    // A file that was given itself is written where its directory is, and keeps its permissions.
    fs::set_permissions(elsewhere.path("real.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(run(&["check", "--fix", &elsewhere.path("real.yaml")], "").status.code(), Some(0));
    assert_eq!(elsewhere.read("real.yaml"), annotated());
    assert_eq!(fs::metadata(elsewhere.path("real.yaml")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(elsewhere.path("")).unwrap().count(), 1, "no other file is left");
}

/// A finding that stays says what to do by hand.
#[test]
fn what_cannot_be_fixed_in_place_is_reported() {
    let text = "apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: &m {name: net}
spec:
  config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\", \"resourceName\": \"a.io/b\"}'
other: *m
";
    let files = TestFiles::new(&[("a.yaml", text), ("mark.yaml", &format!("\u{feff}{LACKS_ANNOTATION}"))]);
    let (code, out, error) = files.check(&["--fix"]);
    let want = "note: a.yaml: line 1: cannot fix nad/resource-name-missing in place: the mapping is written in a form that nadmit does not edit; set the annotation k8s.v1.cni.cncf.io/resourceName to a.io/b
fixed 1 finding in 1 file; 1 cannot be fixed in place
";
    assert_eq!((code, error.as_str()), (0, want));
    assert!(out.ends_with("2 documents judged: 1 repair\n"), "{out}");
    assert_eq!(files.read("a.yaml"), text);
    assert_eq!(files.read("mark.yaml"), format!("\u{feff}{}", annotated()));
}

/// In mode audit admission repairs nothing; whoever asks for it gets it.
#[test]
fn mode_audit_does_not_keep_people_from_fixing() {
    let files = TestFiles::new(&[("a.yaml", LACKS_ANNOTATION), ("policy.txt", "mode: audit\n")]);
    let policy = files.path("policy.txt");
    assert_eq!(files.check(&["--fix", "--policy", &policy]).2, "fixed 1 finding in 1 file\n");
    assert_eq!(files.read("a.yaml"), annotated());
}

/// The fixes of an object. Those that are no suggestions make of it what admission makes of it.
fn fixes(case: &str, json: &str, verdict: &Verdict) -> Vec<Fix> {
    let fixes: Vec<Fix> = verdict.findings.iter().filter_map(Finding::fix).collect();
    let given: Value = serde_json::from_str(json).unwrap();
    let mut stored = given.clone();
    json_patch::patch(&mut stored, &verdict.patch).unwrap();
    json_patch::patch(&mut stored, &verdict.would_patch).unwrap();
    let repairs = fixes.iter().filter(|fix| !fix.is_suggestion).flat_map(|fix| &fix.changes);
    assert_eq!(changed(&given, repairs), Some(stored), "{case}");
    fixes
}

/// What can be fixed is fixed in place, in every case of every rule, and then it is not found again.
#[test]
fn every_case_is_fixed() {
    let mut rules = std::collections::BTreeSet::new();
    for case in case::all().into_iter().filter(case::Case::is_offline) {
        let mut text = case.input.clone();
        let denied = |text: &str| {
            let verdicts = case.with_input(text.to_owned()).judge();
            let findings = verdicts.into_iter().flat_map(|(_, verdict)| verdict.findings);
            findings.filter(|finding| finding.action == Action::Deny).count()
        };
        let before = denied(&text);
        for pass in 0.. {
            assert!(pass < 5, "{} does not converge:\n{text}", case.name);
            let mut verdicts = case.with_input(text.clone()).judge().into_iter().peekable();
            let result = fix_text(&LineIndex::of(&text), &mut |manifest| {
                let json = manifest.node.to_json();
                let verdict = verdicts.next_if(|(object, _)| *object == json);
                let fixes = verdict.map_or_else(Vec::new, |(_, verdict)| fixes(&case.name, &json, &verdict));
                rules.extend(fixes.iter().map(|fix| fix.rule));
                fixes
            });
            assert_eq!(result.declined, [], "{}:\n{text}", case.name);
            let Some(new) = result.text else { break };
            text = new;
        }
        assert!(denied(&text) <= before, "{} is denied for more than before:\n{text}", case.name);
    }
    assert!(rules.len() > 8, "only {rules:?}");
}
