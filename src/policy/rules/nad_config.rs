//! Rules on a NAD's config that apply to every plugin.

use super::super::finding::{ConfigPlace, Findings};
use super::super::rule::rule;
use super::plugin_type::plugin_type;
use crate::cni::readers::PLUGINS;
use crate::cni::schema::Reading;
use crate::cni::{CniObject, Config, fold, parse_version, same_key};
use crate::json::{self, Kind, Member, Problem, Value, line_column};
use crate::resources::Nad;

rule! { NOT_JSON = "nad/config-not-json", Deny;
    wrong: "`spec.config` is not exactly one JSON object.";
    why: "Multus parses the text when a pod that uses the network starts. If it cannot, the pod hangs in ContainerCreating with \
        \"failed to unmarshal Spec.Config\"; for `null`, Multus panics. An empty or absent config is allowed: Multus then reads a file \
        on the node.";
    fix: "Correct the JSON at the place that the message names. Often it is a comma after the last member, a missing bracket, single \
        quotes, or a comment.";
}

rule! { TOO_LARGE = "nad/config-too-large", Deny;
    wrong: "The config is over 1 MiB, nested deeper than 64 levels, or over 65,536 values.";
    why: "Multus and the plugins would parse all of it for every pod. nadmit stops reading at these limits, so that no config costs it \
        more than a few MiB of memory; what it did not read it cannot judge, and denies. The limits also hold for a `multus` plugin \
        that delegates to another `multus`.";
    fix: "Make the config smaller: a CNI config has a few hundred bytes.";
}

rule! { NO_PLUGIN = "nad/no-plugin", Deny;
    wrong: "The config has no `type`, and no `plugins` list in which every element has one.";
    why: "There is no plugin to run. Multus rejects the config when a pod starts (\"delegate must have the 'type' or 'plugin' \
        field\"); for an empty list, or one with a null in it, Multus panics.";
    fix: "Set `type` to the name of a CNI plugin, in the config or in every element of `plugins`.";
}

rule! { PLUGINS_IGNORED = "nad/plugins-ignored", Warn;
    wrong: "The config has a `plugins` list and also a `type` at the top level.";
    why: "The top-level `type` makes it the config of a single plugin: Multus runs that one, and ignores the list.";
    fix: "Remove the top-level `type` and move its settings into the first element of `plugins`; or remove the list.";
}

rule! { CNI_VERSION = "nad/cni-version", Deny;
    wrong: "The plugins of the config do not support its `cniVersion`.";
    why: "Every plugin compares the version with those that it supports, and rejects an unknown one (\"incompatible CNI versions\"). \
        In a list only the version of the list counts, because libcni overwrites that of each plugin. Before 0.3.0, and without any \
        version, the result of a plugin can hold nothing but addresses: `bridge`, `macvlan`, `ipvlan`, `vlan` and `host-device` fail \
        without `ipam` (\"no valid IP addresses\"). For `sriov`, `ib-sriov` and `ovs` this is not known for certain, and is a warning.";
    fix: "Use 1.0.0; or 0.4.0 if a plugin is too old for 1.0.0.";
    releases: "Versions 1.0.0 and 1.1.0 are denied if the policy names (`versions`) a release of the plugin, its IPAM plugin or Multus \
        that does not support them yet.";
}

rule! { NETWORK_NAME = "nad/network-name", Deny;
    wrong: "The `name` of the config has characters that the CNI library does not allow.";
    why: "The name becomes part of file names on the node. The CNI library rejects every name but those of letters, digits, `_`, `.` \
        and `-` that start with a letter or a digit; no pod that uses the network starts.";
    fix: "Use only the allowed characters, or remove `name`: Multus then uses the name of the NAD.";
}

rule! { DOTTED_NAME = "nad/dotted-name", Warn;
    wrong: "The name of the NAD contains a dot.";
    why: "The short form of the pod annotation (`k8s.v1.cni.cncf.io/networks: a,b`) allows no dots in names. Pods can use this NAD \
        only through the JSON form.";
    fix: "Rename the NAD; or keep the name and use the JSON form in pods: [{\"name\": \"storage.v1\"}].";
}

rule! { SCHEMA = "nad/schema", Deny;
    wrong: "A field of the NAD has a type that the API server rejects.";
    why: "The API server rejects the object, so it is never stored. `spec.config` must be a string that holds JSON, not a YAML \
        structure, and annotations and labels must be strings.";
    fix: "Write `config: |` and below it the JSON text. Put numbers and booleans in annotations in quotes.";
}

