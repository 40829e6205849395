//! The queue of a full realm.

use annals_client::Event;
use annals_ids::SessionId;
use annals_wire::client::{LoginAnswer, LoginRequest, Queued, Secret, Ticket};

use crate::rules::{Asked, Table, located};

#[test]
fn a_client_waits_in_the_queue_for_as_long_as_it_receives_its_position() {
    let queued = || {
        Some(LoginAnswer::Queued(Queued {
            position: 7,
            length: 300,
        }))
    };
    let position_event = Event::Queued {
        position: 7,
        length: 300,
    };
    let mut table = Table::new();
    table.asked();
    for _ in 0..10 {
        table.login(queued());
        assert_eq!(table.events(), std::slice::from_ref(&position_event));
        table.wait(29_000);
        assert_eq!(table.asked(), [], "it does not ask again");
    }
    let (session, secret) = (SessionId(5), Secret([9; 32]));
    let base = located(5);
    table.login(Some(LoginAnswer::Ticket(Ticket { session, secret, base })));
    assert_eq!(table.asked().len(), 1, "it connects to its base");
    // A connection on which nothing comes any more is given up, and the client returns to its place.
    let mut table = Table::new();
    table.asked();
    table.login(queued());
    table.wait(30_000);
    table.wait(1_000);
    let asked = table.asked();
    assert!(
        matches!(asked.last(), Some(Asked::Login(LoginRequest::LogIn { .. }))),
        "{asked:?}"
    );
}
