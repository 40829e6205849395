//! The overview: the real entities of this owner in a region, counted, and some of them with their positions. Made on
//! request only, by one iteration over all positions; what costs more is done for the sample alone.

use annals_event::Place;
use annals_ids::{EntityId, SpaceId};
use annals_node::OwnerContext;
use annals_wire::overview::{Overview, OverviewEntity, OverviewRequest};

use crate::clients::Clients;

/// An entity that may be in the sample: its place in the order of [`scattered`], and its position.
type Candidate = (u64, EntityId, [f32; 2]);

/// Makes an overview.
pub(crate) fn take(cx: &OwnerContext, clients: &Clients, asked: &OverviewRequest) -> Overview {
    let space = SpaceId(asked.space);
    let is_inside = |place: &Place| place.space == space && asked.contains(place.position.x, place.position.z);
    let mut sample = Sample::new(asked.limit());
    for (entity, place) in cx.places().filter(|(_, place)| is_inside(place)) {
        sample.add(entity, [place.position.x, place.position.z]);
    }
    let with_client = clients.entities();
    let with_client = with_client.filter(|entity| cx.place(*entity).is_some_and(|place| is_inside(&place)));
    Overview {
        schema: cx.schema().fingerprint(),
        entities: sample.count,
        clients: with_client.count() as u64,
        sample: sample
            .finish()
            .into_iter()
            .filter_map(|(_, entity, [x, z])| {
                Some(OverviewEntity {
                    entity,
                    type_id: cx.state().entities.get(&entity)?.type_id,
                    x,
                    z,
                    has_client: clients.has(entity),
                })
            })
            .collect(),
    }
}

/// The first entities in the order of [`scattered`], of all that are added.
struct Sample {
    limit: usize,
    /// Number of entities that were added.
    count: u64,
    /// Those that may be among the first: at most twice as many as the limit.
    candidates: Vec<Candidate>,
    /// Entities beyond this are not among them.
    last: u64,
}

impl Sample {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            count: 0,
            candidates: Vec::new(),
            last: u64::MAX,
        }
    }

    fn add(&mut self, entity: EntityId, position: [f32; 2]) {
        self.count += 1;
        let order = scattered(entity);
        if order > self.last || self.limit == 0 {
            return;
        }
        self.candidates.push((order, entity, position));
        if self.candidates.len() >= self.limit * 2 {
            self.cut();
        }
    }

    /// Drops those that are not among the first.
    fn cut(&mut self) {
        if self.candidates.len() > self.limit {
            let (_, last, _) = self
                .candidates
                .select_nth_unstable_by_key(self.limit - 1, |(order, ..)| *order);
            self.last = last.0;
            self.candidates.truncate(self.limit);
        }
    }

    /// The sample, ascending.
    fn finish(mut self) -> Vec<Candidate> {
        self.cut();
        self.candidates.sort_unstable_by_key(|(_, entity, _)| *entity);
        self.candidates
    }
}

/// An order of entities that is independent of their ages, by which a sample is chosen.
fn scattered(entity: EntityId) -> u64 {
    entity.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
