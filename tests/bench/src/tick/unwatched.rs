//! A large cell without clients: the cost of its ticks, and the time to write a snapshot and to recover from it.
//!
//! The core is that of [`crowd`](super::crowd). Costs are measured per entity for a small and a large cell in the same
//! run: if the cost is linear, the two are equal.

use std::{hint::black_box, time::Duration};

use annals_event::{Batch, Image, OwnerState, Reader};
use annals_ids::OwnerKind;

use super::crowd::{Crowd, GUARD, STONE, TICK};
use crate::Figure;

/// Size of the measured cell, and of the one it is compared with.
const LARGE: usize = 20_000;
const SMALL: usize = 5_000;

/// Warm-up ticks, and entities times measured ticks.
const WARM_UP: usize = 30;
const MEASURED: usize = 400_000;

/// Measurements of each size, in turn; the minimum counts, since other load on the machine only adds time.
const TURNS: usize = 3;

/// Maximum cost of an entity of the large cell relative to the small cell. Caches hold less of the large one, so it is
/// more than 1; a quadratic cost would give 4.
const TARGET: f64 = 2.0;

/// Measurements of a cell of one size.
#[derive(Clone, Copy, Debug)]
struct Took {
    /// A tick period with all entities stationary, and with all walking.
    resting: Duration,
    patrolling: Duration,
    /// The longest tick period with all walking.
    longest: Duration,
    /// Bytes logged in a tick period with all walking.
    logged: usize,
    /// Time to write a snapshot, and its bytes.
    snapshot: Duration,
    bytes: usize,
    /// Time to read the snapshot, take over the owner and complete its first tick.
    restart: Duration,
    /// The same from the log alone, without a snapshot.
    start: Duration,
}

impl Took {
    /// The minimum of each.
    fn least(self, other: Self) -> Self {
        Self {
            resting: self.resting.min(other.resting),
            patrolling: self.patrolling.min(other.patrolling),
            longest: self.longest.min(other.longest),
            snapshot: self.snapshot.min(other.snapshot),
            restart: self.restart.min(other.restart),
            start: self.start.min(other.start),
            ..self
        }
    }
}

/// Measures both sizes.
///
/// # Panics
/// If the cell does not behave as expected.
#[must_use]
pub fn run() -> Vec<Figure> {
    let (mut large, mut small) = (measure(LARGE), measure(SMALL));
    for _ in 1..TURNS {
        large = large.least(measure(LARGE));
        small = small.least(measure(SMALL));
    }
    let period = TICK.as_millis();
    let patrolling = format!(
        "controllers move all entities, {:.0} B logged for each; longest {:.1} ms; a tick of {period} ms",
        large.logged as f64 / LARGE as f64,
        large.longest.as_secs_f64() * 1e3
    );
    let snapshot = format!("complete snapshot, {} kB", large.bytes / 1_000);
    let row = |name: &str, part: fn(&Took) -> Duration, note: &str| {
        let per_entity = |took: &Took, size: usize| part(took).as_secs_f64() * 1e6 / size as f64;
        Figure::against(
            &format!("unwatched_{name}_{LARGE}"),
            per_entity(&large, LARGE),
            per_entity(&small, SMALL),
            "us",
            format!(
                "per entity, {:.1} ms in all: {note}; baseline: {SMALL} entities, so 1 is linear; target {TARGET:.1}",
                part(&large).as_secs_f64() * 1e3
            ),
        )
    };
    vec![
        row(
            "resting",
            |took| took.resting,
            &format!("no entity moves; a tick of {period} ms"),
        ),
        row("patrolling", |took| took.patrolling, &patrolling),
        row("snapshot", |took| took.snapshot, &snapshot),
        row(
            "restart",
            |took| took.restart,
            "from a snapshot to the end of the first tick",
        ),
        row(
            "start",
            |took| took.start,
            "from the log alone to the end of the first tick",
        ),
    ]
}

