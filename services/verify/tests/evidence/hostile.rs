//! Evidence made by an attacker who can sign anything.

use std::collections::BTreeMap;

use annals_event::{
    Body, Cause, Event, Gathering, Imprint, Subject, Tail,
    ledger::{Account, AssetSlot, Entry, Goods, Holder, Order, Outcome, Passage, Posting, RefusalReason, Side},
};
use annals_evidence::{
    Answer, Bundle, BundleError, Excerpt, LEDGER_SHARD, Proven, Question, ShardLeaf, ShardLog, Span, TradeStage,
};
use annals_ids::{
    AssetKind, BatchNumber, DatabaseId, EntityId, EntryNumber, Epoch, Hash, LeafIndex, LogPosition, NoticeNumber,
    OwnerId, Part, Serial, Slot, Tick, TradeId, TransferId, TransferNumber, WallTime,
};
use annals_proof::{Checkpoint, KeyKind, KeyName, SignedNote, SignerKey, TreeHead, succession::KeyRecord};

use crate::archive::NAME;

const HOLDER: DatabaseId = DatabaseId(100);
const OTHER: DatabaseId = DatabaseId(101);
const ASKER: EntityId = EntityId(1_000);
const KIND: AssetKind = AssetKind(2);

/// Items that one entry creates.
const MADE: u32 = 64;

fn place(holder: Holder) -> AssetSlot {
    let slot = Slot(0);
    AssetSlot { holder, slot }
}

/// The single batch of a log.
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

/// Entries that give one account items, each the maximum per entry.
fn hoard(entries: u64) -> Bundle {
    bundle(Question::Account(HOLDER), &(1..=entries).map(entry).collect::<Vec<_>>())
}

const TRADE: TradeId = TradeId(TransferId {
    asker: ASKER,
    number: TransferNumber(1),
});

/// The first entry of a trade, which puts a number of items on the table.
fn proposal(items: u64) -> Entry {
    let (from, to) = (place(Holder::World), place(Holder::Trade(TRADE, Side::Proposer)));
    let passages = (1..=items).map(|serial| Passage {
        serial: Serial(serial),
        kind: KIND,
        from,
        to,
    });
    let (with, expires) = (OTHER, WallTime(1_000));
    Entry {
        of: TRADE.0,
        order: Some(Order::Propose { with, expires }),
        outcome: Outcome::Pending,
        passages: passages.collect(),
        ..entry(1)
    }
}

/// An entry without order and effect.
fn nothing(number: u64, passages: Vec<Passage>) -> Entry {
    Entry {
        of: TRADE.0,
        order: None,
        outcome: Outcome::Refused(RefusalReason::NotOpen),
        passages,
        ..entry(number)
    }
}

/// A bundle of these entries and the orders that they answer.
fn bundle(question: Question, entries: &[Entry]) -> Bundle {
    let asked: Vec<_> = entries
        .iter()
        .filter_map(|entry| Some((entry.of.number, entry.order.clone()?)))
        .collect();
    let orders = asked
        .into_iter()
        .map(|(number, order)| (Subject::Entity(ASKER, Part::Base), Body::Ordered { number, order }));
    let entered = entries.iter().map(|entry| {
        let (notice, entry) = (NoticeNumber(entry.number.0), Some(Box::new(entry.clone())));
        (Subject::Owner, Body::Entered { notice, entry })
    });
    let (orders, entered) = (batch(1, orders), batch(9, entered));
    let take = |batch: &[u8], leaf, place| Proven {
        excerpt: Excerpt::take(batch, place).expect("an event"),
        leaf: ShardLeaf {
            shard: LEDGER_SHARD,
            leaf: LeafIndex(leaf),
        },
        path: Vec::new(),
    };
    let (mut events, mut before) = (Vec::new(), 0);
    for (number, entry) in (0..).zip(entries) {
        events.push(take(&entered, 1, number));
        if entry.order.is_some() {
            events.push(take(&orders, 0, before));
            before += 1;
        }
    }
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
        question,
        log: ShardLog {
            checkpoint: note,
            keys: vec![KeyRecord { key, change }],
            continued: BTreeMap::new(),
        },
        others: BTreeMap::new(),
        schemas: BTreeMap::new(),
        events,
    }
}

