//! A planned hand-over: a process drains, and another one takes its owner over while the owner's clients go along.
//!
//! A holds an owner and drains. The director plans who follows the owner, the follower reads until it is at the end of
//! the log, and A sends the owner's client there and releases the owner. What is at stake is the client: it has left A
//! on A's word, so the process to which it was sent must serve it. A process exchanges its state and the director's
//! orders in beats; an answer may be lost, so that the director knows what the process does not. The rule is D9. That the
//! log survives the change of holders is part of the log's model.

pub mod exhibits;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Processes: A, B and C. A drains from the beginning, and C never does.
const PROCESSES: usize = 3;

const A: usize = 0;
const B: usize = 1;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct MovingBounds {
    /// Whether B may begin to drain, too.
    pub drains: bool,
    /// Number of times that a follower that was ready is behind, or has to begin again.
    pub lags: u8,
    /// Number of times that another director begins to lead, with an empty memory.
    pub directors: u8,
    /// Faults; crashes of B and lost answers count here.
    pub faults: Faults,
}

/// The model of planned hand-overs.
#[derive(Debug, Clone, Copy)]
pub struct MovingModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: MovingBounds,
}

/// Whether a process follows the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Follows {
    #[default]
    No,
    /// It is not at the end of the log.
    Behind,
    Ready,
}

/// A process, as it is, or as it was in its last report to the director.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Process {
    drains: bool,
    /// Whether it serves the owner.
    holds: bool,
    follows: Follows,
    /// The process to which it has been ordered to hand the owner over.
    ordered: Option<usize>,
    /// Whether it has released the owner.
    released: bool,
}

/// Where the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Client {
    /// At the holder.
    Served(usize),
    /// At the process to which the holder has sent it.
    Waits(usize),
    /// The process to which it was sent has sent it away.
    Refused(usize),
    /// The process at which it was has died, so it locates the owner.
    Locates,
}

/// The director that leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Director {
    reports: [Option<Process>; PROCESSES],
    /// The process that is to hold the owner next.
    plan: Option<usize>,
    /// Whether every process that lives has had the time to report to it.
    has_all_reports: bool,
    /// Whether it knows that the holder in the store has died.
    knows_died: bool,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MovingState {
    /// `None` once it has ended.
    processes: [Option<Process>; PROCESSES],
    /// The holder and whether it has released the owner, as in the store.
    holder: usize,
    is_released: bool,
    director: Director,
    client: Client,
    may_drain: bool,
    lags: u8,
    directors: u8,
    left: Faults,
}

/// A step. Processes are named by index.
#[derive(Debug, Clone, Copy)]
pub enum MovingStep {
    /// A process reports to the director and carries out its orders.
    Beat {
        process: usize,
        /// The process that the director plans, if it has to choose one.
        chosen: Option<usize>,
        /// Whether the answer is lost.
        is_lost: bool,
    },
    /// A follower reaches the end of the log.
    CatchUp(usize),
    /// A follower is behind, or has to begin again.
    Lag(usize),
    /// A process releases the owner.
    Release(usize),
    /// A process that drains ends, and says so.
    Leave(usize),
    /// The director grants the owner.
    Grant { to: usize, chosen: Option<usize> },
    /// Every process had the time to report to the new director.
    ReceiveAllReports,
    /// Another process begins to drain.
    Drain,
    /// Another process dies.
    Crash,
    /// Another director leads.
    Replace,
}

impl Model for MovingModel {
    type State = MovingState;
    type Step = MovingStep;

    fn start(&self) -> MovingState {
        let mut processes = [Some(Process::default()); PROCESSES];
        processes[A] = Some(Process {
            drains: true,
            holds: true,
            ..Process::default()
        });
        let director = Director {
            reports: processes,
            has_all_reports: true,
            ..Director::default()
        };
        MovingState {
            processes,
            holder: A,
            is_released: false,
            director,
            client: Client::Served(A),
            may_drain: self.bounds.drains,
            lags: self.bounds.lags,
            directors: self.bounds.directors,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &MovingState, steps: &mut Vec<MovingStep>) {
        for (process, found) in state.processes.iter().enumerate() {
            let Some(found) = found else { continue };
            let mut director = state.director;
            director.reports[process] = Some(*found);
            for chosen in self.choices(&director, state.holder) {
                let beat = |is_lost| MovingStep::Beat {
                    process,
                    chosen,
                    is_lost,
                };
                steps.push(beat(false));
                if state.left.drops > 0 {
                    steps.push(beat(true));
                }
            }
            let is_done = found.drains && !found.holds && found.follows == Follows::No;
            let ways = [
                (found.follows == Follows::Behind, MovingStep::CatchUp(process)),
                (
                    found.follows == Follows::Ready && state.lags > 0,
                    MovingStep::Lag(process),
                ),
                (found.holds && found.ordered.is_some(), MovingStep::Release(process)),
                (is_done && state.is_settled_for(process), MovingStep::Leave(process)),
            ];
            steps.extend(ways.into_iter().filter(|(is_open, _)| *is_open).map(|(_, step)| step));
        }
        for chosen in self.choices(&state.director, state.holder) {
            let grants = self.grants(state, chosen);
            steps.extend(grants.into_iter().map(|to| MovingStep::Grant { to, chosen }));
        }
        let director = &state.director;
        let lives = |process: usize| state.processes[process].is_some();
        let all = (0..PROCESSES).all(|process| director.reports[process].is_some() || !lives(process));
        let ways = [
            (all && !director.has_all_reports, MovingStep::ReceiveAllReports),
            (state.may_drain && lives(B), MovingStep::Drain),
            (state.left.crashes > 0 && lives(B), MovingStep::Crash),
            (state.directors > 0, MovingStep::Replace),
        ];
        steps.extend(ways.into_iter().filter(|(is_open, _)| *is_open).map(|(_, step)| step));
    }

    fn take(&self, state: &MovingState, step: MovingStep) -> MovingState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &MovingState) -> Option<Invariant> {
        matches!(state.client, Client::Refused(_)).then_some(Invariant::MovedIsServed)
    }

