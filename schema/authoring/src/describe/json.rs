//! A description as JSON, for programs.
//!
//! ```text
//! { fingerprint, types: [type], services: [service], user_data_objects: [object], kinds: [named], slots: [named],
//!   aliases: [alias], definitions: [definition] }
//! named    = { number, name }
//! type     = { id, name, parts, client_type, persistent, volatile, lod_levels, detailed_position, appeal_radius,
//!              manual_aoi, temp_properties, client_properties: [property], client_methods: [method],
//!              exposed_base_methods: [method], exposed_cell_methods: [method], properties: [property],
//!              base_methods: [method], cell_methods: [method],
//!              ids, totals, file, line, documentation, ancestors, advice }
//! property = { id, name, stream_size, least_size, default_size, type, resolved_type, flags, receivers, personal,
//!              account, detail_level, send_latest_only, is_reliable, persistent, storage, default, temporary,
//!              editable, utype, index, … }
//! method   = { id, name, stream_size, least_size, args, returns, exposed, calls_per_minute, detail_distance,
//!              is_reliable, utype, index, … }
//! ```
//! `client_properties`, `client_methods`, `exposed_base_methods` and `exposed_cell_methods` are in the order of client
//! ids, the other lists in declared order. `id` is null for members that clients do not know. `stream_size` is the
//! bytes of the value or of all arguments, null if it varies. `…` is `file`, `line`, `from`, `documentation` and
//! `advice`. New keys may be added; existing ones stay.

use annals_def::{Diagnostic, Exposure, LodLevel, MemberOrigin, Reach, TypeOrigin};
use serde_json::{Value as Json, json};

use super::{
    ArgumentDescription, Description, Ids, MethodDescription, ObjectDescription, PropertyDescription,
    ServiceDescription, Size, Storage, Sum, TypeDescription,
};

