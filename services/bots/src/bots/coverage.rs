//! Which exposed methods all bots of a run have called, and how long it takes to call all.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use annals_def::{Exposure, Schema};
use annals_ids::Part;
use annals_sample::{BODY_EVERY, CALLS_PER_BODY, EXTRA_MS, EXTRA_TURNS, Puppet, TURN_MS};

use super::{LOG_INS_PER_SECOND, conduct::CALL_EVERY, repertoire::exposed, report::Driven, session::OTHERS_EVERY};

/// Number of calls per method. The least called methods are called next, so bots leave none out, however few calls each
/// makes.
#[derive(Debug, Default)]
pub(super) struct Coverage(Mutex<BTreeMap<Driven, u64>>);

impl Coverage {
    /// The least called of these methods; among equals, the first from index `turn` on.
    pub(super) fn least_called(&self, methods: &[Driven], turn: usize) -> Option<usize> {
        let called = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = turn.checked_rem(methods.len())?;
        let from_first = (first..methods.len()).chain(0..first);
        from_first.min_by_key(|index| called.get(&methods[*index]).copied().unwrap_or(0))
    }

    /// Counts a call.
    pub(super) fn count(&self, called: Driven) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(called).or_default() += 1;
    }
}

/// Typical time until the players of a killed process are back.
const BACK_AFTER: Duration = Duration::from_secs(6);

/// Processes that are killed during a demonstration.
const KILLED: u32 = 2;

/// Share that is added to the computed time, since calls are not evenly spread.
const MARGIN: f64 = 0.25;

/// What puppets have to drive in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToDrive {
    types: usize,
    methods: usize,
    properties: usize,
    client_methods: usize,
    /// Exposed methods of types without a base part; they can be called only on entities in view.
    on_others: usize,
    /// See [`Puppet::bodies`].
    bodies: usize,
    /// See [`Puppet::extras`].
    extras: [usize; 2],
}

impl ToDrive {
    /// Counts what there is to drive in a world.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let sum = |count: fn(&annals_def::EntityType) -> usize| schema.types().iter().map(count).sum();
        Self {
            types: schema.types().len(),
            methods: sum(|found| exposed(found).len()),
            properties: sum(|found| found.properties.len()),
            client_methods: sum(|found| found.client_methods.len()),
            on_others: sum(|found| {
                let methods = found.cell_methods.iter().filter(|_| !found.parts.base);
                methods.filter(|method| method.exposed == Exposure::AllClients).count()
            }),
            bodies: Puppet::bodies(schema).len(),
            extras: [Part::Base, Part::Cell].map(|part| Puppet::extras(schema, part).len()),
        }
    }

    /// Time that this many bots need to drive all of it, with two base and two cell processes of which one each is
    /// killed. A process goes through its lists for its own clients, which are half of them.
    #[must_use]
    pub fn time(&self, bots: usize) -> Duration {
        let (bots, clients) = (bots.max(1) as f64, (bots / 2).max(1) as f64);
        let beat = EXTRA_MS as f64 / 1_000.0;
        let body = beat * BODY_EVERY as f64;
        let life = f64::from(EXTRA_TURNS) * TURN_MS as f64 / 1_000.0;
        let [of_bases, of_cells] = self.extras.map(|types| types as f64);
        // In one of `BODY_EVERY` beats a base part changes the client's body instead of making an extra.
        let makes = (BODY_EVERY - 1) as f64 / BODY_EVERY as f64;
        let made = (of_bases / (clients * makes)).max(of_cells / clients) * beat;
        let called_on_others = self.on_others as f64 * OTHERS_EVERY as f64 * CALL_EVERY.as_secs_f64() / bots;
        let extras = beat + made + life.max(called_on_others);
        let on_a_body =
            CALLS_PER_BODY as f64 * CALL_EVERY.as_secs_f64() * OTHERS_EVERY as f64 / (OTHERS_EVERY - 1) as f64;
        let bodies = self.bodies as f64 * body / clients + on_a_body;
        let log_ins = bots / f64::from(LOG_INS_PER_SECOND);
        let outages = BACK_AFTER.as_secs_f64() * f64::from(KILLED);
        let seconds = (log_ins + extras.max(bodies) + outages) * (1.0 + MARGIN);
        Duration::from_secs(seconds.ceil() as u64)
    }
}

impl fmt::Display for ToDrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} exposed methods, {} properties and {} client methods of {} entity types",
            self.methods, self.properties, self.client_methods, self.types
        )
    }
}

#[cfg(test)]
mod tests {
    use annals_def::EntityType;
    use annals_ids::{MemberId, TypeId};

    use super::*;

    fn methods(count: u16) -> Vec<Driven> {
        let method = |number| Driven {
            entity_type: TypeId(1),
            part: Part::Base,
            method: MemberId(number),
        };
        (0..count).map(method).collect()
    }

    #[test]
    fn the_least_called_method_is_next_and_ties_rotate() {
        let (coverage, methods) = (Coverage::default(), methods(3));
        assert_eq!(coverage.least_called(&methods, 7), Some(1));
        coverage.count(methods[1]);
        assert_eq!(coverage.least_called(&methods, 7), Some(2));
        coverage.count(methods[2]);
        coverage.count(methods[2]);
        coverage.count(methods[0]);
        assert_eq!(coverage.least_called(&methods, 2), Some(0));
        assert_eq!(coverage.least_called(&[], 2), None);
    }

    #[test]
    fn the_duration_grows_with_the_world_and_shrinks_with_more_bots() {
        let world = |types: usize| ToDrive {
            types,
            methods: types * 20,
            properties: types * 20,
            client_methods: types * 10,
            on_others: 0,
            bodies: types * 2,
            extras: [types, 0],
        };
        let seconds = |types, bots| world(types).time(bots).as_secs();
        assert!(seconds(2, 100) < seconds(20, 100) && seconds(20, 100) < seconds(200, 100));
        assert!(seconds(20, 400) < seconds(20, 100) && seconds(20, 100) < seconds(20, 10));
        // Ten times the world takes at most ten times as long.
        assert!(seconds(200, 100) < 10 * seconds(20, 100));
        let nothing = ToDrive::of(&Schema::new(vec![EntityType::new("Stone")], Vec::new(), Vec::new()));
        assert!(nothing.time(0) > Duration::ZERO, "two processes are killed in any case");
    }
}
