//! The parade: at the end of a realm with moving borders, everything is at rest except for changes made here, round by
//! round: a border is moved, a player moves, in one round a cell process crashes. When everything has come to rest
//! again, each player must see what it would with one large cell ([`crate::one_cell`]), and must have received nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};

use annals_client::Event;
use annals_ids::{Direction, EntityId, Part, Position};

use super::{Core, Service, Step, World};
use crate::{
    fault::{Blow, Kind},
    game::SPACE,
    one_cell::{Sight, Spot, Trace, Verdict, View, judge, stayed},
};

/// Number of rounds.
const ROUNDS: u64 = 6;

/// The round in which a cell process crashes.
const DEADLY: u64 = 3;

/// Duration of a round, milliseconds: until what was in view before the last of several hand-overs has left it, 3 s;
/// after a crash, until the process is declared dead, its owners are taken over, and views have settled.
const ROUND_MS: u64 = 9_000;
const DEADLY_ROUND_MS: u64 = 18_000;

/// Duration of the parade.
pub(super) const PARADE_MS: u64 = (ROUNDS - 1) * ROUND_MS + DEADLY_ROUND_MS;

/// Number of attempts to crash while an entity is in transit, and microseconds between two.
const TRIES: u64 = 4_000;
const BETWEEN_TRIES: u64 = 500;

/// Interval between samples of all positions, microseconds.
const GLANCE: u64 = 20_000;

/// Tolerance of positions in a client's view, metres: movements are encoded with fewer bits than positions.
const BLUR: f32 = 0.75;

/// Statistics of a parade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marched {
    /// Number of rounds.
    pub rounds: u64,
    /// Pairs of observer and body whose visibility was determined.
    pub judged: u64,
    /// Pairs determined by earlier visibility, through the hysteresis.
    pub held: u64,
    /// Pairs for which nothing was claimed.
    pub open: u64,
}

/// Observations of the parade, and its violations.
#[derive(Debug, Default)]
pub struct Parade {
    traces: BTreeMap<EntityId, Trace>,
    /// By observer.
    views: BTreeMap<EntityId, View>,
    /// Number of events that each client had received when the round began.
    received: Vec<usize>,
    /// Its statistics.
    pub marched: Marched,
    /// Differences from what one large cell would have shown.
    pub wrong: Vec<String>,
}

impl World {
    /// Ends a round and begins the next.
    pub(super) fn march(&mut self, round: u64) {
        self.glance_once();
        self.compare(round);
        if round == ROUNDS {
            return;
        }
        if round == 0 {
            self.after(GLANCE, Step::Glance);
        }
        self.parade.received = self.clients.iter().map(|client| client.events.len()).collect();
        let moves = self.between(300_000, 900_000);
        self.after(moves, Step::MoveBorders);
        let mut sent = None;
        for _ in 0..1 + self.roll() % 2 {
            sent = self.send_somewhere(sent);
        }
        if self.plan.squints().is_some() {
            self.have_squint();
        }
        let is_deadly = round + 1 == DEADLY;
        if is_deadly || round == ROUNDS / 2 + 1 {
            self.send_through();
        }
        if is_deadly {
            let at = self.between(0, 1_500_000);
            let dice = self.roll();
            self.after(at, Step::StrikeParade { dice, tries: TRIES });
        }
        let length = if is_deadly { DEADLY_ROUND_MS } else { ROUND_MS };
        self.after(length * 1_000, Step::March { round: round + 1 });
    }

    /// Crashes a cell process while an entity is in transit from it or to it, if possible.
    pub(super) fn strike_parade(&mut self, dice: u64, tries: u64) {
        let mut own = annals_def::split_mix(dice);
        if tries == 0 || !self.under_way().is_empty() {
            // A place that an entity took since the last sample may be lost with its holder, after it was shown.
            self.glance_once();
        }
        if self.crash_midway(&mut own).is_some() {
            self.count(Kind::Blow(Blow::CrashMidway));
        } else if tries > 0 {
            let tries = tries - 1;
            self.after(BETWEEN_TRIES, Step::StrikeParade { dice, tries });
        } else if self.crash(Service::Cell, &mut own).is_some() {
            self.count(Kind::Blow(Blow::CrashCell));
        }
    }

    /// Changes a player's AoI radius.
    fn have_squint(&mut self) {
        let client = (self.roll() % self.clients.len() as u64) as usize;
        self.call(client, "mark", Part::Cell);
        self.drain_client(client);
    }

