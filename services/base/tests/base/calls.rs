//! Clients' calls: once each, in order, and only to exposed methods.

use annals_base::BaseInput;
use annals_def::Value;
use annals_ids::{Address, CallNumber, EntityId, HistoryNumber, Part};
use annals_wire::{
    bus::Message,
    client::{Call, CallRefusal, CloseReason, HelloAnswer, Proof, Stamps, ToServer},
};

use crate::{
    cell::Cell,
    game::{ACCOUNT, ENVOY},
    host::{CELL, FROM, Host, Mood, Out, open},
    player::{Entrance, Player, log_in},
};

fn number(value: u64) -> Value {
    Value::UInt(value)
}

fn notes(host: &Host, entity: EntityId) -> Vec<Value> {
    match &host.image(entity).properties[&annals_ids::MemberId(0)] {
        Value::Sequence(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_duplicate_call_is_consumed_once() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    for n in 1..=3 {
        player.call(&mut host, Part::Base, "note", &[number(n)]);
    }
    player.repeat(&mut host);
    host.settle();
    player.repeat(&mut host);
    host.settle();
    player.listen(&mut host);
    assert!(player.is_settled());
    assert_eq!(notes(&host, entity), [1, 2, 3].map(number));

    // Numbering continues over connections and take-overs.
    let lost = player.make(Part::Base, entity, "note", &[number(4)]);
    host.crash();
    player.connect(&mut host, 2);
    player.listen(&mut host);
    player.send(&mut host, &ToServer::Call(lost));
    player.call(&mut host, Part::Base, "note", &[number(5)]);
    player.repeat(&mut host);
    host.settle();
    player.listen(&mut host);
    assert!(player.is_settled());
    assert_eq!(notes(&host, entity), [1, 2, 3, 4, 5].map(number));
}

#[test]
fn a_missing_call_is_requested() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    player.make(Part::Base, entity, "note", &[number(1)]);
    player.call(&mut host, Part::Base, "note", &[number(2)]);
    host.settle();
    assert!(notes(&host, entity).is_empty(), "the second waits for the first");
    player.listen(&mut host);
    host.settle();
    player.listen(&mut host);
    assert!(player.is_settled());
    assert_eq!(notes(&host, entity), [1, 2].map(number));
}

#[test]
fn a_call_is_not_confirmed_before_it_is_logged() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    host.mood = Mood::Loses;
    player.call(&mut host, Part::Base, "note", &[number(1)]);
    host.pass(100);
    player.listen(&mut host);
    assert!(!player.is_settled());
    host.crash();
    assert!(notes(&host, entity).is_empty(), "the log had lost it");
    player.connect(&mut host, 2);
    player.listen(&mut host);
    player.repeat(&mut host);
    host.settle();
    player.listen(&mut host);
    assert!(player.is_settled());
    assert_eq!(notes(&host, entity), [number(1)]);
}

/// A method with `CallsPerMinute`: further calls are consumed and refused. Each client has its own limit.
#[test]
fn a_client_calls_a_limited_method_as_often_as_it_may() {
    let mut host = Host::new();
    let (mut player, mut other) = (log_in(&mut host, 5, 1), log_in(&mut host, 6, 2));
    let entity = player.entity.unwrap().0;
    let shout = |host: &mut Host, player: &mut Player, times: u64| -> usize {
        let before = player.refused.len();
        for call in 0..times {
            player.call(host, Part::Base, "shout", &[number(call)]);
        }
        host.settle();
        player.listen(host);
        assert!(player.is_settled(), "what is refused is consumed too");
        let refused = &player.refused[before..];
        assert!(refused.iter().all(|(_, why)| *why == CallRefusal::TooOften));
        refused.len()
    };
    assert_eq!(
        shout(&mut host, &mut player, 10),
        7,
        "a tenth of a minute's calls come at once"
    );
    assert_eq!(notes(&host, entity), [0, 1, 2].map(number));
    assert_eq!(shout(&mut host, &mut other, 10), 7, "others may call as often");
    assert_eq!(shout(&mut host, &mut player, 1), 1);
    host.pass(2_000);
    assert_eq!(shout(&mut host, &mut player, 2), 1, "one every two seconds");
    host.pass(60_000);
    assert_eq!(shout(&mut host, &mut player, 5), 2);
    player.call(&mut host, Part::Base, "note", &[number(77)]);
    host.settle();
    assert_eq!(
        notes(&host, entity).last(),
        Some(&number(77)),
        "other methods are not limited"
    );

    let before = notes(&host, entity).len();
    host.crash();
    assert_eq!(notes(&host, entity).len(), before, "what was admitted is in the log");
}

