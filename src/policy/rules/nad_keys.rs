//! What the readers of a config decode: their keys, and the types they take.

use super::super::Action;
use super::super::finding::{Finding, Findings};
use super::super::rule::rule;
use super::super::similar::closest;
use super::nad_config::plugin_type;
use crate::cni::schema::{Decoding, Field, Misfit, Taken};
use crate::cni::{Config, Object, readers, same_key};
use crate::json::{Kind, Member};

rule! { CAPABILITIES = "nad/capabilities", Deny;
"`capabilities` that are not an object of booleans";
"libcni decodes it as a map of booleans before any plugin runs; one string in it fails every pod." }

rule! { FIELD_TYPE = "nad/field-type", Deny;
"a value of a type its reader cannot decode";
"The plugins decode their config into typed fields and give up on the first that does not fit, for instance a VLAN in quotes. Whole numbers \
may be written as `100.0`; null counts as absent." }

rule! { AMBIGUOUS_KEY = "nad/ambiguous-key", Warn;
"a known key in another case, or twice";
"Go matches keys in any case, and readers disagree on which of two wins: Multus takes the last in the text, the plugin the one that sorts last. \
What one program shows is then not what the other does." }

rule! { UNKNOWN_KEY = "nad/unknown-key", Warn;
"a key the plugin does not know, close to one that it does";
"Plugins ignore what they do not know, so a typing error switches a setting off without a word." }

/// How many unknown keys of an object are looked at.
const MOST_UNKNOWN: usize = 200;

/// Looks at every part of a config as its reader does.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    if config.is_list {
        section(config.root, "", &[&[], readers::COMMON, readers::LIST], Action::Deny, out);
        list_quirks(config.root, out);
    }
    for plugin in &config.plugins {
        let known = readers::plugin(plugin.kind);
        let tables = [known.unwrap_or_default(), readers::COMMON];
        let unknown = section(plugin.object, plugin.kind, &tables, Action::Deny, out);
        if let Some(own) = known {
            let is_list_key = |key: &str| readers::LIST.iter().any(|field| same_key(key, field.key));
            let meant = || own.iter().chain(readers::COMMON).map(|field| field.key);
            unknown_keys(unknown.iter().copied().filter(|member| !is_list_key(&member.key)), plugin.kind, meant, out);
        }
        if let Some((ipam, kind)) = plugin.ipam()
            && let Some(own) = readers::ipam(kind)
            && let Some(is_sure) = super::ipam::is_run(plugin)
        {
            let ceiling = if is_sure { Action::Deny } else { Action::Warn };
            let unknown = section(ipam, kind, &[own], ceiling, out);
            // The keys of the other IPAM plugins are no typing errors; there are rules about them.
            let is_elsewhere =
                |key: &str| readers::IPAM.iter().any(|(_, table)| table.iter().any(|f| same_key(key, f.key)));
            let unknown = unknown.iter().copied().filter(|member| !is_elsewhere(&member.key));
            unknown_keys(unknown, kind, || own.iter().map(|field| field.key), out);
        }
    }
    if config.plugins.is_empty() && !config.is_list {
        section(config.root, "", &[&[], readers::COMMON], Action::Deny, out);
    }
}

/// What is decoded in a part of the config: types, and keys in two spellings. The first table is that of its reader, the others
/// are of those who read every part. Returns the keys that nobody decodes.
fn section<'d>(
    object: Object<'d>,
    reader: &str,
    tables: &[&[Field]],
    ceiling: Action,
    out: &mut Findings<'_>,
) -> Vec<&'d Member<'d>> {
    let decoding = Decoding::of(object, tables);
    for taken in decoding.taken() {
        let reader = if taken.table == 0 { reader } else { "the CNI library" };
        for misfit in taken.misfits(object) {
            field_type(&misfit, reader, out).ceiling = ceiling;
        }
        ambiguous(taken, out);
    }
    if tables.len() > 1 {
        everyones(object, out);
    }
    decoding.unknown
}

/// The two keys that every reader looks into.
fn everyones(object: Object<'_>, out: &mut Findings<'_>) {
    if let Some(ipam) = object.object_of("ipam")
        && let Some(kind) = ipam.get("type")
    {
        plugin_type(&kind.value, "ipam.type", out);
    }
    if let Some(value) = object.value_of("capabilities") {
        let wrong = match &value.kind {
            Kind::Object(members) => members
                .iter()
                .map(|member| &member.value)
                .find(|value| !matches!(value.kind, Kind::Bool(_) | Kind::Null)),
            _ => Some(value),
        };
        if let Some(wrong) = wrong {
            let message = format!(
                "`capabilities` holds {}, where libcni wants an object of booleans; every pod that uses it fails",
                wrong.describe()
            );
            out.config(
                &CAPABILITIES,
                wrong.span,
                message,
                "write an object of booleans: {\"ips\": true, \"mac\": true}",
            );
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
    // Looking for what was meant costs time; nobody mistypes hundreds of keys.
    for member in unknown.take(MOST_UNKNOWN) {
        if let Some(close) = closest(&member.key, meant()) {
            let message = format!("{reader} does not know `{}` and ignores it", member.key);
            out.config(&UNKNOWN_KEY, member.key_span, message, format!("did you mean `{close}`?"));
        }
    }
}

fn field_type<'o>(misfit: &Misfit<'_>, reader: &str, out: &'o mut Findings<'_>) -> &'o mut Finding {
    // Looking for the key takes a walk through the document, which nobody needs for what is not kept.
    let place = if out.is_full(&FIELD_TYPE) { String::new() } else { out.pointer(misfit.value.span) };
    let key = place.rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
    let found = misfit.value.describe();
    let message = format!("`{key}` is {found}, which {reader} cannot decode; every pod that uses it fails");
    out.config(&FIELD_TYPE, misfit.value.span, message, format!("write {}", misfit.wanted))
}

/// A known key that stands in another case, or twice.
fn ambiguous(taken: &Taken<'_, '_>, out: &mut Findings<'_>) {
    let (key, first) = (taken.field.key, &taken.first.key);
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
