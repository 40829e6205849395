//! All bodies.

use annals_ids::EntityId;

use crate::{
    interest::Body,
    steps::{Step, Who, paired},
};

/// All bodies of the last update, and the entities of those removed by it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bodies {
    /// Ascending by entity.
    here: Vec<Body>,
    /// Entities of bodies that were present before the last update.
    gone: Vec<EntityId>,
}

impl Bodies {
    /// Sets the present bodies, and reports the step of each: a body in another space, or with another appeal, leaves
    /// its old position and appears at the new one.
    pub(crate) fn step(&mut self, bodies: &[Body], mut report: impl FnMut(&Body, Who, Step)) {
        self.gone.clear();
        let numbered = (0_u32..).map(Who).zip(bodies);
        for (was, is) in paired(&self.here, numbered, |was| was.entity, |(_, is)| is.entity) {
            let at = |body: &Body| Some(body.spot.position);
            match (was, is) {
                (Some(was), Some((who, is))) if was.spot.space == is.spot.space && was.appeal == is.appeal => {
                    report(is, who, Step::between(at(was), at(is)));
                }
                (Some(was), Some((who, is))) => {
                    report(was, who, Step::between(at(was), None));
                    report(is, who, Step::between(None, at(is)));
                }
                (None, Some((who, is))) => report(is, who, Step::between(None, at(is))),
                (Some(was), None) => {
                    let who = Who(number(bodies.len() + self.gone.len()));
                    self.gone.push(was.entity);
                    report(was, who, Step::between(at(was), None));
                }
                (None, None) => {}
            }
        }
        self.here.clear();
        self.here.extend_from_slice(bodies);
    }

    /// The body, if it still exists.
    pub(crate) fn get(&self, who: Who) -> Option<&Body> {
        self.here.get(who.0 as usize)
    }

    /// The body's entity, also if the body was removed.
    pub(crate) fn entity(&self, who: Who) -> EntityId {
        let at = who.0 as usize;
        let gone = || self.gone[at - self.here.len()];
        self.here.get(at).map_or_else(gone, |body| body.entity)
    }

    /// The body of an entity.
    pub(crate) fn of(&self, entity: EntityId) -> Option<&Body> {
        let at = self.here.binary_search_by_key(&entity, |body| body.entity);
        at.ok().map(|at| &self.here[at])
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).expect("bodies are fewer than four billion")
}
