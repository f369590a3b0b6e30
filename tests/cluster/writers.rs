//! Users who write NADs continuously, and detect every admission that did not happen.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::api::Api;
use crate::objects::{annotated, nad, nads};

const MANY: usize = 4;

/// They write until [`Writers::end`]. Nothing is stored.
pub struct Writers {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    failed: Arc<Mutex<Vec<(Instant, String)>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    pub fn start(api: &Api) -> Self {
        let (stop, written, failed) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default(), Arc::default());
        let mut threads = Vec::new();
        for _ in 0..MANY {
            let (api, stop, written, failed): (_, _, _, Arc<Mutex<Vec<_>>>) =
                (api.clone(), Arc::clone(&stop), Arc::clone(&written), Arc::clone(&failed));
            threads.push(thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    for write in [write_good, write_bad] {
                        if let Err(problem) = write(&api) {
                            failed.lock().unwrap().push((Instant::now(), problem));
                        }
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
        Self { stop, written, failed, threads }
    }

    /// The number of admissions; none failed, closed or open.
    pub fn end(self) -> usize {
        let (written, failed) = self.outcome();
        let failed: Vec<String> = failed.into_iter().map(|(_, problem)| problem).collect();
        assert_eq!(failed, [""; 0]);
        written
    }

    /// The number of admissions, and those that failed, with their times.
    pub fn outcome(self) -> (usize, Vec<(Instant, String)>) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        let failed = std::mem::take(&mut *self.failed.lock().unwrap());
        (self.written.load(Ordering::Relaxed), failed)
    }

    /// The number of admissions so far.
    pub fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }
}

fn dry_run() -> String {
    format!("{}?dryRun=All", nads("default"))
}

/// A NAD that is repaired, by a webhook that fails closed.
fn write_good(api: &Api) -> Result<(), String> {
    let repairable = nad("good", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"probe.io/x"}"#);
    let repaired = api.try_create(&dry_run(), &repairable).map_err(|error| error.message)?;
    if annotated(&repaired) != Some("probe.io/x") {
        return Err(format!("the NAD was not repaired: {repaired}"));
    }
    Ok(())
}

/// A NAD that is denied, by webhooks that fail open.
fn write_bad(api: &Api) -> Result<(), String> {
    match api.try_create(&dry_run(), &nad("bad", "not JSON")) {
        Err(error) if error.message.contains("denied the request") => Ok(()),
        Err(error) => Err(error.message),
        Ok(_) => Err("a bad NAD was accepted".to_owned()),
    }
}
