//! The archives of several shards as one sequence of leaves (rule T6): the order in which a restored realm folds them,
//! and the cuts in it.
//!
//! A leaf *must* follow those on whose result its fold depends: the leaves before it in its shard, the changes of the
//! ledger before its own, and the ends of earlier activations of a stored entity that it activates. Folds have met these
//! in some order once, so there always is one. A leaf also *should* follow the leaves that made the calls that its batch
//! consumed, and those that consumed the calls that it confirmed. But a shard may have archived a batch before another
//! shard archived the one that it depends on (rule T3): the sequence can be cut where no such call is open, and behind the
//! last such place some leaves may be left out (`tail`).

mod tail;

use async_recursion::async_recursion as boxed;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use annals_event::{Batch, Body, Header, Link, Malformed, OwnerState, Subject, Thinned};
use annals_ids::{
    BatchNumber, CallNumber, DatabaseId, EntityId, Hash, LeafIndex, NoticeNumber, OwnerId, Part, Shard, WallTime,
};
use annals_store::{
    ArchivedBatch, StoreError,
    layout::{
        retention as kept,
        shards::{self, AloneUntil, LedgerChange},
    },
};

use tail::{Passing, Tail};

use crate::{
    Cuts, Migrations, RecoveryError, Row,
    cut::Named,
    floors_of, horizon_of,
    restoring::{passing, shards_of},
};

/// The shard that a realm begins with.
const FIRST: Shard = Shard(0);

/// An event that orders leaves of different shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// A base part begins: of a stored entity, with its check-out, if the number is not 0.
    BaseBegins(EntityId, DatabaseId, u64),
    /// An entity is written to the database.
    Stores(EntityId, DatabaseId),
    /// A base part has learned whether there is a cell part.
    Placed(EntityId, bool),
    BaseEnds(EntityId),
    /// A cell part with a base part begins, or arrives.
    CellBegins(EntityId),
    CellLeaves(EntityId),
    /// A hand-over was refused.
    CellReturns(EntityId),
    CellIsGone(EntityId),
    CellEnds(EntityId),
    /// The ledger's owner took a notice from the outbox.
    Takes(NoticeNumber),
}

impl Act {
    fn of((subject, body): (Subject, &Body)) -> Option<Self> {
        if let (Subject::Owner, Body::Entered { notice, .. }) = (subject, body) {
            return Some(Self::Takes(*notice));
        }
        let Subject::Entity(entity, part) = subject else {
            return None;
        };
        match (part, body) {
            (Part::Base, Body::BaseCreated(new)) => Some(Self::BaseBegins(entity, new.database, new.checkout)),
            (Part::Base, Body::Stored { database }) => Some(Self::Stores(entity, *database)),
            (Part::Base, Body::Placed(at)) => Some(Self::Placed(entity, at.is_some())),
            (Part::Base, Body::Destroyed) => Some(Self::BaseEnds(entity)),
            (Part::Cell, Body::CellCreated(new)) if new.based => Some(Self::CellBegins(entity)),
            (Part::Cell, Body::Onloaded { image, .. }) if image.cell().is_some_and(|cell| cell.based) => {
                Some(Self::CellBegins(entity))
            }
            (Part::Cell, Body::Offloaded { .. }) => Some(Self::CellLeaves(entity)),
            (Part::Cell, Body::Returned { .. }) => Some(Self::CellReturns(entity)),
            (Part::Cell, Body::Departed { .. }) => Some(Self::CellIsGone(entity)),
            (Part::Cell, Body::Destroyed) => Some(Self::CellEnds(entity)),
            _ => None,
        }
    }

    /// Whether the fold writes a row that folds of other shards may write too.
    fn is_shared(self) -> bool {
        matches!(
            self,
            Self::BaseBegins(..) | Self::Stores(..) | Self::BaseEnds(_) | Self::CellEnds(_) | Self::Takes(_)
        )
    }
}

/// A leaf of an archive, as far as the order of leaves depends on it.
#[derive(Clone, Debug)]
pub struct MergedLeaf {
    leaf: LeafIndex,
    header: Header,
    named: Named,
    acts: Vec<Act>,
}

impl MergedLeaf {
    /// Decodes a leaf.
    ///
    /// # Errors
    /// When it is not a batch.
    pub fn read(leaf: LeafIndex, archived: &ArchivedBatch) -> Result<Self, Malformed> {
        match archived {
            ArchivedBatch::Whole(bytes) => Batch::read(bytes).map(|batch| Self::of(leaf, &batch)),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map(|thinned| Self {
                leaf,
                header: thinned.header,
                named: Named {
                    made: thinned.calls,
                    ..Named::default()
                },
                acts: Vec::new(),
            }),
        }
    }

