//! A bot's record of what it was shown: a text file of lines, written by the bot and read by the checker.
//!
//! ```text
//! line       = shown | refreshed | entered | left | connected | resumed | lost | ended
//! shown      = "shown" ENTITY PART HISTORY HASH
//! refreshed  = "refreshed" ENTITY PART HISTORY (MEMBER ":" HASH)*
//! entered    = "entered" ENTITY PART TYPE
//! left       = "left" ENTITY PART
//! connected  = "connected" ENTITY TYPE
//! resumed    = "resumed" EPOCH MILLISECONDS
//! lost       = "lost" REASON
//! ended      = "ended" REASON
//! PART       = "base" | "cell"
//! ```
//! Fields are separated by one space. HASH is SHA-256 in hexadecimal digits, MEMBER a property's index in the type as
//! which clients know the entity, REASON is text to the end of the line, every other word is a decimal number.

use std::{fmt, str::FromStr};

use annals_client::{EndReason, Event};
use annals_ids::{EntityId, Epoch, Hash, HistoryNumber, MemberId, Part, TypeId};
use thiserror::Error;

/// The extension of these files.
pub(crate) const EXTENSION: &str = "shown";

/// Something that a bot was shown, or that happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A history event of an entity part.
    Shown {
        entity: EntityId,
        part: Part,
        /// The event's number.
        number: HistoryNumber,
        /// The hash of the value's or the arguments' bytes.
        hash: Hash,
    },
    /// The whole state of an entity part.
    Refreshed {
        entity: EntityId,
        part: Part,
        /// The history number of the state.
        upto: HistoryNumber,
        /// The properties in the state, with the hashes of their values' bytes.
        properties: Vec<(MemberId, Hash)>,
    },
    /// An entity came into view.
    Entered {
        entity: EntityId,
        part: Part,
        /// The type as which clients know it.
        type_id: TypeId,
    },
    /// An entity left the view.
    Left { entity: EntityId, part: Part },
    /// The bot controls this entity from now on.
    Connected { entity: EntityId, type_id: TypeId },
    /// The session was resumed.
    Resumed {
        /// The current epoch of the base.
        epoch: Epoch,
        /// How long there was no connection, milliseconds.
        away: u64,
    },
    /// The connection was lost.
    Lost(String),
    /// The session is over.
    Ended(String),
}

/// A malformed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a line written by a bot; the file was edited or truncated")]
pub struct ParseLineError;

impl Line {
    /// The line for an event; `None` for events that are in no log. `away` is how long there has been no connection,
    /// milliseconds.
    #[must_use]
    pub fn of(event: &Event, away: u64) -> Option<Self> {
        Some(match event {
            Event::Shown(showing) => Line::Shown {
                entity: showing.entity,
                part: showing.part,
                number: showing.number,
                hash: showing.hash,
            },
            Event::Refreshed {
                part,
                entity,
                upto,
                properties,
                ..
            } => Line::Refreshed {
                entity: *entity,
                part: *part,
                upto: *upto,
                properties: properties.clone(),
            },
            &Event::Entered {
                part, entity, type_id, ..
            } => Line::Entered { entity, part, type_id },
            &Event::Left { part, entity } => Line::Left { entity, part },
            &Event::Connected { entity, type_id, .. } | &Event::Controls { entity, type_id } => {
                Line::Connected { entity, type_id }
            }
            &Event::Resumed { epoch } => Line::Resumed { epoch, away },
            Event::Lost(reason) => Line::Lost(reason.to_string()),
            Event::Ended(EndReason::Left) => return None,
            Event::Ended(reason) => Line::Ended(reason.to_string()),
            Event::Placed { .. }
            | Event::Drives { .. }
            | Event::SpaceEntered { .. }
            | Event::SpaceDataChanged { .. }
            | Event::CallRefused { .. }
            | Event::CallsLost { .. }
            | Event::Queued { .. }
            | Event::Banned(_)
            | Event::DownloadProgressed { .. }
            | Event::Downloaded { .. }
            | Event::DownloadEnded(_)
            | Event::RateWarned => {
                return None;
            }
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Shown {
                entity,
                part,
                number,
                hash,
            } => write!(f, "shown {entity} {part} {number} {hash}"),
            Line::Refreshed {
                entity,
                part,
                upto,
                properties,
            } => {
                write!(f, "refreshed {entity} {part} {upto}")?;
                properties
                    .iter()
                    .try_for_each(|(member, hash)| write!(f, " {member}:{hash}"))
            }
            Line::Entered { entity, part, type_id } => write!(f, "entered {entity} {part} {type_id}"),
            Line::Left { entity, part } => write!(f, "left {entity} {part}"),
            Line::Connected { entity, type_id } => write!(f, "connected {entity} {type_id}"),
            Line::Resumed { epoch, away } => write!(f, "resumed {epoch} {away}"),
            Line::Lost(reason) => write!(f, "lost {reason}"),
            Line::Ended(reason) => write!(f, "ended {reason}"),
        }
    }
}

impl FromStr for Line {
    type Err = ParseLineError;

