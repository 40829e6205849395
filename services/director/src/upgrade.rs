//! The stages of a change of a running realm's definitions (rule M7). Pure: time is an input.

use std::time::Duration;

use annals_ids::{Hash, OwnerId, ProcessId};
use thiserror::Error;

use crate::membership::{Membership, Unready};

/// Timeout of the release of all owners, and of the change in the store. Both take a fraction of a second; meanwhile no
/// entity acts.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A change of definitions that was prepared.
#[derive(Clone, Debug)]
pub struct Upgrade {
    to: Hash,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Processes of the new definitions follow all owners.
    Prepared,
    /// All owners are being released.
    Releasing { since: Duration },
    /// db is asked to change the definitions.
    Changing { since: Duration },
    /// The change was abandoned.
    Abandoned(Abandoned),
}

/// Why a change was abandoned. The realm goes on with its definitions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Abandoned {
    /// A holder has died.
    #[error("process {process}, which held owner {owner}, has ended")]
    Died {
        owner: OwnerId,
        /// The holder.
        process: ProcessId,
    },
    /// An owner was not released in time.
    #[error("process {process} has not released owner {owner} within {} s", CHANGE_TIMEOUT.as_secs())]
    NotReleased {
        owner: OwnerId,
        /// The holder.
        process: ProcessId,
    },
    /// A process that was to take an owner over has died.
    #[error("the process that was to take owner {0} over has ended")]
    NotFollowed(OwnerId),
    /// db has not answered in time. It may still change them until an owner is granted again.
    #[error("db has not answered within {} s", CHANGE_TIMEOUT.as_secs())]
    NoAnswer,
    /// db has refused.
    #[error("{0}")]
    Refused(String),
    /// The operator stops the realm.
    #[error("the realm is being stopped")]
    Stopped,
}

/// What the director is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeStep {
    /// Every owner is released: have db change the definitions.
    Change,
    /// The change is abandoned: released owners are granted again.
    Abandon(Abandoned),
}

impl Upgrade {
    /// A change to these definitions, which begins prepared.
    #[must_use]
    pub fn prepared(to: Hash) -> Self {
        Self {
            to,
            stage: Stage::Prepared,
        }
    }

    /// The fingerprint of the new definitions.
    #[must_use]
    pub fn to(&self) -> Hash {
        self.to
    }

    /// Whether owners are being released or are released. Nothing is granted then.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        matches!(self.stage, Stage::Releasing { .. } | Stage::Changing { .. })
    }

    /// Why it was abandoned, if it was.
    #[must_use]
    pub fn abandoned(&self) -> Option<&Abandoned> {
        match &self.stage {
            Stage::Abandoned(why) => Some(why),
            Stage::Prepared | Stage::Releasing { .. } | Stage::Changing { .. } => None,
        }
    }

    /// Begins to release all owners. Has no effect while they are being released.
    ///
    /// # Errors
    /// What keeps them from being released.
    pub fn finish(&mut self, now: Duration, membership: &Membership) -> Result<(), Vec<Unready>> {
        if self.is_changing() {
            return Ok(());
        }
        let unready = membership.unready(now);
        if !unready.is_empty() {
            return Err(unready);
        }
        self.stage = Stage::Releasing { since: now };
        Ok(())
    }

    /// Goes on as far as possible at `now`.
    pub fn advance(&mut self, now: Duration, membership: &Membership) -> Option<UpgradeStep> {
        match self.stage {
            Stage::Prepared | Stage::Abandoned(_) => None,
            Stage::Releasing { since } => {
                let died = membership
                    .unreleased()
                    .find(|(_, process)| !membership.is_alive(*process));
                if let Some((owner, process)) = died {
                    return Some(self.abandon(Abandoned::Died { owner, process }));
                }
                if let Some(owner) = membership.unfollowed().next() {
                    return Some(self.abandon(Abandoned::NotFollowed(owner)));
                }
                match membership.unreleased().next() {
                    None => {
                        self.stage = Stage::Changing { since: now };
                        Some(UpgradeStep::Change)
                    }
                    Some((owner, process)) if now.saturating_sub(since) >= CHANGE_TIMEOUT => {
                        Some(self.abandon(Abandoned::NotReleased { owner, process }))
                    }
                    Some(_) => None,
                }
            }
            Stage::Changing { since } if now.saturating_sub(since) >= CHANGE_TIMEOUT => {
                Some(self.abandon(Abandoned::NoAnswer))
            }
            Stage::Changing { .. } => None,
        }
    }

    /// Abandons the change.
    pub fn abandon(&mut self, why: Abandoned) -> UpgradeStep {
        self.stage = Stage::Abandoned(why.clone());
        UpgradeStep::Abandon(why)
    }
}
