//! Prints `docs/schedules.md`: for each rule, the schedule that fails without it.

use std::process::ExitCode;

use annals_model::exhibit::chapters;

const HEAD: &str = "\
# What each rule prevents

For each rule of `docs/protocol.md`, a shortest schedule in which an invariant fails when that rule is disabled and all
others are in force. `docs/model.md` explains how to read a schedule. `cargo run -p annals-model` generates this page, and
a test compares every section with a new search.
";

fn main() -> ExitCode {
    println!("{HEAD}");
    for (title, exhibits) in chapters() {
        println!("## {title}\n");
        for exhibit in exhibits {
            match exhibit.schedule() {
                Ok(schedule) => println!("{}", exhibit.section(&schedule)),
                Err(found) => {
                    eprintln!(
                        "without {:?}, no invariant fails within these bounds: {found:?}",
                        exhibit.rule
                    );
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