rule! { UNKNOWN_FIELD = "nad/unknown-field", Warn;
    wrong: "`spec` has a field that the CRD does not have.";
    why: "The API server drops unknown fields when it stores the object, so they have no effect. The only field of `spec` is `config`.";
    fix: "Move the setting into the JSON text of `spec.config`, or remove it.";
}

/// The versions the CNI library knows.
const VERSIONS: &[&str] = &["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

const HANG: &str = "pods that use this network hang in ContainerCreating";
pub(super) const NOTHING_TO_RUN: &str = "there is no plugin to run; every pod that uses this network fails to start";

/// The rules that do not need the config.
pub(crate) fn check_object(nad: &Nad<'_>, out: &mut Findings<'_>) {
    for wrong in &nad.misshapen {
        let headline = format!("`{}` is {}, expected {}", dotted(&wrong.pointer), wrong.found, wrong.expected);
        let note = "the API server rejects the object";
        out.object(&SCHEMA, wrong.pointer.clone(), headline, note, wrong.help());
    }
    for key in &nad.unknown {
        let headline = format!("unknown field `spec.{key}`");
        let note = "the CRD has only `spec.config`; the API server drops every other field";
        let help = if same_key(key, "config") {
            "write `config`, in lower case"
        } else {
            "move it into the JSON text of `spec.config`, or remove it"
        };
        out.object(&UNKNOWN_FIELD, format!("/spec/{}", json::escape(key)), headline, note, help).about_key();
    }
    if nad.meta.name.contains('.') {
        let headline = format!("NAD name `{}` contains a dot", nad.meta.name);
        let note = "the short form of the pod annotation `k8s.v1.cni.cncf.io/networks` rejects it";
        let help = "rename the NAD, or use the JSON form of the annotation in pods: [{\"name\": \"…\"}]";
        out.object(&DOTTED_NAME, "/metadata/name", headline, note, help);
    }
}

/// A JSON pointer in dotted form: `metadata.annotations`.
pub(super) fn dotted(pointer: &str) -> String {
    pointer.split('/').skip(1).map(json::unescape).collect::<Vec<_>>().join(".")
}

/// A config that cannot be read at all.
pub(crate) fn unreadable(text: &str, error: json::Error, out: &mut Findings<'_>) {
    let rule = if error.problem.is_limit() { &TOO_LARGE } else { &NOT_JSON };
    let end = text
        .get(error.offset..)
        .and_then(|rest| rest.chars().next())
        .map_or(error.offset, |c| error.offset + c.len_utf8());
    let (line, column) = line_column(text, error.offset);
    let place = ConfigPlace { pointer: String::new(), span: error.offset..end, line, column };
    let (headline, note) = match error.problem {
        limit if limit.is_limit() => (
            format!("`spec.config` is too large ({})", error.problem),
            "nadmit does not judge a config beyond this limit, so it is denied",
        ),
        _ => (format!("`spec.config` is not JSON ({})", error.problem), HANG),
    };
    let help = match error.problem {
        Problem::TrailingComma => "remove the last comma",
        Problem::Trailing => "keep one JSON object and remove what follows it",
        Problem::Blank => "write a JSON object, or remove `config` to use a file on the node",
        limit if limit.is_limit() => "make the config smaller; a CNI config has a few hundred bytes",
        _ => "fix the JSON at this position",
    };
    out.text(rule, "/spec/config", place, headline, note, help);
}

/// A config that is JSON but not an object.
pub(crate) fn not_an_object(root: &Value<'_>, out: &mut Findings<'_>) {
    let headline = format!("`spec.config` is {}, expected a JSON object", root.shown());
    let help = "write the CNI config as one JSON object: {\"cniVersion\": …, \"type\": …}";
    out.config(&NOT_JSON, root.span, headline, HANG, help);
}

/// The rules on a config that is an object.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    if !root_type(config, out) {
        chain(config, out);
    }
    version(config, out);
    name(config, out);
}

/// The top-level `type`; true if it cannot be decoded, so that the chain cannot be judged.
fn root_type(config: &Config<'_>, out: &mut Findings<'_>) -> bool {
    let Some(member) = config.root.get_string("type", config.reading) else { return false };
    plugin_type(&member.value, "type", out)
}

