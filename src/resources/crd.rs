//! The validation of the operator's CRDs, for offline checks.

use super::NetworkKind;
use super::raw::{FieldValue, RawFields};

/// A field of a network's spec and what the CRD allows in it.
#[derive(Debug)]
pub struct SpecField {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub allows: Allows,
}

/// What a field may hold.
#[derive(Debug)]
pub enum Allows {
    /// Any string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An integer between the two.
    Integer(i64, i64),
    /// The trunk ranges of an OVSNetwork.
    Trunk,
}

const fn text(name: &'static str) -> SpecField {
    SpecField { name, allows: Allows::Text }
}

const fn one_of(name: &'static str, values: &'static [&'static str]) -> SpecField {
    SpecField { name, allows: Allows::OneOf(values) }
}

const fn integer(name: &'static str, min: i64, max: i64) -> SpecField {
    SpecField { name, allows: Allows::Integer(min, max) }
}

const LINK_STATE: SpecField = one_of("linkState", &["auto", "enable", "disable"]);

const SRIOV: &[SpecField] = &[
    text("resourceName"),
    text("networkNamespace"),
    text("capabilities"),
    text("ipam"),
    text("metaPlugins"),
    text("logFile"),
    integer("vlan", 0, 4094),
    integer("vlanQoS", 0, 7),
    one_of("vlanProto", &["802.1q", "802.1Q", "802.1ad", "802.1AD"]),
    one_of("spoofChk", &["on", "off"]),
    one_of("trust", &["on", "off"]),
    LINK_STATE,
    integer("minTxRate", 0, i64::MAX),
    integer("maxTxRate", 0, i64::MAX),
    one_of("logLevel", &["panic", "error", "warning", "info", "debug", ""]),
];

const SRIOV_IB: &[SpecField] = &[
    text("resourceName"),
    text("networkNamespace"),
    text("capabilities"),
    text("ipam"),
    text("metaPlugins"),
    LINK_STATE,
];

const OVS: &[SpecField] = &[
    text("resourceName"),
    text("networkNamespace"),
    text("capabilities"),
    text("ipam"),
    text("metaPlugins"),
    text("bridge"),
    text("interfaceType"),
    integer("vlan", 0, 4095),
    // The CRD has no bounds here; another rule checks the value.
    integer("mtu", i64::MIN, i64::MAX),
    SpecField { name: "trunk", allows: Allows::Trunk },
];

const TRUNK: &[SpecField] = &[integer("id", 0, 4095), integer("minID", 0, 4095), integer("maxID", 0, 4095)];

/// The fields of a kind's spec.
pub fn fields(kind: NetworkKind) -> &'static [SpecField] {
    match kind {
        NetworkKind::Sriov => SRIOV,
        NetworkKind::SriovIb => SRIOV_IB,
        NetworkKind::Ovs => OVS,
    }
}

/// A violation of the CRD schema.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// The path below `spec`: `/trunk/0/id`.
    pub path: String,
    /// What is there.
    pub found: String,
    /// What must be there.
    pub expected: String,
    /// The one value that is certainly meant.
    pub meant: Option<&'static str>,
}

/// All schema violations of a spec.
pub fn violations(kind: NetworkKind, spec: &RawFields<'_>) -> Vec<SchemaViolation> {
    let mut violations = Vec::new();
    check(fields(kind), spec, "", &mut violations);
    if spec.raw("resourceName").is_none() {
        let (path, found) = ("/resourceName".to_owned(), "nothing".to_owned());
        violations.push(SchemaViolation {
            path,
            found,
            expected: "the name of the resource its devices are offered under".to_owned(),
            meant: None,
        });
    }
    violations
}

/// Whether the value of a key is one that this field may hold.
pub fn accepts(field: &SpecField, spec: &RawFields<'_>, key: &str) -> bool {
    let mut inside = Vec::new();
    expected(&field.allows, spec, key, "", &mut inside).is_none() && inside.is_empty()
}

fn check(fields: &[SpecField], spec: &RawFields<'_>, path: &str, violations: &mut Vec<SchemaViolation>) {
    for field in fields {
        let Some(raw) = spec.raw(field.name) else { continue };
        let path = format!("{path}/{}", field.name);
        let Some(expected) = expected(&field.allows, spec, field.name, &path, violations) else { continue };
        let meant = match &field.allows {
            Allows::OneOf(values) => meant(values, raw),
            Allows::Text | Allows::Integer(..) | Allows::Trunk => None,
        };
        violations.push(SchemaViolation { path, found: raw.to_owned(), expected, meant });
    }
}

