//! Networks as people write them, with mistakes: a plugin with some of its keys, with values that its reader takes or refuses.

use crate::generate::Generator;
use crate::oracle::Question;

/// A key, values that the reader accepts, and values that it refuses or that matter to it.
pub type NetworkKey = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The plugins that really run, and their keys. Values are JSON.
pub const PLUGINS: &[(&str, &[NetworkKey])] = &[
    (
        "macvlan",
        &[
            ("master", &[r#""eth0""#], &[r#""""#]),
            ("mode", &[r#""bridge""#, r#""private""#, r#""vepa""#, r#""""#], &[r#""l2""#, r#""Bridge""#, r#""none""#]),
            ("mtu", &["0", "1400"], &["-1"]),
            ("mac", &[r#""02:00:00:00:00:01""#, r#""""#], &[r#""02:00""#, r#""zz:00:00:00:00:01""#]),
            ("bcqueuelen", &["0", "100"], &["-1", "4294967296"]),
            ("linkInContainer", &["false"], &[]),
        ],
    ),
    (
        "ipvlan",
        &[
            ("master", &[r#""eth0""#], &[]),
            ("mode", &[r#""l2""#, r#""l3""#, r#""l3s""#, r#""""#], &[r#""bridge""#, r#""L2""#]),
            ("mtu", &["0", "1400"], &[]),
        ],
    ),
    (
        "vlan",
        &[
            ("master", &[r#""eth0""#, r#""eth0""#, r#""eth0""#], &[r#""""#]),
            ("vlanId", &["0", "5", "4094"], &["-1", "4095", "70000"]),
            ("mtu", &["0", "1400"], &["-1"]),
        ],
    ),
    (
        "bridge",
        &[
            ("bridge", &[r#""br1""#], &[]),
            ("vlan", &["0", "5", "4094"], &["-1", "4095"]),
            (
                "vlanTrunk",
                &["[]", r#"[{"id":5}]"#, r#"[{"minID":1,"maxID":3},{"id":9}]"#, "[{}]"],
                &[
                    "[null]",
                    r#"[{"id":0}]"#,
                    r#"[{"minID":1}]"#,
                    r#"[{"maxID":1}]"#,
                    r#"[{"minID":5,"maxID":1}]"#,
                    r#"[{"minID":0,"maxID":4095}]"#,
                ],
            ),
            ("hairpinMode", &["true", "false"], &[]),
            ("promiscMode", &["true", "false"], &[]),
            ("disableContainerInterface", &["true", "false"], &[]),
            ("isGateway", &["false"], &[]),
            ("mtu", &["0", "1400"], &[]),
        ],
    ),
    ("host-device", &[("device", &[], &[r#""""#]), ("hwaddr", &[], &[r#""""#]), ("kernelpath", &[], &[r#""""#])]),
];

/// The keys of a plugin that does not run.
const SIMULATED: &[NetworkKey] = &[
    ("capabilities", &["{}", r#"{"mac":true}"#], &[r#"{"mac":1}"#, "[]"]),
    ("dns", &[r#"{"nameservers":["10.0.0.1"]}"#], &[r#"{"search":"x"}"#]),
    ("prevResult", &["{}"], &["[]"]),
    ("args", &["{}", "5"], &[]),
];

/// Plugins that change an interface.
pub const CHAINED: &[(&str, &[NetworkKey])] = &[
    (
        "tuning",
        &[
            ("sysctl", &[r#"{"net.core.somaxconn":"500"}"#, "{}"], &[r#"{"net.core.somaxconn":5}"#]),
            ("mtu", &["1400"], &[]),
        ],
    ),
    (
        "vrf",
        &[("vrfname", &[r#""blue""#, r#""blue""#, r#""a-b""#], &[r#""""#]), ("table", &["10"], &["-1", "4294967296"])],
    ),
    (
        "portmap",
        &[
            ("markMasqBit", &["0", "13", "31"], &["-1", "32"]),
            ("externalSetMarkChain", &[r#""X""#], &[]),
            ("snat", &["true"], &[]),
            ("backend", &[r#""iptables""#], &[r#""pf""#]),
        ],
    ),
    ("firewall", &[("ingressPolicy", &[r#""open""#], &[]), ("backend", &[r#""iptables""#], &[])]),
    (
        "bandwidth",
        &[
            ("ingressRate", &["0", "1000000"], &["-1"]),
            ("ingressBurst", &["0", "1000000"], &["34359738368", "34359738367"]),
            ("egressRate", &["0", "1000000"], &["-1"]),
            ("egressBurst", &["0", "1000000"], &["34359738368"]),
            ("runtimeConfig", &["{}", r#"{"bandwidth":{}}"#], &[r#"{"bandwidth":{"ingressRate":"1"}}"#]),
        ],
    ),
    ("sbr", &[("table", &["100", "1000"], &["-1", "0", "4294967296"]), ("gateways", &["[]"], &["5"])]),
];

/// IPAM sections.
pub const IPAM: &[(&str, &[NetworkKey])] = &[
    (
        "host-local",
        &[
            (
                "subnet",
                &[r#""10.0.0.0/24""#, r#""fd00::/64""#],
                &[r#""10.0.0.1/24""#, r#""10.0.0.0""#, r#""10.0.0.0/31""#, r#""x""#],
            ),
            ("rangeStart", &[r#""10.0.0.10""#], &[r#""10.0.1.1""#, r#""10.0.0.0""#, r#""fd00::1""#]),
            ("rangeEnd", &[r#""10.0.0.20""#], &[r#""10.0.0.5""#, r#""10.0.0.255""#, r#""10.9.0.1""#]),
            ("gateway", &[r#""10.0.0.1""#], &[r#""x""#, r#""10.0.9.1""#, r#""fd00::1""#]),
            ("routes", &[r#"[{"dst":"0.0.0.0/0"}]"#], &[r#"[{"dst":"x"}]"#, r#"[{}]"#]),
            (
                "ranges",
                &[r#"[[{"subnet":"10.1.0.0/24"}]]"#, "[]", r#"[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd01::/64"}]]"#],
                &[
                    "[[]]",
                    "[null]",
                    r#"[[{"subnet":"10.1.0.0/24"},{"subnet":"10.1.0.0/24"}]]"#,
                    r#"[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.1.0.0/16"}]]"#,
                    r#"[[{"subnet":"10.1.0.0/24"},{"subnet":"fd01::/64"}]]"#,
                    r#"[[{}]]"#,
                ],
            ),
        ],
    ),
    (
        "whereabouts",
        &[
            (
                "range",
                &[r#""10.0.0.0/24""#, r#""10.0.0.5-10.0.0.9/24""#, r#""fd00::/64""#],
                &[r#""10.0.0.0""#, r#""x""#, r#""10.0.0.9-10.0.0.5/24""#],
            ),
            ("range_start", &[r#""10.0.0.10""#], &[r#""x""#]),
            ("range_end", &[r#""10.0.0.20""#], &[r#""x""#]),
            ("gateway", &[r#""10.0.0.1""#], &[r#""x""#, r#""10.0.9.1""#, r#""fd00::1""#]),
            ("exclude", &[r#"["10.0.0.0/28"]"#, "[]"], &[r#"["x"]"#, r#"["10.0.0.1"]"#]),
            ("ipRanges", &[r#"[{"range":"10.2.0.0/24"}]"#], &[r#"[{"range":"x"}]"#, "[{}]"]),
            (
                "routes",
                &[r#"[{"dst":"0.0.0.0/0"}]"#, r#"[{"dst":"10.9.0.0/16","gw":"10.0.0.1"}]"#],
                &[r#"[{"dst":"x"}]"#, r#"[{"dst":"10.9.0.0/16","gw":"10.0.9.1"}]"#],
            ),
        ],
    ),
    (
        "static",
        &[
            (
                "addresses",
                &[
                    r#"[{"address":"10.0.0.5/24"}]"#,
                    r#"[{"address":"10.0.0.5/24","gateway":"10.0.0.1"}]"#,
                    r#"[{"address":"fd00::5/64"}]"#,
                ],
                &[
                    "[]",
                    r#"[{"address":"10.0.0.5"}]"#,
                    r#"[{"address":"x"}]"#,
                    r#"[{}]"#,
                    r#"[{"address":"10.0.0.5/24","gateway":"x"}]"#,
                    r#"[{"address":"10.0.0.5/24","gateway":"10.0.9.1"}]"#,
                ],
            ),
            ("routes", &[r#"[{"dst":"10.9.0.0/16"}]"#, "[]"], &[r#"[{"dst":"x"}]"#]),
            ("dns", &[r#"{"nameservers":["10.0.0.1"]}"#], &[r#"{"nameservers":"x"}"#]),
        ],
    ),
    (
        "dhcp",
        &[
            ("daemonSocketPath", &[r#""/run/cni/dhcp.sock""#, r#""""#], &[]),
            ("priority", &["0", "100", "-1"], &[]),
            (
                "request",
                &[r#"[{"option":"routers"}]"#, r#"[{"skipDefault":true},{"skipDefault":false,"option":"12"}]"#, "[]"],
                &[
                    r#"[{"option":"x"}]"#,
                    r#"[{"option":"256"}]"#,
                    r#"[{"option":""}]"#,
                    r#"[{"option":12}]"#,
                    "[null]",
                    "[{}]",
                ],
            ),
            (
                "provide",
                &[r#"[{"option":"host-name","value":"a"}]"#, r#"[{"option":"host-name","fromArg":"K8S_POD_NAME"}]"#],
                &[
                    r#"[{"option":"x","value":"a"}]"#,
                    r#"[{"option":"-1","value":"a"}]"#,
                    r#"[{"option":"host-name"}]"#,
                    r#"[{"option":"12","value":"a","fromArg":"b"}]"#,
                    "[{}]",
                ],
            ),
        ],
    ),
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
        if scope == Scope::Executed && self.one_in(5) {
            return self.mutated_network();
        }
        self.set_faults(4);
        let mut readers = vec!["multus", "libcni"];
        let (kind, keys) = match scope {
            Scope::Executed => PLUGINS[self.below(PLUGINS.len())],
            // One that is known to call its IPAM plugin.
            Scope::InProcess => ("sriov", SIMULATED),
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
        let has_device = kind == "sriov" || self.one_in(4);
        let config = self.shuffled(root);
        self.asked(config, has_device, readers)
    }

    /// A network that a pod asks for in some way.
    pub fn asked(&mut self, config: String, has_device: bool, mut readers: Vec<&'static str>) -> GeneratedNetwork {
        readers.sort_unstable();
        readers.dedup();
        let name = if self.one_in(20) { self.pick(&["a.b", "net.1"]) } else { "net" };
        GeneratedNetwork { question: Question { config, name, asks_in_json: self.one_in(2), has_device }, readers }
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
            if self.one_in(2) {
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

    fn one(&mut self, (key, good, bad): &NetworkKey) -> (String, String) {
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
