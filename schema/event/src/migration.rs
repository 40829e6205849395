//! Conversion of an owner's state when the definitions of its realm change (rules M1 to M4 of `docs/protocol.md`).
//!
//! A reader of a log folds each batch on a state of the batch's own definitions. Where the log changes definitions,
//! with an `Open`, the state is converted first. The conversion is deterministic: it depends on the state and the
//! [`Migration`] alone.
//!
//! History events and history numbers are not carried over: older views restart with the whole state (rule V3).

use std::collections::{BTreeMap, VecDeque};

use annals_def::{MethodKind, MigrationError, Plan, Value};
use annals_ids::{Address, EntityId, Hash, Mailbox, MemberId, Part, TypeId};

use crate::{
    latest::{
        batch::Header,
        call::{Call, CallError, CellCreation, Outcome, Registration, RequestedBase},
        event::Subject,
        former_cell::FormerCell,
        given_client::GivenClient,
        global_data::GlobalEntry,
        image::{BaseImage, Image, Links, PartImage, Sent},
    },
    state::{Impossible, OwnerState},
};

/// The types, under the old definitions, of the receivers of calls under way when the definitions changed; `None` for
/// an entity that no longer exists. A call does not contain the type, and its method number means nothing without it.
pub type Receivers = BTreeMap<EntityId, Option<TypeId>>;

/// One change of a realm's definitions.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The fingerprint of the old definitions.
    pub from: Hash,
    /// The fingerprint of the new ones.
    pub to: Hash,
    /// How values and calls are converted.
    pub plan: Plan,
    /// The receivers of calls under way.
    pub receivers: Receivers,
}

/// The address whose links are converted: its entity type, if it is an entity, and the kind of its methods.
type End = (Option<TypeId>, Option<MethodKind>);

impl Migration {
    /// Converts a state.
    ///
    /// # Errors
    /// If part of it has no counterpart, or it is not of the old definitions; the state is then unchanged.
    pub fn convert(&self, state: &mut OwnerState) -> Result<(), Impossible> {
        if state.schema != self.from {
            let why = format!(
                "it is under definitions {}, and {} were migrated",
                state.schema, self.from
            );
            return Err(state.impossible(Subject::Owner, "migration", why));
        }
        let failed = |subject, error: MigrationError| state.impossible(subject, "migration", error.to_string());
        let kind = state.part().map(kind_of);
        let (mut entities, mut estates) = (BTreeMap::new(), BTreeMap::new());
        for (entity, image) in &state.entities {
            if self.plan.ends_fragments(image.type_id) {
                let links = self.links(&image.links, (None, kind));
                let links = links.map_err(|error| failed(Subject::Entity(*entity, part_of(image)), error))?;
                estates.insert(*entity, links.into_estate());
                continue;
            }
            let converted = self.image(image);
            let subject = || Subject::Entity(*entity, part_of(image));
            entities.insert(*entity, converted.map_err(|error| failed(subject(), error))?);
        }
        let mut departing = BTreeMap::new();
        for (call, (entity, image)) in &state.departing {
            let converted = self.image(image);
            let subject = || Subject::Entity(*entity, part_of(image));
            departing.insert(*call, (*entity, converted.map_err(|error| failed(subject(), error))?));
        }
        for (entity, links) in &state.estates {
            let converted = self.links(links, (None, kind));
            estates.insert(*entity, converted.map_err(|error| failed(Subject::Owner, error))?);
        }
        let mut ending = BTreeMap::new();
        for (entity, image) in &state.ending {
            let converted = self.image(image);
            let subject = || Subject::Entity(*entity, Part::Cell);
            ending.insert(*entity, converted.map_err(|error| failed(subject(), error))?);
        }
        let links = self.links(&state.links, (None, None));
        let links = links.map_err(|error| failed(Subject::Owner, error))?;
        (state.entities, state.departing, state.estates, state.links) = (entities, departing, estates, links);
        state.ending = ending;
        for data in state.globals.values_mut() {
            *data = data.converted(|value| self.plan.convert_untyped(value));
        }
        state.schema = self.to;
        Ok(())
    }

