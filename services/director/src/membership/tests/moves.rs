//! Planned hand-overs: which process follows the owners of one that drains.

use super::*;

/// A heartbeat of process 2, which drains and holds owner 12.
fn draining() -> Beat {
    Beat {
        draining: true,
        ..holding(2, 12, 50)
    }
}

#[test]
fn owners_of_a_draining_process_are_followed_before_they_are_granted_to_another() {
    let mut membership = joined([40, 50, 60]);
    let draining = draining();
    membership.receive(seconds(1), draining.clone());
    let follow = |membership: &Membership, process| membership.to_follow(ProcessId(process)).collect::<Vec<_>>();
    assert_eq!(follow(&membership, 1), [OwnerId(12)], "it has the fewest entities");
    assert_eq!(follow(&membership, 3), []);
    assert_eq!(membership.to_hand_over(ProcessId(2)).count(), 0, "nobody is ready");
    assert_eq!(membership.decide(seconds(1)), []);

    let ready = Beat {
        follows: BTreeSet::from([OwnerId(12)]),
        address: Some("there".to_owned()),
        ..holding(1, 11, 70)
    };
    membership.receive(seconds(1), ready);
    let handed: Vec<_> = membership.to_hand_over(ProcessId(2)).collect();
    assert_eq!(
        handed,
        [(OwnerId(12), "there")],
        "a plan is kept, whatever the loads are by now"
    );
    assert_eq!(membership.decide(seconds(1)), [], "it still holds the owner");
    let released = Beat {
        released: BTreeSet::from([OwnerId(12)]),
        owners: BTreeMap::new(),
        ..draining.clone()
    };
    membership.receive(seconds(1), released);
    assert_eq!(membership.decide(seconds(1)), granted_to(1, &[12]));
    membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(1));
    assert_eq!(membership.decide(seconds(1)), []);
    assert_eq!(follow(&membership, 1), []);
}

#[test]
fn an_owner_goes_to_the_process_that_clients_connect_to_even_if_it_is_not_ready_when_the_holder_has_left() {
    let mut membership = joined([40, 50, 60]);
    membership.receive(seconds(1), draining());
    let ready = Beat {
        follows: BTreeSet::from([OwnerId(12)]),
        ..holding(1, 11, 70)
    };
    membership.receive(seconds(1), ready);
    assert_eq!(
        membership.to_hand_over(ProcessId(2)).count(),
        1,
        "clients receive where they go"
    );
    // The last batches are in the log, and not read yet.
    membership.receive(seconds(1), holding(1, 11, 70));
    membership.leave(ProcessId(2));
    let followed: Vec<_> = membership.to_follow(ProcessId(1)).collect();
    assert_eq!(followed, [OwnerId(12)], "it reads on until it is granted the owner");
    assert_eq!(
        membership.decide(seconds(1)),
        granted_to(1, &[12]),
        "process 3 has fewer entities"
    );
    membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(1));
    assert_eq!(membership.decide(seconds(1)), []);
    assert_eq!(membership.to_follow(ProcessId(1)).count(), 0);
}

#[test]
fn a_planned_process_that_dies_too_is_granted_nothing() {
    let mut membership = joined([40, 50, 60]);
    membership.receive(seconds(1), draining());
    assert_eq!(membership.to_follow(ProcessId(1)).count(), 1);
    membership.leave(ProcessId(2));
    membership.leave(ProcessId(1));
    assert_eq!(membership.decide(seconds(1)), granted_to(3, &[11, 12]));
}

#[test]
fn another_process_follows_when_the_follower_dies_and_none_when_there_is_none() {
    let mut membership = joined([40, 50, 60]);
    let draining = draining();
    membership.receive(seconds(1), draining.clone());
    membership.disconnected(seconds(1), "server:1".to_owned());
    assert_eq!(membership.decide(seconds(2)), granted_to(3, &[11]));
    membership.granted(OwnerId(11), OwnerKind::Cell, ProcessId(3));
    let follow = membership.to_follow(ProcessId(3)).collect::<Vec<_>>();
    assert_eq!(follow, [OwnerId(12)]);
    assert!(!membership.is_alone(ProcessId(2)));
    membership.disconnected(seconds(2), "server:3".to_owned());
    membership.receive(seconds(3), draining);
    assert_eq!(membership.decide(seconds(3)), [], "a draining process takes nothing");
    assert!(membership.is_alone(ProcessId(2)));
    assert!(!membership.has_other(OwnerKind::Cell, ProcessId(2)));
}

