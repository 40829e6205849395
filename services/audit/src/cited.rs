//! Reads the basis of an answer from the archive, and checks it against what was verified.

use annals_event::Batch;
use annals_evidence::{ArchivedEvent, Cited, Contradiction, Excerpt, ShardLeaf, Sieve, asks};
use annals_ids::{EntryNumber, EventNumber, LogPosition};
use annals_store::Store;
use async_recursion::async_recursion as boxed;

use crate::{answer::AuditError, index::Index};

impl Index {
    /// Reads an entry and the order that asked for it, and checks one against the other. `None` if the entry does not
    /// answer the question.
    pub(crate) async fn cite(
        &self,
        archive: &Store,
        number: EntryNumber,
        sieve: &mut Sieve,
    ) -> Result<Option<Cited>, AuditError> {
        let (seat, batch, place) = self.entry_position(archive, number).await?;
        let event = found(seat.leaf, &batch, place).ok_or(AuditError::Misled(number))?;
        let entry = event.entry()?;
        if !sieve.takes(entry) {
            return Ok(None);
        }
        if entry.order.is_none() {
            return Ok(Some(Cited::of(&event, None)?));
        }
        let not_asked = || Contradiction::NotAsked {
            entry: number,
            asked: entry.at,
        };
        let (seat, batch) = self.batch(archive, entry.at).await?.ok_or_else(not_asked)?;
        let place = batch.events.iter().position(|event| asks(event, entry));
        let place = place.and_then(|place| u32::try_from(place).ok());
        let asked = place
            .and_then(|place| found(seat.leaf, &batch, place))
            .ok_or_else(not_asked)?;
        Ok(Some(Cited::of(&event, Some(&asked))?))
    }

    /// The archived events that an answer rests on: the entry, and the order that asked for it, if any.
    ///
    /// # Errors
    /// When the archive does not have them as they were verified.
    #[boxed]
    pub async fn excerpts(&self, archive: &Store, cited: &Cited) -> Result<Vec<(ShardLeaf, Excerpt)>, AuditError> {
        let asked = cited.asked.as_ref().map(|asked| (asked.at, asked.event));
        let mut excerpts = Vec::new();
        for (at, event) in [(cited.at, cited.event)].into_iter().chain(asked) {
            excerpts.push(self.excerpt(archive, at, event).await?);
        }
        Ok(excerpts)
    }

    async fn excerpt(
        &self,
        archive: &Store,
        at: LogPosition,
        event: EventNumber,
    ) -> Result<(ShardLeaf, Excerpt), AuditError> {
        let (seat, batch, bytes) = self.bytes(archive, at).await?.ok_or(AuditError::NoBatch(at))?;
        let place = event.0.checked_sub(batch.header.first_event.0);
        let place = place.and_then(|place| u32::try_from(place).ok());
        let excerpt = place.and_then(|place| Excerpt::take(&bytes, place).ok());
        let leaf = seat.leaf;
        Ok((leaf, excerpt.ok_or(AuditError::Replaced { leaf, at })?))
    }
}

fn found(leaf: ShardLeaf, batch: &Batch, place: u32) -> Option<ArchivedEvent<'_>> {
    Some(ArchivedEvent {
        leaf,
        header: &batch.header,
        place,
        event: batch.events.get(place as usize)?,
    })
}
