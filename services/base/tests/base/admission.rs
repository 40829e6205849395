//! Tickets, tokens, and rejections.

use std::sync::Arc;

use annals_base::{BaseInput, DuplicateLogin, RESUME_WINDOW, TICKET_WINDOW};
use annals_def::{DataType, Distribution, Property, Schema};
use annals_event::Body;
use annals_ids::{DatabaseId, Epoch, Hash, OwnerId, SessionId, TypeId};
use annals_node::{ConnectionId, NotOpened};
use annals_personal::Admission;
use annals_wire::client::{CloseReason, Hello, Proof, Rejection, Secret};

use crate::{
    game::{AVATAR, text},
    host::{self, FROM, Host, Mood, Out, open},
    player::{Entrance, Player, log_in, with_ticket},
};

fn trail(host: &Host, player: &Player) -> String {
    let (entity, type_id) = player.entity.unwrap();
    let property = host
        .schema
        .entity_type(type_id)
        .unwrap()
        .property_named("trail")
        .unwrap();
    text(&host.image(entity).properties[&property.index])
}

#[test]
fn a_ticket_lets_its_client_in_once() {
    let mut host = Host::new();
    let mut player = with_ticket(&mut host, 5, 1);
    let ticket = player.proof.clone();
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    assert_eq!(trail(&host, &player), "bA");
    assert_eq!(
        host.owner.cx().state().databases[&DatabaseId(5)],
        player.entity.unwrap().0
    );

    let Proof::Ticket(secret) = ticket.clone() else {
        panic!("{ticket:?}")
    };
    for proof in [ticket, Proof::Resume(secret)] {
        let mut thief = Player::new(&host.schema, player.session, Secret([0; 32]));
        thief.proof = proof;
        thief.connect(&mut host, 2);
        thief.listen(&mut host);
        assert_eq!(thief.entrance, Entrance::Rejected(Rejection::UnknownSession));
        assert_eq!(thief.closed, Some(CloseReason::Finished));
    }
    player.listen(&mut host);
    assert_eq!(player.closed, None, "the connected client is unaffected");
}

#[test]
fn nothing_is_sent_before_its_batch() {
    let mut host = Host::new();
    let ticket = host.secret();
    host.mood = Mood::Withholds;
    let wanted = open(&host, 1, 5, 5, &ticket);
    host.role(BaseInput::OpenSession(wanted));
    host.pass(300);
    assert!(host.opened.is_empty(), "an unlogged session was announced");
    host.answer_again();
    assert_eq!(host.opened.len(), 1);

    let mut player = Player::new(&host.schema, host.opened[0].1.clone().unwrap(), ticket);
    host.mood = Mood::Withholds;
    player.connect(&mut host, 1);
    assert!(host.out.is_empty(), "a welcome whose token is not logged left");
    host.answer_again();
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}

#[test]
fn a_client_with_a_difference_in_server_only_definitions_is_admitted() {
    let mut host = Host::new();
    let mut types = host.schema.types().to_vec();
    types[0]
        .properties
        .push(Property::new("secret", DataType::UInt8, Distribution::Base));
    let other = Schema::new(types, Vec::new(), Vec::new());
    assert_ne!(other.fingerprint(), host.schema.fingerprint());

    let invited = with_ticket(&mut host, 5, 1);
    let mut player = Player::new(&Arc::new(other), invited.session, Secret([0; 32]));
    player.proof = invited.proof.clone();
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}

#[test]
fn an_unexpected_client_receives_the_reason() {
    let mut host = Host::new();
    let player = with_ticket(&mut host, 5, 1);
    let good = player.hello(host.epoch);
    type Spoil = fn(&mut Hello);
    let cases: [(Spoil, Rejection); 7] = [
        (|hello| hello.protocol = Hash([1; 32]), Rejection::WrongProtocol),
        (|hello| hello.schema = Hash([1; 32]), Rejection::WrongSchema),
        (|hello| hello.owner = OwnerId(77), Rejection::Elsewhere),
        (|hello| hello.epoch = Epoch(9), Rejection::Elsewhere),
        (|hello| hello.session = SessionId(77), Rejection::UnknownSession),
        (
            |hello| hello.proof = Proof::Ticket(Secret([0; 32])),
            Rejection::UnknownSession,
        ),
        (
            |hello| hello.proof = Proof::Resume(Secret([0; 32])),
            Rejection::UnknownSession,
        ),
    ];
    for (connection, (spoil, rejection)) in (1..).map(ConnectionId).zip(cases) {
        let mut hello = good.clone();
        spoil(&mut hello);
        let fresh_token = host.secret();
        host.role(BaseInput::Hello {
            connection,
            from: FROM,
            hello,
            fresh_token,
        });
        host.settle();
        let expected = [Out::Reject(connection, rejection)];
        assert_eq!(host.out.drain(..).collect::<Vec<_>>(), expected, "{rejection}");
    }
    assert_eq!(host.owner.role().counters().rejected, 7);
    assert_eq!(host.owner.role().connected(), 0);
}

