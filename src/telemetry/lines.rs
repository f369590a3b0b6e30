//! The log queue: log lines go into a buffer and are written by a separate thread, so that a blocked log never delays admission.
//!
//! tracing-appender would be another dependency, bounds its queue by lines instead of bytes, and does not write how many it dropped.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// The buffer size; lines beyond it are counted and dropped.
const MAX_BUFFERED: usize = 1 << 20;
/// How long lines are batched: waking a thread for each costs more than judging.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// The flush timeout at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue of log lines; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct LogQueue {
    shared: Arc<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: Mutex<Buffered>,
    /// There is something to write.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Buffered {
    text: Vec<u8>,
    dropped: u64,
    is_writing: bool,
}

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, Buffered> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogQueue {
    /// Starts the thread that writes.
    pub(super) fn start(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let lines = Self::default();
        let shared = Arc::clone(&lines.shared);
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut text = Vec::new();
            loop {
                wait(&shared);
                thread::sleep(BATCH_DELAY);
                let dropped = drain(&shared, &mut text);
                // A log write error cannot be reported anywhere.
                let _ = out.write_all(&text);
                if dropped > 0 {
                    let _ = writeln!(out, "{dropped} log lines dropped: the log is read too slowly");
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
        let is_busy = |waiting: &mut Buffered| waiting.is_writing || !waiting.text.is_empty();
        drop(self.shared.emptied.wait_timeout_while(waiting, FLUSH_TIMEOUT, is_busy));
    }
}

/// Waits for lines; everything taken before has been written.
fn wait(shared: &QueueState) {
    let mut waiting = shared.lock();
    waiting.is_writing = false;
    shared.emptied.notify_all();
    let nothing = |waiting: &mut Buffered| waiting.text.is_empty();
    drop(shared.filled.wait_while(waiting, nothing));
}

/// Takes all buffered lines and the number of dropped lines.
fn drain(shared: &QueueState, text: &mut Vec<u8>) -> u64 {
    let mut waiting = shared.lock();
    waiting.is_writing = true;
    std::mem::swap(&mut waiting.text, text);
    std::mem::take(&mut waiting.dropped)
}

impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.shared.lock();
        if waiting.text.len() + line.len() > MAX_BUFFERED {
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

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A writer that blocks until it is released.
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
    fn blocked_log_does_not_block_callers() {
        let (opener, open) = mpsc::channel();
        let written = Arc::default();
        let lines = LogQueue::start(Gate { open, written: Arc::clone(&written) }).unwrap();
        let line = [b'x'; 1024];
        // Twice as much as the queue holds, while the writer blocks.
        for _ in 0..2 * MAX_BUFFERED / line.len() {
            (&lines).write_all(&line).unwrap();
        }
        drop(opener);
        lines.flush();
        (&lines).write_all(b"last\n").unwrap();
        lines.flush();
        let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        assert!(written.contains("log lines dropped"), "{} bytes", written.len());
        assert!(written.ends_with("last\n"));
        assert!(written.len() < MAX_BUFFERED + MAX_BUFFERED / 2 + 4096);
    }
}
