//! What the readers of a config decode: their keys, and the types they take.

use super::super::Action;
use super::super::finding::{Finding, Findings};
use super::super::rule::rule;
use super::super::similar::closest;
use super::nad_config::plugin_type;
use crate::cni::schema::{Decoding, Field, Misfit, Reading, Taken, decoded};
use crate::cni::{Config, Object, Plugin, fold, readers, same_key};
use crate::json::{Kind, Member};

rule! { CAPABILITIES = "nad/capabilities", Deny;
"`capabilities` that are not an object of booleans";
"libcni decodes it as a map of booleans before any plugin runs; one string in it fails every pod." }

rule! { FIELD_TYPE = "nad/field-type", Deny;
"a value of a type its reader cannot decode";
"The plugins decode their config into typed fields and give up on the first that does not fit, for instance a VLAN in quotes. Whole numbers \
may be written as `100.0`; null counts as absent. A key in several spellings is decoded in each of them, so that one bad value among good ones \
fails the pod as well." }

rule! { AMBIGUOUS_KEY = "nad/ambiguous-key", Warn;
"a known key in another case, or twice";
"Go matches keys in any case, and decodes one after the other into the same field: Multus in the order of the text, the plugin in sorted order, \
which ends with the lower-case one. null leaves a text or a number as it was, and objects are merged. What one program shows is then not what \
the other does. The rules look at what the plugin ends up with." }

rule! { UNKNOWN_KEY = "nad/unknown-key", Warn;
"a key the plugin does not know, close to one that it does";
"Plugins ignore what they do not know, so a typing error switches a setting off without a word." }

/// How many unknown keys of an object are compared with the known ones; of more it is said that they were not.
const MOST_UNKNOWN: usize = 200;

/// Looks at every part of a config as its reader does.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    if config.is_list {
        section(config.root, "", &[&[], readers::COMMON, readers::LIST], config.reading, Action::Deny, out);
        list_quirks(config.root, out);
    }
    for plugin in &config.plugins {
        let unknown = section(plugin.written, plugin.kind, &plugin.tables(), config.reading, Action::Deny, out);
        if let Some(own) = readers::plugin(plugin.kind) {
            let is_list_key = |key: &str| readers::LIST.iter().any(|field| same_key(key, field.key));
            let meant = || own.iter().chain(readers::COMMON).map(|field| field.key);
            unknown_keys(unknown.iter().copied().filter(|member| !is_list_key(&member.key)), plugin.kind, meant, out);
        }
        ipam_section(plugin, out);
    }
    if config.plugins.is_empty() && !config.is_list {
        section(config.root, "", &[&[], readers::COMMON], config.reading, Action::Deny, out);
    }
}

/// Looks at the types in a plugin's own keys alone: the text is that of another plugin, which all the rest was said about.
pub(crate) fn check_own_types(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let [own, _] = plugin.tables();
    for taken in Decoding::of(plugin.written, &[own]).taken() {
        types(taken, plugin.written, plugin.kind, Reading::Copy, Action::Deny, out);
    }
}

fn ipam_section(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let Some((_, kind)) = plugin.ipam() else { return };
    let (Some(own), Some(is_sure)) = (readers::ipam(kind), super::ipam::is_run(plugin)) else { return };
    let ceiling = if is_sure { Action::Deny } else { Action::Warn };
    // The keys of the other IPAM plugins are no typing errors; there are rules about them.
    for written in plugin.written.named("ipam").filter_map(|member| Object::of(&member.value)) {
        let unknown = section(written, kind, &[own], Reading::Copy, ceiling, out);
        let unknown = unknown.iter().copied().filter(|member| !readers::is_ipam_key(&member.key));
        unknown_keys(unknown, kind, || own.iter().map(|field| field.key), out);
    }
}

/// What is decoded in a part of the config: types, and keys in two spellings. The first table is that of its reader, who reads a
/// copy; the others are of those who read every part, in the way that is given. Returns the keys that nobody decodes.
fn section<'d>(
    object: Object<'d>,
    reader: &str,
    tables: &[&[Field]],
    reading: Reading,
    ceiling: Action,
    out: &mut Findings<'_>,
) -> Vec<&'d Member<'d>> {
    let decoding = Decoding::of(object, tables);
    for taken in decoding.taken() {
        let (reader, reading) = if taken.table == 0 { (reader, Reading::Copy) } else { ("the CNI library", reading) };
        if taken.second.is_some() || !taken.field.holds.takes(&taken.first.value) {
            types(taken, object, reader, reading, ceiling, out);
        }
        ambiguous(taken, tables, out);
        if taken.field.key == "ipam" && taken.table > 0 {
            ipam_type(object, reading, out);
        }
    }
    decoding.unknown
}

/// The values of a field that its reader cannot decode.
fn types(
    taken: &Taken<'_, '_>,
    object: Object<'_>,
    reader: &str,
    reading: Reading,
    ceiling: Action,
    out: &mut Findings<'_>,
) {
    for misfit in taken.misfits(object, reading) {
        match taken.field.key {
            "capabilities" => capabilities(&misfit, out),
            // The value that counts is looked at with the chain.
            "type" if taken.second.is_some() => other_type(&misfit, object, reading, out),
            // Multus writes over the exact spelling, and leaves every other one.
            key @ "deviceID" => {
                let is_left = |member: &Member<'_>| member.value.span == misfit.value.span && member.key != key;
                if object.named(key).any(is_left) {
                    field_type(&misfit, reader, out).ceiling = ceiling;
                }
            }
            _ if taken.field.is_quiet => {}
            _ => field_type(&misfit, reader, out).ceiling = ceiling,
        }
    }
}

