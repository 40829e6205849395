//! Reads of the outbox give the same notices from any position and for any page sizes: many small pages, and one of
//! many chunks.

use annals_db::ledger::read_notices;
use annals_event::{
    ledger::{Delivery, LedgerUpdate, Notice, Statement},
    put_bytes,
};
use annals_ids::{DatabaseId, EntityId, NoticeNumber, OwnerId};
use annals_store::{
    MemoryStore, Store, StoreError, immediate,
    layout::{chunks, ledger::notices_key},
};

/// Number of deliveries that make a notice larger than a chunk, and a page of some such notices larger than one read.
const LARGE: u64 = 8_000;

/// More pages than one read covers.
const SMALL_PAGES: u64 = 600;

fn notice(number: u64, deliveries: u64) -> Notice {
    let statement = Statement {
        holder: DatabaseId(number),
        ..Statement::default()
    };
    let delivery = |to| Delivery {
        to: EntityId(to),
        home: OwnerId(1),
        update: LedgerUpdate::Statement(Box::new(statement.clone())),
    };
    Notice {
        entry: None,
        deliveries: (1..=deliveries).map(delivery).collect(),
    }
}

/// Writes a page as a batch does.
fn write(store: &Store, page: &[(NoticeNumber, Notice)]) {
    let mut bytes = Vec::new();
    for (_, notice) in page {
        let mut encoded = Vec::new();
        notice.write(&mut encoded);
        put_bytes(&mut bytes, &encoded);
    }
    let (last, _) = page.last().expect("a page is not empty");
    let transaction = store.begin();
    for (key, chunk) in chunks(&notices_key(*last), &bytes) {
        transaction.set(&key, chunk).expect("a small row");
    }
    immediate(transaction.commit()).expect("it commits");
}

#[test]
fn the_outbox_reads_equally_from_any_start() {
    let store = MemoryStore::new().store();
    let mut notices = Vec::new();
    let mut add = |deliveries: &[u64]| {
        let first = notices.len() as u64 + 1;
        let page: Vec<(NoticeNumber, Notice)> = (first..)
            .zip(deliveries)
            .map(|(number, count)| (NoticeNumber(number), notice(number, *count)))
            .collect();
        write(&store, &page);
        notices.extend(page);
    };
    add(&[1, 2, 3]);
    add(&[LARGE; 6]);
    for _ in 0..SMALL_PAGES {
        add(&[1]);
    }
    add(&[0, LARGE, 1]);
    let end = notices.len() as u64;
    for after in (0..10).chain([SMALL_PAGES / 2]).chain(end - 4..=end + 1) {
        for limit in [1, 5, 10_000] {
            let read = immediate(read_notices(&store, NoticeNumber(after), limit)).expect("it is whole");
            let expected: Vec<_> = notices.iter().skip(after as usize).take(limit).cloned().collect();
            assert!(read == expected, "{limit} after {after}: {} were read", read.len());
        }
    }
    // A page in the middle is missing, which a reader that begins after it cannot detect.
    let gone = NoticeNumber(SMALL_PAGES / 2);
    let transaction = store.begin();
    for (key, _) in chunks(&notices_key(gone), &[0]) {
        transaction.clear(&key).expect("a small row");
    }
    immediate(transaction.commit()).expect("it commits");
    let read = |after| immediate(read_notices(&store, NoticeNumber(after), 10_000));
    assert!(
        matches!(read(0), Err(StoreError::Corrupt(_))),
        "a missing page is an error"
    );
    assert_eq!(read(gone.0).map(|read| read.len() as u64), Ok(end - gone.0));
}
