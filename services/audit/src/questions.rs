//! Questions: which entries are about what is asked, and what follows from them.

use std::collections::BTreeMap;

use annals_event::ledger::{Holder, Slots};
use annals_evidence::{About, Answer, Cited, Contradiction, Inventory, Item, Owned, Question, Trade, Until, apply};
use annals_ids::{DatabaseId, EntryNumber, LogPosition, Serial, TradeId};
use annals_store::Store;

use crate::{answer::AuditError, index::Index};

impl Index {
    /// Who owned an item, when, and why.
    ///
    /// # Errors
    /// When there is no such item, or what the answer would rest on is not as it was: every step begins where the one before
    /// ended, and is what its asker's log asked for.
    pub async fn item(&self, archive: &Store, serial: Serial) -> Result<Item, AuditError> {
        let cited = self.cited(archive, Question::Item(serial)).await?;
        Item::follow(serial, cited)?.ok_or(AuditError::NoItem(serial))
    }

    /// What happened in a trade, step by step.
    ///
    /// # Errors
    /// When there is no such trade, or what the answer would rest on is not as it was: every step is what its asker's log
    /// asked for, and can be done when it was.
    pub async fn trade(&self, archive: &Store, id: TradeId) -> Result<Trade, AuditError> {
        let cited = self.cited(archive, Question::Trade(id)).await?;
        Trade::follow(id, cited)?.ok_or(AuditError::NoTrade(id))
    }

    /// What somebody has had, and what they did with it.
    ///
    /// # Errors
    /// When the archive has no entry about it, or what the answer would rest on is not as it was: every step is what its asker's
    /// log asked for, and nobody gives what they do not have.
    pub async fn owned(&self, archive: &Store, holder: DatabaseId) -> Result<Owned, AuditError> {
        let cited = self.cited(archive, Question::Account(holder)).await?;
        Owned::follow(holder, cited)?.ok_or(AuditError::NoHolder(holder))
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// As those of that question.
    pub async fn answer(&self, archive: &Store, question: Question) -> Result<Answer, AuditError> {
        Ok(match question {
            Question::Item(serial) => Answer::Item(self.item(archive, serial).await?),
            Question::Trade(id) => Answer::Trade(self.trade(archive, id).await?),
            Question::Account(holder) => Answer::Account(self.owned(archive, holder).await?),
        })
    }

    /// What the proposer of a trade and the partner held before and after each of its steps.
    ///
    /// # Errors
    /// When one of them gives what they do not have.
    pub async fn inventories(&self, archive: &Store, trade: &Trade) -> Result<Vec<[Inventory; 2]>, AuditError> {
        let numbers: Vec<EntryNumber> = trade.steps.iter().map(|step| step.cited.entry.number).collect();
        let mut proposer = self.held(archive, trade.proposer, &numbers).await?;
        let mut partner = self.held(archive, trade.partner, &numbers).await?;
        let sides = |number| [&mut proposer, &mut partner].map(|held| held.remove(number).unwrap_or_default());
        Ok(numbers.iter().map(sides).collect())
    }

    /// The leaf of a batch, as a place in the archive's order.
    ///
    /// # Errors
    /// When the archive that was verified has no such batch.
    pub async fn until(&self, at: LogPosition) -> Result<Until, AuditError> {
        let found = self.lies(at).await?;
        found.map(|lies| Until::Leaf(lies.leaf)).ok_or(AuditError::NoBatch(at))
    }

    async fn cited(&self, archive: &Store, question: Question) -> Result<Vec<Cited>, AuditError> {
        let (mut cited, mut sieve) = (Vec::new(), question.sieve());
        for number in self.entries(question.about()).await? {
            cited.extend(self.cite(archive, number, &mut sieve).await?);
        }
        Ok(cited)
    }

    /// What an entity of the database held before and after each of these entries, by adding up all that concerned it.
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
        let (_, batch, place) = self.told(archive, number).await?;
        let entry = match batch.events.into_iter().nth(place as usize).map(|event| event.body) {
            Some(annals_event::Body::Entered { entry: Some(entry), .. }) => entry,
            _ => return Err(AuditError::Misled(number)),
        };
        let overdrawn = Contradiction::Overdrawn { holder, entry: number };
        Ok(apply(slots, Holder::Stored(holder), &entry).ok_or(overdrawn)?)
    }
}