#[test]
fn a_session_is_resumed_by_its_token() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let mut before = Player::new(&host.schema, player.session, Secret([0; 32]));
    before.entrance = Entrance::Welcomed;
    (before.proof, before.connection) = (player.proof.clone(), player.connection);

    player.connect(&mut host, 2);
    before.listen(&mut host);
    assert_eq!(
        before.closed,
        Some(CloseReason::Replaced),
        "one session, one connection"
    );
    // The welcome is lost; the previous token is still valid.
    host.out.clear();
    player.connect(&mut host, 3);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    // Now the client has sent a frame under the new token.
    player.begin_view(&mut host);
    host.settle();
    player.listen(&mut host);
    let mut thief = Player::new(&host.schema, player.session, Secret([0; 32]));
    thief.proof = before.proof.clone();
    thief.connect(&mut host, 4);
    thief.listen(&mut host);
    assert_eq!(thief.entrance, Entrance::Rejected(Rejection::UnknownSession));
    assert_eq!(trail(&host, &player), "bA", "it was attached once");
}

#[test]
fn a_session_is_resumed_after_a_take_over() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    host.crash();
    host.pass(20_000);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    host.pass(60_000);
    assert_eq!(trail(&host, &player), "bAr", "neither attached again nor lost");

    host.crash();
    host.pass(31_000);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Rejected(Rejection::UnknownSession));
    assert_eq!(trail(&host, &player), "bArrL");
}

#[test]
fn a_ticket_survives_the_process_that_accepted_it() {
    let mut host = Host::new();
    let mut player = with_ticket(&mut host, 5, 1);
    host.crash();
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    assert_eq!(trail(&host, &player), "brA");
}

#[test]
fn a_second_log_in_takes_over() {
    let mut host = Host::new();
    let mut first = log_in(&mut host, 5, 1);
    let mut second = log_in(&mut host, 5, 2);
    first.listen(&mut host);
    assert_eq!(first.closed, Some(CloseReason::LoggedInElsewhere));
    assert_eq!(first.entity, second.entity, "the account is not made twice");
    first.connect(&mut host, 3);
    first.listen(&mut host);
    assert_eq!(first.entrance, Entrance::Rejected(Rejection::LoggedInElsewhere));
    second.listen(&mut host);
    assert_eq!(second.closed, None);
    assert_eq!(trail(&host, &second), "bAA");
    let mut stranger = Player::new(&host.schema, first.session, Secret([9; 32]));
    stranger.connect(&mut host, 4);
    stranger.listen(&mut host);
    let unknown = Entrance::Rejected(Rejection::UnknownSession);
    assert_eq!(
        stranger.entrance, unknown,
        "of a session that is not its own it learns nothing"
    );
}

#[test]
fn an_absent_client_is_notified_of_the_later_log_in() {
    let mut host = Host::new();
    let mut invited = with_ticket(&mut host, 5, 1);
    let mut away = log_in(&mut host, 5, 2);
    let connection = away.connection;
    host.role(BaseInput::Closed { connection });
    let mut last = log_in(&mut host, 5, 3);
    for (connection, player) in (4..).zip([&mut invited, &mut away]) {
        player.connect(&mut host, connection);
        player.listen(&mut host);
        assert_eq!(player.entrance, Entrance::Rejected(Rejection::LoggedInElsewhere));
    }
    last.listen(&mut host);
    assert_eq!(last.closed, None);
    // Only the newest replaced sessions are remembered, each separately.
    for account in 0..1_500 {
        with_ticket(&mut host, 5, 10 + account);
    }
    away.connect(&mut host, 9_999);
    away.listen(&mut host);
    assert_eq!(away.entrance, Entrance::Rejected(Rejection::UnknownSession));
    assert_eq!(host.owner.role().sessions(), 1);
}

