//! Tools for authors of definitions, and of programs that use them.
//!
//! Responsible for: the costs and the presentation of a schema ([`describe`], pages, tables), the effects of a change
//! ([`diff`]), editor support ([`editor`]), schemas for XML tools, explanations of rules, diagnostics for programs, and
//! generated code ([`codegen`]). Not responsible for: the meaning of definitions, which is in `annals-def`. No server
//! needs this crate; a server that reads old data under new definitions uses `annals_def::Plan`.
//!
//! | modules | what they do |
//! |---|---|
//! | `describe` | a schema with sizes, ids and origins: as a table, as a page, as JSON |
//! | `diff` | a migration plan in words: effects of a change on stored data, log, peers and clients |
//! | `editor` | editor support: diagnostics, completion, hover texts, places of declarations |
//! | `codegen` | typed Rust and TypeScript |
//! | `xml_schema` | the grammar as XSD and RELAX NG |
//! | `explanation`, `report` | rules explained with examples; diagnostics as JSON and SARIF |

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
