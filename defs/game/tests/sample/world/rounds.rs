//! Players whose entities have a cell part for each round of a game, and none in between.

use std::sync::Arc;

use annals_client::Event;
use annals_def::{DataType, Distribution, EntityType, Exposure, Method, Property, Schema, Value};
use annals_event::{Audience, Place};
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
    hero.client_methods = vec![Method::new("onReport", Vec::new())];
    Arc::new(Schema::new(vec![hero], Vec::new(), Vec::new()))
}

/// Whether a hero that leaves a round joins the next one at once, and at the same place.
struct Rounds {
    at_once: bool,
}

fn add(context: &mut Context<'_>, property: &'static str) -> u32 {
    let next = context.read::<u32>(property).unwrap() + 1;
    context.write(property, next).unwrap();
    next
}

impl Rounds {
    fn join(&self, context: &mut Context<'_>) {
        let round = add(context, "round");
        let (x, _) = if self.at_once {
            PLACES[0]
        } else {
            PLACES[usize::try_from(round).unwrap() % 2]
        };
        let score = context.entity_type().property_named("score").unwrap().index;
        let given = self.at_once.then(|| (score, Value::UInt(u64::from(round) * 100)));
        create_cell(context, x, given.into_iter().collect());
    }
}

fn create_cell(context: &mut Context<'_>, x: f32, properties: Vec<(MemberId, Value)>) {
    let place = Place {
        space: SpaceId(1),
        position: Position { x, y: 0.0, z: 0.0 },
        ..Place::default()
    };
    let create = Request::CreateCell {
        entity: context.entity(),
        place,
        properties,
    };
    context.request(create).unwrap();
}

impl Behaviour for Rounds {
    fn client_attached(&self, context: &mut Context<'_>) {
        self.join(context);
    }

    fn cell_lost(&self, context: &mut Context<'_>) {
        if self.at_once {
            self.join(context);
        }
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        let entity = context.entity();
        context.request(Request::Destroy { entity }).unwrap();
    }

    fn call(&self, context: &mut Context<'_>, method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        let (entity, base) = (context.entity(), context.mailbox(Part::Cell).to_part(Part::Base));
        match (context.part(), method.0) {
            (Part::Base, 0) => context.request(Request::DestroyCell { entity }).unwrap(),
            (Part::Base, 1) => self.join(context),
            (Part::Base, _) => {
                add(context, "reported");
                context.invoke(Audience::Own, "onReport", Vec::new()).unwrap();
            }
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
    let mut realm = TestRealm::new(hero(), Arc::new(Rounds { at_once: false }), HERO);
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

/// The next cell part may begin with other properties than the former one had. Observers of that one see this one as it
/// is, however soon it begins.
#[test]
fn those_who_saw_the_former_cell_part_see_the_next_one_as_it_is() {
    let mut realm = TestRealm::new(hero(), Arc::new(Rounds { at_once: true }), HERO);
    let (hero, watcher) = (realm.join(), realm.join());
    let [own, other] = [hero, watcher].map(|player| {
        realm.until("the player is in the world", |realm| {
            let controls = realm.players[player].core.controls();
            controls.is_some_and(|(entity, _)| realm.position(player, entity).is_some())
        });
        realm.players[player].core.controls().unwrap().0
    });
    for round in 1..=8_u32 {
        realm.until("both see the round's score", |realm| {
            let seen = [hero, watcher].map(|player| realm.read::<u32>(player, own, "score"));
            seen == [Some(round * 100); 2] && realm.position(watcher, own).is_some()
        });
        realm.call(hero, own, Part::Cell, "hit", &[]);
        realm.until("both see the hit", |realm| {
            [hero, watcher].map(|player| realm.read::<u32>(player, own, "score")) == [Some(round * 100 + 1); 2]
        });
        assert_eq!(realm.read::<u32>(hero, other, "score"), Some(100));
        realm.pass(u64::from(round % 4) * 70);
        realm.call(hero, own, Part::Base, "leaveRound", &[]);
    }
}

/// A client that is away when its cell part ends has an empty view when it returns.
#[test]
fn a_returning_client_learns_that_its_cell_part_has_ended() {
    for crashes in [false, true] {
        let mut realm = TestRealm::new(hero(), Arc::new(Rounds { at_once: false }), HERO);
        let player = realm.join();
        let own = in_round(&mut realm, player, 1);
        realm.cut_off(player);
        realm.ask_base(own, "leaveRound", Vec::new());
        realm.until("the entity has no cell part", |realm| {
            let image = &realm.state(BASE).entities[&own];
            image.base().is_some_and(|base| base.cell_links.is_some())
        });
        if crashes {
            realm.crash(BASE);
        }
        realm.reconnect(player);
        realm.until("the client's view is empty", |realm| {
            realm.seen(player, "Hero").is_empty()
        });
        assert_eq!(
            realm.read::<u32>(player, own, "round"),
            Some(1),
            "its base part is there"
        );
        realm.call(player, own, Part::Base, "joinRound", &[]);
        in_round(&mut realm, player, 2);
    }
}
