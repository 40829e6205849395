//! Players that come and go: two clients of one account, thousands of short visits, and what other clients see
//! meanwhile.

use annals_base::{DuplicateLogin, TICKET_WINDOW};
use annals_client::{EndReason, Event};
use annals_game::testing::{BASE, EAST, TestRealm, WEST};
use annals_ids::{EntityId, Part, Position};
use annals_wire::client::{CloseReason, LoginRefusal, Rejection};

use crate::world::sample::{avatar_of, stage};

/// All owners.
const OWNERS: [annals_ids::OwnerId; 3] = [BASE, WEST, EAST];

/// Monsters in the world; they walk from cell to cell.
const MONSTERS: usize = 12;

/// Reason for which a player's client has ended.
fn ended(stage: &TestRealm, player: usize) -> Option<EndReason> {
    stage.players[player].events.iter().find_map(|event| match event {
        Event::Ended(reason) => Some(*reason),
        _ => None,
    })
}

/// How often a player's client was connected to a new session.
fn log_ins(stage: &TestRealm, player: usize) -> usize {
    let events = stage.players[player].events.iter();
    events.filter(|event| matches!(event, Event::Connected { .. })).count()
}

#[test]
fn two_clients_of_one_account_do_not_displace_each_other_repeatedly() {
    let mut stage = stage();
    let first = stage.join();
    let avatar = avatar_of(&mut stage, first);
    let second = stage.join_as(0);
    assert_eq!(avatar_of(&mut stage, second), avatar, "the avatar is the same");
    // Long enough for either to log in again, if it did.
    stage.pass(20_000);
    let elsewhere = EndReason::Closed(CloseReason::LoggedInElsewhere);
    assert_eq!(ended(&stage, first), Some(elsewhere));
    assert!(elsewhere.is_elsewhere());
    assert!(elsewhere.to_string().contains("the account logged in elsewhere"));
    assert_eq!((log_ins(&stage, first), log_ins(&stage, second)), (1, 1));
    assert!(stage.players[second].core.is_playing());
    assert_eq!(stage.sessions(), 1);
}

#[test]
fn an_absent_client_learns_of_a_log_in_elsewhere() {
    let mut stage = stage();
    let first = stage.join();
    avatar_of(&mut stage, first);
    stage.cut_off(first);
    let second = stage.join_as(0);
    avatar_of(&mut stage, second);
    stage.reconnect(first);
    stage.pass(10_000);
    let elsewhere = EndReason::Rejected(Rejection::LoggedInElsewhere);
    assert_eq!(ended(&stage, first), Some(elsewhere));
    assert!(elsewhere.is_elsewhere() && stage.players[second].core.is_playing());
}

#[test]
fn a_second_client_is_refused_if_configured() {
    let mut stage = stage();
    stage.duplicate = DuplicateLogin::Refuse;
    let first = stage.join();
    avatar_of(&mut stage, first);
    let second = stage.join_as(0);
    stage.pass(20_000);
    let refused = EndReason::LoginRefused(LoginRefusal::LoggedIn);
    assert_eq!(ended(&stage, second), Some(refused));
    assert!(refused.is_elsewhere() && refused.to_string().contains("leave there first"));
    assert!(stage.players[first].core.is_playing());
    assert_eq!(log_ins(&stage, first), 1);

    // A client that resumed after its base was lost counts too, although the account it logged in to is no longer
    // known.
    stage.crash(BASE);
    stage.pass(5_000);
    assert!(stage.players[first].core.is_playing());
    let third = stage.join_as(0);
    stage.pass(5_000);
    let end = ended(&stage, third).expect("it is refused");
    assert!(end.is_elsewhere(), "{end}");
    assert!(stage.players[first].core.is_playing());

    // A client that is disconnected is replaced: its player may have moved to another machine.
    stage.cut_off(first);
    let fourth = stage.join_as(0);
    avatar_of(&mut stage, fourth);
    stage.reconnect(first);
    stage.pass(5_000);
    assert!(stage.players[fourth].core.is_playing());
    let end = ended(&stage, first).expect("its session has ended");
    assert!(end.is_elsewhere(), "{end}");
}

/// How a visit ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The client says goodbye.
    Leaves,
    /// The player logs off.
    LogsOff,
    /// The connection breaks and does not come back.
    Breaks,
}

