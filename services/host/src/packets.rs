//! Messages that an owner sends, gathered into packets, one per receiver.
//!
//! Within a tick a cell has several messages for the base of each client, and a base passes on each movement of a client.
//! For nats-server and for both processes, a packet of many messages costs about as much as one message.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use annals_ids::{Epoch, Hash, OwnerId};
use annals_node::time::Mono;
use annals_wire::bus::{Message, Packet, PacketBuilder, ViewMessage};

/// Size at which a packet is sent at once, bytes.
const FULL: usize = 128 << 10;

/// How long a client's movements and acknowledgements wait for others: a cell uses them at its next tick.
const WAIT: Duration = Duration::from_millis(5);

/// The packets that an owner is about to send.
#[derive(Debug)]
pub(crate) struct Packets {
    from: OwnerId,
    epoch: Epoch,
    definitions: Hash,
    gathered: BTreeMap<OwnerId, Gathered>,
    /// For each sender: its highest epoch, and whether the holder of that epoch reads packets of several messages.
    readers: BTreeMap<OwnerId, (Epoch, bool)>,
}

#[derive(Debug)]
struct Gathered {
    builder: PacketBuilder,
    due: Mono,
}

impl Packets {
    /// No packets, of this owner in this epoch, under the definitions with this fingerprint.
    pub(crate) fn new(from: OwnerId, epoch: Epoch, definitions: Hash) -> Self {
        Self {
            from,
            epoch,
            definitions,
            gathered: BTreeMap::new(),
            readers: BTreeMap::new(),
        }
    }

    /// Learns from a packet that has arrived whether its sender reads packets of several messages. Those of an earlier
    /// holder of the sender's owner are ignored.
    pub(crate) fn arrived(&mut self, packet: &Packet) {
        let known = self.readers.get(&packet.from);
        if known.is_none_or(|(epoch, _)| *epoch <= packet.epoch) {
            self.readers.insert(packet.from, (packet.epoch, packet.reads_packets));
        }
    }

    /// Adds a message. Returns a packet that is to be sent at once.
    pub(crate) fn add(&mut self, now: Mono, to: OwnerId, message: &Message) -> Option<Vec<u8>> {
        let waits = matches!(
            message,
            Message::View(ViewMessage::Moved { .. } | ViewMessage::MovementAck { .. })
        );
        let due = if waits { now.after(WAIT) } else { now };
        let gathered = match self.gathered.entry(to) {
            Entry::Vacant(entry) => entry.insert(Gathered {
                builder: PacketBuilder::new(message),
                due,
            }),
            Entry::Occupied(entry) => {
                let gathered = entry.into_mut();
                gathered.builder.push(message);
                gathered.due = gathered.due.min(due);
                gathered
            }
        };
        let reads = self.readers.get(&to).is_some_and(|(_, reads)| *reads);
        if gathered.builder.bytes() < FULL && reads {
            return None;
        }
        self.take(to)
    }

    /// The packet for this owner, to be sent before anything else for it.
    pub(crate) fn take(&mut self, to: OwnerId) -> Option<Vec<u8>> {
        let gathered = self.gathered.remove(&to)?;
        Some(gathered.builder.finish(self.from, self.epoch, self.definitions))
    }

    /// A packet of this message alone. Take what was added for its receiver before.
    pub(crate) fn alone(&self, message: &Message) -> Vec<u8> {
        PacketBuilder::new(message).finish(self.from, self.epoch, self.definitions)
    }

    /// A packet that is due, and its receiver.
    pub(crate) fn take_due(&mut self, now: Mono) -> Option<(OwnerId, Vec<u8>)> {
        let due = self.gathered.iter().find(|(_, gathered)| gathered.due <= now);
        let to = *due?.0;
        Some((to, self.take(to)?))
    }

    /// When a packet is due.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.gathered.values().map(|gathered| gathered.due).min()
    }
}

#[cfg(test)]
mod tests {
    use annals_event::Place;
    use annals_ids::{Direction, EntityId, Position, SessionId, SpaceId};

    use super::*;

