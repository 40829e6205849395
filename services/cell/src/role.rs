//! The cell's part in the core contract: one place from which everything it hears goes where it belongs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_event::{Body, Call, Event, OwnerState, Place, Subject};
use annals_ids::{Address, EntityId, OwnerId, Part, Tick};
use annals_node::{Caller, ClientNews, Desk, Request, Role, time::Mono};
use annals_space::{Interest, Sight, Spot};
use annals_wire::{
    SpaceMap,
    bus::{GhostMessage, Message, ViewMessage},
    client::ViewItem,
};

use crate::{
    ghosts::{Ghosts, Repair},
    handover::Refusals,
    haunts::Haunts,
    witness::{Scene, Witness, concerned, say},
};

/// Cells tick at 10 Hz.
pub const TICK: Duration = Duration::from_millis(100);

/// Every so many ticks the place of an entity that has moved goes into the log, and neighbours are told the newest history
/// numbers: once a second.
const TICKS_PER_SAMPLE: u64 = 10;

/// What only a cell is given.
#[derive(Clone, Debug)]
pub enum CellInput {
    /// The director has drawn the map anew.
    Map(SpaceMap),
}

/// A cell owner's role. Made with [`CellRole::take_over`] from the state with which [`annals_node::Owner::take_over`]
/// begins.
#[derive(Debug)]
pub struct CellRole {
    pub(crate) map: SpaceMap,
    pub(crate) ghosts: Ghosts,
    pub(crate) refusals: Refusals,
    haunts: Haunts,
    witnesses: BTreeMap<EntityId, Witness>,
    interest: Interest,
    /// Where each entity was at the last tick, ghosts included.
    before: BTreeMap<EntityId, Place>,
    ticks: Tick,
    next_tick: Mono,
}

impl CellRole {
    /// The role of an owner in this state.
    #[must_use]
    pub fn take_over(state: &OwnerState, now: Mono) -> Self {
        let mut role = Self {
            map: SpaceMap::default(),
            ghosts: Ghosts::default(),
            refusals: Refusals::new(),
            haunts: Haunts::default(),
            witnesses: BTreeMap::new(),
            interest: Interest::default(),
            before: BTreeMap::new(),
            ticks: state.tick,
            next_tick: now,
        };
        for (entity, image) in &state.entities {
            if let Some(client) = image.client {
                role.witnesses.insert(*entity, Witness::new(client));
                role.interest.observe(*entity);
            }
        }
        role
    }

    /// The ghosts, for inspection.
    #[must_use]
    pub fn ghosts(&self) -> &Ghosts {
        &self.ghosts
    }

    /// What an entity's witness has in view, itself not included, for inspection.
    #[must_use]
    pub fn in_view(&self, entity: EntityId) -> Option<&BTreeSet<EntityId>> {
        self.interest.view(entity)
    }

    /// Keeps witnesses in step with the clients of what is real here.
    fn follow_clients(&mut self, desk: &Desk, entities: &BTreeSet<EntityId>) {
        for entity in entities {
            let client = desk.image(*entity).and_then(|image| image.client);
            let served = self.witnesses.get(entity).map(Witness::client);
            if client == served {
                continue;
            }
            match client {
                Some(client) => {
                    self.witnesses.insert(*entity, Witness::new(client));
                    self.interest.observe(*entity);
                }
                None => {
                    self.witnesses.remove(entity);
                    self.interest.forget(*entity);
                }
            }
        }
    }

    /// Brings areas of interest up to date; what each witness has to say about it.
    fn look_around(&mut self, desk: &Desk) -> BTreeMap<EntityId, Vec<ViewItem>> {
        let real = desk.places().map(|(entity, place)| (entity, spot(place)));
        let ghosts = self.ghosts.iter().map(|(entity, ghost)| (entity, spot(ghost.place)));
        let spots: BTreeMap<EntityId, Spot> = ghosts.chain(real).collect();
        let map = &self.map;
        let changes = self.interest.update(&spots, |space| {
            let space = map.spaces.get(&space)?;
            Some(Sight {
                radius: space.aoi_radius,
                hysteresis: space.aoi_hysteresis,
            })
        });
        let mut by_observer: BTreeMap<EntityId, Vec<(EntityId, bool)>> = BTreeMap::new();
        for change in changes {
            by_observer
                .entry(change.observer)
                .or_default()
                .push((change.entity, change.enters));
        }
        let scene = Scene {
            desk,
            ghosts: &self.ghosts,
        };
        let witnesses = &mut self.witnesses;
        let said = by_observer.into_iter().filter_map(|(own, changes)| {
            let items = witnesses.get_mut(&own)?.change(&scene, own, &changes);
            Some((own, items))
        });
        said.collect()
    }

