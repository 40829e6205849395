//! Compiles declarations into the schema: finds files, resolves inheritance, merges members, checks the rules of whole
//! entities.
//!
//! One run reports all errors: every file is read and every definition compiled, listed or not. Only then is it decided
//! whether there is a schema.

mod allowance;
mod declared;
mod entity;
mod library;
mod lineage;
mod merge;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use annals_ids::TypeId;

use crate::{
    data_type::DataType,
    diagnostic::{Diagnostic, Finding, Findings, Rule, Severity, Where},
    grammar::{Dialect, Family, Kind},
    read::{DialectChoice, EntityList, Reading, ZonesRead},
    schema::{EntityType, MAX_TYPES, Schema, Service, UserDataObject},
    source::{FileId, Sources, Span, Tree},
    zone::Zones,
};
pub(crate) use allowance::is_allowance;
use allowance::{read_allowances, report_refused, report_unused};
use declared::Places;
pub(crate) use declared::{Declared, DeclaredSchema};
use entity::Compiler;
pub(crate) use library::Documents;
use library::{Library, Lookup};

/// The result of compiling: the schema unless there is an error, and all findings.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The schema, if there are no errors.
    pub schema: Option<Schema>,
    /// All findings, ordered by file, line and column.
    pub diagnostics: Vec<Diagnostic>,
    /// The dialect of the game, and how it was chosen.
    pub dialect: DialectChoice,
}

impl Compiled {
    /// One line that says whether there is a schema: `yes, because …` or `no, because …`.
    #[must_use]
    pub fn verdict(&self) -> String {
        if self.schema.is_some() {
            return match self.diagnostics.iter().map(|found| found.severity).min() {
                None => "yes, because nothing is wrong".to_owned(),
                Some(gravest) => format!("yes, because nothing is worse than a {gravest}"),
            };
        }
        let mut codes: BTreeMap<String, u32> = BTreeMap::new();
        for error in self
            .diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Error)
        {
            *codes.entry(error.rule.to_string()).or_default() += 1;
        }
        let counted = codes.iter().map(|(code, count)| match count {
            1 => code.clone(),
            count => format!("{count} times {code}"),
        });
        let counted: Vec<String> = counted.collect();
        match codes.values().sum() {
            0 => "no, because there are no definitions".to_owned(),
            1 => format!("no, because of one error: {}", counted.join("")),
            errors => format!("no, because of {errors} errors: {}", counted.join(", ")),
        }
    }
}

/// All data of one compilation while its texts are in memory.
pub(crate) struct World<'w> {
    pub(crate) sources: &'w Sources<'w>,
    pub(crate) documents: &'w Documents<'w>,
    pub(crate) reading: &'w Reading<'w>,
    pub(crate) schema: &'w Schema,
    pub(crate) declared: &'w DeclaredSchema<'w>,
}

