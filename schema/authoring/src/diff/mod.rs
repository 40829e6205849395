//! What a change of the schema does, to whom, and what to do about it.
//!
//! Four audiences read what was written or built under the old schema, each in a way of its own: the database reads rows
//! by name; whoever takes over a log reads images, events and calls by number; processes exchange messages by number; and
//! clients decode frames by the numbers and sizes of what they know. A [`SchemaChange`] says for each of them which
//! [`Class`] it is of, and why. The classes are those of the migration [`Plan`], put into words.

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

/// Everything that differs between two schemas.
#[derive(Clone, Debug)]
pub struct Diff {
    /// What becomes of the data.
    pub plan: Plan,
    /// What differs, in the order of the new schema; what was removed comes first. Empty if, and only if, nothing was renamed and both
    /// schemas have the same fingerprint.
    pub changes: Vec<SchemaChange>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaChange {
    /// What differs.
    pub subject: Subject,
    /// How.
    pub kind: ChangeKind,
    /// What it does, by audience.
    pub effects: Effects,
}

/// What a change does to each audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// To entities of the database.
    pub stored: Effect,
    /// To the log and its snapshots.
    pub log: Effect,
    /// To processes that run.
    pub peers: Effect,
    /// To clients that are out.
    pub clients: Effect,
}

/// What a change does to an audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// How grave it is.
    pub class: Class,
    /// Why, in a sentence without its full stop.
    pub reason: String,
}

/// How grave a change is; the later, the graver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// This audience reads nothing of it.
    Unaffected,
    /// What was written before is read as what it was; what is new has its default.
    Compatible,
    /// As it is, it would be refused, lost or misread; the plan makes it right, whatever the values are.
    NeedsMigration,
    /// Some values have no counterpart, or old and new cannot talk.
    Breaking,
}

/// Who reads what was written or built under the old schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// The database, which reads stored entities.
    Stored,
    /// Whoever takes over a log, with its snapshots and the calls under way.
    Log,
    /// Processes that run.
    Peers,
    /// Clients that are out.
    Clients,
}

/// Finds everything that differs, and what it does.
#[must_use]
pub fn diff(old: &Schema, new: &Schema, renames: &Renames) -> Diff {
    let plan = Plan::new(old, new, renames);
    let mut changes = Vec::new();
    entity::compare_types(&plan, &mut changes);
    method::compare_services(old, new, &mut changes);
    property::compare_objects(old, new, &mut changes);
    ledger_names::compare(old.ledger_names(), new.ledger_names(), &mut changes);
    Diff { plan, changes }
}

impl Diff {
    /// The gravest class for an audience.
    #[must_use]
    pub fn verdict(&self, audience: Audience) -> Class {
        let classes = self.changes.iter().map(|change| change.effects.of(audience).class);
        classes.max().unwrap_or(Class::Unaffected)
    }

    /// What to do, in order.
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
    /// What it does to one audience.
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
    /// All of them.
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
    /// All of them, the harmless first.
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
