//! What the operator makes of a network: the template it fills, and the NAD that comes out.

use super::super::file::Scope;
use super::super::finding::{ConfigPlace, Findings};
use super::super::resource_name::{self, Question};
use super::super::rule::rule;
use super::super::{Facts, Finding};
use super::check_config;
use super::nad_config::dotted;
use super::nad_device::{MALFORMED, MISSING};
use crate::cni::Config;
use crate::json::{Document, Error, Member, line_column};
use crate::resources::{Fault, Nad, Network, Object, Rendered, offset_of_ink, render};

rule! { FRAGMENT = "network/fragment", Deny;
"`ipam`, `capabilities` or `metaPlugins` that do not form JSON in their place";
"The operator pastes the text into the config. Where the result is not JSON it makes no NAD, sets no condition and retries for ever: only its log \
tells. A text that leaves its place and still gives JSON works by luck, and gets a warning." }

rule! { RENDER_UNSAFE = "network/render-unsafe", Deny;
"text that leaves its place in the operator's template";
"The operator pastes names and texts into a YAML template without escaping. A line break or a quote in the wrong place changes the object that it \
then creates with its own rights: other annotations, other labels, another object. Decided by filling the template and reading the result, \
not by looking for characters." }

rule! { AMBIGUOUS_NAME = "network/ambiguous-name", Deny;
"a name or namespace that YAML reads as a number, a boolean or null";
"The operator pastes the name into YAML without quotes. `123` or `on` then is no text any more, the NAD is never made, and nothing but the \
operator's log says so." }

/// The prefix in a rendering where nobody knows it; no rule looks at it there.
pub(super) const USUAL_PREFIX: &str = "openshift.io";

/// The fields whose text the author chooses, and whether the template puts quotes around them.
const TEXTS: &[(&str, bool)] = &[
    ("ipam", false),
    ("capabilities", false),
    ("metaPlugins", false),
    ("logFile", true),
    ("bridge", true),
    ("interfaceType", true),
];

/// Renders the network and judges what comes out.
pub(crate) fn check(network: &Network<'_>, scope: &Scope<'_>, facts: &Facts, out: &mut Findings<'_>) {
    let prefix = scope.prefix(facts);
    let prefix = prefix.as_ref().map_or(USUAL_PREFIX, |prefix| prefix.value);
    let rendered = render(network, prefix);
    let broken = texts_in_place(network, &rendered, out);
    match &rendered.fault {
        None => {}
        // The text that breaks it was named already.
        Some(Fault::NotJson(_)) if broken => {}
        Some(fault) => faulty(network, prefix, fault, out),
    }
    let Some(json) = &rendered.nad else { return };
    let Ok(Some(Object::Nad(nad))) = Object::read(json) else { return };
    for finding in judge_nad(&nad, scope) {
        // The schema's word on the same field is enough.
        let (pointer, place) = origin(network, &rendered, &finding);
        if !out.covers(&super::network::SCHEMA, &pointer) {
            out.moved(finding, pointer, place);
        }
    }
}

/// The findings in the rendered NAD itself.
fn judge_nad(nad: &Nad<'_>, scope: &Scope<'_>) -> Vec<Finding> {
    let text = nad.config.as_deref().unwrap_or_default();
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let mut out = Findings::new(Some(&document));
    super::nad_config::check_object(nad, &mut out);
    if let Some(config) = Config::of(&document) {
        check_config(nad, &config, &mut out);
        let facts = Facts::default();
        resource_name::check(&Question { nad, config: &config, facts: &facts, scope, operator: true }, &mut out);
    }
    // What the NAD lacks is added when the operator writes it, and on the name itself the network has a rule of its own.
    let (mut found, _) = out.into_parts();
    found.retain(|finding| finding.rule != &MISSING && finding.rule != &MALFORMED);
    found
}

/// Each text of the author's must be one value in its place. True if one is not.
fn texts_in_place(network: &Network<'_>, rendered: &Rendered, out: &mut Findings<'_>) -> bool {
    let mut found = false;
    for (field, quoted) in TEXTS {
        let text = network.text(field);
        if text.is_empty() || rendered.fault.as_ref().is_some_and(|fault| !matches!(fault, Fault::NotJson(_))) {
            continue;
        }
        let Err((error, offset)) = in_place(field, &text, *quoted) else { continue };
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
            let message = format!(
                "`{field}` leaves its place in the operator's template ({}) and changes what others say",
                error.problem
            );
            let help = if *quoted { "take the quotes and backslashes out of it" } else { "write one JSON value" };
            out.text(&RENDER_UNSAFE, pointer, place, message, help);
        } else if works {
            let message = format!(
                "`{field}` is more than one JSON value ({}): it adds keys to the config, which works by luck",
                error.problem
            );
            out.text(&FRAGMENT, pointer, place, message, "write one JSON value").at_most_warn();
        } else {
            let message = format!(
                "`{field}` does not form JSON: {}; the operator makes no NAD, and only its log says so",
                error.problem
            );
            let help = match *field {
                "metaPlugins" => "write one or more JSON objects with commas between them",
                _ => "write one JSON object",
            };
            out.text(&FRAGMENT, pointer, place, message, help);
        }
    }
    found
}

