//! Entities that inquire in the database, and stored entities that are activated on request.

use annals_base::{BaseInput, Begin, CheckedOut};
use annals_ids::{CallNumber, DatabaseId, EntityId, MemberId};
use annals_node::{
    Begun, NotOpened,
    inquiry::{Answer, Inquiry, Learned, NotLearned, Wanted},
};

use crate::{
    game::{SUMMONED, TIMEOUT_MS},
    host::{Host, Mood, checked_out, open},
    lifecycle::trail,
};

const KEEP_SURELY: MemberId = MemberId(10);
const LOOK: MemberId = MemberId(11);
const SUMMON: MemberId = MemberId(12);

fn begin(host: &mut Host, entity: CheckedOut) -> Result<Begun, NotOpened> {
    host.role(BaseInput::Begin(Begin { request: 3, entity }));
    host.settle();
    let (request, begun) = host.begun.pop().expect("it is answered");
    assert_eq!((request, host.begun.len()), (3, 0));
    begun
}

fn begin_known(host: &mut Host, checkout: u64) -> Result<Begun, NotOpened> {
    let entity = checked_out(host, 5, checkout);
    begin(host, entity)
}

/// An account that is activated.
fn asker(host: &mut Host) -> EntityId {
    begin_known(host, 1).expect("it begins").mailbox.entity
}

fn answer(host: &mut Host, (entity, number): (EntityId, CallNumber), outcome: Result<Learned, NotLearned>) {
    host.inquired(entity, number, Answer::Result(outcome));
    host.settle();
}

fn written() -> Result<Learned, NotLearned> {
    Ok(Learned::Written {
        database: DatabaseId(5),
        taken: Vec::new(),
    })
}

#[test]
fn a_query_leaves_after_its_batch_and_is_answered_once() {
    let begun = |entity: EntityId| Learned::Begun {
        database: SUMMONED,
        mailbox: annals_ids::Mailbox {
            entity,
            home: crate::host::BASE,
            type_id: crate::game::AVATAR,
            part: annals_ids::Part::Base,
        },
        was_active: false,
    };
    let asks = [
        (KEEP_SURELY, written(), "bw"),
        (LOOK, Ok(Learned::Found(Vec::new())), "bf"),
        (SUMMON, Ok(begun(EntityId(9))), "bs"),
        (SUMMON, Err(NotLearned::Absent), "bn"),
    ];
    for (method, outcome, expected) in asks {
        let mut host = Host::new();
        let entity = asker(&mut host);
        host.mood = Mood::Withholds;
        host.call(entity, method);
        host.settle();
        assert!(
            host.asked.is_empty(),
            "no query is sent before its batch is acknowledged"
        );
        host.answer_again();
        let (asker, number, inquiry) = host.asked.pop_front().expect("it leaves");
        assert_eq!((asker, host.asked.len()), (entity, 0));
        match inquiry {
            Inquiry::Written { database, batch } => {
                assert_eq!((method, database), (KEEP_SURELY, DatabaseId(5)));
                let stored = host.batches().find(|logged| {
                    let mut bodies = logged.events.iter().map(|event| &event.body);
                    bodies.any(|body| matches!(body, annals_event::Body::Stored { .. }))
                });
                assert_eq!(stored.map(|logged| logged.header.number), Some(batch));
            }
            Inquiry::Find { .. } => assert_eq!(method, LOOK),
            Inquiry::Begin(wanted) => assert_eq!((method, wanted), (SUMMON, Wanted::Id(SUMMONED))),
            Inquiry::Place(_) => panic!("no method of the test creates anything"),
        }
        for _ in 0..2 {
            answer(&mut host, (entity, number), outcome.clone());
        }
        host.pass(2 * TIMEOUT_MS);
        assert_eq!(trail(&host, entity), expected);
    }
}

#[test]
fn an_unanswered_query_times_out_once_even_after_a_crash() {
    for crashes in [false, true] {
        let mut host = Host::new();
        let entity = asker(&mut host);
        host.call(entity, KEEP_SURELY);
        host.settle();
        let (_, number, _) = host.asked.pop_front().expect("it leaves");
        if crashes {
            host.crash();
        }
        host.pass(2 * TIMEOUT_MS);
        let before = trail(&host, entity);
        assert_eq!(before, if crashes { "brt" } else { "bt" });
        answer(&mut host, (entity, number), written());
        assert_eq!(trail(&host, entity), before, "the wait is over");
    }
}

#[test]
fn an_answer_goes_to_the_query_with_its_number() {
    let mut host = Host::new();
    let entity = asker(&mut host);
    host.call(entity, KEEP_SURELY);
    host.call_again(entity, LOOK);
    host.settle();
    let (_, first, _) = host.asked.pop_front().expect("it leaves");
    let (_, second, _) = host.asked.pop_front().expect("it leaves");
    assert_ne!(first, second);
    answer(&mut host, (entity, second), Ok(Learned::Found(Vec::new())));
    answer(&mut host, (EntityId(1), first), written());
    assert_eq!(trail(&host, entity), "bf");
    answer(&mut host, (entity, first), written());
    assert_eq!(trail(&host, entity), "bfw");
}

#[test]
fn a_stored_entity_is_activated_once() {
    let mut host = Host::new();
    let first = begin_known(&mut host, 1).expect("it begins");
    assert!(!first.was_active);
    let again = begin_known(&mut host, 1).expect("it lives");
    assert_eq!((again.mailbox, again.was_active), (first.mailbox, true));
    let ticket = host.secret();
    let wanted = open(&host, 4, 5, 1, &ticket);
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    let client = host.image(first.mailbox.entity).client;
    assert!(client.is_some(), "a log-in finds the same activation");
    host.crash();
    let later = begin_known(&mut host, 1).expect("it lives");
    assert_eq!((later.mailbox, later.was_active), (first.mailbox, true));
    assert_eq!(host.owner.state().entities.len(), 1);
}

#[test]
fn an_outdated_check_out_activates_nothing() {
    let mut host = Host::new();
    let former = checked_out(&host, 5, 1);
    host.crash();
    assert_eq!(begin(&mut host, former), Err(NotOpened::Outdated));
    let entity = asker(&mut host);
    assert_eq!(
        begin_known(&mut host, 2),
        Err(NotOpened::Outdated),
        "its activation is older"
    );
    host.call(entity, MemberId(3));
    host.settle();
    assert_eq!(
        begin_known(&mut host, 1),
        Err(NotOpened::Outdated),
        "its activation has ended"
    );
    assert!(!begin_known(&mut host, 2).expect("a new activation").was_active);
}
