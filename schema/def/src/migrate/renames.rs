//! Renames, stated by the author of a change: the language has no mark for them, and a guess would lose data.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::schema::{EntityType, Schema};

/// The old names of types and members, with their new names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames {
    types: BTreeMap<String, String>,
    members: BTreeMap<(String, String), String>,
}

/// One rename: `Type.old=new` for a property or method, `Old=New` for a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The old name of the entity type.
    entity_type: String,
    /// The old name of the member; `None` if the type itself is renamed.
    member: Option<String>,
    /// The new name.
    to: String,
}

/// Why a rename is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// The rename has another form.
    #[error("`{0}` is not a rename: write `Type.old=new` for a property or method, `Old=New` for an entity type")]
    Form(String),
    /// A name is renamed twice.
    #[error("{0} is renamed twice: give one new name")]
    Twice(String),
    /// Two names get the same new name.
    #[error("two names become {0}: give each its own new name")]
    Joined(String),
    /// The old name does not exist in the old definitions.
    #[error("the old definitions have no {0}: check the spelling")]
    NotThere(String),
    /// The new name does not exist in the new definitions.
    #[error("the new definitions have no {0}: check the spelling")]
    NotHere(String),
}

impl fmt::Display for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            entity_type,
            member,
            to,
        } = self;
        match member {
            Some(member) => write!(f, "{entity_type}.{member}={to}"),
            None => write!(f, "{entity_type}={to}"),
        }
    }
}

impl FromStr for Rename {
    type Err = RenameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || RenameError::Form(text.to_owned());
        let (from, to) = text.split_once('=').ok_or_else(wrong)?;
        let (entity_type, member) = match from.split_once('.') {
            Some((entity_type, member)) => (entity_type, Some(member.trim().to_owned())),
            None => (from, None),
        };
        let rename = Self {
            entity_type: entity_type.trim().to_owned(),
            member,
            to: to.trim().to_owned(),
        };
        let is_empty = rename.entity_type.is_empty() || rename.to.is_empty();
        if is_empty || rename.member.as_ref().is_some_and(String::is_empty) || rename.to.contains('=') {
            return Err(wrong());
        }
        Ok(rename)
    }
}

impl Renames {
    /// Collects renames and checks them against the two schemas.
    ///
    /// # Errors
    /// If a rename has a name that does not exist, or two renames contradict each other.
    pub fn new(old: &Schema, new: &Schema, all: impl IntoIterator<Item = Rename>) -> Result<Self, RenameError> {
        let mut renames = Self::default();
        for Rename {
            entity_type,
            member,
            to,
        } in all
        {
            let before = match member {
                None => renames.types.insert(entity_type, to),
                Some(member) => renames.members.insert((entity_type, member), to),
            };
            if let Some(before) = before {
                return Err(RenameError::Twice(format!("the name that becomes {before}")));
            }
        }
        renames.check(old, new)?;
        Ok(renames)
    }

    /// All renames.
    pub fn all(&self) -> impl Iterator<Item = Rename> {
        let types = self.types.iter().map(|(from, to)| Rename {
            entity_type: from.clone(),
            member: None,
            to: to.clone(),
        });
        let members = self.members.iter().map(|((entity_type, from), to)| Rename {
            entity_type: entity_type.clone(),
            member: Some(from.clone()),
            to: to.clone(),
        });
        types.chain(members)
    }

    /// The new name of a type.
    pub(crate) fn of_type<'a>(&'a self, name: &'a str) -> &'a str {
        self.types.get(name).map_or(name, String::as_str)
    }

    /// The new name of a member of a type; the type is given by its old name.
    pub(crate) fn of_member<'a>(&'a self, entity_type: &str, name: &'a str) -> &'a str {
        let key = (entity_type.to_owned(), name.to_owned());
        self.members.get(&key).map_or(name, String::as_str)
    }

    fn check(&self, old: &Schema, new: &Schema) -> Result<(), RenameError> {
        let mut taken = BTreeMap::new();
        for (from, to) in &self.types {
            old.type_named(from)
                .ok_or_else(|| RenameError::NotThere(format!("type {from}")))?;
            new.type_named(to)
                .ok_or_else(|| RenameError::NotHere(format!("type {to}")))?;
            if taken.insert(to.clone(), from).is_some() || old.type_named(to).is_some() && !self.types.contains_key(to)
            {
                return Err(RenameError::Joined(to.clone()));
            }
        }
        for ((entity_type, from), to) in &self.members {
            let there = old
                .type_named(entity_type)
                .ok_or_else(|| RenameError::NotThere(format!("type {entity_type}")))?;
            let now = self.of_type(entity_type);
            let here = new
                .type_named(now)
                .ok_or_else(|| RenameError::NotHere(format!("type {now}")))?;
            if !has(there, from) {
                return Err(RenameError::NotThere(format!("{entity_type}.{from}")));
            }
            if !shared(there, from, here, to) {
                return Err(RenameError::NotHere(format!("{now}.{to} of the same kind")));
            }
            let joined = taken.insert(format!("{entity_type}.{to}"), from).is_some();
            let key = (entity_type.clone(), to.clone());
            if joined || has(there, to) && !self.members.contains_key(&key) {
                return Err(RenameError::Joined(format!("{now}.{to}")));
            }
        }
        Ok(())
    }
}

fn has(entity_type: &EntityType, name: &str) -> bool {
    kinds(entity_type, name).contains(&true)
}

/// Whether both are members of the same kind.
fn shared(old: &EntityType, from: &str, new: &EntityType, to: &str) -> bool {
    kinds(old, from)
        .iter()
        .zip(kinds(new, to))
        .any(|(there, here)| *there && here)
}

/// Which kinds of members have this name.
fn kinds(entity_type: &EntityType, name: &str) -> [bool; 4] {
    [
        entity_type.property_named(name).is_some(),
        entity_type.base_method_named(name).is_some(),
        entity_type.cell_method_named(name).is_some(),
        entity_type.client_method_named(name).is_some(),
    ]
}
