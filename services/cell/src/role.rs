//! The cell's part in the core contract: one place from which everything it hears goes where it belongs.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use annals_def::Schema;
use annals_event::{Body, Call, Event, OwnerState, Subject};
use annals_ids::{Address, EntityId, OwnerId, OwnerKind, Part, SpaceId, Tick};
use annals_node::{Around, Caller, ClientNews, Denied, Desk, Request, Role, time::Mono};
use annals_space::Interest;
use annals_wire::{
    bus::{GhostMessage, Message, Shown, SpaceMessage, ViewMessage},
    load::Survey,
};

use crate::{
    budget::Budget,
    controllers::Controllers,
    gazetteer::Gazetteer,
    ghosts::{Ghost, Ghosts, Hearing, Lack, Moment},
    handover::Handover,
    haunts::Haunts,
    input::{CellInput, Counters},
    news::News,
    physics::Physics,
    sampling::{SECOND, Sampling},
    spaces::Spaces,
    stamps::Stamps,
    teleport::is_put,
    territory::Territory,
    witness::{Witness, client},
};

/// Outputs at the gate beyond which others are shown nothing new until some have left. Nothing is lost by that: they are
/// told later what happened meanwhile.
const BACKLOG: usize = 50_000;
const _: () = assert!(BACKLOG * 2 <= annals_node::gate::WAITING_LIMIT);

/// A cell owner's role.
///
/// Driving it: make it with [`CellRole::take_over`] from the state with which [`annals_node::Owner::take_over`] begins, and
/// tell it the map. [`annals_node::Owner`] does the rest; a tick is due at its deadline.
#[derive(Debug)]
pub struct CellRole {
    pub(crate) territory: Territory,
    pub(crate) sampling: Sampling,
    pub(crate) ghosts: Ghosts,
    pub(crate) haunts: Haunts,
    pub(crate) handover: Handover,
    pub(crate) interest: Interest,
    pub(crate) witnesses: BTreeMap<EntityId, Witness>,
    pub(crate) news: News,
    pub(crate) stamps: Stamps,
    /// What a client is shown at most, bits per second.
    pub(crate) downstream: Option<NonZeroU32>,
    pub(crate) controllers: Controllers,
    pub(crate) spaces: Spaces,
    pub(crate) gazetteer: RefCell<Gazetteer>,
    pub(crate) physics: Physics,
    /// Whether no entity is taken in any more.
    pub(crate) closing: bool,
    pub(crate) counters: Counters,
}

impl CellRole {
    /// The role of an owner in this state. It hands nothing over, haunts nobody and shows nothing before it knows the map.
    #[must_use]
    pub fn take_over(state: &OwnerState, now: Mono) -> Self {
        let witnesses = state.entities.iter().filter_map(|(entity, image)| {
            let place = image.cell().map(|cell| cell.place);
            Some((*entity, Witness::new(image.client?, Budget::new(None), now, place)))
        });
        Self {
            territory: Territory::unknown(state.owner),
            sampling: Sampling::new(state.tick, now),
            ghosts: Ghosts::default(),
            haunts: Haunts::default(),
            handover: Handover::default(),
            interest: Interest::default(),
            witnesses: witnesses.collect(),
            news: News::default(),
            stamps: Stamps::default(),
            downstream: None,
            controllers: Controllers::take_over(state, now),
            spaces: Spaces::default(),
            gazetteer: RefCell::default(),
            physics: Physics::take_over(state),
            closing: false,
            counters: Counters::default(),
        }
    }

    /// The same role, that shows each client at most so many bits per second.
    #[must_use]
    pub fn with_downstream(mut self, bits: NonZeroU32) -> Self {
        self.downstream = Some(bits);
        let witnesses = self.witnesses.values_mut();
        witnesses.for_each(|witness| witness.limit(Budget::new(self.downstream)));
        self
    }

    /// What happened here since the take-over.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The ghosts that are here.
    #[must_use]
    pub fn ghosts(&self) -> &Ghosts {
        &self.ghosts
    }

    /// The entities that have a ghost on another owner.
    pub fn haunts(&self, owner: OwnerId) -> impl Iterator<Item = EntityId> {
        self.haunts.on(owner)
    }

    /// How many clients are shown this cell.
    #[must_use]
    pub fn witnesses(&self) -> usize {
        self.witnesses.len()
    }

    pub(crate) fn moment(&self, desk: &Desk) -> Moment {
        Moment {
            now: desk.now().mono,
            beat: self.sampling.beat() + 1,
        }
    }

    fn lacks(desk: &mut Desk, from: OwnerId, lacks: impl IntoIterator<Item = Lack>) {
        for (entity, have) in lacks {
            desk.tell(from, Message::Ghost(GhostMessage::Ask { entity, have }));
        }
    }

