//! The casework: questions to one realm's archive, each answered from what is verified by then, within limits.
//!
//! Questions run beside one another; taking in what has come to the archive waits for those that run, but not long.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use annals_audit::{
    AuditError, CameIn, EntityLog, Extent, Index, IndexError, Sessions,
    archive::read_tree,
    evidence,
    evidence::EvidenceError,
    holders_of,
    moment::read_at,
    past::{Past, PastError},
};
use annals_db::accounts;
use annals_def::Schema;
use annals_event::Consumed;
use annals_evidence::{Answer, Cited, Inventory, Item, Lexicon, Owned, Question, Trade, Until};
use annals_host::{
    log_source::{About, Source, SourceError},
    process::SHARD,
    telemetry::Chain,
};
use annals_ids::{DatabaseId, EntityId, Hash, Serial, SessionId, TradeId, WallTime};
use annals_proof::{Frontier, SignedNote};
use annals_store::{Store, StoreError};
use thiserror::Error;
use tokio::{
    sync::{OwnedRwLockReadGuard, RwLock, Semaphore},
    time::timeout,
};

pub use self::{
    home::{Alarm, Home, TradeLine},
    verification::{Checked, Kept, NOTE_BYTES, Verification},
};

mod home;
mod verification;

/// How long a page waits for what has come to the archive to be verified; that goes on, and the page says how far it is.
const VERIFIED_WITHIN: Duration = Duration::from_secs(5);

/// How long what has come waits for questions that run, before a page is answered without it.
const TAKEN_WITHIN: Duration = Duration::from_millis(500);

/// How long an answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Questions at a time that fold logs or make evidence: each may take a core, and what a realm's state takes in memory.
const LARGE_AT_ONCE: usize = 2;

/// Stored entities that an answer names at most: each takes a look into the archive.
const NAMED: usize = 500;

/// Events of an entity before a moment, and after it, that are told of together.
const AROUND: usize = 12;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// There is no such thing.
    #[error("{0}")]
    Nothing(String),
    /// The question is none.
    #[error("{0}")]
    Unclear(String),
    /// Something is not as it was: no answer can be given.
    #[error("{0}")]
    Wrong(String),
    /// What has come to the archive is not verified so far.
    #[error("the archive is being verified: {leaves} of {of} batches")]
    Verifying {
        /// How many are.
        leaves: u64,
        /// How many there are.
        of: u64,
    },
    /// It takes too long.
    #[error("the answer was not there within {} s", ANSWERED_WITHIN.as_secs())]
    Slow,
    /// The store does not answer, or something that is needed is not there.
    #[error("{0}")]
    Unavailable(String),
}

impl From<AuditError> for NoAnswer {
    fn from(error: AuditError) -> Self {
        let said = Chain(&error).to_string();
        let is_damaged = matches!(&error, AuditError::Archive(StoreError::Corrupt(_)));
        match error {
            error if error.is_finding() || is_damaged => Self::Wrong(said),
            AuditError::Archive(_) | AuditError::Index(_) => Self::Unavailable(said),
            _ => Self::Nothing(said),
        }
    }
}

impl From<PastError> for NoAnswer {
    fn from(error: PastError) -> Self {
        let said = Chain(&error).to_string();
        match error {
            error if error.is_finding() => Self::Wrong(said),
            PastError::Audit(error) => error.into(),
            PastError::Store(_) => Self::Unavailable(said),
            _ => Self::Nothing(said),
        }
    }
}

impl From<EvidenceError> for NoAnswer {
    fn from(error: EvidenceError) -> Self {
        let said = Chain(&error).to_string();
        match error {
            error if error.is_finding() => Self::Wrong(said),
            EvidenceError::Audit(error) => error.into(),
            EvidenceError::Unsettled(_) | EvidenceError::Receipt(_) | EvidenceError::Bundle(_) => Self::Nothing(said),
            _ => Self::Unavailable(said),
        }
    }
}

impl From<SourceError> for NoAnswer {
    fn from(error: SourceError) -> Self {
        Self::Unavailable(Chain(&error).to_string())
    }
}

impl From<StoreError> for NoAnswer {
    fn from(error: StoreError) -> Self {
        let said = Chain(&error).to_string();
        match error {
            StoreError::Corrupt(_) => Self::Wrong(said),
            _ => Self::Unavailable(said),
        }
    }
}

/// An answer, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<T> {
    /// The answer.
    pub answer: T,
    /// How far the archive was verified.
    pub extent: Extent,
    /// How many batches the archive had beyond that, which were not taken in.
    pub newer: u64,
    /// When the realm began.
    pub began: WallTime,
}

