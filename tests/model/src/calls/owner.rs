//! An owner's state, and the state that an entity carries along.

/// Maximum calls on a link.
const MOST: usize = 3;

/// Bodies of calls made or executed, in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Said {
    bodies: [u8; MOST],
    count: u8,
}

impl Said {
    pub(crate) fn push(&mut self, body: u8) {
        if !self.is_full() {
            self.bodies[usize::from(self.count)] = body;
            self.count += 1;
        }
    }

    pub(crate) fn is_full(self) -> bool {
        usize::from(self.count) == MOST
    }

    pub(crate) fn len(self) -> u8 {
        self.count
    }

    /// The body with this number, counted from 1.
    pub(crate) fn at(self, number: u8) -> Option<u8> {
        (number >= 1 && number <= self.count).then(|| self.bodies[usize::from(number) - 1])
    }

    pub(crate) fn contains(self, body: u8) -> bool {
        self.bodies[..usize::from(self.count)].contains(&body)
    }

    pub(crate) fn begins_with(self, other: Self) -> bool {
        self.bodies[..usize::from(self.count)].starts_with(&other.bodies[..usize::from(other.count)])
    }
}

/// An entity and both ends of its link with the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Entity {
    /// The sending end: calls by number.
    pub(crate) said: Said,
    /// The highest confirmed number.
    pub(crate) confirmed: u8,
    /// The receiving end: the highest number taken.
    pub(crate) taken: u8,
    /// Taken, but not yet recorded as taken (only without C2).
    pub(crate) unnoted: u8,
    /// The caller: calls that its behaviour requested, numbered or not.
    pub(crate) asked: Said,
    /// The caller: answers that its behaviour waits for, as a bit set.
    pub(crate) awaiting: u8,
    /// The caller: answers that its behaviour received.
    pub(crate) answered: Said,
    /// The receiver: calls that took effect.
    pub(crate) did: Said,
    /// The caller was notified that its receiver is gone.
    pub(crate) gave_up: bool,
    /// Destroyed; only its calls remain.
    pub(crate) is_dead: bool,
}

impl Entity {
    /// Its unconfirmed calls, by number.
    pub(crate) fn unconfirmed(&self) -> Unconfirmed {
        Unconfirmed {
            said: self.said,
            confirmed: self.confirmed,
        }
    }

    /// The call of `other` that it takes next.
    pub(crate) fn next_of(&self, other: &Self) -> Option<(u8, u8)> {
        let number = self.taken + self.unnoted + 1;
        let waits = number > other.confirmed && !self.is_dead && !self.did.is_full();
        other.said.at(number).filter(|_| waits).map(|body| (number, body))
    }
}

/// Unconfirmed calls: numbers and bodies, in order.
#[derive(Clone, Copy)]
pub(crate) struct Unconfirmed {
    said: Said,
    confirmed: u8,
}

impl Unconfirmed {
    pub(crate) fn is_none(self) -> bool {
        self.said.len() <= self.confirmed
    }

    pub(crate) fn is_some(self) -> bool {
        !self.is_none()
    }
}

impl IntoIterator for Unconfirmed {
    type Item = (u8, u8);
    type IntoIter = Box<dyn Iterator<Item = (u8, u8)>>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new((self.confirmed + 1..=self.said.len()).filter_map(move |number| Some((number, self.said.at(number)?))))
    }
}

/// An entity in flight to another owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Leaving {
    /// Number of this hand-over of the entity: 1, 2 …
    pub(crate) number: u8,
    pub(crate) image: Entity,
}

/// One owner's state; arrays are by entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Owner {
    /// Entities that are real here.
    pub(crate) here: [Option<Entity>; 2],
    /// Entities that have left, until their arrival is known.
    pub(crate) leaving: [Option<Leaving>; 2],
    /// By entity: the last hand-over in which this owner took part.
    pub(crate) arrived: [u8; 2],
}

impl Owner {
    pub(crate) fn leave(&mut self, entity: u8, image: Entity) {
        let index = usize::from(entity);
        self.arrived[index] += 1;
        self.leaving[index] = Some(Leaving {
            number: self.arrived[index],
            image,
        });
    }

    /// Deletes what only the process knows when C2 or C7 is disabled: what was taken and is not recorded as taken, and
    /// which answers are awaited.
    pub(crate) fn forget_what_no_log_has(&mut self, awaiting_too: bool) {
        for found in self.here.iter_mut().flatten() {
            found.unnoted = 0;
            if awaiting_too {
                found.awaiting = 0;
            }
        }
    }
}
