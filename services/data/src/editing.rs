//! Sections for editing.

use crate::{
    datum::Datum,
    document::{Document, MAX_SECTIONS, Node, ParseError},
    section::{Section, names},
    xml,
};

/// A section of a document that can be edited. It cannot be saved by itself, only as part of its file: see
/// [`DataFile`](crate::DataFile).
#[derive(Debug)]
pub struct SectionMut<'d> {
    document: &'d mut Document,
    at: usize,
}

/// The change would produce a document that no file can contain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Not a valid XML name.
    #[error(
        "`{0}` is not a section name: a name begins with a letter or `_`, followed by letters, digits, `_`, `-` and \
         `.`"
    )]
    Name(String),
    /// XML cannot represent this character.
    #[error("the text has the character U+{0:04X} in it, which XML does not allow: write bytes as a Blob")]
    Character(u32),
    /// Infinite, or not a number.
    #[error("the number is infinite or NaN, which data files do not support: write a finite number")]
    NotFinite,
    /// The section is at the maximum depth of a file.
    #[error(
        "sections are nested at most {} deep: move this section to an outer level",
        annals_def::MAX_XML_DEPTH
    )]
    TooDeep,
    /// The document has the maximum number of sections.
    #[error("a document has at most {MAX_SECTIONS} sections: divide it into several files")]
    TooMany,
    /// The new content of a section is not valid XML.
    #[error("the bytes are not a section")]
    Xml(#[source] ParseError),
}

impl<'d> SectionMut<'d> {
    pub(crate) fn new(document: &'d mut Document, at: usize) -> Self {
        Self { document, at }
    }

    /// The same section, for reading.
    #[must_use]
    pub fn view(&self) -> Section<'_> {
        Section::new(self.document, self.at)
    }

    /// The child with this index, from 0.
    #[must_use]
    pub fn child_mut(&mut self, index: usize) -> Option<SectionMut<'_>> {
        let at = self.view().child(index)?.at;
        Some(SectionMut::new(self.document, at))
    }

    /// The section at a path; the first of several with one name.
    #[must_use]
    pub fn find_mut(&mut self, path: &str) -> Option<SectionMut<'_>> {
        let at = self.view().find(path)?.at;
        Some(SectionMut::new(self.document, at))
    }

    /// Appends a new, empty section to the children. The last name of a path is the new section's; missing sections on
    /// the way are created too.
    ///
    /// # Errors
    /// [`EditError::Name`], [`EditError::TooDeep`], [`EditError::TooMany`]; then nothing of the path was created.
    pub fn create(&mut self, path: &str) -> Result<SectionMut<'_>, EditError> {
        match path.rsplit_once('/') {
            Some((way, last)) => self.create_below(way.split('/'), &[last]),
            None => self.create_below([], &[path]),
        }
    }

    /// The section at a path, which is created if missing.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn find_or_create(&mut self, path: &str) -> Result<SectionMut<'_>, EditError> {
        self.create_below(names(path), &[])
    }

    /// Follows the path as far as it exists, then creates the rest of it and the new section.
    fn create_below<'p>(
        &mut self,
        way: impl IntoIterator<Item = &'p str>,
        new: &[&'p str],
    ) -> Result<SectionMut<'_>, EditError> {
        let mut at = self.at;
        let mut missing = Vec::new();
        for name in way {
            let found = Section::new(self.document, at).all(name).next();
            match found.filter(|_| missing.is_empty()) {
                Some(child) => at = child.at,
                None => missing.push(name),
            }
        }
        missing.extend(new);
        missing.iter().try_for_each(|name| xml::check_name(name))?;
        if self.document.depth(at) + missing.len() > annals_def::MAX_XML_DEPTH {
            return Err(EditError::TooDeep);
        }
        self.document.has_room(missing.len())?;
        for name in missing {
            at = self.document.add(at, name);
        }
        Ok(SectionMut::new(self.document, at))
    }

    /// Deletes the section at a path with all its contents; the first of several with one name. Returns whether there
    /// was one.
    pub fn delete(&mut self, path: &str) -> bool {
        let (parent, last) = match path.rsplit_once('/') {
            Some((way, last)) if !way.is_empty() => (self.view().find(way), last),
            _ => (Some(self.view()), path),
        };
        let Some(parent) = parent else { return false };
        let Some(index) = parent.children().position(|child| child.name() == last) else {
            return false;
        };
        let parent = parent.at;
        self.document.remove(parent, index);
        true
    }

    /// Deletes the child with this index, from 0. Returns whether there was one.
    pub fn delete_child(&mut self, index: usize) -> bool {
        let is_there = index < self.view().children().len();
        if is_there {
            self.document.remove(self.at, index);
        }
        is_there
    }

    /// Deletes all children.
    pub fn delete_children(&mut self) {
        let count = self.view().children().len();
        for index in (0..count).rev() {
            self.document.remove(self.at, index);
        }
    }

    /// Writes its value.
    ///
    /// # Errors
    /// [`EditError`], if no file can contain it; then the old value stays.
    pub fn write<T: Datum>(&mut self, value: &T) -> Result<(), EditError> {
        value.write(self)
    }

    /// Writes the value of the section at a path, which is created if missing.
    ///
    /// # Errors
    /// As [`Self::create`] and [`Self::write`].
    pub fn write_at<T: Datum>(&mut self, path: &str, value: &T) -> Result<(), EditError> {
        self.find_or_create(path)?.write(value)
    }

    /// Sets its text. Surrounding whitespace is not significant in a data file and is removed.
    ///
    /// # Errors
    /// [`EditError::Character`]; then the old text stays.
    pub fn set_text(&mut self, text: &str) -> Result<(), EditError> {
        let text = xml::written(text)?;
        self.node_mut().text = text.trim().to_owned();
        Ok(())
    }

    /// Sets an attribute of its tag.
    ///
    /// # Errors
    /// [`EditError::Name`], [`EditError::Character`]; then the old value stays.
    pub fn set_attribute(&mut self, name: &str, value: &str) -> Result<(), EditError> {
        xml::check_name(name)?;
        let value = xml::written(value)?.to_owned();
        let attributes = &mut self.node_mut().attributes;
        match attributes.iter_mut().find(|attribute| attribute.0 == name) {
            Some(attribute) => attribute.1 = value,
            None => attributes.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// Replaces text, attributes and children by those of another document's root; the name stays.
    ///
    /// # Errors
    /// [`EditError::TooDeep`], [`EditError::TooMany`]; then nothing was replaced.
    pub(crate) fn replace(&mut self, content: &Document) -> Result<(), EditError> {
        let deepest = (0..content.nodes.len()).map(|at| content.depth(at)).max();
        if self.document.depth(self.at) - 1 + deepest.unwrap_or(1) > annals_def::MAX_XML_DEPTH {
            return Err(EditError::TooDeep);
        }
        self.document.has_room(content.nodes.len())?;
        self.delete_children();
        let mut copies = vec![(content.root().at, self.at)];
        while let Some((from, to)) = copies.pop() {
            let source = &content.nodes[from];
            let target = &mut self.document.nodes[to];
            target.text.clone_from(&source.text);
            target.attributes.clone_from(&source.attributes);
            for &child in &source.children {
                copies.push((child, self.document.add(to, &content.nodes[child].name)));
            }
        }
        Ok(())
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.document.nodes[self.at]
    }
}
