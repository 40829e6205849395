//! Encoding of keys and values.

use annals_ids::Hash;
use bytes::Bytes;

use crate::{KeyRange, ScanOrder, StoreError, Transaction, limits};

/// Size of a chunk, in bytes: slightly below the largest value.
const CHUNK: usize = 90_000;

const _: () = assert!(CHUNK < limits::VALUE_BYTES);

/// Rows per read.
const PAGE: usize = 64;

/// A key: a prefix and big-endian numbers.
pub(super) fn key(prefix: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![prefix];
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The chunks of `bytes` under `key`. Empty bytes make one chunk, so that they are present.
pub fn chunks<'a>(key: &'a [u8], bytes: &'a [u8]) -> impl Iterator<Item = (Vec<u8>, &'a [u8])> {
    let pieces = if bytes.is_empty() {
        1
    } else {
        bytes.len().div_ceil(CHUNK)
    };
    (0..pieces).map(move |number| {
        let place = u16::try_from(number).expect("invariant: nothing is larger than 65,536 chunks");
        let piece = &bytes[number * CHUNK..bytes.len().min((number + 1) * CHUNK)];
        ([key, &place.to_be_bytes()].concat(), piece)
    })
}

/// Joins chunks.
#[must_use]
pub fn join(rows: &[(Bytes, Bytes)]) -> Vec<u8> {
    rows.iter().flat_map(|(_, value)| value.iter().copied()).collect()
}

/// Reads and joins the chunks under `key`; `None` if there are none.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`] if a chunk is missing.
pub async fn read_chunks(transaction: &Transaction, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let mut range = KeyRange::prefix(key);
    let mut bytes = Vec::new();
    let mut next = 0_u32;
    loop {
        let page = transaction.get_range(&range, PAGE, ScanOrder::Forward).await?;
        for (place, value) in &page.rows {
            let number = place[key.len()..].try_into().map(u16::from_be_bytes);
            if number.ok().map(u32::from) != Some(next) {
                return Err(StoreError::Corrupt(
                    format!("the store lacks chunk {next} of a value").into(),
                ));
            }
            next += 1;
            bytes.extend_from_slice(value);
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(crate::key_after(last), range.end.clone()),
            None => return Ok((next > 0).then_some(bytes)),
        }
    }
}

/// Reads the fields of a value from its front.
pub(crate) struct Fields<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(what: &'static str, value: &'a [u8]) -> Self {
        Self { what, rest: value }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(*field)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, StoreError> {
        self.take().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, StoreError> {
        self.take().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, StoreError> {
        self.take().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        self.take().map(u64::from_be_bytes)
    }

    /// A number other than 0 at the end of a value, or 0 if the value ends here.
    pub(crate) fn optional_u64(&mut self) -> Result<u64, StoreError> {
        if self.is_empty() {
            return Ok(0);
        }
        match self.u64()? {
            0 => Err(self.corrupt()),
            number => Ok(number),
        }
    }

    pub(crate) fn hash(&mut self) -> Result<Hash, StoreError> {
        self.take().map(Hash)
    }

    /// Takes `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let (field, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(field)
    }

    /// Texts, as [`put_texts`] writes them.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>, StoreError> {
        let mut texts = Vec::new();
        for _ in 0..self.u32()? {
            let length = self.u32()? as usize;
            let text = self.bytes(length)?.to_vec();
            texts.push(String::from_utf8(text).map_err(|_| self.corrupt())?);
        }
        Ok(texts)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn finish(self) -> Result<(), StoreError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.corrupt())
        }
    }

    pub(crate) fn corrupt(&self) -> StoreError {
        StoreError::Corrupt(format!("the store holds {} that cannot be read", self.what).into())
    }
}

/// The name of a connection, if there is one, after the number of the term in which it was used.
pub(super) fn encode_connection(term: u64, name: Option<&str>) -> Vec<u8> {
    [&term.to_be_bytes()[..], name.unwrap_or_default().as_bytes()].concat()
}

/// Decodes the two.
pub(super) fn decode_connection(what: &'static str, value: &[u8]) -> Result<(u64, Option<String>), StoreError> {
    let mut fields = Fields::of(what, value);
    let term = fields.u64()?;
    let name = String::from_utf8(fields.rest().to_vec()).map_err(|_| fields.corrupt())?;
    Ok((term, Some(name).filter(|name| !name.is_empty())))
}

/// Decodes the number in a value of eight bytes.
pub(super) fn number(what: &'static str, value: &[u8]) -> Result<u64, StoreError> {
    let mut fields = Fields::of(what, value);
    let number = fields.u64()?;
    fields.finish()?;
    Ok(number)
}

/// Appends a count of 32 bits.
pub(super) fn put_count(value: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("invariant: a row is far below 4 GiB");
    value.extend(count.to_be_bytes());
}

/// Appends texts, with their number before them and the length of each.
pub(super) fn put_texts(value: &mut Vec<u8>, texts: &[String]) {
    put_count(value, texts.len());
    for text in texts {
        put_count(value, text.len());
        value.extend(text.as_bytes());
    }
}
