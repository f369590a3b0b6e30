//! SriovNetworkNodePolicy: which devices (PFs) of which nodes get virtual functions (VFs), and under which resource name.

use std::borrow::Cow;

use super::raw::{FieldValue, RawFields, RawObject};
use super::{Meta, Misshapen, name_of};
use crate::json::JsonReader;

/// The name of the kind.
pub const NODE_POLICY_KIND: &str = "SriovNetworkNodePolicy";
/// Node policies in an address of the API server.
pub const NODE_POLICIES: &str = "sriovnetworknodepolicies";
/// The deprecated policy of this name, which the operator ignores.
pub const DEFAULT_NODE_POLICY: &str = "default";
/// How many elements of a list are read, and how long a selector may be, in bytes: caches hold them. A policy with more is not compared
/// with others.
const MAX_SELECTED: usize = 128;
const MAX_SELECTOR_BYTES: usize = 8192;

/// A SriovNetworkNodePolicy.
#[derive(Clone, Debug)]
pub struct NetworkNodePolicy<'a> {
    /// Its metadata.
    pub meta: Meta<'a>,
    /// Its spec, read field by field.
    pub spec: RawFields<'a>,
    /// What has a wrong type in metadata, or a spec that is none.
    pub misshapen: Vec<Misshapen>,
}

impl<'a> NetworkNodePolicy<'a> {
    /// Reads a policy. The items of a list of the API server do not state their kind.
    pub fn of_list(json: &'a str) -> Option<Self> {
        JsonReader::whole(json, RawObject::read).ok().map(Self::read)
    }

    pub(super) fn read(head: RawObject<'a>) -> Self {
        let mut misshapen = Vec::new();
        let meta = Meta::of(head.metadata, &mut misshapen);
        let spec = head.spec.or_record("/spec", "an object", &mut misshapen).unwrap_or_default();
        Self { meta, spec, misshapen }
    }

    /// A text field; empty where it is absent, as Go reads it.
    pub fn text(&self, field: &str) -> Cow<'a, str> {
        self.spec.text(field).value().unwrap_or_default()
    }

    /// A number field.
    pub fn integer(&self, field: &str) -> Option<i64> {
        self.spec.integer(field).value()
    }

    /// A boolean field; false where it is absent, as Go reads it, and `None` where it is no boolean.
    pub fn flag(&self, field: &str) -> Option<bool> {
        match self.spec.raw(field) {
            None | Some("false") => Some(false),
            Some("true") => Some(true),
            Some(_) => None,
        }
    }

    /// Whether the operator ignores it, because it has the name of the deprecated default policy.
    pub fn is_ignored(&self) -> bool {
        self.meta.name == DEFAULT_NODE_POLICY
    }

    /// Which PFs it selects; `None` if that cannot be read, or if it is too long to be compared.
    pub fn nic_selector(&self) -> Option<NicSelector> {
        match self.spec.raw("nicSelector") {
            None => Some(NicSelector::default()),
            Some(raw) if raw.len() > MAX_SELECTOR_BYTES => None,
            Some(raw) => NicSelector::read(&RawFields::parse(raw).ok()?),
        }
    }

    /// The labels that nodes must have, sorted; `None` if they cannot be read.
    pub fn node_selector(&self) -> Option<Vec<(Box<str>, Box<str>)>> {
        let Some(raw) = self.spec.raw("nodeSelector") else { return Some(Vec::new()) };
        let labels = RawFields::parse(raw).ok().filter(|_| raw.len() <= MAX_SELECTOR_BYTES)?;
        let mut found = Vec::new();
        for key in labels.keys() {
            found.push((name_of(key).into(), name_of(&labels.text(key).value()?).into()));
        }
        found.sort_unstable();
        found.dedup();
        (found.len() <= MAX_SELECTED).then_some(found)
    }
}

/// The conditions of a policy on a PF, all of which must hold; those that are absent or empty always do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NicSelector {
    /// The vendor, such as `8086`.
    pub vendor: Box<str>,
    /// The model, such as `158b`.
    pub device_id: Box<str>,
    /// PCI addresses, one of which must be the PF's.
    pub root_devices: Vec<Box<str>>,
    /// Names, one of which must be the PF's, each with the VFs that are meant.
    pub pf_names: Vec<PfName>,
    /// The network of a virtual machine that the PF is on.
    pub net_filter: Box<str>,
}

/// An element of `pfNames`, such as `ens1` or `ens1#0-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfName {
    /// The name of the PF, or an alternative name.
    pub name: Box<str>,
    /// The VFs that are meant.
    pub vfs: NamedVfs,
}

/// Which VFs of a PF an element of `pfNames` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedVfs {
    /// All of them.
    All,
    /// The first and the last.
    Range(i64, i64),
    /// The operator cannot read it.
    Unreadable,
}

impl NicSelector {
    fn read(fields: &RawFields<'_>) -> Option<Self> {
        let text = |key| match fields.text(key) {
            FieldValue::Absent => Some(Box::default()),
            FieldValue::Value(text) => Some(name_of(&text).into()),
            FieldValue::Wrong(_) => None,
        };
        Some(Self {
            vendor: text("vendor")?,
            device_id: text("deviceID")?,
            root_devices: texts(fields, "rootDevices")?,
            pf_names: texts(fields, "pfNames")?.iter().map(|text| PfName::parse(text)).collect(),
            net_filter: text("netFilter")?,
        })
    }

    /// Whether it has no condition: then it selects nothing.
    pub fn is_empty(&self) -> bool {
        self.vendor.is_empty() && self.device_id.is_empty() && self.net_filter.is_empty() && self.names_none()
    }

