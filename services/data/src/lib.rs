//! Data files: what a game keeps in XML beside its definitions, from price lists to spawn tables.
//!
//! Responsible for: documents of nested sections, each with a name, a text and children; reading and writing texts as
//! typed values; opening files below a game's resource folder, and saving them whole or not at all. Not responsible for:
//! what the sections mean, and for definitions, which `annals-def` compiles. Its reader of XML reads these files too.
//!
//! Documents compute; [`Resources`] and [`DataFile`] are the only part that touches a disk. Reading a file takes time that
//! a tick does not have: open data files when a process starts, and save them in tools.
//!
//! | in BigWorld's scripts | here |
//! |---|---|
//! | `ResMgr.openSection("a/b.xml")` | [`Resources::open_file`], or [`Resources::open`] if it is only to be read |
//! | `ResMgr.openSection("a/b.xml/c/d")` | [`Resources::open`] |
//! | `s.child(0)`, `s["c/d"]`, `s.values()` | [`Section::child`], [`Section::find`], [`Section::children`] |
//! | `s.asInt`, `asInt64`, `asFloat`, `asDouble`, `asBool` | [`Section::read`] as `i32` (`u32`), `i64` (`u64`), `f32`, `f64`, `bool` |
//! | `s.asString`, `asWideString`, `asBlob`, `asBinary` | as `String`, [`WideString`], [`Blob`], [`Binary`] |
//! | `s.asVector2`, `asVector3`, `asVector4`, `asMatrix` | as `[f32; 2]`, `[f32; 3]`, `[f32; 4]`, [`Matrix`] |
//! | `s.readInt("c/d", 7)` | [`Section::read_at`], or [`Section::read_at_or`] with a default |
//! | `s.asInt = 7`, `s.writeInt("c/d", 7)` | [`SectionMut::write`], [`SectionMut::write_at`] |
//! | `s.createSection("c")`, `s.deleteSection("c")` | [`SectionMut::create`], [`SectionMut::delete`] |
//! | `s.save()` | [`DataFile::save`]; sections cannot be saved, so they have no such method |
//!
//! Reading is strict: a text that is not what was asked for is an error that says where it stands. The predecessors took a
//! default instead; [`Section::read_or`] does.

mod data_file;
mod datum;
mod document;
mod editing;
mod resources;
mod section;
mod xml;

pub use annals_def::{Diagnostic, MAX_FILE_BYTES, MAX_XML_DEPTH};
pub use data_file::{DataFile, SaveError};
pub use datum::{Binary, Blob, Datum, Matrix, WideString};
pub use document::{Document, MAX_SECTIONS, ParseError};
pub use editing::{EditError, SectionMut};
pub use resources::{OpenError, Opened, Resources};
pub use section::{ReadError, Section, Where};