    /// Teleports a player to the other space.
    fn send_through(&mut self) {
        let playing: Vec<usize> = (0..self.clients.len())
            .filter(|client| self.observer(*client).is_some())
            .collect();
        if !playing.is_empty() {
            let client = playing[(self.roll() % playing.len() as u64) as usize];
            self.call(client, "leap", Part::Cell);
            self.drain_client(client);
        }
    }

    /// Samples all positions, repeatedly.
    pub(super) fn glance(&mut self) {
        self.glance_once();
        self.after(GLANCE, Step::Glance);
    }

    fn glance_once(&mut self) {
        let Some(common) = self.sight() else { return };
        for (entity, spot, appeal, area) in self.bodies() {
            let trace = self.parade.traces.entry(entity).or_default();
            trace.appeal = appeal;
            trace.note(spot);
            trace.look(area.unwrap_or(common));
        }
    }

    /// All visible entities: position, appeal, and range if it was changed.
    fn bodies(&self) -> Vec<(EntityId, Spot, f32, Option<Sight>)> {
        let held = self.processes.values().flat_map(|process| process.owners.values());
        let cells = held.filter_map(|held| match &held.core {
            Some(Core::Cell(owner)) if owner.stopped().is_none() => Some(owner.cx()),
            _ => None,
        });
        let bodies = cells.flat_map(|cx| {
            cx.places().filter_map(|(entity, place)| {
                let entity_type = cx.entity_type(entity)?;
                let area = cx.image(entity)?.cell()?.sight.area;
                let sight = area.map(|area| Sight {
                    radius: area.radius,
                    hysteresis: area.hysteresis,
                });
                let spot = (place.space, place.position);
                Some((entity, spot, entity_type.appeal_radius, sight))
            })
        });
        bodies.collect()
    }

    /// Moves a player near another, or just out of view, or in between; returns the player. One that was `sent` in this
    /// round already stays: of two places that it takes at the same time, the first may be lost between two samples.
    fn send_somewhere(&mut self, sent: Option<usize>) -> Option<usize> {
        let sight = self.sight()?;
        let playing: Vec<usize> = (0..self.clients.len())
            .filter(|client| self.observer(*client).is_some())
            .collect();
        let bodies = self.bodies();
        if playing.is_empty() || bodies.len() < 2 {
            return sent;
        }
        let client = playing[(self.roll() % playing.len() as u64) as usize];
        let (body, (space, to), appeal, _) = bodies[(self.roll() % bodies.len() as u64) as usize];
        let own = bodies.iter().find(|(own, ..)| self.observer(client) == Some(*own));
        let is_elsewhere = own.is_none_or(|(own, (own_space, _), ..)| *own == body || *own_space != space);
        if is_elsewhere || sent == Some(client) {
            return sent;
        }
        let reach = sight.radius + appeal;
        let far = [
            reach / 2.0,
            reach + sight.hysteresis / 2.0,
            reach + sight.hysteresis + 8.0,
        ];
        let far = far[(self.roll() % 3) as usize];
        let side = (self.roll() % 200) as f32 / 100.0 - 1.0;
        let (x, z) = match self.roll() % 4 {
            0 => (far, side * far),
            1 => (-far, side * far),
            2 => (side * far, far),
            _ => (side * far, -far),
        };
        let position = Position {
            x: to.x + x,
            y: 0.0,
            z: to.z + z,
        };
        // A teleported client's position is accepted once the client has sent one from there.
        self.stand(client);
        self.after(400_000, Step::SetOut { client, position });
        Some(client)
    }

    fn stand(&mut self, client: usize) {
        let core = &self.clients[client].core;
        let own = core.controls().and_then(|(entity, _)| core.entity(entity));
        if let Some((position, _)) = own.and_then(|seen| seen.place) {
            self.set_out(client, position);
        }
    }

    pub(super) fn set_out(&mut self, client: usize, position: Position) {
        let now = self.millis();
        self.clients[client].core.move_to(now, position, Direction::default());
        self.drain_client(client);
    }

    fn sight(&self) -> Option<Sight> {
        let space = self.map.spaces.get(&SPACE)?;
        Some(Sight {
            radius: space.aoi_radius,
            hysteresis: space.aoi_hysteresis,
        })
    }

