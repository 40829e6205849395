//! Breadth-first search through every reachable state of a model.
//!
//! The search is breadth-first so that the first failing schedule found is a shortest one, and so easy to read. It is
//! single-threaded and deterministic: the same model gives the same counts and schedules.
//!
//! For each visited state the search keeps a 64-bit fingerprint and how the state was first reached (16 bytes
//! together). Two states with the same fingerprint would hide one of them; for the five million states of the largest
//! space here the probability is below one in a million.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::invariant::Invariant;

/// A system that moves by discrete steps, some of them faults.
pub trait Model {
    /// Everything that decides what can happen next. Small, because millions of states are hashed.
    type State: Copy + Eq + Hash;
    /// One atomic step.
    type Step: Copy;

    /// The initial state of every schedule.
    fn start(&self) -> Self::State;
    /// Appends every step that is possible in `state`.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);
    /// The state after `step`, which must be one of the steps that [`Model::steps`] gives for `state`.
    fn take(&self, state: &Self::State, step: Self::Step) -> Self::State;
    /// The invariant that `state` violates, if any.
    fn broken(&self, state: &Self::State) -> Option<Invariant>;
    /// Describes the step in words, given the `state` before it and the state `after` it.
    fn words(&self, state: &Self::State, step: Self::Step, after: &Self::State) -> String;
    /// Whether no work is outstanding.
    fn settled(&self, state: &Self::State) -> bool;
    /// Whether `step` is a fault or an external decision: a step that may never be taken.
    fn is_fault(&self, step: Self::Step) -> bool;
}

/// A model restricted to one invariant, to find a schedule that violates it.
#[derive(Debug, Clone, Copy)]
pub struct Watching<M>(pub M, pub Invariant);

impl<M: Model> Model for Watching<M> {
    type State = M::State;
    type Step = M::Step;

    fn start(&self) -> M::State {
        self.0.start()
    }
    fn steps(&self, state: &M::State, steps: &mut Vec<M::Step>) {
        self.0.steps(state, steps);
    }
    fn take(&self, state: &M::State, step: M::Step) -> M::State {
        self.0.take(state, step)
    }
    fn broken(&self, state: &M::State) -> Option<Invariant> {
        self.0.broken(state).filter(|broken| *broken == self.1)
    }
    fn words(&self, state: &M::State, step: M::Step, after: &M::State) -> String {
        self.0.words(state, step, after)
    }
    fn settled(&self, state: &M::State) -> bool {
        self.0.settled(state)
    }
    fn is_fault(&self, step: M::Step) -> bool {
        self.0.is_fault(step)
    }
}

/// Maximum states visited, times four for each extra fault ([`crate::extra_faults`]). This many states need about 2 GB,
/// most of it for the newest level.
pub const MOST_STATES: usize = 6_000_000;

/// Result of a search.
#[derive(Debug, Clone)]
pub struct Search {
    /// Distinct states visited.
    pub states: usize,
    /// Steps taken between them.
    pub steps: usize,
    /// Length of the longest shortest path.
    pub depth: usize,
    /// How it ended.
    pub verdict: Verdict,
}

/// How a search ended.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Every reachable state was visited, and every invariant holds in each.
    Exhausted,
    /// This schedule, one of the shortest, ends in a state that violates an invariant.
    Broken(Schedule),
    /// [`MOST_STATES`] were visited and more remain: the bounds of the model are too wide.
    TooLarge,
}

/// A sequence of steps from the initial state to one that violates an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The violated invariant.
    pub invariant: Invariant,
    /// The steps, in words.
    pub steps: Vec<String>,
}

/// Visits every state, or stops at the first one that violates an invariant.
pub fn search<M: Model>(model: &M) -> Search {
    Walk::new(model, Edges::Ignored).run()
}

/// As [`search`], and then checks progress: searches for a state from which no sequence of ordinary steps (no faults)
/// leads to a settled state, so that work would stay outstanding for ever.
pub fn search_with_progress<M: Model>(model: &M) -> Search {
    Walk::new(model, Edges::Kept).run()
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Edges {
    Ignored,
    Kept,
}

/// How a state was first reached: the index of its predecessor, and the position of the step taken there.
#[derive(Clone, Copy)]
struct Origin {
    before: u32,
    step: u16,
}

struct Walk<'m, M: Model> {
    model: &'m M,
    seen: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    origins: Vec<Origin>,
    /// Ordinary steps between states, by index; kept only for the progress check.
    ordinary: Vec<(u32, u32)>,
    settled: Vec<bool>,
    edges: Edges,
    taken: usize,
}

impl<'m, M: Model> Walk<'m, M> {
    fn new(model: &'m M, edges: Edges) -> Self {
        Self {
            model,
            seen: HashMap::default(),
            origins: Vec::new(),
            ordinary: Vec::new(),
            settled: Vec::new(),
            edges,
            taken: 0,
        }
    }

