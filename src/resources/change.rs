//! Whether a write changes anything that is judged.
//!
//! The API server evaluates the same in CEL before it calls nadmit (`deploy::conditions`); a test against a real API server
//! compares the two.

use std::borrow::Cow;

use super::raw::{FieldValue, RawFields};
use super::{DeviceClaim, Meta, Nad, Network, NetworkNodePolicy, Object, READ_ANNOTATIONS, Workload};
use crate::json::{Document, Kind, Value, unescape};

/// How many owner references are compared individually. The CEL cost is limited, so a longer list must be equal as a whole.
pub const MAX_OWNERS: usize = 32;
/// How long a name, uid, kind or version of an owner reference is compared, in characters; the API server does not limit them.
pub const LONGEST_OWNER: usize = 253;

impl Object<'_> {
    /// Whether this object has the same judged fields as `old`. The garbage collector may remove an owner reference or change its
    /// `blockOwnerDeletion`.
    pub fn keeps_judged_fields(&self, old: &Object<'_>) -> bool {
        self.has_spec_of(old) && has_annotations_of(self.meta(), old.meta()) && !adds_owner(self.meta(), old.meta())
    }

    /// Whether the spec is that of another object.
    pub fn has_spec_of(&self, old: &Object<'_>) -> bool {
        match (self, old) {
            (Self::Nad(new), Object::Nad(old)) => {
                new.config == old.config && new.unknown == old.unknown && new.misshapen == old.misshapen
            }
            (Self::Network(new), Object::Network(old)) => new.spec.is_same(&old.spec) && new.misshapen == old.misshapen,
            (Self::Claim(new), Object::Claim(old)) => new.spec.is_same(&old.spec) && new.misshapen == old.misshapen,
            (Self::NodePolicy(new), Object::NodePolicy(old)) => {
                new.spec.is_same(&old.spec) && new.misshapen == old.misshapen
            }
            (Self::Workload(new), Object::Workload(old)) => new.makes_pods_of(old),
            _ => false,
        }
    }
}

fn has_annotations_of(new: &Meta<'_>, old: &Meta<'_>) -> bool {
    READ_ANNOTATIONS.iter().all(|key| new.annotation(key) == old.annotation(key))
}

fn adds_owner(new: &Meta<'_>, old: &Meta<'_>) -> bool {
    let (new, old) = (new.references(), old.references());
    if new.is_empty() {
        return false;
    }
    if new.len() == old.len() && new.iter().zip(&old).all(|(new, old)| new.is_same(old)) {
        return false;
    }
    if new.len() > MAX_OWNERS || old.len() > MAX_OWNERS {
        return true;
    }
    let is_same = |new: &RawFields<'_>, old: &RawFields<'_>| {
        ["apiVersion", "kind", "name", "uid"].iter().all(|key| match (new.text(key), old.text(key)) {
            (FieldValue::Value(new), FieldValue::Value(old)) => new == old && new.chars().count() <= LONGEST_OWNER,
            _ => false,
        })
    };
    !new.iter().all(|new| old.iter().any(|old| is_same(new, old)))
}

impl Nad<'_> {
    /// The complete value at a JSON pointer; empty if absent.
    pub fn value_at(&self, pointer: &str) -> Cow<'_, str> {
        match pointer {
            "/spec/config" => Cow::Borrowed(self.config.as_deref().unwrap_or_default()),
            _ => of_metadata(&self.meta, pointer),
        }
    }
}

impl Network<'_> {
    /// The complete value at a JSON pointer; empty if absent.
    pub fn value_at(&self, pointer: &str) -> Cow<'_, str> {
        value_in(&self.spec, &self.meta, pointer)
    }
}

impl DeviceClaim<'_> {
    /// The complete value at a JSON pointer; empty if absent.
    pub fn value_at(&self, pointer: &str) -> Cow<'_, str> {
        value_in(&self.spec, &self.meta, pointer)
    }
}

impl NetworkNodePolicy<'_> {
    /// The complete value at a JSON pointer; empty if absent.
    pub fn value_at(&self, pointer: &str) -> Cow<'_, str> {
        value_in(&self.spec, &self.meta, pointer)
    }
}

