//! A base while its realm starts and stops: the game is notified, clients are disconnected, entities are written.

use annals_event::{Body, Subject};
use annals_ids::{EntityId, Part};
use annals_node::{Input, LifecycleEvent, ShutDown};
use annals_wire::client::CloseReason;

use crate::{
    host::Host,
    lifecycle::trail,
    player::{log_in, with_ticket},
};

const STOP: [LifecycleEvent; 4] = [
    LifecycleEvent::ShuttingDown,
    LifecycleEvent::ShutDown(ShutDown::Parting),
    LifecycleEvent::ShutDown(ShutDown::Writing),
    LifecycleEvent::ShutDown(ShutDown::Written),
];

fn come(host: &mut Host, moment: LifecycleEvent) {
    let before = host.owner.lifecycle_events();
    host.owner.handle(host.now(), Input::LifecycleEvent(moment));
    host.settle();
    assert_eq!(
        host.owner.lifecycle_events(),
        before + 1,
        "{moment:?}: every entity was notified"
    );
}

/// The number of trail changes before each time that an entity was written.
fn written(host: &Host, entity: EntityId) -> Vec<usize> {
    let mut changes = 0;
    let mut written = Vec::new();
    for event in host.batches().flat_map(|batch| batch.events) {
        match event.body {
            _ if event.subject != Subject::Entity(entity, Part::Base) => {}
            Body::Changed { .. } => changes += 1,
            Body::Stored { .. } => written.push(changes),
            _ => {}
        }
    }
    written
}

#[test]
fn a_stop_notifies_disconnects_and_stores_in_the_documented_order() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    // An account whose client has a ticket but has not connected yet is notified as well.
    let early = with_ticket(&mut host, 6, 2);
    let entity = player.entity.expect("it controls its account").0;
    let before = written(&host, entity).len();
    for moment in STOP {
        come(&mut host, moment);
        player.listen(&mut host);
        let expected = match moment {
            LifecycleEvent::ShuttingDown => None,
            _ => Some(CloseReason::ShuttingDown),
        };
        assert_eq!(player.closed, expected, "after {moment:?}");
    }
    assert_eq!(trail(&host, entity), "bAS0L12");
    // After the change that the game made on its notice, and before the last one.
    assert_eq!(written(&host, entity)[before..], ["bAS0L1".len()]);
    assert_eq!(
        host.owner.role().sessions(),
        0,
        "no client can resume: {early:?}",
        early = early.session
    );
}

#[test]
fn every_existing_part_is_notified_and_later_ones_are_not() {
    const MANY: u64 = 200;
    let mut host = Host::new();
    for account in 1..=MANY {
        let _ = with_ticket(&mut host, account, account);
    }
    let entities: Vec<EntityId> = host.owner.state().entities.keys().copied().collect();
    assert_eq!(entities.len() as u64, MANY);
    come(&mut host, LifecycleEvent::Ready { is_bootstrap: true });
    let late = log_in(&mut host, MANY + 1, MANY + 1).entity.expect("it has one").0;
    for entity in [entities[0], entities[entities.len() / 2], entities[entities.len() - 1]] {
        assert_eq!(trail(&host, entity), "bB");
    }
    assert_eq!(trail(&host, late), "bA");
}
