//! An archive of a busy realm: cells whose entities change, a base whose players move their items, and the ledger's
//! log.

use std::collections::BTreeMap;

use annals_def::{Located, Value};
use annals_event::{
    Body, Cause, Event, FrozenBatch, Gathering, Imprint, Subject, Tail,
    ledger::{AssetSlot, Assets, Entry, Goods, Holder, Order, Outcome, Passage},
};
use annals_host::process::FIRST_SHARD;
use annals_ids::{
    AssetKind, DatabaseId, EntityId, EntryNumber, Epoch, Hash, LeafIndex, LogPosition, MemberId, NoticeNumber, OwnerId,
    OwnerKind, Part, ProcessId, Serial, Slot, Tick, TransferId, TransferNumber, WallTime,
};
use annals_proof::Frontier;
use annals_store::{
    ArchivedBatch, Store, Transaction,
    archive::write_segment,
    layout::{
        archive::{Tree, encode_place, place_key, tree_key},
        owners::{Cursor, OpeningRecord, OwnerRecord, cursor_key, opening_key, owner_key},
    },
    segment::{self, Leaf, SEGMENT_BYTES, SEGMENT_LEAVES},
};

/// Cells.
const CELLS: u32 = 7;

/// Properties of the changing entities.
const PROPERTIES: u64 = 16;

const BASE: OwnerId = OwnerId(1);
const LEDGER: OwnerId = OwnerId(2);
const PLAYER: EntityId = EntityId(1);
const ACCOUNT: DatabaseId = DatabaseId(1);
const KIND: AssetKind = AssetKind(1);
const EPOCH: Epoch = Epoch(1);

/// Size of the archive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Batches of each owner.
    pub(crate) rounds: u64,
    /// Items, created in the first rounds and moved afterwards.
    pub(crate) items: u64,
    /// Items created or moved per round.
    pub(crate) moves: u64,
    /// Changes in each batch of a cell.
    pub(crate) changes: u64,
    /// Bytes of text that each change sets; 0 if it sets a number.
    pub(crate) text: usize,
}

/// What the archive contains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) events: u64,
    pub(crate) batches: u64,
    pub(crate) entries: EntryNumber,
    pub(crate) items: u64,
}

#[derive(Default)]
struct Archive {
    tails: BTreeMap<OwnerId, Tail>,
    tree: Frontier,
    leaves: Vec<Leaf>,
    bytes: usize,
    made: u64,
    events: u64,
}

/// Writes the archive.
pub(crate) async fn make(store: &Store, plan: Plan) -> Made {
    let mut archive = Archive::default();
    for cell in 0..CELLS {
        archive.open(store, OwnerId(10 + cell), OwnerKind::Cell).await;
    }
    archive.open(store, BASE, OwnerKind::Base).await;
    archive.open(store, LEDGER, OwnerKind::Ledger).await;
    let mut entry = EntryNumber(0);
    let (mut items, mut dice) = (Vec::new(), 1_u64);
    for round in 0..plan.rounds {
        for cell in 0..CELLS {
            let owner = OwnerId(10 + cell);
            let first = round * plan.changes;
            let changes = (first..first + plan.changes).map(|number| changed(number, u64::from(cell), plan.text));
            archive.close(store, owner, changes.collect()).await;
        }
        let mut orders = Vec::new();
        for _ in 0..plan.moves {
            dice = dice.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round | 1);
            orders.push(wish(&mut items, plan.items, dice >> 33));
        }
        let first = entry.next().0;
        let asked = (first..)
            .zip(&orders)
            .map(|(number, (order, _))| ordered(number, order));
        let at = archive.close(store, BASE, asked.collect()).await;
        let entries = (first..).zip(orders).map(|(number, wish)| entered(number, at, wish));
        let entries: Vec<Event> = entries.collect();
        entry = EntryNumber(first + plan.moves - 1);
        archive.close(store, LEDGER, entries).await;
    }
    archive.seal(store).await;
    archive.write_cursors(store).await;
    Made {
        events: archive.events,
        batches: archive.made,
        entries: entry,
        items: items.len() as u64,
    }
}

/// Creates an item while fewer than `most` exist, otherwise moves one to another slot.
fn wish(items: &mut Vec<Slot>, most: u64, dice: u64) -> (Order, Passage) {
    let here = |slot| AssetSlot {
        holder: Holder::Stored(ACCOUNT),
        slot,
    };
    if (items.len() as u64) < most {
        items.push(Slot(0));
        let order = Order::Mint {
            slot: Slot(0),
            goods: Goods {
                items: BTreeMap::from([(KIND, 1)]),
                ..Goods::default()
            },
            reason: "found".to_owned(),
        };
        let nowhere = AssetSlot {
            holder: Holder::World,
            slot: Slot(0),
        };
        return (order, passage(items.len() as u64, nowhere, here(Slot(0))));
    }
    let number = dice % items.len() as u64;
    let slot = &mut items[usize::try_from(number).expect("few items")];
    let (from, to) = (*slot, Slot(1 - slot.0));
    *slot = to;
    let order = Order::Move {
        from,
        to,
        assets: Assets::item(Serial(number + 1), KIND),
    };
    (order, passage(number + 1, here(from), here(to)))
}

fn passage(serial: u64, from: AssetSlot, to: AssetSlot) -> Passage {
    Passage {
        serial: Serial(serial),
        kind: KIND,
        from,
        to,
    }
}

