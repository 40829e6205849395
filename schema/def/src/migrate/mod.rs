//! Conversion of data from one schema to another.
//!
//! A [`Plan`] is computed from two schemas and their author's renames. It pairs types by name and members by name, and
//! has a conversion for each pair. Reports about a change are made from this plan, so they agree with what happens to
//! values. Three kinds of data carry the numbers or names of the schema that wrote them, each with its own conversion:
//! stored entities (by name), the parts of entities in a log or its snapshots (by number), and calls under way (by
//! number).

mod answers;
mod bridge;
mod number;
mod renames;

use std::collections::BTreeMap;

use annals_ids::{Mailbox, MemberId, Part, TypeId};

pub use bridge::{Difference, Fit, TypeChange, place_below};
pub use renames::{Rename, RenameError, Renames};

use bridge::{Bridge, Conversion, Source, TypeNumbers};

use crate::{
    check::{Mismatch, Step as ValueStep, check},
    data_type::DataType,
    schema::{Argument, EntityType, Method, Property, Schema},
    value::Value,
};

/// Conversion of data from one schema to another.
#[derive(Clone, Debug)]
pub struct Plan {
    old: Schema,
    new: Schema,
    /// The new number of each old type.
    numbers: TypeNumbers,
    /// By old numbers.
    types: Vec<TypePlan>,
}

/// The conversion of a type.
#[derive(Clone, Debug)]
pub struct TypePlan {
    /// By old numbers.
    pub properties: Vec<PropertyPlan>,
    /// By kind, then by old numbers.
    methods: [Vec<MethodPlan>; 3],
}

/// The conversion of a property.
#[derive(Clone, Debug)]
pub struct PropertyPlan {
    /// Its new number; `None` if it was removed.
    pub new: Option<MemberId>,
    conversion: Conversion,
    /// The differences between its types.
    pub differences: Vec<Difference>,
}

/// The conversion of a method.
#[derive(Clone, Debug)]
pub struct MethodPlan {
    /// Its new number; `None` if it was removed.
    pub new: Option<MemberId>,
    /// The conversion of its arguments.
    pub args: Arguments,
    /// The conversion of its return values.
    pub returns: Arguments,
}

/// The conversion of a list of arguments.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The source of each new argument.
    sources: Vec<Source>,
    /// The differences between types; each path begins with the argument's new name.
    pub differences: Vec<Difference>,
    /// Old and new names of arguments that kept their position.
    pub renamed: Vec<(String, String)>,
    /// Names of added arguments.
    pub added: Vec<String>,
    /// Names of removed arguments.
    pub removed: Vec<String>,
    /// Whether the remaining arguments changed their order.
    pub is_reordered: bool,
}

/// The kinds of methods that an entity type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MethodKind {
    /// Of the base part.
    Base,
    /// Of the cell part.
    Cell,
    Client,
}

/// Why data cannot be converted to the new schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The old schema has no such type.
    #[error(
        "{0} is not an entity type of the old definitions: migrate with the definitions under which the \
         data was written"
    )]
    UnknownType(String),
    /// The new schema has no such type.
    #[error("the type {0} of an entity was removed: add the type again, or declare its new name as a rename")]
    TypeRemoved(String),
    /// The type no longer has this part.
    #[error("{entity_type} no longer has a {part} part, but an entity has one: add the part again")]
    PartRemoved {
        /// The old name of the type.
        entity_type: String,
        part: Part,
    },
    /// The old schema has no such member.
    #[error(
        "{entity_type} has no {member} in the old definitions: migrate with the definitions under which the data was \
         written"
    )]
    UnknownMember {
        /// The old name of the type.
        entity_type: String,
        /// The member, as far as known.
        member: String,
    },
    /// A value cannot be converted.
    #[error("{entity_type}.{property}: {value} at {at} cannot be converted: {why}")]
    Misfit {
        /// The old name of the type.
        entity_type: String,
        /// The old name of the property; of a call, the method and its argument.
        property: String,
        /// The path in the property, from the outside in; `the top` for the whole value.
        at: String,
        /// The value at the path.
        value: Box<Value>,
        /// The reason.
        why: String,
    },
    /// The property moved to the other part, whose data is elsewhere.
    #[error(
        "{entity_type}.{property}: {value} is in the {part} part, which no longer has the property; \
         the other part is in the log of another owner"
    )]
    OtherPart {
        /// The old name of the type.
        entity_type: String,
        /// The old name of the property.
        property: String,
        value: Box<Value>,
        /// The new part.
        part: Part,
    },
    /// A call to an entity of unknown type.
    #[error(
        "a call of method {method} to {to} is not delivered yet, and its conversion depends on the type of the \
         receiver: start the realm on the old definitions until the call has arrived, and stop it again"
    )]
    UnknownReceiver {
        /// The receiver.
        to: String,
        /// The old number of the method.
        method: MemberId,
    },
    /// A call of a method that was removed.
    #[error(
        "{entity_type}.{method} was removed: a call of it that is not delivered yet can only be answered with an error"
    )]
    MethodRemoved {
        /// The old name of the type.
        entity_type: String,
        /// The old name of the method.
        method: String,
    },
}

