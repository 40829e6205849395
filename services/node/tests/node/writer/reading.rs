//! Finding the chain in a log with duplicates, void batches, fills and holes.

use annals_event::FrozenBatch;
use annals_ids::{BatchNumber, Epoch, OwnerId};
use annals_node::{
    chain::{Hole, assemble},
    writer::{Chain, Opening, Tip},
};

use crate::writer::{OWNER, batch_behind, tip_of};

/// Batches 1 to 3 of epoch 1, and 4 and 5 of epoch 2.
fn log() -> Vec<FrozenBatch> {
    let mut log: Vec<FrozenBatch> = Vec::new();
    for (mark, epoch) in [1, 1, 1, 2, 2].into_iter().enumerate() {
        let tip = log.last().map_or(Tip::default(), tip_of);
        let opens = log.last().is_none_or(|last| last.epoch != Epoch(epoch));
        log.push(batch_behind(tip, Epoch(epoch), opens, mark as u64));
    }
    log
}

/// The openings of that log, both recorded.
fn openings() -> [Opening; 2] {
    let log = log();
    [opening(&log[0]), opening(&log[3])]
}

fn find(archived: Tip, openings: &[Opening], batches: &[&FrozenBatch]) -> Result<Vec<u64>, Hole> {
    let bytes = batches.iter().map(|batch| batch.bytes.clone());
    let chain = assemble(OWNER, archived, openings, bytes, 9)?;
    assert_eq!((chain.archived, chain.sequence), (archived, 9));
    assert_eq!(chain.openings, openings);
    assert_eq!(
        Some(chain.highest),
        batches.iter().map(|batch| batch.epoch).max().or(Some(Epoch(0)))
    );
    Ok(chain.beyond.iter().map(|batch| batch.number.0).collect())
}

fn opening(batch: &FrozenBatch) -> Opening {
    Opening {
        epoch: batch.epoch,
        number: batch.number,
        hash: batch.hash,
    }
}

#[test]
fn duplicates_and_order_are_irrelevant() {
    let (log, openings) = (log(), openings());
    let [a, b, c, d, e] = [&log[0], &log[1], &log[2], &log[3], &log[4]];
    assert_eq!(
        find(Tip::default(), &openings, &[a, b, c, d, e]),
        Ok(vec![1, 2, 3, 4, 5])
    );
    assert_eq!(
        find(Tip::default(), &openings, &[c, a, b, c, e, a, d]),
        Ok(vec![1, 2, 3, 4, 5])
    );
    assert_eq!(find(tip_of(c), &openings, &[a, b, c, d, e]), Ok(vec![4, 5]));
    assert_eq!(find(tip_of(e), &openings, &[a, b, c, d, e]), Ok(vec![]));
    assert_eq!(find(Tip::default(), &[], &[]), Ok(vec![]));
}

#[test]
fn voided_batches_are_skipped() {
    let (log, openings) = (log(), openings());
    let late = batch_behind(tip_of(&log[2]), Epoch(1), false, 50);
    let later = batch_behind(tip_of(&late), Epoch(1), false, 51);
    let all: Vec<&FrozenBatch> = [&late, &later].into_iter().chain(&log).collect();
    assert_eq!(find(Tip::default(), &openings, &all), Ok(vec![1, 2, 3, 4, 5]));
    assert_eq!(
        find(Tip::default(), &openings, &all[..5]),
        Ok(vec![1, 2, 3]),
        "the log has lost the opening itself"
    );
    assert_eq!(find(tip_of(&log[3]), &openings, &all), Ok(vec![5]));
}