#[test]
fn a_follower_that_drains_takes_what_it_is_ready_for_and_hands_it_over_in_turn() {
    let mut membership = joined([40, 50, 60]);
    let first = Beat {
        draining: true,
        ..holding(2, 12, 50)
    };
    membership.receive(seconds(1), first.clone());
    let ready = Beat {
        follows: BTreeSet::from([OwnerId(12)]),
        draining: true,
        ..holding(1, 11, 40)
    };
    membership.receive(seconds(1), ready.clone());
    let handed = |membership: &Membership, process| {
        let handed = membership.to_hand_over(ProcessId(process));
        handed.map(|(owner, _)| owner).collect::<Vec<_>>()
    };
    assert_eq!(handed(&membership, 2), [OwnerId(12)], "clients may be connecting there");
    let follow = |membership: &Membership, process| membership.to_follow(ProcessId(process)).collect::<Vec<_>>();
    assert_eq!(follow(&membership, 1), [OwnerId(12)]);
    assert_eq!(follow(&membership, 3), [OwnerId(11)]);

    let released = Beat {
        released: BTreeSet::from([OwnerId(12)]),
        owners: BTreeMap::new(),
        ..first
    };
    membership.receive(seconds(1), released);
    assert_eq!(membership.decide(seconds(1)), granted_to(1, &[12]));
    membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(1));
    assert_eq!(handed(&membership, 1), [], "not to itself");
    // It has not received the grant yet.
    membership.receive(seconds(1), ready);
    assert_eq!(handed(&membership, 1), []);
    assert_eq!(follow(&membership, 3), [OwnerId(11), OwnerId(12)]);
    assert!(!membership.is_alone(ProcessId(1)));
}

#[test]
fn a_new_director_lets_processes_keep_following_until_it_has_all_reports() {
    let millis = Duration::from_millis;
    let held = |owner, process| (OwnerId(owner), (OwnerKind::Cell, ProcessId(process)));
    let mut membership = Membership::new(seconds(10), BTreeMap::from([held(11, 1), held(12, 2), held(13, 3)]));
    let ready = Beat {
        follows: BTreeSet::from([OwnerId(12)]),
        draining: true,
        ..holding(1, 11, 40)
    };
    membership.receive(seconds(10), ready.clone());
    let kept = |membership: &Membership, now| membership.to_keep_following(now, ProcessId(1)).collect::<Vec<_>>();
    assert_eq!(kept(&membership, seconds(10)), [OwnerId(12)]);
    membership.receive(seconds(10), holding(3, 13, 0));
    let draining = draining();
    membership.receive(seconds(10), draining);
    let handed: Vec<_> = membership.to_hand_over(ProcessId(2)).map(|(owner, _)| owner).collect();
    assert_eq!(
        handed,
        [OwnerId(12)],
        "the ready process is planned again, though another one has less to do"
    );
    assert_eq!(kept(&membership, seconds(10) + SILENCE - millis(1)), [OwnerId(12)]);
    membership.receive(seconds(10) + SILENCE, ready);
    assert_eq!(kept(&membership, seconds(10) + SILENCE), []);
}

/// A director that does not know yet what another one has ordered, and owners of this kind.
fn new_director(kind: OwnerKind) -> Membership {
    let held = |owner, process| (OwnerId(owner), (kind, ProcessId(process)));
    Membership::new(seconds(10), BTreeMap::from([held(11, 1), held(12, 2), held(13, 3)]))
}

/// A heartbeat of process 1, which follows owner 12 and is not at the end of its log.
fn behind() -> Beat {
    Beat {
        behind: BTreeSet::from([OwnerId(12)]),
        ..holding(1, 11, 70)
    }
}

/// The heartbeat of a base.
fn of_base(beat: Beat) -> Beat {
    Beat {
        holds: Some(OwnerKind::Base),
        ..beat
    }
}

#[test]
fn a_follower_that_is_behind_and_drains_stays_planned() {
    let mut membership = joined([40, 50, 60]);
    membership.receive(seconds(1), draining());
    let ready = Beat {
        follows: BTreeSet::from([OwnerId(12)]),
        ..holding(1, 11, 40)
    };
    membership.receive(seconds(1), ready);
    assert_eq!(membership.to_hand_over(ProcessId(2)).count(), 1);
    let behind = Beat {
        draining: true,
        ..behind()
    };
    membership.receive(seconds(1), behind);
    let followed: Vec<_> = membership.to_follow(ProcessId(1)).collect();
    assert_eq!(followed, [OwnerId(12)], "clients may be connecting there");
    assert_eq!(membership.to_hand_over(ProcessId(2)).count(), 0, "it is not ready");
}

