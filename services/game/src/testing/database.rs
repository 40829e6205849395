//! The database and the ledger of a realm in a test: a real db, which folds the owners' logs into a store in memory.

use std::{collections::BTreeMap, sync::Arc};

use annals_base::{BaseInput, Begin, CheckedOut};
use annals_db::{
    Alarm, FindError, Folder, LedgerInput, LedgerRole, StoredEntity, accounts, find_indexed, find_stored,
    ledger::Outbox, no_behaviour, personal, read_cursor, taken_from,
};
use annals_def::Schema;
use annals_ids::{CallNumber, DatabaseId, EntityId, Epoch, OwnerId, OwnerKind, Part, ProcessId, Shard, TypeId};
use annals_node::{
    Begun, Behaviour, Input, NotOpened, Output,
    inquiry::{Answer, Answered, Inquiry, Learned, NAMED_AT_ONCE, NotLearned, Wanted},
    time::Now,
    writer::Opening,
};
use annals_personal::PersonalKey;
use annals_store::{
    MemoryStore, Store, Transaction, immediate,
    layout::owners::{OpeningRecord, OwnerRecord, opening_key, owner_key},
};

use super::{BASE, TestRealm, station::Station};

/// The owner of the ledger.
pub(super) const LEDGER: OwnerId = OwnerId(30);

/// Notices of the ledger per delivery.
const NOTICES_AT_ONCE: usize = 16;

/// Maximum transactions per look at the logs: folding ends long before.
const MAX_COMMITS: usize = 10_000;

/// Why the store answers.
const IN_MEMORY: &str = "invariant: a store in memory answers";

/// The first request number of activations; log-ins have those of players.
const FIRST_REQUEST: u64 = 1 << 32;

/// What an owner is given for a query.
pub(super) enum ToOwner {
    /// The answer.
    Answer(OwnerId, Answered),
    /// To the base: activate this entity.
    Begin(Begin),
}

/// A query of behaviour that was not answered yet.
struct Asked {
    /// The owner whose entity asked.
    from: OwnerId,
    entity: EntityId,
    number: CallNumber,
    inquiry: Inquiry,
}

/// The store, the db that folds into it, and the ledger's owner.
pub(super) struct Database {
    store: Store,
    folder: Folder,
    schema: Arc<Schema>,
    outbox: Outbox,
    pub(super) ledger: Station<LedgerRole>,
    /// How many batches of each log were offered.
    offered: BTreeMap<OwnerId, usize>,
    /// The stored entities of accounts, in the order of their numbers.
    accounts: Vec<DatabaseId>,
    keys: BTreeMap<DatabaseId, PersonalKey>,
    asked: Vec<Asked>,
    /// Activations that the base was asked for.
    beginning: BTreeMap<u64, (EntityId, CallNumber, DatabaseId)>,
}

impl Database {
    pub(super) fn new(schema: &Arc<Schema>, now: Now) -> Self {
        let store = MemoryStore::new().store();
        let folder = immediate(Folder::begin(store.clone(), Shard(0), Arc::clone(schema))).expect(IN_MEMORY);
        let behaviour: Arc<dyn Behaviour> = no_behaviour();
        let ledger = Station::begin((schema, &behaviour), LEDGER, now, LedgerRole::take_over);
        let database = Self {
            store,
            folder,
            schema: Arc::clone(schema),
            outbox: Outbox::default(),
            ledger,
            offered: BTreeMap::new(),
            accounts: Vec::new(),
            keys: BTreeMap::new(),
            asked: Vec::new(),
            beginning: BTreeMap::new(),
        };
        database.grant(LEDGER, OwnerKind::Ledger, Epoch(1));
        database
    }

    /// Records which epoch of an owner is held, as the director does.
    pub(super) fn grant(&self, owner: OwnerId, kind: OwnerKind, epoch: Epoch) {
        let record = OwnerRecord {
            kind,
            shard: Shard(0),
            epoch,
            process: ProcessId(u64::from(owner.0)),
            call_generation: 0,
        };
        self.write(&owner_key(owner), &record.encode());
    }

    fn write(&self, key: &[u8], value: &[u8]) {
        let transaction = self.store.begin();
        transaction.set(key, value).expect(IN_MEMORY);
        immediate(transaction.commit()).expect(IN_MEMORY);
    }

