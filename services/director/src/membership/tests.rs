use super::*;
use crate::upgrade::{Abandoned, CHANGE_TIMEOUT, Upgrade, UpgradeStep};

mod moves;

fn beat(process: u64, kind: OwnerKind) -> Beat {
    let process = ProcessId(process);
    Beat {
        process,
        definitions: Definitions::Present,
        holds: Some(kind),
        address: None,
        owners: BTreeMap::new(),
        draining: false,
        connection: format!("server:{}", process.0),
        follows: BTreeSet::new(),
        behind: BTreeSet::new(),
        released: BTreeSet::new(),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_new_process_founds_an_owner_and_a_dead_ones_owner_goes_to_the_least_loaded() {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    membership.receive(seconds(1), beat(1, OwnerKind::Cell));
    membership.receive(seconds(1), beat(2, OwnerKind::Cell));
    membership.receive(seconds(1), beat(3, OwnerKind::Base));
    let founds = membership.decide(seconds(1));
    assert_eq!(founds.len(), 3, "{founds:?}");
    for (owner, process) in [(10, 1), (11, 2), (12, 2)] {
        membership.granted(OwnerId(owner), OwnerKind::Cell, ProcessId(process));
    }
    membership.granted(OwnerId(20), OwnerKind::Base, ProcessId(3));
    assert_eq!(membership.decide(seconds(2)), []);

    for process in [1, 3] {
        membership.receive(
            seconds(5),
            beat(process, if process == 3 { OwnerKind::Base } else { OwnerKind::Cell }),
        );
    }
    let grant = |owner| Decision::Grant {
        owner: OwnerId(owner),
        process: ProcessId(1),
    };
    assert_eq!(
        membership.decide(seconds(5)),
        [grant(11), grant(12)],
        "process 2 was silent for four seconds"
    );
}

/// A process with one owner, which has this many entities.
fn holding(process: u64, owner: u32, entities: u64) -> Beat {
    Beat {
        owners: BTreeMap::from([(OwnerId(owner), entities)]),
        ..beat(process, OwnerKind::Cell)
    }
}

/// Processes 1 and 2 with an owner each, and process 3 that has just joined and been granted an empty one.
fn joined(entities: [u64; 3]) -> Membership {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    for ((process, owner), entities) in [(1, 11), (2, 12), (3, 13)].into_iter().zip(entities) {
        membership.granted(OwnerId(owner), OwnerKind::Cell, ProcessId(process));
        membership.receive(seconds(1), holding(process, owner, entities));
    }
    membership
}

fn granted_to(process: u64, owners: &[u32]) -> Vec<Decision> {
    let grant = |owner: &u32| Decision::Grant {
        owner: OwnerId(*owner),
        process: ProcessId(process),
    };
    owners.iter().map(grant).collect()
}

#[test]
fn the_owner_of_a_process_that_leaves_or_dies_goes_to_the_one_that_has_just_joined() {
    let mut membership = joined([40, 50, 0]);
    membership.leave(ProcessId(2));
    assert_eq!(membership.decide(seconds(1)), granted_to(3, &[12]), "it left");

    let mut membership = joined([40, 50, 0]);
    membership.receive(seconds(4), holding(1, 11, 40));
    membership.receive(seconds(4), holding(3, 13, 0));
    assert_eq!(
        membership.decide(seconds(4)),
        granted_to(3, &[12]),
        "it was silent for 3 s"
    );
}

#[test]
fn the_owners_of_a_process_are_shared_out_by_what_each_brings() {
    let mut membership = joined([40, 50, 0]);
    membership.granted(OwnerId(14), OwnerKind::Cell, ProcessId(2));
    membership.granted(OwnerId(15), OwnerKind::Cell, ProcessId(2));
    let owners = BTreeMap::from([(OwnerId(12), 50), (OwnerId(14), 5), (OwnerId(15), 20)]);
    membership.receive(
        seconds(1),
        Beat {
            owners,
            ..beat(2, OwnerKind::Cell)
        },
    );
    membership.leave(ProcessId(2));
    let decisions = [granted_to(3, &[12]), granted_to(1, &[14, 15])].concat();
    assert_eq!(membership.decide(seconds(1)), decisions);
}

#[test]
fn a_process_whose_connection_is_closed_counts_as_dead_unless_it_reconnects() {
    let millis = Duration::from_millis;
    let closed_at = millis(1_050);
    let mut membership = joined([40, 50, 0]);
    membership.disconnected(closed_at, "server:2".to_owned());
    assert_eq!(membership.deadline(), Some(closed_at + RECONNECTION));
    assert_eq!(membership.decide(closed_at + millis(99)), []);
    assert_eq!(membership.decide(closed_at + RECONNECTION), granted_to(3, &[12]));
    assert_eq!(membership.deadline(), None);
    assert!(membership.closed().contains("server:2"));
    // A heartbeat that was under way does not bring it back.
    membership.receive(closed_at + RECONNECTION, holding(2, 12, 50));
    membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(3));
    assert_eq!(membership.live_owners(OwnerKind::Cell).count(), 3);
    membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(2));
    assert_eq!(membership.live_owners(OwnerKind::Cell).count(), 2, "it is dead");

    let mut membership = joined([40, 50, 0]);
    membership.disconnected(closed_at, "server:2".to_owned());
    // Sent before it was closed.
    membership.receive(closed_at + millis(10), holding(2, 12, 50));
    assert_eq!(membership.deadline(), Some(closed_at + RECONNECTION));
    let over_another = Beat {
        connection: "server:9".to_owned(),
        ..holding(2, 12, 50)
    };
    membership.receive(closed_at + millis(20), over_another);
    assert_eq!(membership.deadline(), None);
    assert_eq!(membership.decide(closed_at + RECONNECTION), []);
}

