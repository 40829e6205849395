//! The physics check: whether a client can have moved an entity as it says: its own, or one that it drives.
//!
//! A client may go as far as its top speed takes it in the time that has passed. The latency of its messages varies,
//! and after a pause several may arrive at once; so time is kept as credit, and distance is paid for with it. Credit of
//! more than [`JITTER`] lasts only for a moment: a client that reported standing still has not moved meanwhile.
//!
//! Accounts are not in the log. After a take-over, or on another owner, an account starts with credit for the way that
//! the client may have gone while its messages were not received.

use std::{collections::BTreeMap, time::Duration};

use annals_event::{Body, Driver, Event, Image, MovementControl, OwnerState, Place};
use annals_ids::{EntityId, HistoryNumber, Position, SessionId};
use annals_node::{OwnerContext, time::Mono};
use annals_wire::bus::DrivenMovement;

use crate::{knowledge::Knowledge, known_entity, witness::Witness};

/// Maximum difference in latency between two messages, seconds.
const JITTER: f32 = 0.5;

/// Longest pause, seconds, after which the movement made meanwhile is accepted at once. Longer ones are rare; after one
/// of them the client is put back.
const SILENCE: f32 = 5.0;

/// Time that a hand-over may take, seconds, while the client moves on and its messages are not received.
const HAND_OVER: f32 = 1.0;

/// Credit beyond [`JITTER`] that is lost per second, seconds.
const LOSS: f32 = 2.0;

/// Factor by which a client may exceed its top speed: clocks differ, and coordinates are rounded.
const TOLERANCE: f32 = 1.01;

/// Minimum interval between corrections of a client: what it sends before it receives one is useless.
const PUT_BACK_EVERY: Duration = Duration::from_millis(500);

/// What is known of the movements of clients.
#[derive(Debug, Default)]
pub(crate) struct Physics {
    /// The accounts of entities with a top speed.
    accounts: BTreeMap<EntityId, DistanceAllowance>,
    /// The entities that the client of another entity drives.
    driven: BTreeMap<EntityId, Driven>,
}

/// What is known of an entity that the client of another entity drives.
#[derive(Clone, Copy, Debug, Default)]
struct Driven {
    /// Session and number of the newest movement.
    newest: Option<(SessionId, u64)>,
    /// The place on which that client and this owner agree; `None` for the present one.
    agreed: Option<Place>,
    /// When that client was last put back.
    put_back: Option<Mono>,
}

/// Credit of an entity, with which it pays for distance.
#[derive(Clone, Copy, Debug)]
struct DistanceAllowance {
    /// Time of the last update of the credit.
    updated: Option<Mono>,
    /// Seconds.
    credit: f32,
    /// Credit for vertical movement, where that has its own top speed.
    credit_y: f32,
    /// When the entity's own client was last put back.
    put_back: Option<Mono>,
}

impl Physics {
    /// Accounts after a take-over: no messages of clients were received meanwhile.
    pub(crate) fn take_over(state: &OwnerState) -> Self {
        let moved = state.entities.iter().filter(|(_, image)| is_moved_by_client(image));
        let accounts = moved.map(|(entity, _)| (*entity, DistanceAllowance::with_extra(SILENCE)));
        let driven = state.entities.iter().filter(|(_, image)| is_driven(image));
        Self {
            accounts: accounts.collect(),
            driven: driven.map(|(entity, _)| (*entity, Driven::default())).collect(),
        }
    }

    /// Takes a movement that a client reports for its entity; its place is in the entity's space. Returns whether it
    /// was accepted, or is older than an accepted one.
    pub(crate) fn client_moved(
        &mut self,
        cx: &mut OwnerContext,
        known: &Knowledge,
        witness: &mut Witness,
        (entity, (sequence, place)): (EntityId, (u64, Place)),
    ) -> bool {
        let Some(before) = cx.place(entity).filter(|_| witness.is_newer(sequence)) else {
            return true;
        };
        let space = before.space;
        let place = Place { space, ..place };
        // If the entity was placed elsewhere before this owner held it, its client may not know it yet.
        let jumped = witness.awaits_view() && cx.image(entity).is_some_and(has_jumped);
        let is_somewhere = place.is_sound() && known.territory.owner_at(&place).is_some();
        if jumped || !is_somewhere || !witness.accepts(place.position) {
            return false;
        }
        witness.has_moved(sequence);
        let allowed = self.allows(cx, known, (entity, Driver::Client), (before, place));
        if allowed {
            witness.agree(Some(place));
            cx.move_to(entity, place);
        } else if self.puts_back(cx.now().mono, entity) {
            witness.agree(None);
        }
        allowed
    }