    /// Folds what a log has beyond what was offered.
    pub(super) fn offer(&mut self, owner: OwnerId, openings: &[Opening], log: &[Vec<u8>]) {
        for Opening { epoch, number, hash } in openings {
            let record = OpeningRecord {
                epoch: *epoch,
                number: *number,
                hash: *hash,
            };
            self.write(&opening_key(owner, *epoch), &record.encode());
        }
        let offered = self.offered.entry(owner).or_default();
        for bytes in log.iter().skip(*offered) {
            self.folder.offer(owner, bytes.clone());
        }
        *offered = log.len();
    }

    /// Folds what was offered.
    ///
    /// # Panics
    /// If a log cannot be folded. That a unique value is taken is no error: behaviour is informed of that.
    pub(super) fn fold(&mut self) {
        let openings = self.ledger.take_openings();
        let log = std::mem::take(&mut self.ledger.log);
        self.offer(LEDGER, &openings, &log);
        self.ledger.log = log;
        for _ in 0..MAX_COMMITS {
            if !self.folder.has_work() {
                return;
            }
            let folded = immediate(self.folder.commit()).expect(IN_MEMORY);
            for alarm in folded.alarms {
                assert!(matches!(alarm, Alarm::IdentifierTaken { .. }), "{alarm}");
            }
        }
        panic!("the db does not end to fold");
    }

    /// Gives the ledger's owner its time, and the notices that folding has made. Returns its outputs.
    pub(super) fn pass(&mut self, now: Now) -> Vec<Output> {
        let mut outputs = self.ledger.give(now, Input::Time);
        let notices = immediate(self.outbox.read(&self.store, NOTICES_AT_ONCE)).expect(IN_MEMORY);
        if let Some((last, _)) = notices.last() {
            self.outbox.give(*last);
            outputs.extend(self.ledger.give(now, Input::Role(LedgerInput::Notices(notices))));
        }
        outputs
    }

    /// The stored entity of an account, which is created if there is none.
    pub(super) fn account(&mut self, number: usize, account: TypeId) -> DatabaseId {
        let entity_type = self
            .schema
            .entity_type(account)
            .expect("invariant: it was found by name");
        while self.accounts.len() <= number {
            let name = format!("account {}", self.accounts.len());
            let entity = StoredEntity {
                entity_type: entity_type.name.clone(),
                properties: BTreeMap::new(),
            };
            let created = accounts::create(&self.store, name.as_bytes(), "", &entity, &self.schema);
            self.accounts.push(immediate(created).expect(IN_MEMORY).database);
        }
        self.accounts[number]
    }

    /// Checks a stored entity out to the base; `None` if there is none. The logs have to be folded.
    pub(super) fn check_out(&mut self, database: DatabaseId, epoch: Epoch) -> Option<CheckedOut> {
        let stored = immediate(accounts::load(&self.store, database)).expect(IN_MEMORY)?;
        let checkout = immediate(accounts::check_out(&self.store, database, BASE)).expect(IN_MEMORY)?;
        let entity_type = self.schema.type_named(&stored.entity_type)?;
        let mut fresh = [1; 32];
        fresh[..8].copy_from_slice(&database.0.to_le_bytes());
        let key = immediate(personal::key(&self.store, database, fresh)).expect(IN_MEMORY);
        self.keys.extend(key.clone().map(|key| (database, key)));
        let parts = [Part::Base, Part::Cell].map(|part| stored.properties_of(entity_type, part));
        Some(CheckedOut {
            epoch,
            database,
            checkout: checkout.number,
            type_id: entity_type.id,
            properties: parts.concat(),
            key,
        })
    }

    /// The keys of the persons that were activated.
    pub(super) fn keys(&self) -> BTreeMap<DatabaseId, PersonalKey> {
        self.keys.clone()
    }

    /// Accepts a query of an owner; it is answered at the next look.
    pub(super) fn ask(&mut self, from: OwnerId, (entity, number): (EntityId, CallNumber), inquiry: Inquiry) {
        self.asked.push(Asked {
            from,
            entity,
            number,
            inquiry,
        });
    }