impl Plan {
    /// Computes the plan from the old schema to the new one.
    #[must_use]
    pub fn new(old: &Schema, new: &Schema, renames: &Renames) -> Self {
        let partner = |of: &EntityType| match old.is_fragment(of.id) {
            true => new.fragments_of(&of.name),
            false => new.type_named(renames.of_type(&of.name)),
        };
        let numbers: TypeNumbers = old.all_types().map(|old| partner(old).map(|new| new.id)).collect();
        let is_renumbered = numbers
            .iter()
            .zip(old.all_types())
            .any(|(number, old)| *number != Some(old.id));
        let mailboxes = is_renumbered.then_some(&numbers);
        let plan = |old: &EntityType| {
            let partner = numbers[usize::from(old.id.0)].and_then(|id| new.entity_type(id));
            partner.map_or_else(
                || TypePlan::gone(old),
                |new| TypePlan::new(old, new, renames, mailboxes),
            )
        };
        Self {
            types: old.all_types().map(plan).collect(),
            old: old.clone(),
            new: new.clone(),
            numbers,
        }
    }

    /// Converts a stored entity: the name of its type, and its properties by name. New properties are left out, as the
    /// reader of the row gives them their defaults; properties that are no longer stored are dropped.
    ///
    /// # Errors
    /// If a part of it cannot be converted.
    pub fn convert_stored(
        &self,
        entity_type: &str,
        properties: &BTreeMap<String, Value>,
    ) -> Result<(String, BTreeMap<String, Value>), MigrationError> {
        let old = self.old.type_named(entity_type);
        let old = old.ok_or_else(|| MigrationError::UnknownType(entity_type.to_owned()))?;
        let (plan, new) = self.partner(old)?;
        // An entity is loaded through its base part.
        keeps_part((old, new), Part::Base)?;
        let mut converted = BTreeMap::new();
        for (property, plan) in old.properties.iter().zip(&plan.properties) {
            let held = properties.get(&property.name).filter(|_| property.is_stored());
            let target = plan.new.and_then(|id| new.property(id)).filter(|new| new.is_stored());
            if let (Some(value), Some(target)) = (held, target) {
                let value = self.convert_property((old, property), (plan, target), value)?;
                converted.insert(target.name.clone(), value);
            }
        }
        Ok((new.name.clone(), converted))
    }

    /// Converts the properties of a live part: the number of its type, and its properties by number. Added properties
    /// get their defaults, removed ones are dropped.
    ///
    /// # Errors
    /// If a part of it cannot be converted.
    pub fn convert_held(
        &self,
        type_id: TypeId,
        part: Part,
        properties: &BTreeMap<MemberId, Value>,
    ) -> Result<(TypeId, BTreeMap<MemberId, Value>), MigrationError> {
        let (type_id, given) = self.convert_given(type_id, part, properties)?;
        let new = self
            .new
            .entity_type(type_id)
            .expect("invariant: the plan names types of the new schema");
        let held = new.properties.iter().filter(|property| property.is_held_by(part));
        let mut converted: BTreeMap<MemberId, Value> = held
            .map(|property| (property.index, property.default.clone()))
            .collect();
        converted.extend(given);
        Ok((type_id, converted))
    }

