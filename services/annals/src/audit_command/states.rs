//! Prints a past state of a realm, and the difference between two moments.

use std::collections::{BTreeMap, BTreeSet};

use annals_audit::{
    names::{self, space_data},
    past::{Change, Difference, PartAt, PartOf, Past},
};
use annals_def::Schema;
use annals_event::{SpaceEntry, ledger::Holder};
use annals_evidence::{Cut, Lexicon, Terms};
use annals_ids::{DatabaseId, EntityId, Hash, OwnerId, SpaceId};
use serde_json::{Map, Value, json};

use super::{
    ledger_names,
    report::{Plain, Report, names},
};
use crate::value_json::value_to_json;

/// Which part of a realm is asked about; all of it, if neither is said.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct Which {
    /// Only this entity
    #[arg(long, value_parser = |text: &str| text.parse().map(EntityId), conflicts_with = "space")]
    pub(super) entity: Option<EntityId>,
    /// Only this space and the entities in it
    #[arg(long, value_parser = |text: &str| text.parse().map(SpaceId))]
    pub(super) space: Option<SpaceId>,
}

impl Which {
    /// Its name in a sentence.
    fn name(&self) -> String {
        match (self.entity, self.space) {
            (Some(entity), _) => format!("entity {entity}"),
            (None, Some(space)) => format!("space {space}"),
            (None, None) => "the realm".to_owned(),
        }
    }

    /// The selected parts among all that existed at these moments. An entity that is in the space at either moment is
    /// included for both.
    fn entities(&self, moments: &[&Past]) -> Option<BTreeSet<EntityId>> {
        let (entity, space) = (self.entity, self.space);
        if let Some(entity) = entity {
            return Some(BTreeSet::from([entity]));
        }
        let space = space?;
        let parts = moments.iter().flat_map(|past| past.parts());
        let within = parts.filter(|(_, part)| part.space() == Some(space));
        Some(within.map(|((entity, _), _)| entity).collect())
    }
}

impl Report {
    /// The report on a past state of a realm, or of part of one.
    pub(super) fn of_past(past: &Past, schemas: &BTreeMap<Hash, Schema>, which: Which) -> Self {
        let meant = which.entities(&[past]);
        let mut parts = past.parts();
        parts.retain(|(entity, _), _| meant.as_ref().is_none_or(|meant| meant.contains(entity)));
        let mut owners: BTreeSet<OwnerId> = parts.values().map(|part| part.owner).collect();
        let data = which
            .space
            .map_or_else(Vec::new, |space| space_entries(past, space, &mut owners));
        if which.entity.is_none() && which.space.is_none() {
            owners = past.owners().keys().copied().collect();
        }
        let states: Vec<_> = owners.iter().filter_map(|owner| past.owners().get(owner)).collect();
        let said = format!("{} after {}: {}", which.name(), batches(past.cut()), count(&parts));
        let mut said = vec![said];
        said.extend(states.iter().map(|state| {
            let (owner, batch) = (state.owner, state.tail.batch);
            format!(
                "owner {owner}, {}, at batch {batch}: state {}",
                state.kind,
                state.hash()
            )
        }));
        said.extend(data.iter().map(space_data::entry));
        let states = states.iter().map(|state| {
            json!({
                "owner": state.owner.0,
                "kind": state.kind.to_string(),
                "batch": state.tail.batch.0,
                "state": state.hash().to_string(),
            })
        });
        Self {
            said,
            columns: &[
                "entity",
                "part",
                "type",
                "held by",
                "stored",
                "place",
                "client",
                "properties",
                "hash",
            ],
            rows: parts.iter().map(|(of, part)| row(*of, part, schemas)).collect(),
            plain: None,
            object: json!({
                "leaves": past.cut().batches(),
                "shards": shards(past.cut()),
                "owners": states.collect::<Vec<_>>(),
                "spaceData": data.iter().map(space_data::entry).collect::<Vec<_>>(),
                "parts": parts.iter().map(|(of, part)| object(*of, part, schemas)).collect::<Vec<_>>(),
            }),
        }
    }