/// What must be at a key if something else is there. Violations inside of its value are added.
fn expected(
    allows: &Allows,
    spec: &RawFields<'_>,
    key: &str,
    path: &str,
    violations: &mut Vec<SchemaViolation>,
) -> Option<String> {
    Some(match allows {
        Allows::Text => match spec.text(key) {
            FieldValue::Wrong(_) => "a string".to_owned(),
            _ => return None,
        },
        Allows::OneOf(values) => match spec.text(key) {
            FieldValue::Value(text) if values.contains(&text.as_ref()) => return None,
            // YAML reads a bare `on` as true.
            FieldValue::Wrong("a boolean") => format!("one of {}, in quotes", values.join(", ")),
            _ => format!("one of {}", values.join(", ")),
        },
        Allows::Integer(min, max) => match spec.integer(key) {
            FieldValue::Value(number) if (*min..=*max).contains(&number) => return None,
            _ if *max == i64::MAX && *min == 0 => "a whole number, not negative".to_owned(),
            _ if *max == i64::MAX => "a whole number".to_owned(),
            _ => format!("a whole number from {min} to {max}"),
        },
        Allows::Trunk => match spec.objects(key) {
            FieldValue::Value(ranges) => {
                for (index, range) in ranges.iter().enumerate() {
                    check(TRUNK, range, &format!("{path}/{index}"), violations);
                }
                return None;
            }
            _ => "a list of objects with id, or minID and maxID".to_owned(),
        },
    })
}

/// Which of some words is certainly meant: by a boolean, as YAML reads a bare `on`, or by the same word in another case.
fn meant(values: &[&'static str], raw: &str) -> Option<&'static str> {
    let word = match raw {
        "true" => "on",
        "false" => "off",
        other => other.strip_prefix('"')?.strip_suffix('"')?,
    };
    let mut same = values.iter().copied().filter(|value| value.eq_ignore_ascii_case(word));
    same.next().filter(|_| same.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_what_the_crd_rejects() {
        for (kind, spec, want) in [
            (NetworkKind::Sriov, r#"{"resourceName":"x","vlan":4094,"spoofChk":"on","logLevel":""}"#, &[] as &[_]),
            (NetworkKind::Sriov, r#"{"resourceName":"x","vlan":4095}"#, &["/vlan"]),
            (
                NetworkKind::Sriov,
                r#"{"resourceName":"x","vlan":"5","ipam":{},"trust":"yes"}"#,
                &["/ipam", "/vlan", "/trust"],
            ),
            (NetworkKind::Sriov, r#"{"resourceName":"x","minTxRate":-1,"vlan":null}"#, &["/minTxRate"]),
            (NetworkKind::SriovIb, "{}", &["/resourceName"]),
            (
                NetworkKind::Ovs,
                r#"{"resourceName":"x","mtu":-5,"trunk":[{"id":4096},{"minID":1,"maxID":2}]}"#,
                &["/trunk/0/id"],
            ),
            (NetworkKind::Ovs, r#"{"resourceName":"x","trunk":{}}"#, &["/trunk"]),
        ] {
            let spec = RawFields::parse(spec).unwrap();
            let paths: Vec<_> = violations(kind, &spec).into_iter().map(|violation| violation.path).collect();
            assert_eq!(paths, want, "{spec:?}");
        }
    }

    #[test]
    fn a_word_is_meant_by_a_boolean_and_in_another_case() {
        for (spec, want) in [
            (r#"{"resourceName":"x","trust":true}"#, Some("on")),
            (r#"{"resourceName":"x","spoofChk":false}"#, Some("off")),
            (r#"{"resourceName":"x","spoofChk":"ON"}"#, Some("on")),
            (r#"{"resourceName":"x","linkState":"Enable"}"#, Some("enable")),
            (r#"{"resourceName":"x","linkState":true}"#, None),
            (r#"{"resourceName":"x","trust":"yes"}"#, None),
            (r#"{"resourceName":"x","trust":1}"#, None),
            // Both cases are allowed, so none of them is meant for certain.
            (r#"{"resourceName":"x","vlanProto":"802.1aD"}"#, None),
            (r#"{"resourceName":"x","vlan":"5"}"#, None),
        ] {
            let spec = RawFields::parse(spec).unwrap();
            let meant: Vec<_> =
                violations(NetworkKind::Sriov, &spec).into_iter().map(|violation| violation.meant).collect();
            assert_eq!(meant, [want], "{spec:?}");
        }
    }

    #[test]
    fn expected_values_are_described() {
        let expected = |kind, spec: &str| {
            let spec = RawFields::parse(spec).unwrap();
            violations(kind, &spec).into_iter().map(|violation| violation.expected).collect::<Vec<_>>()
        };
        for (spec, want) in [
            (r#"{"resourceName":"x","vlan":4095}"#, "a whole number from 0 to 4094"),
            (r#"{"resourceName":"x","minTxRate":-1}"#, "a whole number, not negative"),
            (r#"{"resourceName":"x","trust":"yes"}"#, "one of on, off"),
            (r#"{"resourceName":"x","trust":true}"#, "one of on, off, in quotes"),
            (r#"{"resourceName":"x","ipam":{}}"#, "a string"),
        ] {
            assert_eq!(expected(NetworkKind::Sriov, spec), [want], "{spec}");
        }
        assert_eq!(expected(NetworkKind::Ovs, r#"{"resourceName":"x","mtu":"5"}"#), ["a whole number"]);
    }
}
