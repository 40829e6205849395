//! Pages of entries and notices. A page contains those that one batch created, so that rows stay a function of the
//! archive; a batch of a hundred orders writes one row for its entries, and one for its notices.
//!
//! ```text
//! page = entry 1* | (length:number notice) 1*     its last number is in its key; cut into chunks
//! ```

use annals_event::{
    Malformed, Reader,
    ledger::{Entry, Notice},
    put_bytes,
};
use annals_ids::{EntryNumber, NoticeNumber};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction,
    layout::{chunks, ledger as layout, read_chunks},
};
use async_recursion::async_recursion as boxed;

use super::books::Books;

/// Chunks read at a time; most are pages of about a kilobyte.
const CHUNKS_AT_ONCE: usize = 256;

/// Chunks that a read for a number of entries or notices begins with, because pages may be large; the next reads are
/// sized by what these contained.
const CHUNKS_AT_FIRST: usize = 16;

/// Bytes in a chunk's key after the page's own key: the chunk's place.
const PLACE_BYTES: usize = size_of::<u16>();

/// Writes the entries and notices of a batch. Returns the bytes written, and the last notice, if there is one.
pub(super) fn write(transaction: &Transaction, books: &mut Books) -> Result<(usize, Option<NoticeNumber>), StoreError> {
    let (mut page, mut last) = (Vec::new(), None);
    for (number, entry) in books.entries.drain() {
        entry.write(&mut page);
        last = Some(layout::entries_key(number));
    }
    let entries = put(transaction, last.as_deref(), &page)?;
    let (mut page, mut last, mut newest) = (Vec::new(), None, None);
    for (number, notice) in books.notices.drain() {
        let mut bytes = Vec::new();
        notice.write(&mut bytes);
        put_bytes(&mut page, &bytes);
        last = Some(layout::notices_key(number));
        newest = Some(number);
    }
    Ok((entries + put(transaction, last.as_deref(), &page)?, newest))
}

/// Estimated number of chunks that contain `more` items, if `read` chunks contained `held`.
fn enough(more: usize, held: usize, read: usize) -> usize {
    more.saturating_mul(read).div_ceil(held.max(1)).clamp(1, CHUNKS_AT_ONCE)
}

fn put(transaction: &Transaction, key: Option<&[u8]>, page: &[u8]) -> Result<usize, StoreError> {
    let Some(key) = key else { return Ok(0) };
    let mut bytes = 0;
    for (key, chunk) in chunks(key, page) {
        bytes += key.len() + chunk.len();
        transaction.set(&key, chunk)?;
    }
    Ok(bytes)
}

/// Reads entries after `after`, in order: at most `limit`, and fewer only if there are no more.
///
/// # Errors
/// When the store cannot be read, or a row is damaged.
#[boxed]
pub async fn read_entries(store: &Store, after: EntryNumber, limit: usize) -> Result<Vec<Entry>, StoreError> {
    let (mut entries, mut chunks, mut read): (Vec<Entry>, usize, usize) = (Vec::new(), CHUNKS_AT_FIRST, 0);
    loop {
        read += chunks;
        let last = entries.last().map_or(after, |entry| entry.number);
        let next = |transaction: Transaction| async move { entries_after(&transaction, last, chunks).await };
        let (next, more) = store.read(next).await?;
        entries.extend(next);
        if !more || entries.len() >= limit {
            entries.truncate(limit);
            return Ok(entries);
        }
        chunks = enough(limit - entries.len(), entries.len(), read);
    }
}

/// Reads some of the entries after `after`, in order, and whether there are more.
pub(super) async fn next_entries(
    transaction: &Transaction,
    after: EntryNumber,
) -> Result<(Vec<Entry>, bool), StoreError> {
    entries_after(transaction, after, CHUNKS_AT_ONCE).await
}

async fn entries_after(
    transaction: &Transaction,
    after: EntryNumber,
    chunks: usize,
) -> Result<(Vec<Entry>, bool), StoreError> {
    let (pages, more) = read_pages(transaction, &layout::entries_after(after), chunks).await?;
    let (mut entries, mut next) = (Vec::new(), after.next());
    for (key, page) in pages {
        let last = layout::entries_of(&key)?;
        for entry in read_all("entries", last.0, &page, Entry::read)? {
            if entry.number == next {
                next = next.next();
                entries.push(entry);
            } else if entry.number > after {
                return Err(misplaced(last));
            }
        }
        if next != last.next() {
            return Err(misplaced(last));
        }
    }
    Ok((entries, more))
}