#[test]
fn an_unrecorded_opening_is_ignored() {
    let (log, openings) = (log(), openings());
    assert_eq!(
        find(Tip::default(), &openings[..1], &[&log[0], &log[1], &log[2], &log[3]]),
        Ok(vec![1, 2, 3])
    );
    // Not even another `Open` of the same epoch, or one that would void batches if it counted.
    let given_up = batch_behind(tip_of(&log[1]), Epoch(2), true, 60);
    let dead = batch_behind(tip_of(&log[0]), Epoch(7), true, 61);
    let all: Vec<&FrozenBatch> = [&given_up, &dead].into_iter().chain(&log).collect();
    assert_eq!(find(Tip::default(), &openings, &all), Ok(vec![1, 2, 3, 4, 5]));
}

#[test]
fn a_hole_is_reported() {
    let (log, openings) = (log(), openings());
    let hole = |missing, successor: &FrozenBatch| {
        Err(Hole {
            owner: OWNER,
            missing: BatchNumber(missing),
            successor: successor.number,
            hash: successor.hash,
        })
    };
    assert_eq!(
        find(Tip::default(), &openings, &[&log[0], &log[3], &log[4]]),
        hole(2, &log[3])
    );
    assert_eq!(find(tip_of(&log[0]), &openings, &[&log[4]]), hole(2, &log[4]));
    let other = Tip {
        number: BatchNumber(1),
        ..tip_of(&log[1])
    };
    assert_eq!(
        find(other, &openings, &[&log[1]]),
        hole(1, &log[1]),
        "the archive has another batch 1"
    );
    let Err(hole) = find(Tip::default(), &openings, &[&log[1]]) else {
        panic!("batch 1 is missing")
    };
    assert!(
        hole.to_string().contains("batch 1, the predecessor of batch 2"),
        "{hole}"
    );
}

#[test]
fn an_abandoned_branch_is_not_a_hole() {
    let (log, openings) = (log(), openings());
    // Opened on a batch 3 that the archive does not hold: these could not be recorded, and are still in the log.
    let other = batch_behind(tip_of(&log[1]), Epoch(2), true, 70);
    let branch = batch_behind(tip_of(&other), Epoch(3), true, 71);
    let twig = batch_behind(tip_of(&branch), Epoch(4), true, 72);
    assert_eq!(find(tip_of(&log[2]), &openings[..1], &[&branch, &twig]), Ok(vec![]));
    assert_eq!(
        find(tip_of(&log[2]), &openings, &[&twig, &branch, &log[3], &log[4]]),
        Ok(vec![4, 5])
    );
}

#[test]
fn a_hole_is_filled_by_the_batch_with_the_named_hash() {
    let (log, openings) = (log(), openings());
    let [a, b, c, d] = [&log[0], &log[1], &log[2], &log[3]];
    let wrong = &batch_behind(tip_of(a), Epoch(1), false, 80);
    let missing = |batches: &[&FrozenBatch]| find(Tip::default(), &openings, batches).map_err(|hole| hole.missing.0);
    assert_eq!(missing(&[a, wrong, c]), Err(2));
    assert_eq!(missing(&[a, wrong, c, b]), Ok(vec![1, 2, 3]));
    // Of two missing batches, only the second is identified by its successor.
    assert_eq!(missing(&[a, wrong, d]), Err(3));
    assert_eq!(missing(&[a, wrong, c, d]), Err(2));
    assert_eq!(missing(&[a, wrong, c, d, b]), Ok(vec![1, 2, 3, 4]));
    // No successor shows that it is wrong.
    assert_eq!(missing(&[a, wrong]), Ok(vec![1, 2]));
}

#[test]
fn unrelated_messages_are_on_no_chain() {
    let log = log();
    let mut stranger = log[0].bytes.clone();
    stranger[7] ^= 1;
    let batches = [b"garbage".to_vec(), stranger, log[0].bytes.clone()];
    let chain = assemble(OWNER, Tip::default(), &openings(), batches.clone(), 3).map(|chain| chain.beyond);
    assert_eq!(chain, Ok(vec![log[0].clone()]));
    let nothing = Chain {
        sequence: 3,
        ..Chain::default()
    };
    assert_eq!(assemble(OwnerId(99), Tip::default(), &[], batches, 3), Ok(nothing));
}
