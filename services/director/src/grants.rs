//! Grants: the director's transactions. Each is conditional on its term (rule D1), so that a director that was replaced
//! without noticing changes nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use annals_ids::{Epoch, Hash, OwnerId, OwnerKind, ProcessId, Shard, WallTime, WorldTime};
use annals_store::{
    KeyRange, Store, StoreError, Transaction,
    layout::{
        chunks,
        director::{self, Counter, LeaderConnection, Realm, Term},
        migrations::{self, Converting, MigrationRecord},
        owners::{self, HolderConnection, OwnerRecord},
        read_chunks, shards,
    },
};
use thiserror::Error;

mod upgrades;

/// Number of entity ids in a grant; the block size of `annals-node`.
pub const ID_BLOCK: u64 = 1 << 20;

/// Stands for no owner tried yet: owner numbers start at 1.
const NONE_TRIED: u32 = 0;

/// Errors of the director's transactions.
#[derive(Debug, Error)]
pub enum GrantError {
    /// Another director leads.
    #[error("process {leader} leads since term {term}; this director stands by")]
    Superseded {
        /// The director that leads.
        leader: ProcessId,
        term: u64,
    },
    /// There is no such owner.
    #[error("there is no owner {0}")]
    UnknownOwner(OwnerId),
    /// The realm runs on another schema.
    #[error(
        "the realm runs on schema {stored}; this process was started with {given}: migrate the realm to it with \
         `annals realm migrate`, or start it with the schema it has"
    )]
    OtherSchema {
        /// Schema in the store.
        stored: Hash,
        /// Schema of this process.
        given: Hash,
    },
    /// The realm ran on this schema before it was migrated.
    #[error(
        "this process was started with schema {given}, from which the realm was migrated to {stored}: start it with \
         that one; only a backup restores the former"
    )]
    FormerSchema {
        /// Schema in the store.
        stored: Hash,
        /// Schema of this process.
        given: Hash,
    },
    /// The realm runs on this schema already.
    #[error("the realm already runs on these definitions: there is nothing to change")]
    SameSchema,
    /// Stored entities are still being converted after the previous change.
    #[error("stored entities are still being converted to the realm's definitions: try again later")]
    Converting,
    /// Another change of definitions is prepared.
    #[error(
        "a change of the realm's definitions to {0} is prepared: finish it, or take it back with `annals realm upgrade \
         rollback`"
    )]
    OtherUpgrade(Hash),
    /// The realm's definitions have changed since this director began to lead.
    #[error("the realm's definitions were changed to {0} meanwhile")]
    DefinitionsChanged(Hash),
    /// Not all stored entities are converted to the new definitions.
    #[error(
        "the migration of the realm to schema {0} is incomplete: continue it with `annals realm migrate` and these \
         definitions"
    )]
    Unconverted(Hash),
    /// The store did not answer.
    #[error("the store did not accept the transaction")]
    Store(#[from] StoreError),
}

/// A grant to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub owner: OwnerId,
    /// Kind of the owner.
    pub kind: OwnerKind,
    /// The stream of its log.
    pub shard: Shard,
    pub epoch: Epoch,
    /// Entity ids for this epoch only.
    pub ids: Range<u64>,
    /// Whether no former holder can receive an acknowledgement any more (rule E8).
    pub former_ended: bool,
}

/// The store, under the term of one director.
#[derive(Clone)]
pub struct Grants {
    store: Store,
    term: Term,
    /// The realm's definitions, as far as this director knows; nothing is granted under others (rule M2).
    definitions: Option<Hash>,
}

impl Grants {
    /// Takes the lead. `seen` is the term that has not changed while it was `watched`; if it has changed since, its
    /// director is alive. Game time continues from the last heartbeat of that term, plus the time watched.
    ///
    /// # Errors
    /// [`GrantError::Superseded`] when another director leads.
    pub async fn lead(store: Store, process: ProcessId, seen: Term, watched: Duration) -> Result<Self, GrantError> {
        let passed = u64::try_from(watched.as_millis()).unwrap_or(u64::MAX);
        let term = Term {
            number: seen.number + 1,
            process,
            beat: 0,
            world: WorldTime(seen.world.0.saturating_add(passed)),
        };
        let work = |transaction: Transaction| async move {
            let held = read_term(&transaction).await?;
            if held == term {
                // The answer to an earlier run was lost.
                return Ok(held);
            }
            if held != seen {
                return Err(GrantError::Superseded {
                    leader: held.process,
                    term: held.number,
                });
            }
            transaction.set(&director::term_key(), &term.encode())?;
            Ok(term)
        };
        let (term, _) = store.run_repeatable(work).await?;
        Ok(Self {
            store,
            term,
            definitions: None,
        })
    }

