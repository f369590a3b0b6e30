//! The real readers: Multus, libcni, the plugins of the CNI project and whereabouts, run by a Go program.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// What became of a pod that uses the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It got its interface.
    Accepted,
    /// A program accepted its part, and then something was missing on this machine; the rest of the config was not read.
    Unfinished,
    /// It did not start.
    Refused(String),
}

/// A network that a pod asks for.
#[derive(Clone, Debug)]
pub struct Question {
    pub config: String,
    /// The name of the NAD.
    pub name: &'static str,
    /// Whether the pod asks for it in the JSON form of the annotation.
    pub asks_in_json: bool,
    /// Whether the NAD has a resourceName annotation, and the pod a device.
    pub has_device: bool,
}

impl Question {
    fn line(&self) -> Value {
        let Self { config, name, has_device, .. } = self;
        let networks = if self.asks_in_json { json!([{"name": name}]).to_string() } else { (*name).to_owned() };
        json!({"config": config, "name": name, "networks": networks, "device": has_device})
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
    match (answer["error"].as_str(), answer["missing"].is_null()) {
        (Some(error), _) => Answer::Refused(error.to_owned()),
        (None, true) => Answer::Accepted,
        (None, false) => Answer::Unfinished,
    }
}