    /// As [`Plan::convert_held`], for some properties of a part that is not live yet: added properties are left out, as
    /// the creator of the part gives them their defaults.
    ///
    /// # Errors
    /// If a part of it cannot be converted.
    pub fn convert_given(
        &self,
        type_id: TypeId,
        part: Part,
        properties: &BTreeMap<MemberId, Value>,
    ) -> Result<(TypeId, BTreeMap<MemberId, Value>), MigrationError> {
        let old = self.old_type(type_id)?;
        let (plan, new) = self.partner(old)?;
        keeps_part((old, new), part)?;
        let mut converted = BTreeMap::new();
        for (id, value) in properties {
            let property = old.property(*id).ok_or_else(|| MigrationError::UnknownMember {
                entity_type: old.name.clone(),
                member: format!("property {id}"),
            })?;
            let plan = &plan.properties[usize::from(id.0)];
            let Some(target) = plan.new.and_then(|id| new.property(id)) else {
                continue;
            };
            if target.is_held_by(part) {
                let value = self.convert_property((old, property), (plan, target), value)?;
                converted.insert(target.index, value);
            } else if target.is_held_by(other(part)) && *value != property.default {
                return Err(MigrationError::OtherPart {
                    entity_type: old.name.clone(),
                    property: property.name.clone(),
                    value: Box::new(value.clone()),
                    part,
                });
            }
        }
        Ok((new.id, converted))
    }

    /// Converts a value that no definition describes, such as global data: the entity types of the mailboxes in it. A
    /// mailbox of a removed type becomes none.
    #[must_use]
    pub fn convert_untyped(&self, value: &Value) -> Value {
        let each = |values: &[Value]| values.iter().map(|value| self.convert_untyped(value)).collect();
        match value {
            Value::Mailbox(Some(mailbox)) => {
                let type_id = self.numbers.get(usize::from(mailbox.type_id.0)).copied().flatten();
                Value::Mailbox(type_id.map(|type_id| Mailbox { type_id, ..*mailbox }))
            }
            Value::Sequence(values) => Value::Sequence(each(values)),
            Value::Dict(values) => Value::Dict(each(values)),
            other => other.clone(),
        }
    }

    /// Converts a call under way: the number of its method, and its arguments. An added argument gets its type's
    /// default.
    ///
    /// # Errors
    /// If the method was removed, or an argument cannot be converted or does not fit the old definitions.
    pub fn convert_call(
        &self,
        type_id: TypeId,
        kind: MethodKind,
        method: MemberId,
        args: &[Value],
    ) -> Result<(MemberId, Vec<Value>), MigrationError> {
        let old = self.old_type(type_id)?;
        let (plan, new) = self.partner(old)?;
        let unknown = || MigrationError::UnknownMember {
            entity_type: old.name.clone(),
            member: format!("method {method} with {} arguments", args.len()),
        };
        let from = kind.methods(old).get(usize::from(method.0));
        let from = from.filter(|from| from.args.len() == args.len()).ok_or_else(unknown)?;
        let plan = &plan.methods[kind as usize][usize::from(method.0)];
        let to = plan.new.and_then(|id| kind.methods(new).get(usize::from(id.0)));
        let to = to.ok_or_else(|| MigrationError::MethodRemoved {
            entity_type: old.name.clone(),
            method: from.name.clone(),
        })?;
        let named = |argument: &Argument| format!("{}({})", from.name, argument.name);
        for (argument, value) in from.args.iter().zip(args) {
            written_under(old, || named(argument), &argument.data_type, value)?;
        }
        let mut converted = Vec::with_capacity(to.args.len());
        for (source, argument) in plan.args.sources.iter().zip(&to.args) {
            converted.push(match source {
                Source::Value(value) => value.clone(),
                Source::Field(at, conversion) => {
                    let types = (&from.args[*at].data_type, &argument.data_type);
                    let value = conversion.apply(types, &args[*at], &self.numbers);
                    value.map_err(|found| misfit(old, named(&from.args[*at]), found))?
                }
            });
        }
        Ok((to.index, converted))
    }

    /// The schema that wrote the data.
    #[must_use]
    pub fn old(&self) -> &Schema {
        &self.old
    }

    /// The schema that reads the data.
    #[must_use]
    pub fn new_schema(&self) -> &Schema {
        &self.new
    }

    /// The plan of a type of the old schema.
    ///
    /// # Panics
    /// If the old schema has no type of this number.
    #[must_use]
    pub fn of_type(&self, old: TypeId) -> &TypePlan {
        &self.types[usize::from(old.0)]
    }

    /// The converted default of an old property, given its plan and its new form; `None` if it cannot be converted.
    #[must_use]
    pub fn cross_default(&self, plan: &PropertyPlan, old: &Property, new: &Property) -> Option<Value> {
        let types = (&old.data_type, &new.data_type);
        plan.conversion.apply(types, &old.default, &self.numbers).ok()
    }