#[test]
fn among_equals_the_newest_takes_over() {
    let mut membership = joined([0, 0, 0]);
    membership.leave(ProcessId(2));
    assert_eq!(membership.decide(seconds(1)), granted_to(3, &[12]));
}

#[test]
fn log_ins_are_spread_before_the_next_beat() {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    for (process, owner, entities) in [(1, OwnerId(11), 3), (2, OwnerId(12), 1)] {
        membership.granted(owner, OwnerKind::Base, ProcessId(process));
        let owners = BTreeMap::from([(owner, entities)]);
        membership.receive(
            seconds(1),
            Beat {
                owners,
                ..beat(process, OwnerKind::Base)
            },
        );
    }
    let placed: Vec<_> = (0..4).filter_map(|_| membership.place(OwnerKind::Base)).collect();
    assert_eq!(placed, [12, 12, 11, 12].map(OwnerId));
}

#[test]
fn a_new_director_does_not_presume_processes_without_a_report_dead() {
    let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
    let mut membership = Membership::new(seconds(100), owners);
    membership.receive(seconds(101), beat(2, OwnerKind::Cell));
    assert_eq!(membership.decide(seconds(101)), [], "process 1 may be alive");
    membership.receive(seconds(103), beat(2, OwnerKind::Cell));
    let grant = Decision::Grant {
        owner: OwnerId(10),
        process: ProcessId(2),
    };
    assert_eq!(membership.decide(seconds(103)), [grant]);
}

#[test]
fn a_new_director_does_not_wait_for_a_holder_whose_connection_is_closed() {
    let owners = [(10, 1), (11, 3)].map(|(owner, process)| (OwnerId(owner), (OwnerKind::Cell, ProcessId(process))));
    let connections = [(10, "server:1"), (11, "server:3")].map(|(owner, name)| (OwnerId(owner), name.to_owned()));
    let mut closed = ClosedConnections::default();
    closed.add("server:1".to_owned());
    let mut membership = Membership::new(seconds(100), owners.into()).knowing(closed, connections.into());
    assert_eq!(
        membership.decide(seconds(100)),
        [],
        "there is no process to take it over"
    );
    membership.receive(seconds(101), beat(2, OwnerKind::Cell));
    assert_eq!(
        membership.decide(seconds(101)),
        granted_to(2, &[10]),
        "process 3 may be alive"
    );
    membership.granted(OwnerId(10), OwnerKind::Cell, ProcessId(2));
    membership.disconnected(seconds(101), "server:3".to_owned());
    assert_eq!(membership.decide(seconds(101)), granted_to(2, &[11]));
}

