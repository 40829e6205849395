//! Traffic between a client and its realm: calls, views, movement, and acknowledgements.

use std::time::Duration;

use annals_event::{Link, Place, Trace};
use annals_ids::{Address, Direction, EntityId, OwnerId, Part, Position, SessionId, SpaceId};
use annals_node::{ClientCallStatus, ConnectionId, Output, OwnerContext};
use annals_wire::{
    bus::{CallMessage, DrivenMovement, Message, ViewMessage},
    client::{Call, CloseReason, Drove, Moved, Movements, Stamps, ToClient, ToServer, ToServerDatagram},
};

use crate::{
    lifecycle::has_lost_cell,
    role::BaseRole,
    session::Session,
    view::{OwnView, View},
};

/// Minimum interval between view restarts; earlier requests are dropped, and the client retries in two seconds. A
/// restart costs the client a few bytes, and the base up to the whole entity.
const BEGIN_EVERY: Duration = Duration::from_millis(100);

/// Stands for an unknown home of an entity: no owner has this id.
const UNKNOWN_HOME: OwnerId = OwnerId(0);

impl BaseRole {
    pub(crate) fn frame(&mut self, cx: &mut OwnerContext, connection: ConnectionId, frame: ToServer, trace: Trace) {
        // The connection was taken from its session while this frame was under way: drop it.
        let Some(id) = self.sessions.at(connection) else { return };
        if let Some(session) = self.sessions.get_mut(id) {
            session.former_token = None;
        }
        match frame {
            ToServer::Call(call) => self.call(cx, id, call, trace),
            ToServer::Stamps(stamps) => match stamps.source {
                Part::Base => self.begin_view(cx, id, &stamps),
                Part::Cell => self.pass_stamps(cx, id, stamps),
            },
            ToServer::Bye => self.end_session(cx, id, CloseReason::Finished),
            ToServer::DownloadProgress(progress) => self.download_progressed(cx, id, progress),
        }
    }

    pub(crate) fn datagram(&mut self, cx: &mut OwnerContext, connection: ConnectionId, datagram: ToServerDatagram) {
        let Some(session) = self.sessions.at(connection) else {
            return;
        };
        let Some((entity, to)) = self.witness(cx, session) else {
            return;
        };
        let message = match datagram {
            ToServerDatagram::Moved(Moved {
                sequence,
                position,
                direction,
            }) => ViewMessage::Moved {
                session,
                entity,
                sequence,
                place: unplaced(position, direction),
            },
            ToServerDatagram::Drove(Drove {
                entity: driven,
                upto,
                moved:
                    Moved {
                        sequence,
                        position,
                        direction,
                    },
            }) => ViewMessage::Drove(DrivenMovement {
                session,
                driver: entity,
                driven,
                upto,
                sequence,
                place: unplaced(position, direction),
            }),
            ToServerDatagram::MovementAck { view, ack } => ViewMessage::MovementAck {
                session,
                entity,
                view,
                ack,
            },
        };
        cx.send_volatile(entity, to, Message::View(message));
    }

    /// The entity that a session controls, and the owner of its cell part, which has the witness.
    pub(crate) fn witness(&self, cx: &OwnerContext, session: SessionId) -> Option<(EntityId, OwnerId)> {
        let entity = self.sessions.get(session)?.entity;
        let owner = cx.image(entity)?.base()?.cell?;
        Some((entity, owner))
    }

    /// The entity and connection of a session, if its witness is on `from`.
    pub(crate) fn witnessed(
        &self,
        cx: &OwnerContext,
        from: OwnerId,
        id: SessionId,
    ) -> Option<(EntityId, ConnectionId)> {
        let (entity, owner) = self.witness(cx, id)?;
        let connection = self.sessions.connection(id)?;
        (owner == from).then_some((entity, connection))
    }

    fn call(&mut self, cx: &mut OwnerContext, session: SessionId, call: Call, trace: Trace) {
        let (entity, part) = (call.entity, call.part);
        let to = match part {
            Part::Base if self.may_reach(cx, session, entity) => Some(cx.owner()),
            Part::Base => None,
            Part::Cell => match self.sessions.get_mut(session) {
                Some(found) if found.entity == entity && awaits_client(cx, entity) => {
                    return found.hold(call, trace);
                }
                _ => self.route(cx, session, &call),
            },
        };
        let Some(to) = to else {
            return self.notify_gone(cx, session, (entity, part));
        };
        let home = cx.owner();
        let message = CallMessage {
            link: Link {
                from: Address::Client(session),
                to: call.to(),
            },
            from_home: home,
            to_home: if cx.image(entity).is_some() { home } else { UNKNOWN_HOME },
            number: call.number,
            is_oldest: call.is_oldest,
            trace,
            call: annals_event::Call::Exposed { message: call.message },
        };
        if to == home {
            cx.deliver(message);
        } else {
            cx.send(to, Message::Call(message));
        }
    }

    /// Notifies a client that a part has ended. The client drops its calls of that part.
    fn notify_gone(&mut self, cx: &mut OwnerContext, id: SessionId, (entity, part): (EntityId, Part)) {
        if let Some(session) = self.sessions.get_mut(id)
            && (session.entity, Part::Cell) == (entity, part)
        {
            session.drop_held();
        }
        self.send_to_client(cx, id, &ToClient::Gone { entity, part });
    }

