//! What others see of an entity: from the real entity to a ghost, and from the ghost through a witness to a client.
//!
//! The real entity has events 1, 2, 3, each logged before anything is sent. Its owner sends them to the ghost's owner,
//! where a witness writes frames for a client: the entity enters the view, changes, leaves the view. Either side may
//! get a new holder: the real entity by hand-over or restart, the witness by take-over. Messages in flight may be late,
//! repeated, or reordered; losses are limited by a budget. The rules are V1 to V3, and E7.
//!
//! An observer's state is represented by the set of events in it. Only a set without gaps is a state that the entity
//! had.

pub mod exhibits;
mod frame;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};
use frame::{Frame, Frames, Shows};

/// Events of the entity.
const MOST_EVENTS: u8 = 3;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct ViewBounds {
    /// Events of the entity: at most 3.
    pub events: u8,
    /// Number of times that the entity enters or leaves the view.
    pub turns: u8,
    /// New holders of the real entity.
    pub moves: u8,
    /// New holders of the witness.
    pub takeovers: u8,
    /// Whether old events are trimmed from the history.
    pub trims: bool,
    /// Faults; drops count here.
    pub faults: Faults,
}

/// The model of views.
#[derive(Debug, Clone, Copy)]
pub struct ViewModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: ViewBounds,
}

/// An observer's state of the entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Sight {
    /// Its history number.
    pub(crate) upto: u8,
    /// The events contained in it, as a bit set.
    pub(crate) events: u8,
}

