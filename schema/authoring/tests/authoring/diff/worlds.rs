//! Random schemas, and random edits of them.

use std::sync::Arc;

use annals_def::{
    AccountView, Argument, DataType, Dice, Distribution, EntityType, Exposure, Field, FixedDict, Holding, Index,
    LodLevel, Method, Property, PythonKind, Reach, Rename, Renames, Schema, Sequence, Service, UserDataObject, Value,
    generate,
};

/// A schema without numbers.
#[derive(Clone)]
pub(crate) struct World {
    /// Entity types, each with the name of the type as which clients see it.
    types: Vec<(EntityType, Option<String>)>,
    services: Vec<Service>,
    objects: Vec<UserDataObject>,
    /// Number of names used so far: each is used once.
    names: u32,
}

/// A schema and an edited version of it.
pub(crate) struct Pair {
    pub(crate) old: Schema,
    pub(crate) new: Schema,
    pub(crate) renames: Renames,
}

/// Generates two schemas that differ by up to `edits` edits.
pub(crate) fn pair(edits: u64, dice: &mut Dice<'_>) -> Pair {
    let before = World::new(dice);
    let mut after = before.clone();
    let mut renames = Vec::new();
    for _ in 0..dice() % (edits + 1) {
        after.edit(&mut renames, dice);
    }
    let (old, new) = (before.schema(), after.schema());
    // Edits can undo one another: keeps only the renames that still apply.
    renames.retain(|rename| Renames::new(&old, &new, [Rename::clone(rename)]).is_ok());
    let renames = Renames::new(&old, &new, renames).unwrap_or_default();
    Pair { old, new, renames }
}

impl World {
    fn new(dice: &mut Dice<'_>) -> Self {
        let mut world = Self {
            types: Vec::new(),
            services: Vec::new(),
            objects: Vec::new(),
            names: 0,
        };
        for _ in 0..1 + dice() % 3 {
            let entity_type = world.entity_type(dice);
            world.types.push((entity_type, None));
        }
        let methods = (0..2).map(|_| world.method(dice)).collect();
        let name = world.name("Service");
        world.services.push(Service { name, methods });
        world
    }

