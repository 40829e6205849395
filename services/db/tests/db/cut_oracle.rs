//! The largest cut of archives, found the slow way: a leaf that depends on one that is not there is removed with all after
//! it, until none does (rule T6).

use std::collections::BTreeMap;

use annals_event::{Batch, Body, Link, Subject};
use annals_ids::{Address, DatabaseId, EntityId, NoticeNumber, Shard, WallTime};
use annals_store::ArchivedBatch;

use crate::shards_restored::Archives;

/// A leaf: its shard, and its index there.
pub(crate) type Place = (Shard, usize);

/// A condition on a leaf to be in a cut.
enum Need {
    Maker((Link, u64)),
    Consumer((Link, u64)),
    /// All changes of the ledger up to the one that created this notice.
    Changes(NoticeNumber),
    /// The ends of the activations of this entity with lower check-outs.
    Ends(DatabaseId, u64),
}

/// What the leaves of archives do.
#[derive(Default)]
struct Deeds {
    made: BTreeMap<(Link, u64), Place>,
    consumed: BTreeMap<(Link, u64), Place>,
    /// By entity, its activations with their check-outs.
    begun: BTreeMap<DatabaseId, Vec<(u64, EntityId)>>,
    /// Where activations ended.
    ended: BTreeMap<EntityId, Place>,
    needs: Vec<(Place, Need)>,
}

impl Deeds {
    fn note(&mut self, place: Place, batch: &Batch) {
        for call in &batch.header.consumed {
            let link = Link {
                from: call.from,
                to: call.to,
            };
            self.consumed.insert((link, call.number.0), place);
            self.needs.push((place, Need::Maker((link, call.number.0))));
        }
        for event in &batch.events {
            let from = Address::Owner(batch.header.owner);
            let need = match (event.subject, &event.body) {
                (_, Body::Called { to, number, .. }) => {
                    self.made.insert((Link { from, to: *to }, number.0), place);
                    continue;
                }
                (Subject::Entity(entity, _), Body::Destroyed) => {
                    self.ended.insert(entity, place);
                    continue;
                }
                (_, Body::Confirmed { to, upto, .. }) => Need::Consumer((Link { from, to: *to }, upto.0)),
                (_, Body::Entered { notice, .. }) => Need::Changes(*notice),
                (Subject::Entity(entity, _), Body::BaseCreated(new)) => {
                    self.begun.entry(new.database).or_default().push((new.checkout, entity));
                    Need::Ends(new.database, new.checkout)
                }
                _ => continue,
            };
            self.needs.push((place, need));
        }
    }

    fn is_met(&self, need: &Need, changes: &[(NoticeNumber, Place)], is_in: impl Fn(&Place) -> bool) -> bool {
        match need {
            Need::Maker(call) => self.made.get(call).is_some_and(is_in),
            Need::Consumer(call) => self.consumed.get(call).is_some_and(is_in),
            Need::Ends(database, checkout) => {
                let mut former = self.begun[database].iter().filter(|(former, _)| former < checkout);
                former.all(|(_, entity)| self.ended.get(entity).is_some_and(&is_in))
            }
            Need::Changes(notice) => {
                let upto = changes.iter().position(|(last, _)| last >= notice);
                upto.is_some_and(|upto| changes[..=upto].iter().all(|(_, place)| is_in(place)))
            }
        }
    }
}

/// The largest cut without leaves that were closed after `until`. The changes of the ledger are given with their last
/// notices.
pub(crate) fn largest(
    archives: &Archives,
    changes: &[(NoticeNumber, Place)],
    until: Option<WallTime>,
) -> BTreeMap<Shard, u64> {
    let mut deeds = Deeds::default();
    let mut ends: BTreeMap<Shard, usize> = archives.iter().map(|(shard, leaves)| (*shard, leaves.len())).collect();
    for (shard, leaves) in archives {
        for (index, archived) in leaves.iter().enumerate() {
            let ArchivedBatch::Whole(bytes) = archived else {
                panic!("nothing was deleted")
            };
            let batch = Batch::read(bytes).expect("a batch");
            if until.is_some_and(|until| batch.header.wall > until) {
                let end = ends.get_mut(shard).expect("a shard");
                *end = (*end).min(index);
            }
            deeds.note((*shard, index), &batch);
        }
    }
    loop {
        let before = ends.clone();
        for ((shard, index), need) in &deeds.needs {
            if !deeds.is_met(need, changes, |(shard, index)| *index < before[shard]) {
                let end = ends.get_mut(shard).expect("a shard");
                *end = (*end).min(*index);
            }
        }
        if ends == before {
            return ends.into_iter().map(|(shard, end)| (shard, end as u64)).collect();
        }
    }
}
