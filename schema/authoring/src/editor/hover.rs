//! Hover texts: meaning and costs.

use std::{fmt::Write as _, ops::Range};

use annals_def::{
    AncestorKind, Exposure, Ids, MemberOrigin, Size,
    grammar::{FLAGS, Kind, LISTED, Meaning, Noun, Text, TypeWord},
};

use super::{
    Draft,
    meaning::{DefinitionFile, label},
    page::Spot,
};
use crate::{
    describe::MethodDescription, describe::PropertyDescription, describe::Sum, describe::TypeDescription,
    describe::marks::part_marks,
};

/// Maximum types whose numbers are listed singly.
const MAX_NUMBERED_TYPES: usize = 8;

/// A hover text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The explanation, in Markdown.
    pub text: String,
    /// The range that it explains, in bytes of the file's text.
    pub range: Range<usize>,
}

impl Draft {
    /// The hover text at a place of a file: the meaning of a tag or word, the costs of a member or alias.
    #[must_use]
    pub fn hover(&self, path: &str, at: usize) -> Option<Hover> {
        let file = self.file(path)?;
        let page = file.page;
        match page.spot(at) {
            Spot::StartTag { name, .. } | Spot::EndTag { name, .. } => {
                let text = self.about_element(file, page.named_at(at)?)?;
                Some(Hover { text, range: name })
            }
            Spot::Words { within: Some(node), .. } => {
                let range = page.nodes[node].words.clone();
                let is_at = range.start <= at && at <= range.end;
                let text = if is_at {
                    self.about_words(file, node)?
                } else {
                    return None;
                };
                Some(Hover { text, range })
            }
            Spot::Attributes { name, word } => {
                let node = page.nodes.iter().position(|node| node.name == name)?;
                let attributes = self.meaning(file, node)?.content.attributes;
                let attribute = attributes
                    .iter()
                    .find(|attribute| attribute.name == &page.text[word.clone()])?;
                let text = format!("**{}**: {}", attribute.name, attribute.says);
                Some(Hover { text, range: word })
            }
            Spot::Words { within: None, .. } | Spot::Nothing => None,
        }
    }

    fn about_element(&self, file: DefinitionFile<'_>, node: usize) -> Option<String> {
        let meaning = self.meaning(file, node)?;
        let name = file.page.name(node);
        if let Some(tag) = meaning.tag {
            let unused = if tag.occurs == annals_def::grammar::Occurs::Unused {
                " It has no effect here."
            } else {
                ""
            };
            return Some(format!("**{}**: {}{unused}", tag.name, tag.says));
        }
        match meaning.what {
            "alias" => Some(self.about_alias(name)),
            "property" | "base method" | "cell method" | "client method" | "method" => {
                Some(self.about_member(file, name, meaning.what))
            }
            _ if std::ptr::eq(meaning.content, &LISTED) => self.about_type(name),
            "file" => {
                let (_, kind, name) = self.definition(file.path)?;
                match kind {
                    Kind::Entity | Kind::Service | Kind::UserDataObject => self.about_type(&name),
                    Kind::Interface | Kind::Component => Some(self.about_definition(kind, &name)),
                }
            }
            "component" => Some(self.about_definition(Kind::Component, name)),
            what => Some(format!("{what} **{name}**")),
        }
    }

    fn about_words(&self, file: DefinitionFile<'_>, node: usize) -> Option<String> {
        let words = file.page.words(node);
        let content = self.meaning(file, node)?.content;
        match content.text {
            Text::Type => self.about_type_word(words),
            Text::Flags => {
                let flag = FLAGS.iter().find(|flag| flag.name.eq_ignore_ascii_case(words))?;
                Some(format!("**{}**: {}", flag.name, flag.says()))
            }
            Text::Word(known) | Text::WordOrNothing(known) => {
                let word = known.iter().find(|word| word.name.eq_ignore_ascii_case(words))?;
                Some(format!("**{}**: {}", word.name, word.says))
            }
            Text::Name(Noun::DictAlias) => Some(self.about_alias(words)),
            Text::Name(Noun::Level) => {
                let levels = self.levels(file.path);
                let (of, level) = levels.into_iter().find(|(of, level)| label(of.page, *level) == words)?;
                Some(format!(
                    "level of detail **{words}**: {} m, of `{}`",
                    of.page.words(level),
                    of.path
                ))
            }
            Text::Name(noun) => {
                let (_, kind) = self.kind_of(file.path, noun)?;
                match kind {
                    Kind::Interface | Kind::Component => Some(self.about_definition(kind, words)),
                    Kind::Entity | Kind::Service | Kind::UserDataObject => self.about_type(words),
                }
            }
            _ => self.about_element(file, node),
        }
    }

