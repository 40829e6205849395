//! Keys sort correctly and do not overlap; stored forms are decoded, and malformed ones rejected.

use annals_ids::{
    BatchNumber, CallNumber, DatabaseId, EntityId, Epoch, EventNumber, Hash, LeafIndex, NoticeNumber, OwnerId,
    OwnerKind, ProcessId, Shard, WallTime, WorldTime,
};
use proptest::prelude::*;

use super::archive::{FoldLease, Hole, Tree};
use super::database::{Account, Checkout, IndexedValue};
use super::director::{Counter, Realm, Term, Upgrade};
use super::lineage::{self, Lineage};
use super::owners::{Cursor, OpeningRecord, OwnerRecord};
use super::snapshots::{Area, Position};
use super::{
    adoptions, archive, bans, checkpoints, chunks, database, director, idempotency, mark, migrations, owners, personal,
    read_chunks, retention, segments, setting_changes, shards, snapshots, tiles,
};
use crate::{KeyRange, MemoryStore, StoreError, immediate};

/// A key of each kind, in the order of their prefixes, for an owner, a shard and a number.
fn one_of_each(owner: OwnerId, shard: Shard, number: u64) -> Vec<Vec<u8>> {
    let (batch, hash) = (BatchNumber(number), Hash([7; 32]));
    vec![
        mark::layout_key(),
        director::counter_key(Counter::Entities),
        director::realm_key(),
        director::schema_key(hash),
        owners::owner_key(owner),
        owners::opening_key(owner, Epoch(number)),
        owners::cursor_key(owner),
        archive::leaf_key(shard, LeafIndex(number)),
        archive::place_key(owner, batch),
        archive::tree_key(shard),
        snapshots::entity_key(owner, Area::Second, EntityId(number)),
        snapshots::position_key(owner),
        database::entity_key(DatabaseId(number)),
        database::indexed_key(("Avatar", "level"), &IndexedValue::Unsigned(number), DatabaseId(number)),
        database::unique_key(("Avatar", "name"), &IndexedValue::Bytes(&hash.0)),
        database::checkout_key(DatabaseId(number)),
        database::account_key(&hash.0),
        director::term_key(),
        director::map_key(),
        archive::lease_key(shard),
        archive::hole_key(owner, batch),
        database::name_key_key(),
        idempotency::record_key(b"k").expect("a short key").to_vec(),
        segments::index_key(shard, LeafIndex(number)),
        segments::block_key(shard, LeafIndex(number), 0),
        lineage::key_of(LeafIndex(number)),
        migrations::key_of(u32::try_from(number).unwrap_or(u32::MAX)),
        migrations::converting_key(),
        lineage::unfinished_key(),
        tiles::tile_key(shard, u8::try_from(number).unwrap_or(u8::MAX), number),
        checkpoints::checkpoint_key(shard, number),
        personal::key_key(DatabaseId(number)),
        personal::forgotten_key(DatabaseId(number)),
        adoptions::key_of(u32::try_from(number).unwrap_or(u32::MAX)),
        director::leader_connection_key(),
        director::upgrade_key(),
        setting_changes::key_of(number),
        shards::count_key(),
        shards::parting_key(shard, EntityId(number)),
        shards::ended_key(EntityId(number)),
        shards::change_key(NoticeNumber(number)),
        retention::ended_key(shard, EntityId(number), LeafIndex(number)),
        bans::key_of(DatabaseId(number), u32::try_from(number).unwrap_or(u32::MAX)),
        bans::session_key(DatabaseId(number), owner),
    ]
}

#[test]
fn key_ranges_of_kinds_do_not_overlap() {
    let low = one_of_each(OwnerId(0), Shard(0), 0);
    let high = one_of_each(OwnerId(u32::MAX), Shard(u16::MAX), u64::MAX);
    for (kind, (low, high)) in low.iter().zip(&high).enumerate() {
        assert!(low <= high);
        // Whatever the numbers, the chunks of a kind's last key come before the next kind's first.
        if let Some(next) = one_of_each(OwnerId(0), Shard(0), 0).get(kind + 1) {
            assert!(
                KeyRange::prefix(high).end <= next[..],
                "kind {kind} reaches into the next"
            );
        }
    }
}

