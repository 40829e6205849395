//! Evidence by somebody who means harm and signs what they like.

use std::collections::BTreeMap;

use annals_event::{
    Body, Cause, Event, Gathering, Imprint, Subject, Tail,
    ledger::{Entry, Goods, Holder, Order, Outcome, Passage, Place},
};
use annals_evidence::{Bundle, BundleError, Excerpt, Proven, Question};
use annals_ids::{
    AssetKind, BatchNumber, DatabaseId, EntityId, EntryNumber, Epoch, Hash, LeafIndex, LogPosition, NoticeNumber,
    OwnerId, Part, Serial, Slot, Tick, TransferId, TransferNumber, WallTime,
};
use annals_proof::{Checkpoint, KeyKind, KeyName, SignedNote, SignerKey, TreeHead, succession::KeyRecord};

use crate::archive::NAME;

const HOLDER: DatabaseId = DatabaseId(100);
const ASKER: EntityId = EntityId(1_000);
const KIND: AssetKind = AssetKind(2);

/// Items that an entry makes.
const MADE: u32 = 64;

fn place(holder: Holder) -> Place {
    let slot = Slot(0);
    Place { holder, slot }
}

/// The batch of a log that has only one.
fn batch(owner: u32, bodies: impl Iterator<Item = (Subject, Body)>) -> Vec<u8> {
    let mut gathering = Gathering::default();
    for (subject, body) in bodies {
        gathering.record(&Event {
            subject,
            cause: Cause(0),
            history: None,
            body,
        });
    }
    let imprint = Imprint {
        realm: "hostile".to_owned(),
        owner: OwnerId(owner),
        epoch: Epoch(1),
        schema: Hash::default(),
    };
    let frozen = gathering.freeze(&imprint, &mut Tail::default(), Tick(0), WallTime(1), false);
    frozen.bytes
}

fn order() -> Order {
    Order::Mint {
        slot: Slot(0),
        goods: Goods {
            units: BTreeMap::new(),
            items: BTreeMap::from([(KIND, MADE)]),
        },
        reason: "hoarded".to_owned(),
    }
}

fn entry(number: u64) -> Entry {
    let (from, to) = (place(Holder::World), place(Holder::Stored(HOLDER)));
    let made = (0..u64::from(MADE)).map(|item| Passage {
        serial: Serial(number * u64::from(MADE) + item),
        kind: KIND,
        from,
        to,
    });
    Entry {
        number: EntryNumber(number),
        at: LogPosition {
            owner: OwnerId(1),
            batch: BatchNumber(1),
        },
        wall: WallTime(1),
        of: TransferId {
            asker: ASKER,
            number: TransferNumber(number),
        },
        holder: HOLDER,
        order: Some(order()),
        outcome: Outcome::Posted,
        postings: Vec::new(),
        passages: made.collect(),
    }
}

/// A bundle in which somebody is given so many times as many items as an entry can make.
fn hoard(entries: u64) -> Bundle {
    let orders = (1..=entries).map(|number| {
        let (number, order) = (TransferNumber(number), order());
        (Subject::Entity(ASKER, Part::Base), Body::Ordered { number, order })
    });
    let told = (1..=entries).map(|number| {
        let (notice, entry) = (NoticeNumber(number), Some(Box::new(entry(number))));
        (Subject::Owner, Body::Entered { notice, entry })
    });
    let (orders, told) = (batch(1, orders), batch(9, told));
    let take = |batch: &[u8], leaf, number: u64| Proven {
        excerpt: Excerpt::take(batch, u32::try_from(number).expect("small")).expect("an event"),
        leaf: LeafIndex(leaf),
        path: Vec::new(),
    };
    let events = (0..entries).flat_map(|number| [take(&told, 1, number), take(&orders, 0, number)]);
    let key = SignerKey::from_seed(KeyName::new(NAME).expect("a name"), KeyKind::Note, &[7; 32]);
    let (size, root) = (2, Hash::default());
    let checkpoint = Checkpoint {
        origin: NAME.to_owned(),
        head: TreeHead { size, root },
        extensions: Vec::new(),
    };
    let mut note = SignedNote::new(checkpoint.to_string()).expect("a note");
    note.sign(&key, 0);
    let (key, change) = (key.verifier(), None);
    Bundle {
        question: Question::Account(HOLDER),
        checkpoint: note,
        keys: vec![KeyRecord { key, change }],
        continued: BTreeMap::new(),
        schemas: BTreeMap::new(),
        events: events.collect(),
    }
}

#[test]
fn what_would_take_more_memory_than_there_is_is_not_told() {
    let (few, many) = (hoard(20), hoard(200));
    few.answer().expect("it hangs together");
    // 200 steps, in each of which all that was made before is held: more than a million in a file of some hundred kilobytes.
    assert_eq!(many.answer(), Err(BundleError::Told));
}