impl Sight {
    /// Whether the entity was ever in this state: each event requires all events before it.
    fn ever_was(self) -> bool {
        (self.events + 1).is_power_of_two()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Ghost {
    sees: Sight,
    /// It has found a gap, and asks the real entity.
    asks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Witness {
    epoch: u8,
    /// Number of the view that it writes; 0 until the client has requested one.
    view: u8,
    next_frame: u8,
    /// The client's state, assuming that every frame arrives.
    believes: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Client {
    epoch: u8,
    view: u8,
    next_frame: u8,
    sees: Option<Sight>,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewState {
    real: Sight,
    /// By history number: the event that has it. And the number up to which the history is trimmed.
    history: [u8; MOST_EVENTS as usize],
    trimmed: u8,
    made: u8,
    /// Bit set over (number, event): events in flight to the ghost.
    events: u16,
    /// The image in flight to the ghost.
    image: Option<Sight>,
    ghost: Ghost,
    is_near: bool,
    witness: Witness,
    client: Client,
    frames: Frames,
    turns: u8,
    moves: u8,
    takeovers: u8,
    left: Faults,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum ViewStep {
    /// The entity has an event, and its owner sends it to the ghost's owner.
    Event,
    /// The real entity has a new holder.
    Move,
    /// The oldest event is trimmed from the history.
    TrimHistory,
    /// An event reaches the ghost: number, event.
    EventArrives(u8, u8),
    /// An event in flight to the ghost is lost.
    LoseEvent(u8, u8),
    /// The ghost's owner receives the newest history number.
    Beat,
    /// The ghost asks, and the real entity sends an image.
    AskReal,
    /// The image reaches the ghost.
    ImageArrives,
    /// The entity enters or leaves the view.
    Turn,
    /// The witness writes a frame.
    Write,
    /// A frame reaches the client, by index.
    FrameArrives(u8),
    /// A frame is lost, by index.
    LoseFrame(u8),
    /// The witness has a new holder.
    TakeOver,
    /// The client is notified of the new holder.
    NotifyOfHolder,
    /// The client names its state, and a new view begins.
    BeginView,
    /// The client receives the newest frame number (V3), misses a frame, and requests a new view.
    FrameBeat,
}

impl Model for ViewModel {
    type State = ViewState;
    type Step = ViewStep;

    fn start(&self) -> ViewState {
        ViewState {
            real: Sight::default(),
            history: [0; MOST_EVENTS as usize],
            trimmed: 0,
            made: 0,
            events: 0,
            image: None,
            ghost: Ghost::default(),
            is_near: true,
            witness: Witness {
                epoch: 1,
                view: 1,
                ..Witness::default()
            },
            client: Client {
                epoch: 1,
                view: 1,
                next_frame: 0,
                sees: None,
            },
            frames: Frames::default(),
            turns: self.bounds.turns,
            moves: self.bounds.moves,
            takeovers: self.bounds.takeovers,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &ViewState, steps: &mut Vec<ViewStep>) {
        self.ghost_steps(state, steps);
        self.view_steps(state, steps);
    }

    fn take(&self, state: &ViewState, step: ViewStep) -> ViewState {
        let mut after = *state;
        self.happen(&mut after, step);
        self.forget_the_irrelevant(&mut after);
        after
    }

    fn broken(&self, state: &ViewState) -> Option<Invariant> {
        let seen = state.client.sees.is_none_or(Sight::ever_was) && state.ghost.sees.ever_was();
        (!seen).then_some(Invariant::SeenIsTrue)
    }

    fn words(&self, state: &ViewState, step: ViewStep, after: &ViewState) -> String {
        words::words(state, step, after)
    }

    /// The ghost has every event, and the client sees the current state of the entity if it is near, and nothing
    /// otherwise.
    fn settled(&self, state: &ViewState) -> bool {
        let due = state.is_near.then_some(state.real.events);
        let seen = state.client.sees.map(|sight| sight.events);
        state.ghost.sees.events == state.real.events && seen == due && state.client.epoch == state.witness.epoch
    }

    fn is_fault(&self, step: ViewStep) -> bool {
        matches!(
            step,
            ViewStep::Event
                | ViewStep::Move
                | ViewStep::TrimHistory
                | ViewStep::LoseEvent(..)
                | ViewStep::Turn
                | ViewStep::LoseFrame(_)
                | ViewStep::TakeOver
        )
    }
}

fn event_bit(number: u8, event: u8) -> u16 {
    1 << (number * (MOST_EVENTS + 1) + event)
}

impl ViewModel {
    fn ghost_steps(&self, state: &ViewState, steps: &mut Vec<ViewStep>) {
        if state.made < self.bounds.events {
            steps.push(ViewStep::Event);
        }
        if state.moves > 0 {
            steps.push(ViewStep::Move);
        }
        if self.bounds.trims && state.trimmed < state.real.upto {
            steps.push(ViewStep::TrimHistory);
        }
        for number in 1..=MOST_EVENTS {
            for event in 1..=MOST_EVENTS {
                if state.events & event_bit(number, event) == 0 {
                    continue;
                }
                if number > state.ghost.sees.upto {
                    steps.push(ViewStep::EventArrives(number, event));
                }
                if state.left.drops > 0 {
                    steps.push(ViewStep::LoseEvent(number, event));
                }
            }
        }
        let behind = state.ghost.sees.upto < state.real.upto;
        if behind && !state.ghost.asks && self.rules.has(Rule::V2Beat) {
            steps.push(ViewStep::Beat);
        }
        if state.ghost.asks {
            steps.push(ViewStep::AskReal);
        }
        if state.image.is_some() {
            steps.push(ViewStep::ImageArrives);
        }
    }

    fn view_steps(&self, state: &ViewState, steps: &mut Vec<ViewStep>) {
        if state.turns > 0 {
            steps.push(ViewStep::Turn);
        }
        if state.witness.view > 0 && self.next_frame(state).is_some() && !state.frames.is_full() {
            steps.push(ViewStep::Write);
        }
        for index in 0..state.frames.len() {
            if self.is_looked_at(&state.client, state.frames.at(index)) {
                steps.push(ViewStep::FrameArrives(index));
            }
            if state.left.drops > 0 {
                steps.push(ViewStep::LoseFrame(index));
            }
        }
        if state.takeovers > 0 {
            steps.push(ViewStep::TakeOver);
        }
        if state.client.epoch != state.witness.epoch {
            steps.push(ViewStep::NotifyOfHolder);
        } else if state.witness.view < state.client.view {
            steps.push(ViewStep::BeginView);
        } else if state.witness.next_frame > state.client.next_frame && !Self::is_coming(state) && self.is_missed() {
            steps.push(ViewStep::FrameBeat);
        }
    }

    /// V3: whether a client can detect that it lacks the newest frame.
    fn is_missed(&self) -> bool {
        self.rules.has(Rule::V3Beat) && self.rules.has(Rule::V3Frames)
    }

    /// Whether the frame that the client waits for is in flight.
    fn is_coming(state: &ViewState) -> bool {
        let client = &state.client;
        (0..state.frames.len())
            .map(|index| state.frames.at(index))
            .any(|frame| (frame.epoch, frame.view, frame.number) == (client.epoch, client.view, client.next_frame))
    }

    /// E7, and the numbers of V3: whether the client considers a frame, rather than ignoring it.
    fn is_looked_at(&self, client: &Client, frame: Frame) -> bool {
        let epoch = frame.epoch == client.epoch || frame.epoch < client.epoch && !self.rules.has(Rule::E7LowerDropped);
        let number = frame.number >= client.next_frame || !self.rules.has(Rule::V3Frames);
        epoch && frame.view == client.view && number
    }

    /// Drops frames that the client will ignore, so that equivalent states are equal.
    fn forget_the_irrelevant(&self, state: &mut ViewState) {
        let client = state.client;
        let numbered = self.rules.has(Rule::V3Frames);
        let lower_dropped = self.rules.has(Rule::E7LowerDropped);
        state.frames.retain(|frame| {
            let to_come = frame.view > client.view
                || frame.view == client.view && (frame.number >= client.next_frame || !numbered);
            frame.epoch > client.epoch || to_come && (frame.epoch == client.epoch || !lower_dropped)
        });
    }

    /// The next content to send, according to what the witness believes that the client has.
    fn next_frame(&self, state: &ViewState) -> Option<Shows> {
        let ghost = state.ghost.sees;
        match (state.is_near, state.witness.believes) {
            (true, None) => Some(Shows::Whole(ghost)),
            (true, Some(upto)) if upto < ghost.upto => {
                if upto < state.trimmed && self.rules.has(Rule::V3Refresh) {
                    return Some(Shows::Whole(ghost));
                }
                let kept = upto.max(state.trimmed)..ghost.upto;
                let events = kept.map(|index| 1 << (state.history[usize::from(index)] - 1)).sum();
                Some(Shows::Update {
                    from: upto,
                    to: Sight {
                        upto: ghost.upto,
                        events,
                    },
                })
            }
            (false, Some(_)) => Some(Shows::Leave),
            _ => None,
        }
    }

    fn happen(&self, state: &mut ViewState, step: ViewStep) {
        match step {
            ViewStep::Event => self.make_event(state),
            ViewStep::Move => {
                state.moves -= 1;
                if !self.rules.has(Rule::V1Continued) {
                    state.real.upto = 0;
                    state.trimmed = 0;
                }
            }
            ViewStep::TrimHistory => state.trimmed += 1,
            ViewStep::EventArrives(number, event) => self.take_event(state, number, event),
            ViewStep::LoseEvent(number, event) => {
                spend(&mut state.left.drops);
                state.events &= !event_bit(number, event);
            }
            ViewStep::Beat => state.ghost.asks = true,
            ViewStep::AskReal => {
                state.ghost.asks = false;
                state.image = Some(state.real);
            }
            ViewStep::ImageArrives => {
                if let Some(image) = state.image.take()
                    && image.upto >= state.ghost.sees.upto
                {
                    state.ghost.sees = image;
                }
            }
            ViewStep::Turn => {
                state.turns -= 1;
                state.is_near = !state.is_near;
            }
            ViewStep::Write => self.write(state),
            ViewStep::FrameArrives(index) => self.read_frame(state, state.frames.at(index)),
            ViewStep::LoseFrame(index) => {
                spend(&mut state.left.drops);
                state.frames.remove(index);
            }
            ViewStep::TakeOver => {
                state.takeovers -= 1;
                state.witness = Witness {
                    epoch: state.witness.epoch + 1,
                    ..Witness::default()
                };
            }
            ViewStep::NotifyOfHolder => {
                state.client.epoch = state.witness.epoch;
                state.client.view = 1;
                state.client.next_frame = 0;
            }
            ViewStep::BeginView => {
                state.witness.view = state.client.view;
                state.witness.next_frame = 0;
                if self.rules.has(Rule::V3Stamps) {
                    state.witness.believes = state.client.sees.map(|sight| sight.upto);
                }
            }
            ViewStep::FrameBeat => state.client.ask_anew(),
        }
    }

    fn make_event(&self, state: &mut ViewState) {
        state.made += 1;
        state.real.upto += 1;
        state.real.events |= 1 << (state.made - 1);
        state.history[usize::from(state.real.upto) - 1] = state.made;
        state.events |= event_bit(state.real.upto, state.made);
    }

    /// V2: takes the next event; one beyond a gap makes the ghost ask.
    fn take_event(&self, state: &mut ViewState, number: u8, event: u8) {
        let ghost = &mut state.ghost;
        if number == ghost.sees.upto + 1 || !self.rules.has(Rule::V2Gap) {
            ghost.sees = Sight {
                upto: number,
                events: ghost.sees.events | 1 << (event - 1),
            };
        } else {
            ghost.asks = true;
        }
    }

    fn write(&self, state: &mut ViewState) {
        let Some(shows) = self.next_frame(state) else { return };
        let witness = &mut state.witness;
        state.frames.add(Frame {
            epoch: witness.epoch,
            view: witness.view,
            number: witness.next_frame,
            shows,
        });
        witness.next_frame += 1;
        witness.believes = match shows {
            Shows::Whole(sight) | Shows::Update { to: sight, .. } => Some(sight.upto),
            Shows::Leave => None,
        };
    }

    /// V3: applies the next frame of the view, and an update only to an entity that is in the view.
    fn read_frame(&self, state: &mut ViewState, frame: Frame) {
        let client = &mut state.client;
        if frame.number > client.next_frame && self.rules.has(Rule::V3Frames) {
            client.ask_anew();
            return;
        }
        match frame.shows {
            Shows::Whole(sight) => client.sees = Some(sight),
            Shows::Update { from, to } => {
                let fits = client.sees.is_some_and(|sight| sight.upto == from);
                if !fits && self.rules.has(Rule::V3From) {
                    client.ask_anew();
                    return;
                }
                let events = client.sees.map_or(0, |sight| sight.events) | to.events;
                client.sees = Some(Sight { upto: to.upto, events });
            }
            Shows::Leave => client.sees = None,
        }
        client.next_frame = frame.number + 1;
    }
}

impl Client {
    fn ask_anew(&mut self) {
        self.view += 1;
        self.next_frame = 0;
    }
}