#[test]
fn unexposed_calls_are_consumed_and_not_run() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    let good = player.make(Part::Base, entity, "note", &[number(1)]);
    let spoiled = |number, method, args: &[u8]| Call {
        number: CallNumber(number),
        message: [&[method], args].concat(),
        ..good.clone()
    };
    let method = good.message[0];
    let calls = [
        spoiled(1, 13, &[]),
        spoiled(2, u8::MAX, &[]),
        spoiled(3, method, &[1, 2, 3]),
        spoiled(4, method, &[1, 2, 3, 4, 5]),
        spoiled(5, method, &[9, 0, 0, 0]),
    ];
    for call in calls {
        player.send(&mut host, &ToServer::Call(call));
    }
    host.settle();
    player.listen(&mut host);
    let numbers = (1..).map(CallNumber);
    let reasons = [
        CallRefusal::NoSuchMethod,
        CallRefusal::NoSuchMethod,
        CallRefusal::BadArguments,
        CallRefusal::BadArguments,
    ];
    assert_eq!(player.refused, numbers.zip(reasons).collect::<Vec<_>>());
    assert_eq!(notes(&host, entity), [number(9)], "the link is not stuck");
    assert_eq!(player.closed, None);
}

/// The entity's own type decides what a client may call, not the type that the client knows it as.
#[test]
fn calls_exposed_only_by_the_client_type_are_consumed_and_not_run() {
    let mut host = Host::new();
    let ticket = host.secret();
    let mut wanted = open(&host, 1, 5, 5, &ticket);
    wanted.account.type_id = ENVOY;
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    let (_, opened) = host.opened.pop().expect("the request is answered");
    let mut player = Player::new(&host.schema, opened.expect("the session is opened"), ticket);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    let (entity, known_as) = player.entity.expect("it was welcomed");
    assert_eq!(known_as, ACCOUNT);
    assert_eq!(host.image(entity).type_id, ENVOY);

    player.call(&mut host, Part::Base, "note", &[number(1)]);
    player.call(
        &mut host,
        Part::Base,
        "say",
        &[Value::Unicode("exposed by both".into())],
    );
    host.settle();
    player.listen(&mut host);
    assert!(player.is_settled());
    assert_eq!(player.refused, [(CallNumber(1), CallRefusal::NoSuchMethod)]);
    assert!(notes(&host, entity).is_empty());
    let motto = &host.image(entity).properties[&annals_ids::MemberId(2)];
    assert_eq!(motto, &Value::Unicode("exposed by both".into()));
}

#[test]
fn another_base_entity_is_out_of_reach() {
    let mut host = Host::new();
    let victim = log_in(&mut host, 5, 1).entity.unwrap().0;
    let mut player = log_in(&mut host, 6, 2);
    let call = player.make(Part::Base, victim, "note", &[number(1)]);
    player.send(&mut host, &ToServer::Call(call));
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.gone, [(Part::Base, victim)]);
    assert!(notes(&host, victim).is_empty());
    let from = Address::Client(player.session);
    assert!(
        !host.image(victim).links.taken.contains_key(&from),
        "not even a trace of it"
    );
}

