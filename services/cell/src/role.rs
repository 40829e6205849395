//! The cell's role: dispatches messages, calls and ticks to the modules of this crate.

use std::{collections::BTreeSet, num::NonZeroU32};

use annals_event::{Body, Call, Event, GivenOutcome, OwnerState, Subject};
use annals_ids::{Address, EntityId, OwnerId, OwnerKind, Part, SpaceId, Tick};
use annals_node::{Around, Caller, ClientCallStatus, Denied, OwnerContext, Request, Role, time::Mono};
use annals_wire::{
    SpaceMap,
    bus::{GhostMessage, SpaceMessage, ViewMessage},
    load::Survey,
    overview::{Overview, OverviewRequest},
};

use crate::{
    clients::Clients,
    controllers::Controllers,
    existence::store,
    ghost_receiver::GhostReceiver,
    ghost_sender::GhostSender,
    handover::Handover,
    input::{CellInput, Counters},
    knowledge::Knowledge,
    overview,
    physics::Physics,
    spaces, survey,
    teleport::teleport_origin,
    witness::client,
};

/// Number of outputs at the gate above which nothing new is shown until some have left. Nothing is lost: receivers are
/// sent later what happened meanwhile.
const BACKLOG: usize = 50_000;
const _: () = assert!(BACKLOG * 2 <= annals_node::gate::WAITING_LIMIT);

/// A cell owner's role.
///
/// Driving it: make it with [`CellRole::take_over`] from the state with which [`annals_node::Owner::take_over`] begins,
/// and send it the map. [`annals_node::Owner`] does the rest; a tick is due at its deadline.
#[derive(Debug)]
pub struct CellRole {
    pub(crate) known: Knowledge,
    pub(crate) ghost_sender: GhostSender,
    pub(crate) handover: Handover,
    pub(crate) clients: Clients,
    pub(crate) controllers: Controllers,
    pub(crate) physics: Physics,
    /// Whether the owner accepts no more entities.
    pub(crate) closing: bool,
    pub(crate) counters: Counters,
}

impl CellRole {
    /// Creates the role of an owner with this state. Without a map it hands nothing over, sends no ghosts and shows
    /// nothing.
    #[must_use]
    pub fn take_over(state: &OwnerState, now: Mono) -> Self {
        Self {
            known: Knowledge::take_over(state, now),
            ghost_sender: GhostSender::default(),
            handover: Handover::default(),
            clients: Clients::take_over(state, now),
            controllers: Controllers::take_over(state, now),
            physics: Physics::take_over(state),
            closing: false,
            counters: Counters::default(),
        }
    }

    /// Limits what each client is sent to so many bits per second.
    #[must_use]
    pub fn with_downstream(mut self, bits: NonZeroU32) -> Self {
        self.clients.limit(bits);
        self
    }

    /// Counters since the take-over.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The ghosts on this owner.
    #[must_use]
    pub fn ghosts(&self) -> &GhostReceiver {
        &self.known.ghosts
    }

    /// The entities that have a ghost on another owner.
    pub fn ghosts_on(&self, owner: OwnerId) -> impl Iterator<Item = EntityId> {
        self.ghost_sender.on(owner)
    }

    /// Number of clients whose entities are real here.
    #[must_use]
    pub fn witnesses(&self) -> usize {
        self.clients.count()
    }

    /// Opens a space again.
    fn open_space(&mut self, cx: &mut OwnerContext, space: SpaceId) {
        self.counters.denied += u64::from(cx.open_space(space).is_err());
    }

    /// Records what was logged, and sends the parts that do not wait for the tick.
    fn note(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        self.known.note(cx, recorded);
        let mut shown = BTreeSet::new();
        for event in recorded {
            let Subject::Entity(entity, Part::Cell) = event.subject else {
                continue;
            };
            self.controllers.note(cx, entity, &event.body);
            self.physics.note(cx, entity, event);
            let changes_client = matches!(
                event.body,
                Body::CellCreated(_)
                    | Body::Onloaded { .. }
                    | Body::Returned { .. }
                    | Body::ClientSet(_)
                    | Body::Destroyed
                    | Body::Offloaded { .. }
            );
            if changes_client {
                self.clients.sync_witness(cx, entity);
            }
            if is_teleport_arrival(cx.owner(), &event.body) {
                self.clients.mark_teleported_in(entity);
            }
            if event.history.is_some() {
                shown.insert(entity);
            }
        }
        for entity in shown {
            self.clients.show_own(cx, &self.known, entity);
        }
    }
}