    /// Converts one part of an entity.
    ///
    /// # Errors
    /// If part of it has no counterpart.
    pub fn image(&self, image: &Image) -> Result<Image, MigrationError> {
        let part = part_of(image);
        let (type_id, properties) = self.plan.convert_held(image.type_id, part, &image.properties)?;
        Ok(Image {
            type_id,
            home: image.home,
            properties,
            history: image.history,
            recent: VecDeque::new(),
            timers: image.timers.clone(),
            last_timer: image.last_timer,
            links: self.links(&image.links, (Some(image.type_id), Some(kind_of(part))))?,
            client: image.client,
            part: match &image.part {
                PartImage::Base(base) => PartImage::Base(BaseImage {
                    cell_properties: match &base.cell_properties {
                        none if none.is_empty() => BTreeMap::new(),
                        kept => self.plan.convert_given(image.type_id, Part::Cell, kept)?.1,
                    },
                    ..base.clone()
                }),
                PartImage::Cell(cell) => PartImage::Cell(cell.clone()),
            },
        })
    }

    fn links(&self, links: &Links, end: End) -> Result<Links, MigrationError> {
        let mut sent = BTreeMap::new();
        for (to, calls) in &links.sent {
            let mut unconfirmed = BTreeMap::new();
            for (number, call) in &calls.unconfirmed {
                unconfirmed.insert(*number, self.call(call, *to, end)?);
            }
            let (home, last) = (calls.home, calls.last);
            sent.insert(
                *to,
                Sent {
                    home,
                    last,
                    unconfirmed,
                },
            );
        }
        Ok(Links {
            sent,
            taken: links.taken.clone(),
            awaiting: links.awaiting.clone(),
            generation: links.generation,
        })
    }

    fn call(&self, call: &Call, to: Address, end: End) -> Result<Call, MigrationError> {
        Ok(match call {
            Call::Method {
                method,
                args,
                wants_reply,
            } => {
                let (method, args) = self.method(to, None, (*method, args))?;
                Call::Method {
                    method,
                    args,
                    wants_reply: *wants_reply,
                }
            }
            Call::InvokeFor { method, args } => {
                let (method, args) = self.method(to, Some(MethodKind::Client), (*method, args))?;
                Call::InvokeFor { method, args }
            }
            Call::Reply { of, outcome } => Call::Reply {
                of: *of,
                outcome: self.answer(outcome, end),
            },
            Call::CreateCell(creation) => Call::CreateCell(Box::new(self.creation(creation)?)),
            Call::CreateBase(wanted) => Call::CreateBase(Box::new(self.requested(wanted)?)),
            Call::Created {
                by,
                of,
                created: Ok((entity, type_id)),
            } => Call::Created {
                by: *by,
                of: *of,
                created: Ok((*entity, self.type_of_base(*type_id)?)),
            },
            Call::Onload { entity, image } => Call::Onload {
                entity: *entity,
                image: Box::new(self.image(image)?),
            },
            other => self.owners_call(other)?,
        })
    }