#[test]
fn a_client_cannot_call_an_entity_it_gave_away() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let mut player = log_in(&mut host, 5, 1);
    let account = player.entity.unwrap().0;
    player.call(&mut host, Part::Base, "become", &[number(1)]);
    host.settle();
    cell.work(&mut host);
    player.listen(&mut host);
    let call = player.make(Part::Base, account, "note", &[number(1)]);
    player.send(&mut host, &ToServer::Call(call));
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.refused, [(CallNumber(2), CallRefusal::NotAllowed)]);
    assert!(notes(&host, account).is_empty());
}

#[test]
fn calls_to_cells_are_passed_on() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let mut player = log_in(&mut host, 5, 1);
    let account = player.entity.unwrap().0;
    let early = Call {
        entity: account,
        part: Part::Cell,
        number: CallNumber(1),
        is_oldest: true,
        message: vec![0],
    };
    player.send(&mut host, &ToServer::Call(early));
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.gone, [(Part::Cell, account)], "an account has no cell part");

    player.call(&mut host, Part::Base, "become", &[number(1)]);
    host.settle();
    cell.work(&mut host);
    player.listen(&mut host);
    let avatar = player.entity.unwrap().0;
    player.call(&mut host, Part::Cell, "hit", &[number(1)]);
    player.call(&mut host, Part::Cell, "hit", &[number(2)]);
    player.repeat(&mut host);
    host.settle();
    cell.work(&mut host);
    player.listen(&mut host);
    assert!(player.is_settled());
    let args: Vec<_> = cell.exposed.iter().map(|(_, n, args)| (n.0, args.clone())).collect();
    assert_eq!(args, [(1, vec![1, 0, 0, 0]), (2, vec![2, 0, 0, 0])]);
    let link = cell.exposed[0].0;
    assert_eq!(link.from, Address::Client(player.session));
    assert_eq!(link.to, Address::Cell(avatar));
    let logged = host.batches().flat_map(|batch| batch.header.consumed);
    assert!(
        !logged.into_iter().any(|consumed| consumed.to == link.to),
        "the base does not log it"
    );
}

/// Whether a message names the client of a cell part to it.
pub(crate) fn names_client(message: &Message) -> bool {
    match message {
        Message::Call(message) => matches!(message.call, annals_event::Call::Witness(Some(_))),
        _ => false,
    }
}

/// A client that has just been given an avatar: base and cell have not exchanged any message about that.
fn become_avatar(host: &mut Host) -> (Player, EntityId) {
    let mut player = log_in(host, 5, 1);
    player.call(host, Part::Base, "become", &[number(1)]);
    host.settle();
    player.listen(host);
    let avatar = player.entity.unwrap().0;
    (player, avatar)
}

/// Loses the message that names the client to the cell part.
fn lose_naming(host: &mut Host) {
    let before = host.sent.len();
    host.sent.retain(|(_, envelope)| !names_client(&envelope.message));
    assert_eq!(host.sent.len() + 1, before, "it is named once");
}

/// The cell part learns of its client on another link than that of the client's calls. Before, it would refuse them.
#[test]
fn calls_wait_until_the_cell_part_knows_the_client() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = become_avatar(&mut host);
    lose_naming(&mut host);
    cell.work(&mut host);
    assert_eq!(cell.parts[&avatar], None, "the cell part has no client yet");

    for n in 1..=40 {
        player.call(&mut host, Part::Cell, "hit", &[number(n)]);
    }
    player.repeat(&mut host);
    host.settle();
    cell.work(&mut host);
    assert!(cell.exposed.is_empty(), "{:?}", cell.exposed);

    host.pass(5_000);
    let mut sent = host.sent.iter();
    assert!(
        sent.any(|(_, envelope)| names_client(&envelope.message)),
        "it is repeated"
    );
    cell.work(&mut host);
    assert_eq!(cell.parts[&avatar].map(|client| client.session), Some(player.session));
    assert_eq!(
        cell.exposed.len(),
        32,
        "as many as are kept, without a repetition by the client"
    );
    player.listen(&mut host);
    player.repeat(&mut host);
    host.settle();
    cell.work(&mut host);
    player.listen(&mut host);
    assert!(player.is_settled(), "the client repeats the others");
    assert!(player.refused.is_empty());
    let numbers: Vec<u64> = cell.exposed.iter().map(|(_, number, _)| number.0).collect();
    assert!(numbers.iter().copied().eq(1..=40), "once each, in order: {numbers:?}");
}