#[test]
fn a_second_log_in_is_refused_where_the_realm_says_so() {
    let mut host = Host::new();
    let mut first = log_in(&mut host, 5, 1);
    let refusing = |host: &mut Host, request| {
        let ticket = host.secret();
        let mut wanted = open(host, request, 5, 5, &ticket);
        wanted.duplicate = DuplicateLogin::Refuse;
        host.role(BaseInput::OpenSession(wanted.clone()));
        host.settle();
        let opened = host.opened.pop().expect("it is answered").1;
        opened.map(|session| (wanted, Player::new(&host.schema, session, ticket)))
    };
    assert_eq!(refusing(&mut host, 2).map(drop), Err(NotOpened::InUse));
    first.listen(&mut host);
    assert_eq!(first.closed, None, "its connection is unaffected");

    // A session whose client is away is replaced; so is one whose client has not connected yet.
    let connection = first.connection;
    host.role(BaseInput::Closed { connection });
    let (_, mut second) = refusing(&mut host, 3).expect("no client is connected");
    let (wanted, mut third) = refusing(&mut host, 4).expect("no client is connected");
    second.connect(&mut host, 5);
    second.listen(&mut host);
    assert_eq!(second.entrance, Entrance::Rejected(Rejection::LoggedInElsewhere));
    third.connect(&mut host, 6);
    third.listen(&mut host);
    assert_eq!(third.entrance, Entrance::Welcomed);
    // A duplicate of the request that opened it is not a second log-in.
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    assert_eq!(host.opened.pop().expect("it is answered").1, Ok(third.session));

    // After a take-over it is away at first, like all clients.
    third.listen(&mut host);
    host.crash();
    third.connect(&mut host, 7);
    third.listen(&mut host);
    assert_eq!(third.entrance, Entrance::Welcomed);
    assert_eq!(refusing(&mut host, 8).map(drop), Err(NotOpened::InUse));
}

#[test]
fn a_client_of_an_avatar_still_belongs_to_its_account() {
    let mut host = Host::new();
    let mut first = log_in(&mut host, 5, 1);
    first.call(
        &mut host,
        annals_ids::Part::Base,
        "become",
        &[annals_def::Value::UInt(0)],
    );
    host.settle();
    first.listen(&mut host);
    let ticket = host.secret();
    let mut wanted = open(&host, 2, 5, 5, &ticket);
    wanted.duplicate = DuplicateLogin::Refuse;
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    assert_eq!(host.opened.pop().expect("it is answered").1, Err(NotOpened::InUse));
}

#[test]
fn in_a_full_realm_only_an_account_with_a_session_is_admitted() {
    let mut host = Host::new();
    let full = |host: &mut Host, request, account| {
        let ticket = host.secret();
        let mut wanted = open(host, request, account, account, &ticket);
        wanted.replaces_only = true;
        host.role(BaseInput::OpenSession(wanted));
        host.settle();
        host.opened.pop().expect("it is answered").1
    };
    assert_eq!(full(&mut host, 1, 5), Err(NotOpened::NoSession));
    let mut first = log_in(&mut host, 5, 1);
    let played = host.owner.played().expect("a base has clients");
    assert_eq!((played.sessions, played.newest), (1, first.session));
    let second = full(&mut host, 2, 5).expect("it takes the place of the first");
    first.listen(&mut host);
    assert_eq!(first.closed, Some(CloseReason::LoggedInElsewhere));
    let played = host.owner.played().expect("a base has clients");
    assert_eq!((played.sessions, played.newest), (1, second));
    assert_eq!(full(&mut host, 3, 6), Err(NotOpened::NoSession));
    // A session that plays another entity by now is one of the account, too.
    let mut player = log_in(&mut host, 7, 2);
    player.call(
        &mut host,
        annals_ids::Part::Base,
        "become",
        &[annals_def::Value::UInt(0)],
    );
    host.settle();
    player.listen(&mut host);
    assert!(full(&mut host, 4, 7).is_ok());
    // The next holder of the owner reports the sessions that it has taken over.
    let before = host.owner.played();
    host.crash();
    assert_eq!(host.owner.played(), before);
}

