//! Changing to another process: an announced move, and the search for the base of a connection that is silent.

use annals_client::{Attempt, Event, Input};
use annals_ids::{EntityId, Epoch, OwnerId, SessionId, TypeId};
use annals_wire::client::{
    CloseReason, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal, LoginRequest, Proof, Rejection, Secret,
    ToClient, ToServer, Welcome,
};

use super::{Asked, Table, address, located, welcome};

impl Table {
    /// The base announces another process, at this port.
    fn announce(&mut self, port: u16) {
        let mut body = Vec::new();
        ToClient::Moving(Located {
            address: address(port),
            ..located(0)
        })
        .write(&mut body);
        let attempt = self.attempt;
        self.core.handle(self.now, Input::Frame { attempt, body });
    }

    /// The prepared connection is established; returns the hello.
    fn connect_beside(&mut self) -> Hello {
        let attempt = self.beside;
        self.core.handle(self.now, Input::Connected { attempt });
        match self.asked().pop() {
            Some(Asked::Hello(hello)) => hello,
            other => panic!("no hello: {other:?}"),
        }
    }

    /// The base at the end of the prepared connection answers the hello.
    fn answer_beside(&mut self, answer: &HelloAnswer) {
        let mut body = Vec::new();
        answer.write(&mut body);
        let attempt = self.beside;
        self.core.handle(self.now, Input::Frame { attempt, body });
    }

    fn silent(&mut self, attempt: Attempt) {
        self.core.handle(self.now, Input::Silent { attempt });
    }
}

#[test]
fn an_announced_move_is_no_interruption() {
    let mut table = Table::seeing();
    table.hit(1).unwrap();
    table.asked();
    table.announce(2_000);
    assert_eq!(table.asked(), [Asked::Prepare(address(2_000))]);
    table.announce(2_000);
    assert_eq!(table.asked(), [], "it is announced already");
    table.announce(2_001);
    assert_eq!(
        table.asked(),
        [Asked::Abandon, Asked::Prepare(address(2_001))],
        "another one"
    );
    let hello = table.connect_beside();
    assert_eq!((hello.owner, hello.session), (OwnerId(3), SessionId(5)));
    assert_eq!(hello.proof, Proof::Resume(Secret([1; 32])));
    // The present connection is in use until the other base has welcomed the session.
    table.hit(1).unwrap();
    assert!(matches!(table.asked()[..], [Asked::Frame(ToServer::Call(_))]));
    table.answer_beside(&welcome(6, 2));
    let asked = table.asked();
    assert_eq!(asked[0], Asked::Switch);
    let frames: Vec<_> = asked[1..].iter().collect();
    assert!(
        matches!(
            frames[..],
            [
                Asked::Frame(ToServer::Stamps(_)),
                Asked::Frame(ToServer::Stamps(_)),
                Asked::Frame(ToServer::Call(_)),
                Asked::Frame(ToServer::Call(_)),
            ]
        ),
        "both views begin again from what it has, and no call is lost: {frames:?}"
    );
    assert_eq!(table.events(), [], "the game notices nothing");
    let counters = table.core.counters();
    assert_eq!((counters.moved, counters.resumed), (1, 0));
}

#[test]
fn a_base_that_leaves_before_the_other_has_welcomed_is_waited_for() {
    let mut table = Table::seeing();
    table.announce(2_000);
    table.asked();
    table.connect_beside();
    table.lose(CloseReason::Moved);
    assert_eq!((table.asked(), table.events()), (vec![Asked::Switch], vec![]));
    assert!(!table.core.is_playing());
    table.greet(&welcome(6, 2));
    assert!(table.core.is_playing());
    assert_eq!(table.events(), []);
    assert_eq!(table.core.counters().moved, 1);

    // If it does not answer, the session is resumed as after any other loss.
    table.announce(2_002);
    table.asked();
    table.lose(CloseReason::Moved);
    table.wait(1_999);
    assert_eq!(table.events(), []);
    table.wait(1);
    assert_eq!(table.events(), [Event::Lost(CloseReason::Silent)]);
    table.wait(1_000);
    assert!(matches!(
        table.asked().last(),
        Some(Asked::Login(LoginRequest::Locate { .. }))
    ));
}

