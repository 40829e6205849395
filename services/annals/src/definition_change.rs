//! A change of a running realm's definitions, as its director makes it (rule M7).

use std::{
    io,
    time::{Duration, Instant},
};

use annals_authoring::{Audience, Class, Diff, diff};
use annals_db::{
    migrating::{MigrateError, may_be_later},
    present_schema,
};
use annals_def::{Plan, Rename, RenameError, Renames, Schema};
use annals_host::{
    nats::{Bus, ConnectError},
    process::{AskError, Settings, ask_director, connect, remote_store},
};
use annals_store::StoreError;
use annals_wire::{
    Subjects,
    control::{DirectorAsk, UpgradeAction, UpgradeRealm, UpgradeStage},
};
use thiserror::Error;

use crate::director::ask_until_answered;

/// Timeout of the change itself, longer than the director's. It takes a fraction of a second.
const CHANGED_WITHIN: Duration = Duration::from_secs(30);

/// Interval of the questions for progress.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Maximum encoded size of definitions in a request: what a message holds, with room for the renames.
const DEFINITIONS_LIMIT: usize = 900 << 10;

/// Why the definitions were not changed.
#[derive(Debug, Error)]
pub(crate) enum NotUpgraded {
    #[error("a stopped realm is changed with `annals realm migrate`: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("the realm's director was not reached; see `annals realm upgrade status`, and ask again")]
    NoDirector(#[from] AskError),
    #[error("the realm's store cannot be read")]
    Store(#[from] StoreError),
    #[error("the realm has not begun: start it with its first definitions")]
    NoRealm,
    #[error("invalid renames")]
    Rename(#[from] RenameError),
    #[error(
        "this change is not possible while the realm runs: {0}. Stop the realm and use `annals realm migrate`, which \
         tries the change on all data first"
    )]
    NeedsStop(String),
    #[error(
        "clients of the present definitions cannot read the new ones, so connected players would be disconnected until \
         their clients are updated: repeat with --disconnect-clients to accept that"
    )]
    Clients,
    #[error(
        "the new definitions take {0} bytes, more than a message holds: stop the realm and use `annals realm migrate`"
    )]
    TooLarge(usize),
    #[error("{0}")]
    Refused(String),
    #[error(
        "the definitions have not changed within {} s; see `annals realm upgrade status` and the director's log",
        CHANGED_WITHIN.as_secs()
    )]
    Slow,
    #[error("progress cannot be printed")]
    Output(#[from] io::Error),
}

/// A live realm and its director.
pub(crate) struct Director {
    bus: Bus,
    subjects: Subjects,
}

/// New definitions, compared with the realm's present ones.
pub(crate) struct Comparison {
    /// The differences.
    pub(crate) diff: Diff,
    /// What prevents the change while the realm runs.
    pub(crate) obstacle: Option<String>,
}

impl Comparison {
    /// Whether connected clients cannot read the new definitions.
    pub(crate) fn breaks_clients(&self) -> bool {
        self.diff.verdict(Audience::Clients) >= Class::Breaking
    }
}

/// The end of a preparation.
pub(crate) enum Prepared {
    /// The change can be finished.
    Ready,
    /// Somebody else has finished it.
    FinishedElsewhere(UpgradeStage),
}

impl Director {
    /// Connects to the realm that `settings` name.
    ///
    /// # Errors
    /// When its nats-server cannot be reached.
    pub(crate) async fn connect(settings: &Settings) -> Result<Self, NotUpgraded> {
        let (bus, subjects) = connect(settings, "upgrade").await?;
        Ok(Self { bus, subjects })
    }

    /// Compares definitions with the realm's present ones.
    ///
    /// # Errors
    /// When the realm has none, its store cannot be read, or a rename is invalid.
    pub(crate) async fn compare(&self, new: &Schema, renames: &[Rename]) -> Result<Comparison, NotUpgraded> {
        let store = remote_store(&self.bus, &self.subjects);
        let old = present_schema(&store).await?.ok_or(NotUpgraded::NoRealm)?;
        let renames = Renames::new(&old, new, renames.iter().cloned())?;
        let diff = diff(&old, new, &renames);
        let breaks = [Audience::Stored, Audience::Log].into_iter();
        let breaks = breaks.filter(|audience| diff.verdict(*audience) >= Class::Breaking);
        let mut obstacles: Vec<String> = breaks.map(|audience| format!("{audience}: breaking")).collect();
        if let Err(error @ MigrateError::IndexChanges(_)) = may_be_later(&Plan::new(&old, new, &renames)) {
            obstacles.push(error.to_string());
        }
        let obstacle = (!obstacles.is_empty()).then(|| obstacles.join("; "));
        Ok(Comparison { diff, obstacle })
    }

