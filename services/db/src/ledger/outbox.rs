//! Repeated reads of the outbox while it is being written.

use annals_event::ledger::Notice;
use annals_ids::NoticeNumber;
use annals_store::{
    Store, StoreError, Transaction,
    layout::ledger::{self as layout, Head},
};
use async_recursion::async_recursion as boxed;

use super::pages::read_notices;

/// A reader's position in the outbox. Notices are removed at the front, and a read from before the front scans all that
/// were removed; so the reader remembers the front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// Last number up to which no notice is left.
    front: NoticeNumber,
    /// Last number up to which the reader has been given all notices.
    given: NoticeNumber,
}

impl Outbox {
    /// Reads notices that were not given yet, in order: at most `limit`, and fewer only if there are no more.
    ///
    /// # Errors
    /// When the store cannot be read, or a row is not a notice.
    #[boxed]
    pub async fn read(&mut self, store: &Store, limit: usize) -> Result<Vec<(NoticeNumber, Notice)>, StoreError> {
        if self.given > self.front {
            return read_notices(store, self.given, limit).await;
        }
        let head = |transaction: Transaction| async move {
            Head::decode(transaction.get(&layout::head_key()).await?.as_deref())
        };
        // Read before the notices: those up to this newest number that are not found afterwards have been removed.
        let newest = store.read(head).await?.notice;
        let notices = read_notices(store, self.front, limit).await?;
        let first = notices.first().map(|(number, _)| NoticeNumber(number.0 - 1));
        self.front = self.front.max(first.unwrap_or(newest));
        self.given = self.front;
        Ok(notices)
    }

    /// Marks notices up to `upto` as given.
    pub fn give(&mut self, upto: NoticeNumber) {
        self.given = self.given.max(upto);
    }

    /// Marks all remaining notices as not given, so that they are read again from the front.
    pub fn give_again(&mut self) {
        self.given = self.front;
    }
}
