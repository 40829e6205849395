//! What a change is about.

use std::fmt;

use crate::migrate::MethodKind;

/// What a change is about. Names are the new ones; those of what is gone are the old ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The list of entity types.
    Types,
    /// An entity type.
    Type(String),
    /// A property.
    Property(String, String),
    /// A method of an entity type.
    Method(String, MethodKind, String),
    /// The list of services.
    Services,
    /// A service.
    Service(String),
    /// A method of a service.
    ServiceMethod(String, String),
    /// The list of user data object types.
    Objects,
    /// A user data object type.
    Object(String),
}

impl Subject {
    /// Under which heading it is listed.
    #[must_use]
    pub fn heading(&self) -> String {
        match self {
            Self::Types => "entities.xml".to_owned(),
            Self::Type(name) | Self::Property(name, _) | Self::Method(name, ..) => name.clone(),
            Self::Services => "services.xml".to_owned(),
            Self::Service(name) | Self::ServiceMethod(name, _) => format!("service {name}"),
            Self::Objects => "user_data_objects.xml".to_owned(),
            Self::Object(name) => format!("user data object {name}"),
        }
    }

    /// The member that it is about, with its kind; empty if it is about the whole.
    #[must_use]
    pub fn member(&self) -> String {
        match self {
            Self::Types | Self::Type(_) | Self::Services | Self::Service(_) | Self::Objects | Self::Object(_) => {
                String::new()
            }
            Self::Property(_, name) => name.clone(),
            Self::Method(_, kind, name) => format!("{} {name}", kind.word()),
            Self::ServiceMethod(_, name) => format!("method {name}"),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (heading, member) = (self.heading(), self.member());
        if member.is_empty() {
            f.write_str(&heading)
        } else {
            write!(f, "{heading}: {member}")
        }
    }
}
