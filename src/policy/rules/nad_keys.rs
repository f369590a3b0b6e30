//! Rules on the keys and value types that the readers of a config decode.

use super::super::Action;
use super::super::finding::{Finding, Findings};
use super::super::rule::rule;
use super::super::similar::{Suggestion, named_once, suggest};
use super::key_releases;
use super::plugin_type::{PLUGIN_TYPE, plugin_type};
use crate::cni::schema::{DecodedField, Decoding, Field, FieldTable, Misfit, Reading, Type, decoded, first_misfit};
use crate::cni::{CniObject, Config, Plugin, fold, readers, same_key};
use crate::json::{Kind, Member, Value};

rule! { CAPABILITIES = "nad/capabilities", Deny;
    wrong: "`capabilities` is not an object in which every value is true or false.";
    why: "libcni decodes `capabilities` as a map of booleans before it runs any plugin. One value of another type, such as \"true\" in \
        quotes, fails every pod.";
    fix: "Write true or false without quotes, as in {\"ips\": true}.";
}

rule! { FIELD_TYPE = "nad/field-type", Deny;
    wrong: "A value has a type that its plugin cannot decode.";
    why: "Plugins decode their config into typed fields and stop at the first value that does not fit, for example a VLAN id in \
        quotes; every pod that uses the network fails to start. A whole number may be written as `100.0`, and null counts as absent. \
        If a key is given in several spellings, each of them is decoded: one value of a wrong type fails the pod, even if the others \
        are right.";
    fix: "Write a value of the type that the message names.";
    releases: "A wrong value of a key that only newer releases read is denied if the policy names (`versions`) a release that reads \
        it. If the policy names none it is a warning, and for an older release it is not reported.";
}

rule! { AMBIGUOUS_KEY = "nad/ambiguous-key", Warn;
    wrong: "A known key is given twice, or in another case than the plugin's own.";
    why: "The JSON decoder of Go matches keys in any case, and decodes every match into the same field, the last one winning. Multus \
        decodes them in the order of the text; a plugin gets them sorted, which puts the lower-case one last. null leaves a string or \
        a number as it was, and objects are merged. So Multus and the plugin, or a person who reads the config, may see different \
        values. All other rules judge the value that the plugin uses in the end.";
    fix: "Keep one of the keys, in the spelling that the message names.";
}

rule! { UNKNOWN_KEY = "nad/unknown-key", Warn;
    wrong: "A key is unknown to the plugin, and looks like a misspelling of a known one.";
    why: "Plugins ignore unknown keys, so the setting silently has no effect.";
    fix: "Correct the spelling, or remove the key.";
    releases: "Also reported is a key that the release in use does not read yet, if the policy names that release (`versions`).";
}

/// How many unknown keys of an object are checked for misspellings; beyond that, one finding says so.
const MAX_UNKNOWN: usize = 200;

const LIST_REJECTED: &str = "libcni rejects the list; every pod that uses this network fails to start";

/// Checks every part of a config as its reader decodes it.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    if config.is_list {
        section(
            config.root,
            "",
            &[readers::NOTHING, readers::COMMON, readers::LIST],
            config.reading,
            Action::Deny,
            out,
        );
        list_quirks(config.root, out);
    }
    for plugin in &config.plugins {
        let unknown = section(plugin.written, plugin.kind, &plugin.tables(), config.reading, Action::Deny, out);
        if let Some(own) = readers::plugin(plugin.kind) {
            let is_list_key = |key: &str| readers::LIST.iter().any(|field| same_key(key, field.key));
            let meant = || own.iter().chain(readers::COMMON.iter());
            let unknown = unknown.iter().copied().filter(|member| !is_list_key(&member.key));
            unknown_keys(unknown, plugin.written, plugin.kind, meant, out);
        }
        ipam_section(plugin, out);
    }
    if config.plugins.is_empty() && !config.is_list {
        section(config.root, "", &[readers::NOTHING, readers::COMMON], config.reading, Action::Deny, out);
    }
}

/// Checks only the types of a plugin's own keys: the text was already judged as the config of another plugin.
pub(crate) fn check_own_types(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let [own, _] = plugin.tables();
    for taken in Decoding::of(plugin.written, &[own]).decoded_fields() {
        types(taken, plugin.written, plugin.kind, Reading::Copy, Action::Deny, out);
    }
}

