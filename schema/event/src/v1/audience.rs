//! Clients that a call of a client method reaches.
//!
//! ```text
//! audience = 0:u8 own | 1:u8 others | 2:u8 all | 3:u8 entity:number
//! ```

use annals_ids::EntityId;

use crate::encoding::{Malformed, Reader, put_number};

/// The clients on which a client method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// The entity's own client.
    Own,
    /// Every other client that sees the entity.
    Others,
    /// Both.
    All,
    /// The client of this entity alone, while it sees the entity on which the method is called.
    Of(EntityId),
}

pub(super) fn put_audience(out: &mut Vec<u8>, audience: Audience) {
    match audience {
        Audience::Own => out.push(0),
        Audience::Others => out.push(1),
        Audience::All => out.push(2),
        Audience::Of(viewer) => {
            out.push(3);
            put_number(out, viewer.0);
        }
    }
}

pub(super) fn take_audience(reader: &mut Reader<'_>) -> Result<Audience, Malformed> {
    let wrong = reader.malformed("audience");
    match reader.byte("audience")? {
        0 => Ok(Audience::Own),
        1 => Ok(Audience::Others),
        2 => Ok(Audience::All),
        3 => Ok(Audience::Of(EntityId(reader.number("entity")?))),
        _ => Err(wrong),
    }
}
