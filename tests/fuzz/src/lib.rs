//! Whatever decodes bytes from outside, fed with bytes that nobody meant.
//!
//! A [`Target`] takes any bytes and panics if a promise is broken: that decoding ends, with a value or an error; that what
//! decodes has one encoding, these bytes (what processes say to each other has fields in any order, and is the same after
//! being encoded and decoded again); that a mistake in a definition is a diagnostic. `cargo test` feeds each target
//! its corpus and mutations of it, and measures memory; `make fuzz` feeds it what libFuzzer finds by coverage.
//!
//! `corpus/` has a folder for each target, minimised: small inputs that together reach what is reachable. Inputs that once
//! broke something are kept there too.

mod bus;
mod definitions;
mod frames;
mod log;
mod movements;
mod proofs;
mod values;

/// Something that decodes bytes from outside.
#[derive(Debug)]
pub struct Target {
    /// Its name, and that of the folder of its corpus.
    pub name: &'static str,
    /// Takes any bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// How much memory it may take at a time.
    pub memory: Memory,
}

/// A bound on memory: so much for each byte of the input, and so much whatever it is.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes for each byte of the input.
    pub per_byte: usize,
    /// Bytes besides.
    pub besides: usize,
}

/// Of a decoder of binary forms. The smallest elements have one byte and become a value of a hundred, in vectors that
/// double, beside the copy for comparison.
const DECODED: Memory = Memory {
    per_byte: 512,
    besides: 64 << 10,
};

/// Of what reads XML: sections, diagnostics with the lines they point at, and what is compared afterwards.
const READ: Memory = Memory {
    per_byte: 2 << 10,
    besides: 1 << 20,
};

/// Of what tells movements: a few bits can tell of 1,024 entities that nothing is new, and each datagram of them is kept.
const TOLD: Memory = Memory {
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
    Target {
        name: "movements",
        run: movements::movements,
        memory: TOLD,
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
