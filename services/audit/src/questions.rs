//! Questions: finds the entries about a subject, and derives answers from them.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;

use annals_event::ledger::{Holder, Slots};
use annals_evidence::{About, Answer, Cited, Contradiction, Inventory, Item, Owned, Question, Trade, Until, apply};
use annals_ids::{DatabaseId, EntryNumber, LogPosition, Serial, TradeId};
use annals_store::Store;

use crate::{answer::AuditError, index::Index};

impl Index {
    /// The owners of an item, with times and reasons.
    ///
    /// # Errors
    /// When there is no such item, or the basis of the answer was changed: every step must begin where the one before
    /// ended, and be what its asker's log asked for.
    #[boxed]
    pub async fn item(&self, archive: &Store, serial: Serial) -> Result<Item, AuditError> {
        let cited = self.cited(archive, Question::Item(serial)).await?;
        Item::follow(serial, cited)?.ok_or(AuditError::NoItem(serial))
    }

    /// The steps of a trade.
    ///
    /// # Errors
    /// When there is no such trade, or the basis of the answer was changed: every step must be what its asker's log
    /// asked for, and possible at that point.
    #[boxed]
    pub async fn trade(&self, archive: &Store, id: TradeId) -> Result<Trade, AuditError> {
        let cited = self.cited(archive, Question::Trade(id)).await?;
        Trade::follow(id, cited)?.ok_or(AuditError::NoTrade(id))
    }

    /// The holdings of a stored entity over time, with the entries that concern them.
    ///
    /// # Errors
    /// When the archive has no entry about it, or the basis of the answer was changed: every step must be what its
    /// asker's log asked for, and no one may give what they do not have.
    #[boxed]
    pub async fn owned(&self, archive: &Store, holder: DatabaseId) -> Result<Owned, AuditError> {
        let cited = self.cited(archive, Question::Account(holder)).await?;
        Owned::follow(holder, cited)?.ok_or(AuditError::NoHolder(holder))
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// As those of that question.
    #[boxed]
    pub async fn answer(&self, archive: &Store, question: Question) -> Result<Answer, AuditError> {
        Ok(match question {
            Question::Item(serial) => Answer::Item(self.item(archive, serial).await?),
            Question::Trade(id) => Answer::Trade(self.trade(archive, id).await?),
            Question::Account(holder) => Answer::Account(self.owned(archive, holder).await?),
        })
    }

    /// The holdings of a trade's proposer and partner before and after each of its steps.
    ///
    /// # Errors
    /// When one of them gives what they do not have.
    #[boxed]
    pub async fn inventories(&self, archive: &Store, trade: &Trade) -> Result<Vec<[Inventory; 2]>, AuditError> {
        let numbers: Vec<EntryNumber> = trade.steps.iter().map(|step| step.cited.entry.number).collect();
        let mut proposer = self.held(archive, trade.proposer, &numbers).await?;
        let mut partner = self.held(archive, trade.partner, &numbers).await?;
        let sides = |number| [&mut proposer, &mut partner].map(|held| held.remove(number).unwrap_or_default());
        Ok(numbers.iter().map(sides).collect())
    }

    /// The archives up to a batch: exactly on its shard, and on other shards by the writers' clocks.
    ///
    /// # Errors
    /// When the verified archive has no such batch.
    #[boxed]
    pub async fn until(&self, at: LogPosition) -> Result<Until, AuditError> {
        let lies = self.lies(at).await?.ok_or(AuditError::NoBatch(at))?;
        Ok(Until::Cut(self.cut_after(lies.seat).await?))
    }

    async fn cited(&self, archive: &Store, question: Question) -> Result<Vec<Cited>, AuditError> {
        let (mut cited, mut sieve) = (Vec::new(), question.sieve());
        for number in self.entries(question.about()).await? {
            cited.extend(self.cite(archive, number, &mut sieve).await?);
        }
        Ok(cited)
    }

    /// The holdings of a stored entity before and after each of these entries, computed from all entries that concern
    /// it.
    async fn held(
        &self,
        archive: &Store,
        holder: DatabaseId,
        wanted: &[EntryNumber],
    ) -> Result<BTreeMap<EntryNumber, Inventory>, AuditError> {
        let mut slots = Slots::new();
        let mut found = BTreeMap::new();
        let mut own = self.entries(About::Holder(holder)).await?.into_iter().peekable();
        for &number in wanted {
            while let Some(earlier) = own.next_if(|own| *own < number) {
                self.add(archive, holder, &mut slots, earlier).await?;
            }
            let before = slots.clone();
            if own.next_if_eq(&number).is_some() {
                self.add(archive, holder, &mut slots, number).await?;
            }
            let after = slots.clone();
            found.insert(number, Inventory { before, after });
        }
        Ok(found)
    }

    async fn add(
        &self,
        archive: &Store,
        holder: DatabaseId,
        slots: &mut Slots,
        number: EntryNumber,
    ) -> Result<(), AuditError> {
        let (_, batch, place) = self.entry_position(archive, number).await?;
        let entry = match batch.events.into_iter().nth(place as usize).map(|event| event.body) {
            Some(annals_event::Body::Entered { entry: Some(entry), .. }) => entry,
            _ => return Err(AuditError::Misled(number)),
        };
        let overdrawn = Contradiction::Overdrawn { holder, entry: number };
        Ok(apply(slots, Holder::Stored(holder), &entry).ok_or(overdrawn)?)
    }
}
