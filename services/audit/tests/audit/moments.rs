//! Holdings at moments of generated games, and differences between two moments, compared with the truth.

use std::collections::{BTreeMap, BTreeSet};

use annals_audit::past::{Books, Change, Difference, Past};
use annals_event::{
    Batch, Body,
    ledger::{Account, AssetSlot, Holder, Side, Slots, Stage},
};

use annals_evidence::TradeStage;

use crate::game::{Deal, Game, definitions};

const SEEDS: u64 = 8;

/// Moments per game, compared pairwise.
const MOMENTS: usize = 12;

/// Number of ledger entries in the first leaves.
fn entries(game: &Game, leaves: usize) -> usize {
    let batches = game.leaves[..leaves].iter().map(|(_, bytes)| Batch::read(bytes));
    let events = batches.flat_map(|batch| batch.expect("one").events);
    events
        .filter(|event| matches!(event.body, Body::Entered { entry: Some(_), .. }))
        .count()
}

fn put(books: &mut Books, holder: Holder, slots: &Slots) {
    for (&slot, assets) in slots {
        let place = AssetSlot { holder, slot };
        for (&kind, &amount) in &assets.units {
            books.units.insert(Account { place, kind }, i128::from(amount));
        }
        let items = assets.items.iter();
        books
            .items
            .extend(items.map(|(&serial, &kind)| (serial, (kind, place))));
    }
}

/// The true holdings after a number of entries: in slots, and on the tables of open trades.
fn truth(game: &Game, entries: usize) -> Books {
    let mut books = Books::default();
    let done = &game.truths[..entries];
    for (&holder, slots) in done.iter().last().iter().flat_map(|truth| &truth.held) {
        put(&mut books, Holder::Stored(holder), slots);
    }
    let deals = done.iter().filter_map(|truth| truth.deal.as_ref());
    let deals: BTreeMap<_, &Deal> = deals.map(|deal| (deal.id, deal)).collect();
    for deal in deals
        .values()
        .filter(|deal| deal.stage == TradeStage::Begun(Stage::Open))
    {
        for (side, table) in [Side::Proposer, Side::Partner].into_iter().zip(&deal.tables) {
            put(&mut books, Holder::Trade(deal.id, side), table);
        }
    }
    books
}

/// The differences, computed one by one.
fn otherwise(before: &Books, after: &Books) -> Vec<Change> {
    let mut changes = Vec::new();
    let serials: BTreeSet<_> = before.items.keys().chain(after.items.keys()).collect();
    for &serial in serials {
        let place = |books: &Books| books.items.get(&serial).map(|(_, place)| *place);
        let kind = before.items.get(&serial).or(after.items.get(&serial)).expect("one").0;
        let (before, after) = (place(before), place(after));
        if before != after {
            changes.push(Change::Item {
                serial,
                kind,
                before,
                after,
            });
        }
    }
    let accounts: BTreeSet<_> = before.units.keys().chain(after.units.keys()).collect();
    for &account in accounts {
        let held = |books: &Books| books.units.get(&account).copied().unwrap_or_default();
        let (before, after) = (held(before), held(after));
        if before != after {
            changes.push(Change::Units { account, before, after });
        }
    }
    changes
}

#[tokio::test]
async fn holdings_at_a_moment_and_their_differences_are_correct() {
    let schemas = BTreeMap::from([(definitions().fingerprint(), definitions())]);
    let (mut moved, mut paid) = (0, 0);
    for seed in 0..SEEDS {
        let shards = u16::try_from(1 + seed % 3).expect("small");
        let game = Game::play_on_shards(300 + seed, 200, shards).await;
        game.seal(0, game.leaves.len() / 2).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("sound");
        let mut moments = Vec::new();
        for moment in 0..=MOMENTS {
            let leaves = game.leaves.len() * moment / MOMENTS;
            let past = Past::at(&index, &game.store, &game.cut(leaves)).await;
            let past = past.unwrap_or_else(|error| panic!("seed {seed}, {leaves} leaves: {error:?}"));
            let books = truth(&game, entries(&game, leaves));
            assert_eq!(past.books(), &books, "seed {seed}, {leaves} leaves");
            moments.push((past, books));
        }
        for (place, (before, had)) in moments.iter().enumerate() {
            for (after, have) in &moments[place..] {
                let found = Difference::between(before, after, &schemas).changes;
                let is_ledgers = |change: &Change| matches!(change, Change::Item { .. } | Change::Units { .. });
                let found: Vec<Change> = found.into_iter().filter(is_ledgers).collect();
                let between = (before.cut(), after.cut());
                assert_eq!(found, otherwise(had, have), "seed {seed}, between {between:?} leaves");
                let items = found
                    .iter()
                    .filter(|change| matches!(change, Change::Item { .. }))
                    .count();
                moved += items;
                paid += found.len() - items;
            }
        }
    }
    assert!(
        moved > 1_000 && paid > 1_000,
        "{moved} items and {paid} accounts changed"
    );
}
