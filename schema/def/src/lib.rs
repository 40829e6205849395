//! The `.def` language: parses, checks and compiles entity definitions; types and values.
//!
//! Responsible for: the definitions that designers write, diagnostics for all mistakes in them at once, the immutable
//! [`Schema`] compiled from them, and the values of members: checked, changed as a whole or in parts, encoded and
//! decoded. Not responsible for: how values are logged, stored and sent, which other crates do; and tools for the
//! authors of definitions, which are in `annals-authoring`.
//!
//! | modules | what they do |
//! |---|---|
//! | `grammar`, `source`, `element`, `read` | the vocabulary; XML files; the reader of definitions |
//! | `compile`, `schema`, `survey`, `names` | from declarations to the [`Schema`], and where each thing is declared |
//! | `zone` | what authors have placed in a world |
//! | `diagnostic` | mistakes and waste, and how they are reported |
//! | `data_type`, `value`, `check`, `notation`, `stream` | types and values, as text and as bytes |
//! | `path`, `change`, `component`, `message_range`, `typed` | how values change, are sent and are held by games |
//! | `size`, `member_ids` | bytes of values and of member ids |
//! | `migrate` | conversion of data between schemas |
//! | `generate` | random types, values and changes, for tests and puppets |

mod change;
mod check;
mod compile;
mod component;
mod data_type;
mod diagnostic;
mod element;
mod generate;
pub mod grammar;
mod member_ids;
mod message_range;
mod migrate;
mod names;
pub mod notation;
mod path;
mod read;
mod schema;
mod size;
mod source;
mod stream;
mod survey;
pub mod typed;
mod value;
mod zone;

pub use change::{
    Change, ChangeError, Edit, Located, OtherShape, PackedPath, Replaced, apply, difference, unpack_path,
};
pub use check::{Mismatch, Problem, Step, check};
pub use compile::{Compiled, check_dir, compile, compile_named, dialect_of};
pub use component::{Component, FieldChange, Shadowed, Synchronised, Tracked};
pub use data_type::{
    DataType, Field, FixedDict, Form, MAILBOX_SIZE, MAX_DEFAULT_VALUES, MAX_EMPTY_ELEMENTS, MAX_LENGTH, MAX_TYPE_DEPTH,
    MAX_TYPE_NODES, PythonKind, Sequence, UDO_REF_SIZE,
};
pub use diagnostic::{
    Diagnostic, Fix, MAX_FINDINGS, Rule, RuleText, Severity, SourceSpan, Style, columns, digest, nearest, paint, render,
};
pub use element::{Element, read_elements};
pub use generate::{
    Dice, as_shown, change_as_shown, generate, generate_change, generate_nested, generate_slice, generate_type,
    generate_with_parts, split_mix,
};
pub use member_ids::Ids;
pub use message_range::MessageRange;
pub use migrate::{
    Arguments, Difference, Fit, MethodKind, MethodPlan, MigrationError, Plan, PropertyPlan, Rename, RenameError,
    Renames, TypeChange, TypePlan, place_below,
};
pub use path::Path;
pub use read::{DialectChoice, DialectSign};
pub use schema::{
    AccountView, Argument, DetailedPosition, Distribution, Domain, EntityType, Exposure, Holding, INDEXED_BYTES, Index,
    LedgerNames, LodLevel, MAX_CALLS_PER_MINUTE, MAX_MEMBERS, MAX_TYPES, Method, Parts, Property, Reach, Schema,
    SchemaDecodeError, SchemaProblem, Service, UserDataObject, Volatile,
};
pub use size::Size;
pub use source::{MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, MAX_XML_DEPTH, Tree};
pub use stream::{DecodeError, EncodeError, decode, decode_all, decode_elements, encode, encode_elements};
pub use survey::{
    AliasOrigin, Ancestor, AncestorKind, DefinitionOrigin, MemberOrigin, MemberOrigins, Origins, SourcePlace, Survey,
    TypeOrigin, survey, survey_dir,
};
pub use value::Value;
pub use zone::{PlacedEntity, PlacedObject, Zone, Zones};
