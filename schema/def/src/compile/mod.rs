//! Declarations to the schema: files found, inheritance resolved, members merged, rules of whole entities checked.
//!
//! Everything is looked at in one run, whether or not something else is wrong: every file is read, every definition
//! compiled, listed or not. Only then is it decided whether there is a schema.

mod entity;
mod library;
mod lineage;
mod merge;

use std::{collections::BTreeMap, path::Path};

use annals_ids::TypeId;

use crate::{
    diagnostic::{Diagnostic, Finding, Findings, Rule},
    grammar::{Family, Kind},
    read::{EntityList, Reading},
    schema::{EntityType, MAX_TYPES, Schema, Service, UserDataObject},
    source::{Sources, Tree},
};
use entity::Compiler;
use library::{Documents, Library, Lookup};

/// What compiling gives: the schema if no error forbids it, and everything that was found.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The schema, if there is no error.
    pub schema: Option<Schema>,
    /// What was found, by file, line and column.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a game's definitions.
#[must_use]
pub fn compile(tree: &Tree) -> Compiled {
    let mut findings = Findings::default();
    for (path, reason) in tree.unread() {
        findings.push(Finding::in_path(
            Rule::Unreadable,
            path.clone(),
            format!("cannot be read: {reason}"),
        ));
    }
    let sources = Sources::decode(tree, &mut findings);
    let (schema, findings) = match Documents::parse(tree, &sources, &mut findings) {
        Some(documents) => {
            let (library, reading) = Library::read(tree, &documents, findings);
            compile_library(&library, reading)
        }
        None => (None, findings),
    };
    let schema = schema.filter(|_| !findings.has_errors());
    Compiled {
        schema,
        diagnostics: findings.into_diagnostics(&sources),
    }
}

/// Reads and compiles the definitions below a folder.
#[must_use]
pub fn check_dir(dir: &Path) -> (Option<Schema>, Vec<Diagnostic>) {
    let Compiled { schema, diagnostics } = compile(&Tree::read(dir));
    (schema, diagnostics)
}

fn compile_library(library: &Library<'_>, reading: Reading<'_>) -> (Option<Schema>, Findings) {
    let mut compiler = Compiler::new(library, reading);
    let types = entity_types(&mut compiler, &library.entities);
    let services = services(&mut compiler, &library.services);
    let objects = user_data_objects(&mut compiler, &library.objects);
    compiler.compile_unlisted();
    let findings = compiler.into_findings();
    if findings.has_errors() {
        return (None, findings);
    }
    (Some(Schema::new(types, services, objects)), findings)
}

fn entity_types(compiler: &mut Compiler<'_, '_>, list: &EntityList<'_>) -> Vec<EntityType> {
    let mut types = Vec::new();
    for listed in &list.entities {
        if types.len() == MAX_TYPES {
            let message = format!("there are more than {MAX_TYPES} entity types");
            compiler.report(Finding::new(Rule::TooMany, listed.span, message));
            break;
        }
        match compiler.find(
            Family::Entity,
            Kind::Entity,
            listed.name,
            listed.span,
            Rule::MissingDefinition,
        ) {
            Lookup::Found(definition) => types.push(compiler.entity_type(listed, definition)),
            // What cannot be read keeps its place, so that the ids of the others are right.
            Lookup::Broken | Lookup::Missing => types.push(EntityType::new(listed.name)),
        }
    }
    let ids: BTreeMap<String, TypeId> = types
        .iter()
        .zip(0..)
        .map(|(entity_type, id)| (entity_type.name.clone(), TypeId(id)))
        .collect();
    for (entity_type, client_name) in types.iter_mut().zip(compiler.client_names()) {
        let Some(client_name) = client_name else { continue };
        if let Some(&id) = ids.get(client_name.name) {
            entity_type.client_type = (client_name.name != entity_type.name).then_some(id);
            continue;
        }
        let message = format!("there is no entity type `{}`", client_name.name);
        let finding = Finding::new(Rule::ClientName, client_name.span, message);
        let meant = compiler.nearest(client_name.name, ids.keys().map(String::as_str));
        compiler.report(match meant {
            Some(meant) => finding.meant(meant),
            None => finding.help("name a type that is listed in `entities.xml`"),
        });
    }
    types
}

fn services(compiler: &mut Compiler<'_, '_>, list: &EntityList<'_>) -> Vec<Service> {
    let mut services = Vec::new();
    for listed in &list.entities {
        let found = compiler.find(
            Family::Service,
            Kind::Service,
            listed.name,
            listed.span,
            Rule::MissingDefinition,
        );
        if let Lookup::Found(definition) = found {
            services.push(compiler.service(listed.name, definition));
        }
    }
    services
}

fn user_data_objects(compiler: &mut Compiler<'_, '_>, list: &EntityList<'_>) -> Vec<UserDataObject> {
    let mut objects = Vec::new();
    for listed in &list.entities {
        let found = compiler.find(
            Family::Object,
            Kind::UserDataObject,
            listed.name,
            listed.span,
            Rule::MissingDefinition,
        );
        if let Lookup::Found(definition) = found {
            objects.push(compiler.user_data_object(listed.name, definition));
        }
    }
    objects
}
