//! The definitions of a game, with lookup by family, kind and name.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    diagnostic::{Finding, Findings, Rule, Severity},
    grammar::{
        ALIAS_FILES, COMPONENT_LIST, Dialect, EXTRA_ALIASES, FOLDERS, Family, FileKind, Kind, LEDGER_FILE, ZONE_FOLDER,
        definition_at, root_of, zone_at,
    },
    read::{Choice, Definition, EntityList, Listed, Reading, Sign, Signs, read_aliases},
    schema::LedgerNames,
    source::{Document, Section, Sources, Span, Tree, has_text, parse},
};

/// All declarations of a game.
pub(super) struct Library<'s> {
    pub(super) entities: EntityList<'s>,
    pub(super) services: EntityList<'s>,
    pub(super) objects: EntityList<'s>,
    pub(super) ledger_names: LedgerNames,
    /// The root of each zone that could be parsed, by name.
    pub(super) zones: BTreeMap<&'s str, Section<'s>>,
    dialect: Dialect,
    /// `None` for a file that could not be parsed.
    definitions: Definitions<'s>,
    /// The names of definitions by their lower-case spelling.
    any_case: BTreeMap<(Family, Kind, String), &'s str>,
    /// The names of the scripts by part: base, cell, client. Empty if the game's folder has no scripts.
    pub(super) scripts: [BTreeSet<String>; 3],
    /// Whether the entity types come from a list, not from the definition files that exist.
    pub(super) has_entity_list: bool,
    /// The folder that contains the definitions.
    root: &'static str,
    /// The files with aliases, by their paths below the root.
    alias_files: Vec<&'static str>,
    /// The names in the list of components, which one game has.
    listed_components: BTreeSet<&'s str>,
}

/// Definitions by family and kind, then by name.
type Definitions<'s> = BTreeMap<(Family, Kind), BTreeMap<&'s str, Option<Definition<'s>>>>;

/// The result of a lookup by name.
pub(super) enum Lookup<'l> {
    Found(&'l Definition<'l>),
    /// The file of this name exists but cannot be read, which has been reported.
    Broken(&'l str),
    /// There is no file of this name, which has been reported by this lookup.
    Missing(&'l str),
}

/// The parsed files of a game.
pub(crate) struct Documents<'s> {
    /// The folder that contains the definitions.
    root: &'static str,
    /// Documents by path below the root. A file that is not well-formed has no elements and has been reported.
    files: BTreeMap<&'s str, Document<'s>>,
}

impl<'s> Documents<'s> {
    /// Parses every file; `None` and a finding if there are no definitions where they should be.
    pub(super) fn parse(tree: &Tree, sources: &'s Sources<'s>, findings: &mut Findings) -> Option<Self> {
        let Some(root) = root_of(tree) else {
            let finding = Finding::in_path(Rule::NoDefinitions, "", "there are no entity definitions here")
                .help("name the folder that contains `entities.xml` and `entity_defs/`, or its parent");
            // The content of an unreadable folder is unknown.
            if !tree.unread().iter().any(|(path, _)| path.is_empty()) {
                findings.push(finding);
            }
            return None;
        };
        let below = sources
            .iter()
            .filter_map(|(id, file)| Some((id, file, file.path.strip_prefix(root)?)));
        let parsed = below.map(|(id, file, path)| {
            let document = if file.is_unreadable {
                Document::default()
            } else {
                parse(id, &file.text, findings)
            };
            (path, document)
        });
        let files = parsed.collect();
        Some(Self { root, files })
    }

    /// The files that were parsed, in the order of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Document<'s>> {
        self.files.values().filter(|document| document.root().is_some())
    }

    /// The dialect in which the files are written.
    pub(super) fn dialect(&self) -> Choice<'_> {
        let of_file = |dialect, path: &str| Some(Sign::of_file(dialect, self.section(path)?));
        let components = || {
            let mut in_folder = self
                .files
                .iter()
                .filter(|(path, _)| path.starts_with("component_defs/"));
            in_folder.find_map(|(_, document)| Some(Sign::of_file(Dialect::BigWorld, document.root()?)))
        };
        let bigworld_file = of_file(Dialect::BigWorld, "services.xml")
            .or_else(|| of_file(Dialect::BigWorld, "user_data_objects.xml"))
            .or_else(components);
        let definitions = self.files.iter().filter(|(path, _)| path.ends_with(".def"));
        let roots = definitions.filter_map(|(_, document)| document.root());
        let signs = Signs {
            list: self.section("entities.xml").and_then(Sign::of_list),
            files: of_file(Dialect::KBEngine, "entity_defs/types.xml")
                .into_iter()
                .chain(bigworld_file)
                .collect(),
            definitions: roots.flat_map(Sign::of_definition).collect(),
            alias_file: of_file(Dialect::BigWorld, "entity_defs/alias.xml"),
        };
        signs.choose()
    }

    /// The root element of a file, if the file exists and was parsed.
    fn section(&self, path: &str) -> Option<Section<'_>> {
        self.files.get(path).and_then(Document::root)
    }
}

