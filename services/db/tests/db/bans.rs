//! Bans of accounts: the newest decision counts, until it ends; answers are lost. What backups and forgotten persons
//! keep of them.

use annals_db::{
    StoredEntity, accounts,
    bans::{self, BanRecord, Decision, NotDecided},
    personal, read_unlogged,
};
use annals_ids::{DatabaseId, OwnerId, Shard, WallTime};
use annals_store::{MemoryStore, Store, immediate, layout};

use crate::{accounts::faulty, game};

const ACCOUNT: DatabaseId = DatabaseId(7);

fn record(at: u64, decision: Decision) -> BanRecord {
    BanRecord {
        at: WallTime(at),
        decision,
        operator: "olga".to_owned(),
        reason: format!("case {at}"),
    }
}

fn decide(store: &Store, at: u64, decision: Decision) -> Result<u32, NotDecided> {
    immediate(bans::decide(store, ACCOUNT, &record(at, decision)))
}

fn reason(store: &Store, now: u64) -> Option<String> {
    let ban = immediate(bans::in_force(store, ACCOUNT, WallTime(now))).expect("readable");
    ban.map(|ban| ban.reason)
}

#[test]
fn the_newest_decision_counts_until_it_ends() {
    for seed in 0..50 {
        let store = MemoryStore::new().store();
        let faulty = faulty(&store, seed);
        assert!(matches!(
            decide(&faulty, 1, Decision::Lifted),
            Err(NotDecided::NotBanned(ACCOUNT))
        ));
        let until = Decision::Banned(Some(WallTime(20)));
        assert_eq!(decide(&faulty, 10, until).expect("decided"), 0, "seed {seed}");
        let at = |now| reason(&store, now);
        assert_eq!((at(19).as_deref(), at(20)), (Some("case 10"), None), "seed {seed}");
        assert!(
            decide(&faulty, 21, Decision::Lifted).is_err(),
            "seed {seed}: it has ended by itself"
        );
        // Repeated with the same content, it is one decision.
        for _ in 0..2 {
            assert_eq!(
                decide(&faulty, 30, Decision::Banned(None)).expect("decided"),
                1,
                "seed {seed}"
            );
        }
        assert_eq!(at(u64::MAX).as_deref(), Some("case 30"), "seed {seed}");
        assert_eq!(
            decide(&faulty, 40, Decision::Lifted).expect("decided"),
            2,
            "seed {seed}"
        );
        assert_eq!(at(40), None, "seed {seed}");
        let records = immediate(bans::records(&store, Some(ACCOUNT))).expect("readable");
        let numbers: Vec<(u32, u64)> = records
            .iter()
            .map(|(_, number, record)| (*number, record.at.0))
            .collect();
        assert_eq!(numbers, [(0, 10), (1, 30), (2, 40)], "seed {seed}");
    }
}

#[test]
fn records_of_all_accounts_are_listed() {
    let store = MemoryStore::new().store();
    for account in 1..=300 {
        let ban = record(account, Decision::Banned(None));
        immediate(bans::decide(&store, DatabaseId(account), &ban)).expect("decided");
    }
    let records = immediate(bans::records(&store, None)).expect("readable");
    let accounts: Vec<u64> = records.iter().map(|(account, ..)| account.0).collect();
    assert_eq!(accounts, (1..=300).collect::<Vec<_>>());
}

#[test]
fn a_banned_account_is_checked_out_to_no_player() {
    let store = MemoryStore::new().store();
    decide(&store, 10, Decision::Banned(Some(WallTime(20)))).expect("decided");
    let play =
        |now| immediate(accounts::check_out_to_play(&store, ACCOUNT, OwnerId(1), WallTime(now))).expect("an answer");
    assert_eq!(play(19).expect_err("it is banned").reason, "case 10");
    assert_eq!(immediate(accounts::checkout_of(&store, ACCOUNT)), Ok(None));
    let played = play(20).expect("the ban has ended");
    assert_eq!(immediate(accounts::checkout_of(&store, ACCOUNT)), Ok(played));
    // Operators may grant something to a banned account.
    decide(&store, 30, Decision::Banned(None)).expect("decided");
    assert_eq!(immediate(accounts::check_out(&store, ACCOUNT, OwnerId(2))), Ok(played));
}

#[test]
fn backups_have_bans_but_not_those_of_the_forgotten() {
    let store = MemoryStore::new().store();
    let schema = game::schema();
    let [anna, bert] = [b"anna", b"bert"].map(|name| {
        let entity = StoredEntity {
            entity_type: "Avatar".into(),
            ..StoredEntity::default()
        };
        let account = immediate(accounts::create(&store, name, "password", &entity, &schema)).expect("an account");
        let ban = record(10, Decision::Banned(None));
        immediate(bans::decide(&store, account.database, &ban)).expect("decided");
        account.database
    });
    let banned = || {
        let rows = immediate(read_unlogged(&store)).expect("readable");
        let all = layout::bans::bans();
        let keys = rows.iter().filter(|(key, _)| all.contains(key));
        let accounts = keys.map(|(key, _)| layout::bans::record_of(key).expect("a key").0);
        accounts.collect::<Vec<_>>()
    };
    assert_eq!(banned(), [anna, bert]);
    immediate(personal::forget(
        &store,
        Shard(0),
        anna,
        (20, "olga", "asked by letter"),
    ))
    .expect("forgotten");
    assert_eq!(banned(), [bert]);
    assert_eq!(immediate(bans::in_force(&store, anna, WallTime(30))), Ok(None));
}