    fn about_type_word(&self, words: &str) -> Option<String> {
        let is_alias = self.alias_named(words).is_some();
        let Some(word) = TypeWord::of(words).filter(|_| !is_alias) else {
            return is_alias.then(|| self.about_alias(words));
        };
        let size = match &word.meaning {
            Meaning::Simple(data_type) => match Size::of(data_type) {
                size @ Size::Fixed(_) => format!(" {size}."),
                size @ Size::Variable { .. } => format!(" {size}: a length, and as many bytes."),
            },
            Meaning::Array | Meaning::Tuple | Meaning::Dict | Meaning::User => String::new(),
        };
        Some(format!("**{}**: {}{size}", word.name, word.says))
    }

    /// The type and size of an alias, on one line.
    pub(super) fn alias_note(&self, name: &str) -> Option<String> {
        let aliases = &self.description.as_ref()?.aliases;
        let alias = aliases.iter().find(|alias| alias.name == name)?;
        let said = alias.documentation.as_deref().unwrap_or_default();
        let note = format!(
            "`{}`, {}, begins as `{}`\n\n{said}",
            alias.data_type, alias.size, alias.default
        );
        Some(note.trim_end().to_owned())
    }

    fn about_alias(&self, name: &str) -> String {
        match self.alias_note(name) {
            Some(note) => format!("alias **{name}** = {note}"),
            None => format!("alias **{name}**"),
        }
    }

    /// The text about an interface or component: the types that have it.
    fn about_definition(&self, kind: Kind, name: &str) -> String {
        let mut text = format!("{} **{name}**", AncestorKind::from(kind).name());
        let Some(description) = &self.description else {
            return text;
        };
        let is_it = |kind_of: AncestorKind, named: &str| kind_of == AncestorKind::from(kind) && named == name;
        let known = description
            .definitions
            .iter()
            .find(|one| is_it(one.definition.kind, &one.definition.name));
        if let Some(origin) = known {
            let _ = write!(text, "\n\nof {}", origin.heirs.join(", "));
            if let Some(said) = &origin.documentation {
                let _ = write!(text, "\n\n{said}");
            }
        }
        text
    }

    /// The text about a listed type, with the size of a whole entity.
    fn about_type(&self, name: &str) -> Option<String> {
        let one = self.described(name)?;
        let parts = part_marks(one.parts);
        let mut text = format!("**{name}**, type {}: {}\n", one.id, parts.join(", "));
        let totals = [
            ("own client", one.totals.own_client),
            ("another client", one.totals.other_clients),
            ("ghosts", one.totals.ghosts),
            ("stored", one.totals.stored),
        ];
        for (
            who,
            Sum {
                members,
                least,
                is_fixed,
                ..
            },
        ) in totals.into_iter().filter(|(_, sum)| sum.members > 0)
        {
            let more = if is_fixed { "" } else { "+" };
            let _ = write!(text, "\n- {who}: {members} properties, {least}{more} B");
        }
        Some(text)
    }

    fn described(&self, name: &str) -> Option<&TypeDescription> {
        self.description.as_ref()?.types.iter().find(|one| one.name == name)
    }

    /// The text about a member, with its costs in every type that inherits it.
    fn about_member(&self, file: DefinitionFile<'_>, name: &str, what: &str) -> String {
        let head = format!("{what} **{name}**");
        let (Some(description), Some((_, kind, of))) = (&self.description, self.definition(file.path)) else {
            return head;
        };
        let is_it = |full: &str, origin: &Option<MemberOrigin>| {
            let own = full.rsplit('.').next().unwrap_or(full);
            own == name
                && origin
                    .as_ref()
                    .is_some_and(|origin| origin.from.kind == AncestorKind::from(kind) && origin.from.name == of)
        };
        let mut costs = Vec::new();
        if what == "property" {
            for one in &description.types {
                let found = one
                    .properties
                    .iter()
                    .find(|property| is_it(&property.name, &property.origin));
                costs.extend(found.map(|property| property_cost(one, property)));
            }
        } else {
            for one in &description.types {
                let methods = match what {
                    "base method" => &one.base_methods,
                    "cell method" => &one.cell_methods,
                    _ => &one.client_methods,
                };
                let found = methods.iter().find(|method| is_it(&method.name, &method.origin));
                costs.extend(found.map(|method| method_cost(one, method)));
            }
            for service in description.services.iter().filter(|service| service.name == of) {
                let found = service.methods.iter().find(|method| method.name == name);
                costs.extend(found.map(|method| Cost {
                    of: service.name.clone(),
                    number: String::new(),
                    facts: vec![format!("{}: the arguments", method.size)],
                    documentation: None,
                }));
            }
        }
        with_costs(head, &costs)
    }
}

