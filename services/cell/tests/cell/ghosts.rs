//! Ghosts stay equal to their real entities, whatever messages are lost.

use annals_cell::CellInput;
use annals_def::Value;
use annals_event::{Call, Driver, Link, Trace};
use annals_ids::{Address, CallNumber, EntityId, HistoryNumber, MemberId, OwnerId, SessionId};
use annals_node::{Input, Output};
use annals_wire::{
    CellArea,
    bus::{CallMessage, Envelope, GhostImage, GhostMessage, GhostMove, Message, Shown},
};

use crate::{
    game::{ACT, AVATAR, DIE},
    oracle::check_ghosts,
    teleport::put,
    world::{EAST, MIDDLE, ROUGH, SPACE, WEST, World, place},
};

fn has_ghost(world: &World, id: annals_ids::OwnerId, entity: EntityId) -> bool {
    world.role(id).ghosts().get(entity).is_some()
}

fn act(world: &mut World, entity: EntityId, times: u8) {
    for what in 0..times {
        world.call(entity, ACT, vec![Value::UInt((what % 10).into())]);
        world.run(20);
    }
}

#[test]
fn an_entity_near_a_boundary_has_ghosts_that_follow_it() {
    let mut world = World::new(21);
    let entity = world.spawn(AVATAR, 30.0, Some(1));
    world.run(300);
    act(&mut world, entity, 25);
    world.walk(1, 28.0, 4.0);
    world.run(500);
    assert!(has_ghost(&world, WEST, entity) && has_ghost(&world, EAST, entity));
    check_ghosts(&world);
    let (_, ghost) = world.role(WEST).ghosts().iter().next().expect("it is there");
    assert_eq!(ghost.session(), Some(annals_ids::SessionId(1)));
    assert!(
        !ghost.properties().contains_key(&MemberId(1)),
        "properties of the own client stay at the home owner"
    );
    assert_eq!(world.role(MIDDLE).ghosts_on(WEST).collect::<Vec<_>>(), [entity]);
}

#[test]
fn a_ghost_is_removed_when_the_real_entity_leaves_or_ends() {
    let mut world = World::new(22);
    let (walker, mortal) = (world.spawn(AVATAR, -40.0, Some(1)), world.spawn(AVATAR, -40.0, None));
    world.run(300);
    assert!(has_ghost(&world, MIDDLE, walker) && has_ghost(&world, MIDDLE, mortal));
    world.walk(1, -65.0, 0.0);
    world.run(4_000);
    assert!(has_ghost(&world, MIDDLE, walker), "it is kept within the hysteresis");
    world.walk(1, -75.0, 0.0);
    world.call(mortal, DIE, Vec::new());
    world.run(400);
    assert!(
        world.role(MIDDLE).ghosts().iter().next().is_none(),
        "both are gone, and at once"
    );
    check_ghosts(&world);
}

#[test]
fn a_ghost_recovers_missed_events() {
    let mut world = World::new(23);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    for times in [3, 200] {
        world.cut_off = Some(WEST);
        act(&mut world, entity, times);
        world.cut_off = None;
        world.run(2_000);
        check_ghosts(&world);
    }
}

#[test]
fn ghosts_survive_the_death_of_either_side() {
    let mut world = World::new(24);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    act(&mut world, entity, 10);
    for victim in [WEST, MIDDLE, WEST] {
        world.crash(victim);
        world.run(4_000);
        assert!(
            victim == WEST || has_ghost(&world, WEST, entity),
            "a ghost outlives a take-over of the real one"
        );
        world.start(victim);
        act(&mut world, entity, 10);
        world.run(3_000);
        check_ghosts(&world);
        assert!(has_ghost(&world, WEST, entity));
    }
}

#[test]
fn a_ghost_of_a_dead_holder_is_removed() {
    let mut world = World::new(25);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    world.crash(MIDDLE);
    world.run(25_000);
    assert!(has_ghost(&world, WEST, entity));
    world.run(10_000);
    assert!(!has_ghost(&world, WEST, entity));
}

#[test]
fn the_old_owner_of_an_entity_has_a_ghost_of_it_at_once() {
    let mut world = World::new(26);
    let entity = world.spawn(AVATAR, -3.0, Some(1));
    world.run(300);
    act(&mut world, entity, 5);
    world.walk(1, 10.0, 0.0);
    while world.holders(entity) == [WEST] {
        world.run(1);
    }
    assert!(has_ghost(&world, WEST, entity));
    world.run(2_000);
    check_ghosts(&world);
    let (_, ghost) = world.role(WEST).ghosts().iter().next().expect("it is there");
    assert_eq!(ghost.holder(), MIDDLE);
    act(&mut world, entity, 5);
    world.run(500);
    check_ghosts(&world);
}