    fn words(&self, state: &MovingState, step: MovingStep, after: &MovingState) -> String {
        words::of(state, step, after)
    }

    /// A process that does not drain serves the owner, and its client.
    fn settled(&self, state: &MovingState) -> bool {
        let holder = state.processes[state.holder].filter(|holder| holder.holds && !holder.drains);
        let is_served = matches!(state.client, Client::Served(_) | Client::Locates);
        holder.is_some() && is_served
    }

    fn is_fault(&self, step: MovingStep) -> bool {
        let is_lost = matches!(step, MovingStep::Beat { is_lost: true, .. });
        is_lost
            || matches!(
                step,
                MovingStep::Lag(_) | MovingStep::Drain | MovingStep::Crash | MovingStep::Replace
            )
    }
}

impl MovingModel {
    fn happen(&self, state: &mut MovingState, step: MovingStep) {
        match step {
            MovingStep::Beat {
                process,
                chosen,
                is_lost,
            } => {
                state.director.reports[process] = state.processes[process];
                self.plan(&mut state.director, state.holder, chosen);
                if is_lost {
                    spend(&mut state.left.drops);
                } else {
                    self.order(state, process);
                }
            }
            MovingStep::CatchUp(process) => state.change(process, |found| found.follows = Follows::Ready),
            MovingStep::Lag(process) => {
                state.lags -= 1;
                state.change(process, |found| found.follows = Follows::Behind);
            }
            MovingStep::Release(process) => {
                // In the store, only if its epoch is still the owner's.
                state.is_released |= state.holder == process;
                state.change(process, |found| (found.holds, found.released) = (false, true));
            }
            MovingStep::Leave(process) => {
                (state.processes[process], state.director.reports[process]) = (None, None);
            }
            MovingStep::Grant { to, chosen } => {
                self.plan(&mut state.director, state.holder, chosen);
                (state.holder, state.is_released) = (to, false);
                state.director.knows_died = false;
            }
            MovingStep::ReceiveAllReports => state.director.has_all_reports = true,
            MovingStep::Drain => {
                state.may_drain = false;
                state.change(B, |found| found.drains = true);
            }
            MovingStep::Crash => {
                spend(&mut state.left.crashes);
                (state.processes[B], state.director.reports[B]) = (None, None);
                state.director.knows_died |= state.holder == B && !state.is_released;
                if matches!(state.client, Client::Served(B) | Client::Waits(B)) {
                    state.client = Client::Locates;
                }
            }
            MovingStep::Replace => {
                state.directors -= 1;
                state.director = Director {
                    knows_died: state.processes[state.holder].is_none() && !state.is_released,
                    ..Director::default()
                };
            }
        }
    }

    /// The processes that the director may choose from to plan; `None` if it need not or cannot.
    fn choices(&self, director: &Director, holder: usize) -> Vec<Option<usize>> {
        let mut planned = *director;
        self.plan(&mut planned, holder, None);
        let drains = director.reports[holder].is_some_and(|holder| holder.drains);
        let may_choose = director.has_all_reports || !self.rules.has(Rule::D9Waits);
        let free: Vec<Option<usize>> = director.free(holder).map(Some).collect();
        if planned.plan.is_some() || !drains || !may_choose || free.is_empty() {
            return vec![None];
        }
        free
    }

