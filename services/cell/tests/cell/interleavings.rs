//! All orders in which the messages of several owners about one ghost can be received.
//!
//! Owners A, B and C hold an entity in turn, and each sends it to a fourth one that needs a ghost of it. `(AB)` is an
//! entity that began on A, was handed over to B and ended there. Each holder sends two messages in each of its turns:
//! one at the beginning (it created the entity, or took it over) and one at the end (it handed it over, or ended it).
//! Messages of one owner keep their order, those of different owners do not. The life histories below have 420, 420, 28
//! and 28 orders. In each of them as many ghosts must be created as there were entities, and at the end there must be
//! none, nor anything that waits for a message which never comes.
//!
//! In our terms: a sender begins with the history number, and answers requests. An owner that handed an entity over
//! goes on listing it up to the last number that it sent; one that ended it does not list it any more. Ids are never
//! reused, so another life is another entity. An owner that is asked for what it does not hold any more does not
//! answer. Afterwards all three send the list of their ghosts there, which is empty, as each does once a second.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::Driver;
use annals_ids::{EntityId, Epoch, HistoryNumber, OwnerId};
use annals_node::{Input, Output};
use annals_wire::bus::{Envelope, GhostImage, GhostMessage, Message, Shown};

use crate::{
    game::AVATAR,
    world::{HOME, WEST, World, place},
};

/// The first history number that is sent of each entity.
const BEGUN: u64 = 5;

/// A message that an owner sends unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// It holds the entity, in this turn of its life.
    Begins(EntityId, u64),
    /// It has handed it over.
    GaveAway(EntityId, u64),
    /// It has ended it.
    Ended(EntityId),
}

/// When an owner's answer is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// Before anything else.
    AtOnce,
    /// As late as its order allows: before the owner's next message.
    Late,
}

/// The messages of each owner about all entities, in order. An entity's life is written as the letters of its holders.
fn scripts(lives: &[&str], first: u64) -> BTreeMap<OwnerId, Vec<Word>> {
    let mut scripts: BTreeMap<OwnerId, Vec<Word>> = BTreeMap::new();
    for (entity, life) in (first..).map(EntityId).zip(lives) {
        let turns = life.len() as u64;
        for (turn, holder) in (0..).zip(life.bytes()) {
            let script = scripts.entry(OwnerId(holder.into())).or_default();
            script.push(Word::Begins(entity, turn));
            script.push(match turn + 1 == turns {
                true => Word::Ended(entity),
                false => Word::GaveAway(entity, turn),
            });
        }
    }
    scripts
}

/// Every order of the messages, given their number per owner.
fn orders(left: &BTreeMap<OwnerId, usize>) -> Vec<Vec<OwnerId>> {
    if left.values().all(|count| *count == 0) {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for (&owner, &count) in left.iter().filter(|(_, count)| **count > 0) {
        let mut rest = left.clone();
        rest.insert(owner, count - 1);
        found.extend(orders(&rest).into_iter().map(|order| [vec![owner], order].concat()));
    }
    found
}

/// One order of messages, on their way to the west.
struct Delivery<'w> {
    world: &'w mut World,
    answers: Answers,
    /// Milliseconds between two messages.
    pause: u64,
    /// The turn of each entity that the received messages imply; none once it has ended.
    turns: BTreeMap<EntityId, (OwnerId, Option<u64>)>,
    /// The list of its ghosts there that each owner would send at this point.
    named: BTreeMap<OwnerId, BTreeMap<EntityId, HistoryNumber>>,
    late: BTreeMap<OwnerId, Vec<GhostMessage>>,
    made: usize,
}

