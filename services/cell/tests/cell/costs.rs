//! The counted costs of members equal what is in the log and in the messages that were sent.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Body, Call, Event, Subject, latest::call::put_properties};
use annals_ids::{EntityId, TypeId};
use annals_node::{CostKind, Member};
use annals_wire::bus::{GhostMessage, Message, Shown};

use crate::{
    game::{ACT, ALTER, AVATAR, NOTE, STATUE},
    world::World,
};

/// By member and way.
type Costs = BTreeMap<(TypeId, Member, u8), u64>;

fn note(costs: &mut Costs, (type_id, member): (TypeId, Member), way: CostKind, amount: usize) {
    if amount > 0 {
        *costs.entry((type_id, member, way as u8)).or_default() += amount as u64;
    }
}

/// The size of an event.
fn weigh(event: &Event) -> usize {
    let mut bytes = Vec::new();
    event.write(&mut bytes);
    bytes.len()
}

/// The type of every entity that was ever created.
fn types(world: &World) -> BTreeMap<EntityId, TypeId> {
    let events = world.cells.values().flat_map(|cell| cell.events());
    let made = events.filter_map(|event| match (event.subject, &event.body) {
        (Subject::Entity(entity, _), Body::CellCreated(creation)) => Some((entity, creation.type_id)),
        _ => None,
    });
    made.collect()
}

/// Costs in the logs.
fn logged(world: &World, types: &BTreeMap<EntityId, TypeId>, costs: &mut Costs) {
    for event in world.cells.values().flat_map(|cell| cell.events()) {
        let Subject::Entity(entity, _) = event.subject else {
            continue;
        };
        let member = match &event.body {
            Body::Changed { member, .. } => Member::Property(*member),
            Body::Invoked { method, .. } => Member::ClientMethod(*method),
            _ => continue,
        };
        let bytes = weigh(&event);
        assert!(bytes < 1 << 14, "its length takes one byte or two");
        let member = (types[&entity], member);
        note(costs, member, CostKind::Changes, 1);
        note(costs, member, CostKind::Log, bytes + if bytes < 128 { 1 } else { 2 });
    }
}

/// Costs of what clients received.
fn shown(world: &World, costs: &mut Costs) {
    for client in world.clients.values() {
        assert_eq!(client.dropped, 0, "on a quiet bus no frame is dropped");
        for (&(own, type_id, member), bytes) in &client.costs {
            let way = if own { CostKind::Own } else { CostKind::Others };
            note(costs, (type_id, member), way, *bytes);
        }
    }
}

/// Costs of messages between owners.
fn sent(world: &World, types: &BTreeMap<EntityId, TypeId>, costs: &mut Costs) {
    let mut called = BTreeSet::new();
    for envelope in world.sent.iter().flatten() {
        match &envelope.message {
            Message::Ghost(GhostMessage::Events { entity, events, .. }) => {
                for event in events {
                    let Shown::Event(event) = event else { continue };
                    let member = match &event.body {
                        Body::Changed { member, .. } => Member::Property(*member),
                        Body::Invoked { method, .. } => Member::ClientMethod(*method),
                        _ => continue,
                    };
                    note(costs, (types[entity], member), CostKind::Ghosts, weigh(event));
                }
            }
            Message::Ghost(GhostMessage::Image { image, .. }) => {
                let mut bytes = Vec::new();
                put_properties(&mut bytes, &image.properties);
                for nth in 0..image.properties.len() {
                    // The size that it adds to those before it.
                    let upto = |count: usize| {
                        let mut bytes = Vec::new();
                        put_properties(&mut bytes, &image.properties[..count]);
                        bytes.len()
                    };
                    let member = (image.type_id, Member::Property(image.properties[nth].0));
                    note(costs, member, CostKind::Ghosts, upto(nth + 1) - upto(nth));
                }
            }
            Message::Call(message) if called.insert((message.link, message.number)) => {
                if let (Call::Method { method, .. }, Some((entity, _))) = (&message.call, message.link.to.entity()) {
                    let mut bytes = Vec::new();
                    message.call.write(&mut bytes);
                    let member = (types[&entity], Member::CellMethod(*method));
                    note(costs, member, CostKind::Changes, 1);
                    note(costs, member, CostKind::Part, bytes.len());
                }
            }
            _ => {}
        }
    }
}

/// Costs as counted by the owners.
fn counted(world: &World) -> Costs {
    const COST_KINDS: [CostKind; 6] = [
        CostKind::Changes,
        CostKind::Log,
        CostKind::Own,
        CostKind::Others,
        CostKind::Ghosts,
        CostKind::Part,
    ];
    let mut costs = Costs::new();
    for id in world.cells.keys() {
        for (type_id, member, cost) in world.cx(*id).tally().take() {
            for way in COST_KINDS {
                note(&mut costs, (type_id, member), way, cost.of(way) as usize);
            }
        }
    }
    costs
}

#[test]
fn counters_equal_the_log_and_the_messages() {
    for seed in 0..6 {
        let mut world = World::new(700 + seed);
        world.sent = Some(Vec::new());
        let mut beings: Vec<EntityId> = Vec::new();
        for (nth, x) in [-50.0, -20.0, -5.0, 10.0, 30.0, 70.0].into_iter().enumerate() {
            let type_id = if nth == 2 { STATUE } else { AVATAR };
            // Clients stay clear of boundaries: after a hand-over a client restarts its view, and drops frames of the
            // old one.
            let session = matches!(nth, 0 | 4 | 5).then_some(nth as u64 + 1);
            beings.push(world.spawn(type_id, x, session));
            world.run(200);
        }
        for round in 0..60 {
            let entity = beings[world.roll(beings.len() as u64) as usize];
            match world.roll(4) {
                0 => world.call(entity, NOTE, vec![annals_def::Value::Int(round)]),
                1 => world.call(entity, ACT, vec![annals_def::Value::UInt(ALTER)]),
                _ => {
                    let what = world.roll(10);
                    world.call(entity, ACT, vec![annals_def::Value::UInt(what)]);
                }
            }
            world.run(40);
        }
        // A client that joins late is sent the whole state.
        world.spawn(AVATAR, -25.0, Some(9));
        world.run(2_000);
        let types = types(&world);
        let mut expected = Costs::new();
        logged(&world, &types, &mut expected);
        shown(&world, &mut expected);
        sent(&world, &types, &mut expected);
        let counted = self::counted(&world);
        for way in [
            CostKind::Log,
            CostKind::Own,
            CostKind::Others,
            CostKind::Ghosts,
            CostKind::Part,
        ] {
            let members = counted.keys().filter(|(.., counted)| *counted == way as u8).count();
            assert!(members > 0, "seed {seed}: no movement was made of {way:?}");
        }
        assert_eq!(counted, expected, "seed {seed}");
        assert!(self::counted(&world).is_empty(), "drained outputs are gone");
    }
}
