use super::*;
use crate::output::SkippedCounts;
use crate::output::testing::{self, TestDocument};
use crate::resources::ObjectKey;

fn named(name: &'static str, actions: &[Action]) -> TestDocument {
    let found = actions.iter().map(|action| testing::finding("nad/schema", *action, "m")).collect();
    TestDocument { name, ..TestDocument::new(found) }
}

#[test]
fn page_lists_objects_with_findings() {
    let found = testing::finding("nad/schema", Action::Deny, "a <b>").at("/spec").with_note("at run time");
    let quiet = testing::finding("nad/schema", Action::Audit, "only recorded");
    let page = Html::new("nadmit audit");
    page.note("one thing was not read".to_owned());
    page.rewritten(vec![RewrittenObject {
        kind: "K",
        key: ObjectKey::new("ns", "hot"),
        managers: vec!["one".to_owned(), "two".to_owned()],
        fields: vec!["/spec/config#/vlan".to_owned()],
        writes: vec![(0.5, "one".to_owned())],
    }]);
    let cases = [TestDocument::new(vec![found]), TestDocument::new(vec![quiet]), TestDocument::new(Vec::new())];
    let html = testing::report(&page, &[&cases[0], &cases[1], &cases[2]]);
    for want in [
        "nadmit audit",
        "1 of 3 objects has findings",
        "a &lt;b&gt;",
        "at run time",
        "fix it",
        "nad/schema",
        "one thing was not read",
        "written by one, two",
        "/spec/config#/vlan",
        "data-entry=\"apps/NetworkAttachmentDefinition/net\"",
        "Network<wbr>Attachment<wbr>Definition · nets/a b.yaml:3",
    ] {
        assert!(html.contains(want), "{want} is missing");
    }
    assert!(!html.contains("only recorded"));
}

#[test]
fn the_worst_objects_come_first_whoever_is_judged_first() {
    let cases = [named("c", &[Action::Warn]), named("b", &[Action::Warn, Action::Deny]), named("a", &[Action::Patch])];
    let pages = [[0, 1, 2], [2, 1, 0]].map(|order| testing::report(&Html::new("t"), &order.map(|at| &cases[at])));
    assert_eq!(pages[0], pages[1]);
    let entries: Vec<_> = pages[0].split("data-entry=\"apps/NetworkAttachmentDefinition/").skip(1).collect();
    assert_eq!(entries.iter().map(|entry| entry.chars().next()).collect::<Vec<_>>(), [Some('b'), Some('a'), Some('c')]);
}

#[test]
fn object_that_stands_twice_has_two_addresses() {
    let one = named("a", &[Action::Deny]);
    let other = TestDocument { source: "other.yaml", ..named("a", &[Action::Deny]) };
    let html = testing::report(&Html::new("t"), &[&one, &other]);
    for id in ["apps/NetworkAttachmentDefinition/a\"", "apps/NetworkAttachmentDefinition/a~2\""] {
        assert_eq!(html.matches(&format!("data-entry=\"{id}")).count(), 1, "{id}");
    }
}

#[test]
fn lead_says_the_result() {
    for (objects, found, want) in [
        (0, 0, "Nothing was checked"),
        (1, 0, "No findings"),
        (1, 1, "1 of 1 object has findings"),
        (9, 1, "1 of 9 objects has findings"),
        (9, 2, "2 of 9 objects have findings"),
    ] {
        assert_eq!(lead(objects, found).0, want);
    }
    assert_eq!(lead(3, 0).1, "3 objects checked, nothing to fix");
}

#[test]
fn unread_inputs_are_not_hidden() {
    let page = |unreadable, other_kinds| {
        let skipped = SkippedCounts { other_kinds, ..SkippedCounts::default() };
        Html::new("t").end(&Summary { documents: 1, unreadable, skipped, ..Summary::default() })
    };
    assert!(page(2, 0).contains("2 inputs could not be read"));
    assert!(page(0, 1).contains("1 object of other kinds ignored"));
    assert!(!page(0, 0).contains("could not be read") && !page(0, 0).contains("ignored"));
}

#[test]
fn lines_are_quoted_around_the_place() {
    let long = format!("{}value{}", "x".repeat(500), "y".repeat(500));
    let cut = (format!("…{}", "x".repeat(40)), format!("{}…", "y".repeat(40)));
    // (text, place, before, value, after)
    for (text, place, want) in [
        ("a: 1\n  b: two, c\nd", 10..13, Some(["b: ", "two", ", c"])),
        ("é: ü", 4..6, Some(["é: ", "ü", ""])),
        ("a", 0..0, None),
        ("", 0..0, None),
        (long.as_str(), 500..505, Some([cut.0.as_str(), "value", cut.1.as_str()])),
    ] {
        let finding = testing::finding("nad/schema", Action::Deny, "m");
        let placed = LocatedFinding { finding: &finding, span: place, line: 1, column: 1, end_line: 1, end_column: 1 };
        assert_eq!(marked_excerpt(text, &placed), want.map(|parts| parts.map(str::to_owned)), "{text}");
    }
}

/// A change is shown in the whole object, which can then be copied; in an object that is too long, only around the change.
#[test]
fn object_and_change_are_one_text_unless_they_are_long() {
    let texts_of = |length: usize, with_change: bool| {
        let case = named("a", &[Action::Patch]);
        let given = format!(r#"{{"a":"{}"}}"#, "x".repeat(length));
        let stored = given.replace("{\"a\"", "{\"0\":1,\"a\"");
        let mut judged = case.judged();
        judged.json = &given;
        judged.change = with_change.then(|| (given.clone(), stored));
        texts(&judged)
    };
    assert!(
        matches!(&texts_of(3, true)[..], [EntryPart::Change { lines, is_whole: true }] if lines == "+\"0\": 1\n a: xxx\n")
    );
    assert!(matches!(&texts_of(3, false)[..], [EntryPart::Object { yaml, is_cut: false }] if yaml == "a: xxx\n"));
    let long = texts_of(MAX_OBJECT_BYTES, true);
    let [EntryPart::Change { is_whole: false, .. }, EntryPart::Object { yaml, is_cut: true }] = &long[..] else {
        panic!("a part of the change, and a part of the object")
    };
    assert_eq!((yaml.chars().count(), yaml.ends_with('…')), (MAX_OBJECT_BYTES + 1, true));
}
