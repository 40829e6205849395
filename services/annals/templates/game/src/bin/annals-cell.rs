//! The cell service of a realm, with this game built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_game::cell(new_game::game)
}