/// Compiles a game's definitions.
#[must_use]
pub fn compile(tree: &Tree) -> Compiled {
    run(tree, None::<fn(&World<'_>, &mut Findings)>).0
}

/// Compiles a game's definitions, and returns the named types beside the schema, if there is one: a schema does not
/// keep the names of types.
#[must_use]
pub fn compile_named(tree: &Tree) -> (Compiled, Option<BTreeMap<String, DataType>>) {
    compile_and(tree, |world, _| world.reading.named_types())
}

/// The dialect in which a game is written.
#[must_use]
pub fn dialect_of(tree: &Tree) -> Dialect {
    let mut findings = Findings::default();
    let sources = Sources::decode(tree, &mut findings);
    let documents = Documents::parse(tree, &sources, &mut findings);
    documents.map_or(Dialect::BigWorld, |documents| documents.dialect().dialect)
}

/// Reads and compiles the definitions below a folder.
#[must_use]
pub fn check_dir(dir: &Path) -> (Option<Schema>, Vec<Diagnostic>) {
    let Compiled {
        schema, diagnostics, ..
    } = compile(&Tree::read(dir));
    (schema, diagnostics)
}

/// Compiles, and calls `look` if there is a schema; its findings are added to the diagnostics.
pub(crate) fn compile_and<T>(tree: &Tree, look: impl FnOnce(&World<'_>, &mut Findings) -> T) -> (Compiled, Option<T>) {
    run(tree, Some(look))
}

fn run<T>(tree: &Tree, look: Option<impl FnOnce(&World<'_>, &mut Findings) -> T>) -> (Compiled, Option<T>) {
    let mut findings = Findings::default();
    for (path, reason) in tree.unread() {
        let message = match path.is_empty() {
            true => reason.clone(),
            false => format!("cannot be read: {reason}"),
        };
        findings.push(Finding::in_path(Rule::Unreadable, path.clone(), message));
    }
    let sources = Sources::decode(tree, &mut findings);
    let Some(documents) = Documents::parse(tree, &sources, &mut findings) else {
        let diagnostics = findings.into_diagnostics(&sources);
        let compiled = Compiled {
            schema: None,
            diagnostics,
            dialect: DialectChoice::without_sign(),
        };
        return (compiled, None);
    };
    read_allowances(&documents, &mut findings);
    let choice = documents.dialect();
    let (library, reading) = Library::read(tree, &documents, &choice, findings);
    let (schema, declared, mut reading) = compile_library(&library, reading, &sources, look.is_some());
    let mut findings = std::mem::take(&mut reading.findings);
    let mut seen = None;
    if let (Some(schema), Some(look)) = (&schema, look) {
        let world = World {
            sources: &sources,
            documents: &documents,
            reading: &reading,
            schema,
            declared: &declared,
        };
        seen = Some(look(&world, &mut findings));
        report_unused(reading.dialect, &mut findings);
    }
    report_refused(reading.dialect, &mut findings);
    let diagnostics = findings.into_diagnostics(&sources);
    let compiled = Compiled {
        schema,
        diagnostics,
        dialect: choice.placed(&sources),
    };
    (compiled, seen)
}

fn compile_library<'l, 's>(
    library: &'l Library<'s>,
    reading: Reading<'s>,
    sources: &Sources<'_>,
    keeps_places: bool,
) -> (Option<Schema>, DeclaredSchema<'l>, Reading<'s>) {
    let mut compiler = Compiler::new(library, reading);
    let mut declared = DeclaredSchema::new(keeps_places);
    let types = entity_types(&mut compiler, &library.entities, &mut declared.types);
    let services = services(
        &mut compiler,
        &library.services,
        MAX_TYPES - types.len(),
        &mut declared.services,
    );
    let objects = user_data_objects(&mut compiler, &library.objects, &mut declared.objects);
    let used = compiler.used();
    compiler.compile_unlisted();
    let mut reading = compiler.into_reading();
    forgive_idle(library, sources, &used, &mut reading);
    let is_sound = !reading.findings.has_errors();
    let named = |schema: Schema| schema.with_ledger_names(library.ledger_names.clone());
    let schema = is_sound.then(|| named(Schema::new(types, services, objects)));
    let schema = schema.and_then(|schema| with_zones(schema, library, &mut reading));
    (schema, declared, reading)
}

/// Reads the zones; `None` if there is an error in one. They can be checked only against definitions without errors. Their
/// notation is BigWorld's: KBEngine has no zones, so there is nothing that its engine forgives.
fn with_zones<'s>(schema: Schema, library: &Library<'s>, reading: &mut Reading<'s>) -> Option<Schema> {
    let dialect = std::mem::replace(&mut reading.dialect, Dialect::BigWorld);
    let mut read = ZonesRead::new(&schema);
    let mut zones = BTreeMap::new();
    for (name, root) in &library.zones {
        let zone = reading.zone(*root, &schema, &mut read);
        zones.insert((*name).to_owned(), zone);
    }
    reading.references_of_zones(&read);
    reading.dialect = dialect;
    (!reading.findings.has_errors()).then(|| schema.with_zones(Zones::new(zones)))
}

/// Turns errors that affect no listed type into warnings: those in files that no listed type reads, and in aliases that
/// none uses.
fn forgive_idle(
    library: &Library<'_>,
    sources: &Sources<'_>,
    used: &BTreeSet<(Family, Kind, &str)>,
    reading: &mut Reading<'_>,
) {
    let is_idle = |path: &str| library.is_idle(path, used);
    let files = sources.iter().filter(|(_, file)| is_idle(file.path));
    let files: BTreeSet<FileId> = files.map(|(id, _)| id).collect();
    let aliases = reading.idle_aliases(|file| !files.contains(&file));
    let is_in = |idle: &Span, at: &Span| idle.file == at.file && (idle.start..idle.end).contains(&at.start);
    reading.findings.forgive(|at| match at {
        Where::Path(path) => is_idle(path),
        Where::Span(at) => files.contains(&at.file) || aliases.iter().any(|idle| is_in(idle, at)),
    });
}

fn entity_types<'l>(
    compiler: &mut Compiler<'l, '_>,
    list: &'l EntityList<'l>,
    places: &mut Places<'l>,
) -> Vec<EntityType> {
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
            Lookup::Found(definition) => {
                let (entity_type, declared) = compiler.entity_type(listed, definition);
                types.push(entity_type);
                places.push(declared);
            }
            // An unreadable definition keeps its position, so that the ids of the others stay right.
            Lookup::Broken(_) | Lookup::Missing(_) => {
                types.push(EntityType::new(listed.name));
                places.push(Declared::nowhere(listed.span));
            }
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

/// Compiles the services, of which there may be this many.
fn services<'l>(
    compiler: &mut Compiler<'l, '_>,
    list: &'l EntityList<'l>,
    most: usize,
    places: &mut Places<'l>,
) -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    for listed in &list.entities {
        if services.len() == most {
            let message = format!("there are more than {MAX_TYPES} entity types and services");
            compiler.report(Finding::new(Rule::TooMany, listed.span, message));
            break;
        }
        let found = compiler.find(
            Family::Service,
            Kind::Service,
            listed.name,
            listed.span,
            Rule::MissingDefinition,
        );
        if let Lookup::Found(definition) = found {
            let (service, declared) = compiler.service(listed, definition);
            let slot = service.slot();
            let mut before = services.iter();
            if let Some(other) = before.find(|other| other.slot() == slot && other.name != service.name) {
                let message = format!("services `{}` and `{}` have the same number", other.name, service.name);
                let finding = Finding::new(Rule::TooMany, listed.span, message);
                compiler.report(finding.help("rename one: the number follows from the name"));
            }
            services.push(service);
            places.push(declared);
        }
    }
    services
}

fn user_data_objects<'l>(
    compiler: &mut Compiler<'l, '_>,
    list: &'l EntityList<'l>,
    places: &mut Places<'l>,
) -> Vec<UserDataObject> {
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
            let (object, declared) = compiler.user_data_object(listed, definition);
            objects.push(object);
            places.push(declared);
        }
    }
    objects
}
