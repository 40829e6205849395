//! A minimal base for cells: the home of entities, and the proxy of their clients.

use annals_def::Value;
use annals_event::{Body, Call, CellCreation, ClientLink, Event, FormerCell, Place, Subject};
use annals_ids::{Address, EntityId, MemberId, OwnerId, OwnerKind, Part, SessionId, Tick, TypeId};
use annals_node::{Caller, ClientCallStatus, ConnectionId, Output, OwnerContext, Request, Role, time::Mono};
use annals_wire::{
    SpaceMap,
    bus::{GhostMessage, Message, ViewMessage},
    client::{Known, Movements, ToClient, volatile::MovementAck},
};

/// Inputs of the home.
#[derive(Clone, Debug)]
pub(crate) enum HomeInput {
    /// Creates an entity with a base and a cell part.
    Create {
        type_id: TypeId,
        place: Place,
        session: Option<SessionId>,
    },
    /// Creates an entity without a base, on the cell that is responsible.
    CreateBaseless {
        entity: EntityId,
        creation: Box<CellCreation>,
    },
    /// Opens a space again, on behalf of an entity.
    Open(EntityId, Place),
    /// Gives an entity another client, or none.
    Attach(EntityId, Option<SessionId>),
    /// Ends the cell part.
    DestroyCell(EntityId),
    /// Calls a method of the cell part. `NOTE` is given the call's number.
    Call(EntityId, MemberId, Vec<Value>),
    /// From a client.
    Stamps {
        session: SessionId,
        entity: EntityId,
        view: u64,
        known: Known,
        movements: Movements,
    },
    /// From a client.
    MovementAck {
        session: SessionId,
        entity: EntityId,
        view: u64,
        ack: MovementAck,
    },
    /// From the client of an entity: it moved that or another one.
    Moved(EntityId, ViewMessage),
}

/// A home and proxy, as a role.
pub(crate) struct Home {
    pub(crate) map: SpaceMap,
    /// Entities whose cell part was reported gone.
    pub(crate) lost: Vec<EntityId>,
    /// Cell parts whose state returned.
    pub(crate) returned: Vec<(EntityId, FormerCell)>,
}

impl Home {
    fn create(&self, cx: &mut OwnerContext, type_id: TypeId, place: Place, session: Option<SessionId>) {
        let entity = cx
            .create_base(type_id, Vec::new(), annals_node::Stored::default())
            .expect("the type is known");
        let client = session.map(|session| ClientLink {
            session,
            proxy: cx.owner(),
        });
        if client.is_some() {
            cx.record_for(entity, false, Body::ClientSet(client));
        }
        let creation = CellCreation {
            entity,
            type_id,
            home: cx.owner(),
            based: true,
            place,
            properties: Vec::new(),
            client,
            former: None,
        };
        let to = self
            .map
            .owner_at(place.space, place.position)
            .expect("a cell is responsible");
        cx.call(
            Address::Base(entity),
            Address::Owner(to),
            to,
            Call::CreateCell(Box::new(creation)),
        );
        cx.record_for(entity, false, Body::Placed(Some(to)));
    }

    fn attach(cx: &mut OwnerContext, entity: EntityId, session: Option<SessionId>) {
        let proxy = cx.owner();
        let client = session.map(|session| ClientLink { session, proxy });
        cx.record_for(entity, false, Body::ClientSet(client));
        cx.call(
            Address::Base(entity),
            Address::Cell(entity),
            proxy,
            Call::Witness(client),
        );
    }

    fn call(cx: &mut OwnerContext, entity: EntityId, method: MemberId, mut args: Vec<Value>) {
        let (from, to) = (Address::Base(entity), Address::Cell(entity));
        let Some(image) = cx
            .image(entity)
            .filter(|image| image.base().is_some_and(|base| base.cell.is_some()))
        else {
            return;
        };
        if method == crate::game::NOTE {
            let number = image.links.sent.get(&to).map_or(1, |sent| sent.last.0 + 1);
            args = vec![Value::Int(i64::try_from(number).expect("there are few"))];
        }
        let wants_reply = false;
        let call = Call::Method {
            method,
            args,
            wants_reply,
        };
        cx.call(from, to, cx.owner(), call);
    }

    /// Creates an entity without a base, on the cell that is responsible.
    fn create_baseless(&self, cx: &mut OwnerContext, entity: EntityId, mut creation: Box<CellCreation>) {
        creation.entity = entity;
        let place = creation.place;
        let to = self
            .map
            .owner_at(place.space, place.position)
            .expect("a cell is responsible");
        let from = Address::Owner(cx.owner());
        cx.call(from, Address::Owner(to), to, Call::CreateCell(creation));
    }

