//! Positions of entities in datagrams.

use annals_event::Reader;
use annals_ids::{EntityId, Tick};
use annals_wire::client::volatile::{Motion, Packing, VolatileReader};

/// The number of the view that is read.
const VIEW: u64 = 1;

/// Datagrams of one view, each preceded by a byte with its length, in the codec that the first byte selects.
pub(crate) fn movements(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0, packed)) => read_packed(packed),
        Some((_, rest)) => read_predicted(rest),
        None => {}
    }
}

fn read_predicted(mut rest: &[u8]) {
    let packing = Packing::with_scale(1.0);
    let mut reader = VolatileReader::new(VIEW, packing);
    while let Some((&length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        if let Ok(update) = reader.read(datagram, Tick(70_000)) {
            assert!(!update.motions.is_empty() && update.motions.iter().all(Motion::is_sound));
            assert!(reader.ack().is_some());
            assert!(reader.read(datagram, Tick(70_000)).is_err(), "a duplicate is rejected");
        }
    }
}

/// Messages of the packing: decoded messages survive being encoded and decoded again.
fn read_packed(bytes: &[u8]) {
    let packing = Packing::with_scale(1.0);
    let reader = &mut Reader::new(bytes);
    let named = |alias: u8| (alias < 255).then_some(EntityId(alias.into()));
    while let Ok(found) = packing.take(reader, [0, 0, 0], named) {
        let Some(motion) = found else { continue };
        let mut written = Vec::new();
        packing.put(&mut written, [0, 0, 0], None, &motion);
        let again = packing.take(&mut Reader::new(&written), [0, 0, 0], named);
        assert_eq!(again, Ok(Some(motion)));
    }
}
