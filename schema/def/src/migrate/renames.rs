//! What was renamed, as the author of a change says it: the language has no mark for it, and a guess would lose data.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::schema::{EntityType, Schema};

/// The old names of types and members, each with its new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames {
    types: BTreeMap<String, String>,
    members: BTreeMap<(String, String), String>,
}

/// One rename: `Type.old=new` for a property or method, `Old=New` for a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The entity type, by its old name.
    entity_type: String,
    /// The old name of the member; `None` if the type itself is renamed.
    member: Option<String>,
    /// The new name.
    to: String,
}

/// A rename that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// It is written in another way.
    #[error("`{0}` is no rename: write `Type.old=new` for a property or method, `Old=New` for an entity type")]
    Form(String),
    /// The same name is renamed twice.
    #[error("{0} is renamed twice: say once what it is called now")]
    Twice(String),
    /// Two names become one.
    #[error("{0} is the new name of two: each keeps a name of its own")]
    Joined(String),
    /// There was nothing of this name.
    #[error("there was no {0} in the old definitions: check the spelling")]
    NotThere(String),
    /// There is nothing of the new name.
    #[error("there is no {0} in the new definitions: check the spelling")]
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
    /// Puts renames together and holds them against the two schemas.
    ///
    /// # Errors
    /// If one names what is not there, or two contradict one another.
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
                return Err(RenameError::Twice(format!("what is to be {before}")));
            }
        }
        renames.check(old, new)?;
        Ok(renames)
    }

    /// All of them, one by one.
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

    /// What a type is called now.
    pub(crate) fn of_type<'a>(&'a self, name: &'a str) -> &'a str {
        self.types.get(name).map_or(name, String::as_str)
    }

    /// What a member of a type is called now; the type by its old name.
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

/// Whether both are members of one kind.
fn shared(old: &EntityType, from: &str, new: &EntityType, to: &str) -> bool {
    kinds(old, from)
        .iter()
        .zip(kinds(new, to))
        .any(|(there, here)| *there && here)
}

/// Which kinds of members of this name there are.
fn kinds(entity_type: &EntityType, name: &str) -> [bool; 4] {
    [
        entity_type.property_named(name).is_some(),
        entity_type.base_method_named(name).is_some(),
        entity_type.cell_method_named(name).is_some(),
        entity_type.client_method_named(name).is_some(),
    ]
}
