//! Two claims about a whole network, compared with the programs that read it: what nadmit denies would have kept a pod from
//! starting, and what it has no finding on lets the pod start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use crate::generate::Generator;
use crate::judged::{Judged, ReaderDenial};
use crate::networks::{GeneratedNetwork, Scope};
use crate::oracle::{Answer, Oracle, Question, Unfinished};
use crate::{fresh_seed, single, variable};

/// Rules on values that a plugin accepts when it loads its config, which is what was recorded: it rejects or misreads them later.
const AFTER_LOADING: &[&str] = &["sriov/mac", "sriov/on-off", "sriov/tx-rate", "ovs/vlan", "ovs/trunk", "ovs/ofport"];

/// How many disagreements are shown.
const MOST_SHOWN: usize = 8;

/// How often a reader did what nadmit says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    pub accepted: usize,
    accepted_with_warning: usize,
    /// It accepted what it read, and something was missing on this machine.
    unfinished: usize,
    pub refused: usize,
    refused_with_warning: usize,
    /// It loads a config that is denied because it would misread it later.
    misread_later: usize,
    pub wrong: usize,
}

impl Agreement {
    /// Counts an answer; returns what is wrong if the two contradict each other.
    fn count(&mut self, found: &Judged, answer: &Answer, config: &str) -> Option<String> {
        if let Some(denial) = found.contradicted_by(answer, config) {
            self.wrong += 1;
            let what = if matches!(answer, Answer::Unfinished(_)) { "the plugin accepts it" } else { "the pod starts" };
            return Some(format!("nadmit denies it ({}), but {what}", denial.rule));
        }
        let counter = match answer {
            Answer::Refused(error) if found.is_clean => {
                self.wrong += 1;
                return Some(format!("nadmit finds nothing, but: {error}"));
            }
            Answer::Refused(_) if found.denials.is_empty() => &mut self.refused_with_warning,
            Answer::Refused(_) => &mut self.refused,
            // A denial that is left is about what was not read here.
            Answer::Unfinished(_) => &mut self.unfinished,
            Answer::Accepted(_) if !found.denials.is_empty() => &mut self.unfinished,
            Answer::Accepted(_) if found.is_clean => &mut self.accepted,
            Answer::Accepted(_) => &mut self.accepted_with_warning,
        };
        *counter += 1;
        None
    }

    /// Adds what another run counted.
    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.accepted_with_warning += other.accepted_with_warning;
        self.unfinished += other.unfinished;
        self.refused += other.refused;
        self.refused_with_warning += other.refused_with_warning;
        self.misread_later += other.misread_later;
        self.wrong += other.wrong;
    }

    fn sum(&self) -> usize {
        let judged = self.accepted + self.accepted_with_warning + self.refused + self.refused_with_warning;
        judged + self.unfinished + self.misread_later + self.wrong
    }
}

/// The table that `make agreement` writes: a row for each reader.
static TABLE: Mutex<BTreeMap<String, (String, Agreement)>> = Mutex::new(BTreeMap::new());

/// The answer, asked for again if it contradicts nadmit: on a busy machine a plugin can fail for reasons of its own.
fn confirmed(answer: Answer, found: &Judged, question: &Question) -> Answer {
    match &answer {
        Answer::Refused(error) if found.is_clean => {
            eprintln!("asking again: {error}");
            Oracle::ask_all(std::slice::from_ref(question)).remove(0)
        }
        _ => answer,
    }
}

/// Whether a reader has read its part, where the plugins came only so far.
fn has_read(reader: &str, answer: &Answer) -> bool {
    match answer {
        Answer::Unfinished(Unfinished { reached, .. }) => {
            matches!(reader, "multus" | "libcni") || reached.iter().flatten().any(|reached| reached == reader)
        }
        _ => true,
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
        let found = Judged::of(question);
        let answer = confirmed(answer, &found, question);
        let resource = question.resource.map_or(String::new(), |name| format!(", with the resourceName {name:?}"));
        for reader in readers.iter().filter(|reader| has_read(reader, &answer)) {
            let problem = table.entry(reader).or_default().count(&found, &answer, &question.config);
            wrong.extend(
                problem.map(|problem| format!("{}: {}{resource}\n  {problem}", question.name, question.config)),
            );
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
            agreement.sum() < 300 || (agreement.accepted + agreement.unfinished > 0 && agreement.refused > 0),
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
        let asked = |config: &str| Question {
            config: config.to_owned(),
            name: "net",
            asks_in_json: false,
            resource: Some("a.io/b"),
        };
        let questions: Vec<_> = rows.iter().map(|(_, config)| asked(config)).collect();
        for (((answer, config), question), before) in rows.iter().zip(&questions).zip(Oracle::ask_all(&questions)) {
            let answer = match *answer {
                // The plugin was simulated, and what it loads is known all the same.
                "+ " if matches!(before, Answer::Accepted(_)) => Answer::Accepted(Vec::new()),
                "+ " => before,
                _ => Answer::Refused("refused when it was recorded".to_owned()),
            };
            let found = Judged::of(question);
            let is_later = |denial: &ReaderDenial| AFTER_LOADING.contains(&denial.rule);
            if matches!(answer, Answer::Accepted(_)) && found.denials.first().is_some_and(is_later) {
                agreement.misread_later += 1;
                continue;
            }
            let problem = agreement.count(&found, &answer, config);
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
        let Agreement { accepted, accepted_with_warning, unfinished, .. } = agreement;
        let Agreement { refused, refused_with_warning, misread_later, wrong, .. } = agreement;
        let _ = writeln!(
            page,
            "| {reader} | {version} | {} | {accepted} | {accepted_with_warning} | {unfinished} | {refused} | {refused_with_warning} | \
             {misread_later} | {wrong} |",
            agreement.sum(),
        );
    }
    std::fs::write(path, page).unwrap();
}

const HEAD: &str = "<!-- written by `make agreement` -->
# Agreement with the readers

nadmit's promise is that a denial is always right, and that silence can be trusted. Both are measured: configs are generated, most of them
nearly right, and the programs that really read them are asked. Multus reads each one from a NAD, libcni calls the plugins, and those make an
interface in a network namespace of their own. `sriov`, `ib-sriov` and `ovs` need hardware; what they answered when they loaded a config was
recorded.

- *accepted*: the pod got its interface (of a recorded answer: the plugin loaded the config), and nadmit found nothing, or only warned;
- *read, not finished here*: the reader accepted what it read, and then a feature of the kernel, a program or a device was missing on the
  machine, so no interface was made. A denial of something that was read counts as wrong; silence is not tested. `ipvlan`, `vlan` and `vrf`
  are only compared this far where the kernel does not have these types of interface;
- *refused*: the pod did not start, and nadmit denied the NAD, or only warned (the rule depends on the version of the reader, or on
  what pods ask for);
- *denied, misread later*: the plugin loads the config, and nadmit denies it all the same because the plugin rejects or misreads the value
  later. Recorded answers do not reach that far: these denials follow from the plugin's source;
- *wrong*: the reader accepted what nadmit denies, or the pod did not start although nadmit found nothing.

A network with several plugins counts for each of them that has read its part; if a pod did not start, for all of them. The row of the pod
annotation compares the networks that Multus and nadmit read in `k8s.v1.cni.cncf.io/networks`.
[tests/readers](../tests/readers/README.md) describes how it is done.

| reader | version | configs | accepted, nothing found | accepted, with a warning | read, not finished here | refused, denied | refused, with a warning | denied, misread later | wrong |
|---|---|---|---|---|---|---|---|---|---|
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
