//! Both codecs side by side over a lossy link, and a check of the decoded movements.

use std::collections::{BTreeMap, VecDeque};
use std::f32::consts::{PI, TAU};

use annals_def::split_mix;
use annals_event::Reader;
use annals_ids::{EntityId, Position, Tick};
use annals_wire::client::{
    MAX_DATAGRAM,
    volatile::{Facing, Motion, MovementAck, Packing, Placing, VolatileReader, VolatileWriter},
};

use super::Cost;

/// The number of the view.
const VIEW: u64 = 3;

/// The tick at which it begins, in tenths of seconds, as in a realm that has run for a while.
const BEGUN: u64 = 17_000_000_000;

/// Properties of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) packing: Packing,
    /// Loss in each direction, percent.
    pub(super) loss: u64,
}

pub(super) struct Link {
    scale: Scale,
    writer: VolatileWriter,
    reader: VolatileReader,
    aliases: BTreeMap<EntityId, u8>,
    /// The client's acknowledgements, and the milliseconds until the cell receives each.
    answers: VecDeque<(u64, MovementAck)>,
    dice: Box<dyn FnMut() -> u64>,
    cost: Cost,
}

impl Link {
    pub(super) fn new(scale: Scale, seed: u64) -> Self {
        Self {
            scale,
            writer: VolatileWriter::new(VIEW, scale.packing),
            reader: VolatileReader::new(VIEW, scale.packing),
            aliases: BTreeMap::new(),
            answers: VecDeque::new(),
            dice: Box::new(split_mix(seed ^ 0x5eed)),
            cost: Cost::default(),
        }
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    fn is_lost(&mut self) -> bool {
        (self.dice)() % 100 < self.scale.loss
    }

    /// Sends a client the movements of a tick with either codec, and checks the result.
    pub(super) fn send(&mut self, tick: u64, observer: Position, due: &[Motion]) {
        let now = tick * 100;
        while let Some(&(_, ack)) = self.answers.front().filter(|(at, _)| *at <= now) {
            self.answers.pop_front();
            self.writer.acknowledge(ack.tick, ack.before);
        }
        if due.is_empty() {
            return;
        }
        let packed = self.pack(observer, due);
        self.cost.updates += due.len() as u64;
        let tick = Tick(BEGUN + tick);
        let sent = self.writer.write(tick, observer, due, MAX_DATAGRAM);
        assert_eq!(sent.movements, due.len(), "all of it fits");
        let datagram = sent.datagram.expect("there was something to send");
        self.cost.ours += datagram.len() as u64;
        if self.is_lost() {
            return;
        }
        let mut read = self.reader.read(&datagram, tick).expect("what was written can be read");
        assert_eq!(read.tick, tick);
        read.motions.sort_by_key(|motion| motion.entity);
        for ((meant, ours), theirs) in due.iter().zip(&read.motions).zip(&packed) {
            compare(self.scale.packing, observer, meant, ours, theirs);
        }
        let delay = 100 + (self.dice)() % 100;
        if let Some(ack) = self.reader.ack()
            && !self.is_lost()
        {
            self.answers.push_back((now + delay, ack));
        }
    }

    /// Counts the bytes of the packing, and returns what a client would decode.
    fn pack(&mut self, observer: Position, due: &[Motion]) -> Vec<Motion> {
        let packing = self.scale.packing;
        let reference = [observer.x, observer.y, observer.z].map(|metres| metres.round() as i32);
        let mut read = Vec::with_capacity(due.len());
        for motion in due {
            let free = self.aliases.len() as u8;
            let alias = *self.aliases.entry(motion.entity).or_insert(free);
            let mut bytes = Vec::new();
            packing.put(&mut bytes, reference, Some(alias), motion);
            self.cost.packed += bytes.len() as u64;
            let named = |named| (named == alias).then_some(motion.entity);
            let out = packing.take(&mut Reader::new(&bytes), reference, named);
            read.push(out.expect("what was packed can be unpacked").expect("by its alias"));
        }
        read
    }
}

/// Checks that both are as exact as the packing guarantees at that distance.
fn compare(packing: Packing, observer: Position, meant: &Motion, ours: &Motion, theirs: &Motion) {
    assert_eq!(ours.entity, meant.entity);
    let bound = |distance: f32| {
        let steps = (distance.abs() / packing.scale() + 2.0).log2().floor() - 1.0;
        // Half a step, plus the error of conversion to floats.
        packing.scale() * steps.exp2() / 256.0 + 1e-4
    };
    let near = |meant: f32, found: f32, observer: f32| {
        let (missed, bound) = ((meant - found).abs(), bound(meant - observer.round()));
        assert!(
            missed <= bound,
            "{meant} became {found}, {missed} m away; the bound is {bound} m"
        );
    };
    for found in [ours, theirs] {
        match (meant.placing, found.placing) {
            (Placing::Ground(meant), Placing::Ground(found)) => {
                near(meant.x, found.x, observer.x);
                near(meant.z, found.z, observer.z);
            }
            (Placing::Full(meant), Placing::Full(found)) => {
                near(meant.x, found.x, observer.x);
                near(meant.z, found.z, observer.z);
                let step = (((meant.y - observer.y.round()).abs() + 2.0).log2().floor() - 1.0).exp2() / 1_024.0;
                assert!((meant.y - found.y).abs() <= step + 1e-4);
            }
            (meant, found) => assert_eq!(meant, found),
        }
        match (meant.facing, found.facing) {
            (Facing::Yaw(meant), Facing::Yaw(found)) => turned(meant, found),
            (Facing::YawPitch(yaw, pitch), Facing::YawPitch(found, other)) => {
                turned(yaw, found);
                turned(pitch, other);
            }
            (meant, found) => assert_eq!(meant, found),
        }
    }
}

fn turned(meant: f32, found: f32) {
    let missed = ((meant - found + PI).rem_euclid(TAU) - PI).abs();
    assert!(missed <= PI / 256.0 + 1e-5, "an angle of {meant} became {found}");
}
