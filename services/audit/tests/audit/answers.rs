//! Questions about every item and every trade of generated games.

use std::collections::BTreeSet;

use annals_audit::{AuditError, Behind, Index, Turn};
use annals_event::ledger::{Order, Slots, Stage};
use annals_evidence::{Span, TradeStage, Until};
use annals_ids::{Address, DatabaseId, EntityId, EntryNumber, Serial, TradeId, TransferId, TransferNumber};

use crate::game::{Game, player};

const SEEDS: u64 = 8;

/// A game whose owners are on one to three shards.
async fn play(seed: u64, steps: usize) -> Game {
    let shards = u16::try_from(1 + seed % 3).expect("small");
    Game::play_on_shards(seed, steps, shards).await
}

/// Whether an entry acted on a trade.
fn is_about(game: &Game, place: usize, id: TradeId) -> bool {
    let deal = game.truths[place].deal.as_ref();
    deal.is_some_and(|deal| deal.id == id)
}

#[tokio::test]
async fn the_reported_path_of_an_item_is_correct() {
    for seed in 0..SEEDS {
        let game = play(seed, 200).await;
        game.seal(0, game.leaves.len() / 2).await;
        let (_folder, mut index) = game.index().await;
        let extent = index.catch_up(&game.store, |_| {}).await.expect("sound");
        assert_eq!(extent.entry.0, game.truths.len() as u64, "seed {seed}");
        for &serial in &game.serials {
            let found = index.item(&game.store, serial).await.expect("known");
            let mut steps = found.steps.iter();
            for truth in &game.truths {
                let entry = &truth.entry;
                for passage in entry.passages.iter().filter(|passage| passage.serial == serial) {
                    let step = steps.next().expect("a step for each passage");
                    assert_eq!(
                        (&step.cited.entry, step.from, step.to),
                        (entry, passage.from, passage.to)
                    );
                    let call = step.cited.asked.as_ref().and_then(|asked| asked.call.as_ref());
                    assert_eq!(
                        call.map(|call| call.from),
                        truth.session.map(Address::Client),
                        "seed {seed}"
                    );
                    assert_eq!(step.cited.asked.is_some(), entry.order.is_some());
                }
            }
            assert!(steps.next().is_none(), "seed {seed}: more steps than passages");
            let middle = &found.steps[found.steps.len() / 2];
            let until = |until| Span {
                since: None,
                until: Some(until),
            };
            let cut = index.until(middle.cited.at).await.expect("taken in");
            let by_leaf = found.place_within(&until(cut));
            let step_by_then = found
                .steps
                .iter()
                .rev()
                .find(|step| step.cited.leaf.leaf <= middle.cited.leaf.leaf);
            assert_eq!(by_leaf, step_by_then.map(|step| step.to));
            let wall = middle.cited.entry.wall;
            let done_by_then = found.steps.iter().rev().find(|step| step.cited.entry.wall <= wall);
            assert_eq!(
                found.place_within(&until(Until::Wall(wall))),
                done_by_then.map(|step| step.to)
            );
        }
    }
}

#[tokio::test]
async fn the_reported_course_of_a_trade_is_correct() {
    let (mut settled, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let game = play(100 + seed, 250).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("sound");
        for deal in &game.deals {
            let found = index.trade(&game.store, deal.id).await.expect("known");
            assert_eq!([found.proposer, found.partner], deal.parties, "seed {seed}");
            assert_eq!(found.stage_within(&Span::default()), Some(deal.stage), "seed {seed}");
            settled += usize::from(deal.stage == TradeStage::Begun(Stage::Settled));
            refused += usize::from(matches!(deal.stage, TradeStage::Refused(_)));
            let held = index.inventories(&game.store, &found).await.expect("sound");
            let mut steps = found.steps.iter().zip(held);
            for place in 0..game.truths.len() {
                if !is_about(&game, place, deal.id) {
                    continue;
                }
                let (step, held) = steps.next().expect("a step for each entry");
                let truth = &game.truths[place];
                let was = truth.deal.as_ref().expect("about a trade");
                assert_eq!(step.cited.entry, truth.entry);
                assert_eq!((step.stage, step.version), (was.stage, was.version), "seed {seed}");
                for (number, side) in [&step.proposer, &step.partner].into_iter().enumerate() {
                    let holds = |place: usize| {
                        let held = game.truths.get(place)?.held.get(&deal.parties[number]).cloned();
                        held.filter(|held| !held.is_empty())
                    };
                    assert_eq!(side.table, was.tables[number], "seed {seed}");
                    assert_eq!(side.accepted, was.accepted[number], "seed {seed}");
                    assert_eq!(held[number].after, holds(place).unwrap_or_default(), "seed {seed}");
                    let before = place.checked_sub(1).and_then(holds).unwrap_or_default();
                    assert_eq!(held[number].before, before, "seed {seed}");
                }
            }
            assert!(steps.next().is_none(), "seed {seed}");
        }
    }
    assert!(settled > 10, "{settled} trades were settled");
    assert!(refused > 10, "{refused} proposals were refused");
}

