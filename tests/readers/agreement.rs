//! Two claims about a whole network, compared with the programs that read it: what nadmit denies would have kept a pod from
//! starting, and what it has no finding on lets the pod start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use nadmit::policy::{Action, Facts, Policy, Subject, judge};
use nadmit::resources::Object;
use serde_json::json;

use crate::generate::Generator;
use crate::networks::{GeneratedNetwork, Scope};
use crate::oracle::{Answer, Oracle, Question};
use crate::{fresh_seed, single, variable};

/// Rules on values that a plugin accepts when it loads its config, which is what was recorded: it rejects or misreads them later.
const AFTER_LOADING: &[&str] = &["sriov/mac", "sriov/on-off", "sriov/tx-rate", "ovs/vlan", "ovs/trunk", "ovs/ofport"];

/// How many disagreements are shown.
const MOST_SHOWN: usize = 8;

/// What nadmit found in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Judgement {
    Nothing,
    /// A warning, or something to repair.
    Something,
    Denial(&'static str),
}

fn judged(Question { config, name, has_device, .. }: &Question) -> Judgement {
    let annotations = if *has_device { json!({"k8s.v1.cni.cncf.io/resourceName": "a.io/b"}) } else { json!({}) };
    let nad = json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "apps", "annotations": annotations},
        "spec": {"config": config},
    })
    .to_string();
    let object = Object::read(&nad).unwrap().unwrap();
    let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
    let denial = verdict.findings.iter().find(|finding| finding.action == Action::Deny);
    match denial {
        Some(finding) => Judgement::Denial(finding.rule.id),
        None if verdict.findings.is_empty() => Judgement::Nothing,
        None => Judgement::Something,
    }
}

/// How often a reader did what nadmit says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    pub accepted: usize,
    accepted_with_warning: usize,
    pub refused: usize,
    refused_with_warning: usize,
    pub wrong: usize,
}

impl Agreement {
    /// Counts an answer; returns what is wrong if the two contradict each other.
    fn count(&mut self, found: Judgement, answer: &Answer) -> Option<String> {
        let problem = match (answer, found) {
            (Answer::Accepted, Judgement::Denial(rule)) => {
                Some(format!("nadmit denies it ({rule}), but the pod starts"))
            }
            (Answer::Refused(error), Judgement::Nothing) => Some(format!("nadmit finds nothing, but: {error}")),
            _ => None,
        };
        match (answer, found) {
            _ if problem.is_some() => self.wrong += 1,
            (Answer::Refused(_), Judgement::Denial(_)) => self.refused += 1,
            (Answer::Refused(_), _) => self.refused_with_warning += 1,
            (_, Judgement::Nothing) => self.accepted += 1,
            (_, Judgement::Something) => self.accepted_with_warning += 1,
            // Something in the rest of the config, which was not read, is denied.
            (_, Judgement::Denial(_)) => {}
        }
        problem
    }

    /// Adds what another run counted.
    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.accepted_with_warning += other.accepted_with_warning;
        self.refused += other.refused;
        self.refused_with_warning += other.refused_with_warning;
        self.wrong += other.wrong;
    }

    fn sum(&self) -> usize {
        self.accepted + self.accepted_with_warning + self.refused + self.refused_with_warning + self.wrong
    }
}

/// The table that `make agreement` writes: a row for each reader.
static TABLE: Mutex<BTreeMap<String, (String, Agreement)>> = Mutex::new(BTreeMap::new());

/// The answer, asked for again if it contradicts nadmit: on a busy machine a plugin can fail for reasons of its own.
fn confirmed(answer: Answer, found: Judgement, question: &Question) -> Answer {
    match (&answer, found) {
        (Answer::Refused(error), Judgement::Nothing) => {
            eprintln!("asking again: {error}");
            Oracle::ask_all(std::slice::from_ref(question)).remove(0)
        }
        _ => answer,
    }
}

fn compare(scope: Scope, count: u64) {
    let seed = variable("NADMIT_SEED").unwrap_or_else(fresh_seed);
    eprintln!("{count} networks ({scope:?}) of seed {seed} (NADMIT_SEED={seed} makes the same ones again)");
    let mut generator = Generator::new(seed);
    let networks: Vec<_> = (0..count).map(|_| generator.network(scope)).collect();
    compare_all(&networks, &format!("of seed {seed}"));
}

/// Asks the readers about each network; `which` says which networks these are.
fn compare_all(networks: &[GeneratedNetwork], which: &str) {
    let questions: Vec<_> = networks.iter().map(|network| network.question.clone()).collect();
    let answers = Oracle::ask_all(&questions);
    let mut wrong = Vec::new();
    let mut table: BTreeMap<&str, Agreement> = BTreeMap::new();
    for (GeneratedNetwork { question, readers }, answer) in networks.iter().zip(answers) {
        let found = judged(question);
        let answer = confirmed(answer, found, question);
        let device = if question.has_device { ", with a device" } else { "" };
        for reader in readers {
            let problem = table.entry(reader).or_default().count(found, &answer);
            wrong.extend(problem.map(|problem| format!("{}: {}{device}\n  {problem}", question.name, question.config)));
        }
    }
    wrong.sort_by_key(String::len);
    wrong.dedup();
    for one in wrong.iter().take(MOST_SHOWN) {
        eprintln!("\n{one}");
    }
    for (reader, agreement) in table {
        eprintln!("{reader}: {agreement:?}");
        record(reader, version_of(reader), agreement);
        assert!(
            agreement.sum() < 300 || (agreement.accepted > 0 && agreement.refused > 0),
            "{reader}: nothing is tested"
        );
    }
    assert_eq!(wrong.len(), 0, "networks on which nadmit and their readers disagree, {which}");
}