#[test]
fn the_ledger_is_founded_once_and_passes_from_one_holder_to_the_next() {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    for process in [1, 2] {
        membership.receive(seconds(1), beat(process, OwnerKind::Ledger));
    }
    let (kind, process) = (OwnerKind::Ledger, ProcessId(1));
    assert_eq!(membership.decide(seconds(1)), [Decision::CreateOwner { kind, process }]);
    membership.granted(OwnerId(7), kind, process);
    assert_eq!(membership.decide(seconds(2)), [], "process 2 gets none of its own");
    membership.receive(seconds(5), beat(2, kind));
    let grant = Decision::Grant {
        owner: OwnerId(7),
        process: ProcessId(2),
    };
    assert_eq!(membership.decide(seconds(5)), [grant]);
}

#[test]
fn a_late_process_of_a_new_realm_founds_an_owner_at_once() {
    let mut membership = Membership::new(seconds(100), BTreeMap::new());
    membership.granted(OwnerId(10), OwnerKind::Cell, ProcessId(1));
    membership.receive(seconds(101), beat(1, OwnerKind::Cell));
    membership.receive(seconds(101), beat(2, OwnerKind::Cell));
    let found = Decision::CreateOwner {
        kind: OwnerKind::Cell,
        process: ProcessId(2),
    };
    assert_eq!(membership.decide(seconds(101)), [found]);
}

#[test]
fn the_first_owner_stays_first_across_failures() {
    let cell = (OwnerId(1), (OwnerKind::Cell, ProcessId(1)));
    let base = (OwnerId(2), (OwnerKind::Base, ProcessId(2)));
    let mut membership = Membership::new(seconds(0), BTreeMap::from([cell]));
    assert_eq!(membership.first_owner(OwnerKind::Base), None);
    membership.granted(base.0, OwnerKind::Base, ProcessId(2));
    membership.granted(OwnerId(3), OwnerKind::Base, ProcessId(3));
    membership.leave(ProcessId(2));
    membership.receive(seconds(9), beat(3, OwnerKind::Base));
    membership.decide(seconds(9));
    assert_eq!(membership.first_owner(OwnerKind::Base), Some(base.0));
    let next_director = Membership::new(seconds(20), BTreeMap::from([cell, base]));
    assert_eq!(next_director.first_owner(OwnerKind::Base), Some(base.0));
}

#[test]
fn a_map_names_all_owners_and_keeps_those_that_it_has() {
    let kinds = [
        OwnerKind::Cell,
        OwnerKind::Base,
        OwnerKind::Ledger,
        OwnerKind::Base,
        OwnerKind::Cell,
    ];
    let owners = (1..).zip(kinds).map(|(id, kind)| (OwnerId(id), (kind, ProcessId(7))));
    let membership = Membership::new(seconds(0), owners.collect());
    let mut map = SpaceMap::default();
    assert!(membership.name_owners(&mut map));
    assert_eq!(map.bootstrap, Some(OwnerId(2)));
    assert_eq!(map.bases, [OwnerId(2), OwnerId(4)].into());
    assert_eq!(map.cells, [OwnerId(1), OwnerId(5)].into());
    let named = map.clone();
    assert!(!membership.name_owners(&mut map));
    let next = Membership::new(
        seconds(0),
        BTreeMap::from([(OwnerId(1), (OwnerKind::Cell, ProcessId(7)))]),
    );
    assert!(!next.name_owners(&mut map), "it does not know of the others yet");
    assert_eq!(map, named);
}

fn draining(process: u64, kind: OwnerKind) -> Beat {
    Beat {
        draining: true,
        ..beat(process, kind)
    }
}

#[test]
fn a_draining_process_gets_nothing() {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    membership.receive(seconds(1), draining(1, OwnerKind::Cell));
    assert_eq!(membership.decide(seconds(1)), []);
}

