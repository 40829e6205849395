//! A realm that is full: clients wait in a queue, and are admitted in their order.

use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};

use crate::{
    played::{BOTS, Played, are_built, until_event},
    visits::{LoginAddress, OtherLogin},
};

/// Players that the realm admits beside the bots.
const ROOM: usize = 2;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Position(u64),
    Connected,
}

fn client(realm: &Played, (login, certificate): LoginAddress, name: &str) -> Client {
    let config = Config {
        login,
        trust: Trust::Pinned(certificate),
        credentials: Credentials::password(name, "the password"),
        schema: realm.schema.clone(),
        seed: name.bytes().map(u64::from).sum(),
        reads: annals_client::Reads::Predicted,
    };
    Client::start(client_endpoint(login).expect("a socket"), config)
}

/// Waits until a client receives this. It must not be admitted before it is to be.
async fn receives(client: &mut Client, wanted: Awaited) {
    let what = format!("{wanted:?}");
    let event = until_event(client, &what, |event| match event {
        Event::Queued { position, .. } => wanted == Awaited::Position(*position),
        Event::Connected { .. } => true,
        _ => false,
    })
    .await;
    let is_connected = matches!(event, Event::Connected { .. });
    assert_eq!(is_connected, wanted == Awaited::Connected, "{event:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_of_a_full_realm_wait_and_are_admitted_in_their_order() {
    if !are_built() {
        return;
    }
    let limit = (BOTS + ROOM).to_string();
    let mut realm = Played::start_with(vec![("max_players", limit)]).await;
    let door = realm.realm.login;
    let (mut ann, mut bea) = (client(&realm, door, "ann"), client(&realm, door, "bea"));
    receives(&mut ann, Awaited::Connected).await;
    receives(&mut bea, Awaited::Connected).await;
    let mut cleo = client(&realm, door, "cleo");
    receives(&mut cleo, Awaited::Position(1)).await;
    let mut dora = client(&realm, door, "dora");
    receives(&mut dora, Awaited::Position(2)).await;
    // Game masters do not wait.
    let other = OtherLogin::start(&realm, &["--exempt-accounts", "master"]).await;
    let mut master = client(&realm, other.address, "master");
    receives(&mut master, Awaited::Connected).await;
    // A session that exists is resumed, and replaced, without waiting.
    bea.cut();
    until_event(&mut bea, "the session to be resumed", |event| {
        matches!(event, Event::Resumed { .. })
    })
    .await;
    let mut again = client(&realm, door, "ann");
    receives(&mut again, Awaited::Connected).await;
    // A client that was disconnected returns to its place.
    drop(cleo);
    let mut cleo = client(&realm, door, "cleo");
    receives(&mut cleo, Awaited::Position(1)).await;

    // The master was above the limit, so the first that leaves makes no room.
    master.leave();
    while master.next().await.is_some() {}
    again.leave();
    while again.next().await.is_some() {}
    receives(&mut cleo, Awaited::Connected).await;
    receives(&mut dora, Awaited::Position(1)).await;
    bea.leave();
    while bea.next().await.is_some() {}
    receives(&mut dora, Awaited::Connected).await;
    // The limit is that of the realm: another login process has no room either, until somebody leaves.
    let mut eve = client(&realm, other.address, "eve");
    receives(&mut eve, Awaited::Position(1)).await;
    cleo.leave();
    while cleo.next().await.is_some() {}
    receives(&mut eve, Awaited::Connected).await;
    realm.assert_playing("a queue").await;
    realm.stop_and_verify().await;
}
