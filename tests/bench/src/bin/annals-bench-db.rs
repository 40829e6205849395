//! Measures one subject of db with db's allocator, and prints its figures as JSON. `annals-bench` starts it.

use std::process::ExitCode;

use annals_bench::{Measured, SUBJECTS};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let measure = SUBJECTS.iter().find_map(|(name, measured)| match measured {
        Measured::LikeDb(measure) if *name == wanted => Some(measure),
        Measured::LikeDb(_) | Measured::Here(_) => None,
    });
    let Some(measure) = measure else {
        eprintln!("annals-bench-db: it does not measure \"{wanted}\"; run annals-bench, which starts it");
        return ExitCode::from(2);
    };
    match serde_json::to_string(&measure()) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("annals-bench-db: the figures are no JSON: {error}");
            ExitCode::FAILURE
        }
    }
}
