//! Cell parts in a space that no other entity has claimed. A claim is a registration as a global base under a key of the
//! space: one owner grants all of them, and it ends with the entity.

use std::ops::RangeInclusive;

use annals_def::Value;
use annals_event::{
    Call, GlobalScope, Malformed, Place, Reader, Registration,
    latest::call::{put_place, put_properties, take_place, take_properties},
    put_number,
};
use annals_ids::{Address, EntityId, Hash, MemberId, SpaceId};
use annals_node::{Denied, Nowhere, OwnerContext, Request, SPACE_CLAIM, space_key};

use crate::{internal_waits::InternalWait, lifecycle::new_cell, role::BaseRole};

/// A cell part that waits for a space.
struct Claim {
    /// Where it is to be: in the space that is being claimed.
    place: Place,
    /// The spaces of which one is to be claimed.
    first: SpaceId,
    last: SpaceId,
    /// The definitions that number the properties.
    schema: Hash,
    properties: Vec<(MemberId, Value)>,
}

impl Claim {
    fn note(&self) -> Vec<u8> {
        let mut note = Vec::new();
        put_place(&mut note, &self.place);
        put_number(&mut note, self.first.0.into());
        put_number(&mut note, self.last.0.into());
        note.extend(self.schema.0);
        put_properties(&mut note, &self.properties);
        note
    }

    fn read(note: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(note);
        Ok(Self {
            place: take_place(&mut reader)?,
            first: SpaceId(reader.narrow("space")?),
            last: SpaceId(reader.narrow("space")?),
            schema: Hash(reader.array("fingerprint")?),
            properties: take_properties(&mut reader)?,
        })
    }

    /// The request of behaviour.
    fn request(&self, entity: EntityId) -> Request {
        Request::CreateCellInNewSpace {
            entity,
            spaces: self.first..=self.last,
            position: self.place.position,
            direction: self.place.direction,
            properties: self.properties.clone(),
        }
    }
}

impl BaseRole {
    /// Begins to claim a space for the cell part of an entity.
    ///
    /// # Errors
    /// When it has or waits for a cell part, can have none there, is no longer here, or no space is free.
    pub(crate) fn create_in_new_space(
        &mut self,
        cx: &mut OwnerContext,
        entity: EntityId,
        spaces: &RangeInclusive<SpaceId>,
        (place, properties): (Place, &[(MemberId, Value)]),
    ) -> Result<(), Denied> {
        new_cell(cx, entity, place, properties)?;
        let mut properties = properties.to_vec();
        properties.sort_by_key(|(member, _)| *member);
        let claim = Claim {
            place,
            first: *spaces.start(),
            last: *spaces.end(),
            schema: cx.schema().fingerprint(),
            properties,
        };
        self.claim(cx, entity, claim, *spaces.start())
    }

    /// Claims the lowest space from this number on that is free as far as is known here.
    fn claim(&self, cx: &mut OwnerContext, entity: EntityId, claim: Claim, from: SpaceId) -> Result<(), Denied> {
        let what = "create a cell part";
        let type_id = cx.image(entity).ok_or(Denied::Elsewhere { entity, what })?.type_id;
        let map = self.map.as_ref().ok_or(Denied::NoRegistry)?;
        let registry = map.bootstrap.ok_or(Denied::NoRegistry)?;
        let registered = cx.global_data(GlobalScope::Registry);
        let holder = |space: SpaceId| registered.and_then(|registered| registered.mailbox(&space_key(space)));
        // A space that the entity has is as good as a free one.
        let is_free = |space: &SpaceId| holder(*space).is_none_or(|holder| holder.entity == entity);
        let mut spaces = map.spaces.keys().copied();
        let free = spaces.find(|space| (from..=claim.last).contains(space) && is_free(space));
        let space = free.ok_or(Denied::NoFreeSpace {
            first: claim.first,
            last: claim.last,
        })?;
        let place = Place { space, ..claim.place };
        let note = Claim { place, ..claim }.note();
        cx.needs(note.len())?;
        InternalWait::SpaceClaimed.set_with(cx, entity, note);
        let call = Call::Register {
            by: entity,
            of: SPACE_CLAIM,
            key: space_key(space),
            type_id,
        };
        let (from, to) = (Address::Owner(cx.owner()), Address::Owner(registry));
        cx.call(from, to, registry, call);
        Ok(())
    }

    /// Takes the answer to a claim: creates the cell part in the space, or claims the next one.
    pub(crate) fn space_claimed(&mut self, cx: &mut OwnerContext, entity: EntityId, outcome: Registration) {
        let note = cx
            .image(entity)
            .and_then(|image| InternalWait::SpaceClaimed.note(image));
        let claim = note.and_then(|note| Claim::read(note).ok());
        InternalWait::SpaceClaimed.clear(cx, entity);
        let Some(claim) = claim else {
            // The entity has ended meanwhile.
            if let Registration::Done(entry) = outcome {
                self.release_space(cx, entity, entry.key);
            }
            return;
        };
        let request = claim.request(entity);
        let done = match outcome {
            Registration::Done(entry) => {
                let key = entry.key.clone();
                cx.take_global(GlobalScope::Registry, entry);
                let begun = self.begin_in_space(cx, entity, &claim);
                if begun.is_err() {
                    self.release_space(cx, entity, key);
                }
                begun
            }
            Registration::Taken(_) => {
                let next = SpaceId(claim.place.space.0.saturating_add(1));
                self.claim(cx, entity, claim, next)
            }
            Registration::Refused(why) => Err(Denied::NotClaimed { why }),
        };
        if let Err(why) = done {
            self.counters.denied += 1;
            cx.deny(entity, &Nowhere, &request, &why);
        }
    }

    /// Creates the cell part in the space that was granted, which is opened before.
    fn begin_in_space(&mut self, cx: &mut OwnerContext, entity: EntityId, claim: &Claim) -> Result<(), Denied> {
        if claim.schema != cx.schema().fingerprint() {
            let why = "the definitions have changed meanwhile".to_owned();
            return Err(Denied::NotClaimed { why });
        }
        new_cell(cx, entity, claim.place, &claim.properties)?;
        self.open_space(cx, entity, claim.place)?;
        self.create_cell(cx, entity, claim.place, &claim.properties)
    }

    fn release_space(&self, cx: &mut OwnerContext, entity: EntityId, key: String) {
        if let Some(registry) = self.map.as_ref().and_then(|map| map.bootstrap) {
            cx.deregister(entity, key, registry);
        }
    }
}
