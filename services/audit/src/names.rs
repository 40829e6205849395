//! Describes events in words, with the names of a world's definitions.

mod global_data;
mod ledger;
pub mod space_data;

use std::{collections::BTreeMap, fmt::Write};

use annals_def::{Change, DataType, Edit, EntityType, Method, Property, Schema, Value};
use annals_event::{
    Adoption, Audience, Batch, Body, Call, ControllerEvent, Driver, Event, GivenOutcome, MovementControl, Outcome,
    OwnerState, Place, SightChange, Subject, Task, types_of,
};
use annals_evidence::Terms;
use annals_ids::{Address, CallNumber, EntityId, Hash, MemberId, OwnerId, Part, TypeId};

/// Names known for the world of a log.
#[derive(Debug, Default)]
pub struct Names {
    /// All definitions that the world has had, by fingerprint.
    schemas: BTreeMap<Hash, Schema>,
    /// The type of each entity, under each of the definitions in which it was met.
    types: BTreeMap<EntityId, BTreeMap<Hash, TypeId>>,
}

/// Names and texts under one of a world's definitions.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    names: &'a Names,
    under: Hash,
}

impl Names {
    /// Names of a world with these definitions.
    pub fn new(schemas: impl IntoIterator<Item = Schema>) -> Self {
        let by_fingerprint = |schema: Schema| (schema.fingerprint(), schema);
        Self {
            schemas: schemas.into_iter().map(by_fingerprint).collect(),
            types: BTreeMap::new(),
        }
    }

    /// Names for data written under these definitions.
    pub fn under(&self, schema: Hash) -> Words<'_> {
        Words {
            names: self,
            under: schema,
        }
    }

    /// Whether the type of an entity is known.
    pub fn knows(&self, entity: EntityId) -> bool {
        self.types.contains_key(&entity)
    }

    /// Learns the types of all entities of a state.
    pub fn learn_state(&mut self, state: &OwnerState) {
        for (entity, type_id) in types_of(state) {
            self.types.entry(entity).or_default().insert(state.schema, type_id);
        }
    }

    /// Learns the types in a batch.
    pub fn learn(&mut self, batch: &Batch) {
        for event in &batch.events {
            self.learn_event(batch.header.schema, event);
        }
    }

    /// Learns the type in an event that was written under these definitions.
    pub fn learn_event(&mut self, schema: Hash, event: &Event) {
        if let Some((entity, type_id)) = created(event) {
            self.types.entry(entity).or_default().insert(schema, type_id);
        }
    }
}

/// The entity and type that an event names.
fn created(event: &Event) -> Option<(EntityId, TypeId)> {
    match (&event.body, event.subject) {
        (Body::BaseCreated(creation), Subject::Entity(entity, _)) => Some((entity, creation.type_id)),
        (Body::CellCreated(creation), _) => Some((creation.entity, creation.type_id)),
        (Body::Onloaded { image, .. }, Subject::Entity(entity, _)) => Some((entity, image.type_id)),
        (Body::Called { call, .. }, _) => match call {
            Call::CreateCell(creation) => Some((creation.entity, creation.type_id)),
            Call::Onload { entity, image } => Some((*entity, image.type_id)),
            Call::CellEnded { entity, type_id, .. } => Some((*entity, *type_id)),
            _ => None,
        },
        _ => None,
    }
}

fn sighted(change: &SightChange) -> String {
    match change {
        SightChange::Area(None) => "its client sees as far as its space says".to_owned(),
        SightChange::Area(Some(area)) => {
            let (radius, hysteresis) = (area.radius, area.hysteresis);
            format!("its client sees {radius:.1} m far, and {hysteresis:.1} m farther who is in view")
        }
        SightChange::Added(entity) => format!("its client sees entity {entity} wherever it is"),
        SightChange::Removed(entity) => format!("its client sees entity {entity} no more than others"),
    }
}

