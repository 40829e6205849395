//! Subjects of changes.

use std::fmt;

use annals_def::{MethodKind, place_below};

/// The subject of a change. Names are new names; for removed declarations, old ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The list of entity types.
    Types,
    /// An entity type.
    Type(String),
    Property(String, String),
    /// A method of an entity type.
    Method(String, MethodKind, String),
    /// The list of services.
    Services,
    Service(String),
    ServiceMethod(String, String),
    /// The list of user data object types.
    Objects,
    /// A user data object type.
    Object(String),
    /// The names of kinds of assets and slots of accounts.
    Ledger,
}

impl Subject {
    /// The heading under which it is listed.
    #[must_use]
    pub fn heading(&self) -> String {
        match self {
            Self::Types => "entities.xml".to_owned(),
            Self::Type(name) | Self::Property(name, _) | Self::Method(name, ..) => name.clone(),
            Self::Services => "services.xml".to_owned(),
            Self::Service(name) | Self::ServiceMethod(name, _) => format!("service {name}"),
            Self::Objects => "user_data_objects.xml".to_owned(),
            Self::Object(name) => format!("user data object {name}"),
            Self::Ledger => "ledger.xml".to_owned(),
        }
    }

    /// What it is, in words.
    #[must_use]
    pub fn about(&self) -> &'static str {
        match self {
            Self::Types => "list of entity types",
            Self::Type(_) => "entity type",
            Self::Property(..) => "property",
            Self::Method(_, kind, _) => kind.word(),
            Self::Services => "list of services",
            Self::Service(_) => "service",
            Self::ServiceMethod(..) => "method",
            Self::Objects => "list of user data objects",
            Self::Object(_) => "user data object",
            Self::Ledger => "names of kinds and slots",
        }
    }

    /// The entity type, service or user data object of the subject.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Types | Self::Services | Self::Objects | Self::Ledger => None,
            Self::Type(name) | Self::Service(name) | Self::Object(name) => Some(name),
            Self::Property(owner, _) | Self::Method(owner, ..) | Self::ServiceMethod(owner, _) => Some(owner),
        }
    }

    /// The property or method of the subject, if it is one.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        match self {
            Self::Property(_, name) | Self::Method(_, _, name) | Self::ServiceMethod(_, name) => Some(name),
            _ => None,
        }
    }

    /// A path in its value as designers write it: `Avatar.bag[].count`, or `Avatar.buy(items[].count)`.
    pub(super) fn place(&self, path: &str) -> String {
        match self {
            Self::Method(..) | Self::ServiceMethod(..) if !path.is_empty() => format!("{self}({path})"),
            _ => place_below(&self.to_string(), path),
        }
    }
}

/// The place: `Avatar.gold`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.owner(), self.member()) {
            (Some(owner), Some(member)) => write!(f, "{owner}.{member}"),
            _ => f.write_str(&self.heading()),
        }
    }
}
