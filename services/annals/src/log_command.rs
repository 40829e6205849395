//! `annals log`.

use std::process::ExitCode;

use annals_host::{
    config::Realm,
    process::{Settings, connect, remote_store},
    telemetry::Chain,
};
use annals_ids::{BatchNumber, LogPosition, OwnerId};
use annals_store::Store;

use crate::replay::{owners, replay};

/// Read a realm's log.
#[derive(Debug, clap::Args)]
pub struct Log {
    #[command(subcommand)]
    command: Commands,
    /// Name of the realm
    #[arg(long, global = true, env = "ANNALS_REALM", default_value = "annals")]
    realm: Realm,
    /// The realm's nats-server
    #[arg(long, global = true, env = "ANNALS_NATS", default_value = "nats://127.0.0.1:4222")]
    nats: String,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Fold the whole archive anew, in this process, and print each owner's state hash
    Replay {
        /// Stop at this position, OWNER@BATCH; all owners to their ends if none is given
        #[arg(long, value_parser = position)]
        at: Vec<LogPosition>,
    },
}

impl Log {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        let settings = Settings {
            realm: self.realm,
            nats: self.nats,
            replicas: 1,
        };
        let (bus, subjects) = match connect(&settings, "log").await {
            Ok(connected) => connected,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                return ExitCode::FAILURE;
            }
        };
        let store = remote_store(&bus, &subjects);
        match self.command {
            Commands::Replay { at } => replay_all(&store, at).await,
        }
    }
}

async fn replay_all(store: &Store, at: Vec<LogPosition>) -> ExitCode {
    let wanted = if at.is_empty() {
        match owners(store).await {
            Ok(owners) => owners.into_iter().map(|owner| (owner, None)).collect::<Vec<_>>(),
            Err(error) => {
                eprintln!("{}", Chain(&error));
                return ExitCode::FAILURE;
            }
        }
    } else {
        at.into_iter().map(|at| (at.owner, Some(at.batch))).collect()
    };
    for (owner, until) in wanted {
        match replay(store, owner, until).await {
            Ok(replayed) => println!("{} {} {} events", replayed.at, replayed.state, replayed.events),
            Err(error) => {
                eprintln!("{}", Chain(&error));
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn position(text: &str) -> Result<LogPosition, String> {
    let parts = text
        .split_once('@')
        .and_then(|(owner, batch)| Some((owner.parse().ok()?, batch.parse().ok()?)));
    let (owner, batch) = parts.ok_or("write OWNER@BATCH, such as 3@120")?;
    Ok(LogPosition {
        owner: OwnerId(owner),
        batch: BatchNumber(batch),
    })
}
