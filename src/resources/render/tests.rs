//! Direct rendering gives the same result as rendering through YAML.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::Object;
use super::read::{direct, through_yaml};
use super::*;

/// Ordinary texts, and texts with a meaning in YAML, in JSON or in the template.
const PIECES: &[&str] = &[
    "a",
    "net",
    "z9",
    "-",
    ".",
    "/",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n---\n",
    "\n...\n",
    "---",
    "...",
    "\t",
    "\r",
    "'",
    "''",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    ": ",
    " #",
    "#",
    "&",
    "*",
    "!",
    "|",
    ">",
    "%",
    "@",
    "`",
    "?",
    "é",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{1}",
    "null",
    "on",
    "yes",
    "1e3",
    "0x1f",
    "~",
    "true",
    "\"a\": 1",
    "{\"type\":\"static\"}",
    "{ \"a\": [1, 2,\n   3] }",
    "\n  ",
    " \n ",
    "x\n y",
];

const NAMES: &[&str] = &[
    "net",
    "telco-mgmt",
    "a.b-c",
    "on",
    "null",
    "123",
    "1e3",
    "n",
    "y",
    "0",
    "a---b",
    "..",
    "",
    "Yes",
    "e5",
    "2020-01-01",
];

const FIELDS: &[&str] =
    &["ipam", "capabilities", "metaPlugins", "vlanProto", "logLevel", "logFile", "spoofChk", "bridge", "linkState"];

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn text(&mut self) -> String {
        let pieces = self.below(5);
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    /// Most names are plain, so that direct rendering is possible for many networks.
    fn name(&mut self) -> String {
        match self.below(24) {
            0 => self.text(),
            1 => NAMES[self.below(NAMES.len())].to_owned(),
            number => format!("net-{number}.a"),
        }
    }

    /// Most fields are harmless, for the same reason.
    fn field(&mut self) -> Value {
        match self.below(8) {
            0 => self.text().into(),
            1 => format!("{{\"k{}\": \"v w\", \n\"l\": [true, {{}}]}}", self.below(9)).into(),
            2 => "{ }".into(),
            3 => "".into(),
            _ => "{\"type\": \"static\",\n \"addresses\": [\n]\n}\n".into(),
        }
    }

    fn network(&mut self) -> String {
        let kind = ["SriovNetwork", "SriovIBNetwork", "OVSNetwork"][self.below(3)];
        let mut spec = serde_json::Map::new();
        for field in FIELDS {
            if self.below(3) == 0 {
                spec.insert((*field).to_owned(), self.field());
            }
        }
        spec.insert("resourceName".to_owned(), self.name().into());
        if self.below(2) == 0 {
            spec.insert("networkNamespace".to_owned(), self.name().into());
        }
        spec.insert("vlan".to_owned(), self.below(5000).into());
        json!({
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": kind,
            "metadata": { "name": self.name(), "namespace": self.name() },
            "spec": spec,
        })
        .to_string()
    }
}

/// Compares the two ways for many networks; returns how many were rendered directly.
fn compare(random: &mut Random, count: usize) -> usize {
    let mut certain = 0;
    for _ in 0..count {
        let json = random.network();
        let Ok(Some(Object::Network(network))) = Object::read(&json) else { panic!("{json}") };
        let filled = Template::fill(&network).config;
        let (namespace, owner) = (network.target_namespace(), network.id().owner_ref());
        let resource = format!("openshift.io/{}", network.text("resourceName"));
        let name = network.meta.name.as_ref();
        let meant = ExpectedNad { name, namespace: &namespace, resource: &resource, owner: &owner };
        let Some(config) = direct(&filled, &meant) else { continue };
        certain += 1;
        assert_eq!(Ok(config), through_yaml(&meant.manifest(&filled), &meant), "{json}");
    }
    certain
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A hundred networks for each seed; `make renderings` compares a million.
    #[test]
    fn direct_rendering_equals_rendering_through_yaml(seed in 1..u64::MAX) {
        compare(&mut Random(seed), 100);
    }
}

#[test]
fn some_networks_are_certain_and_some_are_not() {
    let certain = compare(&mut Random(7), 2000);
    assert!((800..1600).contains(&certain), "{certain} of 2000");
}