    /// What owners are to be given for their queries: answers, and activations.
    pub(super) fn answers(&mut self, epoch: Epoch) -> Vec<ToOwner> {
        let asked = std::mem::take(&mut self.asked);
        let mut inputs = Vec::new();
        for one in asked {
            let (from, entity, number) = (one.from, one.entity, one.number);
            let answered = |answer| ToOwner::Answer(from, Answered { entity, number, answer });
            let outcome = match &one.inquiry {
                Inquiry::Written { database, batch } => {
                    let cursor = immediate(read_cursor(&self.store, BASE)).expect(IN_MEMORY);
                    if cursor.batch < *batch {
                        self.asked.push(one);
                        continue;
                    }
                    Ok(self.written(*database))
                }
                Inquiry::Find {
                    type_id,
                    property,
                    value,
                    after,
                } => self.find(*type_id, (property, value), *after),
                Inquiry::Begin(wanted) => match self.begin(wanted, epoch) {
                    Ok(checked_out) => {
                        let request = FIRST_REQUEST + number.0;
                        self.beginning.insert(request, (entity, number, checked_out.database));
                        let entity = checked_out;
                        inputs.push(ToOwner::Begin(Begin { request, entity }));
                        continue;
                    }
                    Err(why) => Err(why),
                },
                Inquiry::Place(new) => {
                    // There is no other base.
                    let (on, new) = (BASE, new.clone());
                    inputs.push(answered(Answer::Place { on, new }));
                    continue;
                }
            };
            inputs.push(answered(Answer::Result(outcome)));
        }
        inputs
    }

    /// The answer to the query that asked for an activation.
    pub(super) fn begun(&mut self, request: u64, begun: Result<Begun, NotOpened>) -> Option<Answered> {
        let (entity, number, database) = self.beginning.remove(&request)?;
        let outcome = begun.map(|Begun { mailbox, was_active }| Learned::Begun {
            database,
            mailbox,
            was_active,
        });
        let outcome = outcome.map_err(|why| NotLearned::Refused(why.to_string()));
        Some(Answered {
            entity,
            number,
            answer: Answer::Result(outcome),
        })
    }

    fn written(&self, database: DatabaseId) -> Learned {
        let schema = &self.schema;
        let read = |transaction: Transaction| async move { taken_from(&transaction, schema, database).await };
        let taken = immediate(self.store.read(read)).expect(IN_MEMORY);
        Learned::Written { database, taken }
    }

    fn find(
        &self,
        type_id: TypeId,
        (property, value): (&str, &annals_def::Value),
        after: DatabaseId,
    ) -> Result<Learned, NotLearned> {
        let entity_type = self.schema.entity_type(type_id).ok_or(NotLearned::Absent)?;
        let read = |transaction: Transaction| async move {
            let mut found = Vec::new();
            for id in find_indexed(&transaction, entity_type, property, value, (after, NAMED_AT_ONCE)).await? {
                found.push(accounts::known(&transaction, type_id, id).await?);
            }
            Ok::<_, FindError>(found)
        };
        let found = immediate(self.store.read(read));
        found
            .map(Learned::Found)
            .map_err(|why| NotLearned::Refused(why.to_string()))
    }

    fn begin(&mut self, wanted: &Wanted, epoch: Epoch) -> Result<CheckedOut, NotLearned> {
        let database = match wanted {
            Wanted::Id(database) => *database,
            Wanted::Named { type_id, identifier } => {
                let entity_type = self.schema.entity_type(*type_id).ok_or(NotLearned::Absent)?;
                let read =
                    |transaction: Transaction| async move { find_stored(&transaction, entity_type, identifier).await };
                let found = immediate(self.store.read(read)).map_err(|why| NotLearned::Refused(why.to_string()))?;
                found.ok_or(NotLearned::Absent)?
            }
        };
        self.check_out(database, epoch).ok_or(NotLearned::Absent)
    }
}

impl TestRealm {
    /// Folds the logs into the store.
    pub(super) fn fold_logs(&mut self) {
        let openings = self.base.take_openings();
        self.database.offer(BASE, &openings, &self.base.log);
        for (owner, cell) in &mut self.cells {
            let openings = cell.take_openings();
            self.database.offer(*owner, &openings, &cell.log);
        }
        self.database.fold();
    }

    /// Folds the logs, and delivers the answers of the database and the ledger.
    pub(super) fn look_at_logs(&mut self) {
        self.fold_logs();
        let out = self.database.pass(self.now());
        self.carry_out(LEDGER, out);
        for input in self.database.answers(self.base.epoch) {
            match input {
                ToOwner::Answer(owner, answered) => self.give_answer(owner, answered),
                ToOwner::Begin(begin) => self.give_base(BaseInput::Begin(begin)),
            }
        }
    }
}
