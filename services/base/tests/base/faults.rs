//! Generated schedules of calls, lost and duplicated messages, broken connections and crashes: every call takes effect
//! once, in order, and every client ends with the true state.

use annals_base::BaseInput;
use annals_def::{Value, split_mix};
use annals_ids::{EntityId, Part};
use annals_wire::client::ToServer;

use crate::{
    cell::Cell,
    host::{CELL, Host, Mood, Out},
    player::{Entrance, Player, log_in},
};

const SEEDS: std::ops::Range<u64> = 0..300;
const STEPS: u64 = 80;

struct World {
    host: Host,
    cell: Cell,
    player: Player,
    dice: Box<dyn FnMut() -> u64>,
    connections: u64,
    /// Number of calls to the base part and to the cell part.
    made: (u64, u64),
}

impl World {
    fn new(seed: u64) -> Self {
        let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
        let mut player = log_in(&mut host, 5, 1);
        player.call(&mut host, Part::Base, "become", &[Value::UInt(1)]);
        host.settle();
        cell.work(&mut host);
        player.listen(&mut host);
        host.settle();
        player.listen(&mut host);
        let dice = Box::new(split_mix(seed));
        let (connections, made) = (1, (0, 0));
        Self {
            host,
            cell,
            player,
            dice,
            connections,
            made,
        }
    }

    fn one_in(&mut self, odds: u64) -> bool {
        (self.dice)().is_multiple_of(odds)
    }

    fn avatar(&self) -> EntityId {
        self.player.entity.unwrap().0
    }

    fn step(&mut self) {
        match (self.dice)() % 16 {
            0..=4 => self.call(Part::Base),
            5..=7 => self.call(Part::Cell),
            8 => self.player.repeat(&mut self.host),
            9 => self.host.pass(20),
            10 => self.deliver_to_cell(),
            11 => self.listen(),
            12 => self.reconnect(),
            13 => self.host.mood = if self.one_in(2) { Mood::Withholds } else { Mood::Loses },
            14 if self.host.mood != Mood::Answers => self.host.answer_again(),
            14 => self.player.begin_view(&mut self.host),
            _ if self.one_in(3) => self.crash(),
            _ => self.host.pass(600),
        }
    }

    fn call(&mut self, part: Part) {
        let (count, method) = match part {
            Part::Base => (&mut self.made.0, "note"),
            Part::Cell => (&mut self.made.1, "hit"),
        };
        *count += 1;
        let args = [Value::UInt(*count)];
        let avatar = self.avatar();
        let call = self.player.make(part, avatar, method, &args);
        for _ in 0..(self.dice)() % 3 {
            self.player.send(&mut self.host, &ToServer::Call(call.clone()));
        }
    }

    /// The bus between base and cell loses, duplicates and reorders messages.
    fn deliver_to_cell(&mut self) {
        let mut sent: Vec<_> = std::mem::take(&mut self.host.sent).into();
        if self.one_in(3) {
            sent.reverse();
        }
        for (_, envelope) in sent {
            for _ in 0..(self.dice)() % 3 {
                for answer in self.cell.receive(envelope.message.clone()) {
                    if !self.one_in(4) {
                        self.host.receive(answer);
                    }
                }
            }
        }
        for envelope in self.cell.repeat() {
            self.host.receive(envelope);
        }
    }

    /// The connection keeps the order, but may break at any frame.
    fn listen(&mut self) {
        let outputs: Vec<Out> = std::mem::take(&mut self.host.out).into();
        let own = self.player.connection;
        let outputs = outputs.into_iter().filter(|out| match out {
            Out::Frame(to, _) | Out::Datagram(to, _) | Out::Close(to, _) | Out::Reject(to, _) => *to == own,
        });
        for out in outputs {
            if self.one_in(12) {
                return self.reconnect();
            }
            self.player.receive(&mut self.host, &out);
        }
    }

    fn reconnect(&mut self) {
        let connection = self.player.connection;
        if self.one_in(2) {
            self.host.role(BaseInput::Closed { connection });
        }
        self.connections += 1;
        if self.host.mood != Mood::Answers {
            self.host.answer_again();
        }
        self.player.connect(&mut self.host, self.connections);
        self.player.listen(&mut self.host);
        assert_eq!(self.player.entrance, Entrance::Welcomed);
        self.player.begin_view(&mut self.host);
    }

    fn crash(&mut self) {
        self.host.crash();
        self.host.sent.clear();
        self.reconnect();
    }

    /// Lets the world settle, without further faults.
    fn rest(&mut self) {
        self.crash();
        for _ in 0..100 {
            self.player.repeat(&mut self.host);
            self.host.pass(1_000);
            for envelope in self.cell.repeat() {
                self.host.receive(envelope);
            }
            self.cell.work(&mut self.host);
            self.player.listen(&mut self.host);
            if self.player.is_settled() && self.cell.is_settled() {
                return;
            }
        }
        panic!("calls are still in flight: {:?}", self.player.calls);
    }

    fn check(&self) {
        let avatar = self.avatar();
        let expected: Vec<Value> = (1..=self.made.0).map(Value::UInt).collect();
        let notes = &self.host.image(avatar).properties[&annals_ids::MemberId(0)];
        assert_eq!(notes, &Value::Sequence(expected), "calls to the base part");
        let hits: Vec<u64> = self
            .cell
            .exposed
            .iter()
            .map(|(_, _, args)| u64::from(u32::from_le_bytes(args[..].try_into().unwrap())))
            .collect();
        assert_eq!(hits, (1..=self.made.1).collect::<Vec<_>>(), "calls to the cell part");
        assert_eq!(&self.player.property_value("notes"), notes, "what the client was shown");
        assert_eq!(self.cell.made, 1);
        assert_eq!(
            self.host.folded().hash(),
            self.host.owner.state().hash(),
            "replay equals live"
        );
    }
}

#[test]
fn each_call_takes_effect_once() {
    for seed in SEEDS {
        // The last seed printed is the one that failed; use it alone as the range to reproduce.
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.rest();
        world.check();
    }
}
