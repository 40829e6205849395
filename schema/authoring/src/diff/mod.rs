//! Effects of a schema change on each audience, and the steps to take.
//!
//! Four audiences read data written, or use programs built, under the old schema: the database reads rows by name; a
//! process that takes over a log reads images, events and calls by number; processes exchange messages by number;
//! clients decode frames by the numbers and sizes they know. A [`SchemaChange`] gives the [`Class`] for each of them,
//! and the reason. The classes follow from the migration [`Plan`].

mod change;
mod effects;
mod entity;
mod ledger_names;
mod method;
mod place;
mod property;
mod report;
mod step;

use std::fmt;

use annals_def::{Plan, Renames, Schema};

pub use change::{ChangeKind, Shift};
pub use place::Subject;
pub use step::Step;

/// All differences between two schemas.
#[derive(Clone, Debug)]
pub struct Diff {
    /// The conversion of the data.
    pub plan: Plan,
    /// The differences, in the order of the new schema; removals come first. Empty if, and only if, nothing was renamed
    /// and both schemas have the same fingerprint.
    pub changes: Vec<SchemaChange>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaChange {
    /// What changed.
    pub subject: Subject,
    /// How it changed.
    pub kind: ChangeKind,
    /// The effects, by audience.
    pub effects: Effects,
}

/// The effects of a change on each audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// On entities in the database.
    pub stored: Effect,
    /// On the log and its snapshots.
    pub log: Effect,
    /// On running processes.
    pub peers: Effect,
    /// On released clients.
    pub clients: Effect,
}

/// The effect of a change on one audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The severity.
    pub class: Class,
    /// The reason, a sentence without its full stop.
    pub reason: String,
}

/// The severity of a change, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// This audience does not read it.
    Unaffected,
    /// Old data is read unchanged; new members have their defaults.
    Compatible,
    /// Unconverted data would be rejected, lost or misread; the plan converts all values.
    NeedsMigration,
    /// Some values cannot be converted, or old and new cannot communicate.
    Breaking,
}

/// A reader of data written, or a program built, under the old schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// The database, which reads stored entities.
    Stored,
    /// A process that takes over a log, with its snapshots and the calls under way.
    Log,
    /// Running processes.
    Peers,
    /// Released clients.
    Clients,
}

/// Computes all differences and their effects.
#[must_use]
pub fn diff(old: &Schema, new: &Schema, renames: &Renames) -> Diff {
    let plan = Plan::new(old, new, renames);
    let mut changes = Vec::new();
    entity::compare_types(&plan, &mut changes);
    method::compare_services(&plan, &mut changes);
    property::compare_objects(old, new, &mut changes);
    ledger_names::compare(old.ledger_names(), new.ledger_names(), &mut changes);
    Diff { plan, changes }
}

impl Diff {
    /// The most severe class for an audience.
    #[must_use]
    pub fn verdict(&self, audience: Audience) -> Class {
        let classes = self.changes.iter().map(|change| change.effects.of(audience).class);
        classes.max().unwrap_or(Class::Unaffected)
    }

    /// The steps to take, in order.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        if self.changes.is_empty() {
            return Vec::new();
        }
        let (log, clients) = (self.verdict(Audience::Log), self.verdict(Audience::Clients));
        step::steps(&self.plan, log, clients)
    }
}

impl Effects {
    /// The effect on one audience.
    #[must_use]
    pub fn of(&self, audience: Audience) -> &Effect {
        match audience {
            Audience::Stored => &self.stored,
            Audience::Log => &self.log,
            Audience::Peers => &self.peers,
            Audience::Clients => &self.clients,
        }
    }
}

impl Audience {
    /// All audiences.
    pub const ALL: [Audience; 4] = [Self::Stored, Self::Log, Self::Peers, Self::Clients];

    /// One word for programs and command lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Log => "log",
            Self::Peers => "peers",
            Self::Clients => "clients",
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stored => "stored data",
            Self::Log => "log",
            Self::Peers => "running peers",
            Self::Clients => "clients",
        })
    }
}

impl Class {
    /// All classes, in ascending order.
    pub const ALL: [Class; 4] = [Self::Unaffected, Self::Compatible, Self::NeedsMigration, Self::Breaking];

    /// One word for programs and command lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unaffected => "unaffected",
            Self::Compatible => "compatible",
            Self::NeedsMigration => "migration",
            Self::Breaking => "breaking",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unaffected => "unaffected",
            Self::Compatible => "compatible",
            Self::NeedsMigration => "needs migration",
            Self::Breaking => "breaking",
        })
    }
}
