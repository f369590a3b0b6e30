//! Rules on the keys and value types that the readers of a config decode.

use super::super::Action;
use super::super::finding::{Finding, Findings};
use super::super::rule::rule;
use super::super::similar::closest;
use super::key_releases;
use super::nad_config::{PLUGIN_TYPE, plugin_type};
use crate::cni::schema::{DecodedField, Decoding, Field, Misfit, Reading, Type, decoded, first_misfit};
use crate::cni::{CniObject, Config, Plugin, fold, readers, same_key};
use crate::json::{Kind, Member, Value};

rule! { CAPABILITIES = "nad/capabilities", Deny;
"`capabilities` that are not an object of booleans";
"libcni decodes it as a map of booleans before any plugin runs; one string in it fails every pod." }

rule! { FIELD_TYPE = "nad/field-type", Deny;
"a value of a type its reader cannot decode";
"The plugins decode their config into typed fields and stop at the first value that does not fit, for example a VLAN in quotes. Whole numbers may be written as `100.0`; null counts as absent. A key in several spellings is decoded once per spelling, so one invalid value among valid ones also fails the pod." }

rule! { AMBIGUOUS_KEY = "nad/ambiguous-key", Warn;
"a known key in another case, or twice";
"Go matches keys in any case and decodes them one after the other into the same field: Multus in the order of the text, the plugin in sorted order, which ends with the lower-case one. null leaves a string or a number unchanged, and objects are merged. So one program may show another value than the other uses. The rules judge the value that the plugin ends up with." }

rule! { UNKNOWN_KEY = "nad/unknown-key", Warn;
"an unknown key that looks like a misspelled one, or one that the release in use does not read";
"Plugins ignore unknown keys, so a misspelled setting silently has no effect. Which releases read a key is known where it was added later; it is reported if the policy names the release in use (`versions`)." }

/// How many unknown keys of an object are checked for misspellings; beyond that, one finding says so.
const MAX_UNKNOWN: usize = 200;

const LIST_REJECTED: &str = "libcni rejects the list; every pod that uses this network fails to start";

/// Checks every part of a config as its reader decodes it.
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
        unknown_keys(unknown, kind, || own.iter().map(|field| field.key), out);
    }
    // An IPAM plugin gets the whole config, and some decode more of it than their section.
    let misfit = first_misfit(&[readers::beside_ipam(kind)], plugin.written.members, Reading::Copy);
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
    tables: &[&[Field]],
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
        ambiguous(taken, tables, out);
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
fn unknown_keys<'k, 'd, I: Iterator<Item = &'k str>>(
    unknown: impl Iterator<Item = &'d Member<'d>>,
    reader: &str,
    meant: impl Fn() -> I,
    out: &mut Findings<'_>,
) {
    for (number, member) in unknown.enumerate() {
        // Finding the closest key is expensive, and hundreds of unknown keys are not misspellings.
        if number == MAX_UNKNOWN {
            let headline = format!("more than {MAX_UNKNOWN} keys are unknown to {reader}");
            let note = format!("{reader} ignores them, and nadmit does not check that many for misspellings");
            out.config(&UNKNOWN_KEY, member.key_span, headline, note, "remove the unknown keys");
            return;
        }
        if let Some(close) = closest(&member.key, meant()) {
            let headline = format!("unknown key `{}` for {reader}", member.key);
            let note = format!("{reader} ignores it, so the setting has no effect");
            out.config(&UNKNOWN_KEY, member.key_span, headline, note, format!("did you mean `{close}`?"));
        }
    }
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
                    ambiguous(taken, &[fields], out);
                }
                repeated_inside(&taken.field.holds, &taken.first.value, out);
            }
        }
        _ => {}
    }
}

