//! Panics as log lines.

use std::panic::{PanicHookInfo, set_hook};

use crate::visible;

/// From now on a panic is one line of the log, or of the standard error where there is no log. Its message may hold text from
/// outside. The panics of the YAML parser are left out: they are errors of the text, and reported as such where it is called.
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