    /// Forwards the calls of an entity's client that were kept, if the cell part knows the client now, or has ended.
    pub(crate) fn forward_held(&mut self, cx: &mut OwnerContext, entity: EntityId) {
        let Some(id) = self.session_of(cx, entity).filter(|_| !awaits_client(cx, entity)) else {
            return;
        };
        let held = self.sessions.get_mut(id).map(Session::take_held);
        for (call, trace) in held.into_iter().flatten() {
            self.call(cx, id, call, trace);
        }
    }

    /// Whether a client may call the base part of this entity: its own, or one that was its own and has taken calls
    /// from it. Others are not looked up, so that no client can leave a trace in them.
    fn may_reach(&self, cx: &OwnerContext, session: SessionId, entity: EntityId) -> bool {
        let own = self.sessions.get(session).is_some_and(|found| found.entity == entity);
        let from = Address::Client(session);
        cx.image(entity)
            .is_some_and(|image| own || image.links.taken.contains_key(&from))
    }

    /// The owner to which a client's call to a cell part is routed. For entities whose home is this owner it is
    /// recorded here. For others it is the owner where the entity was last known to be; if that was wrong or there is
    /// none, it is the owner of the client's witness, which has at least a ghost of what the client sees.
    fn route(&mut self, cx: &OwnerContext, id: SessionId, call: &Call) -> Option<OwnerId> {
        if let Some(image) = cx.image(call.entity) {
            return image.base()?.cell;
        }
        let (_, witness) = self.witness(cx, id)?;
        let last_location = cx.placed_for_client(call.entity);
        let session = self.sessions.get_mut(id)?;
        Some(session.pass_on(call.entity, call.number, last_location, witness))
    }

    fn begin_view(&mut self, cx: &mut OwnerContext, id: SessionId, stamps: &Stamps) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Some(connection) = session.phase.connection() else {
            return;
        };
        let now = cx.now().mono;
        let too_soon = session.begun.is_some_and(|begun| now.since(begun) < BEGIN_EVERY);
        if stamps.view <= session.last_view || too_soon {
            return;
        }
        (session.last_view, session.begun) = (stamps.view, Some(now));
        let schema = std::sync::Arc::clone(cx.schema());
        let image = cx.image(session.entity);
        let Some(seen) = image.and_then(|image| OwnView::new(&schema, cx.tally(), session.entity, image)) else {
            return;
        };
        let (view, frames) = View::begin(&seen, stamps, session.beginning.take());
        session.view = Some(view);
        for bytes in frames {
            cx.emit(Output::Frame { connection, bytes });
        }
    }

    /// Forwards to the witness, which begins the cell's view. Without a witness the client gets no answer, and is asked
    /// again once there is one; if the witness has ended while the client was away, its views restart.
    fn pass_stamps(&mut self, cx: &mut OwnerContext, session: SessionId, stamps: Stamps) {
        if let Some((entity, to)) = self.witness(cx, session) {
            let Stamps { view, known, .. } = stamps;
            let movements = self.movements(session);
            let stamps = ViewMessage::Stamps {
                session,
                entity,
                view,
                known,
                movements,
            };
            cx.send(to, Message::View(stamps));
            return;
        }
        let knows_some = !(stamps.known.seen.is_empty() && stamps.known.kept.is_empty());
        let entity = self.sessions.get(session).map(|found| found.entity);
        let ended = entity.filter(|entity| cx.image(*entity).is_some_and(|image| has_lost_cell(image, *entity)));
        if let Some(entity) = ended.filter(|_| knows_some) {
            self.restart_views(cx, session, entity);
        }
    }

    /// How movements are encoded for a session's client on its current connection.
    fn movements(&self, session: SessionId) -> Movements {
        self.sessions
            .get(session)
            .map_or(Movements::Plain, |session| session.movements)
    }

    pub(crate) fn pass_call_status(&mut self, cx: &mut OwnerContext, status: ClientCallStatus) {
        let (ClientCallStatus::Took(link, _)
        | ClientCallStatus::Gap(link, _)
        | ClientCallStatus::Gone(link)
        | ClientCallStatus::Refused(link, ..)) = status;
        let (Address::Client(session), Some((entity, part))) = (link.from, link.to.entity()) else {
            return;
        };
        if let (ClientCallStatus::Took(_, upto) | ClientCallStatus::Gap(_, upto), Some(session)) =
            (status, self.sessions.get_mut(session))
        {
            session.took(entity, upto);
        }
        let frame = match status {
            ClientCallStatus::Took(_, upto) => ToClient::Took { entity, part, upto },
            ClientCallStatus::Gap(_, have) => ToClient::Gap { entity, part, have },
            ClientCallStatus::Gone(_) => return self.notify_gone(cx, session, (entity, part)),
            ClientCallStatus::Refused(_, number, reason) => ToClient::Refused {
                entity,
                part,
                number,
                reason,
            },
        };
        self.send_to_client(cx, session, &frame);
    }
}

/// The place to which a client has moved an entity. Only the cell knows the entity's space; a client cannot change it.
fn unplaced(position: Position, direction: Direction) -> Place {
    Place {
        space: SpaceId::default(),
        position,
        direction,
    }
}

/// Whether the cell part of an entity of this owner has not confirmed yet who its client is. It would refuse calls that
/// only the entity's own client may make.
fn awaits_client(cx: &OwnerContext, entity: EntityId) -> bool {
    let (from, to) = (Address::Base(entity), Address::Cell(entity));
    let base = cx.image(entity).and_then(annals_event::Image::base);
    base.is_some_and(|base| base.cell.is_some())
        && cx.has_unconfirmed(Link { from, to }, |call| matches!(call, annals_event::Call::Witness(_)))
}
