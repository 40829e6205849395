//! How many bytes the number of a member takes in a message.
//!
//! A message begins with a byte that says which member it is about. Its values are slots: a call from a client has all of
//! them for the exposed methods of the part, what a client is shown has a few values for other purposes and the others for
//! properties, then methods. Where there are more members than slots, the last slots each stand for 256 members that a
//! second byte tells apart; those are the members numbered last, of the largest size.

use annals_ids::MemberId;

/// Values of a byte: the slots of a call.
const CALL_SLOTS: usize = 256;

/// The slots of what a client is shown: three values say that a part of something changed, a slice, or nothing that this
/// client may see.
const SHOWN_SLOTS: usize = CALL_SLOTS - 3;

/// Members that a shared slot stands for beyond the one that it had alone.
const MORE: usize = 255;

/// Members that clients know by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The members; an id is a position here.
    pub members: Vec<MemberId>,
    /// How many of the ids take one byte; those from here on take more.
    pub single_byte: usize,
}

impl Ids {
    /// The exposed methods of a part.
    pub(crate) fn called(members: &[MemberId]) -> Self {
        Self::within(members, CALL_SLOTS)
    }

    /// The properties and the methods that clients are shown, which share the slots. If there are too few for both, neither
    /// has less than half of them as long as it has so many members.
    pub(crate) fn shown(properties: &[MemberId], methods: &[MemberId]) -> (Self, Self) {
        let half = SHOWN_SLOTS.div_ceil(2);
        let free = SHOWN_SLOTS.saturating_sub(methods.len());
        let for_properties = properties.len().min(free.max(half));
        let for_methods = methods.len().min(SHOWN_SLOTS - for_properties);
        (
            Self::within(properties, for_properties),
            Self::within(methods, for_methods),
        )
    }

    fn within(members: &[MemberId], slots: usize) -> Self {
        let shared = match members.len().checked_sub(slots) {
            None | Some(0) => 0,
            Some(over) => over / MORE + 1,
        };
        // Where sharing all of them is not enough, one is shared by everything that is left.
        let shared = if shared <= slots { shared } else { slots.min(1) };
        Self {
            members: members.to_vec(),
            single_byte: members.len().min(slots - shared),
        }
    }

    /// How many members have an id of more than one byte.
    #[must_use]
    pub fn overflowing(&self) -> usize {
        self.members.len() - self.single_byte
    }
}