    fn from_str(text: &str) -> Result<Self, ParseLineError> {
        let (kind, rest) = text.split_once(' ').ok_or(ParseLineError)?;
        let mut words = rest.split(' ');
        let words = &mut words;
        let line = match kind {
            "shown" => Line::Shown {
                entity: EntityId(take(words)?),
                part: take_part(words)?,
                number: HistoryNumber(take(words)?),
                hash: take(words)?,
            },
            "refreshed" => Line::Refreshed {
                entity: EntityId(take(words)?),
                part: take_part(words)?,
                upto: HistoryNumber(take(words)?),
                properties: words.by_ref().map(member).collect::<Result<_, _>>()?,
            },
            "entered" => Line::Entered {
                entity: EntityId(take(words)?),
                part: take_part(words)?,
                type_id: TypeId(take(words)?),
            },
            "left" => Line::Left {
                entity: EntityId(take(words)?),
                part: take_part(words)?,
            },
            "connected" => Line::Connected {
                entity: EntityId(take(words)?),
                type_id: TypeId(take(words)?),
            },
            "resumed" => Line::Resumed {
                epoch: Epoch(take(words)?),
                away: take(words)?,
            },
            "lost" => return Ok(Line::Lost(rest.to_owned())),
            "ended" => return Ok(Line::Ended(rest.to_owned())),
            _ => return Err(ParseLineError),
        };
        match words.next() {
            None => Ok(line),
            Some(_) => Err(ParseLineError),
        }
    }
}

fn take<'a, T: FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Result<T, ParseLineError> {
    words.next().and_then(|word| word.parse().ok()).ok_or(ParseLineError)
}

fn take_part<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Part, ParseLineError> {
    match words.next() {
        Some("base") => Ok(Part::Base),
        Some("cell") => Ok(Part::Cell),
        _ => Err(ParseLineError),
    }
}

fn member(word: &str) -> Result<(MemberId, Hash), ParseLineError> {
    let (member, hash) = word.split_once(':').ok_or(ParseLineError)?;
    match (member.parse(), hash.parse()) {
        (Ok(member), Ok(hash)) => Ok((MemberId(member), hash)),
        _ => Err(ParseLineError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_lines_round_trip() {
        let (entity, part, type_id) = (EntityId(u64::MAX), Part::Cell, TypeId(3));
        let lines = [
            Line::Shown {
                entity,
                part: Part::Base,
                number: HistoryNumber(7),
                hash: Hash([0xa5; 32]),
            },
            Line::Refreshed {
                entity,
                part,
                upto: HistoryNumber(0),
                properties: Vec::new(),
            },
            Line::Refreshed {
                entity,
                part,
                upto: HistoryNumber(9),
                properties: vec![(MemberId(0), Hash([1; 32])), (MemberId(12), Hash([2; 32]))],
            },
            Line::Entered { entity, part, type_id },
            Line::Left { entity, part },
            Line::Connected { entity, type_id },
            Line::Resumed {
                epoch: Epoch(4),
                away: 3_120,
            },
            Line::Lost("the connection was lost".into()),
            Line::Ended("the log-in was refused: wrong password".into()),
        ];
        for line in lines {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
    }

    #[test]
    fn malformed_record_lines_are_refused() {
        let hash = Hash([7; 32]);
        let shown = format!("shown 1 cell 2 {hash}");
        assert!(shown.parse::<Line>().is_ok());
        for bad in [
            "",
            "shown",
            "seen 1 cell",
            "left 1 ghost",
            "left 1 cell 2",
            "left -1 cell",
            "left 1  cell",
            &shown[..shown.len() - 1],
            &format!("{shown} "),
            "refreshed 1 cell 2 3",
        ] {
            assert_eq!(bad.parse::<Line>(), Err(ParseLineError), "{bad:?}");
        }
    }
}
