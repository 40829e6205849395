//! Sections: an element with its text, its attributes and its children, each with its place.
//!
//! The elements of a file stand in one list, each followed by all that is in it. So reading a file costs one growing list
//! and no allocation per element, and a section is no more than a part of the list.

use std::{borrow::Cow, ops::Deref};

use super::{FileId, Span};

/// A parsed file: its elements in the order of their start tags.
#[derive(Debug, Default)]
pub(crate) struct Document<'s> {
    nodes: Vec<Node<'s>>,
}

/// An element. Borrows from the text of its file.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    /// Its tag.
    pub(crate) name: &'s str,
    /// The first text in it that is not blank, without the blanks around it; empty if there is none.
    pub(crate) text: Cow<'s, str>,
    pub(crate) attributes: Box<[Attribute<'s>]>,
    pub(super) file: FileId,
    /// Where its name begins, in bytes of the file's text.
    pub(super) name_start: u32,
    /// Where its text is; just behind the start tag if there is none.
    pub(super) text_start: u32,
    pub(super) text_end: u32,
    /// How many nodes it has with all that is in it, itself included.
    pub(super) size: u32,
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
    /// The element itself, then what is in it; never empty.
    nodes: &'s [Node<'s>],
}

impl<'s> Document<'s> {
    /// A document of these nodes, of which the first is the root.
    pub(super) fn new(nodes: Vec<Node<'s>>) -> Self {
        Self { nodes }
    }

    /// The root element.
    pub(crate) fn root(&self) -> Option<Section<'_>> {
        let is_there = !self.nodes.is_empty();
        is_there.then_some(Section { nodes: &self.nodes })
    }
}

impl<'s> Section<'s> {
    /// The elements directly in this one, in their order.
    pub(crate) fn children(self) -> Children<'s> {
        Children { rest: &self.nodes[1..] }
    }

    /// Whether an element is in this one.
    pub(crate) fn has_children(self) -> bool {
        self.nodes.len() > 1
    }

    /// The first child of this name.
    pub(crate) fn child(self, name: &str) -> Option<Section<'s>> {
        self.children().find(|child| child.name == name)
    }

    /// Whether there is neither text nor a child.
    pub(crate) fn is_empty(self) -> bool {
        self.text.is_empty() && !self.has_children()
    }

    /// Whether both are the same element of the same file.
    pub(crate) fn is(self, other: Section<'_>) -> bool {
        std::ptr::eq(self.nodes.as_ptr().cast::<u8>(), other.nodes.as_ptr().cast::<u8>())
    }

    /// Its text, for as long as the document.
    pub(crate) fn long_text(self) -> &'s str {
        &self.nodes[0].text
    }
}

impl<'s> Deref for Section<'s> {
    type Target = Node<'s>;

    fn deref(&self) -> &Node<'s> {
        &self.nodes[0]
    }
}

impl Node<'_> {
    /// Where the tag's name is.
    pub(crate) fn name_span(&self) -> Span {
        Span {
            file: self.file,
            start: self.name_start,
            end: self.name_start + super::position(self.name.len()),
        }
    }

    /// Where its text is; just behind the start tag if there is none.
    pub(crate) fn text_span(&self) -> Span {
        Span {
            file: self.file,
            start: self.text_start,
            end: self.text_end,
        }
    }
}

/// The elements directly in a section.
#[derive(Clone, Debug)]
pub(crate) struct Children<'s> {
    /// The next child with what is in it, and all that follows.
    rest: &'s [Node<'s>],
}

impl<'s> Iterator for Children<'s> {
    type Item = Section<'s>;

    fn next(&mut self) -> Option<Section<'s>> {
        let size = self.rest.first()?.size as usize;
        let (nodes, rest) = self.rest.split_at(size);
        self.rest = rest;
        Some(Section { nodes })
    }
}
