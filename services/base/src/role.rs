//! The base's implementation of [`Role`]: dispatches every input to the module that handles it.

use std::collections::VecDeque;

use annals_event::{Body, Call, Event, Link, OwnerState, Place, Subject};
use annals_ids::{Address, DatabaseId, EntityId, OwnerId, OwnerKind, Part, SessionId, Tick};
use annals_node::{
    Caller, ClientCallStatus, Denied, LifecycleEvent, Nowhere, Output, OwnerContext, Played, Request, Role, ShutDown,
    time::Mono,
};
use annals_wire::{
    SpaceMap,
    bus::{GhostMessage, ViewMessage},
    client::{CloseReason, ToClient},
};

use crate::{
    admission::token,
    bans::RecentBans,
    downloads::Downloads,
    input::{BaseInput, Counters, RESUME_WINDOW},
    internal_waits::InternalWait,
    lifecycle::{destroy_cell, store, store_for_cell},
    session::{Former, Phase, Session, Sessions},
    view::OwnView,
};

/// Maximum requests that wait for the first map. The director sends the map as soon as it learns of an owner; until
/// then only entities that are restored or created at once can make one.
const UNPLACED_LIMIT: usize = 10_000;

/// A base owner's role.
///
/// Driving it: create it with [`BaseRole::take_over`] from the state with which [`annals_node::Owner::take_over`]
/// begins, and give it the map before any client. [`annals_node::Owner`] does the rest.
#[derive(Debug)]
pub struct BaseRole {
    pub(crate) sessions: Sessions,
    /// The newest session that was opened, as far as is known.
    pub(crate) newest: SessionId,
    pub(crate) recent_bans: RecentBans,
    /// `None` until the director has sent it.
    pub(crate) map: Option<SpaceMap>,
    /// Requests made before there was a map, with the entity that made each.
    pub(crate) unplaced: VecDeque<(EntityId, Request)>,
    pub(crate) downloads: Downloads,
    pub(crate) counters: Counters,
}

impl BaseRole {
    /// Creates the role of an owner with this state. Its clients, if any, are away: they have [`RESUME_WINDOW`] from
    /// `now` to reconnect.
    #[must_use]
    pub fn take_over(state: &OwnerState, now: Mono) -> Self {
        let mut sessions = Sessions::default();
        let until = now.after(RESUME_WINDOW);
        for (entity, image) in &state.entities {
            if let Some(client) = image.client {
                let phase = match InternalWait::ClientComes.is_set(image) {
                    true => Phase::Expected { until },
                    false => Phase::Away { until },
                };
                sessions.insert(client.session, Session::new(*entity, phase, None));
            }
        }
        let clients = state.entities.values().filter_map(|image| image.client);
        let newest = clients.map(|client| client.session).max().unwrap_or(SessionId(0));
        Self {
            sessions,
            newest,
            recent_bans: RecentBans::default(),
            map: None,
            unplaced: VecDeque::new(),
            downloads: Downloads::take_over(state, now),
            counters: Counters::default(),
        }
    }