#[test]
fn calls_that_wait_are_forwarded_if_the_cell_part_never_learns_of_the_client() {
    let (mut host, cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = become_avatar(&mut host);
    player.call(&mut host, Part::Cell, "hit", &[number(1)]);
    host.settle();
    let is_hit = |message: &Message| match message {
        Message::Call(message) => matches!(message.call, annals_event::Call::Exposed { .. }),
        _ => false,
    };
    assert!(!host.sent.iter().any(|(_, envelope)| is_hit(&envelope.message)));
    let link = annals_event::Link {
        from: Address::Base(avatar),
        to: Address::Cell(avatar),
    };
    host.receive(cell.envelope(Message::Gone { link }));
    host.settle();
    assert!(host.sent.iter().any(|(_, envelope)| is_hit(&envelope.message)));
}

/// The cell part ends, and no confirmation has arrived that it knew its client.
#[test]
fn calls_that_wait_are_answered_if_the_cell_part_ends() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = become_avatar(&mut host);
    lose_naming(&mut host);
    cell.work(&mut host);
    player.call(&mut host, Part::Cell, "hit", &[number(1)]);
    host.settle();
    assert!(host.sent.is_empty(), "{:?}", host.sent);

    let ended = cell.say_placed(avatar, None);
    host.receive(ended);
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.gone, [(Part::Cell, avatar)]);
    player.call(&mut host, Part::Cell, "hit", &[number(2)]);
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.gone.len(), 2, "nothing waits without a cell part");
}

/// A client that receives `Gone` drops its calls; so does the base, which would forward them to a later cell part.
#[test]
fn calls_that_wait_are_dropped_with_those_of_the_client() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = become_avatar(&mut host);
    lose_naming(&mut host);
    cell.work(&mut host);
    player.call(&mut host, Part::Cell, "hit", &[number(1)]);
    host.settle();
    let link = annals_event::Link {
        from: Address::Client(player.session),
        to: Address::Cell(avatar),
    };
    host.receive(cell.envelope(Message::Gone { link }));
    host.pass(5_000);
    cell.work(&mut host);
    player.listen(&mut host);
    assert_eq!(player.gone, [(Part::Cell, avatar)]);
    assert!(cell.parts[&avatar].is_some(), "the client is known");
    assert!(cell.exposed.is_empty(), "{:?}", cell.exposed);
}

#[test]
fn calls_that_wait_are_bounded_in_size() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (player, avatar) = become_avatar(&mut host);
    lose_naming(&mut host);
    cell.work(&mut host);
    for number in 1..=2 {
        let large = Call {
            entity: avatar,
            part: Part::Cell,
            number: CallNumber(number),
            is_oldest: number == 1,
            message: vec![0; 40 << 10],
        };
        player.send(&mut host, &ToServer::Call(large));
    }
    host.pass(5_000);
    cell.work(&mut host);
    let numbers: Vec<u64> = cell.exposed.iter().map(|(_, number, _)| number.0).collect();
    assert_eq!(numbers, [1], "64 KiB are kept; the client repeats the second");
}