impl Workload<'_> {
    /// The complete value at a JSON pointer; empty if absent.
    pub fn value_at(&self, pointer: &str) -> Cow<'_, str> {
        value_in(&self.spec, &self.meta, pointer)
    }
}

fn value_in<'o>(spec: &RawFields<'o>, meta: &'o Meta<'_>, pointer: &str) -> Cow<'o, str> {
    let Some(path) = pointer.strip_prefix("/spec/") else { return of_metadata(meta, pointer) };
    let (field, below) = path.split_once('/').unwrap_or((path, ""));
    let raw = spec.raw(&unescape(field)).unwrap_or_default();
    if below.is_empty() {
        return Cow::Borrowed(raw);
    }
    let Ok(document) = Document::parse(raw) else { return Cow::Borrowed(raw) };
    let value = below.split('/').try_fold(&document.root, |value, token| child(value, &unescape(token)));
    Cow::Owned(value.and_then(|value| raw.get(value.span.range())).unwrap_or_default().to_owned())
}

fn child<'v, 't>(value: &'v Value<'t>, token: &str) -> Option<&'v Value<'t>> {
    match &value.kind {
        Kind::Array(elements) => elements.get(token.parse::<usize>().ok()?),
        Kind::Object(members) => members.iter().rfind(|member| member.key == token).map(|member| &member.value),
        _ => None,
    }
}

