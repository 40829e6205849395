//! A section to be changed.

use crate::{
    datum::Datum,
    document::{Document, MAX_SECTIONS, Node, ParseError},
    section::{Section, names},
    xml,
};

/// A section of a document that can be changed. What it cannot be is saved: that is for the whole file, see
/// [`DataFile`](crate::DataFile).
#[derive(Debug)]
pub struct SectionMut<'d> {
    document: &'d mut Document,
    at: usize,
}

/// A change that would leave a document that no file can hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Not a name that XML knows.
    #[error("`{0}` names no section: a name begins with a letter or `_`, and goes on with these, digits, `-` and `.`")]
    Name(String),
    /// XML has no way to write this character.
    #[error("the text has the character U+{0:04X} in it, which XML does not allow: write bytes as a Blob")]
    Character(u32),
    /// Infinite, or not a number.
    #[error("the number is infinite or none at all, which data files do not hold: write a number")]
    NotFinite,
    /// The section is as deep as a file can be.
    #[error(
        "sections are nested at most {} deep: put this one further out",
        annals_def::MAX_XML_DEPTH
    )]
    TooDeep,
    /// The document is as large as a file can be.
    #[error("a document has at most {MAX_SECTIONS} sections: divide it into several files")]
    TooMany,
    /// What is to become a section's content is no XML.
    #[error("the bytes are no section")]
    Xml(#[source] ParseError),
}

impl<'d> SectionMut<'d> {
    pub(crate) fn new(document: &'d mut Document, at: usize) -> Self {
        Self { document, at }
    }

    /// The same section, to be read.
    #[must_use]
    pub fn view(&self) -> Section<'_> {
        Section::new(self.document, self.at)
    }

    /// The section of this number in it, from 0.
    #[must_use]
    pub fn child_mut(&mut self, index: usize) -> Option<SectionMut<'_>> {
        let at = self.view().child(index)?.at;
        Some(SectionMut::new(self.document, at))
    }

    /// The section at a path; of several with one name the first.
    #[must_use]
    pub fn find_mut(&mut self, path: &str) -> Option<SectionMut<'_>> {
        let at = self.view().find(path)?.at;
        Some(SectionMut::new(self.document, at))
    }

    /// Puts a new, empty section behind the others. Of a path, the last name is the new section's; what is missing on the
    /// way there is created too.
    ///
    /// # Errors
    /// [`EditError::Name`], [`EditError::TooDeep`], [`EditError::TooMany`]; nothing of the path was created then.
    pub fn create(&mut self, path: &str) -> Result<SectionMut<'_>, EditError> {
        match path.rsplit_once('/') {
            Some((way, last)) => self.create_below(way.split('/'), &[last]),
            None => self.create_below([], &[path]),
        }
    }

    /// The section at a path, which is created if it is not there.
    ///
    /// # Errors
    /// The same as of [`Self::create`].
    pub fn find_or_create(&mut self, path: &str) -> Result<SectionMut<'_>, EditError> {
        self.create_below(names(path), &[])
    }

    /// Goes the way as far as it exists, then creates the rest of it and the new ones.
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

    /// Takes away the section at a path, with all that is in it; of several with one name the first. Whether there was one.
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

    /// Takes away the section of this number in it, from 0. Whether there was one.
    pub fn delete_child(&mut self, index: usize) -> bool {
        let is_there = index < self.view().children().len();
        if is_there {
            self.document.remove(self.at, index);
        }
        is_there
    }

    /// Takes away all sections in it.
    pub fn delete_children(&mut self) {
        let count = self.view().children().len();
        for index in (0..count).rev() {
            self.document.remove(self.at, index);
        }
    }

    /// Writes its value.
    ///
    /// # Errors
    /// [`EditError`], if no file can hold it; the old value stays then.
    pub fn write<T: Datum>(&mut self, value: &T) -> Result<(), EditError> {
        value.write(self)
    }

    /// Writes the value of the section at a path, which is created if it is not there.
    ///
    /// # Errors
    /// The same as of [`Self::create`] and [`Self::write`].
    pub fn write_at<T: Datum>(&mut self, path: &str, value: &T) -> Result<(), EditError> {
        self.find_or_create(path)?.write(value)
    }

    /// Sets its text. Blanks around a text mean nothing in a data file and are left out.
    ///
    /// # Errors
    /// [`EditError::Character`]; the old text stays then.
    pub fn set_text(&mut self, text: &str) -> Result<(), EditError> {
        let text = xml::written(text)?;
        self.node_mut().text = text.trim().to_owned();
        Ok(())
    }

    /// Sets an attribute of its tag.
    ///
    /// # Errors
    /// [`EditError::Name`], [`EditError::Character`]; the old value stays then.
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
    /// [`EditError::TooDeep`], [`EditError::TooMany`]; nothing was replaced then.
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
