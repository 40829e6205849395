//! Entity types.

use annals_ids::{MemberId, Part, TypeId};

use super::member::{Exposure, Method, Property};
use crate::names::by_length;

/// An entity type with all inherited members. A [`super::Schema`] derives its ids and lookup tables from its lists.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityType {
    /// Its position in the schema.
    pub id: TypeId,
    pub name: String,
    /// The parts an entity of this type can have.
    pub parts: Parts,
    /// The type that clients see (`ClientName`), if it is another.
    pub client_type: Option<TypeId>,
    /// Whether entities of this type can be stored.
    pub persistent: bool,
    /// Its properties; a [`MemberId`] is a position here.
    pub properties: Vec<Property>,
    /// Methods of the base part; a [`MemberId`] is a position here.
    pub base_methods: Vec<Method>,
    /// Methods of the cell part; a [`MemberId`] is a position here.
    pub cell_methods: Vec<Method>,
    /// Methods of the clients; a [`MemberId`] is a position here.
    pub client_methods: Vec<Method>,
    /// The parts of position and direction that are volatile, with their distances.
    pub volatile: Volatile,
    /// Levels of detail by ascending radius. There is one more level beyond the last.
    pub lod_levels: Vec<LodLevel>,
    /// Members that are neither backed up nor handed over, sorted.
    pub temp_properties: Vec<String>,
    /// How the exact position is sent, if it is.
    pub detailed_position: Option<DetailedPosition>,
    /// Metres around the entity within which it attracts areas of interest.
    pub appeal_radius: f32,
    /// Clients see it only if behaviour says so.
    pub manual_aoi: bool,
    pub(super) tables: Tables,
}

/// The parts that an entity type can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// A base part.
    pub base: bool,
    /// A cell part.
    pub cell: bool,
    /// A client part: it is sent to clients.
    pub client: bool,
}

/// The distance up to which each volatile value is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volatile {
    pub position: Reach,
    /// The heading.
    pub yaw: Reach,
    pub pitch: Reach,
    pub roll: Reach,
    /// The height may be omitted while the entity stands on the ground.
    pub ground_only: bool,
}

/// A distance up to which something is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reach {
    /// At no distance.
    #[default]
    Never,
    /// Within this many metres.
    Within(f32),
    /// At any distance.
    Always,
}

/// A level of detail.
#[derive(Clone, Debug, PartialEq)]
pub struct LodLevel {
    /// Its name in properties.
    pub label: String,
    /// Its outer radius in metres.
    pub radius: f32,
    /// An observer that moves away leaves it this many metres beyond the radius.
    pub hysteresis: f32,
}

/// How the exact position is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetailedPosition {
    /// Only the newest position is kept for an observer.
    pub latest_only: bool,
}

/// Tables derived from the lists of a type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tables {
    properties: Names,
    base_methods: Names,
    cell_methods: Names,
    client_methods: Names,
    client_properties: Vec<MemberId>,
    exposed_base_methods: Vec<MemberId>,
    exposed_cell_methods: Vec<MemberId>,
    client_method_ids: Vec<MemberId>,
}

/// Members, ordered by name.
type Names = Vec<MemberId>;