fn ordered(number: u64, order: &Order) -> Event {
    event(
        Subject::Entity(PLAYER, Part::Base),
        Body::Ordered {
            number: TransferNumber(number),
            order: order.clone(),
        },
    )
}

fn entered(number: u64, at: LogPosition, (order, passage): (Order, Passage)) -> Event {
    let entry = Entry {
        number: EntryNumber(number),
        at,
        wall: WallTime(number),
        of: TransferId {
            asker: PLAYER,
            number: TransferNumber(number),
        },
        holder: ACCOUNT,
        order: Some(order),
        outcome: Outcome::Posted,
        postings: Vec::new(),
        passages: vec![passage],
    };
    event(
        Subject::Owner,
        Body::Entered {
            notice: NoticeNumber(number),
            entry: Some(Box::new(entry)),
        },
    )
}

/// A unique change: numbers like those of a game, which compress similarly.
fn changed(number: u64, cell: u64, text: usize) -> Event {
    let mixed = (number * 131 + cell).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    event(
        Subject::Entity(EntityId(1_000 * cell + mixed % 500), Part::Cell),
        Body::Changed {
            member: MemberId(u16::try_from(mixed % PROPERTIES).expect("few")),
            change: Located::whole(match text {
                0 => Value::Int((mixed >> 40).cast_signed()),
                length => Value::Bytes(format!("{mixed:x}").bytes().cycle().take(length).collect()),
            }),
        },
    )
}

fn event(subject: Subject, body: Body) -> Event {
    Event {
        subject,
        cause: Cause(0),
        history: None,
        body,
    }
}

impl Archive {
    /// Opens an owner's log.
    async fn open(&mut self, store: &Store, owner: OwnerId, kind: OwnerKind) {
        self.append(store, owner, &[], true).await;
        let tail = self.tails[&owner];
        let opening = OpeningRecord {
            epoch: EPOCH,
            number: tail.batch,
            hash: tail.hash,
        };
        let record = OwnerRecord {
            kind,
            shard: FIRST_SHARD,
            epoch: EPOCH,
            process: ProcessId(1),
            call_generation: 0,
        };
        let write = |transaction: Transaction| async move {
            transaction.set(&owner_key(owner), &record.encode())?;
            transaction.set(&opening_key(owner, EPOCH), &opening.encode())
        };
        store.run_repeatable(write).await.expect("the store takes it");
    }

    /// Writes the cursor of each log.
    async fn write_cursors(&self, store: &Store) {
        for (owner, tail) in &self.tails {
            let cursor = Cursor {
                batch: tail.batch,
                hash: tail.hash,
                event: tail.event,
                epoch: EPOCH,
            };
            let write =
                |transaction: Transaction| async move { transaction.set(&cursor_key(*owner), &cursor.encode()) };
            store.run_repeatable(write).await.expect("the store takes it");
        }
    }

    /// Closes a batch and archives it.
    async fn close(&mut self, store: &Store, owner: OwnerId, events: Vec<Event>) -> LogPosition {
        self.append(store, owner, &events, false).await
    }

    async fn append(&mut self, store: &Store, owner: OwnerId, events: &[Event], opens: bool) -> LogPosition {
        let mut gathering = Gathering::default();
        events.iter().for_each(|event| gathering.record(event));
        let imprint = Imprint {
            realm: "bench".to_owned(),
            owner,
            epoch: EPOCH,
            schema: Hash::default(),
        };
        let tail = self.tails.entry(owner).or_default();
        let FrozenBatch {
            number, hash, bytes, ..
        } = gathering.freeze(&imprint, tail, Tick(1), WallTime(1), opens);
        self.tree.push(hash);
        self.events += events.len() as u64;
        self.bytes += bytes.len();
        self.leaves.push(Leaf {
            leaf: LeafIndex(self.made),
            owner,
            batch: number,
            wall: WallTime(1),
            archived: ArchivedBatch::Whole(bytes),
        });
        self.made += 1;
        if self.bytes > SEGMENT_BYTES * 9 / 10 || self.leaves.len() == SEGMENT_LEAVES {
            self.seal(store).await;
        }
        LogPosition { owner, batch: number }
    }

    /// Writes a segment of the pending batches, and the tree.
    async fn seal(&mut self, store: &Store) {
        let leaves = std::mem::take(&mut self.leaves);
        self.bytes = 0;
        if leaves.is_empty() {
            return;
        }
        let places: Vec<_> = leaves.iter().map(|leaf| (leaf.owner, leaf.batch, leaf.leaf)).collect();
        let (segment, blocks) = segment::seal(FIRST_SHARD, leaves).expect("it can be compressed");
        let tree = Tree {
            size: self.tree.size(),
            peaks: self.tree.peaks().to_vec(),
        };
        let write = |transaction: Transaction| {
            let (segment, blocks, places, tree) = (&segment, &blocks, &places, &tree);
            async move {
                for (owner, batch, leaf) in places {
                    transaction.set(&place_key(*owner, *batch), &encode_place(*leaf))?;
                }
                transaction.set(&tree_key(FIRST_SHARD), &tree.encode())?;
                write_segment(&transaction, segment, blocks)
            }
        };
        store.run_repeatable(write).await.expect("the store takes it");
    }
}
