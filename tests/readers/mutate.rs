//! Networks that work, as people publish them, with one to three random changes.

use serde_json::{Value, json};

use crate::generate::Generator;
use crate::networks::GeneratedNetwork;

/// Configs that work on the machine of the tests, whose only interface is `eth0`.
const WORKING: &[&str] = &[
    r#"{"cniVersion":"0.3.1","name":"macvlan-conf","type":"macvlan","master":"eth0","mode":"bridge","ipam":{"type":"host-local","subnet":"192.168.1.0/24","rangeStart":"192.168.1.200","rangeEnd":"192.168.1.216","routes":[{"dst":"0.0.0.0/0"}],"gateway":"192.168.1.1"}}"#,
    r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0","mtu":1400,"mac":"02:00:00:00:00:05","ipam":{"type":"static","addresses":[{"address":"10.56.217.131/24","gateway":"10.56.217.1"}],"routes":[{"dst":"10.9.0.0/16","gw":"10.56.217.1"}],"dns":{"nameservers":["10.56.217.1"],"search":["example.org"]}}}"#,
    r#"{"cniVersion":"0.4.0","name":"storage","plugins":[{"type":"ipvlan","master":"eth0","mode":"l2","mtu":1400,"ipam":{"type":"whereabouts","range":"172.16.8.0/24","range_start":"172.16.8.10","range_end":"172.16.8.200","exclude":["172.16.8.20/32"],"gateway":"172.16.8.1"}},{"type":"tuning","sysctl":{"net.ipv4.conf.all.log_martians":"1"}}]}"#,
    r#"{"cniVersion":"1.0.0","name":"vlan100","type":"vlan","master":"eth0","vlanId":100,"ipam":{"type":"dhcp","request":[{"skipDefault":false,"option":"routers"}],"provide":[{"option":"host-name","fromArg":"K8S_POD_NAME"}]}}"#,
    r#"{"cniVersion":"1.0.0","name":"lab","plugins":[{"type":"bridge","bridge":"br7","vlan":7,"macspoofchk":false,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.7.0.0/24","rangeStart":"10.7.0.20"}],[{"subnet":"fd00:7::/64"}]]}},{"type":"sbr"},{"type":"tuning","mtu":1400}]}"#,
    r#"{"cniVersion":"1.0.0","name":"shaped","plugins":[{"type":"bridge","bridge":"br8","ipam":{"type":"static","addresses":[{"address":"10.8.0.5/24"},{"address":"fd00:8::5/64"}]}},{"type":"bandwidth","ingressRate":1000000,"ingressBurst":1000000,"egressRate":1000000,"egressBurst":1000000}]}"#,
    r#"{"cniVersion":"0.4.0","name":"trunk","plugins":[{"type":"bridge","bridge":"br9","vlanTrunk":[{"minID":10,"maxID":20},{"id":42}]},{"type":"portmap","snat":true,"capabilities":{"portMappings":true}}]}"#,
    r#"{"cniVersion":"1.0.0","name":"blue","plugins":[{"type":"macvlan","master":"eth0","ipam":{"type":"whereabouts","ipRanges":[{"range":"10.30.0.0/24"},{"range":"fd00:30::/64"}]}},{"type":"vrf","vrfname":"blue","table":1001}]}"#,
    r#"{"cniVersion":"0.3.1","type":"host-device","device":"eth9","ipam":{"type":"dhcp"}}"#,
    r#"{"cniVersion":"1.1.0","name":"plain","type":"bridge","isGateway":false,"ipMasq":false,"hairpinMode":true,"ipam":{}}"#,
];

const JUNK: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "70000",
    r#""""#,
    r#""x""#,
    r#""10.0.0.1""#,
    r#""10.0.0.0/8""#,
    "[]",
    "{}",
    "[null]",
];

impl Generator {
    /// A network that works, after some changes.
    pub fn mutated_network(&mut self) -> GeneratedNetwork {
        let mut config: Value = serde_json::from_str(self.pick(WORKING)).unwrap();
        for _ in 0..=self.below(3) {
            self.mutate(&mut config);
        }
        let mut readers = vec!["multus", "libcni"];
        collect_readers(&config, &mut readers);
        let has_device = self.one_in(4);
        self.asked(config.to_string(), has_device, readers)
    }

    fn mutate(&mut self, config: &mut Value) {
        let mut pointers = Vec::new();
        collect_pointers(config, "", &mut pointers);
        if pointers.is_empty() {
            return;
        }
        let pointer = pointers.swap_remove(self.below(pointers.len()));
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let junk: Value = serde_json::from_str(self.pick(JUNK)).unwrap();
        let spelled = self.spelling(key);
        let choice = self.below(6);
        match config.pointer_mut(parent).unwrap() {
            Value::Object(members) => match choice {
                0 | 1 => drop(members.remove(key)),
                // The same key in two spellings, or in another one.
                2 => drop(members.insert(spelled, junk)),
                3 => {
                    let value = members.remove(key).unwrap();
                    members.insert(spelled, value);
                }
                _ => drop(members.insert(key.to_owned(), junk)),
            },
            Value::Array(elements) => {
                let index: usize = key.parse().unwrap();
                match choice {
                    0 | 1 => drop(elements.remove(index)),
                    2 => elements.push(elements[index].clone()),
                    _ => elements[index] = junk,
                }
            }
            other => *other = json!(null),
        }
    }
}

/// The places in a config, without those whose key a JSON pointer cannot name as it is.
fn collect_pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    let mut add = |key: &str, inner: &Value| {
        let pointer = format!("{at}/{key}");
        collect_pointers(inner, &pointer, into);
        into.push(pointer);
    };
    match value {
        Value::Object(members) => {
            members.iter().filter(|(key, _)| !key.contains(['/', '~'])).for_each(|(key, inner)| add(key, inner));
        }
        Value::Array(elements) => elements.iter().enumerate().for_each(|(index, inner)| add(&index.to_string(), inner)),
        _ => {}
    }
}

/// The plugins that a config names in any place.
fn collect_readers(value: &Value, into: &mut Vec<&'static str>) {
    const ALL: &[&str] = &[
        "macvlan",
        "ipvlan",
        "vlan",
        "bridge",
        "host-device",
        "tuning",
        "vrf",
        "sbr",
        "bandwidth",
        "portmap",
        "firewall",
        "host-local",
        "static",
        "dhcp",
        "whereabouts",
    ];
    match value {
        Value::Object(members) => {
            let kind = members.get("type").and_then(Value::as_str);
            into.extend(ALL.iter().find(|name| kind == Some(**name)));
            members.values().for_each(|inner| collect_readers(inner, into));
        }
        Value::Array(elements) => elements.iter().for_each(|inner| collect_readers(inner, into)),
        _ => {}
    }
}
