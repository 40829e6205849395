//! The sample game: avatars that speak, monsters that walk and can be attacked.

use std::{path::Path, sync::Arc};

use annals_client::{Event, What};
use annals_def::{Exposure, Method, Schema, Value, generate, split_mix};
use annals_event::{Body, GlobalScope};
use annals_game::testing::{BASE, EAST, TestRealm, WEST};
use annals_ids::{EntityId, MemberId, OwnerId, Part, Position, TypeId};
use annals_node::{Answer, Behaviour, Bootstrap, Caller, Context};
use annals_sample::{CHOICE_MS, SPACE, WEATHER, game};

use crate::world::{
    puppet::{Called, exposed, uncalled},
    schema,
};

pub(crate) fn stage() -> TestRealm {
    stage_of(schema(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")))
}

fn stage_of(schema: Arc<Schema>) -> TestRealm {
    let account = schema.type_named("Account").unwrap().id;
    let behaviour = game(&schema).unwrap();
    TestRealm::new(schema, behaviour, account)
}

#[test]
fn definitions_other_than_the_compiled_ones_are_refused() {
    let sound = schema(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    assert!(game(&sound).is_ok());
    let mut types = sound.types().to_vec();
    for space in types.iter_mut().filter(|found| found.name == "Space") {
        space.cell_methods.retain(|method| method.name != "setWeather");
    }
    let changed = Schema::new(types, Vec::new(), sound.user_data_objects().to_vec());
    let Err(refused) = game(&Arc::new(changed)) else {
        panic!("it runs on anything");
    };
    let said = refused.to_string();
    assert!(said.contains(&sound.fingerprint().to_string()), "{said}");
    assert!(said.contains("`annals defs generate`"), "{said}");
}

/// Behaviour that writes a property which no entity has, when an entity of this type is created.
struct Careless(TypeId);

impl Behaviour for Careless {
    fn bootstrap(&self) -> Option<Bootstrap> {
        let properties = Vec::new();
        Some(Bootstrap {
            type_id: self.0,
            properties,
        })
    }

    fn created(&self, context: &mut Context<'_>) {
        if context.entity_type().id == self.0
            && let Err(denied) = context.write("luck", 7_u8)
        {
            context.report(denied);
        }
    }

    fn call(&self, _context: &mut Context<'_>, _method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        Answer::DONE
    }
}

#[test]
#[should_panic(expected = "(Space) had an operation denied: Space has no property luck")]
fn unexpected_denials_are_reported_by_the_owner() {
    let schema = schema(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let space = schema.type_named("Space").unwrap().id;
    TestRealm::new(Arc::clone(&schema), Arc::new(Careless(space)), space).pass(1_000);
}

/// Waits until a player is in the world, and returns its avatar.
pub(crate) fn avatar_of(stage: &mut TestRealm, player: usize) -> EntityId {
    let avatar = stage.schema.type_named("Avatar").unwrap().id;
    stage.until("it is in the world", |stage| {
        let core = &stage.players[player].core;
        core.controls()
            .is_some_and(|(entity, type_id)| type_id == avatar && core.entity(entity).is_some())
    });
    stage.players[player].core.controls().unwrap().0
}

fn text(text: &str) -> Value {
    Value::Unicode(text.to_owned())
}

/// Arguments of the calls to a player's client, by method name, on an entity.
fn called(stage: &TestRealm, player: usize, entity: EntityId, name: &str) -> Vec<Vec<Value>> {
    let events = stage.players[player].events.iter();
    let calls = events.filter_map(|event| match event {
        Event::Shown(showing) if showing.entity == entity => match &showing.what {
            What::Called { method, args } => {
                let controls = stage.schema.types().iter();
                let named = controls.filter_map(|found| found.client_method_named(name));
                let is_meant = named.into_iter().any(|found| found.index == *method);
                is_meant.then(|| args.clone())
            }
            What::Changed { .. } | What::Replied { .. } => None,
        },
        _ => None,
    });
    calls.collect()
}

fn seen(stage: &TestRealm, player: usize, entity: EntityId, property: &str) -> Option<Value> {
    stage.players[player].core.property(entity, property).cloned()
}

#[test]
fn players_see_each_other() {
    let mut stage = stage();
    let players = [stage.join(), stage.join(), stage.join()];
    let avatars = players.map(|player| avatar_of(&mut stage, player));
    stage.until("all players to see each other", |stage| {
        let sees = |player: usize| {
            avatars
                .iter()
                .all(|avatar| stage.players[player].core.entity(*avatar).is_some())
        };
        players.iter().all(|player| sees(*player))
    });
    let [me, ..] = avatars;
    // Some of their messages reach only clients near by.
    let (position, _) = stage.players[0].core.entity(me).and_then(|seen| seen.place).unwrap();
    players.iter().for_each(|player| stage.stand(*player, position));
    stage.pass(1_000);
    stage.call(0, me, Part::Cell, "say", &[text("hail")]);
    stage.call(0, me, Part::Cell, "emote", &[Value::UInt(3)]);
    stage.call(0, me, Part::Cell, "setMood", &[Value::UInt(5)]);
    stage.call(0, me, Part::Base, "setTitle", &[text("the first")]);
    stage.call(0, me, Part::Base, "ping", &[Value::UInt(77)]);
    stage.call(0, me, Part::Base, "addFriend", &[text("player1")]);
    stage.call(1, me, Part::Cell, "wave", &[]);
    stage.pass(1_000);
    for player in players {
        assert_eq!(called(&stage, player, me, "onSay"), [[text("hail")]]);
        assert_eq!(called(&stage, player, me, "onEmote"), [[Value::UInt(3)]]);
        assert_eq!(called(&stage, player, me, "onWave").len(), 1);
        assert_eq!(seen(&stage, player, me, "mood"), Some(Value::UInt(5)));
        assert_eq!(seen(&stage, player, me, "title"), Some(text("the first")));
    }
    assert_eq!(called(&stage, 0, me, "onPong"), [[Value::UInt(77)]]);
    assert!(called(&stage, 1, me, "onPong").is_empty(), "only the caller of ping");
    assert_eq!(
        seen(&stage, 0, me, "friends"),
        Some(Value::Sequence(vec![text("player1")]))
    );
    assert_eq!(seen(&stage, 1, me, "friends"), None, "a friend list is one's own");
    assert_eq!(seen(&stage, 0, me, "gold"), Some(Value::UInt(100)));
}

#[test]
fn a_player_plays_the_chosen_avatar() {
    let mut stage = stage();
    let player = stage.join();
    stage.until("it is shown its avatars", |stage| {
        let (account, _) = stage.players[player].core.controls().unwrap_or_default();
        !called(stage, player, account, "onAvatars").is_empty()
    });
    let (account, _) = stage.players[player].core.controls().unwrap();
    let appearance = stage
        .schema
        .type_named("Avatar")
        .unwrap()
        .property_named("appearance")
        .unwrap();
    let Value::Dict(mut looks) = appearance.default.clone() else {
        panic!("{:?}", appearance.default)
    };
    looks[0] = Value::UInt(40);
    let looks = Value::Dict(looks);
    stage.call(player, account, Part::Base, "createAvatar", &[text(""), looks.clone()]);
    stage.call(player, account, Part::Base, "enterWorld", &[text("nobody")]);
    stage.pass(100);
    assert_eq!(called(&stage, player, account, "onRefused").len(), 2);
    stage.call(
        player,
        account,
        Part::Base,
        "createAvatar",
        &[text("Aldric"), looks.clone()],
    );
    let avatar = avatar_of(&mut stage, player);
    stage.pass(2 * CHOICE_MS);
    assert_eq!(seen(&stage, player, avatar, "name"), Some(text("Aldric")));
    assert_eq!(seen(&stage, player, avatar, "appearance"), Some(looks));
    assert_eq!(
        (stage.count(&[BASE], "Account"), stage.count(&[BASE], "Avatar")),
        (1, 1)
    );
}

#[test]
fn a_player_who_leaves_disappears() {
    let mut stage = stage();
    let (stays, leaves) = (stage.join(), stage.join());
    avatar_of(&mut stage, stays);
    let avatar = avatar_of(&mut stage, leaves);
    stage.until("it is seen", |stage| stage.players[stays].core.entity(avatar).is_some());
    stage.call(leaves, avatar, Part::Base, "logOff", &[]);
    stage.until("it to leave the views", |stage| {
        stage.players[stays].core.entity(avatar).is_none()
    });
    assert!(stage.players[leaves].core.has_ended());
    stage.pass(1_000);
    assert_eq!(
        (stage.count(&[BASE], "Account"), stage.count(&[BASE], "Avatar")),
        (1, 1)
    );
}

#[test]
fn a_lost_client_leaves_no_avatar() {
    let mut stage = stage();
    let player = stage.join();
    avatar_of(&mut stage, player);
    stage.players[player].core.leave();
    stage.pass(40_000);
    for entity_type in ["Account", "Avatar"] {
        assert_eq!(stage.count(&[BASE, WEST, EAST], entity_type), 0, "{entity_type}");
    }
}

#[test]
fn monsters_walk_and_can_be_attacked() {
    let mut stage = stage();
    let player = stage.join();
    avatar_of(&mut stage, player);
    let monster_type = stage.schema.type_named("Monster").unwrap().id;
    let monsters = |stage: &TestRealm| -> Vec<EntityId> {
        let view = stage.players[player].core.view(Part::Cell).entities();
        let monsters = view.iter().filter(|(_, seen)| seen.type_id == monster_type);
        let monsters = monsters.map(|(entity, _)| *entity);
        monsters
            .filter(|entity| seen(stage, player, *entity, "species") != WATCHMAN)
            .collect()
    };
    stage.until("there are twelve monsters", |stage| monsters(stage).len() == 12);
    let prey = monsters(&stage)[0];
    let place = |stage: &TestRealm| stage.players[player].core.entity(prey).and_then(|seen| seen.place);
    let before = place(&stage).unwrap();
    stage.pass(5_000);
    assert_ne!(place(&stage), Some(before), "it walks");
    // Its pain is visible only from near by.
    stage.stand(player, before.0);
    stage.pass(500);
    for blow in 0..9 {
        stage.call(player, prey, Part::Cell, "strike", &[]);
        stage.pass(20);
        let hp = seen(&stage, player, prey, "hp");
        assert!(hp.is_some(), "after blow {blow}");
    }
    for _ in 0..4 {
        if stage.players[player].core.entity(prey).is_some() {
            stage.call(player, prey, Part::Cell, "strike", &[]);
            stage.pass(100);
        }
    }
    stage.until("it is gone", |stage| stage.players[player].core.entity(prey).is_none());
    assert!(called(&stage, player, prey, "onDamage").len() >= 10);
    stage.pass(31_000);
    assert_eq!(monsters(&stage).len(), 12, "another has come in its place");
}

/// The species of the monster that is placed by hand.
const WATCHMAN: Option<Value> = Some(Value::UInt(9));

/// Lets up to a minute pass.
fn walks(stage: &mut TestRealm, what: &str, is_there: impl Fn(&TestRealm) -> bool) {
    for _ in 0..600 {
        if is_there(stage) {
            return;
        }
        stage.pass(100);
    }
    panic!("not {what} after a minute");
}

/// It walks from node to node of its zone, whatever happens to its process.
#[test]
fn a_placed_monster_walks_its_round() {
    let mut stage = stage();
    let player = stage.join();
    avatar_of(&mut stage, player);
    let watchman = |stage: &TestRealm| {
        let view = stage.players[player].core.view(Part::Cell).entities();
        let mut entities = view.keys().copied();
        entities.find(|entity| seen(stage, player, *entity, "species") == WATCHMAN)
    };
    let nodes = stage.schema.zones().get("plaza").map(|zone| zone.objects.clone());
    let nodes = nodes.expect("the sample has it");
    let is_at = |stage: &TestRealm, node: usize| {
        let seen = watchman(stage).and_then(|entity| stage.players[player].core.entity(entity));
        let position = seen.and_then(|seen| seen.place).map(|(position, _)| position);
        position.is_some_and(|at| (at.x - nodes[node].position.x).hypot(at.z - nodes[node].position.z) < 1.0)
    };
    // 40 m at 1.4 m/s.
    for node in [0, 1] {
        walks(&mut stage, &format!("at node {node}"), |stage| is_at(stage, node));
        for cell in [WEST, EAST] {
            stage.crash(cell);
        }
    }
    walks(&mut stage, "at one of the next nodes", |stage| {
        is_at(stage, 0) || is_at(stage, 2)
    });
    assert_eq!(stage.count(&[WEST, EAST], "Monster"), 13, "the zone was loaded once");
}

#[test]
fn the_world_is_created_once_despite_process_loss_at_its_start() {
    const CELLS: [OwnerId; 2] = [WEST, EAST];
    for later in (0..400).step_by(20).chain([600, 1_000]) {
        for lost in [BASE, WEST, EAST] {
            let mut stage = stage();
            stage.pass(later);
            stage.crash(lost);
            stage.pass(20);
            stage.crash(BASE);
            let what = format!("{lost} lost after {later} ms");
            // Twelve of spawn points, and one of the zone.
            stage.until(&what, |stage| stage.count(&CELLS, "Monster") == 13);
            stage.pass(5_000);
            let counts = |owners: &[OwnerId]| ["Space", "SpawnPoint", "Chest"].map(|name| stage.count(owners, name));
            assert_eq!(counts(&[BASE]), [1, 4, 2], "{what}");
            assert_eq!(counts(&CELLS), [1, 4, 2], "{what}");
            let bodies = stage.batches().flat_map(|batch| batch.events);
            let begun = bodies.filter(|event| matches!(event.body, Body::Bootstrapped { .. }));
            assert_eq!(begun.count(), 1, "{what}");
        }
    }
}

/// Calls a method with generated arguments.
fn call_with_any(
    stage: &mut TestRealm,
    player: usize,
    entity: EntityId,
    (type_id, part, method): (TypeId, Part, &Method),
    dice: &mut dyn FnMut() -> u64,
    driven: &mut Called,
) {
    let args = method.args.iter();
    let args: Vec<Value> = args.map(|argument| generate(&argument.data_type, dice)).collect();
    stage.call(player, entity, part, &method.name, &args);
    driven.insert((type_id, part, method.index));
}

/// Calls all exposed methods of the entities that a player sees, other than its own. Returns those entities.
fn call_others(
    stage: &mut TestRealm,
    player: usize,
    dice: &mut dyn FnMut() -> u64,
    driven: &mut Called,
) -> Vec<(EntityId, TypeId)> {
    let core = &stage.players[player].core;
    let (own, _) = core.controls().unwrap();
    let in_view = core.view(Part::Cell).entities().iter();
    let others: Vec<(EntityId, TypeId)> = in_view
        .map(|(entity, seen)| (*entity, seen.type_id))
        .filter(|(entity, _)| *entity != own)
        .collect();
    let schema = Arc::clone(&stage.schema);
    for &(entity, type_id) in &others {
        let methods = schema.entity_type(type_id).unwrap().cell_methods.iter();
        for method in methods.filter(|method| method.exposed == Exposure::AllClients) {
            call_with_any(stage, player, entity, (type_id, Part::Cell, method), dice, driven);
        }
    }
    others
}

#[test]
fn players_find_a_target_for_every_exposed_method() {
    let mut stage = stage();
    let (one, other) = (stage.join(), stage.join());
    let (mut dice, mut driven) = (split_mix(11), Called::new());
    stage.until("it is shown its account", |stage| {
        let core = &stage.players[one].core;
        let view = core.view(Part::Base).entities();
        core.controls().is_some_and(|(account, _)| view.contains_key(&account))
    });
    let (account, type_id) = stage.players[one].core.controls().unwrap();
    let schema = Arc::clone(&stage.schema);
    // After it has made an avatar, a client no longer controls the account.
    for name in ["enterWorld", "createAvatar"] {
        let method = schema.entity_type(type_id).unwrap().base_method_named(name).unwrap();
        let what = (type_id, Part::Base, method);
        call_with_any(&mut stage, one, account, what, &mut dice, &mut driven);
    }
    avatar_of(&mut stage, one);
    avatar_of(&mut stage, other);
    stage.until("there are monsters", |stage| {
        stage.count(&[WEST, EAST], "Monster") == 13
    });
    stage.pass(1_000);
    let others = call_others(&mut stage, one, &mut dice, &mut driven);
    let (me, type_id) = stage.players[one].core.controls().unwrap();
    let own = exposed(schema.entity_type(type_id).unwrap());
    let (farewell, own): (Vec<_>, Vec<_>) = own.partition(|(_, method)| method.name == "logOff");
    for (part, method) in own {
        call_with_any(&mut stage, one, me, (type_id, part, method), &mut dice, &mut driven);
    }
    stage.pass(1_000);
    assert_eq!(stage.players[one].core.unconfirmed_calls(), 0);
    for (part, method) in farewell {
        call_with_any(&mut stage, one, me, (type_id, part, method), &mut dice, &mut driven);
    }
    stage.pass(1_000);
    assert!(stage.players[one].core.has_ended());
    let missing = uncalled(&schema, &driven);
    assert!(missing.is_empty(), "no player called {missing:?}");
    let types = schema.types().iter();
    let all = types.map(|found| found.exposed_base_methods().len() + found.exposed_cell_methods().len());
    assert_eq!(driven.len(), all.sum::<usize>());
    let refused = |event: &&Event| matches!(event, Event::CallRefused { .. } | Event::CallsLost { .. });
    assert_eq!(stage.players[one].events.iter().find(refused), None);
    let monster = schema.type_named("Monster").unwrap().id;
    let struck = |(entity, _): &&(EntityId, TypeId)| called(&stage, one, *entity, "onDamage").len() == 1;
    let monsters = others.iter().filter(|(_, type_id)| *type_id == monster);
    assert!(monsters.filter(struck).count() > 0, "those near by are seen to suffer");
}

#[test]
fn the_world_continues_after_the_loss_of_each_process() {
    let mut stage = stage();
    let (one, other) = (stage.join(), stage.join());
    let (me, you) = (avatar_of(&mut stage, one), avatar_of(&mut stage, other));
    // Within earshot, on one cell: a listener whose own cell is lost is not shown what was said on another meanwhile.
    for (player, x) in [(one, -10.0), (other, -12.0)] {
        stage.stand(player, Position { x, y: 0.0, z: 0.0 });
    }
    stage.pass(3_000);
    for owner in [WEST, BASE, EAST, BASE] {
        stage.call(one, me, Part::Base, "setTitle", &[text(&format!("before {owner}"))]);
        stage.pass(100);
        stage.crash(owner);
        stage.call(one, me, Part::Cell, "say", &[text(&format!("after {owner}"))]);
        stage.call(other, you, Part::Base, "setTitle", &[text("still here")]);
        stage.pass(9_000);
    }
    let said: Vec<String> = called(&stage, other, me, "onSay")
        .into_iter()
        .flatten()
        .map(|said| format!("{said:?}"))
        .collect();
    let expected: Vec<String> = [WEST, BASE, EAST, BASE]
        .map(|owner| format!("{:?}", text(&format!("after {owner}"))))
        .to_vec();
    assert_eq!(said, expected, "each once, in order");
    for player in [one, other] {
        assert_eq!(seen(&stage, player, me, "title"), Some(text(&format!("before {BASE}"))));
        assert_eq!(seen(&stage, player, you, "title"), Some(text("still here")));
    }
    for owner in [BASE, WEST, EAST] {
        assert_eq!(
            stage.folded(owner).hash(),
            stage.state(owner).hash(),
            "replay equals live on {owner}"
        );
    }
}

#[test]
fn the_base_answers_damage_queries_of_the_cell() {
    // Only another entity can ask; the account serves as one.
    let mut stage = stage();
    let player = stage.join();
    let avatar = avatar_of(&mut stage, player);
    let answers = stage.ask_base(avatar, "remoteTakeDamage", vec![Value::Int(30)]);
    assert_eq!(answers, [Ok(vec![Value::Int(70)])]);
    let answers = stage.ask_base(avatar, "whoIs", Vec::new());
    let name = seen(&stage, player, avatar, "name").unwrap();
    assert_eq!(answers, [Ok(vec![name, Value::UInt(0)])]);
    stage.pass(1_000);
    assert!(called(&stage, player, avatar, "onDamage").len() == 1);
    let awaits = stage.batches().flat_map(|batch| batch.events);
    let awaits = awaits.filter(|event| matches!(event.body, Body::Awaits { .. }));
    assert!(awaits.count() >= 1, "what is waited for survives the process");
}

/// The weather that cell parts of spaces have, and the one in the global data of each owner.
fn weather(stage: &TestRealm) -> (Vec<Value>, Vec<Option<Value>>) {
    let space = stage.schema.type_named("Space").unwrap();
    let member = space.property_named("weather").unwrap().index;
    let images = [WEST, EAST].map(|owner| stage.state(owner).entities.values());
    let spaces = images.into_iter().flatten().filter(|image| image.type_id == space.id);
    let known = [BASE, WEST, EAST].map(|owner| {
        let data = stage.state(owner).globals.get(&GlobalScope::Realm)?;
        data.get(WEATHER).cloned()
    });
    (
        spaces.map(|image| image.properties[&member].clone()).collect(),
        known.into(),
    )
}

#[test]
fn all_owners_find_the_space_and_have_its_weather_also_after_a_crash() {
    let mut stage = stage();
    let holder = |stage: &TestRealm, owner| {
        let registry = stage.state(owner).globals.get(&GlobalScope::Registry)?;
        registry.mailbox(SPACE)
    };
    stage.until("each owner finds the space", |stage| {
        [BASE, WEST, EAST].iter().all(|owner| holder(stage, *owner).is_some())
    });
    let found = holder(&stage, BASE).unwrap();
    assert_eq!((found.home, found.part), (BASE, Part::Base));
    assert_eq!([WEST, EAST].map(|owner| holder(&stage, owner)), [Some(found); 2]);
    stage.pass(30_000);
    stage.until("it has rained or shone", |stage| {
        let (spaces, known) = weather(stage);
        known
            .iter()
            .all(|known| known.is_some() && *known == spaces.first().cloned())
    });
    let almanac = stage.schema.fragments_of("Almanac").unwrap().id;
    let mut fragments = stage.state(BASE).entities.values();
    let almanac = fragments.find(|image| image.type_id == almanac).expect("a fragment");
    assert!(
        almanac.links.taken.values().any(|taken| taken.0 > 0),
        "it was asked for the weather"
    );
    let before = weather(&stage);
    for owner in [BASE, WEST, EAST] {
        stage.crash(owner);
        assert_eq!(weather(&stage), before, "after a crash of owner {owner}");
        assert_eq!(holder(&stage, owner), Some(found), "after a crash of owner {owner}");
        assert_eq!(stage.folded(owner).globals, stage.state(owner).globals);
    }
}