    pub(crate) fn of(leaf: LeafIndex, batch: &Batch) -> Self {
        let events = batch.events.iter().map(|event| (event.subject, &event.body));
        Self {
            leaf,
            header: batch.header.clone(),
            named: Named::of(batch),
            acts: events.filter_map(Act::of).collect(),
        }
    }

    /// Owner and number of its batch.
    #[must_use]
    pub fn batch(&self) -> (OwnerId, BatchNumber) {
        (self.header.owner, self.header.number)
    }

    /// When its batch was closed, by the writer's clock.
    #[must_use]
    pub fn wall(&self) -> WallTime {
        self.header.wall
    }

    pub(crate) fn leaf(&self) -> LeafIndex {
        self.leaf
    }

    /// Whether its fold and those of other shards may write the same rows.
    pub(crate) fn is_shared(&self) -> bool {
        self.acts.iter().any(|act| act.is_shared())
    }
}

/// The present and the last activations of stored entities.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    active: BTreeMap<EntityId, DatabaseId>,
    ended: BTreeMap<DatabaseId, EntityId>,
}

impl Lives {
    /// Passes a leaf. Returns the activations that it replaces.
    pub(crate) fn pass(&mut self, leaf: &MergedLeaf) -> Vec<EntityId> {
        let mut replaced = Vec::new();
        for act in &leaf.acts {
            match *act {
                Act::BaseBegins(entity, database, _) if database.0 != 0 => {
                    self.active.insert(entity, database);
                    replaced.extend(self.ended.remove(&database));
                }
                Act::Stores(entity, database) => {
                    self.active.entry(entity).or_insert(database);
                }
                Act::BaseEnds(entity) => {
                    if let Some(database) = self.active.remove(&entity) {
                        self.ended.insert(database, entity);
                    }
                }
                _ => {}
            }
        }
        replaced
    }
}

/// How long after a call was consumed its confirmation may have been logged by the clocks of two processes, while the
/// batch that consumed it was not archived yet.
const MINUTE: u64 = 60_000;

/// What the order of the leaves depends on, of all leaves in the archives.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Activations of stored entities: by their check-outs, and 0 for the activation that first stored an entity.
    all: BTreeMap<DatabaseId, BTreeSet<u64>>,
    /// Living base parts of stored entities.
    active: BTreeSet<EntityId>,
    consumed: BTreeMap<Link, CallNumber>,
    /// The latest time at which a batch of each shard was closed.
    ends: BTreeMap<Shard, WallTime>,
}

impl Survey {
    /// Adds a leaf. Each shard's leaves are added in their order.
    pub fn note(&mut self, shard: Shard, leaf: &MergedLeaf) {
        let end = self.ends.entry(shard).or_default();
        *end = leaf.wall().max(*end);
        for consumed in &leaf.header.consumed {
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            let newest = self.consumed.entry(link).or_default();
            *newest = consumed.number.max(*newest);
        }
        for act in &leaf.acts {
            match *act {
                Act::BaseBegins(entity, database, checkout) if database.0 != 0 => {
                    self.active.insert(entity);
                    self.all.entry(database).or_default().insert(checkout);
                }
                Act::Stores(entity, database) if self.active.insert(entity) => {
                    self.all.entry(database).or_default().insert(0);
                }
                Act::BaseEnds(entity) => {
                    self.active.remove(&entity);
                }
                _ => {}
            }
        }
    }
}

impl Survey {
    /// What these shards consumed before this moment is archived, or lost. A shard that has archived nothing may have
    /// consumed anything.
    fn lost_before(&self, shards: impl Iterator<Item = Shard>) -> WallTime {
        let ends = shards.map(|shard| self.ends.get(&shard).copied().unwrap_or_default());
        let first = ends.min().unwrap_or_default();
        WallTime(first.0.saturating_sub(MINUTE))
    }
}

/// A living base part.
#[derive(Debug, Default)]
struct Base {
    /// Its stored entity and check-out.
    stored: Option<(DatabaseId, u64)>,
    is_placed: bool,
    /// Cell parts of whose end it has learned.
    ends: u32,
}

