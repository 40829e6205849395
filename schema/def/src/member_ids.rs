//! Sizes of member ids in messages.

use annals_ids::{MemberId, Part};

use crate::{message_range::MessageRange, schema::EntityType};

/// Members with client numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The members; the position is the id.
    pub members: Vec<MemberId>,
    /// Number of ids that take one byte; the later ones take more.
    pub single_byte: usize,
    range: MessageRange,
}

impl Ids {
    /// The exposed methods of a part.
    #[must_use]
    pub fn called(one: &EntityType, part: Part) -> Self {
        let members = match part {
            Part::Base => one.exposed_base_methods(),
            Part::Cell => one.exposed_cell_methods(),
        };
        Self::within(members, MessageRange::of_calls(one, part))
    }

    /// The properties and methods that clients receive.
    #[must_use]
    pub fn shown(one: &EntityType) -> (Self, Self) {
        let (properties, methods) = MessageRange::of_shown(one);
        (
            Self::within(one.client_properties(), properties),
            Self::within(one.client_method_ids(), methods),
        )
    }

    fn within(members: &[MemberId], range: MessageRange) -> Self {
        Self {
            members: members.to_vec(),
            single_byte: range.single_byte(),
            range,
        }
    }

    /// Bytes of this id, which must exist: 1 to 3.
    #[must_use]
    pub fn length(&self, id: u16) -> usize {
        self.range.id_length(id)
    }

    /// Number of members whose id takes more than one byte.
    #[must_use]
    pub fn overflowing(&self) -> usize {
        self.members.len() - self.single_byte
    }
}