impl Words<'_> {
    /// The names of kinds and slots in the definitions.
    pub fn terms(&self) -> Terms<'_> {
        let schema = self.names.schemas.get(&self.under);
        schema.map_or_else(Terms::default, |schema| Terms::of(schema.ledger_names()))
    }

    /// The part whose state an event changes, in words.
    pub fn subject(&self, subject: Subject) -> String {
        match subject {
            Subject::Owner => "owner".to_owned(),
            Subject::Entity(entity, part) => {
                let name = self.entity_type(entity).map_or("entity", |found| found.name.as_str());
                format!("{name} {entity} {part}")
            }
        }
    }

    /// An event in words.
    pub fn event(&self, event: &Event) -> String {
        let entity_type = match event.subject {
            Subject::Entity(entity, _) => self.entity_type(entity),
            Subject::Owner => None,
        };
        match &event.body {
            Body::BaseCreated(creation) if creation.database.0 == 0 => "created".to_owned(),
            Body::BaseCreated(creation) => format!(
                "created from entity {} of the database, check-out {}",
                creation.database, creation.checkout
            ),
            Body::CellCreated(creation) => format!("created at {}", place(&creation.place)),
            Body::Changed { member, change } => changed(entity_type, *member, change.change()),
            Body::Invoked { method, args, audience } => {
                let found = entity_type.and_then(|found| found.client_methods.get(usize::from(method.0)));
                let audience = match audience {
                    Audience::Own => "its own client".to_owned(),
                    Audience::Others => "the other clients".to_owned(),
                    Audience::All => "all clients".to_owned(),
                    Audience::Of(viewer) => {
                        format!("the client of {}", self.subject(Subject::Entity(*viewer, Part::Cell)))
                    }
                };
                format!("{} on {audience}", invocation(found, *method, args))
            }
            Body::Replied {
                to,
                number,
                method,
                outcome,
            } => {
                let found = match event.subject {
                    Subject::Entity(_, part) => entity_type.and_then(|found| found.method_of(part, *method)),
                    Subject::Owner => None,
                };
                let name = found.map_or_else(|| format!("method {method}"), |found| found.name.clone());
                format!("answers call {number} of session {to}, {name}: {}", answer(outcome))
            }
            Body::Moved(at) => format!("at {}", place(at)),
            Body::Called { to, number, call, .. } => {
                format!("calls {} ({number}): {}", self.address(*to), self.call(*to, call))
            }
            Body::SpaceData { space, entry } => format!("space {space}: {}", space_data::entry(entry)),
            Body::GlobalData { scope, entry } => global_data::entry(*scope, entry),
            Body::Stored { database } => format!("stored as entity {database} of the database"),
            Body::Ordered { number, order } => format!("orders ({number}): {}", self.terms().request(order)),
            Body::Booked(update) => format!("receives from the ledger: {}", ledger::update(update, self.terms())),
            Body::Restated { member } => {
                let found = entity_type.and_then(|found| found.property(*member));
                let view = found.and_then(|property| Some((&property.name, property.account?)));
                view.map_or_else(
                    || format!("property {member}: as the ledger says now"),
                    |(name, account)| format!("{name}: as the ledger says now ({account})"),
                )
            }
            Body::Entered { notice, entry } => {
                format!("takes notice {notice}: {}", ledger::entry(entry.as_deref()))
            }
            Body::Adopted(adoption) => adopted(adoption),
            body => self.link(body),
        }
    }

    /// An end of a link, in words.
    pub fn address(&self, address: Address) -> String {
        match address.entity() {
            Some((entity, part)) => self.subject(Subject::Entity(entity, part)),
            None => address.to_string(),
        }
    }

    /// Events that concern only calls, clients, timers, controllers and hand-over.
    fn link(&self, body: &Body) -> String {
        match body {
            Body::Confirmed { to, upto, lost: false } => format!("{} took calls up to {upto}", self.address(*to)),
            Body::Confirmed { to, upto, lost: true } => {
                format!("{} no longer exists; calls up to {upto} are lost", self.address(*to))
            }
            Body::Awaits { to, number, .. } => format!("awaits the reply to call {number} of {}", self.address(*to)),
            Body::CallsSkipped { from, upto } => {
                format!("waits no longer for calls up to {upto} of {}", self.address(*from))
            }
            Body::CallsRenumbered { generation } => {
                format!(
                    "numbers its calls above {}: its log was cut at a hole",
                    CallNumber::floor(*generation)
                )
            }
            Body::Resumed { to, number } => format!("awaits call {number} of {} no longer", self.address(*to)),
            Body::TimerSet { timer, at } => format!("timer {timer} set for {} ms", at.due),
            Body::TimerGone { timer } => format!("timer {timer} gone"),
            Body::Controlled { controller, what } => match what {
                ControllerEvent::Set(set) => format!("controller {controller} set: {}", task(&set.task)),
                ControllerEvent::Advanced { leg, pace } => {
                    format!("controller {controller} goes to place {leg} of its path at {pace:.1} m/s")
                }
                ControllerEvent::Gone => format!("controller {controller} gone"),
                ControllerEvent::Caught(who) => format!("entity {who} is in trap {controller}"),
                ControllerEvent::Released(who) => format!("entity {who} has left trap {controller}"),
            },
            Body::ControlChanged(movement_control) => {
                let driver = match movement_control.driver {
                    Driver::Client => "its client".to_owned(),
                    Driver::Server => "the server".to_owned(),
                    Driver::ClientOf(entity) => format!("the client of entity {entity}"),
                };
                let (top, top_y) = (movement_control.top_speed, movement_control.top_speed_y);
                format!("goes where {driver} says, at most {top:.1} m/s and {top_y:.1} m/s up and down (0: no limit)")
            }
            Body::Sighted(change) => sighted(change),
            Body::Admitted { session, .. } => {
                format!("its client came in, in session {session}; who it is and from where is sealed")
            }
            Body::ClientSet(Some(client)) => format!("has client session {} of owner {}", client.session, client.proxy),
            Body::ClientSet(None) => "has no client".to_owned(),
            Body::Placed(Some(owner)) => format!("its cell part is at owner {owner}"),
            Body::Placed(None) => "its cell part has ended".to_owned(),
            Body::CellEnding => "ends, and its state returns to its base part".to_owned(),
            Body::CellReturned { .. } => "the state of its last cell part has returned".to_owned(),
            Body::Offloaded { to, number } => format!("handed over to owner {to} in call {number}"),
            Body::Departed { to, number } => format!("arrived at owner {to}, handed over in call {number}"),
            Body::Returned { to, number } => format!("refused by owner {to}, handed over in call {number}"),
            Body::Onloaded { from, number, .. } => format!("taken over from owner {from} in call {number}"),
            Body::Refused { from, number } => format!("not taken over from owner {from} in call {number}"),
            other => other.name().to_owned(),
        }
    }

    fn call(&self, to: Address, call: &Call) -> String {
        match call {
            Call::Method { args, .. } if to == Address::Owner(OwnerId::OUTSIDE) => outbound(args),
            Call::Method { args, .. } if to == Address::Owner(OwnerId::DOWNLOADS) => download(args),
            Call::Method { method, args, .. } => {
                let entity_type = to
                    .entity()
                    .and_then(|(entity, part)| Some((self.entity_type(entity)?, part)));
                let methods = entity_type.map(|(found, part)| match part {
                    Part::Base => &found.base_methods,
                    Part::Cell => &found.cell_methods,
                });
                let found = methods.and_then(|methods| methods.get(usize::from(method.0)));
                invocation(found, *method, args)
            }
            Call::Exposed { message } => format!("an exposed method in {} bytes", message.len()),
            Call::Reply { of, outcome } => format!("reply to call {of}: {}", answer(outcome)),
            Call::CreateCell(creation) => {
                let cell = Subject::Entity(creation.entity, Part::Cell);
                format!("create {} at {}", self.subject(cell), place(&creation.place))
            }
            Call::DestroyCell => "end".to_owned(),
            Call::Locate => "report its place".to_owned(),
            Call::OpenSpace(space) => format!("open space {space} again"),
            Call::Placed(Some(owner)) => format!("the cell part is at owner {owner}"),
            Call::Placed(None) => "the cell part has ended".to_owned(),
            Call::Witness(Some(client)) => format!("serve client session {}", client.session),
            Call::Witness(None) => "serve no client".to_owned(),
            Call::Onload { entity, .. } => format!("take over {}", self.subject(Subject::Entity(*entity, Part::Cell))),
            Call::Arrived { of } => format!("what came in call {of} is real here"),
            Call::Ledger { to, update } => format!(
                "the ledger's update for {}: {}",
                self.subject(Subject::Entity(*to, Part::Base)),
                ledger::update(update, self.terms())
            ),
            Call::InvokeFor { method, args } => {
                let entity_type = to.entity().and_then(|(entity, _)| self.entity_type(entity));
                let found = entity_type.and_then(|found| found.client_methods.get(usize::from(method.0)));
                format!("{} on the caller's client", invocation(found, *method, args))
            }
            Call::CreateBase(wanted) => format!(
                "create an entity of type {} for {}",
                wanted.type_id,
                self.subject(Subject::Entity(wanted.by, Part::Base))
            ),
            Call::Created { by, created, .. } => {
                let by = self.subject(Subject::Entity(*by, Part::Base));
                match created {
                    Ok((entity, _)) => format!("entity {entity} is created for {by}"),
                    Err(why) => format!("no entity is created for {by}: {why}"),
                }
            }
            Call::Store => "store the entity".to_owned(),
            Call::GiveClient(_) | Call::ClientTaken { .. } => self.given(call),
            Call::Refused { of, reason } => format!("what came in call {of} is refused: {reason}"),
            Call::CellEnded { entity, .. } => {
                let base = self.subject(Subject::Entity(*entity, Part::Base));
                format!("the cell part of {base} has ended, and all its calls are taken")
            }
            Call::Register { .. } | Call::Registered { .. } | Call::Deregister { .. } => self.registration(call),
        }
    }

    /// A call that gives a client away, or its answer.
    fn given(&self, call: &Call) -> String {
        match call {
            Call::GiveClient(given) => format!(
                "take the client of session {} from {}, for {}",
                given.session,
                self.subject(Subject::Entity(given.from, Part::Base)),
                self.subject(Subject::Entity(given.to.entity, Part::Base))
            ),
            Call::ClientTaken {
                from,
                to,
                session,
                outcome,
            } => {
                let from = self.subject(Subject::Entity(*from, Part::Base));
                let to = self.subject(Subject::Entity(to.entity, Part::Base));
                match outcome {
                    GivenOutcome::Taken { .. } => format!("{to} has the client of session {session} from {from}"),
                    GivenOutcome::InUse => {
                        format!("{to} keeps the client that it has: session {session} of {from} ends")
                    }
                    GivenOutcome::Refused(why) => format!("{to} does not take the client of {from}: {why}"),
                }
            }
            _ => unreachable!("invariant: the call is about a client that is given away"),
        }
    }

    /// A call about a global base.
    fn registration(&self, call: &Call) -> String {
        let base = |entity: EntityId| self.subject(Subject::Entity(entity, Part::Base));
        match call {
            Call::Register { by, key, .. } => format!("register {} as global base {key:?}", base(*by)),
            Call::Registered { by, outcome, .. } => format!("{} is {}", base(*by), global_data::registration(outcome)),
            Call::Deregister { entity, key } => format!("{} is global base {key:?} no longer", base(*entity)),
            _ => unreachable!("invariant: the call is about a global base"),
        }
    }

    fn entity_type(&self, entity: EntityId) -> Option<&EntityType> {
        let schemas = &self.names.schemas;
        let here = schemas.get(&self.under)?;
        if entity.fragment().is_some() {
            return here.fragment_with_id(entity);
        }
        let known = self.names.types.get(&entity)?;
        if let Some(type_id) = known.get(&self.under) {
            return here.entity_type(*type_id);
        }
        // It is known only under other definitions: use its name there.
        let (schema, type_id) = known.first_key_value()?;
        here.type_named(&schemas.get(schema)?.entity_type(*type_id)?.name)
    }
}