    fn run(mut self) -> Search {
        let start = self.model.start();
        self.visit(&start, Origin { before: 0, step: 0 });
        let mut level = vec![(0u32, start)];
        let mut depth = 0;
        let mut steps = Vec::new();
        loop {
            let mut next = Vec::new();
            for (index, state) in &level {
                steps.clear();
                self.model.steps(state, &mut steps);
                for (position, step) in steps.iter().enumerate() {
                    self.taken += 1;
                    let after = self.model.take(state, *step);
                    let origin = Origin {
                        before: *index,
                        step: position as u16,
                    };
                    let (reached, new) = self.visit(&after, origin);
                    if self.edges == Edges::Kept && !self.model.is_fault(*step) {
                        self.ordinary.push((*index, reached));
                    }
                    if !new {
                        continue;
                    }
                    if let Some(invariant) = self.model.broken(&after) {
                        let verdict = Verdict::Broken(self.schedule(reached, invariant));
                        return self.search(depth + 1, verdict);
                    }
                    next.push((reached, after));
                }
            }
            if next.is_empty() {
                let verdict = self.stuck().map_or(Verdict::Exhausted, |index| {
                    Verdict::Broken(self.schedule(index, Invariant::Progress))
                });
                return self.search(depth, verdict);
            }
            if self.origins.len() > MOST_STATES << (2 * crate::extra_faults()) {
                return self.search(depth, Verdict::TooLarge);
            }
            depth += 1;
            level = next;
        }
    }

    /// Returns the index of `state`, and whether it is new.
    fn visit(&mut self, state: &M::State, origin: Origin) -> (u32, bool) {
        let mut hasher = Fingerprint::default();
        state.hash(&mut hasher);
        let index = self.origins.len() as u32;
        match self.seen.entry(hasher.finish()) {
            std::collections::hash_map::Entry::Occupied(known) => (*known.get(), false),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(index);
                self.origins.push(origin);
                if self.edges == Edges::Kept {
                    self.settled.push(self.model.settled(state));
                }
                (index, true)
            }
        }
    }

    /// The first state found from which no ordinary steps lead to a settled state.
    fn stuck(&self) -> Option<u32> {
        if self.edges == Edges::Ignored {
            return None;
        }
        let mut into: Vec<(u32, u32)> = self.ordinary.iter().map(|(from, to)| (*to, *from)).collect();
        into.sort_unstable();
        let mut good = self.settled.clone();
        let mut open: Vec<u32> = (0..good.len() as u32).filter(|index| good[*index as usize]).collect();
        while let Some(index) = open.pop() {
            let first = into.partition_point(|(to, _)| *to < index);
            for (_, from) in into[first..].iter().take_while(|(to, _)| *to == index) {
                if !std::mem::replace(&mut good[*from as usize], true) {
                    open.push(*from);
                }
            }
        }
        good.iter().position(|reaches| !reaches).map(|index| index as u32)
    }

    /// Walks back to the initial state, then forward again to describe the steps in words.
    fn schedule(&self, end: u32, invariant: Invariant) -> Schedule {
        let mut positions = Vec::new();
        let mut index = end;
        while index != 0 {
            let origin = self.origins[index as usize];
            positions.push(origin.step);
            index = origin.before;
        }
        let mut state = self.model.start();
        let mut words = Vec::new();
        for position in positions.into_iter().rev() {
            let mut steps = Vec::new();
            self.model.steps(&state, &mut steps);
            let step = steps[usize::from(position)];
            let after = self.model.take(&state, step);
            words.push(self.model.words(&state, step, &after));
            state = after;
        }
        Schedule {
            invariant,
            steps: words,
        }
    }

    fn search(&self, depth: usize, verdict: Verdict) -> Search {
        Search {
            states: self.origins.len(),
            steps: self.taken,
            depth,
            verdict,
        }
    }
}

/// Hashes a state into 64 bits: for every eight bytes, a 128-bit product folded to 64 bits.
#[derive(Default)]
struct Fingerprint(u64);

impl Fingerprint {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ 0x9e37_79b9_7f4a_7c15) * u128::from(word ^ 0xd6e8_feb8_6659_fd93);
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(17);
    }
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut eight = [0; 8];
            eight.copy_from_slice(word);
            self.mix(u64::from_le_bytes(eight));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(eight));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }
    fn write_u16(&mut self, value: u16) {
        self.mix(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    fn finish(&self) -> u64 {
        let mut last = Self(self.0);
        last.mix(0x2545_f491_4f6c_dd1d);
        last.mix(0x9e6c_63d0_876a_68f5);
        last.0
    }
}

/// Identity hasher for the table: a fingerprint is already well mixed.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed, and they are u64");
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
