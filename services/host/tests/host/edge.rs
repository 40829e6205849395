//! The edge and the client SDK, with each other and with clients that violate the protocol.

mod background;
mod hostile;
mod identity;
mod last_frames;
mod packets;
mod raw;
mod realm;
mod web_socket;
mod web_transport;

use annals_client::{Client, Credentials, EndReason, Event, Trust, What, client_endpoint};
use annals_def::{Edit, Value};
use annals_host::{edge::Edge, violations::Violation};
use annals_ids::{Direction, HistoryNumber, Part, Position};
use annals_wire::client::{Known, LoginRefusal, Rejection, ToClient};

use realm::{AVATAR, NAME, Realm, SESSION, drive, loopback, schema, until_event};

/// The health values that were shown, with their history numbers.
fn shown(events: &[Event]) -> Vec<(u64, i64)> {
    let shown = events.iter().filter_map(|event| match event {
        Event::Shown(showing) => match &showing.what {
            What::Changed { change, .. } => match change.edit {
                Edit::Set(Value::Int(health)) => Some((showing.number.0, health)),
                _ => panic!("nothing else happens in this world: {change:?}"),
            },
            other @ (What::Called { .. } | What::Replied { .. }) => {
                panic!("nothing else happens in this world: {other:?}")
            }
        },
        _ => None,
    });
    shown.collect()
}

