//! The CNI document in `spec.config`, read as the Go programs read it and edited without touching any other byte.
//!
//! Two kinds of reader matter, and they do not agree (measured with the real programs):
//! - **Multus** decodes the *text* into a struct: keys match in any case, the last one in the text wins. (Where the config
//!   has no name, its helper library first passes it through a map, and the second kind of reading applies.)
//! - **The plugin** gets a copy that went through a Go map: of equal keys the last wins, the keys come out sorted, and of
//!   those that differ only in case the last *in byte order* wins, which is the lower-case one.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod edit;

pub mod mac;
pub mod readers;
pub mod schema;

use crate::json::{Document, Kind, Member, Value};

/// A JSON object, with the ways in which Go programs look a key up in it.
#[derive(Clone, Copy, Debug)]
pub struct Object<'d> {
    /// The value itself, for its place.
    pub value: &'d Value<'d>,
    /// Its members.
    pub members: &'d [Member<'d>],
}

impl<'d> Object<'d> {
    /// The object in a value, if it is one.
    pub fn of(value: &'d Value<'d>) -> Option<Self> {
        value.members().map(|members| Self { value, members })
    }

    /// The member a plugin's struct field ends up with: read from the re-marshalled copy.
    pub fn get(&self, field: &str) -> Option<&'d Member<'d>> {
        // `max_by` keeps the last of equals, as Go keeps the last of exact duplicates.
        self.named(field).max_by(|a, b| a.key.cmp(&b.key))
    }

    /// The member a string field of a struct ends up with when it is decoded from the text itself; null changes nothing.
    pub fn get_in_text(&self, field: &str) -> Option<&'d Member<'d>> {
        self.named(field).filter(|member| !member.value.is_null()).last()
    }

    /// The member a map lookup finds: exact spelling only.
    pub fn get_exact(&self, key: &str) -> Option<&'d Member<'d>> {
        self.members.iter().rfind(|member| member.key == key)
    }

    /// Every member whose key a struct field of this name would accept.
    pub fn named(&self, field: &str) -> impl Iterator<Item = &'d Member<'d>> {
        self.members.iter().filter(move |member| same_key(&member.key, field))
    }

    /// The value a plugin reads, null counting as not there.
    pub fn value_of(&self, field: &str) -> Option<&'d Value<'d>> {
        self.get(field).map(|member| &member.value).filter(|value| !value.is_null())
    }

    /// The string a plugin reads; `None` also where the value is no string.
    pub fn str_of(&self, field: &str) -> Option<&'d str> {
        self.value_of(field).and_then(Value::as_str)
    }

    /// The integer a plugin reads; `None` also where the value is no integer.
    pub fn int_of(&self, field: &str) -> Option<i64> {
        self.value_of(field).and_then(Value::as_int)
    }

    /// The boolean a plugin reads; false where it is absent or none.
    pub fn is_true(&self, field: &str) -> bool {
        self.value_of(field).is_some_and(|value| value.kind == Kind::Bool(true))
    }

    /// The object a plugin reads.
    pub fn object_of(&self, field: &str) -> Option<Self> {
        self.value_of(field).and_then(Self::of)
    }

    /// The list a plugin reads; empty where it is absent or none.
    pub fn list_of(&self, field: &str) -> &'d [Value<'d>] {
        self.value_of(field).and_then(Value::elements).unwrap_or_default()
    }
}

/// Whether Go's JSON decoder takes `key` for the struct field `field`: equal but for case, where the Kelvin sign is a `k`
/// and the long s an `s`.
#[inline]
pub fn same_key(key: &str, field: &str) -> bool {
    // Those two make a key longer than the field it stands for. Nearly every pair is told apart by length or first letter.
    key.len() >= field.len() && begins_alike(key, field) && (key == field || is_same_folded(key, field))
}

#[inline]
fn begins_alike(key: &str, field: &str) -> bool {
    match (key.as_bytes().first(), field.as_bytes().first()) {
        // The two cases of a letter differ in one bit.
        (Some(a), Some(b)) => (a ^ b) & !0x20 == 0 || !a.is_ascii(),
        (_, b) => b.is_none(),
    }
}

#[cold]
fn is_same_folded(key: &str, field: &str) -> bool {
    if key.len() == field.len() {
        return key.eq_ignore_ascii_case(field);
    }
    !key.is_ascii() && key.chars().map(fold).eq(field.chars().map(fold))
}