/// The entities that an event mentions.
pub fn mentioned(event: &Event) -> impl Iterator<Item = EntityId> {
    let subject = match event.subject {
        Subject::Entity(entity, _) => Some(entity),
        Subject::Owner => None,
    };
    let other = match &event.body {
        Body::Called { to, .. } => to.entity().map(|(entity, _)| entity),
        Body::ControlChanged(MovementControl {
            driver: Driver::ClientOf(entity),
            ..
        }) => Some(*entity),
        _ => None,
    };
    subject.into_iter().chain(other)
}

/// A change in the usual notation: `level = 5`, `marks[2] = 7`, `items[0:2] = [5]`.
fn changed(entity_type: Option<&EntityType>, member: MemberId, change: &Change) -> String {
    let place = property(entity_type, member, &change.path.0);
    let found = entity_type.and_then(|found| found.property(member));
    match &change.edit {
        Edit::Set(value) if let Some(found) = found => format!("{place} = {}", held(found, value)),
        Edit::Set(value) => format!("{place} = {value}"),
        Edit::Splice { at, removed, inserted } => {
            let end = u64::from(*at) + u64::from(*removed);
            format!("{place}[{at}:{end}] = [{}]", list(inserted))
        }
    }
}

/// The value of a property, or that it is sealed: personal data is not shown to auditors.
#[must_use]
pub fn held(property: &Property, value: &Value) -> String {
    match value {
        Value::Bytes(sealed) if property.personal.is_some() => match sealed.is_empty() {
            true => "never set".to_owned(),
            false => format!("sealed, {} bytes", sealed.len()),
        },
        _ => value.to_string(),
    }
}

