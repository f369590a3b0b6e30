//! Any bytes as a batch of audit events, and any lines as the events of one: nothing panics, a batch is taken whole or not at all, and
//! nothing is counted that was not sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nadmit::audit_log::LogScope;
use nadmit::audit_log::running::{Batch, EventCounter};

fuzz_target!(|bytes: &[u8]| {
    take(bytes);
    let events = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b',');
    take(&[br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":["#, &*events, b"]}"].concat());
});

fn take(body: &[u8]) {
    let Ok(batch) = Batch::read(body) else { return };
    let most = body.iter().filter(|byte| matches!(byte, b'[' | b',')).count() as u64;
    let mut running = EventCounter::new(LogScope::of_groups(vec!["*".to_owned()]), 2);
    for _ in 0..2 {
        let mut written = 0;
        running.count(batch, |_, _| written += 1);
        let report = running.report();
        let log = &report.current.log;
        assert!(written <= log.lines && log.lines <= most && log.unreadable <= log.lines);
        serde_json::from_str::<serde_json::Value>(&report.json()).expect("JSON");
        running.rotate();
    }
}
