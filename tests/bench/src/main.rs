//! Runs the benches, prints a table, and writes `target/bench.json`. Arguments name the subjects to run; none means all.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use annals_bench::{Figure, SUBJECTS, table};

/// Maximum time of all subjects together, seconds.
const LIMIT: f64 = 900.0;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !SUBJECTS.iter().any(|(subject, _)| subject == name))
    {
        let known: Vec<&str> = SUBJECTS.iter().map(|(subject, _)| *subject).collect();
        eprintln!("bench: unknown subject {unknown}; known: {}", known.join(", "));
        return ExitCode::from(2);
    }
    let began = Instant::now();
    let mut figures = Vec::new();
    for (subject, run) in SUBJECTS {
        if wanted.is_empty() || wanted.iter().any(|name| name == subject) {
            eprintln!("bench: {subject}");
            let begins = Instant::now();
            figures.extend(run());
            eprintln!("  {:.0} s", begins.elapsed().as_secs_f64());
        }
    }
    let took = began.elapsed().as_secs_f64();
    let note = "of this run; baseline: the limit of a run of all subjects".to_owned();
    figures.push(Figure::against("bench_duration", took, LIMIT, "s", note));
    println!("{}", table(&figures));
    let path = PathBuf::from("target/bench.json");
    match write_json(&path, &figures) {
        Ok(()) => {
            println!("written to {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!(
                "bench: cannot write {}: {error}; run it from the root of the repository",
                path.display()
            );
            ExitCode::FAILURE
        }
    }
}

fn write_json(path: &std::path::Path, figures: &[Figure]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let json = serde_json::to_string_pretty(figures)?;
    std::fs::write(path, json + "\n")
}