/// Usual networks are always rendered directly.
#[test]
fn usual_networks_need_no_yaml() {
    for spec in [
        json!({ "resourceName": "cx7" }),
        json!({ "resourceName": "cx7", "networkNamespace": "apps", "vlan": 100, "spoofChk": "off", "trust": "on",
            "ipam": "{\n  \"type\": \"whereabouts\",\n  \"range\": \"10.20.0.0/24\"\n}\n", "capabilities": "{ \"mac\": true }",
            "metaPlugins": "{ \"type\": \"tuning\" },\n{ \"type\": \"vrf\", \"vrfname\": \"red\" }" }),
    ] {
        let json = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork",
            "metadata": { "name": "telco-mgmt", "namespace": "openshift-sriov-network-operator" }, "spec": spec });
        let json = json.to_string();
        let Ok(Some(Object::Network(network))) = Object::read(&json) else { panic!("{json}") };
        let (namespace, owner) = (network.target_namespace(), network.id().owner_ref());
        let meant = ExpectedNad {
            name: &network.meta.name,
            namespace: &namespace,
            resource: "openshift.io/cx7",
            owner: &owner,
        };
        assert!(direct(&Template::fill(&network).config, &meant).is_some(), "{json}");
        let rendered = render(&network, "openshift.io");
        let nad = rendered.nad_json().unwrap();
        let Ok(Some(Object::Nad(read))) = Object::read(&nad) else { panic!("{nad}") };
        let built = rendered.nad().unwrap();
        assert_eq!(
            (&read.meta.name, &read.meta.namespace, &read.config),
            (&built.meta.name, &built.meta.namespace, &built.config)
        );
        for key in [RESOURCE_NAME, OWNER_REF] {
            assert_eq!(read.meta.annotation(key), built.meta.annotation(key));
            assert_eq!(read.meta.raw_annotation(key), built.meta.raw_annotation(key));
        }
        assert_eq!((read.meta.owner(), read.unknown, read.misshapen.len()), (built.meta.owner(), Vec::new(), 0));
    }
}

#[test]
fn indents_as_go_does() {
    for (text, want) in [
        ("{}", "{}"),
        ("[ ]", "[]"),
        ("{ \"a\" : [ ] }", "{\n    \"a\": []\n}"),
        ("[1,\n-2.5e3 ,true]", "[\n    1,\n    -2.5e3,\n    true\n]"),
        (
            r#"{"a b\"{ ,:":"\\","c":{"d":null}}"#,
            "{\n    \"a b\\\"{ ,:\": \"\\\\\",\n    \"c\": {\n        \"d\": null\n    }\n}",
        ),
    ] {
        assert_eq!(indent(text).as_deref(), Ok(want), "{text}");
    }
    // Two tokens are never joined.
    assert!(indent("[1 2]").is_err());
    let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let wide = format!("[{}0]", format!("{deep},").repeat(500));
    assert!(indent(&wide).is_err_and(|error| error.problem == json::Problem::TooLarge));
}

#[test]
fn characters_that_are_not_blank_are_counted() {
    let text = "a b\n''c'd";
    // A doubled quote becomes one, where it goes through YAML.
    for (nth, offset) in [(0, 0), (1, 2), (2, 4), (3, 6), (4, 7), (5, 8), (6, 9)] {
        assert_eq!(offset_of_nonblank(text, nth), offset, "{nth}");
    }
    assert_eq!(offset_of_nonblank(&["'"; 5].concat(), 2), 4, "the third of three quotes");
    for (offset, count) in [(0, 0), (1, 1), (2, 1), (3, 2), (5, 3), (9, 7), (99, 7)] {
        assert_eq!(nonblank_before(text, offset), count, "{offset}");
    }
    let mut counter = NonblankCounter::default();
    counter.add("a '");
    counter.add("'b");
    assert_eq!(counter.count, 3, "the quotes of two parts are one");
}