    /// Counters since the take-over.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of sessions, with and without a connection.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Number of sessions with a connection.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.sessions.connected()
    }

    /// The session that controls an entity of this owner.
    pub(crate) fn session_of(&self, cx: &OwnerContext, entity: EntityId) -> Option<SessionId> {
        let session = cx.image(entity)?.client?.session;
        self.sessions.get(session).map(|_| session)
    }

    /// Sends a frame to a session's client, if it is connected.
    pub(crate) fn send_to_client(&self, cx: &mut OwnerContext, session: SessionId, frame: &ToClient) {
        if let Some(connection) = self.sessions.connection(session) {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            cx.emit(Output::Frame { connection, bytes });
        }
    }

    /// Ends a session and its connection. The entity loses its client for good.
    pub(crate) fn end_session(&mut self, cx: &mut OwnerContext, session: SessionId, reason: CloseReason) {
        let Some(ended) = self.drop_session(cx, session, reason) else {
            return;
        };
        if cx.image(ended.entity).is_none() {
            return;
        }
        self.set_client(cx, ended.entity, None);
        cx.run(ended.entity, &Nowhere, |behaviour, context| {
            behaviour.client_lost(context);
        });
        self.end_after_client(cx, ended.entity);
    }

    /// Ends a session because a later one takes its place at its entity. If the two sessions are of different accounts,
    /// behaviour has given the client away, and the reason is not a log-in elsewhere.
    pub(crate) fn replace_session(&mut self, cx: &mut OwnerContext, session: SessionId, by: Option<DatabaseId>) {
        let Some(before) = self.sessions.get(session) else {
            return;
        };
        let account = before.account.as_ref().map(|account| account.id);
        if account.zip(by).is_some_and(|(account, by)| account != by) {
            self.drop_session(cx, session, CloseReason::Ended);
            return;
        }
        let tokens = [token(cx, before.entity), before.former_token];
        self.sessions.remember(session, tokens, Former::Replaced);
        self.drop_session(cx, session, CloseReason::LoggedInElsewhere);
    }

    /// Removes a session and closes its connection.
    pub(crate) fn drop_session(
        &mut self,
        cx: &mut OwnerContext,
        session: SessionId,
        reason: CloseReason,
    ) -> Option<Session> {
        let dropped = self.sessions.remove(session)?;
        if let Some(connection) = dropped.phase.connection() {
            cx.emit(Output::Close { connection, reason });
        }
        Some(dropped)
    }
}

impl Role for BaseRole {
    type Input = BaseInput;

    const KIND: OwnerKind = OwnerKind::Base;

    fn played(&self) -> Option<Played> {
        Some(Played {
            sessions: self.sessions.len() as u64,
            newest: self.newest,
        })
    }

    fn is_vital(input: &BaseInput) -> bool {
        matches!(input, BaseInput::Map(_) | BaseInput::Closed { .. })
    }

    fn handle(&mut self, cx: &mut OwnerContext, input: BaseInput) {
        match input {
            BaseInput::Map(map) => self.redraw(cx, map),
            BaseInput::OpenSession(wanted) => self.open_session(cx, &wanted),
            BaseInput::Begin(wanted) => self.begin(cx, &wanted),
            BaseInput::Ban(banned) => self.ban(cx, &banned),
            BaseInput::Order(wanted) => self.order(cx, &wanted),
            BaseInput::Hello {
                connection,
                from,
                hello,
                fresh_token,
            } => self.hello(cx, (connection, from), &hello, fresh_token),
            BaseInput::Frame {
                connection,
                frame,
                trace,
            } => self.frame(cx, connection, frame, trace),
            BaseInput::Datagram { connection, datagram } => self.datagram(cx, connection, datagram),
            BaseInput::Closed { connection } => self.closed(cx, connection),
            BaseInput::Download(prepared) => self.take_download(cx, prepared),
        }
    }

    fn handle_call(&mut self, cx: &mut OwnerContext, caller: &Caller, call: Call) {
        match (call, caller.link.from) {
            (Call::Placed(at), Address::Cell(entity)) => self.placed(cx, entity, at, caller.home),
            (Call::Store, Address::Cell(entity)) => store_for_cell(cx, entity),
            (Call::Ledger { to, update }, Address::Owner(_)) => self.booked(cx, to, update),
            (
                Call::CellEnded {
                    entity,
                    former,
                    properties,
                    ..
                },
                Address::Owner(from),
            ) => self.cell_returned(cx, (from, entity), former, properties),
            (Call::Registered { by, outcome, .. }, Address::Owner(_)) => self.space_claimed(cx, by, outcome),
            (Call::CreateBase(wanted), Address::Owner(_)) => cx.create_requested(caller, *wanted),
            (Call::Created { by, of, created }, Address::Owner(_)) => {
                cx.take_created(&Nowhere, caller, (by, of), created);
            }
            (Call::GiveClient(given), Address::Owner(_)) => self.take_given(cx, caller, &given),
            (
                Call::ClientTaken {
                    from,
                    to,
                    session,
                    outcome,
                },
                Address::Owner(_),
            ) => self.given_answered(cx, (from, session), to, outcome),
            _ => {}
        }
    }

