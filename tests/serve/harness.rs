//! The server as a process: tests start it, watch its log and its metrics, and kill it.
//!
//! Nothing here waits for a fixed time. Tests poll for an event, up to [`TIMEOUT`].

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::client::{Client, Http, HttpAnswer, Trust, block_on, plain_get};

/// The timeout of every wait. It is long, because the machine may be busy.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// `nadmit` with arguments, and without the environment variables that would change its behaviour.
pub fn nadmit<S: AsRef<str>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(arguments.iter().map(AsRef::as_ref)).current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NADMIT_")) {
        command.env_remove(name);
    }
    command
}

/// Runs a command that should exit by itself.
pub fn run(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(TIMEOUT).map(Result::unwrap).unwrap_or_else(|_| {
        signal(pid, "KILL");
        panic!("the command did not exit: {command:?}")
    })
}

/// Sends a signal to one process.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{name} {pid}");
}

/// Replaces a file atomically, so that no reader sees half of it.
pub fn put(path: &Path, content: impl AsRef<[u8]>) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(&new, path).unwrap();
}

/// A running server; it is killed when this is dropped.
pub struct TestServer {
    child: Child,
    guard: Child,
    /// The address of the webhooks.
    pub https: SocketAddr,
    /// The address of the metrics.
    pub metrics: SocketAddr,
    /// The file with the CA of the development certificate.
    pub ca: PathBuf,
    /// A directory for this server, for the files of a test.
    pub directory: TempDir,
    log: Arc<Log>,
    printed: Arc<Log>,
}