#[test]
fn calls_to_unknown_entities_follow_their_last_known_owner() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let mut player = log_in(&mut host, 5, 1);
    player.call(&mut host, Part::Base, "become", &[number(1)]);
    host.settle();
    cell.work(&mut host);
    player.listen(&mut host);
    let stranger = EntityId(1 << 40);
    let call = player.make(Part::Cell, stranger, "hit", &[number(1)]);
    let mut calls: Vec<Call> = vec![call];
    calls.push(player.make(Part::Cell, stranger, "hit", &[number(2)]));
    let go_to = |host: &mut Host, calls: &[Call]| -> Vec<annals_ids::OwnerId> {
        for call in calls {
            player.send(host, &ToServer::Call(call.clone()));
        }
        host.settle();
        host.sent.drain(..).map(|(to, _)| to).collect()
    };
    assert_eq!(go_to(&mut host, &calls), [CELL, CELL], "the owner of the witness knows");
    let there = annals_ids::OwnerId(21);
    let to = there;
    host.receive(cell.envelope(Message::Moved { entity: stranger, to }));
    assert_eq!(go_to(&mut host, &calls), [there, there], "sent again, they follow");
    assert_eq!(go_to(&mut host, &calls), [CELL, CELL], "sent again: it is not there");
    assert_eq!(go_to(&mut host, &calls), [there, there], "nor here");
    let link = annals_event::Link {
        from: Address::Client(player.session),
        to: Address::Cell(stranger),
    };
    let upto = CallNumber(1);
    host.receive(Cell::new(there).envelope(Message::Took { link, upto }));
    host.settle();
    assert_eq!(go_to(&mut host, &calls[1..]), [there], "it was found there");
}

#[test]
fn malformed_input_is_survived() {
    let mut host = Host::new();
    let mut dice = annals_def::split_mix(11);
    let mut player = log_in(&mut host, 5, 1);
    let own = player.entity.unwrap().0;
    for round in 0..2_000 {
        let mut number = || match dice() % 4 {
            0 => dice() % 8,
            1 => u64::MAX - dice() % 3,
            2 => own.0 + dice() % 3,
            _ => dice(),
        };
        let part = if number() % 2 == 0 { Part::Base } else { Part::Cell };
        let frame = if round % 2 == 0 {
            ToServer::Call(Call {
                entity: EntityId(number()),
                part,
                number: CallNumber(number().clamp(1, CallNumber::floor(1).0)),
                is_oldest: number().is_multiple_of(2),
                message: number().to_le_bytes()[..(round as usize / 2) % 9].to_vec(),
            })
        } else {
            ToServer::Stamps(Stamps {
                source: part,
                view: number(),
                known: [(EntityId(number()), HistoryNumber(number()))].into_iter().collect(),
            })
        };
        player.send(&mut host, &frame);
        if round % 500 == 0 {
            host.crash();
            player.connect(&mut host, 2 + round);
            player.entrance = Entrance::Welcomed;
            let token = host.out.drain(..).find_map(|out| match out {
                Out::Frame(_, bytes) => HelloAnswer::read(&bytes).ok(),
                _ => None,
            });
            let Some(HelloAnswer::Welcome(welcome)) = token else {
                panic!("{token:?}")
            };
            player.proof = Proof::Resume(welcome.token);
        }
    }
    host.settle();
    let closed = host.out.iter().any(|out| matches!(out, Out::Close(..)));
    assert!(!closed, "a well-formed frame does not close the connection");
    assert_eq!(host.owner.state().entities.len(), 1);
    assert_eq!(
        host.folded().hash(),
        host.owner.state().hash(),
        "live and replayed state are one"
    );
}

#[test]
fn a_second_hello_closes_the_connection() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let connection = player.connection;
    let (hello, fresh_token) = (player.hello(host.epoch), host.secret());
    host.role(BaseInput::Hello {
        connection,
        from: FROM,
        hello,
        fresh_token,
    });
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.closed, Some(CloseReason::Malformed));
    assert_eq!(host.owner.role().counters().refused, 1);
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
}