    fn schema(&self) -> Schema {
        let place = |name: &String| self.types.iter().position(|(found, _)| found.name == *name);
        let types = self.types.iter().map(|(entity_type, seen_as)| {
            let mut entity_type = entity_type.clone();
            let seen_as = seen_as.as_ref().and_then(place);
            entity_type.client_type = seen_as.map(|at| annals_ids::TypeId(u16::try_from(at).expect("few types")));
            entity_type
        });
        Schema::new(types.collect(), self.services.clone(), self.objects.clone())
    }

    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}{}", self.names)
    }

    fn entity_type(&mut self, dice: &mut Dice<'_>) -> EntityType {
        let mut entity_type = EntityType::new(self.name("Type"));
        entity_type.parts.client = dice().is_multiple_of(2);
        entity_type.lod_levels = vec![LodLevel {
            label: "NEAR".into(),
            radius: 20.0,
            hysteresis: 4.0,
        }];
        entity_type.properties = (0..dice() % 6).map(|_| self.property(dice)).collect();
        entity_type.base_methods = (0..dice() % 3).map(|_| self.method(dice)).collect();
        entity_type.cell_methods = (0..dice() % 3).map(|_| self.method(dice)).collect();
        entity_type.client_methods = (0..dice() % 3).map(|_| self.method(dice)).collect();
        entity_type
    }

    fn property(&mut self, dice: &mut Dice<'_>) -> Property {
        let data_type = self.data_type(3, dice);
        let distribution = Distribution::ALL[at(Distribution::ALL.len(), dice)];
        let mut property = Property::new(self.name("property"), data_type, distribution);
        property.default = default(&property.data_type, dice);
        property.persistent = !dice().is_multiple_of(3);
        property
    }

    fn method(&mut self, dice: &mut Dice<'_>) -> Method {
        let args = (0..dice() % 3).map(|_| Argument::new(self.name("arg"), self.data_type(2, dice)));
        let args = args.collect();
        let mut method = Method::new(self.name("method"), args);
        method.exposed = [Exposure::No, Exposure::OwnClient, Exposure::AllClients][at(3, dice)];
        method.calls_per_minute = (method.exposed == Exposure::OwnClient).then_some(60);
        method
    }

    /// A type of at most `depth` levels that has more than one value.
    fn data_type(&mut self, depth: usize, dice: &mut Dice<'_>) -> DataType {
        if depth <= 1 || dice().is_multiple_of(2) {
            return simple(dice);
        }
        match dice() % 3 {
            0 => DataType::Array(Arc::new(self.sequence(depth, dice))),
            1 => DataType::Tuple(Arc::new(self.sequence(depth, dice))),
            _ => DataType::FixedDict(Arc::new(FixedDict {
                fields: (0..1 + dice() % 3).map(|_| self.field(depth, dice)).collect(),
                allow_none: dice().is_multiple_of(2),
                implemented_by: None,
            })),
        }
    }

    fn sequence(&mut self, depth: usize, dice: &mut Dice<'_>) -> Sequence {
        let of = self.data_type(depth - 1, dice);
        Sequence {
            element_default: default(&of, dice),
            of,
            size: dice().is_multiple_of(3).then(|| 1 + (dice() % 3) as u32),
            persist_as_blob: false,
        }
    }

    fn field(&mut self, depth: usize, dice: &mut Dice<'_>) -> Field {
        let data_type = self.data_type(depth - 1, dice);
        Field {
            default: default(&data_type, dice),
            ..Field::of(self.name("field"), data_type)
        }
    }

    fn edit(&mut self, renames: &mut Vec<Rename>, dice: &mut Dice<'_>) {
        match dice() % 12 {
            0 => self.edit_types(renames, dice),
            1 => self.edit_beside(dice),
            2..=4 => {
                let chosen = at(self.types.len(), dice);
                self.edit_methods(chosen, dice);
            }
            _ => {
                let chosen = at(self.types.len(), dice);
                self.edit_properties(chosen, renames, dice);
            }
        }
    }

    fn edit_types(&mut self, renames: &mut Vec<Rename>, dice: &mut Dice<'_>) {
        let count = self.types.len();
        let chosen = at(count, dice);
        match dice() % 8 {
            0 => {
                let entity_type = self.entity_type(dice);
                self.types.insert(at(count + 1, dice), (entity_type, None));
            }
            1 if count > 1 => {
                self.types.remove(chosen);
            }
            2 => self.types.swap(chosen, at(count, dice)),
            3 => {
                let to = self.name("Type");
                let from = std::mem::replace(&mut self.types[chosen].0.name, to.clone());
                renames.extend(format!("{from}={to}").parse());
            }
            4 => {
                let name = self.types[at(count, dice)].0.name.clone();
                self.types[chosen].1 = dice().is_multiple_of(2).then_some(name);
            }
            5 => {
                let parts = &mut self.types[chosen].0.parts;
                let part = [&mut parts.base, &mut parts.cell, &mut parts.client];
                for (i, part) in part.into_iter().enumerate() {
                    *part ^= dice() as usize % 3 == i;
                }
            }
            6 => {
                let entity_type = &mut self.types[chosen].0;
                entity_type.volatile.yaw = Reach::Within((dice() % 9) as f32);
                entity_type.persistent ^= dice().is_multiple_of(2);
                entity_type.manual_aoi ^= dice().is_multiple_of(2);
            }
            _ => {
                let entity_type = &mut self.types[chosen].0;
                entity_type.appeal_radius = (dice() % 4) as f32;
                entity_type.temp_properties = vec![format!("temp{}", dice() % 3)];
                entity_type.lod_levels[0].radius = (dice() % 40) as f32;
            }
        }
    }

    fn edit_beside(&mut self, dice: &mut Dice<'_>) {
        match dice() % 4 {
            0 => {
                let methods = (0..dice() % 3).map(|_| self.method(dice)).collect();
                let name = self.name("Service");
                self.services.push(Service { name, methods });
            }
            1 => self.services.truncate(at(self.services.len() + 1, dice)),
            2 => {
                let field = self.field(2, dice);
                let name = self.name("Object");
                let domain = annals_def::Domain::Cell;
                let properties = vec![field];
                self.objects.push(UserDataObject {
                    name,
                    domain,
                    properties,
                });
            }
            _ => {
                if let Some(object) = self.objects.last_mut() {
                    object.domain = annals_def::Domain::Client;
                    object.properties.rotate_left(1);
                }
            }
        }
    }

    fn edit_properties(&mut self, chosen: usize, renames: &mut Vec<Rename>, dice: &mut Dice<'_>) {
        let count = self.types[chosen].0.properties.len();
        if count == 0 || dice().is_multiple_of(8) {
            let property = self.property(dice);
            self.types[chosen].0.properties.insert(at(count + 1, dice), property);
            return;
        }
        let place = at(count, dice);
        match dice() % 10 {
            0 => {
                self.types[chosen].0.properties.remove(place);
            }
            1 => self.types[chosen].0.properties.swap(place, at(count, dice)),
            2 => {
                let to = self.name("property");
                let entity_type = &mut self.types[chosen].0;
                let from = std::mem::replace(&mut entity_type.properties[place].name, to.clone());
                if !dice().is_multiple_of(3) {
                    renames.extend(format!("{}.{from}={to}", entity_type.name).parse());
                }
            }
            3..=6 => {
                let data_type = self.types[chosen].0.properties[place].data_type.clone();
                let data_type = self.mutated(&data_type, dice);
                let property = &mut self.types[chosen].0.properties[place];
                property.default = default(&data_type, dice);
                property.data_type = data_type;
                property.account = None;
            }
            _ => {
                let property = &mut self.types[chosen].0.properties[place];
                set_something(property, dice);
            }
        }
    }

    fn edit_methods(&mut self, chosen: usize, dice: &mut Dice<'_>) {
        let method = self.method(dice);
        let data_type = self.data_type(2, dice);
        let name = self.name("arg");
        let entity_type = &mut self.types[chosen].0;
        let lists = [
            &mut entity_type.base_methods,
            &mut entity_type.cell_methods,
            &mut entity_type.client_methods,
        ];
        let [base, cell, client] = lists;
        let methods = [base, cell, client].into_iter().nth(at(3, dice)).expect("three lists");
        let count = methods.len();
        if count == 0 {
            methods.push(method);
            return;
        }
        let place = at(count, dice);
        match dice() % 9 {
            0 => methods.insert(at(count + 1, dice), method),
            1 => {
                methods.remove(place);
            }
            2 => methods.swap(place, at(count, dice)),
            3 => {
                let args = &mut methods[place].args;
                args.insert(at(args.len() + 1, dice), Argument::new(name, data_type));
            }
            4 => methods[place].args.truncate(1),
            5 => methods[place].args.reverse(),
            6 => {
                if let Some(argument) = methods[place].args.first_mut() {
                    argument.data_type = data_type;
                }
            }
            7 => {
                let method = &mut methods[place];
                method.exposed = [Exposure::No, Exposure::OwnClient, Exposure::AllClients][at(3, dice)];
                method.calls_per_minute = (method.exposed == Exposure::AllClients).then_some(30);
            }
            _ => {
                let method = &mut methods[place];
                method.detail_distance = Some((dice() % 5) as f32);
                method.latest_only ^= dice().is_multiple_of(2);
                method.returns = vec![Argument::new("answer", DataType::UInt8)];
                method.protocol_id = Some(7);
                method.header_size = 1 + (dice() % 4) as u8;
            }
        }
    }

    /// A slightly different type, or another one altogether.
    fn mutated(&mut self, data_type: &DataType, dice: &mut Dice<'_>) -> DataType {
        match data_type {
            _ if dice().is_multiple_of(8) => self.data_type(3, dice),
            DataType::Array(sequence) | DataType::Tuple(sequence) => {
                let mut sequence = Sequence::clone(sequence);
                let mut is_array = matches!(data_type, DataType::Array(_));
                match dice() % 4 {
                    0 => is_array = !is_array,
                    1 => sequence.size = dice().is_multiple_of(2).then(|| 1 + (dice() % 4) as u32),
                    _ => {
                        sequence.of = self.mutated(&sequence.of, dice);
                        sequence.element_default = default(&sequence.of, dice);
                    }
                }
                let sequence = Arc::new(sequence);
                if is_array {
                    DataType::Array(sequence)
                } else {
                    DataType::Tuple(sequence)
                }
            }
            DataType::FixedDict(dict) => {
                let mut dict = FixedDict::clone(dict);
                let count = dict.fields.len();
                match dice() % 6 {
                    0 => dict.allow_none = !dict.allow_none,
                    1 => {
                        let field = self.field(2, dice);
                        dict.fields.insert(at(count + 1, dice), field);
                    }
                    2 if count > 1 => {
                        dict.fields.remove(at(count, dice));
                    }
                    3 => dict.fields.swap(0, at(count, dice)),
                    _ => {
                        let field = &mut dict.fields[at(count, dice)];
                        field.data_type = self.mutated(&field.data_type, dice);
                        field.default = default(&field.data_type, dice);
                    }
                }
                DataType::FixedDict(Arc::new(dict))
            }
            DataType::String | DataType::Unicode | DataType::Blob => {
                [DataType::String, DataType::Unicode, DataType::Blob][at(3, dice)].clone()
            }
            _ => simple(dice),
        }
    }
}

