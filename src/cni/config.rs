//! The chain of plugins in a config, with the values each of them decodes.

use super::schema::{FieldTable, Reading};
use super::{CniObject, fold, readers};
use crate::json::{Document, Member, Value};

/// One plugin of the chain.
#[derive(Clone, Copy, Debug)]
pub struct Plugin<'d> {
    /// Its part of the config as decoded by the plugin: each key once, with its final value.
    pub object: CniObject<'d>,
    /// Its part of the config as it is written.
    pub written: CniObject<'d>,
    /// The member that holds its type.
    pub type_member: &'d Member<'d>,
    /// The plugin type according to the plugin's own copy.
    pub kind: &'d str,
    /// The type as Multus reads it from the text, where that is another one.
    pub kind_in_text: Option<&'d str>,
    /// The IPAM section as decoded by the IPAM plugin, and its type.
    ipam: Option<(CniObject<'d>, &'d str)>,
}

impl<'d> Plugin<'d> {
    /// The device that its config names.
    pub(crate) fn fixed_device(&self) -> Option<&'d str> {
        let keys: &[&str] = match self.kind {
            "host-device" => &["device", "hwaddr", "kernelpath", "pciBusID"],
            _ => &["deviceID"],
        };
        keys.iter().find_map(|key| self.object.str_of(key).filter(|text| !text.is_empty()))
    }

    /// A plugin that reads what is written; `None` without a type. `folds`: whether the config has a key more than once.
    fn of(value: &'d Value<'d>, folds: bool) -> Option<Self> {
        let written = CniObject::of(value)?;
        let type_member = written.get_string("type", Reading::Copy)?;
        let kind = type_member.value.as_str().filter(|kind| !kind.is_empty())?;
        let in_text = if folds { written.get_string("type", Reading::Text) } else { None };
        let in_text = in_text.and_then(|member| member.value.as_str());
        let kind_in_text = in_text.filter(|text| *text != kind && !text.is_empty());
        Some(Self { object: written, written, type_member, kind, kind_in_text, ipam: ipam_of(written) })
    }

    /// The same config for the program that its text names, if its copy names another one.
    fn in_text(value: &'d Value<'d>) -> Option<Self> {
        let written = CniObject::of(value)?;
        let type_member = written.get_string("type", Reading::Text)?;
        let kind = type_member.value.as_str().filter(|kind| !kind.is_empty())?;
        Some(Self { object: written, written, type_member, kind, kind_in_text: None, ipam: ipam_of(written) })
    }

    /// The IPAM section, if there is one with a type.
    pub fn ipam(&self) -> Option<(CniObject<'d>, &'d str)> {
        self.ipam
    }

    /// The same plugin for a reader that decodes its part of the config differently. The IPAM section stays as the plugin decodes it.
    pub fn with_object(self, object: CniObject<'d>) -> Self {
        Self { object, ..self }
    }

    /// The tables of what is decoded in its part of the config.
    pub fn tables(&self) -> [&'static FieldTable; 2] {
        [readers::plugin(self.kind).unwrap_or(readers::NOTHING), readers::COMMON]
    }

    /// The two values it reads where keys are repeated: its part of the config, and its IPAM section.
    fn views(&self) -> [Value<'static>; 2] {
        let object = fold::object(&self.tables(), self.written.value, Reading::Copy);
        let kind = CniObject::of(&object).and_then(|object| object.object_of("ipam")?.str_of("type"));
        let ipam =
            fold::field("ipam", readers::ipam_type(kind.unwrap_or_default()), self.written.members, Reading::Copy);
        let place = || self.written.get("ipam").map_or(self.written.value.span, |member| member.value.span);
        let ipam = ipam.unwrap_or_else(|| fold::empty(place()));
        [object, ipam]
    }

    /// The same plugin with those two values.
    fn reading(self, object: &'d Value<'d>, section: &'d Value<'d>) -> Self {
        let object = CniObject::of(object).unwrap_or(self.object);
        let kind = ipam_of(object).map(|(_, kind)| kind);
        Self { object, ipam: CniObject::of(section).zip(kind), ..self }
    }
}

fn ipam_of(object: CniObject<'_>) -> Option<(CniObject<'_>, &str)> {
    let ipam = object.object_of("ipam")?;
    let kind = ipam.text_of("type")?;
    Some((ipam, kind))
}

