//! Services as cells use them: parts find fragments on base owners, and skip one that does not answer.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use annals_cell::CellInput;
use annals_def::{Argument, DataType, Method, Schema, Service, Value};
use annals_event::Link;
use annals_ids::{Address, CallNumber, EntityId, Epoch, Mailbox, OwnerId, Part};
use annals_node::{Context, Denied, Input};
use annals_wire::bus::{Envelope, Message};

use crate::{
    game::AVATAR,
    world::{HOME, MIDDLE, World, have},
};

/// A base owner that no process holds.
const DEAD: OwnerId = OwnerId(101);

/// Number of fragments that a part asks for: both are found at least once, except with a probability of 2^-39.
const TIMES: usize = 40;

const SERVICE: &str = "Almanac";

fn service() -> Service {
    Service {
        name: SERVICE.into(),
        methods: vec![Method::new("note", vec![Argument::new("number", DataType::Int32)])],
    }
}

/// Three cells, and an avatar on the one in the middle.
fn world(seed: u64, bases: &[OwnerId]) -> (World, EntityId) {
    let types = crate::game::schema().types().to_vec();
    let mut world = World::of(seed, Arc::new(Schema::new(types, vec![service()], Vec::new())));
    world.map.bases.extend(bases);
    world.map.version += 1;
    let map = world.map.clone();
    world.send_to_cell(MIDDLE, CellInput::Map(map));
    let entity = world.spawn(AVATAR, 0.0, None);
    world.run(500);
    (world, entity)
}

/// Has an entity do something, and returns the result.
fn done<T: Send + 'static>(
    world: &mut World,
    entity: EntityId,
    errand: impl FnOnce(&mut Context<'_>) -> T + Send + 'static,
) -> T {
    let result = Arc::new(Mutex::new(None));
    let of_errand = Arc::clone(&result);
    have(world, entity, move |context| {
        *of_errand.lock().expect("the lock is not poisoned") = Some(errand(context));
    });
    let result = result.lock().expect("the lock is not poisoned").take();
    result.expect("it was done")
}

/// The owners of the fragments that a part finds when it asks many times.
fn found(world: &mut World, entity: EntityId) -> BTreeSet<OwnerId> {
    done(world, entity, |context| {
        let all = (0..TIMES).map(|_| context.service(SERVICE).expect("there are base owners"));
        all.map(|fragment| fragment.home).collect()
    })
}

fn call(world: &mut World, entity: EntityId, fragment: Mailbox) {
    done(world, entity, move |context| {
        let number = vec![Value::Int(1)];
        context.call(fragment, "note", number).expect("it has this method");
    });
}

fn fragment_on(world: &World, home: OwnerId) -> Mailbox {
    Mailbox {
        entity: EntityId::of_fragment(home, service().slot()),
        home,
        type_id: world.cx(MIDDLE).schema().fragments_of(SERVICE).expect("it has one").id,
        part: Part::Base,
    }
}

#[test]
fn a_part_finds_fragments_on_all_base_owners() {
    let (mut world, entity) = world(1, &[]);
    let none = done(&mut world, entity, |context| context.service(SERVICE));
    assert_eq!(
        none,
        Err(Denied::NoFragment {
            service: SERVICE.into()
        })
    );
    let unknown = done(&mut world, entity, |context| context.service("Avatar"));
    assert_eq!(
        unknown,
        Err(Denied::NoService {
            service: "Avatar".into()
        })
    );

    let (mut world, entity) = self::world(1, &[HOME, DEAD]);
    assert_eq!(found(&mut world, entity), [HOME, DEAD].into());
    let fragment = fragment_on(&world, HOME);
    call(&mut world, entity, fragment);
    world.run(200);
    let home = world.home.folded();
    let held = &home.entities[&fragment.entity];
    assert_eq!(held.type_id, fragment.type_id, "it began when it was called");
    assert_eq!(held.links.taken.len(), 1, "the call was executed");
}

#[test]
fn a_fragment_that_does_not_answer_is_skipped_until_it_does() {
    let (mut world, entity) = world(2, &[HOME, DEAD]);
    let other = world.spawn(AVATAR, 1.0, None);
    world.run(500);
    let dead = fragment_on(&world, DEAD);
    call(&mut world, entity, dead);
    assert_eq!(found(&mut world, other), [HOME, DEAD].into(), "it may still answer");
    world.run(800);
    for part in [entity, other] {
        assert_eq!(
            found(&mut world, part),
            [HOME].into(),
            "every part of the owner skips it"
        );
    }

    // Only one of two calls is confirmed: the fragment answers.
    call(&mut world, entity, dead);
    confirm(&mut world, entity, dead, CallNumber(1));
    for part in [entity, other] {
        assert_eq!(found(&mut world, part), [HOME, DEAD].into(), "it has answered");
    }
    world.run(1_500);
    assert_eq!(
        found(&mut world, other),
        [HOME].into(),
        "it has not confirmed the other"
    );
    confirm(&mut world, entity, dead, CallNumber(2));
    assert_eq!(found(&mut world, other), [HOME, DEAD].into());
}

/// The owner of a fragment confirms calls of a part.
fn confirm(world: &mut World, from: EntityId, fragment: Mailbox, upto: CallNumber) {
    let link = Link {
        from: Address::Cell(from),
        to: Address::Base(fragment.entity),
    };
    let envelope = Envelope {
        from: fragment.home,
        epoch: Epoch(1),
        message: Message::Took { link, upto },
    };
    let now = world.at();
    let middle = world.cells.get_mut(&MIDDLE).expect("it is there");
    middle.handle(now, Input::Bus(envelope), 1_000);
}

#[test]
fn a_part_finds_a_fragment_even_if_none_answers() {
    let (mut world, entity) = world(3, &[DEAD]);
    let dead = fragment_on(&world, DEAD);
    call(&mut world, entity, dead);
    world.run(800);
    assert_eq!(found(&mut world, entity), [DEAD].into());
}
