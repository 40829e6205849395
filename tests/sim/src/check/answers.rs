//! A client is shown the answers to its own calls, each with the result of that call, and once.

use std::collections::BTreeSet;

use annals_client::{Event, Showing, What};
use annals_def::Value;

use crate::{archive::Archive, world::World};

/// Compares each answer with the calls that the client made.
pub fn check(world: &World, _archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, client) in world.clients.iter().enumerate() {
        let mut answered = BTreeSet::new();
        for (showing, call, outcome) in answers(&client.events) {
            let id = match outcome.as_deref() {
                Ok([Value::UInt(id)]) => *id,
                other => {
                    wrong.push(format!("client {number}: call {call} was answered with {other:?}"));
                    continue;
                }
            };
            // Numbers begin anew with each session; what a call carries does not.
            let is_own = client.made.iter().any(|made| {
                let (entity, part) = (made.entity, made.part);
                u64::from(made.id) == id && (entity, part, made.number.0) == (showing.entity, showing.part, call)
            });
            if !is_own {
                wrong.push(format!("client {number}: {showing:?} answers no call of it"));
            }
            if !answered.insert(id) {
                wrong.push(format!("client {number}: {showing:?} is a second answer"));
            }
        }
    }
    wrong
}

/// Number of answers that clients were shown.
#[must_use]
pub fn count(world: &World) -> usize {
    world.clients.iter().map(|client| answers(&client.events).count()).sum()
}

fn answers(events: &[Event]) -> impl Iterator<Item = (&Showing, u64, &annals_event::Outcome)> {
    events.iter().filter_map(|event| match event {
        Event::Shown(showing) => match &showing.what {
            What::Replied { call, outcome, .. } => Some((showing, call.0, outcome)),
            _ => None,
        },
        _ => None,
    })
}
