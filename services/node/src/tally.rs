//! Cost of the members of entity types: how often each is changed or called, and how many bytes that produces, by
//! destination. For designers of a world who ask which property causes the traffic.
//!
//! Bytes are counted where they are produced, whether or not they arrive. Bytes that belong to no member (entities
//! entering and leaving views, positions, headers) are not counted. Counting is one addition: members have fixed slots,
//! found by type and member number.

use std::cell::{Cell, RefCell};

use annals_def::{EntityType, Schema, Value};
use annals_event::{Body, Event, Subject, latest::call::put_properties};
use annals_ids::{MemberId, Part, TypeId};

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

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostKind {
    /// Number of changes, or of calls of a method.
    Changes,
    /// Bytes to the log.
    Log,
    /// Bytes to the client that controls the entity.
    Own,
    /// Bytes to other clients.
    Others,
    /// Bytes to owners that have a ghost of the entity.
    Ghosts,
    /// Bytes of calls of base and cell methods that came to the part from other owners.
    Part,
}

/// Number of ways.
const COST_KINDS: usize = 6;

/// The counts of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost([u64; COST_KINDS]);

/// Costs of all members of the schema.
#[derive(Debug)]
pub struct Tally {
    /// First slot of the members of each type, by kind.
    starts: Vec<[usize; 4]>,
    members: Vec<(TypeId, Member)>,
    costs: Vec<[Cell<u64>; COST_KINDS]>,
    /// Scratch buffer for measuring encoded sizes.
    scale: RefCell<Vec<u8>>,
}

impl Cost {
    /// The count of one way.
    #[must_use]
    pub fn of(&self, way: CostKind) -> u64 {
        self.0[way as usize]
    }

    /// Adds the counts of another cost.
    pub fn add(&mut self, other: Cost) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl Tally {
    /// All counts zero.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let mut members = Vec::new();
        let mut starts = Vec::new();
        for entity_type in schema.all_types() {
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

    /// Adds to a member's count. Members that the schema does not have are ignored.
    pub fn add(&self, type_id: TypeId, member: Member, way: CostKind, amount: usize) {
        if let Some(costs) = self.place(type_id, member).and_then(|place| self.costs.get(place)) {
            let cost = &costs[way as usize];
            cost.set(cost.get().saturating_add(amount as u64));
        }
    }

    /// Counts an event, as sent to owners with a ghost of an entity of this type.
    pub fn add_ghost_event(&self, type_id: TypeId, event: &Event) {
        if let Some(member) = Member::changed_by(event.subject, &event.body) {
            self.add(
                type_id,
                member,
                CostKind::Ghosts,
                self.weigh(|scale| event.write(scale)),
            );
        }
    }

    /// Counts properties, as sent to an owner that creates a ghost of an entity of this type.
    pub fn add_ghost_properties(&self, type_id: TypeId, properties: &[(MemberId, Value)]) {
        for property in properties {
            let one = std::slice::from_ref(property);
            // Without the count of properties, which takes one byte for a single one.
            let bytes = self.weigh(|scale| put_properties(scale, one)) - 1;
            self.add(type_id, Member::Property(property.0), CostKind::Ghosts, bytes);
        }
    }

    /// Encoded size of a value, bytes.
    pub fn weigh(&self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let mut scale = self.scale.borrow_mut();
        scale.clear();
        write(&mut scale);
        scale.len()
    }

    /// Takes all members with non-zero counts since the last call, with their counts.
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
    /// The property changed, the client method called, or the method answered, by an event.
    #[must_use]
    pub fn changed_by(subject: Subject, body: &Body) -> Option<Member> {
        match body {
            Body::Replied { method, .. } => match subject {
                Subject::Entity(_, Part::Base) => Some(Member::BaseMethod(*method)),
                Subject::Entity(_, Part::Cell) => Some(Member::CellMethod(*method)),
                Subject::Owner => None,
            },
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

    /// The kind of member, as text.
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