impl<'s> Library<'s> {
    /// Reads every file.
    pub(super) fn read(
        tree: &Tree,
        documents: &'s Documents<'s>,
        choice: &Choice<'_>,
        mut findings: Findings,
    ) -> (Self, Reading<'s>) {
        let root = documents.root;
        if let Some(contradiction) = choice.contradiction() {
            findings.push(contradiction);
        }
        let mut reading = Reading::new(choice.dialect);
        reading.findings = findings;
        let alias_files = read_alias_files(&mut reading, documents);
        let definitions = definitions(&mut reading, documents);
        other_files_mean_nothing(&mut reading, documents);
        let any_case = definitions.iter().flat_map(|((family, kind), named)| {
            let lower = |name: &&'s str| ((*family, *kind, name.to_ascii_lowercase()), *name);
            named.keys().map(lower)
        });
        let mut library = Self {
            entities: EntityList::default(),
            services: EntityList::default(),
            objects: EntityList::default(),
            ledger_names: LedgerNames::default(),
            zones: zones(documents),
            dialect: reading.dialect,
            any_case: any_case.collect(),
            definitions,
            scripts: ["base/", "cell/", "client/"].map(|part| scripts(tree, &format!("{root}{part}"))),
            has_entity_list: documents.files.contains_key("entities.xml"),
            root,
            alias_files,
            listed_components: BTreeSet::new(),
        };
        library.read_lists(&mut reading, documents);
        (library, reading)
    }

    fn read_lists(&mut self, reading: &mut Reading<'s>, documents: &'s Documents<'s>) {
        if self.has_entity_list {
            if let Some(list) = documents.section("entities.xml") {
                self.entities = reading.entity_list(list);
            }
        } else {
            self.entities = self.all_entities(reading);
        }
        if let Some(list) = documents.section("services.xml") {
            self.services = reading.name_list(list);
        }
        if let Some(list) = documents.section("user_data_objects.xml") {
            self.objects = reading.name_list(list);
        }
        if let Some(list) = documents.section(COMPONENT_LIST) {
            let message = "BigWorld does not read this list: its components are checked, but added to no entity type";
            let finding = Finding::new(Rule::ExtraFile, list.name_span(), message)
                .help("name each component in the `<Components>` of the entities that should have it");
            reading.report(finding);
            let listed = reading.name_list(list).entities;
            self.listed_components = listed.into_iter().map(|listed| listed.name).collect();
        }
        if let Some(names) = documents.section(LEDGER_FILE) {
            self.ledger_names = reading.ledger_names(names);
        }
    }

    /// Whether the list of components names a definition.
    pub(super) fn is_listed_component(&self, kind: Kind, name: &str) -> bool {
        kind == Kind::Component && self.listed_components.contains(name)
    }

    /// Replaces a missing list: every entity definition, ordered by name.
    fn all_entities(&self, reading: &mut Reading<'_>) -> EntityList<'s> {
        let definitions = self
            .definitions
            .get(&(Family::Entity, Kind::Entity))
            .into_iter()
            .flatten();
        let named = definitions.filter_map(|(name, definition)| Some((name, definition.as_ref()?)));
        let entities: Vec<Listed<'s>> = named
            .map(|(name, definition)| Listed {
                name,
                span: definition.span,
                base: None,
                cell: None,
                client: None,
            })
            .collect();
        let message = "there is no `entities.xml`; all definitions are used, in the order of their names";
        let finding = Finding::in_path(Rule::NoEntityList, "", message)
            .help("add `entities.xml`: a root element with an empty element for each type");
        reading.report(finding);
        EntityList { entities }
    }

    /// Looks up the definition of this name, used at `span`. A name in another case finds its file with a warning; a
    /// missing definition is reported under `rule`.
    pub(super) fn find<'l>(
        &'l self,
        (family, kind, name): (Family, Kind, &'l str),
        span: Span,
        rule: Rule,
        findings: &mut Findings,
    ) -> Lookup<'l> {
        let of_kind = self.definitions.get(&(family, kind));
        let named = |name: &str| of_kind.and_then(|of_kind| of_kind.get_key_value(name));
        let mut found = named(name);
        if found.is_none()
            && let Some(known) = self.any_case.get(&(family, kind, name.to_ascii_lowercase()))
        {
            let finding = Finding::new(Rule::FileCase, span, format!("the file is named `{known}.def`")).write(known);
            findings.push(finding);
            found = named(known);
        }
        match found {
            Some((_, Some(definition))) => Lookup::Found(definition),
            Some((name, None)) => Lookup::Broken(name),
            None => {
                let folder = folder_of(self.dialect, family, kind);
                let finding = Finding::new(rule, span, format!("there is no `{folder}{name}.def`"));
                // Its position in the list has no meaning, so it can be left out.
                let is_left_out = family == Family::Object && rule == Rule::MissingDefinition;
                let finding = if is_left_out {
                    finding.severity(Severity::Warning)
                } else {
                    finding
                };
                let names = of_kind.into_iter().flat_map(BTreeMap::keys).copied();
                let meant = findings.nearest(name, names);
                findings.push(match meant {
                    Some(meant) => finding.meant(meant),
                    None => finding.help("add the file, or remove the name"),
                });
                Lookup::Missing(name)
            }
        }
    }

