//! The structs of a schema: one per shape of its `FIXED_DICT`s, with a name.
//!
//! A shape is the names, types and defaults of a dictionary's fields; whether the dictionary may be None depends on
//! each use. A shape with an alias has the alias's name. Others are named after the place where they are first found:
//! the struct that contains it, else the entity type, followed by the member's name.

use std::collections::{BTreeMap, BTreeSet};

use annals_def::{DataType, EntityType, FixedDict, Property, Schema};

use super::{CodeParts, naming::Scope};

/// A shape with its name.
#[derive(Debug)]
pub(super) struct Shape {
    /// Its name in code.
    pub(super) name: String,
    /// The name of the type that edits it in place.
    pub(super) edit_name: String,
    /// The alias that names it, or where it was found, in words.
    pub(super) origin: String,
    /// Its fields.
    pub(super) dict: FixedDict,
    /// The names of its fields in Rust.
    pub(super) field_names: Vec<String>,
}

/// All shapes of a schema.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    shapes: Vec<Shape>,
    by_key: BTreeMap<String, usize>,
    /// The names of types in code.
    scope: Scope,
}

impl Shapes {
    /// Finds and names the shapes of a schema. `scope` has the names that are taken.
    pub(super) fn of(schema: &Schema, aliases: &BTreeMap<String, DataType>, scope: Scope) -> Self {
        let mut shapes = Self {
            scope,
            ..Self::default()
        };
        let mut used = BTreeSet::new();
        for mention in all_mentions(schema) {
            mention.data_type.any(&mut |inner| {
                used.extend(dict(inner).map(key));
                false
            });
        }
        // Names chosen by authors come first, so that no derived name takes them.
        for (name, data_type) in aliases {
            if let Some(dict) = dict(data_type).filter(|dict| used.contains(&key(dict))) {
                shapes.add(dict, name, name);
            }
        }
        for mention in all_mentions(schema) {
            shapes.find(mention.data_type, &mention.wanted, &mention.origin);
        }
        for shape in &mut shapes.shapes {
            shape.edit_name = shapes.scope.pascal(&format!("{}_edit", shape.name));
        }
        shapes
    }

    /// All shapes, in the order of their names' origin.
    pub(super) fn all(&self) -> impl Iterator<Item = &Shape> {
        self.shapes.iter()
    }

    /// The shape of a dictionary of the schema.
    pub(super) fn get(&self, dict: &FixedDict) -> Option<&Shape> {
        self.by_key.get(&key(dict)).and_then(|&at| self.shapes.get(at))
    }

    /// The names of the shapes that occur in code for these parts.
    pub(super) fn used(&self, schema: &Schema, parts: CodeParts) -> BTreeSet<&str> {
        let mut used = BTreeSet::new();
        for mention in all_mentions(schema) {
            if parts.is_server() || mention.is_shown {
                mention.data_type.any(&mut |inner| {
                    let shape = dict(inner).and_then(|dict| self.get(dict));
                    used.extend(shape.map(|shape| shape.name.as_str()));
                    false
                });
            }
        }
        used
    }

    /// The names of types in code, including those of shapes.
    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Names the shapes in a type, outer ones first: inner ones are named after them.
    fn find(&mut self, data_type: &DataType, wanted: &str, origin: &str) {
        match data_type {
            DataType::Array(sequence) | DataType::Tuple(sequence) => {
                self.find(&sequence.of, &format!("{wanted}_item"), origin);
            }
            DataType::FixedDict(dict) => {
                self.add(dict, wanted, origin);
            }
            _ => {}
        }
    }

    fn add(&mut self, dict: &FixedDict, wanted: &str, origin: &str) {
        let key = key(dict);
        if self.by_key.contains_key(&key) {
            return;
        }
        self.by_key.insert(key, self.shapes.len());
        let name = self.scope.pascal(wanted);
        let mut fields = Scope::default();
        self.shapes.push(Shape {
            name: name.clone(),
            edit_name: String::new(),
            origin: origin.to_owned(),
            dict: dict.clone(),
            field_names: dict.fields.iter().map(|field| fields.snake(&field.name)).collect(),
        });
        for field in &dict.fields {
            let origin = format!("{origin}.{}", field.name);
            self.find(&field.data_type, &format!("{name}_{}", field.name), &origin);
        }
    }
}

/// A type that occurs in a member.
struct Mention<'s> {
    data_type: &'s DataType,
    /// The name for a shape in it.
    wanted: String,
    /// Its place, in words.
    origin: String,
    /// Whether clients know the member.
    is_shown: bool,
}

/// The types that occur in a schema's members, in order.
fn all_mentions(schema: &Schema) -> impl Iterator<Item = Mention<'_>> {
    let objects = schema.user_data_objects().iter();
    let of_objects = objects.flat_map(|object| {
        object.properties.iter().map(|field| Mention {
            data_type: &field.data_type,
            wanted: format!("{}_{}", object.name, field.name),
            origin: format!("{}.{}", object.name, field.name),
            is_shown: false,
        })
    });
    schema.all_types().flat_map(mentions).chain(of_objects)
}

/// The types that occur in an entity type's members, in order.
fn mentions(entity_type: &EntityType) -> Vec<Mention<'_>> {
    let mut mentions = Vec::new();
    let owner = &entity_type.name;
    for Property {
        name,
        data_type,
        personal,
        distribution,
        ..
    } in &entity_type.properties
    {
        mentions.push(Mention {
            data_type: personal.as_ref().unwrap_or(data_type),
            wanted: format!("{owner}_{name}"),
            origin: format!("{owner}.{name}"),
            is_shown: distribution.to_clients(),
        });
    }
    let methods = [
        &entity_type.base_methods,
        &entity_type.cell_methods,
        &entity_type.client_methods,
    ];
    for method in methods.into_iter().flatten() {
        let name = &method.name;
        for argument in method.args.iter().chain(&method.returns) {
            mentions.push(Mention {
                data_type: &argument.data_type,
                wanted: format!("{owner}_{name}_{}", argument.name),
                origin: format!("{owner}.{name}({})", argument.name),
                is_shown: method.client_id.is_some(),
            });
        }
    }
    mentions
}

fn dict(data_type: &DataType) -> Option<&FixedDict> {
    match data_type {
        DataType::FixedDict(dict) => Some(dict),
        _ => None,
    }
}

/// The key of a shape, as text.
fn key(dict: &FixedDict) -> String {
    let mut key = String::new();
    put_dict(dict, &mut key);
    key
}

fn put_dict(dict: &FixedDict, key: &mut String) {
    key.push('{');
    for field in &dict.fields {
        *key += &format!("{:?}:", field.name);
        put_type(&field.data_type, key);
        *key += &format!("={:?};", field.default);
    }
    key.push('}');
}

fn put_type(data_type: &DataType, key: &mut String) {
    match data_type {
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let kind = if matches!(data_type, DataType::Array(_)) {
                "array"
            } else {
                "tuple"
            };
            *key += &format!("{kind} {:?} ", sequence.size);
            put_type(&sequence.of, key);
        }
        DataType::FixedDict(dict) => {
            key.push(if dict.allow_none { '?' } else { '!' });
            put_dict(dict, key);
        }
        // The kind of object in the script host does not matter to Rust.
        DataType::Python(_) | DataType::UserType(_) => *key += "opaque",
        simple => *key += &simple.to_string(),
    }
}