    /// Shows witnesses what happened to an entity, real or ghost.
    fn show_all(&mut self, desk: &mut Desk, entities: &BTreeSet<EntityId>) {
        let mut said: Vec<(EntityId, Vec<ViewItem>)> = Vec::new();
        let scene = Scene {
            desk,
            ghosts: &self.ghosts,
        };
        for (own, witness) in &mut self.witnesses {
            let items: Vec<ViewItem> = entities
                .iter()
                .flat_map(|entity| witness.follow(&scene, *own, *entity))
                .collect();
            if !items.is_empty() {
                said.push((*own, items));
            }
        }
        for (own, items) in said {
            self.speak(desk, own, items);
        }
    }

    fn speak(&mut self, desk: &mut Desk, own: EntityId, items: Vec<ViewItem>) {
        let Some(witness) = self.witnesses.get_mut(&own) else {
            return;
        };
        let client = witness.client();
        if let Some(message) = witness.show(self.ticks, desk.now().mono, items) {
            say(desk, client, message);
        }
    }

    /// Who has moved since the last tick, ghosts included.
    fn movers(&mut self, desk: &Desk) -> BTreeSet<EntityId> {
        let ghosts = self.ghosts.iter().map(|(entity, ghost)| (entity, ghost.place));
        let now: BTreeMap<EntityId, Place> = ghosts.chain(desk.places()).collect();
        let moved = now
            .iter()
            .filter(|(entity, place)| self.before.get(entity) != Some(place));
        let moved = moved.map(|(entity, _)| *entity).collect();
        self.before = now;
        moved
    }

    /// Logs where what has moved is, about once a second each; entities take turns.
    fn sample(&self, desk: &mut Desk) {
        let turn = self.ticks.0 % TICKS_PER_SAMPLE;
        let due: Vec<(EntityId, Place)> = desk
            .places()
            .filter(|(entity, place)| {
                let logged = desk
                    .image(*entity)
                    .and_then(|image| image.cell())
                    .map(|cell| cell.place);
                entity.0 % TICKS_PER_SAMPLE == turn && logged != Some(*place)
            })
            .collect();
        for (entity, place) in due {
            desk.record_for(entity, false, Body::Moved(place));
        }
    }

    fn tell_moves(&mut self, desk: &mut Desk, moved: &BTreeSet<EntityId>) {
        self.haunts.tell_moves(desk, moved);
        let owns: Vec<EntityId> = self.witnesses.keys().copied().collect();
        for own in owns {
            let Some(witness) = self.witnesses.get_mut(&own) else {
                continue;
            };
            let client = witness.client();
            let scene = Scene {
                desk,
                ghosts: &self.ghosts,
            };
            let datagrams = witness.moves(&scene, own, self.ticks, moved);
            let correction = desk.place(own).and_then(|place| witness.correct(own, place));
            for datagram in datagrams {
                desk.tell_volatile(own, client.proxy, Message::View(datagram));
            }
            if let Some(item) = correction {
                self.speak(desk, own, vec![item]);
            }
            let alive = self
                .witnesses
                .get_mut(&own)
                .and_then(|witness| witness.keep_alive(self.ticks, desk.now().mono));
            if let Some(message) = alive {
                say(desk, client, message);
            }
        }
    }
}

impl Role for CellRole {
    type Input = CellInput;

    const PART: Part = Part::Cell;

    fn is_vital(input: &CellInput) -> bool {
        matches!(input, CellInput::Map(_))
    }

    fn handle(&mut self, _desk: &mut Desk, input: CellInput) {
        let CellInput::Map(map) = input;
        if map.version > self.map.version {
            self.map = map;
        }
    }

    fn take(&mut self, desk: &mut Desk, caller: &Caller, call: Call) {
        let entity = caller.link.to.entity().map(|(entity, _)| entity);
        match (call, entity) {
            (Call::CreateCell(creation), None) => self.create(desk, creation),
            (Call::Onload { entity, image }, None) => self.take_entity(desk, caller, entity, image),
            (Call::Arrived { of }, None) => Self::arrived(desk, caller, of),
            (Call::Refused { of, .. }, None) => self.refused(desk, caller, of),
            (Call::Placed(at), None) => {
                if let Address::Cell(entity) = caller.link.from {
                    Self::placed(desk, entity, at);
                }
            }
            (Call::DestroyCell, Some(entity)) => self.destroy(desk, entity),
            (Call::Witness(client), Some(entity)) => Self::serve(desk, entity, client),
            // Nobody who knows the protocol calls this of a cell; it was taken and has no effect.
            _ => {}
        }
    }

    fn request(&mut self, desk: &mut Desk, request: Request) {
        match request {
            Request::Destroy { entity } | Request::DestroyCell { entity } => self.destroy(desk, entity),
            Request::Teleport { entity, place } => self.teleport(desk, entity, place),
            // The others are for bases.
            Request::CreateCell { .. } | Request::GiveClient { .. } | Request::CloseClient { .. } => {}
        }
    }