impl Role for CellRole {
    type Input = CellInput;

    const KIND: OwnerKind = OwnerKind::Cell;

    fn is_vital(input: &CellInput) -> bool {
        matches!(input, CellInput::Map(_) | CellInput::Close)
    }

    fn handle(&mut self, cx: &mut OwnerContext, input: CellInput) {
        match input {
            CellInput::Map(map) => {
                let territory = &mut self.known.territory;
                if map.version > territory.version() {
                    self.handover.redrawn(cx.now().mono);
                }
                let before = territory.own_spaces();
                if !territory.is_known() {
                    // Clients of an owner that was taken over wait for their views.
                    self.known.sampling.hasten(cx.now().mono);
                }
                if territory.redraw(map) {
                    self.ghost_sender
                        .may_hold_ghosts(cx.now().mono, territory.space_peers().iter().copied());
                    self.clients.ask_again();
                }
                self.known.spaces.learn(cx, territory, &before);
            }
            CellInput::Create {
                type_id,
                place,
                properties,
            } => {
                let created = || cx.create_cell_only(type_id, place, properties, &self.known);
                if self.closing || created().is_err() {
                    self.counters.denied += 1;
                }
            }
            CellInput::Close => self.closing = true,
        }
    }

    fn handle_call(&mut self, cx: &mut OwnerContext, caller: &Caller, call: Call) {
        let (from, to) = (caller.link.from, caller.link.to);
        match (to, call) {
            (Address::Owner(_), Call::CreateCell(creation)) => self.create(cx, *creation),
            (Address::Owner(_), Call::Onload { entity, image }) => self.onload(cx, caller, entity, image),
            (Address::Owner(_), Call::Arrived { of }) => self.arrived(cx, caller, of),
            (Address::Owner(_), Call::Refused { of, reason }) => self.refused(cx, caller, of, reason),
            (Address::Owner(_), Call::OpenSpace(space)) => self.open_space(cx, space),
            (Address::Owner(_), Call::CreateBase(wanted)) => {
                let why = format!("owner {} is a cell, and has no base parts", cx.owner());
                cx.answer_creation(caller, (wanted.by, wanted.of), Err(why));
            }
            (Address::Owner(_), Call::Created { by, of, created }) => {
                cx.take_created(&self.known, caller, (by, of), created);
            }
            (Address::Owner(_), Call::GiveClient(given)) => {
                let why = format!("owner {} is a cell, and has no base parts", cx.owner());
                cx.answer_given(caller, &given, GivenOutcome::Refused(why));
            }
            (Address::Owner(_), Call::Placed(at)) => self.placed(cx, caller, at),
            // From its own base part, or from any cell part whose behaviour requests it.
            (Address::Cell(entity), Call::DestroyCell) if from.entity().is_some() => self.destroy(cx, entity),
            (Address::Cell(entity), Call::InvokeFor { method, args }) => {
                if let Address::Cell(viewer) = from {
                    self.invoked_for(cx, viewer, entity, (method, args));
                }
            }
            (Address::Cell(entity), Call::Witness(client)) if from == Address::Base(entity) => {
                self.attach(cx, entity, client);
            }
            _ => {}
        }
    }

    fn request(&mut self, cx: &mut OwnerContext, by: EntityId, request: Request) {
        let done = match &request {
            Request::Destroy { entity } | Request::DestroyCell { entity } => {
                self.destroy(cx, *entity);
                Ok(())
            }
            Request::Teleport { entity, place } => self.teleport(cx, *entity, *place),
            Request::InvokeFor {
                viewer,
                entity,
                method,
                args,
            } => {
                self.invoke_for(cx, *viewer, *entity, (method, args));
                Ok(())
            }
            Request::OpenSpace { entity, place } => spaces::ask_to_open(cx, &self.known.territory, *entity, place),
            Request::Store { entity } => {
                store(cx, *entity);
                Ok(())
            }
            Request::CreateCell { .. }
            | Request::CreateCellNear { .. }
            | Request::CreateCellInNewSpace { .. }
            | Request::GiveClient { .. }
            | Request::CloseClient { .. }
            | Request::Register { .. }
            | Request::Deregister { .. } => Err(Denied::BaseOnly { what: "request it" }),
        };
        if let Err(why) = done {
            self.counters.denied += 1;
            cx.deny(by, &self.known, &request, &why);
        }
    }