#[test]
fn the_owners_of_a_dead_process_are_not_granted_to_a_draining_one() {
    let held = |owner, process| (OwnerId(owner), (OwnerKind::Cell, ProcessId(process)));
    let owners = [held(10, 1), held(11, 1), held(12, 3), held(13, 3), held(14, 3)];
    let mut membership = Membership::reopened(BTreeMap::from(owners));
    // Process 1 does not report; process 2 holds nothing and is draining.
    membership.receive(seconds(1), draining(2, OwnerKind::Cell));
    assert_eq!(
        membership.decide(seconds(1)).len(),
        0,
        "process 2 is alone: no process takes the owners of the others"
    );
    membership.receive(seconds(1), beat(3, OwnerKind::Cell));
    let process = ProcessId(3);
    let grant = |owner| Decision::Grant {
        owner: OwnerId(owner),
        process,
    };
    assert_eq!(
        membership.decide(seconds(1)),
        [grant(10), grant(11)],
        "though it holds three"
    );
}

#[test]
fn the_owners_of_a_process_that_leaves_are_granted_at_once() {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    for process in [1, 2] {
        membership.receive(seconds(10), beat(process, OwnerKind::Base));
        membership.granted(OwnerId(process as u32), OwnerKind::Base, ProcessId(process));
    }
    assert_eq!(membership.decide(seconds(10)), []);
    membership.leave(ProcessId(1));
    let grant = Decision::Grant {
        owner: OwnerId(1),
        process: ProcessId(2),
    };
    assert_eq!(membership.decide(seconds(10)), [grant]);
}

#[test]
fn a_process_that_claims_what_another_was_granted_is_a_stray() {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    let claims = |process, owners: [u32; 2]| Beat {
        owners: owners.map(|owner| (OwnerId(owner), 0)).into(),
        address: Some(format!("address {process}")),
        ..beat(process, OwnerKind::Cell)
    };
    membership.receive(seconds(1), claims(1, [10, 11]));
    membership.receive(seconds(1), claims(2, [11, 12]));
    membership.receive(seconds(1), beat(3, OwnerKind::Base));
    membership.granted(OwnerId(10), OwnerKind::Cell, ProcessId(1));
    membership.granted(OwnerId(11), OwnerKind::Cell, ProcessId(2));
    assert_eq!(
        membership.address(OwnerId(11)),
        Some("address 2"),
        "where its holder is now"
    );
    assert_eq!(membership.address(OwnerId(12)), None);
    let cells: Vec<ProcessId> = membership.holders(OwnerKind::Cell).collect();
    assert_eq!(cells, [ProcessId(1), ProcessId(2)]);
}

#[test]
fn a_process_is_alive_until_the_silence_limit() {
    let tick = Duration::from_nanos(1);
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    membership.receive(seconds(10), beat(1, OwnerKind::Base));
    membership.granted(OwnerId(7), OwnerKind::Base, ProcessId(1));
    let report = |membership: &mut Membership, now| {
        membership.receive(now, beat(2, OwnerKind::Base));
        membership.granted(OwnerId(8), OwnerKind::Base, ProcessId(2));
    };
    let limit = seconds(10) + SILENCE;
    report(&mut membership, limit - tick);
    assert_eq!(membership.decide(limit - tick), [], "it lives");
    assert_eq!(membership.live_owners(OwnerKind::Base).count(), 2);
    let grant = Decision::Grant {
        owner: OwnerId(7),
        process: ProcessId(2),
    };
    assert_eq!(membership.decide(limit), [grant], "it is taken for dead");
    assert_eq!(membership.live_owners(OwnerKind::Base).count(), 1);
    membership.granted(OwnerId(7), OwnerKind::Base, ProcessId(2));

    // A heartbeat at the last moment counts for the whole time again.
    report(&mut membership, limit);
    report(&mut membership, limit + SILENCE - tick);
    assert_eq!(membership.decide(limit + SILENCE + SILENCE - tick - tick), []);
    assert_eq!(membership.live_owners(OwnerKind::Base).count(), 2);
}

#[test]
fn a_new_director_waits_the_full_silence_before_a_process_counts_as_dead() {
    let tick = Duration::from_nanos(1);
    let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
    let begun = seconds(100);
    let mut membership = Membership::new(begun, owners);
    let limit = begun + SILENCE;
    membership.receive(limit - tick, beat(2, OwnerKind::Cell));
    assert_eq!(membership.decide(limit - tick), []);
    let grant = Decision::Grant {
        owner: OwnerId(10),
        process: ProcessId(2),
    };
    assert_eq!(membership.decide(limit), [grant]);
}

