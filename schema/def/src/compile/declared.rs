//! Where what a schema has is declared. It is no part of the schema, whose meaning it does not change: whoever shows a
//! schema to people looks it up here.

use std::ops::Deref;

use super::lineage::{Lineage, Step};
use crate::{read::Definition, source::Span};

/// Where a listed type has what from.
pub(crate) struct Declared<'l> {
    /// Its place in the list.
    pub(crate) listed: Span,
    /// Its own definition; `None` if that is missing.
    pub(crate) own: Option<&'l Definition<'l>>,
    /// From whom it inherits, itself included, in the order of merging.
    pub(crate) steps: Vec<Step<'l>>,
    /// The names of its properties, in their order.
    pub(crate) properties: Vec<Span>,
    pub(crate) base_methods: Vec<Span>,
    pub(crate) cell_methods: Vec<Span>,
    pub(crate) client_methods: Vec<Span>,
    /// Of a service.
    pub(crate) methods: Vec<Span>,
}

/// Where everything of a schema is declared, in the order of the schema's lists.
pub(crate) struct DeclaredSchema<'l> {
    pub(crate) types: Places<'l>,
    pub(crate) services: Places<'l>,
    pub(crate) objects: Places<'l>,
}

/// Where the types of a list are declared; none if nobody is to ask. Memory that is given back at once is used again, so
/// keeping it for nothing would cost more than its size.
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
    /// Nothing yet, or nothing ever if it is not kept.
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

    /// A listed type whose definition is missing.
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

    /// The definitions it consists of, in the order of merging; a component's too.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &'l Definition<'l>> {
        self.steps.iter().flat_map(|step| match step {
            Step::Own(definition) => vec![*definition],
            Step::Component(_, definitions) => definitions.clone(),
        })
    }

    /// The definition in whose file something is.
    pub(crate) fn definition_at(&self, span: Span) -> Option<&'l Definition<'l>> {
        self.definitions().find(|definition| definition.span.file == span.file)
    }
}
