//! What a check found.

use std::fmt;

use annals_audit::archive::Fault;
use annals_ids::{BatchNumber, EntityId, HistoryNumber, MemberId, OwnerId, Part};

use super::driven::Driven;

/// Most findings of each kind that are named; more are counted.
pub const MAX_NAMED: usize = 100;

/// A shown event that the archive does not hold as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The name of the bot's file.
    pub file: String,
    /// The line in it, from 1.
    pub line: u64,
    /// Which entity.
    pub entity: EntityId,
    /// Which part.
    pub part: Part,
    /// The event; for a refresh, the one for which it stands.
    pub number: HistoryNumber,
    /// What is wrong.
    pub why: Why,
}

/// Why a shown event counts as lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The archive has nothing of the entity part.
    UnknownEntity,
    /// The archive has no event with this number.
    Absent {
        /// The newest event that it has of the part.
        newest: HistoryNumber,
    },
    /// The archive has another value there.
    Different,
    /// The archive has something there that cannot have been shown.
    Unreadable(&'static str),
    /// The state was told with a property that the archive has otherwise, or not at all.
    Property {
        /// Which property, as clients number them.
        member: MemberId,
        /// Its name, if the archive tells the entity's type.
        name: Option<String>,
    },
}

/// What is wrong with the archive's history numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Numbers are missing.
    Hole {
        /// Of which entity.
        entity: EntityId,
        /// Of which part.
        part: Part,
        /// The first that is missing.
        first: HistoryNumber,
        /// The first that is there again.
        until: HistoryNumber,
    },
    /// A number has two events.
    Twice {
        /// Of which entity.
        entity: EntityId,
        /// Of which part.
        part: Part,
        /// Which number.
        number: HistoryNumber,
        /// In which batches they are.
        places: [(OwnerId, BatchNumber); 2],
    },
}

/// What a check found. Clean if nothing is lost or wrong.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Files that were read.
    pub files: u64,
    /// Events that bots were shown, each as often as one was.
    pub shown: u64,
    /// States that bots were told.
    pub refreshed: u64,
    /// Properties that these states told.
    pub properties: u64,
    /// How many of these events and states lie before the horizon and were let go (rule F14): they are not checked.
    pub let_go: u64,
    /// Batches in the archive.
    pub batches: u64,
    /// Entity parts in the archive.
    pub parts: u64,
    /// Events in the archive that others may see.
    pub events: u64,
    /// How much of the world was at work, in what was not let go.
    pub driven: Driven,
    /// The first of what was shown and is lost.
    pub lost: Vec<Lost>,
    /// How many that are in all.
    pub lost_count: u64,
    /// The first of the history numbers that are missing or there twice: one hole per part.
    pub holes: Vec<Wrong>,
    /// How many that are in all.
    pub hole_count: u64,
    /// The first batches that are missing or not what was archived.
    pub faults: Vec<(OwnerId, BatchNumber, Fault)>,
    /// How many that are in all.
    pub fault_count: u64,
    /// Entity parts that were read otherwise on the way, by a check that went on as the archive grew: a defect of the check, or
    /// the archive was changed behind it.
    pub otherwise: u64,
    /// Lines and properties that such a check did not see, or saw twice.
    pub passed_over: u64,
}

impl CheckReport {
    /// Whether everything that was shown is there, and nothing in the archive is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let archive = self.hole_count + self.fault_count + self.otherwise;
        self.lost_count == 0 && archive == 0 && self.passed_over == 0
    }

    pub(super) fn lose(&mut self, lost: Lost) {
        self.lost_count += 1;
        push(&mut self.lost, lost);
    }

    pub(super) fn wrong(&mut self, wrong: Wrong) {
        self.hole_count += 1;
        push(&mut self.holes, wrong);
    }

    pub(super) fn hole(&mut self, entity: EntityId, part: Part, first: HistoryNumber, until: HistoryNumber) {
        self.wrong(Wrong::Hole {
            entity,
            part,
            first,
            until,
        });
    }

    pub(super) fn fault(&mut self, owner: OwnerId, batch: BatchNumber, fault: Fault) {
        self.fault_count += 1;
        push(&mut self.faults, (owner, batch, fault));
    }
}

fn push<T>(named: &mut Vec<T>, found: T) {
    if named.len() < MAX_NAMED {
        named.push(found);
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "checked {} shown events and {} states ({} properties) in {} files against {} events of {} entity parts in {} batches",
            self.shown, self.refreshed, self.properties, self.files, self.events, self.parts, self.batches
        )?;
        if self.let_go > 0 {
            writeln!(
                f,
                "{} shown things lie before the horizon and were let go by the setting keep_cell_events; not checked",
                self.let_go
            )?;
        }
        writeln!(f, "{}", self.driven)?;
        for (owner, batch, fault) in &self.faults {
            writeln!(f, "archive: batch {batch} of owner {owner} {fault}")?;
        }
        more(f, self.fault_count, self.faults.len(), "batches")?;
        for wrong in &self.holes {
            writeln!(f, "archive: {wrong}")?;
        }
        more(f, self.hole_count, self.holes.len(), "history numbers")?;
        for lost in &self.lost {
            writeln!(f, "{lost}")?;
        }
        more(f, self.lost_count, self.lost.len(), "shown events")?;
        if self.otherwise + self.passed_over > 0 {
            writeln!(
                f,
                "on the way {} entity parts were read otherwise, and {} lines and properties passed over or checked twice",
                self.otherwise, self.passed_over
            )?;
        }
        write!(
            f,
            "shown and lost: {}; holes in history numbers: {}; faulty batches: {}",
            self.lost_count, self.hole_count, self.fault_count
        )
    }
}

fn more(f: &mut fmt::Formatter<'_>, count: u64, named: usize, what: &str) -> fmt::Result {
    match count - named as u64 {
        0 => Ok(()),
        more => writeln!(f, "and {more} more {what}"),
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            entity,
            part,
            number,
            why,
        } = self;
        write!(
            f,
            "{file}:{line}: event {number} of the {part} of entity {entity}: {why}"
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::UnknownEntity => f.write_str("the archive knows nothing of this entity part"),
            Why::Absent { newest } => write!(f, "it is not in the archive, whose newest event there is {newest}"),
            Why::Different => f.write_str("the archive has another value there than was shown"),
            Why::Unreadable(what) => f.write_str(what),
            Why::Property { member, name: None } => {
                write!(
                    f,
                    "property {member} was told with a value that the archive does not have"
                )
            }
            Why::Property { name: Some(name), .. } => {
                write!(
                    f,
                    "property {name} was told with a value that the archive does not have there"
                )
            }
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Hole {
                entity,
                part,
                first,
                until,
            } => write!(
                f,
                "event {first} of the {part} of entity {entity} is missing, the next is {until}"
            ),
            Wrong::Twice {
                entity,
                part,
                number,
                places: [(owner, batch), (other, later)],
            } => write!(
                f,
                "event {number} of the {part} of entity {entity} is there twice: in batch {batch} of owner {owner} and in batch {later} of owner {other}"
            ),
        }
    }
}