/// Reads one entry. Of the pages only its own is read.
pub(super) async fn read_entry(transaction: &Transaction, number: EntryNumber) -> Result<Option<Entry>, StoreError> {
    let before = EntryNumber(number.0.saturating_sub(1));
    let (entries, _) = entries_after(transaction, before, 1).await?;
    Ok(entries.into_iter().find(|entry| entry.number == number))
}

/// Reads notices in the outbox after `after`, in order: at most `limit`, and fewer only if there are no more.
///
/// # Errors
/// When the store cannot be read, or a row is damaged.
#[boxed]
pub async fn read_notices(
    store: &Store,
    after: NoticeNumber,
    limit: usize,
) -> Result<Vec<(NoticeNumber, Notice)>, StoreError> {
    let mut notices: Vec<(NoticeNumber, Notice)> = Vec::new();
    let (mut chunks, mut read) = (CHUNKS_AT_FIRST, 0);
    loop {
        read += chunks;
        let last = notices.last().map_or(after, |(number, _)| *number);
        let range = layout::notices_after(last);
        let next = |transaction: Transaction| {
            let range = range.clone();
            async move { read_pages(&transaction, &range, chunks).await }
        };
        let (pages, more) = store.read(next).await?;
        for (key, page) in pages {
            let upto = layout::notices_of(&key)?;
            let page = read_all("notices", upto.0, &page, |reader| Notice::read(reader.bytes("notice")?))?;
            let first = upto.0.saturating_sub(page.len() as u64) + 1;
            // Notices are removed from the front only, never from the middle.
            if notices.last().is_some_and(|(number, _)| number.next().0 < first) {
                return Err(missing(upto));
            }
            let newest = notices.last().map_or(last, |(number, _)| *number);
            let numbered = (first..).map(NoticeNumber).zip(page);
            notices.extend(numbered.filter(|(number, _)| *number > newest));
        }
        if !more || notices.len() >= limit {
            notices.truncate(limit);
            return Ok(notices);
        }
        chunks = enough(limit - notices.len(), notices.len(), read);
    }
}

/// Reads some of the pages in a range, at least one and about `chunks` chunks of them, in order and complete, with the
/// key of a chunk of each; and whether there are more.
async fn read_pages(
    transaction: &Transaction,
    range: &KeyRange,
    chunks: usize,
) -> Result<(Vec<(Vec<u8>, Vec<u8>)>, bool), StoreError> {
    let found = transaction
        .snapshot()
        .get_range(range, chunks, ScanOrder::Forward)
        .await?;
    let mut pages: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (key, chunk) in found.rows {
        match pages.last_mut().filter(|(other, _)| page_key(other) == page_key(&key)) {
            Some((_, page)) => page.extend_from_slice(&chunk),
            None => pages.push((key.to_vec(), chunk.to_vec())),
        }
    }
    // The last page may continue. If it is the only one, all of it must be read.
    if found.more && pages.len() > 1 {
        pages.pop();
    } else if let [(key, page)] = &mut pages[..]
        && found.more
    {
        *page = read_chunks(transaction, page_key(key)).await?.unwrap_or_default();
    }
    Ok((pages, found.more))
}

fn page_key(chunk: &[u8]) -> &[u8] {
    &chunk[..chunk.len().saturating_sub(PLACE_BYTES)]
}

fn read_all<T>(
    what: &str,
    last: u64,
    page: &[u8],
    read: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, StoreError> {
    let unreadable = |error| StoreError::Corrupt(format!("the ledger's {what} up to {last}: {error}").into());
    let mut reader = Reader::new(page);
    let mut all = Vec::new();
    while reader.remaining() > 0 {
        all.push(read(&mut reader).map_err(unreadable)?);
    }
    Ok(all)
}

fn missing(upto: NoticeNumber) -> StoreError {
    StoreError::Corrupt(format!("the outbox: the notices directly before those up to {upto} are missing").into())
}

fn misplaced(last: EntryNumber) -> StoreError {
    StoreError::Corrupt(format!("the ledger's entries up to {last}: another entry is in its place").into())
}