    /// The new type of an old one; `None` if it was removed.
    #[must_use]
    pub fn new_type(&self, old: TypeId) -> Option<&EntityType> {
        let number = *self.numbers.get(usize::from(old.0))?;
        number.and_then(|id| self.new.entity_type(id))
    }

    /// The old type of a new one, if it has one.
    #[must_use]
    pub fn old_of(&self, new: TypeId) -> Option<&EntityType> {
        let at = self.numbers.iter().position(|number| *number == Some(new))?;
        self.old.all_types().nth(at)
    }

    /// Whether entities of this old type are fragments of a service that the new schema does not have.
    #[must_use]
    pub fn ends_fragments(&self, old: TypeId) -> bool {
        self.old.is_fragment(old) && self.new_type(old).is_none()
    }

    fn old_type(&self, id: TypeId) -> Result<&EntityType, MigrationError> {
        let found = self.old.entity_type(id);
        found.ok_or_else(|| MigrationError::UnknownType(format!("type {id}")))
    }

    fn partner(&self, old: &EntityType) -> Result<(&TypePlan, &EntityType), MigrationError> {
        let new = self.new_type(old.id);
        let new = new.ok_or_else(|| MigrationError::TypeRemoved(old.name.clone()))?;
        Ok((&self.types[usize::from(old.id.0)], new))
    }

    fn convert_property(
        &self,
        (old, property): (&EntityType, &Property),
        (plan, target): (&PropertyPlan, &Property),
        value: &Value,
    ) -> Result<Value, MigrationError> {
        // The value was never set: use the default of a new entity.
        if matches!(plan.conversion, Conversion::Never) && *value == property.default {
            return Ok(target.default.clone());
        }
        written_under(old, || property.name.clone(), &property.data_type, value)?;
        let types = (&property.data_type, &target.data_type);
        let converted = plan.conversion.apply(types, value, &self.numbers);
        converted.map_err(|found| misfit(old, property.name.clone(), found))
    }
}

impl TypePlan {
    /// The plans of the methods of a kind, by old number.
    #[must_use]
    pub fn methods(&self, kind: MethodKind) -> &[MethodPlan] {
        &self.methods[kind as usize]
    }

    fn gone(old: &EntityType) -> Self {
        let property = |_: &Property| PropertyPlan {
            new: None,
            conversion: Conversion::Never,
            differences: Vec::new(),
        };
        let method = |_: &Method| MethodPlan {
            new: None,
            args: Arguments::default(),
            returns: Arguments::default(),
        };
        Self {
            properties: old.properties.iter().map(property).collect(),
            methods: MethodKind::ALL.map(|kind| kind.methods(old).iter().map(method).collect()),
        }
    }

    fn new(old: &EntityType, new: &EntityType, renames: &Renames, numbers: Option<&TypeNumbers>) -> Self {
        // A rename may concern a member of another kind with the same name.
        let property = |from: &Property| {
            let renamed = new.property_named(renames.of_member(&old.name, &from.name));
            let mut bridge = Bridge::new(numbers);
            let to = renamed.or_else(|| new.property_named(&from.name));
            let conversion = to.map_or(Conversion::Never, |to| match from.personal == to.personal {
                true => bridge.walk(&from.data_type, &to.data_type),
                // A value sealed under one type cannot be read as another, and conversion neither seals nor opens
                // values.
                false => Conversion::Never,
            });
            PropertyPlan {
                new: to.map(|to| to.index),
                conversion,
                differences: bridge.differences,
            }
        };
        let method = |kind| {
            move |from: &Method| {
                let renamed = method_named(new, kind, renames.of_member(&old.name, &from.name));
                let to = renamed.or_else(|| method_named(new, kind, &from.name));
                MethodPlan {
                    new: to.map(|to| to.index),
                    args: to.map_or_else(Arguments::default, |to| Arguments::new(&from.args, &to.args, numbers)),
                    returns: to.map_or_else(Arguments::default, |to| {
                        Arguments::new(&from.returns, &to.returns, numbers)
                    }),
                }
            }
        };
        Self {
            properties: old.properties.iter().map(property).collect(),
            methods: MethodKind::ALL.map(|kind| kind.methods(old).iter().map(method(kind)).collect()),
        }
    }
}