/// Merges the leaves of all shards. The caller offers the next leaf of each.
pub struct Merging {
    generations: BTreeMap<Hash, u32>,
    /// The changes of the ledger in their order, with the last notice of each, and how many were passed.
    changes: Vec<(NoticeNumber, LedgerChange)>,
    passed: usize,
    places: BTreeSet<(Shard, LeafIndex)>,
    tail: Tail,
    /// The part of the first shard's archive from before the realm had others.
    alone: Option<AloneUntil>,
    /// Check-outs of the activations that have not ended.
    activations: BTreeMap<DatabaseId, BTreeSet<u64>>,
    bases: BTreeMap<EntityId, Base>,
    /// The last activation of a stored entity, if it has ended, and how many ends of its cell parts are known.
    ended: BTreeMap<DatabaseId, (EntityId, u32)>,
    /// Cell parts with a base part, and whether they are in hand-over.
    cells: BTreeMap<(OwnerId, EntityId), bool>,
    /// Ends of the cell parts of an activation.
    cell_ends: BTreeMap<EntityId, u32>,
    /// Cell parts that ended before the horizon of a shard, and the last leaf before it.
    kept: BTreeMap<(Shard, LeafIndex), Vec<EntityId>>,
    horizons: BTreeMap<Shard, LeafIndex>,
    passing: BTreeSet<OwnerId>,
    /// The newest call that was consumed on each link, in all of the archives.
    consumed: BTreeMap<Link, CallNumber>,
    /// Each shard has archived batches that were closed a while after this moment.
    lost_before: WallTime,
    cuts: Cuts,
}

impl Merging {
    /// Begins with the first leaves, given the rows that no log yields, a survey of all leaves, and how many leaves of each
    /// shard are merged.
    ///
    /// # Errors
    /// When a row cannot be read.
    #[boxed]
    pub async fn begin(rows: &[Row], survey: Survey, ends: &BTreeMap<Shard, u64>) -> Result<Self, RecoveryError> {
        let failed = |source| RecoveryError::Store {
            owner: OwnerId(0),
            source,
        };
        let alone = alone_of(rows).map_err(failed)?;
        let mut changes = changes_of(rows).map_err(failed)?;
        // Those of leaves that are left out of a cut are missing between the others.
        changes.retain(|(_, change)| ends.get(&change.shard).is_some_and(|end| change.leaf.0 < *end));
        let lost_before = survey.lost_before(shards_of(rows).map_err(failed)?);
        let mut merging = Self {
            generations: Migrations::of_rows(rows).map_err(failed)?.generations(),
            places: changes.iter().map(|(_, change)| (change.shard, change.leaf)).collect(),
            changes,
            passed: 0,
            tail: Tail::default(),
            alone,
            activations: survey.all,
            bases: BTreeMap::new(),
            ended: BTreeMap::new(),
            cells: BTreeMap::new(),
            cell_ends: BTreeMap::new(),
            kept: BTreeMap::new(),
            horizons: BTreeMap::new(),
            passing: passing(rows).map_err(failed)?,
            lost_before,
            consumed: survey.consumed,
            cuts: Cuts::with_confirmations(rows).map_err(failed)?,
        };
        for shard in shards_of(rows).map_err(failed)? {
            if let Some(horizon) = horizon_of(rows, shard).map_err(failed)? {
                merging.horizons.insert(shard, horizon.leaf);
                let floors = floors_of(rows, shard).await?;
                floors.into_values().for_each(|floor| merging.note_floor(&floor));
            }
        }
        for (shard, leaf, entity) in kept_ends(rows).map_err(failed)? {
            merging.kept.entry((shard, leaf)).or_default().push(entity);
        }
        Ok(merging)
    }

    /// A cell's log is folded from its floor on.
    fn note_floor(&mut self, floor: &OwnerState) {
        let is_based = |image: &annals_event::Image| image.cell().is_some_and(|cell| cell.based);
        let real = floor.entities.iter().filter(|(_, image)| is_based(image));
        let real = real.map(|(entity, _)| ((floor.owner, *entity), false));
        let leaving = floor.departing.values().filter(|(_, image)| is_based(image));
        let leaving = leaving.map(|(entity, _)| ((floor.owner, *entity), true));
        self.cells.extend(leaving.chain(real));
    }

    /// Chooses the shard whose next leaf follows: the one that was closed first among those that depend on nothing that
    /// is left. `None` if no leaf can follow.
    #[must_use]
    pub fn choose(&self, heads: &BTreeMap<Shard, MergedLeaf>) -> Option<Shard> {
        // Everything was folded when the definitions changed (rule M2).
        let oldest = heads.values().map(|head| self.generation(head)).min()?;
        let open = heads.iter().filter(|(_, head)| self.generation(head) == oldest);
        let possible = open.filter(|(shard, head)| self.may_follow(**shard, head));
        let first = possible.min_by_key(|(shard, head)| (self.lacks(head), head.header.wall, **shard));
        first.map(|(shard, _)| *shard)
    }

