//! What goes wrong in an owner and nobody else would hear of: kept until its shell asks, and bounded.

use std::collections::VecDeque;

use annals_ids::{EntityId, Part, TypeId};
use thiserror::Error;

use crate::context::Denied;

/// Troubles that wait to be told. Whoever causes more than these between two looks causes the same ones again and again.
const WAITING_LIMIT: usize = 64;

/// Something that went wrong. Display is for the process's log.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Trouble {
    /// Behaviour was denied something and has no way to go on but without it.
    #[error("the {part} part of entity {entity} ({entity_type}) was denied something: {denied}")]
    Denied {
        /// Which entity.
        entity: EntityId,
        /// Which of its parts.
        part: Part,
        /// Its type.
        entity_type: String,
        /// What.
        denied: Denied,
    },
    /// The realm cannot begin.
    #[error("the game's first entity, of type {type_id}, was not made: {denied}; mend the game and restart the bases")]
    NotBootstrapped {
        /// The type of the entity.
        type_id: TypeId,
        /// Why not.
        denied: Denied,
    },
    /// The protocol says that it cannot happen (rule H7).
    #[error("ALARM: {what}, entity {entity}; keep the realm's log and run `annals log verify`")]
    Impossible {
        /// Which entity.
        entity: EntityId,
        /// What happened.
        what: &'static str,
    },
    /// One input led to more than any may: behaviour calls itself in a circle, or records without end.
    #[error(
        "{calls} calls and {requests} requests of one input were dropped, with room for {left} B more: behaviour calls itself in a circle, or does too much at once"
    )]
    Cut {
        /// Calls within the owner.
        calls: usize,
        /// What behaviour asked of its role.
        requests: usize,
        /// How many bytes the input might still have recorded.
        left: usize,
    },
}

/// Troubles that wait, and how many there were in all.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    waiting: VecDeque<Trouble>,
    count: u64,
}

impl Troubles {
    pub(crate) fn push(&mut self, trouble: Trouble) {
        self.count += 1;
        if self.waiting.len() < WAITING_LIMIT {
            self.waiting.push_back(trouble);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Trouble> {
        self.waiting.pop_front()
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}