/// The list of plugins without a top-level type; and the ignored list beside one.
fn chain(config: &Config<'_>, out: &mut Findings<'_>) {
    let root = config.root;
    if !config.is_list {
        if let Some(plugins) = root.get("plugins") {
            let kind = config.plugins.first().map_or("", |plugin| plugin.kind);
            let note =
                format!("Multus treats this as a single `{kind}` config and does not run the plugins of the list");
            out.config(
                &PLUGINS_IGNORED,
                plugins.key_span,
                "`plugins` is ignored because of the top-level `type`",
                note,
                "remove the top-level `type`, and move its settings into the list",
            );
        }
        return;
    }
    // Multus merges all spellings into one list, libcni runs the exact one: both must contain plugins.
    if let Some(other) = root.named("plugins").filter(|member| member.key != "plugins").last()
        && root.get_exact("plugins").is_some()
        && !begins_with_a_plugin(config)
    {
        let headline = format!("`{}` is given beside `plugins`", other.key);
        let note = "Multus merges the two into one list whose first element is no plugin; every pod that uses this network fails to start";
        out.config(&NO_PLUGIN, other.key_span, headline, note, "keep only `plugins`");
    }
    let Some(plugins) = root.get_exact("plugins") else {
        match root.get("plugins") {
            Some(other) => {
                let headline = format!("`{}` is not spelled `plugins`", other.key);
                let note = "libcni does not find the list; every pod that uses this network fails to start";
                out.config(&NO_PLUGIN, other.key_span, headline, note, "write `plugins`");
            }
            None => {
                let headline = "the config has neither `type` nor `plugins`";
                let help = "add \"type\": \"…\", the name of a CNI plugin";
                out.config(&NO_PLUGIN, root.value.span, headline, NOTHING_TO_RUN, help);
            }
        }
        return;
    };
    let help = "give the list one object with a `type` for each plugin of the chain";
    match &plugins.value.kind {
        Kind::Array(elements) if elements.is_empty() => {
            let note = "Multus panics when a pod that uses this network starts";
            out.config(&NO_PLUGIN, plugins.value.span, "`plugins` is empty", note, help);
        }
        Kind::Array(elements) => elements.iter().for_each(|element| element_type(element, out)),
        _ => {
            let headline = format!("`plugins` is {}, expected a list", plugins.value.shown());
            out.config(&NO_PLUGIN, plugins.value.span, headline, NOTHING_TO_RUN, help);
        }
    }
}

/// Whether Multus finds a plugin with a type at the head of the list that all spellings of `plugins` make.
fn begins_with_a_plugin(config: &Config<'_>) -> bool {
    let list = fold::field("plugins", &PLUGINS, config.root.members, config.reading);
    let first = list.as_ref().and_then(|list| list.elements()?.first()).and_then(CniObject::of);
    first.is_some_and(|first| first.text_of("type").is_some())
}

fn element_type(element: &Value<'_>, out: &mut Findings<'_>) {
    let Some(object) = CniObject::of(element) else {
        let headline = format!("an element of `plugins` is {}, expected an object", element.shown());
        out.config(&NO_PLUGIN, element.span, headline, NOTHING_TO_RUN, "write an object with a `type`");
        return;
    };
    match object.get_string("type", Reading::Copy).map(|member| &member.value) {
        Some(value) if value.as_str() != Some("") => {
            plugin_type(value, "type", out);
        }
        _ => {
            let headline = "an element of `plugins` has no `type`";
            let help = "add \"type\": \"…\", the name of a CNI plugin";
            out.config(&NO_PLUGIN, element.span, headline, NOTHING_TO_RUN, help);
        }
    }
}

fn version(config: &Config<'_>, out: &mut Findings<'_>) {
    let unreadable = |value: &&Value<'_>| value.as_str().is_some_and(|version| parse_version(version).is_none());
    let offered = config.root.get_exact("cniVersions").filter(|_| config.is_list);
    // Beside `cniVersions`, libcni parses `cniVersion` as a version number too.
    let own = config.root.get_exact("cniVersion").map(|member| &member.value).filter(|own| own.as_str() != Some(""));
    let versions = offered.and_then(|member| member.value.elements()).unwrap_or_default().iter();
    if let Some(value) = versions.chain(own.filter(|_| offered.is_some())).find(unreadable) {
        let version = value.as_str().unwrap_or_default();
        let headline = format!("CNI version {version:?} is not a version number");
        let note = "libcni rejects the list; every pod that uses this network fails to start";
        out.config(&CNI_VERSION, value.span, headline, note, format!("use versions of {}", VERSIONS.join(", ")));
        return;
    }
    let version = config.cni_version();
    if version.is_empty() || VERSIONS.contains(&version) {
        return;
    }
    let holds = |member: &&Member<'_>| member.value.as_str() == Some(version);
    let Some(member) = config.root.named("cniVersion").find(holds).or(offered) else { return };
    let headline = format!("unknown cniVersion {version:?}");
    let note = "every plugin rejects it (\"incompatible CNI versions\"), and no pod that uses this network starts";
    out.config(&CNI_VERSION, member.value.span, headline, note, format!("use one of {}", VERSIONS.join(", ")));
}