    fn ghost(&mut self, cx: &mut OwnerContext, from: OwnerId, message: GhostMessage) {
        match message {
            GhostMessage::Ask { entity, have } => {
                self.ghost_sender
                    .answer(cx, &self.known.recent_events, from, (entity, have));
            }
            message => self.known.take_ghosts(cx, from, message),
        }
    }

    fn space(&mut self, cx: &mut OwnerContext, from: OwnerId, space: SpaceId, message: SpaceMessage) {
        let Knowledge { spaces, territory, .. } = &mut self.known;
        spaces.take(cx, territory, from, (space, message));
    }

    fn view(&mut self, cx: &mut OwnerContext, from: OwnerId, message: ViewMessage) {
        match message {
            ViewMessage::Stamps {
                session,
                entity,
                view,
                known,
                movements,
            } => {
                let (now, client) = (cx.now().mono, client(session, from));
                self.clients.stamps(now, client, entity, (view, known), movements);
            }
            ViewMessage::MovementAck {
                session,
                entity,
                view,
                ack,
            } => self.clients.acknowledged(client(session, from), entity, view, ack),
            ViewMessage::Drove(movement) => {
                let is_rejected = self.take_driven(cx, from, movement);
                self.counters.rejected_movements += u64::from(is_rejected);
            }
            ViewMessage::Moved {
                session,
                entity,
                sequence,
                place,
            } => {
                if let Some(witness) = self.clients.witness(entity, client(session, from)) {
                    let moved = (sequence, place);
                    let believed = self.physics.client_moved(cx, &self.known, witness, (entity, moved));
                    self.counters.rejected_movements += u64::from(!believed);
                }
            }
            // Those are for proxies.
            ViewMessage::Frames { .. } | ViewMessage::Datagram { .. } => {}
        }
    }

    /// Clients are connected to bases.
    fn to_client(&mut self, _cx: &mut OwnerContext, _status: ClientCallStatus) {}

    fn publish(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        self.note(cx, recorded);
    }

    fn tick(&mut self, cx: &mut OwnerContext) {
        if self.clients.is_view_due(cx.now().mono) {
            self.clients.begin_views(cx, &self.known, cx.waiting() <= BACKLOG);
        }
        if self.controllers.tick_in_progress().is_some() {
            // The rest of the tick is a separate input, as is each notification before it.
            if self.controllers.notify_next(cx, &self.known) {
                return;
            }
        } else if !self.known.sampling.begin(cx.now()) || self.controllers.begin_tick(cx, &self.known) {
            return;
        }
        self.known.sampling.sample(cx);
        self.leave_gone(cx);
        // Before a hand-over: the next holder does not know where the clients that drive entities have them.
        self.physics.place_displaced(cx);
        self.hand_over(cx);
        // What this input has recorded must be among the recent events before any receiver is sent up to its history
        // number.
        let recorded = cx.take_recorded();
        self.note(cx, &recorded);
        let known = &mut self.known;
        let may_show = known.territory.is_known() && cx.waiting() <= BACKLOG;
        self.clients.update_interest(cx, known);
        if may_show {
            self.ghost_sender.update_receivers(cx, &known.territory, &known.ghosts);
            self.ghost_sender.send_events(cx, &known.recent_events);
            self.ghost_sender.send_positions(cx, &known.sampling);
            self.ghost_sender
                .send_lists(cx, &known.territory, known.sampling.local_tick());
            known.spaces.exchange(cx, &known.territory, known.sampling.local_tick());
            self.clients.show_all(cx, known);
            self.clients.search(cx, known);
        }
        known.end_tick(cx);
        cx.clear_trail();
    }

    fn deadline(&self) -> Option<Mono> {
        let tick = self.controllers.tick_in_progress().unwrap_or(self.known.sampling.due());
        Some(self.clients.view_due().map_or(tick, |due| due.min(tick)))
    }

    fn ticks(&self) -> Tick {
        self.known.sampling.tick()
    }

    fn around(&self) -> &dyn Around {
        &self.known
    }

    fn map(&self) -> Option<&SpaceMap> {
        self.known.territory.map()
    }

    fn survey(&self, cx: &OwnerContext) -> Option<Survey> {
        Some(survey::take(cx, &self.known.territory, &self.clients))
    }

    fn overview(&self, cx: &OwnerContext, asked: &OverviewRequest) -> Option<Overview> {
        Some(overview::take(cx, &self.clients, asked))
    }
}

/// Whether an entity came here by a teleport from another space.
fn is_teleport_arrival(owner: OwnerId, body: &Body) -> bool {
    matches!(body, Body::Onloaded { number, image, .. } if teleport_origin(image, owner, *number).is_some())
}