#[test]
fn ghosts_converge_on_a_lossy_bus() {
    for seed in 0..6 {
        let mut world = World::new(seed);
        let entities = [-30.0, 10.0, 55.0, 70.0].map(|x| world.spawn(AVATAR, x, None));
        (0..3u8).for_each(|i| world.spawn_creature(20.0 * f32::from(i)));
        world.run(500);
        world.faults = ROUGH;
        world.set_lively(true);
        for entity in entities {
            act(&mut world, entity, 10);
        }
        world.run(3_000);
        world.set_lively(false);
        world.run(20_000);
        println!("seed {seed}");
        check_ghosts(&world);
    }
}

/// Sets the ghost distance so that both West and Middle are within it of East.
fn see_far(world: &mut World) {
    let mut map = world.map.clone();
    map.version += 1;
    map.spaces.get_mut(&SPACE).expect("it is there").ghost_distance = 100.0;
    for id in [WEST, MIDDLE, EAST] {
        world.send_to_cell(id, CellInput::Map(map.clone()));
    }
    world.map = map;
}

#[test]
fn a_third_owner_keeps_its_ghost_at_a_hand_over() {
    let mut world = World::new(27);
    let (walker, watcher) = (world.spawn(AVATAR, -3.0, Some(1)), world.spawn(AVATAR, 36.0, Some(2)));
    see_far(&mut world);
    world.run(500);
    world.walk(2, 66.0, 0.0);
    world.run(1_500);
    assert_eq!(world.holders(watcher), [EAST]);
    assert!(has_ghost(&world, EAST, walker));
    // Ticks of the two that hand over and of the third happen in every order.
    let mut to = 30.0;
    for phase in 0..12 {
        world.run(1_200 + 7 * phase);
        world.walk(1, to, 0.0);
        for _ in 0..40 {
            world.run(10);
            assert!(has_ghost(&world, EAST, walker), "it is never handed over");
        }
        to = if to > 0.0 { -20.0 } else { 30.0 };
    }
    assert_eq!(world.role(MIDDLE).counters().onloaded, 6);
    world.run(1_500);
    check_ghosts(&world);
    world.walk(1, 30.0, 0.0);
    world.run(1_500);
    assert!(world.client(2).known.contains_key(&walker));
}

#[test]
fn a_third_owner_keeps_its_ghost_if_the_new_holder_dies_silently() {
    for phase in 0..12 {
        let mut world = World::new(28);
        let walker = world.spawn(AVATAR, -3.0, Some(1));
        see_far(&mut world);
        world.run(1_500 + 9 * phase);
        assert!(has_ghost(&world, EAST, walker));
        world.walk(1, 30.0, 0.0);
        for _ in 0..2_000 {
            world.run(1);
            if world.holders(walker) == [MIDDLE] && world.cx(WEST).state().departing.is_empty() {
                break;
            }
        }
        assert_eq!(world.holders(walker), [MIDDLE]);
        world.crash(MIDDLE);
        for _ in 0..80 {
            world.run(100);
            assert!(
                has_ghost(&world, EAST, walker),
                "phase {phase}: it is never handed over"
            );
        }
        world.start(MIDDLE);
        world.run(4_000);
        assert!(
            has_ghost(&world, EAST, walker),
            "phase {phase}: it is never handed over"
        );
        check_ghosts(&world);
    }
}

/// Delivers a message of `from` to `to`, without the bus.
fn say(world: &mut World, from: OwnerId, to: OwnerId, message: Message) -> Vec<Output> {
    let now = world.at();
    let epoch = world.cx(from).epoch();
    let envelope = Envelope { from, epoch, message };
    let cell = world.cells.get_mut(&to).expect("it is there");
    cell.handle(now, Input::Bus(envelope), 1_000)
}