#[test]
fn a_hand_over_that_fails_is_an_interruption() {
    let mut table = Table::seeing();
    table.announce(2_000);
    table.asked();
    table.connect_beside();
    table.lose(CloseReason::Moved);
    table.asked();
    table.greet(&HelloAnswer::Rejected(Rejection::Busy));
    assert_eq!(table.events(), [Event::Lost(CloseReason::Moved)]);
    table.wait(1_000);
    table.asked();
    table.connect();
    table.asked();
    table.greet(&welcome(6, 2));
    let counters = table.core.counters();
    assert_eq!((counters.moved, counters.resumed), (0, 1));
    assert_eq!(table.events(), [Event::Resumed { epoch: Epoch(6) }]);

    // A base of a lower epoch, or one that never answers, is given up; the present connection stays.
    table.announce(2_001);
    table.asked();
    table.connect_beside();
    table.answer_beside(&welcome(5, 2));
    assert_eq!(table.asked(), [Asked::Abandon]);
    table.announce(2_002);
    table.asked();
    table.wait(5_000);
    assert!(table.asked().contains(&Asked::Abandon));
    assert!(table.core.is_playing());
    for port in 3_000..3_100 {
        table.announce(port);
    }
    let prepared = table
        .asked()
        .into_iter()
        .filter(|asked| matches!(asked, Asked::Prepare(_)));
    assert_eq!(prepared.count(), 6, "announcements without a welcome are limited");
}

#[test]
fn a_prepared_connection_that_fails_changes_nothing() {
    let mut table = Table::seeing();
    table.announce(2_000);
    table.asked();
    table.connect_beside();
    table.answer_beside(&HelloAnswer::Rejected(Rejection::Elsewhere));
    assert_eq!(table.asked(), [Asked::Abandon]);
    assert!(table.core.is_playing());
    table.announce(2_001);
    assert_eq!(table.asked(), [Asked::Prepare(address(2_001))]);
    table.core.handle(
        table.now,
        Input::Disconnected {
            attempt: table.beside,
            reason: CloseReason::Ended,
        },
    );
    assert_eq!((table.asked(), table.events()), (vec![Asked::Abandon], vec![]));
    assert!(table.core.is_playing());
}

#[test]
fn a_silent_base_is_asked_for_while_its_connection_stays_open() {
    let locates = |table: &mut Table| {
        let asked = table.asked();
        matches!(
            asked[..],
            [Asked::Login(LoginRequest::Locate { owner: OwnerId(3), .. })]
        )
    };
    let mut table = Table::seeing();
    let connection = table.attempt;
    table.silent(connection);
    assert!(locates(&mut table));
    table.silent(connection);
    assert_eq!(table.asked(), [], "it is asked already");
    // It is where it was: the network was slow. Asked again, less often.
    table.login(Some(LoginAnswer::Located(located(5))));
    assert_eq!(table.asked(), []);
    table.wait(150);
    assert!(locates(&mut table));
    table.login(Some(LoginAnswer::Refused(LoginRefusal::NotHeld)));
    table.wait(150);
    assert_eq!(table.asked(), []);
    table.wait(150);
    assert!(locates(&mut table));
    assert!(table.core.is_playing());
    assert_eq!(table.events(), []);
    // Another process holds it by now.
    table.login(Some(LoginAnswer::Located(located(6))));
    assert_eq!(
        table.asked(),
        [Asked::Disconnect(CloseReason::Lost), Asked::Connect(address(1_000))]
    );
    assert_eq!(table.events(), [Event::Lost(CloseReason::Silent)]);

    let mut table = Table::seeing();
    let attempt = table.attempt;
    table.silent(attempt);
    table.asked();
    let mut body = Vec::new();
    ToClient::RateWarned.write(&mut body);
    table.core.handle(table.now, Input::Frame { attempt, body });
    table.events();
    table.login(Some(LoginAnswer::Located(located(6))));
    assert_eq!(table.asked(), [], "the session receives again");
}

/// The base notifies the client that its session continues at another owner.
fn give(table: &mut Table, owner: OwnerId) {
    let mut body = Vec::new();
    ToClient::Given(owner).write(&mut body);
    let attempt = table.attempt;
    table.core.handle(table.now, Input::Frame { attempt, body });
}

/// A welcome of another entity.
fn welcome_of(entity: EntityId, epoch: u64) -> HelloAnswer {
    match welcome(epoch, 2) {
        HelloAnswer::Welcome(welcome) => HelloAnswer::Welcome(Welcome { entity, ..welcome }),
        other => other,
    }
}

fn located_at(owner: OwnerId, epoch: u64) -> LoginAnswer {
    LoginAnswer::Located(Located {
        owner,
        ..located(epoch)
    })
}

const FAR: OwnerId = OwnerId(9);
const FAR_ENTITY: EntityId = EntityId(77);

#[test]
fn a_client_that_is_given_to_another_owner_controls_its_entity_there() {
    let mut table = Table::seeing();
    give(&mut table, FAR);
    let session = SessionId(5);
    assert_eq!(
        table.asked(),
        [
            Asked::Disconnect(CloseReason::Moved),
            Asked::Login(LoginRequest::Locate { owner: FAR, session })
        ]
    );
    // The epochs of two owners have nothing to do with each other.
    table.login(Some(located_at(FAR, 2)));
    assert_eq!(table.asked(), [Asked::Connect(address(1_000))]);
    let attempt = table.attempt;
    table.core.handle(table.now, Input::Connected { attempt });
    let asked = table.asked();
    let [Asked::Hello(hello)] = &asked[..] else {
        panic!("no hello: {asked:?}")
    };
    assert_eq!((hello.owner, hello.session, hello.epoch), (FAR, session, Epoch(2)));
    assert_eq!(hello.proof, Proof::Resume(Secret([1; 32])));
    assert_eq!(table.events(), [], "it is no interruption");
    table.greet(&welcome_of(FAR_ENTITY, 2));
    let events = table.events();
    let controls = Event::Controls {
        entity: FAR_ENTITY,
        type_id: TypeId(0),
    };
    assert_eq!(events.last(), Some(&controls));
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::Resumed { .. } | Event::Lost(_)))
    );
    assert_eq!(table.core.controls(), Some((FAR_ENTITY, TypeId(0))));
    let counters = table.core.counters();
    assert_eq!((counters.moved, counters.resumed), (1, 0));
}

