//! The writer against the rules: each row of the table in L5 by hand, and generated fault schedules against a small
//! model of log, store and db.

mod faults;
mod reading;
mod rules;
mod world;

use annals_event::{FrozenBatch, Gathering, Imprint, Tail};
use annals_ids::{Epoch, EventNumber, Hash, OwnerId, Tick, WallTime};
use annals_node::writer::Tip;

/// The owner all tests write for.
const OWNER: OwnerId = OwnerId(7);

/// An empty batch after `tip`. `mark` makes it differ from any other.
fn batch_behind(tip: Tip, epoch: Epoch, opens: bool, mark: u64) -> FrozenBatch {
    let imprint = Imprint {
        realm: "test".into(),
        owner: OWNER,
        epoch,
        schema: Hash::ZERO,
    };
    let mut tail = Tail {
        batch: tip.number,
        hash: tip.hash,
        event: EventNumber(0),
    };
    Gathering::default().freeze(&imprint, &mut tail, Tick(mark), WallTime(0), opens)
}

fn tip_of(batch: &FrozenBatch) -> Tip {
    Tip {
        number: batch.number,
        hash: batch.hash,
    }
}
