//! The subjects of a realm on the bus, all in one place.

use annals_ids::{OwnerId, Shard};

/// The subjects of one realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    prefix: String,
}

impl Subjects {
    /// Those of the realm with this name. The name must be a subject token: letters, digits, `-` and `_`.
    #[must_use]
    pub fn new(realm: &str) -> Self {
        Self {
            prefix: format!("annals.{realm}"),
        }
    }

    /// The name of the realm.
    #[must_use]
    pub fn realm(&self) -> &str {
        self.prefix.strip_prefix("annals.").unwrap_or(&self.prefix)
    }

    /// Whether a realm can have this name: 1 to 32 letters, digits, `-` or `_`.
    #[must_use]
    pub fn is_realm_name(name: &str) -> bool {
        (1..=annals_event::MAX_REALM_BYTES).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    }

    /// An owner's log.
    #[must_use]
    pub fn log(&self, shard: Shard, owner: OwnerId) -> String {
        format!("{}.log.{shard}.{owner}", self.prefix)
    }

    /// All logs of a shard.
    #[must_use]
    pub fn logs(&self, shard: Shard) -> String {
        format!("{}.log.{shard}.*", self.prefix)
    }

    /// Where holes of an owner's log are refilled.
    #[must_use]
    pub fn fill(&self, shard: Shard, owner: OwnerId) -> String {
        format!("{}.fill.{shard}.{owner}", self.prefix)
    }

    /// All refills of a shard.
    #[must_use]
    pub fn fills(&self, shard: Shard) -> String {
        format!("{}.fill.{shard}.*", self.prefix)
    }

    /// Messages to an owner, whichever process holds it.
    #[must_use]
    pub fn owner(&self, owner: OwnerId) -> String {
        format!("{}.owner.{owner}", self.prefix)
    }

    /// Requests for sessions, to whoever holds a base owner.
    #[must_use]
    pub fn sessions(&self, owner: OwnerId) -> String {
        format!("{}.sessions.{owner}", self.prefix)
    }

    /// Questions about an owner's state, to whoever holds it.
    #[must_use]
    pub fn inspect(&self, owner: OwnerId) -> String {
        format!("{}.inspect.{owner}", self.prefix)
    }

    /// Requests for sessions, whoever the owner is.
    #[must_use]
    pub fn sessions_of_all(&self) -> String {
        format!("{}.sessions.*", self.prefix)
    }

    /// Requests that an entity of the database live, to whoever holds a base owner.
    #[must_use]
    pub fn lives(&self, owner: OwnerId) -> String {
        format!("{}.lives.{owner}", self.prefix)
    }

    /// The same, whoever the owner is.
    #[must_use]
    pub fn lives_of_all(&self) -> String {
        format!("{}.lives.*", self.prefix)
    }

    /// Orders of operators, to whoever holds the base owner on which those live that are meant.
    #[must_use]
    pub fn orders(&self, owner: OwnerId) -> String {
        format!("{}.orders.{owner}", self.prefix)
    }

    /// The same, whoever the owner is.
    #[must_use]
    pub fn orders_of_all(&self) -> String {
        format!("{}.orders.*", self.prefix)
    }

    /// What every process of the realm hears: cursors, the map of spaces.
    #[must_use]
    pub fn news(&self, topic: &str) -> String {
        format!("{}.news.{topic}", self.prefix)
    }

    /// Where an instance of a service answers how it is; `instance` is the id under which service discovery knows it.
    #[must_use]
    pub fn health(&self, instance: &str) -> String {
        format!("{}.health.{instance}", self.prefix)
    }

    /// Where an instance of a service says what members of entity types have cost there.
    #[must_use]
    pub fn costs(&self, instance: &str) -> String {
        format!("{}.costs.{instance}", self.prefix)
    }

    /// Requests to a service: `director`, `db`, `store`.
    #[must_use]
    pub fn service(&self, service: &str) -> String {
        format!("{}.service.{service}", self.prefix)
    }
}
