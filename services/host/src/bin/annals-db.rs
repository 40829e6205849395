//! The db service of a realm.

use std::process::ExitCode;

/// The C library's allocator becomes slower as the heap grows older, and settles a third fewer trades
/// (docs/performance.md, "An old realm").
#[cfg(feature = "db-allocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    annals_host::service::db()
}
