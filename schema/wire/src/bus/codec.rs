//! The encoding of envelopes: Protocol Buffers outside, so that an older process skips fields that a newer one adds,
//! and the log's own encodings for calls, events and values inside.

mod global;
mod view;

use annals_event::{
    Call, Driver, Event, Link, Malformed, ORDINALS, Place, Reader, SpaceEntry, SpaceVersions,
    latest::{
        batch::{put_address, take_address},
        call::{put_place, put_properties, take_place, take_properties},
    },
};
use annals_ids::{Address, CallNumber, EntityId, Epoch, Hash, HistoryNumber, OwnerId, SessionId, SpaceId, TypeId};
use prost::Message as _;
use thiserror::Error;

use crate::client::CallRefusal;

use self::{
    global::{WireGlobalDigest, WireGlobalEntries, WireGlobalVersions},
    view::{WireFrames, WireMovementAck, WireStamps, WireViewDrove},
};
use super::{CallMessage, Envelope, GhostImage, GhostMessage, GhostMove, Message, Packet, Shown, SpaceMessage};

/// Why bytes from the bus are not an envelope.
#[derive(Debug, Error)]
pub enum EnvelopeError {
    /// They are not a Protocol Buffers message of this shape.
    #[error("the message is not an envelope")]
    Shape(#[from] prost::DecodeError),
    /// A required field is missing.
    #[error("the envelope has no {0}, or one of a newer kind: upgrade this process")]
    Missing(&'static str),
    /// A counter is out of range.
    #[error("the envelope holds the number {0}, which is out of range")]
    Endless(u64),
    /// A nested value is not in its one encoding.
    #[error("the envelope has a malformed field")]
    Inside(#[from] Malformed),
    /// It was written under other definitions than the receiver's.
    #[error("the envelope was written under other definitions of the realm")]
    OtherDefinitions,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireEnvelope {
    #[prost(uint32, tag = "1")]
    from: u32,
    #[prost(uint64, tag = "2")]
    epoch: u64,
    #[prost(
        oneof = "WireMessage",
        tags = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 25, 26, 27"
    )]
    message: Option<WireMessage>,
    /// The beginning of the fingerprint of the sender's definitions.
    #[prost(fixed64, optional, tag = "21")]
    definitions: Option<u64>,
    /// Further messages, after `message`. A release that does not know them drops them, so they are sent only to owners
    /// whose process has said that it reads them.
    #[prost(message, repeated, tag = "22")]
    more: Vec<WireMore>,
    /// Whether the sender reads `more`.
    #[prost(bool, tag = "23")]
    reads_more: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireMore {
    #[prost(
        oneof = "WireMessage",
        tags = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 25, 26, 27"
    )]
    message: Option<WireMessage>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum WireMessage {
    #[prost(message, tag = "3")]
    Call(WireCall),
    #[prost(message, tag = "4")]
    Took(WireLink),
    #[prost(message, tag = "5")]
    Gap(WireLink),
    #[prost(message, tag = "6")]
    Moved(WireMoved),
    #[prost(message, tag = "7")]
    Gone(WireLink),
    #[prost(message, tag = "8")]
    GhostImage(WireGhostImage),
    #[prost(message, tag = "9")]
    GhostEvents(WireGhostEvents),
    #[prost(message, tag = "10")]
    GhostMoves(WireGhostMoves),
    #[prost(message, tag = "11")]
    GhostHeads(WireNumbers),
    #[prost(message, tag = "12")]
    GhostAsk(WireGhostAsk),
    #[prost(message, tag = "13")]
    ViewFrames(WireFrames),
    #[prost(message, tag = "14")]
    ViewDatagram(WireFrames),
    #[prost(message, tag = "15")]
    ViewStamps(WireStamps),
    #[prost(message, tag = "16")]
    ViewMoved(WireViewMoved),
    #[prost(message, tag = "17")]
    Refused(WireRefused),
    #[prost(message, tag = "18")]
    MovementAck(WireMovementAck),
    #[prost(message, tag = "19")]
    SpaceVersions(WireSpaceVersions),
    #[prost(message, tag = "20")]
    SpaceEntries(WireSpaceEntries),
    #[prost(message, tag = "24")]
    GlobalDigest(WireGlobalDigest),
    #[prost(message, tag = "25")]
    GlobalVersions(WireGlobalVersions),
    #[prost(message, tag = "26")]
    GlobalEntries(WireGlobalEntries),
    #[prost(message, tag = "27")]
    ViewDrove(WireViewDrove),
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireSpaceVersions {
    #[prost(uint32, tag = "1")]
    space: u32,
    #[prost(bytes = "vec", tag = "2")]
    have: Vec<u8>,
    #[prost(bool, tag = "3")]
    is_answer: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireSpaceEntries {
    #[prost(uint32, tag = "1")]
    space: u32,
    #[prost(bytes = "vec", repeated, tag = "2")]
    entries: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireRefused {
    #[prost(bytes = "vec", tag = "1")]
    link: Vec<u8>,
    #[prost(uint64, tag = "2")]
    number: u64,
    #[prost(uint32, tag = "3")]
    reason: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireLink {
    #[prost(bytes = "vec", tag = "1")]
    link: Vec<u8>,
    #[prost(uint64, tag = "2")]
    number: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireCall {
    #[prost(bytes = "vec", tag = "1")]
    link: Vec<u8>,
    #[prost(uint64, tag = "2")]
    number: u64,
    #[prost(uint32, tag = "3")]
    from_home: u32,
    #[prost(uint32, tag = "4")]
    to_home: u32,
    #[prost(bytes = "vec", tag = "5")]
    trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "6")]
    call: Vec<u8>,
    #[prost(bool, tag = "7")]
    is_oldest: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireMoved {
    #[prost(uint64, tag = "1")]
    entity: u64,
    #[prost(uint32, tag = "2")]
    to: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireGhostImage {
    #[prost(uint64, tag = "1")]
    entity: u64,
    #[prost(uint32, tag = "2")]
    type_id: u32,
    #[prost(uint32, tag = "3")]
    home: u32,
    #[prost(uint64, optional, tag = "4")]
    session: Option<u64>,
    #[prost(uint64, tag = "5")]
    history: u64,
    #[prost(bytes = "vec", tag = "6")]
    place: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    properties: Vec<u8>,
    /// Empty bytes encode the entity's client.
    #[prost(bytes = "vec", tag = "8")]
    driver: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireGhostEvents {
    #[prost(uint64, tag = "1")]
    entity: u64,
    #[prost(uint64, tag = "2")]
    after: u64,
    /// Empty bytes encode a hidden event.
    #[prost(bytes = "vec", repeated, tag = "3")]
    events: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireGhostMoves {
    #[prost(message, repeated, tag = "1")]
    moves: Vec<WireViewMoved>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireNumbers {
    #[prost(uint64, repeated, tag = "1")]
    entities: Vec<u64>,
    #[prost(uint64, repeated, tag = "2")]
    numbers: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireGhostAsk {
    #[prost(uint64, tag = "1")]
    entity: u64,
    #[prost(uint64, optional, tag = "2")]
    have: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireViewMoved {
    #[prost(uint64, tag = "1")]
    session: u64,
    #[prost(uint64, tag = "2")]
    entity: u64,
    #[prost(uint64, tag = "3")]
    sequence: u64,
    #[prost(bytes = "vec", tag = "4")]
    place: Vec<u8>,
}

/// Gathers messages of one owner to another until they are sent as one packet.
#[derive(Clone, Debug)]
pub struct PacketBuilder {
    first: WireMessage,
    more: Vec<WireMore>,
    bytes: usize,
}

impl Envelope {
    /// Encodes the envelope, without the definitions under which it was written.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        PacketBuilder::new(&self.message)
            .into_wire(self.from, self.epoch)
            .encode_to_vec()
    }

    /// Decodes an envelope.
    ///
    /// # Errors
    /// When they are not an envelope of a known kind.
    pub fn decode(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let wire = WireEnvelope::decode(bytes)?;
        Ok(Self {
            from: OwnerId(wire.from),
            epoch: Epoch(wire.epoch),
            message: of_wire(wire.message)?,
        })
    }
}

impl PacketBuilder {
    /// A packet of one message.
    #[must_use]
    pub fn new(first: &Message) -> Self {
        let first = to_wire(first);
        Self {
            bytes: first.encoded_len(),
            first,
            more: Vec::new(),
        }
    }

    /// Adds a message after the others.
    pub fn push(&mut self, message: &Message) {
        let message = WireMore {
            message: Some(to_wire(message)),
        };
        self.bytes += message.encoded_len();
        self.more.push(message);
    }

    /// Size of the messages, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Encodes the packet for the bus. It names the definitions with this fingerprint, by which its types and members are
    /// numbered.
    #[must_use]
    pub fn finish(self, from: OwnerId, epoch: Epoch, definitions: Hash) -> Vec<u8> {
        let wire = WireEnvelope {
            definitions: Some(mark_of(definitions)),
            reads_more: true,
            ..self.into_wire(from, epoch)
        };
        wire.encode_to_vec()
    }

    fn into_wire(self, from: OwnerId, epoch: Epoch) -> WireEnvelope {
        WireEnvelope {
            from: from.0,
            epoch: epoch.0,
            message: Some(self.first),
            definitions: None,
            more: self.more,
            reads_more: false,
        }
    }
}

impl Packet {
    /// Decodes bytes from the bus, for a receiver with the definitions of this fingerprint. A packet that names none is of
    /// a release in which definitions did not change while processes ran.
    ///
    /// # Errors
    /// When they are not a packet; [`EnvelopeError::OtherDefinitions`] when its numbers are those of others (rule M7).
    pub fn decode(bytes: &[u8], definitions: Hash) -> Result<Self, EnvelopeError> {
        let wire = WireEnvelope::decode(bytes)?;
        if wire.definitions.is_some_and(|mark| mark != mark_of(definitions)) {
            return Err(EnvelopeError::OtherDefinitions);
        }
        let more = wire.more.into_iter().map(|more| more.message);
        Ok(Self {
            from: OwnerId(wire.from),
            epoch: Epoch(wire.epoch),
            reads_packets: wire.reads_more,
            messages: std::iter::once(wire.message).chain(more).map(of_wire).collect(),
        })
    }
}

/// The beginning of a fingerprint: enough to distinguish the few definitions of one realm.
fn mark_of(definitions: Hash) -> u64 {
    let mut mark = [0; 8];
    mark.copy_from_slice(&definitions.0[..8]);
    u64::from_be_bytes(mark)
}

fn of_wire(message: Option<WireMessage>) -> Result<Message, EnvelopeError> {
    from_wire(message.ok_or(EnvelopeError::Missing("message"))?)
}

fn to_wire(message: &Message) -> WireMessage {
    match message {
        Message::Call(message) => WireMessage::Call(WireCall {
            link: link_bytes(message.link),
            number: message.number.0,
            is_oldest: message.is_oldest,
            from_home: message.from_home.0,
            to_home: message.to_home.0,
            trace: message.trace.to_vec(),
            call: written(|out| message.call.write(out)),
        }),
        Message::Took { link, upto } => WireMessage::Took(WireLink {
            link: link_bytes(*link),
            number: upto.0,
        }),
        Message::Gap { link, have } => WireMessage::Gap(WireLink {
            link: link_bytes(*link),
            number: have.0,
        }),
        Message::Gone { link } => WireMessage::Gone(WireLink {
            link: link_bytes(*link),
            number: 0,
        }),
        Message::Refused { link, number, reason } => WireMessage::Refused(WireRefused {
            link: link_bytes(*link),
            number: number.0,
            reason: u32::from(reason.code()),
        }),
        Message::Moved { entity, to } => WireMessage::Moved(WireMoved {
            entity: entity.0,
            to: to.0,
        }),
        Message::Ghost(message) => ghost_to_wire(message),
        Message::Space(space, message) => space_to_wire(*space, message),
        Message::Global(scope, message) => global::to_wire(*scope, message),
        Message::View(message) => view::to_wire(message),
    }
}

fn space_to_wire(space: SpaceId, message: &SpaceMessage) -> WireMessage {
    match message {
        SpaceMessage::Versions { have, is_answer } => WireMessage::SpaceVersions(WireSpaceVersions {
            space: space.0,
            have: written(|out| have.write(out)),
            is_answer: *is_answer,
        }),
        SpaceMessage::Entries(entries) => WireMessage::SpaceEntries(WireSpaceEntries {
            space: space.0,
            entries: entries.iter().map(|entry| written(|out| entry.write(out))).collect(),
        }),
    }
}

fn ghost_to_wire(message: &GhostMessage) -> WireMessage {
    match message {
        GhostMessage::Image { entity, image } => WireMessage::GhostImage(WireGhostImage {
            entity: entity.0,
            type_id: u32::from(image.type_id.0),
            home: image.home.0,
            session: image.session.map(|session| session.0),
            history: image.history.0,
            place: place_bytes(&image.place),
            driver: match image.driver {
                Driver::Client => Vec::new(),
                driver => written(|out| driver.write(out)),
            },
            properties: written(|out| put_properties(out, &image.properties)),
        }),
        GhostMessage::Events { entity, after, events } => WireMessage::GhostEvents(WireGhostEvents {
            entity: entity.0,
            after: after.0,
            events: events
                .iter()
                .map(|shown| match shown {
                    Shown::Hidden => Vec::new(),
                    Shown::Event(event) => written(|out| event.write(out)),
                })
                .collect(),
        }),
        GhostMessage::Moves(moves) => WireMessage::GhostMoves(WireGhostMoves {
            moves: moves
                .iter()
                .map(|moved| WireViewMoved {
                    session: 0,
                    entity: moved.entity.0,
                    sequence: moved.sequence,
                    place: place_bytes(&moved.place),
                })
                .collect(),
        }),
        GhostMessage::Heads(heads) => WireMessage::GhostHeads(numbers(heads)),
        GhostMessage::Ask { entity, have } => WireMessage::GhostAsk(WireGhostAsk {
            entity: entity.0,
            have: have.map(|have| have.0),
        }),
    }
}

fn from_wire(message: WireMessage) -> Result<Message, EnvelopeError> {
    Ok(match message {
        WireMessage::Call(wire) => Message::Call(CallMessage {
            link: take_link(&wire.link)?,
            number: call_number(wire.number)?,
            is_oldest: wire.is_oldest,
            from_home: OwnerId(wire.from_home),
            to_home: OwnerId(wire.to_home),
            trace: wire.trace.try_into().map_err(|_| EnvelopeError::Missing("trace"))?,
            call: whole(&wire.call, Call::read)?,
        }),
        WireMessage::Took(wire) => Message::Took {
            link: take_link(&wire.link)?,
            upto: call_number(wire.number)?,
        },
        WireMessage::Gap(wire) => Message::Gap {
            link: take_link(&wire.link)?,
            have: call_number(wire.number)?,
        },
        WireMessage::Gone(wire) => Message::Gone {
            link: take_link(&wire.link)?,
        },
        WireMessage::Refused(wire) => refused_from_wire(&wire)?,
        WireMessage::Moved(wire) => Message::Moved {
            entity: EntityId(wire.entity),
            to: OwnerId(wire.to),
        },
        WireMessage::GhostImage(wire) => Message::Ghost(image_from_wire(&wire)?),
        WireMessage::GhostEvents(wire) => Message::Ghost(GhostMessage::Events {
            entity: EntityId(wire.entity),
            after: history_number(wire.after)?,
            events: wire.events.iter().map(|bytes| shown(bytes)).collect::<Result<_, _>>()?,
        }),
        WireMessage::GhostMoves(wire) => Message::Ghost(moves_from_wire(&wire)?),
        WireMessage::GhostHeads(wire) => Message::Ghost(GhostMessage::Heads(take_numbers(&wire)?)),
        WireMessage::GhostAsk(wire) => {
            let have = wire.have.map(history_number).transpose()?;
            Message::Ghost(GhostMessage::Ask {
                entity: EntityId(wire.entity),
                have,
            })
        }
        WireMessage::ViewFrames(wire) => view::frames_from_wire(wire),
        WireMessage::ViewDatagram(wire) => view::datagram_from_wire(wire)?,
        WireMessage::ViewStamps(wire) => view::stamps_from_wire(&wire)?,
        WireMessage::ViewMoved(wire) => view::moved_from_wire(&wire)?,
        WireMessage::ViewDrove(wire) => view::drove_from_wire(&wire)?,
        WireMessage::MovementAck(wire) => view::movement_ack_from_wire(&wire)?,
        WireMessage::SpaceVersions(wire) => Message::Space(SpaceId(wire.space), versions_from_wire(&wire)?),
        WireMessage::SpaceEntries(wire) => Message::Space(SpaceId(wire.space), entries_from_wire(&wire)?),
        WireMessage::GlobalDigest(wire) => global::digest_from_wire(&wire)?,
        WireMessage::GlobalVersions(wire) => global::versions_from_wire(&wire)?,
        WireMessage::GlobalEntries(wire) => global::entries_from_wire(&wire)?,
    })
}

fn versions_from_wire(wire: &WireSpaceVersions) -> Result<SpaceMessage, Malformed> {
    let have = whole(&wire.have, SpaceVersions::read)?;
    let is_answer = wire.is_answer;
    Ok(SpaceMessage::Versions { have, is_answer })
}

fn entries_from_wire(wire: &WireSpaceEntries) -> Result<SpaceMessage, Malformed> {
    let entries = wire.entries.iter().map(|bytes| whole(bytes, SpaceEntry::read));
    Ok(SpaceMessage::Entries(entries.collect::<Result<_, _>>()?))
}

fn refused_from_wire(wire: &WireRefused) -> Result<Message, EnvelopeError> {
    let reason = u8::try_from(wire.reason).ok().and_then(CallRefusal::from_code);
    Ok(Message::Refused {
        link: take_link(&wire.link)?,
        number: call_number(wire.number)?,
        reason: reason.ok_or(EnvelopeError::Missing("reason"))?,
    })
}

fn moves_from_wire(wire: &WireGhostMoves) -> Result<GhostMessage, EnvelopeError> {
    let moves = wire.moves.iter().map(|moved| {
        let place = whole(&moved.place, take_place)?;
        Ok(GhostMove {
            entity: EntityId(moved.entity),
            sequence: moved.sequence,
            place,
        })
    });
    Ok(GhostMessage::Moves(moves.collect::<Result<_, Malformed>>()?))
}

fn image_from_wire(wire: &WireGhostImage) -> Result<GhostMessage, EnvelopeError> {
    let image = GhostImage {
        type_id: TypeId(u16::try_from(wire.type_id).map_err(|_| EnvelopeError::Missing("type"))?),
        home: OwnerId(wire.home),
        session: wire.session.map(SessionId),
        history: history_number(wire.history)?,
        place: whole(&wire.place, take_place)?,
        driver: match wire.driver.as_slice() {
            [] => Driver::Client,
            driver => whole(driver, Driver::read)?,
        },
        properties: whole(&wire.properties, take_properties)?,
    };
    Ok(GhostMessage::Image {
        entity: EntityId(wire.entity),
        image: Box::new(image),
    })
}

fn shown(bytes: &[u8]) -> Result<Shown, Malformed> {
    if bytes.is_empty() {
        Ok(Shown::Hidden)
    } else {
        Ok(Shown::Event(Box::new(Event::read(bytes)?)))
    }
}

fn numbers(pairs: &[(EntityId, HistoryNumber)]) -> WireNumbers {
    let (entities, numbers) = pairs.iter().map(|(entity, number)| (entity.0, number.0)).unzip();
    WireNumbers { entities, numbers }
}

fn take_numbers(wire: &WireNumbers) -> Result<Vec<(EntityId, HistoryNumber)>, EnvelopeError> {
    if wire.entities.len() != wire.numbers.len() {
        return Err(EnvelopeError::Missing("history number for each entity"));
    }
    let pairs = wire.entities.iter().zip(&wire.numbers);
    pairs
        .map(|(entity, number)| Ok((EntityId(*entity), history_number(*number)?)))
        .collect()
}

fn call_number(number: u64) -> Result<CallNumber, EnvelopeError> {
    ordinal(number).map(CallNumber)
}

fn history_number(number: u64) -> Result<HistoryNumber, EnvelopeError> {
    ordinal(number).map(HistoryNumber)
}

/// A number that is counted up by one: numbers counted on from it, and logged, must be below the bound too.
fn ordinal(number: u64) -> Result<u64, EnvelopeError> {
    if number < ORDINALS / 2 {
        Ok(number)
    } else {
        Err(EnvelopeError::Endless(number))
    }
}

fn link_bytes(link: Link) -> Vec<u8> {
    written(|out| {
        put_address(out, link.from);
        put_address(out, link.to);
    })
}

fn take_link(bytes: &[u8]) -> Result<Link, Malformed> {
    whole(bytes, |reader| {
        let (from, to): (Address, Address) = (take_address(reader)?, take_address(reader)?);
        Ok(Link { from, to })
    })
}

fn place_bytes(place: &Place) -> Vec<u8> {
    written(|out| put_place(out, place))
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn whole<T>(bytes: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>) -> Result<T, Malformed> {
    let mut reader = Reader::of_message(bytes);
    let value = read(&mut reader)?;
    reader.finish("end of field")?;
    Ok(value)
}

#[cfg(test)]
mod tests;