impl PropertyPlan {
    /// Whether values contain mailboxes with entity types that have other numbers now.
    #[must_use]
    pub fn renumbers_mailboxes(&self) -> bool {
        self.conversion.is_of_mailboxes()
    }
}

impl Arguments {
    /// Pairs arguments by name, and the remaining ones by position.
    fn new(old: &[Argument], new: &[Argument], numbers: Option<&TypeNumbers>) -> Self {
        let by_name = |to: &Argument| old.iter().position(|from| from.name == to.name);
        let is_left = |from: &Argument| !new.iter().any(|to| to.name == from.name);
        let mut plan = Self::default();
        let mut taken = Vec::new();
        for (place, to) in new.iter().enumerate() {
            let in_place = || old.get(place).filter(|from| is_left(from)).map(|_| place);
            let Some(at) = by_name(to).or_else(in_place) else {
                plan.sources.push(Source::Value(to.data_type.default_value()));
                plan.added.push(to.name.clone());
                continue;
            };
            if old[at].name != to.name {
                plan.renamed.push((old[at].name.clone(), to.name.clone()));
            }
            plan.is_reordered |= taken.last() > Some(&at);
            taken.push(at);
            let mut bridge = Bridge::new(numbers);
            let conversion = bridge.walk(&old[at].data_type, &to.data_type);
            plan.sources.push(Source::Field(at, conversion));
            plan.differences
                .extend(bridge.differences.into_iter().map(|mut difference| {
                    difference.at = place_below(&to.name, &difference.at);
                    difference
                }));
        }
        let gone = old.iter().enumerate().filter(|(at, _)| !taken.contains(at));
        plan.removed = gone.map(|(_, from)| from.name.clone()).collect();
        plan
    }
}

impl MethodKind {
    /// All kinds; the number of a kind is its position here.
    pub const ALL: [MethodKind; 3] = [MethodKind::Base, MethodKind::Cell, MethodKind::Client];

    /// The methods of this kind in a type.
    #[must_use]
    pub fn methods(self, entity_type: &EntityType) -> &[Method] {
        match self {
            Self::Base => &entity_type.base_methods,
            Self::Cell => &entity_type.cell_methods,
            Self::Client => &entity_type.client_methods,
        }
    }

    /// The name of the kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base method",
            Self::Cell => "cell method",
            Self::Client => "client method",
        }
    }
}

fn method_named<'a>(entity_type: &'a EntityType, kind: MethodKind, name: &str) -> Option<&'a Method> {
    match kind {
        MethodKind::Base => entity_type.base_method_named(name),
        MethodKind::Cell => entity_type.cell_method_named(name),
        MethodKind::Client => entity_type.client_method_named(name),
    }
}

fn keeps_part((old, new): (&EntityType, &EntityType), part: Part) -> Result<(), MigrationError> {
    let has = |entity_type: &EntityType| match part {
        Part::Base => entity_type.parts.base,
        Part::Cell => entity_type.parts.cell,
    };
    if has(old) && !has(new) {
        let entity_type = old.name.clone();
        return Err(MigrationError::PartRemoved { entity_type, part });
    }
    Ok(())
}

fn other(part: Part) -> Part {
    match part {
        Part::Base => Part::Cell,
        Part::Cell => Part::Base,
    }
}

/// Rejects a value that does not fit its old type, for which no conversion is reliable.
fn written_under(
    old: &EntityType,
    name: impl FnOnce() -> String,
    data_type: &DataType,
    value: &Value,
) -> Result<(), MigrationError> {
    check(data_type, value).map_err(|Mismatch { at, problem }| {
        let why = format!("{problem}; it was not written under the old definitions");
        let value = value.clone();
        misfit(old, name(), bridge::Misfit { at, value, why })
    })
}

fn misfit(old: &EntityType, property: String, found: bridge::Misfit) -> MigrationError {
    let mut at = String::new();
    for step in &found.at {
        match step {
            ValueStep::Element(index) => at.push_str(&format!("[{index}]")),
            ValueStep::Field(name) if at.is_empty() => at.push_str(name),
            ValueStep::Field(name) => at.push_str(&format!(".{name}")),
        }
    }
    if at.is_empty() {
        at.push_str("the top");
    }
    MigrationError::Misfit {
        entity_type: old.name.clone(),
        property,
        at,
        value: Box::new(found.value),
        why: found.why,
    }
}
