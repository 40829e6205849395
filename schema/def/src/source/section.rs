//! Sections: elements with their text, attributes, children and places.
//!
//! The elements of a file are in one list, each followed by its content. Parsing a file thus costs one growing list and
//! no allocation per element, and a section is a slice of the list.

use std::ops::Deref;

use super::{FileId, Span, position};

/// A parsed file: its elements in the order of their start tags.
#[derive(Debug, Default)]
pub(crate) struct Document<'s> {
    pub(super) file: FileId,
    pub(super) text: &'s str,
    pub(super) nodes: Vec<Node<'s>>,
    /// Rare data of elements.
    pub(super) extras: Vec<Extra<'s>>,
    /// The comments, in file order.
    pub(super) comments: Vec<Comment<'s>>,
}

/// A comment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment<'s> {
    /// The text between `<!--` and `-->`.
    pub(crate) text: &'s str,
    /// Its offset in bytes of the file's text.
    pub(crate) begin: u32,
    /// The position of the element that contains it; `None` outside the root.
    pub(crate) inside: Option<u32>,
    /// The position of the next element, if there is one.
    pub(crate) before: u32,
}

/// An element. Small, and without allocations: a large game has a million of them.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    /// Its tag.
    pub(crate) name: &'s str,
    /// The offset of its name, in bytes of the file's text.
    pub(super) name_start: u32,
    /// The offset of its text; just behind the start tag if it has none.
    pub(super) text_start: u32,
    pub(super) text_end: u32,
    /// Number of nodes in it, itself included.
    pub(super) size: u32,
    /// The position of its extra, if it has one.
    pub(super) extra: Option<u32>,
}

/// Rare data of an element.
#[derive(Debug, Default)]
pub(crate) struct Extra<'s> {
    /// The text where it differs from the file: joined pieces, replaced references.
    pub(super) text: Option<String>,
    pub(super) attributes: Vec<Attribute<'s>>,
}

/// An attribute.
#[derive(Debug)]
pub(crate) struct Attribute<'s> {
    pub(crate) name: &'s str,
    pub(crate) value: &'s str,
    pub(crate) span: Span,
}

/// An element with its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'s> {
    document: &'s Document<'s>,
    /// The element's position.
    at: u32,
}

impl Document<'_> {
    /// The root element.
    pub(crate) fn root(&self) -> Option<Section<'_>> {
        let is_there = !self.nodes.is_empty();
        is_there.then_some(Section { document: self, at: 0 })
    }

    /// The comments between the element at this position and the previous one.
    fn comments_at(&self, position: u32) -> impl Iterator<Item = &Comment<'_>> {
        let first = self.comments.partition_point(|comment| comment.before < position);
        self.comments[first..]
            .iter()
            .take_while(move |comment| comment.before == position)
    }

    /// The file of the document.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// The first element whose name begins at or behind this offset.
    pub(crate) fn section_from(&self, offset: u32) -> Option<Section<'_>> {
        let at = self.nodes.partition_point(|node| node.name_start < offset);
        let is_there = at < self.nodes.len();
        is_there.then_some(Section {
            document: self,
            at: position(at),
        })
    }

    /// The comments, in the order of the file.
    pub(crate) fn comments(&self) -> &[Comment<'_>] {
        &self.comments
    }

    /// The element that follows a comment inside the same parent; the root for a comment outside the root.
    pub(crate) fn section_behind(&self, comment: &Comment<'_>) -> Option<Section<'_>> {
        let end = comment.inside.map_or(position(self.nodes.len()), |inside| {
            inside + self.nodes[inside as usize].size
        });
        let is_there = comment.before < end;
        is_there.then_some(Section {
            document: self,
            at: comment.before,
        })
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> &str {
        self.text
    }

    /// The element whose name is at this place.
    pub(crate) fn section_at(&self, name: Span) -> Option<Section<'_>> {
        self.section_from(name.start)
            .filter(|section| section.name_start == name.start)
    }
}