fn ipam_section(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let Some((_, kind)) = plugin.ipam() else { return };
    let (Some(own), Some(is_sure)) = (readers::ipam(kind), super::ipam::is_run(plugin)) else { return };
    let ceiling = if is_sure { Action::Deny } else { Action::Warn };
    // The keys of other IPAM plugins are not misspellings; other rules report them.
    for written in plugin.written.named("ipam").filter_map(|member| CniObject::of(&member.value)) {
        let unknown = section(written, kind, &[own], Reading::Copy, ceiling, out);
        let unknown = unknown.iter().copied().filter(|member| !readers::is_ipam_key(&member.key));
        unknown_keys(unknown, written, kind, || own.iter(), out);
    }
    // An IPAM plugin gets the whole config, and some decode more of it than their section.
    let beside = readers::beside_ipam(kind);
    if beside.is_empty() {
        return;
    }
    let misfit = first_misfit(&[beside], plugin.written.members, Reading::Copy);
    if let Some(misfit) = misfit.filter(|misfit| !out.has_at(&FIELD_TYPE, misfit.value.span)) {
        // The plugin that calls it may read the same key from some release on.
        field_type(&misfit, kind, out).in_any_release().ceiling = ceiling;
    }
}

/// Checks one part of the config: types, and keys in two spellings. The first table is that of its own reader, which reads a
/// copy; the others are of those who read every part, in the given order. Returns the keys that no table decodes.
fn section<'d>(
    object: CniObject<'d>,
    reader: &str,
    tables: &[&FieldTable],
    reading: Reading,
    ceiling: Action,
    out: &mut Findings<'_>,
) -> Vec<&'d Member<'d>> {
    let decoding = Decoding::of(object, tables);
    for taken in decoding.decoded_fields() {
        let (reader, reading) = if taken.table == 0 { (reader, Reading::Copy) } else { ("the CNI library", reading) };
        key_releases::check(taken, object, reader, out);
        if taken.second.is_some() || !taken.field.holds.takes(&taken.first.value) {
            types(taken, object, reader, reading, ceiling, out);
        }
        ambiguous(taken, object, tables, out);
        for member in [Some(taken.first), taken.second].into_iter().flatten() {
            // Nearly no config repeats a key. These are sections, and checked as such.
            if matches!(member.value.kind, Kind::Array(_) | Kind::Object(_))
                && !matches!(taken.field.key, "ipam" | "plugins" | "delegates")
                && fold::repeats(&member.value)
            {
                repeated_inside(&taken.field.holds, &member.value, out);
            }
        }
        if taken.field.key == "ipam" {
            ipam_type(object, reading, out);
        }
    }
    decoding.unknown
}

/// The values of a field that its reader cannot decode.
fn types(
    taken: &DecodedField<'_, '_>,
    object: CniObject<'_>,
    reader: &str,
    reading: Reading,
    ceiling: Action,
    out: &mut Findings<'_>,
) {
    for misfit in taken.misfits(object, reading) {
        key_releases::check_nested(taken, &misfit, object, reader, out);
        match taken.field.key {
            "capabilities" => capabilities(&misfit, out),
            // The value that counts is checked with the chain.
            "type" => other_type(&misfit, out),
            // Multus overwrites the exact spelling and leaves every other one.
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
    let headline = format!("`capabilities` holds {}, expected an object of booleans", misfit.value.shown());
    let note = "libcni cannot decode it; every pod that uses this network fails to start";
    let help = "write an object of booleans: {\"ips\": true, \"mac\": true}";
    out.config(&CAPABILITIES, misfit.value.span, headline, note, help);
}

/// A `type` that cannot be decoded, beside another one.
fn other_type(misfit: &Misfit<'_>, out: &mut Findings<'_>) {
    if !out.has_at(&PLUGIN_TYPE, misfit.value.span) {
        plugin_type(misfit.value, "type", out);
    }
}

/// The `type` of the IPAM section, which every reader decodes: the one that counts must be a name, and all of them must be
/// strings.
fn ipam_type(object: CniObject<'_>, reading: Reading, out: &mut Findings<'_>) {
    let mut kinds =
        object.named("ipam").filter_map(|member| CniObject::of(&member.value)).flat_map(|ipam| ipam.named("type"));
    if let (Some(only), None) = (kinds.next(), kinds.next()) {
        plugin_type(&only.value, "ipam.type", out);
        return;
    }
    let folded = fold::field("ipam", &readers::SOME_IPAM, object.members, Reading::Copy);
    let counts = folded.as_ref().and_then(CniObject::of).and_then(|ipam| ipam.value_of("type"));
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
/// At the top of a list libcni is stricter than every other reader: null is an error, and one key is a boolean or its word.
fn list_quirks(root: CniObject<'_>, out: &mut Findings<'_>) {
    for key in ["name", "cniVersion", "cniVersions", "disableCheck", "disableGC", "loadOnlyInlinedPlugins"] {
        if let Some(member) = root.get_exact(key).filter(|member| member.value.is_null()) {
            let headline = format!("`{key}` is null in a list of plugins");
            out.config(&FIELD_TYPE, member.value.span, headline, LIST_REJECTED, format!("remove `{key}`"));
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
        let headline = format!("`loadOnlyInlinedPlugins` is {}, expected true or false", member.value.shown());
        let help = "write true or false, without quotes";
        out.config(&FIELD_TYPE, member.value.span, headline, LIST_REJECTED, help);
    }
}

/// Unknown keys that look like a misspelled key of the reader.
fn unknown_keys<'k, 'd, I: Iterator<Item = &'k Field>>(
    unknown: impl Iterator<Item = &'d Member<'d>>,
    object: CniObject<'d>,
    reader: &str,
    meant: impl Fn() -> I,
    out: &mut Findings<'_>,
) {
    let mut near = Vec::new();
    let mut beyond = None;
    for (number, member) in unknown.enumerate() {
        // Finding the closest key is expensive, and hundreds of unknown keys are not misspellings.
        if number == MAX_UNKNOWN {
            beyond = Some(member);
            break;
        }
        near.extend(suggest(&member.key, meant().map(|field| field.key)).map(|close| (member, close)));
    }
    let named = named_once(near.iter().map(|(_, close)| *close));
    for (member, close) in near {
        let headline = format!("unknown key `{}` for {reader}", member.key);
        let note = format!("{reader} ignores it, so the setting has no effect");
        let help = format!("did you mean `{}`?", close.word);
        let is_meant = named.contains(&close.word) && is_meant(close, member, object, meant());
        let finding = out.config(&UNKNOWN_KEY, member.key_span, headline, note, help);
        finding.replaced_by(is_meant.then_some(close.word));
    }
    if let Some(member) = beyond {
        let headline = format!("more than {MAX_UNKNOWN} keys are unknown to {reader}");
        let note = format!("{reader} ignores them, and nadmit does not check that many for misspellings");
        out.config(&UNKNOWN_KEY, member.key_span, headline, note, "remove the unknown keys");
    }
}

/// Whether a suggested key is certainly the one that is meant: no other one is near, it is not there yet, and it holds such values.
fn is_meant<'k>(
    close: Suggestion<'_>,
    member: &Member<'_>,
    object: CniObject<'_>,
    mut known: impl Iterator<Item = &'k Field>,
) -> bool {
    let Some(field) = known.find(|field| field.key == close.word) else { return false };
    let fits = field.holds.misfit(&member.value, Reading::Copy).is_none();
    close.is_only && fits && object.named(close.word).next().is_none()
}

fn field_type<'o>(misfit: &Misfit<'_>, reader: &str, out: &'o mut Findings<'_>) -> &'o mut Finding {
    let place = out.pointer(misfit.value.span);
    let key = place.rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
    let found = misfit.value.shown();
    let headline = format!("`{key}` is {found}, expected {}", misfit.expected);
    let note = format!("{reader} cannot decode it; every pod that uses this network fails to start");
    out.config(&FIELD_TYPE, misfit.value.span, headline, note, format!("write {}", misfit.expected))
}

