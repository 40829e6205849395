//! Clients that are given to entities at another owner, and taken from there.

use std::sync::OnceLock;

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{Call, GivenClient, GivenOutcome};
use annals_ids::{CallNumber, DatabaseId, EntityId, Mailbox, OwnerId, Part, SessionId, WorldTime};
use annals_node::{Context, Request};
use annals_wire::{
    SpaceMap,
    client::{CloseReason, Proof, Rejection, Secret, ToServer},
};

use crate::{
    bans::ban,
    calls::names_client,
    cell::Cell,
    game::{AVATAR, Game, create_cell},
    host::{BASE, CELL, Host, OTHER, call_of_other, map},
    lifecycle::trail,
    player::{Entrance, Player, log_in},
};

/// Longer than a session waits for its client.
const RESUME_MS: u64 = 31_000;

/// The entity at the other owner.
const FAR: Mailbox = Mailbox {
    entity: EntityId(70_000),
    home: OTHER,
    type_id: AVATAR,
    part: Part::Base,
};

const SESSION: SessionId = SessionId(900);

fn give_far(context: &mut Context<'_>) {
    let from = context.entity();
    context.request(Request::GiveClient { from, to: FAR }).unwrap();
}

/// A host whose game gives the client away when it is asked to, and a player there.
fn player_with(errand: fn(&mut Context<'_>)) -> (Host, Player, EntityId) {
    let mut host = Host::of(Game {
        errand: Some(errand),
        ..Game::default()
    });
    host.role(BaseInput::Map(SpaceMap {
        bases: [BASE, OTHER].into(),
        ..map()
    }));
    let player = log_in(&mut host, 5, 1);
    let (entity, _) = player.entity.expect("it was welcomed");
    (host, player, entity)
}

fn run_errand(host: &mut Host, entity: EntityId) {
    run_errand_numbered(host, entity, 1);
}

fn run_errand_numbered(host: &mut Host, entity: EntityId, number: u64) {
    let account = host.schema.type_named("Account").expect("the game has accounts");
    let method = account.base_method_named("run_errand").expect("it exists").index;
    host.call_numbered(entity, method, CallNumber(number));
    host.settle();
}

/// The calls to the other owner, with their numbers, that give it a client.
fn offers(host: &mut Host) -> Vec<(CallNumber, GivenClient)> {
    let calls = host
        .calls_to_other()
        .into_iter()
        .filter_map(|(number, call)| match call {
            Call::GiveClient(given) => Some((number, *given)),
            _ => None,
        });
    calls.collect()
}

fn offer(host: &mut Host) -> GivenClient {
    let mut offers = offers(host);
    let (_, last) = offers.pop().expect("the client is given");
    assert!(offers.iter().all(|(_, other)| *other == last), "{offers:?}");
    last
}

/// The other owner answers with its call of this number.
fn answer(host: &mut Host, number: u64, given: &GivenClient, outcome: GivenOutcome) {
    let GivenClient { from, to, session, .. } = *given;
    let answer = Call::ClientTaken {
        from,
        to,
        session,
        outcome,
    };
    host.receive(call_of_other(number, answer));
    host.settle();
}

fn taken(given: &GivenClient) -> GivenOutcome {
    GivenOutcome::Taken { token: given.token }
}

fn digest(player: &Player) -> [u8; 32] {
    let (Proof::Ticket(secret) | Proof::Resume(secret)) = &player.proof;
    secret.digest().0
}

#[test]
fn a_client_goes_to_an_entity_at_another_owner_once_that_has_taken_it() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let given = offer(&mut host);
    assert_eq!((given.from, given.to, given.session), (entity, FAR, player.session));
    assert_eq!((given.token, given.account), (digest(&player), Some(DatabaseId(5))));
    assert!(!given.gives_way);
    player.listen(&mut host);
    assert_eq!(
        (player.given, player.closed),
        (None, None),
        "it stays until it is taken"
    );
    assert!(host.image(entity).client.is_some());

    answer(&mut host, 1, &given, taken(&given));
    player.listen(&mut host);
    assert_eq!((player.given, player.closed), (Some(OTHER), Some(CloseReason::Moved)));
    assert!(host.image(entity).client.is_none());
    assert_eq!(host.owner.role().sessions(), 0);
    assert_eq!(trail(&host, entity), "bA", "its behaviour has asked for it");
    // A client that has missed this learns it when it connects; another one does not.
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(
        (&player.entrance, player.closed),
        (&Entrance::Given(OTHER), Some(CloseReason::Moved))
    );
    player.proof = Proof::Resume(Secret([9; 32]));
    player.connect(&mut host, 3);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Rejected(Rejection::UnknownSession));
}

