//! Fuzz targets: all decoders of external bytes, with arbitrary input.
//!
//! A [`Target`] takes any bytes and panics if a promise is broken: decoding terminates, with a value or an error; a
//! value that decodes has one encoding, these bytes (bus messages have fields in any order, and are equal after being
//! encoded and decoded again); a mistake in a definition is a diagnostic. `cargo test` runs each target on its corpus
//! and mutations of it, and measures memory; `make fuzz` runs it on what libFuzzer finds by coverage.
//!
//! `corpus/` has a folder for each target, minimised: small inputs that together reach all reachable code. Inputs that
//! once exposed a defect are kept there too.

mod bus;
mod definitions;
mod frames;
mod log;
mod movements;
mod proofs;
mod transports;
mod values;

/// A decoder of external bytes.
#[derive(Debug)]
pub struct Target {
    /// Its name, and the name of its corpus folder.
    pub name: &'static str,
    /// Takes any bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Bound on its peak memory.
    pub memory: Memory,
}

/// A bound on memory, linear in the size of the input.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes per byte of the input.
    pub per_byte: usize,
    /// Constant part, bytes.
    pub besides: usize,
}

/// For decoders of binary formats. The smallest elements have one byte and become a value of a hundred, in vectors that
/// double, besides the copy for comparison.
const DECODED: Memory = Memory {
    per_byte: 512,
    besides: 64 << 10,
};

/// For readers of XML: sections, diagnostics with their source lines, and the data compared afterwards.
const READ: Memory = Memory {
    per_byte: 2 << 10,
    besides: 1 << 20,
};

/// For movement decoders: a few bits can say for 1,024 entities that nothing is new, and each such datagram is kept.
const MOVEMENTS: Memory = Memory {
    per_byte: 512 << 10,
    besides: 1 << 20,
};

const fn decoder(name: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        run,
        memory: DECODED,
    }
}

const fn reader(name: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        run,
        memory: READ,
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    reader("definitions", definitions::definitions),
    reader("data_file", definitions::data_file),
    decoder("stored_schema", values::stored_schema),
    decoder("value", values::value),
    decoder("elements", values::elements),
    decoder("packed_path", values::packed_path),
    decoder("shown", values::shown),
    decoder("shown_crowded", values::shown_crowded),
    decoder("message_id", values::message_id),
    decoder("event", log::event),
    decoder("call", log::call),
    decoder("image", log::image),
    decoder("batch", log::batch),
    decoder("owner_state", log::owner_state),
    decoder("fold", log::fold),
    decoder("notice", log::notice),
    decoder("stored_entity", log::stored_entity),
    decoder("client_frame", frames::client_frame),
    decoder("client_stream", frames::client_stream),
    decoder("web_socket_message", transports::web_socket_message),
    decoder("web_transport_settings", transports::web_transport_settings),
    decoder("web_transport_request", transports::web_transport_request),
    decoder("web_transport_capsules", transports::web_transport_capsules),
    Target {
        name: "movements",
        run: movements::movements,
        memory: MOVEMENTS,
    },
    decoder("bus_message", bus::bus_message),
    decoder("control_message", bus::control_message),
    decoder("signed_note", proofs::signed_note),
    decoder("proof_file", proofs::proof_file),
    decoder("merkle_proof", proofs::merkle_proof),
    decoder("evidence", proofs::evidence),
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
