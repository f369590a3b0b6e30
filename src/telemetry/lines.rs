//! Log lines on their way out. Whoever logs puts the line into a buffer and goes on; a thread of its own writes it. A log that
//! nobody reads must never hold up an admission.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How much may wait to be written; what comes on top is counted and dropped.
const ROOM: usize = 1 << 20;
/// How long a line may wait for others to be written with it: waking a thread for each would cost more than judging.
const GATHER: Duration = Duration::from_millis(20);
/// How long the last lines may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// The way into the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// There is something to write.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    dropped: u64,
    is_writing: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Starts the thread that writes.
    pub(super) fn start(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let lines = Self::default();
        let shared = Arc::clone(&lines.shared);
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut text = Vec::new();
            loop {
                wait(&shared);
                thread::sleep(GATHER);
                let dropped = take(&shared, &mut text);
                // Nobody can be told that the log cannot be written.
                let _ = out.write_all(&text);
                if dropped > 0 {
                    let _ = writeln!(out, "{dropped} log lines were dropped: they came faster than they were read");
                }
                let _ = out.flush();
                text.clear();
            }
        })?;
        Ok(lines)
    }

    /// Waits until what was logged is written.
    pub(super) fn flush(&self) {
        let waiting = self.shared.lock();
        let is_busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.text.is_empty();
        drop(self.shared.emptied.wait_timeout_while(waiting, FAREWELL, is_busy));
    }
}

/// Waits until there is something to write; what was taken before is written by now.
fn wait(shared: &Shared) {
    let mut waiting = shared.lock();
    waiting.is_writing = false;
    shared.emptied.notify_all();
    let nothing = |waiting: &mut Waiting| waiting.text.is_empty();
    drop(shared.filled.wait_while(waiting, nothing));
}

/// Takes all that waits, and tells how many lines were dropped since the last time.
fn take(shared: &Shared, text: &mut Vec<u8>) -> u64 {
    let mut waiting = shared.lock();
    waiting.is_writing = true;
    std::mem::swap(&mut waiting.text, text);
    std::mem::take(&mut waiting.dropped)
}

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.shared.lock();
        if waiting.text.len() + line.len() > ROOM {
            waiting.dropped += 1;
            return Ok(line.len());
        }
        let was_empty = waiting.text.is_empty();
        waiting.text.extend_from_slice(line);
        drop(waiting);
        if was_empty {
            self.shared.filled.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Writes only when it is let.
    struct Gate {
        open: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.open.recv();
            self.written.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_nobody_reads_holds_nobody_up() {
        let (opener, open) = mpsc::channel();
        let written = Arc::default();
        let lines = Lines::start(Gate { open, written: Arc::clone(&written) }).unwrap();
        let line = [b'x'; 1024];
        // Twice as much as there is room for, and nobody lets it out.
        for _ in 0..2 * ROOM / line.len() {
            (&lines).write_all(&line).unwrap();
        }
        drop(opener);
        lines.flush();
        (&lines).write_all(b"last\n").unwrap();
        lines.flush();
        let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        assert!(written.contains("log lines were dropped"), "{} bytes", written.len());
        assert!(written.ends_with("last\n"));
        assert!(written.len() < ROOM + ROOM / 2 + 4096);
    }
}