    /// Converts a call about clients, global bases and cell parts that have ended, or one that has nothing to convert.
    fn owners_call(&self, call: &Call) -> Result<Call, MigrationError> {
        Ok(match call {
            Call::Register { by, of, key, type_id } => Call::Register {
                by: *by,
                of: *of,
                key: key.clone(),
                type_id: self.type_of_base(*type_id)?,
            },
            Call::CellEnded {
                entity,
                type_id,
                former,
                properties,
            } => self.ended((*entity, *type_id), former, properties)?,
            Call::Registered { by, of, outcome } => Call::Registered {
                by: *by,
                of: *of,
                outcome: self.registration(outcome),
            },
            Call::GiveClient(given) => Call::GiveClient(Box::new(GivenClient {
                to: self.receiver(given.to),
                ..(**given).clone()
            })),
            Call::ClientTaken {
                from,
                to,
                session,
                outcome,
            } => Call::ClientTaken {
                from: *from,
                to: self.receiver(*to),
                session: *session,
                outcome: outcome.clone(),
            },
            Call::Exposed { .. }
            | Call::DestroyCell
            | Call::Locate
            | Call::OpenSpace(_)
            | Call::Placed(_)
            | Call::Deregister { .. }
            | Call::Witness(_)
            | Call::Arrived { .. }
            | Call::Refused { .. }
            | Call::Created { .. }
            | Call::Store
            | Call::Ledger { .. } => call.clone(),
            Call::Method { .. }
            | Call::InvokeFor { .. }
            | Call::Reply { .. }
            | Call::CreateCell(_)
            | Call::CreateBase(_)
            | Call::Onload { .. } => unreachable!("invariant: these calls are converted before"),
        })
    }

    fn type_of_base(&self, type_id: TypeId) -> Result<TypeId, MigrationError> {
        let converted = self.plan.convert_given(type_id, Part::Base, &BTreeMap::new())?;
        Ok(converted.0)
    }

    fn ended(
        &self,
        (entity, type_id): (EntityId, TypeId),
        former: &FormerCell,
        properties: &BTreeMap<MemberId, Value>,
    ) -> Result<Call, MigrationError> {
        let (type_id, properties) = self.plan.convert_held(type_id, Part::Cell, properties)?;
        Ok(Call::CellEnded {
            entity,
            type_id,
            former: Box::new(former.clone()),
            properties,
        })
    }

    /// Converts a call of a method of this kind, or else of the called part. A call to an entity that no longer exists, or
    /// does not from here on, is left as it is: it is never taken.
    fn method(
        &self,
        to: Address,
        kind: Option<MethodKind>,
        (method, args): (MemberId, &[Value]),
    ) -> Result<(MemberId, Vec<Value>), MigrationError> {
        let Some((entity, part)) = to.entity() else {
            return Ok((method, args.to_vec()));
        };
        let kind = kind.unwrap_or(kind_of(part));
        match self.receivers.get(&entity) {
            Some(Some(type_id)) if self.plan.ends_fragments(*type_id) => Ok((method, args.to_vec())),
            Some(Some(type_id)) => self.plan.convert_call(*type_id, kind, method, args),
            Some(None) => Ok((method, args.to_vec())),
            None if entity.fragment().is_some() => {
                let fragment = self.plan.old().fragment_with_id(entity).map(|found| found.id);
                match fragment.filter(|found| !self.plan.ends_fragments(*found)) {
                    Some(fragment) => self.plan.convert_call(fragment, kind, method, args),
                    None => Ok((method, args.to_vec())),
                }
            }
            None => {
                let converted = self.plan.convert_call_of_any(kind, method, args);
                converted.ok_or_else(|| MigrationError::UnknownReceiver {
                    to: to.to_string(),
                    method,
                })
            }
        }
    }

    /// Converts an answer under way. An answer whose conversion is unknown becomes an error for the waiting caller.
    fn answer(&self, outcome: &Outcome, (of, kind): End) -> Outcome {
        let values = outcome.as_ref().map_err(Clone::clone)?;
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let converted = kind.and_then(|kind| self.plan.convert_answer(of, kind, values));
        converted.ok_or_else(|| {
            CallError::Internal("the reply was written under definitions that the realm has dropped".to_owned())
        })
    }

    /// The mailbox to which a client was given. It is found by its entity: of a removed type, it stays as it is.
    fn receiver(&self, to: Mailbox) -> Mailbox {
        match self.plan.convert_untyped(&Value::Mailbox(Some(to))) {
            Value::Mailbox(Some(to)) => to,
            _ => to,
        }
    }

