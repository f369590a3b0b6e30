//! Rules on the NAD that the operator renders from a network.

use super::super::finding::{ConfigPlace, Findings};
use super::super::ratchet::{JudgedObject, Ratchet};
use super::super::resource_name::{self, ResourceNameCheck};
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::{Action, Facts, Finding};
use super::check_config;
use super::nad_config::dotted;
use super::nad_device::{MALFORMED, MISSING};
use super::neighbours;
use super::network::SCHEMA;
use crate::cni::{CniObject, Config, same_key};
use crate::json::{Document, Error, Kind, Member, Value, line_column};
use crate::resources::{Nad, Network, RenderFault, Rendered, offset_of_nonblank, render};

rule! { FRAGMENT = "network/fragment", Deny;
    wrong: "`ipam`, `capabilities` or `metaPlugins` is not valid JSON.";
    why: "The operator inserts these texts into the config of the NAD. If the result is not JSON, it creates no NAD, sets no \
        condition, and retries indefinitely; only its log shows the error. A text that closes its own value early and still gives \
        valid JSON works only by chance, and is a warning.";
    fix: "Correct the JSON at the place that the message names. `ipam` and `capabilities` are each one JSON object; `metaPlugins` is \
        one or more objects between commas.";
}

rule! { RENDER_UNSAFE = "network/render-unsafe", Deny;
    wrong: "A text of the network changes other parts of the NAD that the operator creates.";
    why: "The operator inserts names and texts into a YAML template without escaping them. With a line break or a quote in the wrong \
        place, it then creates with its own rights what the author wants: other annotations, other labels, another object. nadmit \
        fills in the template as the operator does, parses the result and compares it with what the fields should give; it does not \
        search for characters.";
    fix: "Remove the line breaks, quotes and `---` lines from the field that the message names.";
}

rule! { AMBIGUOUS_NAME = "network/ambiguous-name", Deny;
    wrong: "YAML reads the name or namespace as a number, a boolean or null.";
    why: "The operator inserts the name into its YAML template without quotes, where `123` or `on` is not a string. The NAD is never \
        created, and only the operator's log shows why.";
    fix: "Use a name that starts with a letter, and is not one of the YAML words such as on, off, yes, no and null.";
}

/// The prefix used in a rendering if it is not known; no rule reads it then.
pub(super) const DEFAULT_PREFIX: &str = "openshift.io";

/// The fields whose text the author chooses, and whether the template puts quotes around them.
const TEXTS: &[(&str, bool)] = &[
    ("ipam", false),
    ("capabilities", false),
    ("metaPlugins", false),
    ("vlanProto", true),
    ("logLevel", true),
    ("logFile", true),
    ("bridge", true),
    ("interfaceType", true),
];

/// The NAD that the operator renders from a network, with the prefix that is known or assumed.
pub(in crate::policy) fn rendered(network: &Network<'_>, scope: &NamespaceScope<'_>, facts: &Facts) -> Rendered {
    let prefix = scope.prefix(facts);
    render(network, prefix.as_ref().map_or(DEFAULT_PREFIX, |prefix| prefix.value))
}

/// Renders the network and judges the result; `is_write`: whether it is being written.
pub(crate) fn check(
    network: &Network<'_>,
    is_write: bool,
    scope: &NamespaceScope<'_>,
    facts: &Facts,
    out: &mut Findings<'_>,
) {
    let rendered = rendered(network, scope, facts);
    let broken = check_fragments(network, &rendered, out);
    match &rendered.fault {
        None => {}
        // The text that breaks it was already reported.
        Some(RenderFault::NotJson(_)) if broken => {}
        Some(fault) => {
            let prefix = scope.prefix(facts);
            faulty(network, prefix.as_ref().map_or(DEFAULT_PREFIX, |prefix| prefix.value), fault, out);
        }
    }
    let Some(nad) = rendered.nad() else { return };
    // A denial by the schema is enough for a field; one that only warns, or is switched off, hides no other denial.
    let schema_denies = scope.action(&SCHEMA).unwrap_or(SCHEMA.default) == Action::Deny;
    let about = |nad: &Nad<'_>, config: &Config<'_>, out: &mut Findings<'_>| {
        neighbours::check(nad, config, (&network.meta.namespace, is_write), facts, out);
    };
    for finding in judge_nad(&nad, scope, &about, out) {
        let (pointer, place) = origin(network, &rendered, &finding);
        if !(schema_denies && out.covers(&SCHEMA, &pointer)) {
            out.add_relocated(finding, pointer, place);
        }
    }
}

/// The same for a network with a foreign target namespace: only template injection is checked.
pub(crate) fn check_foreign(network: &Network<'_>, scope: &NamespaceScope<'_>, facts: &Facts, out: &mut Findings<'_>) {
    let mut all = Findings::new(JudgedObject::Network(network), None, Ratchet::Off, &scope.policy.versions);
    check(network, false, scope, &Facts { neighbours: Vec::new(), ..facts.clone() }, &mut all);
    for finding in all.into_parts().0.into_iter().filter(|finding| finding.rule == &RENDER_UNSAFE) {
        let (pointer, place) = (finding.pointer.clone(), finding.config.clone());
        out.add_relocated(finding, pointer, place);
    }
}