fn measure(size: usize) -> Took {
    let (resting, _) = ticks(&mut Crowd::unwatched(size, STONE), size);
    let mut crowd = Crowd::unwatched(size, GUARD);
    let log = crowd.log().to_vec();
    let (patrolling, longest) = ticks(&mut crowd, size);
    let logged = crowd.spent().logged / (MEASURED / size);
    let (snapshot, (own, images)) = timed(|| write(crowd.state()));
    let bytes = own.len() + images.iter().map(|(_, image)| image.len()).sum::<usize>();
    let hash = crowd.state().hash();
    let (reading, state) = timed(|| read(&own, &images));
    assert_eq!(state.hash(), hash, "what is read is what was written");
    let (beginning, restarted) = timed(|| begin(state));
    let (start, started) = timed(|| begin(fold(&log)));
    for begun in [&restarted, &started] {
        assert_eq!(begun.state().entities.len(), size, "all are back");
    }
    Took {
        resting,
        patrolling,
        longest,
        logged,
        snapshot,
        bytes,
        restart: reading + beginning,
        start,
    }
}

/// Average and maximum duration of a tick.
fn ticks(crowd: &mut Crowd, size: usize) -> (Duration, Duration) {
    for _ in 0..WARM_UP {
        crowd.tick();
    }
    crowd.forget();
    let count = MEASURED / size;
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let before = crowd.spent().all;
        crowd.tick();
        longest = longest.max(crowd.spent().all - before);
    }
    let count = u32::try_from(count).expect("there are few");
    (crowd.spent().all / count, longest)
}

fn timed<T>(what: impl FnOnce() -> T) -> (Duration, T) {
    let began = crate::busy();
    let made = black_box(what());
    (crate::busy().saturating_sub(began), made)
}

/// An owner encoded as in a snapshot: its own state, and each entity.
fn write(state: &OwnerState) -> (Vec<u8>, Vec<(annals_ids::EntityId, Vec<u8>)>) {
    let mut own = Vec::new();
    state.write_own(&mut own);
    let images = state.entities.iter().map(|(entity, image)| {
        let mut bytes = Vec::new();
        image.write(&mut bytes);
        (*entity, bytes)
    });
    let images = images.collect();
    (own, images)
}

fn read(own: &[u8], images: &[(annals_ids::EntityId, Vec<u8>)]) -> OwnerState {
    let mut state = OwnerState::read_own(own).expect("what was written can be read");
    for (entity, bytes) in images {
        let image = Image::read(&mut Reader::new(bytes)).expect("what was written can be read");
        state.restore(*entity, image);
    }
    state
}

fn fold(log: &[Vec<u8>]) -> OwnerState {
    let mut state = OwnerState::new(super::crowd::CELL, OwnerKind::Cell);
    for bytes in log {
        let batch = Batch::read(bytes).expect("what was written can be read");
        state.fold(&batch).expect("the log is that of one run");
    }
    state
}

/// Takes over an owner, to the end of its first tick.
fn begin(state: OwnerState) -> Crowd {
    let mut crowd = Crowd::take_over(state, || 0);
    crowd.tick();
    crowd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwatched_entities_are_recovered_after_a_restart() {
        let size = 300;
        let mut crowd = Crowd::unwatched(size, GUARD);
        let (_, longest) = ticks(&mut crowd, MEASURED / 20);
        assert!(longest > Duration::ZERO);
        let (own, images) = write(crowd.state());
        let back = begin(read(&own, &images));
        assert_eq!(back.state().entities.len(), size);
        let moved = |crowd: &Crowd| {
            let cells = crowd.state().entities.values().filter_map(|image| image.cell());
            cells.filter(|cell| cell.controllers.iter().len() == 1).count()
        };
        assert_eq!(moved(&back), size, "all entities move");
        assert!(begin(fold(crowd.log())).state().entities.len() == size);
    }
}