/// Whether what the template itself says is said otherwise because of one field: another `type`, another name.
fn changes_others(network: &Network<'_>, rendered: &Rendered, field: &str) -> bool {
    let without = render(&network.without(field), "");
    let (Ok(with), Ok(without)) = (Document::parse(&rendered.config), Document::parse(&without.config)) else {
        return true;
    };
    let (Some(with), Some(without)) = (Config::of(&with), Config::of(&without)) else { return true };
    let own = |key: &str| key == field || key == "plugins";
    let said =
        without.root.members.iter().chain(without.plugins.first().map_or(&[] as &[_], |plugin| plugin.object.members));
    let mut said = said.filter(|member| !own(&member.key));
    let first = with.plugins.first().map(|plugin| plugin.object);
    let becomes = |key: &str| first.and_then(|object| object.get(key)).or_else(|| with.root.get(key));
    let text = |config: &Config<'_>, member: &Member<'_>| {
        let text = config.document.text.get(member.value.span.range()).unwrap_or_default();
        text.split_whitespace().collect::<String>()
    };
    let is_list = !network.text("metaPlugins").is_empty();
    with.is_list != is_list
        || said.any(|member| becomes(&member.key).is_none_or(|now| text(&with, now) != text(&without, member)))
}

/// Whether a text is one JSON value where the template puts it; else the error and its place in the text.
fn in_place(field: &str, text: &str, quoted: bool) -> Result<(), (Error, usize)> {
    let (open, close) = match field {
        _ if quoted => ("\"", "\""),
        "metaPlugins" => ("[", "]"),
        _ => ("", ""),
    };
    // The operator squeezes `ipam`; and YAML folds line breaks away, even inside JSON strings.
    let squeezed: String =
        if field == "ipam" { text.split_whitespace().collect() } else { text.replace(['\n', '\r', '\u{85}'], " ") };
    let whole = format!("{open}{squeezed}{close}");
    let parsed = Document::parse(&whole).map(drop);
    parsed.map_err(|error| {
        let before = whole.get(open.len()..error.offset).unwrap_or_default();
        let ink = before.chars().filter(|character| !character.is_whitespace()).count();
        (error, offset_of_ink(text, ink))
    })
}

/// A rendering that is not the NAD that was meant.
fn faulty(network: &Network<'_>, prefix: &str, fault: &Fault, out: &mut Findings<'_>) {
    if let Fault::NotText(what, found) = fault {
        let in_spec = *what == "namespace" && !network.text("networkNamespace").is_empty();
        let pointer = if in_spec { "/spec/networkNamespace".to_owned() } else { format!("/metadata/{what}") };
        let text = if *what == "name" { network.meta.name.clone() } else { network.target_namespace() };
        let message = format!(
            "the operator's template reads the {what} `{text}` as {found}, not as text: the NAD is never made, and only its log says so"
        );
        out.object(
            &AMBIGUOUS_NAME,
            pointer,
            message,
            "use a name that begins with a letter and is no word for yes, no or nothing",
        );
        return;
    }
    let what = match fault {
        Fault::NotYaml(problem) => format!("it is not YAML any more ({problem})"),
        Fault::Documents(number) => format!("it becomes {number} objects"),
        Fault::Differs(pointer) => format!("`{}` of the NAD becomes something else", dotted(pointer)),
        Fault::NotJson(error) => format!("the config is not JSON any more ({error})"),
        Fault::NotText(..) => return,
    };
    // The culprit is the field without which the rest renders well.
    let fields = ["resourceName", "networkNamespace"].into_iter().chain(TEXTS.iter().map(|(field, _)| *field));
    let culprit = fields.filter(|field| !network.text(field).is_empty()).find(|field| {
        let fault = render(&network.without(field), prefix).fault;
        fault.is_none_or(|fault| matches!(fault, Fault::NotText(..)))
    });
    let (pointer, name) = culprit.map_or(("/spec".to_owned(), "spec"), |field| (format!("/spec/{field}"), field));
    let message =
        format!("`{name}` leaves its place in the operator's template: {what}, made with the operator's rights");
    out.object(&RENDER_UNSAFE, pointer, message, "take line breaks, quotes and `---` lines out of it");
}

/// Where in the network a finding about its rendering belongs.
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
    let start = offset_of_ink(&text, ink);
    let last = rendered.origin(place.span.end.saturating_sub(1).max(place.span.start));
    let end = last.filter(|(other, _)| *other == field).map_or(start, |(_, ink)| offset_of_ink(&text, ink)) + 1;
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
