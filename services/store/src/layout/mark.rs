//! Layout version of a store. It is a row of the store, so that it is the same on every engine.
//!
//! A program that reads rows of an unknown layout would fold or restore nonsense. So each store names its layout, and a
//! program of another layout refuses to open it. Each engine marks the version of its own files and keys itself.

use thiserror::Error;

use super::fields::{Fields, key};
use crate::{StoreError, Transaction};

/// Layout that this program writes. Increment it with any change of a key or value that older programs would misread or
/// miss.
pub const LAYOUT: u32 = 1;

/// Layout of a store without a mark, written before marks existed.
const UNMARKED: u32 = 1;

const _: () = assert!(
    LAYOUT == UNMARKED,
    "a new store has no mark either until db begins: decide how to distinguish it from one of layout 1"
);

/// The store was written with another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the store is of layout {found}, and this program reads layout {LAYOUT} alone; run the release that has written it, \
     and upgrade one release at a time"
)]
pub struct OtherLayout {
    /// Its layout.
    pub found: u32,
}

/// Key of the store's layout. It is absent before the first fold, and in stores from before marks existed, which have
/// layout 1.
#[must_use]
pub fn layout_key() -> Vec<u8> {
    key(0x00, &[])
}

/// The layout of a store, if it is marked.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_layout(transaction: &Transaction) -> Result<Option<u32>, StoreError> {
    let Some(value) = transaction.get(&layout_key()).await? else {
        return Ok(None);
    };
    let mut fields = Fields::of("a layout", &value);
    let layout = fields.u32()?;
    fields.finish()?;
    Ok(Some(layout))
}

/// Checks that this program supports the layout.
///
/// # Errors
/// [`OtherLayout`].
pub fn check_layout(found: Option<u32>) -> Result<(), OtherLayout> {
    match found.unwrap_or(UNMARKED) {
        LAYOUT => Ok(()),
        found => Err(OtherLayout { found }),
    }
}

/// Marks a store without a mark with the current layout.
///
/// # Errors
/// When the store is of another layout, or cannot be read.
pub async fn mark<E>(transaction: &Transaction) -> Result<(), E>
where
    E: From<StoreError> + From<OtherLayout>,
{
    let found = read_layout(transaction).await?;
    check_layout(found)?;
    if found.is_none() {
        transaction.set(&layout_key(), &LAYOUT.to_be_bytes())?;
    }
    Ok(())
}