/// A property, or the place within it that the path leads to: `appearance.hair[2]`.
fn property(entity_type: Option<&EntityType>, member: MemberId, path: &[u32]) -> String {
    let property = entity_type.and_then(|found| found.property(member));
    let mut text = property.map_or_else(|| format!("property {member}"), |found| found.name.clone());
    let mut data_type = property.map(|found| &found.data_type);
    for &step in path {
        let field = match data_type {
            Some(DataType::FixedDict(dict)) => dict.fields.get(step as usize),
            _ => None,
        };
        data_type = match (field, data_type) {
            (Some(field), _) => Some(&field.data_type),
            (None, Some(DataType::Array(sequence))) => Some(&sequence.of),
            _ => None,
        };
        // Writing to a string cannot fail.
        let _ = match field {
            Some(field) => write!(text, ".{}", field.name),
            None => write!(text, "[{step}]"),
        };
    }
    text
}

fn invocation(method: Option<&Method>, member: MemberId, args: &[Value]) -> String {
    let name = method.map_or_else(|| format!("method {member}"), |method| method.name.clone());
    format!("{name}({})", list(args))
}

/// An outbound call: a service, and a body.
fn outbound(args: &[Value]) -> String {
    match args {
        [Value::Unicode(service), Value::Bytes(body)] => format!("service {service:?} with {} bytes", body.len()),
        _ => "a service".to_owned(),
    }
}

