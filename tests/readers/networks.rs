//! Networks as people write them, with mistakes: a plugin with some of its keys, with values that its reader takes or refuses.

use crate::generate::Generator;
use crate::ipam_keys::{BESIDE, IPAM};
use crate::keys::{CHAINED, NetworkKey, PLUGINS, SIMULATED};
use crate::oracle::Question;

/// Values of the resourceName annotation: usable ones, and others that people write.
const RESOURCES: &[&str] = &[
    "a.io/b",
    "other.io/c",
    "intel.com/sriov_netdevice",
    "",
    " ",
    " a.io/b",
    "a.io/b ",
    "b",
    "a.io/",
    "/b",
    "a.io/a.io/b",
    "A.io/b",
    "a.io/B",
    "a..io/b",
    "a_b.io/c",
    "a.io/b_",
    "a.io/b c",
    "kubernetes.io/b",
    "requests.a.io/b",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.io/b",
    "a.io/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
];

/// What is generated: whole networks whose plugins run, or ones whose plugin is simulated, for the readers within the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Executed,
    InProcess,
}

/// A generated network.
pub struct GeneratedNetwork {
    pub question: Question,
    /// Who reads it.
    pub readers: Vec<&'static str>,
}

impl Generator {
    /// A network.
    pub fn network(&mut self, scope: Scope) -> GeneratedNetwork {
        // Some are networks that work, with a few changes.
        if self.one_in(5) {
            return self.mutated_network(scope);
        }
        self.set_faults(4);
        let mut readers = vec!["multus", "libcni"];
        let (kind, keys) = match scope {
            Scope::Executed => PLUGINS[self.below(PLUGINS.len())],
            // They call their IPAM plugin.
            Scope::InProcess => (self.pick(&["sriov", "sriov", "ib-sriov", "ovs"]), SIMULATED),
        };
        if scope == Scope::Executed {
            readers.push(kind);
        }
        let mut plugin = vec![("type".to_owned(), format!("\"{kind}\""))];
        plugin.extend(self.some(keys));
        let with_ipam = if scope == Scope::InProcess { 10 } else { 4 };
        if self.below(10) < with_ipam {
            let (kind, ipam) = self.ipam(scope);
            readers.push(kind);
            plugin.push(("ipam".to_owned(), ipam));
            let beside =
                BESIDE.iter().filter(|(name, _)| *name == kind && scope == Scope::Executed).flat_map(|(_, keys)| *keys);
            for key in beside {
                if self.one_in(6) && plugin.iter().all(|(member, _)| member != key.0) {
                    let member = self.one(key);
                    plugin.push(member);
                }
            }
        }
        let version = match self.is_fault() {
            true => self.pick(&["0.2.0", "0.1.0", "", "9.9.9", "x"]),
            false => self.pick(&["1.0.0", "1.0.0", "0.4.0", "0.3.1", "0.3.0", "1.1.0"]),
        };
        let mut root = Vec::new();
        if !self.is_fault() {
            root.push(("cniVersion".to_owned(), format!("\"{version}\"")));
        }
        if !self.one_in(3) {
            let names: &[&str] = if self.is_fault() { &[r#""a b""#, "5"] } else { &[r#""net""#, r#""a.b""#, r#""""#] };
            root.push(("name".to_owned(), self.pick(names).to_owned()));
        }
        if self.one_in(2) {
            let mut plugins = vec![self.shuffled(plugin)];
            while scope == Scope::Executed && self.one_in(2) {
                let (kind, keys) = CHAINED[self.below(CHAINED.len())];
                readers.push(kind);
                let mut members = vec![("type".to_owned(), format!("\"{kind}\""))];
                members.extend(self.some(keys));
                let chained = self.shuffled(members);
                plugins.push(chained);
            }
            root.push(("plugins".to_owned(), format!("[{}]", plugins.join(","))));
        } else {
            root.extend(plugin);
        }
        let resource = self.resource(kind);
        let config = self.shuffled(root);
        self.asked(config, resource, readers)
    }

    /// A network that a pod asks for in some way.
    pub fn asked(
        &mut self,
        config: String,
        resource: Option<&'static str>,
        mut readers: Vec<&'static str>,
    ) -> GeneratedNetwork {
        readers.sort_unstable();
        readers.dedup();
        let name = if self.one_in(20) { self.pick(&["a.b", "net.1"]) } else { "net" };
        GeneratedNetwork { question: Question { config, name, asks_in_json: self.one_in(2), resource }, readers }
    }

    /// The resourceName annotation of a NAD: mostly there where a plugin needs a device.
    pub fn resource(&mut self, kind: &str) -> Option<&'static str> {
        let is_wanted = matches!(kind, "sriov" | "ib-sriov") || self.one_in(4);
        match self.below(8) {
            0 => Some(self.pick(RESOURCES)),
            1 => None,
            _ => is_wanted.then_some("a.io/b"),
        }
    }

    fn ipam(&mut self, scope: Scope) -> (&'static str, String) {
        // The code of `static` and `dhcp` can only be run as a program.
        let (kind, keys) = match scope {
            Scope::Executed => IPAM[self.below(IPAM.len())],
            Scope::InProcess => IPAM[self.below(2)],
        };
        let mut members = vec![("type".to_owned(), format!("\"{kind}\""))];
        // The first key is the one without which nothing works.
        if !self.is_fault() {
            let first = self.one(&keys[0]);
            members.push(first);
        }
        members.extend(self.some(&keys[1..]));
        (kind, self.shuffled(members))
    }

    /// Some of the keys, mostly with values that the reader accepts.
    fn some(&mut self, keys: &[NetworkKey]) -> Vec<(String, String)> {
        let mut members = Vec::new();
        for key in keys {
            // About three keys of a plugin that has many.
            if self.below(keys.len().max(6)) < 3 {
                members.push(self.one(key));
            }
            // The same key again, perhaps in another spelling.
            if self.one_in(30) {
                let (_, value) = self.one(key);
                let spelled = self.spelling(key.0);
                members.push((spelled, value));
            }
        }
        members
    }

    pub fn one(&mut self, (key, good, bad): &NetworkKey) -> (String, String) {
        let value = match self.is_fault() {
            true if !bad.is_empty() && !self.one_in(3) => self.pick(bad),
            true => self.pick(&["null", "true", "5", r#""x""#, "[]", "{}", "-0", "1.5"]),
            false if !good.is_empty() => self.pick(good),
            false => "null",
        };
        let value = value.to_owned();
        let key = if self.one_in(40) { self.spelling(key) } else { (*key).to_owned() };
        (key, value)
    }

    fn shuffled(&mut self, mut members: Vec<(String, String)>) -> String {
        for last in (1..members.len()).rev() {
            members.swap(last, self.below(last + 1));
        }
        let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    }
}