#[test]
fn evidence_that_would_exhaust_memory_is_refused() {
    let (few, many) = (hoard(20), hoard(200));
    few.answer().expect("it hangs together");
    // 200 steps, each with everything created before it: more than a million items in a file of some hundred kilobytes.
    assert_eq!(many.answer(), Err(BundleError::TooManyAssets));
}

#[test]
fn refused_returns_count_as_items_still_on_the_table() {
    // The second entry claims to take all items back, and to be refused: they stay on the table in each later step.
    let hoarded = |items, steps: u64| {
        let first = proposal(items);
        let back = first.passages.iter().map(|passage| Passage {
            from: passage.to,
            to: passage.from,
            ..*passage
        });
        let mut entries = vec![first.clone(), nothing(2, back.collect())];
        entries.extend((3..=steps).map(|number| nothing(number, Vec::new())));
        bundle(Question::Trade(TRADE), &entries).answer()
    };
    hoarded(500, 20).expect("it hangs together");
    assert_eq!(hoarded(5_000, 150), Err(BundleError::TooManyAssets));
}

#[test]
fn many_payments_of_one_kind_count_as_one_asset() {
    // A thousand payments of units of one kind: one asset in each step.
    let paid = |number| {
        let account = |holder| Account {
            place: place(holder),
            kind: KIND,
        };
        let posting = |holder, amount| Posting {
            account: account(holder),
            amount,
        };
        Entry {
            passages: Vec::new(),
            postings: vec![posting(Holder::World, -1), posting(Holder::Stored(HOLDER), 1)],
            ..entry(number)
        }
    };
    let bundle = bundle(Question::Account(HOLDER), &(1..=1_500).map(paid).collect::<Vec<_>>());
    bundle.answer().expect("that is not too much");
}

#[test]
fn refused_orders_of_strangers_are_rejected_in_bundles() {
    let refused = |holder, number: u64| Entry {
        of: TransferId {
            asker: ASKER,
            number: TransferNumber(number),
        },
        holder,
        order: Some(Order::Cancel { trade: TRADE }),
        outcome: Outcome::Refused(RefusalReason::NotParty),
        passages: Vec::new(),
        ..entry(number)
    };
    let with = |second| bundle(Question::Trade(TRADE), &[proposal(1), second]).answer();
    with(refused(OTHER, 2)).expect("the partner was refused something");
    let stray = with(refused(DatabaseId(999), 2));
    assert!(matches!(stray, Err(BundleError::Stray { entry: 2, .. })), "{stray:?}");
    let mut proposal = proposal(1);
    proposal.number = EntryNumber(2);
    let before = bundle(Question::Trade(TRADE), &[refused(HOLDER, 1), proposal]).answer();
    assert!(matches!(before, Err(BundleError::Stray { entry: 1, .. })), "{before:?}");
}

#[test]
fn a_refused_proposal_begins_no_trade() {
    let refused = Entry {
        outcome: Outcome::Refused(RefusalReason::TooManyOpen),
        ..proposal(0)
    };
    let after = |entry: Entry| bundle(Question::Trade(TRADE), &[refused.clone(), entry]).answer();
    let Ok(Answer::Trade(trade)) = bundle(Question::Trade(TRADE), std::slice::from_ref(&refused)).answer() else {
        panic!("it is an answer");
    };
    let stage = trade.stage_within(&Span::default());
    assert_eq!(stage, Some(TradeStage::Refused(RefusalReason::TooManyOpen)));
    let cancelled = Entry {
        of: TransferId {
            asker: ASKER,
            number: TransferNumber(2),
        },
        order: Some(Order::Cancel { trade: TRADE }),
        outcome: Outcome::Voided,
        passages: Vec::new(),
        ..entry(2)
    };
    let done = after(cancelled);
    assert!(matches!(done, Err(BundleError::Contradictory(_))), "{done:?}");
}