    fn request(&mut self, cx: &mut OwnerContext, by: EntityId, request: Request) {
        let needs_map = matches!(
            request,
            Request::CreateCell { .. }
                | Request::CreateCellInNewSpace { .. }
                | Request::OpenSpace { .. }
                | Request::Register { .. }
                | Request::Deregister { .. }
        );
        let leaves = matches!(&request, Request::GiveClient { to, .. } if to.home != cx.owner());
        let waits = (needs_map || leaves) && (self.map.is_none() || !self.unplaced.is_empty());
        if waits && self.unplaced.len() < UNPLACED_LIMIT {
            self.unplaced.push_back((by, request));
        } else {
            self.execute(cx, by, &request);
        }
    }

    /// A base has no ghosts.
    fn ghost(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _message: GhostMessage) {}

    fn view(&mut self, cx: &mut OwnerContext, from: OwnerId, message: ViewMessage) {
        match message {
            ViewMessage::Frames { session, frames } => {
                let Some(connection) = self.witnessed(cx, from, session).map(|(_, connection)| connection) else {
                    return;
                };
                for bytes in frames {
                    cx.emit(Output::Frame { connection, bytes });
                }
            }
            ViewMessage::Datagram { session, bytes } => {
                if let Some((entity, connection)) = self.witnessed(cx, from, session) {
                    cx.emit_volatile(entity, Output::Datagram { connection, bytes });
                }
            }
            // For witnesses, which are on cells.
            ViewMessage::Stamps { .. }
            | ViewMessage::Moved { .. }
            | ViewMessage::Drove { .. }
            | ViewMessage::MovementAck { .. } => {}
        }
    }

    fn on_lifecycle(&mut self, cx: &mut OwnerContext, entity: EntityId, moment: LifecycleEvent) {
        match moment {
            LifecycleEvent::ShutDown(ShutDown::Parting) => {
                if let Some(session) = self.session_of(cx, entity) {
                    self.end_session(cx, session, CloseReason::ShuttingDown);
                }
            }
            LifecycleEvent::ShutDown(ShutDown::Writing) => store(cx, entity),
            LifecycleEvent::Ready { .. }
            | LifecycleEvent::ShuttingDown
            | LifecycleEvent::ShutDown(ShutDown::Written) => {}
        }
    }

    fn to_client(&mut self, cx: &mut OwnerContext, status: ClientCallStatus) {
        self.pass_call_status(cx, status);
    }

    fn confirmed(&mut self, cx: &mut OwnerContext, link: Link) {
        if let (Address::Base(entity), Address::Cell(to)) = (link.from, link.to)
            && entity == to
        {
            self.forward_held(cx, entity);
        }
    }

    fn publish(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        self.note_downloads(cx.now().mono, recorded);
        for entity in recorded.iter().filter_map(of_cell_part) {
            self.forward_held(cx, entity);
        }
        let mut entities: Vec<EntityId> = recorded
            .iter()
            .filter(|event| event.history.is_some())
            .filter_map(subject)
            .collect();
        entities.sort_unstable();
        entities.dedup();
        for entity in entities {
            self.show_entity(cx, entity, recorded);
        }
    }

    fn tick(&mut self, cx: &mut OwnerContext) {
        if self.map.is_some()
            && let Some((by, request)) = self.unplaced.pop_front()
        {
            self.execute(cx, by, &request);
        } else if let Some(session) = self.sessions.overdue(cx.now().mono) {
            self.counters.expired += 1;
            self.end_session(cx, session, CloseReason::Ended);
        } else if self.downloads.deadline().is_some_and(|due| due <= cx.now().mono) {
            self.send_downloads(cx);
        }
    }

