//! The ledger within one transaction of the fold.

use annals_ids::{DatabaseId, EntityId, LogPosition, NoticeNumber, WallTime};
use annals_store::{KeyRange, StoreError, Transaction, key_after, layout::ledger as layout};

use super::{
    books::{Books, Breach, Halt, Life, Row},
    pages, rows,
    rules::Ask,
};

/// Most that expires in one batch; the rest does with the next, and is as good as expired meanwhile.
const EXPIRED_AT_ONCE: usize = 64;

/// How far deadlines are looked through beyond the time of a batch, milliseconds. What settled in time has left deleted rows
/// there, for as long as anything may be open; so they are looked through once a second, and each is walked over about once.
const LOOKED_AHEAD: u64 = 1_000;

/// Bytes that a changed row takes, by estimate, before it is written.
const ROW_BYTES: usize = 256;

/// Most rows that one order can ask for: all that it names, the parties, and what a trade holds.
const ROWS_OF_AN_ORDER: usize = 4096;

/// Why an order was not executed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The store did not answer.
    Store(StoreError),
    /// The rows contradict one another.
    Breach(Breach),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Failed::Store(error)
    }
}

/// Executes orders within one transaction of the fold: loads the rows that they need, and writes those that changed.
#[derive(Default)]
pub(crate) struct LedgerTransaction {
    books: Books,
}

impl LedgerTransaction {
    /// Ends what is due at the time that a batch names, before its own orders are executed: so what comes of them is a
    /// function of the archive.
    pub(crate) async fn expire(
        &mut self,
        transaction: &Transaction,
        at: LogPosition,
        wall: WallTime,
    ) -> Result<usize, Failed> {
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
                        books.look_again(deadline)
                    })
                    .await?;
                    rest = Some(KeyRange::new(
                        key_after(&layout::deadline_key(deadline, id)),
                        deadlines.end,
                    ));
                }
                first => {
                    let earliest = first.map_or(until, |(deadline, _)| deadline);
                    self.run(transaction, |books| books.look_again(earliest)).await?;
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

    /// A life begins: it is told all that it has. Says how many bytes were written for that, which is read from the rows.
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

    /// A life ends.
    pub(crate) async fn end(
        &mut self,
        transaction: &Transaction,
        holder: DatabaseId,
        entity: EntityId,
    ) -> Result<(), Failed> {
        self.run(transaction, |books| books.end(holder, entity)).await
    }

    /// The log `ledger` holds the notices after one up to another.
    pub(crate) fn took(&mut self, after: NoticeNumber, upto: NoticeNumber) {
        self.books.took(after, upto);
    }

    /// How many bytes are to be written, by estimate.
    pub(crate) fn unwritten(&self) -> usize {
        self.books.changes() * ROW_BYTES
    }

    /// Writes what a batch has added to entries and outbox, once all of it is carried out. Says how many bytes that took.
    pub(crate) fn end_batch(&mut self, transaction: &Transaction) -> Result<usize, StoreError> {
        pages::write(transaction, &mut self.books)
    }

    /// Writes what else has changed since it was last written. Says how many bytes that took.
    pub(crate) fn write(&mut self, transaction: &Transaction) -> Result<usize, StoreError> {
        rows::write(transaction, &mut self.books)
    }

    async fn load(&mut self, transaction: &Transaction, row: Row) -> Result<(), StoreError> {
        if self.books.has(row) {
            return Ok(());
        }
        rows::load(transaction, &mut self.books, row).await
    }

    /// Runs a rule, and loads what it needs until it has come to an end.
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
        let why = "a rule asks for more rows than any order can touch";
        Err(Failed::Breach(Breach { row: Row::Head, why }))
    }
}
