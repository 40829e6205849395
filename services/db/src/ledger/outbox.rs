//! Reading the outbox, again and again, for as long as it is written.

use annals_event::ledger::Notice;
use annals_ids::NoticeNumber;
use annals_store::{
    Store, StoreError, Transaction,
    layout::ledger::{self as layout, Head},
};

use super::pages::read_notices;

/// The outbox as its reader knows it. Notices are taken out at its front, and a read from before the front walks over all
/// those that are gone; so the reader keeps where the front was last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// Up to here nothing is left.
    front: NoticeNumber,
    /// Up to here its reader was given what there is.
    given: NoticeNumber,
}

impl Outbox {
    /// Notices that were not given, in order: at most so many, fewer only where there are no more.
    ///
    /// # Errors
    /// When the store cannot be read, or holds something else there.
    pub async fn read(&mut self, store: &Store, limit: usize) -> Result<Vec<(NoticeNumber, Notice)>, StoreError> {
        if self.given > self.front {
            return read_notices(store, self.given, limit).await;
        }
        let head = |transaction: Transaction| async move {
            Head::decode(transaction.get(&layout::head_key()).await?.as_deref())
        };
        // Before the notices: those up to the newest of that moment that are not found afterwards are gone.
        let newest = store.read(head).await?.notice;
        let notices = read_notices(store, self.front, limit).await?;
        let first = notices.first().map(|(number, _)| NoticeNumber(number.0 - 1));
        self.front = self.front.max(first.unwrap_or(newest));
        self.given = self.front;
        Ok(notices)
    }

    /// Notices were given up to this one.
    pub fn give(&mut self, upto: NoticeNumber) {
        self.given = self.given.max(upto);
    }

    /// What is left is given again, from the front on.
    pub fn give_again(&mut self) {
        self.given = self.front;
    }
}