#[test]
fn a_client_that_was_away_when_it_was_given_learns_it_when_it_connects() {
    let mut table = Table::seeing();
    table.lose(CloseReason::Lost);
    table.asked();
    table.login(Some(LoginAnswer::Located(located(6))));
    table.asked();
    table.connect();
    table.asked();
    table.greet(&HelloAnswer::Given(FAR));
    assert_eq!(table.asked(), [Asked::Disconnect(CloseReason::Moved)]);
    table.wait(1_000);
    assert!(matches!(
        table.asked()[..],
        [Asked::Login(LoginRequest::Locate { owner: FAR, .. })]
    ));
    table.login(Some(located_at(FAR, 1)));
    table.asked();
    table.connect();
    table.asked();
    table.greet(&welcome_of(FAR_ENTITY, 1));
    let events = table.events();
    let expected = [Event::Lost(CloseReason::Lost), Event::Resumed { epoch: Epoch(1) }];
    assert_eq!(events[..2], expected);
    assert_eq!(table.core.controls(), Some((FAR_ENTITY, TypeId(0))));
}

/// The base that the session moves to has given the client away meanwhile.
#[test]
fn a_client_that_is_given_away_while_its_base_moves_is_not_interrupted() {
    let mut table = Table::seeing();
    table.announce(2_000);
    table.asked();
    table.connect_beside();
    table.lose(CloseReason::Moved);
    table.asked();
    table.greet(&HelloAnswer::Given(FAR));
    assert_eq!(table.asked(), [Asked::Disconnect(CloseReason::Moved)]);
    table.wait(1_000);
    table.asked();
    table.login(Some(located_at(FAR, 1)));
    table.asked();
    table.connect();
    table.greet(&welcome_of(FAR_ENTITY, 1));
    assert!(table.core.is_playing());
    let interruptions = |event: &Event| matches!(event, Event::Resumed { .. } | Event::Lost(_));
    assert!(!table.events().iter().any(interruptions));
}

/// Two owners that send a client to each other without end.
#[test]
fn a_client_that_no_owner_has_reports_an_interruption() {
    let mut table = Table::seeing();
    give(&mut table, FAR);
    let mut rounds = 0;
    while table.events().is_empty() {
        table.asked();
        table.login(Some(located_at(FAR, 1)));
        table.asked();
        table.connect();
        table.greet(&HelloAnswer::Given(FAR));
        table.wait(5_000);
        rounds += 1;
        assert!(rounds < 10, "nothing is reported");
    }
    assert!(!table.core.is_playing());
}

/// The first attempt reaches a process that no longer holds the owner.
#[test]
fn another_owner_that_moves_meanwhile_is_looked_for_again() {
    let mut table = Table::seeing();
    give(&mut table, FAR);
    table.asked();
    table.login(Some(located_at(FAR, 2)));
    table.asked();
    table.connect();
    table.greet(&HelloAnswer::Rejected(Rejection::Elsewhere));
    table.asked();
    table.wait(1_000);
    let session = SessionId(5);
    let asked = table.asked();
    assert_eq!(asked, [Asked::Login(LoginRequest::Locate { owner: FAR, session })]);
    table.login(Some(located_at(FAR, 3)));
    table.asked();
    table.connect();
    table.greet(&welcome_of(FAR_ENTITY, 3));
    assert!(table.core.is_playing());
    let interruptions = |event: &Event| matches!(event, Event::Resumed { .. } | Event::Lost(_));
    assert!(!table.events().iter().any(interruptions));
    // From then on a lost connection is an interruption at once.
    table.lose(CloseReason::Lost);
    assert_eq!(table.events(), [Event::Lost(CloseReason::Lost)]);
}

#[test]
fn another_owner_that_does_not_answer_in_time_is_an_interruption() {
    let mut table = Table::seeing();
    give(&mut table, FAR);
    let mut waited = 0;
    while table.events().is_empty() {
        table.asked();
        table.login(None);
        table.wait(100);
        waited += 100;
        assert!(waited <= 5_000, "nothing is reported");
    }
    assert!(waited >= 2_000, "reported after {waited} ms");
    assert!(!table.core.is_playing());
}