/// Messages of a next holder that takes over in the middle of a hand-over, as the walker's old owner receives them:
/// those in `early` while the entity is leaving, and afterwards an empty list of ghosts, which was sent before all of
/// them.
fn receive_from_next_holder(early: impl Fn(EntityId, HistoryNumber) -> Option<GhostMessage>) {
    let mut world = World::new(29);
    let walker = world.spawn(AVATAR, -3.0, Some(1));
    world.run(1_500);
    world.walk(1, 30.0, 0.0);
    let is_under_way = |world: &World| !world.cx(WEST).state().departing.is_empty();
    for _ in 0..2_000 {
        world.run(1);
        if is_under_way(&world) {
            break;
        }
    }
    world.crash(MIDDLE);
    world.run(2_000);
    world.start(MIDDLE);
    for _ in 0..2_000 {
        if !is_under_way(&world) {
            break;
        }
        let ghost = world.role(WEST).ghosts().get(walker).expect("it has just left");
        if let Some(word) = early(walker, ghost.history()) {
            say(&mut world, MIDDLE, WEST, Message::Ghost(word));
        }
        world.run(1);
    }
    assert_eq!(world.holders(walker), [MIDDLE]);
    let overtaken = Message::Ghost(GhostMessage::Heads(Vec::new()));
    say(&mut world, MIDDLE, WEST, overtaken);
    assert!(has_ghost(&world, WEST, walker), "it was sent too early");
    world.run(3_000);
    check_ghosts(&world);
}

#[test]
fn earlier_messages_of_the_next_holder_remove_no_ghost() {
    receive_from_next_holder(|_, _| None);
}

#[test]
fn overtaken_messages_of_the_next_holder_remove_no_ghost() {
    receive_from_next_holder(|entity, after| {
        let events = Vec::new();
        Some(GhostMessage::Events { entity, after, events })
    });
    receive_from_next_holder(|entity, newest| Some(GhostMessage::Heads(vec![(entity, newest)])));
}

#[test]
fn entities_stay_in_view_while_their_holder_is_taken_over() {
    let mut world = World::new(30);
    let (watcher, walker) = (world.spawn(AVATAR, -3.0, Some(1)), world.spawn(AVATAR, 3.0, Some(2)));
    world.run(1_500);
    assert_eq!(
        (world.holders(watcher), world.holders(walker)),
        (vec![WEST], vec![MIDDLE])
    );
    assert!(world.client(1).known.contains_key(&walker));
    world.crash(WEST);
    world.crash(MIDDLE);
    world.run(1_000);
    world.start(WEST);
    for step in 0..60 {
        if step == 40 {
            world.start(MIDDLE);
        }
        world.run(200);
        let known = &world.client(1).known;
        assert!(known.contains_key(&walker), "after {step} fifths of a second");
    }
    check_ghosts(&world);
    // A real end removes it from view, once its holder has sent its list.
    world.call(walker, DIE, Vec::new());
    world.run(1_500);
    assert!(!world.client(1).known.contains_key(&walker));
}

/// A newer map of the world's space: the owner of each area, and where it begins and ends, metres east.
fn redraw(world: &mut World, areas: &[(OwnerId, f32, f32)]) {
    let area = |&(owner, west, east)| CellArea {
        west,
        east,
        ..CellArea::everywhere(owner)
    };
    world.map.version += 1;
    let space = world.map.spaces.get_mut(&SPACE).expect("it is there");
    space.cells = areas.iter().map(area).collect();
}

fn send_map(world: &mut World, to: &[OwnerId]) {
    for id in to {
        world.send_to_cell(*id, CellInput::Map(world.map.clone()));
    }
}

#[test]
fn entities_stay_in_view_at_a_take_over_with_a_newer_map() {
    let mut world = World::new(31);
    let (watcher, walker) = (world.spawn(AVATAR, 30.0, Some(1)), world.spawn(AVATAR, 66.0, None));
    world.run(1_500);
    assert_eq!(
        (world.holders(watcher), world.holders(walker)),
        (vec![MIDDLE], vec![EAST])
    );
    assert!(world.client(1).known.contains_key(&walker));
    assert!(!has_ghost(&world, WEST, walker));
    world.crash(EAST);
    redraw(
        &mut world,
        &[
            (WEST, f32::NEG_INFINITY, 40.0),
            (MIDDLE, 40.0, 60.0),
            (EAST, 60.0, f32::INFINITY),
        ],
    );
    send_map(&mut world, &[WEST, MIDDLE]);
    for step in 0..60 {
        if step == 40 {
            world.start(EAST);
        }
        world.run(200);
        let known = &world.client(1).known;
        assert!(known.contains_key(&walker), "after {step} fifths of a second");
    }
    assert_eq!(world.holders(watcher), [WEST]);
    check_ghosts(&world);
}

