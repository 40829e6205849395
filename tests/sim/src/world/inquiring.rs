//! Database answers to inquiries of behaviour: the shell of a base, without waiting.

use annals_base::{BaseInput, Begin, CheckedOut};
use annals_db::{StoredEntity, accounts, find_indexed, find_stored, read_cursor, taken_from};
use annals_def::EntityType;
use annals_ids::{BatchNumber, CallNumber, DatabaseId, EntityId, Epoch, OwnerId, Part, ProcessId};
use annals_node::{
    Begun, NotOpened,
    inquiry::{Answer, Answered, Inquiry, Learned, NAMED_AT_ONCE, NewBase, NotLearned, Wanted},
};
use annals_store::{Transaction, immediate, layout::database::Checkout};

use super::{
    Step, World,
    hosting::{Given, Hold},
};
use crate::game::{NAMES, PET};

/// How long an inquiry is retried, microseconds.
const TIMEOUT: u64 = 60_000_000;

/// Retry interval of an inquiry, microseconds.
const AGAIN: u64 = 200_000;

/// Timeout of a request to activate, before it is sent again, microseconds.
const BEGIN_TIMEOUT: u64 = 2_000_000;

/// A pending inquiry.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    hold: Hold,
    entity: EntityId,
    number: CallNumber,
    inquiry: Inquiry,
    until: u64,
    /// The owner on which the entity is activated.
    at: OwnerId,
}

impl World {
    /// Initial contents of the database.
    pub(super) fn make_pets(&mut self) {
        let store = self.truth();
        for name in NAMES {
            let entity = StoredEntity {
                entity_type: PET.to_owned(),
                properties: [("name".to_owned(), annals_def::Value::Unicode(name.to_owned()))].into(),
            };
            let made = accounts::create(&store, name.as_bytes(), "", &entity, &self.schema);
            immediate(made).expect("the store in memory answers");
        }
    }

    pub(super) fn begin_inquiry(&mut self, hold: Hold, (entity, number): (EntityId, CallNumber), inquiry: Inquiry) {
        let asking = Asking {
            hold,
            entity,
            number,
            inquiry,
            until: self.now + TIMEOUT,
            at: hold.owner,
        };
        self.inquire_after(200, 2_000, asking);
    }

    /// A process works on an inquiry. Requests that the store does not answer are retried.
    pub(super) fn inquire(&mut self, asking: Asking) {
        let kept = asking.clone();
        if self.defer(asking.hold.process, |_| Step::Inquire { asking: kept }) {
            return;
        }
        if self.now > asking.until {
            return self.learn(&asking, Err(NotLearned::Late));
        }
        if self.cut_of(asking.hold.process).log {
            return self.inquire_after(AGAIN, AGAIN, asking);
        }
        let learned = match &asking.inquiry {
            Inquiry::Written { database, batch } => self.written(asking.hold.owner, *database, *batch),
            Inquiry::Find {
                property, value, after, ..
            } => self.find(property, value, *after),
            Inquiry::Begin(wanted) => match self.wanted_pet(wanted) {
                Some(Ok(database)) => return self.place_life(asking, database),
                Some(Err(why)) => return self.learn(&asking, Err(why)),
                None => None,
            },
            Inquiry::Place(new) => match self.any_base() {
                Some(on) => return self.place_base(&asking, on, new.clone()),
                None => None,
            },
        };
        match learned {
            Some(learned) => self.learn(&asking, Ok(learned)),
            None => self.inquire_after(AGAIN, AGAIN, asking),
        }
    }

    fn inquire_after(&mut self, least: u64, most: u64, asking: Asking) {
        let delay = self.between(least, most);
        self.after(delay, Step::Inquire { asking });
    }

    fn written(&self, owner: OwnerId, database: DatabaseId, batch: BatchNumber) -> Option<Learned> {
        let cursor = immediate(read_cursor(&self.store, owner)).ok()?;
        if cursor.batch < batch {
            return None;
        }
        let schema = &self.schema;
        let read = |transaction: Transaction| async move { taken_from(&transaction, schema, database).await };
        let taken = immediate(self.store.read(read)).ok()?;
        Some(Learned::Written { database, taken })
    }

    fn find(&self, property: &str, value: &annals_def::Value, after: DatabaseId) -> Option<Learned> {
        let pet = self.pet();
        let read = |transaction: Transaction| async move {
            let mut found = Vec::new();
            for id in find_indexed(&transaction, pet, property, value, (after, NAMED_AT_ONCE)).await? {
                found.push(accounts::known(&transaction, pet.id, id).await?);
            }
            Ok::<_, annals_db::FindError>(found)
        };
        immediate(self.store.read(read)).ok().map(Learned::Found)
    }

    fn wanted_pet(&self, wanted: &Wanted) -> Option<Result<DatabaseId, NotLearned>> {
        let database = match wanted {
            Wanted::Id(database) => Some(*database),
            Wanted::Named { identifier, .. } => {
                let pet = self.pet();
                let read = |transaction: Transaction| async move { find_stored(&transaction, pet, identifier).await };
                immediate(self.store.read(read)).ok()?
            }
        };
        Some(database.ok_or(NotLearned::Absent))
    }