    /// Plans who holds the owner next, if its holder drains or has left.
    fn plan(&self, director: &mut Director, holder: usize, chosen: Option<usize>) {
        let report = director.reports[holder];
        let drains = report.is_some_and(|holder| holder.drains);
        let able = |process: &usize| *process != holder && self.is_able(director, *process);
        let planned = director.plan.filter(able);
        let found = self.follower(director).filter(|process| *process != holder);
        director.plan = match (report, drains) {
            (Some(_), false) => None,
            (Some(_), true) => planned.or(found).or(chosen),
            (None, _) => planned.or(found).filter(|_| self.rules.has(Rule::D9Granted)),
        };
    }

    /// A process that has reported that it follows the owner: another director may have planned it.
    fn follower(&self, director: &Director) -> Option<usize> {
        let follows = |found: &Option<Process>| found.is_some_and(|found| self.is_following(found));
        let found = director.reports.iter().position(follows);
        found.filter(|_| self.rules.has(Rule::D9Found))
    }

    /// Whether a process can take the owner over: also one that drains, if it follows the owner.
    fn is_able(&self, director: &Director, process: usize) -> bool {
        director.reports[process].is_some_and(|found| !found.drains || self.is_following(found))
    }

    /// Whether a process counts as a follower, by its report.
    fn is_following(&self, found: Process) -> bool {
        match found.follows {
            Follows::No => false,
            Follows::Behind => self.rules.has(Rule::D9Behind),
            Follows::Ready => true,
        }
    }

    /// The processes to which the owner may be granted now.
    fn grants(&self, state: &MovingState, chosen: Option<usize>) -> Vec<usize> {
        let mut director = state.director;
        self.plan(&mut director, state.holder, chosen);
        let Some(holder) = director.reports[state.holder] else {
            let next = director.plan.or(self.follower(&director));
            let is_gone = director.has_all_reports || director.knows_died;
            let may_choose = is_gone || state.is_released && !self.rules.has(Rule::D9WaitsToGrant);
            return match next {
                Some(process) if is_gone || state.is_released => vec![process],
                None if may_choose => director.free(state.holder).collect(),
                _ => Vec::new(),
            };
        };
        let has_released = holder.released && state.is_released;
        director.plan.filter(|_| has_released).into_iter().collect()
    }

    /// A process carries out the director's orders.
    fn order(&self, state: &mut MovingState, process: usize) {
        let director = state.director;
        let report = director.reports[process].unwrap_or_default();
        let keeps = !director.has_all_reports && self.is_following(report) && self.rules.has(Rule::D9Keeps);
        let is_holder = state.holder == process;
        let is_next = !is_holder && (director.plan == Some(process) || keeps);
        let is_granted = is_holder && !state.is_released;
        if is_granted && !report.holds {
            state.change(process, |found| (found.holds, found.released) = (true, false));
            if state.client == Client::Waits(process) {
                state.client = Client::Served(process);
            }
        }
        let follows = match report.follows {
            _ if !is_next => Follows::No,
            Follows::No => Follows::Behind,
            follows => follows,
        };
        state.change(process, |found| found.follows = follows);
        if !is_next && !is_granted && state.client == Client::Waits(process) {
            state.client = Client::Refused(process);
        }
        if report.holds && report.drains {
            let is_ready = |next: &usize| {
                let next = director.reports[*next];
                next.is_some_and(|next| next.follows == Follows::Ready || !self.rules.has(Rule::D9Ready))
            };
            let next = director.plan.filter(|_| is_holder).filter(is_ready);
            state.hand_over(process, next);
        }
    }
}

impl Director {
    /// The processes other than the holder that may be granted owners.
    fn free(&self, holder: usize) -> impl Iterator<Item = usize> {
        let able = self.reports.into_iter().enumerate();
        let able = able.filter(|(_, found)| found.is_some_and(|found| !found.drains));
        able.map(|(process, _)| process)
            .filter(move |process| *process != holder)
    }
}

impl MovingState {
    fn change(&mut self, process: usize, change: impl FnOnce(&mut Process)) {
        if let Some(found) = &mut self.processes[process] {
            change(found);
        }
    }

    /// Whether a process that drains has nothing more to hand over, by the store.
    fn is_settled_for(&self, process: usize) -> bool {
        self.holder != process || self.is_released
    }

    /// The holder sends the client to the next holder, or is not to hand the owner over.
    fn hand_over(&mut self, process: usize, next: Option<usize>) {
        let Some(next) = next else {
            return self.change(process, |found| found.ordered = None);
        };
        if self.processes[process].is_some_and(|found| found.ordered.is_some()) {
            return;
        }
        self.change(process, |found| {
            found.ordered = Some(next);
        });
        if self.client == Client::Served(process) {
            let follows = self.processes[next].is_some_and(|next| next.follows != Follows::No);
            self.client = match (self.processes[next], follows) {
                (None, _) => Client::Locates,
                (Some(_), true) => Client::Waits(next),
                (Some(_), false) => Client::Refused(next),
            };
        }
    }
}
