//! Integration tests of annals-def, in one binary: linking takes longer than compiling.

mod changes;
mod client_numbers;
mod component;
mod corpus;
mod dialect;
mod disk;
mod fingerprint;
mod golden;
mod grammar;
mod hostile;
mod migration;
mod personal;
mod reference;
mod sample_world;
mod several_mistakes;
mod stored_schema;
mod stream_vectors;
mod typed;
mod values;
mod wire_vectors;
mod zones;

mod support;
