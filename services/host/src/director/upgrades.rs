//! A change of the realm's definitions while it runs, as an operator orders it (rule M7).

use std::time::Duration;

use annals_def::Schema;
use annals_director::{Abandoned, CHANGE_TIMEOUT, GrantError, Upgrade, UpgradeStep};
use annals_ids::{Hash, ProcessId};
use annals_store::layout::director;
use annals_wire::control::{
    ChangeDefinitions, DbAsk, DbRequest, DefinitionsChanged, UpgradeAction, UpgradeOrder, UpgradeRealm, UpgradeStage,
};
use tokio::sync::mpsc;

use super::{Leader, Reach, monotonic};
use crate::{
    process::{AskError, TIMEOUT, request},
    telemetry::Chain,
};

/// How often db is asked to change the definitions: as often as fits into the time that the change may take.
const CHANGE_REQUESTS: u64 = CHANGE_TIMEOUT.as_secs().div_ceil(TIMEOUT.as_secs());

/// Maximum entries in the report of what a change waits for.
const WAITING_LIMIT: usize = 20;

/// The times of a change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    /// When the release of all owners was ordered.
    ordered: Option<Duration>,
    /// Whether the definitions have changed since.
    is_made: bool,
    /// Time from the order until all owners were held again.
    took: Option<Duration>,
}

/// db's answer to the request to change the definitions.
pub(super) type Answer = Result<DefinitionsChanged, AskError>;

impl Leader {
    /// An operator's request.
    pub(super) async fn upgrade(&mut self, ask: &UpgradeRealm) -> Result<UpgradeStage, GrantError> {
        let refused = match ask.action() {
            UpgradeAction::Look => None,
            _ if !self.lifecycle.grants() => Some("the realm is starting or stopping: wait until it runs".to_owned()),
            UpgradeAction::Prepare => self.prepare(ask).await?,
            UpgradeAction::Finish => self.finish(),
            UpgradeAction::RollBack => self.roll_back().await?,
        };
        Ok(self.upgrade_stage(refused))
    }

    async fn prepare(&mut self, ask: &UpgradeRealm) -> Result<Option<String>, GrantError> {
        let schema = match Schema::decode(&ask.schema) {
            Ok(schema) => schema,
            Err(error) => return Ok(Some(format!("the new definitions cannot be read: {error}"))),
        };
        if self.upgrade.as_ref().is_some_and(Upgrade::is_changing) {
            return Ok(Some(
                "the definitions are being changed: wait until that has ended".to_owned(),
            ));
        }
        let to = schema.fingerprint();
        let record = director::Upgrade {
            to,
            renames: ask.renames.clone(),
        };
        match self.grants.prepare_upgrade(&record, &schema.encode()).await {
            Ok(()) => {}
            Err(
                refused @ (GrantError::SameSchema
                | GrantError::FormerSchema { .. }
                | GrantError::Converting
                | GrantError::OtherUpgrade(_)),
            ) => return Ok(Some(refused.to_string())),
            Err(error) => return Err(error),
        }
        tracing::info!(schema = %to, "a change of the realm's definitions is prepared");
        self.upgrade = Some(Upgrade::prepared(to));
        self.membership.stage(true);
        Ok(None)
    }

    fn finish(&mut self) -> Option<String> {
        let Some(upgrade) = &mut self.upgrade else {
            return Some(
                "no change of the realm's definitions is prepared: `annals realm upgrade apply` does".to_owned(),
            );
        };
        if upgrade.abandoned().is_some() {
            return Some("the change was abandoned: prepare it again with `annals realm upgrade apply`".to_owned());
        }
        if upgrade.is_changing() {
            return None;
        }
        let login = self.lacking_login();
        let Some(upgrade) = &mut self.upgrade else { return None };
        let unready = match login {
            Some(login) => Err(vec![login]),
            None => upgrade
                .finish(monotonic(), &self.membership)
                .map_err(|unready| unready.iter().take(WAITING_LIMIT).map(ToString::to_string).collect()),
        };
        if let Err(unready) = unready {
            return Some(format!("the definitions cannot be changed yet: {}", unready.join("; ")));
        }
        tracing::info!(schema = %upgrade.to(), "changing the realm's definitions: all owners are released");
        self.changed = Changed {
            ordered: Some(monotonic()),
            ..Changed::default()
        };
        self.summoned.extend(self.membership.holding());
        None
    }

    async fn roll_back(&mut self) -> Result<Option<String>, GrantError> {
        let Some(upgrade) = &self.upgrade else {
            return Ok(Some("no change of the realm's definitions is prepared".to_owned()));
        };
        if upgrade.is_changing() {
            return Ok(Some(
                "the definitions are being changed: there is no way back".to_owned(),
            ));
        }
        self.grants.roll_back_upgrade(upgrade.to()).await?;
        tracing::info!(schema = %upgrade.to(), "the prepared change of the realm's definitions is taken back");
        self.upgrade = None;
        self.membership.stage(false);
        Ok(None)
    }

