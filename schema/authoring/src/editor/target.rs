//! Places of declarations.

use std::ops::Range;

use annals_def::grammar::{COMPONENT_ALIAS, LISTED, Noun, Text};

use super::{
    Draft,
    meaning::{Place, label},
    page::Spot,
};

/// A declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub file: String,
    /// The range of its name, in bytes of the text.
    pub name: Range<usize>,
}

impl Draft {
    /// The declaration of the alias, definition or level of detail at a place of a file.
    #[must_use]
    pub fn target(&self, path: &str, at: usize) -> Option<Target> {
        let place = self.place(path)?;
        match place.page.spot(at) {
            Spot::Words { within: Some(node), .. } => self.target_of_words(place, node, at),
            Spot::StartTag { .. } | Spot::EndTag { .. } => {
                let node = place.page.named_at(at)?;
                self.target_of_name(place, node)
            }
            Spot::Words { within: None, .. } | Spot::Attributes { .. } | Spot::Nothing => None,
        }
    }

    fn target_of_words(&self, place: Place<'_>, node: usize, at: usize) -> Option<Target> {
        let words = &place.page.nodes[node].words;
        if at < words.start || words.end < at {
            return None;
        }
        let name = place.page.words(node);
        match self.meaning(place, node)?.content.text {
            Text::Type | Text::Name(Noun::DictAlias) => self.alias_named(name),
            Text::Name(Noun::Level) => {
                let levels = self.levels(place.path);
                let (place, level) = levels
                    .into_iter()
                    .find(|(place, level)| label(place.page, *level) == name)?;
                let node = place.page.child(level, "label").unwrap_or(level);
                let of_label = &place.page.nodes[node];
                Some(Target {
                    file: place.path.to_owned(),
                    name: if node == level {
                        of_label.name.clone()
                    } else {
                        of_label.words.clone()
                    },
                })
            }
            Text::Name(noun) => {
                let (family, kind) = self.kind_of(place.path, noun)?;
                self.root_of_file(self.file_of(family, kind, name)?)
            }
            _ => None,
        }
    }

    /// The declaration that a tag names: an entry of a list, a component.
    fn target_of_name(&self, place: Place<'_>, node: usize) -> Option<Target> {
        let meaning = self.meaning(place, node)?;
        let name = place.page.name(node);
        if std::ptr::eq(meaning.content, &LISTED) {
            let (family, kind) = Self::listed_kind(place.kind)?;
            return self.root_of_file(self.file_of(family, kind, name)?);
        }
        if std::ptr::eq(meaning.content, &COMPONENT_ALIAS) {
            let (family, kind) = self.kind_of(place.path, Noun::Component)?;
            return self.root_of_file(self.file_of(family, kind, name)?);
        }
        None
    }

    pub(super) fn alias_named(&self, name: &str) -> Option<Target> {
        let (place, nodes) = self.aliases()?;
        let node = nodes.into_iter().find(|&node| place.page.name(node) == name)?;
        Some(Target {
            file: place.path.to_owned(),
            name: place.page.nodes[node].name.clone(),
        })
    }

    fn root_of_file(&self, path: &str) -> Option<Target> {
        let page = self.pages.get(path)?;
        let root = page.children(None).next();
        Some(Target {
            file: path.to_owned(),
            name: root.map_or(0..0, |root| page.nodes[root].name.clone()),
        })
    }
}