fn fold(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// One plugin of the chain.
#[derive(Clone, Copy, Debug)]
pub struct Plugin<'d> {
    /// Its part of the config.
    pub object: Object<'d>,
    /// The member that holds its type.
    pub type_member: &'d Member<'d>,
    /// The binary that runs, as the plugin's own copy says it.
    pub kind: &'d str,
    /// The type as Multus reads it from the text, where that is another one.
    pub kind_in_text: Option<&'d str>,
}

impl<'d> Plugin<'d> {
    fn of(value: &'d Value<'d>) -> Option<Self> {
        let object = Object::of(value)?;
        let type_member = object.get("type")?;
        let kind = type_member.value.as_str().filter(|kind| !kind.is_empty())?;
        let in_text = object.get_in_text("type").and_then(|member| member.value.as_str());
        Some(Self { object, type_member, kind, kind_in_text: in_text.filter(|text| *text != kind && !text.is_empty()) })
    }

    /// Whether either reader takes this for a plugin of that type.
    pub fn is(&self, kind: &str) -> bool {
        self.kind == kind || self.kind_in_text == Some(kind)
    }

    /// The IPAM section, if there is one with a type.
    pub fn ipam(&self) -> Option<(Object<'d>, &'d str)> {
        let ipam = self.object.object_of("ipam")?;
        let kind = ipam.str_of("type").filter(|kind| !kind.is_empty())?;
        Some((ipam, kind))
    }
}

/// A config that is a JSON object, and the chain of plugins in it.
#[derive(Clone, Debug)]
pub struct Config<'d> {
    /// The text and its tree.
    pub document: &'d Document<'d>,
    /// The whole document.
    pub root: Object<'d>,
    /// Whether Multus reads it as a list of plugins.
    pub is_list: bool,
    /// The plugins that have a type; one for a single config.
    pub plugins: Vec<Plugin<'d>>,
}

impl<'d> Config<'d> {
    /// Finds the chain as Multus does: a top-level `type` makes it a single config, whatever stands beside it.
    /// `None` if the document is no object.
    pub fn of(document: &'d Document<'d>) -> Option<Self> {
        let root = Object::of(&document.root)?;
        let is_list = multus_get(root, "type").is_none_or(|member| member.value.as_str().is_none_or(str::is_empty));
        let plugins = if is_list {
            let list = root.get_exact("plugins").and_then(|member| member.value.elements()).unwrap_or_default();
            list.iter().filter_map(Plugin::of).collect()
        } else {
            // Multus found a type; the plugin's copy may hold another, or an empty one.
            Plugin::of(root.value).or_else(|| Plugin::of_text(root)).into_iter().collect()
        };
        Some(Self { document, root, is_list, plugins })
    }

    /// The version the plugins are called with; empty where there is none, which means 0.1.0. In a list it is the list's
    /// own, in exactly this spelling, or the highest of `cniVersions` that libcni knows: it is written over each plugin's.
    pub fn cni_version(&self) -> &'d str {
        if !self.is_list {
            return self.root.str_of("cniVersion").unwrap_or_default();
        }
        let exact = |key: &str| self.root.get_exact(key).map(|member| &member.value);
        let own = exact("cniVersion").and_then(Value::as_str).unwrap_or_default();
        let offered = exact("cniVersions").and_then(Value::elements).unwrap_or_default();
        let known = offered.iter().filter_map(Value::as_str).chain([own]);
        let known = known.filter_map(|version| Some((parse_version(version)?, version)));
        let best = known.filter(|(number, _)| *number <= NEWEST_VERSION).max_by_key(|(number, _)| *number);
        if offered.is_empty() { own } else { best.map_or(own, |(_, version)| version) }
    }
}

impl<'d> Plugin<'d> {
    fn of_text(object: Object<'d>) -> Option<Self> {
        let type_member = object.get_in_text("type")?;
        let kind = type_member.value.as_str().filter(|kind| !kind.is_empty())?;
        Some(Self { object, type_member, kind, kind_in_text: None })
    }
}

/// The newest CNI version there is a library for.
const NEWEST_VERSION: [u32; 3] = [1, 1, 0];