impl<T> Answered<T> {
    /// Another answer, which rests on the same.
    pub fn with<U>(&self, answer: U) -> Answered<U> {
        Answered {
            answer,
            extent: self.extent,
            newer: self.newer,
            began: self.began,
        }
    }
}

/// What may be meant by what somebody has typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// An item.
    Item(Serial),
    /// A trade.
    Trade(TradeId),
    /// A stored entity.
    Account(DatabaseId),
    /// An entity.
    Entity(EntityId),
    /// A session of a client.
    Session(SessionId),
}

/// See the module.
pub struct Casework {
    source: Source,
    index: Arc<RwLock<Index>>,
    verified: AtomicU64,
    to_verify: AtomicU64,
    large: Semaphore,
}

/// The index as a question has it.
pub(crate) type Read = OwnedRwLockReadGuard<Index>;

impl Casework {
    /// Sits down before a realm's archive, with an index in a folder of its own.
    ///
    /// # Errors
    /// When the index cannot be used.
    pub async fn open(source: Source, index: &Path) -> Result<Arc<Self>, IndexError> {
        let index = Index::open(index, SHARD).await?;
        Ok(Arc::new(Self {
            source,
            index: Arc::new(RwLock::new(index)),
            verified: AtomicU64::new(0),
            to_verify: AtomicU64::new(0),
            large: Semaphore::new(LARGE_AT_ONCE),
        }))
    }

