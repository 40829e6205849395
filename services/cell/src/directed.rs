//! Calls of client methods that one client alone is shown (BigWorld: `clientEntity`).
//!
//! Such a call is an event in the history of the entity on which it is called, like those for all clients. So it reaches
//! the client in the order of that history, at most once; witnesses of others skip it.

use annals_def::Value;
use annals_event::{Audience, Body, Call};
use annals_ids::{Address, EntityId, MemberId};
use annals_node::{Around, OwnerContext, check_args};

use crate::role::CellRole;

impl CellRole {
    /// Calls a client method of an entity on the client of `viewer`, if that has it in view. An entity that is real on
    /// another owner, or to which calls of `viewer` are under way, is called to do it.
    pub(crate) fn invoke_for(
        &mut self,
        cx: &mut OwnerContext,
        viewer: EntityId,
        entity: EntityId,
        (method, args): (&str, &[Value]),
    ) {
        if !self.clients.sees(viewer, entity) {
            self.counters.not_in_view += 1;
            return;
        }
        let (from, to) = (Address::Cell(viewer), Address::Cell(entity));
        let found = match cx.image(entity) {
            Some(image) => cx.entity_type(entity).map(|entity_type| (entity_type, image.home)),
            None => {
                let ghost = self.known.ghost(cx.schema(), entity);
                ghost.map(|ghost| (ghost.entity_type, ghost.home))
            }
        };
        let found = found.and_then(|(entity_type, home)| Some((entity_type.client_method_named(method)?.index, home)));
        // It was checked when the request was made.
        let Some((method, home)) = found else { return };
        let args = args.to_vec();
        if cx.is_here(to) && cx.is_settled(from, to) {
            self.invoked_for(cx, viewer, entity, (method, args));
        } else {
            cx.call(from, to, home, Call::InvokeFor { method, args });
        }
    }

    /// Records such a call on an entity that is real here.
    pub(crate) fn invoked_for(
        &mut self,
        cx: &mut OwnerContext,
        viewer: EntityId,
        entity: EntityId,
        (method, args): (MemberId, Vec<Value>),
    ) {
        let entity_type = cx.entity_type(entity);
        let fits = entity_type.is_some_and(|entity_type| {
            let found = entity_type.client_methods.get(usize::from(method.0));
            found.is_some_and(|found| check_args(entity_type, found, &args).is_ok())
        });
        if !fits {
            self.counters.denied += 1;
            return;
        }
        let audience = Audience::Of(viewer);
        cx.record_for(entity, true, Body::Invoked { method, args, audience });
    }
}