#[test]
fn a_client_that_connects_again_meanwhile_is_given_with_its_new_token() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let first = offer(&mut host);
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    answer(&mut host, 1, &first, taken(&first));
    player.listen(&mut host);
    assert_eq!(player.given, None, "the other owner expects another token");
    let second = offer(&mut host);
    assert_eq!(
        (second.token, second.former_token),
        (digest(&player), Some(first.token))
    );
    answer(&mut host, 2, &second, taken(&second));
    player.listen(&mut host);
    assert_eq!(player.given, Some(OTHER));
}

#[test]
fn a_refused_client_stays_and_may_be_given_again() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let given = offer(&mut host);
    run_errand_numbered(&mut host, entity, 2);
    assert_eq!(trail(&host, entity), "bAK", "it is given once at a time");
    assert_eq!(offers(&mut host), []);
    answer(&mut host, 1, &given, GivenOutcome::Refused("it has ended".into()));
    assert_eq!(trail(&host, entity), "bAKK");
    assert_eq!(host.owner.role().counters().denied, 2);
    player.listen(&mut host);
    assert_eq!((player.given, player.closed), (None, None));
    run_errand_numbered(&mut host, entity, 3);
    let again = offer(&mut host);
    answer(&mut host, 2, &again, taken(&again));
    player.listen(&mut host);
    assert_eq!(player.given, Some(OTHER));
}

#[test]
fn a_session_that_gives_way_ends_with_its_log_in() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let given = offer(&mut host);
    answer(&mut host, 1, &given, GivenOutcome::InUse);
    player.listen(&mut host);
    assert_eq!(player.closed, Some(CloseReason::LoggedInElsewhere));
    assert_eq!(trail(&host, entity), "bAL");
    assert!(host.image(entity).client.is_none());
}

#[test]
fn an_entity_ends_after_it_has_given_its_client_away() {
    let give_and_end = |context: &mut Context<'_>| {
        give_far(context);
        let entity = context.entity();
        context.request(Request::Destroy { entity }).unwrap();
        context.request(Request::Destroy { entity }).unwrap();
    };
    for is_taken in [true, false] {
        let (mut host, mut player, entity) = player_with(give_and_end);
        run_errand(&mut host, entity);
        let given = offer(&mut host);
        host.crash();
        host.pass(1_000);
        assert_eq!(trail(&host, entity), "bAr", "it waits");
        assert_eq!(offer(&mut host), given, "the call survives the process");
        player.connect(&mut host, 2);
        player.listen(&mut host);
        let given = match is_taken {
            true => {
                // The client has another token by now.
                answer(&mut host, 1, &given, taken(&given));
                offer(&mut host)
            }
            false => given,
        };
        let outcome = match is_taken {
            true => taken(&given),
            false => GivenOutcome::Refused("it is full".into()),
        };
        answer(&mut host, if is_taken { 2 } else { 1 }, &given, outcome);
        player.listen(&mut host);
        let expected = match is_taken {
            true => (Some(OTHER), Some(CloseReason::Moved), "bArd"),
            false => (None, Some(CloseReason::Ended), "bArKd"),
        };
        assert_eq!((player.given, player.closed, trail(&host, entity).as_str()), expected);
        assert!(!host.folded().entities.contains_key(&entity), "it has ended");
    }
}