    fn generation(&self, head: &MergedLeaf) -> u32 {
        self.generations.get(&head.header.schema).copied().unwrap_or_default()
    }

    /// Whether everything is passed that a fold of the leaf depends on.
    fn may_follow(&self, shard: Shard, head: &MergedLeaf) -> bool {
        let place = (shard, head.leaf);
        let next = self
            .changes
            .get(self.passed)
            .map(|(_, change)| (change.shard, change.leaf));
        if self.places.contains(&place) && next != Some(place) {
            return false;
        }
        head.acts.iter().all(|act| match *act {
            // Until the realm had several shards, the order of the first shard is that of the ledger.
            Act::Takes(notice) => self.is_alone(place) || self.is_entered(notice),
            Act::BaseBegins(_, database, checkout) if database.0 != 0 => {
                let earliest = self.activations.get(&database).and_then(BTreeSet::first);
                earliest.is_none_or(|earliest| *earliest >= checkout)
            }
            _ => true,
        })
    }

    /// Whether the change of the ledger that created this notice is passed.
    fn is_entered(&self, notice: NoticeNumber) -> bool {
        let last = self.passed.checked_sub(1).map(|last| self.changes[last].0);
        last.is_some_and(|last| notice <= last)
    }

    fn is_alone(&self, (shard, leaf): (Shard, LeafIndex)) -> bool {
        shard == FIRST && self.alone.is_some_and(|alone| leaf.0 < alone.leaves)
    }

    /// What is not passed of that which its batch has observed: the ends of the cell parts of earlier activations, and the
    /// calls that it consumed or confirmed. An end counts more, because the row of a stored entity takes it in.
    fn lacks(&self, head: &MergedLeaf) -> (bool, bool) {
        let are_ended = |database: &DatabaseId| {
            let ended = self.ended.get(database);
            ended.is_none_or(|(entity, known)| self.cell_ends.get(entity).copied().unwrap_or_default() >= *known)
        };
        let mut activated = head.acts.iter().filter_map(|act| match act {
            Act::BaseBegins(_, database, _) if database.0 != 0 => Some(database),
            _ => None,
        });
        (
            !activated.all(are_ended),
            !self.cuts.has_causes(&head.header, &self.named(head)),
        )
    }

