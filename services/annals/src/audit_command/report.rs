//! An answer, printed: as a table, as one JSON object, or as comma-separated values.

use std::io::{self, Write, stdout};

use annals_audit::Extent;
use annals_event::ledger::Slots;
use annals_evidence::{Cited, Inventory, Item, Owned, Span, Trade, TradeSide, words};
use serde_json::{Value, json};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Format {
    /// Columns, and what they say in a sentence
    Table,
    /// One object
    Json,
    /// The steps alone, a line each
    Csv,
}

/// An answer in all its forms.
pub(super) struct Report {
    /// The answer in a sentence or two.
    pub(super) said: Vec<String>,
    pub(super) columns: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
    pub(super) object: Value,
}

impl Report {
    /// Who has had an item.
    pub(super) fn of_item(item: &Item, span: &Span) -> Self {
        let (serial, kind) = (item.serial, item.kind);
        let place = item.place_within(span);
        let place = place.map_or_else(|| "not made yet".to_owned(), words::place);
        let steps = item.steps.iter().filter(|step| span.holds(&step.cited));
        let rows = steps.clone().map(|step| {
            let mut row = cited(&step.cited);
            row.extend([words::place(step.from), words::place(step.to)]);
            row
        });
        let objects = steps.clone().map(|step| {
            let (from, to) = (words::place(step.from), words::place(step.to));
            with(object(&step.cited), [("from", json!(from)), ("to", json!(to))])
        });
        Self {
            said: vec![format!("item {serial} of kind {kind}: {place}")],
            columns: &["entry", "when", "what", "outcome", "asked by", "from", "to"],
            rows: rows.collect(),
            object: json!({
                "item": serial.0,
                "kind": kind.0,
                "place": place,
                "steps": objects.collect::<Vec<_>>(),
            }),
        }
    }

    /// What somebody has had.
    pub(super) fn of_owned(owned: &Owned, span: &Span) -> Self {
        let steps = owned.steps.iter().filter(|step| span.holds(&step.cited));
        let rows = steps.clone().map(|step| {
            let mut row = cited(&step.cited);
            row.extend([words::slots(&step.held.before), words::slots(&step.held.after)]);
            row
        });
        let objects = steps.clone().map(|step| {
            let (before, after) = (held(&step.held.before), held(&step.held.after));
            with(object(&step.cited), [("before", before), ("after", after)])
        });
        let holder = owned.holder;
        let has = owned.within(span).map(|step| &step.held.after);
        let said = has.map_or_else(|| "nothing yet".to_owned(), words::slots);
        Self {
            said: vec![format!("stored entity {holder} has {said}")],
            columns: &["entry", "when", "what", "outcome", "asked by", "before", "after"],
            rows: rows.collect(),
            object: json!({
                "stored": holder.0,
                "has": has.map(held),
                "steps": objects.collect::<Vec<_>>(),
            }),
        }
    }

    /// What was done in a trade, and what both parties held.
    pub(super) fn of_trade(trade: &Trade, held: &[[Inventory; 2]], span: &Span) -> Self {
        let steps = trade.steps.iter().zip(held);
        let steps = steps.filter(|(step, _)| span.holds(&step.cited));
        let rows = steps.clone().map(|(step, held)| {
            let mut row = cited(&step.cited);
            row.push(step.version.to_string());
            for (side, held) in [&step.proposer, &step.partner].into_iter().zip(held) {
                let accepted = if side.accepted { ", accepted" } else { "" };
                row.push(format!("{}{accepted}", words::slots(&side.table)));
                row.push(words::slots(&held.before));
                row.push(words::slots(&held.after));
            }
            row
        });
        let objects = steps.clone().map(|(step, [proposer, partner])| {
            let sides = [
                ("proposer", side(&step.proposer, proposer)),
                ("partner", side(&step.partner, partner)),
            ];
            with(with(object(&step.cited), [("version", json!(step.version.0))]), sides)
        });
        let (id, proposer, partner) = (trade.id, trade.proposer, trade.partner);
        let stage = trade.stage_within(span);
        let stage = stage.map_or("not proposed yet", words::stage);
        Self {
            said: vec![format!(
                "trade {id} of stored entity {proposer} with stored entity {partner}: {stage}"
            )],
            columns: &[
                "entry",
                "when",
                "what",
                "outcome",
                "asked by",
                "version",
                "proposer's table",
                "proposer before",
                "proposer after",
                "partner's table",
                "partner before",
                "partner after",
            ],
            rows: rows.collect(),
            object: json!({
                "trade": id.to_string(),
                "proposer": proposer.0,
                "partner": partner.0,
                "stage": stage,
                "steps": objects.collect::<Vec<_>>(),
            }),
        }
    }

