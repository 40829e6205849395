//! The parade: at the end of a realm whose borders move, all is at rest but for what is set going here, round by round: a
//! border is moved, a player goes somewhere, once a cell process dies. When everything has come to rest again, each
//! player is to see what it would if there were one big cell ([`crate::one_cell`]), and to have noticed nothing else.

use std::collections::{BTreeMap, BTreeSet};

use annals_client::Event;
use annals_ids::{Direction, EntityId, Part, Position};

use super::{Core, Service, Step, World};
use crate::{
    fault::{Blow, Kind},
    game::SPACE,
    one_cell::{Sight, Spot, Trace, Verdict, View, judge, stayed},
};

/// Rounds of a parade.
const ROUNDS: u64 = 6;

/// In which of them a cell process dies.
const DEADLY: u64 = 3;

/// How long a round takes, milliseconds: until what was in view before the last of several hand-overs has left it, 3 s; and
/// where a process dies, until it is taken for dead, what it held is taken over, and views have settled.
const ROUND_MS: u64 = 9_000;
const DEADLY_ROUND_MS: u64 = 18_000;

/// How long all of it takes.
pub(super) const PARADE_MS: u64 = (ROUNDS - 1) * ROUND_MS + DEADLY_ROUND_MS;

/// How often it is tried to strike while somebody is on its way, and between two times, microseconds.
const TRIES: u64 = 4_000;
const BETWEEN_TRIES: u64 = 500;

/// Between two looks at where everybody is, microseconds.
const GLANCE: u64 = 20_000;

/// How far what a client sees of a place may be off, metres: movements travel in fewer bits than places have.
const BLUR: f32 = 0.75;

/// What a parade came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marched {
    /// Rounds.
    pub rounds: u64,
    /// Pairs of an observer and a body of which it was decided whether one sees the other.
    pub judged: u64,
    /// Those among them that were decided by what was before: by the hysteresis.
    pub held: u64,
    /// Those of which nothing was claimed.
    pub open: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Parade {
    traces: BTreeMap<EntityId, Trace>,
    /// By observer.
    views: BTreeMap<EntityId, View>,
    /// How much each client had been told when the round began.
    told: Vec<usize>,
    /// What it came to.
    pub marched: Marched,
    /// What was seen that one big cell would not have shown.
    pub wrong: Vec<String>,
}

impl World {
    /// A round is over, and the next begins.
    pub(super) fn march(&mut self, round: u64) {
        self.glance_once();
        self.compare(round);
        if round == ROUNDS {
            return;
        }
        if round == 0 {
            self.after(GLANCE, Step::Glance);
        }
        self.parade.told = self.clients.iter().map(|client| client.told.len()).collect();
        let moves = self.between(300_000, 900_000);
        self.after(moves, Step::MoveBorders);
        for _ in 0..1 + self.roll() % 2 {
            self.send_somewhere();
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

    /// A cell process dies, if it can be while an entity is on its way from it or to it.
    pub(super) fn strike_parade(&mut self, dice: u64, tries: u64) {
        let mut own = annals_def::split_mix(dice);
        if self.crash_midway(&mut own).is_some() {
            self.count(Kind::Blow(Blow::CrashMidway));
        } else if tries > 0 {
            let tries = tries - 1;
            self.after(BETWEEN_TRIES, Step::StrikeParade { dice, tries });
        } else if self.crash(Service::Cell, &mut own).is_some() {
            self.count(Kind::Blow(Blow::CrashCell));
        }
    }

    /// A player sees farther or less far from now on.
    fn have_squint(&mut self) {
        let client = (self.roll() % self.clients.len() as u64) as usize;
        self.call(client, "mark", Part::Cell);
        self.drain_client(client);
    }

    /// A player leaps into the other space.
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

    /// Looks where everybody is, again and again.
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

    /// Where all are that can be seen, how much farther than others, and how far they see if that was said of them.
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

    /// A player goes near somebody, or just out of view, or in between.
    fn send_somewhere(&mut self) {
        let Some(sight) = self.sight() else { return };
        let playing: Vec<usize> = (0..self.clients.len())
            .filter(|client| self.observer(*client).is_some())
            .collect();
        let bodies = self.bodies();
        if playing.is_empty() || bodies.len() < 2 {
            return;
        }
        let client = playing[(self.roll() % playing.len() as u64) as usize];
        let (body, (space, to), appeal, _) = bodies[(self.roll() % bodies.len() as u64) as usize];
        let own = bodies.iter().find(|(own, ..)| self.observer(client) == Some(*own));
        if own.is_none_or(|(own, (own_space, _), ..)| *own == body || *own_space != space) {
            return;
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
        // Whoever was put somewhere is believed once it has spoken from there.
        self.stand(client);
        self.after(400_000, Step::SetOut { client, position });
    }

    fn stand(&mut self, client: usize) {
        let core = &self.clients[client].core;
        let own = core.controls().and_then(|(entity, _)| core.entity(entity));
        if let Some((position, _)) = own.and_then(|seen| seen.place) {
            self.set_out(client, position);
        }
    }

    pub(super) fn set_out(&mut self, client: usize, position: Position) {
        self.clients[client].core.move_to(position, Direction::default());
        self.drain_client(client);
    }

    fn sight(&self) -> Option<Sight> {
        let space = self.map.spaces.get(&SPACE)?;
        Some(Sight {
            radius: space.aoi_radius,
            hysteresis: space.aoi_hysteresis,
        })
    }

    /// The entity of a client that plays.
    fn observer(&self, client: usize) -> Option<EntityId> {
        let core = &self.clients[client].core;
        let (own, _) = core.controls().filter(|_| core.is_playing())?;
        self.parade.traces.contains_key(&own).then_some(own)
    }

    /// Compares all views with what one big cell would show.
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
            let told = wrong
                .into_iter()
                .map(|what| format!("round {round}: client {client} {what}"));
            self.parade.wrong.extend(told);
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

    /// What a client sees elsewhere than it is.
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

    /// What a client was told of those who were in view all the time: nothing has happened but that some have moved.
    fn noticed(&self, client: usize, own: EntityId, before: &View) -> Vec<String> {
        let since = self.parade.told.get(client).copied().unwrap_or_default();
        let traces = &self.parade.traces;
        let wrong = self.clients[client].told[since..].iter().filter_map(|event| {
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
                // Of whom it had not been told everything, because the rest concerned others, it may be told all anew (rule V3).
                Event::Refreshed {
                    part: Part::Cell,
                    entity,
                    upto,
                    ..
                } if before.get(entity) >= Some(upto) => ("is told anew", entity),
                _ => return None,
            };
            let stayed = |trace| *entity == own || stayed(&traces[&own], trace);
            let noticed = before.contains_key(entity) && traces.get(entity).is_some_and(stayed);
            noticed.then(|| format!("notices that entity {entity} {what}, which was in view all the time"))
        });
        wrong.collect()
    }
}