    fn ghost(&mut self, desk: &mut Desk, from: OwnerId, message: GhostMessage) {
        let mut changed = BTreeSet::new();
        let ask = |desk: &mut Desk, entity, repair| {
            if let Repair::Ask(have) = repair {
                desk.tell(from, Message::Ghost(GhostMessage::Ask { entity, have }));
            }
        };
        match message {
            GhostMessage::Image { entity, image } => {
                if desk.image(entity).is_none() && self.ghosts.take_image(from, entity, *image) {
                    changed.insert(entity);
                }
            }
            GhostMessage::Events { entity, after, events } => {
                if desk.image(entity).is_none() {
                    let (repair, news) = self.ghosts.take_events(from, entity, after, events);
                    ask(desk, entity, repair);
                    changed.extend(news.map(|_| entity));
                }
            }
            GhostMessage::Moves(moves) => moves.into_iter().for_each(|moved| self.ghosts.take_move(from, moved)),
            GhostMessage::Heads(heads) => {
                let (lacking, _) = self
                    .ghosts
                    .take_heads(from, &heads, |entity| desk.image(entity).is_some());
                lacking
                    .into_iter()
                    .for_each(|(entity, repair)| ask(desk, entity, repair));
            }
            GhostMessage::Ask { entity, have } => self.haunts.repair(desk, from, entity, have),
        }
        if !changed.is_empty() {
            self.show_all(desk, &changed);
        }
    }

    fn view(&mut self, desk: &mut Desk, _from: OwnerId, message: ViewMessage) {
        match message {
            ViewMessage::Stamps {
                session,
                entity,
                view,
                known,
            } => {
                let nothing = BTreeSet::new();
                let in_view = self.interest.view(entity).unwrap_or(&nothing);
                let Some(witness) = self.witnesses.get_mut(&entity) else {
                    return;
                };
                if witness.client().session != session {
                    return;
                }
                let client = witness.client();
                let scene = Scene {
                    desk,
                    ghosts: &self.ghosts,
                };
                if let Some(message) = witness.begin(&scene, (entity, view, self.ticks), in_view, &known) {
                    say(desk, client, message);
                }
            }
            ViewMessage::Moved {
                session,
                entity,
                sequence,
                place,
            } => {
                let Some(here) = desk.place(entity) else { return };
                let place = Place {
                    space: here.space,
                    ..place
                };
                let fits = place.position.is_finite() && place.direction.is_finite();
                let within = fits && self.map.owner_at(place.space, place.position).is_some();
                let Some(witness) = self.witnesses.get_mut(&entity) else {
                    return;
                };
                if within && witness.steer(session, sequence, place) {
                    desk.move_to(entity, place);
                }
            }
            // Those are for proxies.
            ViewMessage::Frames { .. } | ViewMessage::Datagram { .. } => {}
        }
    }

    /// A client reaches a cell through its proxy: the base tells it.
    fn to_client(&mut self, _desk: &mut Desk, _news: ClientNews) {}

    fn show(&mut self, desk: &mut Desk, recorded: &[Event]) {
        let mut touched = BTreeSet::new();
        for event in recorded {
            let Subject::Entity(entity, Part::Cell) = event.subject else {
                continue;
            };
            match &event.body {
                Body::Offloaded { .. } | Body::Destroyed => {
                    self.haunts.forget(entity);
                    touched.insert(entity);
                }
                Body::CellCreated(_) | Body::Onloaded { .. } | Body::Returned { .. } | Body::ClientSet(_) => {
                    touched.insert(entity);
                }
                _ => {}
            }
        }
        self.follow_clients(desk, &touched);
        self.haunts.tell(desk, recorded);
        self.show_all(desk, &concerned(recorded));
    }

    fn tick(&mut self, desk: &mut Desk) {
        let now = desk.now().mono;
        if now < self.next_tick {
            return;
        }
        // A tick that comes late is not made up for.
        self.next_tick = now.after(TICK);
        self.ticks = self.ticks.next();
        self.sample(desk);
        self.hand_over_strays(desk);
        self.haunts.follow(desk, &self.map);
        for (own, items) in self.look_around(desk) {
            if !items.is_empty() {
                self.speak(desk, own, items);
            }
        }
        let moved = self.movers(desk);
        self.tell_moves(desk, &moved);
        if self.ticks.0.is_multiple_of(TICKS_PER_SAMPLE) {
            self.haunts.name_heads(desk, &self.map);
        }
    }

    fn deadline(&self) -> Option<Mono> {
        Some(self.next_tick)
    }

    fn ticks(&self) -> Tick {
        self.ticks
    }
}

fn spot(place: Place) -> Spot {
    Spot {
        space: place.space,
        position: place.position,
    }
}