/// Keys that are given more than once in the objects within a value.
fn repeated_inside(holds: &Type, value: &Value<'_>, out: &mut Findings<'_>) {
    match (holds, &value.kind) {
        (Type::Pointer(of) | Type::Fresh(of), _) => repeated_inside(of, value, out),
        (Type::List(of), Kind::Array(elements)) => {
            elements.iter().for_each(|element| repeated_inside(of, element, out));
        }
        (Type::Map(of), Kind::Object(members)) => {
            members.iter().for_each(|member| repeated_inside(of, &member.value, out));
        }
        (Type::Object(fields), Kind::Object(_)) => {
            let Some(object) = CniObject::of(value) else { return };
            for taken in Decoding::of(object, &[fields]).decoded_fields() {
                if taken.second.is_some() {
                    ambiguous(taken, object, &[fields], out);
                }
                repeated_inside(&taken.field.holds, &taken.first.value, out);
            }
        }
        _ => {}
    }
}

/// A known key in another case, or given twice.
fn ambiguous(taken: &DecodedField<'_, '_>, object: CniObject<'_>, tables: &[&FieldTable], out: &mut Findings<'_>) {
    let is_as_documented = taken.is_exact && taken.field.key.starts_with(|c: char| c.is_ascii_lowercase());
    if is_as_documented && taken.second.is_none() {
        return;
    }
    // A field that differs only in case from a documented one is not the one that was meant.
    let meant = tables.iter().flat_map(|table| table.iter()).find(|field| same_key(&taken.first.key, field.key));
    let (key, first) = (meant.unwrap_or(taken.field).key, &taken.first.key);
    if let Some(second) = taken.second {
        let headline = format!("`{key}` is given more than once, as `{first}` and `{}`", second.key);
        let note = "Multus and the plugin decode them in a different order and may use different values";
        out.config(&AMBIGUOUS_KEY, second.key_span, headline, note, format!("keep one `{key}`"));
    } else if first != key {
        let headline = format!("`{first}` is not spelled `{key}`");
        let note = "some readers treat it as the same key, others ignore it";
        let finding = out.config(&AMBIGUOUS_KEY, taken.first.key_span, headline, note, format!("write `{key}`"));
        finding.replaced_by(object.named(key).nth(1).is_none().then_some(key));
    }
}

#[cfg(test)]
mod tests;