    /// Records the connection over which this director leads; `None` when it resigns (rule D1).
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn attach(&self, connection: Option<&str>) -> Result<(), GrantError> {
        let leader = LeaderConnection {
            term: self.term.number,
            connection: connection.map(str::to_owned),
        }
        .encode();
        let leader = &leader;
        self.run(|transaction| async move {
            transaction.set(&director::leader_connection_key(), leader)?;
            Ok(())
        })
        .await
    }

    /// Whether the director of this term has resigned, or leads over a connection that is closed: a standby need not wait
    /// for its silence.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_left(store: &Store, term: Term, is_closed: impl Fn(&str) -> bool) -> Result<bool, StoreError> {
        let read = |transaction: Transaction| async move { transaction.get(&director::leader_connection_key()).await };
        let Some(value) = store.read(read).await? else {
            return Ok(false);
        };
        let leader = LeaderConnection::decode(&value)?;
        Ok(leader.term == term.number && leader.connection.is_none_or(|connection| is_closed(&connection)))
    }

    /// The connection over which the present holder of each owner receives acknowledgements, if it has recorded an
    /// opening; empty if it has released the owner.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn connections(&self) -> Result<BTreeMap<OwnerId, String>, GrantError> {
        let read = |transaction: Transaction| async move {
            let mut found = BTreeMap::new();
            for (owner, record) in owners::read_owners(&transaction).await? {
                let value = transaction.get(&owners::connection_key(owner)).await?;
                let held = value.map(|value| HolderConnection::decode(&value)).transpose()?;
                let present = held.filter(|held| held.epoch == record.epoch);
                found.extend(present.map(|held| (owner, held.connection.unwrap_or_default())));
            }
            Ok::<_, StoreError>(found)
        };
        Ok(self.store.read(read).await?)
    }

    /// The term, for a standby to watch.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn watch(store: &Store) -> Result<Term, StoreError> {
        store
            .read(|transaction| async move { read_term(&transaction).await })
            .await
    }

    /// Writes a heartbeat for the standbys, with the game time.
    ///
    /// # Errors
    /// [`GrantError::Superseded`] when another director leads.
    pub async fn beat(&mut self, world: WorldTime) -> Result<(), GrantError> {
        let term = Term {
            beat: self.term.beat + 1,
            world,
            ..self.term
        };
        let beat = |transaction: Transaction| async move {
            transaction.set(&director::term_key(), &term.encode())?;
            Ok(())
        };
        self.run(beat).await?;
        self.term = term;
        Ok(())
    }

    /// The game time at the last heartbeat of this term, or at its beginning.
    #[must_use]
    pub fn world(&self) -> WorldTime {
        self.term.world
    }

    /// Begins the realm, or finds that it has begun. Returns when it began, and its schema; that may be the one from
    /// which the realm is to change to the given one.
    ///
    /// # Errors
    /// [`GrantError::OtherSchema`] or [`GrantError::FormerSchema`] when it runs on another schema, and
    /// [`GrantError::Unconverted`] when its migration is not complete.
    pub async fn begin_realm(&self, now: WallTime, schema: Hash, encoded: &[u8]) -> Result<Realm, GrantError> {
        let work = |transaction: Transaction| async move {
            let key = director::realm_key();
            if let Some(value) = transaction.get(&key).await? {
                let realm = Realm::decode(&value)?;
                let (stored, given) = (realm.schema, schema);
                if stored == given || upgrades::is_next(&transaction, given).await? {
                    return match read_converting(&transaction).await? {
                        Some(converting) if !converting.later => Err(GrantError::Unconverted(stored)),
                        _ => Ok(realm),
                    };
                }
                return if was_migrated_from(&transaction, given).await? {
                    Err(GrantError::FormerSchema { stored, given })
                } else {
                    Err(GrantError::OtherSchema { stored, given })
                };
            }
            let realm = Realm { began: now, schema };
            transaction.set(&key, &realm.encode())?;
            for (key, chunk) in chunks(&director::schema_key(schema), encoded) {
                transaction.set(&key, chunk)?;
            }
            Ok(realm)
        };
        self.run(work).await
    }

    /// Records that the realm was stopped in order at `now`: no process holds an owner, and everything is folded.
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn close_realm(&self, now: WallTime) -> Result<(), GrantError> {
        let work = |transaction: Transaction| async move {
            let key = director::closed_key();
            if transaction.get(&key).await?.is_none() {
                transaction.set(&key, &director::encode_closed(now))?;
            }
            Ok(())
        };
        self.run(work).await
    }

    /// Opens a realm that was stopped in order. Game time continues where it stopped, even if the wall clock was set
    /// forward or back meanwhile: the realm's beginning is moved accordingly. Returns whether it had been stopped in
    /// order.
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn open_realm(&self, now: WallTime) -> Result<bool, GrantError> {
        let work = |transaction: Transaction| async move {
            let key = director::closed_key();
            let Some(closed) = transaction.get(&key).await? else {
                return Ok(false);
            };
            let closed = director::decode_closed(&closed)?;
            if let Some(value) = transaction.get(&director::realm_key()).await? {
                let realm = Realm::decode(&value)?;
                let played = closed.0.saturating_sub(realm.began.0);
                let began = WallTime(now.0.saturating_sub(played));
                transaction.set(&director::realm_key(), &Realm { began, ..realm }.encode())?;
            }
            transaction.clear(&key)?;
            Ok(true)
        };
        self.run(work).await
    }

    /// Whether the realm is stopped in order. A director that starts then need not wait for the silence of another one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn is_closed(store: &Store) -> Result<bool, StoreError> {
        let read = |transaction: Transaction| async move { transaction.get(&director::closed_key()).await };
        store.read(read).await.map(|closed| closed.is_some())
    }

    /// Registers a process and returns its id.
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn register(&self) -> Result<ProcessId, GrantError> {
        let work = |transaction: Transaction| async move {
            Ok(director::assign(&transaction, Counter::Processes, 1).await?.start)
        };
        self.run(work).await.map(ProcessId)
    }

    /// All owners and their holders.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn owners(&self) -> Result<BTreeMap<OwnerId, OwnerRecord>, GrantError> {
        Ok(read_owners(&self.store).await?)
    }

    /// The shard for a new owner of this kind: the one with the fewest of them, of those the one with the fewest owners, and
    /// of those the first. The ledger's owner belongs to the first shard.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn shard_for(&self, kind: OwnerKind) -> Result<Shard, GrantError> {
        let work = |transaction: Transaction| async move {
            let count = shards::read_count(&transaction).await?;
            let owners = owners::read_owners(&transaction).await?;
            Ok::<_, StoreError>((count, owners))
        };
        let (count, owners) = self.store.read(work).await?;
        if kind.is_single() {
            return Ok(Shard(0));
        }
        let held = |shard: &Shard| {
            let all = || owners.values().filter(|record| record.shard == *shard);
            (all().filter(|record| record.kind == kind).count(), all().count())
        };
        let fewest = shards::all(count).min_by_key(held);
        Ok(fewest.expect("invariant: a realm has at least one shard"))
    }

    /// Creates an owner and grants it. If the realm already has [the single owner of its kind](OwnerKind::is_single)
    /// (the answer to an earlier try was lost), that one is granted with a new epoch. So is an owner that this call has
    /// created in a run of its transaction whose answer was lost: otherwise nothing would know of that owner, and no
    /// process would hold it.
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn found(
        &self,
        kind: impl Into<OwnerKind>,
        shard: Shard,
        process: ProcessId,
    ) -> Result<Grant, GrantError> {
        let kind = kind.into();
        // The owner of the previous run, which may or may not have been created.
        let tried = AtomicU32::new(NONE_TRIED);
        let tried = &tried;
        let definitions = self.definitions;
        let work = |transaction: Transaction| async move {
            check_definitions(&transaction, definitions).await?;
            let made = match tried.load(Ordering::Relaxed) {
                _ if kind.is_single() => find_single(&transaction, kind).await?,
                NONE_TRIED => None,
                tried => find_made(&transaction, OwnerId(tried), kind, process).await?,
            };
            if let Some((owner, held)) = made {
                return write_grant(&transaction, owner, held.passed_to(process)).await;
            }
            let owner = director::assign(&transaction, Counter::Owners, 1).await?.start;
            let owner = OwnerId(u32::try_from(owner).expect("invariant: fewer than 2^32 owners are ever founded"));
            tried.store(owner.0, Ordering::Relaxed);
            let record = OwnerRecord {
                kind,
                shard,
                epoch: Epoch(1),
                process,
                call_generation: 0,
            };
            write_grant(&transaction, owner, record).await
        };
        self.run(work).await
    }

    /// Grants an owner with a new epoch. `is_closed` says of which connections a nats-server has reported that it closed
    /// them (rule E8).
    ///
    /// # Errors
    /// When this director does not lead, there is no such owner, or the store cannot be used.
    pub async fn grant(
        &self,
        owner: OwnerId,
        process: ProcessId,
        is_closed: impl Fn(&str) -> bool,
    ) -> Result<Grant, GrantError> {
        let (is_closed, definitions) = (&is_closed, self.definitions);
        let work = |transaction: Transaction| async move {
            check_definitions(&transaction, definitions).await?;
            let value = transaction.get(&owners::owner_key(owner)).await?;
            let held = OwnerRecord::decode(&value.ok_or(GrantError::UnknownOwner(owner))?)?;
            let grant = write_grant(&transaction, owner, held.passed_to(process)).await?;
            let former_ended = has_ended(&transaction, owner, is_closed).await?;
            Ok(Grant { former_ended, ..grant })
        };
        self.run(work).await
    }

    /// Grants another block of entity ids.
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn more_ids(&self) -> Result<Range<u64>, GrantError> {
        self.run(|transaction| async move { Ok(director::assign(&transaction, Counter::Entities, ID_BLOCK).await?) })
            .await
    }

    /// The map of spaces, as last written.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read_map(&self) -> Result<Option<Vec<u8>>, GrantError> {
        let read = |transaction: Transaction| async move { read_chunks(&transaction, &director::map_key()).await };
        Ok(self.store.read(read).await?)
    }

    /// Writes the map of spaces.
    ///
    /// # Errors
    /// When this director does not lead or the store cannot be used.
    pub async fn write_map(&self, map: &[u8]) -> Result<(), GrantError> {
        let work = |transaction: Transaction| async move {
            let key = director::map_key();
            transaction.clear_range(&KeyRange::prefix(&key))?;
            for (key, chunk) in chunks(&key, map) {
                transaction.set(&key, chunk)?;
            }
            Ok(())
        };
        self.run(work).await
    }

    /// Runs a transaction under the term. Numbers and epochs that were allocated in a transaction whose answer is lost
    /// stay unused.
    async fn run<T, F, Fut>(&self, work: F) -> Result<T, GrantError>
    where
        F: Fn(Transaction) -> Fut,
        Fut: Future<Output = Result<T, GrantError>>,
    {
        let number = self.term.number;
        let conditional = |transaction: Transaction| {
            let work = &work;
            async move {
                let held = read_term(&transaction).await?;
                if held.number != number {
                    return Err(GrantError::Superseded {
                        leader: held.process,
                        term: held.number,
                    });
                }
                work(transaction).await
            }
        };
        self.store.run_repeatable(conditional).await.map(|(value, _)| value)
    }
}

