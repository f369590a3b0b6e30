//! The documentation is complete, and true where a test can tell: links, commands, options, alerts, shown output; and SECURITY.md names
//! tests that exist.

mod markdown;
pub mod picture;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::{Command, CommandFactory};
use nadmit::cli::Cli;
use nadmit::deploy::{Options, objects};

use markdown::{anchors, blocks, code_spans, commands, headings, links, sections};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages for people, relative to the repository.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "deploy/README.md", "benches/README.md"]
            .map(PathBuf::from)
            .into();
    pages.push(PathBuf::from("deploy/chart/README.md"));
    for directory in ["docs", "docs/rules"] {
        let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
        pages.extend(entries(Path::new(directory)).into_iter().filter(is_page));
    }
    let mut directories = vec![PathBuf::from("certs"), PathBuf::from("tests")];
    while let Some(directory) = directories.pop() {
        for path in entries(&directory) {
            if path.ends_with("README.md") {
                pages.push(path);
            } else if root().join(&path).is_dir() && path != Path::new("tests/cases") {
                directories.push(path);
            }
        }
    }
    assert!(pages.len() > 20, "only {} pages", pages.len());
    pages
}

/// What is in a directory.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).unwrap();
    entries.map(|entry| directory.join(entry.unwrap().file_name())).collect()
}

/// The links of a page that lead to nothing in this repository.
fn broken_links(page: &Path, text: &str) -> Vec<String> {
    let is_broken = |link: &String| {
        if link.contains("://") {
            return false;
        }
        let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(path, anchor)| (path, Some(anchor)));
        let target = match path {
            "" => root().join(page),
            path => root().join(page).parent().unwrap().join(path),
        };
        match anchor {
            None => !target.exists(),
            Some(anchor) => !fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor)),
        }
    };
    links(text).into_iter().filter(is_broken).map(|link| format!("{}: {link}", page.display())).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        checked += links(&text).len();
        broken.extend(broken_links(&page, &text));
    }
    assert!(broken.is_empty(), "broken links: {broken:#?}");
    assert!(checked > 200, "only {checked} links");
    let page = Path::new("docs/cli.md");
    let wrong =
        "[a](none.md) [b](cli.md#none) [c](#none) [d](../README.md) [e](#nadmit-check) [f](https://example.com/x)";
    assert_eq!(
        broken_links(page, wrong),
        ["docs/cli.md: none.md", "docs/cli.md: cli.md#none", "docs/cli.md: #none"],
        "a broken link is found"
    );
}

/// The words of a command line of nadmit, also as cargo runs it.
fn of_nadmit(words: &[String]) -> Option<&[String]> {
    match words {
        [program, ..] if program == "nadmit" => Some(words),
        [cargo, run, ..] if cargo == "cargo" && run == "run" => {
            let at = words.iter().position(|word| word == "--")?;
            words.get(at..)
        }
        _ => None,
    }
}

/// Why nadmit rejects a shown command, in its own words.
fn rejection(words: &[String]) -> Option<String> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let error = Cli::command().try_get_matches_from(words).err()?;
    (!matches!(error.kind(), DisplayHelp | DisplayVersion)).then(|| format!("{}: {error}", words.join(" ")))
}