    /// The calls that a leaf names, without confirmations of calls whose consumption is lost: it is not in the archives,
    /// although each shard has archived later batches.
    fn named<'a>(&self, head: &'a MergedLeaf) -> Cow<'a, Named> {
        let is_lost = |(link, upto): &(Link, CallNumber)| {
            let newest = self.consumed.get(link).copied().unwrap_or_default();
            newest < *upto && head.wall() < self.lost_before
        };
        if !head.named.confirmed.iter().any(is_lost) {
            return Cow::Borrowed(&head.named);
        }
        let mut named = head.named.clone();
        named.confirmed.retain(|confirmed| !is_lost(confirmed));
        Cow::Owned(named)
    }

    /// Passes a leaf. Returns whether all leaves passed so far are a cut, and each of them was wanted.
    pub fn pass(&mut self, shard: Shard, mut head: MergedLeaf, is_wanted: bool) -> bool {
        if let Cow::Owned(named) = self.named(&head) {
            head.named = named;
        }
        let place = (shard, head.leaf);
        let next = self.changes.get(self.passed).map(|(_, next)| (next.shard, next.leaf));
        let change = (next == Some(place)).then_some(self.passed);
        self.passed += usize::from(change.is_some());
        let (header, named) = (head.header.clone(), head.named.clone());
        let passing = Passing {
            is_wanted,
            generation: self.generation(&head),
            change,
            is_alone: self.is_alone(place),
            ends: self.pass_acts(place, &head),
        };
        self.tail.push(shard, head, passing, &self.cuts);
        let is_cut = self.cuts.take_calls(&header, &named) && self.tail.is_wanted();
        if is_cut {
            self.tail.clear();
        }
        is_cut
    }

    /// Which of the leaves that were passed since the last cut belong to the largest cut; or to the smallest one that has
    /// the leaf `with`, by its place among them: to none, if no cut has it.
    #[must_use]
    pub fn in_cut(&self, with: Option<usize>) -> Vec<bool> {
        let changes: Vec<NoticeNumber> = self.changes.iter().map(|(last, _)| *last).collect();
        match with {
            None => self.tail.in_cut(&self.cuts, &changes),
            Some(wanted) => self.tail.in_cut_with(wanted, &self.cuts, &changes),
        }
    }

    /// Passes the acts of a leaf. Returns the stored entities whose activations end.
    fn pass_acts(&mut self, (shard, leaf): (Shard, LeafIndex), head: &MergedLeaf) -> Vec<DatabaseId> {
        let is_deleted = self.horizons.get(&shard).is_some_and(|horizon| leaf <= *horizon)
            && self.passing.contains(&head.header.owner);
        // The order of the first shard suffices for what ended while the realm had no other.
        let counts = !self.is_alone((shard, leaf));
        let mut ends = Vec::new();
        if !is_deleted {
            for act in &head.acts {
                ends.extend(self.act(head.header.owner, *act, counts));
            }
        }
        for entity in self.kept.remove(&(shard, leaf)).unwrap_or_default() {
            *self.cell_ends.entry(entity).or_default() += u32::from(counts);
        }
        ends
    }

    /// Returns the stored entity whose activation ends.
    fn act(&mut self, owner: OwnerId, act: Act, counts: bool) -> Option<DatabaseId> {
        match act {
            Act::BaseBegins(entity, database, checkout) => {
                if let Some((before, _)) = self.ended.remove(&database) {
                    self.cell_ends.remove(&before);
                }
                let base = Base {
                    stored: (database.0 != 0).then_some((database, checkout)),
                    ..Base::default()
                };
                self.bases.insert(entity, base);
            }
            Act::Stores(entity, database) => {
                let base = self.bases.entry(entity).or_default();
                base.stored.get_or_insert((database, 0));
            }
            Act::Placed(entity, is_placed) => {
                let base = self.bases.entry(entity).or_default();
                base.ends += u32::from(counts && base.is_placed && !is_placed);
                base.is_placed = is_placed;
            }
            Act::BaseEnds(entity) => return self.end_base(entity),
            Act::CellBegins(entity) | Act::CellReturns(entity) => {
                self.cells.insert((owner, entity), false);
            }
            Act::CellLeaves(entity) => {
                if let Some(is_leaving) = self.cells.get_mut(&(owner, entity)) {
                    *is_leaving = true;
                }
            }
            Act::CellIsGone(entity) => {
                if self.cells.get(&(owner, entity)) == Some(&true) {
                    self.cells.remove(&(owner, entity));
                }
            }
            Act::CellEnds(entity) => {
                if self.cells.remove(&(owner, entity)).is_some() && counts {
                    *self.cell_ends.entry(entity).or_default() += 1;
                }
            }
            Act::Takes(_) => {}
        }
        None
    }

    fn end_base(&mut self, entity: EntityId) -> Option<DatabaseId> {
        let base = self.bases.remove(&entity).unwrap_or_default();
        let Some((database, checkout)) = base.stored else {
            self.cell_ends.remove(&entity);
            return None;
        };
        if let Some(left) = self.activations.get_mut(&database) {
            left.remove(&checkout);
        }
        self.ended.insert(database, (entity, base.ends));
        Some(database)
    }
}

/// The changes of the ledger among these rows, in their order, with the last notice of each.
pub(crate) fn changes_of(rows: &[Row]) -> Result<Vec<(NoticeNumber, LedgerChange)>, StoreError> {
    let all = shards::changes();
    let changes = rows.iter().filter(|(key, _)| all.contains(key));
    let changes = changes.map(|(key, value)| Ok((shards::change_of(key)?, LedgerChange::decode(value)?)));
    let mut changes: Vec<_> = changes.collect::<Result<_, StoreError>>()?;
    if let Some(alone) = alone_of(rows)? {
        let leaf = LeafIndex(alone.leaves.saturating_sub(1));
        changes.push((alone.notice, LedgerChange { shard: FIRST, leaf }));
    }
    changes.sort_by_key(|(last, _)| *last);
    Ok(changes)
}

/// How far the first shard was alone, by these rows.
pub(crate) fn alone_of(rows: &[Row]) -> Result<Option<AloneUntil>, StoreError> {
    let key = shards::count_key();
    let value = rows
        .iter()
        .find(|(held, _)| *held == key)
        .map(|(_, value)| value.as_slice());
    shards::decode_grown(value).map(|(_, alone)| alone)
}

/// The cell parts among these rows that ended before a horizon, each once.
fn kept_ends(rows: &[Row]) -> Result<BTreeSet<(Shard, LeafIndex, EntityId)>, StoreError> {
    let mut found = BTreeSet::new();
    for shard in shards_of(rows)? {
        let all = kept::ended(shard);
        for (key, _) in rows.iter().filter(|(key, _)| all.contains(key)) {
            let (entity, leaf) = kept::ended_of(key)?;
            found.insert((shard, leaf, entity));
        }
    }
    Ok(found)
}
