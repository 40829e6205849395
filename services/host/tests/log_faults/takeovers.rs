//! Two writers on one log.

use annals_ids::Epoch;
use annals_node::writer::Stop;

use crate::actor::Actor;
use crate::rig::{Book, OWNER, Rig};
use crate::{check, one_node, three_nodes};

/// Owners are taken over while the former holder still writes, several times.
async fn two_writers(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let mut holders = vec![Actor::take_over(rig.history(&realm).await, &book)];
    for _ in 0..2 {
        holders.last().unwrap().shows(20).await;
        holders.push(Actor::take_over(rig.history(&realm).await, &book));
    }
    let newest = holders.pop().unwrap();
    newest.shows(20).await;
    let mut screens = vec![newest.screen.clone()];
    for (holder, epoch) in holders.into_iter().zip(1..) {
        screens.push(holder.screen.clone());
        assert_eq!(
            holder.stops().await,
            Stop::Replaced {
                owner: OWNER,
                epoch: Epoch(epoch)
            }
        );
    }
    let screens: Vec<_> = screens.iter().collect();
    let chain = check(&rig.history(&realm).await, &book, &screens).await;
    assert_eq!(
        chain.beyond.iter().filter(|batch| batch.opens).count(),
        3,
        "each epoch is opened once"
    );
}

/// The owner is granted to two processes at about the same time; one of them holds it in the end.
async fn two_takers(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let first = Actor::take_over(rig.history(&realm).await, &book);
    let second = Actor::take_over(rig.history(&realm).await, &book);
    assert_eq!(
        first.stops().await,
        Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(1)
        }
    );
    second.shows(20).await;
    check(&rig.history(&realm).await, &book, &[&second.screen]).await;
}

#[tokio::test]
async fn two_writers_on_one_node() {
    two_writers(&mut *one_node().await).await;
}

#[tokio::test]
async fn two_writers_on_three_nodes() {
    two_writers(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn two_takers_on_one_node() {
    two_takers(&mut *one_node().await).await;
}

#[tokio::test]
async fn two_takers_on_three_nodes() {
    two_takers(&mut *three_nodes().await).await;
}
