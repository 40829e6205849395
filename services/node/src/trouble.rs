//! Errors of an owner that no caller receives: held until the batch that they depend on is in the log, as outputs are
//! (rule G1), and bounded. A holder that was replaced observes what never happened, and must not report it.

use std::collections::VecDeque;

use annals_ids::{BatchNumber, EntityId, Part, TypeId};
use thiserror::Error;

use crate::context::Denied;

/// Begins each log message about an observation that contradicts the protocol: data were damaged, or there is a defect.
/// Whatever collects logs can search for it.
pub const ALARM: &str = "ALARM";

/// Maximum queued errors. Of more, before the log has acknowledged the first, most are repetitions.
const WAITING_LIMIT: usize = 64;

/// An error for the process log.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OwnerError {
    /// A request of behaviour was denied, and behaviour cannot handle that.
    #[error("the {part} part of entity {entity} ({entity_type}) had an operation denied: {denied}")]
    Denied {
        entity: EntityId,
        part: Part,
        entity_type: String,
        denied: Denied,
    },
    /// Behaviour has a defect.
    #[error(
        "behaviour of the {part} part of entity {entity} ({entity_type}) panicked: {message}; what it did before \
         stays, and the rest is not done, as after an error"
    )]
    Panicked {
        entity: EntityId,
        part: Part,
        entity_type: String,
        /// The panic's own, with the place if it is known.
        message: String,
    },
    /// The realm cannot begin.
    #[error(
        "the game's first entity, of type {type_id}, was not created: {denied}; fix the game and restart the base \
         processes"
    )]
    NotBootstrapped {
        /// The type of the bootstrap entity.
        type_id: TypeId,
        /// The reason.
        denied: Denied,
    },
    /// An event that the protocol rules out (rule H7).
    #[error("{ALARM}: {what}, entity {entity}; keep the realm's log and run `annals log verify`")]
    Impossible {
        entity: EntityId,
        /// The event.
        what: &'static str,
    },
    /// The last properties of a cell part exceed what one input may record, so its base part does not get them.
    #[error(
        "the last properties of the cell part of entity {entity}, {bytes} B, are too large to return to its base part: \
         its next cell part begins without them"
    )]
    CellTooLarge { entity: EntityId, bytes: usize },
    /// One input caused more work than any may: behaviour calls itself in a circle, or records without end.
    #[error(
        "{calls} calls, {requests} requests and {notices} notices of global data of one input were dropped, with \
         room for {left} B more: behaviour calls itself recursively, or does too much in one input"
    )]
    Cut {
        /// Dropped calls within the owner.
        calls: usize,
        /// Dropped requests of behaviour to its role.
        requests: usize,
        /// Notices of global data that its followers did not get.
        notices: usize,
        /// Bytes that the input might still have recorded.
        left: usize,
    },
}

/// Queued errors, each with the newest batch that it depends on, and their total number.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    waiting: VecDeque<(BatchNumber, OwnerError)>,
    /// Number of errors that are no longer queued.
    released: u64,
}

impl Troubles {
    /// Queues an error. Labels never decrease.
    pub(crate) fn push(&mut self, label: BatchNumber, trouble: OwnerError) {
        let is_alarm = |trouble: &OwnerError| matches!(trouble, OwnerError::Impossible { .. });
        if self.waiting.len() >= WAITING_LIMIT {
            self.released += 1;
            // An alarm is kept rather than another error.
            let other = self.waiting.iter().rposition(|(_, other)| !is_alarm(other));
            let Some(other) = other.filter(|_| is_alarm(&trouble)) else {
                return;
            };
            self.waiting.remove(other);
        }
        self.waiting.push_back((label, trouble));
    }

    /// The next error that depends on acknowledged batches only.
    pub(crate) fn pop(&mut self, acknowledged: BatchNumber) -> Option<OwnerError> {
        let (_, trouble) = self.waiting.pop_front_if(|(label, _)| *label <= acknowledged)?;
        self.released += 1;
        Some(trouble)
    }

    /// Number of errors that depend on acknowledged batches only, and of those for which there was no room.
    pub(crate) fn count(&self, acknowledged: BatchNumber) -> u64 {
        let due = self.waiting.iter().take_while(|(label, _)| *label <= acknowledged);
        self.released + due.count() as u64
    }
}