    const US: OwnerId = OwnerId(1);
    const CELL: OwnerId = OwnerId(2);
    const DEFINITIONS: Hash = Hash([3; 32]);
    const NOW: Mono = Mono(1_000_000);

    fn moved(sequence: u64) -> Message {
        Message::View(ViewMessage::Moved {
            session: SessionId(1),
            entity: EntityId(1),
            sequence,
            place: Place {
                space: SpaceId(1),
                position: Position::default(),
                direction: Direction::default(),
            },
        })
    }

    fn frames(bytes: usize) -> Message {
        Message::View(ViewMessage::Frames {
            session: SessionId(1),
            frames: vec![vec![0; bytes]],
        })
    }

    fn packets() -> Packets {
        Packets::new(US, Epoch(5), DEFINITIONS)
    }

    /// As if the cell had sent a packet in this epoch.
    fn said(packets: &mut Packets, epoch: u64, reads_packets: bool) {
        packets.arrived(&Packet {
            from: CELL,
            epoch: Epoch(epoch),
            reads_packets,
            messages: Vec::new(),
        });
    }

    fn messages(bytes: &[u8]) -> Vec<Message> {
        let packet = Packet::decode(bytes, DEFINITIONS).expect("a packet");
        assert_eq!((packet.from, packet.epoch), (US, Epoch(5)));
        packet.messages.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn messages_to_one_owner_leave_together_and_in_order() {
        let mut packets = packets();
        said(&mut packets, 1, true);
        let sent = [frames(10), moved(1), frames(20)];
        for message in &sent {
            assert_eq!(packets.add(NOW, CELL, message), None);
        }
        let (to, bytes) = packets.take_due(NOW).expect("due at once");
        assert_eq!((to, messages(&bytes)), (CELL, sent.to_vec()));
        assert_eq!((packets.take_due(NOW), packets.deadline()), (None, None));
    }

    #[test]
    fn movements_wait_for_others_and_leave_with_the_first_that_does_not() {
        let mut packets = packets();
        said(&mut packets, 1, true);
        packets.add(NOW, CELL, &moved(1));
        packets.add(NOW.after(WAIT / 2), CELL, &moved(2));
        assert_eq!(packets.deadline(), Some(NOW.after(WAIT)), "the first decides");
        assert_eq!(packets.take_due(NOW.after(WAIT / 2)), None);
        let (_, bytes) = packets.take_due(NOW.after(WAIT)).expect("due");
        assert_eq!(messages(&bytes), [moved(1), moved(2)]);
        packets.add(NOW, CELL, &moved(3));
        packets.add(NOW, CELL, &frames(1));
        let (_, bytes) = packets.take_due(NOW).expect("due");
        assert_eq!(messages(&bytes), [moved(3), frames(1)]);
    }

    #[test]
    fn a_packet_is_bounded() {
        let mut packets = packets();
        said(&mut packets, 1, true);
        let part = frames(FULL / 4);
        let full: Vec<_> = (0..16).filter_map(|_| packets.add(NOW, CELL, &part)).collect();
        assert_eq!(
            full.iter().map(|bytes| messages(bytes).len()).collect::<Vec<_>>(),
            [4; 4]
        );
    }

    #[test]
    fn an_owner_that_does_not_read_packets_gets_each_message_alone() {
        let mut packets = packets();
        let alone = |packets: &mut Packets| {
            let bytes = packets.add(NOW, CELL, &moved(1)).expect("at once");
            assert_eq!(messages(&bytes), [moved(1)]);
        };
        alone(&mut packets);
        said(&mut packets, 3, true);
        assert_eq!(packets.add(NOW, CELL, &moved(1)), None);
        assert!(packets.take(CELL).is_some());
        // An earlier holder of its owner, whose message is late.
        said(&mut packets, 2, false);
        assert_eq!(packets.add(NOW, CELL, &moved(1)), None);
        assert!(packets.take(CELL).is_some());
        // The next holder is of an earlier release.
        said(&mut packets, 4, false);
        alone(&mut packets);
        said(&mut packets, 3, true);
        alone(&mut packets);
    }
}
