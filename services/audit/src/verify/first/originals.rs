//! Reconstructs the original leaves from what the archive still contains, proven by a kept root.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::Hash;
use annals_proof::{Frontier, TreeHead, merkle::node_hash};

use super::{logs::Logs, reading::Reading};

/// Maximum leaves in doubt: leaves whose original hash is uncertain. If more were changed, trying cannot distinguish
/// them.
const MOST_DOUBTFUL: usize = 12;

/// Maximum combinations that are tried.
const MOST_TRIES: usize = 1_024;

/// Maximum places at which the removal of a batch is tried.
const MOST_PLACES: usize = 256;

/// Stands for an unknown hash.
const UNKNOWN: Hash = Hash([0; 32]);

/// The hashes of the first leaves when `head` was signed, if they can be reconstructed: proven by the root.
pub(super) fn restore(reading: &Reading, head: TreeHead) -> Option<Vec<Hash>> {
    let size = usize::try_from(head.size).ok()?;
    // Every unreadable leaf is in doubt, and there may be no more than the maximum.
    if reading.seen.len() + MOST_DOUBTFUL < size {
        return None;
    }
    let own: Vec<Hash> = (0..head.size)
        .map(|leaf| reading.seen.get(&leaf).map_or(UNKNOWN, |seen| seen.hash))
        .collect();
    let tree = Levels::of(own);
    let doubts = doubts(reading, head.size);
    if let Some(found) = try_all(&tree, &doubts, head) {
        return Some(found);
    }
    let own = &tree.levels[0];
    if let Some(found) = shifted(reading, own, head) {
        return Some(found);
    }
    // Two neighbouring leaves were swapped, each unchanged.
    if let Some(next) = reading.seen.get(&head.size)
        && tree.root_with(&[(size - 1, next.hash)]) == head.root
    {
        // The other of the two lies beyond the root's size.
        return Some([&own[..size - 1], &[next.hash]].concat());
    }
    let swapped = (1..size).find(|&right| {
        let pair = [(right - 1, own[right]), (right, own[right - 1])];
        own[right] != own[right - 1] && tree.root_with(&pair) == head.root
    });
    swapped.map(|right| {
        let mut own = own.clone();
        own.swap(right - 1, right);
        own
    })
}

/// A batch was removed or inserted, and later ones have shifted.
fn shifted(reading: &Reading, own: &[Hash], head: TreeHead) -> Option<Vec<Hash>> {
    let logs = Logs::of(reading);
    let leads = |leaves: &mut dyn Iterator<Item = &Hash>| {
        let mut tree = Frontier::new();
        leaves.for_each(|leaf| tree.push(*leaf));
        (tree.size(), tree.root()) == (head.size, head.root)
    };
    for hash in lost(reading) {
        let Some(at) = logs.batch_of(hash) else { continue };
        let (from, until) = logs.gap(at);
        let until = usize::try_from(until).ok()?.min(own.len() - 1);
        for place in (usize::try_from(from).ok()?..=until).take(MOST_PLACES) {
            let (before, behind) = own[..own.len() - 1].split_at(place);
            if leads(&mut before.iter().chain([&hash]).chain(behind)) {
                return Some([before, &[hash], behind].concat());
            }
        }
    }
    let next = reading.seen.get(&head.size).map(|seen| seen.hash);
    let strange = reading.seen.iter().filter(|(_, seen)| !logs.is_named(seen.hash));
    for (leaf, _) in strange.take(MOST_DOUBTFUL) {
        let Some(place) = usize::try_from(*leaf).ok().filter(|place| *place < own.len()) else {
            continue;
        };
        let all = || own[..place].iter().chain(&own[place + 1..]).chain(&next);
        if leads(&mut all()) {
            return Some(all().copied().collect());
        }
    }
    None
}

