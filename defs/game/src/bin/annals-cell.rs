//! The cell service of a realm, with the sample game built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_host::service::cell(annals_sample::game)
}