fn set_something(property: &mut Property, dice: &mut Dice<'_>) {
    property.account = None;
    match dice() % 9 {
        0 => property.default = default(&property.data_type, dice),
        1 => property.persistent = !property.persistent,
        2 | 3 => property.distribution = Distribution::ALL[at(Distribution::ALL.len(), dice)],
        4 => property.detail_level = property.detail_level.is_none().then_some(0),
        5 => property.indexed = [Index::None, Index::Plain, Index::Unique][at(3, dice)],
        6 => property.identifier = !property.identifier,
        7 => {
            let distribution = [Distribution::Base, Distribution::BaseAndClient][at(2, dice)];
            *property = Property::new(property.name.clone(), DataType::UInt64, distribution);
            let shows = Holding::Units(annals_ids::AssetKind(dice() as u32 % 2));
            let slot = annals_ids::Slot(dice() as u16 % 2);
            property.account = Some(AccountView { slot, shows });
        }
        _ => {
            property.latest_only = !property.latest_only;
            property.reliable = !property.reliable;
            property.editable = !property.editable;
            property.database_length = Some((dice() % 200) as u32);
            property.protocol_id = Some((dice() % 200) as u16);
            property.header_size = 1 + (dice() % 4) as u8;
        }
    }
}

fn simple(dice: &mut Dice<'_>) -> DataType {
    let mut all = DataType::SIMPLE.to_vec();
    all.extend([DataType::Python(PythonKind::Any), DataType::Python(PythonKind::Dict)]);
    all[at(all.len(), dice)].clone()
}