    /// Prints it, with how far the archive behind it was verified.
    pub(super) fn print(self, format: Format, extent: &Extent) -> io::Result<()> {
        let mut out = stdout().lock();
        let Extent { leaves, root, entry } = extent;
        let verified = format!("verified: {leaves} batches of the archive, root {root}, {entry} entries of the ledger");
        match format {
            Format::Table => {
                for line in &self.said {
                    writeln!(out, "{line}\n")?;
                }
                self.table(&mut out)?;
                writeln!(out, "\n{verified}")
            }
            Format::Json => {
                let basis = json!({ "batches": leaves, "root": root.to_string(), "entries": entry.0 });
                writeln!(out, "{:#}", with(self.object, [("verified", basis)]))
            }
            Format::Csv => {
                eprintln!("{verified}");
                let mut lines = csv::Writer::from_writer(out);
                lines.write_record(self.columns)?;
                for row in &self.rows {
                    lines.write_record(row)?;
                }
                lines.flush()
            }
        }
    }

    /// One step a block: there is more to say of it than fits into a line.
    fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let width = self.columns.iter().map(|column| column.len()).max().unwrap_or(0);
        for (place, row) in self.rows.iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            for (column, cell) in self.columns.iter().zip(row) {
                writeln!(out, "  {column:<width$}  {cell}")?;
            }
        }
        if self.rows.is_empty() {
            writeln!(out, "  nothing in that time")?;
        }
        Ok(())
    }
}

fn cited(cited: &Cited) -> Vec<String> {
    vec![
        cited.entry.number.to_string(),
        words::date(cited.entry.wall),
        words::order(cited),
        words::outcome(cited.entry.outcome),
        words::asker(cited),
    ]
}

fn object(cited: &Cited) -> Value {
    let asked = cited.asked.as_ref().map(|asked| {
        let call = asked.call.as_ref();
        json!({
            "batch": asked.at.to_string(),
            "leaf": asked.leaf.0,
            "event": asked.event.0,
            "from": call.map(|call| call.from.to_string()),
            "call": call.map(|call| call.number.0),
        })
    });
    json!({
        "entry": cited.entry.number.0,
        "when": words::date(cited.entry.wall),
        "transfer": cited.entry.of.to_string(),
        "what": words::order(cited),
        "outcome": words::outcome(cited.entry.outcome),
        "told": { "batch": cited.at.to_string(), "leaf": cited.leaf.0 },
        "asked": asked,
    })
}

fn side(side: &TradeSide, inventory: &Inventory) -> Value {
    json!({
        "table": held(&side.table),
        "accepted": side.accepted,
        "before": held(&inventory.before),
        "after": held(&inventory.after),
    })
}

fn held(slots: &Slots) -> Value {
    let slot = |(slot, assets): (&annals_ids::Slot, &annals_event::ledger::Assets)| {
        let units = assets
            .units
            .iter()
            .map(|(kind, amount)| json!({ "kind": kind.0, "amount": amount }));
        let items = assets
            .items
            .iter()
            .map(|(serial, kind)| json!({ "serial": serial.0, "kind": kind.0 }));
        json!({ "slot": slot.0, "units": units.collect::<Vec<_>>(), "items": items.collect::<Vec<_>>() })
    };
    slots.iter().map(slot).collect()
}

fn with<const N: usize>(mut object: Value, fields: [(&str, Value); N]) -> Value {
    for (name, value) in fields {
        object[name] = value;
    }
    object
}
