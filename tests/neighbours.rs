//! What it costs to find the NADs that matter to one among ten thousand.

use std::fs;
use std::time::Instant;

use nadmit::policy::{NeighbourIndex, NetworkUse};
use nadmit::resources::{Object, ObjectKey};
use serde_json::json;

const NADS: u32 = 10_000;

fn summary(key: &ObjectKey, config: &str) -> NetworkUse {
    let json = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": key.name(), "namespace": key.namespace() }, "spec": { "config": config },
    })
    .to_string();
    let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("{json}") };
    NetworkUse::of(&nad)
}

fn vlan(id: u32, range: &str, network_name: &str) -> String {
    let ipam = json!({ "type": "whereabouts", "range": range, "network_name": network_name });
    let id = id % 4000 + 1;
    json!({ "cniVersion": "1.0.0", "name": "n", "type": "vlan", "master": "eth1", "vlanId": id, "ipam": ipam })
        .to_string()
}

fn ovn(namespace: &str, name: &str, subnets: &str) -> String {
    let nad = format!("{namespace}/{name}");
    let kind = "ovn-k8s-cni-overlay";
    json!({ "cniVersion": "1.0.0", "name": "blue", "type": kind, "topology": "layer2", "netAttachDefName": nad, "subnets": subnets })
        .to_string()
}

/// The memory of this process, in bytes.
fn memory() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// `cargo test --test tests neighbours:: -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn cost_of_ten_thousand_nads() {
    type Configs = (&'static str, fn(u32, &ObjectKey) -> String);
    let all: [Configs; 4] = [
        ("ranges of their own on one master", |number, _| {
            vlan(number, &format!("10.{}.{}.0/24", number / 256, number % 256), &format!("net-{}", number % 100))
        }),
        ("one range on 4,000 VLANs", |number, _| vlan(number, "10.0.0.0/8", "shared")),
        ("one network of OVN", |_, key| ovn(key.namespace(), key.name(), "10.0.0.0/16")),
        ("one name of OVN, each with another config", |number, key| {
            ovn(key.namespace(), key.name(), &format!("10.{}.{}.0/24", number / 256, number % 256))
        }),
    ];
    for (what, config) in all {
        let keys: Vec<_> = (0..NADS)
            .map(|number| ObjectKey::new(&format!("tenant-{}", number % 500), &format!("net-{number}")))
            .collect();
        let before = memory();
        let began = Instant::now();
        let mut index = NeighbourIndex::default();
        for (number, key) in (0..).zip(&keys) {
            index.put(key, summary(key, &config(number, key)));
        }
        let (built, bytes) = (began.elapsed(), memory().saturating_sub(before) / NADS as usize);
        let nads: Vec<_> = (0..).zip(&keys).map(|(number, key)| (key, summary(key, &config(number, key)))).collect();
        let began = Instant::now();
        let found: usize = nads.iter().map(|(key, summary)| index.neighbours(key, summary).len()).sum();
        let looked_up = began.elapsed() / NADS;
        let began = Instant::now();
        for (key, summary) in nads.iter().take(100) {
            index.put(key, summary.clone());
            index.neighbours(key, summary);
        }
        let changed = began.elapsed() / 100;
        println!(
            "{what}: read and built in {built:.1?}, {bytes} bytes each; look-up {looked_up:.1?}, with a change {changed:.1?}; {found} found"
        );
    }
}
