//! Messages between witnesses and the proxies of their clients.

use annals_event::{Malformed, latest::call::take_place};
use annals_ids::{EntityId, SessionId};

use super::{EnvelopeError, WireMessage, WireViewMoved, history_number, place_bytes, whole, written};
use crate::{
    bus::{DrivenMovement, Message, ViewMessage},
    client::{Known, Movements, volatile::MovementAck},
};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireFrames {
    #[prost(uint64, tag = "1")]
    session: u64,
    #[prost(bytes = "vec", repeated, tag = "2")]
    frames: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireStamps {
    #[prost(uint64, tag = "1")]
    session: u64,
    #[prost(uint64, tag = "2")]
    entity: u64,
    #[prost(uint64, tag = "3")]
    view: u64,
    #[prost(bytes = "vec", tag = "4")]
    known: Vec<u8>,
    #[prost(float, tag = "5")]
    scale: f32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireMovementAck {
    #[prost(uint64, tag = "1")]
    session: u64,
    #[prost(uint64, tag = "2")]
    entity: u64,
    #[prost(uint64, tag = "3")]
    view: u64,
    #[prost(uint32, tag = "4")]
    tick: u32,
    #[prost(uint32, tag = "5")]
    before: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireViewDrove {
    #[prost(uint64, tag = "1")]
    session: u64,
    #[prost(uint64, tag = "2")]
    driver: u64,
    #[prost(uint64, tag = "3")]
    driven: u64,
    #[prost(uint64, tag = "4")]
    upto: u64,
    #[prost(uint64, tag = "5")]
    sequence: u64,
    #[prost(bytes = "vec", tag = "6")]
    place: Vec<u8>,
}

pub(super) fn to_wire(message: &ViewMessage) -> WireMessage {
    match message {
        ViewMessage::Frames { session, frames } => WireMessage::ViewFrames(WireFrames {
            session: session.0,
            frames: frames.clone(),
        }),
        ViewMessage::Datagram { session, bytes } => WireMessage::ViewDatagram(WireFrames {
            session: session.0,
            frames: vec![bytes.clone()],
        }),
        ViewMessage::Stamps {
            session,
            entity,
            view,
            known,
            movements,
        } => WireMessage::ViewStamps(WireStamps {
            session: session.0,
            entity: entity.0,
            view: *view,
            known: written(|out| known.write(out)),
            scale: movements.scale(),
        }),
        ViewMessage::Moved {
            session,
            entity,
            sequence,
            place,
        } => WireMessage::ViewMoved(WireViewMoved {
            session: session.0,
            entity: entity.0,
            sequence: *sequence,
            place: place_bytes(place),
        }),
        ViewMessage::Drove(movement) => WireMessage::ViewDrove(WireViewDrove {
            session: movement.session.0,
            driver: movement.driver.0,
            driven: movement.driven.0,
            upto: movement.upto.0,
            sequence: movement.sequence,
            place: place_bytes(&movement.place),
        }),
        ViewMessage::MovementAck {
            session,
            entity,
            view,
            ack,
        } => WireMessage::MovementAck(WireMovementAck {
            session: session.0,
            entity: entity.0,
            view: *view,
            tick: ack.tick.into(),
            before: ack.before.into(),
        }),
    }
}

pub(super) fn frames_from_wire(wire: WireFrames) -> Message {
    Message::View(ViewMessage::Frames {
        session: SessionId(wire.session),
        frames: wire.frames,
    })
}

pub(super) fn datagram_from_wire(wire: WireFrames) -> Result<Message, EnvelopeError> {
    let bytes = wire.frames.into_iter().next();
    Ok(Message::View(ViewMessage::Datagram {
        session: SessionId(wire.session),
        bytes: bytes.ok_or(EnvelopeError::Missing("datagram"))?,
    }))
}

pub(super) fn moved_from_wire(wire: &WireViewMoved) -> Result<Message, Malformed> {
    Ok(Message::View(ViewMessage::Moved {
        session: SessionId(wire.session),
        entity: EntityId(wire.entity),
        sequence: wire.sequence,
        place: whole(&wire.place, take_place)?,
    }))
}

pub(super) fn stamps_from_wire(wire: &WireStamps) -> Result<Message, EnvelopeError> {
    let movements = Movements::with_scale(wire.scale);
    Ok(Message::View(ViewMessage::Stamps {
        session: SessionId(wire.session),
        entity: EntityId(wire.entity),
        view: wire.view,
        known: whole(&wire.known, Known::read)?,
        movements: movements.ok_or(EnvelopeError::Missing("sound scale of movements"))?,
    }))
}

pub(super) fn drove_from_wire(wire: &WireViewDrove) -> Result<Message, EnvelopeError> {
    Ok(Message::View(ViewMessage::Drove(DrivenMovement {
        session: SessionId(wire.session),
        driver: EntityId(wire.driver),
        driven: EntityId(wire.driven),
        upto: history_number(wire.upto)?,
        sequence: wire.sequence,
        place: whole(&wire.place, take_place)?,
    })))
}

pub(super) fn movement_ack_from_wire(wire: &WireMovementAck) -> Result<Message, EnvelopeError> {
    let half = |wire: u32| u16::try_from(wire).map_err(|_| EnvelopeError::Endless(wire.into()));
    Ok(Message::View(ViewMessage::MovementAck {
        session: SessionId(wire.session),
        entity: EntityId(wire.entity),
        view: wire.view,
        ack: MovementAck {
            tick: half(wire.tick)?,
            before: half(wire.before)?,
        },
    }))
}