    /// The report on the difference between two moments.
    pub(super) fn of_difference(
        (before, after): (&Past, &Past),
        schemas: &BTreeMap<Hash, Schema>,
        which: Which,
    ) -> Self {
        let meant = which.entities(&[before, after]);
        let mut stored: BTreeSet<DatabaseId> = BTreeSet::new();
        for past in [before, after] {
            let parts = past.parts();
            let meant = parts
                .iter()
                .filter(|((entity, _), _)| meant.as_ref().is_none_or(|meant| meant.contains(entity)));
            stored.extend(meant.filter_map(|(_, part)| part.stored()));
        }
        let is_meant = |change: &Change| {
            let Some(meant) = &meant else { return true };
            let holds = |holder: Holder| matches!(holder, Holder::Stored(database) if stored.contains(&database));
            match change {
                Change::Made { of, .. }
                | Change::Ended { of, .. }
                | Change::Property { of, .. }
                | Change::HandedOver { of, .. }
                | Change::Space { of, .. } => meant.contains(&of.0),
                Change::Item { before, after, .. } => before.iter().chain(after).any(|place| holds(place.holder)),
                Change::Units { account, .. } => holds(account.place.holder),
            }
        };
        let mut changes = Difference::between(before, after, schemas).changes;
        changes.retain(is_meant);
        let types = types(&[before, after], schemas);
        let lexicon = Lexicon::new(ledger_names(schemas));
        let rows = |lexicon: &Lexicon| -> Vec<Vec<String>> {
            let terms = [before, after].map(|past| lexicon.under(past.ledger_schema()));
            changes.iter().map(|change| changed(change, &types, terms)).collect()
        };
        let plain = rows(&Lexicon::default());
        let (from, to) = (before.cut(), after.cut());
        let under = [before, after].map(|past| past.ledger_schema().to_string());
        let columns = &["what", "of", "property", "before", "after"];
        let objects = plain.iter().map(|row| {
            let fields = columns
                .iter()
                .zip(row)
                .map(|(column, cell)| ((*column).to_owned(), json!(cell)));
            Value::Object(fields.collect::<Map<_, _>>())
        });
        Self {
            said: vec![format!(
                "{} between {} and {}: {} things are otherwise",
                which.name(),
                from.batches(),
                batches(to),
                plain.len()
            )],
            columns,
            object: json!({
                "leaves": [from.batches(), to.batches()],
                "shards": [shards(from), shards(to)],
                "changes": objects.collect::<Vec<_>>(),
                "schemas": under,
                "names": names(&lexicon),
            }),
            rows: rows(&lexicon),
            plain: Some(Plain {
                rows: plain,
                named: &["of", "property", "before", "after"],
            }),
        }
    }
}

