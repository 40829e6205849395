//! The meaning of a file's elements, and resolution of names.

use std::collections::BTreeSet;

use annals_def::grammar::{Content, FOLDERS, Family, FileKind, Kind, LISTS, Noun, Tag, Text, definition_at};

use super::{Draft, page::Page};

/// Longest chain of definitions that is followed.
const MAX_DEFINITIONS: usize = 256;

/// The meaning of an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meaning {
    pub(super) content: &'static Content,
    /// Its tag; `None` if the author chose its name.
    pub(super) tag: Option<&'static Tag>,
    /// What it is if the author chose its name, such as "property".
    pub(super) what: &'static str,
}

/// A file with its elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct DefinitionFile<'d> {
    pub(super) path: &'d str,
    pub(super) page: &'d Page,
    pub(super) kind: FileKind,
}

impl Draft {
    /// The file at a path, if it is one of the language.
    pub(super) fn file(&self, path: &str) -> Option<DefinitionFile<'_>> {
        let (path, page) = self.pages.get_key_value(path)?;
        let kind = FileKind::of(path.strip_prefix(self.root)?)?;
        Some(DefinitionFile { path, page, kind })
    }

    /// The meaning of an element; `None` if it is unknown.
    pub(super) fn meaning(&self, file: DefinitionFile<'_>, node: usize) -> Option<Meaning> {
        let DefinitionFile { page, kind, .. } = file;
        let Some(parent) = page.nodes[node].parent else {
            return Some(Meaning {
                content: kind.content(),
                tag: None,
                what: "file",
            });
        };
        let around = self.meaning(file, parent)?.content.with_text(page.words(parent));
        let tag = around.tag_in(page.name(node), self.dialect);
        match (tag, around.named) {
            (Some(tag), _) => Some(Meaning {
                content: tag.content,
                tag: Some(tag),
                what: "",
            }),
            (None, Some(named)) => Some(Meaning {
                content: named.content,
                tag: None,
                what: named.what,
            }),
            (None, None) => None,
        }
    }

    /// The possible content of an element.
    pub(super) fn content(&self, file: DefinitionFile<'_>, node: usize) -> Option<&'static Content> {
        let meaning = self.meaning(file, node)?;
        Some(meaning.content.with_text(file.page.words(node)))
    }

    /// What the file at this path defines.
    pub(super) fn definition(&self, path: &str) -> Option<(Family, Kind, String)> {
        let (family, kind, name) = definition_at(path.strip_prefix(self.root)?)?;
        Some((family, kind, name.to_owned()))
    }

    /// The names and files of the definitions of a kind.
    pub(super) fn definitions(&self, family: Family, kind: Kind) -> impl Iterator<Item = (String, &str)> {
        self.pages.keys().filter_map(move |path| {
            let (its_family, its_kind, name) = self.definition(path)?;
            (its_family == family && its_kind == kind).then_some((name, path.as_str()))
        })
    }

    /// The kind of definition that a name refers to in a file; `None` if it refers to something else.
    pub(super) fn kind_of(&self, path: &str, noun: Noun) -> Option<(Family, Kind)> {
        let own = self.definition(path);
        let (family, kind) = own.map_or((Family::Entity, Kind::Entity), |(family, kind, _)| (family, kind));
        match noun {
            Noun::Parent => Some((family, kind)),
            Noun::Interface => Some((family, Kind::Interface)),
            Noun::Component => Some((Family::Entity, Kind::Component)),
            Noun::Entity => Some((Family::Entity, Kind::Entity)),
            Noun::DictAlias | Noun::Level => None,
        }
    }

    /// The kind of definition that a list names.
    pub(super) fn listed_kind(kind: FileKind) -> Option<(Family, Kind)> {
        match kind {
            FileKind::EntityList => Some((Family::Entity, Kind::Entity)),
            FileKind::ServiceList => Some((Family::Service, Kind::Service)),
            FileKind::ObjectList => Some((Family::Object, Kind::UserDataObject)),
            FileKind::ComponentList => Some((Family::Entity, Kind::Component)),
            FileKind::Aliases
            | FileKind::Ledger
            | FileKind::Definition
            | FileKind::Service
            | FileKind::Object
            | FileKind::Zone => None,
        }
    }

    /// The effective file of aliases.
    pub(super) fn alias_file(&self) -> Option<DefinitionFile<'_>> {
        let own = format!("{}{}", self.root, self.dialect.alias_file());
        let others = LISTS.iter().filter(|(_, kind)| *kind == FileKind::Aliases);
        let others = others.map(|(path, _)| format!("{}{path}", self.root));
        std::iter::once(own).chain(others).find_map(|path| self.file(&path))
    }

    /// The file of aliases, and their elements in it.
    pub(super) fn aliases(&self) -> Option<(DefinitionFile<'_>, Vec<usize>)> {
        let file = self.alias_file()?;
        let root = file.page.children(None).next()?;
        Some((file, file.page.children(Some(root)).collect()))
    }

    /// The elements that declare levels of detail, of a definition and its ancestors; of all definitions if these have
    /// none, since an inherited definition can use the levels of its heirs.
    pub(super) fn levels(&self, path: &str) -> Vec<(DefinitionFile<'_>, usize)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut left = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            let Some(file) = self.file(&path) else { continue };
            if seen.len() == MAX_DEFINITIONS || !seen.insert(path) {
                continue;
            }
            found.extend(levels_in(file.page).into_iter().map(|node| (file, node)));
            left.extend(self.ancestors(file));
        }
        if found.is_empty() {
            let files = self.pages.keys().filter_map(|path| self.file(path));
            let definitions = files.filter(|file| file.kind == FileKind::Definition);
            found.extend(definitions.flat_map(|file| levels_in(file.page).into_iter().map(move |node| (file, node))));
        }
        found
    }

    /// The files of a definition's parent and interfaces.
    fn ancestors(&self, file: DefinitionFile<'_>) -> Vec<String> {
        let page = file.page;
        let mut found = Vec::new();
        for node in 0..page.nodes.len() {
            let Some(meaning) = self.meaning(file, node) else {
                continue;
            };
            if let Text::Name(noun @ (Noun::Parent | Noun::Interface)) = meaning.content.text
                && let Some((family, kind)) = self.kind_of(file.path, noun)
            {
                found.extend(self.file_of(family, kind, page.words(node)).map(str::to_owned));
            }
        }
        found
    }

    /// The file of a definition.
    pub(super) fn file_of(&self, family: Family, kind: Kind, name: &str) -> Option<&str> {
        let folders = FOLDERS.iter().filter(|(_, f, k)| *f == family && *k == kind);
        let mut paths = folders.map(|(folder, ..)| format!("{}{folder}{name}.def", self.root));
        let path = paths.find(|path| self.pages.contains_key(path))?;
        self.pages.get_key_value(&path).map(|(path, _)| path.as_str())
    }
}

/// The label of a level of detail.
pub(super) fn label(page: &Page, level: usize) -> &str {
    match page.child(level, "label") {
        Some(label) => page.words(label),
        None => page.name(level),
    }
}

/// The elements of a definition that declare levels of detail.
fn levels_in(page: &Page) -> Vec<usize> {
    let Some(root) = page.children(None).next() else {
        return Vec::new();
    };
    let is_list = |node: &usize| ["LoDLevels", "LODLevels", "DetailLevels"].contains(&page.name(*node));
    let lists = page.children(Some(root)).filter(is_list);
    lists
        .flat_map(|list| page.children(Some(list)).collect::<Vec<_>>())
        .collect()
}