    /// Whether it names no PF, neither by name nor by address.
    pub fn names_none(&self) -> bool {
        self.root_devices.is_empty() && self.pf_names.is_empty()
    }

    /// The first element of `pfNames` with one of these names, and its place in the list: the operator reads no other.
    pub fn entry(&self, is_named: impl Fn(&str) -> bool) -> Option<(usize, &PfName)> {
        self.pf_names.iter().enumerate().find(|(_, entry)| is_named(&entry.name))
    }
}

impl PfName {
    fn parse(text: &str) -> Self {
        let Some((name, range)) = text.split_once('#') else {
            return Self { name: text.into(), vfs: NamedVfs::All };
        };
        let bounds = range.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let vfs = bounds.map_or(NamedVfs::Unreadable, |(from, to)| match (from, to) {
            (0.., 0..) => NamedVfs::Range(from, to),
            _ => NamedVfs::Unreadable,
        });
        Self { name: name.into(), vfs }
    }
}

/// A list of strings.
fn texts(fields: &RawFields<'_>, key: &str) -> Option<Vec<Box<str>>> {
    let mut found: Vec<Box<str>> = Vec::new();
    let Some(raw) = fields.raw(key) else { return Some(found) };
    let mut is_whole = true;
    let read = JsonReader::whole(raw, |reader| {
        reader.elements(|reader| {
            match FieldValue::text(reader)? {
                FieldValue::Value(text) if found.len() < MAX_SELECTED => found.push(name_of(&text).into()),
                _ => is_whole = false,
            }
            Ok(())
        })
    });
    (read.is_ok() && is_whole).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Object;

    fn spec(spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkNodePolicy","metadata":{{"name":"p","namespace":"op"}},"spec":{spec}}}"#
        )
    }

    fn read(json: &str) -> NetworkNodePolicy<'_> {
        let Ok(Some(Object::NodePolicy(policy))) = Object::read(json) else { panic!("{json}") };
        policy
    }

    #[test]
    fn reads_a_policy() {
        let json = spec(
            r#"{"resourceName":"cx7","numVfs":8,"isRdma":true,"needVhostNet":"yes","nodeSelector":{"b":"2","a":"1"},
            "nicSelector":{"vendor":"15b3","rootDevices":["0000:3b:00.0"],"pfNames":["ens1#0-3","ens2"],"netFilter":null}}"#,
        );
        let policy = read(&json);
        assert_eq!((policy.text("resourceName").as_ref(), policy.integer("numVfs")), ("cx7", Some(8)));
        let flags = ["isRdma", "excludeTopology", "needVhostNet"].map(|field| policy.flag(field));
        assert_eq!(flags, [Some(true), Some(false), None]);
        let selector = policy.nic_selector().unwrap();
        assert_eq!((&*selector.vendor, selector.root_devices.len(), selector.pf_names.len()), ("15b3", 1, 2));
        assert!(!selector.is_empty() && !selector.names_none());
        assert_eq!(selector.entry(|name| name == "ens2").map(|(at, _)| at), Some(1));
        let labels = policy.node_selector().unwrap();
        assert_eq!(labels, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    }

    #[test]
    fn names_of_pfs_have_ranges() {
        for (text, name, vfs) in [
            ("ens1", "ens1", NamedVfs::All),
            ("ens1#0-3", "ens1", NamedVfs::Range(0, 3)),
            ("ens1#3-0", "ens1", NamedVfs::Range(3, 0)),
            ("ens1#", "ens1", NamedVfs::Unreadable),
            ("ens1#3", "ens1", NamedVfs::Unreadable),
            ("ens1#a-b", "ens1", NamedVfs::Unreadable),
            ("ens1#0-3#4-7", "ens1", NamedVfs::Unreadable),
            ("ens1#0-3-5", "ens1", NamedVfs::Unreadable),
            ("ens1#-1-3", "ens1", NamedVfs::Unreadable),
            ("", "", NamedVfs::All),
        ] {
            assert_eq!(PfName::parse(text), PfName { name: name.into(), vfs }, "{text}");
        }
    }

    /// What has a wrong type or no bound is not compared with anything.
    #[test]
    fn wrong_types_and_long_lists_are_unknown() {
        let selector = |text: &str| read(&spec(&format!(r#"{{"nicSelector":{text}}}"#))).nic_selector();
        assert!(selector("{}").unwrap().is_empty() && selector("null").unwrap().is_empty());
        for wrong in ["5", r#"{"vendor":8086}"#, r#"{"pfNames":"ens1"}"#, r#"{"pfNames":[5]}"#] {
            assert_eq!(selector(wrong), None, "{wrong}");
        }
        let long = vec![r#""e""#; MAX_SELECTED + 1].join(",");
        assert_eq!(selector(&format!(r#"{{"vendor":"{}"}}"#, "8".repeat(MAX_SELECTOR_BYTES))), None);
        assert_eq!(selector(&format!(r#"{{"pfNames":[{long}]}}"#)), None);
        let nodes = |text: &str| read(&spec(&format!(r#"{{"nodeSelector":{text}}}"#))).node_selector();
        assert_eq!((nodes("null").map(|labels| labels.len()), nodes(r#"{"a":1}"#), nodes("[]")), (Some(0), None, None));
        for odd in ["5", "null", "[]"] {
            let json = spec(odd);
            let policy = read(&json);
            assert!(policy.text("resourceName").is_empty() && policy.node_selector().is_some(), "{odd}");
            assert_eq!(policy.misshapen.len(), usize::from(odd != "null"));
        }
    }
}
