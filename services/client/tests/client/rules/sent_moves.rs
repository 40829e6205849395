//! The movements of the client's own entity, and of others that it drives.

use annals_client::Event;
use annals_ids::{Direction, EntityId, Part, Position, TypeId};
use annals_wire::client::{Drove, Moved, ToClient, ToServer, ToServerDatagram, ViewItem};

use crate::rules::{Asked, OTHER, OWN, PLACE, Table, enter, refresh};

impl Table {
    /// The movements that are sent: their sequence numbers, and how far east they lead.
    fn moved(&mut self) -> Vec<(u64, f32)> {
        let moved = |asked| match asked {
            Asked::Datagram(ToServerDatagram::Moved(Moved { sequence, position, .. })) => Some((sequence, position.x)),
            _ => None,
        };
        self.asked().into_iter().filter_map(moved).collect()
    }

    /// The movements of other entities that are sent: entity, history number, sequence number, and how far east they lead.
    fn drove(&mut self) -> Vec<(EntityId, u64, u64, f32)> {
        let drove = |asked| match asked {
            Asked::Datagram(ToServerDatagram::Drove(Drove { entity, upto, moved })) => {
                Some((entity, upto.0, moved.sequence, moved.position.x))
            }
            _ => None,
        };
        self.asked().into_iter().filter_map(drove).collect()
    }

    fn drive(&mut self, entity: EntityId, x: f32) -> bool {
        let position = Position { x, y: 0.0, z: 0.0 };
        self.core.move_entity(self.now, entity, position, Direction::default())
    }

    fn x_of(&self, entity: EntityId) -> f32 {
        let place = self.core.view(Part::Cell).entities()[&entity].place;
        place.expect("it is somewhere").0.x
    }
}

fn drives(entity: EntityId, drives: bool) -> ViewItem {
    ViewItem::Drives { entity, drives }
}

fn placed(entity: EntityId) -> ViewItem {
    let (position, direction) = PLACE;
    ViewItem::Placed {
        entity,
        position,
        direction,
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
    table.show(1, 2, vec![placed(OWN)]);
    table.wait(200);
    assert_eq!(table.moved(), [], "it was placed elsewhere");
}

#[test]
fn other_entity_is_moved_while_the_client_drives_it() {
    let mut table = Table::seeing();
    assert!(!table.core.drives(OTHER) && !table.drive(OTHER, 1.0));
    table.show(1, 2, vec![drives(OTHER, true), placed(OTHER)]);
    let said = Event::Drives {
        entity: OTHER,
        drives: true,
    };
    assert!(table.events().contains(&said));
    assert!(table.core.drives(OTHER) && table.core.drives(OWN));

    // Both entities move, and the last movement of each is sent again.
    table.walk(1.0);
    assert!(table.drive(OTHER, 2.0));
    assert_eq!(table.drove(), [(OTHER, 10, 2, 2.0)]);
    table.wait(200);
    let asked = table.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    // What the server has sent before it received that does not move it back.
    table.moves(1, 5, OTHER, 0.5);
    assert_eq!(table.x_of(OTHER), 2.0);

    // The server has placed it elsewhere: the movement is not sent again, and the next one says that it was shown.
    table.show(1, 3, vec![refresh(OTHER, 12, 100), placed(OTHER)]);
    table.wait(400);
    assert_eq!(table.drove(), []);
    assert!(table.drive(OTHER, 3.0));
    assert_eq!(table.drove(), [(OTHER, 12, 3, 3.0)]);

    // Once it ends, movements of the server count again, and nothing is sent.
    table.show(1, 4, vec![drives(OTHER, false), placed(OTHER)]);
    assert!(!table.core.drives(OTHER) && !table.drive(OTHER, 4.0));
    table.moves(1, 6, OTHER, 0.5);
    assert_eq!(table.x_of(OTHER), 0.5);
    table.wait(10_000);
    assert_eq!(table.drove(), []);
}

#[test]
fn own_entity_is_not_moved_while_another_driver_is_chosen() {
    let mut table = Table::seeing();
    table.walk(1.0);
    table.asked();
    table.show(1, 2, vec![drives(OWN, false), placed(OWN)]);
    assert!(!table.core.drives(OWN) && !table.drive(OWN, 2.0));
    assert_eq!(table.x_of(OWN), PLACE.0.x);
    table.show(1, 3, vec![drives(OWN, true), placed(OWN)]);
    table.walk(3.0);
    assert_eq!(table.moved(), [(2, 3.0)]);
    // The last movement before another driver was chosen is not sent again.
    table.show(1, 4, vec![drives(OWN, false)]);
    table.wait(10_000);
    assert_eq!(table.moved(), []);
}

/// When a view starts anew, the client goes on as before, and the server learns which entities it moves.
#[test]
fn driver_survives_a_restart_of_the_view_and_not_the_entity() {
    let mut table = Table::seeing();
    table.show(1, 2, vec![drives(OTHER, true), drives(OWN, false)]);
    table.events();
    table.asked();
    table.say(&ToClient::StampsWanted { source: Part::Cell });
    let frames = table.frames();
    let [ToServer::Stamps(stamps)] = &frames[..] else {
        panic!("stamps are sent: {frames:?}");
    };
    assert_eq!(stamps.known.unusual_drivers, [OWN, OTHER]);
    assert_eq!(table.events(), []);
    assert!(table.core.drives(OTHER) && !table.core.drives(OWN));
    assert!(table.drive(OTHER, 1.0));
    table.show(2, 1, vec![drives(OTHER, false), drives(OWN, true)]);
    table.asked();
    table.say(&ToClient::StampsWanted { source: Part::Cell });
    let frames = table.frames();
    assert!(
        matches!(&frames[..], [ToServer::Stamps(stamps)] if stamps.known.unusual_drivers.is_empty()),
        "{frames:?}"
    );

    table.show(3, 1, vec![drives(OTHER, true), ViewItem::Leave { entity: OTHER }]);
    assert!(!table.core.drives(OTHER));
    let back = ViewItem::Return {
        entity: OTHER,
        position: PLACE.0,
        direction: PLACE.1,
    };
    table.show(3, 2, vec![back]);
    assert!(!table.core.drives(OTHER) && !table.drive(OTHER, 1.0));
    table.show(3, 3, vec![drives(OTHER, true), enter(OTHER)]);
    assert!(!table.core.drives(OTHER), "it enters as a new one");
}

/// The next entity that the client controls is not moved by what it sent for the former one.
#[test]
fn movements_end_with_the_controlled_entity() {
    let mut table = Table::seeing();
    table.walk(1.0);
    assert_eq!(table.moved(), [(1, 1.0)]);
    let (entity, type_id) = (OTHER, TypeId(0));
    table.say(&ToClient::Reset { entity, type_id });
    table.asked();
    let (position, direction) = (Position { x: 1.0, ..PLACE.0 }, PLACE.1);
    let seen = ViewItem::Enter {
        entity: OWN,
        type_id,
        place: Some((position, direction)),
    };
    table.show(2, 1, vec![seen, drives(OWN, true)]);
    table.wait(10_000);
    assert_eq!(table.moved(), []);
}
