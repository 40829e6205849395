//! The survey: the load of this owner and its distribution in space, by which the director balances.

use std::collections::BTreeMap;

use annals_ids::SpaceId;
use annals_node::OwnerContext;
use annals_wire::{
    HANDOVER_DEPTH,
    load::{ENTITY_UNITS, Levels, Survey, WITNESS_UNITS},
};

use crate::{clients::Clients, territory::Territory};

/// Maximum number of an owner's entities whose positions go into levels; of more, every second, third and so on does.
/// So a survey costs little more than one iteration over all, however many there are.
const SAMPLE: usize = 4_096;

/// Positions in one space, and their load.
#[derive(Default)]
struct PositionSamples {
    x: Vec<(f32, f64)>,
    z: Vec<(f32, f64)>,
}

/// Surveys this owner. An entity that is due for hand-over counts as leaving, even while it stays after its
/// arrival.
pub(crate) fn take(cx: &OwnerContext, territory: &Territory, clients: &Clients) -> Survey {
    let mut survey = Survey {
        map: territory.version(),
        ..Survey::default()
    };
    let mut standing: BTreeMap<SpaceId, PositionSamples> = BTreeMap::new();
    let stride = cx.state().entities.len().div_ceil(SAMPLE).max(1);
    for (nth, (entity, place)) in cx.places().enumerate() {
        let is_witness = clients.has(entity);
        let units = ENTITY_UNITS + if is_witness { WITNESS_UNITS } else { 0.0 };
        let space = survey.spaces.entry(place.space).or_default();
        space.entities += 1;
        space.witnesses += u64::from(is_witness);
        let is_outside = territory.outside(&place) > HANDOVER_DEPTH;
        let to = is_outside.then(|| territory.owner_at(&place)).flatten();
        if let Some(to) = to.filter(|to| *to != cx.owner()) {
            *space.leaving.entry(to).or_default() += units;
            continue;
        }
        space.units += units;
        if nth.is_multiple_of(stride) {
            let standing = standing.entry(place.space).or_default();
            standing.x.push((place.position.x, units));
            standing.z.push((place.position.z, units));
        }
    }
    for (id, standing) in standing {
        let space = survey.spaces.entry(id).or_default();
        (space.x, space.z) = (Levels::of(standing.x), Levels::of(standing.z));
    }
    survey
}
