//! `nadmit audit-log`.

mod files;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::progress::Progress;
use super::{EXIT_CLEAN, EXIT_DENIED, EXIT_UNUSABLE, print_error};
use crate::audit_log::lines::{Line, LogLines};
use crate::audit_log::merge::{LogSource, merge};
use crate::audit_log::report::{BLIND, LOOP, Report, STALE, UNCHANGED};
use crate::audit_log::{DEFAULT_LOOP_RATE, LogScan, LogScope};
use crate::policy::Rule;

/// From this size on, a progress bar is shown.
const PROGRESS_BAR_MIN_BYTES: usize = 64 << 20;
/// How many logs are read at once: each needs an open file and a buffer.
const MAX_OPEN_LOGS: usize = 64;

/// Find blind, stale, ineffective and looping writes in the API server's audit log
///
/// Reads the JSON lines of kube-apiserver, plain or compressed, of any size. Files of one directory whose names differ only in
/// the timestamp or number of their rotation (audit.log, audit-2026-11-16T20-23-05.064.log.gz, audit.log.1) belong to one server
/// and are read oldest first; all others belong to different servers and are merged by time. For each user agent and resource it
/// reports status writes that were certainly blind, stale and conflicting writes, and writes that changed nothing; and the
/// objects in a write loop. deploy/audit-policy.yaml makes the API server record what is needed, and nothing secret.
///
/// Exit code 0: read. 1: found what --deny names. 2: wrong arguments, or an input or a line that could not be read (the rest was
/// counted).
#[derive(Debug, Args)]
pub(super) struct AuditLog {
    /// Logs, and directories of logs; - is standard input
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    /// The output format
    #[arg(long, short, value_enum, default_value_t = LogOutputFormat::Table)]
    output: LogOutputFormat,
    /// Exit with 1 on these findings
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FINDING")]
    deny: Vec<DenyKind>,
    /// The API groups to check; * for all
    #[arg(
        long = "group",
        value_delimiter = ',',
        value_name = "GROUP",
        default_value = "sriovnetwork.openshift.io,k8s.cni.cncf.io"
    )]
    groups: Vec<String>,
    /// Writes per minute from which an object counts as in a loop
    #[arg(long, value_name = "WRITES", default_value_t = DEFAULT_LOOP_RATE, value_parser = clap::value_parser!(u32).range(2..))]
    loop_rate: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogOutputFormat {
    /// Tables, with advice
    Table,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// A page that needs nothing else, with search and filters
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DenyKind {
    /// Status writes without a precondition
    Blind,
    /// Stale writes
    Stale,
    /// Writes that changed nothing
    Unchanged,
    /// Objects in a write loop
    Loop,
}

impl DenyKind {
    fn rule(self) -> &'static Rule {
        match self {
            Self::Blind => &BLIND,
            Self::Stale => &STALE,
            Self::Unchanged => &UNCHANGED,
            Self::Loop => &LOOP,
        }
    }
}

impl AuditLog {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        let servers = files::by_server(&self.paths)?;
        anyhow::ensure!(
            servers.len() <= MAX_OPEN_LOGS,
            "{} logs are too many to merge (files whose names differ in more than their rotation are separate logs); \
             put together what one server wrote: cat FILES | nadmit audit-log -",
            servers.len()
        );
        let files: Vec<_> = servers.iter().flatten().cloned().collect();
        let total = files.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len() as usize).sum();
        let shared = ReadProgress {
            progress: RefCell::new(Progress::new("reading", total, PROGRESS_BAR_MIN_BYTES)),
            failed: Cell::new(false),
        };
        let mut logs: Vec<_> =
            servers.into_iter().map(|files| ServerLog { files: files.into(), open: None, shared: &shared }).collect();
        let mut scan = LogScan::new(LogScope::of_groups(self.groups.clone()));
        merge(&mut logs, &mut scan);
        drop(logs);
        let mut is_unusable = shared.failed.get();
        drop(shared);
        let sources = files.iter().map(|path| path.display().to_string()).collect();
        let report = Report::of(&scan, sources, self.loop_rate);
        let text = match self.output {
            LogOutputFormat::Table => report.table(),
            LogOutputFormat::Json => report.json(),
            LogOutputFormat::Sarif => report.sarif(),
            LogOutputFormat::Html => report.html(),
        };
        io::stdout().lock().write_all(text.as_bytes())?;
        is_unusable |= scan.unreadable > 0 || scan.too_long > 0;
        if self.output != LogOutputFormat::Table && scan.unreadable + scan.too_long > 0 {
            let _ = writeln!(io::stderr(), "error: {} lines are not audit events", scan.unreadable + scan.too_long);
        }
        let is_denied =
            report.findings.iter().any(|found| self.deny.iter().any(|kind| kind.rule() == found.finding.rule));
        Ok(if is_unusable {
            EXIT_UNUSABLE
        } else if is_denied {
            EXIT_DENIED
        } else {
            EXIT_CLEAN
        })
    }
}

/// State shared by the logs that are merged.
struct ReadProgress {
    progress: RefCell<Progress>,
    failed: Cell<bool>,
}

/// The log of one server: its files, one after the other.
struct ServerLog<'s> {
    files: VecDeque<PathBuf>,
    open: Option<(PathBuf, LogLines<'s>)>,
    shared: &'s ReadProgress,
}

impl ServerLog<'_> {
    /// Reports a read error and continues with the next file.
    fn fails(&self, path: &Path, error: &io::Error) {
        self.shared.progress.borrow_mut().clear();
        self.shared.failed.set(true);
        print_error(format_args!("error: {}: {error}", path.display()));
    }
}

impl LogSource for ServerLog<'_> {
    fn next(&mut self, each: &mut dyn FnMut(Line<'_>)) -> bool {
        loop {
            if let Some((path, lines)) = &mut self.open {
                match lines.next_line() {
                    Ok(Some(line)) => {
                        each(line);
                        return true;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        let path = std::mem::take(path);
                        self.fails(&path, &error);
                    }
                }
            }
            let Some(path) = self.files.pop_front() else { return false };
            self.open = match open(&path, self.shared) {
                Ok(lines) => Some((path, lines)),
                Err(error) => {
                    self.fails(&path, &error);
                    None
                }
            };
        }
    }
}

fn open<'s>(path: &Path, shared: &'s ReadProgress) -> io::Result<LogLines<'s>> {
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path)?),
    };
    LogLines::of(CountingReader { input, shared })
}

/// Counts the bytes read.
struct CountingReader<'s> {
    input: Box<dyn Read>,
    shared: &'s ReadProgress,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.shared.progress.borrow_mut().advance(length);
        Ok(length)
    }
}
