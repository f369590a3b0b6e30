//! The Go program that decodes configs.

use std::fmt;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, Command, Stdio};

use nadmit::cni::schema::Reading;
use serde_json::{Value, json};

use crate::readers::{GoReader, describe};

/// The decoded config, or the decoding error.
#[derive(Debug)]
pub enum Decoded {
    Value(Value),
    Error(String),
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{value}"),
            Self::Error(error) => write!(f, "error: {error}"),
        }
    }
}

/// The running program.
pub struct Decoder {
    child: Child,
    types: Value,
}

impl Decoder {
    pub fn start(readers: &[GoReader]) -> Self {
        let program = std::env::var("NADMIT_DECODER").expect("NADMIT_DECODER is not set: use tests/readers/run");
        let child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let types = readers.iter().map(|reader| describe(&reader.holds)).collect();
        Self { child: child.unwrap_or_else(|error| panic!("{program}: {error}")), types }
    }

    /// Sends all questions at once; the answers come in the same order.
    pub fn ask(mut self, questions: &[(&GoReader, String)]) -> Vec<Decoded> {
        let mut input = BufWriter::new(self.child.stdin.take().unwrap());
        let output = BufReader::new(self.child.stdout.take().unwrap());
        let answers = std::thread::scope(|scope| {
            let types = &self.types;
            scope.spawn(move || {
                writeln!(input, "{types}").unwrap();
                for (reader, config) in questions {
                    let reading = if reader.reading == Reading::Text { "text" } else { "copy" };
                    let line = json!({"type": reader.number, "reading": reading, "config": config});
                    writeln!(input, "{line}").unwrap();
                }
            });
            output.lines().map(|line| answer(&line.unwrap())).collect::<Vec<_>>()
        });
        let status = self.child.wait().unwrap();
        assert!(status.success() && answers.len() == questions.len(), "the decoder ended early: {status}");
        answers
    }
}

fn answer(line: &str) -> Decoded {
    let mut answer: Value = serde_json::from_str(line).unwrap();
    match answer["error"].as_str() {
        Some(error) => Decoded::Error(error.to_owned()),
        None => Decoded::Value(answer["value"].take()),
    }
}