    /// Takes a movement of an entity by the client of another one, which drives it; its place is in the entity's space.
    /// Returns whether it was rejected, and not only lost or outdated.
    pub(crate) fn take_driven(&mut self, cx: &mut OwnerContext, known: &Knowledge, movement: &DrivenMovement) -> bool {
        let entity = movement.driven;
        let (Some(before), Some(image), Ok(())) = (cx.place(entity), cx.image(entity), cx.needs(0)) else {
            return false;
        };
        let place = Place {
            space: before.space,
            ..movement.place
        };
        let is_somewhere = place.is_sound() && known.territory.owner_at(&place).is_some();
        // A client that does not drive it any more learns that, and where it is, with the event that ended it.
        let driver = Driver::ClientOf(movement.driver);
        let knows_place = image.history_since(movement.upto).is_some() && last_placement(image) <= Some(movement.upto);
        if !is_somewhere || known_entity::driver(image) != driver || !knows_place {
            return true;
        }
        let driven = self.driven.entry(entity).or_default();
        let newest = driven.newest.filter(|(session, _)| *session == movement.session);
        if newest.is_some_and(|(_, newest)| newest >= movement.sequence) {
            return false;
        }
        driven.newest = Some((movement.session, movement.sequence));
        if driven.is_displaced(before) {
            // The client does not know it yet.
            place_again(cx, entity, before);
            return false;
        }
        let allowed = self.allows(cx, known, (entity, driver), (before, place));
        let driven = self.driven.entry(entity).or_default();
        if allowed {
            cx.move_to(entity, place);
            driven.agreed = Some(place);
        } else if is_put_back_due(&mut driven.put_back, cx.now().mono)
            // Behaviour may have moved it before it refused.
            && let Some(place) = cx.place(entity)
        {
            driven.agreed = Some(place);
            place_again(cx, entity, place);
        }
        !allowed
    }

    /// Places the entities again that something else than the client which drives them has moved: the client is not sent
    /// their movements.
    pub(crate) fn place_displaced(&mut self, cx: &mut OwnerContext) {
        for (entity, driven) in &mut self.driven {
            // Without room for it, it is placed at a later tick.
            let Some(place) = cx.place(*entity).filter(|_| cx.needs(0).is_ok()) else {
                continue;
            };
            if driven.is_displaced(place) {
                place_again(cx, *entity, place);
            }
        }
    }

    /// Whether the client that drives an entity can have moved it there, and whether behaviour allows it.
    fn allows(
        &mut self,
        cx: &mut OwnerContext,
        known: &Knowledge,
        (entity, driver): (EntityId, Driver),
        (from, to): (Place, Place),
    ) -> bool {
        let now = cx.now().mono;
        let Some(movement_control) = cx
            .image(entity)
            .and_then(|image| image.cell())
            .map(|cell| cell.movement_control)
        else {
            return false;
        };
        let has_driven = movement_control.driver == driver
            && self.pays(now, entity, (from.position, to.position), &movement_control);
        has_driven
            && cx
                .run(entity, known, |behaviour, context| behaviour.client_moves(context, to))
                .unwrap_or(false)
    }

    /// Whether to correct an entity's own client now, after a rejected movement.
    fn puts_back(&mut self, now: Mono, entity: EntityId) -> bool {
        let account = self
            .accounts
            .entry(entity)
            .or_insert(DistanceAllowance::with_extra(0.0));
        is_put_back_due(&mut account.put_back, now)
    }

    /// Applies what was recorded of an entity.
    pub(crate) fn note(&mut self, cx: &OwnerContext, entity: EntityId, event: &Event) {
        match &event.body {
            Body::Destroyed | Body::Offloaded { .. } => {
                self.accounts.remove(&entity);
                self.driven.remove(&entity);
            }
            Body::ClientSet(_) => {
                self.accounts.remove(&entity);
            }
            Body::Onloaded { image, .. } if is_moved_by_client(image) => {
                self.accounts.insert(entity, DistanceAllowance::with_extra(HAND_OVER));
                if is_driven(image) {
                    self.driven.insert(entity, Driven::default());
                }
            }
            Body::ControlChanged(_) | Body::Returned { .. } => {
                self.driven.remove(&entity);
                if cx.image(entity).is_some_and(is_driven) {
                    self.driven.insert(entity, Driven::default());
                }
            }
            Body::Moved(place) if event.history.is_some() => {
                let driven = self.driven.get_mut(&entity);
                driven.into_iter().for_each(|driven| driven.agreed = Some(*place));
            }
            _ => {}
        }
    }