#[test]
fn each_value_alone_is_judged_as_its_plugin_does() {
    let networks = single::networks();
    eprintln!("{} networks with one value each", networks.len());
    assert!(networks.len() > 150);
    compare_all(&networks, "with one value each");
}

#[test]
fn networks_are_judged_as_their_plugins_do() {
    compare(Scope::Executed, variable("NADMIT_NETWORKS").unwrap_or(5000));
}

#[test]
fn networks_are_judged_as_multus_libcni_and_ipam_do() {
    compare(Scope::InProcess, variable("NADMIT_CONFIGS").unwrap_or(5000));
}

/// What the plugins answered that cannot be run here.
#[test]
fn recorded_answers_are_confirmed() {
    let mut wrong = Vec::new();
    for (name, text) in [
        ("sriov", include_str!("recorded/sriov.txt")),
        ("ib-sriov", include_str!("recorded/ib-sriov.txt")),
        ("ovs", include_str!("recorded/ovs.txt")),
    ] {
        let version = text.lines().next().and_then(|line| line.strip_prefix("# ")?.split(':').next()).unwrap();
        let mut agreement = Agreement::default();
        let rows: Vec<_> = text.lines().filter(|row| !row.starts_with('#')).map(|row| row.split_at(2)).collect();
        // Multus and libcni read it before the plugin does.
        let asked =
            |config: &str| Question { config: config.to_owned(), name: "net", asks_in_json: false, has_device: true };
        let questions: Vec<_> = rows.iter().map(|(_, config)| asked(config)).collect();
        for (((answer, config), question), before) in rows.iter().zip(&questions).zip(Oracle::ask_all(&questions)) {
            let answer = match *answer {
                "+ " => before,
                _ => Answer::Refused("refused when it was recorded".to_owned()),
            };
            let found = match judged(question) {
                Judgement::Denial(rule) if answer == Answer::Accepted && AFTER_LOADING.contains(&rule) => {
                    Judgement::Something
                }
                found => found,
            };
            let problem = agreement.count(found, &answer);
            wrong.extend(problem.map(|problem| format!("{config}\n  {problem}")));
        }
        eprintln!("{name}: {agreement:?}");
        assert!(agreement.accepted > 100 && agreement.refused > 1000, "{name}");
        record(name, format!("{version}, recorded"), agreement);
    }
    wrong.sort_by_key(String::len);
    for one in wrong.iter().take(MOST_SHOWN) {
        eprintln!("\n{one}");
    }
    assert_eq!(wrong.len(), 0, "recorded answers that nadmit contradicts");
}

/// Adds a row, and writes the table where it is asked for.
pub fn record(reader: &str, version: String, agreement: Agreement) {
    let mut table = TABLE.lock().unwrap();
    let (_, sum) = table.entry(reader.to_owned()).or_insert_with(|| (version, Agreement::default()));
    sum.add(&agreement);
    let Some(path) = std::env::var_os("NADMIT_AGREEMENT") else { return };
    let mut page = String::from(HEAD);
    for (reader, (version, agreement)) in table.iter() {
        let Agreement { accepted, accepted_with_warning, refused, refused_with_warning, wrong } = agreement;
        let _ = writeln!(
            page,
            "| {reader} | {version} | {} | {accepted} | {accepted_with_warning} | {refused} | {refused_with_warning} | {wrong} |",
            agreement.sum(),
        );
    }
    std::fs::write(path, page).unwrap();
}

const HEAD: &str = "<!-- written by `make agreement` -->
# Agreement with the readers

nadmit's promise is that a denial is always right, and that silence can be trusted. Both are measured: configs are generated, most of them
nearly right, and the programs that really read them are asked. Multus reads each one from a NAD, libcni calls the plugins, and those make an
interface in a network namespace of their own. `sriov`, `ib-sriov` and `ovs` need hardware; what they answered was recorded.

- *accepted*: the pod got its interface, and nadmit found nothing, or only warned;
- *refused*: the pod did not start, and nadmit denied the NAD, or only warned (the rule depends on the version of the reader, or on
  what pods ask for);
- *wrong*: the pod started although nadmit denied the NAD, or did not start although nadmit found nothing.

A network with several plugins counts for each of them. The row of the pod annotation compares the networks that Multus and nadmit read in
`k8s.v1.cni.cncf.io/networks`. [tests/readers](../tests/readers/README.md) describes how it is done.

| reader | version | configs | accepted, nothing found | accepted, with a warning | refused, denied | refused, with a warning | wrong |
|---|---|---|---|---|---|---|---|
";

/// The version of a reader, as the Go program imports it.
pub fn version_of(reader: &str) -> String {
    let module = match reader {
        "multus" => "gopkg.in/k8snetworkplumbingwg/multus-cni.v4",
        "libcni" => "github.com/containernetworking/cni",
        "whereabouts" => "github.com/k8snetworkplumbingwg/whereabouts",
        _ => "github.com/containernetworking/plugins",
    };
    let versions = include_str!("oracle/go.mod").lines().filter_map(|line| line.trim().split_once(' '));
    let version = versions.filter(|(name, _)| *name == module).map(|(_, version)| version).next();
    version.unwrap_or_else(|| panic!("{module} is not imported")).to_owned()
}
