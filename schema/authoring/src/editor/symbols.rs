//! The outline of a file.

use std::ops::Range;

use annals_def::grammar::Text;

use super::{Draft, meaning::DefinitionFile};

/// A declaration in the outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Its content, in a few words.
    pub detail: String,
    pub kind: SymbolKind,
    /// Its whole range, in bytes of the text.
    pub range: Range<usize>,
    pub name_range: Range<usize>,
    /// The declarations in it.
    pub children: Vec<Symbol>,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolKind {
    /// A section of the language.
    Section,
    /// A property, or a field.
    Property,
    Method,
    /// An argument, or a returned value.
    Argument,
    Alias,
    /// A definition that is listed or used.
    Definition,
}

impl Draft {
    /// The outline of a file.
    #[must_use]
    pub fn symbols(&self, path: &str) -> Vec<Symbol> {
        let Some(file) = self.file(path) else {
            return Vec::new();
        };
        let roots = file.page.children(None);
        roots.flat_map(|root| self.symbols_in(file, root)).collect()
    }

    fn symbols_in(&self, file: DefinitionFile<'_>, parent: usize) -> Vec<Symbol> {
        let children = file.page.children(Some(parent));
        children.filter_map(|node| self.symbol(file, node)).collect()
    }

    /// A member whose name the author chose, or a section with members.
    fn symbol(&self, file: DefinitionFile<'_>, node: usize) -> Option<Symbol> {
        let meaning = self.meaning(file, node)?;
        let page = file.page;
        let kind = match meaning.what {
            "property" | "field" | "temporary member" => SymbolKind::Property,
            "argument" | "returned value" => SymbolKind::Argument,
            "alias" => SymbolKind::Alias,
            "entity type" | "definition" | "component" | "interface" => SymbolKind::Definition,
            "" => SymbolKind::Section,
            _ => SymbolKind::Method,
        };
        let children = self.symbols_in(file, node);
        let content = meaning.content;
        let is_section = kind == SymbolKind::Section;
        if is_section && children.is_empty() && (content.named.is_none() || content.text != Text::Nothing) {
            return None;
        }
        // A property is best described by its type and flags.
        let of_child = |tag| {
            page.child(node, tag)
                .map(|child| page.words(child))
                .filter(|words| !words.is_empty())
        };
        let own = Some(page.words(node)).filter(|words| !words.is_empty());
        let detail: Vec<&str> = [own, of_child("Type"), of_child("Flags")]
            .into_iter()
            .flatten()
            .collect();
        let of_node = &page.nodes[node];
        Some(Symbol {
            name: page.name(node).to_owned(),
            detail: detail.join(" "),
            kind,
            range: of_node.name.start.saturating_sub(1)..of_node.end,
            name_range: of_node.name.clone(),
            children,
        })
    }
}
