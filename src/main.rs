//! Allocator, parse, run, exit code.

use std::process::ExitCode;

/// The system allocator returns the memory of a large config to the system after every review and gets it again, which takes
/// longer than judging; jemalloc keeps it for a while. Measured in `benches/README.md`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    nadmit::telemetry::report_panics();
    nadmit::cli::run_program()
}