/// The findings in the rendered NAD itself, with those beside other NADs.
fn judge_nad(
    nad: &Nad<'_>,
    scope: &NamespaceScope<'_>,
    check_neighbours: &dyn Fn(&Nad<'_>, &Config<'_>, &mut Findings<'_>),
    out: &mut Findings<'_>,
) -> Vec<Finding> {
    let text = nad.config.as_deref().unwrap_or_default();
    let parsed = Document::parse(text);
    let mut found = out.of_rendered(nad, parsed.as_ref().ok(), |out| {
        super::nad_config::check_object(nad, out);
        match &parsed {
            // What cannot be parsed is never accepted.
            Err(error) => super::nad_config::unreadable(text, *error, out),
            Ok(document) => {
                let Some(config) = Config::of(document) else { return };
                check_config(nad, &config, out);
                check_neighbours(nad, &config, out);
                let facts = Facts::default();
                resource_name::check(
                    &ResourceNameCheck { nad, config: &config, facts: &facts, scope, operator: true },
                    out,
                );
            }
        }
    });
    // A missing name is added when the operator writes the NAD, and the network has its own rule on the name.
    found.retain(|finding| finding.rule != &MISSING && finding.rule != &MALFORMED);
    found
}

/// Each text of the author must be one value at its position. True if one is not.
fn check_fragments(network: &Network<'_>, rendered: &Rendered, out: &mut Findings<'_>) -> bool {
    let mut found = false;
    for (field, quoted) in TEXTS {
        let text = network.text(field);
        if text.is_empty() || rendered.fault.as_ref().is_some_and(|fault| !matches!(fault, RenderFault::NotJson(_))) {
            continue;
        }
        let Err((error, offset)) = single_value(field, &text, *quoted) else { continue };
        // A field that this kind of network does not have is not rendered.
        if !crate::resources::crd::fields(network.kind).iter().any(|known| known.name == *field) {
            continue;
        }
        found = true;
        let (line, column) = line_column(&text, offset);
        let place = ConfigPlace { pointer: String::new(), span: offset..(offset + 1).min(text.len()), line, column };
        let pointer = format!("/spec/{field}");
        let works = rendered.fault.is_none();
        if *quoted || (works && changes_others(network, rendered, field)) {
            let headline = format!("`{field}` injects into the operator's template ({})", error.problem);
            let note = "it changes other fields of the NAD, which the operator creates with its own rights";
            let help = if *quoted { "remove quotes and backslashes" } else { "write one JSON value" };
            out.text(&RENDER_UNSAFE, pointer, place, headline, note, help);
        } else if works {
            let headline = format!("`{field}` is more than one JSON value ({})", error.problem);
            let note = "it adds keys to the config, which works only by chance";
            out.text(&FRAGMENT, pointer, place, headline, note, "write one JSON value").at_most_warn();
        } else {
            let headline = format!("`{field}` is not valid JSON ({})", error.problem);
            let note = "the operator creates no NAD, and only its log shows it";
            let help = match *field {
                "metaPlugins" => "write one or more JSON objects separated by commas",
                _ => "write one JSON object",
            };
            out.text(&FRAGMENT, pointer, place, headline, note, help);
        }
    }
    found
}

/// Whether one field changes a value that the template sets itself: another `type`, another name. A key in any spelling that Go
/// matches counts, because readers disagree on which of several wins.
fn changes_others(network: &Network<'_>, rendered: &Rendered, field: &str) -> bool {
    let without = render(&network.without(field), "");
    let (Ok(with), Ok(without)) = (Document::parse(&rendered.config), Document::parse(&without.config)) else {
        return true;
    };
    let (Some(with), Some(without)) = (Config::of(&with), Config::of(&without)) else { return true };
    let is_list = !network.text("metaPlugins").is_empty();
    if with.is_list != is_list || (is_list && with.root.named("plugins").count() != 1) {
        return true;
    }
    let own = |key: &str| key == field || key == "plugins";
    levels(&without).flat_map(|object| object.members).filter(|member| !own(&member.key)).any(|own_member| {
        let members = levels(&with).flat_map(|object| object.members);
        let mut becomes = members.filter(|member| same_key(&member.key, &own_member.key)).peekable();
        becomes.peek().is_none() || becomes.any(|member| !is_same(&member.value, &own_member.value))
    })
}

/// Whether two values are equal, regardless of position and indentation.
fn is_same(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Null, Kind::Null) => true,
        (Kind::Bool(one), Kind::Bool(other)) => one == other,
        (Kind::Number(one), Kind::Number(other)) => one == other,
        (Kind::String(one), Kind::String(other)) => one == other,
        (Kind::Array(one), Kind::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Kind::Object(one), Kind::Object(other)) => {
            let is_same_member =
                |one: &Member<'_>, other: &Member<'_>| one.key == other.key && is_same(&one.value, &other.value);
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same_member(one, other))
        }
        _ => false,
    }
}