#[test]
fn what_the_rendered_nad_has_beside_the_intended_is_named() {
    let rendered = |name: &str, namespace: &str, resource: &str| {
        let meant = ExpectedNad { name, namespace, resource, owner: "SriovNetwork/op/net" };
        through_yaml(&meant.manifest("{}"), &meant)
    };
    let differs = |pointer: &str| Err(RenderFault::Differs(pointer.to_owned()));
    let not_text = |what, json: &str| Err(RenderFault::NotText(what, json.to_owned()));
    assert_eq!(rendered("net", "apps", "a.io/b"), Ok("{}".to_owned()));
    assert_eq!(rendered("net", "", "a.io/b"), Ok("{}".to_owned()), "no namespace is given");
    assert_eq!(rendered("net\n  labels: {}", "apps", "a.io/b"), differs("/metadata/labels"));
    assert_eq!(rendered("net", "apps", "a.io/b\n    x/y: z"), differs("/metadata/annotations/x~1y"));
    let annotation = "/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName";
    assert_eq!(rendered("net", "apps", "a.io/b # x"), differs(annotation));
    assert_eq!(rendered("net # x", "apps", "a.io/b"), differs("/metadata/name"));
    assert_eq!(rendered("5", "apps", "a.io/b"), not_text("name", "5"));
    assert_eq!(rendered("net", "5", "a.io/b"), not_text("namespace", "5"));
    assert_eq!(rendered("net\n---\na: b", "apps", "a.io/b"), Err(RenderFault::Documents(2)));
}

#[test]
fn the_indented_config_may_be_as_long_as_any() {
    let text = format!("\"{}\"", "x".repeat(json::MAX_BYTES - 2));
    assert_eq!(indent(&text), Ok(text));
    let list = |length: usize| format!("[\"{}\"]", "x".repeat(length));
    // The list needs ten more bytes: two line breaks, four spaces, the brackets and the quotes.
    assert!(indent(&list(json::MAX_BYTES - 10)).is_ok_and(|text| text.len() == json::MAX_BYTES));
    assert!(indent(&list(json::MAX_BYTES - 9)).is_err());
    assert!(indent(&list(json::MAX_BYTES - 8)).is_err());
}

/// What is zero or not set is left out, and each value is in the field that it came from.
#[test]
fn each_field_is_rendered_at_its_place() {
    let rendered = |kind: &str, spec: Value| {
        let json = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": kind,
            "metadata": { "name": "net", "namespace": "op" }, "spec": spec })
        .to_string();
        let Ok(Some(Object::Network(network))) = Object::read(&json) else { panic!("{json}") };
        let rendered = render(&network, "a.io");
        let compact = serde_json::from_str::<Value>(&rendered.config).unwrap().to_string();
        (rendered, compact)
    };
    let spec = json!({ "bridge": "b", "vlan": 0, "mtu": 0, "trunk": [{ "minID": 1, "maxID": 2 }, { "id": 5 }], "interfaceType": "dpdk" });
    let (ovs, compact) = rendered("OVSNetwork", spec);
    let want = r#"{"bridge":"b","cniVersion":"1.0.0","interface_type":"dpdk","ipam":{},"name":"net","trunk":[{"maxID":2,"minID":1},{"id":5}],"type":"ovs"}"#;
    assert_eq!(compact, want);
    let at = |text: &str| ovs.origin(ovs.config.find(text).unwrap());
    assert_eq!(at("\"trunk\""), Some(("trunk", 0)));
    assert_eq!(at("[\n"), Some(("trunk", 0)));
    assert_eq!(at("\"minID\""), Some(("trunk", 2)));
    assert_eq!(at("dpdk"), Some(("interfaceType", 0)));
    assert_eq!(at("pdk\""), Some(("interfaceType", 1)));
    assert_eq!(at("\"type\""), None);
    for (level, want) in [(json!("debug"), json!("debug")), (json!(""), Value::Null), (Value::Null, json!("info"))] {
        let (_, compact) = rendered("SriovNetwork", json!({ "resourceName": "r", "logLevel": level }));
        assert_eq!(serde_json::from_str::<Value>(&compact).unwrap()["logLevel"], want, "{compact}");
    }
    for (rate, qos, has_rate, has_qos) in [(0, 0, true, true), (-1, 8, false, false), (5, 7, true, true)] {
        let (_, compact) = rendered(
            "SriovNetwork",
            json!({ "resourceName": "r", "minTxRate": rate, "maxTxRate": rate, "vlanQoS": qos }),
        );
        for (key, value, want) in
            [("min_tx_rate", rate, has_rate), ("max_tx_rate", rate, has_rate), ("vlanQoS", qos, has_qos)]
        {
            let found = serde_json::from_str::<Value>(&compact).unwrap().get(key).cloned();
            assert_eq!(found, want.then(|| json!(value)), "{compact}");
        }
    }
}