    /// Prepares the change: from now on the director accepts processes of the new definitions.
    ///
    /// # Errors
    /// When the realm must be stopped for it, or the director refuses.
    pub(crate) async fn prepare(
        &self,
        new: &Schema,
        renames: &[Rename],
        compared: &Comparison,
    ) -> Result<(), NotUpgraded> {
        if let Some(obstacle) = &compared.obstacle {
            return Err(NotUpgraded::NeedsStop(obstacle.clone()));
        }
        let schema = new.encode();
        if schema.len() > DEFINITIONS_LIMIT {
            return Err(NotUpgraded::TooLarge(schema.len()));
        }
        let prepared = UpgradeRealm {
            action: UpgradeAction::Prepare.into(),
            schema,
            renames: renames.iter().map(ToString::to_string).collect(),
        };
        refuse(&self.send(prepared).await?)
    }

    /// Waits until processes of the new definitions are ready to take over. `say` prints what is waited for, whenever
    /// that changes.
    ///
    /// # Errors
    /// When the change is abandoned or taken back, or `say` fails.
    pub(crate) async fn ready(
        &self,
        new: &Schema,
        mut say: impl FnMut(&[String]) -> io::Result<()>,
    ) -> Result<Prepared, NotUpgraded> {
        let mut said = Vec::new();
        loop {
            // While no director leads, there is no answer.
            if let Ok(stage) = self.look().await {
                refuse(&stage)?;
                if stage.next.is_empty() && stage.present == new.fingerprint().0 {
                    return Ok(Prepared::FinishedElsewhere(stage));
                }
                if stage.next.is_empty() {
                    return Err(NotUpgraded::Refused(
                        "what was prepared was taken back meanwhile".to_owned(),
                    ));
                }
                if stage.waiting.is_empty() {
                    return Ok(Prepared::Ready);
                }
                if stage.waiting != said {
                    said.clone_from(&stage.waiting);
                    say(&said)?;
                }
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    /// Makes the change, and waits until the realm has the new definitions.
    ///
    /// # Errors
    /// When nothing is prepared, the change is abandoned, or it takes too long.
    pub(crate) async fn finish(&self) -> Result<UpgradeStage, NotUpgraded> {
        let began = Instant::now();
        let mut stage = self.send(of_action(UpgradeAction::Finish)).await?;
        refuse(&stage)?;
        let next = stage.next.clone();
        while stage.present != next || stage.changing {
            if began.elapsed() > CHANGED_WITHIN {
                return Err(NotUpgraded::Slow);
            }
            tokio::time::sleep(ASK_EVERY).await;
            let Ok(latest) = self.look().await else {
                continue;
            };
            stage = latest;
            refuse(&stage)?;
        }
        Ok(stage)
    }

    /// Takes back what was prepared.
    ///
    /// # Errors
    /// When nothing is prepared, or the change is being made.
    pub(crate) async fn roll_back(&self) -> Result<(), NotUpgraded> {
        refuse(&self.send(of_action(UpgradeAction::RollBack)).await?)
    }

    /// What is prepared, and what it waits for.
    ///
    /// # Errors
    /// When no director answers.
    pub(crate) async fn look(&self) -> Result<UpgradeStage, NotUpgraded> {
        let ask = DirectorAsk::Upgrade(of_action(UpgradeAction::Look));
        Ok(ask_until_answered(&self.bus, &self.subjects, ask).await?)
    }

    /// Sends a request that is refused if it arrives twice: an operator looks before it is repeated.
    async fn send(&self, ask: UpgradeRealm) -> Result<UpgradeStage, NotUpgraded> {
        let ask = DirectorAsk::Upgrade(ask);
        Ok(ask_director(&self.bus, &self.subjects, ask).await?)
    }
}

fn of_action(action: UpgradeAction) -> UpgradeRealm {
    UpgradeRealm {
        action: action.into(),
        ..UpgradeRealm::default()
    }
}

fn refuse(stage: &UpgradeStage) -> Result<(), NotUpgraded> {
    if stage.refused.is_empty() {
        Ok(())
    } else {
        Err(NotUpgraded::Refused(stage.refused.clone()))
    }
}