    fn upgrade_stage(&self, refused: Option<String>) -> UpgradeStage {
        let upgrade = self.upgrade.as_ref();
        let is_changing = upgrade.is_some_and(Upgrade::is_changing);
        let waiting: Vec<String> = match upgrade {
            None => Vec::new(),
            Some(_) if is_changing => {
                let unreleased = self.membership.unreleased();
                let texts = unreleased.map(|(owner, process)| format!("process {process} to release owner {owner}"));
                texts.take(WAITING_LIMIT).collect()
            }
            Some(_) => {
                let unready = self.membership.unready(monotonic());
                let unready = unready.iter().map(ToString::to_string).chain(self.lacking_login());
                unready.take(WAITING_LIMIT).collect()
            }
        };
        let abandoned = upgrade.and_then(Upgrade::abandoned);
        let abandoned = abandoned.map(|why| format!("the change was abandoned: {why}"));
        let took = self
            .changed
            .took
            .map_or(0, |took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        UpgradeStage {
            present: self.realm.schema.0.to_vec(),
            next: upgrade.map_or_else(Vec::new, |upgrade| upgrade.to().0.to_vec()),
            changing: is_changing || (self.changed.is_made && self.changed.took.is_none()),
            waiting,
            refused: refused.or(abandoned).unwrap_or_default(),
            took: if self.changed.is_made { took.max(1) } else { 0 },
        }
    }

    /// Report to the operator if log-ins would end with the change.
    fn lacking_login(&self) -> Option<String> {
        let mut logins = self.services.iter().filter(|(_, service)| *service == "login");
        let is_next = |(process, _): (&ProcessId, &String)| self.membership.is_next(*process);
        let lacks = logins.clone().next().is_some() && !logins.any(is_next);
        lacks.then(|| "no login process with the new definitions is running: start one".to_owned())
    }

    /// A process's part in the change.
    pub(super) fn upgrade_order(&self, process: ProcessId) -> UpgradeOrder {
        if self.membership.is_former(process) {
            return UpgradeOrder::End;
        }
        if self.membership.is_next(process) {
            return UpgradeOrder::Wait;
        }
        let is_releasing = self.upgrade.as_ref().is_some_and(Upgrade::is_changing);
        if is_releasing && self.membership.owned(process).next().is_some() {
            return UpgradeOrder::Release;
        }
        UpgradeOrder::None
    }

    /// Goes on with a change as far as possible.
    pub(super) async fn go_on_changing(
        &mut self,
        reach: &Reach<'_>,
        answers: &mpsc::Sender<Answer>,
    ) -> Result<(), GrantError> {
        if self.changed.is_made && self.changed.took.is_none() && self.unheld.is_empty() {
            let took = self.changed.ordered.map(|ordered| monotonic().saturating_sub(ordered));
            self.changed.took = took;
            let took = took.unwrap_or_default().as_millis();
            tracing::info!(schema = %self.realm.schema, took, "all owners are held under the new definitions");
        }
        let Some(upgrade) = &mut self.upgrade else {
            return Ok(());
        };
        if upgrade.is_changing() && !self.lifecycle.grants() {
            upgrade.abandon(Abandoned::Stopped);
            return self.abandon_change(&Abandoned::Stopped).await;
        }
        match upgrade.advance(monotonic(), &self.membership) {
            None => Ok(()),
            Some(UpgradeStep::Abandon(why)) => self.abandon_change(&why).await,
            Some(UpgradeStep::Change) => {
                let (bus, subject) = (reach.bus.clone(), reach.subjects.service("db"));
                let ask = DbAsk::ChangeDefinitions(ChangeDefinitions {
                    to: upgrade.to().0.to_vec(),
                });
                let answers = answers.clone();
                tokio::spawn(async move {
                    let ask = DbRequest { ask: Some(ask) };
                    let mut answer = request(&bus, "db", subject.clone(), &ask).await;
                    // db may be at it, or its answer may be lost: a repetition changes nothing.
                    for _ in 1..CHANGE_REQUESTS {
                        if !matches!(answer, Err(AskError::Silent { .. })) {
                            break;
                        }
                        answer = request(&bus, "db", subject.clone(), &ask).await;
                    }
                    // Without a leader nobody waits for it.
                    let _ = answers.send(answer).await;
                });
                Ok(())
            }
        }
    }

    /// Applies db's answer. If it is not known whether the definitions have changed, the store says so.
    pub(super) async fn definitions_answered(&mut self, answer: Answer) -> Result<(), GrantError> {
        let Some(to) = self.upgrade.as_ref().map(Upgrade::to) else {
            return Ok(());
        };
        if self.grants.read_realm().await?.0.schema == to {
            return self.definitions_changed(to).await;
        }
        let why = match answer {
            Ok(DefinitionsChanged { refused }) => Abandoned::Refused(refused),
            Err(error) => Abandoned::Refused(Chain(&error).to_string()),
        };
        if let Some(upgrade) = self.upgrade.as_mut().filter(|upgrade| upgrade.is_changing()) {
            upgrade.abandon(why.clone());
            self.abandon_change(&why).await?;
        }
        Ok(())
    }

    async fn definitions_changed(&mut self, to: Hash) -> Result<(), GrantError> {
        tracing::info!(schema = %to, "the realm's definitions have changed");
        self.realm.schema = to;
        self.upgrade = None;
        self.changed.is_made = true;
        self.summoned.extend(self.membership.holding());
        self.membership.definitions_changed();
        if self.grants_now() {
            self.decide().await?;
        }
        Ok(())
    }

    async fn abandon_change(&mut self, why: &Abandoned) -> Result<(), GrantError> {
        tracing::error!(%why, "the change of the realm's definitions was abandoned; the realm goes on with those it has");
        self.summoned.extend(self.membership.holding());
        self.membership.change_abandoned();
        if self.grants_now() {
            self.decide().await?;
        }
        Ok(())
    }
}
