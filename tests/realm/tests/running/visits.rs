//! Players that come and go: many log-ins, two clients of one account, log-ins during a take-over of bases. Bots play
//! meanwhile, and nothing that they were shown is lost.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use annals_client::{Client, Config, Credentials, EndReason, Event, Trust, client_endpoint};
use annals_db::accounts;
use annals_def::Value;
use annals_host::{
    child::{self, Child},
    nats::ServerCount,
};
use annals_ids::{DatabaseId, Hash};
use annals_realm::Folder;
use annals_store::{
    ScanOrder, Store, StoreError, Transaction, key_after,
    layout::database::{checkout_key, entities, entity_of},
};
use annals_wire::client::{CloseReason, LoginRefusal};
use futures::future::join_all;

use crate::{
    hands::{Assets, Hand},
    played::{Played, are_built, binary, repository, until, until_event, within},
};

/// Accounts that visit, and visits of each. The first visit of an account computes a hash, each later one a comparison.
const VISITORS: usize = 30;
const VISITS: usize = 5;

/// Maximum memory of a login process after so many log-ins, MiB: two buffers of 19 MiB for hashing, and the rest. The
/// pages of its program are not counted, of which a development build has many; the bench measures all memory of a
/// release build.
const MEMORY_LIMIT: u64 = 50;

/// Timeout of every step, on a machine that is busy with tests.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Time for which two clients of one account are observed for repeated displacement.
const OBSERVATION: Duration = Duration::from_secs(4);

/// Maximum additional time of a log-in during a take-over of its base, compared with a resumed session: the longest
/// pause between two attempts, plus the delay of a busy machine.
const MAX_DELAY: Duration = Duration::from_secs(20);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frequent_log_ins_lock_no_account() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let visitors = short_visits(&realm).await;
    realm.assert_playing("quick visits").await;
    one_account_twice(&realm).await;
    realm.assert_playing("two clients of one account").await;
    one_account_once(&realm).await;
    realm.assert_playing("a log-in that was refused").await;
    gift_during_log_off(&realm).await;
    realm.assert_playing("gifts to and from players who log off").await;
    log_in_during_a_take_over(&mut realm).await;
    realm.assert_playing("log-ins during a take-over").await;
    assert_all_left(&realm, &visitors).await;
    realm.stop_and_verify().await;
}

/// Address of the login service, and its certificate hash.
pub(crate) type LoginAddress = (SocketAddr, Hash);

/// A client that logs in at this address.
fn client(
    realm: &Played,
    (login, certificate): LoginAddress,
    endpoint: &quinn::Endpoint,
    name: &str,
    seed: usize,
) -> Client {
    let config = Config {
        login,
        trust: Trust::Pinned(certificate),
        credentials: Credentials::password(name, "the password"),
        schema: realm.schema.clone(),
        seed: seed as u64,
        reads: annals_client::Reads::Predicted,
    };
    Client::start(endpoint.clone(), config)
}

/// Waits until a client is connected.
async fn connected(client: &mut Client) {
    until_event(client, "a log-in", |event| matches!(event, Event::Connected { .. })).await;
}

/// Waits for a client's end.
async fn end_of(client: &mut Client) -> EndReason {
    let event = until_event(client, "an end", |event| matches!(event, Event::Ended(_))).await;
    match event {
        Event::Ended(reason) => reason,
        other => panic!("{other:?} was not waited for"),
    }
}

/// Memory of a process in MiB, without the pages of its program.
fn memory_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("/proc describes a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib: u64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .expect("its size in kB");
    kib / 1_024
}

/// The stored entities.
async fn stored(store: &Store) -> BTreeSet<DatabaseId> {
    let read = |transaction: Transaction| async move {
        let mut found = BTreeSet::new();
        let mut range = entities();
        loop {
            let page = transaction.get_range(&range, 1_000, ScanOrder::Forward).await?;
            for (key, _) in &page.rows {
                found.insert(entity_of(key)?);
            }
            match page.rows.last() {
                Some((key, _)) => range.begin = key_after(key),
                None => return Ok::<_, StoreError>(found),
            }
        }
    };
    store.read(read).await.expect("the store answers")
}

/// Whether a stored entity is checked out.
async fn is_checked_out(store: &Store, entity: DatabaseId) -> bool {
    let read = |transaction: Transaction| async move { transaction.get(&checkout_key(entity)).await };
    let value: Result<_, StoreError> = store.read(read).await;
    value.expect("the store answers").is_some()
}