fn capabilities(misfit: &Misfit<'_>, out: &mut Findings<'_>) {
    let message = format!(
        "`capabilities` holds {}, where libcni wants an object of booleans; every pod that uses it fails",
        misfit.value.describe()
    );
    let help = "write an object of booleans: {\"ips\": true, \"mac\": true}";
    out.config(&CAPABILITIES, misfit.value.span, message, help);
}

/// A `type` that cannot be decoded, beside another one.
fn other_type(misfit: &Misfit<'_>, object: Object<'_>, reading: Reading, out: &mut Findings<'_>) {
    let counts = [reading, Reading::Copy].map(|reading| object.get_string("type", reading));
    if !counts.iter().flatten().any(|member| member.value.span == misfit.value.span) {
        plugin_type(misfit.value, "type", out);
    }
}

/// The `type` of the IPAM section, which every reader decodes: the one that counts must be a name, and all of them texts.
fn ipam_type(object: Object<'_>, reading: Reading, out: &mut Findings<'_>) {
    let mut kinds =
        object.named("ipam").filter_map(|member| Object::of(&member.value)).flat_map(|ipam| ipam.named("type"));
    if let (Some(only), None) = (kinds.next(), kinds.next()) {
        plugin_type(&only.value, "ipam.type", out);
        return;
    }
    let folded = fold::field("ipam", &readers::SOME_IPAM, object.members, Reading::Copy);
    let counts = folded.as_ref().and_then(Object::of).and_then(|ipam| ipam.value_of("type"));
    for section in decoded(object.members, reading).into_iter().filter(|member| same_key(&member.key, "ipam")) {
        let Some(members) = section.value.members() else { continue };
        for kind in decoded(members, reading).into_iter().filter(|member| same_key(&member.key, "type")) {
            let is_last = counts.is_some_and(|counts| counts.span == kind.value.span);
            if is_last || kind.value.as_str().is_none() {
                plugin_type(&kind.value, "ipam.type", out);
            }
        }
    }
}
/// Where libcni, at the top of a list, is stricter than every other reader: null is no value there, and one key is a boolean
/// or a word for it.
fn list_quirks(root: Object<'_>, out: &mut Findings<'_>) {
    for key in ["name", "cniVersion", "cniVersions", "disableCheck", "disableGC", "loadOnlyInlinedPlugins"] {
        if let Some(member) = root.get_exact(key).filter(|member| member.value.is_null()) {
            let message = format!("libcni refuses null for `{key}` in a list of plugins; every pod that uses it fails");
            out.config(&FIELD_TYPE, member.value.span, message, "leave it out");
        }
    }
    let Some(member) = root.get_exact("loadOnlyInlinedPlugins") else { return };
    let is_word = |text: &str| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    let fits = match &member.value.kind {
        Kind::Bool(_) | Kind::Null => true,
        Kind::String(text) => is_word(text),
        _ => false,
    };
    if !fits {
        let message =
            "`loadOnlyInlinedPlugins` is neither true nor false: libcni refuses the list, and every pod fails";
        out.config(&FIELD_TYPE, member.value.span, message, "write true or false, without quotes");
    }
}

/// Keys that a reader ignores, where one of its own was meant.
fn unknown_keys<'k, 'd, I: Iterator<Item = &'k str>>(
    unknown: impl Iterator<Item = &'d Member<'d>>,
    reader: &str,
    meant: impl Fn() -> I,
    out: &mut Findings<'_>,
) {
    for (number, member) in unknown.enumerate() {
        // Looking for what was meant costs time; nobody mistypes hundreds of keys.
        if number == MOST_UNKNOWN {
            let message = format!("there are more than {MOST_UNKNOWN} keys that {reader} does not know and ignores");
            out.config(&UNKNOWN_KEY, member.key_span, message, "take them away");
            return;
        }
        if let Some(close) = closest(&member.key, meant()) {
            let message = format!("{reader} does not know `{}` and ignores it", member.key);
            out.config(&UNKNOWN_KEY, member.key_span, message, format!("did you mean `{close}`?"));
        }
    }
}

fn field_type<'o>(misfit: &Misfit<'_>, reader: &str, out: &'o mut Findings<'_>) -> &'o mut Finding {
    let place = out.pointer(misfit.value.span);
    let key = place.rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
    let found = misfit.value.describe();
    let message = format!("`{key}` is {found}, which {reader} cannot decode; every pod that uses it fails");
    out.config(&FIELD_TYPE, misfit.value.span, message, format!("write {}", misfit.wanted))
}

/// A known key that stands in another case, or twice.
fn ambiguous(taken: &Taken<'_, '_>, tables: &[&[Field]], out: &mut Findings<'_>) {
    let is_as_documented =
        taken.first.key == taken.field.key && taken.field.key.starts_with(|c: char| c.is_lowercase());
    if is_as_documented && taken.second.is_none() {
        return;
    }
    // A field of the reader's own that differs from a documented one in case only is not what was meant.
    let meant = tables.iter().copied().flatten().find(|field| same_key(&taken.first.key, field.key));
    let (key, first) = (meant.unwrap_or(taken.field).key, &taken.first.key);
    if let Some(second) = taken.second {
        let message = format!(
            "`{key}` is given more than once, as `{first}` and `{}`: readers disagree on which one counts",
            second.key
        );
        out.config(&AMBIGUOUS_KEY, second.key_span, message, format!("keep one `{key}`"));
    } else if first != key {
        let message = format!("`{first}` is not `{key}`: some readers take it for the same key, others ignore it");
        out.config(&AMBIGUOUS_KEY, taken.first.key_span, message, format!("write `{key}`"));
    }
}
