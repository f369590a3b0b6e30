//! The scripts of a release, run as the workflow runs them, but for publishing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::not_run::not_run;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn script(directory: &Path, name: &str) -> Command {
    let mut command = Command::new(directory.join("deploy/release").join(name));
    command.env("CARGO", env!("CARGO")).env("CARGO_NET_OFFLINE", "true").env_remove("GITHUB_REPOSITORY");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// All files of a release for both architectures, made twice and checked; of the other architecture there is only the beginning of a program.
/// Then each check notices what it is for.
#[test]
fn dry_run_makes_and_checks_every_file() {
    if Command::new("python3").arg("--version").output().is_err() {
        not_run("the dry run of a release", "Install python3.");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (this, other, machine) =
        if cfg!(target_arch = "x86_64") { ("amd64", "arm64", 0xb7) } else { ("arm64", "amd64", 0x3e) };
    let mut header = [0; 64];
    header[..4].copy_from_slice(b"\x7fELF");
    header[18] = machine;
    fs::write(at(other), header).unwrap();
    // Without symbols it is a tenth of the size.
    succeeds(Command::new("strip").arg("-o").arg(at(this)).arg(env!("CARGO_BIN_EXE_nadmit")));

    let mut dry_run = script(root(), "dry-run");
    succeeds(dry_run.arg("--any-linkage").arg(at("files")).args([at("amd64"), at("arm64")]));
    let mut names: Vec<String> =
        fs::read_dir(at("files")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let version = env!("CARGO_PKG_VERSION");
    let wanted = [
        "SHA256SUMS".to_owned(),
        format!("nadmit-{version}-image.tar"),
        format!("nadmit-{version}-linux-amd64.cdx.json"),
        format!("nadmit-{version}-linux-amd64.tar.gz"),
        format!("nadmit-{version}-linux-arm64.cdx.json"),
        format!("nadmit-{version}-linux-arm64.tar.gz"),
        format!("nadmit-chart-{version}.tgz"),
        "nadmit.yaml".to_owned(),
    ];
    assert_eq!(names, wanted);

    let verify = || script(root(), "verify").arg(at("files")).arg("--any-linkage").output().unwrap();
    assert!(verify().status.success());
    let rejected = |message: &str| {
        let output = verify();
        assert!(
            !output.status.success() && text(&output.stderr).contains(message),
            "{message}: {}",
            text(&output.stderr)
        );
    };
    // Writes a file and its new sum, so that only what is in it can be noticed.
    let replace = |name: &str, content: &[u8]| {
        fs::write(at("files").join(name), content).unwrap();
        succeeds(
            Command::new("sh")
                .args(["-c", "rm SHA256SUMS; sha256sum -- * >../sums; mv ../sums SHA256SUMS"])
                .current_dir(at("files")),
        );
    };
    let krew = fs::read(at("files/nadmit.yaml")).unwrap();
    fs::write(at("files/nadmit.yaml"), "x").unwrap();
    rejected("the sum of nadmit.yaml");
    replace("nadmit.yaml", text(&krew).replace("sha256: ", "sha256: 0").as_bytes());
    rejected("in nadmit.yaml");
    replace("nadmit.yaml", &krew);
    let archive = format!("nadmit-{version}-linux-{this}.tar.gz");
    let good = fs::read(at("files").join(&archive)).unwrap();
    let of_other = fs::read(at("files").join(format!("nadmit-{version}-linux-{other}.tar.gz"))).unwrap();
    replace(&archive, &of_other);
    rejected("the architecture of the program");
    replace(&archive, &good);
    // An image of another build.
    let mut image = Command::new(root().join("deploy/image"));
    fs::write(at("else"), [&fs::read(at(this)).unwrap()[..], b"else"].concat()).unwrap();
    let binaries = if this == "amd64" { [at("else"), at("arm64")] } else { [at("amd64"), at("else")] };
    succeeds(image.arg(at("image")).arg(format!("nadmit:{version}")).args(binaries));
    replace(&format!("nadmit-{version}-image.tar"), &fs::read(at("image")).unwrap());
    rejected("another program than the archive");
}

/// A copy of what the checks read, to change it.
fn sources() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for path in ["Cargo.toml", "CHANGELOG.md", "deploy/chart", "deploy/release"] {
        let to = copy.path().join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        succeeds(Command::new("cp").arg("-R").arg(root().join(path)).arg(&to));
    }
    copy
}

fn edit(directory: &Path, path: &str, from: &str, to: &str) {
    let old = fs::read_to_string(directory.join(path)).unwrap();
    assert!(old.contains(from), "{path}: no `{from}`");
    fs::write(directory.join(path), old.replacen(from, to, 1)).unwrap();
}

/// A directory of sources that are ready to be released.
fn ready() -> tempfile::TempDir {
    let copy = sources();
    let version = env!("CARGO_PKG_VERSION");
    let cargo =
        fs::read_to_string(copy.path().join("Cargo.toml")).unwrap().replace("com/OWNER/nadmit", "com/Team/nadmit");
    fs::write(copy.path().join("Cargo.toml"), cargo).unwrap();
    let changelog = fs::read_to_string(copy.path().join("CHANGELOG.md")).unwrap();
    if !changelog.contains(&format!("\n## [{version}] - ")) {
        let section = format!("## [Unreleased]\n\n## [{version}] - 2026-01-31");
        edit(copy.path(), "CHANGELOG.md", "## [Unreleased]", &section);
    }
    copy
}

#[test]
fn check_rejects_what_does_not_fit_the_tag() {
    let version = env!("CARGO_PKG_VERSION");
    let tag = format!("v{version}");
    let good = ready();
    let output = succeeds(script(good.path(), "check").arg(&tag).env("GITHUB_REPOSITORY", good_slug(good.path())));
    assert_eq!(text(&output.stdout), format!("ready to release {version}\n"));
    let rejected = |directory: &Path, tag: &str, repository: &str, message: &str| {
        let output = script(directory, "check").arg(tag).env("GITHUB_REPOSITORY", repository).output().unwrap();
        assert!(
            !output.status.success() && text(&output.stderr).contains(message),
            "{message}: {}",
            text(&output.stderr)
        );
    };
    let slug = good_slug(good.path());
    rejected(good.path(), "v9.9.9", &slug, "Cargo.toml has version");
    rejected(good.path(), &tag, "fork/nadmit", "this is fork/nadmit");
    for (path, from, to, message) in [
        ("CHANGELOG.md", format!("## [{version}] - "), "## [x] - ".to_owned(), "has no section"),
        (
            "deploy/chart/Chart.yaml",
            format!("\nversion: \"{version}\""),
            "\nversion: \"9\"".to_owned(),
            "has another version",
        ),
        (
            "Cargo.toml",
            format!("repository = \"https://github.com/{slug}\""),
            "repository = \"https://github.com/OWNER/nadmit\"".to_owned(),
            "is a placeholder",
        ),
    ] {
        let copy = ready();
        edit(copy.path(), path, &from, &to);
        rejected(copy.path(), &tag, &slug, message);
        // Before a release it is not an error, but is said.
        let output = succeeds(&mut script(copy.path(), "check"));
        assert!(text(&output.stderr).contains(message) && output.stdout.is_empty(), "{message}");
    }
}

fn good_slug(directory: &Path) -> String {
    let cargo = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    let (_, rest) = cargo.split_once("\nrepository = \"https://github.com/").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn notes_are_the_section_of_the_version() {
    let copy = ready();
    let changelog = "# Changelog\n\n## [Unreleased]\n\n- next\n\n## [1.2.3] - 2026-01-31\n\n### Added\n\n- one ([page](docs/a.md#b)), \
                     [site](https://example.com/x), [here](#there)\n\n## [1.2.3-rc.1] - 2026-01-01\n\n- old\n";
    fs::write(copy.path().join("CHANGELOG.md"), changelog).unwrap();
    let notes = |version: &str| script(copy.path(), "notes").arg(version).output().unwrap();
    let blob = format!("https://github.com/{}/blob/v{}", good_slug(copy.path()), env!("CARGO_PKG_VERSION"));
    let wanted =
        format!("### Added\n\n- one ([page]({blob}/docs/a.md#b)), [site](https://example.com/x), [here](#there)\n");
    assert_eq!(text(&notes("1.2.3").stdout), wanted);
    assert_eq!(text(&notes("Unreleased").stdout), "- next\n");
    assert_eq!(text(&notes("1.2.3-rc.1").stdout), "- old\n");
    let missing = notes("4.5.6");
    assert!(!missing.status.success() && text(&missing.stderr).contains("no section for 4.5.6"));
}