    /// Takes note of what has happened to a ghost.
    fn note_shown(&mut self, schema: &Schema, entity: EntityId, events: &[Shown]) {
        let Some(type_id) = self.ghosts.get(entity).map(Ghost::type_id) else {
            return;
        };
        for shown in events {
            if let Shown::Event(event) = shown {
                self.stamps.note(schema, (entity, type_id), event);
            }
        }
    }

    /// Takes note of what has been recorded, and tells those who are told at once.
    fn note(&mut self, desk: &mut Desk, recorded: &[Event]) {
        self.news.note(recorded);
        self.note_spaces(desk, recorded);
        let mut seen = BTreeSet::new();
        for event in recorded {
            let Subject::Entity(entity, Part::Cell) = event.subject else {
                continue;
            };
            self.controllers.note(desk, entity, &event.body);
            self.physics.note(entity, &event.body);
            match event.body {
                Body::CellCreated(_) | Body::Onloaded { .. } | Body::Returned { .. } => {
                    self.ghosts.remove(entity);
                    if let Some(image) = desk.image(entity) {
                        self.stamps.begin_with(desk.schema(), entity, image);
                    }
                    self.settle_witness(desk, entity);
                    if is_put_by(desk.owner(), &event.body) {
                        self.witnesses.get_mut(&entity).into_iter().for_each(Witness::put_here);
                    }
                }
                Body::ClientSet(_) | Body::Destroyed | Body::Offloaded { .. } => self.settle_witness(desk, entity),
                _ => {}
            }
            if event.history.is_some() {
                if let Some(image) = desk.image(entity) {
                    self.stamps.note(desk.schema(), (entity, image.type_id), event);
                }
                seen.insert(entity);
            }
        }
        for entity in seen {
            self.show_own(desk, entity);
        }
    }
}

impl Role for CellRole {
    type Input = CellInput;

    const KIND: OwnerKind = OwnerKind::Cell;

    fn is_vital(input: &CellInput) -> bool {
        matches!(input, CellInput::Map(_) | CellInput::Close)
    }

    fn handle(&mut self, desk: &mut Desk, input: CellInput) {
        match input {
            CellInput::Map(map) => {
                if map.version > self.territory.version() {
                    self.handover.redrawn(desk.now().mono);
                }
                let before = self.territory.own_spaces();
                if self.territory.redraw(map) {
                    self.haunts
                        .may_be_on(desk.now().mono, self.territory.fellows().iter().copied());
                    self.witnesses.values_mut().for_each(Witness::ask_again);
                }
                self.learn_spaces(desk, &before);
            }
            CellInput::Create {
                type_id,
                place,
                properties,
            } => {
                let around = self.surroundings();
                if self.closing || desk.create_cell_only(type_id, place, properties, &around).is_err() {
                    self.counters.denied += 1;
                }
            }
            CellInput::Close => self.closing = true,
        }
    }

    fn take(&mut self, desk: &mut Desk, caller: &Caller, call: Call) {
        let (from, to) = (caller.link.from, caller.link.to);
        match (to, call) {
            (Address::Owner(_), Call::CreateCell(creation)) => self.create(desk, *creation),
            (Address::Owner(_), Call::Onload { entity, image }) => self.onload(desk, caller, entity, image),
            (Address::Owner(_), Call::Arrived { of }) => self.arrived(desk, caller, of),
            (Address::Owner(_), Call::Refused { of, reason }) => self.refused(desk, caller, of, reason),
            (Address::Owner(_), Call::OpenSpace(space)) => self.open_space(desk, space),
            (Address::Owner(_), Call::Placed(at)) => self.placed(desk, caller, at),
            // From its own base part, or from any cell part whose behaviour wants it to end.
            (Address::Cell(entity), Call::DestroyCell) if from.entity().is_some() => self.destroy(desk, entity),
            (Address::Cell(entity), Call::Witness(client)) if from == Address::Base(entity) => {
                self.attach(desk, entity, client);
            }
            _ => {}
        }
    }

    fn request(&mut self, desk: &mut Desk, by: EntityId, request: Request) {
        let done = match &request {
            Request::Destroy { entity } | Request::DestroyCell { entity } => {
                self.destroy(desk, *entity);
                Ok(())
            }
            Request::Teleport { entity, place } => self.teleport(desk, *entity, *place),
            Request::OpenSpace { entity, place } => self.ask_to_open(desk, *entity, place),
            Request::CreateCell { .. } | Request::GiveClient { .. } | Request::CloseClient { .. } => {
                Err(Denied::BaseOnly { what: "ask for it" })
            }
        };
        if let Err(why) = done {
            self.counters.denied += 1;
            desk.deny(by, &self.surroundings(), &request, &why);
        }
    }

