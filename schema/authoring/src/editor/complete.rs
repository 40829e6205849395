//! Completions at the cursor.

use std::{collections::BTreeSet, ops::Range};

use annals_def::{
    Size,
    grammar::{BOOLEANS, Content, FLAGS, LISTED, Meaning, Named, Noun, Occurs, TYPES, Text, Word},
};

use super::{
    Draft,
    meaning::{DefinitionFile, label},
    page::Spot,
};

/// Maximum completions offered at once.
const MAX_COMPLETIONS: usize = 1_000;

/// A completion at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name shown.
    pub label: String,
    pub kind: CompletionKind,
    /// A short remark.
    pub detail: String,
    /// Its meaning, in a sentence.
    pub documentation: String,
    /// The range of the text that it replaces, in bytes.
    pub range: Range<usize>,
    /// The replacement.
    pub text: String,
    /// The cursor's position in the replacement, in bytes.
    pub cursor: usize,
}

/// The kind of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionKind {
    Tag,
    Attribute,
    /// A type of the language.
    Type,
    Alias,
    /// A flag, or another enumerated word.
    Word,
    /// The name of a definition.
    Definition,
    /// A level of detail.
    Level,
}

/// Completions that share the range that they replace.
struct Offer {
    range: Range<usize>,
    completions: Vec<Completion>,
}

impl Draft {
    /// The completions at a place of a file, the most likely first. They are not filtered by what has been typed:
    /// editors do that.
    #[must_use]
    pub fn complete(&self, path: &str, at: usize) -> Vec<Completion> {
        let Some(file) = self.file(path) else {
            return Vec::new();
        };
        match file.page.spot(at) {
            Spot::StartTag {
                within,
                name,
                is_finished,
            } => {
                let form = if is_finished { Form::Name } else { Form::Opened };
                self.tags(file, within, name, form)
            }
            Spot::EndTag { within, name } => end_tag(file, within, name),
            Spot::Attributes { name, word } => self.attributes(file, &name, word),
            Spot::Words { within: None, word } => self.tags(file, None, word, Form::Whole),
            Spot::Words {
                within: Some(node),
                word,
            } => self.words(file, node, word),
            Spot::Nothing => Vec::new(),
        }
    }

    /// The tags that can occur in an element.
    fn tags(
        &self,
        file: DefinitionFile<'_>,
        within: Option<usize>,
        range: Range<usize>,
        form: Form,
    ) -> Vec<Completion> {
        let mut offer = Offer::at(range);
        let Some(within) = within else {
            if file
                .page
                .children(None)
                .next()
                .is_none_or(|root| file.page.nodes[root].name == offer.range)
            {
                let content = file.kind.content();
                offer.tag("root", form, content, "The root element; its name is free.");
            }
            return offer.completions;
        };
        let Some(content) = self.content(file, within) else {
            return Vec::new();
        };
        let page = file.page;
        let others = page
            .children(Some(within))
            .filter(|&child| page.nodes[child].name != offer.range);
        let there: BTreeSet<&str> = others.map(|child| page.name(child)).collect();
        for tag in content.tags.iter().filter(|tag| tag.is_offered(self.dialect)) {
            if tag.occurs == Occurs::Many || !there.contains(tag.name) {
                offer.tag(tag.name, form, tag.content, tag.says);
            }
        }
        if let Some(named) = content.named {
            self.names(file, named, &there, form, &mut offer);
        }
        offer.completions
    }

    /// The names that an element can have, where they are not the author's choice.
    fn names(&self, file: DefinitionFile<'_>, named: Named, there: &BTreeSet<&str>, form: Form, offer: &mut Offer) {
        let of_kind = match (named.what, Self::listed_kind(file.kind)) {
            (_, Some(listed)) if std::ptr::eq(named.content, &LISTED) => Some(listed),
            ("component", _) => self.kind_of(file.path, Noun::Component),
            ("interface", _) => {
                offer.tag("Interface", form, named.content, "An interface; the tag is free.");
                None
            }
            _ => None,
        };
        let Some((family, kind)) = of_kind else { return };
        for (name, file) in self.definitions(family, kind) {
            if !there.contains(name.as_str()) {
                offer.tag(&name, form, named.content, file);
            }
        }
    }

