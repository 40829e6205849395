//! What an answer rests on: an entry of the ledger where its log has it, and the order that asked for it where the log of
//! the asker has that.

use annals_event::{Body, Consumed, Subject, ledger::Entry};
use annals_ids::{EntryNumber, EventNumber, LeafIndex, LogPosition, Part};
use annals_store::Store;

use crate::{answer::AuditError, index::Index};

/// An entry of the ledger, with where the archive has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cited {
    /// The entry.
    pub entry: Entry,
    /// The batch of the ledger's log in which it is told.
    pub at: LogPosition,
    /// That batch's leaf.
    pub leaf: LeafIndex,
    /// The order; `None` where nobody asked, and time was over.
    pub asked: Option<Asked>,
}

/// The event with which a base part asked for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its batch.
    pub at: LogPosition,
    /// That batch's leaf.
    pub leaf: LeafIndex,
    /// Its number in that log.
    pub event: EventNumber,
    /// The call that led to it; `None` where a timer or the like did.
    pub call: Option<Consumed>,
}

impl Index {
    /// Reads an entry and what asked for it, and holds the two against one another.
    pub(crate) async fn cite(&self, archive: &Store, number: EntryNumber) -> Result<Cited, AuditError> {
        let (entry, at, leaf) = self.entry(archive, number).await?;
        let asked = match &entry.order {
            Some(_) => Some(self.asked(archive, &entry).await?),
            None => None,
        };
        Ok(Cited { entry, at, leaf, asked })
    }

    async fn asked(&self, archive: &Store, entry: &Entry) -> Result<Asked, AuditError> {
        let not_asked = || AuditError::NotAsked {
            entry: entry.number,
            asked: entry.at,
        };
        let (leaf, batch) = self.batch(archive, entry.at).await?.ok_or_else(not_asked)?;
        let is_it = |body: &Body| match body {
            Body::Ordered { number, order } => *number == entry.of.number && Some(order) == entry.order.as_ref(),
            _ => false,
        };
        let subject = Subject::Entity(entry.of.asker, Part::Base);
        let place = batch
            .events
            .iter()
            .position(|event| event.subject == subject && is_it(&event.body))
            .ok_or_else(not_asked)?;
        let cause = batch.events[place].cause.0 as usize;
        let call = cause.checked_sub(1).and_then(|index| batch.header.consumed.get(index));
        Ok(Asked {
            at: entry.at,
            leaf,
            event: EventNumber(batch.header.first_event.0 + place as u64),
            call: call.cloned(),
        })
    }
}