    fn pet(&self) -> &EntityType {
        self.schema.type_named(PET).expect("the game has pets")
    }

    /// The epoch of the owner that will hold the activation is recorded before the entity is checked out (rule P1).
    fn place_life(&mut self, asking: Asking, database: DatabaseId) {
        let Some((base, _)) = self.located(asking.at) else {
            return self.inquire_after(AGAIN, AGAIN, asking);
        };
        let delay = self.between(200, 3_000);
        let epoch = base.epoch;
        self.after(
            delay,
            Step::CheckOut {
                asking,
                epoch,
                database,
            },
        );
    }

    pub(super) fn check_out(&mut self, mut asking: Asking, epoch: Epoch, database: DatabaseId) {
        let checked_out = immediate(accounts::check_out(&self.store, database, asking.at));
        let Ok(Some(checkout)) = checked_out else {
            return self.inquire_after(AGAIN, AGAIN, asking);
        };
        if checkout.owner != asking.at {
            asking.at = checkout.owner;
            return self.inquire_after(200, 3_000, asking);
        }
        let Ok(Some(stored)) = immediate(accounts::load(&self.store, database)) else {
            return self.inquire_after(AGAIN, AGAIN, asking);
        };
        let entity = self.life(&stored, (database, checkout), epoch);
        self.ask_for_life(asking, entity);
    }

    /// Asks the holder of the owner, and repeats until an answer arrives. Requests may be late or duplicated.
    fn ask_for_life(&mut self, asking: Asking, entity: CheckedOut) {
        let request = self.next_login;
        self.next_login += 1;
        let (from, at) = (asking.hold.process, asking.at);
        self.lives.insert(request, asking);
        self.after(BEGIN_TIMEOUT, Step::BeginAgain { request });
        let begin = Begin { request, entity };
        for delay in self.journeys() {
            let begin = begin.clone();
            self.after(delay, Step::BeginLife { from, at, begin });
        }
    }

    fn life(&self, stored: &StoredEntity, (database, checkout): (DatabaseId, Checkout), epoch: Epoch) -> CheckedOut {
        CheckedOut {
            epoch,
            database,
            checkout: checkout.number,
            type_id: self.pet().id,
            properties: stored.properties_of(self.pet(), Part::Base),
            key: self.key(database),
        }
    }

    /// A reachable holder of the owner activates the entity.
    pub(super) fn begin_life(&mut self, from: ProcessId, at: OwnerId, begin: Begin) {
        let holder = self.holder(at);
        if let Some(holder) = holder.filter(|holder| self.reach_each_other(from, holder.process)) {
            self.give(holder, Given::Base(BaseInput::Begin(begin)));
        }
    }

    pub(super) fn begin_again(&mut self, request: u64) {
        if let Some(asking) = self.lives.remove(&request) {
            self.inquire(asking);
        }
    }

    pub(super) fn life_begun(&mut self, request: u64, begun: Result<Begun, NotOpened>) {
        let Some(asking) = self.lives.remove(&request) else {
            return;
        };
        let Inquiry::Begin(wanted) = &asking.inquiry else {
            unreachable!("only these let somebody live")
        };
        match begun {
            Ok(Begun { mailbox, was_active }) => {
                let Some(Ok(database)) = self.wanted_pet(wanted) else {
                    return self.inquire_after(AGAIN, AGAIN, asking);
                };
                let learned = Learned::Begun {
                    database,
                    mailbox,
                    was_active,
                };
                self.learn(&asking, Ok(learned));
            }
            Err(NotOpened::Outdated) => self.inquire_after(AGAIN, AGAIN, asking),
            Err(why) => self.learn(&asking, Err(NotLearned::Refused(why.to_string()))),
        }
    }

    fn learn(&mut self, asking: &Asking, outcome: Result<Learned, NotLearned>) {
        let Asking {
            hold, entity, number, ..
        } = *asking;
        let answer = Answer::Result(outcome);
        let answered = Answered { entity, number, answer };
        let delay = self.between(100, 2_000);
        self.after(delay, Step::Inquired { hold, answered });
    }

    /// The director has named an owner for a new entity.
    fn place_base(&mut self, asking: &Asking, on: OwnerId, new: NewBase) {
        let Asking {
            hold, entity, number, ..
        } = *asking;
        let answer = Answer::Place { on, new };
        let answered = Answered { entity, number, answer };
        let delay = self.between(100, 2_000);
        self.after(delay, Step::Inquired { hold, answered });
    }

    /// An answer reaches the holder that made the inquiry.
    pub(super) fn inquired(&mut self, hold: Hold, answered: Answered) {
        let kept = answered.clone();
        if !self.defer(hold.process, |_| Step::Inquired { hold, answered: kept }) {
            self.give(hold, Given::Inquired(answered));
        }
    }
}