/// How many batches of the archives a moment covers.
fn batches(cut: &Cut) -> String {
    let shards: Vec<_> = cut.shards().collect();
    match shards[..] {
        [] | [_] => format!("{} batches of the archive", cut.batches()),
        _ => {
            let each = shards
                .iter()
                .map(|(shard, leaves)| format!("{leaves} of shard {shard}"));
            format!(
                "{} batches of the archives ({})",
                cut.batches(),
                each.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// Number of batches of each shard.
fn shards(cut: &Cut) -> Value {
    let shards = cut.shards().map(|(shard, leaves)| (shard.to_string(), json!(leaves)));
    Value::Object(shards.collect::<Map<_, _>>())
}

/// The data of a space: per key the latest value, and the owners whose copies contained it.
fn space_entries(past: &Past, space: SpaceId, owners: &mut BTreeSet<OwnerId>) -> Vec<SpaceEntry> {
    let mut newest: BTreeMap<u16, SpaceEntry> = BTreeMap::new();
    for (owner, state) in past.owners() {
        let Some(data) = state.spaces.get(&space) else { continue };
        owners.insert(*owner);
        for (key, version, value) in data.entries() {
            if newest.get(&key).is_none_or(|held| held.version < version) {
                let value = value.to_vec();
                newest.insert(key, SpaceEntry { key, version, value });
            }
        }
    }
    newest.into_values().collect()
}

fn count(parts: &BTreeMap<PartOf, PartAt<'_>>) -> String {
    let entities: BTreeSet<EntityId> = parts.keys().map(|(entity, _)| *entity).collect();
    match entities.len() {
        0 => "nothing of it exists".to_owned(),
        1 => format!("1 entity in {} parts", parts.len()),
        many => format!("{many} entities in {} parts", parts.len()),
    }
}

fn type_name<'s>(part: &PartAt<'_>, schemas: &'s BTreeMap<Hash, Schema>) -> &'s str {
    part.entity_type(schemas).map_or("entity", |found| &found.name)
}

fn held_by(part: &PartAt<'_>) -> String {
    match part.under_way {
        Some(to) => format!("owner {}, under way to owner {to}", part.owner),
        None => format!("owner {}", part.owner),
    }
}

fn place(part: &PartAt<'_>) -> Option<String> {
    let place = part.image.cell()?.place;
    let at = place.position;
    Some(format!(
        "({:.1}, {:.1}, {:.1}) in space {}",
        at.x, at.y, at.z, place.space
    ))
}

fn row((entity, in_part): PartOf, part: &PartAt<'_>, schemas: &BTreeMap<Hash, Schema>) -> Vec<String> {
    let properties = part.properties(schemas);
    let properties =
        properties.map(|(property, value)| format!("{} = {}", property.name, names::held(property, &value)));
    let client = part.image.client.map(|client| format!("session {}", client.session));
    vec![
        entity.to_string(),
        in_part.to_string(),
        type_name(part, schemas).to_owned(),
        held_by(part),
        part.stored().map_or_else(String::new, |stored| stored.to_string()),
        place(part).unwrap_or_default(),
        client.unwrap_or_default(),
        properties.collect::<Vec<_>>().join("; "),
        part.hash().to_string(),
    ]
}

fn object((entity, in_part): PartOf, part: &PartAt<'_>, schemas: &BTreeMap<Hash, Schema>) -> Value {
    let properties = part.properties(schemas).map(|(property, value)| {
        let value = match &property.personal {
            None => value_to_json(&property.data_type, &value),
            Some(_) => json!({ "personal": names::held(property, &value) }),
        };
        (property.name.clone(), value)
    });
    json!({
        "entity": entity.0,
        "part": in_part.to_string(),
        "type": type_name(part, schemas),
        "owner": part.owner.0,
        "underWayTo": part.under_way.map(|to| to.0),
        "stored": part.stored().map(|stored| stored.0),
        "space": part.space().map(|space| space.0),
        "place": place(part),
        "session": part.image.client.map(|client| client.session.0),
        "properties": properties.collect::<Map<_, _>>(),
        "hash": part.hash().to_string(),
    })
}

fn types(moments: &[&Past], schemas: &BTreeMap<Hash, Schema>) -> BTreeMap<EntityId, String> {
    let parts = moments.iter().flat_map(|past| past.parts());
    parts
        .map(|((entity, _), part)| (entity, type_name(&part, schemas).to_owned()))
        .collect()
}

/// One change, in the columns of a report.
fn changed(change: &Change, types: &BTreeMap<EntityId, String>, [then, now]: [Terms<'_>; 2]) -> Vec<String> {
    let part = |(entity, part): &PartOf| {
        let name = types.get(entity).map_or("entity", String::as_str);
        format!("{name} {entity} {part}")
    };
    let whose = |owner: &OwnerId| format!("owner {owner}");
    let at =
        |place: &Option<_>, terms: Terms<'_>| place.map_or_else(|| "nowhere".to_owned(), |place| terms.place(place));
    let value = |value: &Option<annals_def::Value>| value.as_ref().map_or_else(String::new, ToString::to_string);
    let [what, of, property, before, after] = match change {
        Change::Made { of, owner } => ["made".into(), part(of), String::new(), String::new(), whose(owner)],
        Change::Ended { of, owner } => ["ended".into(), part(of), String::new(), whose(owner), String::new()],
        Change::Property {
            of,
            name,
            before,
            after,
        } => ["changed".into(), part(of), name.clone(), value(before), value(after)],
        Change::HandedOver { of, before, after } => [
            "handed over".into(),
            part(of),
            String::new(),
            whose(before),
            whose(after),
        ],
        Change::Space { of, before, after } => {
            let (before, after) = (format!("space {before}"), format!("space {after}"));
            ["moved".into(), part(of), String::new(), before, after]
        }
        Change::Item {
            serial,
            kind,
            before,
            after,
        } => {
            let item = now.subject(*serial, *kind);
            ["item".into(), item, String::new(), at(before, then), at(after, now)]
        }
        Change::Units { account, before, after } => {
            let kind = format!("units of {}", now.kind(account.kind));
            let (before, after) = (before.to_string(), after.to_string());
            ["units".into(), now.place(account.place), kind, before, after]
        }
    };
    vec![what, of, property, before, after]
}
