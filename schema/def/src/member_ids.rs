//! How many bytes the number of a member takes in a message.

use annals_ids::{MemberId, Part};

use crate::{message_range::MessageRange, schema::EntityType};

/// Members that clients know by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The members; an id is a position here.
    pub members: Vec<MemberId>,
    /// How many of the ids take one byte; those from here on take more.
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

    /// The properties and the methods that clients are shown.
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

    /// How many bytes this id takes, which there is: 1 to 3.
    #[must_use]
    pub fn length(&self, id: u16) -> usize {
        self.range.id_length(id)
    }

    /// How many members have an id of more than one byte.
    #[must_use]
    pub fn overflowing(&self) -> usize {
        self.members.len() - self.single_byte
    }
}
