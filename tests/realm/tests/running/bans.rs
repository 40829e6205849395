//! Bans by operators in a live realm, by real processes and commands.

use annals_client::{EndReason, Event};
use annals_host::nats::ServerCount;
use annals_realm::Folder;
use annals_wire::client::{Ban, LoginRefusal};

use crate::{
    operators::Operator,
    played::{Played, are_built, until_event},
};

const NAME: &str = "mallory";
const REASON: [&str; 4] = ["--by", "Grace Hopper", "--reason", "case 9: trading outside the game"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_banned_player_is_out_and_receives_the_reason_until_the_ban_ends() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let folder = Folder::create();
    let operator = Operator {
        folder: folder.path(),
        nats: realm.realm.nats(),
    };
    // Playing as another entity than the account, on a base that was taken over since.
    let mut client = realm.client(NAME, "the password");
    until_event(&mut client, "the world", |event| {
        matches!(event, Event::SpaceEntered { .. })
    })
    .await;
    let bases = ["base-1", "base-2"];
    for name in bases {
        realm.kill(name);
    }
    for name in bases {
        realm.start_again(name);
    }
    until_event(&mut client, "the take-over", |event| {
        matches!(event, Event::Resumed { .. })
    })
    .await;
    let line = [&["realm", "ban", NAME, "--for", "1h"][..], &REASON].concat();
    // Meanwhile the client reads: one that does not is closed without the reason.
    let (banned, ban) = tokio::join!(operator.object(0, &line), banned_out(&mut client));
    assert_eq!(banned["sessionsEnded"], 1, "{banned}");
    assert_eq!(ban.reason, REASON[3]);
    assert!(ban.until.is_some());

    assert_eq!(banned_out(&mut realm.client(NAME, "the password")).await, ban);
    let mut guesses = realm.client(NAME, "a guess");
    let end = until_event(&mut guesses, "an end", |event| matches!(event, Event::Ended(_))).await;
    assert_eq!(end, Event::Ended(EndReason::LoginRefused(LoginRefusal::WrongPassword)));

    realm.kill("db");
    realm.start_again("db");
    assert_eq!(
        banned_out(&mut realm.client(NAME, "the password")).await,
        ban,
        "the ban is durable"
    );
    check_lists(&operator, &banned["stored"].to_string()).await;
    // The ban has been lifted, and the next one ends by itself.
    plays(&realm).await;
    operator
        .run_expecting(0, &[&["realm", "ban", NAME, "--for", "2s"][..], &REASON].concat())
        .await;
    plays(&realm).await;
    realm.assert_playing("a ban").await;
    realm.stop_and_verify().await;
}

/// Waits until a client is out. Returns the ban that it received.
async fn banned_out(client: &mut annals_client::Client) -> Ban {
    let event = until_event(client, "a ban", |event| matches!(event, Event::Banned(_))).await;
    let Event::Banned(ban) = event else {
        panic!("{event:?} was not waited for")
    };
    assert_eq!(client.next().await, Some(Event::Ended(EndReason::Banned)));
    ban
}

/// The account can play, now or later.
async fn plays(realm: &Played) {
    loop {
        let mut client = realm.client(NAME, "the password");
        let is_known = |event: &Event| matches!(event, Event::Connected { .. } | Event::Banned(_));
        if let Event::Connected { .. } = until_event(&mut client, "a log-in", is_known).await {
            client.leave();
            while client.next().await.is_some() {}
            return;
        }
    }
}

/// The ban is listed until it is lifted, and both stay on record.
async fn check_lists(operator: &Operator<'_>, stored: &str) {
    let listed = operator.run_expecting(0, &["realm", "bans"]).await;
    assert!(listed.contains(stored) && listed.contains("Grace Hopper"), "{listed}");
    operator
        .run_expecting(0, &[&["realm", "unban", NAME][..], &REASON].concat())
        .await;
    let again = [&["realm", "unban", NAME][..], &REASON].concat();
    let again = operator.run_expecting(2, &again).await;
    assert!(again.contains("is not banned"), "{again}");
    let present = operator.object(0, &["realm", "bans", NAME]).await;
    assert_eq!(present["bans"].as_array().map(Vec::len), Some(0), "{present}");
    let all = operator.object(0, &["realm", "bans", NAME, "--all"]).await;
    let decisions: Vec<&str> = all["bans"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|record| record["decision"].as_str())
        .collect();
    assert_eq!(decisions, ["banned", "lifted"], "{all}");
}
