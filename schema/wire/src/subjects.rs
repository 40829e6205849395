//! The bus subjects of a realm, all defined here.

use annals_ids::{OwnerId, ProcessId, Shard};

/// The subjects of one realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    prefix: String,
}

impl Subjects {
    /// The subjects of the realm with this name. The name must be a subject token: letters, digits, `-` and `_`.
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

    /// Refills for holes of an owner's log.
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

    /// Requests for sessions, to the holder of a base owner.
    #[must_use]
    pub fn sessions(&self, owner: OwnerId) -> String {
        format!("{}.sessions.{owner}", self.prefix)
    }

    /// Questions about an owner's state, to its holder.
    #[must_use]
    pub fn inspect(&self, owner: OwnerId) -> String {
        format!("{}.inspect.{owner}", self.prefix)
    }

    /// Requests for an overview of a cell's entities, to its holder.
    #[must_use]
    pub fn overview(&self, owner: OwnerId) -> String {
        format!("{}.overview.{owner}", self.prefix)
    }

    /// Requests for sessions, for all owners.
    #[must_use]
    pub fn sessions_of_all(&self) -> String {
        format!("{}.sessions.*", self.prefix)
    }

    /// Requests to activate a stored entity, to the holder of a base owner.
    #[must_use]
    pub fn lives(&self, owner: OwnerId) -> String {
        format!("{}.lives.{owner}", self.prefix)
    }

    /// Requests to activate a stored entity, for all owners.
    #[must_use]
    pub fn lives_of_all(&self) -> String {
        format!("{}.lives.*", self.prefix)
    }

    /// Orders of operators, to the holder of the base owner on which the stored entity is active.
    #[must_use]
    pub fn orders(&self, owner: OwnerId) -> String {
        format!("{}.orders.{owner}", self.prefix)
    }

    /// Orders of operators, for all owners.
    #[must_use]
    pub fn orders_of_all(&self) -> String {
        format!("{}.orders.*", self.prefix)
    }

    /// Notifications to every process of the realm that listens: cursors, the map of spaces, counts of log-ins.
    #[must_use]
    pub fn news(&self, topic: &str) -> String {
        format!("{}.news.{topic}", self.prefix)
    }

    /// Requests of the director that a process send its next heartbeat at once: there are new orders.
    #[must_use]
    pub fn summons(&self, process: ProcessId) -> String {
        format!("{}.summons.{process}", self.prefix)
    }

    /// Health of a service instance; `instance` is its id in service discovery.
    #[must_use]
    pub fn health(&self, instance: &str) -> String {
        format!("{}.health.{instance}", self.prefix)
    }

    /// Costs of the members of entity types on a service instance.
    #[must_use]
    pub fn costs(&self, instance: &str) -> String {
        format!("{}.costs.{instance}", self.prefix)
    }

    /// Requests for values of a service instance.
    #[must_use]
    pub fn watch(&self, instance: &str) -> String {
        format!("{}.watch.{instance}", self.prefix)
    }

    /// Requests of operators to change a setting of a service instance.
    #[must_use]
    pub fn change(&self, instance: &str) -> String {
        format!("{}.change.{instance}", self.prefix)
    }

    /// Requests for the newest log lines of a service instance.
    #[must_use]
    pub fn log_lines(&self, instance: &str) -> String {
        format!("{}.loglines.{instance}", self.prefix)
    }

    /// Requests to the director for a list of processes or cells. The director ignores any other request on this subject,
    /// so programs that may only watch can be permitted it.
    #[must_use]
    pub fn listing(&self) -> String {
        format!("{}.listing", self.prefix)
    }

    /// Requests to a service: `director`, `db`, `store`, `login`.
    #[must_use]
    pub fn service(&self, service: &str) -> String {
        format!("{}.service.{service}", self.prefix)
    }
}