#[test]
fn an_answer_to_a_session_that_has_ended_changes_nothing() {
    let (mut host, player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let given = offer(&mut host);
    let next = log_in(&mut host, 5, 2);
    assert_ne!(next.session, player.session, "a later log-in has replaced it");
    answer(&mut host, 1, &given, taken(&given));
    let client = host.image(entity).client.expect("the later one stays");
    assert_eq!(client.session, next.session);
}

/// A host with an account that another owner gives a client, and that client.
fn host_with_account() -> (Host, Mailbox, Player) {
    let mut host = Host::new();
    let entity = host.begin_account(5);
    let (to, player) = given_player(&mut host, entity);
    (host, to, player)
}

/// A client of another owner, and the entity that is to get it.
fn given_player(host: &mut Host, entity: EntityId) -> (Mailbox, Player) {
    let to = Mailbox {
        entity,
        home: BASE,
        type_id: host.image(entity).type_id,
        part: Part::Base,
    };
    let secret = host.secret();
    let mut player = Player::new(&host.schema, SESSION, secret.clone());
    player.proof = Proof::Resume(secret);
    (to, player)
}

fn given_to(to: Mailbox, player: &Player) -> GivenClient {
    GivenClient {
        from: FAR.entity,
        to,
        session: player.session,
        token: digest(player),
        former_token: None,
        account: Some(DatabaseId(5)),
        opened: WorldTime(u64::MAX),
        gives_way: false,
    }
}

/// The other owner gives the client with its call of this number; returns the answer.
fn take(host: &mut Host, number: u64, given: &GivenClient) -> GivenOutcome {
    host.receive(call_of_other(number, Call::GiveClient(Box::new(given.clone()))));
    host.settle();
    let calls = host.calls_to_other().into_iter();
    let mut answers = calls.filter_map(|(_, call)| match call {
        Call::ClientTaken {
            from, session, outcome, ..
        } => {
            assert_eq!((from, session), (given.from, given.session));
            Some(outcome)
        }
        _ => None,
    });
    answers.next_back().expect("it is answered")
}

fn refused(outcome: &GivenOutcome) -> &str {
    match outcome {
        GivenOutcome::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_of_another_owner_is_expected_and_admitted_also_by_the_next_process() {
    for crashes in [false, true] {
        let (mut host, to, mut player) = host_with_account();
        let given = given_to(to, &player);
        assert_eq!(take(&mut host, 1, &given), taken(&given));
        assert_eq!(trail(&host, to.entity), "b", "it is not here yet");
        if crashes {
            host.crash();
        }
        player.connect(&mut host, 1);
        player.listen(&mut host);
        assert_eq!(player.entrance, Entrance::Welcomed);
        assert_eq!(player.entity, Some((to.entity, to.type_id)));
        player.begin_view(&mut host);
        host.settle();
        player.listen(&mut host);
        assert!(player.has.is_some(), "it is shown its entity");
        let expected = if crashes { "brA" } else { "bA" };
        assert_eq!(trail(&host, to.entity), expected);
        player.connect(&mut host, 2);
        assert_eq!(trail(&host, to.entity), expected, "it comes once");
    }
}

#[test]
fn a_client_that_is_given_again_before_it_came_has_its_newest_token() {
    let (mut host, to, mut player) = host_with_account();
    let first = given_to(to, &player);
    take(&mut host, 1, &first);
    let secret = host.secret();
    let before = std::mem::replace(&mut player.proof, Proof::Resume(secret));
    let second = given_to(to, &player);
    assert_eq!(take(&mut host, 2, &second), taken(&second));
    let newest = std::mem::replace(&mut player.proof, before);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Rejected(Rejection::UnknownSession));
    player.proof = newest;
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}

#[test]
fn a_client_whose_welcome_was_lost_is_admitted_with_the_token_before_it() {
    let (mut host, to, mut player) = host_with_account();
    let lost = host.secret();
    let given = GivenClient {
        token: lost.digest().0,
        former_token: Some(digest(&player)),
        ..given_to(to, &player)
    };
    take(&mut host, 1, &given);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}

#[test]
fn an_answer_that_comes_late_is_not_relied_on() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let first = offer(&mut host);
    host.pass(RESUME_MS);
    let repeated = offers(&mut host);
    assert!(repeated.iter().all(|(_, given)| *given == first), "{repeated:?}");
    answer(&mut host, 1, &first, taken(&first));
    player.listen(&mut host);
    assert_eq!(player.given, None, "the other owner may not expect it any more");
    let second = offer(&mut host);
    answer(&mut host, 2, &second, taken(&second));
    player.listen(&mut host);
    assert_eq!(player.given, Some(OTHER));
}

#[test]
fn a_client_that_is_given_again_is_expected_for_longer() {
    let (mut host, to, mut player) = host_with_account();
    let given = given_to(to, &player);
    take(&mut host, 1, &given);
    host.pass(RESUME_MS - 2_000);
    assert_eq!(take(&mut host, 2, &given), taken(&given));
    host.pass(RESUME_MS - 2_000);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    // Also if it was lost meanwhile.
    let (mut host, to, mut player) = host_with_account();
    let given = given_to(to, &player);
    take(&mut host, 1, &given);
    host.pass(RESUME_MS);
    assert_eq!(take(&mut host, 2, &given), taken(&given));
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}

#[test]
fn a_client_is_not_given_to_an_owner_that_is_no_base() {
    let (mut host, player, entity) = player_with(|context| {
        let from = context.entity();
        for home in [CELL, OwnerId(9_999), OwnerId::OUTSIDE] {
            let to = Mailbox { home, ..FAR };
            context.request(Request::GiveClient { from, to }).unwrap();
        }
    });
    run_errand(&mut host, entity);
    assert_eq!(trail(&host, entity), "bAKKK");
    assert!(host.image(entity).client.is_some(), "{:?}", player.session);
}

#[test]
fn the_end_of_an_entity_waits_no_longer_than_it_has_its_client() {
    let (mut host, player, entity) = player_with(|context| {
        give_far(context);
        let entity = context.entity();
        context.request(Request::Destroy { entity }).unwrap();
    });
    run_errand(&mut host, entity);
    host.pass(1_000);
    assert_eq!(trail(&host, entity), "bA", "the other owner does not answer");
    player.send(&mut host, &ToServer::Bye);
    host.settle();
    assert_eq!(trail(&host, entity), "bALd");
}

/// A call that waits until a cell part knows its client does not reach that part after the client was given away.
#[test]
fn calls_that_wait_end_when_the_client_is_given_away() {
    static FIRST: OnceLock<Mailbox> = OnceLock::new();
    let (mut host, mut player, account) = player_with(|context| {
        let to = context.create_base("Avatar", Vec::new()).unwrap();
        let from = FIRST.get().map_or(context.entity(), |first| first.entity);
        FIRST.get_or_init(|| to);
        context.request(create_cell(to.entity)).unwrap();
        context.request(Request::GiveClient { from, to }).unwrap();
    });
    let mut cell = Cell::new(CELL);
    for errand in 1..=2 {
        run_errand_numbered(&mut host, account, errand);
        // The cell parts begin, and do not know their client.
        host.sent
            .retain(|(to, envelope)| *to == CELL && !names_client(&envelope.message));
        cell.work(&mut host);
        player.listen(&mut host);
        if errand == 1 {
            player.call(&mut host, Part::Cell, "hit", &[Value::UInt(1)]);
            host.settle();
        }
    }
    let (second, _) = player.entity.expect("it was welcomed");
    assert_ne!(Some(second), FIRST.get().map(|first| first.entity));
    host.pass(5_000);
    host.sent.retain(|(to, _)| *to == CELL);
    cell.work(&mut host);
    assert!(cell.parts[&second].is_some(), "the second part knows its client");
    assert!(cell.exposed.is_empty(), "{:?}", cell.exposed);
}

#[test]
fn an_entity_whose_end_is_under_way_ends_after_its_client_was_taken() {
    // The account's client becomes an avatar, which is then to end.
    static AVATAR_OF_CLIENT: OnceLock<Mailbox> = OnceLock::new();
    let (mut host, mut player, account) = player_with(|context| {
        let Some(avatar) = AVATAR_OF_CLIENT.get() else {
            let to = context.create_base("Avatar", Vec::new()).unwrap();
            AVATAR_OF_CLIENT.set(to).unwrap();
            let from = context.entity();
            context.request(Request::GiveClient { from, to }).unwrap();
            return context.request(create_cell(to.entity)).unwrap();
        };
        let from = avatar.entity;
        context.request(Request::Destroy { entity: from }).unwrap();
        context.request(Request::GiveClient { from, to: FAR }).unwrap();
    });
    let mut cell = Cell::new(CELL);
    run_errand(&mut host, account);
    host.sent.retain(|(to, _)| *to == CELL);
    cell.work(&mut host);
    player.listen(&mut host);
    let (entity, _) = player.entity.expect("it was welcomed");
    assert_eq!(trail(&host, entity), "bAg");
    run_errand_numbered(&mut host, account, 2);
    let (others, for_cell) = std::mem::take(&mut host.sent)
        .into_iter()
        .partition(|(to, _)| *to != CELL);
    host.sent = for_cell;
    cell.work(&mut host);
    host.sent = others;
    let given = offer(&mut host);
    player.listen(&mut host);
    assert_eq!(player.closed, None, "it stays until it is taken");
    answer(&mut host, 1, &given, taken(&given));
    player.listen(&mut host);
    assert_eq!((player.given, player.closed), (Some(OTHER), Some(CloseReason::Moved)));
    assert!(trail(&host, entity).ends_with("ld"), "{}", trail(&host, entity));
}

#[test]
fn the_session_of_an_earlier_log_in_ends_when_it_is_given_to_a_played_entity() {
    let mut host = Host::new();
    let mut present = log_in(&mut host, 5, 1);
    let (entity, _) = present.entity.expect("it was welcomed");
    let (to, player) = given_player(&mut host, entity);
    let given = GivenClient {
        opened: WorldTime(1),
        ..given_to(to, &player)
    };
    assert_eq!(take(&mut host, 1, &given), GivenOutcome::InUse);
    present.listen(&mut host);
    assert_eq!(present.closed, None);
}

#[test]
fn a_client_that_is_given_back_before_it_has_left_stays() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let first = offer(&mut host);
    player.connect(&mut host, 2);
    player.listen(&mut host);
    // The other entity, which expects the first token, gives it back; this owner has not given it again yet.
    let back = GivenClient {
        from: FAR.entity,
        to: Mailbox {
            entity,
            home: BASE,
            ..FAR
        },
        ..first.clone()
    };
    assert_eq!(take(&mut host, 1, &back), taken(&back));
    answer(&mut host, 2, &first, taken(&first));
    assert_eq!(offers(&mut host), [], "it is not given again");
    player.listen(&mut host);
    assert_eq!((player.given, player.closed), (None, None));
    player.connect(&mut host, 3);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed, "its own token is valid");
}

