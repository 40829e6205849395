//! What the members of entity types cost: how often each is changed or called, and how many bytes are made of it, by where
//! they go. For whoever designs a world and asks which property fills the wires.
//!
//! Bytes are counted where they are made, whether or not they then arrive. What belongs to no member (who enters and leaves,
//! where entities are, headers) is not counted. A count is an addition: members have fixed places, found by the type's and
//! the member's number.

use std::cell::{Cell, RefCell};

use annals_def::{EntityType, Schema, Value};
use annals_event::{Body, Event, latest::call::put_properties};
use annals_ids::{MemberId, TypeId};

/// A member of an entity type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// One of its properties.
    Property(MemberId),
    /// One of its client methods.
    ClientMethod(MemberId),
    /// One of the base part's methods.
    BaseMethod(MemberId),
    /// One of the cell part's methods.
    CellMethod(MemberId),
}

/// What is counted of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// How often it was changed; a method, how often it was called.
    Changes,
    /// Bytes to the log.
    Log,
    /// Bytes to the client whose entity it is.
    Own,
    /// Bytes to other clients.
    Others,
    /// Bytes to owners that have a ghost of the entity.
    Ghosts,
    /// Bytes of calls of base and cell methods that came to the part from other owners.
    Part,
}

/// How many ways there are.
const WAYS: usize = 6;

/// What a member has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost([u64; WAYS]);

/// See the module.
#[derive(Debug)]
pub struct Tally {
    /// Where the members of each type begin among the costs, by kind.
    starts: Vec<[usize; 4]>,
    members: Vec<(TypeId, Member)>,
    costs: Vec<[Cell<u64>; WAYS]>,
    /// What is written to be weighed.
    scale: RefCell<Vec<u8>>,
}

impl Cost {
    /// What was counted one way.
    #[must_use]
    pub fn of(&self, way: Way) -> u64 {
        self.0[way as usize]
    }

    /// Adds another.
    pub fn add(&mut self, other: Cost) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl Tally {
    /// Nothing was counted yet.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let mut members = Vec::new();
        let mut starts = Vec::new();
        for entity_type in schema.types() {
            let mut add = |count: usize, member: fn(MemberId) -> Member| {
                let start = members.len();
                let ids = (0..count).filter_map(|nth| u16::try_from(nth).ok()).map(MemberId);
                members.extend(ids.map(|id| (entity_type.id, member(id))));
                start
            };
            starts.push([
                add(entity_type.properties.len(), Member::Property),
                add(entity_type.client_methods.len(), Member::ClientMethod),
                add(entity_type.base_methods.len(), Member::BaseMethod),
                add(entity_type.cell_methods.len(), Member::CellMethod),
            ]);
        }
        Self {
            starts,
            costs: members.iter().map(|_| Default::default()).collect(),
            members,
            scale: RefCell::default(),
        }
    }

    /// Adds to what was counted of a member. One that the schema does not have has no place.
    pub fn add(&self, type_id: TypeId, member: Member, way: Way, amount: usize) {
        if let Some(costs) = self.place(type_id, member).and_then(|place| self.costs.get(place)) {
            let cost = &costs[way as usize];
            cost.set(cost.get().saturating_add(amount as u64));
        }
    }

    /// Adds an event as owners with a ghost of an entity of this type are sent it.
    pub fn add_ghost_event(&self, type_id: TypeId, event: &Event) {
        if let Some(member) = Member::changed_by(&event.body) {
            self.add(type_id, member, Way::Ghosts, self.weigh(|scale| event.write(scale)));
        }
    }

    /// Adds properties as an owner that makes a ghost of an entity of this type is sent them.
    pub fn add_ghost_properties(&self, type_id: TypeId, properties: &[(MemberId, Value)]) {
        for property in properties {
            let one = std::slice::from_ref(property);
            // Without their number, which is one byte where it is one.
            let bytes = self.weigh(|scale| put_properties(scale, one)) - 1;
            self.add(type_id, Member::Property(property.0), Way::Ghosts, bytes);
        }
    }

    /// How many bytes something takes.
    pub fn weigh(&self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let mut scale = self.scale.borrow_mut();
        scale.clear();
        write(&mut scale);
        scale.len()
    }

    /// All members of which anything was counted since this was last asked, and what.
    pub fn take(&self) -> impl Iterator<Item = (TypeId, Member, Cost)> {
        let costs = self.costs.iter().map(|costs| Cost(costs.each_ref().map(Cell::take)));
        let all = self.members.iter().zip(costs);
        all.filter(|(_, cost)| *cost != Cost::default())
            .map(|((type_id, member), cost)| (*type_id, *member, cost))
    }

    fn place(&self, type_id: TypeId, member: Member) -> Option<usize> {
        let starts = self.starts.get(usize::from(type_id.0))?;
        let (kind, id) = match member {
            Member::Property(id) => (0, id),
            Member::ClientMethod(id) => (1, id),
            Member::BaseMethod(id) => (2, id),
            Member::CellMethod(id) => (3, id),
        };
        let place = starts[kind] + usize::from(id.0);
        (self.members.get(place) == Some(&(type_id, member))).then_some(place)
    }
}

impl Member {
    /// The property that an event changes, or the client method that it calls.
    #[must_use]
    pub fn changed_by(body: &Body) -> Option<Member> {
        match body {
            Body::Changed { member, .. } | Body::Restated { member } => Some(Member::Property(*member)),
            Body::Invoked { method, .. } => Some(Member::ClientMethod(*method)),
            _ => None,
        }
    }

    /// Its name in its type.
    #[must_use]
    pub fn name(self, entity_type: &EntityType) -> Option<&str> {
        let methods = match self {
            Member::Property(id) => return entity_type.property(id).map(|property| property.name.as_str()),
            Member::ClientMethod(_) => &entity_type.client_methods,
            Member::BaseMethod(_) => &entity_type.base_methods,
            Member::CellMethod(_) => &entity_type.cell_methods,
        };
        let (Member::Property(id) | Member::ClientMethod(id) | Member::BaseMethod(id) | Member::CellMethod(id)) = self;
        methods.get(usize::from(id.0)).map(|method| method.name.as_str())
    }

    /// What kind of member it is, in words.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Member::Property(_) => "property",
            Member::ClientMethod(_) => "client method",
            Member::BaseMethod(_) => "base method",
            Member::CellMethod(_) => "cell method",
        }
    }
}
