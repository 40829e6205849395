//! Encoding of overviews for operators.

use annals_ids::{EntityId, Hash, SpaceId, TypeId};
use annals_wire::{
    control::{ControlError, decode, encode},
    overview::{OVERVIEW_ENTITIES, Overview, OverviewEntity, OverviewRequest, WireOverview},
};

fn overview() -> Overview {
    let seen = |id: u64| OverviewEntity {
        entity: EntityId(id),
        type_id: TypeId(3),
        x: id as f32 * 0.5,
        z: -2.25,
        has_client: id.is_multiple_of(2),
    };
    Overview {
        schema: Hash([5; 32]),
        entities: 9,
        clients: 4,
        sample: (1..=5).map(seen).collect(),
    }
}

#[test]
fn an_overview_round_trips() {
    let wire: WireOverview = decode(&encode(&WireOverview::from(&overview()))).expect("own bytes");
    assert_eq!(Overview::try_from(&wire).expect("an overview"), overview());
}

#[test]
fn an_inconsistent_overview_is_refused() {
    let changes: [fn(&mut WireOverview); 8] = [
        |wire| wire.schema.truncate(31),
        |wire| wire.types.truncate(4),
        |wire| wire.x.push(0.0),
        |wire| wire.has_client.clear(),
        |wire| wire.z[2] = f32::NAN,
        |wire| wire.entities = 4,
        |wire| wire.clients = 10,
        |wire| {
            let many = OVERVIEW_ENTITIES + 1;
            wire.entities = many as u64;
            wire.ids = vec![1; many];
            wire.types = vec![1; many];
            (wire.x, wire.z) = (vec![0.0; many], vec![0.0; many]);
            wire.has_client = vec![false; many];
        },
    ];
    for (nth, change) in changes.iter().enumerate() {
        let mut wire = WireOverview::from(&overview());
        change(&mut wire);
        let refused = Overview::try_from(&wire);
        assert!(matches!(refused, Err(ControlError::Overview(_))), "{nth}: {refused:?}");
    }
}

#[test]
fn a_region_is_half_open_and_its_sample_is_limited() {
    let all = OverviewRequest::of_space(SpaceId(1));
    let region = OverviewRequest {
        west: -1.0,
        east: 1.0,
        south: 0.0,
        north: 2.0,
        ..all
    };
    assert!(region.contains(-1.0, 0.0) && !region.contains(1.0, 0.0) && !region.contains(0.0, 2.0));
    assert!(all.contains(f32::MIN, f32::MAX));
    let nowhere = OverviewRequest { west: f32::NAN, ..all };
    assert!(!nowhere.contains(0.0, 0.0));
    let greedy = OverviewRequest { limit: u32::MAX, ..all };
    assert_eq!(greedy.limit(), OVERVIEW_ENTITIES);
}
