//! Changes of properties, as the log stores them. Ghost senders use the same encoding.
//!
//! ```text
//! change = steps:number (index:number of:number){steps} edit
//! edit   = 0:u8 value                                                          set
//!        | 1:u8 of:number at:number removed:number count:number value{count}   splice
//! ```
//! `of` is the number of parts at the time of the change: elements or fields at a step, elements of the array for a
//! splice. A reader whose value has another number of parts has missed a change. It also sizes the path for clients,
//! which is encoded in as few bits as these numbers allow: an old change can be sent although the value has changed
//! again since.

use annals_def::{Change, Edit, Located, Path};

use super::value::{put_value, put_values, take_value, take_values};
use crate::encoding::{Malformed, Reader, put_number};

/// Appends a change.
pub fn put_change(out: &mut Vec<u8>, located: &Located) {
    let (change, parts) = (located.change(), located.parts());
    put_number(out, change.path.0.len() as u64);
    for (&index, &of) in change.path.0.iter().zip(parts) {
        put_number(out, index.into());
        put_number(out, of.into());
    }
    match &change.edit {
        Edit::Set(value) => {
            out.push(0);
            put_value(out, value);
        }
        Edit::Splice { at, removed, inserted } => {
            out.push(1);
            let of = parts.last().expect("invariant: a splice has the length of its array");
            [of, at, removed]
                .iter()
                .for_each(|&&number| put_number(out, number.into()));
            put_values(out, inserted);
        }
    }
}

/// Takes a change.
///
/// # Errors
/// When it is not in its one encoding, or an index is not below the number of parts.
pub fn take_change(reader: &mut Reader<'_>) -> Result<Located, Malformed> {
    let wrong = reader.malformed("change");
    let steps = reader.count(2, "path length")?;
    let (mut path, mut parts) = (Vec::with_capacity(steps), Vec::with_capacity(steps + 1));
    for _ in 0..steps {
        path.push(reader.narrow("path")?);
        parts.push(reader.narrow("parts")?);
    }
    let edit = match reader.byte("edit")? {
        0 => Edit::Set(take_value(reader)?),
        1 => {
            parts.push(reader.narrow("parts")?);
            Edit::Splice {
                at: reader.narrow("slice")?,
                removed: reader.narrow("slice")?,
                inserted: take_values(reader)?,
            }
        }
        _ => return Err(wrong),
    };
    let change = Change { path: Path(path), edit };
    Located::with_parts(change, parts).ok_or(wrong)
}
