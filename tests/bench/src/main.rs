//! Runs the benches, prints a table, and writes `target/bench.json`. Arguments name the subjects to run; none means all.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use annals_bench::{Figure, Measured, SUBJECTS, table};

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
    for (subject, measured) in SUBJECTS {
        if wanted.is_empty() || wanted.iter().any(|name| name == subject) {
            eprintln!("bench: {subject}");
            let begins = Instant::now();
            match measured {
                Measured::Here(measure) => figures.extend(measure()),
                Measured::LikeDb(_) => match measured_like_db(subject) {
                    Ok(measured) => figures.extend(measured),
                    Err(error) => {
                        eprintln!("bench: {subject}: {error}");
                        return ExitCode::FAILURE;
                    }
                },
            }
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

/// The figures of a subject, measured by `annals-bench-db`.
fn measured_like_db(subject: &str) -> Result<Vec<Figure>, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("this program's path is unknown: {error}"))?
        .with_file_name("annals-bench-db");
    let output = Command::new(&program)
        .arg(subject)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {}: {error}; build it with --bins", program.display()))?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", program.display(), output.status));
    }
    // What a subject prints comes before its figures, which are the last line.
    let printed = String::from_utf8_lossy(&output.stdout);
    let (before, json) = printed.trim_end().rsplit_once('\n').unwrap_or(("", printed.trim_end()));
    if !before.is_empty() {
        println!("{before}");
    }
    serde_json::from_str(json).map_err(|error| format!("{} printed no figures: {error}", program.display()))
}

fn write_json(path: &std::path::Path, figures: &[Figure]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let json = serde_json::to_string_pretty(figures)?;
    std::fs::write(path, json + "\n")
}
