//! The cell's role: dispatches messages, calls and ticks to the modules of this crate.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use annals_def::Schema;
use annals_event::{Body, Call, Event, OwnerState, Subject};
use annals_ids::{Address, EntityId, OwnerId, OwnerKind, Part, SpaceId, Tick};
use annals_node::{Around, Caller, ClientNews, Denied, OwnerContext, Request, Role, time::Mono};
use annals_space::Interest;
use annals_wire::{
    bus::{GhostMessage, Message, Shown, SpaceMessage, ViewMessage},
    load::Survey,
};

use crate::{
    budget::Budget,
    controllers::Controllers,
    ghost_receiver::{Ghost, GhostReceiver, Hearing, Lack, Moment},
    ghost_sender::GhostSender,
    handover::Handover,
    history::PropertyHistory,
    history::RecentEvents,
    input::{CellInput, Counters},
    physics::Physics,
    sampling::{SECOND, Sampling},
    spaces::Spaces,
    spatial_query::SpatialIndex,
    teleport::is_put,
    territory::Territory,
    witness::{Witness, client},
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
    pub(crate) territory: Territory,
    pub(crate) sampling: Sampling,
    pub(crate) ghosts: GhostReceiver,
    pub(crate) ghost_sender: GhostSender,
    pub(crate) handover: Handover,
    pub(crate) interest: Interest,
    pub(crate) witnesses: BTreeMap<EntityId, Witness>,
    pub(crate) recent_events: RecentEvents,
    pub(crate) property_history: PropertyHistory,
    /// Maximum rate at which a client is sent data, bits per second.
    pub(crate) downstream: Option<NonZeroU32>,
    pub(crate) controllers: Controllers,
    pub(crate) spaces: Spaces,
    pub(crate) spatial_index: RefCell<SpatialIndex>,
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
        let witnesses = state.entities.iter().filter_map(|(entity, image)| {
            let place = image.cell().map(|cell| cell.place);
            Some((*entity, Witness::new(image.client?, Budget::new(None), now, place)))
        });
        Self {
            territory: Territory::unknown(state.owner),
            sampling: Sampling::new(state.tick, now),
            ghosts: GhostReceiver::default(),
            ghost_sender: GhostSender::default(),
            handover: Handover::default(),
            interest: Interest::default(),
            witnesses: witnesses.collect(),
            recent_events: RecentEvents::default(),
            property_history: PropertyHistory::default(),
            downstream: None,
            controllers: Controllers::take_over(state, now),
            spaces: Spaces::default(),
            spatial_index: RefCell::default(),
            physics: Physics::take_over(state),
            closing: false,
            counters: Counters::default(),
        }
    }

    /// Limits what each client is sent to so many bits per second.
    #[must_use]
    pub fn with_downstream(mut self, bits: NonZeroU32) -> Self {
        self.downstream = Some(bits);
        let witnesses = self.witnesses.values_mut();
        witnesses.for_each(|witness| witness.limit(Budget::new(self.downstream)));
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
        &self.ghosts
    }

    /// The entities that have a ghost on another owner.
    pub fn ghosts_on(&self, owner: OwnerId) -> impl Iterator<Item = EntityId> {
        self.ghost_sender.on(owner)
    }

    /// Number of clients whose entities are real here.
    #[must_use]
    pub fn witnesses(&self) -> usize {
        self.witnesses.len()
    }

    pub(crate) fn moment(&self, cx: &OwnerContext) -> Moment {
        Moment {
            now: cx.now().mono,
            beat: self.sampling.beat() + 1,
        }
    }

    fn lacks(cx: &mut OwnerContext, from: OwnerId, lacks: impl IntoIterator<Item = Lack>) {
        for (entity, have) in lacks {
            cx.tell(from, Message::Ghost(GhostMessage::Ask { entity, have }));
        }
    }

    /// Records property changes of a ghost.
    fn note_shown(&mut self, schema: &Schema, entity: EntityId, events: &[Shown]) {
        let Some(type_id) = self.ghosts.get(entity).map(Ghost::type_id) else {
            return;
        };
        for shown in events {
            if let Shown::Event(event) = shown {
                self.property_history.note(schema, (entity, type_id), event);
            }
        }
    }

    /// Records what was logged, and sends the parts that do not wait for the tick.
    fn note(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        self.recent_events.note(recorded);
        self.note_spaces(cx, recorded);
        let mut seen = BTreeSet::new();
        for event in recorded {
            let Subject::Entity(entity, Part::Cell) = event.subject else {
                continue;
            };
            self.controllers.note(cx, entity, &event.body);
            self.physics.note(entity, &event.body);
            match event.body {
                Body::CellCreated(_) | Body::Onloaded { .. } | Body::Returned { .. } => {
                    self.ghosts.remove(entity);
                    if let Some(image) = cx.image(entity) {
                        self.property_history.begin_with(cx.schema(), entity, image);
                    }
                    self.settle_witness(cx, entity);
                    if is_put_by(cx.owner(), &event.body) {
                        self.witnesses.get_mut(&entity).into_iter().for_each(Witness::put_here);
                    }
                }
                Body::ClientSet(_) | Body::Destroyed | Body::Offloaded { .. } => self.settle_witness(cx, entity),
                _ => {}
            }
            if event.history.is_some() {
                if let Some(image) = cx.image(entity) {
                    self.property_history.note(cx.schema(), (entity, image.type_id), event);
                }
                seen.insert(entity);
            }
        }
        for entity in seen {
            self.show_own(cx, entity);
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
                if map.version > self.territory.version() {
                    self.handover.redrawn(cx.now().mono);
                }
                let before = self.territory.own_spaces();
                if self.territory.redraw(map) {
                    self.ghost_sender
                        .may_be_on(cx.now().mono, self.territory.space_peers().iter().copied());
                    self.witnesses.values_mut().for_each(Witness::ask_again);
                }
                self.learn_spaces(cx, &before);
            }
            CellInput::Create {
                type_id,
                place,
                properties,
            } => {
                let around = self.spatial_query();
                if self.closing || cx.create_cell_only(type_id, place, properties, &around).is_err() {
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
            (Address::Owner(_), Call::Placed(at)) => self.placed(cx, caller, at),
            // From its own base part, or from any cell part whose behaviour requests it.
            (Address::Cell(entity), Call::DestroyCell) if from.entity().is_some() => self.destroy(cx, entity),
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
            Request::OpenSpace { entity, place } => self.ask_to_open(cx, *entity, place),
            Request::CreateCell { .. } | Request::GiveClient { .. } | Request::CloseClient { .. } => {
                Err(Denied::BaseOnly { what: "request it" })
            }
        };
        if let Err(why) = done {
            self.counters.denied += 1;
            cx.deny(by, &self.spatial_query(), &request, &why);
        }
    }

    fn ghost(&mut self, cx: &mut OwnerContext, from: OwnerId, message: GhostMessage) {
        let at = self.moment(cx);
        let schema = std::sync::Arc::clone(cx.schema());
        let behaviour = std::sync::Arc::clone(cx.behaviour());
        let hearing = Hearing {
            at,
            schema: &schema,
            behaviour: behaviour.as_ref(),
        };
        match message {
            GhostMessage::Image { entity, image } => {
                let (type_id, newest) = (image.type_id, image.history);
                if cx.image(entity).is_none() && self.ghosts.take_image(hearing, from, entity, *image) {
                    cx.heard_of(entity, from);
                    self.property_history.begin(&schema, (entity, type_id), newest);
                }
            }
            GhostMessage::Events { entity, after, events } => {
                if cx.image(entity).is_none() {
                    self.note_shown(&schema, entity, &events);
                    let lack = self.ghosts.take_events(hearing, from, (entity, after), events);
                    if self.ghosts.get(entity).is_some_and(|ghost| ghost.holder() == from) {
                        cx.heard_of(entity, from);
                    }
                    Self::lacks(cx, from, lack);
                }
            }
            GhostMessage::Moves(moves) => self.ghosts.take_moves(at, from, &moves),
            GhostMessage::Heads(heads) => {
                let own = |entity| is_own(cx, entity);
                let lacks = self.ghosts.take_heads(at, from, &heads, own);
                Self::lacks(cx, from, lacks);
            }
            GhostMessage::Ask { entity, have } => {
                self.ghost_sender.answer(cx, &self.recent_events, from, (entity, have));
            }
        }
    }

    fn space(&mut self, cx: &mut OwnerContext, from: OwnerId, space: SpaceId, message: SpaceMessage) {
        self.hear_of_space(cx, from, space, message);
    }

    fn view(&mut self, cx: &mut OwnerContext, from: OwnerId, message: ViewMessage) {
        match message {
            ViewMessage::Stamps {
                session,
                entity,
                view,
                known,
                movements,
            } => self.stamps(client(session, from), entity, (view, known), movements),
            ViewMessage::Heard {
                session,
                entity,
                view,
                heard,
            } => self.client_heard(client(session, from), entity, view, heard),
            ViewMessage::Moved {
                session,
                entity,
                sequence,
                place,
            } => self.client_moved(cx, client(session, from), entity, (sequence, place)),
            // Those are for proxies.
            ViewMessage::Frames { .. } | ViewMessage::Datagram { .. } => {}
        }
    }

    /// Clients are connected to bases.
    fn to_client(&mut self, _cx: &mut OwnerContext, _news: ClientNews) {}

    fn publish(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        self.note(cx, recorded);
    }

    fn tick(&mut self, cx: &mut OwnerContext) {
        let now = cx.now();
        if self.controllers.underway().is_some() {
            // The rest of the tick is a separate input, as is each notification before it.
            if self.tell_controllers(cx) {
                return;
            }
        } else if !self.sampling.begin(now) || self.run_controllers(cx) {
            return;
        }
        self.sampling.sample(cx);
        self.leave_gone(cx);
        self.hand_over(cx);
        // What this input has recorded must be among the recent events before any receiver is sent up to its history
        // number.
        let recorded = cx.take_recorded();
        self.note(cx, &recorded);
        let may_show = self.territory.is_known() && cx.waiting() <= BACKLOG;
        self.look(cx);
        if may_show {
            self.ghost_sender.settle(cx, &self.territory, &self.ghosts);
            self.ghost_sender.follow(cx, &self.recent_events);
            self.ghost_sender.locate(cx, &self.sampling);
            self.ghost_sender.name(cx, &self.territory, self.sampling.beat());
            self.exchange_spaces(cx);
            self.show_views(cx);
            self.search(cx);
        }
        self.recent_events.forget();
        if self.sampling.beat().is_multiple_of(SECOND) {
            let ghosts = &self.ghosts;
            self.property_history
                .forget(|entity| cx.image(entity).is_some() || ghosts.get(entity).is_some());
        }
        self.ghosts.age(now.mono, |entity| is_own(cx, entity));
        cx.clear_trail();
        self.ghosts.clear_trail();
        self.spatial_index.get_mut().forget();
    }

    fn deadline(&self) -> Option<Mono> {
        Some(self.controllers.underway().unwrap_or(self.sampling.due()))
    }

    fn ticks(&self) -> Tick {
        self.sampling.tick()
    }

    fn around(&self) -> impl Around {
        self.spatial_query()
    }

    fn survey(&self, cx: &OwnerContext) -> Option<Survey> {
        Some(self.take_survey(cx))
    }
}

/// Whether an entity came here by a teleport from another space.
fn is_put_by(owner: OwnerId, body: &Body) -> bool {
    matches!(body, Body::Onloaded { number, image, .. } if is_put(image, owner, *number).is_some())
}

/// Whether an entity is real here, or leaving.
fn is_own(cx: &OwnerContext, entity: EntityId) -> bool {
    let mut leaving = cx.state().departing.values();
    cx.image(entity).is_some() || leaving.any(|(leaving, _)| *leaving == entity)
}
