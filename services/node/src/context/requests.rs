//! Requests of behaviour to its owner, for its own entity or another one.

use annals_def::Value;
use annals_event::{Audience, Call, Image};
use annals_ids::{Address, EntityId, OwnerId, Part};

use super::{Context, Denied, global::check_key, measure};
use crate::output::Request;

impl Context<'_> {
    /// Requests something that only the owner can do. It is executed after the present call; if it is then impossible,
    /// [`request_denied`](crate::Behaviour::request_denied) is called.
    ///
    /// A cell part may request the end of another one that is a ghost here, or has left: the request is forwarded as a
    /// call (rules C1 to C6), after all earlier calls from this part to that one. If there is no such cell part any
    /// more, [`calls_lost`](crate::Behaviour::calls_lost) is called.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.request(Request::Destroy { entity: monster.entity })?;
    /// # Ok(()) });
    /// # let player = scene.player;
    /// # scene.realm.until("the monster has ended", |realm| realm.seen(player, "Monster").is_empty());
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] or [`Denied::CellOnly`] if only the other part can make the request; [`Denied::Elsewhere`]
    /// if the entity that it names is real elsewhere or unknown; [`Denied::Place`] if a coordinate is not finite;
    /// [`Denied::GlobalKey`] for a key; [`Denied::NoBasePart`] or
    /// [`Denied::NotPersistent`] if the entity cannot be stored; [`Denied::Fragment`] of a service; [`Denied::ClientKept`] if an entity would
    /// give its client to itself.
    pub fn request(&mut self, request: Request) -> Result<(), Denied> {
        if let Request::Destroy { entity } | Request::DestroyCell { entity } = request
            && let Some(home) = self.forwards_to(entity)
        {
            self.cx.needs(0)?;
            let (from, to) = (self.address(), Address::Cell(entity));
            self.cx.call(from, to, home, Call::DestroyCell);
            return Ok(());
        }
        self.check_request(&request)?;
        self.cx.request(self.entity, request);
        Ok(())
    }

    /// The home of a cell part to which this cell part sends requests by call: a ghost, or one that is real here while
    /// calls to it are in flight.
    fn forwards_to(&self, entity: EntityId) -> Option<OwnerId> {
        if self.part() == Part::Base || entity == self.entity {
            return None;
        }
        match self.cx.image(entity) {
            Some(image) => (!self.cx.is_settled(self.address(), Address::Cell(entity))).then_some(image.home),
            None => Some(self.around.ghost(self.cx.schema(), entity)?.home),
        }
    }

    fn check_request(&self, request: &Request) -> Result<(), Denied> {
        let (what, part) = about(request);
        match (part, self.part()) {
            (Some(Part::Base), Part::Cell) => return Err(Denied::BaseOnly { what }),
            (Some(Part::Cell), Part::Base) => return Err(Denied::CellOnly { what }),
            _ => {}
        }
        let fixed = match request {
            Request::Destroy { entity } => Some(*entity),
            Request::GiveClient { to, .. } => Some(to.entity),
            _ => None,
        };
        if let Some(entity) = fixed.filter(|entity| entity.fragment().is_some()) {
            return Err(Denied::Fragment { entity, what });
        }
        let given_here = match request {
            Request::GiveClient { to, .. } if to.home == self.cx.owner() => Some(to.entity),
            _ => None,
        };
        for entity in std::iter::once(request.entity()).chain(given_here) {
            if self.cx.image(entity).is_none() {
                return Err(Denied::Elsewhere { entity, what });
            }
        }
        match request {
            Request::CreateCell { place, .. } | Request::OpenSpace { place, .. } if !place.is_sound() => {
                Err(Denied::Place)
            }
            Request::CreateCellNear { offset, .. } if !offset.is_finite() => Err(Denied::Place),
            Request::CreateCellInNewSpace {
                position, direction, ..
            } if !(position.is_finite() && direction.is_finite()) => Err(Denied::Place),
            Request::InvokeFor {
                entity, method, args, ..
            } => self.check_invocation(*entity, method, args),
            Request::Register { key, .. } | Request::Deregister { key, .. } => {
                check_key(key)?;
                self.cx.needs(key.len())
            }
            Request::GiveClient { from, to } if *from == to.entity => Err(Denied::ClientKept {
                from: *from,
                to: to.entity,
                why: "the entity already has a client".to_owned(),
            }),
            Request::Store { entity } => self.check_store(*entity),
            _ => Ok(()),
        }
    }

    fn check_store(&self, entity: EntityId) -> Result<(), Denied> {
        let is_based = |image: &Image| image.cell().is_some_and(|cell| cell.based);
        if !self.cx.image(entity).is_some_and(is_based) {
            return Err(Denied::NoBasePart { entity });
        }
        match self.cx.entity_type(entity) {
            Some(found) if !found.persistent => Err(Denied::NotPersistent {
                entity_type: found.name.clone(),
            }),
            _ => self.cx.needs(0),
        }
    }
}

