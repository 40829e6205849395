//! Retention that is killed in any of its commits: everything that is replayed afterwards matches what was written, and
//! the next db process moves the horizon as far as it would have come.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use annals_db::{FoldError, Folder, Retention, RetentionPace, RetentionProgress, read_horizon};
use annals_ids::{OwnerId, Part, WallTime};
use annals_store::{
    MemoryStore, Store, archive,
    faults::{Call, Fault, FaultyStore},
    immediate,
    layout::retention::Horizon,
};

use crate::{
    game,
    generated::{Play, founded},
    realm::{Realm, SHARD},
    restoring::{check_cut, everything, leaves, live, unlogged},
};

/// Entities with large cell parts: together more than one transaction writes.
const LADEN: usize = 20;

/// Moves of the horizon: each area gets floors, and the first one gets new ones.
const MOVES: usize = 3;

/// Bytes of rows copied in one transaction.
const COPIED_BYTES: usize = 4 << 20;

/// A realm with large cells, all of it folded and sealed.
fn laden() -> Realm {
    let mut realm = founded(1);
    let owners: Vec<OwnerId> = realm.owners.keys().copied().collect();
    let of = |realm: &mut Realm, part| {
        let is_of = |owner: &&OwnerId| realm.scribe(**owner).state.part() == Some(part);
        *owners.iter().find(is_of).expect("there is one")
    };
    let (base, cell) = (of(&mut realm, Part::Base), of(&mut realm, Part::Cell));
    let mut play = Play::default();
    for _ in 0..LADEN {
        play.create_laden(&mut realm, (base, cell));
    }
    live(realm, play)
}

/// Another store with the same rows.
pub(crate) fn copy(store: &Store) -> Store {
    let copy = MemoryStore::new().store();
    let mut rows = everything(store).into_iter().peekable();
    while rows.peek().is_some() {
        let writing = copy.begin();
        let mut bytes = 0;
        while let Some((key, value)) = rows.next_if(|_| bytes < COPIED_BYTES) {
            bytes += key.len() + value.len();
            writing.set(&key, &value).expect("a small transaction");
        }
        immediate(writing.commit()).expect("nothing fails");
    }
    copy
}

/// Outcome of the commit at which the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Lost,
    Applied,
}

/// A store whose user dies in the commit after `left` more.
pub(crate) fn dying(store: &Store, left: Arc<AtomicU64>, last: Last) -> Store {
    let mut is_dead = false;
    FaultyStore::wrap(store, move |call| {
        if is_dead {
            return Fault::Unavailable;
        }
        if call != Call::Commit {
            return Fault::None;
        }
        let before = left.load(Ordering::Relaxed);
        left.store(before.saturating_sub(1), Ordering::Relaxed);
        is_dead = before == 0;
        match (is_dead, last) {
            (false, _) => Fault::None,
            (true, Last::Lost) => Fault::RequestLost,
            (true, Last::Applied) => Fault::AnswerLost,
        }
    })
}

/// Times before which increasing parts of the sealed archive were closed.
fn moments(store: &Store) -> Vec<WallTime> {
    let sealed = immediate(archive::read_segments(store, SHARD)).expect("the store answers");
    let within = (1..MOVES).map(|part| sealed[sealed.len() * part / MOVES].latest);
    within.chain([WallTime(u64::MAX)]).collect()
}

/// Deletes events that were closed before each of these times. Returns how often the horizon moves.
fn deleted(retention: &mut Retention, moments: &[WallTime]) -> Result<usize, FoldError> {
    let mut moved = 0;
    for moment in moments {
        loop {
            match immediate(retention.turn(*moment))? {
                RetentionProgress::Idle => break,
                RetentionProgress::Moved(_) => moved += 1,
                RetentionProgress::Folding | RetentionProgress::Thinned { .. } => {}
            }
        }
    }
    Ok(moved)
}

/// Begins another db process on a store, which has `commits` commits left afterwards.
fn begin(store: &Store, commits: u64, last: Last) -> (Retention, Arc<AtomicU64>) {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let dying = dying(store, Arc::clone(&left), last);
    let folder = immediate(Folder::begin(dying, SHARD, game::schema())).expect("no fault is injected yet");
    left.store(commits, Ordering::Relaxed);
    (folder.retention(RetentionPace::Eager), left)
}

/// Compares everything that is read or replayed from a store with what the realm has written.
fn check(realm: &mut Realm, store: &Store) {
    let former = std::mem::replace(&mut realm.store, store.clone());
    let archive = realm.check();
    realm.check_database(&archive);
    let leaves = leaves(realm);
    let rows = unlogged(realm, &leaves);
    check_cut(realm, &rows, &leaves);
    realm.store = former;
}

fn horizon(store: &Store) -> Horizon {
    let horizon = immediate(read_horizon(store, SHARD)).expect("the store answers");
    horizon.expect("it has moved")
}

#[test]
fn a_kill_during_retention_leaves_the_old_or_the_new_state() {
    let mut realm = laden();
    let moments = moments(&realm.store);
    let whole = copy(&realm.store);
    let (mut retention, left) = begin(&whole, u64::MAX, Last::Lost);
    assert_eq!(deleted(&mut retention, &moments).expect("nothing fails"), MOVES);
    let commits = u64::MAX - left.load(Ordering::Relaxed);
    let sealed = immediate(archive::read_segments(&whole, SHARD)).expect("the store answers");
    let writes = commits as usize - MOVES - sealed.len();
    assert!(
        writes >= 2 * MOVES,
        "{writes} transactions for the floors of {MOVES} horizons"
    );
    for last in [Last::Lost, Last::Applied] {
        for at in 0..commits {
            let store = copy(&realm.store);
            let ended = deleted(&mut begin(&store, at, last).0, &moments);
            assert!(ended.is_err(), "{at}, {last:?}: it is killed");
            check(&mut realm, &store);
            // The next one begins where this one was.
            let (mut next, _) = begin(&store, u64::MAX, last);
            deleted(&mut next, &moments).expect("faults have ended");
            assert_eq!(horizon(&store), horizon(&whole), "{at}, {last:?}");
            check(&mut realm, &store);
        }
    }
}