#[test]
fn every_shown_command_is_valid() {
    let makefile = read("Makefile");
    let (mut checked, mut targets) = (0, 0);
    for page in pages() {
        for words in commands(&read(&page)) {
            if let Some(words) = of_nadmit(&words) {
                assert_eq!(rejection(words), None, "{}", page.display());
                checked += 1;
            }
            if let [make, target, ..] = words.as_slice()
                && make == "make"
            {
                assert!(makefile.contains(&format!("\n{target}: ## ")), "{}: make {target}", page.display());
                targets += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} commands");
    assert!(targets > 10, "only {targets} targets");
    let wrong = commands(
        "```console\n$ nadmit check --dif a.yaml\n$ cargo run --release -- serv\n$ nadmit rules --markdown\n```\n",
    );
    let rejected: Vec<bool> =
        wrong.iter().map(|words| of_nadmit(words).is_some_and(|words| rejection(words).is_some())).collect();
    assert_eq!(rejected, [true, true, false], "a wrong command is found");
}

/// Inline code that is a command line of nadmit with an option: each command and each option exists. What is left out of it, such as a file,
/// is no mistake in a sentence.
#[test]
fn every_inline_command_is_valid() {
    let mut checked = 0;
    for page in pages().iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        for span in code_spans(&read(page)) {
            let Some(wrong) = wrong_inline(&span) else { continue };
            assert_eq!(wrong, "", "{}: `{span}`", page.display());
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} commands");
    for (span, is_wrong) in [
        ("nadmit check --dif", Some(true)),
        ("nadmit chekc a.yaml", Some(true)),
        ("kustomize build DIRECTORY \\| nadmit check --fixx -", Some(true)),
        ("nadmit check --fix", Some(false)),
        ("nadmit audit --output html=FILE", Some(false)),
        ("nadmit: 3 documents judged", None),
        ("nadmit", None),
    ] {
        assert_eq!(wrong_inline(span).map(|wrong| !wrong.is_empty()), is_wrong, "{span}");
    }
}

/// What is wrong with a command of nadmit in inline code, empty if nothing is; `None` if it has none with arguments.
fn wrong_inline(span: &str) -> Option<String> {
    use clap::error::ErrorKind;
    let block = format!("```sh\n{}\n```\n", span.replace("\\|", "|").replace('…', ""));
    let commands = commands(&block);
    let words = commands.iter().filter_map(|words| of_nadmit(words)).find(|words| words.len() > 1)?;
    // A word in capitals stands for what a reader has.
    let is_placeholder = |word: &&String| word.chars().all(|letter| letter.is_ascii_uppercase());
    let words = words.iter().filter(|word| !is_placeholder(word));
    let error = Cli::command().try_get_matches_from(words).err();
    let kinds = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand, ErrorKind::ArgumentConflict];
    Some(error.filter(|error| kinds.contains(&error.kind())).map(|error| error.to_string()).unwrap_or_default())
}

/// README.md has the two commands to start with, and begins with `check` on an example and the picture of what it prints, which
/// `make generate` makes.
#[test]
fn the_readme_begins_with_check() {
    let readme = read("README.md");
    for command in ["\n$ cargo run --release -- serve ", "\n$ make test "] {
        assert!(readme.contains(command), "README.md does not have `{}`", command.trim());
    }
    let first = blocks(&readme).into_iter().next().unwrap();
    assert_eq!(first, ("console".to_owned(), "$ nadmit check examples/telco.yaml\n".to_owned()));
    assert_eq!(links(&readme).first().map(String::as_str), Some("docs/check.svg"));
    assert!(readme.lines().count() < 180, "README.md is an introduction; details belong into docs/");
}

/// The words of a heading of docs/cli.md that is about commands.
fn is_about(heading: &str, command: &str) -> bool {
    let words = heading.strip_prefix("nadmit ").unwrap_or_default();
    words.split([' ', ',']).any(|word| word == command)
}

/// docs/cli.md explains every option of every command, and its variable, in the section of this command.
#[test]
fn every_option_is_explained() {
    let page = read("docs/cli.md");
    let sections = sections(&page);
    let mut checked = 0;
    let mut missing = Vec::new();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let about: Vec<_> = sections.iter().filter(|(heading, _)| is_about(heading, name)).collect();
        assert_eq!(about.len(), 1, "docs/cli.md has not one section about `nadmit {name}`");
        let about = &about[0].1;
        let more = command.get_subcommands().map(|sub| format!("`nadmit {name} {}", sub.get_name()));
        for word in words(command).into_iter().chain(more) {
            let is_present = about.match_indices(&word).any(|(at, _)| {
                let next = about[at + word.len()..].chars().next();
                !next.is_some_and(|next| next.is_ascii_alphanumeric() || "-_".contains(next))
            });
            if !is_present {
                missing.push(format!("{word} of `nadmit {name}`"));
            }
            checked += 1;
        }
    }
    assert!(missing.is_empty(), "docs/cli.md does not explain {missing:#?}");
    assert!(checked > 80, "only {checked} options and variables");
}