impl TestServer {
    /// Starts on free ports with a development certificate, and with these additional arguments.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(|_| arguments.iter().map(|&argument| argument.to_owned()).collect())
    }

    /// Starts with a policy in the file [`Self::policy`].
    pub fn with_policy(text: &str) -> Self {
        Self::start_with(|directory| {
            let policy = directory.join("policy.yaml");
            fs::write(&policy, text).unwrap();
            vec!["--policy".to_owned(), policy.to_str().unwrap().to_owned()]
        })
    }

    /// Starts with arguments that name files in the server's directory. Without `--tls-cert` it creates a certificate, without
    /// `--listen` it takes a free port.
    pub fn start_with(arguments: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let given = arguments(directory.path());
        let mut command = nadmit(&["serve", "--metrics-listen", "127.0.0.1:0"]);
        let is_given = |name: &str| given.iter().any(|argument| argument.starts_with(name));
        if !is_given("--tls-cert") {
            command.arg("--cert-dir").arg(directory.path());
        }
        if !is_given("--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(&given);
        Self::launch(command, directory)
    }

    /// Starts a command that runs the server.
    pub fn launch(mut command: Command, directory: TempDir) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let guard = guard(child.id());
        let log = Log::read(child.stderr.take().unwrap());
        let printed = Log::read(child.stdout.take().unwrap());
        let Some((https, metrics)) = log.wait(addresses) else {
            let _ = child.kill();
            panic!("{command:?} does not serve ({:?}):\n{}", child.wait(), log.text());
        };
        let ca = directory.path().join("ca.crt");
        Self { child, guard, https, metrics, ca, directory, log, printed }
    }

    /// A server with the default policy, shared by the tests that do not change its state.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<TestServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal: `TERM`, `HUP`.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits until it has exited by itself and its whole log was read.
    pub fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let _ = self.log.wait(|_| None::<()>);
                return status;
            }
            assert!(Instant::now() < until, "the server does not exit:\n{}", self.log_text());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The policy file of [`Self::with_policy`].
    pub fn policy(&self) -> PathBuf {
        self.directory.path().join("policy.yaml")
    }

    /// Trusts the development CA.
    pub fn trust(&self) -> Trust {
        Trust::in_ca(&fs::read(&self.ca).unwrap())
    }

    /// A new connection.
    pub async fn connect(&self, http: Http) -> Client {
        Client::connect(self.https, &self.trust(), http).await.unwrap()
    }

    /// A POST on a new connection, over HTTP/1.1 as the API server does it.
    pub fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> HttpAnswer {
        block_on(async { self.connect(Http::One).await.post(path, body.into()).await.unwrap() })
    }

    /// A GET on a new connection.
    pub fn get(&self, path: &str) -> HttpAnswer {
        block_on(async { self.connect(Http::One).await.send("GET", path, &[], Vec::new()).await.unwrap() })
    }

    /// The text of the metrics.
    pub fn metrics_text(&self) -> String {
        let answer = block_on(plain_get(self.metrics, "/metrics"));
        assert_eq!(answer.status, 200);
        answer.text()
    }

    /// The value of one series, in the notation of the text: `nadmit_policy_reloads_total{result="taken"}`. A missing series
    /// is 0.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics_text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Waits until a series has at least that value.
    pub fn wait_for_metric(&self, series: &str, at_least: f64) {
        let until = Instant::now() + TIMEOUT;
        while self.metric(series) < at_least {
            assert!(Instant::now() < until, "{series} < {at_least}:\n{}\n{}", self.metrics_text(), self.log_text());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a log line.
    pub fn wait_for_log(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let json = |line: &str| serde_json::from_str(line).ok().filter(&wanted);
        self.log.wait(json).unwrap_or_else(|| panic!("no line {what} in the log:\n{}", self.log_text()))
    }

    /// Waits for a log line with that text, in either format.
    pub fn wait_for_line(&self, text: &str) {
        let found = self.log.wait(|line| line.contains(text).then_some(()));
        found.unwrap_or_else(|| panic!("no line with {text} in the log:\n{}", self.log_text()));
    }

    /// Waits for the log line of a review.
    pub fn log_of(&self, uid: &str) -> Value {
        self.wait_for_log(uid, |line| line["uid"] == uid && line["endpoint"].is_string())
    }

    /// The whole log so far.
    pub fn log_text(&self) -> String {
        self.log.text()
    }

    /// The first line on standard output.
    pub fn announcement(&self) -> String {
        self.printed.wait(|line| Some(line.to_owned())).expect("the server printed nothing")
    }
}

/// The two addresses in the log line that reports the start of the server, in either format.
fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (https, metrics) = match serde_json::from_str::<Value>(line) {
        Ok(json) if json["message"] == "serving" => {
            let text = |key: &str| json[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {line}")).to_owned();
            (text("https"), text("metrics"))
        }
        Ok(_) => return None,
        Err(_) => {
            let word = |key: &str| Some(line.split_once(key)?.1.split(' ').next()?.to_owned());
            (word(" https=")?, word(" metrics=")?)
        }
    };
    let address =
        |text: &str| text.parse().unwrap_or_else(|error| panic!("`{text}` is not an address: {error}: {line}"));
    Some((address(&https), address(&metrics)))
}

/// A process that kills the server when the tests end, however they end: no test drops the shared server.
fn guard(pid: u32) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "read -r _; kill -9 \"$0\"", &pid.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // End the guard first: another process may soon get the process id.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output lines of a process.
#[derive(Default)]
struct Log {
    lines: Mutex<Lines>,
    grown: Condvar,
}

#[derive(Default)]
struct Lines {
    list: Vec<String>,
    is_ended: bool,
}

impl Log {
    fn read(pipe: impl Read + Send + 'static) -> Arc<Self> {
        let log = Arc::new(Self::default());
        let writer = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n') {
                let Ok(line) = line else { break };
                writer.lines.lock().unwrap().list.push(String::from_utf8_lossy(&line).into_owned());
                writer.grown.notify_all();
            }
            writer.lines.lock().unwrap().is_ended = true;
            writer.grown.notify_all();
        });
        log
    }

    /// The result for the first line that `wanted` accepts; `None` if the output ends before.
    fn wait<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> Option<T> {
        let until = Instant::now() + TIMEOUT;
        let mut seen = 0;
        let mut lines = self.lines.lock().unwrap();
        loop {
            while let Some(line) = lines.list.get(seen) {
                seen += 1;
                if let Some(found) = wanted(line) {
                    return Some(found);
                }
            }
            if lines.is_ended || Instant::now() > until {
                return None;
            }
            lines = self.grown.wait_timeout(lines, Duration::from_secs(1)).unwrap().0;
        }
    }

    fn text(&self) -> String {
        self.lines.lock().unwrap().list.join("\n")
    }
}