impl<'s> Section<'s> {
    /// The first non-blank text in it, trimmed; empty if there is none.
    pub(crate) fn text(self) -> &'s str {
        match self.extra().and_then(|extra| extra.text.as_deref()) {
            Some(text) => text,
            None => &self.document.text[self.text_start as usize..self.text_end as usize],
        }
    }

    /// Its attributes, each name once.
    pub(crate) fn attributes(self) -> &'s [Attribute<'s>] {
        self.extra().map_or(&[], |extra| &extra.attributes)
    }

    fn extra(self) -> Option<&'s Extra<'s>> {
        self.extra.map(|extra| &self.document.extras[extra as usize])
    }

    /// Its child elements, in order.
    pub(crate) fn children(self) -> Children<'s> {
        Children {
            document: self.document,
            next: self.at + 1,
            end: self.at + self.size,
        }
    }

    /// Whether it has child elements.
    pub(crate) fn has_children(self) -> bool {
        self.size > 1
    }

    /// The first child of this name.
    pub(crate) fn child(self, name: &str) -> Option<Section<'s>> {
        self.children().find(|child| child.name == name)
    }

    /// Whether it has neither text nor children.
    pub(crate) fn is_empty(self) -> bool {
        !self.has_text() && !self.has_children()
    }

    /// Comments between the preceding item and this element.
    pub(crate) fn comments_before(self) -> impl Iterator<Item = &'s str> {
        let Self { document, at } = self;
        let is_around = move |outer: u32| outer + document.nodes[outer as usize].size > at;
        let comments = document.comments_at(at);
        comments
            .filter(move |comment| comment.inside.is_none_or(is_around))
            .map(|comment| comment.text)
    }

    /// Comments in it, behind its last child.
    pub(crate) fn comments_at_end(self) -> impl Iterator<Item = &'s str> {
        let comments = self.document.comments_at(self.at + self.size);
        comments
            .filter(move |comment| comment.inside == Some(self.at))
            .map(|comment| comment.text)
    }

    /// Comments behind it, outside of every element.
    pub(crate) fn comments_behind(self) -> impl Iterator<Item = &'s str> {
        let comments = self.document.comments_at(self.at + self.size);
        comments
            .filter(|comment| comment.inside.is_none())
            .map(|comment| comment.text)
    }

    /// The offset of the last name or text in it.
    pub(crate) fn last_offset(self) -> u32 {
        let nodes = &self.document.nodes[self.at as usize..(self.at + self.size) as usize];
        let offset = |node: &Node<'_>| {
            if node.has_text() {
                node.text_start
            } else {
                node.name_start
            }
        };
        nodes.iter().map(offset).max().unwrap_or(self.name_start)
    }

    /// The span from its name to the end of its content: at most to the next element outside of it.
    pub(crate) fn extent(self) -> Span {
        let next = self.document.nodes.get((self.at + self.size) as usize);
        Span {
            file: self.document.file,
            start: self.name_start,
            end: next.map_or(position(self.document.text.len()), |next| next.name_start),
        }
    }

    /// Whether both are the same element of the same file.
    pub(crate) fn is(self, other: Section<'_>) -> bool {
        self.document.file == other.document.file && self.at == other.at
    }

    /// The span of the tag's name.
    pub(crate) fn name_span(self) -> Span {
        Span {
            file: self.document.file,
            start: self.name_start,
            end: self.name_start + position(self.name.len()),
        }
    }

    /// The span of its text; empty and just behind the start tag if there is none.
    pub(crate) fn text_span(self) -> Span {
        Span {
            file: self.document.file,
            start: self.text_start,
            end: self.text_end,
        }
    }
}

impl<'s> Deref for Section<'s> {
    type Target = Node<'s>;

    fn deref(&self) -> &Node<'s> {
        &self.document.nodes[self.at as usize]
    }
}

impl Node<'_> {
    /// Whether it has text.
    pub(crate) fn has_text(&self) -> bool {
        self.text_start < self.text_end
    }
}

/// The child elements of a section.
#[derive(Clone, Debug)]
pub(crate) struct Children<'s> {
    document: &'s Document<'s>,
    next: u32,
    end: u32,
}

impl<'s> Iterator for Children<'s> {
    type Item = Section<'s>;

    fn next(&mut self) -> Option<Section<'s>> {
        if self.next == self.end {
            return None;
        }
        let child = Section {
            document: self.document,
            at: self.next,
        };
        self.next += child.size;
        Some(child)
    }
}
