//! Calls of behaviour to services outside the realm: logged before they are sent, sent until they are settled, and
//! answered once.

use std::collections::BTreeSet;

use annals_def::split_mix;
use annals_event::{Body, CallError};
use annals_ids::{CallNumber, EntityId, MemberId};
use annals_node::{
    Context, Denied, Input,
    outbound::{MAX_OUTBOUND_BYTES, OUTSIDE, OutboundAnswer, OutboundCall, answered, read_answer},
};

use crate::{
    game::{Game, TIMEOUT_MS},
    host::{Host, Mood, map},
    lifecycle::trail,
};

const RUN_ERRAND: MemberId = MemberId(17);
const LEAVE: MemberId = MemberId(3);

/// Longer than the longest pause between two sends of a call.
const RESENT_MS: u64 = 9_000;

/// Continuation of the calls, and their note.
const PAID: u32 = 9;
const NOTE: &[u8] = b"for later";

fn pay(context: &mut Context<'_>) {
    let body = b"one sword".to_vec();
    context
        .call_outside("shop", body, TIMEOUT_MS, (PAID, NOTE.to_vec()))
        .unwrap();
}

/// A host whose game makes an outbound call on request, and an account there.
fn host_with(errand: fn(&mut Context<'_>)) -> (Host, EntityId) {
    let mut host = Host::of(Game {
        errand: Some(errand),
        ..Game::default()
    });
    host.role(annals_base::BaseInput::Map(map()));
    let entity = host.begin_account(5);
    (host, entity)
}

fn answer(host: &mut Host, call: &OutboundCall) {
    let answer = OutboundAnswer {
        from: call.from,
        number: call.number,
        outcome: answered(200, b"done".to_vec()),
    };
    host.owner.handle(host.now(), Input::Outbound(answer));
    host.settle();
}

/// Numbers of the calls that nobody has settled.
fn unsettled(host: &Host, entity: EntityId) -> Vec<CallNumber> {
    let sent = host.image(entity).links.sent.get(&OUTSIDE);
    sent.map(|sent| sent.unconfirmed.keys().copied().collect())
        .unwrap_or_default()
}

#[test]
fn a_call_leaves_after_its_batch_and_is_answered_once() {
    let (mut host, entity) = host_with(pay);
    host.mood = Mood::Withholds;
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert!(host.outbound.is_empty(), "no call is sent before it is in the log");
    host.answer_again();
    let call = host.outbound.pop_front().expect("it leaves");
    assert_eq!((call.service.as_str(), &call.body[..]), ("shop", &b"one sword"[..]));
    for _ in 0..2 {
        answer(&mut host, &call);
    }
    host.pass(2 * TIMEOUT_MS);
    assert_eq!(trail(&host, entity), "bo");
    assert!(unsettled(&host, entity).is_empty());
    assert_eq!(host.outbound.len(), 0, "an answered call is not sent again");
}

#[test]
fn a_call_is_sent_until_its_deadline() {
    let (mut host, entity) = host_with(pay);
    host.call(entity, RUN_ERRAND);
    host.pass(TIMEOUT_MS - 1_000);
    let sent: BTreeSet<CallNumber> = host.outbound.iter().map(|call| call.number).collect();
    assert!(host.outbound.len() > 2 && sent.len() == 1, "{:?}", host.outbound);
    assert_eq!(trail(&host, entity), "b");
    host.pass(2_000);
    assert_eq!(trail(&host, entity), "bx");
    let call = host.outbound.pop_front().expect("it was sent");
    host.outbound.clear();
    host.pass(RESENT_MS);
    assert!(host.outbound.is_empty() && unsettled(&host, entity).is_empty());
    answer(&mut host, &call);
    assert_eq!(trail(&host, entity), "bx", "the wait is over");
}

#[test]
fn a_process_that_takes_over_sends_the_call_again() {
    let (mut host, entity) = host_with(pay);
    host.call(entity, RUN_ERRAND);
    host.settle();
    let first = host.outbound.pop_front().expect("it leaves");
    host.outbound.clear();
    host.crash();
    let second = host.outbound.pop_front().expect("it leaves again");
    assert_eq!(first, second);
    answer(&mut host, &second);
    answer(&mut host, &first);
    assert_eq!(trail(&host, entity), "bro");
}

#[test]
fn an_answer_that_comes_first_settles_its_own_call_only() {
    let (mut host, entity) = host_with(|context| {
        pay(context);
        pay(context);
    });
    host.call(entity, RUN_ERRAND);
    host.settle();
    let (first, second) = (host.outbound[0].clone(), host.outbound[1].clone());
    answer(&mut host, &second);
    assert_eq!(trail(&host, entity), "bo");
    host.crash();
    assert!(
        host.outbound.iter().all(|call| *call == first),
        "the first one alone is sent again"
    );
    assert!(!host.outbound.is_empty());
    answer(&mut host, &first);
    assert_eq!(trail(&host, entity), "boro");
    assert!(unsettled(&host, entity).is_empty());
}

#[test]
fn the_calls_of_an_entity_that_has_ended_are_still_made() {
    let (mut host, entity) = host_with(|context| {
        pay(context);
        pay(context);
    });
    host.call(entity, RUN_ERRAND);
    host.call_again(entity, LEAVE);
    host.settle();
    assert!(host.owner.cx().image(entity).is_none());
    host.outbound.clear();
    host.crash();
    let calls: Vec<OutboundCall> = host.outbound.drain(..).collect();
    let (first, second) = (&calls[0], &calls[1]);
    assert_ne!(first.number, second.number);
    // The first of them is sent until it is answered itself.
    for call in [second, first, second] {
        assert!(host.owner.state().estates.contains_key(&entity));
        answer(&mut host, call);
    }
    host.settle();
    host.outbound.clear();
    host.pass(RESENT_MS);
    assert!(host.outbound.is_empty() && host.owner.state().estates.is_empty());
}

#[test]
fn a_call_that_is_too_large_is_denied() {
    let (mut host, entity) = host_with(|context| {
        let note = || (PAID, Vec::new());
        for (service, bytes) in [("", 0), ("shop", MAX_OUTBOUND_BYTES + 1), (&"s".repeat(65)[..], 0)] {
            let denied = context.call_outside(service, vec![0; bytes], TIMEOUT_MS, note());
            assert!(matches!(denied, Err(Denied::Outbound { .. })), "{denied:?}");
        }
        let largest = context.call_outside("shop", vec![0; MAX_OUTBOUND_BYTES], TIMEOUT_MS, note());
        assert_eq!(largest, Ok(()));
    });
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert_eq!(host.outbound.len(), 1);
}

#[test]
fn an_outcome_that_is_no_answer_is_an_error() {
    let outcome = answered(404, b"nothing".to_vec());
    assert_eq!(read_answer(&outcome), Ok((404, &b"nothing"[..])));
    assert_eq!(read_answer(&Err(CallError::NoReply)), Err(CallError::NoReply));
    for values in [Vec::new(), vec![annals_def::Value::Int(200)]] {
        assert!(matches!(read_answer(&Ok(values)), Err(CallError::Internal(_))));
    }
}

/// Calls, answers, repetitions, crashes and time in any order: each call ends once, and none that ends with an answer
/// was not in the log.
#[test]
fn each_call_ends_once_whatever_happens() {
    for seed in 0..60 {
        let mut dice = split_mix(seed);
        let (mut host, entity) = host_with(pay);
        let (mut made, mut seen) = (0, Vec::<OutboundCall>::new());
        for _ in 0..40 {
            match dice() % 8 {
                0..=2 => {
                    made += 1;
                    host.call_numbered(entity, RUN_ERRAND, CallNumber(made));
                }
                3 | 4 if !seen.is_empty() => {
                    let call = seen[usize::try_from(dice()).unwrap_or(0) % seen.len()].clone();
                    answer(&mut host, &call);
                }
                5 => {
                    host.settle();
                    host.crash();
                }
                6 => host.pass(dice() % (TIMEOUT_MS / 2)),
                _ => host.settle(),
            }
            seen.extend(host.outbound.drain(..));
        }
        host.settle();
        host.pass(2 * TIMEOUT_MS);
        let logged: BTreeSet<CallNumber> = host
            .batches()
            .flat_map(|batch| batch.events)
            .filter_map(|event| match event.body {
                Body::Called {
                    to: OUTSIDE, number, ..
                } => Some(number),
                _ => None,
            })
            .collect();
        let trail = trail(&host, entity);
        let ended = trail.chars().filter(|letter| "ox".contains(*letter));
        assert_eq!(ended.count(), logged.len(), "seed {seed}: {trail}");
        assert_eq!(logged.len() as u64, made, "seed {seed}");
        assert!(seen.iter().all(|call| logged.contains(&call.number)), "seed {seed}");
        assert!(unsettled(&host, entity).is_empty(), "seed {seed}");
    }
}