/// The costs of a member in a type.
struct Cost {
    of: String,
    /// Its client number in that type.
    number: String,
    /// Facts that are the same in every type that inherits it.
    facts: Vec<String>,
    documentation: Option<String>,
}

fn with_costs(head: String, costs: &[Cost]) -> String {
    let Some(first) = costs.first() else {
        return format!("{head}\n\nno listed type has it");
    };
    let mut text = head;
    if let Some(said) = &first.documentation {
        let _ = write!(text, "\n\n{said}");
    }
    text.push('\n');
    for fact in &first.facts {
        let _ = write!(text, "\n- {fact}");
    }
    for cost in costs
        .iter()
        .take(MAX_NUMBERED_TYPES)
        .filter(|cost| !cost.number.is_empty())
    {
        let _ = write!(text, "\n- in {}: {}", cost.of, cost.number);
    }
    if costs.len() > MAX_NUMBERED_TYPES {
        let _ = write!(text, "\n- and in {} more types", costs.len() - MAX_NUMBERED_TYPES);
    }
    text
}

fn property_cost(one: &TypeDescription, property: &PropertyDescription) -> Cost {
    let mut facts = vec![format!("`{}`: {}", property.data_type, property.size)];
    let receivers = property.receivers();
    facts.push(match receivers.as_slice() {
        [] => format!("{}: nobody at run time", property.distribution),
        some => format!("{}: {}", property.distribution, some.join(", ")),
    });
    facts.extend(
        property
            .personal
            .then(|| "personal: sealed wherever it is kept".to_owned()),
    );
    facts.extend(
        property
            .account
            .map(|account| format!("a view of the ledger: {account}")),
    );
    if property.distribution.to_other_clients() {
        facts.push(match &property.level {
            Some(level) => format!("other clients within {} m ({})", level.radius, level.label),
            None => "other clients at any distance".to_owned(),
        });
    }
    facts.push(match &property.storage {
        Some(storage) => {
            let index = storage.index.name();
            let index = if index.is_empty() {
                String::new()
            } else {
                format!(", {index}")
            };
            format!("stored: {}{index}", storage.size)
        }
        None => "not stored".to_owned(),
    });
    facts.push(format!("begins as `{}`", property.default.in_words()));
    Cost {
        of: one.name.clone(),
        number: number(property.id, &one.client_properties),
        facts,
        documentation: documentation(&property.origin),
    }
}

fn method_cost(one: &TypeDescription, method: &MethodDescription) -> Cost {
    let ids = match method.exposed {
        Exposure::No => &one.client_method_ids,
        _ if one.base_methods.iter().any(|base| std::ptr::eq(base, method)) => &one.exposed_base_methods,
        _ => &one.exposed_cell_methods,
    };
    let mut facts = vec![format!("{}: the arguments", method.size)];
    match method.exposed {
        Exposure::No => {}
        Exposure::OwnClient => facts.push("the own client may call it".to_owned()),
        Exposure::AllClients => facts.push("every client that sees the entity may call it".to_owned()),
    }
    if let Some(calls) = method.calls_per_minute {
        facts.push(format!("at most {calls} calls of one client per minute"));
    }
    if let Some(distance) = method.detail_distance {
        facts.push(format!("sent within {distance} m"));
    }
    if !method.returns.is_empty() {
        let returns: Vec<String> = method
            .returns
            .iter()
            .map(|value| format!("`{}`", value.data_type))
            .collect();
        facts.push(format!("answers {}", returns.join(", ")));
    }
    Cost {
        of: one.name.clone(),
        number: number(method.id, ids),
        facts,
        documentation: documentation(&method.origin),
    }
}

/// The client number of a member.
fn number(id: Option<u16>, ids: &Ids) -> String {
    let Some(id) = id else {
        return String::new();
    };
    let (count, bytes) = (ids.members.len(), ids.length(id));
    let plural = if bytes == 1 { "" } else { "s" };
    format!("wire id {id} of {count}, {bytes} byte{plural}")
}

fn documentation(origin: &Option<MemberOrigin>) -> Option<String> {
    origin.as_ref()?.documentation.clone()
}
