//! Messages about global data.

use annals_event::{GlobalEntry, GlobalScope, GlobalVersions, Malformed};
use annals_ids::Hash;

use super::{EnvelopeError, WireMessage, whole, written};
use crate::bus::{GlobalMessage, Message};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireGlobalDigest {
    #[prost(uint32, tag = "1")]
    scope: u32,
    #[prost(bytes = "vec", tag = "2")]
    digest: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireGlobalVersions {
    #[prost(uint32, tag = "1")]
    scope: u32,
    #[prost(bytes = "vec", tag = "2")]
    have: Vec<u8>,
    #[prost(bool, tag = "3")]
    is_answer: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireGlobalEntries {
    #[prost(uint32, tag = "1")]
    scope: u32,
    #[prost(bytes = "vec", repeated, tag = "2")]
    entries: Vec<Vec<u8>>,
}

pub(super) fn to_wire(scope: GlobalScope, message: &GlobalMessage) -> WireMessage {
    let scope = u32::from(scope.number());
    match message {
        GlobalMessage::Digest(digest) => WireMessage::GlobalDigest(WireGlobalDigest {
            scope,
            digest: digest.0.to_vec(),
        }),
        GlobalMessage::Versions { have, is_answer } => WireMessage::GlobalVersions(WireGlobalVersions {
            scope,
            have: written(|out| have.write(out)),
            is_answer: *is_answer,
        }),
        GlobalMessage::Entries(entries) => WireMessage::GlobalEntries(WireGlobalEntries {
            scope,
            entries: entries.iter().map(|entry| written(|out| entry.write(out))).collect(),
        }),
    }
}

pub(super) fn digest_from_wire(wire: &WireGlobalDigest) -> Result<Message, EnvelopeError> {
    let digest = wire.digest.as_slice().try_into();
    let digest = Hash(digest.map_err(|_| EnvelopeError::Missing("digest of 32 bytes"))?);
    Ok(Message::Global(scope(wire.scope)?, GlobalMessage::Digest(digest)))
}

pub(super) fn versions_from_wire(wire: &WireGlobalVersions) -> Result<Message, EnvelopeError> {
    let have = whole(&wire.have, GlobalVersions::read)?;
    let is_answer = wire.is_answer;
    Ok(Message::Global(
        scope(wire.scope)?,
        GlobalMessage::Versions { have, is_answer },
    ))
}

pub(super) fn entries_from_wire(wire: &WireGlobalEntries) -> Result<Message, EnvelopeError> {
    let entries = wire.entries.iter().map(|bytes| whole(bytes, GlobalEntry::read));
    let entries = entries.collect::<Result<_, Malformed>>()?;
    Ok(Message::Global(scope(wire.scope)?, GlobalMessage::Entries(entries)))
}

fn scope(wire: u32) -> Result<GlobalScope, EnvelopeError> {
    let scope = u8::try_from(wire).ok().and_then(GlobalScope::of_number);
    scope.ok_or(EnvelopeError::Missing("known scope of global data"))
}
