//! How a realm begins: once, on one owner, even if processes are lost.

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::Body;
use annals_ids::{EntityId, MemberId, OwnerId};
use annals_node::{Bootstrap, OwnerError};
use annals_wire::SpaceMap;

use crate::{
    cell::Cell,
    game::{AVATAR, Game, ROOTED},
    host::{CELL, Host, Mood, map},
};

/// A game that begins with an avatar of this motto.
fn game(motto: Value) -> Game {
    let properties = vec![(MemberId(2), motto)];
    Game {
        bootstrap: Some(Bootstrap {
            type_id: AVATAR,
            properties,
        }),
        ..Game::default()
    }
}

fn rooted() -> Game {
    game(Value::Unicode(ROOTED.to_owned()))
}

/// The entities that were created according to the log.
fn created(host: &Host) -> Vec<EntityId> {
    let events = host.batches().flat_map(|batch| batch.events);
    let created = events.filter(|event| matches!(event.body, Body::BaseCreated(_)));
    created
        .map(|event| match event.subject {
            annals_event::Subject::Entity(entity, _) => entity,
            annals_event::Subject::Owner => panic!("owners are not created"),
        })
        .collect()
}

#[test]
fn a_realm_begins_once_despite_owner_loss() {
    let (mut lost, mut kept) = (0, 0);
    for mood in [Mood::Answers, Mood::Withholds, Mood::Loses] {
        for later in [0, 10, 20, 50, 1_000] {
            let (mut host, mut cell) = (Host::of(rooted()), Cell::new(CELL));
            if later == 0 {
                host.mood = mood;
            }
            host.role(BaseInput::Map(map()));
            host.pass(later);
            host.mood = mood;
            host.settle();
            let begun = host.folded().bootstrap;
            if begun.is_some() {
                kept += 1;
            } else {
                lost += 1;
            }
            for _ in 0..2 {
                host.crash();
                host.settle();
                cell.work(&mut host);
            }
            let what = format!("{mood:?} after {later} ms");
            let state = host.folded();
            let first = state.bootstrap.unwrap_or_else(|| panic!("{what}: it never began"));
            assert_eq!(created(&host), [first], "{what}");
            assert!(begun.is_none_or(|begun| begun == first), "{what}");
            assert_eq!(state.entities.keys().copied().collect::<Vec<_>>(), [first], "{what}");
            assert_eq!((cell.made, cell.parts.len()), (1, 1), "{what}");
        }
    }
    assert!(
        lost > 0 && kept > 0,
        "lost {lost} times before it was logged, {kept} after"
    );
}

#[test]
fn a_realm_begins_on_the_mapped_owner_only() {
    let mut host = Host::of(rooted());
    let named = |version, bootstrap| {
        BaseInput::Map(SpaceMap {
            version,
            bootstrap,
            ..map()
        })
    };
    host.role(named(1, None));
    host.role(named(2, Some(OwnerId(99))));
    host.settle();
    assert_eq!(created(&host), []);
    host.role(named(3, Some(host.owner.state().owner)));
    host.role(named(4, Some(host.owner.state().owner)));
    host.settle();
    assert_eq!(created(&host).len(), 1);
}

#[test]
fn the_first_entity_may_end_and_is_not_recreated() {
    let (mut host, mut cell) = (Host::of(rooted()), Cell::new(CELL));
    host.role(BaseInput::Map(map()));
    host.settle();
    cell.work(&mut host);
    let first = host.folded().bootstrap.unwrap();
    let leave = host
        .schema
        .entity_type(AVATAR)
        .unwrap()
        .base_method_named("leave")
        .unwrap();
    host.call(first, leave.index);
    host.settle();
    host.sent.retain(|(to, _)| *to == CELL);
    cell.work(&mut host);
    assert!(host.folded().entities.is_empty());
    host.crash();
    host.settle();
    assert_eq!(created(&host), [first]);
}

#[test]
fn a_fixed_game_begins_after_an_invalid_first_entity() {
    let mut host = Host::of(game(Value::UInt(1)));
    host.role(BaseInput::Map(map()));
    host.settle();
    assert_eq!(host.owner.role().counters().denied, 1);
    let trouble = host.owner.poll_trouble().expect("it is reported");
    assert!(
        matches!(trouble, OwnerError::NotBootstrapped { type_id: AVATAR, .. }),
        "{trouble}"
    );
    assert_eq!((created(&host), host.folded().bootstrap), (Vec::new(), None));
    host.game = rooted();
    host.crash();
    host.settle();
    assert_eq!(created(&host).len(), 1);
}