/// Each option that docs/cli.md names exists.
#[test]
fn no_option_is_invented() {
    fn options(command: &Command, all: &mut BTreeSet<String>) {
        all.extend(command.get_arguments().filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
        command.get_subcommands().for_each(|sub| options(sub, all));
    }
    let mut command = Cli::command();
    command.build();
    let mut known = BTreeSet::new();
    options(&command, &mut known);
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let spans = code_spans(&read("docs/cli.md"));
    let named = spans.iter().flat_map(|span| span.split(|letter| !is_part(letter)));
    let named: BTreeSet<&str> = named.filter(|word| word.starts_with("--") && word.len() > 2).collect();
    let invented: Vec<_> = named.iter().filter(|option| !known.contains(**option)).collect();
    assert!(invented.is_empty(), "docs/cli.md names options that do not exist: {invented:?}");
    assert!(named.len() > 40, "only {} options", named.len());
}

/// The index of each directory lists all its pages, and so does the table of contents of the book, once, as mdBook reads it.
#[test]
fn every_page_is_in_the_index_and_in_the_book() {
    let mut names = BTreeSet::new();
    for page in pages().iter().filter(|page| page.starts_with("docs") && !page.ends_with("SUMMARY.md")) {
        let path = page.strip_prefix("docs").unwrap();
        names.insert(path.to_str().unwrap().to_owned());
        if page.ends_with("README.md") {
            continue;
        }
        let directory = page.parent().unwrap();
        let name = page.file_name().unwrap().to_str().unwrap();
        let index = links(&read(directory.join("README.md")));
        let is_listed = index.iter().any(|link| link.split('#').next() == Some(name));
        assert!(is_listed, "{}/README.md does not list {name}", directory.display());
    }
    assert!(links(&read("docs/README.md")).iter().any(|link| link == "rules/README.md"));
    let summary = read("docs/SUMMARY.md");
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    assert_eq!(listed, names, "docs/SUMMARY.md (left) does not list what is in docs/ (right)");
    assert_eq!(links(&summary).len(), listed.len(), "docs/SUMMARY.md lists a page twice");
    let is_known =
        |line: &str| line.is_empty() || ["# ", "- [", "  - [", "["].iter().any(|start| line.starts_with(start));
    assert_eq!(summary.lines().find(|line| !is_known(line)), None, "docs/SUMMARY.md has what mdBook does not read");
}

/// Each alert of the PrometheusRule has a section in docs/troubleshooting.md, which its `runbook_url` names, and each of these sections an
/// alert.
#[test]
fn every_alert_has_a_section() {
    let objects = objects(&Options { monitoring: true, ..Options::default() });
    let rule = objects.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    let rules: Vec<_> = rule["spec"]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    let alerts: BTreeSet<String> = rules.iter().map(|alert| alert["alert"].as_str().unwrap().to_owned()).collect();
    assert_eq!(alerts.len(), rules.len(), "two alerts of one name");
    let page = read("docs/troubleshooting.md");
    let anchors = anchors(&page);
    let address =
        format!("{}/blob/v{}/docs/troubleshooting.md#", env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_VERSION"));
    for alert in rules {
        let runbook = alert["annotations"]["runbook_url"].as_str().unwrap();
        let anchor =
            runbook.strip_prefix(&address).unwrap_or_else(|| panic!("{runbook} does not begin with {address}"));
        assert_eq!(anchor, alert["alert"].as_str().unwrap().to_lowercase(), "the runbook of another alert");
        assert!(anchors.contains(anchor), "docs/troubleshooting.md has no section for {runbook}");
    }
    let (_, about) = sections(&page).into_iter().find(|(heading, _)| heading == "Alerts").unwrap();
    let explained: BTreeSet<String> = headings(&about).into_iter().map(|(_, heading)| heading).collect();
    assert_eq!(explained, alerts, "the sections of docs/troubleshooting.md (left) are not the alerts (right)");
    assert!(alerts.len() > 20, "only {} alerts", alerts.len());
}

/// No argument exists for tests alone: `--help` shows every command and every argument, and explains it.
#[test]
fn no_argument_is_hidden() {
    fn check(command: &Command) -> usize {
        let name = command.get_name();
        assert!(!command.is_hide_set(), "the command {name} is hidden");
        let own = command.get_arguments().map(|argument| {
            let id = argument.get_id();
            let is_hidden = argument.is_hide_set()
                || argument.is_hide_short_help_set()
                || argument.is_hide_long_help_set()
                || argument.get_possible_values().iter().any(PossibleValue::is_hide_set);
            assert!(!is_hidden, "{name}: {id} is hidden");
            assert!(argument.get_help().is_some(), "{name}: {id} has no help");
            1
        });
        own.sum::<usize>() + command.get_subcommands().map(check).sum::<usize>()
    }
    let mut command = Cli::command();
    command.build();
    let checked = check(&command);
    assert!(checked > 60, "only {checked} arguments");
}

/// The tests that benches/README.md names exist: `owner::cost_of_live_reads` is in tests/cluster/owner.rs.
#[test]
fn every_test_of_a_measurement_exists() {
    let page = read("benches/README.md");
    let is_name =
        |text: &str| text.chars().all(|character| character.is_ascii_lowercase() || "_0123456789".contains(character));
    let mut checked = 0;
    for span in code_spans(&page) {
        let parts: Vec<&str> = span.split("::").collect();
        let Some((test, [.., file])) = parts.split_last() else { continue };
        if !parts.iter().all(|part| is_name(part)) {
            continue;
        }
        let directory = if parts.len() == 2 { "cluster" } else { parts[0] };
        let source = read(format!("tests/{directory}/{file}.rs"));
        assert!(source.contains(&format!("fn {test}(")), "benches/README.md names `{span}`, which does not exist");
        checked += 1;
    }
    assert!(checked > 5, "only {checked} tests");
}

/// Each row of the table of attacks names at least one test or case, and all of these exist.
#[test]
fn every_attack_has_a_test() {
    let root = root();
    let security = read("SECURITY.md");
    let (_, table) = security.split_once("| attack | what stops it | test |\n|---|---|---|\n").unwrap();
    let mut checked = 0;
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let mut named = 0;
        for name in tests.split('`').skip(1).step_by(2) {
            let is_present = match name.split_once("::") {
                Some((file, test)) => {
                    let file = if file.starts_with("src/") { file.to_owned() } else { format!("tests/{file}") };
                    read(file).contains(&format!("fn {test}("))
                }
                None => root.join("tests/cases").join(name).join("expect.yaml").exists(),
            };
            assert!(is_present, "SECURITY.md names `{name}`, which does not exist");
            named += 1;
        }
        assert!(named > 0, "no test in {row}");
        checked += named;
    }
    assert!(checked > 60, "only {checked} tests");
}

/// The options of a command and their variables, as docs/cli.md writes them.
fn words(command: &Command) -> Vec<String> {
    let words = command.get_arguments().flat_map(|argument| {
        let flag = argument.get_long().map(|long| format!("`--{long}"));
        let variable = argument.get_env().map(|variable| format!("`{}", variable.to_string_lossy()));
        [flag, variable]
    });
    words.flatten().filter(|word| word != "`--help").collect()
}
