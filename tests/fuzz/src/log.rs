//! Logged and stored data: events, calls, images, batches, and the state they fold into.

use annals_db::StoredEntity;
use annals_event::{Batch, Body, Call, Event, Image, Links, OwnerState, Reader, ledger::Notice};
use annals_ids::{OwnerId, OwnerKind};

/// One event.
pub(crate) fn event(bytes: &[u8]) {
    if let Ok(event) = Event::read(bytes) {
        let mut written = Vec::new();
        event.write(&mut written);
        assert_eq!(written, bytes);
        // Clients are sent the path in its packed form, whatever the log holds.
        if let Body::Changed { change, .. } = &event.body {
            change.pack((0, 1), &mut Vec::new());
        }
    }
}

/// One call, followed by other bytes.
pub(crate) fn call(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    if let Ok(call) = Call::read(&mut reader) {
        let mut written = Vec::new();
        call.write(&mut written);
        assert_eq!(written, bytes[..reader.offset()]);
    }
}

/// One image or the links of an address, followed by other bytes.
pub(crate) fn image(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    if let Ok(image) = Image::read(&mut reader) {
        let mut written = Vec::new();
        image.write(&mut written);
        assert_eq!(written, bytes[..reader.offset()]);
        image.write_stable(&mut written);
        image.history_since(image.history).map(Iterator::count);
    }
    let mut reader = Reader::new(bytes);
    if let Ok(links) = Links::read(&mut reader) {
        let mut written = Vec::new();
        links.write(&mut written);
        assert_eq!(written, bytes[..reader.offset()]);
    }
}

/// A batch as it is in a log. Its root covers its events, so that a changed one is rejected.
pub(crate) fn batch(bytes: &[u8]) {
    let Ok(batch) = Batch::read(bytes) else {
        return;
    };
    for event in &batch.events {
        self::event(&{
            let mut written = Vec::new();
            event.write(&mut written);
            written
        });
    }
    assert!(!batch.follows(&batch.tail()), "no batch follows itself");
    let mut state = OwnerState::new(batch.header.owner, OwnerKind::Cell);
    if state.fold(&batch).is_ok() {
        check_state(&state);
    }
}

/// An owner's own part of its state, as in a snapshot.
pub(crate) fn owner_state(bytes: &[u8]) {
    if let Ok(state) = OwnerState::read_own(bytes) {
        let mut written = Vec::new();
        state.write_own(&mut written);
        assert_eq!(written, bytes);
        assert_eq!(
            OwnerState::read_own(&written).map(|again| again.hash()),
            Ok(state.hash())
        );
    }
}

/// Events in sequence, each preceded by its length, folded into the state of a base, a cell or the ledger's owner,
/// which the first byte selects. An impossible event is an error and changes nothing.
pub(crate) fn fold(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else {
        return;
    };
    let kind = match first % 4 {
        0 | 2 => OwnerKind::Base,
        1 => OwnerKind::Cell,
        _ => OwnerKind::Ledger,
    };
    let mut state = OwnerState::new(OwnerId(1), kind);
    let mut reader = Reader::new(rest);
    while let Ok(bytes) = reader.bytes("event") {
        let Ok(event) = Event::read(bytes) else {
            break;
        };
        if state.apply(&event).is_err() {
            break;
        }
    }
    check_state(&state);
}

/// A state reached by folding can be written and read.
fn check_state(state: &OwnerState) {
    let mut own = Vec::new();
    state.write_own(&mut own);
    let mut read = OwnerState::read_own(&own).expect("what was written can be read");
    for (&entity, image) in &state.entities {
        let mut written = Vec::new();
        image.write(&mut written);
        let image = Image::read(&mut Reader::new(&written)).expect("what was written can be read");
        read.restore(entity, image);
    }
    assert_eq!(read.hash(), state.hash());
}

/// A notice in the ledger's outbox.
pub(crate) fn notice(bytes: &[u8]) {
    if let Ok(notice) = Notice::read(bytes) {
        let mut written = Vec::new();
        notice.write(&mut written);
        assert_eq!(written, bytes);
    }
}

/// A stored entity.
pub(crate) fn stored_entity(bytes: &[u8]) {
    if let Ok((generation, stored)) = StoredEntity::decode(bytes) {
        assert_eq!(stored.encode(generation), bytes);
    }
}