    fn deadline(&self) -> Option<Mono> {
        if self.map.is_some() && !self.unplaced.is_empty() {
            return Some(Mono(0));
        }
        let due = [self.sessions.next_due(), self.downloads.deadline()];
        due.into_iter().flatten().min()
    }

    fn map(&self) -> Option<&SpaceMap> {
        self.map.as_ref()
    }

    /// A base does not tick.
    fn ticks(&self) -> Tick {
        Tick(0)
    }
}

impl BaseRole {
    /// Performs a request of behaviour, or denies it.
    fn execute(&mut self, cx: &mut OwnerContext, by: EntityId, request: &Request) {
        if let Err(why) = self.fulfil(cx, request) {
            self.counters.denied += 1;
            cx.deny(by, &Nowhere, request, &why);
        }
    }

    /// Performs a request of behaviour. Idempotent.
    fn fulfil(&mut self, cx: &mut OwnerContext, request: &Request) -> Result<(), Denied> {
        match request {
            Request::CreateCell {
                entity,
                place,
                properties,
            } => self.create_cell(cx, *entity, *place, properties),
            Request::CreateCellNear {
                entity,
                beside,
                offset,
                properties,
            } => cx.locate_for_cell(*entity, *beside, (*offset, properties)),
            Request::CreateCellInNewSpace {
                entity,
                spaces,
                position,
                direction,
                properties,
            } => {
                let (position, direction) = (*position, *direction);
                let place = Place {
                    space: *spaces.start(),
                    position,
                    direction,
                };
                self.create_in_new_space(cx, *entity, spaces, (place, properties))
            }
            Request::OpenSpace { entity, place } => self.open_space(cx, *entity, *place),
            Request::DestroyCell { entity } => {
                destroy_cell(cx, *entity);
                Ok(())
            }
            Request::Destroy { entity } => {
                self.destroy(cx, *entity);
                Ok(())
            }
            Request::GiveClient { from, to } => self.give_client(cx, *from, *to),
            Request::CloseClient { entity, reason } => {
                if let Some(session) = self.session_of(cx, *entity) {
                    self.end_session(cx, session, *reason);
                }
                Ok(())
            }
            Request::Register { entity, number, key } => {
                self.register(cx, (*entity, *number), key.clone());
                Ok(())
            }
            Request::Deregister { entity, key } => self.deregister(cx, *entity, key),
            Request::Teleport { .. } => Err(Denied::CellOnly { what: "teleport" }),
            Request::Store { .. } => Err(Denied::CellOnly {
                what: "store from its cell part",
            }),
            Request::InvokeFor { .. } => Err(Denied::CellOnly {
                what: "call the client of another entity",
            }),
        }
    }

    fn show_entity(&mut self, cx: &mut OwnerContext, entity: EntityId, recorded: &[Event]) {
        let Some(id) = self.session_of(cx, entity) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let (Some(connection), Some(view)) = (session.phase.connection(), session.view.as_mut()) else {
            return;
        };
        let schema = std::sync::Arc::clone(cx.schema());
        let Some(seen) = cx
            .image(entity)
            .and_then(|image| OwnView::new(&schema, cx.tally(), entity, image))
        else {
            return;
        };
        let frames = view.follow(&seen, recorded.iter().filter(|event| subject(event) == Some(entity)));
        for bytes in frames {
            cx.emit(Output::Frame { connection, bytes });
        }
    }
}

/// The entity whose cell part has moved, has ended, or has taken calls of its base part.
fn of_cell_part(event: &Event) -> Option<EntityId> {
    let entity = subject(event)?;
    match event.body {
        Body::Placed(_) => Some(entity),
        Body::Confirmed { to, .. } => (to == Address::Cell(entity)).then_some(entity),
        _ => None,
    }
}

fn subject(event: &Event) -> Option<EntityId> {
    match event.subject {
        Subject::Entity(entity, Part::Base) => Some(entity),
        Subject::Entity(..) | Subject::Owner => None,
    }
}