    fn pass_on(cx: &mut OwnerContext, entity: EntityId, message: ViewMessage) {
        let Some(to) = Self::cell(cx, entity) else { return };
        let is_volatile = matches!(
            message,
            ViewMessage::Moved { .. } | ViewMessage::Drove { .. } | ViewMessage::MovementAck { .. }
        );
        if is_volatile {
            cx.send_volatile(entity, to, Message::View(message));
        } else {
            cx.send(to, Message::View(message));
        }
    }

    /// The owner of the cell part of a client's entity.
    fn cell(cx: &OwnerContext, entity: EntityId) -> Option<OwnerId> {
        cx.image(entity)?.base()?.cell
    }
}

impl Role for Home {
    type Input = HomeInput;

    const KIND: OwnerKind = OwnerKind::Base;

    fn handle(&mut self, cx: &mut OwnerContext, input: HomeInput) {
        match input {
            HomeInput::Create {
                type_id,
                place,
                session,
            } => self.create(cx, type_id, place, session),
            HomeInput::CreateBaseless { entity, creation } => self.create_baseless(cx, entity, creation),
            HomeInput::Open(entity, place) => {
                let to = self.map.owner_at(place.space, place.position);
                let to = to.expect("a cell is responsible");
                let call = Call::OpenSpace(place.space);
                cx.call(Address::Base(entity), Address::Owner(to), to, call);
            }
            HomeInput::Attach(entity, session) => Self::attach(cx, entity, session),
            HomeInput::DestroyCell(entity) => {
                cx.call(
                    Address::Base(entity),
                    Address::Cell(entity),
                    cx.owner(),
                    Call::DestroyCell,
                );
            }
            HomeInput::Call(entity, method, args) => Self::call(cx, entity, method, args),
            HomeInput::Stamps {
                session,
                entity,
                view,
                known,
                movements,
            } => {
                let stamps = ViewMessage::Stamps {
                    session,
                    entity,
                    view,
                    known,
                    movements,
                };
                Self::pass_on(cx, entity, stamps);
            }
            HomeInput::MovementAck {
                session,
                entity,
                view,
                ack,
            } => {
                let said = ViewMessage::MovementAck {
                    session,
                    entity,
                    view,
                    ack,
                };
                Self::pass_on(cx, entity, said);
            }
            HomeInput::Moved(entity, moved) => Self::pass_on(cx, entity, moved),
        }
    }

    fn handle_call(&mut self, cx: &mut OwnerContext, caller: &Caller, call: Call) {
        let (at, entity) = match (call, caller.link.from) {
            (Call::Placed(at), Address::Cell(entity)) => (at, entity),
            (Call::CellEnded { entity, former, .. }, Address::Owner(_)) => {
                return self.returned.push((entity, *former));
            }
            _ => return,
        };
        if at.is_none() {
            self.lost.push(entity);
        }
        if cx.image(entity).is_none() {
            cx.record(Subject::Entity(entity, Part::Cell), false, Body::Placed(at));
            return;
        }
        cx.record_for(entity, false, Body::Placed(at));
        let client = cx.image(entity).and_then(|image| image.client);
        if let (Some(client), Some(_)) = (client, at) {
            let mut bytes = Vec::new();
            ToClient::StampsWanted { source: Part::Cell }.write(&mut bytes);
            let connection = ConnectionId(client.session.0);
            cx.emit(Output::Frame { connection, bytes });
        }
    }

    fn request(&mut self, _cx: &mut OwnerContext, _by: EntityId, _request: Request) {}

    fn ghost(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _message: GhostMessage) {}

    fn view(&mut self, cx: &mut OwnerContext, from: OwnerId, message: ViewMessage) {
        let (ViewMessage::Frames { session, .. } | ViewMessage::Datagram { session, .. }) = message else {
            return;
        };
        let mut images = cx.state().entities.iter();
        let entity = images.find(|(_, image)| image.client.is_some_and(|client| client.session == session));
        let Some(entity) = entity.map(|(entity, _)| *entity) else {
            return;
        };
        if Self::cell(cx, entity) != Some(from) {
            return;
        }
        let connection = ConnectionId(session.0);
        match message {
            ViewMessage::Frames { frames, .. } => {
                for bytes in frames {
                    cx.emit(Output::Frame { connection, bytes });
                }
            }
            ViewMessage::Datagram { bytes, .. } => cx.emit_volatile(entity, Output::Datagram { connection, bytes }),
            _ => {}
        }
    }

    fn to_client(&mut self, _cx: &mut OwnerContext, _status: ClientCallStatus) {}

    fn publish(&mut self, _cx: &mut OwnerContext, _recorded: &[Event]) {}

    fn tick(&mut self, _cx: &mut OwnerContext) {}

    fn deadline(&self) -> Option<Mono> {
        None
    }

    fn ticks(&self) -> Tick {
        Tick(0)
    }
}