    fn registration(&self, outcome: &Registration) -> Registration {
        match outcome {
            Registration::Done(entry) => Registration::Done(GlobalEntry {
                value: entry.value.as_ref().map(|value| self.plan.convert_untyped(value)),
                ..entry.clone()
            }),
            Registration::Taken(by) => match self.plan.convert_untyped(&Value::Mailbox(Some(*by))) {
                Value::Mailbox(Some(by)) => Registration::Taken(by),
                _ => Registration::Refused("it is registered by an entity whose type was removed".to_owned()),
            },
            Registration::Refused(why) => Registration::Refused(why.clone()),
        }
    }

    fn requested(&self, wanted: &RequestedBase) -> Result<RequestedBase, MigrationError> {
        let given = wanted.properties.iter().cloned().collect();
        let (type_id, given) = self.plan.convert_given(wanted.type_id, Part::Base, &given)?;
        Ok(RequestedBase {
            type_id,
            properties: given.into_iter().collect(),
            ..wanted.clone()
        })
    }

    fn creation(&self, creation: &CellCreation) -> Result<CellCreation, MigrationError> {
        let properties = creation.properties.iter().cloned().collect();
        let (type_id, properties) = self.plan.convert_held(creation.type_id, Part::Cell, &properties)?;
        Ok(CellCreation {
            type_id,
            properties: properties.into_iter().collect(),
            ..creation.clone()
        })
    }
}

impl OwnerState {
    /// Whether a batch changes to other definitions, as only an `Open` may: then this state must be converted before
    /// the batch can be folded.
    ///
    /// # Errors
    /// When the batch changes definitions and is not an `Open`.
    pub fn goes_over(&self, header: &Header) -> Result<bool, Impossible> {
        if self.tail.batch.0 == 0 || self.schema == header.schema {
            return Ok(false);
        }
        if header.opens {
            return Ok(true);
        }
        let why = "its definitions differ from those of the previous batch, and it opens no epoch";
        Err(self.impossible(Subject::Owner, "batch", why))
    }
}

/// All unconfirmed calls in a state, with their receivers.
pub fn calls_of(state: &OwnerState) -> impl Iterator<Item = (Address, &Call)> {
    let images = state
        .entities
        .values()
        .chain(state.departing.values().map(|(_, image)| image));
    let images = images.chain(state.ending.values());
    let links = images.map(|image| &image.links).chain(state.estates.values());
    let direct = links.chain([&state.links]).flat_map(calls_on);
    direct.flat_map(|(to, call)| {
        // A part under way to another owner has calls of its own.
        let carried = match call {
            Call::Onload { image, .. } => Some(&image.links),
            _ => None,
        };
        std::iter::once((to, call)).chain(carried.into_iter().flat_map(calls_on))
    })
}

/// The types of all entities that a state knows: those held here, in hand-over, or about to be created.
pub fn types_of(state: &OwnerState) -> impl Iterator<Item = (EntityId, TypeId)> {
    let real = state.entities.iter().map(|(entity, image)| (*entity, image.type_id));
    let departing = state.departing.values().map(|(entity, image)| (*entity, image.type_id));
    let called = calls_of(state).filter_map(|(_, call)| match call {
        Call::CreateCell(creation) => Some((creation.entity, creation.type_id)),
        Call::Onload { entity, image } => Some((*entity, image.type_id)),
        _ => None,
    });
    real.chain(departing).chain(called)
}

fn calls_on(links: &Links) -> impl Iterator<Item = (Address, &Call)> {
    let sent = links.sent.iter();
    sent.flat_map(|(to, sent)| sent.unconfirmed.values().map(|call| (*to, call)))
}

fn part_of(image: &Image) -> Part {
    match image.part {
        PartImage::Base(_) => Part::Base,
        PartImage::Cell(_) => Part::Cell,
    }
}

fn kind_of(part: Part) -> MethodKind {
    match part {
        Part::Base => MethodKind::Base,
        Part::Cell => MethodKind::Cell,
    }
}