#[test]
fn counter_keys_do_not_overlap() {
    let counters = [
        Counter::Entities,
        Counter::Owners,
        Counter::Processes,
        Counter::Checkouts,
        Counter::CallGenerations,
    ];
    let keys: std::collections::BTreeSet<_> = counters.map(director::counter_key).into();
    assert_eq!(keys.len(), counters.len());
    assert_eq!(director::decode_counter(None), Ok(1), "numbers begin at 1");
    assert_eq!(director::decode_counter(Some(&director::encode_counter(9))), Ok(9));
}

/// Numbers both close together and far apart, so that every byte of a key matters.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4_u64, 250..260_u64, any::<u64>()]
}

fn owner() -> impl Strategy<Value = OwnerId> {
    prop_oneof![0..4_u32, 250..260_u32, any::<u32>()].prop_map(OwnerId)
}

fn hash() -> impl Strategy<Value = Hash> {
    any::<[u8; 32]>().prop_map(Hash)
}

/// Checks that a stored form is decoded, and that it is rejected if truncated or extended.
fn read_back<T: PartialEq + std::fmt::Debug>(
    value: &T,
    stored: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, StoreError>,
) -> Result<(), TestCaseError> {
    read_back_beyond(value, None, stored, decode)
}

/// The same for a value with an optional number at its end, without which it has this form.
fn read_back_beyond<T: PartialEq + std::fmt::Debug>(
    value: &T,
    shorter: Option<&[u8]>,
    stored: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, StoreError>,
) -> Result<(), TestCaseError> {
    let decoded = decode(stored);
    prop_assert_eq!(decoded.as_ref(), Ok(value));
    let longer = [stored, &[0]].concat();
    let zero = [shorter.unwrap_or(stored), &[0; 8]].concat();
    let cut = (0..stored.len())
        .map(|end| &stored[..end])
        .filter(|cut| Some(*cut) != shorter);
    for broken in cut.chain([&longer[..], &zero[..]]) {
        prop_assert!(
            matches!(decode(broken), Err(StoreError::Corrupt(_))),
            "{} of {} B",
            broken.len(),
            stored.len()
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn keys_sort_as_their_numbers(one in (owner(), number()), two in (owner(), number())) {
        let order = one.cmp(&two);
        let keys = |(owner, number): (OwnerId, u64)| {
            [
                owners::opening_key(owner, Epoch(number)),
                archive::place_key(owner, BatchNumber(number)),
                archive::hole_key(owner, BatchNumber(number)),
                snapshots::entity_key(owner, Area::First, EntityId(number)),
            ]
        };
        for (one, two) in keys(one).into_iter().zip(keys(two)) {
            prop_assert_eq!(one.cmp(&two), order);
        }
        prop_assert_eq!(owners::owner_key(one.0).cmp(&owners::owner_key(two.0)), one.0.cmp(&two.0));
        let leaf = |number| archive::leaf_key(Shard(3), LeafIndex(number));
        prop_assert_eq!(leaf(one.1).cmp(&leaf(two.1)), one.1.cmp(&two.1));
    }

    #[test]
    fn ranges_contain_exactly_their_own_keys(of in owner(), key_of in owner(), after in 0..400_u64, at in number()) {
        let own = of == key_of;
        prop_assert!(owners::owners().contains(&owners::owner_key(key_of)));
        prop_assert_eq!(owners::openings(of).contains(&owners::opening_key(key_of, Epoch(at))), own);
        for area in [Area::First, Area::Second] {
            let (image, itself) = (snapshots::entity_key(key_of, area, EntityId(at)), snapshots::own_key(key_of, area));
            prop_assert_eq!(snapshots::entities(of, area).contains(&image), own);
            prop_assert!(!snapshots::entities(of, area).contains(&itself));
            prop_assert_eq!(snapshots::area(of, area).contains(&image), own);
            prop_assert_eq!(snapshots::area(of, area).contains(&itself), own);
            prop_assert!(!snapshots::area(of, area.other()).contains(&image));
        }
        let places = archive::places_after(of, BatchNumber(after));
        prop_assert_eq!(places.contains(&archive::place_key(key_of, BatchNumber(at))), own && at > after);
        prop_assert!(archive::holes().contains(&archive::hole_key(key_of, BatchNumber(at))));
        prop_assert_eq!(archive::holes_of(of).contains(&archive::hole_key(key_of, BatchNumber(at))), own);
        prop_assert!(archive::leaves(Shard(4)).contains(&archive::leaf_key(Shard(4), LeafIndex(at))));
        prop_assert!(!archive::leaves(Shard(4)).contains(&archive::leaf_key(Shard(5), LeafIndex(at))));
        prop_assert!(database::entities().contains(&database::entity_key(DatabaseId(at))));
    }

    #[test]
    fn keys_round_trip(owner in owner(), number in number(), chunk in any::<u16>()) {
        prop_assert_eq!(owners::owner_of(&owners::owner_key(owner)), Ok(owner));
        let hole = archive::hole_key(owner, BatchNumber(number));
        prop_assert_eq!(Hole::place(&hole), Ok((owner, BatchNumber(number))));
        let entity = [&snapshots::entity_key(owner, Area::Second, EntityId(number))[..], &chunk.to_be_bytes()].concat();
        prop_assert_eq!(snapshots::entity_of(&entity), Ok(EntityId(number)));
        prop_assert!(owners::owner_of(b"").is_err() && Hole::place(b"\x13").is_err() && snapshots::entity_of(b"").is_err());
    }

    #[test]
    fn owner_values_round_trip(numbers in any::<[u64; 4]>(), shard in any::<u16>(), kind in 0..OwnerKind::ALL.len(), hash in hash()) {
        let [epoch, process, batch, event] = numbers;
        let (epoch, process, batch) = (Epoch(epoch), ProcessId(process), BatchNumber(batch));
        let kind = OwnerKind::ALL[kind];
        let record = OwnerRecord { kind, shard: Shard(shard), epoch, process, call_generation: event % 3 };
        let shorter = OwnerRecord { call_generation: 0, ..record }.encode();
        read_back_beyond(&record, Some(&shorter), &record.encode(), OwnerRecord::decode)?;
        let opening = OpeningRecord { epoch, number: batch, hash };
        read_back(&opening, &opening.encode(), OpeningRecord::decode)?;
        let cursor = Cursor { batch, hash, event: EventNumber(event), epoch };
        read_back(&cursor, &cursor.encode(), |value| Cursor::decode(Some(value)))?;
        prop_assert_eq!(Cursor::decode(None), Ok(Cursor::default()));
    }

    #[test]
    fn archive_values_round_trip(size in number(), term in any::<u64>(), hashes in prop::collection::vec(hash(), 64), until in any::<u64>()) {
        let tree = Tree { size, peaks: hashes[..size.count_ones() as usize].to_vec() };
        read_back(&tree, &tree.encode(), |value| Tree::decode(Some(value)))?;
        prop_assert_eq!(Tree::decode(None), Ok(Tree::default()));
        let lease = FoldLease { term };
        read_back(&lease, &lease.encode(), |value| FoldLease::decode(Some(value)))?;
        let hole = Hole { after: hashes[0], named: hashes[1], until: BatchNumber(until) };
        read_back(&hole, &hole.encode(), Hole::decode)?;
        let leaf = LeafIndex(term);
        read_back(&leaf, &archive::encode_place(leaf), archive::decode_place)?;
        for area in [Area::First, Area::Second] {
            let position = Position { batch: BatchNumber(term), area };
            read_back(&position, &position.encode(), Position::decode)?;
        }
    }

    #[test]
    fn database_and_director_values_round_trip(numbers in any::<[u64; 3]>(), owner in owner(), hash in hash(), password in ".{0,40}") {
        let [one, two, three] = numbers;
        let upgrade = Upgrade { to: hash, renames: vec![password.clone(), String::new(), password.clone()] };
        read_back(&upgrade, &upgrade.encode(), Upgrade::decode)?;
        let checkout = Checkout { owner, number: one };
        read_back(&checkout, &checkout.encode(), Checkout::decode)?;
        let account = Account { database: DatabaseId(one), password };
        prop_assert_eq!(Account::decode(&account.encode()), Ok(account));
        let term = Term { number: one, process: ProcessId(two), beat: three, world: WorldTime(one ^ three) };
        let shorter = Term { world: WorldTime(0), ..term }.encode();
        read_back_beyond(&term, Some(&shorter), &term.encode(), |value| Term::decode(Some(value)))?;
        let realm = Realm { began: WallTime(one), schema: hash };
        read_back(&realm, &realm.encode(), Realm::decode)?;
        let id = DatabaseId(one);
        read_back(&id, &database::encode_id(id), database::decode_id)?;
    }
}

proptest! {
    #[test]
    fn values_of_shards_round_trip(numbers in any::<[u64; 4]>(), shard in any::<u16>(), hash in hash(), image in any::<Vec<u8>>()) {
        let [one, two, three, four] = numbers;
        let life = Checkout { owner: OwnerId(shard.into()), number: one };
        let mut parting = shards::Parting { database: DatabaseId(two), life, last_cell: CallNumber(0) };
        let without = parting.encode();
        read_back(&parting, &without, shards::Parting::decode)?;
        parting.last_cell = CallNumber(three.max(1));
        read_back_beyond(&parting, Some(&without), &parting.encode(), shards::Parting::decode)?;
        let change = shards::LedgerChange { shard: Shard(shard), leaf: LeafIndex(three) };
        read_back(&change, &change.encode(), shards::LedgerChange::decode)?;
        let ended = shards::EndedCell { wall: WallTime(four), schema: hash, image };
        prop_assert_eq!(shards::EndedCell::decode(&ended.encode()), Ok(ended));
        prop_assert_eq!(shards::change_of(&shards::change_key(NoticeNumber(one))), Ok(NoticeNumber(one)));
        let (parting, wanted) = (shards::parting_key(Shard(shard), EntityId(two)), shards::wanted_key(Shard(shard), EntityId(two)));
        for (key, range) in [(&parting, shards::partings(Shard(shard))), (&wanted, shards::wanted(Shard(shard)))] {
            prop_assert_eq!(shards::entity_of(key), Ok(EntityId(two)));
            prop_assert!(range.contains(key));
        }
    }
}

#[test]
fn a_realm_that_grew_names_what_its_only_shard_had() {
    let alone = shards::AloneUntil {
        leaves: 7,
        notice: NoticeNumber(9),
    };
    let grown = shards::encode_grown(3, alone);
    assert_eq!(shards::decode_grown(Some(&grown)), Ok((3, Some(alone))));
    assert_eq!(shards::decode_count(Some(&grown)), Ok(3));
    assert_eq!(shards::decode_grown(Some(&shards::encode_count(2))), Ok((2, None)));
    for length in (0..grown.len()).filter(|length| *length != 2) {
        let cut = shards::decode_grown(Some(&grown[..length]));
        assert!(matches!(cut, Err(StoreError::Corrupt(_))), "{length} B");
    }
}

#[test]
fn a_realm_has_at_least_one_shard() {
    assert_eq!(shards::decode_count(None), Ok(1));
    assert_eq!(shards::decode_count(Some(&shards::encode_count(3))), Ok(3));
    for count in [0, shards::SHARDS + 1] {
        let decoded = shards::decode_count(Some(&shards::encode_count(count)));
        assert!(matches!(decoded, Err(StoreError::Corrupt(_))), "{count}");
    }
}

proptest! {
    #[test]
    fn restoration_values_round_trip(numbers in any::<[u64; 2]>(), from in ".{0,20}", to in ".{0,20}", backup in ".{0,20}") {
        let [leaf, restored] = numbers;
        let others = Vec::new();
        let lineage = Lineage { leaf: LeafIndex(leaf), others, restored: WallTime(restored), from, to, backup };
        let shorter = lineage.encode();
        read_back(&lineage, &shorter, Lineage::decode)?;
        let lineage = Lineage { others: vec![LeafIndex(restored), LeafIndex(leaf)], ..lineage };
        read_back_beyond(&lineage, Some(&shorter), &lineage.encode(), Lineage::decode)?;
        prop_assert_eq!([0, 1, 2, 3].map(|shard| lineage.leaf_of(Shard(shard)).0), [leaf, restored, leaf, 0]);
        prop_assert!(lineage::restorations().contains(&lineage::key_of(LeafIndex(leaf))));
    }

    #[test]
    fn the_segment_of_a_leaf_is_the_first_that_ends_at_or_after_it(last in number(), leaf in number(), chunk in any::<u16>()) {
        let key = [&segments::index_key(Shard(3), LeafIndex(last))[..], &chunk.to_be_bytes()].concat();
        prop_assert_eq!(segments::last_of(&key), Ok(LeafIndex(last)));
        prop_assert_eq!(segments::indexes_from(Shard(3), LeafIndex(leaf)).contains(&key), last >= leaf);
        prop_assert!(segments::indexes(Shard(3)).contains(&key) && !segments::indexes(Shard(4)).contains(&key));
        let leaf_key = [&archive::leaf_key(Shard(3), LeafIndex(leaf))[..], &chunk.to_be_bytes()].concat();
        prop_assert_eq!(archive::leaf_of(&leaf_key), Ok((LeafIndex(leaf), chunk)));
    }
}

#[test]
fn an_owner_of_no_known_kind_is_refused() {
    let record = OwnerRecord {
        kind: OwnerKind::Cell,
        shard: Shard(1),
        epoch: Epoch(2),
        process: ProcessId(3),
        call_generation: 0,
    };
    let mut stored = record.encode();
    stored[0] = 3;
    assert!(matches!(OwnerRecord::decode(&stored), Err(StoreError::Corrupt(_))));
}

/// Runs a transaction on a store in memory.
fn commit<T>(
    memory: &MemoryStore,
    work: impl AsyncFnOnce(&crate::Transaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    immediate(async {
        let transaction = memory.store().begin();
        let result = work(&transaction).await?;
        transaction.commit().await.map(|_| result)
    })
}

#[test]
fn adjacent_chunked_values_round_trip() {
    let memory = MemoryStore::new();
    let key = |leaf| archive::leaf_key(Shard(0), LeafIndex(leaf));
    let sizes = [0, 1, 89_999, 90_000, 90_001, 5_900_000];
    for (leaf, size) in (254..).zip(sizes) {
        let bytes: Vec<u8> = (0..size).map(|byte: u32| (byte % 251) as u8).collect();
        let key = key(leaf);
        let written = commit(&memory, async |transaction| {
            chunks(&key, &bytes).try_for_each(|(place, piece)| transaction.set(&place, piece))
        });
        assert_eq!(written, Ok(()));
    }
    for (leaf, size) in (254..).zip(sizes) {
        let read = commit(&memory, async |transaction| read_chunks(transaction, &key(leaf)).await);
        let bytes: Vec<u8> = (0..size).map(|byte: u32| (byte % 251) as u8).collect();
        assert!(read == Ok(Some(bytes)), "{size} B at leaf {leaf}");
    }
    assert_eq!(
        commit(&memory, async |transaction| read_chunks(transaction, &key(0)).await),
        Ok(None)
    );
}

#[test]
fn all_openings_of_an_owner_are_read_however_many_there_are() {
    const MANY: u64 = 1_000;
    let memory = MemoryStore::new();
    let opening = |epoch| OpeningRecord {
        epoch: Epoch(epoch),
        number: BatchNumber(epoch * 3),
        hash: Hash([7; 32]),
    };
    let written = commit(&memory, async |transaction| {
        for (owner, epoch) in (1..=MANY).flat_map(|epoch| [6, 7, 8].map(|owner| (OwnerId(owner), epoch))) {
            transaction.set(&owners::opening_key(owner, Epoch(epoch)), &opening(epoch).encode())?;
        }
        Ok(())
    });
    assert_eq!(written, Ok(()));
    for from in [0, 1, 500, MANY, MANY + 1] {
        let read = commit(&memory, async |transaction| {
            owners::read_openings(transaction, OwnerId(7), Epoch(from)).await
        });
        let expected: Vec<OpeningRecord> = (from.max(1)..=MANY).map(opening).collect();
        assert_eq!(read, Ok(expected), "from {from}");
    }
}

#[test]
fn a_missing_chunk_is_an_error() {
    let memory = MemoryStore::new();
    let key = archive::leaf_key(Shard(0), LeafIndex(0));
    let read = commit(&memory, async |transaction| {
        let places: Vec<_> = chunks(&key, &[1; 200_000]).collect();
        transaction.set(&places[0].0, places[0].1)?;
        transaction.set(&places[2].0, places[2].1)?;
        read_chunks(transaction, &key).await
    });
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
}

#[test]
fn a_store_records_its_layout() {
    #[derive(Debug, PartialEq)]
    enum Failed {
        Store(StoreError),
        Other(mark::OtherLayout),
    }
    impl From<StoreError> for Failed {
        fn from(error: StoreError) -> Self {
            Self::Store(error)
        }
    }
    impl From<mark::OtherLayout> for Failed {
        fn from(error: mark::OtherLayout) -> Self {
            Self::Other(error)
        }
    }
    let store = MemoryStore::new().store();
    let read = || immediate(store.read(|transaction| async move { mark::read_layout(&transaction).await }));
    let mark =
        || immediate(store.run_repeatable(|transaction| async move { mark::mark(&transaction).await })).map(drop);
    let put = |value: &[u8]| {
        let transaction = store.begin();
        transaction.set(&mark::layout_key(), value).expect("it fits");
        immediate(transaction.commit()).expect("there is no other writer");
    };
    assert_eq!(read(), Ok(None));
    assert_eq!(mark::check_layout(None), Ok(()));
    assert_eq!((mark(), mark()), (Ok::<_, Failed>(()), Ok(())));
    assert_eq!(read(), Ok(Some(mark::LAYOUT)));
    let found = mark::LAYOUT + 1;
    put(&found.to_be_bytes());
    assert_eq!(mark(), Err(Failed::Other(mark::OtherLayout { found })));
    assert_eq!(mark::check_layout(Some(found)), Err(mark::OtherLayout { found }));
    assert_eq!(read(), Ok(Some(found)), "it is not written over");
    put(b"new");
    assert!(matches!(read(), Err(StoreError::Corrupt(_))));
}

#[test]
fn entity_ids_end_before_those_of_fragments_and_no_counter_overflows() {
    for (counter, limit) in [
        (Counter::Entities, EntityId::FIRST_FRAGMENT.0),
        (Counter::Checkouts, u64::MAX),
    ] {
        let store = MemoryStore::new().store();
        let begin = store.begin();
        let last = limit - 10;
        begin
            .set(&director::counter_key(counter), &director::encode_counter(last))
            .unwrap();
        assert_eq!(immediate(director::assign(&begin, counter, 10)), Ok(last..limit));
        for count in [1, u64::MAX] {
            let beyond = immediate(director::assign(&begin, counter, count));
            assert!(matches!(beyond, Err(StoreError::Corrupt(_))), "{counter:?}: {beyond:?}");
        }
    }
}