/// A visit from the log-in to its end, `after` milliseconds later: at once, before there is a session; on the account;
/// or in the world.
fn visit(stage: &mut TestRealm, account: usize, end: End, after: u64) {
    let player = stage.join_as(account);
    stage.pass(after);
    match end {
        End::Leaves => stage.players[player].core.leave(),
        End::LogsOff => {
            let avatar = stage.players[player].core.controls().map(|(entity, _)| entity);
            if let Some(avatar) = avatar {
                // An account without an avatar has no log-off.
                stage.try_call(player, avatar, Part::Base, "logOff");
            }
            stage.players[player].core.leave();
        }
        End::Breaks => return stage.lose(player),
    }
    stage.pass(20);
}

/// Bytes of each owner's snapshot other than its entities, and the number of its entities.
fn sizes(stage: &TestRealm) -> [(usize, usize); 3] {
    OWNERS.map(|owner| {
        let (state, mut bytes) = (stage.state(owner), Vec::new());
        state.write_own(&mut bytes);
        (bytes.len(), state.entities.len())
    })
}

/// Number of links of which entities keep an end.
fn links(stage: &TestRealm) -> usize {
    let images = OWNERS.iter().flat_map(|owner| stage.state(*owner).entities.values());
    images
        .map(|image| image.links.sent.len() + image.links.taken.len())
        .sum()
}

#[test]
fn two_thousand_short_visits_leave_no_state() {
    const ACCOUNTS: usize = 20;
    const ROUNDS: usize = 100;
    let mut stage = stage();
    stage.pass(3_000);
    let mut before = None;
    for round in 0..ROUNDS {
        for account in 0..ACCOUNTS {
            let end = [End::Leaves, End::LogsOff, End::Breaks][(round + account) % 3];
            let after = [0, 100, 0, 60, 1_200][account % 5];
            visit(&mut stage, account, end, after);
        }
        stage.forget_players();
        if round % 10 != 9 {
            continue;
        }
        // A session waits for its client for a while, and longest while its ticket is valid.
        stage.pass(u64::try_from(TICKET_WINDOW.as_millis()).unwrap() + 5_000);
        assert_eq!(stage.sessions(), 0, "round {round}");
        for entity_type in ["Account", "Avatar"] {
            assert_eq!(stage.count(&OWNERS, entity_type), 0, "{entity_type} in round {round}");
        }
        before.get_or_insert_with(|| (sizes(&stage), links(&stage)));
    }
    let (before, after) = (before.unwrap(), (sizes(&stage), links(&stage)));
    println!("bytes and entities, and links, after 200 visits {before:?}, after 2,000 {after:?}");
    for ((before, entities), (after, then)) in before.0.into_iter().zip(after.0) {
        // The home of a monster remembers where it has gone.
        assert!(after <= before + 32 * MONSTERS, "{before} bytes became {after}");
        // Monsters walk from cell to cell.
        assert!(then <= entities + MONSTERS, "{entities} entities became {then}");
    }
    assert!(after.1 <= before.1 + 2 * MONSTERS, "{before:?} {after:?}");
    let base = stage.state(BASE);
    assert!(base.estates.is_empty() && base.departing.is_empty() && base.databases.is_empty());
}

/// Position at which a player sees an entity.
fn seen_at(stage: &TestRealm, player: usize, entity: EntityId) -> Option<Position> {
    let seen = stage.players[player].core.entity(entity)?;
    seen.place.map(|(position, _)| position)
}

#[test]
fn a_departing_client_does_not_stop_updates_of_others() {
    let mut stage = stage();
    let (stays, watches) = (stage.join(), stage.join());
    let (own, other) = (avatar_of(&mut stage, stays), avatar_of(&mut stage, watches));
    let begin = seen_at(&stage, stays, own).unwrap();
    for step in 1..=40_u16 {
        if step % 4 == 0 {
            // A visitor comes near, and leaves in one of three ways.
            let end = [End::Leaves, End::LogsOff, End::Breaks][usize::from(step / 4) % 3];
            visit(&mut stage, 2 + usize::from(step), end, 1_200);
        }
        let position = Position {
            x: begin.x + f32::from(step) * 0.3,
            ..begin
        };
        stage.stand(stays, position);
        let title = format!("step {step}");
        stage.call(
            stays,
            own,
            Part::Base,
            "setTitle",
            &[annals_def::Value::Unicode(title.clone())],
        );
        stage.pass(500);
        for player in [stays, watches] {
            let seen = stage.players[player].core.property(own, "title");
            assert_eq!(
                seen,
                Some(&annals_def::Value::Unicode(title.clone())),
                "player {player} at step {step}"
            );
            let at = seen_at(&stage, player, own).unwrap();
            assert!(
                (at.x - position.x).abs() < 0.1,
                "player {player} at step {step}: {at:?}"
            );
        }
        assert!(stage.players[stays].core.entity(other).is_some(), "step {step}");
    }
}
