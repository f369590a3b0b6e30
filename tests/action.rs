//! The scripts of the GitHub Action, run as a runner runs them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_nadmit");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// One mistake that is denied.
const BAD: &str = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: a, namespace: apps}\n\
                   spec: {config: '{\"cniVersion\": \"1.0.0\", \"type\": \"bridge\", \"vlan\": \"7\"}'}\n";

/// A runner: the workspace, the directory for temporary files, and the files that steps write.
struct ActionRunner {
    directory: TempDir,
}

impl ActionRunner {
    fn new() -> Self {
        let runner = Self { directory: tempfile::tempdir().unwrap() };
        for directory in ["workspace", "temp", "bin"] {
            fs::create_dir(runner.path(directory)).unwrap();
        }
        runner
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// With that nadmit on the PATH.
    fn with_nadmit(self) -> Self {
        symlink(BINARY, self.path("bin/nadmit")).unwrap();
        self
    }

    fn run(&self, script: &str, inputs: &[(&str, &str)]) -> Output {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/action").join(script));
        // This machine may have a nadmit of its own.
        let inherited = std::env::var_os("PATH").unwrap();
        let others = std::env::split_paths(&inherited).filter(|directory| !directory.join("nadmit").exists());
        let path = std::env::join_paths([self.path("bin")].into_iter().chain(others)).unwrap();
        command.env("PATH", path).env("RUNNER_TEMP", self.path("temp")).current_dir(self.path("workspace"));
        command.env("GITHUB_OUTPUT", self.path("output")).env("GITHUB_PATH", self.path("path"));
        for variable in ["NADMIT_POLICY", "NADMIT_OPERATOR_NAMESPACE", "NADMIT_RESOURCE_PREFIX"] {
            command.env_remove(variable);
        }
        command.envs(inputs.iter().map(|(name, value)| (format!("INPUT_{name}"), value)));
        command.output().unwrap()
    }

    /// The value of an output of the step.
    fn output(&self, name: &str) -> String {
        let outputs = fs::read_to_string(self.path("output")).unwrap();
        let value = outputs.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).next_back();
        value.unwrap_or_else(|| panic!("no output {name}: {outputs}")).to_owned()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn check_annotates_and_writes_sarif() {
    let runner = ActionRunner::new().with_nadmit();
    fs::write(runner.path("workspace/a file.yaml"), BAD).unwrap();
    let output = runner.run("check", &[("PATHS", "\na file.yaml\n\n")]);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(runner.output("exit-code"), "1");
    let annotations = String::from_utf8(output.stdout).unwrap();
    assert!(annotations.contains("::error file=a file.yaml,line="), "{annotations}");
    let sarif: Value = serde_json::from_slice(&fs::read(runner.output("sarif")).unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "nad/field-type");

    // Every option reaches nadmit.
    fs::write(runner.path("workspace/p.yaml"), "rules:\n  nad/field-type: warn\n").unwrap();
    let options =
        [("PATHS", "a file.yaml"), ("POLICY", "p.yaml"), ("OPERATOR_NAMESPACE", "o"), ("RESOURCE_PREFIX", "x.io")];
    assert!(runner.run("check", &options).status.success());
    assert_eq!(runner.output("exit-code"), "0");
    assert!(runner.run("check", &[&options[..], &[("DENY", "warn")]].concat()).status.success());
    assert_eq!(runner.output("exit-code"), "1");
}

#[test]
fn unreadable_inputs_and_wrong_options_are_exit_code_2() {
    let runner = ActionRunner::new().with_nadmit();
    assert!(runner.run("check", &[("PATHS", "missing.yaml")]).status.success());
    assert_eq!(runner.output("exit-code"), "2");
    assert_ne!(runner.output("sarif"), "", "what could be read is uploaded");
    fs::write(runner.path("workspace/a.yaml"), BAD).unwrap();
    assert!(runner.run("check", &[("PATHS", "a.yaml"), ("POLICY", "missing.yaml")]).status.success());
    assert_eq!((runner.output("exit-code"), runner.output("sarif")), ("2".to_owned(), String::new()));
    fs::write(runner.path("workspace/values.yaml"), "a: 1\n").unwrap();
    fs::remove_file(runner.path("workspace/a.yaml")).unwrap();
    assert!(runner.run("check", &[("PATHS", ".")]).status.success());
    assert_eq!(runner.output("exit-code"), "2", "a run that judges nothing is an error");
    for paths in ["", "\n\n", "-"] {
        assert!(!runner.run("check", &[("PATHS", paths)]).status.success(), "{paths:?}");
    }
}

/// Whoever can name a file, or fills in an input, runs nothing and sets no option.
#[test]
fn inputs_are_no_code() {
    let attacks = [
        "$(touch pwned)",
        "`touch pwned`",
        "a.yaml; touch pwned",
        "a.yaml && touch pwned",
        "\"; touch pwned; \"",
        "'; touch pwned; '",
        "--policy=/etc/passwd",
        "-o",
        "${IFS}touch${IFS}pwned",
        "a.yaml | touch pwned",
        "*",
    ];
    for attack in attacks {
        for input in ["PATHS", "POLICY", "DENY", "OPERATOR_NAMESPACE", "RESOURCE_PREFIX"] {
            let runner = ActionRunner::new().with_nadmit();
            fs::write(runner.path("workspace/a.yaml"), BAD).unwrap();
            let mut inputs = vec![("PATHS", "a.yaml")];
            inputs.retain(|(name, _)| *name != input);
            inputs.push((input, attack));
            let output = runner.run("check", &inputs);
            assert!(output.status.success(), "{input}={attack}: {}", errors(&output));
            let left: Vec<_> =
                fs::read_dir(runner.path("workspace")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, ["a.yaml"], "{input}={attack}");
            if input == "PATHS" {
                assert_eq!(runner.output("exit-code"), "2", "{attack} is a file that does not exist");
            }
        }
        for input in ["VERSION", "RELEASES", "VERIFY", "INSTALL"] {
            let runner = ActionRunner::new();
            assert!(!runner.run("install", &[(input, attack)]).status.success(), "{input}={attack}");
            assert_eq!(fs::read_dir(runner.path("workspace")).unwrap().count(), 0, "{input}={attack}");
        }
    }
    // An output takes one line, whatever a file is called.
    let runner = ActionRunner::new().with_nadmit();
    runner.run("check", &[("PATHS", "x\nexit-code=0")]);
    assert_eq!(runner.output("exit-code"), "2");
}

/// A mirror with one release, and a runner whose `gh` answers like that.
fn mirror(runner: &ActionRunner, program: &str, gh: &str) -> String {
    let machine = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let files = runner.path("mirror").join(format!("v{VERSION}"));
    fs::create_dir_all(&files).unwrap();
    let nadmit = runner.path("nadmit");
    fs::write(&nadmit, program).unwrap();
    fs::set_permissions(&nadmit, fs::Permissions::from_mode(0o755)).unwrap();
    let name = format!("nadmit-{VERSION}-linux-{machine}.tar.gz");
    let run = |command: &mut Command| assert!(command.status().unwrap().success());
    run(Command::new("tar").args(["-czf", &name, "-C"]).arg(runner.path("")).arg("nadmit").current_dir(&files));
    run(Command::new("sh").args(["-c", "sha256sum -- * >SHA256SUMS"]).current_dir(&files));
    let path = runner.path("bin/gh");
    fs::write(&path, format!("#!/bin/sh\necho \"$@\" >{}\n{gh}\n", runner.path("gh-said").display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("file://{}", runner.path("mirror").display())
}

const PROGRAM: &str = "#!/bin/sh\necho nadmit from the mirror\n";

#[test]
fn install_downloads_what_fits_checksum_and_attestation() {
    let runner = ActionRunner::new();
    let releases = mirror(&runner, PROGRAM, "exit 0");
    let inputs = [("INSTALL", "release"), ("RELEASES", &releases), ("VERIFY", "attestation")];
    let output = runner.run("install", &inputs);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "nadmit from the mirror\n");
    assert_eq!(
        fs::read_to_string(runner.path("path")).unwrap(),
        format!("{}\n", runner.path("temp/nadmit/bin").display())
    );
    let said = fs::read_to_string(runner.path("gh-said")).unwrap();
    assert!(said.starts_with("attestation verify ") && said.trim_end().ends_with("/nadmit"), "{said}");

    // Without attestations, as on a server of one's own.
    let runner = ActionRunner::new();
    let releases = mirror(&runner, PROGRAM, "exit 1");
    let checksum = [("RELEASES", releases.as_str()), ("VERIFY", "checksum"), ("VERSION", VERSION)];
    assert!(runner.run("install", &checksum).status.success());
    assert!(!runner.path("gh-said").exists());

    let output = runner.run("install", &[("RELEASES", &releases), ("VERIFY", "attestation")]);
    assert!(!output.status.success() && errors(&output).contains("has no valid attestation"), "{}", errors(&output));
}

#[test]
fn install_rejects_what_does_not_fit() {
    let tampered = |runner: &ActionRunner, releases: &str| {
        let files = runner.path("mirror").join(format!("v{VERSION}"));
        let archive =
            fs::read_dir(files).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.ends_with("SHA256SUMS"));
        let sums = archive.unwrap();
        let text = fs::read_to_string(&sums).unwrap();
        fs::write(&sums, text.replace(|letter: char| letter.is_ascii_digit(), "0")).unwrap();
        runner.run("install", &[("RELEASES", releases), ("VERIFY", "checksum")])
    };
    let runner = ActionRunner::new();
    let releases = mirror(&runner, PROGRAM, "exit 0");
    let output = tampered(&runner, &releases);
    assert!(!output.status.success() && errors(&output).contains("is not what SHA256SUMS says"), "{}", errors(&output));
    assert!(!runner.path("path").exists(), "nothing is on the PATH");

    for (inputs, message) in [
        (&[("VERSION", "9.9.9"), ("RELEASES", releases.as_str())][..], "cannot be downloaded"),
        (&[("VERSION", "latest")], "is not a version"),
        (&[("VERSION", "../../evil")], "is not a version"),
        (&[("RELEASES", "http://mirror.example/nadmit")], "starts with https://"),
        (&[("INSTALL", "none")], "not on the PATH"),
        (&[("INSTALL", "magic")], "none of"),
    ] {
        let runner = ActionRunner::new();
        let output = runner.run("install", inputs);
        assert!(!output.status.success() && errors(&output).contains(message), "{inputs:?}: {}", errors(&output));
    }
}

/// As long as nothing is published, the default says what to do instead.
#[test]
fn install_without_a_repository_says_what_to_do() {
    if !env!("CARGO_PKG_REPOSITORY").contains("/OWNER/") {
        return;
    }
    let output = ActionRunner::new().run("install", &[]);
    assert!(!output.status.success() && errors(&output).contains("use `install: source`"), "{}", errors(&output));
}
