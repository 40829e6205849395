//! The journal gathers no more than one transaction of db can take: neither in bytes, nor in what orders make db write.

use annals_event::{
    BaseCreation, Body, Imprint, OwnerState, Subject,
    ledger::{Order, STATEMENT_BYTES},
};
use annals_ids::{DatabaseId, EntityId, Epoch, Hash, OwnerId, Part, Tick, TradeId, TransferNumber, TypeId, WallTime};
use annals_node::journal::{INPUT_LIMIT, Journal, ORDERS_LIMIT};

const ENTITY: EntityId = EntityId(4);

fn journal() -> Journal {
    let imprint = Imprint {
        realm: "test".into(),
        owner: OwnerId(1),
        epoch: Epoch(1),
        schema: Hash::ZERO,
    };
    let mut journal = Journal::new(OwnerState::new(OwnerId(1), Part::Base), imprint);
    live(&mut journal, ENTITY, DatabaseId(9));
    journal
}

fn live(journal: &mut Journal, entity: EntityId, database: DatabaseId) {
    let creation = BaseCreation {
        type_id: TypeId(0),
        database,
        checkout: 1,
        properties: Vec::new(),
        cell_properties: Vec::new(),
    };
    let subject = Subject::Entity(entity, Part::Base);
    journal.record(subject, false, Body::BaseCreated(Box::new(creation)));
}

fn order(journal: &mut Journal, number: u64) {
    let body = Body::Ordered {
        number: TransferNumber(number),
        order: Order::Cancel {
            trade: TradeId::default(),
        },
    };
    journal.record(Subject::Entity(ENTITY, Part::Base), false, body);
}

#[test]
fn orders_reserve_more_batch_space_than_their_bytes() {
    let mut journal = journal();
    let mut orders = 0;
    while !journal.is_full() {
        journal.begin();
        orders += 1;
        assert!(orders < 10_000, "the journal never fills");
        order(&mut journal, orders);
    }
    assert!(journal.length() < ORDERS_LIMIT / 100, "{} bytes", journal.length());
    // Anything recorded beyond the limit goes into a batch of its own; once the first is closed, there is room again.
    journal.begin();
    order(&mut journal, orders + 1);
    assert!(journal.is_full());
    let first = journal.freeze(Tick(1), WallTime(1), false);
    let batch = annals_event::Batch::read(&first.bytes).expect("an intact batch");
    assert_eq!(batch.header.events, u32::try_from(orders + 1).expect("few"));
    assert!(!journal.is_full());
}

#[test]
fn activations_reserve_batch_space_for_statements() {
    let mut journal = journal();
    let mut lives = 1;
    while !journal.is_full() {
        journal.begin();
        lives += 1;
        assert!(lives < 1_000, "the journal never fills");
        live(&mut journal, EntityId(100 + lives), DatabaseId(lives));
    }
    assert_eq!(lives as usize, ORDERS_LIMIT / STATEMENT_BYTES + 1);
    // An entity that is not stored has no holdings.
    journal.freeze(Tick(1), WallTime(1), false);
    for other in 0..100 {
        journal.begin();
        live(&mut journal, EntityId(10_000 + other), DatabaseId(0));
    }
    assert!(!journal.is_full());
}

#[test]
fn orders_of_one_input_fit_one_transaction() {
    let mut journal = journal();
    journal.begin();
    let mut orders = 0;
    while journal.room() > 0 {
        orders += 1;
        assert!(orders < 10_000, "there is always room");
        order(&mut journal, orders);
    }
    assert!(orders > 20 && journal.length() < INPUT_LIMIT / 100, "{orders} orders");
    journal.begin();
    assert_eq!(journal.room(), INPUT_LIMIT, "the next input has its own");
}
