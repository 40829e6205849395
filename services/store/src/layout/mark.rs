//! Which layout a store has, said in the store itself, so that it is the same on every engine.
//!
//! A program that reads what it does not understand would fold or restore nonsense. So a store says by which layout its rows
//! were written, and a program that knows another one opens nothing. What is peculiar to an engine (its files, its own keys)
//! is the engine's to mark.

use thiserror::Error;

use super::fields::{Fields, key};
use crate::{StoreError, Transaction};

/// The layout of what this program writes: raised by whoever changes a key or a value so that programs of before would
/// misread it, or miss it.
pub const LAYOUT: u32 = 1;

/// The layout of a store without a mark: what wrote stores before there was a mark.
const UNMARKED: u32 = 1;

const _: () = assert!(
    LAYOUT == UNMARKED,
    "a new store has no mark either until db begins: decide how it is told from one of layout 1"
);

/// The store was written by a program that knows another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the store is of layout {found}, and this program reads layout {LAYOUT} alone; run the release that has written it"
)]
pub struct OtherLayout {
    /// The layout it is of.
    pub found: u32,
}

/// Key of the store's layout. A store in which nobody has begun to fold has none; nor has one from before there was a mark,
/// which was of layout 1.
#[must_use]
pub fn layout_key() -> Vec<u8> {
    key(0x00, &[])
}

/// The layout of a store, if it says.
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

/// Whether this program reads it.
///
/// # Errors
/// [`OtherLayout`].
pub fn check_layout(found: Option<u32>) -> Result<(), OtherLayout> {
    match found.unwrap_or(UNMARKED) {
        LAYOUT => Ok(()),
        found => Err(OtherLayout { found }),
    }
}

/// Says in a store that has no mark that its layout is this one.
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
