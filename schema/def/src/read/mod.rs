//! Reads sections into declarations: the meaning of each tag, in both dialects.
//!
//! Each file is read once, regardless of how many refer to it. The result is nearly final: types are resolved, defaults
//! are values. What depends on the entity that inherits a declaration (merging, levels of detail) is left to
//! [`crate::compile`].

mod account;
mod alias;
mod correction;
mod declared_type;
mod definition;
mod dialect;
mod entity_list;
mod kbengine_default;
mod ledger;
mod literal;
mod method;
mod personal;
mod property;
mod python;
mod reserved;
mod space;
mod used_types;
mod zone;

use std::collections::BTreeMap;

pub(crate) use alias::read_aliases;
pub(crate) use declared_type::Typed;
pub(crate) use definition::{ComponentUse, Definition};
pub(crate) use dialect::{Choice, Sign, Signs};
pub use dialect::{DialectChoice, DialectSign};
pub(crate) use entity_list::{EntityList, Listed};
pub(crate) use method::{DeclaredArgument, DeclaredMethod, MethodPart};
pub(crate) use property::DeclaredProperty;
pub(crate) use space::DeclaredLevel;
pub(crate) use zone::ZonesRead;

use used_types::UsedTypes;

use crate::{
    data_type::DataType,
    diagnostic::{Finding, Findings, Fix, Rule, Severity},
    grammar::{self, BOOLEANS, Content, Dialect, Family, Kind, Occurs, Tag},
    names::Name,
    source::{FileId, Section, Span},
};

/// The state of reading: what it needs to know, and its findings.
pub(crate) struct Reading<'s> {
    pub(crate) dialect: Dialect,
    /// The aliases; `None` for a wrong declaration, which has been reported.
    pub(crate) aliases: BTreeMap<Name<'s>, Option<Typed>>,
    /// The file in which aliases are declared, or would be.
    pub(crate) alias_file: &'static str,
    /// The extent of each alias declaration.
    alias_extents: Vec<(Span, &'s str)>,
    /// Which aliases are used where.
    used_types: UsedTypes<'s>,
    /// Whether an alias has the name of a built-in type, which makes such a name ambiguous.
    has_hiding_alias: bool,
    pub(crate) findings: Findings,
    /// Remaining budget of nodes of types and values of defaults.
    pub(crate) budget: usize,
}

/// Maximum nodes of types and values of defaults in all declarations together. Each use counts: types are shared in
/// memory, but a stored schema writes out every use, so a small file could otherwise fill a disk with one large alias.
pub(crate) const MAX_DECLARED: usize = 8_000_000;

/// Maximum bytes of any name. Names are copied to every heir.
const MAX_NAME: usize = 255;

/// A name and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'s> {
    pub(crate) name: &'s str,
    pub(crate) span: Span,
}

impl<'s> Named<'s> {
    /// The text of a section.
    pub(crate) fn text_of(section: Section<'s>) -> Self {
        Self {
            name: section.text(),
            span: section.text_span(),
        }
    }
}

/// The children of a section by their tags.
pub(crate) struct Fields<'s> {
    /// The first fields; nearly all sections have no more.
    few: [Option<(&'static str, Section<'s>)>; FEW_FIELDS],
    /// The other fields.
    more: Vec<(&'static str, Section<'s>)>,
    many: Vec<Section<'s>>,
}

/// Number of fields that a section may have without an allocation.
const FEW_FIELDS: usize = 6;

impl<'s> Fields<'s> {
    fn none() -> Self {
        Self {
            few: [None; FEW_FIELDS],
            more: Vec::new(),
            many: Vec::new(),
        }
    }

    fn push(&mut self, tag: &'static str, section: Section<'s>) {
        match self.few.iter_mut().find(|free| free.is_none()) {
            Some(free) => *free = Some((tag, section)),
            None => self.more.push((tag, section)),
        }
    }

    /// The child of this tag.
    pub(crate) fn get(&self, tag: &str) -> Option<Section<'s>> {
        let few = self.few.iter().map_while(Option::as_ref);
        few.chain(&self.more)
            .find(|(known, _)| *known == tag)
            .map(|(_, section)| *section)
    }

    /// The children of tags that may occur several times.
    pub(crate) fn many(&self) -> &[Section<'s>] {
        &self.many
    }
}

