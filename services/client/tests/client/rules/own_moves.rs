//! The movements of the client's own entity.

use annals_wire::client::{Moved, ToServerDatagram, ViewItem};

use crate::rules::{Asked, OWN, PLACE, Table};

impl Table {
    /// The movements that are sent: their sequence numbers, and how far east they lead.
    fn moved(&mut self) -> Vec<(u64, f32)> {
        let moved = |asked| match asked {
            Asked::Datagram(ToServerDatagram::Moved(Moved { sequence, position, .. })) => Some((sequence, position.x)),
            _ => None,
        };
        self.asked().into_iter().filter_map(moved).collect()
    }
}

#[test]
fn the_last_movement_is_sent_again_unless_the_server_has_placed_the_entity() {
    let mut table = Table::seeing();
    assert_eq!(table.moved(), []);
    // While the entity moves, each movement replaces the one before.
    for sequence in 1..=5 {
        table.walk(sequence as f32);
        table.wait(199);
        assert_eq!(table.moved(), [(sequence, sequence as f32)]);
    }
    table.wait(1);
    assert_eq!(table.moved(), [(5, 5.0)]);
    for pause in [400, 800, 1_600] {
        assert!(table.core.deadline() <= Some(table.now.after(pause)));
        table.wait(pause - 1);
        assert_eq!(table.moved(), []);
        table.wait(1);
        assert_eq!(table.moved(), [(5, 5.0)]);
    }
    table.wait(10_000);
    assert_eq!(table.moved(), [], "it was sent often enough");

    let mut table = Table::seeing();
    table.walk(6.0);
    assert_eq!(table.moved(), [(1, 6.0)]);
    let (position, direction) = PLACE;
    let placed = ViewItem::Placed {
        entity: OWN,
        position,
        direction,
    };
    table.show(1, 2, vec![placed]);
    table.wait(200);
    assert_eq!(table.moved(), [], "it was placed elsewhere");
}