    /// The words that an element can contain, and the tags in it.
    fn words(&self, file: DefinitionFile<'_>, node: usize, word: Range<usize>) -> Vec<Completion> {
        let Some(content) = self.content(file, node) else {
            return Vec::new();
        };
        let page = file.page;
        let own = &page.nodes[node].words;
        // Text comes before the elements; text behind them is ignored.
        let is_before = page
            .children(Some(node))
            .next()
            .is_none_or(|child| word.end < page.nodes[child].name.start);
        let is_own = own.is_empty() || (own.start <= word.end && word.start <= own.end);
        let mut offer = Offer::at(word.clone());
        if is_before && is_own {
            self.own_words(file, node, content, &mut offer);
        }
        let mut completions = offer.completions;
        if !is_own || own.is_empty() || content.text == Text::Nothing {
            completions.extend(self.tags(file, Some(node), word, Form::Whole));
        }
        completions
    }

    fn own_words(&self, file: DefinitionFile<'_>, node: usize, content: &Content, offer: &mut Offer) {
        match content.text {
            Text::Boolean | Text::BooleanOrNothing => offer.all(BOOLEANS),
            Text::Word(words) | Text::WordOrNothing(words) => offer.all(words),
            Text::Flags => {
                for flag in FLAGS.iter().filter(|flag| flag.home.accepts(self.dialect)) {
                    offer.word(flag.name, CompletionKind::Word, "", flag.says());
                }
            }
            Text::Type => {
                self.offer_aliases(offer, "");
                for word in TYPES.iter().filter(|word| word.home.offers(self.dialect)) {
                    let detail = match &word.meaning {
                        Meaning::Simple(data_type) => Size::of(data_type).to_string(),
                        Meaning::Array | Meaning::Tuple => "<of> … </of>".to_owned(),
                        Meaning::Dict => "<Properties> … </Properties>".to_owned(),
                        Meaning::User => "<implementedBy> … </implementedBy>".to_owned(),
                    };
                    offer.word(word.name, CompletionKind::Type, &detail, word.says);
                }
            }
            Text::Name(Noun::DictAlias) => self.offer_aliases(offer, "FIXED_DICT"),
            Text::Name(Noun::Level) => {
                for (of, level) in self.levels(file.path) {
                    let detail = format!("{} m", of.page.words(level));
                    offer.word(label(of.page, level), CompletionKind::Level, &detail, of.path);
                }
            }
            Text::Name(noun) => self.offer_definitions(file, node, noun, offer),
            Text::Nothing
            | Text::Distance
            | Text::Reach
            | Text::Integer(..)
            | Text::Value
            | Text::Free
            | Text::Anything => {}
        }
    }

    fn offer_aliases(&self, offer: &mut Offer, of_type: &str) {
        let Some((file, nodes)) = self.aliases() else { return };
        for node in nodes {
            let (name, words) = (file.page.name(node), file.page.words(node));
            if words.starts_with(of_type) {
                let says = self.alias_note(name).unwrap_or_default();
                offer.word(name, CompletionKind::Alias, words, &says);
            }
        }
    }

    fn offer_definitions(&self, file: DefinitionFile<'_>, node: usize, noun: Noun, offer: &mut Offer) {
        let Some((family, kind)) = self.kind_of(file.path, noun) else {
            return;
        };
        let own = self.definition(file.path);
        // Names that are already present beside it.
        let beside = file
            .page
            .children(file.page.nodes[node].parent)
            .filter(|&other| other != node);
        let there: BTreeSet<&str> = beside.map(|other| file.page.words(other)).collect();
        for (name, file) in self.definitions(family, kind) {
            let is_own = own
                .as_ref()
                .is_some_and(|own| (own.0, own.1, &own.2) == (family, kind, &name));
            let is_there = noun == Noun::Interface && there.contains(name.as_str());
            if !is_own && !is_there {
                offer.word(&name, CompletionKind::Definition, file, "");
            }
        }
    }

