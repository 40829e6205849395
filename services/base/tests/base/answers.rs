//! Answers to calls of clients.

use annals_def::Value;
use annals_event::{Body, CallError, Link, Outcome};
use annals_ids::{Address, CallNumber, EntityId, MemberId, Part};
use annals_node::{Caller, typed::Returned};

use crate::{
    game::{BROKEN, Game, HUGE, LAST, LATER, POOR, Price, WRONG, answer_later, poor},
    host::{BASE, Host, Mood},
    player::{Player, log_in},
};

fn host() -> Host {
    Host::of(Game {
        errand: Some(answer_later),
        ..Game::default()
    })
}

fn ask(host: &mut Host, player: &mut Player, kind: u64) {
    player.call(host, Part::Base, "price", &[Value::UInt(kind)]);
}

/// The answers that a client was shown, with the numbers of its calls.
fn answered(player: &Player) -> Vec<(u64, Outcome)> {
    let replies = player.replies.iter();
    replies
        .map(|(_, reply)| (reply.call.0, reply.outcome.clone()))
        .collect()
}

fn run_errand(host: &mut Host, entity: EntityId) {
    let schema = crate::game::schema();
    let method = schema.types()[0].base_method_named("run_errand").unwrap().index;
    host.call(entity, method);
    host.settle();
}

fn price(gold: u64) -> Outcome {
    Ok(Price(gold).into_values())
}

#[test]
fn a_client_is_shown_what_its_call_returns() {
    let mut host = host();
    let (mut player, mut other) = (log_in(&mut host, 5, 1), log_in(&mut host, 6, 2));
    player.call(&mut host, Part::Base, "note", &[Value::UInt(1)]);
    for kind in [7, POOR, WRONG, 8] {
        ask(&mut host, &mut player, kind);
    }
    host.settle();
    player.listen(&mut host);
    other.listen(&mut host);
    assert!(player.is_settled());
    let wrong = CallError::Internal("the reason is not sent to clients".into());
    assert_eq!(
        answered(&player),
        [(2, price(7)), (3, Err(poor())), (4, Err(wrong)), (5, price(8))],
        "a call of a method without return values is not answered"
    );
    assert_eq!(answered(&other), []);
    let trouble = host.owner.poll_trouble().expect("it is reported").to_string();
    assert!(trouble.contains("Account.price"), "{trouble}");
}

/// A client is not sent what is for the game's programmers.
#[test]
fn an_internal_error_has_no_text_for_clients() {
    let mut host = host();
    let mut player = log_in(&mut host, 5, 1);
    for kind in [BROKEN, HUGE, 4] {
        ask(&mut host, &mut player, kind);
    }
    host.settle();
    player.listen(&mut host);
    let internal = Err(CallError::Internal("the reason is not sent to clients".into()));
    assert_eq!(
        answered(&player),
        [(1, internal.clone()), (2, internal), (3, price(4))],
        "the link is not stuck"
    );
    assert_eq!(host.owner.troubles(), 1, "what is too large is reported");
}

/// Its client is not shown anything of it any more.
#[test]
fn an_entity_that_ends_in_the_call_is_not_seen_to_answer() {
    let mut host = host();
    let mut player = log_in(&mut host, 5, 1);
    ask(&mut host, &mut player, LAST);
    host.settle();
    player.listen(&mut host);
    assert_eq!(answered(&player), []);
    assert!(player.closed.is_some());
}

/// The definitions have changed since behaviour noted the caller: the number is that of another method.
#[test]
fn a_note_of_a_method_that_does_not_answer_is_not_answered() {
    let mut host = Host::of(Game {
        errand: Some(|context| {
            let note = context
                .entity_type()
                .base_method_named("note")
                .map(|method| method.index);
            let beyond = Some(MemberId(999));
            for method in [note, beyond] {
                let from = Address::Client(context.client().unwrap());
                let to = context.mailbox(Part::Base).address();
                let caller = Caller {
                    link: Link { from, to },
                    home: BASE,
                    number: CallNumber(1),
                    wants_reply: true,
                    method,
                };
                context.answer(&caller, Ok(Vec::new()));
            }
        }),
        ..Game::default()
    });
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    run_errand(&mut host, entity);
    player.listen(&mut host);
    assert_eq!(answered(&player), []);
    assert_eq!(host.owner.troubles(), 2, "both are reported");
    let events = host.batches().flat_map(|batch| batch.events);
    assert_eq!(
        events
            .filter(|event| matches!(event.body, Body::Replied { .. }))
            .count(),
        0
    );
}

/// A process dies between the call and its answer, and the connection is lost before the answer arrives.
#[test]
fn an_answer_outlives_process_and_connection() {
    let mut host = host();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    ask(&mut host, &mut player, LATER);
    host.settle();
    player.listen(&mut host);
    assert!(player.is_settled());
    host.crash();
    run_errand(&mut host, entity);
    assert_eq!(answered(&player), []);
    player.connect(&mut host, 2);
    player.listen(&mut host);
    player.begin_view(&mut host);
    host.settle();
    player.listen(&mut host);
    assert_eq!(answered(&player), [(1, price(99))]);
    // It is shown once.
    player.connect(&mut host, 3);
    player.listen(&mut host);
    player.begin_view(&mut host);
    host.settle();
    player.listen(&mut host);
    assert_eq!(answered(&player).len(), 1);
}

#[test]
fn an_answer_is_not_shown_before_it_is_logged() {
    let mut host = host();
    let mut player = log_in(&mut host, 5, 1);
    host.mood = Mood::Loses;
    ask(&mut host, &mut player, 7);
    host.pass(100);
    player.listen(&mut host);
    assert_eq!(answered(&player), []);
    host.crash();
    player.connect(&mut host, 2);
    player.listen(&mut host);
    player.begin_view(&mut host);
    player.repeat(&mut host);
    host.settle();
    player.listen(&mut host);
    assert_eq!(answered(&player), [(1, price(7))]);
    let events = host.batches().flat_map(|batch| batch.events);
    let logged = events.filter(|event| matches!(event.body, Body::Replied { .. }));
    assert_eq!(logged.count(), 1, "the first answer was lost with its batch");
}

/// The numbers of calls begin anew with a session: an answer to a former one would be taken for another.
#[test]
fn a_later_session_is_not_shown_answers_to_a_former_one() {
    let mut host = host();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    ask(&mut host, &mut player, LATER);
    host.settle();
    let mut next = log_in(&mut host, 5, 2);
    assert_eq!(next.entity.unwrap().0, entity, "it is the same account");
    run_errand(&mut host, entity);
    ask(&mut host, &mut next, 3);
    host.settle();
    next.listen(&mut host);
    assert_eq!(answered(&next), [(1, price(3))]);
}
