//! The reference state: entities, their properties and their histories.

use std::{collections::BTreeMap, sync::Arc};

use annals_def::{
    Argument, Change, DataType, Dice, Distribution, EntityType, Exposure, Located, Method, Property, Schema, Sequence,
    Value, generate, generate_change,
};
use annals_ids::{EntityId, Hash, HistoryNumber, Part, TypeId};
use annals_wire::client::{ClientMember, ShownWriter, ViewItem, args_hash, change_hash};

/// Number of history events that a part keeps; a view that lags further behind is refreshed.
const KEPT: usize = 12;

pub(crate) const OWN: EntityId = EntityId(100);

/// Base `gold`, cell `health`, `name` and `bag`, a client method `say`, exposed methods on both parts.
pub(crate) fn schema() -> Arc<Schema> {
    let mut avatar = EntityType::new("Avatar");
    let bag = DataType::Array(std::sync::Arc::new(Sequence::of(DataType::Int16)));
    avatar.properties = vec![
        Property::new("gold", DataType::Int32, Distribution::BaseAndClient),
        Property::new("name", DataType::Unicode, Distribution::AllClients),
        Property::new("health", DataType::Int32, Distribution::AllClients),
        Property::new("bag", bag, Distribution::AllClients),
    ];
    let exposed = |name: &str| {
        let mut method = Method::new(name, vec![Argument::new("amount", DataType::UInt32)]);
        method.exposed = Exposure::AllClients;
        method
    };
    avatar.base_methods = vec![exposed("buy")];
    avatar.cell_methods = vec![exposed("hit")];
    avatar.client_methods = vec![Method::new("say", vec![Argument::new("text", DataType::Unicode)])];
    Arc::new(Schema::new(vec![avatar], Vec::new(), Vec::new()))
}

/// A history event of a part.
pub(crate) enum Happened {
    Changed(ClientMember, Located),
    Said(Vec<Value>),
}

/// The actual state of one entity part.
pub(crate) struct Real {
    /// By client number.
    pub(crate) properties: Vec<Value>,
    /// Its history, from number 1; `None` is an event that concerns others.
    pub(crate) history: Vec<Option<Happened>>,
}

pub(crate) struct World {
    schema: Arc<Schema>,
    pub(crate) parts: BTreeMap<(Part, EntityId), Real>,
    /// Entities and whether they are in the area of interest; the own entity always is.
    pub(crate) around: BTreeMap<EntityId, bool>,
}

impl World {
    pub(crate) fn new(entities: u64) -> Self {
        let schema = schema();
        let ids = (0..entities).map(|i| EntityId(OWN.0 + i));
        let around: BTreeMap<EntityId, bool> = ids.map(|id| (id, id == OWN)).collect();
        let mut world = Self {
            schema,
            parts: BTreeMap::new(),
            around,
        };
        world.parts.insert((Part::Base, OWN), world.newborn());
        for &id in world.around.clone().keys() {
            world.parts.insert((Part::Cell, id), world.newborn());
        }
        world
    }

    fn newborn(&self) -> Real {
        let avatar = self.avatar();
        let defaults = avatar
            .client_properties()
            .iter()
            .filter_map(|&index| avatar.property(index));
        Real {
            properties: defaults.map(|property| property.default.clone()).collect(),
            history: Vec::new(),
        }
    }

    fn avatar(&self) -> &EntityType {
        self.schema.entity_type(TypeId(0)).unwrap()
    }

    pub(crate) fn is_visible(&self, source: Part, entity: EntityId) -> bool {
        match source {
            Part::Base => entity == OWN,
            Part::Cell => self.around.get(&entity).copied().unwrap_or(false),
        }
    }

    /// A random event of a random part.
    pub(crate) fn happen(&mut self, dice: &mut Dice<'_>) {
        let keys: Vec<_> = self.parts.keys().copied().collect();
        let key = keys[(dice() % keys.len() as u64) as usize];
        let (part, _) = key;
        let event = match (part, dice() % 8) {
            (_, 0) => None,
            (Part::Base, _) => Some(self.change(key, "gold", dice)),
            (Part::Cell, 1) => Some(Happened::Said(vec![generate(&DataType::Unicode, dice)])),
            (Part::Cell, 2 | 3) => Some(self.change(key, "health", dice)),
            (Part::Cell, 4) => Some(self.change(key, "name", dice)),
            (Part::Cell, _) => Some(self.change(key, "bag", dice)),
        };
        self.parts.get_mut(&key).unwrap().history.push(event);
    }

    /// All of a property changes, or a part, or a slice.
    fn change(&mut self, key: (Part, EntityId), name: &str, dice: &mut Dice<'_>) -> Happened {
        let schema = Arc::clone(&self.schema);
        let property = schema.entity_type(TypeId(0)).unwrap().property_named(name).unwrap();
        let member = ClientMember(property.client_id.unwrap());
        let real = &mut self.parts.get_mut(&key).unwrap().properties[usize::from(member.0)];
        let change = match dice() % 4 {
            0 => Change::whole(generate(&property.data_type, dice)),
            _ => generate_change(&property.data_type, real, dice),
        };
        let located = Located::new(change, real).unwrap();
        located.make(real).unwrap();
        Happened::Changed(member, located)
    }

    /// The hash of what a client should have been shown.
    pub(crate) fn hash(&self, happened: &Happened) -> Hash {
        let avatar = self.avatar();
        match happened {
            Happened::Changed(member, located) => {
                let index = avatar.client_properties()[usize::from(member.0)];
                change_hash(&avatar.property(index).unwrap().data_type, located.change()).unwrap()
            }
            Happened::Said(args) => args_hash(&avatar.client_methods[0], args).unwrap(),
        }
    }

    /// All of a part, as sent to a client: defaults are left out.
    pub(crate) fn refresh(&self, part: Part, entity: EntityId) -> ViewItem {
        let avatar = self.avatar();
        let real = &self.parts[&(part, entity)];
        let members = avatar
            .client_properties()
            .iter()
            .filter_map(|&index| avatar.property(index));
        let mut writer = ShownWriter::new(avatar, HistoryNumber(0));
        for ((property, value), member) in members.zip(&real.properties).zip(0..) {
            if *value != property.default {
                writer.property(ClientMember(member), value).unwrap();
            }
        }
        ViewItem::Refresh {
            entity,
            upto: HistoryNumber(real.history.len() as u64),
            level: 0,
            properties: writer.finish(),
        }
    }

    /// An update for a client that has seen everything up to `from`.
    pub(crate) fn update(&self, part: Part, entity: EntityId, from: u64) -> Option<ViewItem> {
        let history = &self.parts[&(part, entity)].history;
        let upto = history.len() as u64;
        if from == upto {
            return None;
        }
        let missing = history.len() - usize::try_from(from).unwrap();
        if missing > KEPT {
            return Some(self.refresh(part, entity));
        }
        let mut writer = ShownWriter::new(self.avatar(), HistoryNumber(from));
        for (happened, number) in history.iter().zip(1..).skip(history.len() - missing) {
            match happened {
                Some(Happened::Changed(member, located)) => writer.change(HistoryNumber(number), *member, located),
                Some(Happened::Said(args)) => writer.method(HistoryNumber(number), ClientMember(0), args),
                None => Ok(()),
            }
            .unwrap();
        }
        Some(ViewItem::Update {
            entity,
            from: HistoryNumber(from),
            upto: HistoryNumber(upto),
            events: writer.finish(),
        })
    }
}