    fn attributes(&self, file: DefinitionFile<'_>, tag: &Range<usize>, word: Range<usize>) -> Vec<Completion> {
        let mut offer = Offer::at(word);
        let nodes = &file.page.nodes;
        let node = nodes.iter().position(|node| node.name == *tag);
        let meaning = node.and_then(|node| self.meaning(file, node));
        for attribute in meaning.map_or(&[][..], |meaning| meaning.content.attributes) {
            let text = format!("{}=\"true\"", attribute.name);
            let cursor = text.len();
            offer.push(
                attribute.name,
                CompletionKind::Attribute,
                "",
                attribute.says,
                (text, cursor),
            );
        }
        offer.completions
    }
}

/// How much of a tag has been typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing.
    Whole,
    /// Its `<`.
    Opened,
    /// All of it; the name is replaced.
    Name,
}

/// The end tag of the open element.
fn end_tag(file: DefinitionFile<'_>, within: Option<usize>, range: Range<usize>) -> Vec<Completion> {
    let mut offer = Offer::at(range.clone());
    if let Some(node) = within {
        let name = file.page.name(node);
        let end = if file.page.text[range.end..].starts_with('>') {
            ""
        } else {
            ">"
        };
        let text = format!("{name}{end}");
        let cursor = text.len();
        offer.push(name, CompletionKind::Tag, "", "", (text, cursor));
    }
    offer.completions
}

impl Offer {
    fn at(range: Range<usize>) -> Self {
        Self {
            range,
            completions: Vec::new(),
        }
    }

    fn push(&mut self, label: &str, kind: CompletionKind, detail: &str, says: &str, (text, cursor): (String, usize)) {
        if self.completions.len() < MAX_COMPLETIONS {
            self.completions.push(Completion {
                label: label.to_owned(),
                kind,
                detail: detail.to_owned(),
                documentation: says.to_owned(),
                range: self.range.clone(),
                text,
                cursor,
            });
        }
    }

    fn word(&mut self, word: &str, kind: CompletionKind, detail: &str, says: &str) {
        self.push(word, kind, detail, says, (word.to_owned(), word.len()));
    }

    fn all(&mut self, words: &[Word]) {
        for word in words {
            self.word(word.name, CompletionKind::Word, "", word.says);
        }
    }

    /// Adds a tag with its end tag, with the cursor between the two.
    fn tag(&mut self, name: &str, form: Form, content: &Content, says: &str) {
        let can_be_empty = matches!(content.text, Text::Nothing | Text::Reach | Text::WordOrNothing(_))
            && content.tags.is_empty()
            && content.named.is_none();
        let (text, cursor) = match (form, can_be_empty) {
            (Form::Name, _) => (name.to_owned(), name.len()),
            (_, true) => (format!("{name}/>"), name.len() + 2),
            (_, false) => (format!("{name}>  </{name}>"), name.len() + 2),
        };
        let (text, cursor) = match form {
            Form::Whole => (format!("<{text}"), cursor + 1),
            Form::Opened | Form::Name => (text, cursor),
        };
        self.push(name, CompletionKind::Tag, note(content), says, (text, cursor));
    }
}

/// The content of an element, in a few words.
fn note(content: &Content) -> &'static str {
    match content.text {
        Text::Boolean | Text::BooleanOrNothing => "true or false",
        Text::Distance | Text::Reach => "metres",
        Text::Integer(..) => "a whole number",
        Text::Word(_) | Text::WordOrNothing(_) => "a word",
        Text::Flags => "flags",
        Text::Type => "a type",
        Text::Value => "a value",
        Text::Name(_) => "a name",
        Text::Free => "text",
        Text::Nothing if content.named.is_some() || !content.tags.is_empty() => "a section",
        Text::Nothing | Text::Anything => "",
    }
}