#[test]
fn a_new_director_plans_the_process_that_follows_already_and_others_once_it_has_all_reports() {
    let to_follow = |membership: &Membership, process| {
        let followed = membership.to_follow(ProcessId(process));
        followed.collect::<Vec<_>>()
    };
    let mut membership = new_director(OwnerKind::Base);
    membership.receive(seconds(10), of_base(draining()));
    membership.receive(seconds(10), of_base(holding(3, 13, 0)));
    assert_eq!(to_follow(&membership, 3), [], "process 1 may follow the owner");
    assert!(!membership.is_alone(ProcessId(2)));
    membership.receive(seconds(11), of_base(behind()));
    assert_eq!(to_follow(&membership, 1), [OwnerId(12)]);
    let kept: Vec<_> = membership.to_keep_following(seconds(11), ProcessId(1)).collect();
    assert_eq!(kept, [OwnerId(12)]);

    let mut membership = new_director(OwnerKind::Base);
    membership.receive(seconds(12), of_base(holding(1, 11, 70)));
    membership.receive(seconds(12), of_base(holding(3, 13, 0)));
    membership.receive(seconds(10) + SILENCE, of_base(draining()));
    assert_eq!(to_follow(&membership, 3), [OwnerId(12)], "none does");

    let mut membership = new_director(OwnerKind::Cell);
    membership.receive(seconds(10), draining());
    membership.receive(seconds(10), holding(3, 13, 0));
    assert_eq!(to_follow(&membership, 3), [OwnerId(12)], "a cell has no clients");
}

#[test]
fn a_new_director_grants_a_released_owner_to_its_follower_at_once_and_to_others_once_it_has_all_reports() {
    let knowing = |kind, connection: &str| {
        let connections = BTreeMap::from([(OwnerId(12), connection.to_owned())]);
        new_director(kind).knowing(ClosedConnections::default(), connections)
    };
    let closed = |membership: &mut Membership| membership.disconnected(seconds(10), "server:2".to_owned());
    // Or it has left just now, and so its connection is closed.
    let mut left = knowing(OwnerKind::Base, "server:2");
    left.leave(ProcessId(2));
    closed(&mut left);
    // Or it has died after it reported the release.
    let mut died = knowing(OwnerKind::Base, "server:2");
    let released = Beat {
        released: BTreeSet::from([OwnerId(12)]),
        owners: BTreeMap::new(),
        ..draining()
    };
    died.receive(seconds(10), of_base(released));
    closed(&mut died);
    died.expire(seconds(10) + RECONNECTION);
    for mut membership in [knowing(OwnerKind::Base, ""), left, died] {
        let now = seconds(10) + RECONNECTION;
        membership.receive(now, of_base(holding(3, 13, 0)));
        assert_eq!(
            membership.decide(now),
            [],
            "clients may wait at a process that has not reported"
        );
        membership.receive(now, of_base(behind()));
        assert_eq!(membership.decide(now), granted_to(1, &[12]));
    }

    let mut membership = knowing(OwnerKind::Base, "");
    membership.receive(seconds(12), of_base(holding(1, 11, 70)));
    membership.receive(seconds(12), of_base(holding(3, 13, 0)));
    let all = seconds(10) + SILENCE;
    assert_eq!(membership.decide(all), granted_to(3, &[12]));

    let mut membership = knowing(OwnerKind::Cell, "");
    membership.receive(seconds(10), holding(3, 13, 0));
    assert_eq!(
        membership.decide(seconds(10)),
        granted_to(3, &[12]),
        "a cell has no clients"
    );
}

#[test]
fn what_was_released_and_is_held_by_another_process_is_not_granted_by_a_new_director() {
    let mut membership = new_director(OwnerKind::Cell);
    let released = Beat {
        released: BTreeSet::from([OwnerId(13)]),
        ..draining()
    };
    membership.receive(seconds(10), released);
    membership.receive(seconds(10), holding(1, 11, 70));
    assert_eq!(membership.decide(seconds(10)), [], "process 3 holds it");
}

#[test]
fn a_draining_process_does_not_begin_to_follow() {
    let mut membership = joined([40, 50, 60]);
    let draining = |process, owner| Beat {
        draining: true,
        ..holding(process, owner, 50)
    };
    membership.receive(seconds(1), draining(2, 12));
    assert_eq!(membership.to_follow(ProcessId(1)).count(), 1);
    membership.receive(seconds(1), draining(1, 11));
    assert_eq!(
        membership.to_follow(ProcessId(1)).count(),
        0,
        "it had not begun to follow"
    );
    assert_eq!(membership.to_follow(ProcessId(3)).count(), 2);
}