/// All owners and their holders.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_owners(store: &Store) -> Result<BTreeMap<OwnerId, OwnerRecord>, StoreError> {
    store
        .read(|transaction: Transaction| async move { owners::read_owners(&transaction).await })
        .await
}

async fn find_single(transaction: &Transaction, kind: OwnerKind) -> Result<Option<(OwnerId, OwnerRecord)>, StoreError> {
    let owners = owners::read_owners(transaction).await?;
    Ok(owners.into_iter().find(|(_, record)| record.kind == kind))
}

/// The owner of this number, if it was created for this process.
async fn find_made(
    transaction: &Transaction,
    owner: OwnerId,
    kind: OwnerKind,
    process: ProcessId,
) -> Result<Option<(OwnerId, OwnerRecord)>, StoreError> {
    let value = transaction.get(&owners::owner_key(owner)).await?;
    let record = value.map(|value| OwnerRecord::decode(&value)).transpose()?;
    let is_mine = |record: &OwnerRecord| record.kind == kind && record.process == process;
    Ok(record.filter(is_mine).map(|record| (owner, record)))
}

async fn read_term(transaction: &Transaction) -> Result<Term, StoreError> {
    Term::decode(transaction.get(&director::term_key()).await?.as_deref())
}

/// Checks that the realm's definitions are those under which a director grants; `None` if it has not read them yet.
async fn check_definitions(transaction: &Transaction, known: Option<Hash>) -> Result<(), GrantError> {
    let (Some(known), Some(value)) = (known, transaction.get(&director::realm_key()).await?) else {
        return Ok(());
    };
    let stored = Realm::decode(&value)?.schema;
    if stored == known {
        Ok(())
    } else {
        Err(GrantError::DefinitionsChanged(stored))
    }
}