#[test]
fn opening_twice_with_one_ticket_opens_once() {
    let mut host = Host::new();
    let ticket = host.secret();
    let wanted = open(&host, 1, 5, 5, &ticket);
    host.role(BaseInput::OpenSession(wanted.clone()));
    host.role(BaseInput::OpenSession(wanted.clone()));
    host.settle();
    assert_eq!(host.opened[0], host.opened[1]);
    let mut player = Player::new(&host.schema, host.opened[0].1.clone().unwrap(), ticket);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    // A duplicate that the bus delayed arrives after the client has connected.
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    player.listen(&mut host);
    assert_eq!((player.closed, host.opened.len()), (None, 3));
    assert_eq!(host.opened[2], host.opened[0]);
    assert_eq!(host.owner.role().sessions(), 1);
}

#[test]
fn an_unused_ticket_expires() {
    let mut host = Host::new();
    let mut late = with_ticket(&mut host, 5, 1);
    let window = u64::try_from(TICKET_WINDOW.as_millis()).unwrap();
    host.pass(window - 1_000);
    assert_eq!(host.owner.role().sessions(), 1);
    host.pass(1_100);
    assert_eq!(host.owner.role().sessions(), 0);
    late.connect(&mut host, 1);
    late.listen(&mut host);
    assert_eq!(late.entrance, Entrance::Rejected(Rejection::UnknownSession));

    let mut player = log_in(&mut host, 6, 2);
    let connection = player.connection;
    host.role(BaseInput::Closed { connection });
    let window = u64::try_from(RESUME_WINDOW.as_millis()).unwrap();
    host.pass(window - 1_000);
    assert_eq!(trail(&host, &player), "bA");
    player.connect(&mut host, 3);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    let connection = player.connection;
    host.role(BaseInput::Closed { connection });
    host.pass(window + 100);
    assert_eq!(trail(&host, &player), "bAL");
    assert_eq!(host.owner.role().counters().expired, 2);
}

#[test]
fn an_ended_activation_does_not_restart() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    player.call(&mut host, annals_ids::Part::Base, "leave", &[]);
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.closed, Some(CloseReason::Ended));
    let outdated = |host: &mut Host, wanted| {
        host.role(BaseInput::OpenSession(wanted));
        host.settle();
        assert_eq!(host.opened.pop().unwrap().1, Err(NotOpened::Outdated));
    };
    let ticket = host.secret();
    let same_life = open(&host, 2, 5, 5, &ticket);
    outdated(&mut host, same_life.clone());
    // The database may still not know it after the owner was taken over.
    let from_before = same_life;
    host.crash();
    outdated(&mut host, from_before);
    let same_life = open(&host, 3, 5, 5, &ticket);
    outdated(&mut host, same_life);
    let mut next_life = open(&host, 4, 5, 6, &ticket);
    host.role(BaseInput::OpenSession(next_life.clone()));
    host.settle();
    assert!(host.opened.pop().unwrap().1.is_ok());
    // A request located before the take-over may name an activation that this epoch does not know.
    let mut unknown = open(&host, 5, 8, 8, &Secret([8; 32]));
    unknown.account.epoch = Epoch(1);
    outdated(&mut host, unknown);
    // A check-out that is newer than the activation here would belong to a second one.
    (next_life.account.checkout, next_life.ticket) = (7, [3; 32]);
    outdated(&mut host, next_life);
}

#[test]
fn a_full_owner_notices_a_closed_connection() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    host.mood = Mood::Withholds;
    let long = "x".repeat(60_000);
    for _ in 0..20 {
        let text = annals_def::Value::Unicode(long.clone());
        player.call(&mut host, annals_ids::Part::Base, "say", &[text]);
    }
    let connection = player.connection;
    host.role(BaseInput::Closed { connection });
    assert_eq!(host.owner.role().connected(), 0);
    host.answer_again();
    let (kept, player) = (player.is_settled(), player.entity.unwrap().0);
    assert!(!kept, "it accepted only the calls that fit");
    let events = host.image(player).history.0;
    assert!(events < 2 * 20, "{events} events");
}