impl<'s> Reading<'s> {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            aliases: BTreeMap::new(),
            alias_file: dialect.alias_file(),
            alias_extents: Vec::new(),
            used_types: UsedTypes::default(),
            has_hiding_alias: false,
            findings: Findings::default(),
            budget: MAX_DECLARED,
        }
    }

    /// The named types.
    pub(crate) fn named_types(&self) -> BTreeMap<String, DataType> {
        let named = self.aliases.iter();
        named
            .filter_map(|(name, typed)| Some((name.0.to_owned(), typed.as_ref()?.data_type.clone())))
            .collect()
    }

    /// The extents of aliases that no file selected by `is_read` uses. Empty for KBEngine, which rejects a file of
    /// aliases with any mistake.
    pub(crate) fn idle_aliases(&self, is_read: impl Fn(FileId) -> bool) -> Vec<Span> {
        if self.dialect == Dialect::KBEngine {
            return Vec::new();
        }
        let used = self.used_types.from(is_read);
        let idle = self.alias_extents.iter().filter(|(_, name)| !used.contains(name));
        idle.map(|(extent, _)| *extent).collect()
    }

    pub(crate) fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// The candidate most similar to `word`, if one is similar enough.
    pub(crate) fn nearest<'c>(&mut self, word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        self.findings.nearest(word, candidates)
    }

    /// Sorts the children of a section by tag, and reports unknown ones.
    pub(crate) fn fields(&mut self, section: Section<'s>, content: &'static Content) -> Fields<'s> {
        let mut fields = Fields::none();
        self.attributes_mean_nothing(section);
        for child in section.children() {
            let Some(tag) = content
                .tag(child.name)
                .or_else(|| self.nearly_known_tag(child, content))
            else {
                continue;
            };
            match tag.occurs {
                Occurs::Many => fields.many.push(child),
                Occurs::Unused => {
                    let message = format!("`<{}>` has no effect here", child.name);
                    let finding = Finding::new(Rule::NotUsed, child.name_span(), message);
                    let help = format!("remove it, unless another program reads it: {}", tag.remark());
                    self.report(finding.help(help));
                }
                Occurs::Needed | Occurs::Once | Occurs::Misplaced => match fields.get(tag.name) {
                    None => fields.push(tag.name, child),
                    Some(first) => {
                        let message = format!("`<{}>` is repeated; the first one takes effect", child.name);
                        let finding = Finding::new(Rule::RepeatedTag, child.name_span(), message)
                            .help("merge the two sections")
                            .related(first.name_span(), "the first one");
                        self.report(finding);
                    }
                },
            }
        }
        fields
    }

    /// The tag that a child is in another case, which is reported; reports a child that is not a tag in any case.
    fn nearly_known_tag(&mut self, child: Section<'s>, content: &'static Content) -> Option<&'static Tag> {
        let is_read = |tag: &&Tag| tag.occurs != Occurs::Unused;
        let known = content.tags.iter().filter(is_read);
        let mut once = known.clone().filter(|tag| tag.occurs != Occurs::Many);
        if let Some(tag) = once.find(|tag| tag.name.eq_ignore_ascii_case(child.name)) {
            let message = format!("`<{}>` is read as `<{}>`", child.name, tag.name);
            let finding = Finding::new(Rule::TagCase, child.name_span(), message);
            self.report(finding.write_tag(tag.name));
            return Some(tag);
        }
        self.unknown_tag(child, known.map(|tag| tag.name));
        None
    }

    /// Reports a tag that is unknown at its place.
    pub(crate) fn unknown_tag(&mut self, child: Section<'s>, known: impl IntoIterator<Item = &'static str>) {
        let message = format!("`<{}>` is unknown and has no effect", child.name);
        let is_repeated = self.findings.is_repeated(Rule::UnknownTag, &message);
        let finding = Finding::new(Rule::UnknownTag, child.name_span(), message);
        let meant = if is_repeated {
            None
        } else {
            self.nearest(child.name, known)
        };
        self.report(match meant {
            Some(tag) => finding.meant_tag(tag),
            None => finding.help("remove it, or put it into a comment"),
        });
    }

    /// Reports attributes where none are allowed, except those for XML tools.
    pub(crate) fn attributes_mean_nothing(&mut self, section: Section<'s>) {
        for attribute in section
            .attributes()
            .iter()
            .filter(|attribute| !is_for_tools(attribute.name))
        {
            let message = format!("the attribute `{}` has no effect", attribute.name);
            self.report(Finding::new(Rule::Attribute, attribute.span, message).help("remove it"));
        }
    }

    /// Reports text in a section that may only have children.
    pub(crate) fn text_means_nothing(&mut self, section: Section<'s>) {
        if section.has_text() {
            let message = format!("text in `<{}>` is not read", section.name);
            self.report(Finding::new(Rule::StrayText, section.text_span(), message).help("remove it"));
        }
    }

    /// Reports children of a section that may only have text.
    pub(crate) fn children_mean_nothing(&mut self, section: Section<'s>) {
        self.attributes_mean_nothing(section);
        for child in section.children() {
            self.unknown_tag(child, []);
        }
    }

    /// The text of a section; reported if missing.
    pub(crate) fn text(&mut self, section: Section<'s>) -> Option<Named<'s>> {
        self.children_mean_nothing(section);
        if !section.has_text() {
            let message = format!("`<{}>` is empty", section.name);
            let finding =
                Finding::new(Rule::MissingValue, section.name_span(), message).help("write a name, or remove the tag");
            self.report(finding);
            return None;
        }
        if section.text().len() > MAX_NAME {
            let message = format!("the text of `<{}>` is longer than {MAX_NAME} bytes", section.name);
            self.report(Finding::new(Rule::Name, section.text_span(), message).help("write a shorter name"));
            return None;
        }
        Some(Named::text_of(section))
    }

    /// A boolean. Anything but `true` and `false` is reported and means the default; in the KBEngine dialect it means
    /// `false`.
    pub(crate) fn boolean(&mut self, section: Option<Section<'s>>, default: bool) -> bool {
        self.declared_boolean(section).unwrap_or(default)
    }

    /// A boolean, if one is declared.
    pub(crate) fn declared_boolean(&mut self, section: Option<Section<'s>>) -> Option<bool> {
        let section = section?;
        self.children_mean_nothing(section);
        if let Some(value) = as_boolean(section.text()) {
            return Some(value);
        }
        let span = if !section.has_text() {
            section.name_span()
        } else {
            section.text_span()
        };
        let meant = self.nearest(section.text(), BOOLEANS.iter().map(|word| word.name));
        let (outcome, value) = match self.dialect {
            Dialect::BigWorld => ("the default is used", None),
            Dialect::KBEngine => ("it is read as false", Some(false)),
        };
        let message = format!("`{}` is neither true nor false; {outcome}", section.text());
        let finding = Finding::new(Rule::Boolean, span, message);
        self.report(match meant {
            Some(meant) if section.has_text() => finding.meant(meant),
            _ => finding.help("write `true` or `false`"),
        });
        value
    }

    /// A number of at least `low`; else a finding.
    pub(crate) fn distance(&mut self, section: Section<'s>, low: f32) -> Option<f32> {
        let named = self.text(section)?;
        self.parse_distance(named, low)
    }

    fn parse_distance(&mut self, named: Named<'_>, low: f32) -> Option<f32> {
        match named.name.parse::<f32>() {
            Ok(value) if value.is_finite() && value >= low => Some(value),
            _ => {
                let message = format!("`{}` is not a distance", named.name);
                let help = match low {
                    0.0 => "write a number of metres, 0 or more",
                    _ => "write a number of metres",
                };
                self.report(Finding::new(Rule::Number, named.span, message).help(help));
                None
            }
        }
    }

    /// An integer within bounds; else a finding of `rule`.
    pub(crate) fn integer(&mut self, section: Section<'s>, rule: Rule, low: u32, high: u32) -> Option<u32> {
        let named = self.text(section)?;
        self.parse_integer(named, rule, low, high)
    }

    fn parse_integer(&mut self, named: Named<'_>, rule: Rule, low: u32, high: u32) -> Option<u32> {
        match named.name.parse::<u32>() {
            Ok(value) if (low..=high).contains(&value) => Some(value),
            _ => {
                let message = format!("`{}` is not a number from {low} to {high}", named.name);
                let finding = Finding::new(rule, named.span, message).help("write a whole number in that range");
                self.report(finding);
                None
            }
        }
    }

    /// `VariableLengthHeaderSize` of a member; 1 unless client numbers are ordered by it.
    pub(crate) fn header_size(&mut self, section: Option<Section<'s>>, is_ordered: bool) -> u8 {
        const UNLESS_DECLARED: u8 = 1;
        let Some(section) = section else {
            return UNLESS_DECLARED;
        };
        self.fields(section, &grammar::LENGTH_HEADER);
        let (low, high) = grammar::HEADER_SIZES;
        let size = self.parse_integer(Named::text_of(section), Rule::Number, low, high);
        if !is_ordered {
            let message = format!("`<{}>` has no effect here", section.name);
            let finding = Finding::new(Rule::MemberOption, section.name_span(), message)
                .severity(Severity::Note)
                .help("remove it: it applies only to members of variable size that are sent to clients");
            self.report(finding);
            return UNLESS_DECLARED;
        }
        size.and_then(|size| u8::try_from(size).ok()).unwrap_or(UNLESS_DECLARED)
    }

    /// Whether a name can be used in code; reports one that cannot.
    pub(crate) fn is_identifier(&mut self, section: Section<'s>) -> bool {
        if is_identifier(section.name) {
            return true;
        }
        if section.name.len() > MAX_NAME {
            let message = format!("the name is longer than {MAX_NAME} bytes");
            self.report(Finding::new(Rule::Name, section.name_span(), message).help("choose a shorter name"));
            return false;
        }
        let message = format!("`{}` is not a valid name in code", section.name);
        let better: String = section
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let finding = Finding::new(Rule::Name, section.name_span(), message);
        let says_something = better.bytes().any(|byte| byte != b'_');
        self.report(if says_something && is_identifier(&better) {
            finding.help(format!("write `{better}`")).fix(Fix::Tag(better))
        } else {
            finding.help("use letters, digits and `_`, and begin with a letter")
        });
        false
    }
}

/// Whether scripts and generated code can use it as an identifier.
pub(crate) fn is_identifier(name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.len() <= MAX_NAME
        && name.as_bytes().first().is_some_and(|first| !first.is_ascii_digit())
        && name.as_bytes().iter().all(is_letter)
}

/// Whether an attribute declares a namespace or the location of the file's schema.
fn is_for_tools(attribute: &str) -> bool {
    attribute.starts_with("xmlns") || attribute.starts_with("xsi:")
}

/// Parses `true` and `false`, case-insensitive.
fn as_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}