    fn pays(
        &mut self,
        now: Mono,
        entity: EntityId,
        (from, to): (Position, Position),
        movement_control: &MovementControl,
    ) -> bool {
        if movement_control.top_speed <= 0.0 {
            return true;
        }
        let account = self
            .accounts
            .entry(entity)
            .or_insert(DistanceAllowance::with_extra(0.0));
        account.accrue(now);
        account.pay(from, to, movement_control)
    }
}

impl Driven {
    /// Whether the entity, which is at `place`, was moved by something else than the client. From now on they agree.
    fn is_displaced(&mut self, place: Place) -> bool {
        self.agreed.replace(place).is_some_and(|agreed| agreed != place)
    }
}

impl DistanceAllowance {
    /// An account with so much more than the initial credit, seconds.
    fn with_extra(more: f32) -> Self {
        Self {
            updated: None,
            credit: JITTER + more,
            credit_y: JITTER + more,
            put_back: None,
        }
    }

    /// Adds the time since the last update to the credit.
    fn accrue(&mut self, now: Mono) {
        let before = self.updated.replace(now).unwrap_or(now);
        let passed = now.since(before).as_secs_f32();
        for credit in [&mut self.credit, &mut self.credit_y] {
            let kept = credit.min((*credit - LOSS * passed).max(JITTER));
            *credit = (kept + passed).min(JITTER + SILENCE);
        }
    }

    /// Pays for a distance, if there is enough credit.
    fn pay(&mut self, from: Position, to: Position, movement_control: &MovementControl) -> bool {
        let (x, y, z) = (to.x - from.x, to.y - from.y, to.z - from.z);
        let by_itself = movement_control.top_speed_y > 0.0;
        let way = if by_itself { x.hypot(z) } else { x.hypot(y).hypot(z) };
        let cost = way / (movement_control.top_speed * TOLERANCE);
        let cost_y = if by_itself {
            y.abs() / (movement_control.top_speed_y * TOLERANCE)
        } else {
            0.0
        };
        let can = cost <= self.credit && cost_y <= self.credit_y;
        if can {
            self.credit -= cost;
            self.credit_y -= cost_y;
        }
        can
    }
}

/// Whether the entity's recent history contains a placement.
fn has_jumped(image: &Image) -> bool {
    last_placement(image).is_some()
}

/// The history number of the newest placement in the entity's recent history.
fn last_placement(image: &Image) -> Option<HistoryNumber> {
    let mut newest_first = image.recent.iter().rev();
    let found = newest_first.find(|event| matches!(event.body, Body::Moved(_)));
    found.and_then(|event| event.history)
}

/// Whether a client may move an entity.
fn is_moved_by_client(image: &Image) -> bool {
    image.client.is_some() || is_driven(image)
}

/// Whether the client of another entity drives an entity.
fn is_driven(image: &Image) -> bool {
    matches!(known_entity::driver(image), Driver::ClientOf(_))
}

/// Whether a client may be put back now, given when it was last; notes that it is.
fn is_put_back_due(put_back: &mut Option<Mono>, now: Mono) -> bool {
    let is_due = put_back.is_none_or(|last| now.since(last) >= PUT_BACK_EVERY);
    if is_due {
        *put_back = Some(now);
    }
    is_due
}

