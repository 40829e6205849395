//! Processor time of sending movements, at both ends, with the packing and with ours. Nothing is lost, and an
//! acknowledgement takes two ticks.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use annals_event::Reader;
use annals_ids::{EntityId, Position, Tick};
use annals_wire::client::{
    MAX_DATAGRAM,
    volatile::{Motion, MovementAck, Packing, VolatileReader, VolatileWriter},
};

use crate::busy;

/// The movements of each tick, and the observer's position.
pub(super) type Recording = Vec<(Position, Vec<Motion>)>;

/// Processor time of each end, with either codec.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    pub(super) written: Duration,
    pub(super) read: Duration,
    pub(super) packed: Duration,
    pub(super) unpacked: Duration,
}

/// Adds the duration of `work`.
fn timed<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let began = busy();
    let done = work();
    *spent += busy().saturating_sub(began);
    done
}

impl Pace {
    pub(super) fn of(recording: &Recording, packing: Packing) -> Self {
        let mut pace = Self::default();
        pace.predict(recording, packing);
        pace.pack(recording, packing);
        pace
    }

    fn predict(&mut self, recording: &Recording, packing: Packing) {
        let mut writer = VolatileWriter::new(1, packing);
        let mut reader = VolatileReader::new(1, packing);
        let mut answers: VecDeque<Option<MovementAck>> = VecDeque::from([None]);
        for (tick, (observer, motions)) in (1..).zip(recording) {
            if let Some(ack) = answers.pop_front().flatten() {
                timed(&mut self.written, || writer.acknowledge(ack.tick, ack.before));
            }
            let sent = timed(&mut self.written, || {
                writer.write(Tick(tick), *observer, motions, MAX_DATAGRAM)
            });
            assert_eq!(sent.movements, motions.len(), "all of it fits");
            if let Some(datagram) = sent.datagram {
                let read = timed(&mut self.read, || reader.read(&datagram, Tick(tick)));
                assert_eq!(read.map(|update| update.motions.len()), Ok(motions.len()));
            }
            answers.push_back(reader.ack());
        }
    }

    fn pack(&mut self, recording: &Recording, packing: Packing) {
        let mut aliases: BTreeMap<EntityId, u8> = BTreeMap::new();
        let mut entities: Vec<EntityId> = Vec::new();
        for (observer, motions) in recording {
            let reference = [observer.x, observer.y, observer.z].map(|metres| metres.round() as i32);
            let bytes = timed(&mut self.packed, || {
                let mut bytes = Vec::new();
                for motion in motions {
                    let alias = *aliases.entry(motion.entity).or_insert_with(|| {
                        entities.push(motion.entity);
                        (entities.len() - 1) as u8
                    });
                    packing.put(&mut bytes, reference, Some(alias), motion);
                }
                bytes
            });
            let count = timed(&mut self.unpacked, || {
                let reader = &mut Reader::new(&bytes);
                let named = |alias: u8| entities.get(usize::from(alias)).copied();
                let mut count = 0;
                while reader.remaining() > 0 {
                    let motion = packing.take(reader, reference, named).expect("what was packed");
                    count += usize::from(motion.is_some());
                }
                count
            });
            assert_eq!(count, motions.len());
        }
    }
}
