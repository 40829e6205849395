//! The db service of a realm.

use std::process::ExitCode;

/// With the C library's allocator, a batch costs more in an old realm than in a young one, and a third fewer trades are
/// settled (docs/performance.md, "An old realm").
#[cfg(feature = "db-allocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    annals_host::service::db()
}
