//! Data files: XML files of a game beside its definitions, from price lists to spawn tables.
//!
//! Responsible for: documents of nested sections, each with a name, a text and children; reading and writing texts as
//! typed values; opening files below a game's resource folder, and saving them atomically. Not responsible for: the
//! meaning of sections, and definitions, which `annals-def` compiles. Data files are parsed by its XML reader.
//!
//! Documents are pure; only [`Resources`] and [`DataFile`] access the disk. Reading a file takes longer than a tick
//! allows: open data files when a process starts, and save them in tools.
//!
//! | in BigWorld's scripts | here |
//! |---|---|
//! | `ResMgr.openSection("a/b.xml")` | [`Resources::open_file`], or [`Resources::open`] for reading only |
//! | `ResMgr.openSection("a/b.xml/c/d")` | [`Resources::open`] |
//! | `s.child(0)`, `s["c/d"]`, `s.values()` | [`Section::child`], [`Section::find`], [`Section::children`] |
//! | `s.asInt`, `asInt64` | [`Section::read`] as `i32` (`u32`), `i64` (`u64`) |
//! | `s.asFloat`, `asDouble`, `asBool` | [`Section::read`] as `f32`, `f64`, `bool` |
//! | `s.asString`, `asWideString`, `asBlob`, `asBinary` | as `String`, [`WideString`], [`Blob`], [`Binary`] |
//! | `s.asVector2`, `asVector3`, `asVector4`, `asMatrix` | as `[f32; 2]`, `[f32; 3]`, `[f32; 4]`, [`Matrix`] |
//! | `s.readInt("c/d", 7)` | [`Section::read_at`], or [`Section::read_at_or`] with a default |
//! | `s.asInt = 7`, `s.writeInt("c/d", 7)` | [`SectionMut::write`], [`SectionMut::write_at`] |
//! | `s.createSection("c")`, `s.deleteSection("c")` | [`SectionMut::create`], [`SectionMut::delete`] |
//! | `s.save()` | [`DataFile::save`]; a section alone cannot be saved |
//!
//! Reading is strict: a text that is not of the requested type is an error with its location. The predecessors use a
//! default instead, as does [`Section::read_or`].

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
