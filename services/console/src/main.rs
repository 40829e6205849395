//! Binary of a realm's console.

use std::process::ExitCode;

use annals_console::command::Console;
use annals_host::telemetry;
use clap::Parser;

fn main() -> ExitCode {
    let console = Console::parse();
    if let Err(error) = telemetry::init(&console.log, console.log_format) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("the async runtime cannot be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(console.run())
}
