//! The cases of every rule, each a test of its own: `cargo test --test cases nad/field-type` runs those of one rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]
#![allow(unreachable_pub, missing_docs, reason = "this is a test binary")]

#[allow(dead_code, reason = "shared with the tests of the entry points")]
mod case;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::ExitCode;

use case::{Case, Expected};
use libtest_mimic::{Arguments, Trial};
use nadmit::json::LineIndex;
use nadmit::manifests::{ManifestDocument, documents};
use nadmit::policy::{Finding, Verdict, rules};
use nadmit::resources::Object;
use serde_json::Value;

fn main() -> ExitCode {
    let mut trials = vec![
        Trial::test("every_rule_has_cases", || {
            every_rule_has_cases();
            Ok(())
        }),
        Trial::test("enough_cases_are_repaired", || {
            enough_cases_are_repaired();
            Ok(())
        }),
    ];
    trials.extend(case::directories().into_iter().map(|directory| {
        Trial::test(case::name_of(&directory), move || {
            let case = Case::read(&directory);
            let verdicts = case.judge();
            each_case_matches_its_expectation(&case, &verdicts);
            each_finding_has_a_headline_and_a_help(&case, &verdicts);
            each_repair_converges(&case, &verdicts);
            Ok(())
        })
    }));
    trials.extend(families().into_iter().map(|family| {
        Trial::test(format!("texts_of_{family}"), move || {
            texts_are_as_recorded(&family);
            Ok(())
        })
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The judgement reports exactly the findings that the case expects.
fn each_case_matches_its_expectation(case: &Case, verdicts: &[(String, Verdict)]) {
    let found = findings(verdicts);
    let mut expected = case.expect.findings.clone();
    expected.sort();
    assert!(found == expected, "{}\n  expected {expected:#?}\n  found {found:#?}", case.name);
    if let Some(patch) = &case.expect.patch {
        let found = serde_json::to_value(&verdicts.first().unwrap().1.patch).unwrap();
        assert!(found == *patch, "{}\n  expected patch {patch:#}\n  found {found:#}", case.name);
    }
}

/// Every finding has a short headline that makes sense on its own, and says how to fix it.
fn each_finding_has_a_headline_and_a_help(case: &Case, verdicts: &[(String, Verdict)]) {
    for finding in verdicts.iter().flat_map(|(_, verdict)| &verdict.findings) {
        let Finding { rule, message, note, help, .. } = finding;
        let is_phrase = |text: &str| !text.is_empty() && !text.ends_with(['.', ':', ';']) && !text.contains('\n');
        let is_good = message.chars().count() <= 100 && [message, note, help].into_iter().all(|text| is_phrase(text));
        assert!(is_good, "{}: {}\n  {message}\n  note: {note}\n  help: {help}", case.name, rule.id);
    }
}

fn findings(verdicts: &[(String, Verdict)]) -> Vec<Expected> {
    let mut found = Vec::new();
    for (document, (_, verdict)) in verdicts.iter().enumerate() {
        found.extend(verdict.findings.iter().map(|finding| Expected {
            document,
            rule: finding.rule.id.to_owned(),
            action: finding.action.name().to_owned(),
            pointer: finding.pointer.clone(),
            config_pointer: finding.config.as_ref().map(|place| place.pointer.clone()),
        }));
    }
    found.sort();
    found
}

fn families() -> BTreeSet<String> {
    let family = |case: &Case| case.name.split('/').next().unwrap().to_owned();
    case::all().iter().map(family).collect()
}

/// The texts, places and patches of all findings in the cases of a family are those of its snapshot.
fn texts_are_as_recorded(family: &str) {
    let mut text = String::new();
    for case in case::all().iter().filter(|case| case.name.split('/').next() == Some(family)) {
        for (document, (_, verdict)) in case.judge().iter().enumerate() {
            if verdict.findings.is_empty() && verdict.patch.is_empty() {
                continue;
            }
            writeln!(text, "{}, document {document}", case.name).unwrap();
            verdict.findings.iter().for_each(|finding| write_finding(&mut text, finding));
            for (what, patch) in [("patch", &verdict.patch), ("patch in mode enforce", &verdict.would_patch)] {
                if !patch.is_empty() {
                    writeln!(text, "  {what}: {patch}").unwrap();
                }
            }
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(format!("texts_of_{family}"), text) });
}

fn write_finding(text: &mut String, finding: &Finding) {
    let Finding { rule, action, would, because, pointer, config, message, note, help, is_about_key, .. } = finding;
    write!(text, "  {} {} at {pointer}", action.name(), rule.id).unwrap();
    if let Some(place) = config {
        let part = if *is_about_key { "key" } else { "value" };
        write!(text, " {part} {} {}:{} {:?}", place.pointer, place.line, place.column, place.span).unwrap();
    }
    if would.is_some() || because.is_some() {
        write!(text, " instead of {:?}: {because:?}", would.map(|would| would.name())).unwrap();
    }
    writeln!(text, "\n    {message}\n    note: {note}\n    help: {help}").unwrap();
}

/// Judging a patched object gives no second patch.
fn each_repair_converges(case: &Case, verdicts: &[(String, Verdict)]) {
    for (document, (json, verdict)) in verdicts.iter().enumerate() {
        if verdict.patch.is_empty() {
            continue;
        }
        let mut value: Value = serde_json::from_str(json).unwrap();
        json_patch::patch(&mut value, &verdict.patch).unwrap();
        let again = case.with_input(replaced(&case.input, document, &value.to_string()));
        let (_, second) = &again.judge()[document];
        assert!(second.patch.is_empty(), "{}: a second repair: {}", case.name, second.patch);
    }
}

/// The input with one of its judged documents replaced.
fn replaced(input: &str, document: usize, json: &str) -> String {
    let mut parts = Vec::new();
    documents(&LineIndex::of(input), &mut |found| {
        if let ManifestDocument::Manifest(manifest) = found {
            parts.push(manifest.node.to_json());
        }
    });
    let judged: Vec<usize> =
        (0..parts.len()).filter(|at| Object::read(&parts[*at]).is_ok_and(|object| object.is_some())).collect();
    parts[judged[document]] = json.to_owned();
    parts.join("\n---\n")
}

/// Without enough repaired cases, the check that repairs converge would test nothing.
fn enough_cases_are_repaired() {
    let patches = |case: &Case| case.judge().iter().filter(|(_, verdict)| !verdict.patch.is_empty()).count();
    let repaired: usize = case::all().iter().map(patches).sum();
    assert!(repaired > 20, "only {repaired} documents are repaired");
}

/// Every rule has a case with a finding, and a similar case without one.
fn every_rule_has_cases() {
    let mut by_rule: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in case::all() {
        let rule = case.name.rsplit_once('/').unwrap().0.to_owned();
        by_rule.entry(rule).or_default().push(case);
    }
    for rule in rules::RULES {
        let cases = by_rule.remove(rule.id).unwrap_or_else(|| panic!("{} has no cases", rule.id));
        let finds = |case: &&Case| case.expect.findings.iter().any(|finding| finding.rule == rule.id);
        let bad = cases.iter().find(|case| case.name.ends_with("/bad")).unwrap_or_else(|| panic!("{}/bad", rule.id));
        let good = cases.iter().find(|case| case.name.ends_with("/good")).unwrap_or_else(|| panic!("{}/good", rule.id));
        assert!(finds(&bad), "{} does not expect its rule", bad.name);
        assert!(!finds(&good), "{} expects its rule", good.name);
    }
    assert!(by_rule.is_empty(), "cases of rules that do not exist: {:?}", by_rule.keys());
}