#[test]
fn a_client_that_has_come_keeps_its_token() {
    let (mut host, to, mut player) = host_with_account();
    let given = given_to(to, &player);
    take(&mut host, 1, &given);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    let connection = player.connection;
    host.role(BaseInput::Closed { connection });
    assert_eq!(take(&mut host, 2, &given), taken(&given));
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}

#[test]
fn a_client_that_does_not_come_is_lost() {
    let (mut host, to, mut player) = host_with_account();
    let given = given_to(to, &player);
    take(&mut host, 1, &given);
    host.pass(RESUME_MS);
    assert_eq!(trail(&host, to.entity), "bL");
    assert_eq!(host.owner.role().sessions(), 0);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Rejected(Rejection::UnknownSession));
}

#[test]
fn the_later_log_in_has_an_entity_unless_it_gives_way() {
    for gives_way in [false, true] {
        let mut host = Host::new();
        let mut present = log_in(&mut host, 5, 1);
        let (entity, _) = present.entity.expect("it was welcomed");
        let (to, player) = given_player(&mut host, entity);
        let given = GivenClient {
            gives_way,
            ..given_to(to, &player)
        };
        let outcome = take(&mut host, 1, &given);
        present.listen(&mut host);
        match gives_way {
            true => assert_eq!((outcome, present.closed), (GivenOutcome::InUse, None)),
            false => assert_eq!(
                (outcome, present.closed),
                (taken(&given), Some(CloseReason::LoggedInElsewhere))
            ),
        }
    }
}

#[test]
fn a_client_is_refused_with_the_reason() {
    let (mut host, to, player) = host_with_account();
    let nowhere = Mailbox {
        entity: EntityId(60_000),
        ..to
    };
    let outcome = take(&mut host, 1, &given_to(nowhere, &player));
    assert_eq!(refused(&outcome), "there is no such entity");
    assert_eq!(ban(&mut host, None), 0);
    let outcome = take(&mut host, 2, &given_to(to, &player));
    assert_eq!(refused(&outcome), "its account is banned");
    assert_eq!(host.owner.role().sessions(), 0);
    assert!(host.image(to.entity).client.is_none());
}

#[test]
fn a_client_that_returns_is_expected_where_it_was() {
    let (mut host, mut player, entity) = player_with(give_far);
    run_errand(&mut host, entity);
    let given = offer(&mut host);
    answer(&mut host, 1, &given, taken(&given));
    player.listen(&mut host);
    let back = GivenClient {
        from: FAR.entity,
        to: Mailbox {
            entity,
            home: BASE,
            ..FAR
        },
        ..given
    };
    assert_eq!(take(&mut host, 2, &back), taken(&back));
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed, "it is not sent away");
    assert_eq!(trail(&host, entity), "bAA");
}
