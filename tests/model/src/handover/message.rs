//! Messages on the bus, which is the set of everything sent.

use super::MOST_OWNERS;

/// A call between owners. `moves` is the number of hand-overs before this one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Kind {
    /// The receiver is to take this entity.
    Onload {
        /// Hand-overs before this one.
        moves: u8,
    },
    /// The entity is real on the sender.
    Arrived {
        /// Hand-overs before this one.
        moves: u8,
    },
    /// The sender refuses the entity.
    Refused {
        /// Hand-overs before this one.
        moves: u8,
    },
}

/// A message. There are few enough to number them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A call on the link between two owners.
    Call {
        /// The caller.
        from: u8,
        /// The receiver.
        to: u8,
        /// Its number on the link.
        number: u8,
        /// Its content.
        kind: Kind,
    },
    /// The confirmation of another owner's calls.
    Took {
        /// The owner that took them.
        by: u8,
        /// The owner that made the calls.
        of: u8,
        /// The highest number taken.
        upto: u8,
    },
    /// To the home: the entity is on this owner. A call on the entity's own link, numbered by its hand-overs.
    Place {
        /// The owner that has the entity.
        owner: u8,
        /// The number of the call.
        number: u8,
    },
    /// The home's confirmation of a place.
    TookPlace {
        /// The number of the call.
        number: u8,
    },
}

const OWNERS: u16 = MOST_OWNERS as u16;
/// Upper bound (exclusive) of calls on a link, and of hand-overs before one.
const MOST: u16 = 4;
const KINDS: u16 = 3 * MOST;
const CALLS: u16 = OWNERS * OWNERS * MOST * KINDS;
const TOOK: u16 = OWNERS * OWNERS * MOST;
const PLACES: u16 = OWNERS * MOST;
const ALL: u16 = CALLS + TOOK + PLACES + MOST;

impl Message {
    fn index(self) -> u16 {
        match self {
            Self::Call { from, to, number, kind } => {
                let kind = match kind {
                    Kind::Onload { moves } => u16::from(moves),
                    Kind::Arrived { moves } => MOST + u16::from(moves),
                    Kind::Refused { moves } => 2 * MOST + u16::from(moves),
                };
                (pair(from, to) * MOST + u16::from(number) - 1) * KINDS + kind
            }
            Self::Took { by, of, upto } => CALLS + pair(by, of) * MOST + u16::from(upto) - 1,
            Self::Place { owner, number } => CALLS + TOOK + u16::from(owner) * MOST + u16::from(number),
            Self::TookPlace { number } => CALLS + TOOK + PLACES + u16::from(number),
        }
    }

    fn of_index(index: u16) -> Self {
        if index < CALLS {
            let (link, number, kind) = (index / KINDS / MOST, index / KINDS % MOST, index % KINDS);
            let moves = (kind % MOST) as u8;
            let kind = match kind / MOST {
                0 => Kind::Onload { moves },
                1 => Kind::Arrived { moves },
                _ => Kind::Refused { moves },
            };
            return Self::Call {
                from: (link / OWNERS) as u8,
                to: (link % OWNERS) as u8,
                number: number as u8 + 1,
                kind,
            };
        }
        let index = index - CALLS;
        if index < TOOK {
            let link = index / MOST;
            return Self::Took {
                by: (link / OWNERS) as u8,
                of: (link % OWNERS) as u8,
                upto: (index % MOST) as u8 + 1,
            };
        }
        let index = index - TOOK;
        if index < PLACES {
            return Self::Place {
                owner: (index / MOST) as u8,
                number: (index % MOST) as u8,
            };
        }
        Self::TookPlace {
            number: (index - PLACES) as u8,
        }
    }
}

fn pair(one: u8, other: u8) -> u16 {
    u16::from(one) * OWNERS + u16::from(other)
}

const WORDS: usize = (ALL as usize).div_ceil(64);

/// A set of messages, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Bus([u64; WORDS]);

impl Bus {
    pub(crate) fn has(&self, message: Message) -> bool {
        let index = message.index();
        self.0[usize::from(index / 64)] & 1 << (index % 64) != 0
    }

    pub(crate) fn add(&mut self, message: Message) {
        let index = message.index();
        self.0[usize::from(index / 64)] |= 1 << (index % 64);
    }

    pub(crate) fn remove(&mut self, message: Message) {
        let index = message.index();
        self.0[usize::from(index / 64)] &= !(1 << (index % 64));
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        (0u16..).zip(self.0).flat_map(|(word, mut bits)| {
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as u16)?;
                bits &= bits - 1;
                Some(Message::of_index(word * 64 + bit))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Message};

    #[test]
    fn every_message_has_a_number_of_its_own() {
        for index in 0..ALL {
            assert_eq!(Message::of_index(index).index(), index);
        }
    }
}
