//! The truth: entities, their properties and their histories.

use std::{collections::BTreeMap, sync::Arc};

use annals_def::{
    Argument, Change, DataType, Dice, Distribution, EntityType, Exposure, Form, Method, Path, Property, Schema,
    Sequence, Value, apply, encode, generate,
};
use annals_ids::{EntityId, HistoryNumber, Part, TypeId};
use annals_wire::client::{ClientMember, Shown, ViewItem};

/// How many history events a part keeps; a view that lags further behind is refreshed.
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

/// One entity part as it really is.
pub(crate) struct Real {
    /// By client number.
    pub(crate) properties: Vec<Value>,
    /// What happened, from number 1; `None` is what concerns others.
    pub(crate) history: Vec<Option<Shown>>,
}

pub(crate) struct World {
    schema: Arc<Schema>,
    pub(crate) parts: BTreeMap<(Part, EntityId), Real>,
    /// Who is in the area of interest; the own entity always is.
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

    /// Something happens to a random part.
    pub(crate) fn happen(&mut self, dice: &mut Dice<'_>) {
        let keys: Vec<_> = self.parts.keys().copied().collect();
        let key = keys[(dice() % keys.len() as u64) as usize];
        let (part, _) = key;
        let event = match (part, dice() % 8) {
            (_, 0) => None,
            (Part::Base, _) => Some(self.change(key, "gold", Path::WHOLE, dice)),
            (Part::Cell, 1) => Some(self.say(key, dice)),
            (Part::Cell, 2 | 3) => Some(self.change(key, "health", Path::WHOLE, dice)),
            (Part::Cell, 4) => Some(self.change(key, "name", Path::WHOLE, dice)),
            (Part::Cell, 5) => Some(self.change(key, "bag", Path::WHOLE, dice)),
            (Part::Cell, _) => {
                let bag = usize::from(self.avatar().property_named("bag").unwrap().client_id.unwrap());
                let Value::Sequence(elements) = &self.parts[&key].properties[bag] else {
                    panic!("a bag is a sequence");
                };
                let length = elements.len() as u64;
                (length > 0).then(|| {
                    let at = u32::try_from(dice() % length).unwrap();
                    self.change(key, "bag", Path(vec![at]), dice)
                })
            }
        };
        self.parts.get_mut(&key).unwrap().history.push(event);
    }

    fn number(&self, key: (Part, EntityId)) -> HistoryNumber {
        HistoryNumber(self.parts[&key].history.len() as u64 + 1)
    }

    fn change(&mut self, key: (Part, EntityId), name: &str, path: Path, dice: &mut Dice<'_>) -> Shown {
        let number = self.number(key);
        let schema = Arc::clone(&self.schema);
        let property = schema.entity_type(TypeId(0)).unwrap().property_named(name).unwrap();
        let member = ClientMember(property.client_id.unwrap());
        let part_type = path.find_type(&property.data_type).unwrap();
        let new = generate(part_type, dice);
        let mut value = Vec::new();
        encode(part_type, &new, Form::Whole, &mut value).unwrap();
        let real = &mut self.parts.get_mut(&key).unwrap().properties[usize::from(member.0)];
        apply(&property.data_type, real, &Change::part(path.clone(), new)).unwrap();
        Shown::Property {
            number,
            member,
            path,
            value,
        }
    }

    fn say(&self, key: (Part, EntityId), dice: &mut Dice<'_>) -> Shown {
        let mut args = Vec::new();
        encode(
            &DataType::Unicode,
            &generate(&DataType::Unicode, dice),
            Form::Whole,
            &mut args,
        )
        .unwrap();
        Shown::Method {
            number: self.number(key),
            member: ClientMember(0),
            args,
        }
    }

    /// All of a part, as a client is told it: defaults are left out.
    pub(crate) fn refresh(&self, part: Part, entity: EntityId) -> ViewItem {
        let avatar = self.avatar();
        let real = &self.parts[&(part, entity)];
        let members = avatar
            .client_properties()
            .iter()
            .filter_map(|&index| avatar.property(index));
        let properties = members
            .zip(&real.properties)
            .zip(0..)
            .filter_map(|((property, value), member)| {
                let mut bytes = Vec::new();
                encode(&property.data_type, value, Form::Whole, &mut bytes).unwrap();
                (*value != property.default).then_some((ClientMember(member), bytes))
            });
        ViewItem::Refresh {
            entity,
            upto: HistoryNumber(real.history.len() as u64),
            properties: properties.collect(),
        }
    }

    /// What brings a client that has seen everything up to `from` up to date.
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
        let events = history
            .iter()
            .skip(history.len() - missing)
            .flatten()
            .cloned()
            .collect();
        Some(ViewItem::Update {
            entity,
            from: HistoryNumber(from),
            upto: HistoryNumber(upto),
            events,
        })
    }
}
