//! What people who write definitions, or programs against them, ask of a schema.
//!
//! Responsible for: what a schema costs and how it looks ([`describe`], pages, tables), what a change of it does to whom
//! ([`diff`]), what could be written at a cursor ([`editor`]), schemas for XML tools, rules explained at length, findings for
//! programs, and generated code ([`codegen`]). Not responsible for: what definitions mean, which `annals-def` says. No
//! server needs any of this; what a server needs to read old data under new definitions is `annals_def::Plan`.
//!
//! | modules | what they do |
//! |---|---|
//! | `describe` | a schema with sizes, ids and origins: as a table, as a page, as JSON |
//! | `diff` | a migration plan in words: what a change does to stored data, log, peers and clients |
//! | `editor` | definitions while they are written: findings, completion, hover, where something is declared |
//! | `codegen` | typed Rust and TypeScript |
//! | `xml_schema` | the grammar as XSD and RELAX NG |
//! | `explanation`, `report` | rules at length with examples; findings as JSON and SARIF |

pub mod codegen;
mod describe;
mod diff;
pub mod editor;
mod explanation;
mod report;
mod xml_schema;

pub use describe::{
    ArgumentDescription, Description, MethodDescription, ObjectDescription, PropertyDescription, ServiceDescription,
    Storage, StoredIndex, Sum, Totals, TypeDescription, describe, description_to_json, to_page, to_table,
};
pub use diff::{
    Audience, ChangeKind, Class, Diff, Effect, Effects, SchemaChange, Shift, Step as MigrationStep, Subject, diff,
};
pub use explanation::{Example, Explanation, explain};
pub use report::{to_json, to_sarif};
pub use xml_schema::{SchemaFile, relax_ng_files, xsd_files};