/// Sends the place of an entity to all clients, also the one that drives it. What that one sends before it is shown this
/// is ignored. The input must have room for it.
fn place_again(cx: &mut OwnerContext, entity: EntityId, place: Place) {
    cx.record_for(entity, true, Body::Moved(place));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED: f32 = 6.0;
    const SPEED_Y: f32 = 20.0;

    struct Dice(Box<dyn FnMut() -> u64>);

    impl Dice {
        /// From 0 to 1.
        fn share(&mut self) -> f32 {
            f32::from(u16::try_from((self.0)() % 10_001).expect("it is small")) / 10_000.0
        }

        fn one_in(&mut self, odds: u64) -> bool {
            (self.0)().is_multiple_of(odds)
        }
    }

    fn movement_control(top_speed_y: f32) -> MovementControl {
        MovementControl {
            driver: Driver::Client,
            top_speed: SPEED,
            top_speed_y,
        }
    }

    /// The positions of an honest client each tenth of a second, and when they are received, in the order of reception.
    /// The latency is up to 0.4 s; now and then nothing is received for up to 4.6 s, and then everything within 50 ms.
    fn walk(dice: &mut Dice) -> Vec<(u64, Position)> {
        let (mut at, mut reports) = (Position::default(), Vec::new());
        let (mut course, mut stalled) = (0.0f32, 0u64);
        for tick in 0..3_000u64 {
            let sent = 1_000_000 + tick * 100_000;
            if dice.one_in(20) {
                course = dice.share() * 6.3;
            }
            let pace = [0.0, SPEED, SPEED, SPEED * dice.share()][(dice.0)() as usize % 4] / 10.0;
            (at.x, at.z) = (at.x + course.sin() * pace, at.z + course.cos() * pace);
            at.y += (dice.share() * 2.0 - 1.0) * SPEED_Y / 10.0;
            if sent > stalled + 500_000 && dice.one_in(200) {
                stalled = sent + u64::from((dice.0)() as u32 % 4_600_000);
            }
            let micros = |most: f32, dice: &mut Dice| Duration::from_secs_f32(most * dice.share()).as_micros();
            let arrival = if sent < stalled {
                stalled + u64::try_from(micros(0.05, dice)).expect("it is small")
            } else {
                sent + u64::try_from(micros(0.4, dice)).expect("it is small")
            };
            if !dice.one_in(10) {
                reports.push((arrival, tick, at));
            }
        }
        reports.sort_by_key(|(arrival, ..)| *arrival);
        let mut newest = 0;
        reports.retain(|(_, tick, _)| {
            let is_news = *tick >= newest;
            newest = newest.max(*tick);
            is_news
        });
        reports.into_iter().map(|(arrival, _, at)| (arrival, at)).collect()
    }

    #[test]
    fn movement_within_the_top_speed_is_never_corrected() {
        let entity = EntityId(1);
        let mut checked = 0;
        for seed in 0..200 {
            let mut dice = Dice(Box::new(annals_def::split_mix(seed)));
            let mut physics = Physics::default();
            let mut last = Position::default();
            for (arrival, at) in walk(&mut dice) {
                let allowed = physics.pays(Mono(arrival), entity, (last, at), &movement_control(SPEED_Y));
                assert!(
                    allowed,
                    "seed {seed}: from {last:?} to {at:?} at {arrival}, {:?}",
                    physics.accounts
                );
                last = at;
                checked += 1;
            }
        }
        assert!(checked > 300_000, "only {checked} messages");
    }

    /// Whatever a client sends and when: the accepted distance is one that can be covered in the time that has passed.
    #[test]
    fn cheating_gains_no_distance() {
        let entity = EntityId(1);
        let (mut refused, mut believed) = (0, 0);
        for seed in 0..300 {
            let mut dice = Dice(Box::new(annals_def::split_mix(seed)));
            let mut physics = Physics::default();
            let (mut now, begin) = (Mono(1_000_000), 1_000_000);
            let (mut at, mut way, mut way_y) = (Position::default(), 0.0f32, 0.0f32);
            let separate = seed % 2 == 0;
            let top_speed_y = if separate { SPEED_Y } else { 0.0 };
            for _ in 0..400 {
                let pause = [0.0, 0.01, 0.1, 0.1, 1.0, 30.0][(dice.0)() as usize % 6] * dice.share();
                now = now.after(Duration::from_secs_f32(pause));
                let reach = [0.1, 1.0, 5.0, 40.0, 1_000.0][(dice.0)() as usize % 5];
                let mut step = || (dice.share() * 2.0 - 1.0) * reach;
                let to = Position {
                    x: at.x + step(),
                    y: at.y + step() * 8.0,
                    z: at.z + step(),
                };
                let (dx, dy, dz) = (to.x - at.x, to.y - at.y, to.z - at.z);
                let silence = pause.min(SILENCE) + JITTER + SILENCE;
                if !physics.pays(now, entity, (at, to), &movement_control(top_speed_y)) {
                    refused += 1;
                    continue;
                }
                believed += 1;
                let step = if separate { dx.hypot(dz) } else { dx.hypot(dy).hypot(dz) };
                assert!(step <= SPEED * TOLERANCE * silence, "seed {seed}: {step} m at once");
                (at, way, way_y) = (to, way + step, way_y + dy.abs());
                let time = now.since(Mono(begin)).as_secs_f32() + JITTER;
                assert!(
                    way <= SPEED * TOLERANCE * time + 0.1,
                    "seed {seed}: {way} m in {time} s"
                );
                assert!(
                    !separate || way_y <= SPEED_Y * TOLERANCE * time + 0.1,
                    "seed {seed}: {way_y} m up and down in {time} s"
                );
            }
        }
        assert!(
            refused > 10_000 && believed > 10_000,
            "{refused} refused, {believed} believed"
        );
    }

    #[test]
    fn reports_without_movement_accumulate_no_allowance() {
        let (entity, at) = (EntityId(1), Position::default());
        let mut physics = Physics::default();
        for tick in 1..=600 {
            assert!(physics.pays(Mono(tick * 100_000), entity, (at, at), &movement_control(0.0)));
        }
        let leap = Position { x: SPEED, ..at };
        let leapt = physics.pays(Mono(60_100_000), entity, (at, leap), &movement_control(0.0));
        assert!(!leapt, "a minute of standing is no second of way");
    }
}
