//! Players whose entities have a cell part for each round of a game, and none in between.

use std::sync::Arc;

use annals_client::Event;
use annals_def::{DataType, Distribution, EntityType, Exposure, Method, Property, Schema, Value};
use annals_event::Place;
use annals_game::testing::{BASE, EAST, TestRealm, WEST};
use annals_ids::{EntityId, MemberId, OwnerId, Part, Position, SpaceId, TypeId};
use annals_node::{Answer, Behaviour, Caller, Context, Request};

const HERO: TypeId = TypeId(0);

/// Where rounds are played: places from which nobody sees the other one, on different cells.
const PLACES: [(f32, OwnerId); 2] = [(-600.0, WEST), (600.0, EAST)];

fn hero() -> Arc<Schema> {
    let exposed = |name: &str| {
        let mut method = Method::new(name, Vec::new());
        method.exposed = Exposure::OwnClient;
        method
    };
    let mut hero = EntityType::new("Hero");
    hero.properties = vec![
        Property::new("round", DataType::UInt32, Distribution::BaseAndClient),
        Property::new("score", DataType::UInt32, Distribution::AllClients),
        Property::new("reported", DataType::UInt32, Distribution::BaseAndClient),
    ];
    hero.base_methods = vec![
        exposed("leaveRound"),
        exposed("joinRound"),
        Method::new("report", Vec::new()),
    ];
    hero.cell_methods = vec![exposed("hit")];
    Arc::new(Schema::new(vec![hero], Vec::new(), Vec::new()))
}

struct Rounds;

fn add(context: &mut Context<'_>, property: &'static str) -> u32 {
    let next = context.read::<u32>(property).unwrap() + 1;
    context.write(property, next).unwrap();
    next
}

fn join(context: &mut Context<'_>) {
    let round = usize::try_from(add(context, "round")).unwrap();
    let (x, _) = PLACES[round % 2];
    let place = Place {
        space: SpaceId(1),
        position: Position { x, y: 0.0, z: 0.0 },
        ..Place::default()
    };
    let (entity, properties) = (context.entity(), Vec::new());
    let create = Request::CreateCell {
        entity,
        place,
        properties,
    };
    context.request(create).unwrap();
}

impl Behaviour for Rounds {
    fn client_attached(&self, context: &mut Context<'_>) {
        join(context);
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        let entity = context.entity();
        context.request(Request::Destroy { entity }).unwrap();
    }

    fn call(&self, context: &mut Context<'_>, method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        let (entity, base) = (context.entity(), context.mailbox(Part::Cell).to_part(Part::Base));
        match (context.part(), method.0) {
            (Part::Base, 0) => context.request(Request::DestroyCell { entity }).unwrap(),
            (Part::Base, 1) => join(context),
            (Part::Base, _) => drop(add(context, "reported")),
            (Part::Cell, _) => {
                add(context, "score");
                context.call(base, "report", Vec::new()).unwrap();
            }
        }
        Answer::DONE
    }
}

/// Waits until a player's entity is in a round, and returns the entity.
fn in_round(realm: &mut TestRealm, player: usize, round: u32) -> EntityId {
    let (x, _) = PLACES[usize::try_from(round).unwrap() % 2];
    realm.until("the player is in the round", |realm| {
        let Some((entity, _)) = realm.players[player].core.controls() else {
            return false;
        };
        let is_there = realm.position(player, entity).is_some_and(|at| (at.x - x).abs() < 1.0);
        is_there && realm.read::<u32>(player, entity, "round") == Some(round)
    });
    realm.players[player].core.controls().unwrap().0
}

fn leave_round(realm: &mut TestRealm, player: usize, entity: EntityId) {
    realm.call(player, entity, Part::Base, "leaveRound", &[]);
    realm.until("the entity has no cell part", |realm| {
        let image = &realm.state(BASE).entities[&entity];
        image
            .base()
            .is_some_and(|base| base.cell.is_none() && base.cell_links.is_some())
    });
    realm.pass(200);
}

#[test]
fn a_player_has_a_cell_part_in_each_round() {
    let mut realm = TestRealm::new(hero(), Arc::new(Rounds), HERO);
    let players = [realm.join(), realm.join(), realm.join()];
    let heroes = players.map(|player| in_round(&mut realm, player, 1));
    let [traveller, west, east] = players;
    // One of the others stays where odd rounds are played, one goes where even rounds are.
    leave_round(&mut realm, west, heroes[west]);
    realm.call(west, heroes[west], Part::Base, "joinRound", &[]);
    in_round(&mut realm, west, 2);
    let mut hits = 0;
    for round in 1..=6_u32 {
        let own = in_round(&mut realm, traveller, round);
        assert_eq!(own, heroes[traveller]);
        let (present, absent) = if round % 2 == 1 { (east, west) } else { (west, east) };
        realm.until("the player sees who is there", |realm| {
            let seen = realm.seen(traveller, "Hero");
            let others = seen.contains(&heroes[present]) && !seen.contains(&heroes[absent]);
            others && realm.position(present, own).is_some()
        });
        assert_eq!(
            realm.read(traveller, own, "score"),
            Some(hits),
            "its properties continue"
        );
        for _ in 0..round {
            realm.call(traveller, own, Part::Cell, "hit", &[]);
            hits += 1;
        }
        if round == 3 {
            let (_, holder) = PLACES[1];
            realm.crash(holder);
        }
        realm.until("each hit counted once", |realm| {
            let base = realm.read::<u32>(traveller, own, "reported");
            let seen = realm.read::<u32>(present, own, "score");
            (base, seen) == (Some(hits), Some(hits))
        });
        leave_round(&mut realm, traveller, own);
        if round == 4 {
            realm.crash(BASE);
            realm.pass(5_000);
        }
        assert_eq!(realm.seen(traveller, "Hero"), [], "between rounds there is nobody");
        assert_eq!(
            realm.read(traveller, own, "round"),
            Some(round),
            "but its own base part"
        );
        realm.until("the others see it leave", |realm| {
            realm.position(present, own).is_none()
        });
        realm.call(traveller, own, Part::Base, "joinRound", &[]);
    }
    in_round(&mut realm, traveller, 7);
    let lost = realm.players[traveller].events.iter();
    assert_eq!(lost.filter(|event| matches!(event, Event::CallsLost { .. })).count(), 0);
    for owner in [WEST, EAST] {
        let state = realm.state(owner);
        assert!(state.ending.is_empty() && state.estates.is_empty());
    }
}
