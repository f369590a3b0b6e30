//! Each value of the tables by itself, in a network that works otherwise: no other mistake hides that one is judged wrongly.

use serde_json::{Map, Value, json};

use crate::networks::{CHAINED, GeneratedNetwork, IPAM, NetworkKey, PLUGINS};
use crate::oracle::Question;

/// One network for each value of each key.
pub fn networks() -> Vec<GeneratedNetwork> {
    let mut networks = Vec::new();
    for (kind, keys) in PLUGINS {
        for plugin in variants(kind, keys) {
            networks.push(network(plugin, &[kind]));
        }
    }
    for (kind, keys) in CHAINED {
        for plugin in variants(kind, keys) {
            let addresses = json!({"type": "static", "addresses": [{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}]});
            let first = json!({"type": "bridge", "bridge": "br1", "ipam": addresses});
            networks.push(network(json!({ "plugins": [first, plugin] }), &["bridge", "static", kind]));
        }
    }
    for (kind, keys) in IPAM {
        for ipam in variants(kind, keys) {
            networks.push(network(json!({"type": "bridge", "bridge": "br1", "ipam": ipam}), &["bridge", kind]));
        }
    }
    networks
}

/// What a plugin needs to work at all.
fn needed(kind: &str) -> Value {
    match kind {
        "macvlan" | "ipvlan" => json!({"master": "eth0"}),
        "vlan" => json!({"master": "eth0", "vlanId": 5}),
        "host-device" => json!({"device": "eth0"}),
        "vrf" => json!({"vrfname": "blue"}),
        "bandwidth" => {
            json!({"ingressRate": 1_000_000, "ingressBurst": 1_000_000, "egressRate": 1_000_000, "egressBurst": 1_000_000})
        }
        "host-local" => json!({"subnet": "10.0.0.0/24"}),
        "whereabouts" => json!({"range": "10.0.0.0/24"}),
        "static" => json!({"addresses": [{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}]}),
        _ => json!({}),
    }
}

/// A plugin with what it needs, once with each value of each key.
fn variants(kind: &str, keys: &[NetworkKey]) -> Vec<Value> {
    let mut variants = Vec::new();
    for (key, good, bad) in keys {
        for value in good.iter().chain(*bad) {
            let mut members: Map<String, Value> = needed(kind).as_object().cloned().unwrap();
            members.insert("type".to_owned(), kind.into());
            members.insert((*key).to_owned(), serde_json::from_str(value).unwrap());
            variants.push(members.into());
        }
    }
    variants
}

fn network(mut config: Value, plugins: &[&'static str]) -> GeneratedNetwork {
    config["cniVersion"] = "1.0.0".into();
    config["name"] = "net".into();
    let question = Question { config: config.to_string(), name: "net", asks_in_json: false, has_device: false };
    let mut readers = vec!["multus", "libcni"];
    readers.extend(plugins);
    GeneratedNetwork { question, readers }
}