/// Players that log in and leave, in three ways: nothing of them is stored but their accounts, which are returned.
async fn short_visits(realm: &Played) -> BTreeSet<DatabaseId> {
    let (_, _, store) = realm.bus();
    let before = stored(&store).await;
    let login = realm.realm.members().find(|(name, _)| *name == "login");
    let login = login.expect("it runs").1;
    let endpoint = client_endpoint(realm.realm.login.0).expect("a socket");
    let began = Instant::now();
    for round in 0..VISITS {
        let visits = (0..VISITORS).map(async |visitor| {
            let name = format!("visitor {visitor}");
            let mut client = client(realm, realm.realm.login, &endpoint, &name, visitor);
            connected(&mut client).await;
            // A third log off, a third vanish, a third vanish after entering the world.
            match (visitor + round) % 3 {
                0 => {
                    client.leave();
                    while client.next().await.is_some() {}
                }
                1 => {}
                _ => {
                    let entered = |event: &Event| matches!(event, Event::Controls { .. } | Event::SpaceEntered { .. });
                    until_event(&mut client, "the world", entered).await;
                }
            }
        });
        join_all(visits).await;
    }
    let visits = VISITORS * VISITS;
    println!(
        "{visits} visits in {:.1} s; login holds {} MiB",
        began.elapsed().as_secs_f32(),
        memory_of(login)
    );
    assert!(
        memory_of(login) < MEMORY_LIMIT,
        "login holds {} MiB after {visits} log-ins",
        memory_of(login)
    );
    let mut accounts = BTreeSet::new();
    for visitor in 0..VISITORS {
        let account = accounts::named(&store, &format!("visitor {visitor}")).await;
        let account = account.expect("the store answers").expect("it has an account");
        accounts.insert(account.database);
    }
    let made: BTreeSet<DatabaseId> = stored(&store).await.difference(&before).copied().collect();
    assert_eq!(made, accounts, "nothing is stored but the accounts of the visitors");
    accounts
}

