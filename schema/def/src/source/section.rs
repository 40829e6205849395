//! Sections: an element with its text, its attributes and its children, each with its place.
//!
//! The elements of a file stand in one list, each followed by all that is in it. So reading a file costs one growing list
//! and no allocation per element, and a section is no more than a part of the list.

use std::ops::Deref;

use super::{FileId, Span, position};

/// A parsed file: its elements in the order of their start tags.
#[derive(Debug, Default)]
pub(crate) struct Document<'s> {
    pub(super) file: FileId,
    pub(super) text: &'s str,
    pub(super) nodes: Vec<Node<'s>>,
    /// What few elements have.
    pub(super) extras: Vec<Extra<'s>>,
    /// What is said beside the elements, in the order of the file.
    pub(super) comments: Vec<Comment<'s>>,
}

/// A comment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment<'s> {
    /// What is between `<!--` and `-->`.
    pub(crate) text: &'s str,
    /// Where it begins, in bytes of the file's text.
    pub(crate) begin: u32,
    /// The position of the element that it is in; none outside of the root.
    pub(crate) inside: Option<u32>,
    /// The position that the next element has, if there is one.
    pub(crate) before: u32,
}

/// An element. Small, and nothing to be freed: a large game has a million of them.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    /// Its tag.
    pub(crate) name: &'s str,
    /// Where its name begins, in bytes of the file's text.
    pub(super) name_start: u32,
    /// Where its text is; just behind the start tag if there is none.
    pub(super) text_start: u32,
    pub(super) text_end: u32,
    /// How many nodes it has with all that is in it, itself included.
    pub(super) size: u32,
    /// The position of its extra, if it has one.
    pub(super) extra: Option<u32>,
}

/// What few elements have.
#[derive(Debug, Default)]
pub(crate) struct Extra<'s> {
    /// The text where it is not what the file has: pieces put together, references replaced.
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

/// An element with all that is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'s> {
    document: &'s Document<'s>,
    /// The position of the element.
    at: u32,
}

impl Document<'_> {
    /// The root element.
    pub(crate) fn root(&self) -> Option<Section<'_>> {
        let is_there = !self.nodes.is_empty();
        is_there.then_some(Section { document: self, at: 0 })
    }

    /// The comments between the element of this position and the one before it.
    fn comments_at(&self, position: u32) -> impl Iterator<Item = &Comment<'_>> {
        let first = self.comments.partition_point(|comment| comment.before < position);
        self.comments[first..]
            .iter()
            .take_while(move |comment| comment.before == position)
    }

    /// The file that it was read from.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// The first element whose name begins at this offset or behind it.
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

    /// The element that follows a comment in the element that the comment is in; of one outside of the root, the root.
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
    /// The first text in it that is not blank, without the blanks around it; empty if there is none.
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

    /// The elements directly in this one, in their order.
    pub(crate) fn children(self) -> Children<'s> {
        Children {
            document: self.document,
            next: self.at + 1,
            end: self.at + self.size,
        }
    }

    /// Whether an element is in this one.
    pub(crate) fn has_children(self) -> bool {
        self.size > 1
    }

    /// The first child of this name.
    pub(crate) fn child(self, name: &str) -> Option<Section<'s>> {
        self.children().find(|child| child.name == name)
    }

    /// Whether there is neither text nor a child.
    pub(crate) fn is_empty(self) -> bool {
        !self.has_text() && !self.has_children()
    }

    /// What comments say before it, behind what precedes it in the element that it is in.
    pub(crate) fn comments_before(self) -> impl Iterator<Item = &'s str> {
        let Self { document, at } = self;
        let is_around = move |outer: u32| outer + document.nodes[outer as usize].size > at;
        let comments = document.comments_at(at);
        comments
            .filter(move |comment| comment.inside.is_none_or(is_around))
            .map(|comment| comment.text)
    }

    /// What comments say in it, behind its last child.
    pub(crate) fn comments_at_end(self) -> impl Iterator<Item = &'s str> {
        let comments = self.document.comments_at(self.at + self.size);
        comments
            .filter(move |comment| comment.inside == Some(self.at))
            .map(|comment| comment.text)
    }

    /// What comments say behind it, outside of every element.
    pub(crate) fn comments_behind(self) -> impl Iterator<Item = &'s str> {
        let comments = self.document.comments_at(self.at + self.size);
        comments
            .filter(|comment| comment.inside.is_none())
            .map(|comment| comment.text)
    }

    /// Where the last name or text in it begins.
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

    /// Where the element is, from its name to behind all that is in it: at most to the next element outside of it.
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

    /// Where the tag's name is.
    pub(crate) fn name_span(self) -> Span {
        Span {
            file: self.document.file,
            start: self.name_start,
            end: self.name_start + position(self.name.len()),
        }
    }

    /// Where its text is; just behind the start tag if there is none.
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
    /// Whether there is text in it.
    pub(crate) fn has_text(&self) -> bool {
        self.text_start < self.text_end
    }
}

/// The elements directly in a section.
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
