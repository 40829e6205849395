//! Helpers shared by several tests.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{fmt::Write as _, fs, path::Path};

use annals_def::{Argument, EntityType, Exposure, Index, Method, Property, Schema, Tree};

/// The files of a golden case: a folder, or one file with a path above each section.
pub(crate) fn tree_of(case: &Path) -> Tree {
    if case.is_dir() {
        return Tree::read(case);
    }
    let text = fs::read_to_string(case).expect("readable");
    let mut tree = Tree::new();
    for section in text.split("=== ").skip(1) {
        let (path, content) = section.split_once('\n').expect("a line with the path");
        tree.insert(path, content);
    }
    tree
}

/// A schema as text, with everything that a game could observe.
pub(crate) fn describe(schema: &Schema) -> String {
    let mut out = String::new();
    for entity_type in schema.types() {
        describe_type(entity_type, schema, &mut out);
    }
    for service in schema.services() {
        let _ = writeln!(out, "service {}", service.name);
        describe_methods("method", &service.methods, &mut out);
    }
    for object in schema.user_data_objects() {
        let _ = writeln!(out, "user data object {} ({:?})", object.name, object.domain);
        for field in &object.properties {
            let _ = writeln!(out, "  {}: {} = {}", field.name, field.data_type, field.default);
        }
    }
    for (kind, name) in schema.ledger_names().kinds() {
        let _ = writeln!(out, "kind {kind} {name}");
    }
    for (slot, name) in schema.ledger_names().slots() {
        let _ = writeln!(out, "slot {slot} {name}");
    }
    out
}

fn describe_type(entity_type: &EntityType, schema: &Schema, out: &mut String) {
    let parts = entity_type.parts;
    let parts = [(parts.base, "base"), (parts.cell, "cell"), (parts.client, "client")];
    let parts: Vec<&str> = parts
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, part)| part)
        .collect();
    let _ = write!(out, "{} {}: {}", entity_type.id, entity_type.name, parts.join(" "));
    if let Some(client_type) = entity_type.client_type.and_then(|id| schema.entity_type(id)) {
        let _ = write!(out, ", {} to clients", client_type.name);
    }
    if !entity_type.persistent {
        let _ = write!(out, ", not stored");
    }
    let _ = writeln!(out);
    let volatile = entity_type.volatile;
    if volatile.is_any() {
        let _ = writeln!(out, "  volatile {volatile:?}");
    }
    for level in &entity_type.lod_levels {
        let _ = writeln!(
            out,
            "  level {} to {} + {}",
            level.label, level.radius, level.hysteresis
        );
    }
    if !entity_type.temp_properties.is_empty() {
        let _ = writeln!(out, "  temporary {}", entity_type.temp_properties.join(" "));
    }
    if let Some(detailed) = entity_type.detailed_position {
        let _ = writeln!(out, "  {detailed:?}");
    }
    if entity_type.appeal_radius > 0.0 || entity_type.manual_aoi {
        let _ = writeln!(
            out,
            "  appeal {}, manual {}",
            entity_type.appeal_radius, entity_type.manual_aoi
        );
    }
    for property in &entity_type.properties {
        describe_property(property, out);
    }
    describe_methods("base", &entity_type.base_methods, out);
    describe_methods("cell", &entity_type.cell_methods, out);
    describe_methods("client", &entity_type.client_methods, out);
}

fn describe_property(property: &Property, out: &mut String) {
    let Property {
        index,
        name,
        data_type,
        distribution,
        default,
        ..
    } = property;
    let _ = write!(out, "  {index} {name}: {data_type} {distribution} = {default}");
    let marks = [
        (property.persistent, "persistent"),
        (property.identifier, "identifier"),
        (property.indexed == Index::Plain, "index"),
        (property.indexed == Index::Unique, "unique index"),
        (property.latest_only, "latest only"),
        (!property.reliable, "unreliable"),
        (property.editable, "editable"),
    ];
    for (_, mark) in marks.into_iter().filter(|(has, _)| *has) {
        let _ = write!(out, ", {mark}");
    }
    if let Some(data_type) = &property.personal {
        let _ = write!(out, ", personal {data_type}");
    }
    if let Some(account) = property.account {
        let _ = write!(out, ", view of {account}");
    }
    for (number, what) in [
        (property.client_id.map(u32::from), "client id"),
        (property.detail_level.map(u32::from), "level"),
        (property.database_length, "length"),
        (property.protocol_id.map(u32::from), "fixed id"),
    ] {
        if let Some(number) = number {
            let _ = write!(out, ", {what} {number}");
        }
    }
    let _ = writeln!(out);
}

fn describe_methods(part: &str, methods: &[Method], out: &mut String) {
    let list = |arguments: &[Argument]| {
        let arguments = arguments
            .iter()
            .map(|argument| format!("{}: {}", argument.name, argument.data_type));
        arguments.collect::<Vec<_>>().join(", ")
    };
    for method in methods {
        let _ = write!(out, "  {part} {} {}({})", method.index, method.name, list(&method.args));
        if method.is_two_way() {
            let _ = write!(out, " -> ({})", list(&method.returns));
        }
        if method.exposed != Exposure::No {
            let _ = write!(out, ", exposed {:?}", method.exposed);
        }
        if let Some(calls) = method.calls_per_minute {
            let _ = write!(out, ", {calls} calls per minute");
        }
        if let Some(distance) = method.detail_distance {
            let _ = write!(out, ", within {distance}");
        }
        if method.latest_only {
            let _ = write!(out, ", latest only");
        }
        if !method.reliable {
            let _ = write!(out, ", unreliable");
        }
        if let Some(id) = method.client_id {
            let _ = write!(out, ", client id {id}");
        }
        let _ = writeln!(out);
    }
}