#[test]
fn entities_stay_in_view_at_a_take_over_before_their_hand_over() {
    let mut world = World::new(33);
    let (watcher, walker) = (world.spawn(AVATAR, 20.0, Some(1)), world.spawn(AVATAR, -5.0, None));
    world.run(1_500);
    assert_eq!(
        (world.holders(watcher), world.holders(walker)),
        (vec![MIDDLE], vec![WEST])
    );
    assert!(world.client(1).known.contains_key(&walker));
    // By the newest map West is far away; its entities go to Middle, and those that see them to East.
    world.crash(WEST);
    redraw(
        &mut world,
        &[
            (WEST, f32::NEG_INFINITY, -300.0),
            (MIDDLE, -300.0, 10.0),
            (EAST, 10.0, f32::INFINITY),
        ],
    );
    send_map(&mut world, &[MIDDLE, EAST]);
    for step in 0..60 {
        if step == 40 {
            world.start(WEST);
        }
        world.run(200);
        let known = &world.client(1).known;
        assert!(known.contains_key(&walker), "after {step} fifths of a second");
    }
    assert_eq!(
        (world.holders(watcher), world.holders(walker)),
        (vec![EAST], vec![MIDDLE])
    );
    check_ghosts(&world);
    // An entity that no owner has leaves the view, once all have sent their lists.
    world.call(walker, DIE, Vec::new());
    world.run(1_500);
    assert!(!world.client(1).known.contains_key(&walker));
}

#[test]
fn an_ended_entity_leaves_a_new_view_after_all_owners_deny_it() {
    let mut world = World::new(34);
    let (watcher, mortal) = (world.spawn(AVATAR, -3.0, Some(1)), world.spawn(AVATAR, 3.0, None));
    redraw(
        &mut world,
        &[
            (WEST, f32::NEG_INFINITY, 0.0),
            (MIDDLE, 0.0, 1_000.0),
            (EAST, 1_000.0, f32::INFINITY),
        ],
    );
    send_map(&mut world, &[WEST, MIDDLE, EAST]);
    // A new holder sends all other owners their list of ghosts for a while.
    world.run(15_000);
    assert_eq!(
        (world.holders(watcher), world.holders(mortal)),
        (vec![WEST], vec![MIDDLE])
    );
    world.crash(WEST);
    world.run(200);
    world.call(mortal, DIE, Vec::new());
    world.run(1_000);
    world.start(WEST);
    world.run(2_000);
    assert!(
        world.client(1).known.contains_key(&mortal),
        "an owner without a report yet may have it"
    );
    world.run(5_000);
    assert!(!world.client(1).known.contains_key(&mortal));
}

/// West and East are not neighbours; but an entity that has just come to West stays there for a while, wherever it is.
#[test]
fn a_short_lived_ghost_is_removed() {
    for phase in 0..10 {
        let mut world = World::new(35 + phase);
        let walker = world.spawn(AVATAR, 3.0, Some(1));
        let areas = [
            (WEST, f32::NEG_INFINITY, 0.0),
            (MIDDLE, 0.0, 100.0),
            (EAST, 100.0, f32::INFINITY),
        ];
        redraw(&mut world, &areas);
        send_map(&mut world, &[WEST, MIDDLE, EAST]);
        world.run(15_000 + 100 * phase);
        world.walk(1, -8.0, 0.0);
        let mut left = 2_000;
        while world.holders(walker) != [WEST] {
            left -= 1;
            assert!(left > 0, "it is handed over");
            world.run(1);
        }
        put(&mut world, walker, place(60.0, 0.0));
        world.run(150);
        assert!(has_ghost(&world, EAST, walker), "phase {phase}");
        put(&mut world, walker, place(-200.0, 0.0));
        world.run(3_000);
        assert!(!has_ghost(&world, EAST, walker), "phase {phase}");
    }
}