/// The description as JSON.
#[must_use]
pub fn to_json(description: &Description) -> String {
    let aliases = description.aliases.iter().map(|alias| {
        json!({
            "name": alias.name,
            "type": alias.written,
            "resolved_type": alias.data_type,
            "stream_size": alias.size.fixed(),
            "default": alias.default,
            "file": alias.place.file,
            "line": alias.place.line,
            "documentation": alias.documentation,
            "advice": advice(&alias.advice),
        })
    });
    let definitions = description.definitions.iter().map(|definition| {
        json!({
            "name": definition.definition.name,
            "kind": definition.definition.kind.name(),
            "file": definition.place.file,
            "line": definition.place.line,
            "documentation": definition.documentation,
            "heirs": definition.heirs,
        })
    });
    let names = &description.ledger_names;
    let kinds = names
        .kinds()
        .iter()
        .map(|(kind, name)| json!({ "number": kind.0, "name": name }));
    let slots = names
        .slots()
        .iter()
        .map(|(slot, name)| json!({ "number": slot.0, "name": name }));
    let json = json!({
        "fingerprint": description.fingerprint.to_string(),
        "types": description.types.iter().map(entity_type).collect::<Vec<_>>(),
        "services": description.services.iter().map(service).collect::<Vec<_>>(),
        "user_data_objects": description.user_data_objects.iter().map(object).collect::<Vec<_>>(),
        "kinds": kinds.collect::<Vec<_>>(),
        "slots": slots.collect::<Vec<_>>(),
        "aliases": aliases.collect::<Vec<_>>(),
        "definitions": definitions.collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&json).expect("invariant: every key is a string");
    text + "\n"
}

fn entity_type(one: &TypeDescription) -> Json {
    let methods = |methods: &[MethodDescription]| methods.iter().map(method).collect::<Vec<_>>();
    let called = |ids: &Ids, methods: &[MethodDescription]| {
        let members = ids.members.iter().map(|id| method(&methods[usize::from(id.0)]));
        members.collect::<Vec<_>>()
    };
    let volatile = &one.volatile;
    let mut json = json!({
        "id": one.id.0,
        "name": one.name,
        "parts": { "base": one.parts.base, "cell": one.parts.cell, "client": one.parts.client },
        "client_type": one.client_type,
        "persistent": one.persistent,
        "volatile": {
            "position": reach(volatile.position),
            "yaw": reach(volatile.yaw),
            "pitch": reach(volatile.pitch),
            "roll": reach(volatile.roll),
            "ground_only": volatile.ground_only,
        },
        "lod_levels": one.lod_levels.iter().map(level).collect::<Vec<_>>(),
        "detailed_position": one.detailed_position.map(|position| json!({ "send_latest_only": position.latest_only })),
        "appeal_radius": one.appeal_radius,
        "manual_aoi": one.manual_aoi,
        "temp_properties": one.temp_properties,
        "client_properties": one.client_properties.members.iter().map(|id| property(one.property(*id))).collect::<Vec<_>>(),
        "client_methods": called(&one.client_method_ids, &one.client_methods),
        "exposed_base_methods": called(&one.exposed_base_methods, &one.base_methods),
        "exposed_cell_methods": called(&one.exposed_cell_methods, &one.cell_methods),
        "properties": one.properties.iter().map(property).collect::<Vec<_>>(),
        "base_methods": methods(&one.base_methods),
        "cell_methods": methods(&one.cell_methods),
        "ids": {
            "client_properties": ids(&one.client_properties),
            "client_methods": ids(&one.client_method_ids),
            "exposed_base_methods": ids(&one.exposed_base_methods),
            "exposed_cell_methods": ids(&one.exposed_cell_methods),
        },
        "totals": {
            "own_client": sum(&one.totals.own_client),
            "other_clients": sum(&one.totals.other_clients),
            "ghosts": sum(&one.totals.ghosts),
            "stored": sum(&one.totals.stored),
        },
    });
    add_type_origin(&mut json, one.origin.as_ref());
    json["advice"] = advice(&one.advice);
    json
}

fn service(service: &ServiceDescription) -> Json {
    let mut json = json!({
        "name": service.name,
        "methods": service.methods.iter().map(method).collect::<Vec<_>>(),
    });
    add_type_origin(&mut json, service.origin.as_ref());
    json
}

fn object(object: &ObjectDescription) -> Json {
    let properties = object.properties.iter().map(|(property, default)| {
        let mut json = argument(property);
        json["default"] = json!(default.in_words());
        json
    });
    let mut json = json!({
        "name": object.name,
        "domain": format!("{:?}", object.domain).to_uppercase(),
        "properties": properties.collect::<Vec<_>>(),
    });
    add_type_origin(&mut json, object.origin.as_ref());
    json
}

fn property(property: &PropertyDescription) -> Json {
    let mut json = json!({
        "id": property.id,
        "index": property.index.0,
        "name": property.name,
        "type": property.written(),
        "resolved_type": property.data_type,
        "flags": property.distribution.flag(),
        "receivers": property.receivers(),
        "personal": property.personal,
        "account": property.account.map(|account| json!({
            "slot": account.slot.0,
            "kind": account.shows.kind().map(|kind| kind.0),
        })),
        "detail_level": property.level.as_ref().map(level),
        "send_latest_only": property.latest_only,
        "is_reliable": property.reliable,
        "editable": property.editable,
        "utype": property.protocol_id,
        "temporary": property.temporary,
        "persistent": property.storage.is_some(),
        "storage": property.storage.as_ref().map(storage),
        "default": property.default.in_words(),
    });
    add_size(&mut json, property.size);
    add_origin(&mut json, property.origin.as_ref());
    json["advice"] = advice(&property.advice);
    json
}

fn method(method: &MethodDescription) -> Json {
    let mut json = json!({
        "id": method.id,
        "index": method.index.0,
        "name": method.name,
        "args": method.args.iter().map(argument).collect::<Vec<_>>(),
        "returns": method.returns.iter().map(argument).collect::<Vec<_>>(),
        "exposed": match method.exposed {
            Exposure::No => None,
            Exposure::OwnClient => Some("OWN_CLIENT"),
            Exposure::AllClients => Some("ALL_CLIENTS"),
        },
        "calls_per_minute": method.calls_per_minute,
        "detail_distance": method.detail_distance,
        "send_latest_only": method.latest_only,
        "is_reliable": method.reliable,
        "utype": method.protocol_id,
    });
    add_size(&mut json, method.size);
    add_origin(&mut json, method.origin.as_ref());
    json["advice"] = advice(&method.advice);
    json
}

fn argument(argument: &ArgumentDescription) -> Json {
    let mut json = json!({ "name": argument.name, "type": argument.data_type });
    add_size(&mut json, argument.size);
    json
}

fn storage(storage: &Storage) -> Json {
    json!({
        "key": storage.key,
        "size": storage.size.fixed(),
        "least_size": storage.size.least(),
        "default_size": storage.size.of_default(),
        "database_length": storage.database_length,
        "index": Some(storage.index.name()).filter(|name| !name.is_empty()),
    })
}

fn add_size(json: &mut Json, size: Size) {
    json["stream_size"] = json!(size.fixed());
    json["least_size"] = json!(size.least());
    json["default_size"] = json!(size.of_default());
}

fn add_origin(json: &mut Json, origin: Option<&MemberOrigin>) {
    let Some(origin) = origin else { return };
    json["file"] = json!(origin.place.file);
    json["line"] = json!(origin.place.line);
    json["from"] = json!(origin.from.to_string());
    json["documentation"] = json!(origin.documentation);
}

fn add_type_origin(json: &mut Json, origin: Option<&TypeOrigin>) {
    let Some(origin) = origin else { return };
    json["file"] = json!(origin.place.file);
    json["line"] = json!(origin.place.line);
    json["documentation"] = json!(origin.documentation);
    json["ancestors"] = json!(origin.ancestors.iter().map(ToString::to_string).collect::<Vec<_>>());
}

fn advice(advice: &[Diagnostic]) -> Json {
    let one = |one: &Diagnostic| {
        json!({
            "code": one.rule.to_string(),
            "severity": one.severity.to_string(),
            "message": one.message,
            "help": one.help,
            "file": one.place.file,
            "line": one.place.line,
        })
    };
    advice.iter().map(one).collect()
}

fn ids(ids: &Ids) -> Json {
    json!({ "count": ids.members.len(), "single_byte": ids.single_byte, "overflowing": ids.overflowing() })
}

fn sum(sum: &Sum) -> Json {
    json!({
        "members": sum.members,
        "size": sum.is_fixed.then_some(sum.least),
        "least_size": sum.least,
        "default_size": sum.of_defaults,
    })
}

fn level(level: &LodLevel) -> Json {
    json!({ "label": level.label, "radius": level.radius, "hysteresis": level.hysteresis })
}

/// Metres, `"always"`, or null.
fn reach(reach: Reach) -> Json {
    match reach {
        Reach::Never => Json::Null,
        Reach::Within(metres) => json!(metres),
        Reach::Always => json!("always"),
    }
}
