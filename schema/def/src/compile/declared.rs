//! Where the members of a schema are declared. The schema does not contain it, as it does not change the schema's
//! meaning; tools that show a schema to people look it up here.

use std::ops::Deref;

use super::lineage::{Lineage, Step};
use crate::{read::Definition, source::Span};

/// The declarations of a listed type.
pub(crate) struct Declared<'l> {
    /// Its entry in the list.
    pub(crate) listed: Span,
    /// Its own definition; `None` if it is missing.
    pub(crate) own: Option<&'l Definition<'l>>,
    /// The definitions it inherits from, itself included, in merge order.
    pub(crate) steps: Vec<Step<'l>>,
    /// The names of its properties, in order.
    pub(crate) properties: Vec<Span>,
    pub(crate) base_methods: Vec<Span>,
    pub(crate) cell_methods: Vec<Span>,
    pub(crate) client_methods: Vec<Span>,
    /// The methods of a service.
    pub(crate) methods: Vec<Span>,
}

/// The declarations of a whole schema, in the order of the schema's lists.
pub(crate) struct DeclaredSchema<'l> {
    pub(crate) types: Places<'l>,
    pub(crate) services: Places<'l>,
    pub(crate) objects: Places<'l>,
}

/// The declarations of a list of types; empty if no caller needs them. Memory that is freed at once is reused, so
/// keeping unneeded places would cost more than their size.
pub(crate) struct Places<'l> {
    is_kept: bool,
    list: Vec<Declared<'l>>,
}

impl<'l> Places<'l> {
    fn new(is_kept: bool) -> Self {
        let list = Vec::new();
        Self { is_kept, list }
    }

    pub(super) fn push(&mut self, declared: Declared<'l>) {
        if self.is_kept {
            self.list.push(declared);
        }
    }
}

impl<'l> Deref for Places<'l> {
    type Target = [Declared<'l>];

    fn deref(&self) -> &[Declared<'l>] {
        &self.list
    }
}

impl DeclaredSchema<'_> {
    /// Empty; stays empty unless `is_kept`.
    pub(super) fn new(is_kept: bool) -> Self {
        Self {
            types: Places::new(is_kept),
            services: Places::new(is_kept),
            objects: Places::new(is_kept),
        }
    }
}

impl<'l> Declared<'l> {
    /// A type without members.
    pub(super) fn new(listed: Span, own: &'l Definition<'l>, lineage: Lineage<'l>) -> Self {
        Self {
            own: Some(own),
            steps: lineage.into_steps(),
            ..Self::nowhere(listed)
        }
    }

    /// A listed type without a definition.
    pub(super) fn nowhere(listed: Span) -> Self {
        Self {
            listed,
            own: None,
            steps: Vec::new(),
            properties: Vec::new(),
            base_methods: Vec::new(),
            cell_methods: Vec::new(),
            client_methods: Vec::new(),
            methods: Vec::new(),
        }
    }

    /// The definitions of the type in merge order, those of components included.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &'l Definition<'l>> {
        self.steps.iter().flat_map(|step| match step {
            Step::Own(definition) => vec![*definition],
            Step::Component(_, definitions) => definitions.clone(),
        })
    }

    /// The definition whose file contains `span`.
    pub(crate) fn definition_at(&self, span: Span) -> Option<&'l Definition<'l>> {
        self.definitions().find(|definition| definition.span.file == span.file)
    }
}
