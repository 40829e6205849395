//! Overviews for operators: counts of all entities in a region, and a bounded sample that stays the same.

use std::collections::BTreeSet;

use annals_ids::EntityId;
use annals_wire::overview::{Overview, OverviewRequest};

use crate::{
    game::{AVATAR, STATUE},
    world::{MIDDLE, SPACE, WEST, World},
};

fn overview(world: &World, asked: &OverviewRequest) -> Overview {
    world.live(MIDDLE).overview(asked).expect("a cell has one")
}

fn ids(overview: &Overview) -> BTreeSet<EntityId> {
    overview.sample.iter().map(|seen| seen.entity).collect()
}

#[test]
fn an_overview_has_the_real_entities_of_a_region() {
    let mut world = World::new(1);
    let statues: Vec<EntityId> = (0..20).map(|nth| world.spawn(STATUE, 2.0 + nth as f32, None)).collect();
    let avatar = world.spawn(AVATAR, 30.0, Some(1));
    let elsewhere = world.spawn(STATUE, -3.0, None);
    world.run(1_000);
    let all = OverviewRequest::of_space(SPACE);
    let found = overview(&world, &all);
    assert_eq!((found.entities, found.clients), (21, 1), "ghosts are of other cells");
    assert!(!ids(&found).contains(&elsewhere) && world.live(WEST).state().entities.contains_key(&elsewhere));
    for seen in &found.sample {
        let place = world.cx(MIDDLE).place(seen.entity).expect("it is here");
        assert_eq!((seen.x, seen.z), (place.position.x, place.position.z));
        let is_avatar = seen.entity == avatar;
        assert_eq!(seen.has_client, is_avatar);
        assert_eq!(seen.type_id, if is_avatar { AVATAR } else { STATUE });
    }
    // The statue on the east edge is not in the region.
    let region = OverviewRequest {
        west: 2.0,
        east: 7.0,
        ..all
    };
    let found = overview(&world, &region);
    assert_eq!(
        (found.entities, ids(&found)),
        (5, statues[..5].iter().copied().collect())
    );
    let other_space = OverviewRequest {
        space: SPACE.0 + 1,
        ..all
    };
    assert_eq!(overview(&world, &other_space).entities, 0);
}

#[test]
fn a_sample_is_limited_and_keeps_its_entities() {
    let mut world = World::new(2);
    for nth in 0..40 {
        world.spawn(STATUE, 1.0 + nth as f32, None);
    }
    world.run(1_000);
    let asked = OverviewRequest {
        limit: 10,
        ..OverviewRequest::of_space(SPACE)
    };
    let before = overview(&world, &asked);
    assert_eq!((before.entities, before.sample.len()), (40, 10));
    assert!(before.sample.is_sorted_by_key(|seen| seen.entity));
    for nth in 0..10 {
        world.spawn(STATUE, 1.5 + nth as f32, None);
    }
    world.run(1_000);
    let after = overview(&world, &asked);
    assert_eq!((after.entities, after.sample.len()), (50, 10));
    let kept = ids(&before).intersection(&ids(&after)).count();
    assert!(kept >= 5, "{kept} of 10 are the same ones");
    // A smaller sample is a part of a larger one.
    for limit in 0..50 {
        let few = overview(&world, &OverviewRequest { limit, ..asked });
        let more = overview(
            &world,
            &OverviewRequest {
                limit: limit + 1,
                ..asked
            },
        );
        assert_eq!((few.entities, few.sample.len()), (50, limit as usize));
        assert!(ids(&few).is_subset(&ids(&more)), "{limit}");
    }
}
