//! `nadmit audit-log`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::progress::Progress;
use super::{CLEAN, DENIED, UNUSABLE, complain};
use crate::audit::log::lines::{Line, Lines};
use crate::audit::log::merge::{Log, merge};
use crate::audit::log::report::{Kind, Report};
use crate::audit::log::{Scan, Scope, files};

/// From how many bytes on a person wants to see how far it is.
const WORTH_A_BAR: usize = 64 << 20;
/// How many logs are read at once: each has a file open, and holds a piece of it.
const SIDE_BY_SIDE: usize = 64;

/// Tell from the API server's audit log who overwrites status blindly, too late, for nothing or for ever
///
/// Reads the JSON lines of kube-apiserver, plain or compressed, in any amount. Files of one directory whose names differ only in the moment or
/// number of their rotation (audit.log, audit-2026-11-16T20-23-05.064.log.gz, audit.log.1) are one server's, and are read the oldest
/// first; all others are of several servers, and are read side by side in the order of time. For each user agent and resource: status writes that were blind for certain, stale and conflicting ones, writes that changed nothing; and the
/// objects that are written in a loop. deploy/audit-policy.yaml has the API server record what is needed for that, and nothing secret.
///
/// Exit code 0: read. 1: found what --deny names. 2: wrong arguments, or an input or a line that could not be read (the rest was
/// counted all the same).
#[derive(Debug, Args)]
pub(super) struct AuditLog {
    /// Logs, and directories of logs; - is standard input
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    /// How to show what was found
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Exit with 1 on these findings
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FINDING")]
    deny: Vec<Denied>,
    /// The API groups to look at; * for all
    #[arg(
        long = "group",
        value_delimiter = ',',
        value_name = "GROUP",
        default_value = "sriovnetwork.openshift.io,k8s.cni.cncf.io"
    )]
    groups: Vec<String>,
    /// An object that is written so often within a minute is in a loop
    #[arg(long, value_name = "WRITES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    loop_rate: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables, and what to do about them
    Table,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// A page that needs nothing else, with search and filters
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Denied {
    /// Status writes without a look at what is there
    Blind,
    /// Writes that came too late
    Stale,
    /// Writes that changed nothing
    Unchanged,
    /// Objects that are written again and again
    Loop,
}

impl AuditLog {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        let servers = files::by_server(&self.paths)?;
        anyhow::ensure!(
            servers.len() <= SIDE_BY_SIDE,
            "{} logs are too many to be read side by side, which is done with all whose names differ in more than their rotation; \
             put together what one server wrote: cat FILES | nadmit audit-log -",
            servers.len()
        );
        let files: Vec<_> = servers.iter().flatten().cloned().collect();
        let total = files.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len() as usize).sum();
        let shared =
            Shared { progress: RefCell::new(Progress::new("reading", total, WORTH_A_BAR)), failed: Cell::new(false) };
        let mut logs: Vec<_> =
            servers.into_iter().map(|files| Series { files: files.into(), open: None, shared: &shared }).collect();
        let mut scan = Scan::new(Scope::of_groups(self.groups.clone()));
        merge(&mut logs, &mut scan);
        drop(logs);
        let mut is_unusable = shared.failed.get();
        drop(shared);
        let sources = files.iter().map(|path| path.display().to_string()).collect();
        let report = Report::of(&scan, sources, self.loop_rate);
        let text = match self.output {
            Output::Table => report.table(),
            Output::Json => report.json(),
            Output::Sarif => report.sarif(),
            Output::Html => report.html(),
        };
        io::stdout().lock().write_all(text.as_bytes())?;
        is_unusable |= scan.unreadable > 0 || scan.too_long > 0;
        if self.output != Output::Table && scan.unreadable + scan.too_long > 0 {
            let _ = writeln!(io::stderr(), "error: {} lines are no events", scan.unreadable + scan.too_long);
        }
        let is_denied = report.findings.iter().any(|finding| self.denies(finding.rule));
        Ok(if is_unusable {
            UNUSABLE
        } else if is_denied {
            DENIED
        } else {
            CLEAN
        })
    }

    fn denies(&self, kind: Kind) -> bool {
        self.deny.contains(&match kind {
            Kind::Blind => Denied::Blind,
            Kind::Stale => Denied::Stale,
            Kind::Unchanged => Denied::Unchanged,
            Kind::Loop => Denied::Loop,
        })
    }
}

/// What the logs that are read side by side have in common.
struct Shared {
    progress: RefCell<Progress>,
    failed: Cell<bool>,
}

/// The files of one server, one after the other; one of them is open.
struct Series<'s> {
    files: VecDeque<PathBuf>,
    open: Option<(PathBuf, Lines<'s>)>,
    shared: &'s Shared,
}

impl Series<'_> {
    /// What cannot be read is said, and the next file is read all the same.
    fn fails(&self, path: &Path, error: &io::Error) {
        self.shared.progress.borrow_mut().clear();
        self.shared.failed.set(true);
        complain(format_args!("error: {}: {error}", path.display()));
    }
}

impl Log for Series<'_> {
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

fn open<'s>(path: &Path, shared: &'s Shared) -> io::Result<Lines<'s>> {
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path)?),
    };
    Lines::of(Watched { input, shared })
}

/// Tells how much was read.
struct Watched<'s> {
    input: Box<dyn Read>,
    shared: &'s Shared,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.shared.progress.borrow_mut().advance(length);
        Ok(length)
    }
}
