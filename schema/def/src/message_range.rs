//! Message ids: one byte that says which member a message is about.
//!
//! Members have client numbers, those of fixed size first. Each kind of member has a range of *slots*: values of that
//! byte. While there are no more members than slots, each member has its own slot. Otherwise the last slots of the
//! range are shared: with `n` slots for more members, `(members - n) / 255 + 1` of them, each by 256 members,
//! distinguished by a second byte. If that is not enough, only the last slot is shared, followed by two bytes,
//! little-endian.
//!
//! Of the 256 values of a message to a client, 0, 1 and 2 are changes of a part, changes of a slice, and gaps in the
//! numbers. Properties have the slots from 3 on, followed by those of methods. If there are more members than slots,
//! each kind gets at least half of the slots if it has that many members.
//!
//! In a client's call all 256 values are slots of the exposed methods of the called part.

use annals_ids::{MemberId, Part};

use crate::schema::EntityType;

/// Values of a byte.
const BYTES: u32 = 256;

/// Slots for properties and methods in messages to a client.
const SHOWN_SLOTS: u32 = BYTES - FIRST_SHOWN;

/// The first slot of a property.
const FIRST_SHOWN: u32 = 3;

/// The slots of one kind of member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRange {
    first: u32,
    members: u32,
    /// Number of slots with one member each.
    direct: u32,
    /// Number of shared slots.
    shared: u32,
    /// Bytes that follow a shared slot.
    width: u32,
}

impl MessageRange {
    /// The range of this many members, from slot `first` on.
    #[must_use]
    pub fn new(first: u8, slots: u16, members: u16) -> Self {
        let (first, slots, members) = (u32::from(first), u32::from(slots), u32::from(members));
        let shared = match members.checked_sub(slots) {
            None | Some(0) => 0,
            Some(more) => more / (BYTES - 1) + 1,
        };
        let (shared, width) = if shared <= slots {
            (shared, 1)
        } else {
            (slots.min(1), 2)
        };
        Self {
            first,
            members,
            direct: slots - shared,
            shared,
            width,
        }
    }

    /// The exposed methods of a part, as called by a client that knows the entity as one of this type.
    #[must_use]
    pub fn of_calls(entity_type: &EntityType, part: Part) -> Self {
        let exposed = match part {
            Part::Base => entity_type.exposed_base_methods(),
            Part::Cell => entity_type.exposed_cell_methods(),
        };
        Self::new(0, 256, count(exposed))
    }

    /// The client properties and client methods of a type, in messages to clients.
    #[must_use]
    pub fn of_shown(entity_type: &EntityType) -> (Self, Self) {
        let (properties, methods) = (
            count(entity_type.client_properties()),
            count(entity_type.client_method_ids()),
        );
        Self::shared_by(properties, methods)
    }

    /// The ranges for this many client properties and client methods.
    #[must_use]
    pub fn shared_by(properties: u16, methods: u16) -> (Self, Self) {
        let least = SHOWN_SLOTS - SHOWN_SLOTS / 2;
        let free = SHOWN_SLOTS.saturating_sub(methods.into());
        let for_properties = u32::from(properties).min(free.max(least));
        let for_methods = u32::from(methods).min(SHOWN_SLOTS - for_properties);
        let narrow = |slots: u32| slots.to_le_bytes()[0];
        (
            Self::new(narrow(FIRST_SHOWN), narrow(for_properties).into(), properties),
            Self::new(
                narrow(FIRST_SHOWN + for_properties),
                narrow(for_methods).into(),
                methods,
            ),
        )
    }

    /// Number of members whose id takes a single byte.
    #[must_use]
    pub fn single_byte(&self) -> usize {
        self.direct.min(self.members) as usize
    }

    /// Bytes of the id of the member with this client number, which must exist: 1 to 3.
    #[must_use]
    pub fn id_length(&self, member: u16) -> usize {
        if usize::from(member) < self.single_byte() {
            1
        } else {
            1 + self.width as usize
        }
    }

    /// Appends the id of the member with this client number, which must exist.
    pub fn put(&self, member: u16, out: &mut Vec<u8>) {
        let member = u32::from(member);
        let Some(beyond) = member.checked_sub(self.direct) else {
            out.push((self.first + member).to_le_bytes()[0]);
            return;
        };
        let bits = 8 * self.width;
        let [low, high, ..] = beyond.to_le_bytes();
        out.push((self.first + self.direct + (beyond >> bits)).to_le_bytes()[0]);
        out.push(low);
        if self.width == 2 {
            out.push(high);
        }
    }

    /// Whether a message with this first byte belongs to the range.
    #[must_use]
    pub fn contains(&self, id: u8) -> bool {
        let end = self.first + self.direct + self.shared;
        (self.first..end).contains(&u32::from(id))
    }

    /// The client number of a message's member, and the bytes behind the id; `None` if no member has that id.
    #[must_use]
    pub fn take<'m>(&self, message: &'m [u8]) -> Option<(u16, &'m [u8])> {
        let (&id, rest) = message.split_first()?;
        let slot = u32::from(id).checked_sub(self.first)?;
        let (member, rest) = match slot.checked_sub(self.direct) {
            None => (slot, rest),
            Some(_) if self.width == 2 => {
                let (beyond, rest) = rest.split_first_chunk()?;
                (self.direct + u32::from(u16::from_le_bytes(*beyond)), rest)
            }
            Some(nth) => {
                let (&beyond, rest) = rest.split_first()?;
                (self.direct + nth * BYTES + u32::from(beyond), rest)
            }
        };
        let member = Some(member).filter(|&member| member < self.members && self.contains(id))?;
        Some((u16::try_from(member).ok()?, rest))
    }
}

fn count(members: &[MemberId]) -> u16 {
    u16::try_from(members.len()).expect("invariant: at most MAX_MEMBERS members")
}
