//! The type of a plugin: the name of the program that libcni runs.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::similar::suggest;
use crate::cni::readers::{IPAM, KNOWN};
use crate::json::{Kind, Value};

rule! { PLUGIN_TYPE = "nad/plugin-type", Deny;
    wrong: "A `type` or `ipam.type` is not a string, or has a `/` in it.";
    why: "The type is the name of a program in the CNI directory of the node. The CNI library rejects a path, and cannot decode \
        anything but a string; every pod that uses the network fails to start.";
    fix: "Write only the name of the program, for example `macvlan`.";
}

rule! { UNKNOWN_PLUGIN = "nad/unknown-plugin", Warn;
    wrong: "A `type` or `ipam.type` looks like a misspelling of a known plugin.";
    why: "The CNI library looks for a program of exactly this name, also in upper and lower case, in the CNI directory of the node. If there is \
        none, every pod that uses the network fails to start (\"failed to find plugin\"). The same error shows that a plugin is not \
        installed on the pod's node.";
    fix: "Correct the name. If a plugin of that name is installed on the nodes, ignore the warning, or make an exception for the NAD in the policy.";
}

/// Plugins that nadmit does not judge, with names that are near to those of others.
const SIMILAR_PLUGINS: &[&str] = &["ipvtap", "macvtap", "vxlan"];

/// True if the value cannot be a type.
pub(super) fn plugin_type(value: &Value<'_>, what: &str, out: &mut Findings<'_>) -> bool {
    match &value.kind {
        Kind::Null => false,
        Kind::String(text) if text.contains('/') => {
            let headline = format!("`{what}` is {text:?}, expected a program name without a path");
            let note = "the CNI library rejects it; every pod that uses this network fails to start";
            out.config(&PLUGIN_TYPE, value.span, headline, note, "write only the program name");
            false
        }
        Kind::String(text) => {
            misspelt(text, value, what, out);
            false
        }
        _ => {
            let headline = format!("`{what}` is {}, expected a string", value.shown());
            let note = "its reader cannot decode it; every pod that uses this network fails to start";
            out.config(&PLUGIN_TYPE, value.span, headline, note, "write the name of a CNI plugin, in double quotes");
            true
        }
    }
}

/// Reports a name that is not known, and close to one that is.
fn misspelt(name: &str, value: &Value<'_>, what: &str, out: &mut Findings<'_>) {
    let (plugins, ipams) = (KNOWN.iter().map(|(known, _)| *known), IPAM.iter().map(|(known, ..)| *known));
    let known: Vec<&str> =
        if what == "ipam.type" { ipams.collect() } else { plugins.chain(SIMILAR_PLUGINS.iter().copied()).collect() };
    if known.contains(&name) {
        return;
    }
    // A name with another beginning, such as `my-sriov`, or with more at its end, such as `sriov2`, is one of its own.
    let is_misspelling = |known: &str| {
        known.bytes().next() == name.bytes().next().map(|first| first.to_ascii_lowercase()) && !name.starts_with(known)
    };
    let Some(suggestion) = suggest(name, known).filter(|suggestion| is_misspelling(suggestion.word)) else { return };
    let word = suggestion.word;
    let headline = format!("`{what}` is {name:?}, did you mean {word:?}?");
    let note = "where no plugin of that name is installed, every pod that uses this network fails to start (\"failed to find plugin\")";
    let help = format!("write {word:?}, unless a plugin of the other name is installed on your nodes");
    let meant = suggestion.is_only.then_some(word);
    out.config(&UNKNOWN_PLUGIN, value.span, headline, note, help).at_most_warn().replaced_by(meant);
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn misspelt_plugins_are_reported() {
        for (kind, ipam, want) in [
            ("macvaln", "static", &["nad/unknown-plugin warn /type"] as &[_]),
            ("Macvlan", "static", &["nad/unknown-plugin warn /type"]),
            ("macvlan", "whereabout", &["nad/unknown-plugin warn /ipam/type"]),
            ("macvlan", "hostlocal", &["nad/unknown-plugin warn /ipam/type"]),
            // Plugins of others, and names that are near to none.
            ("macvtap", "static", &[]),
            ("vxlan", "static", &[]),
            ("our-own-plugin", "our-ipam", &[]),
            ("my-sriov", "my-static", &[]),
            ("tuning2", "static2", &[]),
            ("macvlan", "nv-ipam", &[]),
        ] {
            let config = format!(
                r#"{{"cniVersion":"1.0.0","type":"{kind}","ipam":{{"type":"{ipam}","addresses":[{{"address":"10.0.0.5/24"}}]}}}}"#
            );
            let found: Vec<_> = found(&config).into_iter().filter(|found| found.contains("plugin")).collect();
            assert_eq!(found, *want, "{kind} {ipam}");
        }
    }
}
