//! The remains of one batch, and which of its events differs if only its header is original.

use annals_event::{Batch, Header, Reader, Thinned};
use annals_ids::{EventNumber, Hash, LogPosition};
use annals_proof::{Frontier, leaf_hash};
use annals_store::ArchivedBatch;

use super::{What, reading::Floors};

/// Maximum events of a batch for which all reorderings of two are tried: the number of tries is the square.
const MOST_TRIED: usize = 64;

/// The content of the archive at a leaf.
#[derive(Clone, Debug)]
pub(super) struct LeafContent {
    /// The owner and number in its header.
    pub(super) at: LogPosition,
    pub(super) hash: Hash,
    /// The hash of the previous batch in its header.
    pub(super) previous: Hash,
    pub(super) first_event: EventNumber,
    pub(super) events: u32,
    /// The fault of its events, if its header is intact, with the first and the last event that it can concern.
    pub(super) wrong: Option<(What, EventNumber, EventNumber)>,
}

impl LeafContent {
    /// `None` if not even a header can be read. Below the floor of its log its events may be gone.
    pub(super) fn read(archived: &ArchivedBatch, floors: &Floors) -> Option<Self> {
        let (header, hash, behind) = Header::split(archived.header()).ok()?;
        let at = LogPosition {
            owner: header.owner,
            batch: header.number,
        };
        let is_sound = match archived {
            ArchivedBatch::Whole(bytes) => Batch::check(bytes).is_ok(),
            ArchivedBatch::Thinned(bytes) => {
                Thinned::read(bytes).is_ok() && floors.get(&at.owner).is_some_and(|floor| at.batch <= *floor)
            }
        };
        let wrong = (!is_sound).then(|| match archived {
            ArchivedBatch::Whole(_) => compare(&header, behind),
            ArchivedBatch::Thinned(_) => {
                let first = header.first_event;
                (What::Events, first, first)
            }
        });
        Some(Self {
            at,
            hash,
            previous: header.previous,
            first_event: header.first_event,
            events: header.events,
            wrong,
        })
    }

    /// The last event of its log up to the end of the batch.
    pub(super) fn last_event(&self) -> EventNumber {
        EventNumber(self.first_event.0 + u64::from(self.events) - 1)
    }
}

/// Compares events with a header that does not match them. The originals are known if reordering them, or leaving one
/// out, gives the root in the header.
fn compare(header: &Header, events: &[u8]) -> (What, EventNumber, EventNumber) {
    let number = |place: usize| EventNumber(header.first_event.0 + place as u64);
    let count = header.events as usize;
    let last = number(count.max(1) - 1);
    let Some(hashes) = hashes(events) else {
        return (What::Events, header.first_event, last);
    };
    let leads = |hashes: &mut dyn Iterator<Item = Hash>| {
        let mut tree = Frontier::new();
        hashes.for_each(|hash| tree.push(hash));
        tree.root() == header.events_root
    };
    if count == 0 {
        return (What::PutIn, header.first_event, header.first_event);
    }
    let places = 0..hashes.len().min(MOST_TRIED + 1);
    if hashes.len() == count + 1 {
        let without = |out: usize| (0..hashes.len()).filter(move |place| *place != out);
        // Of several equal events the last is the surplus one: those before it are in their original places.
        let found = places
            .rev()
            .find(|&out| leads(&mut without(out).map(|place| hashes[place])));
        if let Some(place) = found {
            return (What::PutIn, number(place), number(place));
        }
    } else if hashes.len() == count && count <= MOST_TRIED {
        for place in places.clone() {
            for other in place + 1..count {
                let mut swapped = hashes.clone();
                swapped.swap(place, other);
                let (mut earlier, mut later) = (hashes.clone(), hashes.clone());
                earlier[place..=other].rotate_left(1);
                later[place..=other].rotate_right(1);
                if [swapped, earlier, later]
                    .into_iter()
                    .any(|order| leads(&mut order.into_iter()))
                {
                    return (What::Reordered, number(place), number(place));
                }
            }
        }
    }
    (What::Events, header.first_event, last)
}

/// The hashes of the events after a header, as far as they can be decoded.
fn hashes(events: &[u8]) -> Option<Vec<Hash>> {
    let mut reader = Reader::new(events);
    let mut hashes = Vec::new();
    while reader.remaining() > 0 {
        hashes.push(leaf_hash(reader.bytes("event").ok()?));
    }
    Some(hashes)
}