async fn write_grant(transaction: &Transaction, owner: OwnerId, record: OwnerRecord) -> Result<Grant, GrantError> {
    transaction.set(&owners::owner_key(owner), &record.encode())?;
    let ids = director::assign(transaction, Counter::Entities, ID_BLOCK).await?;
    Ok(Grant {
        owner,
        kind: record.kind,
        shard: record.shard,
        epoch: record.epoch,
        ids,
        former_ended: false,
    })
}

/// Whether the holder of the newest opening has released the owner, or the store has a closed connection as its own.
/// Whatever another former holder shows, that opening follows (rules E3 and E8).
async fn has_ended(
    transaction: &Transaction,
    owner: OwnerId,
    is_closed: impl Fn(&str) -> bool,
) -> Result<bool, StoreError> {
    let openings = owners::read_openings(transaction, owner, Epoch(0)).await?;
    let Some(value) = transaction.get(&owners::connection_key(owner)).await? else {
        return Ok(openings.is_empty());
    };
    let held = HolderConnection::decode(&value)?;
    let is_newest = openings.last().is_some_and(|opening| opening.epoch == held.epoch);
    Ok(is_newest && held.connection.is_none_or(|connection| is_closed(&connection)))
}

async fn read_converting(transaction: &Transaction) -> Result<Option<Converting>, StoreError> {
    let value = transaction.get(&migrations::converting_key()).await?;
    value.map(|value| Converting::decode(&value)).transpose()
}

