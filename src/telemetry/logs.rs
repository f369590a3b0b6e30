//! The log: one line for each event, as JSON or for people, filtered by a level that can change while the server runs.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use super::json::JsonLines;
use super::lines::LogQueue;
use crate::policy::LogLevel;
use crate::visible;

/// The log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Which events are logged: a level (`info`) or directives (`info,hyper=debug`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(String);

impl std::str::FromStr for Filter {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        EnvFilter::try_new(text).map(|_| Self(text.to_owned())).map_err(|_| LogError::Filter(text.to_owned()))
    }
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is invalid.
    #[error("invalid log level `{0}`: use error, warn, info, debug or trace, or directives such as info,hyper=debug")]
    Filter(String),
    /// The thread that writes cannot be started.
    #[error("cannot start the log thread")]
    Thread(#[from] io::Error),
    /// Another logger is installed.
    #[error("a logger is already installed")]
    Twice,
}

/// The log of this process.
#[derive(Debug)]
pub struct Logs {
    filter: reload::Handle<EnvFilter, Registry>,
    lines: LogQueue,
    chosen: Filter,
}

impl Logs {
    /// Starts logging to the standard error.
    pub fn start(format: LogFormat, chosen: Filter) -> Result<Self, LogError> {
        let lines = LogQueue::start(io::stderr())?;
        let (filter, handle) = reload::Layer::new(EnvFilter::new(&chosen.0));
        let registry = tracing_subscriber::registry().with(filter);
        let layer = fmt::layer().with_writer(EscapingWriter { lines: lines.clone(), format }).with_target(false);
        let started = match format {
            LogFormat::Text => registry.with(layer.with_ansi(false).compact()).try_init(),
            LogFormat::Json => registry.with(layer.event_format(JsonLines)).try_init(),
        };
        started.map_err(|_| LogError::Twice)?;
        Ok(Self { filter: handle, lines, chosen })
    }

    /// Sets the log level; `None` restores the initial filter.
    pub fn refilter(&self, level: Option<LogLevel>) {
        let wanted = EnvFilter::new(level.map_or(self.chosen.0.as_str(), |level| level.name()));
        // It fails only if the logger no longer exists.
        let _ = self.filter.reload(wanted);
    }
}

/// Escapes control characters in log lines, so that no line can pretend to be two.
#[derive(Clone, Debug)]
struct EscapingWriter {
    lines: LogQueue,
    format: LogFormat,
}

impl Write for &EscapingWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        // All bytes are looked at, as the processor does that with many at once.
        if !text.iter().fold(false, |is_odd, byte| is_odd | !matches!(byte, b' '..=b'~')) {
            return (&self.lines).write(line);
        }
        let text = String::from_utf8_lossy(text);
        let mut shown = match self.format {
            LogFormat::Text => visible::line(&text),
            LogFormat::Json => visible::json(&text),
        }
        .into_owned();
        shown.push('\n');
        (&self.lines).write_all(shown.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for EscapingWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.lines.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use super::*;

    #[test]
    fn log_lines_are_escaped_and_unchanged_otherwise() {
        let nasty = "a\u{1b}[2J\u{202e}b\nerror: c é";
        for (format, want) in [
            (LogFormat::Text, "name=a\\u{1b}[2J\\u{202e}b\\nerror: c é\n".to_owned()),
            (LogFormat::Json, "\"name=a\\u001b[2J\\u202eb\\nerror: c é\"\n".to_owned()),
        ] {
            let (reader, out) = io::pipe().unwrap();
            let shown = EscapingWriter { lines: LogQueue::start(out).unwrap(), format };
            let line = match format {
                LogFormat::Text => format!("name={nasty}\n"),
                LogFormat::Json => format!("{}\n", serde_json::Value::from(format!("name={nasty}"))),
            };
            (&shown).write_all(line.as_bytes()).unwrap();
            let mut read = String::new();
            io::BufReader::new(reader).read_line(&mut read).unwrap();
            assert_eq!(read, want);
        }
    }

    #[test]
    fn filters_are_levels_or_directives() {
        for good in ["info", "debug", "warn,hyper=trace", "off"] {
            assert!(good.parse::<Filter>().is_ok(), "{good}");
        }
        for bad in ["hyper=loud", "info,a=b=c"] {
            let error = bad.parse::<Filter>().unwrap_err().to_string();
            assert!(error.contains("invalid log level"), "{error}");
        }
    }
}