    /// Whether no listed type reads the file at this path: it is not one of the `used` definitions, not a list other
    /// than that of components, and not an effective file of aliases. False for a folder.
    pub(super) fn is_idle(&self, path: &str, used: &BTreeSet<(Family, Kind, &str)>) -> bool {
        let Some(below) = path.strip_prefix(self.root) else {
            return has_text(path);
        };
        match (definition_at(below), FileKind::of(below)) {
            (Some(key), _) => !used.contains(&key),
            (None, Some(FileKind::Aliases)) => !self.alias_files.contains(&below),
            (None, Some(FileKind::ComponentList)) => true,
            (None, Some(_)) => false,
            (None, None) => has_text(path),
        }
    }

    /// All definitions that could be read, in a fixed order.
    pub(super) fn all(&self) -> impl Iterator<Item = (Family, Kind, &'s str, &Definition<'s>)> {
        self.definitions.iter().flat_map(|((family, kind), named)| {
            named
                .iter()
                .filter_map(|(name, definition)| Some((*family, *kind, *name, definition.as_ref()?)))
        })
    }
}

/// The folder of definitions of this family and kind in a dialect.
fn folder_of(dialect: Dialect, family: Family, kind: Kind) -> &'static str {
    let mut folders = FOLDERS.iter().filter(|(_, f, k)| *f == family && *k == kind);
    let folder = match dialect {
        Dialect::BigWorld => folders.next_back(),
        Dialect::KBEngine => folders.next(),
    };
    folder.map_or("", |(folder, _, _)| folder)
}

/// Reads the aliases, and returns the files that contain them.
fn read_alias_files<'s>(reading: &mut Reading<'s>, documents: &'s Documents<'s>) -> Vec<&'static str> {
    // A game has one of the two; if both exist, the dialect's own file is used.
    let mut paths = ALIAS_FILES;
    if reading.dialect == Dialect::KBEngine {
        paths.reverse();
    }
    let mut present = paths.into_iter().filter(|path| documents.files.contains_key(path));
    let Some(path) = present.next() else {
        return Vec::new();
    };
    reading.alias_file = path;
    let mut read = vec![path];
    if path == ALIAS_FILES[0] && documents.files.contains_key(EXTRA_ALIASES) {
        read.push(EXTRA_ALIASES);
    }
    let roots: Vec<Section<'s>> = read.iter().filter_map(|path| documents.section(path)).collect();
    read_aliases(reading, &roots);
    for root in roots.iter().skip(1) {
        let message = format!("these aliases are read after those of `{path}`; BigWorld does not read them");
        let finding = Finding::new(Rule::ExtraFile, root.name_span(), message).help(format!("move them to `{path}`"));
        reading.report(finding);
    }
    if let Some(root) = present.next().and_then(|path| documents.section(path)) {
        let message = format!("this file is not read, because `{}` exists", paths[0]);
        let finding = Finding::new(Rule::NotUsed, root.name_span(), message).help("move its aliases there");
        reading.report(finding);
    }
    read
}

/// Notes files in definition folders that nothing reads.
fn other_files_mean_nothing(reading: &mut Reading<'_>, documents: &Documents<'_>) {
    for (path, document) in &documents.files {
        let is_among_zones = path.split('/').next() == Some(ZONE_FOLDER);
        let is_in_folder = is_among_zones || FOLDERS.iter().any(|(folder, ..)| path.starts_with(folder));
        let is_definition = path.ends_with(".def") && !is_among_zones;
        if !is_in_folder || is_definition || FileKind::of(path).is_some() {
            continue;
        }
        if let Some(root) = document.root() {
            let help = if is_among_zones {
                "zones are files directly in `zones/`, and end in `.xml`"
            } else {
                "definitions end in `.def`, aliases are in `alias.xml` or `types.xml`"
            };
            let finding = Finding::new(Rule::NotUsed, root.name_span(), "nothing reads a file of this name");
            reading.report(finding.help(help));
        }
    }
}

fn zones<'s>(documents: &'s Documents<'s>) -> BTreeMap<&'s str, Section<'s>> {
    let files = documents.files.iter();
    let zones = files.filter_map(|(path, document)| Some((zone_at(path)?, document.root()?)));
    zones.collect()
}

fn definitions<'s>(reading: &mut Reading<'s>, documents: &'s Documents<'s>) -> Definitions<'s> {
    let mut definitions = Definitions::new();
    for (path, document) in &documents.files {
        let Some((family, kind, name)) = definition_at(path) else {
            continue;
        };
        let definition = document
            .root()
            .map(|root| reading.definition((family, kind), name, root));
        definitions.entry((family, kind)).or_default().insert(name, definition);
    }
    definitions
}

fn scripts(tree: &Tree, folder: &str) -> BTreeSet<String> {
    let below = tree
        .files()
        .filter_map(|(path, _)| path.strip_prefix(folder)?.strip_suffix(".py"));
    below.filter(|name| !name.contains('/')).map(str::to_owned).collect()
}
