//! `annals realm drain`: ends a process after others have taken over what it holds.

use std::{
    io::{Write, stdout},
    process::ExitCode,
    time::{Duration, Instant},
};

use annals_host::{
    log_source::KeptRealm,
    nats::ConnectError,
    process::{AskError, Settings, ask_director, connect},
};
use annals_wire::control::{DirectorAsk, DrainProcess, DrainStage};
use thiserror::Error;

use super::RealmError;
use crate::director::ask_until_answered;

/// Timeout of a drain: longer than a process tries to hand over what it holds, and then to log what it did.
const DRAINED_WITHIN: Duration = Duration::from_secs(30);

/// Time after which a process that does not report to the director has ended: longer than its report to a new director
/// takes.
const GONE_AFTER: Duration = Duration::from_secs(3);

/// Interval of the questions for progress.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Drain a base or cell process. Other processes of its service follow the logs of what it holds, and take over in
/// turn; clients are moved without losing their connection. Then it ends, with exit code 0.
#[derive(Debug, clap::Args)]
pub(super) struct Drain {
    /// Number of the process, as `annals realm processes` lists it
    process: u64,
    /// Drain it even if no other process can take over: its entities then pause until one can
    #[arg(long)]
    force: bool,
}

/// Why a process is not drained.
#[derive(Debug, Error)]
pub(super) enum NotDrained {
    #[error("a stopped realm has no processes: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("the realm's director was not reached; ask again")]
    NoDirector(#[from] AskError),
    #[error("there is no live process {0}; see `annals realm processes`")]
    Unknown(u64),
    #[error("{0}")]
    Refused(String),
    #[error(
        "process {process} has ended without handing everything over, as after a crash: others take over the rest from \
         its logs, and nothing that was shown is lost; see its log for the cause"
    )]
    Gone { process: u64 },
    #[error(
        "process {process} still holds {owners} owners after {} s; see its log, and the director's",
        DRAINED_WITHIN.as_secs()
    )]
    Slow { process: u64, owners: u32 },
}

impl Drain {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        if kept.data.is_some() {
            return Err(NotDrained::Stopped.into());
        }
        let (last, took) = self.drain(settings).await?;
        let (process, took) = (self.process, took.as_secs_f32());
        // Empty if the process had ended before the director answered.
        let service = Some(last.service).filter(|service| !service.is_empty());
        let service = service.unwrap_or_else(|| "base or cell".to_owned());
        match last.owners {
            0 => writeln!(
                stdout(),
                "process {process} ({service}) has handed everything over and ended, after {took:.1} s"
            )?,
            owners => writeln!(
                stdout(),
                "process {process} ({service}) has ended, after {took:.1} s, and no other {service} process was there: \
                 {owners} owners wait, with all their entities, until one is started"
            )?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Drains the process; returns its service and the owners that nobody has taken over, and how long it took.
    async fn drain(&self, settings: &Settings) -> Result<(DrainStage, Duration), NotDrained> {
        let (bus, subjects) = connect(settings, "drain").await?;
        let ask = DirectorAsk::Drain(DrainProcess {
            process: self.process,
            drain: true,
            force: self.force,
        });
        let first: DrainStage = ask_until_answered(&bus, &subjects, ask.clone()).await?;
        let began = Instant::now();
        // An earlier attempt may have drained it, and its answer was lost.
        if first.service.is_empty() && !first.left {
            return Err(NotDrained::Unknown(self.process));
        }
        if !first.refused.is_empty() {
            return Err(NotDrained::Refused(first.refused));
        }
        let process = self.process;
        let (mut owners, mut seen) = (first.owners, Instant::now());
        while began.elapsed() < DRAINED_WITHIN {
            tokio::time::sleep(ASK_EVERY).await;
            // A director that has just begun to lead does not know of the order: it is repeated. While none leads, there
            // is no answer, and what has not reported to the next one may live.
            let Ok(stage) = ask_director::<DrainStage>(&bus, &subjects, ask.clone()).await else {
                seen = Instant::now();
                continue;
            };
            if stage.left {
                let last = DrainStage {
                    service: first.service,
                    ..stage
                };
                return Ok((last, began.elapsed()));
            }
            if !stage.service.is_empty() {
                (owners, seen) = (stage.owners, Instant::now());
            } else if seen.elapsed() > GONE_AFTER {
                return Err(NotDrained::Gone { process });
            }
        }
        Err(NotDrained::Slow { process, owners })
    }
}