impl Context<'_> {
    /// Calls a client method of another entity on the client of this cell part alone (`clientEntity(id)`). It reaches
    /// the client among the other events of that entity, in their order and at most once, as long as the client sees
    /// it. If the client does not see the entity at the moment, the call is dropped, and counted by the cell.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.invoke_in_view(monster.entity, "onGrowl", Vec::new())?;
    /// // The same, by generated code:
    /// monster::Clients::in_view(own.context, monster.entity).on_growl()?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.realm.received(scene.player, scene.monster.entity, "onGrowl").len(), 2);
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Elsewhere`] or [`Denied::UnknownHere`] if the entity is not known
    /// here; [`Denied::Unknown`], [`Denied::Arguments`] or [`Denied::Mismatch`] if it has no such client method with
    /// such arguments.
    pub fn invoke_in_view(&mut self, entity: EntityId, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        if entity == self.entity {
            return self.invoke(Audience::Own, method, args);
        }
        let (viewer, method) = (self.entity, method.to_owned());
        self.request(Request::InvokeFor {
            viewer,
            entity,
            method,
            args,
        })
    }

    /// Checks a call of a client method of an entity that is known here.
    fn check_invocation(&self, entity: EntityId, method: &str, args: &[Value]) -> Result<(), Denied> {
        let entity_type = match self.cx.image(entity) {
            Some(_) => self.cx.entity_type(entity),
            None => self
                .around
                .ghost(self.cx.schema(), entity)
                .map(|ghost| ghost.entity_type),
        };
        let entity_type = entity_type.ok_or(Denied::UnknownHere { entity })?;
        let found = entity_type.client_method_named(method).ok_or_else(|| Denied::Unknown {
            entity_type: entity_type.name.clone(),
            what: format!("client method {method}"),
        })?;
        self.cx.needs(measure(entity_type, found, &found.args, args)?)
    }
}

/// The request's name in denials, and the part that alone can make it.
fn about(request: &Request) -> (&'static str, Option<Part>) {
    match request {
        Request::CreateCell { .. } | Request::CreateCellNear { .. } | Request::CreateCellInNewSpace { .. } => {
            ("create a cell part", Some(Part::Base))
        }
        Request::DestroyCell { .. } => ("end its cell part", None),
        Request::Destroy { .. } => ("end", None),
        Request::GiveClient { .. } => ("give or take a client", Some(Part::Base)),
        Request::CloseClient { .. } => ("close the connection of its client", Some(Part::Base)),
        Request::Teleport { .. } => ("teleport", Some(Part::Cell)),
        Request::InvokeFor { .. } => ("call its client", Some(Part::Cell)),
        Request::Register { .. } | Request::Deregister { .. } => ("register globally", Some(Part::Base)),
        Request::OpenSpace { .. } => ("open a space", None),
        Request::Store { .. } => ("store itself from its cell part", Some(Part::Cell)),
    }
}
