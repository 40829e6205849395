//! Compares the ledger views of base parts with the ledger: each state of a view in the logs of the bases must equal
//! the sum of the entries at that version of the holdings (rules F7 and F13).
//!
//! Logs and entries are read in one pass and can be followed as they grow. Views lag behind the ledger, so a view is
//! compared with the past; the number of views that lag is counted, and is no fault while notices are on their way.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use annals_audit::archive::{Fault, LogWalk};
use annals_db::{Migrations, ledger::read_entries};
use annals_director::read_owners;
use annals_event::{
    Batch, Body, Image, Impossible, OwnerState, Subject,
    ledger::{Entry, Holder, Holdings, Order, Outcome},
};
use annals_ids::{
    AssetKind, DatabaseId, EntityId, EntryNumber, HoldingsVersion, LogPosition, OwnerId, OwnerKind, Part, Serial, Slot,
};
use annals_store::{Store, StoreError};
use thiserror::Error;

/// Entries per read.
const ENTRIES_AT_ONCE: usize = 512;

/// Maximum disagreements that are kept; the rest are counted.
const KEPT: usize = 100;

/// Why views could not be compared.
#[derive(Debug, Error)]
pub enum ViewsError {
    /// Error of the store.
    #[error("the archive or the ledger cannot be read")]
    Store(#[from] StoreError),
    /// A faulty batch of the archive.
    #[error("batch {} of owner {} {fault}", at.batch, at.owner)]
    Faulty {
        /// The position of the batch.
        at: LogPosition,
        fault: Fault,
    },
    /// A batch that cannot have happened.
    #[error("the log of a base does not replay")]
    Impossible(#[from] Impossible),
}

/// A view that differs from the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("entity {entity} of owner {} has a view of {holder} at version {version} that the ledger never had (batch \
    {})", at.owner, at.batch)]
pub struct Disagreement {
    /// The entity whose view it is.
    pub entity: EntityId,
    /// Its stored entity.
    pub holder: DatabaseId,
    /// The version of the holdings that the view claims.
    pub version: HoldingsVersion,
    /// The batch after which the view differed.
    pub at: LogPosition,
}

/// The findings since the views were first followed.
#[derive(Clone, Debug, Default)]
pub struct ViewsReport {
    /// States of views that were compared.
    pub compared: u64,
    /// Trades in which assets changed hands.
    pub exchanges: u64,
    /// Living base parts of stored entities, according to the archive.
    pub living: u64,
    /// Number of them whose view is behind the ledger.
    pub behind: u64,
    /// Views that differ from the ledger; limited in number.
    pub disagreements: Vec<Disagreement>,
    /// Total number of disagreements.
    pub found: u64,
}

impl fmt::Display for ViewsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for disagreement in &self.disagreements {
            writeln!(f, "  {disagreement}")?;
        }
        write!(
            f,
            "  {} ledger views compared: {} equal; {} trades moved assets; {} of {} live bases do not have the newest \
             yet",
            self.compared,
            if self.found == 0 {
                "each".to_owned()
            } else {
                format!("all but {}", self.found)
            },
            self.exchanges,
            self.behind,
            self.living
        )
    }
}

/// An incremental comparison of the views of bases with the ledger. Each [`Self::look`] continues where the last one
/// ended.
#[derive(Default)]
pub struct Views {
    logs: BTreeMap<OwnerId, Followed>,
    entry: EntryNumber,
    holders: BTreeMap<DatabaseId, Held>,
    report: ViewsReport,
}

/// The log of a base, as far as it was read.
struct Followed {
    walk: LogWalk,
    state: OwnerState,
}

/// The holdings of a holder, by the entries.
struct Held {
    now: Content,
    /// A digest of the holdings at each version.
    versions: Vec<u64>,
}

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Content {
    units: BTreeMap<(Slot, AssetKind), i128>,
    items: BTreeMap<Serial, (Slot, AssetKind)>,
}

/// A view after a batch.
struct ClaimedView {
    entity: EntityId,
    holder: DatabaseId,
    version: HoldingsVersion,
    digest: u64,
    at: LogPosition,
}

impl Views {
    /// Reads on, and compares new states of views with the ledger.
    ///
    /// # Errors
    /// When the archive cannot be read, or does not replay.
    pub async fn look(&mut self, store: &Store) -> Result<&ViewsReport, ViewsError> {
        let seen = self.read_logs(store).await?;
        // Read after the logs: a notice to a base is always later than its entry.
        self.read_ledger(store).await?;
        for view in seen {
            self.compare(&view);
        }
        let (mut living, mut behind) = (0, 0);
        for image in self.logs.values().flat_map(|log| log.state.entities.values()) {
            let Some((holder, known)) = view_of(image) else {
                continue;
            };
            let newest = self.holders.get(&holder).map_or(0, Held::version);
            living += 1;
            behind += u64::from(known.is_none_or(|known| known.version.0 != newest));
        }
        (self.report.living, self.report.behind) = (living, behind);
        Ok(&self.report)
    }

    /// The findings so far.
    #[must_use]
    pub fn report(&self) -> &ViewsReport {
        &self.report
    }

