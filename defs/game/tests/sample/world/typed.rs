//! Generated code in use: on a server, on ghosts, and in a client.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use annals_def::{Edit, Mismatch, Schema, Value, typed::Vector3};
use annals_event::{Body, CallError, Link};
use annals_game::testing::TestRealm;
use annals_ids::{Address, CallNumber, EntityId, MemberId, OwnerId, Part};
use annals_node::{Answer, Behaviour, Bootstrap, Caller, Context, Denied, TeleportFailed, typed::Later};
use annals_sample::{
    Sample, WORLD,
    defs::{Dispatcher, Effect, Home, account, avatar as server, chest},
    game,
};

use crate::world::{
    defs::{
        self, ClientDispatcher, ClientGame, account as account_client, avatar, chest as chest_client,
        monster as monster_client,
    },
    schema,
};

fn sample() -> Arc<Schema> {
    schema(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

/// A function that a test runs in an avatar's cell part; it returns its observations.
type Action = fn(&mut Context<'_>) -> Vec<String>;

/// Behaviour that creates an avatar, which runs the function.
struct Doing {
    action: Action,
    said: OnceLock<Vec<String>>,
}

impl Behaviour for Doing {
    fn bootstrap(&self) -> Option<Bootstrap> {
        let properties = Vec::new();
        Some(Bootstrap {
            type_id: server::TYPE,
            properties,
        })
    }

    fn created(&self, context: &mut Context<'_>) {
        match context.part() {
            Part::Base if !context.entity_type().parts.cell => {}
            Part::Base => {
                let place = annals_event::Place {
                    space: WORLD,
                    ..annals_event::Place::default()
                };
                server::BaseMailbox::of(context)
                    .create_cell(context, place, server::NewCell::default())
                    .expect("it is real here");
            }
            Part::Cell => self.said.set((self.action)(context)).unwrap(),
        }
    }

    fn call(&self, _context: &mut Context<'_>, _method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        Answer::DONE
    }
}

/// A recorded change: the property, the path in it, and the edit.
type Recorded = (MemberId, Vec<u32>, Edit);

/// Runs the function; returns its observations, and the recorded changes.
fn done(action: Action) -> (Vec<String>, Vec<Recorded>) {
    let said = OnceLock::new();
    let doing = Arc::new(Doing { action, said });
    let behaviour: Arc<dyn Behaviour> = Arc::clone(&doing) as Arc<dyn Behaviour>;
    let schema = sample();
    let mut stage = TestRealm::new(schema, behaviour, account::TYPE);
    stage.pass(500);
    let mut changes = Vec::new();
    for event in stage.batches().flat_map(|batch| batch.events) {
        if let Body::Changed { member, change } = event.body {
            let change = change.change().clone();
            changes.push((member, change.path.0, change.edit));
        }
    }
    let said = doing.said.get().unwrap().clone();
    (said, changes)
}

fn effect(kind: u16) -> Effect {
    Effect {
        kind,
        strength: -3,
        left: 1.5,
    }
}

#[test]
fn a_mailbox_leads_to_the_other_part_of_its_entity() {
    let (said, _) = done(|context| {
        let cell = server::CellMailbox::of(context);
        let base = server::BaseMailbox(context.mailbox(Part::Base));
        vec![
            (cell.to_base() == base).to_string(),
            (base.to_cell() == cell).to_string(),
            (cell.0 != base.0).to_string(),
        ]
    });
    assert_eq!(said, ["true"; 3]);
}

#[test]
fn each_edit_records_only_its_changes() {
    let (said, changes) = done(|context| {
        let mut own = server::Cell::of(context).unwrap();
        own.set_gold(7).unwrap();
        own.set_gold(7).unwrap();
        let mut effects = own.edit_effects();
        effects.push(effect(1)).unwrap();
        effects.insert(0, effect(2)).unwrap();
        effects.at(1).set_strength(5).unwrap();
        effects.at(1).set_strength(5).unwrap();
        effects.remove(0).unwrap();
        effects.splice(0..1, vec![effect(3), effect(4)]).unwrap();
        own.edit_appearance().edit_outfit().set(2, 40).unwrap();
        own.set_home(Some(Home {
            space: 1,
            place: Vector3([1.0, 2.0, 3.0]),
        }))
        .unwrap();
        own.edit_home().set_space(9).unwrap();
        vec![
            format!("{:?}", own.gold().unwrap()),
            format!(
                "{:?}",
                own.effects()
                    .unwrap()
                    .iter()
                    .map(|effect| effect.kind)
                    .collect::<Vec<_>>()
            ),
            format!("{:?}", own.appearance().unwrap().outfit),
            format!("{:?}", own.home().unwrap().unwrap().space),
        ]
    });
    assert_eq!(said, ["7", "[3, 4]", "[0, 0, 40, 0]", "9"]);
    let schema = sample();
    let avatar = schema.entity_type(server::TYPE).unwrap();
    let changed: Vec<String> = changes
        .iter()
        .map(|(member, path, edit)| {
            let name = &avatar.property(*member).unwrap().name;
            match edit {
                Edit::Set(value) => format!("{name}{path:?} = {value}"),
                Edit::Splice { at, removed, inserted } => format!("{name}{path:?} {at}-{removed}+{}", inserted.len()),
            }
        })
        .collect();
    assert_eq!(
        changed,
        [
            "gold[] = 7",
            "effects[] 0-0+1",
            "effects[] 0-0+1",
            "effects[1, 1] = 5",
            "effects[] 0-1+0",
            "effects[] 0-1+2",
            "appearance[2, 2] = 40",
            "home[] = {1, (1, 2, 3)}",
            "home[0] = 9",
        ]
    );
}

#[test]
fn an_invalid_edit_is_denied_and_changes_nothing() {
    let (said, changes) = done(|context| {
        let wrong_part = chest::Cell::of(context).err().map(|denied| denied.to_string());
        let mut own = server::Cell::of(context).unwrap();
        let denied: [Result<(), Denied>; 5] = [
            own.edit_effects().remove(0),
            own.edit_effects().at(4).set_kind(1),
            own.edit_appearance().edit_outfit().push(1),
            own.edit_home().set_space(9),
            own.edit_effects().splice(2..5, Vec::new()),
        ];
        assert!(denied.iter().all(Result::is_err), "{denied:?}");
        let said = denied.into_iter().map(|denied| denied.unwrap_err().to_string());
        wrong_part.into_iter().chain(said).collect()
    });
    assert_eq!(changes, []);
    assert_eq!(
        said[0],
        "the cell part of Avatar has no member of the cell part of type 3"
    );
    assert!(
        said[1..]
            .iter()
            .all(|said| said.contains("Avatar.") || said.contains("Avatar has no")),
        "{said:?}"
    );
}

#[test]
fn only_the_changed_fields_of_a_component_are_recorded() {
    let (_, changes) = done(|context| {
        let mut own = server::Cell::of(context).unwrap();
        own.set_hp(50).unwrap();
        let sample = Dispatcher::new(&sample(), Sample).unwrap();
        let caller = caller();
        // One hit, through the game: the health is a component.
        let take_damage = MemberId(0);
        let answer = sample.call(own.context, take_damage, &[Value::Int(20)], &caller);
        vec![format!("{answer:?}")]
    });
    let schema = sample();
    let hp = schema
        .entity_type(server::TYPE)
        .unwrap()
        .property_named("hp")
        .unwrap()
        .index;
    let whole = |number| (hp, Vec::new(), Edit::Set(Value::Int(number)));
    assert_eq!(changes, [whole(50), whole(30)]);
}

#[test]
fn a_defeated_avatar_wakes_even_if_its_teleport_failed() {
    let (_, changes) = done(|context| {
        let sample = Dispatcher::new(&sample(), Sample).unwrap();
        let mut own = server::Cell::of(context).unwrap();
        own.set_max_hp(90).unwrap();
        own.set_hp(0).unwrap();
        sample.teleported(own.context, WORLD);
        own.set_hp(0).unwrap();
        sample.teleport_failed(own.context, &TeleportFailed::NoSpace(WORLD));
        // A teleport does not heal an avatar that is alive.
        own.set_hp(5).unwrap();
        sample.teleported(own.context, WORLD);
        Vec::new()
    });
    let schema = sample();
    let avatar = schema.entity_type(server::TYPE).unwrap();
    let hp = avatar.property_named("hp").unwrap().index;
    let of_hp = changes.iter().filter(|(member, ..)| *member == hp);
    let of_hp: Vec<Edit> = of_hp.map(|(_, _, edit)| edit.clone()).collect();
    assert_eq!(of_hp, [0, 90, 0, 90, 5].map(|hp| Edit::Set(Value::Int(hp))));
}

fn caller() -> Caller {
    Caller {
        link: Link {
            from: Address::Base(EntityId(9)),
            to: Address::Cell(EntityId(8)),
        },
        home: OwnerId(3),
        number: CallNumber(77),
        wants_reply: true,
        method: None,
    }
}

#[test]
fn arguments_of_the_wrong_type_are_answered_with_an_error() {
    let (said, changes) = done(|context| {
        let sample = Dispatcher::new(&sample(), Sample).unwrap();
        let cases: [(u16, Vec<Value>); 5] = [
            (0, vec![]),
            (0, vec![Value::Int(1), Value::Int(2)]),
            (0, vec![Value::UInt(1)]),
            (0, vec![Value::Int(1 << 40)]),
            (999, vec![]),
        ];
        let answers = cases.map(|(method, args)| sample.call(context, MemberId(method), &args, &caller()));
        assert!(matches!(
            &answers[..4],
            [
                Answer::Fail(CallError::InvalidArgs(_)),
                Answer::Fail(CallError::InvalidArgs(_)),
                Answer::Fail(CallError::InvalidArgs(_)),
                Answer::Fail(CallError::InvalidArgs(_)),
            ]
        ));
        answers.iter().map(|answer| format!("{answer:?}")).collect()
    });
    assert_eq!(changes, []);
    for (said, part) in said
        .iter()
        .zip(["0 were given", "2 were given", "INT32", "INT32", "no cell method 999"])
    {
        assert!(said.contains(part), "{said}: {part}");
    }
}

#[test]
fn a_deferred_reply_round_trips_through_its_note() {
    for method in [None, Some(MemberId(3))] {
        let later = Later::<server::TakeDamageReply>::new(&Caller { method, ..caller() });
        let note = later.to_note();
        assert_eq!(Later::from_note(&note), Some(later));
        for end in 0..note.len() {
            assert_eq!(Later::<server::TakeDamageReply>::from_note(&note[..end]), None, "{end}");
        }
        let longer = [&note[..], &[0]].concat();
        assert_eq!(Later::<server::TakeDamageReply>::from_note(&longer), None);
    }
}

/// A client that records its callbacks.
#[derive(Debug, Default)]
struct Noting {
    notes: Vec<String>,
}

impl ClientGame for Noting {}

impl account_client::ClientBehaviour for Noting {
    fn on_avatars(&mut self, seen: &account_client::Client<'_>, names: Vec<String>) {
        let known = seen.avatar_names();
        self.notes.push(format!("avatars {names:?} of {known:?}"));
    }

    fn on_refused(&mut self, _seen: &account_client::Client<'_>, reason: String) {
        self.notes.push(format!("refused: {reason}"));
    }
}

impl avatar::ClientBehaviour for Noting {
    fn entered(&mut self, seen: &avatar::Client<'_>, part: Part) {
        if part == Part::Cell {
            self.notes.push(format!("entered with {:?} gold", seen.gold()));
        }
    }

    fn on_damage(&mut self, _seen: &avatar::Client<'_>, _damage: i32, _from: u64) {}

    fn on_say(&mut self, seen: &avatar::Client<'_>, text: String) {
        self.notes.push(format!("{:?} says {text}", seen.title()));
    }

    fn on_emote(&mut self, _seen: &avatar::Client<'_>, _emote: u8) {}

    fn on_wave(&mut self, _seen: &avatar::Client<'_>, _from: u64) {}

    fn on_holdings(&mut self, _seen: &avatar::Client<'_>, _holdings: defs::Holdings) {}

    fn on_trade(&mut self, _seen: &avatar::Client<'_>, _table: defs::Table) {}

    fn on_outcome(&mut self, _seen: &avatar::Client<'_>, _what: u8, _done: u8, said: String) {
        self.notes.push(format!("outcome {said}"));
    }

    fn on_pong(&mut self, _seen: &avatar::Client<'_>, number: u32) {
        self.notes.push(format!("pong {number}"));
    }

    fn set_title(&mut self, seen: &avatar::Client<'_>, old: Option<String>) {
        self.notes.push(format!("title {old:?} -> {:?}", seen.title()));
    }

    fn set_friends(&mut self, seen: &avatar::Client<'_>, old: Option<Vec<String>>) {
        // A slice has changed, for which there is no callback.
        self.notes.push(format!("friends {old:?} -> {:?}", seen.friends()));
    }
}

impl monster_client::ClientBehaviour for Noting {
    fn on_damage(&mut self, _seen: &monster_client::Client<'_>, _damage: i32, _from: u64) {}

    fn on_growl(&mut self, _seen: &monster_client::Client<'_>) {}
}

impl chest_client::ClientBehaviour for Noting {}

/// Dispatches a player's new events to a game.
fn dispatch(stage: &mut TestRealm, dispatcher: &mut ClientDispatcher<Noting>) -> Result<Vec<String>, Mismatch> {
    let player = &mut stage.players[0];
    for event in std::mem::take(&mut player.events) {
        dispatcher.handle(&player.core, &event)?;
    }
    Ok(std::mem::take(&mut dispatcher.game.notes))
}

#[test]
fn client_calls_and_callbacks_are_typed() {
    let schema = sample();
    let mut stage = TestRealm::new(Arc::clone(&schema), game(&schema).unwrap(), account::TYPE);
    let player = stage.join();
    let mut dispatcher = ClientDispatcher::new(&schema, Noting::default()).unwrap();
    let mut notes = Vec::new();
    for _ in 0..60 {
        stage.pass(50);
        notes.extend(dispatch(&mut stage, &mut dispatcher).unwrap());
    }
    assert_eq!(notes[0], "avatars [] of Some([])");
    assert!(notes.iter().any(|note| note.starts_with("entered with")), "{notes:?}");
    let (me, _) = stage.players[player].core.controls().unwrap();
    let now = stage.millis();
    let core = &mut stage.players[player].core;
    assert_eq!(avatar::Client::of(core, me).unwrap().gold(), Some(100));
    assert!(monster_client::Client::of(core, me).is_none());
    avatar::BaseCalls(me)
        .set_title(core, now, "the first".to_owned())
        .unwrap();
    avatar::BaseCalls(me)
        .add_friend(core, now, "somebody".to_owned())
        .unwrap();
    avatar::BaseCalls(me).ping(core, now, 5).unwrap();
    stage.pass(500);
    avatar::CellCalls(me)
        .say(&mut stage.players[player].core, now, "hail".to_owned())
        .unwrap();
    stage.pass(500);
    let mut notes = dispatch(&mut stage, &mut dispatcher).unwrap();
    notes.sort();
    assert_eq!(
        notes,
        [
            "Some(\"the first\") says hail",
            "friends None -> Some([\"somebody\"])",
            "pong 5",
            "title Some(\"\") -> Some(\"the first\")",
        ]
    );
}

#[test]
fn a_client_with_other_client_definitions_is_refused() {
    let sound = sample();
    let mut types = sound.types().to_vec();
    types[0].client_methods.clear();
    let other = Schema::new(types, Vec::new(), Vec::new());
    let refused = ClientDispatcher::new(&other, Noting::default()).unwrap_err();
    assert!(
        refused.to_string().contains(&sound.client_fingerprint().to_string()),
        "{refused}"
    );
}
