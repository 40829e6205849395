//! Integration tests of annals-authoring, in one binary: linking takes longer than compiling.

mod client_numbers;
mod describe;
mod diff;
mod diff_golden;
mod editor;
mod explanations;
mod nothing_ignored;
mod page;
mod released;
mod xml_schemas;

#[path = "../../../def/tests/def/support/mod.rs"]
mod support;
