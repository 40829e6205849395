//! Casework: answers questions from one realm's archive, from the part verified so far and within time limits.
//!
//! Questions run concurrently. Taking in new batches waits for running questions, for a bounded time.

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
    archive::read_trees,
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
    log::History,
    log_source::{About, Source, SourceError},
    telemetry::Chain,
};
use annals_ids::{DatabaseId, EntityId, Hash, Serial, SessionId, Shard, TradeId, WallTime};
use annals_proof::{Frontier, SignedNote, TreeHead};
use annals_store::{Store, StoreError};
use thiserror::Error;
use tokio::{
    sync::{OwnedRwLockReadGuard, RwLock, Semaphore},
    time::timeout,
};

use crate::live::Live;

pub use self::{
    home::{Home, TradeLine},
    verification::{Checked, Kept, NOTE_BYTES, ShardVerification, Verification},
};

mod home;
mod verification;

/// How long a page waits for new batches to be verified. Verification continues after that, and the page shows
/// progress.
const VERIFIED_WITHIN: Duration = Duration::from_secs(5);

/// How long taking in new batches waits for running questions, before a page is answered without them.
const TAKEN_WITHIN: Duration = Duration::from_millis(500);

/// Time limit for one answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Concurrent questions that fold logs or make evidence: each may take a core, and the memory of a realm's state.
const LARGE_AT_ONCE: usize = 2;

/// Maximum stored entities that an answer names: each costs a lookup in the archive.
const NAMED: usize = 500;

/// Maximum events of an entity shown before a moment, and after it.
const AROUND: usize = 12;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// The thing asked for does not exist.
    #[error("{0}")]
    Nothing(String),
    /// The question is not valid.
    #[error("{0}")]
    Unclear(String),
    /// The archive differs from what was verified or signed: no answer can be given.
    #[error("{0}")]
    Wrong(String),
    /// New batches in the archive are still being verified.
    #[error("the archive is being verified: {leaves} of {of} batches")]
    Verifying {
        /// Batches verified.
        leaves: u64,
        /// Batches in the archive.
        of: u64,
    },
    /// The time limit has passed.
    #[error("no answer within {} s", ANSWERED_WITHIN.as_secs())]
    Slow,
    /// The store does not answer, or something required is missing.
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

/// An answer, with the state of the archive that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<T> {
    pub answer: T,
    /// Extent to which the archive was verified.
    pub extent: Extent,
    /// Batches in the archive beyond that extent, not taken into account.
    pub newer: u64,
    /// Time at which the realm began.
    pub began: WallTime,
}

impl<T> Answered<T> {
    /// Another answer that rests on the same extent.
    pub fn with<U>(&self, answer: U) -> Answered<U> {
        Answered {
            answer,
            extent: self.extent.clone(),
            newer: self.newer,
            began: self.began,
        }
    }
}

/// A possible meaning of a typed search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    Item(Serial),
    Trade(TradeId),
    /// A stored entity.
    Account(DatabaseId),
    Entity(EntityId),
    /// A session of a client.
    Session(SessionId),
}

/// Answers questions about one realm, from an index of its verified archive.
pub struct Casework {
    source: Source,
    live: Option<Live>,
    index: Arc<RwLock<Index>>,
    verified: AtomicU64,
    to_verify: AtomicU64,
    large: Semaphore,
}

/// Read lock on the index, for the duration of a question.
pub(crate) type Read = OwnedRwLockReadGuard<Index>;

impl Casework {
    /// Opens the casework of a realm's archives, with its index in a folder of its own.
    ///
    /// # Errors
    /// If the index cannot be used.
    pub async fn open(source: Source, index: &Path) -> Result<Arc<Self>, IndexError> {
        let index = Index::open(index).await?;
        Ok(Arc::new(Self {
            live: Live::of(&source),
            source,
            index: Arc::new(RwLock::new(index)),
            verified: AtomicU64::new(0),
            to_verify: AtomicU64::new(0),
            large: Semaphore::new(LARGE_AT_ONCE),
        }))
    }

    /// A trade, and what both parties held before and after each of its steps.
    ///
    /// # Errors
    /// The reason that there is no answer.
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