/// A version as libcni reads it: up to three numbers.
pub fn parse_version(text: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    let mut parts = text.split('.');
    for (number, part) in numbers.iter_mut().zip(parts.by_ref()) {
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// The member a Multus struct field ends up with.
pub fn multus_get<'d>(root: Object<'d>, field: &str) -> Option<&'d Member<'d>> {
    let named = root.get_exact("name").is_some_and(|member| member.value.as_str() != Some(""));
    if named { root.get_in_text(field) } else { root.get(field).filter(|member| !member.value.is_null()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (bool, Vec<String>) {
        let document = Document::parse(text).unwrap();
        let config = Config::of(&document).unwrap();
        let kinds = config.plugins.iter().map(|plugin| match plugin.kind_in_text {
            Some(other) => format!("{}|{other}", plugin.kind),
            None => plugin.kind.to_owned(),
        });
        (config.is_list, kinds.collect())
    }

    /// What Multus and the plugin make of a config. Each row was run through the real Go code.
    #[test]
    fn reads_the_chain_as_multus_does() {
        for (text, is_list, want) in [
            (r#"{"type":"sriov"}"#, false, &["sriov"] as &[_]),
            (r#"{"Type":"sriov"}"#, false, &["sriov"]),
            (r#"{"TYPE":"sriov"}"#, false, &["sriov"]),
            (r#"{"type":"bridge","Type":"sriov","name":"n"}"#, false, &["bridge|sriov"]),
            (r#"{"Type":"sriov","type":"bridge","name":"n"}"#, false, &["bridge"]),
            (r#"{"type":"a","type":"b"}"#, false, &["b"]),
            (r#"{"type":"sriov","Type":null,"name":"n"}"#, false, &["sriov"]),
            (r#"{"type":"sriov","Type":"","name":"n"}"#, true, &[]),
            (r#"{"type":"sriov","plugins":[{"type":"tuning"}]}"#, false, &["sriov"]),
            (r#"{"type":"","plugins":[{"type":"tuning"}]}"#, true, &["tuning"]),
            (r#"{"type":null,"plugins":[{"type":"tuning"}]}"#, true, &["tuning"]),
            (r#"{"plugins":[{"type":"sriov"},{"type":"tuning"}]}"#, true, &["sriov", "tuning"]),
            (r#"{"plugins":[{"Type":"sriov","type":"bridge"}]}"#, true, &["bridge"]),
            (r#"{"Plugins":[{"type":"sriov"}]}"#, true, &[]),
            (r#"{"plugins":[null,3,{"type":""},{}]}"#, true, &[]),
            (r#"{"plugins":{"type":"sriov"}}"#, true, &[]),
        ] {
            assert_eq!(kinds(text), (is_list, want.iter().map(ToString::to_string).collect()), "{text}");
        }
    }

    #[test]
    fn a_list_has_one_version() {
        for (text, want) in [
            (r#"{"type":"x","cniVersion":"1.0.0"}"#, "1.0.0"),
            (r#"{"type":"x","CNIVersion":"1.0.0"}"#, "1.0.0"),
            (r#"{"type":"x","cniVersions":["1.0.0"]}"#, ""),
            (r#"{"plugins":[],"CNIVersion":"1.0.0"}"#, ""),
            (r#"{"plugins":[],"cniVersion":"0.4.0","cniVersions":["0.4.0","1.1.0","9.0.0"]}"#, "1.1.0"),
            (r#"{"plugins":[],"cniVersions":["1.0"]}"#, "1.0"),
            (r#"{"plugins":[],"cniVersion":"4.0.0","cniVersions":[]}"#, "4.0.0"),
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(Config::of(&document).unwrap().cni_version(), want, "{text}");
        }
    }

    #[test]
    fn a_plugin_reads_the_last_key_in_byte_order() {
        for (text, want) in [
            (r#"{"vlan":5,"VLAN":9999}"#, Some(5)),
            (r#"{"VLAN":9999,"vlan":5}"#, Some(5)),
            (r#"{"vlan":5,"vlan":6}"#, Some(6)),
            (r#"{"Vlan":1,"VLAN":2}"#, Some(1)),
            (r#"{"vLAN":7}"#, Some(7)),
            (r#"{"vlan":null}"#, None),
            (r#"{"vlan":100.0}"#, Some(100)),
            (r#"{"v-lan":1}"#, None),
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(Object::of(&document.root).unwrap().int_of("vlan"), want, "{text}");
        }
        let document = Document::parse("{\"\u{17f}poofch\u{212a}\":\"on\"}").unwrap();
        assert_eq!(Object::of(&document.root).unwrap().str_of("spoofchk"), Some("on"));
    }
}
