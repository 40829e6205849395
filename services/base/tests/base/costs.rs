//! The costs counted of members match what the client of a base part was sent of them.

use annals_def::{Value, split_mix};
use annals_ids::{MemberId, Part};
use annals_node::{CostKind, Member};

use crate::{game::ACCOUNT, host::Host, player::log_in};

const KEEP: MemberId = MemberId(8);

#[test]
fn traffic_counters_equal_the_sent_bytes() {
    for seed in 0..10 {
        let mut roll = split_mix(seed);
        let mut host = Host::new();
        let mut player = log_in(&mut host, 5, 1);
        let mut said = 1;
        for round in 0..40 {
            match roll() % 4 {
                // It is sent what it has missed, or everything.
                0 => {
                    player.connect(&mut host, 2 + round);
                    player.listen(&mut host);
                    player.begin_view(&mut host);
                }
                _ => {
                    let text = "x".repeat((roll() % 200) as usize);
                    player.call(&mut host, Part::Base, "say", &[Value::Unicode(text)]);
                    said += 1;
                }
            }
            host.pass(200);
            host.settle();
            player.listen(&mut host);
        }
        let entity = player.entity.unwrap().0;
        host.call(entity, KEEP);
        host.settle();
        let costs: Vec<_> = host.owner.cx().tally().take().collect();
        assert!(costs.iter().all(|(type_id, ..)| *type_id == ACCOUNT), "{costs:?}");
        let sum = |way: CostKind| costs.iter().map(|(.., cost)| cost.of(way)).sum::<u64>();
        assert_eq!(sum(CostKind::Own), player.weighed as u64, "seed {seed}: {costs:?}");
        assert_eq!((sum(CostKind::Others), sum(CostKind::Ghosts)), (0, 0));
        let of = |member: Member, way: CostKind| {
            costs
                .iter()
                .find(|cost| cost.1 == member)
                .map_or(0, |cost| cost.2.of(way))
        };
        // One welcome, then one echo of each call.
        assert_eq!(of(Member::ClientMethod(MemberId(0)), CostKind::Changes), said);
        assert_eq!(of(Member::BaseMethod(MemberId(1)), CostKind::Changes), said - 1);
        assert_eq!(
            of(Member::BaseMethod(MemberId(1)), CostKind::Part),
            0,
            "none of it was sent over the bus"
        );
        // One call of three bytes: the kind, the method, and an empty argument list.
        assert_eq!(
            (
                of(Member::BaseMethod(KEEP), CostKind::Changes),
                of(Member::BaseMethod(KEEP), CostKind::Part)
            ),
            (1, 3)
        );
    }
}