    async fn read_logs(&mut self, store: &Store) -> Result<Vec<ClaimedView>, ViewsError> {
        let migrations = Migrations::read(store).await?;
        for (owner, record) in read_owners(store).await? {
            if record.kind == OwnerKind::Base && !self.logs.contains_key(&owner) {
                let walk = LogWalk::begin(store, record.shard, owner).await?;
                let state = OwnerState::new(owner, record.kind);
                self.logs.insert(owner, Followed { walk, state });
            }
        }
        let mut seen = Vec::new();
        for log in self.logs.values_mut() {
            log.walk.extend().await?;
            while let Some(step) = log.walk.next().await? {
                let at = LogPosition {
                    owner: log.state.owner,
                    batch: step.number,
                };
                match (step.fault, step.batch) {
                    (None, Some(batch)) => {
                        migrations.fold(&mut log.state, &batch)?;
                        seen.extend(claimed(&log.state, &batch, at));
                    }
                    (fault, _) => {
                        let fault = fault.unwrap_or(Fault::Missing);
                        return Err(ViewsError::Faulty { at, fault });
                    }
                }
            }
        }
        Ok(seen)
    }

    async fn read_ledger(&mut self, store: &Store) -> Result<(), StoreError> {
        loop {
            let entries = read_entries(store, self.entry, ENTRIES_AT_ONCE).await?;
            for entry in &entries {
                self.take(entry);
            }
            if entries.len() < ENTRIES_AT_ONCE {
                return Ok(());
            }
        }
    }

    fn take(&mut self, entry: &Entry) {
        self.entry = entry.number;
        let mut changed = BTreeSet::new();
        for posting in &entry.postings {
            if let Holder::Stored(holder) = posting.account.place.holder {
                let key = (posting.account.place.slot, posting.account.kind);
                let held = self.holders.entry(holder).or_default();
                *held.now.units.entry(key).or_default() += i128::from(posting.amount);
                changed.insert(holder);
            }
        }
        for passage in &entry.passages {
            if let Holder::Stored(holder) = passage.from.holder {
                self.holders
                    .entry(holder)
                    .or_default()
                    .now
                    .items
                    .remove(&passage.serial);
                changed.insert(holder);
            }
            if let Holder::Stored(holder) = passage.to.holder {
                let held = self.holders.entry(holder).or_default();
                held.now.items.insert(passage.serial, (passage.to.slot, passage.kind));
                changed.insert(holder);
            }
        }
        for holder in changed {
            self.holders.entry(holder).or_default().note();
        }
        let moved = !entry.postings.is_empty() || !entry.passages.is_empty();
        let is_exchange =
            matches!(entry.order, Some(Order::Accept { .. })) && entry.outcome == Outcome::Posted && moved;
        self.report.exchanges += u64::from(is_exchange);
    }

    fn compare(&mut self, seen: &ClaimedView) {
        self.report.compared += 1;
        let version = usize::try_from(seen.version.0).unwrap_or(usize::MAX);
        let expected = match self.holders.get(&seen.holder) {
            Some(held) => held.versions.get(version).copied(),
            None => (version == 0).then(|| Content::default().digest()),
        };
        if expected == Some(seen.digest) {
            return;
        }
        self.report.found += 1;
        if self.report.disagreements.len() < KEPT {
            self.report.disagreements.push(Disagreement {
                entity: seen.entity,
                holder: seen.holder,
                version: seen.version,
                at: seen.at,
            });
        }
    }
}

impl Default for Held {
    fn default() -> Self {
        let now = Content::default();
        let versions = vec![now.digest()];
        Self { now, versions }
    }
}

impl Held {
    fn version(&self) -> u64 {
        self.versions.len() as u64 - 1
    }

    fn note(&mut self) {
        self.now.units.retain(|_, units| *units != 0);
        self.versions.push(self.now.digest());
    }
}

impl Content {
    fn of(holdings: &Holdings) -> Self {
        let mut content = Self::default();
        for (slot, assets) in &holdings.slots {
            let held = assets.units.iter().filter(|(_, units)| **units != 0);
            content
                .units
                .extend(held.map(|(kind, units)| ((*slot, *kind), i128::from(*units))));
            let items = assets.items.iter();
            content
                .items
                .extend(items.map(|(serial, kind)| (*serial, (*slot, *kind))));
        }
        content
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// The stored entity of which a part holds a view, and the view.
fn view_of(image: &Image) -> Option<(DatabaseId, Option<&Holdings>)> {
    let base = image.base()?;
    (base.database != DatabaseId(0)).then_some((base.database, base.ledger.holdings.as_ref()))
}

/// The views that a batch updated, as they are after it.
fn claimed(state: &OwnerState, batch: &Batch, at: LogPosition) -> Vec<ClaimedView> {
    let mut entities = BTreeSet::new();
    for event in &batch.events {
        if let (Body::Booked(_), Subject::Entity(entity, Part::Base)) = (&event.body, event.subject) {
            entities.insert(entity);
        }
    }
    let seen = |entity| {
        let (holder, known) = view_of(state.entities.get(&entity)?)?;
        let known = known?;
        Some(ClaimedView {
            entity,
            holder,
            version: known.version,
            digest: Content::of(known).digest(),
            at,
        })
    };
    entities.into_iter().filter_map(seen).collect()
}