#[test]
fn a_full_owner_takes_no_messages() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    let leave = host
        .schema
        .entity_type(AVATAR)
        .unwrap()
        .base_method_named("leave")
        .unwrap()
        .index;
    host.mood = Mood::Withholds;
    let long = annals_def::Value::Unicode("x".repeat(60_000));
    for _ in 0..40 {
        player.call(&mut host, annals_ids::Part::Base, "say", std::slice::from_ref(&long));
    }
    assert!(host.owner.is_full(), "it has gathered what it may");
    let gathered = host.owner.gathered();
    host.call(entity, leave);
    assert_eq!(host.owner.gathered(), gathered, "a message would have been recorded");
    host.answer_again();
    assert!(host.owner.cx().image(entity).is_some(), "the call was not taken");
    host.call(entity, leave);
    assert!(host.owner.cx().image(entity).is_none(), "sent again, it is");
}

#[test]
fn what_cannot_have_a_client_is_refused() {
    let mut host = Host::new();
    let ticket = host.secret();
    let mut wanted = open(&host, 1, 5, 5, &ticket);
    wanted.account.type_id = TypeId(9);
    host.role(BaseInput::OpenSession(wanted.clone()));
    wanted.account.type_id = crate::game::ACCOUNT;
    wanted.account.properties = vec![(annals_ids::MemberId(2), annals_def::Value::UInt(1))];
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    for (_, opened) in &host.opened {
        assert!(matches!(opened, Err(NotOpened::Unfit(_))), "{opened:?}");
    }
    assert_eq!(host.opened.len(), 2);
    assert!(host.owner.state().entities.is_empty());
}

/// The logged admissions, as read with the key: the session, the name and the address.
fn admissions(host: &Host, account: DatabaseId) -> Vec<(SessionId, Option<String>, String)> {
    let events = host.batches().flat_map(|batch| batch.events);
    let sealed = events.filter_map(|event| match event.body {
        Body::Admitted {
            session,
            person,
            sealed,
        } if person == account => Some((session, sealed)),
        _ => None,
    });
    sealed
        .map(|(session, sealed)| {
            let plain = annals_personal::open(&host::key(account), account, &sealed).unwrap();
            let Admission { account, address } = Admission::decode(&plain).unwrap();
            (session, account, address)
        })
        .collect()
}

#[test]
fn admissions_are_logged_under_the_persons_key() {
    let mut host = Host::new();
    let mut player = with_ticket(&mut host, 5, 1);
    let session = player.session;
    assert_eq!(admissions(&host, DatabaseId(5)), [], "a ticket is no client");
    player.connect(&mut host, 1);
    player.listen(&mut host);
    let came = (session, Some(host::name(5)), FROM.to_string());
    assert_eq!(admissions(&host, DatabaseId(5)), std::slice::from_ref(&came));

    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(
        admissions(&host, DatabaseId(5)),
        [came.clone(), came.clone()],
        "back again"
    );

    host.crash();
    player.connect(&mut host, 3);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    let back = (session, None, FROM.to_string());
    assert_eq!(
        admissions(&host, DatabaseId(5)),
        [came.clone(), came, back],
        "with a process that has its key again"
    );
    let mut logged = Vec::new();
    for event in host.batches().flat_map(|batch| batch.events) {
        event.write(&mut logged);
    }
    for plain in [host::name(5), FROM.to_string()] {
        assert!(
            !logged.windows(plain.len()).any(|bytes| bytes == plain.as_bytes()),
            "{plain} is in the log"
        );
    }
}

/// Admissions without sealed data: the session, and the person if known.
pub(crate) fn unwritten(host: &Host) -> Vec<(SessionId, DatabaseId)> {
    let events = host.batches().flat_map(|batch| batch.events);
    let unwritten = events.filter_map(|event| match event.body {
        Body::Admitted {
            session,
            person,
            sealed,
        } if sealed.is_empty() => Some((session, person)),
        _ => None,
    });
    unwritten.collect()
}

#[test]
fn admissions_of_an_erased_person_are_logged_without_name() {
    let mut host = Host::new();
    let ticket = host.secret();
    let mut wanted = open(&host, 1, 5, 5, &ticket);
    wanted.account.key = None;
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    let mut player = Player::new(&host.schema, host.opened[0].1.clone().unwrap(), ticket);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    assert_eq!(unwritten(&host), [(player.session, DatabaseId(5))]);
}