/// The objects that the template writes: the config, and in a list the first plugin.
fn levels<'d>(config: &Config<'d>) -> impl Iterator<Item = CniObject<'d>> + use<'d> {
    let list = config.root.get_exact("plugins").filter(|_| config.is_list);
    let first = list.and_then(|list| list.value.elements()?.first()).and_then(CniObject::of);
    std::iter::once(config.root).chain(first)
}

/// Whether a text is one JSON value at its position in the template; otherwise the error and its offset in the text.
fn single_value(field: &str, text: &str, quoted: bool) -> Result<(), (Error, usize)> {
    let (open, close) = match field {
        _ if quoted => ("\"", "\""),
        "metaPlugins" => ("[", "]"),
        _ => ("", ""),
    };
    // The operator removes all spaces from `ipam`, and YAML folds line breaks even inside JSON strings.
    let squeezed: String =
        if field == "ipam" { text.split_whitespace().collect() } else { text.replace(['\n', '\r', '\u{85}'], " ") };
    let whole = format!("{open}{squeezed}{close}");
    let parsed = Document::parse(&whole).map(drop);
    parsed.map_err(|error| {
        let before = whole.get(open.len()..error.offset).unwrap_or_default();
        let ink = before.chars().filter(|character| !character.is_whitespace()).count();
        (error, offset_of_nonblank(text, ink))
    })
}

/// Reports a rendering that is not the intended NAD.
fn faulty(network: &Network<'_>, prefix: &str, fault: &RenderFault, out: &mut Findings<'_>) {
    if let RenderFault::NotText(what, found) = fault {
        let in_spec = *what == "namespace" && !network.text("networkNamespace").is_empty();
        let pointer = if in_spec { "/spec/networkNamespace".to_owned() } else { format!("/metadata/{what}") };
        let text = if *what == "name" { network.meta.name.clone() } else { network.target_namespace() };
        let headline = format!("the operator's template reads the {what} `{text}` as {found}, not as a string");
        let note = "the NAD is never created, and only the operator's log shows it";
        let help = "use a name that starts with a letter and is not a YAML word for yes, no or null";
        out.object(&AMBIGUOUS_NAME, pointer, headline, note, help);
        return;
    }
    let what = match fault {
        RenderFault::NotYaml(problem) => format!("the result is not YAML ({problem})"),
        RenderFault::Documents(number) => format!("the result is {number} objects"),
        RenderFault::Differs(pointer) => format!("`{}` of the NAD changes", dotted(pointer)),
        RenderFault::NotJson(error) => format!("the config is not JSON ({error})"),
        RenderFault::NotText(..) => return,
    };
    // The culprit is the field without which the network renders correctly.
    let fields = ["resourceName", "networkNamespace"].into_iter().chain(TEXTS.iter().map(|(field, _)| *field));
    let culprit = fields.filter(|field| !network.text(field).is_empty()).find(|field| {
        let fault = render(&network.without(field), prefix).fault;
        fault.is_none_or(|fault| matches!(fault, RenderFault::NotText(..)))
    });
    let (pointer, name) = culprit.map_or(("/spec".to_owned(), "spec"), |field| (format!("/spec/{field}"), field));
    let headline = format!("`{name}` breaks the operator's template");
    let note = format!("{what}, and the operator applies it with its own rights");
    out.object(&RENDER_UNSAFE, pointer, headline, note, "remove line breaks, quotes and `---` lines");
}

/// Maps a finding in the rendering to the field of the network.
fn origin(network: &Network<'_>, rendered: &Rendered, finding: &Finding) -> (String, Option<ConfigPlace>) {
    let Some(place) = &finding.config else { return (finding.pointer.clone(), None) };
    let Some((field, ink)) = rendered.origin(place.span.start) else { return ("/spec".to_owned(), None) };
    if field == "name" {
        return ("/metadata/name".to_owned(), None);
    }
    let pointer = format!("/spec/{field}");
    if !TEXTS.iter().any(|(known, quoted)| *known == field && !quoted) {
        return (pointer, None);
    }
    let text = network.text(field);
    let start = offset_of_nonblank(&text, ink);
    let last = rendered.origin(place.span.end.saturating_sub(1).max(place.span.start));
    let end = last.filter(|(other, _)| *other == field).map_or(start, |(_, ink)| offset_of_nonblank(&text, ink)) + 1;
    let (line, column) = line_column(&text, start);
    let inner = inner_pointer(&place.pointer, field);
    (pointer, Some(ConfigPlace { pointer: inner, span: start..end.min(text.len()), line, column }))
}

/// The pointer in the field's own JSON: `/plugins/0/ipam/subnet` is `/subnet` in `ipam`.
fn inner_pointer(pointer: &str, field: &str) -> String {
    let tokens = pointer.split('/').skip(1);
    if field == "metaPlugins" {
        let mut rest = tokens.skip(1);
        let index = rest.next().and_then(|index| index.parse::<usize>().ok()).unwrap_or(1).saturating_sub(1);
        return rest.fold(format!("/{index}"), |path, token| format!("{path}/{token}"));
    }
    tokens.skip_while(|token| *token != field).skip(1).fold(String::new(), |path, token| format!("{path}/{token}"))
}

#[cfg(test)]
mod tests;
