//! Events in words.

use annals_audit::names::{Names, mentioned};
use annals_event::{Body, Cause, Driver, Event, MovementControl, Subject};
use annals_ids::{EntityId, Hash, Part};

#[test]
fn who_moves_a_cell_part_is_said_and_mentioned() {
    let (moved, rider) = (EntityId(7), EntityId(700));
    for (driver, words, entities) in [
        (Driver::Client, "its client", vec![moved]),
        (Driver::Server, "the server", vec![moved]),
        (Driver::ClientOf(rider), "the client of entity 700", vec![moved, rider]),
    ] {
        let event = Event {
            subject: Subject::Entity(moved, Part::Cell),
            cause: Cause(0),
            history: None,
            body: Body::ControlChanged(MovementControl {
                driver,
                top_speed: 5.0,
                top_speed_y: 0.0,
            }),
        };
        let said = Names::new([]).under(Hash::ZERO).event(&event);
        assert!(
            said.starts_with(&format!("goes where {words} says, at most 5.0 m/s")),
            "{said}"
        );
        assert_eq!(mentioned(&event).collect::<Vec<_>>(), entities);
    }
}
