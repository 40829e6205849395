//! Bus messages. Their fields can be in any order, so messages are compared, not bytes.

use annals_ids::Hash;
use annals_wire::{
    SpaceMap,
    bus::{Envelope, Packet, PacketBuilder},
    cells::{CellList, WireCellList},
    control::{
        self, DbRequest, DirectorRequest, Holding, Inspected, Orders, OwnerAddress, ProcessBeat, Registered, Want,
        WireMap,
    },
};
use prost::Message;

const DEFINITIONS: Hash = Hash([7; 32]);

/// A message of the bus.
pub(crate) fn bus_message(bytes: &[u8]) {
    if let Ok(envelope) = Envelope::decode(bytes) {
        let encoded = envelope.encode();
        let again = Envelope::decode(&encoded).expect("what was encoded can be decoded");
        assert_eq!(again.encode(), encoded);
    }
    if let Ok(packet) = Packet::decode(bytes, DEFINITIONS) {
        let intact: Vec<_> = packet.messages.into_iter().flatten().collect();
        if let Some((first, more)) = intact.split_first() {
            let mut builder = PacketBuilder::new(first);
            more.iter().for_each(|message| builder.push(message));
            let encoded = builder.finish(packet.from, packet.epoch, DEFINITIONS);
            let again = Packet::decode(&encoded, DEFINITIONS).expect("what was encoded can be decoded");
            let again: Vec<_> = again
                .messages
                .into_iter()
                .collect::<Result<_, _>>()
                .expect("intact messages");
            assert_eq!(again.len(), intact.len());
        }
    }
}

/// A control message of the kind that the first byte selects.
pub(crate) fn control_message(bytes: &[u8]) {
    let Some((&kind, message)) = bytes.split_first() else {
        return;
    };
    match kind % 11 {
        0 => same::<DirectorRequest>(message),
        1 => same::<Registered>(message),
        2 => same::<ProcessBeat>(message),
        3 => same::<Holding>(message),
        4 => same::<Orders>(message),
        5 => same::<OwnerAddress>(message),
        6 => same::<DbRequest>(message),
        7 => same::<Inspected>(message),
        8 => same::<Want>(message),
        9 => {
            same::<WireCellList>(message);
            let list = control::decode::<WireCellList>(message).and_then(|list| CellList::try_from(&list));
            if let Ok(list) = list {
                let again = CellList::try_from(&WireCellList::from(&list)).expect("a list that is one");
                assert_eq!(again, list);
            }
        }
        _ => {
            same::<WireMap>(message);
            let map = control::decode::<WireMap>(message).and_then(|map| SpaceMap::try_from(&map));
            if let Ok(map) = map {
                let again = SpaceMap::try_from(&WireMap::from(&map)).expect("a map that is one");
                assert_eq!(again, map);
            }
        }
    }
}

fn same<M: Message + Default + PartialEq>(bytes: &[u8]) {
    if let Ok(message) = control::decode::<M>(bytes) {
        let encoded = control::encode(&message);
        let again = control::decode::<M>(&encoded).expect("what was encoded can be decoded");
        assert_eq!(control::encode(&again), encoded);
    }
}
