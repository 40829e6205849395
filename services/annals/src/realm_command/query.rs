//! `annals realm query`: stored entities of a type, in a live realm or an offline data directory.

use std::{
    io::{self, Write, stdout},
    process::ExitCode,
};

use annals_db::{Answer, Found, Query, QueryError, query};
use annals_def::{DataType, EntityType, Property, Value};
use annals_host::log_source::Source;
use serde_json::json;
use thiserror::Error;

use super::Format;
use super::RealmError;
use crate::value_json::value_to_json;

/// Find stored entities. What is shown is what was last written to the database; of an entity that is in use its owner may
/// hold newer values.
#[derive(Debug, clap::Args)]
pub(super) struct QueryStored {
    /// The entity type
    entity_type: String,
    /// PROPERTY=VALUE that an entity must have; may be given several times, all must match
    #[arg(long = "where", value_parser = condition)]
    conditions: Vec<(String, String)>,
    /// Comma-separated properties to show; all stored ones if omitted
    #[arg(long, value_delimiter = ',')]
    select: Vec<String>,
    /// Maximum number of entities to show
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Maximum number of stored entities to scan if no index applies
    #[arg(long, default_value_t = 100_000)]
    scan: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum QueryFailed {
    #[error("the realm has not begun: it has no definitions yet")]
    NotBegun,
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(
        "{property} is {data_type}: `{text}` is not a value of that type, or the type cannot be compared; \
        numbers and text can"
    )]
    Value {
        property: String,
        data_type: String,
        text: String,
    },
}

impl QueryStored {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        let schema = source.about().await?.ok_or(QueryFailed::NotBegun)?.schema;
        let entity_type = schema.type_named(&self.entity_type);
        let entity_type =
            entity_type.ok_or_else(|| QueryFailed::Query(QueryError::UnknownType(self.entity_type.clone())))?;
        let mut conditions = Vec::new();
        for (property, text) in &self.conditions {
            let found = stored(entity_type, property).map_err(QueryFailed::Query)?;
            let value = parse(&found.data_type, text).ok_or_else(|| QueryFailed::Value {
                property: property.clone(),
                data_type: found.data_type.to_string(),
                text: text.clone(),
            })?;
            conditions.push((property.clone(), value));
        }
        let shown: Vec<&Property> = if self.select.is_empty() {
            let all = entity_type.properties.iter();
            all.filter(|property| property.persistent).collect()
        } else {
            let named = self.select.iter().map(|name| stored(entity_type, name.trim()));
            named.collect::<Result<_, _>>().map_err(QueryFailed::Query)?
        };
        let asked = Query {
            entity_type: self.entity_type,
            conditions,
            limit: self.limit,
            scanned: self.scan,
        };
        let answer = query(&source.store, &schema, &asked)
            .await
            .map_err(QueryFailed::Query)?;
        match self.format {
            Format::Table => print_table(&answer, &shown)?,
            Format::Json => writeln!(stdout(), "{:#}", to_json(&answer, entity_type, &shown))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn stored<'a>(entity_type: &'a EntityType, name: &str) -> Result<&'a Property, QueryError> {
    let found = entity_type.property_named(name).filter(|found| found.persistent);
    found.ok_or_else(|| QueryError::NotStored {
        entity_type: entity_type.name.clone(),
        property: name.to_owned(),
    })
}

fn condition(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').ok_or("write PROPERTY=VALUE, such as level=7")?;
    Ok((parts.0.trim().to_owned(), parts.1.to_owned()))
}

/// A value of this type in an operator's notation.
fn parse(data_type: &DataType, text: &str) -> Option<Value> {
    let value = match data_type {
        DataType::Unicode => Value::Unicode(text.to_owned()),
        DataType::String | DataType::Blob => Value::Bytes(text.as_bytes().to_vec()),
        DataType::Float32 => Value::Float32(text.trim().parse().ok()?),
        DataType::Float64 => Value::Float64(text.trim().parse().ok()?),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            Value::UInt(text.trim().parse().ok()?)
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Value::Int(text.trim().parse().ok()?),
        _ => return None,
    };
    annals_def::check(data_type, &value).is_ok().then_some(value)
}

/// An entity's value of a property; the default if nothing was stored.
fn held<'a>(found: &'a Found, property: &'a Property) -> &'a Value {
    found.entity.properties.get(&property.name).unwrap_or(&property.default)
}

fn in_use(found: &Found) -> String {
    found
        .checkout
        .map_or_else(|| "-".to_owned(), |checkout| format!("owner {}", checkout.owner))
}

fn print_table(answer: &Answer, shown: &[&Property]) -> io::Result<()> {
    let names = shown.iter().map(|property| property.name.clone());
    let mut lines: Vec<Vec<String>> = vec![
        ["id".to_owned(), "in use".to_owned()]
            .into_iter()
            .chain(names)
            .collect(),
    ];
    for found in &answer.found {
        let values = shown.iter().map(|property| held(found, property).to_string());
        let first = [found.database.to_string(), in_use(found)];
        lines.push(first.into_iter().chain(values).collect());
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..shown.len() + 2).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(stdout(), "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    let by = match &answer.index {
        Some(property) => format!("by the index on {property}"),
        None => format!("{} stored entities scanned", answer.scanned),
    };
    let more = if answer.more { "; there may be more" } else { "" };
    writeln!(stdout(), "{} found, {by}{more}", answer.found.len())
}

fn to_json(answer: &Answer, entity_type: &EntityType, shown: &[&Property]) -> serde_json::Value {
    let entity = |found: &Found| {
        let values = shown.iter().map(|property| {
            let value = value_to_json(&property.data_type, held(found, property));
            (property.name.clone(), value)
        });
        json!({
            "id": found.database.0,
            "inUse": found.checkout.map(|checkout| json!({ "owner": checkout.owner.0, "checkout": checkout.number })),
            "properties": serde_json::Map::from_iter(values),
        })
    };
    json!({
        "type": entity_type.name,
        "found": answer.found.iter().map(entity).collect::<Vec<_>>(),
        "index": answer.index,
        "scanned": answer.scanned,
        "more": answer.more,
    })
}