#[test]
fn a_pause_of_the_director_is_no_silence_of_the_processes() {
    let mut membership = joined([40, 50, 0]);
    // It waits for the store from 2 s to 9 s, and then receives from process 1 before it decides.
    let (paused, resumed) = (seconds(7), seconds(9));
    membership.receive(resumed, holding(1, 11, 40));
    membership.skip(resumed, paused);
    assert_eq!(membership.decide(resumed), []);
    // Process 2 was silent for a second before the pause.
    membership.receive(seconds(10), holding(3, 13, 0));
    let tick = Duration::from_nanos(1);
    assert_eq!(membership.decide(seconds(11) - tick), []);
    assert_eq!(membership.decide(seconds(11)), granted_to(3, &[12]));
}

#[test]
fn a_pause_extends_the_time_to_reconnect() {
    let mut membership = joined([40, 50, 0]);
    let (closed_at, paused) = (seconds(1), seconds(7));
    membership.disconnected(closed_at, "server:2".to_owned());
    let resumed = closed_at + paused;
    membership.skip(resumed, paused);
    let deadline = resumed + RECONNECTION;
    assert_eq!(membership.deadline(), Some(deadline));
    let over_another = Beat {
        connection: "server:9".to_owned(),
        ..holding(2, 12, 50)
    };
    membership.receive(resumed, over_another);
    assert_eq!(membership.decide(deadline), []);
}

#[test]
fn a_new_director_listens_for_the_full_time_without_its_pauses() {
    let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
    let mut membership = Membership::new(seconds(100), owners);
    membership.skip(seconds(105), seconds(4));
    membership.receive(seconds(105), beat(2, OwnerKind::Cell));
    assert_eq!(membership.decide(seconds(105)), [], "it has listened for a second");
    membership.receive(seconds(107), beat(2, OwnerKind::Cell));
    assert_eq!(membership.decide(seconds(107)), granted_to(2, &[10]));
    // It has listened for long enough now, whatever pauses follow.
    membership.skip(seconds(120), seconds(10));
    assert!(membership.has_listened(seconds(120)));
}

/// Processes 1 (base) and 2 (cell) that hold an owner each, 9 (db) that holds the ledger's, and 3 and 4 with the next
/// definitions, which are to follow.
fn staged() -> Membership {
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    let held = [
        (1, 11, OwnerKind::Base),
        (2, 12, OwnerKind::Cell),
        (9, 19, OwnerKind::Ledger),
    ];
    for (process, owner, kind) in held {
        membership.granted(OwnerId(owner), kind, ProcessId(process));
        membership.receive(seconds(1), holder(process, owner, kind));
    }
    membership.stage(true);
    membership
}

fn holder(process: u64, owner: u32, kind: OwnerKind) -> Beat {
    Beat {
        owners: BTreeMap::from([(OwnerId(owner), 5)]),
        ..beat(process, kind)
    }
}

fn next(process: u64, kind: OwnerKind, follows: &[u32]) -> Beat {
    Beat {
        definitions: Definitions::Next,
        address: Some(format!("address {process}")),
        follows: follows.iter().copied().map(OwnerId).collect(),
        ..beat(process, kind)
    }
}

fn released(process: u64, owner: u32, kind: OwnerKind) -> Beat {
    Beat {
        released: BTreeSet::from([OwnerId(owner)]),
        ..beat(process, kind)
    }
}