/// Whether the realm was migrated from these definitions to others.
async fn was_migrated_from(transaction: &Transaction, schema: Hash) -> Result<bool, StoreError> {
    for number in 0..migrations::generation(transaction).await? {
        let value = read_chunks(transaction, &migrations::key_of(number)).await?;
        if MigrationRecord::decode(&value.unwrap_or_default())?.from == schema {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use annals_store::{
        MemoryStore,
        faults::{Call, Fault, FaultyStore},
        immediate,
    };

    use super::*;

    #[test]
    fn an_owner_whose_creation_was_not_acknowledged_is_granted() {
        for fault in [
            Fault::AnswerLost,
            Fault::RequestLost,
            Fault::LandsBeforeNext,
            Fault::LandsAfterNext,
        ] {
            let memory = MemoryStore::new();
            let seen = immediate(Grants::watch(&memory.store())).expect("the store answers");
            let lead = immediate(Grants::lead(memory.store(), ProcessId(1), seen, Duration::ZERO));
            let term = lead.expect("no other director leads").term;
            let mut commits = 0;
            let store = FaultyStore::wrap(&memory.store(), move |call| {
                commits += u32::from(call == Call::Commit);
                if call == Call::Commit && commits <= 2 {
                    fault
                } else {
                    Fault::None
                }
            });
            let grants = Grants {
                store,
                term,
                definitions: None,
            };
            let base = immediate(grants.found(OwnerKind::Base, Shard(0), ProcessId(2))).expect("it gets through");
            let cell = immediate(grants.found(OwnerKind::Cell, Shard(0), ProcessId(3))).expect("it gets through");
            let owners = immediate(read_owners(&memory.store())).expect("the store answers");
            let granted = BTreeMap::from([(base.owner, base.epoch), (cell.owner, cell.epoch)]);
            let stored = owners.iter().map(|(owner, record)| (*owner, record.epoch)).collect();
            assert_eq!(granted, stored, "{fault:?}");
        }
    }
}
