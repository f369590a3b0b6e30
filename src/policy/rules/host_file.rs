//! Paths on the node that a config chooses.

use super::super::finding::Findings;
use super::super::rule::rule;
use crate::cni::{CniObject, Plugin};

rule! { HOST_FILE = "sriov/host-file", Warn;
    wrong: "The config names a path on the node, which a plugin then uses as root.";
    why: "CNI plugins run as root and outside of the pod, on every node that runs a pod of this network. Whoever may write the NAD \
        thereby chooses a file that is written, read or connected to on these nodes. Reported are `logFile` of `sriov` and `multus`; \
        `log_file`, `configuration_path`, `kubernetes.kubeconfig` and the etcd files of `whereabouts`; `dataDir` and `resolvConf` of \
        `host-local`; `daemonSocketPath` of `dhcp`; `socket_file`, `configuration_path` and `runtimeConfig.CNIDeviceInfoFile` of \
        `ovs`; `dataDir` of `tuning`; `kubeconfig` of `ib-sriov`; and of `multus` also `kubeconfig`, `readinessindicatorfile`, a \
        `clusterNetwork` with a slash, and the directories, from one of which it runs programs.";
    fix: "Remove the key. If the path is intended, let the policy accept it: with `sriov/host-file: off` for the namespace, or with an \
        exception for this NAD.";
}

/// The path of a key that contains a file path, and what the plugin does with that file.
type Key = (&'static [&'static str], &'static str);

/// The keys of each plugin that hold a path.
const PLUGINS: &[(&str, &[Key])] = &[
    ("sriov", &[(&["logFile"], "writes to")]),
    ("ib-sriov", &[(&["kubeconfig"], "reads")]),
    (
        "ovs",
        &[
            (&["socket_file"], "connects to"),
            (&["configuration_path"], "reads"),
            (&["runtimeConfig", "CNIDeviceInfoFile"], "writes to"),
        ],
    ),
    ("tuning", &[(&["dataDir"], "writes below")]),
    ("multus", MULTUS),
    ("multus-shim", MULTUS),
];

const MULTUS: &[Key] = &[
    (&["logFile"], "writes to"),
    (&["cniDir"], "writes below"),
    (&["binDir"], "runs programs from"),
    (&["confDir"], "reads"),
    (&["kubeconfig"], "reads"),
    (&["readinessindicatorfile"], "waits for"),
    (&["daemonSocketDir"], "connects to a socket in"),
];

/// The keys of each IPAM plugin that hold a path.
const IPAM: &[(&str, &[Key])] = &[
    ("host-local", &[(&["dataDir"], "writes below"), (&["resolvConf"], "reads")]),
    ("dhcp", &[(&["daemonSocketPath"], "connects to")]),
    (
        "whereabouts",
        &[
            (&["log_file"], "writes to"),
            (&["kubernetes", "kubeconfig"], "reads"),
            (&["configuration_path"], "reads"),
            (&["etcd_key_file"], "reads"),
            (&["etcd_cert_file"], "reads"),
            (&["etcd_ca_cert_file"], "reads"),
        ],
    ),
];

/// The rule on one plugin and its IPAM section.
pub(crate) fn check(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    check_keys(plugin.kind, PLUGINS, plugin.object, out);
    // Multus treats a value with a slash as a file or directory, otherwise as the name of a network.
    if matches!(plugin.kind, "multus" | "multus-shim")
        && plugin.object.str_of("clusterNetwork").is_some_and(|network| network.contains('/'))
    {
        check_key(plugin.kind, plugin.object, &(&["clusterNetwork"], "reads"), out);
    }
    if let Some((ipam, kind)) = plugin.ipam()
        && super::ipam::is_run(plugin).is_some()
    {
        check_keys(kind, IPAM, ipam, out);
    }
}

fn check_keys(reader: &str, known: &[(&str, &[Key])], object: CniObject<'_>, out: &mut Findings<'_>) {
    let keys = known.iter().find(|(kind, _)| *kind == reader).map_or(&[] as &[_], |(_, keys)| keys);
    keys.iter().for_each(|path| check_key(reader, object, path, out));
}

fn check_key(reader: &str, object: CniObject<'_>, (path, does): &Key, out: &mut Findings<'_>) {
    let Some((last, outer)) = path.split_last() else { return };
    let Some(object) = outer.iter().try_fold(object, |object, key| object.object_of(key)) else { return };
    let Some(value) = object.value_of(last) else { return };
    let Some(file) = value.as_str().filter(|file| !file.is_empty()) else { return };
    let program = if reader == "sriov" { "sriov-cni" } else { reader };
    let headline = format!("`{}` is {file:?}, a path on the node", path.join("."));
    let note = format!("{program} {does} it as root, on every node that runs a pod of this network");
    let help = match *last {
        "logFile" | "log_file" => "remove it; the plugin then logs to stderr, where the runtime collects it",
        _ => "remove it; the plugin then uses the path that the node's administrator chose",
    };
    // Nodes with another release may use the file.
    out.config(&HOST_FILE, value.span, headline, note, help).in_any_release();
}

#[cfg(test)]
mod tests {
    use super::{IPAM, Key, PLUGINS};
    use crate::policy::rules::testing::found;

    /// The members that give a key a path, and the pointer to it.
    fn members((path, _): &Key) -> (String, String) {
        let value =
            path.iter().rev().fold("\"/etc/cron.d/x\"".to_owned(), |value, key| format!("{{\"{key}\":{value}}}"));
        (value.trim_start_matches('{').strip_suffix('}').unwrap().to_owned(), format!("/{}", path.join("/")))
    }

    #[test]
    fn warns_about_every_path_of_every_plugin() {
        for (kind, keys) in PLUGINS {
            for key in *keys {
                let (members, pointer) = members(key);
                let found = found(&format!(r#"{{"cniVersion":"1.0.0","type":"{kind}",{members}}}"#));
                assert!(found.contains(&format!("sriov/host-file warn {pointer}")), "{kind} {members}: {found:?}");
            }
        }
        for (kind, keys) in IPAM {
            for key in *keys {
                let (members, pointer) = members(key);
                let config = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","ipam":{{"type":"{kind}",{members}}}}}"#);
                let found = found(&config);
                assert!(found.contains(&format!("sriov/host-file warn /ipam{pointer}")), "{config}: {found:?}");
            }
        }
    }

    #[test]
    fn checks_the_path_the_plugin_uses() {
        for (members, want) in [
            (r#""logFile":"/var/log/sriov.log""#, &["sriov/host-file warn /logFile"] as &[_]),
            (r#""logFile":"""#, &[]),
            (
                r#""LOGFILE":"/etc/cron.d/x","logFile":null"#,
                &["nad/ambiguous-key warn /logFile", "sriov/host-file warn /LOGFILE"],
            ),
            (r#""LOGFILE":"/etc/cron.d/x","logFile":"""#, &["nad/ambiguous-key warn /logFile"]),
        ] {
            assert_eq!(found(&format!(r#"{{"cniVersion":"1.0.0","type":"sriov",{members}}}"#)), want, "{members}");
        }
        let multus = r#"{"type":"multus","clusterNetwork":"/etc/cni/x.conf"}"#;
        assert_eq!(found(multus), ["sriov/host-file warn /clusterNetwork"]);
        assert_eq!(found(r#"{"type":"multus","clusterNetwork":"default-net"}"#), Vec::<String>::new());
    }
}