    fn ghost(&mut self, desk: &mut Desk, from: OwnerId, message: GhostMessage) {
        let at = self.moment(desk);
        let schema = std::sync::Arc::clone(desk.schema());
        let behaviour = std::sync::Arc::clone(desk.behaviour());
        let hearing = Hearing {
            at,
            schema: &schema,
            behaviour: behaviour.as_ref(),
        };
        match message {
            GhostMessage::Image { entity, image } => {
                let (type_id, newest) = (image.type_id, image.history);
                if desk.image(entity).is_none() && self.ghosts.take_image(hearing, from, entity, *image) {
                    desk.heard_of(entity, from);
                    self.stamps.begin(&schema, (entity, type_id), newest);
                }
            }
            GhostMessage::Events { entity, after, events } => {
                if desk.image(entity).is_none() {
                    self.note_shown(&schema, entity, &events);
                    let lack = self.ghosts.take_events(hearing, from, (entity, after), events);
                    if self.ghosts.get(entity).is_some_and(|ghost| ghost.holder() == from) {
                        desk.heard_of(entity, from);
                    }
                    Self::lacks(desk, from, lack);
                }
            }
            GhostMessage::Moves(moves) => self.ghosts.take_moves(at, from, &moves),
            GhostMessage::Heads(heads) => {
                let own = |entity| is_own(desk, entity);
                let lacks = self.ghosts.take_heads(at, from, &heads, own);
                Self::lacks(desk, from, lacks);
            }
            GhostMessage::Ask { entity, have } => self.haunts.answer(desk, &self.news, from, (entity, have)),
        }
    }

    fn space(&mut self, desk: &mut Desk, from: OwnerId, space: SpaceId, message: SpaceMessage) {
        self.hear_of_space(desk, from, space, message);
    }

    fn view(&mut self, desk: &mut Desk, from: OwnerId, message: ViewMessage) {
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
            } => self.client_moved(desk, client(session, from), entity, (sequence, place)),
            // Those are for proxies.
            ViewMessage::Frames { .. } | ViewMessage::Datagram { .. } => {}
        }
    }

    /// Clients are connected to bases.
    fn to_client(&mut self, _desk: &mut Desk, _news: ClientNews) {}

    fn show(&mut self, desk: &mut Desk, recorded: &[Event]) {
        self.note(desk, recorded);
    }

    fn tick(&mut self, desk: &mut Desk) {
        let now = desk.now();
        if self.controllers.underway().is_some() {
            // The rest of the tick is an input of its own, as is each thing that is told before it.
            if self.tell_controllers(desk) {
                return;
            }
        } else if !self.sampling.begin(now) || self.run_controllers(desk) {
            return;
        }
        self.sampling.sample(desk);
        self.leave_gone(desk);
        self.hand_over(desk);
        // Whatever of this input is recorded by now must be among the news before anybody is told up to its number.
        let recorded = desk.take_recorded();
        self.note(desk, &recorded);
        let may_show = self.territory.is_known() && desk.waiting() <= BACKLOG;
        self.look(desk);
        if may_show {
            self.haunts.settle(desk, &self.territory, &self.ghosts);
            self.haunts.follow(desk, &self.news);
            self.haunts.locate(desk, &self.sampling);
            self.haunts.name(desk, &self.territory, self.sampling.beat());
            self.exchange_spaces(desk);
            self.show_views(desk);
            self.search(desk);
        }
        self.news.forget();
        if self.sampling.beat().is_multiple_of(SECOND) {
            let ghosts = &self.ghosts;
            self.stamps
                .forget(|entity| desk.image(entity).is_some() || ghosts.get(entity).is_some());
        }
        self.ghosts.age(now.mono, |entity| is_own(desk, entity));
        desk.clear_trail();
        self.ghosts.clear_trail();
        self.gazetteer.get_mut().forget();
    }

    fn deadline(&self) -> Option<Mono> {
        Some(self.controllers.underway().unwrap_or(self.sampling.due()))
    }

    fn ticks(&self) -> Tick {
        self.sampling.tick()
    }

    fn around(&self) -> impl Around {
        self.surroundings()
    }

    fn survey(&self, desk: &Desk) -> Option<Survey> {
        Some(self.take_survey(desk))
    }
}

/// Whether an entity came here from another space.
fn is_put_by(owner: OwnerId, body: &Body) -> bool {
    matches!(body, Body::Onloaded { number, image, .. } if is_put(image, owner, *number).is_some())
}

/// Whether an entity is real here, or on its way from here.
fn is_own(desk: &Desk, entity: EntityId) -> bool {
    let mut leaving = desk.state().departing.values();
    desk.image(entity).is_some() || leaving.any(|(leaving, _)| *leaving == entity)
}
