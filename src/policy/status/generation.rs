//! The generation a status claims to be computed from.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::resources::raw::RawFields;

const OBSERVED: &str = "observedGeneration";

/// An `observedGeneration` that goes back or is too high.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenerationIssue {
    /// Its JSON pointer.
    pub(crate) pointer: String,
    /// Its path as readable text.
    pub(crate) words: String,
    /// What it was; `None` where it was not there.
    pub(crate) old: Option<i64>,
    /// What it is now.
    pub(crate) new: i64,
}

/// The changed ones: first those that go back, then those above the object's own generation. A value equal to the object's
/// generation is correct, whatever was there before.
pub(super) fn compare(old: Option<&str>, new: Option<&str>, generation: Option<i64>) -> [Vec<GenerationIssue>; 2] {
    let (mut back, mut ahead) = (Vec::new(), Vec::new());
    // Most statuses have none; this avoids parsing long ones.
    let new = new.filter(|text| text.contains(OBSERVED));
    let (Some(new), Some(generation)) = (new, generation) else { return [back, ahead] };
    let before: HashMap<_, _> = observed(old).into_iter().map(|found| (found.of, found.value)).collect();
    let found = observed(Some(new));
    // Of two conditions of one type the last one counts, before and after.
    let last: HashMap<_, _> = found.iter().map(|found| (&found.of, found.index)).collect();
    for found in found.iter().filter(|found| last.get(&found.of) == Some(&found.index)) {
        let old = before.get(&found.of).copied();
        let regress = || {
            let (pointer, words) = found.place();
            GenerationIssue { pointer, words, old, new: found.value }
        };
        if found.value > generation && old != Some(found.value) {
            ahead.push(regress());
        } else if old.is_some_and(|old| found.value < old && old <= generation) {
            back.push(regress());
        }
    }
    [back, ahead]
}

struct ObservedGeneration<'a> {
    /// The type of the condition that has it; `None` for the status itself.
    of: Option<Cow<'a, str>>,
    index: usize,
    value: i64,
}

impl ObservedGeneration<'_> {
    fn place(&self) -> (String, String) {
        match &self.of {
            None => (format!("/status/{OBSERVED}"), format!("status.{OBSERVED}")),
            Some(kind) => (
                format!("/status/conditions/{}/{OBSERVED}", self.index),
                format!("status.conditions[type={kind}].{OBSERVED}"),
            ),
        }
    }
}

fn observed(status: Option<&str>) -> Vec<ObservedGeneration<'_>> {
    let Some(fields) = status.and_then(|text| RawFields::parse(text).ok()) else { return Vec::new() };
    let whole = fields.integer(OBSERVED).value().map(|value| ObservedGeneration { of: None, index: 0, value });
    let conditions = fields.objects("conditions").value().unwrap_or_default();
    let each = conditions.iter().enumerate().filter_map(|(index, condition)| {
        let (of, value) = (condition.text("type").value()?, condition.integer(OBSERVED).value()?);
        Some(ObservedGeneration { of: Some(of), index, value })
    });
    whole.into_iter().chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decreasing_generations_regress() {
        let at = |value: i64| format!(r#"{{"observedGeneration":{value}}}"#);
        for (old, new, generation, back, ahead) in [
            (at(4), at(5), 5, 0, 0),
            (at(5), at(5), 5, 0, 0),
            (at(5), at(4), 5, 1, 0),
            (at(4), at(3), 5, 1, 0),
            // A generation that was too high must be correctable.
            (at(9), at(5), 5, 0, 0),
            (at(9), at(4), 5, 0, 0),
            (at(5), at(6), 5, 0, 1),
            (at(6), at(6), 5, 0, 0),
            ("{}".to_owned(), at(4), 5, 0, 0),
            ("{}".to_owned(), at(6), 5, 0, 1),
            (at(5), "{}".to_owned(), 5, 0, 0),
            (at(5), r#"{"observedGeneration":"4"}"#.to_owned(), 5, 0, 0),
        ] {
            let [found_back, found_ahead] = compare(Some(&old), Some(&new), Some(generation));
            assert_eq!((found_back.len(), found_ahead.len()), (back, ahead), "{old} {new}");
        }
        assert_eq!(compare(Some(&at(5)), Some(&at(4)), None), [vec![], vec![]]);
        assert_eq!(compare(None, Some(&at(4)), Some(5)), [vec![], vec![]]);
    }

    #[test]
    fn of_equal_types_the_last_one_counts() {
        let twice = |one: i64, two: i64| {
            format!(
                r#"{{"conditions":[{{"type":"A","observedGeneration":{one}}},{{"type":"A","observedGeneration":{two}}}]}}"#
            )
        };
        for (old, new, back) in [((3, 5), (3, 5), 0), ((5, 3), (5, 3), 0), ((3, 5), (5, 3), 1), ((5, 3), (1, 4), 0)] {
            let found = compare(Some(&twice(old.0, old.1)), Some(&twice(new.0, new.1)), Some(5));
            assert_eq!(found[0].len(), back, "{old:?} {new:?}");
        }
    }

    #[test]
    fn conditions_are_compared_by_their_type() {
        let old = r#"{"conditions":[{"type":"A","observedGeneration":5},{"type":"B","observedGeneration":3}]}"#;
        let new = r#"{"conditions":[{"type":"B","observedGeneration":5},{"type":"A","observedGeneration":4},{"type":"C","observedGeneration":1}]}"#;
        let [back, ahead] = compare(Some(old), Some(new), Some(5));
        let want = GenerationIssue {
            pointer: "/status/conditions/1/observedGeneration".to_owned(),
            words: "status.conditions[type=A].observedGeneration".to_owned(),
            old: Some(5),
            new: 4,
        };
        assert_eq!((back, ahead), (vec![want], vec![]));
    }
}