/// A download: its description, and a file or content.
fn download(args: &[Value]) -> String {
    match args {
        [Value::Unicode(about), Value::Unicode(file), Value::Bytes(content)] => match file.is_empty() {
            true => format!("download {about:?} of {} bytes", content.len()),
            false => format!("download {about:?} of the file {file:?}"),
        },
        _ => "a download".to_owned(),
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// The outcome of a call, in words.
fn answer(outcome: &Outcome) -> String {
    match outcome {
        Ok(values) => format!("({})", list(values)),
        Err(why) => why.to_string(),
    }
}

/// The task of a controller, in words.
fn task(task: &Task) -> String {
    match task {
        Task::Follow { path, gait, .. } => format!("goes along a path of {} at {:.1} m/s", path.len(), gait.speed),
        Task::Chase { target, within, gait } => {
            format!(
                "goes to within {within:.1} m of entity {target} at {:.1} m/s",
                gait.speed
            )
        }
        Task::Turn { yaw, rate } => format!("turns to {yaw:.2} at {rate:.2} rad/s"),
        Task::Watch { range, .. } => format!("watches {range:.1} m around"),
        Task::Ride { vehicle, .. } => format!("rides on entity {vehicle}"),
    }
}

fn place(place: &Place) -> String {
    let at = place.position;
    format!("({:.1}, {:.1}, {:.1}) in space {}", at.x, at.y, at.z, place.space)
}

fn adopted(adoption: &Adoption) -> String {
    let Adoption {
        operator,
        reason,
        adopted,
        events,
        discarded,
        leaves,
        ..
    } = adoption;
    format!(
        "{operator} had the store adopt {adopted} batches with {events} events that it did not know, and discard {discarded}, \
         behind leaf {leaves}: {reason:?}"
    )
}
