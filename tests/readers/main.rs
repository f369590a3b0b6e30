//! Compares how nadmit reads a config with how Go's own decoder reads it: see README.md.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "a test fails by panicking and prints its progress"
)]
#![allow(unreachable_pub, missing_docs, reason = "this is a test binary")]

mod agreement;
mod decoder;
mod generate;
mod mutate;
mod networks;
mod oracle;
mod readers;
mod selections;
mod single;

use decoder::{Decoded, Decoder};
use generate::Generator;
use nadmit::cni::schema::Reading;
use readers::{GoReader, readers};

/// How many disagreements are shown.
const MOST_SHOWN: usize = 5;

/// Configs that were once read wrongly, each with the name of its reader.
const KNOWN: &[(&str, &str)] = &[
    ("sriov", r#"{"LOGFILE":"/etc/cron.d/x","logFile":null}"#),
    ("sriov", r#"{"SPOOFCHK":"true","spoofchk":null}"#),
    ("sriov", r#"{"link_state":null,"Link_state":"true"}"#),
    ("sriov", r#"{"VLAN":5,"vlan":null}"#),
    ("sriov", r#"{"vlan":5,"vlan":null,"Vlan":7}"#),
    ("sriov", r#"{"Capabilities":{"mac":true,"ips":true},"capabilities":{"mac":null}}"#),
    ("sriov", r#"{"DeviceID":"0000:01:00.1","deviceID":null,"deviceid":"0000:01:00.2"}"#),
    ("sriov", r#"{"IPAM":{"type":"dhcp"},"ipam":{}}"#),
    ("sriov", "{\"\u{17f}poofch\u{212a}\":\"on\",\"SpoofChk\":\"off\"}"),
    ("host-local", r#"{"IPAM":{"type":"host-local","subnet":"10.0.0.0/24"},"ipam":{}}"#),
    ("host-local", r#"{"IPAM":{"ranges":[[{"subnet":"a"},{"gateway":"b"}]]},"ipam":{"ranges":[[{"gateway":"c"}]]}}"#),
    ("host-local", r#"{"IPAM":{"routes":[{"dst":"a","gw":"b"}]},"ipam":{"routes":[{"gw":"c"}]}}"#),
    ("whereabouts", r#"{"IPAM":{"type":"whereabouts","range":"10.0.0.0/24"},"ipam":{}}"#),
    ("whereabouts", r#"{"ipam":{"Gateway":"a","gateway":"b","GATEWAY":"c"}}"#),
    ("static", r#"{"ipam":{"addresses":[{"Address":{},"address":"a","ADDRESS":"b"}]}}"#),
    ("ovs", r#"{"Trunk":[{"minID":1,"maxID":5},{"id":9},null],"trunk":[{"id":3}],"TRUNK":[{},{},{"id":1}]}"#),
    ("ovs", r#"{"vlan":-0,"mtu":-0.0}"#),
    ("multus", r#"{"Delegates":[{"type":"sriov"}],"delegates":[{"vlan":5}]}"#),
    ("tuning", r#"{"Sysctl":{"net.a":"1"},"sysctl":{"net.b":null}}"#),
    ("the list as Multus reads it", r#"{"plugins":[{"type":"a"},{"type":"b"}],"Plugins":[{"name":"c"}]}"#),
    ("the list as Multus reads it", r#"{"plugins":[{"type":"a"}],"Plugins":null}"#),
];

#[test]
fn nadmit_and_go_decode_alike() {
    let readers = readers();
    let seed = variable("NADMIT_SEED").unwrap_or_else(fresh_seed);
    let configs = variable("NADMIT_CONFIGS").unwrap_or(5000);
    eprintln!("{configs} configs of seed {seed} (NADMIT_SEED={seed} makes the same ones again)");
    let mut questions: Vec<(&GoReader, String)> = Vec::new();
    for (name, config) in KNOWN {
        questions.push((readers.iter().find(|reader| reader.name == *name).unwrap(), (*config).to_owned()));
    }
    let mut generator = Generator::new(seed);
    for _ in 0..configs {
        let reader = &readers[generator.below(readers.len())];
        questions.push((reader, generator.config(reader)));
    }
    let answers = Decoder::start(&readers).ask(&questions);
    let mut wrong = 0;
    let mut decoded = 0;
    for ((reader, config), go) in questions.iter().zip(&answers) {
        let own = reader.read(config);
        decoded += usize::from(matches!(go, Decoded::Value(_)));
        let is_same = match (go, &own) {
            (Decoded::Value(go), Decoded::Value(own)) => go == own,
            (Decoded::Error(_), Decoded::Error(_)) => true,
            _ => false,
        };
        if !is_same {
            wrong += 1;
            if wrong <= MOST_SHOWN {
                let way = if reader.reading == Reading::Text { "the text" } else { "a copy" };
                eprintln!("\n{}, from {way}: {config}\n  Go:     {go}\n  nadmit: {own}", reader.name);
            }
        }
    }
    eprintln!("{} configs for {} readers: {decoded} decoded by Go, the others rejected", answers.len(), readers.len());
    assert_eq!(wrong, 0, "configs that nadmit and Go read differently, of seed {seed}");
    // A generator of only broken configs, or only good ones, would test little.
    assert!(answers.len() < 1000 || (answers.len() / 4..answers.len() * 19 / 20).contains(&decoded), "{decoded}");
}

pub fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

pub fn fresh_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |now| now.as_micros() as u64)
}