fn of_metadata<'m>(meta: &'m Meta<'_>, pointer: &str) -> Cow<'m, str> {
    match pointer {
        "/metadata/name" => Cow::Borrowed(&meta.name),
        "/metadata/namespace" => Cow::Borrowed(&meta.namespace),
        _ => {
            let key = pointer.strip_prefix("/metadata/annotations/").map(unescape);
            Cow::Borrowed(key.and_then(|key| meta.raw_annotation(&key)).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nad(metadata: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{{"name":"n"{metadata}}}{spec}}}"#
        )
    }

    fn network(metadata: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{{"name":"n"{metadata}}}{spec}}}"#
        )
    }

    fn references(uids: std::ops::Range<usize>, more: &str) -> String {
        let one = |uid: usize| format!(r#"{{"apiVersion":"v1","kind":"Pod","name":"p","uid":"{uid}"{more}}}"#);
        format!(r#","ownerReferences":[{}]"#, uids.map(one).collect::<Vec<_>>().join(","))
    }

    /// The same owner reference many times.
    fn repeated(times: usize) -> String {
        let one = r#"{"apiVersion":"v1","kind":"Pod","name":"p","uid":"0"}"#;
        format!(r#","ownerReferences":[{}]"#, vec![one; times].join(","))
    }

    fn claim(more: &str) -> String {
        let kind = r#""apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim""#;
        format!(r#"{{{kind},"metadata":{{"name":"c"}},"spec":{{"devices":{{}}{more}}}}}"#)
    }

    /// Owner references with names of that length.
    fn long(uids: std::ops::Range<usize>, length: usize) -> String {
        references(uids, "").replace(r#""p""#, &format!(r#""{}""#, "é".repeat(length)))
    }

    #[test]
    fn compares_only_fields_that_rules_read() {
        let config = r#","spec":{"config":"{}"}"#;
        let annotated = |key: &str, value: &str| format!(r#","annotations":{{"{key}":{value}}}"#);
        let block = r#","blockOwnerDeletion":false"#;
        let name = |value: &str| annotated("k8s.v1.cni.cncf.io/resourceName", value);
        for (old, new, want) in [
            (nad("", config), nad(r#","labels":{"a":"b"},"finalizers":["f"],"deletionTimestamp":"t""#, config), true),
            (nad("", config), nad(&annotated("a", r#""b""#), config), true),
            (nad("", config), nad("", r#","spec":{"config":"{ }"}"#), false),
            (nad("", config), nad("", ""), false),
            (nad("", ""), nad("", r#","spec":{"config":""}"#), false),
            (nad(&name(r#""a.io/b""#), config), nad(&name(r#""a.io\/b""#), config), true),
            (nad(&name(r#""a.io/b""#), config), nad(&name(r#""a.io/c""#), config), false),
            (nad("", config), nad(&name(r#""""#), config), false),
            (
                nad(&references(0..2, ""), config),
                nad(&references(1..2, r#","blockOwnerDeletion":false"#), config),
                true,
            ),
            (nad(&references(0..2, ""), config), nad("", config), true),
            (nad(&references(0..1, ""), config), nad(&references(0..2, ""), config), false),
            (nad(&references(0..40, ""), config), nad(&references(0..40, ""), config), true),
            (nad(&references(0..40, ""), config), nad(&references(0..39, ""), config), false),
            (nad(&references(0..40, ""), config), nad("", config), true),
            (nad(&long(0..2, 253), config), nad(&long(0..1, 253), config), true),
            (nad(&long(0..2, 254), config), nad(&long(0..2, 254), config), true),
            (nad(&long(0..2, 254), config), nad(&long(0..1, 254), config), false),
            (network("", r#","spec":{"vlan":1,"a":null}"#), network("", r#","spec":{"vlan":1}"#), true),
            (network("", r#","spec":{"vlan":1,"a":"b"}"#), network("", r#","spec":{"a":"\u0062","vlan":1}"#), true),
            (network("", r#","spec":{"vlan":1}"#), network("", r#","spec":{"vlan":2}"#), false),
            (network("", r#","spec":{"vlan":1}"#), network("", r#","spec":{"vlan":1,"trust":"on"}"#), false),
            (
                network("", ""),
                network(&annotated("operator.sriovnetwork.openshift.io/last-network-namespace", r#""x""#), ""),
                false,
            ),
            (nad("", ""), network("", ""), false),
            (nad("", config), nad("", r#","spec":{"config":"{}","a":1}"#), false),
            (nad("", r#","spec":5"#), nad("", ""), false),
            (network("", r#","spec":5"#), network("", ""), false),
            (claim(""), claim(""), true),
            (claim(r#","a":1"#), claim(""), false),
            (claim("").replace("{\"devices\":{}}", "5"), claim("").replace("{\"devices\":{}}", "null"), false),
            (nad(&references(0..32, ""), config), nad(&references(0..32, block), config), true),
            (nad(&references(0..33, ""), config), nad(&references(0..32, block), config), false),
            (nad(&references(0..1, ""), config), nad(&repeated(32), config), true),
            (nad(&references(0..1, ""), config), nad(&repeated(33), config), false),
        ] {
            let [old, new] = [&old, &new].map(|json| Object::read(json).unwrap().unwrap());
            assert_eq!(new.keeps_judged_fields(&old), want, "{old:?}\n{new:?}");
        }
    }

    #[test]
    fn value_at_reads_claims_and_nads_too() {
        let json = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":{"requests":[]}}}"#;
        let Ok(Some(Object::Claim(claim))) = Object::read(json) else { panic!("a claim") };
        assert_eq!(claim.value_at("/spec/devices/requests"), "[]");
        assert_eq!(claim.value_at("/metadata/name"), "c");
        let json = nad("", r#","spec":{"config":"{}"}"#);
        let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("a NAD") };
        assert_eq!([nad.value_at("/spec/config"), nad.value_at("/metadata/name")], ["{}", "n"]);
    }

    #[test]
    fn value_at_returns_the_complete_value() {
        let json = network(
            r#","namespace":"s","annotations":{"a/b":5}"#,
            r#","spec":{"ipam":"x","trunk":[{"id":1},{"id":{"a":2}}]}"#,
        );
        let Ok(Some(Object::Network(network))) = Object::read(&json) else { panic!("a network") };
        for (pointer, want) in [
            ("/spec/ipam", r#""x""#),
            ("/spec/trunk/1/id", r#"{"a":2}"#),
            ("/spec/trunk/2/id", ""),
            ("/spec", ""),
            ("/metadata/name", "n"),
            ("/metadata/namespace", "s"),
            ("/metadata/annotations/a~1b", "5"),
            ("/metadata/labels", ""),
        ] {
            assert_eq!(network.value_at(pointer), want, "{pointer}");
        }
    }

    #[test]
    fn value_of_a_nad_is_its_config_or_an_annotation() {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n",
            "annotations":{"a/b":"c"}},"spec":{"config":"{}"}}"#;
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("a NAD") };
        for (pointer, want) in [("/spec/config", "{}"), ("/metadata/annotations/a~1b", "\"c\""), ("/spec/x", "")] {
            assert_eq!(nad.value_at(pointer), want, "{pointer}");
        }
    }
}