    /// The entity of a playing client.
    fn observer(&self, client: usize) -> Option<EntityId> {
        let core = &self.clients[client].core;
        let (own, _) = core.controls().filter(|_| core.is_playing())?;
        self.parade.traces.contains_key(&own).then_some(own)
    }

    /// Compares all views with the reference model of one large cell.
    fn compare(&mut self, round: u64) {
        let real: BTreeSet<EntityId> = self.bodies().into_iter().map(|(entity, ..)| entity).collect();
        self.parade.traces.retain(|entity, _| real.contains(entity));
        let mut views = BTreeMap::new();
        for client in 0..self.clients.len() {
            let Some(own) = self.observer(client) else { continue };
            let seen = self.clients[client].core.view(Part::Cell).entities().iter();
            let seen: View = seen.map(|(entity, seen)| (*entity, seen.upto)).collect();
            let before = self.parade.views.get(&own).unwrap_or(&seen).clone();
            let mut wrong = self.misjudged(own, (&before, &seen));
            wrong.extend(self.misplaced(client, own));
            if round > 0 {
                wrong.extend(self.noticed(client, own, &before));
            }
            let violations = wrong
                .into_iter()
                .map(|what| format!("round {round}: client {client} {what}"));
            self.parade.wrong.extend(violations);
            views.insert(own, seen);
        }
        self.parade.views = views;
        self.parade.marched.rounds += u64::from(round > 0);
        self.parade.traces.values_mut().for_each(Trace::rest);
    }

    fn misjudged(&mut self, own: EntityId, (before, seen): (&View, &View)) -> Vec<String> {
        let (traces, marched) = (&self.parade.traces, &mut self.parade.marched);
        let mut wrong = Vec::new();
        for (body, trace) in traces.iter().filter(|(body, _)| **body != own) {
            let verdict = judge(&traces[&own], trace, before.contains_key(body));
            match verdict.is_seen() {
                None => marched.open += 1,
                Some(is_seen) => {
                    marched.judged += 1;
                    marched.held += u64::from(matches!(verdict, Verdict::Held | Verdict::Kept));
                    if is_seen != seen.contains_key(body) {
                        let sees = if is_seen { "does not see" } else { "sees" };
                        let places = (&traces[&own].places, &trace.places);
                        wrong.push(format!("{sees} entity {body}, which is {verdict:?}: {places:?}"));
                    }
                }
            }
        }
        let gone = seen.keys().filter(|body| !traces.contains_key(body));
        wrong.extend(gone.map(|body| format!("sees entity {body}, which is nowhere")));
        wrong
    }

    /// Entities whose position in a client's view is wrong.
    fn misplaced(&self, client: usize, own: EntityId) -> Vec<String> {
        let view = self.clients[client].core.view(Part::Cell).entities().iter();
        let wrong = view.filter(|(entity, _)| **entity != own).filter_map(|(entity, seen)| {
            let (at, _) = seen.place?;
            let (_, is) = *self.parade.traces.get(entity)?.places.last()?;
            let apart = (at.x - is.x).abs().max((at.z - is.z).abs());
            (apart > BLUR).then(|| format!("sees entity {entity} {apart} m from where it is"))
        });
        wrong.collect()
    }

    /// What a client received about entities that were in view the whole time: only movements are expected.
    fn noticed(&self, client: usize, own: EntityId, before: &View) -> Vec<String> {
        let since = self.parade.received.get(client).copied().unwrap_or_default();
        let traces = &self.parade.traces;
        let wrong = self.clients[client].events[since..].iter().filter_map(|event| {
            let (what, entity) = match event {
                Event::Entered {
                    part: Part::Cell,
                    entity,
                    ..
                } => ("entered", entity),
                Event::Left {
                    part: Part::Cell,
                    entity,
                } => ("left", entity),
                // If it had not been sent all events, because the rest were for others, it may be sent the whole state
                // (rule V3).
                Event::Refreshed {
                    part: Part::Cell,
                    entity,
                    upto,
                    ..
                } if before.get(entity) >= Some(upto) => ("is sent again", entity),
                _ => return None,
            };
            let stayed = |trace| *entity == own || stayed(&traces[&own], trace);
            let noticed = before.contains_key(entity) && traces.get(entity).is_some_and(stayed);
            noticed.then(|| format!("notices that entity {entity} {what}, which was in view all the time"))
        });
        wrong.collect()
    }
}