#[test]
fn processes_of_the_next_definitions_follow_all_owners_and_are_granted_nothing() {
    let mut membership = staged();
    let unready = membership.unready(seconds(1));
    assert!(unready.contains(&Unready::NoProcess(OwnerKind::Base)), "{unready:?}");
    membership.receive(seconds(1), next(3, OwnerKind::Base, &[]));
    membership.receive(seconds(1), next(4, OwnerKind::Cell, &[]));
    assert_eq!(membership.decide(seconds(1)), [], "they get no owner of their own");
    assert_eq!(membership.to_follow(ProcessId(3)).collect::<Vec<_>>(), [OwnerId(11)]);
    assert_eq!(membership.to_follow(ProcessId(4)).collect::<Vec<_>>(), [OwnerId(12)]);
    let unready = membership.unready(seconds(1));
    let both = [11, 12].map(|owner| Unready::NotFollowed(OwnerId(owner)));
    assert_eq!(unready, both, "db changes definitions itself");
    assert!(
        !membership.has_other(OwnerKind::Base, ProcessId(1)),
        "it could take nothing over"
    );

    membership.receive(seconds(2), next(3, OwnerKind::Base, &[11]));
    membership.receive(seconds(2), next(4, OwnerKind::Cell, &[12]));
    assert_eq!(membership.unready(seconds(2)), []);
    membership.receive(
        seconds(2),
        Beat {
            draining: true,
            ..holder(1, 11, OwnerKind::Base)
        },
    );
    assert_eq!(membership.unready(seconds(2)), [Unready::Drains(ProcessId(1))]);
    // The holder dies: its owner waits for a process of the present definitions.
    membership.leave(ProcessId(1));
    assert_eq!(membership.decide(seconds(2)), []);
    assert_eq!(membership.unready(seconds(2)), [Unready::NotHeld(OwnerId(11))]);
    membership.receive(seconds(2), beat(5, OwnerKind::Base));
    assert_eq!(membership.decide(seconds(2)), granted_to(5, &[11]));
    membership.stage(false);
    assert_eq!(membership.to_follow(ProcessId(3)).count(), 0, "taken back");
}

#[test]
fn a_change_is_made_once_all_owners_are_released_and_their_followers_are_granted_them() {
    let mut membership = staged();
    membership.receive(seconds(1), next(3, OwnerKind::Base, &[11]));
    membership.receive(seconds(1), next(4, OwnerKind::Cell, &[12]));
    let to = annals_ids::Hash([7; 32]);
    let mut upgrade = Upgrade::prepared(to);
    assert_eq!(upgrade.finish(seconds(1), &membership), Ok(()));
    assert!(upgrade.is_changing());
    let release: Vec<_> = membership.to_release(ProcessId(1)).collect();
    assert_eq!(release, [(OwnerId(11), "address 3")]);
    let release: Vec<_> = membership.to_release(ProcessId(9)).collect();
    assert_eq!(release, [(OwnerId(19), "")], "nobody follows the ledger");
    assert_eq!(upgrade.advance(seconds(1), &membership), None);
    membership.receive(seconds(2), released(1, 11, OwnerKind::Base));
    membership.receive(seconds(2), released(9, 19, OwnerKind::Ledger));
    assert_eq!(
        upgrade.advance(seconds(2), &membership),
        None,
        "the cell is not released"
    );
    membership.receive(seconds(2), released(2, 12, OwnerKind::Cell));
    assert_eq!(upgrade.advance(seconds(2), &membership), Some(UpgradeStep::Change));
    assert_eq!(upgrade.advance(seconds(2), &membership), None, "once");

    membership.definitions_changed();
    let grant = |owner, process| Decision::Grant {
        owner: OwnerId(owner),
        process: ProcessId(process),
    };
    assert_eq!(membership.decide(seconds(2)), [grant(11, 3), grant(12, 4)]);
    for process in [1, 2, 9] {
        assert!(membership.is_former(ProcessId(process)));
    }
    membership.granted(OwnerId(11), OwnerKind::Base, ProcessId(3));
    membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(4));
    // db registers anew.
    let db = beat(10, OwnerKind::Ledger);
    membership.receive(seconds(2), db);
    assert_eq!(membership.decide(seconds(2)), [grant(19, 10)]);
}