impl Delivery<'_> {
    fn ghosts(&self) -> BTreeSet<EntityId> {
        self.world
            .role(WEST)
            .ghosts()
            .iter()
            .map(|(entity, _)| entity)
            .collect()
    }

    /// Sends an owner's next message.
    fn say(&mut self, from: OwnerId, word: Word) {
        for answer in self.late.remove(&from).unwrap_or_default() {
            self.deliver(from, answer);
        }
        let named = self.named.entry(from).or_default();
        let message = match word {
            Word::Begins(entity, turn) => {
                let after = HistoryNumber(BEGUN + turn);
                named.insert(entity, after);
                let turns = self.turns.entry(entity).or_insert((from, Some(turn)));
                if turns.1.is_some_and(|known| known <= turn) {
                    *turns = (from, Some(turn));
                }
                let events = Vec::new();
                GhostMessage::Events { entity, after, events }
            }
            Word::GaveAway(entity, _) => {
                let message = GhostMessage::Heads(named.iter().map(|(entity, upto)| (*entity, *upto)).collect());
                named.remove(&entity);
                message
            }
            Word::Ended(entity) => {
                named.remove(&entity);
                self.turns.insert(entity, (from, None));
                GhostMessage::Heads(named.iter().map(|(entity, upto)| (*entity, *upto)).collect())
            }
        };
        self.deliver(from, message);
        self.world.run(self.pause);
    }

    fn deliver(&mut self, from: OwnerId, message: GhostMessage) {
        // Its requests must not wait for a batch that is being appended.
        while !self.world.live(WEST).is_at_rest() {
            self.world.run(1);
        }
        let before = self.ghosts();
        let (now, epoch) = (self.world.at(), Epoch(1));
        let message = Message::Ghost(message);
        let cell = self.world.cells.get_mut(&WEST).expect("it is there");
        let said = cell.handle(now, Input::Bus(Envelope { from, epoch, message }), 500);
        self.made += self.ghosts().difference(&before).count();
        for output in said {
            let Output::Send { to, envelope } = output else {
                continue;
            };
            if let Message::Ghost(GhostMessage::Ask { entity, have }) = envelope.message
                && let Some(answer) = self.answer(to, entity, have)
            {
                match self.answers {
                    Answers::AtOnce => self.deliver(to, answer),
                    Answers::Late => self.late.entry(to).or_default().push(answer),
                }
            }
        }
    }

    /// An owner's answer to a request, if it still holds the entity.
    fn answer(&self, of: OwnerId, entity: EntityId, have: Option<HistoryNumber>) -> Option<GhostMessage> {
        let (_, turn) = self.turns.get(&entity).filter(|(holder, _)| *holder == of)?;
        let history = HistoryNumber(BEGUN + (*turn)?);
        let image = || {
            let image = GhostImage {
                type_id: AVATAR,
                home: HOME,
                session: None,
                history,
                place: place(10.0, 0.0),
                driver: Driver::Client,
                properties: Vec::new(),
            };
            let image = Box::new(image);
            GhostMessage::Image { entity, image }
        };
        let events = |after: HistoryNumber| {
            // The departures, one for each turn.
            let events = (after.0..history.0).map(|_| Shown::Hidden).collect();
            GhostMessage::Events { entity, after, events }
        };
        Some(have.map_or_else(image, events))
    }

    /// After all messages: each owner sends the list of its ghosts there.
    fn rest(&mut self, scripts: &BTreeMap<OwnerId, Vec<Word>>) {
        for (from, answers) in std::mem::take(&mut self.late) {
            answers.into_iter().for_each(|answer| self.deliver(from, answer));
        }
        // Longer than a list without a new ghost is ignored.
        self.world.run(1_100);
        for owner in scripts.keys() {
            self.deliver(*owner, GhostMessage::Heads(Vec::new()));
        }
        assert!(self.late.is_empty(), "no requests are open");
    }
}

/// Plays a history in every `step`-th of its orders; returns how many there are.
fn play(world: &mut World, lives: &[&str], (answers, pause, step): (Answers, u64, usize)) -> usize {
    let counts = scripts(lives, 0)
        .iter()
        .map(|(owner, script)| (*owner, script.len()))
        .collect();
    let orders = orders(&counts);
    for (number, order) in orders.iter().enumerate().step_by(step) {
        // Entities with new ids.
        let scripts = scripts(lives, world.posted * 1_000 + world.now.0);
        let mut delivery = Delivery {
            world: &mut *world,
            answers,
            pause,
            turns: BTreeMap::new(),
            named: BTreeMap::new(),
            late: BTreeMap::new(),
            made: 0,
        };
        let mut next: BTreeMap<OwnerId, usize> = BTreeMap::new();
        for owner in order {
            let at = next.entry(*owner).or_default();
            delivery.say(*owner, scripts[owner][*at]);
            *at += 1;
        }
        delivery.rest(&scripts);
        let (left, made) = (delivery.ghosts(), delivery.made);
        let what = format!("{lives:?}, {answers:?}, {pause} ms apart, order {number}: {order:?}");
        assert_eq!(left, BTreeSet::new(), "{what}");
        if answers == Answers::AtOnce {
            assert_eq!(made, lives.len(), "{what}");
        }
    }
    orders.len()
}

const HISTORIES: [(&[&str], usize); 4] = [
    (&["AB", "CB"], 420),
    (&["C", "ABA"], 420),
    (&["A", "A", "BA"], 28),
    (&["BA", "A", "A"], 28),
];

#[test]
fn ghost_counts_match_in_all_message_orders() {
    let mut world = World::new(61);
    for (lives, count) in HISTORIES {
        assert_eq!(play(&mut world, lives, (Answers::AtOnce, 3, 1)), count, "{lives:?}");
    }
}

#[test]
fn message_delays_do_not_change_the_result() {
    let mut world = World::new(62);
    for (lives, count) in HISTORIES {
        let step = if count > 28 { 12 } else { 1 };
        play(&mut world, lives, (Answers::AtOnce, 1_100, step));
    }
}

#[test]
fn late_answers_leave_no_state() {
    let mut world = World::new(63);
    for (lives, _) in HISTORIES {
        play(&mut world, lives, (Answers::Late, 3, 1));
    }
}