/// A config that is a JSON object, and the chain of plugins in it.
#[derive(Clone, Debug)]
pub struct Config<'d> {
    /// The text and its tree.
    pub document: &'d Document<'d>,
    /// The whole document.
    pub root: CniObject<'d>,
    /// How Multus reads it.
    pub reading: Reading,
    /// Whether Multus reads it as a list of plugins.
    pub is_list: bool,
    /// The plugins that have a type; one for a single config.
    pub plugins: Vec<Plugin<'d>>,
    /// Other configs that are run: the same text as the program that another of its types names, and the delegates of a `multus`.
    pub others: Vec<Self>,
    /// A nested delegate, which is not judged.
    pub nested_delegate: Option<CniObject<'d>>,
}

impl<'d> Config<'d> {
    /// Finds the chain like Multus: a top-level `type` makes it a single config. `None` if the document is not an object.
    pub fn of(document: &'d Document<'d>) -> Option<Self> {
        let root = CniObject::of(&document.root)?;
        let is_named = root.get_exact("name").is_some_and(|member| member.value.as_str() != Some(""));
        let reading = if is_named { Reading::Text } else { Reading::Copy };
        let folds = fold::repeats(root.value);
        let mut first = Self::of_root(document, root, reading, folds);
        let delegates = Self::read(std::slice::from_mut(&mut first), document, 0, folds);
        let of_delegate = |root| Self::of_root(document, root, Reading::Copy, folds);
        first.others = first.in_other_type().into_iter().chain(delegates.into_iter().map(of_delegate)).collect();
        first.nested_delegate = Self::read(&mut first.others, document, 1, folds).into_iter().next();
        Some(first)
    }

    fn of_root(document: &'d Document<'d>, root: CniObject<'d>, reading: Reading, folds: bool) -> Self {
        let kind = root.get_string("type", reading);
        let is_list = kind.is_none_or(|member| member.value.as_str().is_none_or(str::is_empty));
        let plugins = if is_list {
            let list = root.get_exact("plugins").and_then(|member| member.value.elements()).unwrap_or_default();
            list.iter().filter_map(|plugin| Plugin::of(plugin, folds)).collect()
        } else {
            // Multus found a type; the plugin's copy may hold another, or an empty one.
            Plugin::of(root.value, folds).or_else(|| Plugin::in_text(root.value)).into_iter().collect()
        };
        Self { document, root, reading, is_list, plugins, others: Vec::new(), nested_delegate: None }
    }

    /// A single config whose types disagree may run as either program: which one depends on whether Multus writes a device
    /// into it first.
    fn in_other_type(&self) -> Option<Self> {
        let is_divided = !self.is_list && self.plugins.iter().any(|plugin| plugin.kind_in_text.is_some());
        if !is_divided {
            return None;
        }
        let plugin = Plugin::in_text(self.root.value)?;
        Some(Self { plugins: vec![plugin], ..self.clone() })
    }

    /// Sets the decoded values of plugins with repeated keys, and returns their delegates.
    fn read(level: &mut [Self], document: &'d Document<'d>, depth: usize, folds: bool) -> Vec<CniObject<'d>> {
        if folds {
            let all = || level.iter().flat_map(|config| &config.plugins);
            let views = document.views(depth, || all().flat_map(Plugin::views).collect()).unwrap_or_default();
            let plugins = level.iter_mut().flat_map(|config| &mut config.plugins);
            for (plugin, views) in plugins.zip(views.chunks_exact(2)) {
                if let [object, ipam] = views {
                    *plugin = plugin.reading(object, ipam);
                }
            }
        }
        level.iter().flat_map(|config| &config.plugins).flat_map(delegates).collect()
    }

    /// Whether this is the same text, read as the config of another program.
    pub fn is_same_text(&self, other: &Self) -> bool {
        self.root.value.span == other.root.value.span
    }

    /// The version the plugins are called with; empty where there is none, which means 0.1.0. In a list it is the list's
    /// own, in exactly this spelling, or the highest of `cniVersions` that libcni knows: it is written over each plugin's.
    pub fn cni_version(&self) -> &'d str {
        if !self.is_list {
            let own = self.plugins.first().map_or(self.root, |plugin| plugin.object);
            return own.str_of("cniVersion").unwrap_or_default();
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

/// The delegates of a `multus`; with a `clusterNetwork` it ignores them.
fn delegates<'d>(plugin: &Plugin<'d>) -> impl Iterator<Item = CniObject<'d>> {
    let is_multus = matches!(plugin.kind, "multus" | "multus-shim");
    let reads = is_multus && plugin.object.str_of("clusterNetwork").is_none_or(str::is_empty);
    let list = if reads { plugin.object.list_of("delegates") } else { &[] };
    list.iter().filter_map(CniObject::of)
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

    /// How Multus and the plugin read a config. Each row was run through the real Go code.
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
}
