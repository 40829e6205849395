//! `annals realm stop`: stops a live realm in order.

use std::{process::ExitCode, time::Duration};

use annals_host::{
    process::{Settings, connect},
    telemetry::Chain,
};

use crate::stopping::{StopError, Stopping};

/// How to stop it.
#[derive(Debug, clap::Args)]
pub(super) struct Stop {
    /// Seconds between the announcement and the disconnection of clients
    #[arg(long, default_value_t = 0)]
    delay: u64,
    /// Advance a stop that hangs to its next stage without the processes that it waits for
    #[arg(long)]
    go_on: bool,
}

impl Stop {
    /// Stops the realm, and returns when it is stopped.
    pub(super) async fn run(self, settings: &Settings) -> ExitCode {
        match self.stop(settings).await {
            Ok(()) => {
                println!("stopped");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::FAILURE
            }
        }
    }

    async fn stop(self, settings: &Settings) -> Result<(), StopError> {
        let (bus, subjects) = connect(settings, "stop").await?;
        let mut stopping = Stopping::new(bus, subjects).patient();
        if self.go_on {
            stopping.go_on().await?;
        } else {
            stopping.begin(Duration::from_secs(self.delay)).await?;
        }
        stopping.follow(|line| println!("{line}")).await
    }
}
