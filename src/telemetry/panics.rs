//! Panics as log lines.

use std::panic::{PanicHookInfo, set_hook};

use crate::visible;

/// Installs a panic hook that writes one log line, or to standard error without a log. The message may contain untrusted text.
/// Panics of the YAML parser are excluded: they are reported as errors of the text.
pub fn report_panics() {
    set_hook(Box::new(|info| {
        if info.location().is_some_and(|location| location.file().contains("libyaml-safer")) {
            return;
        }
        let (message, location) = (message(info), info.location().map(ToString::to_string).unwrap_or_default());
        if tracing::dispatcher::has_been_set() {
            tracing::error!(location, problem = message, "panic");
        } else {
            eprintln!("nadmit: panic at {location}: {}", visible::lines(message));
        }
    }));
}

fn message<'i>(info: &'i PanicHookInfo<'_>) -> &'i str {
    info.payload_as_str().unwrap_or("without a message")
}