fn at(count: usize, dice: &mut Dice<'_>) -> usize {
    dice() as usize % count
}

/// A default value; for a mailbox it is always None.
fn default(data_type: &DataType, dice: &mut Dice<'_>) -> Value {
    match data_type {
        DataType::Mailbox => Value::Mailbox(None),
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let count = sequence.size.map_or_else(|| dice() % 3, u64::from);
            Value::Sequence((0..count).map(|_| default(&sequence.of, dice)).collect())
        }
        DataType::FixedDict(dict) => Value::Dict(
            dict.fields
                .iter()
                .map(|field| default(&field.data_type, dice))
                .collect(),
        ),
        other => generate(other, dice),
    }
}

/// A random value of the type, with more values that are hard to convert than chance would give: bytes that are no
/// text.
pub(crate) fn sample(data_type: &DataType, dice: &mut Dice<'_>) -> Value {
    match data_type {
        DataType::String if dice().is_multiple_of(2) => Value::Bytes(vec![0xff, dice() as u8]),
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let count = sequence.size.map_or_else(|| dice() % 6, u64::from);
            Value::Sequence((0..count).map(|_| sample(&sequence.of, dice)).collect())
        }
        DataType::FixedDict(dict) if dict.allow_none && dice().is_multiple_of(4) => Value::None,
        DataType::FixedDict(dict) => {
            Value::Dict(dict.fields.iter().map(|field| sample(&field.data_type, dice)).collect())
        }
        DataType::Mailbox => {
            // The first type: every schema has it.
            let type_id = annals_ids::TypeId(0);
            match generate(data_type, dice) {
                Value::Mailbox(Some(mailbox)) => Value::Mailbox(Some(annals_ids::Mailbox { type_id, ..mailbox })),
                other => other,
            }
        }
        other => generate(other, dice),
    }
}
