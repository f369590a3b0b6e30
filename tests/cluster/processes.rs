//! The processes of a cluster: each logs to a file, and is killed when it is dropped or when the tests end, however they end.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::signal;

/// The timeout of every wait. It is long, because the machine may be busy.
pub const TIMEOUT: Duration = Duration::from_secs(90);

/// Polls until there is a result; the error names what it waited for.
pub fn wait<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < until, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processor time of a process so far.
pub fn used(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The process name may contain anything and ends with the last parenthesis; user and system time are the 14th and 15th field,
    // in hundredths.
    let mut rest = stat.rsplit(')').next().unwrap().split_whitespace().skip(11);
    let mut next = || rest.next().unwrap().parse::<u64>().unwrap();
    Duration::from_millis(10 * (next() + next()))
}

/// A free port that no other process gets by chance: it is below the default range that Linux assigns to connections,
/// and each of our processes gets another one.
pub fn free_port() -> u16 {
    const FIRST: u32 = 20_000;
    const PORTS: u32 = 12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(100).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % PORTS).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A process that runs until this is dropped.
pub struct Process {
    child: Child,
    guard: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it; its output goes to `<name>.log` in that directory, or, the second time, to `<name>-2.log`.
    pub fn start(name: &str, directory: &Path, command: &mut Command) -> Self {
        let again = (2..).map(|time| format!("{name}-{time}"));
        let names = std::iter::once(name.to_owned()).chain(again);
        let mut logs = names.map(|name| directory.join(format!("{name}.log")));
        let log = logs.find(|log| !log.exists()).unwrap();
        let file = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let guard = guard(child.id());
        Self { child, guard, log }
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGTERM, waits, and returns its output.
    pub fn end(mut self) -> String {
        signal(self.id(), "TERM");
        let status = wait("the process to exit", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}:\n{}", self.log());
        self.log()
    }

    /// Fails if it has exited.
    pub fn check(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} ended with {status}:\n{}", self.log.display(), self.log());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // End the guard first: another process may soon get the process id.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process when our end of its standard input is closed.
fn guard(pid: u32) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "read -r _; kill -9 \"$0\"", &pid.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}
