use super::*;
use crate::policy::rules;

#[test]
fn every_rule_is_in_the_list_and_on_the_page_of_its_family() {
    let (table, pages) = (table(), pages(MESSAGES));
    let [(_, index), families @ ..] = pages.as_slice() else { panic!("no pages") };
    assert_eq!(families.len(), FAMILIES.len());
    for rule in RULES {
        assert_eq!(table.matches(&format!("\n  {} ", rule.id)).count(), 1, "{}", rule.id);
        let (file, anchor) =
            path(rule).split_once('#').map(|(file, anchor)| (file.to_owned(), anchor.to_owned())).unwrap();
        let name = file.strip_prefix("rules/").unwrap();
        assert!(index.contains(&format!(
            "| [{}]({name}#{anchor}) | {} | {} |",
            rule.id,
            rule.default.name(),
            rule.wrong
        )));
        let (_, page) = families.iter().find(|(path, _)| path == name).unwrap();
        assert_eq!(page.matches(&format!("\n## {}\n", rule.id)).count(), 1, "{}", rule.id);
    }
    assert_eq!(table.lines().filter(|line| line.starts_with("  ")).count(), RULES.len());
    assert!(table.lines().all(|line| line.chars().count() <= 121), "{table}");
}

/// A page without one of these would leave the reader alone.
#[test]
fn every_rule_has_all_parts() {
    for rule in RULES {
        let parts = parts(rule, MESSAGES);
        let is_sentence = |text: &str| text.ends_with(['.', ')']) && !text.contains("  ") && !text.contains('\\');
        let Some(RulePart::Headline(wrong)) = parts.first() else { panic!("{}: no headline", rule.id) };
        assert!(is_sentence(wrong) && wrong.chars().count() <= 80, "{}: {wrong}", rule.id);
        for label in ["Default action", "Patched"] {
            assert!(
                parts.iter().any(|part| matches!(part, RulePart::Property(name, _) if *name == label)),
                "{}: {label}",
                rule.id
            );
        }
        for label in ["What happens", "How to fix it"] {
            let is_it =
                |part: &RulePart<'_>| matches!(part, RulePart::Text(name, text) if *name == label && is_sentence(text));
            assert!(parts.iter().any(is_it), "{}: {label}", rule.id);
        }
        let codes =
            |language| parts.iter().filter(move |part| matches!(part, RulePart::Code(_, name, _) if *name == language));
        let is_decided_by_manifests = rule.bad != rule.good;
        let has_facts = parts.iter().any(|part| matches!(part, RulePart::Table(_, rows) if !rows.is_empty()));
        assert!(is_decided_by_manifests || has_facts, "{}: nothing tells the examples apart", rule.id);
        assert!(codes("yaml").count() > usize::from(is_decided_by_manifests), "{}: examples", rule.id);
        assert_eq!(codes("text").count(), 1, "{}: a message", rule.id);
        assert!(details(rule).contains(&format!("[{}]: ", rule.id)), "{}: a message of this rule", rule.id);
    }
}

/// Where the manifests are the same or facts decide, a row shows what differs.
#[test]
fn the_deciding_fact_is_shown() {
    let mut compared = 0;
    for rule in RULES {
        let facts = facts::ExampleFacts::of(rule.id);
        assert!(rule.bad != rule.good || rule.bad.is_empty() || facts.is_some(), "{}", rule.id);
        let Some(facts) = facts else { continue };
        let table = facts.table([rule.bad, rule.good]);
        assert!(!table.differing.is_empty(), "{}: no row differs, only {:?} are the same", rule.id, table.same);
        assert!(table.differing.iter().all(|row| row.len() == 3 && row[1] != row[2]), "{}", rule.id);
        compared += 1;
    }
    assert!(compared > 15, "only {compared} rules");
}

#[test]
fn two_pages_read_well() {
    for (id, name) in [("nad/field-type", "field_type"), ("audit/nad-drift", "nad_drift")] {
        let rule = rules::find(id).unwrap();
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(format!("page_of_{name}"), details(rule));
            insta::assert_snapshot!(format!("terminal_of_{name}"), explain(rule));
        });
    }
}

#[test]
fn the_words_of_an_explanation_fit_a_terminal() {
    for rule in RULES {
        let text = explain(rule);
        let prose = text.lines().filter(|line| !line.starts_with(' ') && !line.contains("  ")).collect::<Vec<_>>();
        assert!(prose.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with(&format!("{}\n\n{}\n", rule.id, rule.wrong)) && text.ends_with('\n'), "{text}");
        assert!(!text.contains("\n\n\n"), "{text}");
    }
}

#[test]
fn every_family_has_rules() {
    for family in &FAMILIES {
        assert!(family.rules().count() > 0, "{}", family.name);
        assert!(table_of(family.name).unwrap().contains(family.about));
    }
    assert_eq!(FAMILIES.iter().map(|family| family.rules().count()).sum::<usize>(), RULES.len());
    assert_eq!(table_of("nads"), None);
}

#[test]
fn wraps_at_blanks() {
    for (text, want) in [
        ("", &[] as &[&str]),
        ("one two three", &["one two", "three"]),
        ("exactly8 x", &["exactly8", "x"]),
        ("averylongword and", &["averylongword", "and"]),
        ("ää ää ää", &["ää ää ää"]),
    ] {
        assert_eq!(wrap(text, 8), want, "{text}");
    }
}