fn name(config: &Config<'_>, out: &mut Findings<'_>) {
    // Without a name, the NAD's name is used, which the API server has validated.
    let Some(member) = config.root.get_exact("name") else { return };
    if member.value.is_null() && !config.is_list {
        let note =
            "nothing is filled in for it; every pod that uses this network fails to start (\"missing network name\")";
        let help = "write a name, or remove `name` to use the name of the NAD";
        out.config(&NETWORK_NAME, member.value.span, "`name` is null", note, help);
    }
    let Some(name) = member.value.as_str().filter(|name| !name.is_empty()) else { return };
    let good = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-');
    if !name.chars().all(good) || !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        let headline = format!("`name` is {name:?}, which is not a valid network name");
        let note = "the CNI library rejects it; every pod that uses this network fails to start";
        let help = "use letters, digits, `_`, `.` and `-`, starting with a letter or digit; or remove `name` to use the name of the NAD";
        out.config(&NETWORK_NAME, member.value.span, headline, note, help);
    }
}

#[cfg(test)]
mod tests {
    use crate::json::MAX_VALUES;
    use crate::policy::rules::testing::found;
    use crate::policy::{Facts, Policy, Subject, judge};
    use crate::resources::Object;

    /// A list of so many values.
    fn list(values: usize) -> String {
        format!("[{}]", vec!["0"; values - 1].join(","))
    }

    #[test]
    fn a_config_has_a_limited_number_of_values() {
        let config = |values: usize| format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","x":{}}}"#, list(values - 3));
        assert_eq!(found(&config(MAX_VALUES)), Vec::<String>::new());
        assert_eq!(found(&config(MAX_VALUES + 1)), ["nad/config-too-large deny "]);
    }

    /// The operator's own write is never denied, so the network must be.
    #[test]
    fn fragments_count_together_toward_the_size_limit() {
        let values = MAX_VALUES / 2 + 100;
        let json = serde_json::json!({
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetwork",
            "metadata": {"name": "net", "namespace": "apps"},
            "spec": {
                "resourceName": "nics",
                "ipam": format!(r#"{{"type":"x","y":{}}}"#, list(values)),
                "metaPlugins": format!(r#"{{"type":"z","y":{}}}"#, list(values)),
            },
        });
        let json = json.to_string();
        let object = Object::read(&json).unwrap().unwrap();
        let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
        assert!(verdict.denies(), "{:?}", verdict.findings);
    }

    /// Multus and libcni read a list in different ways; both must find its plugins, its version and its name.
    #[test]
    fn lists_are_judged_as_both_readers_see_them() {
        let table: &[(&str, &[&str])] = &[
            (r#"{"cniVersion":"1.0.0","plugins":[{"type":"macvlan"}]}"#, &[]),
            (r#"{"cniVersion":"1.0.0","Plugins":[{"type":"macvlan"}]}"#, &["nad/no-plugin deny /Plugins"]),
            (
                // Go takes `ſ` for an `s`, and this key comes last when Multus sorts them.
                r#"{"cniVersion":"1.0.0","plugins":[{"type":"macvlan"}],"pluginſ":[{"type":""}]}"#,
                &["nad/no-plugin deny /pluginſ"],
            ),
            (r#"{"cniVersion":"1.0.0","plugins":[{"type":"macvlan"}],"pluginſ":[{"type":"tuning"}]}"#, &[]),
            (r#"{"cniVersion":"1.0.0","type":"macvlan","name":null}"#, &["nad/network-name deny /name"]),
            (r#"{"cniVersion":"1.0.0","type":"macvlan","name":""}"#, &[]),
            (r#"{"cniVersion":"1.0.0","type":"macvlan","name":"-a"}"#, &["nad/network-name deny /name"]),
            (r#"{"cniVersion":"1.0.0","type":"a/b"}"#, &["nad/plugin-type deny /type"]),
            (r#"{"cniVersion":"1.0.0","type":5}"#, &["nad/plugin-type deny /type"]),
            (
                r#"{"cniVersion":"x","cniVersions":["1.0.0"],"plugins":[{"type":"macvlan"}]}"#,
                &["nad/cni-version deny /cniVersion"],
            ),
            (
                r#"{"cniVersions":["1.0.0","x"],"plugins":[{"type":"macvlan"}]}"#,
                &["nad/cni-version deny /cniVersions/1"],
            ),
        ];
        for (config, want) in table {
            // The spelling of keys has a rule of its own.
            let found: Vec<_> =
                found(config).into_iter().filter(|found| !found.starts_with("nad/ambiguous-key")).collect();
            assert_eq!(found, *want, "{config}");
        }
    }
}
