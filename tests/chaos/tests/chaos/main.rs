//! Recovery from every fault. Bots play in a realm of real processes; each round kills or freezes a process at a random
//! moment. After each round, before the next: all bots play, every shown event is archived, numbers are dense,
//! replaying the archive gives the state of every holder, and every hole is recorded.
//!
//! `make chaos` runs many rounds and prints the table of `docs/reliability.md`; `make test` runs a few. The binaries
//! are those built beside this test.
#![allow(clippy::expect_used, reason = "a failed step ends the test")]

mod age;
mod attacks;
mod damage;
mod faults;
mod fencing;
mod promises;
mod table;
mod times;

use std::{env, time::Duration};

use annals_def::split_mix;
use annals_host::nats::ServerCount;

use age::{ChaosRealm, Setting};
use damage::{Damage, damage_and_check};
use faults::{Deck, Fault, Service};
use table::Table;

/// Rounds in one realm before everything is checked from the start and the next realm begins; that check takes longer
/// the more rounds there were.
const ROUNDS_PER_REALM: u64 = 10;

/// Maximum bots of a realm whose storage is damaged: these tests do not depend on their number.
const MAX_DAMAGED_BOTS: u64 = 20;

/// A number from the environment, as `make chaos` sets it. Its name does not begin with ANNALS, which services would
/// take for a setting.
fn number(name: &str, otherwise: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text:?} is not a number")),
        Err(_) => otherwise,
    }
}

/// Plays rounds until the requested number is reached, in successive realms, with one and three nats-servers in turn.
async fn play(rounds: u64, seed: u64, bots: usize, counts: &[ServerCount], faults: Vec<Fault>) {
    println!("chaos: seed {seed}, {rounds} rounds, {bots} bots");
    let mut dice = split_mix(seed);
    let mut deck = Deck::of(faults);
    let (mut table, mut failures) = (Table::default(), Vec::new());
    let mut played = 0;
    for (number, servers) in (1..).zip(counts.iter().copied().cycle()) {
        if played >= rounds {
            break;
        }
        let setting = Setting {
            number,
            servers,
            bots,
            seed: dice(),
            settings: &[],
        };
        let rounds_in_realm = ROUNDS_PER_REALM.min(rounds - played);
        let mut age = ChaosRealm::begin(setting).await;
        for _ in 0..rounds_in_realm {
            let fault = deck.draw(&mut dice);
            played += 1;
            age.round(fault, &mut dice).await;
            if age.has_failed() {
                break;
            }
        }
        failures.extend(age.end(&mut table).await);
        println!("{table}");
    }
    assert!(
        failures.is_empty(),
        "seed {seed}: {} promises were broken:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_on_one_server_recovers() {
    if age::are_built() {
        play(1, 1, 8, &[ServerCount::One], vec![Fault::KillEverything]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_on_three_servers_recovers() {
    if age::are_built() {
        play(1, 2, 8, &[ServerCount::Three], vec![Fault::Freeze(Service::Base)]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: run `make chaos`"]
async fn rounds() {
    assert!(age::are_built(), "the services' binaries are not built");
    let (rounds, seed) = (number("CHAOS_ROUNDS", 200), number("CHAOS_SEED", 1));
    let bots = number("CHAOS_BOTS", 200) as usize;
    let counts = [ServerCount::One, ServerCount::Three];
    play(rounds, seed, bots, &counts, Fault::all()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_bots_notice_no_attack() {
    if age::are_built() {
        attack(8, (1, 1), false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: run `make attacks`"]
async fn attacks() {
    assert!(age::are_built(), "the services are not built: run `make attacks`");
    let bots = number("CHAOS_BOTS", 100) as usize;
    attack(bots, (30, number("CHAOS_SECONDS", 20)), true).await;
}

/// Attacks a realm, each time for that many seconds after a calm of that many.
async fn attack(bots: usize, (calm, each): (u64, u64), reads_logs: bool) {
    let times = attacks::Times {
        calm: Duration::from_secs(calm),
        each: Duration::from_secs(each),
        reads_logs,
    };
    let failures = attacks::run(bots, times).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_restore_a_log_damaged_on_one_server() {
    if age::are_built() {
        run_damage(ServerCount::One, 6, &[Damage::DeletedMiddle, Damage::CutBlock]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_damaged_on_one_of_three_servers_is_restored() {
    if age::are_built() {
        run_damage(ServerCount::Three, 6, &[Damage::DeletedTail, Damage::FlippedByte]).await;
    }
}

/// Damages the storage of a realm of its own.
async fn run_damage(servers: ServerCount, bots: usize, damages: &[Damage]) {
    let setting = Setting {
        number: 1,
        servers,
        bots,
        seed: 1,
        settings: &[],
    };
    let mut age = ChaosRealm::begin(setting).await;
    damage_and_check(&mut age, servers, damages).await;
    let failures = age.end(&mut Table::default()).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: run `make chaos`"]
async fn damage_on_one_server() {
    assert!(age::are_built(), "the services are not built: run `make chaos`");
    run_damage(
        ServerCount::One,
        MAX_DAMAGED_BOTS.min(number("CHAOS_BOTS", MAX_DAMAGED_BOTS)) as usize,
        &Damage::ALL,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: run `make chaos`"]
async fn damage_on_three_servers() {
    assert!(age::are_built(), "the services are not built: run `make chaos`");
    run_damage(
        ServerCount::Three,
        MAX_DAMAGED_BOTS.min(number("CHAOS_BOTS", MAX_DAMAGED_BOTS)) as usize,
        &Damage::ALL,
    )
    .await;
}