/// A known key in another case, or given twice.
fn ambiguous(taken: &DecodedField<'_, '_>, tables: &[&[Field]], out: &mut Findings<'_>) {
    let is_as_documented = taken.is_exact && taken.field.key.starts_with(|c: char| c.is_ascii_lowercase());
    if is_as_documented && taken.second.is_none() {
        return;
    }
    // A field that differs only in case from a documented one is not the one that was meant.
    let meant = tables.iter().copied().flatten().find(|field| same_key(&taken.first.key, field.key));
    let (key, first) = (meant.unwrap_or(taken.field).key, &taken.first.key);
    if let Some(second) = taken.second {
        let headline = format!("`{key}` is given more than once, as `{first}` and `{}`", second.key);
        let note = "Multus and the plugin decode them in a different order and may use different values";
        out.config(&AMBIGUOUS_KEY, second.key_span, headline, note, format!("keep one `{key}`"));
    } else if first != key {
        let headline = format!("`{first}` is not spelled `{key}`");
        let note = "some readers treat it as the same key, others ignore it";
        out.config(&AMBIGUOUS_KEY, taken.first.key_span, headline, note, format!("write `{key}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_UNKNOWN;
    use crate::policy::rules::testing::found;

    #[test]
    fn keys_at_the_top_of_a_list_are_stricter() {
        let list =
            |members: &str| found(&format!(r#"{{"cniVersion":"1.0.0",{members},"plugins":[{{"type":"macvlan"}}]}}"#));
        for good in [
            r#""loadOnlyInlinedPlugins":true"#,
            r#""loadOnlyInlinedPlugins":"True""#,
            r#""loadOnlyInlinedPlugins":"FALSE""#,
            r#""disableCheck":true"#,
        ] {
            assert_eq!(list(good), Vec::<String>::new(), "{good}");
        }
        for (bad, key) in [
            (r#""disableCheck":null"#, "/disableCheck"),
            (r#""disableGC":null"#, "/disableGC"),
            (r#""loadOnlyInlinedPlugins":null"#, "/loadOnlyInlinedPlugins"),
            (r#""loadOnlyInlinedPlugins":1"#, "/loadOnlyInlinedPlugins"),
            (r#""loadOnlyInlinedPlugins":"yes""#, "/loadOnlyInlinedPlugins"),
        ] {
            assert_eq!(list(bad), [format!("nad/field-type deny {key}")], "{bad}");
        }
    }

    /// Every spelling of `type` is decoded, also of one that does not count.
    #[test]
    fn every_type_of_a_section_is_a_string() {
        let ipam = |ipam: &str| found(&format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","master":"eth0",{ipam}}}"#));
        assert_eq!(ipam(r#""ipam":{"type":"dhcp"}"#), Vec::<String>::new());
        assert_eq!(ipam(r#""ipam":{"type":"a/b"}"#), ["nad/plugin-type deny /ipam/type"]);
        assert_eq!(ipam(r#""ipam":{"type":7}"#), ["nad/plugin-type deny /ipam/type"]);
        let null = ipam(r#""ipam":{"type":null}"#);
        assert!(!null.iter().any(|found| found.starts_with("nad/plugin-type")), "{null:?}");
        let two = ipam(r#""ipam":{"TYPE":7,"type":"dhcp"}"#);
        assert!(two.contains(&"nad/plugin-type deny /ipam/TYPE".to_owned()), "{two:?}");
        let both = ipam(r#""IPAM":{"type":"dhcp"},"ipam":{"type":"a/b"}"#);
        assert!(both.iter().any(|found| found.starts_with("nad/plugin-type deny")), "{both:?}");
    }

    /// A config whose types disagree may run as either program, and each has its own keys.
    #[test]
    fn both_programs_decode_their_own_keys() {
        let config = |members: &str| {
            found(&format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov","Type":"bridge",{members}}}"#))
        };
        let has = |found: &[String], want: &str| found.iter().any(|one| one == want);
        assert!(has(&config(r#""isGateway":5"#), "nad/field-type deny /isGateway"));
        assert!(has(&config(r#""vlanQoS":"5""#), "nad/field-type deny /vlanQoS"));
        assert!(!has(&config(r#""isGateway":true,"vlanQoS":5"#), "nad/field-type deny /isGateway"));
    }

    #[test]
    fn only_so_many_unknown_keys_are_compared() {
        let config = |count: usize| {
            let keys: String = (0..count).map(|number| format!(r#","vlna{number}":1"#)).collect();
            format!(r#"{{"cniVersion":"1.0.0","type":"sriov"{keys}}}"#)
        };
        let of = |count| found(&config(count)).iter().filter(|found| found.starts_with("nad/unknown-key")).count();
        assert!(of(MAX_UNKNOWN) <= MAX_UNKNOWN);
        assert_eq!(of(MAX_UNKNOWN + 1), of(MAX_UNKNOWN) + 1);
        assert_eq!(of(MAX_UNKNOWN + 50), of(MAX_UNKNOWN) + 1);
    }

    /// What an IPAM plugin reads beside its section is reported once, even if the plugin that calls it reads the same.
    #[test]
    fn what_is_read_beside_ipam_is_decoded() {
        let config = |kind: &str, members: &str| {
            found(&format!(
                r#"{{"cniVersion":"1.0.0","type":"{kind}",{members},"ipam":{{"type":"host-local","subnet":"10.1.0.0/24"}}}}"#
            ))
        };
        let none: [&str; 0] = [];
        assert_eq!(config("macvlan", r#""args":{"cni":{"ips":["10.1.0.9"]}}"#), none);
        assert_eq!(config("macvlan", r#""args":{"cni":{"ips":"10.1.0.9"}}"#), ["nad/field-type deny /args/cni/ips"]);
        assert_eq!(config("bridge", r#""args":5"#), ["nad/field-type deny /args"]);
        let types = |found: Vec<String>| found.into_iter().filter(|one| one.starts_with("nad/field-type")).count();
        assert_eq!(types(config("bridge", r#""args":5,"isGatewai":true"#)), 1);
        assert_eq!(types(config("bridge", r#""args":{"cni":{"ips":"x"}},"mtu":"x""#)), 2);
    }

    /// The `type` that counts is judged with the chain, every other one here.
    #[test]
    fn every_spelling_of_type_is_decoded() {
        for (members, want) in [
            (r#""type":"macvlan","TYPE":7"#, "/TYPE"),
            (r#""TYPE":7,"type":"macvlan""#, "/TYPE"),
            (r#""TYPE":"macvlan","type":7"#, "/type"),
        ] {
            for (before, after, at) in [("", "", ""), (r#""plugins":[{"#, "}]", "/plugins/0")] {
                let config = format!(r#"{{"cniVersion":"1.0.0","name":"n",{before}"master":"eth0",{members}{after}}}"#);
                let all = found(&config);
                let types: Vec<_> = all.iter().filter(|found| found.starts_with("nad/plugin-type")).collect();
                assert_eq!(types, [&format!("nad/plugin-type deny {at}{want}")], "{config}");
            }
        }
    }

    /// Multus writes `deviceID` itself, in that spelling alone.
    #[test]
    fn a_device_in_another_spelling_is_decoded() {
        for (key, is_denied) in [("deviceID", false), ("deviceId", true)] {
            let found = found(&format!(r#"{{"cniVersion":"1.0.0","type":"sriov","{key}":5}}"#));
            let want = format!("nad/field-type deny /{key}");
            assert_eq!(found.contains(&want), is_denied, "{found:?}");
        }
    }
}
