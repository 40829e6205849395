//! The ledger within one transaction of the fold.

use annals_ids::{DatabaseId, EntityId, LogPosition, NoticeNumber, WallTime};
use annals_store::{
    KeyRange, StoreError, Transaction, key_after,
    layout::ledger::{self as layout, Head},
};

use super::{
    books::{Books, Breach, Halt, Life, Row},
    pages, rows,
    rules::Ask,
};

/// Maximum expiries in one batch. The rest expires with the next batch, and counts as expired meanwhile.
const EXPIRED_AT_ONCE: usize = 64;

/// How far beyond a batch's time deadlines are scanned, milliseconds. Trades and gifts that settled in time leave deleted
/// rows there, which a scan has to skip; with one scan a second, each deleted row is skipped about once.
const LOOKED_AHEAD: u64 = 1_000;

/// Estimated bytes of a changed row before it is written.
const ROW_BYTES: usize = 256;

/// Maximum rows that one order can need: all that it names, the parties, and the contents of a trade.
const ROWS_OF_AN_ORDER: usize = 4096;

/// Reason why an order was not executed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The store did not answer.
    Store(StoreError),
    /// The rows contradict each other.
    Breach(Breach),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Failed::Store(error)
    }
}

/// Whether something may be due at this time, as far as a read without a conflict range shows.
async fn is_due(transaction: &Transaction, wall: WallTime) -> Result<bool, StoreError> {
    let head = transaction.snapshot().get(&layout::head_key()).await?;
    Ok(Head::decode(head.as_deref())?.due.is_some_and(|due| due <= wall))
}

/// Executes orders within one transaction of the fold: loads the rows that they need, and writes the changed ones.
#[derive(Default)]
pub(crate) struct LedgerTransaction {
    books: Books,
}

impl LedgerTransaction {
    /// Expires what is due at a batch's time, before the batch's own orders are executed, so that their results are a
    /// function of the archive. A batch that has none (`decides`) only looks whether something is due, so that it does
    /// not conflict with another shard's orders (rule T2).
    pub(crate) async fn expire(
        &mut self,
        transaction: &Transaction,
        (at, wall): (LogPosition, WallTime),
        decides: bool,
    ) -> Result<usize, Failed> {
        if !decides && !self.books.has(Row::Head) && !is_due(transaction, wall).await? {
            return Ok(0);
        }
        self.load(transaction, Row::Head).await?;
        let mut bytes = 0;
        let until = WallTime(wall.0.saturating_add(LOOKED_AHEAD));
        let mut rest = None;
        for _ in 0..EXPIRED_AT_ONCE {
            let Some(due) = self.run(transaction, |books| books.may_expire(wall)).await? else {
                break;
            };
            bytes += self.write(transaction)?;
            let deadlines = rest.take().unwrap_or_else(|| layout::deadlines_between(due, until));
            match rows::first_deadline(transaction, &deadlines).await? {
                Some((deadline, id)) if deadline <= wall => {
                    self.run(transaction, |books| {
                        books.expire(at, wall, id)?;
                        books.set_next_deadline(deadline)
                    })
                    .await?;
                    rest = Some(KeyRange::new(
                        key_after(&layout::deadline_key(deadline, id)),
                        deadlines.end,
                    ));
                }
                first => {
                    let earliest = first.map_or(until, |(deadline, _)| deadline);
                    self.run(transaction, |books| books.set_next_deadline(earliest)).await?;
                }
            }
        }
        Ok(bytes)
    }

    /// Executes an order.
    pub(crate) async fn execute(&mut self, transaction: &Transaction, ask: &Ask) -> Result<(), Failed> {
        for row in ask.rows() {
            self.load(transaction, row).await?;
        }
        self.run(transaction, |books| books.execute(ask)).await
    }

    /// Begins an activation and sends it a statement of all its holdings. The statement is read from the rows, so
    /// changed rows are written before. Returns the bytes written for that.
    pub(crate) async fn begin(
        &mut self,
        transaction: &Transaction,
        holder: DatabaseId,
        life: Life,
    ) -> Result<usize, Failed> {
        self.load(transaction, Row::Head).await?;
        if !self.run(transaction, |books| books.begin(holder, life)).await? {
            return Ok(0);
        }
        let bytes = self.write(transaction)?;
        let row = self
            .run(transaction, |books| books.holder(holder))
            .await?
            .unwrap_or_default();
        let statement = rows::read_statement(transaction, holder, row).await?;
        self.run(transaction, |books| books.state(life, statement.clone()))
            .await?;
        Ok(bytes)
    }

    /// Ends an activation.
    pub(crate) async fn end(
        &mut self,
        transaction: &Transaction,
        holder: DatabaseId,
        entity: EntityId,
    ) -> Result<(), Failed> {
        self.run(transaction, |books| books.end(holder, entity)).await
    }

    /// Notes that the log `ledger` contains the notices after `after`, up to and including `upto`.
    pub(crate) fn took(&mut self, after: NoticeNumber, upto: NoticeNumber) {
        self.books.took(after, upto);
    }

    /// Estimated bytes that are still to be written.
    pub(crate) fn unwritten(&self) -> usize {
        self.books.changes() * ROW_BYTES
    }

    /// Writes the entries and notices of a batch when all of it is executed. Returns the bytes written, and the last
    /// notice, if there is one.
    pub(crate) fn end_batch(&mut self, transaction: &Transaction) -> Result<(usize, Option<NoticeNumber>), StoreError> {
        pages::write(transaction, &mut self.books)
    }

    /// Writes all other rows that changed since they were last written. Returns the bytes written.
    pub(crate) fn write(&mut self, transaction: &Transaction) -> Result<usize, StoreError> {
        rows::write(transaction, &mut self.books)
    }

    async fn load(&mut self, transaction: &Transaction, row: Row) -> Result<(), StoreError> {
        if self.books.has(row) {
            return Ok(());
        }
        rows::load(transaction, &mut self.books, row).await
    }

    /// Runs a rule, loading rows that it needs until it completes.
    async fn run<T>(
        &mut self,
        transaction: &Transaction,
        mut rule: impl FnMut(&mut Books) -> Result<T, Halt>,
    ) -> Result<T, Failed> {
        for _ in 0..ROWS_OF_AN_ORDER {
            match rule(&mut self.books) {
                Ok(done) => return Ok(done),
                Err(Halt::Needs(row)) => rows::load(transaction, &mut self.books, row).await?,
                Err(Halt::Breach(breach)) => return Err(Failed::Breach(breach)),
            }
        }
        let why = "a rule requests more rows than any order can touch";
        Err(Failed::Breach(Breach { row: Row::Head, why }))
    }
}