/// Hashes that batches refer to, and that no leaf has.
fn lost(reading: &Reading) -> Vec<Hash> {
    let there: BTreeSet<Hash> = reading.seen.values().map(|seen| seen.hash).collect();
    let named = reading.named();
    let lost = named.difference(&there).copied().filter(|hash| *hash != UNKNOWN);
    lost.take(MOST_DOUBTFUL).collect()
}

/// The leaves in doubt, with their candidates.
fn doubts(reading: &Reading, size: u64) -> BTreeMap<u64, Vec<Hash>> {
    let named = reading.named();
    let lost = lost(reading);
    let mut doubts = BTreeMap::new();
    for leaf in 0..size {
        let seen = reading.seen.get(&leaf);
        let tile = reading.tiles.get(&leaf);
        // A batch named by another is original, unless that other one is not; its tile may then reveal that.
        if tile.is_none() && seen.is_some_and(|seen| named.contains(&seen.hash)) {
            continue;
        }
        let mut may: Vec<Hash> = tile.into_iter().copied().collect();
        may.extend(seen.map(|seen| seen.hash));
        if seen.is_none_or(|seen| !named.contains(&seen.hash)) {
            may.extend(&lost);
        }
        if may.len() > 1 || seen.is_none() {
            doubts.insert(leaf, may);
        }
        if doubts.len() > MOST_DOUBTFUL * 256 {
            break;
        }
    }
    doubts
}

fn try_all(tree: &Levels, doubts: &BTreeMap<u64, Vec<Hash>>, head: TreeHead) -> Option<Vec<Hash>> {
    let leaves: Vec<usize> = doubts
        .keys()
        .map(|leaf| usize::try_from(*leaf))
        .collect::<Result<_, _>>()
        .ok()?;
    let choices: Vec<&Vec<Hash>> = doubts.values().collect();
    let tries = choices
        .iter()
        .try_fold(1_usize, |tries, may| tries.checked_mul(may.len()));
    // With too many doubts only the first candidates are tried: those of the tiles.
    let tries = tries.filter(|tries| *tries <= MOST_TRIES).unwrap_or(1);
    for mut number in 0..tries {
        let mut changes = Vec::with_capacity(leaves.len());
        for (leaf, may) in leaves.iter().zip(&choices) {
            changes.push((*leaf, *may.get(number % may.len().max(1))?));
            number /= may.len();
        }
        if tree.root_with(&changes) == head.root {
            let mut found = tree.levels[0].clone();
            changes.into_iter().for_each(|(leaf, hash)| found[leaf] = hash);
            return Some(found);
        }
    }
    None
}

/// A tree with all of its complete subtrees, so that the root with some leaves replaced takes few hashes.
pub(super) struct Levels {
    levels: Vec<Vec<Hash>>,
}

impl Levels {
    pub(super) fn of(leaves: Vec<Hash>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|below| below.len() > 1) {
            let (pairs, _) = below.as_chunks::<2>();
            levels.push(pairs.iter().map(|[left, right]| node_hash(*left, *right)).collect());
        }
        Self { levels }
    }

    /// The root of the tree with these leaves replaced.
    fn root_with(&self, changes: &[(usize, Hash)]) -> Hash {
        let mut others: BTreeMap<usize, Hash> = changes.iter().copied().collect();
        let mut peaks = Vec::new();
        for level in &self.levels {
            let at = |place: usize| others.get(&place).copied().unwrap_or_else(|| level[place]);
            // A node without a right neighbour is a peak.
            if level.len() % 2 == 1 {
                peaks.push(at(level.len() - 1));
            }
            let parents: BTreeSet<usize> = others.keys().map(|place| place / 2).collect();
            let parents = parents.into_iter().filter(|parent| parent * 2 + 1 < level.len());
            others = parents
                .map(|parent| (parent, node_hash(at(parent * 2), at(parent * 2 + 1))))
                .collect();
        }
        let mut peaks = peaks.into_iter();
        let last = peaks.next().unwrap_or_else(|| Frontier::new().root());
        peaks.fold(last, |right, left| node_hash(left, right))
    }
}