/// An entity is handed over from West to Middle, which by a newer map are not neighbours, and Middle sends no ghost of
/// it to any owner.
fn hand_over_to_a_stranger(dies: bool) {
    let mut world = World::new(32);
    let entity = world.spawn(AVATAR, -2.0, Some(1));
    redraw(
        &mut world,
        &[
            (WEST, f32::NEG_INFINITY, 0.0),
            (MIDDLE, 0.0, 50.0),
            (EAST, 50.0, f32::INFINITY),
        ],
    );
    send_map(&mut world, &[WEST, MIDDLE, EAST]);
    // A new holder sends all other owners their list of ghosts for a while.
    world.run(15_000);
    redraw(
        &mut world,
        &[
            (WEST, f32::NEG_INFINITY, -300.0),
            (EAST, -300.0, -80.0),
            (MIDDLE, -80.0, 66.0),
            (EAST, 66.0, f32::INFINITY),
        ],
    );
    send_map(&mut world, &[MIDDLE, EAST]);
    world.walk(1, 6.0, 0.0);
    let mut left = 2_000;
    while !world.holders(entity).contains(&MIDDLE) || !world.live(WEST).state().departing.is_empty() {
        left -= 1;
        assert!(left > 0, "it is handed over");
        world.run(1);
    }
    send_map(&mut world, &[WEST]);
    if dies {
        world.crash(MIDDLE);
        world.run(2_000);
        world.start(MIDDLE);
    }
    world.run(8_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    check_ghosts(&world);
}

#[test]
fn the_old_owner_learns_that_no_ghost_is_needed() {
    hand_over_to_a_stranger(false);
}

#[test]
fn the_old_owner_learns_it_from_the_successor_too() {
    hand_over_to_a_stranger(true);
}

#[test]
fn outdated_ghost_messages_are_ignored() {
    let mut world = World::new(28);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    act(&mut world, entity, 6);
    world.run(500);
    let moved = |sequence, x| {
        let moved = GhostMove {
            entity,
            sequence,
            place: place(x, 0.0),
        };
        Message::Ghost(GhostMessage::Moves(vec![moved]))
    };
    let (newer, older) = (world.now.0, world.now.0 - 1);
    say(&mut world, MIDDLE, WEST, moved(newer, 31.0));
    say(&mut world, MIDDLE, WEST, moved(older, 32.0));
    say(&mut world, EAST, WEST, moved(newer + 1, 33.0));
    say(&mut world, MIDDLE, WEST, moved(newer + 2, f32::NAN));
    let ghost = world.role(WEST).ghosts().get(entity).expect("it is there").clone();
    assert_eq!(ghost.place(), place(31.0, 0.0));

    let image = |history: HistoryNumber, strength| GhostImage {
        type_id: AVATAR,
        home: ghost.home(),
        session: None,
        history,
        place: place(30.0, 0.0),
        driver: Driver::Client,
        properties: vec![(MemberId(0), Value::Int(strength))],
    };
    let before = HistoryNumber(ghost.history().0 - 1);
    let wrong = image(ghost.history().next(), i64::MAX);
    for (from, image) in [
        (MIDDLE, image(before, 1)),
        (EAST, image(ghost.history(), 2)),
        (MIDDLE, wrong),
    ] {
        let image = Box::new(image);
        say(
            &mut world,
            from,
            WEST,
            Message::Ghost(GhostMessage::Image { entity, image }),
        );
    }
    assert_eq!(world.role(WEST).ghosts().get(entity), Some(&ghost));
    let after = before;
    let events = vec![Shown::Hidden];
    say(
        &mut world,
        EAST,
        WEST,
        Message::Ghost(GhostMessage::Events { entity, after, events }),
    );
    assert_eq!(world.role(WEST).ghosts().get(entity), Some(&ghost));
    let image = Box::new(image(ghost.history().next(), 5));
    say(
        &mut world,
        EAST,
        WEST,
        Message::Ghost(GhostMessage::Image { entity, image }),
    );
    let held = world.role(WEST).ghosts().get(entity).map(annals_cell::Ghost::holder);
    assert_eq!(held, Some(EAST), "the owner with the newer history holds it");
}

#[test]
fn a_call_on_a_ghost_learns_the_real_owner() {
    let mut world = World::new(29);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(2_000);
    let call = CallMessage {
        link: Link {
            from: Address::Client(SessionId(4)),
            to: Address::Cell(entity),
        },
        from_home: EAST,
        to_home: OwnerId(0),
        number: CallNumber(1),
        is_oldest: false,
        trace: Trace::default(),
        call: Call::Exposed { message: vec![0] },
    };
    let said = say(&mut world, EAST, WEST, Message::Call(call));
    let is_sent = said.iter().any(|output| {
        matches!(output, Output::Send { to: EAST, envelope } if envelope.message == Message::Moved { entity, to: MIDDLE })
    });
    assert!(is_sent, "{said:?}");
}