#[test]
fn an_abandoned_change_gives_the_owners_back_to_their_holders() {
    let ready = || {
        let mut membership = staged();
        membership.receive(seconds(1), next(3, OwnerKind::Base, &[11]));
        membership.receive(seconds(1), next(4, OwnerKind::Cell, &[12]));
        let mut upgrade = Upgrade::prepared(annals_ids::Hash([7; 32]));
        assert_eq!(upgrade.finish(seconds(1), &membership), Ok(()));
        membership.receive(seconds(1), released(1, 11, OwnerKind::Base));
        (membership, upgrade)
    };
    let (mut membership, mut upgrade) = ready();
    membership.leave(ProcessId(2));
    let (owner, process) = (OwnerId(12), ProcessId(2));
    let died = Abandoned::Died { owner, process };
    assert_eq!(
        upgrade.advance(seconds(1), &membership),
        Some(UpgradeStep::Abandon(died.clone()))
    );
    assert_eq!(upgrade.abandoned(), Some(&died));
    assert!(!upgrade.is_changing());
    membership.change_abandoned();
    assert_eq!(membership.decide(seconds(1)), [], "process 1 has not reported since");
    assert_eq!(
        membership.to_follow(ProcessId(3)).count(),
        0,
        "clients that wait there go back"
    );
    membership.receive(seconds(1), released(1, 11, OwnerKind::Base));
    assert_eq!(membership.decide(seconds(1)), granted_to(1, &[11]));
    membership.granted(OwnerId(11), OwnerKind::Base, ProcessId(1));
    assert_eq!(
        membership.decide(seconds(1)),
        [],
        "once, although no heartbeat came since"
    );

    let (mut membership, mut upgrade) = ready();
    membership.receive(seconds(1), released(2, 12, OwnerKind::Cell));
    membership.receive(seconds(1), released(9, 19, OwnerKind::Ledger));
    membership.leave(ProcessId(3));
    let alone = Abandoned::NotFollowed(OwnerId(11));
    assert_eq!(
        upgrade.advance(seconds(1), &membership),
        Some(UpgradeStep::Abandon(alone)),
        "nothing could take the base over after the change"
    );

    let (membership, mut upgrade) = ready();
    assert_eq!(upgrade.advance(seconds(1) + CHANGE_TIMEOUT / 2, &membership), None);
    let late = Abandoned::NotReleased { owner, process };
    let at = seconds(1) + CHANGE_TIMEOUT;
    assert_eq!(upgrade.advance(at, &membership), Some(UpgradeStep::Abandon(late)));

    let (mut membership, mut upgrade) = ready();
    membership.receive(seconds(1), released(2, 12, OwnerKind::Cell));
    membership.receive(seconds(1), released(9, 19, OwnerKind::Ledger));
    assert_eq!(upgrade.advance(seconds(2), &membership), Some(UpgradeStep::Change));
    let at = seconds(2) + CHANGE_TIMEOUT;
    assert_eq!(
        upgrade.advance(at, &membership),
        Some(UpgradeStep::Abandon(Abandoned::NoAnswer))
    );
}

#[test]
fn two_processes_with_one_number_are_distinguished_from_a_reconnection() {
    let over = |connection: &str, entities| Beat {
        connection: connection.to_owned(),
        ..holding(1, 11, entities)
    };
    let mut membership = Membership::new(seconds(0), BTreeMap::new());
    membership.granted(OwnerId(11), OwnerKind::Cell, ProcessId(1));
    // A process reconnects twice; a beat that was sent before arrives late.
    for connection in ["a", "b", "a", "c", "c"] {
        assert_eq!(membership.check(&over(connection, 5)), Ok(()), "{connection}");
        membership.receive(seconds(1), over(connection, 5));
    }
    // Its copy reports over a connection of its own.
    for (connection, is_accepted) in [("d", true), ("c", true), ("d", false), ("c", true), ("d", false)] {
        let beat = over(connection, if connection == "d" { 9 } else { 5 });
        let checked = membership.check(&beat);
        assert_eq!(checked.is_ok(), is_accepted, "{connection}");
        membership.receive(seconds(2), beat);
        if let Err(duplicate) = checked {
            let text = duplicate.to_string();
            assert!(text.contains("two processes report as process 1"), "{text}");
            assert!(text.contains("the process on connection d must end"), "{text}");
            assert_eq!(membership.entities_of(OwnerId(11)), 5, "its report is not applied");
        }
    }
    assert_eq!(membership.decide(seconds(2)), [], "the other one keeps its owner");
}
