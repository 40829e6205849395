//! A type declaration: in `<Type>`, in `<of>`, as an argument, as an alias.

use std::{collections::BTreeMap, sync::Arc};

use super::{Fields, Reading, alias::Pending};
use crate::{
    data_type::{DataType, Field, FixedDict, MAX_DEFAULT_VALUES, MAX_TYPE_DEPTH, MAX_TYPE_NODES, Sequence},
    diagnostic::{Finding, Rule},
    grammar::{self, Meaning, TYPES, TypeWord},
    names::Name,
    source::Section,
    value::Value,
};

/// A type and the initial value of a member of it.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) data_type: DataType,
    /// `None`: the type's own default.
    pub(crate) default: Option<Value>,
}

impl Typed {
    /// The type and the initial value.
    pub(crate) fn with_value(self) -> (DataType, Value) {
        let Self { data_type, default } = self;
        let default = default.unwrap_or_else(|| data_type.default_value());
        (data_type, default)
    }

    /// Approximate size when written out, in nodes of types and values of defaults.
    fn cost(&self) -> usize {
        let default = match &self.default {
            Some(default) => default.cost(),
            None => self.data_type.default_count().unwrap_or(MAX_DEFAULT_VALUES),
        };
        self.data_type.cost() + default
    }
}

/// Whether the name is that of a built-in type.
pub(super) fn is_built_in(name: &str) -> bool {
    TypeWord::of(name).is_some()
}

impl<'s> Reading<'s> {
    /// The type that a section declares; `None` and a finding if it is wrong.
    pub(crate) fn declared_type(&mut self, section: Section<'s>) -> Option<Typed> {
        self.declared_type_with(section, &mut Pending::none())
    }

    /// The same while aliases are being read.
    pub(super) fn declared_type_with(&mut self, section: Section<'s>, pending: &mut Pending<'s>) -> Option<Typed> {
        let name = section.text();
        if name.is_empty() {
            let message = format!("`<{}>` does not name a type", section.name);
            let finding = Finding::new(Rule::MissingType, section.name_span(), message)
                .help("write a type of the language, like `UINT8`, or an alias");
            self.report(finding);
            return None;
        }
        let built_in = TypeWord::of(name).map(|word| &word.meaning);
        if let (Some(Meaning::Simple(data_type)), false) = (built_in, self.has_hiding_alias) {
            let typed = self.simple(data_type.clone(), section);
            return typed.filter(|typed| self.spend(typed.cost(), section));
        }
        if let Some(alias) = self.pending_alias(name, section.text_span(), pending) {
            let fields = self.fields(section, &grammar::SIMPLE);
            if let Some(default) = fields.get("Default") {
                let message = format!("the default of the alias `{name}` cannot be changed here; this one is not read");
                let finding = Finding::new(Rule::AliasDefault, default.name_span(), message)
                    .help("move it to the property, as its `<Default>`");
                self.report(finding);
            }
            return alias.filter(|typed| self.spend(typed.cost(), section));
        }
        let typed = match self.meaning_of(name, section) {
            Some(Meaning::Simple(data_type)) => self.simple(data_type.clone(), section),
            Some(Meaning::Array) => self.sequence(true, section, pending),
            Some(Meaning::Tuple) => self.sequence(false, section, pending),
            Some(Meaning::Dict) => self.dict(section, pending),
            Some(Meaning::User) => self.user_type(section),
            None => self.unknown_type(section),
        }?;
        let is_small = self.is_small_enough(&typed.data_type, section) && self.spend(typed.cost(), section);
        is_small.then_some(typed)
    }

    /// Subtracts a type, or the values of a default, from the budget; reports when the budget is used up.
    pub(super) fn spend(&mut self, cost: usize, section: Section<'s>) -> bool {
        if let Some(left) = self.budget.checked_sub(cost) {
            self.budget = left;
            return true;
        }
        let message = "from here on, all types and defaults together are too large";
        let finding = Finding::new(Rule::TypeTooLarge, section.text_span(), message)
            .help("use large types in fewer places, or omit the sizes of sequences");
        self.report(finding);
        false
    }