fn is_shown(number: u64) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Shown(showing) if showing.number == HistoryNumber(number))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_logs_in_sees_calls_moves_and_leaves() {
    let realm = Realm::start();
    let base = realm.start_base();
    realm.set_health(100);
    let mut client = realm.client();

    let events = until_event(&mut client, "the first change", is_shown(1)).await;
    assert!(
        matches!(
            events[0],
            Event::Connected {
                session: SESSION,
                entity: AVATAR,
                ..
            }
        ),
        "the first event is that it is connected: {events:?}"
    );
    assert_eq!(client.core().property(AVATAR, "health"), Some(&Value::Int(100)));

    realm.set_health(90);
    until_event(&mut client, "a later change", is_shown(2)).await;
    assert_eq!(client.core().property(AVATAR, "health"), Some(&Value::Int(90)));

    for amount in 1..=50 {
        client.call(AVATAR, Part::Cell, "hit", &[Value::Int(amount)]).unwrap();
    }
    drive(&mut client, &realm, "all calls to be taken", |world| {
        world.taken.len() == 50
    })
    .await;
    let amounts: Vec<i32> = realm
        .world()
        .taken
        .iter()
        .map(|(_, args)| i32::from_le_bytes(args[..].try_into().unwrap()))
        .collect();
    assert_eq!(amounts, (1..=50).collect::<Vec<_>>());

    let place = Position {
        x: 3.0,
        y: 0.0,
        z: -4.0,
    };
    assert!(client.move_to(place, Direction::default()));
    drive(&mut client, &realm, "the movement", |world| {
        world.moved.is_some_and(|moved| moved.position == place)
    })
    .await;
    assert_eq!(
        client
            .core()
            .entity(AVATAR)
            .and_then(|seen| seen.place)
            .map(|(at, _)| at),
        Some(place)
    );

    client.leave();
    until_event(&mut client, "the end", |event| *event == Event::Ended(EndReason::Left)).await;
    assert_eq!(client.next().await, None);
    realm.until("the server to receive it", |world| world.said_bye()).await;
    base.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_resumes_with_its_stamps_and_its_calls() {
    let realm = Realm::start();
    let _base = realm.start_base();
    realm.set_health(100);
    let mut client = realm.client();
    let mut events = until_event(&mut client, "the first change", is_shown(1)).await;

    realm.world().withholds = true;
    for amount in 1..=3 {
        client.call(AVATAR, Part::Cell, "hit", &[Value::Int(amount)]).unwrap();
    }
    events.extend(
        drive(&mut client, &realm, "the calls to arrive", |world| {
            world.taken.len() == 3
        })
        .await,
    );
    for round in 0..3 {
        client.cut();
        events.extend(
            until_event(&mut client, "the loss to be reported", |event| {
                matches!(event, Event::Lost(_))
            })
            .await,
        );
        // Called without a connection; sent when there is one again.
        client
            .call(AVATAR, Part::Cell, "hit", &[Value::Int(4 + round)])
            .unwrap();
        realm.set_health(90 - i32::try_from(round).unwrap());
        realm.set_health(80 - i32::try_from(round).unwrap());
        let newest = 3 + 2 * u64::try_from(round).unwrap();
        events.extend(until_event(&mut client, "what was missed", is_shown(newest)).await);
    }
    realm.world().withholds = false;
    let before = client.core().unconfirmed_calls();
    assert_eq!(before, 6, "nothing was confirmed yet");
    client.call(AVATAR, Part::Cell, "hit", &[Value::Int(7)]).unwrap();
    events.extend(
        drive(&mut client, &realm, "the calls to be taken", |world| {
            world.taken.len() == 7
        })
        .await,
    );

    check_resumed(&realm, &events);
    assert_eq!(client.core().counters().resumed, 3);
}

/// After three resumptions: nothing was shown or delivered twice, and nothing was left out.
fn check_resumed(realm: &Realm, events: &[Event]) {
    let world_taken: Vec<u64> = realm.world().taken.iter().map(|(number, _)| number.0).collect();
    assert_eq!(world_taken, (1..=7).collect::<Vec<_>>(), "each call once, in order");
    let seen = shown(events);
    let expected: Vec<(u64, i64)> = realm
        .world()
        .health
        .iter()
        .zip(1..)
        .map(|(&health, number)| (number, health.into()))
        .collect();
    assert_eq!(seen, expected, "each event once, in order");
    let stamps: Vec<_> = realm
        .world()
        .stamps
        .iter()
        .filter(|stamps| stamps.source == Part::Cell)
        .cloned()
        .collect();
    let known: Vec<_> = stamps.iter().map(|stamps| stamps.known.clone()).collect();
    let at = |number| [(AVATAR, HistoryNumber(number))].into_iter().collect();
    assert_eq!(
        known,
        [Known::default(), at(1), at(3), at(5)],
        "each resumption names what is known"
    );
    assert!(stamps.is_sorted_by(|a, b| a.view < b.view));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_follows_its_base_when_it_is_taken_over() {
    let realm = Realm::start();
    // A process that is killed sends nothing; so this base has its own runtime, which is shut down.
    let dying = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let first = {
        let _inside = dying.enter();
        realm.start_base()
    };
    realm.set_health(100);
    let mut client = realm.client();
    until_event(&mut client, "the first change", is_shown(1)).await;
    dying.shutdown_background();
    drop(first);

    let killed = std::time::Instant::now();
    let second = realm.start_base();
    realm.set_health(50);
    let events = until_event(&mut client, "what the new base shows", is_shown(2)).await;
    println!("resumed {:?} after the kill", killed.elapsed());
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Resumed { epoch } if epoch.0 == 2)),
        "{events:?}"
    );

    // A base that shuts down in order is left at once.
    let third = realm.start_base();
    second.shut_down().await;
    realm.set_health(40);
    until_event(&mut client, "what the third base shows", is_shown(3)).await;
    drop(third);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gap_and_a_warning_reach_the_client() {
    let realm = Realm::start();
    let _base = realm.start_base();
    let mut client = realm.client();
    until_event(&mut client, "the avatar", |event| {
        matches!(event, Event::Entered { part: Part::Cell, .. })
    })
    .await;
    realm.world().withholds = true;
    client.call(AVATAR, Part::Cell, "hit", &[Value::Int(1)]).unwrap();
    drive(&mut client, &realm, "the call", |world| world.taken.len() == 1).await;
    {
        // The base has lost it before it was logged, and asks for it.
        let mut world = realm.world();
        world.taken.clear();
        world.withholds = false;
        let (entity, part, have) = (AVATAR, Part::Cell, annals_ids::CallNumber(0));
        world.send(&ToClient::Gap { entity, part, have });
    }
    drive(&mut client, &realm, "the call again", |world| world.taken.len() == 1).await;
    realm.world().send(&ToClient::RateWarned);
    until_event(&mut client, "the warning", |event| *event == Event::RateWarned).await;
    assert_eq!(client.core().unconfirmed_calls(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_carry_a_reason() {
    let realm = Realm::start();
    let _base = realm.start_base();
    let endpoint = client_endpoint(loopback()).unwrap();

    let mut config = realm.config();
    config.credentials = Credentials::password(NAME, "wrong");
    let mut client = Client::start(endpoint.clone(), config);
    let refused = EndReason::LoginRefused(LoginRefusal::WrongPassword);
    until_event(&mut client, "the refusal", |event| *event == Event::Ended(refused)).await;
    assert_eq!(
        refused.to_string(),
        "the log-in was refused: the name or the password is wrong"
    );

    let mut config = realm.config();
    config.schema = std::sync::Arc::new(annals_def::Schema::new(Vec::new(), Vec::new(), Vec::new()));
    let mut client = Client::start(endpoint.clone(), config);
    let rejected = Event::Ended(EndReason::Rejected(Rejection::WrongSchema));
    until_event(&mut client, "the rejection", |event| *event == rejected).await;

    // An authority that signed the certificate is as good as its fingerprint.
    let mut config = realm.config();
    config.trust = Trust::Signed {
        roots: raw::roots(realm.directory.path()),
        server_name: "localhost".to_owned(),
    };
    let mut client = Client::start(endpoint.clone(), config);
    until_event(&mut client, "the connection", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let error = client.call(AVATAR, Part::Cell, "fly", &[]).unwrap_err();
    assert_eq!(error.to_string(), "Avatar has no exposed cell method fly");
    let error = client
        .call(AVATAR, Part::Cell, "hit", &[Value::Unicode("hard".to_owned())])
        .unwrap_err();
    assert_eq!(error.to_string(), "argument amount of hit does not fit");

    // Another fingerprint is another server: no password is sent to it.
    let mut config = realm.config();
    config.trust = Trust::Pinned(schema().fingerprint());
    let mut client = Client::start(endpoint, config);
    let failed = |edge: &Edge| edge.violations().of(Violation::FailedHandshake) >= 2;
    tokio::select! {
        event = client.next() => panic!("a client connected to an unknown server: {event:?}"),
        () = realm.until_counted(&realm.login, "failed handshakes", failed) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_log_ins_is_served() {
    const CLIENTS: usize = 150;
    let realm = Realm::start();
    let _base = realm.start_base();
    let endpoint = client_endpoint(loopback()).unwrap();
    let start = std::time::Instant::now();
    let mut rush = tokio::task::JoinSet::new();
    for seed in 0..CLIENTS as u64 {
        let (endpoint, mut config) = (endpoint.clone(), realm.config());
        config.seed = seed;
        rush.spawn(async move {
            let mut client = Client::start(endpoint, config);
            until_event(&mut client, "the connection", |event| {
                matches!(event, Event::Connected { .. })
            })
            .await;
            start.elapsed()
        });
    }
    let mut times = rush.join_all().await;
    times.sort();
    println!(
        "{CLIENTS} log-ins at once: p50 {:?}, last {:?}",
        times[CLIENTS / 2],
        times[CLIENTS - 1]
    );
    assert_eq!(times.len(), CLIENTS);
}