    /// A trade, and what both held before and after each of its steps.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn trade(self: &Arc<Self>, id: TradeId) -> Result<Answered<TradeShown>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let trade = index.trade(casework.store(), id).await?;
            let held = index.inventories(casework.store(), &trade).await?;
            let cited = trade.steps.iter().map(|step| &step.cited);
            let known = casework.known(&index, cited, [trade.proposer, trade.partner]).await?;
            Ok(TradeShown { trade, held, known })
        })
        .await
    }

    /// Where an item has been.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn item(self: &Arc<Self>, serial: Serial) -> Result<Answered<(Item, Known)>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let item = index.item(casework.store(), serial).await?;
            let cited = item.steps.iter().map(|step| &step.cited);
            let known = casework.known(&index, cited, []).await?;
            Ok((item, known))
        })
        .await
    }

    /// Who was behind a session, each time that its client came in.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn session(self: &Arc<Self>, session: SessionId) -> Result<Answered<Vec<CameIn>>, NoAnswer> {
        self.ask(move |casework, index| async move { Ok(index.session(casework.store(), session).await?) })
            .await
    }

    /// What somebody has had.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn owned(self: &Arc<Self>, holder: DatabaseId) -> Result<Answered<OwnedShown>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let owned = index.owned(casework.store(), holder).await?;
            let cited = owned.steps.iter().map(|step| &step.cited);
            let known = casework.known(&index, cited, [holder]).await?;
            Ok(OwnedShown { owned, known })
        })
        .await
    }

    /// What happened to an entity, and the realm as it was at a moment as far as that is the entity's: by the end of what is
    /// verified, if none is said.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn entity(
        self: &Arc<Self>,
        entity: EntityId,
        at: Option<String>,
    ) -> Result<Answered<EntityAt>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let (began, schemas) = casework.about().await?;
            let until = match at.as_deref().map(read_at) {
                None => None,
                Some(Ok(at)) => Some(at.until(&index, began).await?),
                Some(Err(what)) => return Err(NoAnswer::Unclear(format!("That is no moment: {what}."))),
            };
            let log = EntityLog::find(&index, casework.store(), entity).await?;
            let leaves = index.leaves_until(until).await?;
            let _turn = casework.turn().await?;
            let past = Past::around(&index, casework.store(), leaves, entity).await?;
            let before = log.events.partition_point(|event| event.leaf.0 < leaves);
            let around = before.saturating_sub(AROUND)..log.events.len().min(before + AROUND);
            let calls = log.events[around.clone()].iter().flat_map(|event| &event.calls);
            let sessions = index.sessions(casework.store(), calls).await?;
            let stored = past.parts().into_iter().filter(|((of, _), _)| *of == entity);
            let stored: BTreeSet<DatabaseId> = stored.filter_map(|(_, part)| part.stored()).collect();
            let lexicon = casework.lexicon(&index, stored).await?;
            Ok(EntityAt {
                lexicon,
                before,
                around,
                sessions,
                log,
                past,
                schemas,
                until,
            })
        })
        .await
    }

    /// What exists of what may be meant.
    ///
    /// # Errors
    /// When that cannot be known.
    pub async fn existing(self: &Arc<Self>, meant: Vec<Meant>) -> Result<Answered<Vec<Meant>>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let mut found = Vec::new();
            for meant in meant {
                let store = casework.store();
                let looked = match meant {
                    Meant::Item(serial) => index.item(store, serial).await.map(drop),
                    Meant::Trade(id) => index.trade(store, id).await.map(drop),
                    Meant::Account(holder) => index.owned(store, holder).await.map(drop),
                    Meant::Session(session) => index.session(store, session).await.map(drop),
                    Meant::Entity(entity) => match index.knows(entity).await {
                        Ok(false) => Err(AuditError::NoEntity(entity)),
                        known => known.map(drop),
                    },
                };
                match looked.map_err(NoAnswer::from) {
                    Ok(()) => found.push(meant),
                    Err(NoAnswer::Nothing(_)) => {}
                    Err(other) => return Err(other),
                }
            }
            Ok(found)
        })
        .await
    }

    /// The stored entity of the account that logs in by this name.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn named(&self, name: &str) -> Result<Option<DatabaseId>, NoAnswer> {
        let finding = timeout(ANSWERED_WITHIN, accounts::named(self.store(), name));
        let found = finding.await.map_err(|_| NoAnswer::Slow)??;
        Ok(found.map(|account| account.database))
    }

    /// An answer as evidence, which leads to a checkpoint that was kept, if one is given.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn bundle(self: &Arc<Self>, question: Question, kept: Vec<SignedNote>) -> Result<Vec<u8>, NoAnswer> {
        let made = self.ask(move |casework, index| async move {
            let _turn = casework.turn().await?;
            let answer: Answer = index.answer(casework.store(), question).await?;
            Ok(evidence::bundle(casework.store(), &index, (question, &answer), &kept).await?)
        });
        Ok(made.await?.answer)
    }

    /// A receipt of a trade.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn receipt(self: &Arc<Self>, id: TradeId) -> Result<String, NoAnswer> {
        let made = self.ask(move |casework, index| async move {
            let _turn = casework.turn().await?;
            Ok(evidence::receipt(casework.store(), &index, id).await?)
        });
        Ok(made.await?.answer)
    }

    /// What was verified, what is signed of it, and what a checkpoint that was kept shows.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub async fn verification(self: &Arc<Self>, kept: Option<Vec<u8>>) -> Result<Answered<Verification>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let _turn = casework.turn().await?;
            Verification::of(casework.store(), index.extent()?, kept.as_deref()).await
        })
        .await
    }

    /// What the desk begins with.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub async fn home(self: &Arc<Self>) -> Result<Answered<Home>, NoAnswer> {
        self.ask(move |casework, index| async move { Home::of(&casework, &index).await })
            .await
    }

    pub(crate) fn store(&self) -> &Store {
        &self.source.store
    }

    /// Asks by an index that has taken in what there is, in a task of its own: whoever asked may go away.
    async fn ask<T, F, A>(self: &Arc<Self>, asking: F) -> Result<Answered<T>, NoAnswer>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Self>, Arc<Read>) -> A + Send + 'static,
        A: Future<Output = Result<T, NoAnswer>> + Send,
    {
        let (index, stored) = self.current().await?;
        let casework = Arc::clone(self);
        let answering = tokio::spawn(async move {
            let extent = index.extent()?;
            let newer = stored.saturating_sub(extent.leaves);
            let (began, _) = casework.about().await?;
            let index = Arc::new(index);
            let answer = timeout(ANSWERED_WITHIN, asking(casework, index)).await;
            let answer = answer.map_err(|_| NoAnswer::Slow)??;
            Ok(Answered {
                answer,
                extent,
                newer,
                began,
            })
        });
        match answering.await {
            Ok(answered) => answered,
            Err(error) => {
                tracing::error!(%error, "an answer was not finished");
                Err(NoAnswer::Unavailable(
                    "the answer could not be worked out; the console's log says why".into(),
                ))
            }
        }
    }

    /// The index, with what has come since taken in, and how many batches were in the archive when that was looked at.
    async fn current(self: &Arc<Self>) -> Result<(Read, u64), NoAnswer> {
        let casework = Arc::clone(self);
        // Whoever waits may go away; what is verified by then stays.
        let taking = tokio::spawn(async move { casework.take_in().await });
        match timeout(VERIFIED_WITHIN, taking).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(error)) => {
                tracing::error!(%error, "the archive was not taken in");
                Err(NoAnswer::Unavailable(
                    "the archive could not be verified; the console's log says why".into(),
                ))
            }
            Err(_) => Err(NoAnswer::Verifying {
                leaves: self.verified.load(Ordering::Relaxed),
                of: self.to_verify.load(Ordering::Relaxed),
            }),
        }
    }

    async fn take_in(&self) -> Result<(Read, u64), NoAnswer> {
        let held = Arc::clone(&self.index).read_owned().await;
        let stored = read_tree(self.store(), SHARD).await?;
        let size = stored.size;
        let there = Frontier::resume(stored.size, stored.peaks).map(|tree| (tree.size(), tree.root()));
        let extent = held.extent()?;
        if there == Some((extent.leaves, extent.root)) {
            return Ok((held, size));
        }
        drop(held);
        let Ok(mut index) = timeout(TAKEN_WITHIN, Arc::clone(&self.index).write_owned()).await else {
            let held = Arc::clone(&self.index).read_owned().await;
            // Before anything was verified there is nothing to answer from.
            return match held.extent()?.leaves {
                0 => Err(NoAnswer::Unavailable("the archive is about to be verified".into())),
                _ => Ok((held, size)),
            };
        };
        let taken = index.catch_up(self.store(), |progress| {
            self.verified.store(progress.leaves, Ordering::Relaxed);
            self.to_verify.store(progress.of, Ordering::Relaxed);
        });
        taken.await?;
        Ok((index.downgrade(), size))
    }

    async fn about(&self) -> Result<(WallTime, BTreeMap<Hash, Schema>), NoAnswer> {
        let about = self.source.about().await?;
        let began = about.as_ref().map_or(WallTime(0), |about| about.began);
        Ok((began, about.map(About::schemas).unwrap_or_default()))
    }

    /// What is known beside entries: who was behind the sessions whose calls asked for them, and what they tell of is called. Of
    /// many stored entities some are named, `first` those that are said.
    async fn known<'a>(
        &self,
        index: &Index,
        cited: impl Iterator<Item = &'a Cited> + Send,
        first: impl IntoIterator<Item = DatabaseId> + Send,
    ) -> Result<Known, NoAnswer> {
        let cited: Vec<&Cited> = cited.collect();
        let mut named: BTreeSet<DatabaseId> = first.into_iter().collect();
        for holder in cited.iter().flat_map(|cited| holders_of(&cited.entry)) {
            if named.len() < NAMED {
                named.insert(holder);
            }
        }
        let calls: Vec<&Consumed> = cited
            .iter()
            .filter_map(|cited| cited.asked.as_ref()?.call.as_ref())
            .collect();
        Ok(Known {
            sessions: index.sessions(self.store(), calls.into_iter()).await?,
            lexicon: self.lexicon(index, named).await?,
        })
    }

    /// What kinds, slots and these stored entities are called.
    async fn lexicon(&self, index: &Index, stored: BTreeSet<DatabaseId>) -> Result<Lexicon, NoAnswer> {
        let (_, schemas) = self.about().await?;
        let called = index.called(self.store(), &schemas, stored).await?;
        let names = schemas.iter();
        let names = names.map(|(fingerprint, schema)| (*fingerprint, schema.ledger_names().clone()));
        Ok(Lexicon::new(names).with_stored(called))
    }

    /// A turn to do something large.
    async fn turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, NoAnswer> {
        let turn = self.large.acquire().await;
        turn.map_err(|_| NoAnswer::Unavailable("the console is about to stop".into()))
    }
}

/// A trade.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeShown {
    /// Step by step.
    pub trade: Trade,
    /// What proposer and partner held before and after each.
    pub held: Vec<[Inventory; 2]>,
    /// What is known beside it.
    pub known: Known,
}

/// What is known beside an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Who was behind the sessions that asked.
    pub sessions: Sessions,
    /// What kinds, slots and stored entities are called.
    pub lexicon: Lexicon,
}

/// What somebody has had.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedShown {
    /// Step by step.
    pub owned: Owned,
    /// What is known beside it.
    pub known: Known,
}

/// An entity, and the realm at a moment.
pub struct EntityAt {
    /// How many events were before the moment.
    pub before: usize,
    /// Those around it.
    pub around: Range<usize>,
    /// Who was behind the sessions by whose calls these came about.
    pub sessions: Sessions,
    /// What the stored entity is called whose parts it has.
    pub lexicon: Lexicon,
    /// What happened to it.
    pub log: EntityLog,
    /// The realm at the moment, as far as that is the entity's.
    pub past: Past,
    /// All definitions, by their fingerprints.
    pub schemas: BTreeMap<Hash, Schema>,
    /// Where that is.
    pub until: Option<Until>,
}