impl EntityType {
    /// A type with all three parts and no members.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: TypeId(0),
            name: name.into(),
            parts: Parts {
                base: true,
                cell: true,
                client: true,
            },
            client_type: None,
            persistent: true,
            properties: Vec::new(),
            base_methods: Vec::new(),
            cell_methods: Vec::new(),
            client_methods: Vec::new(),
            volatile: Volatile::default(),
            lod_levels: Vec::new(),
            temp_properties: Vec::new(),
            detailed_position: None,
            appeal_radius: 0.0,
            manual_aoi: false,
            tables: Tables::default(),
        }
    }

    /// The property with this id.
    #[must_use]
    pub fn property(&self, id: MemberId) -> Option<&Property> {
        self.properties.get(usize::from(id.0))
    }

    /// The property of this name.
    #[must_use]
    pub fn property_named(&self, name: &str) -> Option<&Property> {
        find(&self.properties, &self.tables.properties, name, |property| {
            &property.name
        })
    }

    /// Whether a property of this type is temporary: a value in memory only, which is not logged, and which begins anew
    /// with each hand-over and take-over. A property that is stored, shown to others, personal or the view of a ledger
    /// account is none, although its type lists it (lint D0713).
    #[must_use]
    pub fn is_temporary(&self, property: &Property) -> bool {
        let is_kept = property.persistent || property.distribution.is_shown();
        let is_special = property.personal.is_some() || property.account.is_some();
        !is_kept && !is_special && self.temp_properties.contains(&property.name)
    }

    /// The base method of this name.
    #[must_use]
    pub fn base_method_named(&self, name: &str) -> Option<&Method> {
        find(&self.base_methods, &self.tables.base_methods, name, |method| {
            &method.name
        })
    }

    /// The cell method of this name.
    #[must_use]
    pub fn cell_method_named(&self, name: &str) -> Option<&Method> {
        find(&self.cell_methods, &self.tables.cell_methods, name, |method| {
            &method.name
        })
    }

    /// The client method of this name.
    #[must_use]
    pub fn client_method_named(&self, name: &str) -> Option<&Method> {
        find(&self.client_methods, &self.tables.client_methods, name, |method| {
            &method.name
        })
    }

    /// The properties that clients see, in the order of their client ids.
    #[must_use]
    pub fn client_properties(&self) -> &[MemberId] {
        &self.tables.client_properties
    }

    /// The base methods that clients may call, in the order of their client ids.
    #[must_use]
    pub fn exposed_base_methods(&self) -> &[MemberId] {
        &self.tables.exposed_base_methods
    }

    /// The cell methods that clients may call, in the order of their client ids.
    #[must_use]
    pub fn exposed_cell_methods(&self) -> &[MemberId] {
        &self.tables.exposed_cell_methods
    }

    /// A method of the base or cell part, by its index among those of the part.
    #[must_use]
    pub fn method_of(&self, part: Part, method: MemberId) -> Option<&Method> {
        let methods = match part {
            Part::Base => &self.base_methods,
            Part::Cell => &self.cell_methods,
        };
        methods.get(usize::from(method.0))
    }

    /// The methods of the base or cell part that clients may call, in the order of their client ids.
    #[must_use]
    pub fn exposed_methods_of(&self, part: Part) -> &[MemberId] {
        match part {
            Part::Base => self.exposed_base_methods(),
            Part::Cell => self.exposed_cell_methods(),
        }
    }

    /// The client methods in the order of their client ids.
    #[must_use]
    pub fn client_method_ids(&self) -> &[MemberId] {
        &self.tables.client_method_ids
    }

    /// The property by which an entity is loaded, if there is one.
    #[must_use]
    pub fn identifier(&self) -> Option<&Property> {
        self.properties.iter().find(|property| property.identifier)
    }

    /// Numbers the type and its members, and builds the derived tables.
    pub(super) fn number(&mut self, id: TypeId) {
        self.id = id;
        for (position, property) in self.properties.iter_mut().enumerate() {
            property.index = member_id(position);
        }
        for methods in [&mut self.base_methods, &mut self.cell_methods, &mut self.client_methods] {
            number_methods(methods);
        }
        self.tables = Tables {
            properties: names(&self.properties, |property| &property.name),
            base_methods: method_names(&self.base_methods),
            cell_methods: method_names(&self.cell_methods),
            client_methods: method_names(&self.client_methods),
            client_properties: number_for_clients(
                &mut self.properties,
                |property| property.distribution.to_clients(),
                |property| Rank::of(property.data_type.stream_size(), property.header_size),
                |property, id| property.client_id = id,
            ),
            exposed_base_methods: number_exposed(&mut self.base_methods),
            exposed_cell_methods: number_exposed(&mut self.cell_methods),
            client_method_ids: number_for_clients(
                &mut self.client_methods,
                |_| true,
                |method| Rank::of(method.stream_size(), method.header_size),
                |method, id| method.client_id = id,
            ),
        };
    }
}

