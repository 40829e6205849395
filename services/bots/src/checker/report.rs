//! The result of a check.

use std::fmt;

use annals_audit::archive::Fault;
use annals_ids::{BatchNumber, EntityId, HistoryNumber, MemberId, OwnerId, Part};

use super::driven::Driven;

/// Maximum findings of each kind that are listed; the rest are counted.
const MAX_NAMED: usize = 100;

/// A shown event that the archive does not contain as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The name of the bot's file.
    pub file: String,
    /// The line in the file, from 1.
    pub line: u64,
    pub entity: EntityId,
    pub part: Part,
    /// The event; for a refresh, the history number of the state.
    pub number: HistoryNumber,
    /// The reason.
    pub why: Why,
}

/// Why a shown event counts as lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The archive has nothing of the entity part.
    UnknownEntity,
    /// The archive has no event with this number.
    Absent {
        /// The newest event of the part in the archive.
        newest: HistoryNumber,
    },
    /// The archive has another value.
    Different,
    /// The archived event cannot have been shown.
    Unreadable(&'static str),
    /// The state contained a property that differs in the archive, or is missing there.
    Property {
        /// The property, as clients number them.
        member: MemberId,
        /// Its name, if the entity's type is known from the archive.
        name: Option<String>,
    },
}

/// A fault in the archive's history numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Numbers are missing.
    Hole {
        entity: EntityId,
        part: Part,
        /// The first missing number.
        first: HistoryNumber,
        /// The first number after the hole.
        until: HistoryNumber,
    },
    /// A number has two events.
    Twice {
        entity: EntityId,
        part: Part,
        number: HistoryNumber,
        /// The batches that contain the two events.
        places: [(OwnerId, BatchNumber); 2],
    },
}

/// The result of a check. Clean if nothing is lost or faulty.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Files that were read.
    pub files: u64,
    /// Events that bots were shown; an event counts once per bot.
    pub shown: u64,
    /// States that bots received.
    pub refreshed: u64,
    /// Properties in these states.
    pub properties: u64,
    /// Number of these events and states that lie before the horizon and were deleted by retention (rule F14): they are
    /// not checked.
    pub deleted: u64,
    /// Batches in the archive.
    pub batches: u64,
    /// Entity parts in the archive.
    pub parts: u64,
    /// Events in the archive that others may see.
    pub events: u64,
    /// How much of the world was driven, in what retention has kept.
    pub driven: Driven,
    /// The first lost events and states.
    pub lost: Vec<Lost>,
    /// Their total number.
    pub lost_count: u64,
    /// The first history numbers that are missing or duplicated: one hole per part.
    pub holes: Vec<Wrong>,
    /// Their total number.
    pub hole_count: u64,
    /// The first batches that are missing or differ from what was archived.
    pub faults: Vec<(OwnerId, BatchNumber, Fault)>,
    /// Their total number.
    pub fault_count: u64,
    /// Entity parts that an incremental check read differently: a defect of the check, or a change of the archive
    /// behind it.
    pub otherwise: u64,
    /// Lines and properties that an incremental check missed or saw twice.
    pub passed_over: u64,
}

impl CheckReport {
    /// Whether everything shown is in the archive, and the archive is without faults.
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
        if self.deleted > 0 {
            writeln!(
                f,
                "{} shown items are before the horizon and were deleted by the setting keep_cell_events; not checked",
                self.deleted
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
                "the incremental pass differed: {} entity parts read otherwise, {} lines and properties skipped or \
                 checked twice",
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
            Why::UnknownEntity => f.write_str("the archive has no event of this entity part"),
            Why::Absent { newest } => write!(
                f,
                "it is not in the archive, whose newest event of the part is {newest}"
            ),
            Why::Different => f.write_str("the archived value differs from the one shown"),
            Why::Unreadable(what) => f.write_str(what),
            Why::Property { member, name: None } => {
                write!(
                    f,
                    "property {member} was shown with a value that the archive does not have"
                )
            }
            Why::Property { name: Some(name), .. } => {
                write!(
                    f,
                    "property {name} was shown with a value that the archive does not have at that event"
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
                "event {number} of the {part} of entity {entity} is archived twice: in batch {batch} of owner \
                 {owner} and in batch {later} of owner {other}"
            ),
        }
    }
}
