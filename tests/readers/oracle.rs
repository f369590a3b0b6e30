//! The real readers: Multus, libcni, the plugins of the CNI project and whereabouts, run by a Go program.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

/// What became of a pod that uses the network.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It got its interface. The plugins at these places were simulated.
    Accepted(Vec<usize>),
    /// A plugin accepted what it had read by then, and something was missing on this machine; the rest of the config was not read.
    Unfinished(Unfinished),
    /// It did not start.
    Refused(String),
}

/// How far the plugins came on a machine that lacks something.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Unfinished {
    /// The place of the plugin in the list. All before it have accepted their part.
    pub index: usize,
    /// Whether it was there. If so, it has decoded its keys.
    pub ran: bool,
    /// Those of its keys whose values neither the plugin nor the kernel had checked by then.
    pub unchecked: Option<Vec<String>>,
    /// The plugins that have read their part.
    pub reached: Option<Vec<String>>,
    /// The places of those that were simulated.
    #[serde(skip)]
    pub simulated: Vec<usize>,
}

/// A network that a pod asks for.
#[derive(Clone, Debug)]
pub struct Question {
    pub config: String,
    /// The name of the NAD.
    pub name: &'static str,
    /// Whether the pod asks for it in the JSON form of the annotation.
    pub asks_in_json: bool,
    /// The resourceName annotation of the NAD. A pod that may request such a resource has a device of it.
    pub resource: Option<&'static str>,
}

impl Question {
    fn line(&self) -> Value {
        let Self { config, name, resource, .. } = self;
        let networks = if self.asks_in_json { json!([{"name": name}]).to_string() } else { (*name).to_owned() };
        json!({"config": config, "name": name, "networks": networks, "resource": resource})
    }
}

/// The running program.
pub struct Oracle {
    child: Child,
}

impl Oracle {
    fn start() -> Self {
        let programs = std::env::var("NADMIT_ORACLE").expect("NADMIT_ORACLE is not set: use tests/readers/run");
        let mut command = Command::new(format!("{programs}/oracle"));
        let child = command.arg(&programs).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        Self { child: child.unwrap_or_else(|error| panic!("{programs}/oracle: {error}")) }
    }

    /// Asks two programs at once about each config, whether a pod could use it; the answers come in the same order.
    pub fn ask_all(questions: &[Question]) -> Vec<Answer> {
        let (one, other) = questions.split_at(questions.len() / 2);
        std::thread::scope(|scope| {
            let later = scope.spawn(|| Self::start().ask(other));
            let mut answers = Self::start().ask(one);
            answers.extend(later.join().unwrap());
            answers
        })
    }

    /// What Multus reads in the annotation of a pod of the namespace `apps`: namespace, name and interface of each selected network,
    /// or its error.
    pub fn ask_selections(texts: &[String]) -> Vec<Result<Vec<[String; 3]>, String>> {
        let lines: Vec<Value> = texts.iter().map(|text| json!({"selection": text})).collect();
        let read = |line: &String| {
            let answer: Value = serde_json::from_str(line).unwrap();
            match answer["error"].as_str() {
                Some(error) => Err(error.to_owned()),
                None => Ok(serde_json::from_value(answer["selected"].clone()).unwrap_or_default()),
            }
        };
        Self::start().ask_lines(&lines).iter().map(read).collect()
    }

    fn ask(self, questions: &[Question]) -> Vec<Answer> {
        let lines: Vec<Value> = questions.iter().map(Question::line).collect();
        self.ask_lines(&lines).iter().map(|line| answer(line)).collect()
    }

    fn ask_lines(mut self, lines: &[Value]) -> Vec<String> {
        let mut input = BufWriter::new(self.child.stdin.take().unwrap());
        let output = BufReader::new(self.child.stdout.take().unwrap());
        let answers = std::thread::scope(|scope| {
            scope.spawn(move || {
                for line in lines {
                    writeln!(input, "{line}").unwrap();
                }
            });
            output.lines().map(|line| line.unwrap()).collect::<Vec<_>>()
        });
        let status = self.child.wait().unwrap();
        assert!(status.success() && answers.len() == lines.len(), "the oracle ended early: {status}");
        answers
    }
}

fn answer(line: &str) -> Answer {
    let answer: Value = serde_json::from_str(line).unwrap();
    let simulated: Vec<usize> = serde_json::from_value(answer["simulated"].clone()).unwrap_or_default();
    match (answer["error"].as_str(), &answer["unfinished"]) {
        (Some(error), _) => Answer::Refused(error.to_owned()),
        (None, Value::Null) => Answer::Accepted(simulated),
        (None, unfinished) => {
            let unfinished: Unfinished = serde_json::from_value(unfinished.clone()).unwrap();
            Answer::Unfinished(Unfinished { simulated, ..unfinished })
        }
    }
}