#[tokio::test]
async fn the_reported_holdings_of_an_account_are_correct() {
    for seed in 0..SEEDS {
        let game = play(200 + seed, 200).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("sound");
        let holders: BTreeSet<DatabaseId> = game.truths.iter().map(|truth| truth.entry.holder).collect();
        for holder in holders {
            let found = index.owned(&game.store, holder).await.expect("known");
            let mut steps = found.steps.iter().peekable();
            let mut has = Slots::new();
            for truth in &game.truths {
                let held = truth.held.get(&holder).cloned().unwrap_or_default();
                let held: Slots = held.into_iter().filter(|(_, assets)| !assets.is_empty()).collect();
                if let Some(step) = steps.next_if(|step| step.cited.entry == truth.entry) {
                    assert_eq!((&step.held.before, &step.held.after), (&has, &held), "seed {seed}");
                } else {
                    assert_eq!(has, held, "seed {seed}: what has changed is a step");
                    assert_ne!(truth.entry.holder, holder, "seed {seed}: what was asked for is a step");
                }
                has = held;
            }
            assert!(steps.next().is_none(), "seed {seed}");
            let last = found.within(&Span::default()).expect("something was done");
            assert_eq!(last.held.after, has, "seed {seed}");
        }
    }
}

/// More entries than the index reads at a time.
#[tokio::test]
async fn an_account_with_very_many_entries_is_complete() {
    let game = Game::play(290, 2_500).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let holder = player(0).0;
    let found = index.owned(&game.store, holder).await.expect("known");
    let last = game.truths.last().expect("an entry").held.get(&holder).cloned();
    let held = last
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, assets)| !assets.is_empty());
    assert!(found.steps.len() > 512, "{} steps", found.steps.len());
    let end = found.steps.last().expect("a step");
    assert_eq!(end.held.after, held.collect::<Slots>());
}

#[tokio::test]
async fn an_index_grows_with_its_archive() {
    let mut game = play(8, 50).await;
    let (folder, index) = game.index().await;
    drop(index);
    let mut sealed = 0;
    for part in 0..4 {
        // Reopened each time, for an archive of which less and less is sealed.
        let mut index = Index::open(folder.path()).await.expect("opened");
        let extent = index.catch_up(&game.store, |_| {}).await.expect("sound");
        let (_other, mut fresh) = game.index().await;
        assert_eq!(fresh.catch_up(&game.store, |_| {}).await.expect("sound"), extent);
        assert_eq!(extent.leaves(), game.leaves.len() as u64);
        for &serial in &game.serials {
            let grown = index.item(&game.store, serial).await.expect("known");
            assert_eq!(grown, fresh.item(&game.store, serial).await.expect("known"));
        }
        let until = game.leaves.len() - part * 5;
        game.seal(sealed, until).await;
        sealed = until;
        game.play_on(50).await;
    }
}

#[tokio::test]
async fn unknown_items_and_trades_are_not_found() {
    let game = Game::play(3, 60).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let item = index.item(&game.store, Serial(10_000)).await;
    assert!(matches!(item, Err(AuditError::NoItem(Serial(10_000)))));
    let none = TradeId(TransferId {
        asker: EntityId(5),
        number: TransferNumber(1),
    });
    let trade = index.trade(&game.store, none).await;
    assert!(matches!(trade, Err(AuditError::NoTrade(id)) if id == none));
    // An order that opened no trade is not a trade.
    let minted = game
        .truths
        .iter()
        .find(|truth| matches!(truth.entry.order, Some(Order::Mint { .. })));
    let made = TradeId(minted.expect("something was made").entry.of);
    let trade = index.trade(&game.store, made).await;
    assert!(matches!(trade, Err(AuditError::NoTrade(_))));
    assert_eq!(
        EntryNumber(game.truths.len() as u64),
        index.extent().expect("sound").entry
    );
}

#[tokio::test]
async fn presence_is_reported_from_activations_and_clients() {
    let game = play(401, 60).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    for number in 0..3 {
        let (stored, entity, base) = player(number);
        let found = index.lives(&game.store, stored).await.expect("they came in");
        assert!(found.iter().all(|step| step.at.owner == base && step.at.batch.0 == 1));
        let [began, came] = &found[..] else {
            panic!("player {number}: {found:?}");
        };
        let checkout = Some(1);
        assert_eq!(began.turn, Turn::Began { entity, checkout });
        let Turn::CameIn(came) = &came.turn else {
            panic!("player {number}: {came:?}");
        };
        assert_eq!((came.person, &came.who), (stored, &Behind::Unwritten(None)));
        assert_eq!(
            came.said(),
            format!("stored entity {stored}, back from an address that was not written down")
        );
    }
    let nobody = index.lives(&game.store, DatabaseId(99)).await;
    assert!(matches!(nobody, Err(AuditError::NoLife(DatabaseId(99)))), "{nobody:?}");
}
