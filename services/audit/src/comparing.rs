//! Compares an index with a rebuilt one: an index may have been modified to omit rows, or to point elsewhere.

use async_recursion::async_recursion as boxed;
use std::fmt;

use annals_event::Subject;
use annals_evidence::ShardLeaf;
use annals_ids::{BatchNumber, EntryNumber, EventNumber, LogPosition};
use annals_store::{Row, Store, key_after};

use crate::{
    answer::AuditError,
    index::Index,
    rows::{self, Concerned, STRETCH},
};

/// Rows compared at a time.
const PAGE: usize = 512;

/// The first item of the archive that an index contradicts or omits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    /// Its leaf; `None` if the index refers to something that the archive does not have, or has the wrong progress.
    pub leaf: Option<ShardLeaf>,
    pub batch: Option<LogPosition>,
    /// The event, in the log of that batch.
    pub event: Option<EventNumber>,
    /// Number of wrong rows.
    pub rows: u64,
}

impl fmt::Display for Astray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, .. } = self;
        write!(f, "{rows} rows of the index do not match the archive; ")?;
        match (self.event, self.batch, self.leaf) {
            (Some(event), Some(at), Some(leaf)) => write!(
                f,
                "the first event that it omits or misplaces is event {event} of owner {}, in batch {at}, leaf {leaf}",
                at.owner
            )?,
            (None, Some(at), Some(leaf)) => write!(f, "the first wrong batch is {at}, leaf {leaf}")?,
            (_, _, Some(leaf)) => write!(f, "the first wrong leaf is {leaf}")?,
            _ => f.write_str("its position is wrong, or it has rows for data that the archive does not have")?,
        }
        f.write_str("; remove its folder to rebuild it")
    }
}

impl Index {
    /// Compares this index with a rebuilt and complete one of the same archive. Returns the first item of the archive
    /// about which this one is wrong; `None` if they are equal.
    ///
    /// # Errors
    /// When one of the two, or the archive, cannot be read.
    #[boxed]
    pub async fn compare(&self, archive: &Store, anew: &Self) -> Result<Option<Astray>, AuditError> {
        let (mut own, mut true_rows) = (Pages::of(self), Pages::of(anew));
        let mut found: Option<Astray> = None;
        loop {
            let (mine, others) = (own.peek().await?, true_rows.peek().await?);
            let key = match (&mine, &others) {
                (None, None) => break,
                (Some(mine), Some(other)) => mine.0.clone().min(other.0.clone()),
                (Some(one), None) | (None, Some(one)) => one.0.clone(),
            };
            let mine = own.take_if(&key);
            let other = true_rows.take_if(&key);
            if mine == other {
                continue;
            }
            let of = match other.or(mine) {
                Some((_, value)) => anew.concerned(archive, &key, &value).await?,
                None => Astray::NOTHING,
            };
            let rows = found.as_ref().map_or(0, |found| found.rows) + 1;
            let is_first = |found: &Astray| match (of.leaf, found.leaf) {
                (Some(leaf), Some(first)) => (leaf, of.event) < (first, found.event),
                (Some(_), None) => true,
                (None, _) => false,
            };
            if found.as_ref().is_none_or(is_first) {
                found = Some(of);
            }
            if let Some(found) = &mut found {
                found.rows = rows;
            }
        }
        Ok(found)
    }

    /// The item of the archive that a row refers to.
    async fn concerned(&self, archive: &Store, key: &[u8], value: &[u8]) -> Result<Astray, AuditError> {
        match rows::concerned(key, value) {
            None => Ok(Astray::NOTHING),
            Some(Concerned::Leaf(leaf)) => Ok(Astray {
                leaf: Some(leaf),
                ..Astray::NOTHING
            }),
            Some(Concerned::Log(owner)) => {
                let batch = self.log_ends().get(&owner).map_or(BatchNumber(0), |end| end.tail.batch);
                self.of_batch(LogPosition { owner, batch }).await
            }
            Some(Concerned::Batch(at)) => self.of_batch(at).await,
            Some(Concerned::Event(at, place)) => {
                let Some((seat, batch)) = self.batch(archive, at).await? else {
                    return Ok(Astray::NOTHING);
                };
                let event = EventNumber(batch.header.first_event.0 + u64::from(place));
                Ok(Astray {
                    leaf: Some(seat.leaf),
                    batch: Some(at),
                    event: (place < batch.header.events).then_some(event),
                    rows: 1,
                })
            }
            Some(Concerned::Entry(number)) => self.of_entry(archive, number).await,
            Some(Concerned::Stretch(entity, owner, stretch)) => {
                for number in stretch * STRETCH..(stretch + 1) * STRETCH {
                    let batch = BatchNumber(number);
                    let at = LogPosition { owner, batch };
                    let Some((seat, found)) = self.batch(archive, at).await? else {
                        continue;
                    };
                    let is_about =
                        |event: &annals_event::Event| matches!(event.subject, Subject::Entity(of, _) if of == entity);
                    if let Some(place) = found.events.iter().position(is_about) {
                        return Ok(Astray {
                            leaf: Some(seat.leaf),
                            batch: Some(at),
                            event: Some(EventNumber(found.header.first_event.0 + place as u64)),
                            rows: 1,
                        });
                    }
                }
                Ok(Astray::NOTHING)
            }
        }
    }

    async fn of_batch(&self, at: LogPosition) -> Result<Astray, AuditError> {
        let lies = self.lies(at).await?;
        Ok(lies.map_or(Astray::NOTHING, |lies| Astray {
            leaf: Some(lies.seat.leaf),
            batch: Some(at),
            event: None,
            rows: 1,
        }))
    }

    async fn of_entry(&self, archive: &Store, number: EntryNumber) -> Result<Astray, AuditError> {
        match self.entry_position(archive, number).await {
            Err(AuditError::Misled(_)) => Ok(Astray::NOTHING),
            Err(error) => Err(error),
            Ok((seat, batch, place)) => Ok(Astray {
                leaf: Some(seat.leaf),
                batch: Some(LogPosition {
                    owner: batch.header.owner,
                    batch: batch.header.number,
                }),
                event: Some(EventNumber(batch.header.first_event.0 + u64::from(place))),
                rows: 1,
            }),
        }
    }
}

impl Astray {
    /// No item of the archive.
    const NOTHING: Self = Self {
        leaf: None,
        batch: None,
        event: None,
        rows: 1,
    };
}

/// All rows of an index, page by page.
struct Pages<'a> {
    index: &'a Index,
    next: Option<Vec<u8>>,
    page: std::iter::Peekable<std::vec::IntoIter<Row>>,
}

impl<'a> Pages<'a> {
    fn of(index: &'a Index) -> Self {
        Self {
            index,
            next: Some(rows::all().begin.to_vec()),
            page: Vec::new().into_iter().peekable(),
        }
    }

    async fn peek(&mut self) -> Result<Option<Row>, AuditError> {
        if self.page.peek().is_none()
            && let Some(begin) = self.next.take()
        {
            let range = annals_store::KeyRange::new(begin, rows::all().end);
            let page = self.index.rows(range, PAGE).await?;
            self.next = page
                .last()
                .filter(|_| page.len() >= PAGE)
                .map(|(key, _)| key_after(key).to_vec());
            self.page = page.into_iter().peekable();
        }
        Ok(self.page.peek().cloned())
    }

    fn take_if(&mut self, key: &[u8]) -> Option<Row> {
        self.page.next_if(|(found, _)| found == key)
    }
}