impl Volatile {
    /// Whether anything is volatile; an entity without volatile values sends its detailed position instead.
    #[must_use]
    pub fn is_any(&self) -> bool {
        [self.position, self.yaw, self.pitch, self.roll]
            .iter()
            .any(|reach| *reach != Reach::Never)
    }
}

impl Reach {
    /// Whether the distance, in metres, is within reach.
    #[must_use]
    pub fn covers(self, distance: f32) -> bool {
        match self {
            Self::Never => false,
            Self::Within(limit) => distance <= limit,
            Self::Always => true,
        }
    }

    /// The reach as a number for ordering: 0 for never, infinity for always.
    #[must_use]
    pub fn metres(self) -> f32 {
        match self {
            Self::Never => 0.0,
            Self::Within(limit) => limit,
            Self::Always => f32::INFINITY,
        }
    }
}

/// Sets the index of each method to its position.
pub(super) fn number_methods(methods: &mut [Method]) {
    for (position, method) in methods.iter_mut().enumerate() {
        method.index = member_id(position);
    }
}

fn number_exposed(methods: &mut [Method]) -> Vec<MemberId> {
    number_for_clients(
        methods,
        |method| method.exposed != Exposure::No,
        |method| Rank::of(method.stream_size(), method.header_size),
        |method, id| method.client_id = id,
    )
}

/// The sort key of client numbers, as BigWorld compares stream sizes: fixed sizes before variable ones, smaller before
/// larger. A variable size counts as the header declared for its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Fixed(usize),
    Variable { header: u8 },
}

impl Rank {
    fn of(fixed: Option<usize>, header: u8) -> Self {
        fixed.map_or(Self::Variable { header }, Self::Fixed)
    }
}

/// Assigns client numbers by size; members of equal size keep their order. Members with the fewest bytes thus get the
/// short ids.
fn number_for_clients<M>(
    members: &mut [M],
    is_seen: impl Fn(&M) -> bool,
    rank: impl Fn(&M) -> Rank,
    set_id: impl Fn(&mut M, Option<u16>),
) -> Vec<MemberId> {
    let mut order: Vec<(Rank, MemberId)> = Vec::with_capacity(members.len());
    for (position, member) in members.iter_mut().enumerate() {
        set_id(member, None);
        if is_seen(member) {
            order.push((rank(member), member_id(position)));
        }
    }
    order.sort_unstable();
    for (client_id, (_, id)) in order.iter().enumerate() {
        set_id(&mut members[usize::from(id.0)], Some(member_id(client_id).0));
    }
    order.into_iter().map(|(_, id)| id).collect()
}

fn method_names(methods: &[Method]) -> Names {
    names(methods, |method| &method.name)
}

fn names<M>(members: &[M], name: impl Fn(&M) -> &String) -> Names {
    let mut names: Names = (0..members.len()).map(member_id).collect();
    let name = |id: &MemberId| name(&members[usize::from(id.0)]);
    names.sort_unstable_by(|a, b| by_length(name(a), name(b)));
    names
}

/// The member of this name.
fn find<'m, M>(members: &'m [M], names: &[MemberId], wanted: &str, name: impl Fn(&M) -> &String) -> Option<&'m M> {
    let member = |id: &MemberId| &members[usize::from(id.0)];
    let at = names.binary_search_by(|id| by_length(name(member(id)), wanted));
    at.ok().map(|at| member(&names[at]))
}

fn member_id(position: usize) -> MemberId {
    MemberId(u16::try_from(position).expect("invariant: at most MAX_MEMBERS members"))
}
