//! The annotation by which a pod selects networks: nadmit and Multus must read the same ones in it, or none.

use nadmit::resources::Selection;

use crate::agreement::{Agreement, record, version_of};
use crate::oracle::Oracle;
use crate::{fresh_seed, variable};

/// How many disagreements are shown.
const MOST_SHOWN: usize = 8;

/// Annotations that are read in an unexpected way.
const KNOWN: &[&str] = &[
    "",
    " ",
    ",",
    "net,",
    "null",
    "[]",
    "[null]",
    "{}",
    "\"net\"",
    "\"a\",\"b\"",
    "a@b/c",
    "a/b@c@d",
    "other / net @ eth1",
    "net\u{a0}",
    "net@sixteen-letters-",
    "net@fifteen-letters",
    "net@é",
    "ns/",
    "/net",
    "[{\"NAME\":\"a\",\"name\":null}]",
    "[{\"name\":\"a\",\"name\":\"b\"}]",
    "[{\"ips\":[\"10.0.0.1\"],\"ips\":[null]}]",
    "[{\"ips\":[null]}]",
    "[{\"ips\":[\"10.0.0.1\",\"10.0.0.2\"],\"IPS\":[null,null,null]}]",
    "[{\"default-route\":[\"x\"],\"default-route\":null}]",
    "[{\"default-route\":[\"\",null]}]",
    "[{\"default-route\":[\"fe80::1%eth0\"]}]",
    "[{\"cni-args\":{\"a\":1e300},\"cni-args\":null}]",
    "[{\"cni-args\":[]}]",
    "[{\"bandwidth\":{\"ingressRate\":1.0}}]",
    "[{\"portMappings\":[null,{\"hostPort\":\"80\"}]}]",
    "[{\"mac\":\"020000000001\"}]",
    "[{\"mac\":\"0200.0000.0001\",\"infiniband-guid\":\"02:00:00:00:00:00:00:01\"}]",
    "[{\"interfaceRequest\":\"x\",\"interface\":\"\"}]",
];

const NAMES: &[&str] =
    &["net", "net-1", "a", "Net", "storage.v1", "net_1", "-net", "net-", "", "0", "é", "a b", "n\\/b", "apps/net"];
const NAMESPACES: &[&str] = &["apps", "other", "kube-system", "", "Other", "a.b"];
const INTERFACES: &[&str] =
    &["net1", "eth0", "e", "fifteen-letters", "sixteen-letters-", "a:b", "a b", "", "ä", ".", "a\\tb"];
const SPACES: &[&str] = &["", "", "", "", " ", "\n", "\t", "\u{a0}", "\u{85}", "\u{2003}", "\u{200b}"];
const KEYS: &[&str] = &[
    "name",
    "name",
    "name",
    "namespace",
    "interface",
    "interfaceRequest",
    "ips",
    "mac",
    "infiniband-guid",
    "portMappings",
    "bandwidth",
    "deviceID",
    "cni-args",
    "default-route",
    "Name",
    "IPS",
    "inter\\u0066ace",
    "ip\u{17f}",
    "unknown",
];
const ADDRESSES: &[&str] = &[
    "10.0.0.1",
    "10.0.0.1/24",
    "10.0.0.1/024",
    "10.0.0.1/33",
    "10.0.0.01",
    "10.0.0",
    "fd00::1",
    "fd00::1/64",
    "fd00::1/129",
    "::ffff:10.0.0.1",
    "::ffff:10.0.0.1/120",
    "::10.0.0.1",
    "fe80::1%eth0",
    "1:2:3:4:5:6:7::",
    "1:2:3:4:5:6:7:8:9",
    "10.0.0.1/",
    "/24",
    " 10.0.0.1",
    "",
];
const HARDWARE: &[&str] = &[
    "02:00:00:00:00:01",
    "02-00-00-00-00-01",
    "0200.0000.0001",
    "02:00:00:00:00:00:00:01",
    "02:00:00:00:00",
    "02:00:00:00:00:0g",
    "x",
    "",
];
const SCALARS: &[&str] =
    &["null", "true", "5", "-1", "1.5", "1.0", "1e2", "\"x\"", "[]", "{}", "[null]", "[5]", "9223372036854775808"];
const CHARACTERS: &[char] =
    &['[', ']', '{', '}', '"', ',', ':', '/', '@', '\\', ' ', '\n', '\u{0}', 'a', 'Z', '-', '.', '0', 'é', '\u{85}'];

/// Generates the same annotations from the same seed.
struct SelectionGenerator(u64);