    /// The meaning of a built-in type whose name is in another case.
    fn meaning_of(&mut self, name: &str, section: Section<'s>) -> Option<&'static Meaning> {
        let word = TYPES.iter().find(|word| word.name.eq_ignore_ascii_case(name))?;
        if word.name != name {
            let message = format!("`{name}` is read as `{}`", word.name);
            let finding = Finding::new(Rule::TypeCase, section.text_span(), message).write(word.name);
            self.report(finding);
        }
        Some(&word.meaning)
    }

    fn unknown_type(&mut self, section: Section<'s>) -> Option<Typed> {
        let name = section.text();
        let message = format!("there is no type `{name}`");
        let finding = Finding::new(Rule::UnknownType, section.text_span(), message);
        let aliases: Vec<&str> = self.aliases.keys().map(|name| name.0).collect();
        let known = TYPES.iter().map(|word| word.name).chain(aliases);
        let file = self.alias_file;
        let meant = self.nearest(name, known);
        self.report(match (name, meant) {
            ("BOOL" | "BOOLEAN", _) => finding.help(format!(
                "no dialect has it built in: add `<{name}> UINT8 </{name}>` to `{file}`"
            )),
            _ if name.contains(['<', '>']) => {
                finding.help("the markup is escaped: write `<` and `>` themselves, as in `ARRAY <of> TYPE </of>`")
            }
            ("PATROL_PATH", _) => finding.help("use `UDO_REF` and a user data object"),
            (_, Some(meant)) => finding.meant(meant),
            (_, None) => finding.help(format!("declare it in `{file}`")),
        });
        None
    }

    fn simple(&mut self, data_type: DataType, section: Section<'s>) -> Option<Typed> {
        let fields = self.fields(section, &grammar::SIMPLE);
        self.with_default(data_type, fields.get("Default"))
    }

    fn sequence(&mut self, is_array: bool, section: Section<'s>, pending: &mut Pending<'s>) -> Option<Typed> {
        let fields = self.fields(section, &grammar::SEQUENCE);
        let element = match fields.get("of") {
            Some(of) => self.declared_type_with(of, pending),
            None => {
                let message = format!("`{}` has no element type", section.text());
                let finding = Finding::new(Rule::ElementType, section.text_span(), message)
                    .help(format!("write `{} <of> TYPE </of>`", section.text()));
                self.report(finding);
                None
            }
        };
        let limit = u32::try_from(MAX_DEFAULT_VALUES).unwrap_or(u32::MAX);
        let declared_size = fields
            .get("size")
            .map(|size| self.integer(size, Rule::SequenceSize, 0, limit));
        let size = declared_size.unwrap_or(Some(0));
        let persist_as_blob = self.boolean(fields.get("persistAsBlob"), false);
        let (of, element_default) = element?.with_value();
        let has_size = size.is_some();
        // The predecessors write a size of 0 for no size.
        let size = size.filter(|size| *size > 0);
        let sequence = Arc::new(Sequence {
            of,
            size,
            element_default,
            persist_as_blob,
        });
        let data_type = if is_array {
            DataType::Array(sequence)
        } else {
            DataType::Tuple(sequence)
        };
        if !self.is_small_enough(&data_type, section) {
            return None;
        }
        let typed = self.with_default(data_type, fields.get("Default"));
        typed.filter(|_| has_size)
    }

    fn dict(&mut self, section: Section<'s>, pending: &mut Pending<'s>) -> Option<Typed> {
        let fields = self.fields(section, &grammar::DICT);
        let mut dict = FixedDict::of(Vec::new());
        let mut is_whole = true;
        if let Some(parent) = fields.get("Parent") {
            match self.declared_type_with(parent, pending).map(|typed| typed.data_type) {
                Some(DataType::FixedDict(parent)) => dict.fields.clone_from(&parent.fields),
                Some(_) => {
                    let message = format!("`{}` is not a FIXED_DICT", parent.text());
                    let finding = Finding::new(Rule::DictParent, parent.text_span(), message)
                        .help("name an alias of a FIXED_DICT");
                    self.report(finding);
                    is_whole = false;
                }
                None => is_whole = false,
            }
        }
        if let Some(properties) = fields.get("Properties") {
            self.attributes_mean_nothing(properties);
            self.text_means_nothing(properties);
            is_whole &= self.dict_fields(properties, pending, &mut dict);
        }
        if is_whole && dict.fields.is_empty() {
            let finding = Finding::new(Rule::NoFields, section.text_span(), "the FIXED_DICT has no fields")
                .help("add `<Properties> <name> <Type> TYPE </Type> </name> </Properties>`");
            self.report(finding);
            is_whole = false;
        }
        dict.allow_none = self.boolean(fields.get("AllowNone"), false);
        if let Some(implemented_by) = fields.get("implementedBy") {
            dict.implemented_by = self.text(implemented_by).map(|named| named.name.to_owned());
        }
        let data_type = DataType::FixedDict(Arc::new(dict));
        if !is_whole || !self.is_small_enough(&data_type, section) {
            return None;
        }
        self.with_default(data_type, fields.get("Default"))
    }

    /// Adds the declared fields; `false` if one of them is wrong.
    fn dict_fields(&mut self, properties: Section<'s>, pending: &mut Pending<'s>, dict: &mut FixedDict) -> bool {
        let mut declared: BTreeMap<&str, Section<'s>> = BTreeMap::new();
        let mut is_whole = true;
        for section in properties.children() {
            if dict.fields.len() > MAX_TYPE_NODES {
                // The caller reports the whole.
                return true;
            }
            let Some(field) = self.dict_field(section, pending) else {
                is_whole = false;
                continue;
            };
            if let Some(first) = declared.insert(section.name, section) {
                let message = format!(
                    "the field `{}` is declared twice; this declaration replaces the first",
                    field.name
                );
                let finding = Finding::new(Rule::RepeatedField, section.name_span(), message)
                    .help("remove one of the two")
                    .related(first.name_span(), "declared here first");
                self.report(finding);
            }
            match dict.fields.iter_mut().find(|known| known.name == field.name) {
                Some(known) => *known = field,
                None => dict.fields.push(field),
            }
        }
        is_whole
    }

    fn dict_field(&mut self, section: Section<'s>, pending: &mut Pending<'s>) -> Option<Field> {
        let is_named = self.is_identifier(section);
        let is_bare = self.bare_type(section).is_some();
        let is_tag = |child: Section<'_>| grammar::FIELD.tag(child.name).is_some();
        if is_bare && section.has_children() && !section.children().any(is_tag) {
            // All its content belongs to the type.
            self.no_type(section, "the field ");
            return None;
        }
        if !is_bare {
            self.text_means_nothing(section);
        }
        let fields = self.fields(section, &grammar::FIELD);
        self.default_of_field(&fields);
        let persistent = self.boolean(fields.get("Persistent"), true);
        let database_length = match fields.get("DatabaseLength") {
            Some(length) => self.integer(length, Rule::Number, 1, u32::MAX).map(Some),
            None => Some(None),
        };
        let Some(declared) = fields.get("Type") else {
            self.no_type(section, "the field ");
            return None;
        };
        let typed = self.declared_type_with(declared, pending);
        let database_length = database_length?;
        let (data_type, default) = typed?.with_value();
        is_named.then(|| Field {
            name: section.name.to_owned(),
            data_type,
            default,
            persistent,
            database_length,
        })
    }

    /// Reports a `<Default>` beside the `<Type>` of a field, where only a property has one.
    fn default_of_field(&mut self, fields: &Fields<'s>) {
        let Some(default) = fields.get("Default") else { return };
        let alias = fields.get("Type").map(Section::text).filter(|name| !is_built_in(name));
        let help = match alias {
            Some(alias) => format!("move it to the declaration of `{alias}`, or remove it"),
            None => "move it into the `<Type>`, after the type".to_owned(),
        };
        let message = "the `<Default>` of a field is not read here";
        self.report(Finding::new(Rule::DefaultIgnored, default.name_span(), message).help(help));
    }

    /// The type that is the text of a member without a `<Type>`.
    pub(super) fn bare_type(&self, section: Section<'s>) -> Option<&'s str> {
        // Nearly all members have no text, and the name would be looked up in two places.
        let text = section.has_text().then(|| section.text())?;
        let is_type = is_built_in(text) || self.aliases.contains_key(&Name(text));
        (is_type && section.child("Type").is_none()).then_some(text)
    }

    /// Reports a member without a `<Type>`.
    pub(super) fn no_type(&mut self, section: Section<'s>, what: &str) {
        let name = section.name;
        let help = match self.bare_type(section) {
            Some(bare) => {
                let is_simple = |word: &TypeWord| matches!(word.meaning, Meaning::Simple(_));
                let rest = if TypeWord::of(bare).is_none_or(is_simple) {
                    ""
                } else {
                    "… "
                };
                let inner = format!("<Type> {bare} {rest}</Type>");
                match section.has_children() {
                    true => format!("put the type into a `<Type>`: `{inner}`"),
                    false => format!("write `<{name}> {inner} </{name}>`"),
                }
            }
            None => "add `<Type> TYPE </Type>`".to_owned(),
        };
        let message = format!("{what}`{name}` has no type");
        self.report(Finding::new(Rule::MissingType, section.name_span(), message).help(help));
    }

    fn user_type(&mut self, section: Section<'s>) -> Option<Typed> {
        let fields = self.fields(section, &grammar::USER);
        let Some(implemented_by) = fields.get("implementedBy") else {
            let message = "the USER_TYPE has no `<implementedBy>`";
            let finding = Finding::new(Rule::ImplementedBy, section.text_span(), message)
                .help("add `<implementedBy> module.instance </implementedBy>`");
            self.report(finding);
            return None;
        };
        let data_type = DataType::UserType(self.text(implemented_by)?.name.to_owned());
        self.with_default(data_type, fields.get("Default"))
    }

    fn with_default(&mut self, data_type: DataType, section: Option<Section<'s>>) -> Option<Typed> {
        let default = match section {
            Some(section) => Some(self.default(&data_type, &data_type.default_value(), section)?),
            None => None,
        };
        Some(Typed { data_type, default })
    }

    fn is_small_enough(&mut self, data_type: &DataType, section: Section<'s>) -> bool {
        let problem = if data_type.depth() > MAX_TYPE_DEPTH {
            format!("the type is nested more than {MAX_TYPE_DEPTH} levels deep")
        } else if data_type.node_count() > MAX_TYPE_NODES {
            format!("the type has more than {MAX_TYPE_NODES} parts after all aliases are expanded")
        } else if data_type.default_count().is_none_or(|count| count > MAX_DEFAULT_VALUES) {
            format!("the default of the type has more than {MAX_DEFAULT_VALUES} values")
        } else {
            return true;
        };
        let finding = Finding::new(Rule::TypeTooLarge, section.text_span(), problem)
            .help("split it, or omit the sizes of sequences");
        self.report(finding);
        false
    }
}
