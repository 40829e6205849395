//! The signer of a realm.

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_host::service::signer()
}
