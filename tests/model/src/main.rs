//! Prints `docs/schedules.md`: for each rule, the schedule that fails without it.

use std::process::ExitCode;

use annals_model::exhibit::chapters;

const HEAD: &str = "\
# What each rule prevents

For each rule of `docs/protocol.md`, a shortest schedule in which something fails when that rule is taken out and all others
are in force. `docs/model.md` says how to read them. This page is written by `cargo run -p annals-model`, and every section is
compared with a new search by a test.
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
                        "without {:?} everything holds within these bounds: {found:?}",
                        exhibit.rule
                    );
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
