//! A survey of a whole game, for tools that show it: the schema, the diagnostics, the place and comments of each
//! declaration, and advice.
//!
//! Compiling does none of this, so it costs nothing where it is not needed.

mod advice;
mod comment;
mod origin;
mod texts;

use std::{fmt, path::Path};

use crate::{
    compile::{Compiled, compile_and},
    diagnostic::{Diagnostic, SourceSpan},
    grammar::Kind,
    read::DialectChoice,
    schema::Schema,
    size::Size,
    source::Tree,
};
use advice::advise;
use texts::Texts;

/// The survey of a game.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The schema, if there are no errors.
    pub schema: Option<Schema>,
    /// All diagnostics, ordered by file, line and column; advice has severity
    /// [`Severity::Lint`](crate::Severity::Lint).
    pub diagnostics: Vec<Diagnostic>,
    /// The places of all declarations, if there is a schema.
    pub origins: Option<Origins>,
    /// The dialect of the game, and how it was chosen.
    pub dialect: DialectChoice,
}

/// The places of a schema's declarations, in the order of the schema's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// The entity types.
    pub types: Vec<TypeOrigin>,
    pub services: Vec<TypeOrigin>,
    /// The user data object types.
    pub objects: Vec<TypeOrigin>,
    /// The aliases, in declaration order.
    pub aliases: Vec<AliasOrigin>,
    /// The definitions that listed types inherit from or have as components, by kind and name.
    pub definitions: Vec<DefinitionOrigin>,
}

/// The declaration of a listed type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeOrigin {
    /// Its file.
    pub place: SourcePlace,
    /// The comment above it.
    pub documentation: Option<String>,
    /// The definitions it inherits from, in merge order, components at the last place where they are merged; without
    /// itself.
    pub ancestors: Vec<Ancestor>,
    /// Its members, each list in the schema's order.
    pub members: MemberOrigins,
}

/// The declarations of a type's members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberOrigins {
    pub properties: Vec<MemberOrigin>,
    /// The methods of the base part.
    pub base_methods: Vec<MemberOrigin>,
    /// The methods of the cell part.
    pub cell_methods: Vec<MemberOrigin>,
    pub client_methods: Vec<MemberOrigin>,
    /// The methods of a service.
    pub methods: Vec<MemberOrigin>,
}

/// The declaration of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberOrigin {
    /// Its declaration.
    pub place: SourcePlace,
    /// The definition that declares it.
    pub from: Ancestor,
    /// The comment above it or beside it.
    pub documentation: Option<String>,
    /// The text of its type, aliases unresolved; for a method, one per argument.
    pub written: Vec<String>,
}

/// A definition's kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ancestor {
    pub kind: AncestorKind,
    /// The name of its file.
    pub name: String,
}

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AncestorKind {
    /// An entity type, a service or a user data object type.
    Type,
    Interface,
    Component,
}

/// An alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasOrigin {
    pub name: String,
    /// Its declaration.
    pub place: SourcePlace,
    /// The comment above it or beside it.
    pub documentation: Option<String>,
    /// The text of its type, aliases unresolved.
    pub written: String,
    /// The type with all aliases resolved.
    pub data_type: String,
    /// Bytes of a value on the wire.
    pub size: Size,
    /// The default of its members.
    pub default: String,
    /// Warnings and advice on it.
    pub advice: Vec<Diagnostic>,
}

/// A definition that types inherit from or use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionOrigin {
    /// Its kind and name.
    pub definition: Ancestor,
    /// Its file.
    pub place: SourcePlace,
    /// The comment above it.
    pub documentation: Option<String>,
    /// The listed types that inherit from it or use it, by name.
    pub heirs: Vec<String>,
}

/// The place of a declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The file's path below the game's folder.
    pub file: String,
    /// The line of its name, from 1.
    pub line: u32,
    /// The first character of its name, from 1.
    pub column: u32,
    /// Line and column of the last item in it.
    pub end: (u32, u32),
}

impl SourcePlace {
    /// Whether a diagnostic is inside the declaration.
    #[must_use]
    pub fn holds(&self, found: &SourceSpan) -> bool {
        let at = (found.line, found.column);
        self.file == found.file && ((self.line, self.column)..=self.end).contains(&at)
    }
}

/// Surveys a game's definitions.
#[must_use]
pub fn survey(tree: &Tree) -> Survey {
    let (compiled, origins) = compile_and(tree, |world, findings| {
        let texts = Texts::of(world);
        advise(&texts, findings);
        Origins::of(&texts)
    });
    let Compiled {
        schema,
        diagnostics,
        dialect,
    } = compiled;
    Survey {
        schema,
        diagnostics,
        origins,
        dialect,
    }
}

/// Reads the definitions below a folder and surveys them.
#[must_use]
pub fn survey_dir(dir: &Path) -> Survey {
    survey(&Tree::read(dir))
}

impl From<Kind> for AncestorKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Entity | Kind::Service | Kind::UserDataObject => Self::Type,
            Kind::Interface => Self::Interface,
            Kind::Component => Self::Component,
        }
    }
}

impl AncestorKind {
    /// The kind, in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Interface => "interface",
            Self::Component => "component",
        }
    }
}

/// `Avatar`, `interface Combat`, `component Bag`.
impl fmt::Display for Ancestor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            AncestorKind::Type => f.write_str(&self.name),
            AncestorKind::Interface => write!(f, "interface {}", self.name),
            AncestorKind::Component => write!(f, "component {}", self.name),
        }
    }
}

/// `entity_defs/Avatar.def:12`.
impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