    /// History of an item.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub async fn item(self: &Arc<Self>, serial: Serial) -> Result<Answered<(Item, Known)>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let item = index.item(casework.store(), serial).await?;
            let cited = item.steps.iter().map(|step| &step.cited);
            let known = casework.known(&index, cited, []).await?;
            Ok((item, known))
        })
        .await
    }

    /// Identities behind a session, one for each time that its client connected.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub async fn session(self: &Arc<Self>, session: SessionId) -> Result<Answered<Vec<CameIn>>, NoAnswer> {
        self.ask(move |casework, index| async move { Ok(index.session(casework.store(), session).await?) })
            .await
    }

    /// History of a stored entity's holdings.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub async fn owned(self: &Arc<Self>, holder: DatabaseId) -> Result<Answered<OwnedShown>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let owned = index.owned(casework.store(), holder).await?;
            let cited = owned.steps.iter().map(|step| &step.cited);
            let known = casework.known(&index, cited, [holder]).await?;
            Ok(OwnedShown { owned, known })
        })
        .await
    }

    /// History of an entity, and the entity's part of the realm's state at a moment. With `identities` also who its
    /// players were.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub async fn entity(
        self: &Arc<Self>,
        entity: EntityId,
        moment: EntityMoment,
        identities: bool,
    ) -> Result<Answered<EntityAt>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let (began, schemas) = casework.about().await?;
            let written = match &moment {
                EntityMoment::Written(at) => {
                    let at = read_at(at);
                    let at = at.map_err(|what| NoAnswer::Unclear(format!("That is no moment: {what}.")))?;
                    Some(at.until(&index, began).await?)
                }
                EntityMoment::Newest | EntityMoment::After(_) => None,
            };
            let log = EntityLog::find(&index, casework.store(), entity).await?;
            let until = match moment {
                EntityMoment::Newest | EntityMoment::Written(_) => written,
                EntityMoment::After(events) => log.end_of(&index, events).await?,
            };
            let cut = index.cut(until.as_ref()).await?;
            let _turn = casework.turn().await?;
            let past = Past::around(&index, casework.store(), &cut, entity).await?;
            let before = log.events.partition_point(|event| cut.has(event.leaf));
            let around = before.saturating_sub(AROUND)..log.events.len().min(before + AROUND);
            let shown = &log.events[if identities { around.clone() } else { 0..0 }];
            let calls = shown.iter().flat_map(|event| &event.calls);
            let sessions = index.sessions(casework.store(), calls).await?;
            let stored = past.parts().into_iter().filter(|((of, _), _)| *of == entity);
            let stored = stored.filter_map(|(_, part)| part.stored());
            let stored: BTreeSet<DatabaseId> = stored.filter(|_| identities).collect();
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

    /// Filters candidates to those that exist.
    ///
    /// # Errors
    /// If that cannot be determined.
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

    /// The stored entity of the account with this login name.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn named(&self, name: &str) -> Result<Option<DatabaseId>, NoAnswer> {
        let finding = timeout(ANSWERED_WITHIN, accounts::named(self.store(), name));
        let found = finding.await.map_err(|_| NoAnswer::Slow)??;
        Ok(found.map(|account| account.database))
    }

    /// Evidence for an answer, with a proof from a checkpoint that was kept, if one is given.
    ///
    /// # Errors
    /// The reason that there is none.
    pub async fn bundle(self: &Arc<Self>, question: Question, kept: Vec<SignedNote>) -> Result<Vec<u8>, NoAnswer> {
        let made = self.ask(move |casework, index| async move {
            let _turn = casework.turn().await?;
            let answer: Answer = index.answer(casework.store(), question).await?;
            Ok(evidence::bundle(casework.store(), &index, (question, &answer), &kept).await?)
        });
        Ok(made.await?.answer)
    }

    /// Receipt of a trade.
    ///
    /// # Errors
    /// The reason that there is none.
    pub async fn receipt(self: &Arc<Self>, id: TradeId) -> Result<String, NoAnswer> {
        let made = self.ask(move |casework, index| async move {
            let _turn = casework.turn().await?;
            Ok(evidence::receipt(casework.store(), &index, id).await?)
        });
        Ok(made.await?.answer)
    }

    /// What was verified, what is signed of it, and what a kept checkpoint proves.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub async fn verification(self: &Arc<Self>, kept: Option<Vec<u8>>) -> Result<Answered<Verification>, NoAnswer> {
        self.ask(move |casework, index| async move {
            let _turn = casework.turn().await?;
            Verification::of(casework.store(), index.extent()?, kept.as_deref()).await
        })
        .await
    }

    /// Contents of the first page.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub async fn home(self: &Arc<Self>) -> Result<Answered<Home>, NoAnswer> {
        self.ask(move |casework, index| async move { Home::of(&casework, &index).await })
            .await
    }

    pub(crate) fn store(&self) -> &Store {
        &self.source.store
    }

    /// The streams of the realm's logs, as far as they are read beside the archive.
    pub(crate) fn logs(&self) -> &BTreeMap<Shard, History> {
        &self.source.logs
    }

    /// The processes of the realm, if it is live.
    pub(crate) fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// Runs a question on an up-to-date index, in a task of its own: the request may be dropped meanwhile.
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
            let newer = stored.saturating_sub(extent.leaves());
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
                tracing::error!(%error, "an answer task panicked");
                Err(NoAnswer::Unavailable(
                    "the answer cannot be computed; the reason is in the console's log".into(),
                ))
            }
        }
    }

    /// The index, with new batches taken in, and the number of batches in the archives at the time of that check.
    async fn current(self: &Arc<Self>) -> Result<(Read, u64), NoAnswer> {
        let casework = Arc::clone(self);
        // The request may be dropped; what is verified by then stays.
        let taking = tokio::spawn(async move { casework.take_in().await });
        match timeout(VERIFIED_WITHIN, taking).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(error)) => {
                tracing::error!(%error, "the archive cannot be indexed");
                Err(NoAnswer::Unavailable(
                    "the archive cannot be verified; the reason is in the console's log".into(),
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
        let extent = held.extent()?;
        let stored = read_trees(self.store(), &extent.trees.keys().copied().collect()).await?;
        let size = stored.values().map(|tree| tree.size).sum();
        let heads = stored.into_iter().map(|(shard, tree)| {
            let tree = Frontier::resume(tree.size, tree.peaks)?;
            let (size, root) = (tree.size(), tree.root());
            Some((shard, TreeHead { size, root }))
        });
        let heads: Option<BTreeMap<Shard, TreeHead>> = heads.collect();
        if heads.is_some_and(|heads| extent.trees == heads) {
            return Ok((held, size));
        }
        drop(held);
        let Ok(mut index) = timeout(TAKEN_WITHIN, Arc::clone(&self.index).write_owned()).await else {
            let held = Arc::clone(&self.index).read_owned().await;
            // Before the first verification there is nothing to answer from.
            return match held.extent()?.leaves() {
                0 => Err(NoAnswer::Unavailable("the archive is queued for verification".into())),
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

    pub(crate) async fn about(&self) -> Result<(WallTime, BTreeMap<Hash, Schema>), NoAnswer> {
        let about = self.source.about().await?;
        let began = about.as_ref().map_or(WallTime(0), |about| about.began);
        Ok((began, about.map(About::schemas).unwrap_or_default()))
    }

    /// Context beside the entries: the identities behind the sessions whose calls caused them, and display names. Only
    /// a limited number of stored entities is named, those in `first` first.
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

    /// Names of kinds, slots and these stored entities.
    async fn lexicon(&self, index: &Index, stored: BTreeSet<DatabaseId>) -> Result<Lexicon, NoAnswer> {
        let (_, schemas) = self.about().await?;
        let called = index.called(self.store(), &schemas, stored).await?;
        let names = schemas.iter();
        let names = names.map(|(fingerprint, schema)| (*fingerprint, schema.ledger_names().clone()));
        Ok(Lexicon::new(names).with_stored(called))
    }

    /// Acquires a permit for a large operation.
    async fn turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, NoAnswer> {
        let turn = self.large.acquire().await;
        turn.map_err(|_| NoAnswer::Unavailable("the console is stopping".into()))
    }
}

/// A trade, with context.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeShown {
    /// The trade, step by step.
    pub trade: Trade,
    /// Holdings of proposer and partner before and after each step.
    pub held: Vec<[Inventory; 2]>,
    /// Context.
    pub known: Known,
}

/// Context beside an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Identities behind the sessions that asked.
    pub sessions: Sessions,
    /// Names of kinds, slots and stored entities.
    pub lexicon: Lexicon,
}

/// History of a stored entity's holdings, with context.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedShown {
    /// The history, step by step.
    pub owned: Owned,
    /// Context.
    pub known: Known,
}

/// At which moment an entity is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityMoment {
    /// At the end of what is verified.
    Newest,
    /// At a moment that a visitor has written.
    Written(String),
    /// After so many of its events: the batch that has the last of them is included as a whole.
    After(usize),
}

/// An entity, and the realm at a moment.
pub struct EntityAt {
    /// Number of events before the moment.
    pub before: usize,
    /// Events around the moment.
    pub around: Range<usize>,
    /// Identities behind the sessions whose calls caused these events.
    pub sessions: Sessions,
    /// Name of the stored entity that the entity's parts belong to.
    pub lexicon: Lexicon,
    /// History of the entity.
    pub log: EntityLog,
    /// The entity's part of the realm's state at the moment.
    pub past: Past,
    /// All definitions, by fingerprint.
    pub schemas: BTreeMap<Hash, Schema>,
    /// The moment.
    pub until: Option<Until>,
}