/// Checks that no visitor is still active, including those that did not log off.
async fn assert_all_left(realm: &Played, visitors: &BTreeSet<DatabaseId>) {
    let (_, _, store) = realm.bus();
    for visitor in visitors {
        within(TIMEOUT, "a visitor's activation to end", async {
            while is_checked_out(&store, *visitor).await {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }
}

/// The second client of an account takes over, and the first ends.
async fn one_account_twice(realm: &Played) {
    let endpoint = client_endpoint(realm.realm.login.0).expect("a socket");
    let mut first = client(realm, realm.realm.login, &endpoint, "twin", 1);
    connected(&mut first).await;
    let mut second = client(realm, realm.realm.login, &endpoint, "twin", 2);
    connected(&mut second).await;
    let end = end_of(&mut first).await;
    assert_eq!(end, EndReason::Closed(CloseReason::LoggedInElsewhere));
    assert_eq!(
        end.to_string(),
        "the connection was closed: the account logged in elsewhere"
    );
    assert!(first.next().await.is_none(), "an ended client has no events");
    let playing = tokio::time::timeout(OBSERVATION, async {
        while let Some(event) = second.next().await {
            assert!(!matches!(event, Event::Lost(_) | Event::Ended(_)), "{event:?}");
        }
    });
    assert!(playing.await.is_err() && second.core().is_playing());
    // Reconnecting to its own session is not a second log-in.
    second.cut();
    until_event(&mut second, "the session to be resumed", |event| {
        matches!(event, Event::Resumed { .. })
    })
    .await;
    second.leave();
}

/// If the login service is configured to refuse, the second client of an account is refused, and the first plays on.
async fn one_account_once(realm: &Played) {
    let other = OtherLogin::start(realm, &["--duplicate-login", "refuse"]).await;
    let door = other.address;
    let endpoint = client_endpoint(door.0).expect("a socket");
    let mut first = client(realm, door, &endpoint, "hermit", 1);
    connected(&mut first).await;
    let mut second = client(realm, door, &endpoint, "hermit", 2);
    let end = end_of(&mut second).await;
    assert_eq!(end, EndReason::LoginRefused(LoginRefusal::LoggedIn));
    assert!(first.core().is_playing());
    // Once the first has left, the second is admitted.
    first.leave();
    while first.next().await.is_some() {}
    let mut third = client(realm, door, &endpoint, "hermit", 3);
    connected(&mut third).await;
    third.leave();
}

/// Another login process of a realm, with settings of its own.
pub(crate) struct OtherLogin {
    pub(crate) address: LoginAddress,
    /// Its folder.
    pub(crate) folder: Folder,
    _process: Child,
}

impl OtherLogin {
    pub(crate) async fn start(realm: &Played, flags: &[&str]) -> Self {
        let folder = Folder::create();
        let mut command = child::command(binary("annals-login").expect("it is built"));
        command
            .current_dir(repository())
            .args(["--realm", &realm.realm.plan().realm, "--nats", &realm.realm.nats()])
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(folder.path())
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Child::spawn(command).expect("it starts");
        Self {
            address: login_address(folder.path()).await,
            _process: process,
            folder,
        }
    }
}

/// Address of the login process with this folder.
async fn login_address(folder: &Path) -> LoginAddress {
    let path = folder.join("login.address");
    let read = || {
        let text = fs::read_to_string(&path).ok()?;
        let (address, certificate) = text.trim().split_once(' ')?;
        Some((address.parse().ok()?, certificate.parse().ok()?))
    };
    until(TIMEOUT, "a login to listen", || read().is_some()).await;
    read().expect("it was waited for")
}

/// Coins are given to a player that is logging off, and by one: each arrives once.
async fn gift_during_log_off(realm: &Played) {
    const ROUNDS: u64 = 5;
    let stays = Hand::log_in(realm, "greta").await;
    let mut goes = Hand::log_in(realm, "gunnar").await;
    let (id, other) = (stays.id(), goes.id());
    let (before, theirs) = (stays.carried().coins, goes.carried().coins);
    let give = |hand: &Hand, to| hand.send_call("give", &[Value::UInt(to), Assets::coins(1).value()]);
    for round in 1..=ROUNDS {
        give(&stays, other);
        give(&goes, id);
        // The gifts are in transit, or just about to arrive.
        tokio::time::sleep(Duration::from_millis(round * 8)).await;
        give(&goes, id);
        let name = goes.leave().await;
        give(&stays, other);
        goes = Hand::log_in(realm, name).await;
        goes.until("for what it gave and got", |hand| hand.carried().coins == theirs)
            .await;
        stays
            .until("for what it gave and got", |hand| hand.carried().coins == before)
            .await;
    }
    for hand in [stays, goes] {
        hand.leave().await;
    }
}

/// All bases crash. Playing clients resume; a client that logs in at once, to an account that was active there with or
/// without a client, is admitted about as soon.
async fn log_in_during_a_take_over(realm: &mut Played) {
    let resumes = Hand::log_in(realm, "rita").await;
    let (door, schema) = (realm.realm.login, realm.schema.clone());
    let endpoint = client_endpoint(door.0).expect("a socket");
    // The machine of this client is lost together with the bases.
    let mut lost = client(realm, door, &endpoint, "lola", 1);
    connected(&mut lost).await;
    let bases = ["base-1", "base-2"];
    let died = Instant::now();
    for name in bases {
        assert!(realm.realm.kill(name).expect("it can be killed"));
    }
    drop(lost);
    let log_in = |name: &'static str| {
        let config = Config {
            login: door.0,
            trust: Trust::Pinned(door.1),
            credentials: Credentials::password(name, "the password"),
            schema: schema.clone(),
            seed: 5,
            reads: annals_client::Reads::Predicted,
        };
        let mut client = Client::start(endpoint.clone(), config);
        tokio::spawn(async move {
            connected(&mut client).await;
            let took = died.elapsed();
            client.leave();
            while client.next().await.is_some() {}
            took
        })
    };
    let coming = ["lola", "newcomer"].map(log_in);
    for name in bases {
        assert!(realm.realm.start_again(name).expect("it starts"));
    }
    let before = resumes.look().client.core().counters().resumed;
    resumes
        .until("to play on", |hand| hand.client.core().counters().resumed > before)
        .await;
    let recovery = died.elapsed();
    for coming in coming {
        let took = coming.await.expect("it does not panic");
        println!(
            "in {:.1} s after the bases died, where a session was resumed in {:.1} s",
            took.as_secs_f32(),
            recovery.as_secs_f32()
        );
        assert!(
            took < recovery + MAX_DELAY,
            "locked out for {took:?}; the recovery took {recovery:?}"
        );
    }
    resumes.leave().await;
}
