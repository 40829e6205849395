//! The base service of a realm, with the sample game built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_host::service::base(annals_sample::game)
}
