//! Places of declarations.

use std::ops::Range;

use annals_def::grammar::{COMPONENT_ALIAS, LISTED, Noun, Text};

use super::{
    Draft,
    meaning::{DefinitionFile, label},
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
        let file = self.file(path)?;
        match file.page.spot(at) {
            Spot::Words { within: Some(node), .. } => self.target_of_words(file, node, at),
            Spot::StartTag { .. } | Spot::EndTag { .. } => {
                let node = file.page.named_at(at)?;
                self.target_of_name(file, node)
            }
            Spot::Words { within: None, .. } | Spot::Attributes { .. } | Spot::Nothing => None,
        }
    }

    fn target_of_words(&self, file: DefinitionFile<'_>, node: usize, at: usize) -> Option<Target> {
        let words = &file.page.nodes[node].words;
        if at < words.start || words.end < at {
            return None;
        }
        let name = file.page.words(node);
        match self.meaning(file, node)?.content.text {
            Text::Type | Text::Name(Noun::DictAlias) => self.alias_named(name),
            Text::Name(Noun::Level) => {
                let levels = self.levels(file.path);
                let (file, level) = levels
                    .into_iter()
                    .find(|(file, level)| label(file.page, *level) == name)?;
                let node = file.page.child(level, "label").unwrap_or(level);
                let of_label = &file.page.nodes[node];
                Some(Target {
                    file: file.path.to_owned(),
                    name: if node == level {
                        of_label.name.clone()
                    } else {
                        of_label.words.clone()
                    },
                })
            }
            Text::Name(noun) => {
                let (family, kind) = self.kind_of(file.path, noun)?;
                self.root_of_file(self.file_of(family, kind, name)?)
            }
            _ => None,
        }
    }

    /// The declaration that a tag names: an entry of a list, a component.
    fn target_of_name(&self, file: DefinitionFile<'_>, node: usize) -> Option<Target> {
        let meaning = self.meaning(file, node)?;
        let name = file.page.name(node);
        if std::ptr::eq(meaning.content, &LISTED) {
            let (family, kind) = Self::listed_kind(file.kind)?;
            return self.root_of_file(self.file_of(family, kind, name)?);
        }
        if std::ptr::eq(meaning.content, &COMPONENT_ALIAS) {
            let (family, kind) = self.kind_of(file.path, Noun::Component)?;
            return self.root_of_file(self.file_of(family, kind, name)?);
        }
        None
    }

    pub(super) fn alias_named(&self, name: &str) -> Option<Target> {
        let (file, nodes) = self.aliases()?;
        let node = nodes.into_iter().find(|&node| file.page.name(node) == name)?;
        Some(Target {
            file: file.path.to_owned(),
            name: file.page.nodes[node].name.clone(),
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