impl SelectionGenerator {
    fn below(&mut self, limit: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    /// The first word, or sometimes another one.
    fn mostly<'w>(&mut self, words: &[&'w str]) -> &'w str {
        if self.one_in(4) { self.of(words) } else { words[self.below(words.len().min(2))] }
    }

    fn annotation(&mut self) -> String {
        let mut text = if self.one_in(3) { self.comma_form() } else { self.json_form() };
        if self.one_in(4) {
            for _ in 0..=self.below(2) {
                text = self.mutated(&text);
            }
        }
        text
    }

    fn comma_form(&mut self) -> String {
        let items: Vec<String> = (0..=self.below(3)).map(|_| self.item()).collect();
        items.join(",")
    }

    fn item(&mut self) -> String {
        let mut item = self.of(SPACES).to_owned();
        if self.one_in(3) {
            item += self.mostly(NAMESPACES);
            item += self.of(SPACES);
            item += "/";
            item += self.of(SPACES);
        }
        item += self.mostly(NAMES);
        if self.one_in(3) {
            item += self.of(SPACES);
            item += "@";
            item += self.of(SPACES);
            item += self.mostly(INTERFACES);
        }
        item + self.of(SPACES)
    }

    fn json_form(&mut self) -> String {
        let elements: Vec<String> = (0..self.below(4)).map(|_| self.element()).collect();
        let list = format!("[{}]", elements.join(","));
        if self.one_in(30) { list.trim_matches(['[', ']']).to_owned() } else { list }
    }

    fn element(&mut self) -> String {
        if self.one_in(40) {
            return self.of(SCALARS).to_owned();
        }
        let mut members = vec![format!("\"name\":\"{}\"", self.mostly(NAMES))];
        for _ in 0..self.below(4) {
            let key = self.of(KEYS);
            let value = self.value(key);
            members.push(format!("\"{key}\":{value}"));
        }
        format!("{{{}}}", members.join(","))
    }

    fn value(&mut self, key: &str) -> String {
        if self.one_in(8) {
            return self.of(SCALARS).to_owned();
        }
        let list = |elements: Vec<String>| format!("[{}]", elements.join(","));
        match key {
            "namespace" => format!("\"{}\"", self.mostly(NAMESPACES)),
            "interface" | "interfaceRequest" | "inter\\u0066ace" => format!("\"{}\"", self.mostly(INTERFACES)),
            "mac" | "infiniband-guid" => format!("\"{}\"", self.mostly(HARDWARE)),
            "ips" | "IPS" | "ip\u{17f}" | "default-route" => {
                list((0..self.below(3)).map(|_| format!("\"{}\"", self.mostly(ADDRESSES))).collect())
            }
            "portMappings" => {
                list(vec![format!("{{\"hostPort\":{},\"protocol\":\"tcp\"}}", self.of(&["80", "0", "\"80\"", "1.0"]))])
            }
            "bandwidth" => format!("{{\"ingressRate\":{}}}", self.of(&["1000", "-1", "1e3", "null", "\"5\""])),
            "cni-args" => format!("{{\"a\":{}}}", self.of(SCALARS)),
            "unknown" => self.of(SCALARS).to_owned(),
            _ => format!("\"{}\"", self.mostly(NAMES)),
        }
    }

    /// The text with one character removed, replaced, added or repeated.
    fn mutated(&mut self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        let at = self.below(characters.len() + 1);
        let new = CHARACTERS[self.below(CHARACTERS.len())];
        match (self.below(3), at < characters.len()) {
            (0, true) => drop(characters.remove(at)),
            (1, true) => characters[at] = new,
            _ => characters.insert(at, new),
        }
        characters.into_iter().collect()
    }
}

#[test]
fn nadmit_and_multus_read_the_same_networks() {
    let seed = variable("NADMIT_SEED").unwrap_or_else(fresh_seed);
    let count = variable("NADMIT_SELECTIONS").unwrap_or(5000);
    eprintln!("{count} annotations of seed {seed} (NADMIT_SEED={seed} makes the same ones again)");
    let mut generator = SelectionGenerator(seed);
    let mut texts: Vec<String> = KNOWN.iter().map(|text| (*text).to_owned()).collect();
    texts.extend((0..count).map(|_| generator.annotation()));
    let (mut agreement, mut wrong, mut unknown) = (Agreement::default(), Vec::new(), 0);
    for (text, multus) in texts.iter().zip(Oracle::ask_selections(&texts)) {
        match (Selection::read(text, "apps"), &multus) {
            (Selection::Unknown, _) => unknown += 1,
            (Selection::Wrong(error), Err(words)) if words.contains(error.words) => agreement.refused += 1,
            (Selection::Read(networks), Ok(selected))
                if networks
                    .iter()
                    .map(|one| [&one.namespace, &one.name, &one.interface])
                    .eq(selected.iter().map(|one| one.each_ref())) =>
            {
                agreement.accepted += 1;
            }
            (nadmit, _) => wrong.push(format!("{text}\n  Multus: {multus:?}\n  nadmit: {nadmit:?}")),
        }
    }
    agreement.wrong = wrong.len();
    wrong.sort_by_key(String::len);
    for one in wrong.iter().take(MOST_SHOWN) {
        eprintln!("\n{one}");
    }
    eprintln!("{agreement:?}, {unknown} that nadmit does not read");
    record("multus, pod annotation", version_of("multus"), agreement);
    assert_eq!(wrong.len(), 0, "annotations that nadmit and Multus read differently, of seed {seed}");
    // A generator of only broken annotations, or only good ones, would test little.
    let enough = texts.len() / 5;
    assert!(agreement.accepted > enough && agreement.refused > enough && unknown < texts.len() / 50);
}
