//! An answer as a table, as one JSON object, or as comma-separated values.

use std::io::{self, Write, stdout};

use annals_audit::{Behind, CameIn, Extent, Sessions};
use annals_event::ledger::{Order, Slots, Warrant};
use annals_evidence::{
    Cited, Inventory, Item, Lexicon, Owned, Span, Terms, Trade, TradeSide, TradeStage, TradeStep, words,
};
use annals_ids::{SessionId, WallTime};
use annals_personal::Admission;
use serde_json::{Map, Value, json};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Format {
    /// Columns and sentences
    Table,
    /// One JSON object
    Json,
    /// Steps only, one per line
    Csv,
}

/// An answer in all its output formats.
pub(super) struct Report {
    /// The answer in one or two sentences.
    pub(super) said: Vec<String>,
    pub(super) columns: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
    /// The CSV rows if `rows` contain names: the stable form that programs read.
    pub(super) plain: Option<Plain>,
    pub(super) object: Value,
}

/// Rows with numbers instead of names.
pub(super) struct Plain {
    pub(super) rows: Vec<Vec<String>>,
    /// Columns of `rows` that contain names: they are appended as further columns.
    pub(super) named: &'static [&'static str],
}

/// The columns of a trade's report.
const TRADE_COLUMNS: &[&str] = &[
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
];

/// The columns of a trade that are also printed with names.
const TRADE_NAMED: &[&str] = &[
    "what",
    "proposer's table",
    "proposer before",
    "proposer after",
    "partner's table",
    "partner before",
    "partner after",
];

impl Report {
    /// The report on the holders of an item.
    pub(super) fn of_item(item: &Item, (sessions, lexicon): (&Sessions, &Lexicon), span: &Span) -> Self {
        let (serial, kind) = (item.serial, item.kind);
        let last = item.steps.iter().rfind(|step| span.had_come_to(&step.cited));
        let at = |lexicon: &Lexicon| match last {
            Some(step) => lexicon.under(step.cited.schema).place(step.to),
            None => "not made yet".to_owned(),
        };
        let named = last.or(item.steps.first());
        let subject = named.map_or_else(Terms::default, |step| lexicon.under(step.cited.schema));
        let subject = subject.subject(serial, kind);
        let steps = item.steps.iter().filter(|step| span.holds(&step.cited));
        let rows = |lexicon: &Lexicon| {
            let rows = steps.clone().map(|step| {
                let terms = lexicon.under(step.cited.schema);
                let mut row = cited(&step.cited, sessions, terms);
                row.extend([terms.place(step.from), terms.place(step.to)]);
                row
            });
            rows.collect()
        };
        let objects = steps.clone().map(|step| {
            let terms = Terms::default();
            let (from, to) = (terms.place(step.from), terms.place(step.to));
            with(
                object(&step.cited, sessions),
                [("from", json!(from)), ("to", json!(to))],
            )
        });
        Self {
            said: vec![format!("{subject}: {}", at(lexicon))],
            columns: &["entry", "when", "what", "outcome", "asked by", "from", "to"],
            rows: rows(lexicon),
            plain: Some(Plain {
                rows: rows(&Lexicon::default()),
                named: &["what", "from", "to"],
            }),
            object: json!({
                "item": serial.0,
                "kind": kind.0,
                "place": at(&Lexicon::default()),
                "names": names(lexicon),
                "steps": objects.collect::<Vec<_>>(),
            }),
        }
    }

    /// The report on the assets of a holder.
    pub(super) fn of_owned(owned: &Owned, (sessions, lexicon): (&Sessions, &Lexicon), span: &Span) -> Self {
        let steps = owned.steps.iter().filter(|step| span.holds(&step.cited));
        let rows = |lexicon: &Lexicon| {
            let rows = steps.clone().map(|step| {
                let terms = lexicon.under(step.cited.schema);
                let mut row = cited(&step.cited, sessions, terms);
                row.extend([terms.slots(&step.held.before), terms.slots(&step.held.after)]);
                row
            });
            rows.collect()
        };
        let objects = steps.clone().map(|step| {
            let (before, after) = (held(&step.held.before), held(&step.held.after));
            with(object(&step.cited, sessions), [("before", before), ("after", after)])
        });
        let holder = owned.holder;
        let last = owned.within(span);
        let terms = last.or(owned.steps.first());
        let terms = terms.map_or_else(Terms::default, |step| lexicon.under(step.cited.schema));
        let has = last.map(|step| &step.held.after);
        let said = has.map_or_else(|| "nothing yet".to_owned(), |has| terms.slots(has));
        Self {
            said: vec![format!("{} has {said}", terms.stored(holder))],
            columns: &["entry", "when", "what", "outcome", "asked by", "before", "after"],
            rows: rows(lexicon),
            plain: Some(Plain {
                rows: rows(&Lexicon::default()),
                named: &["what", "before", "after"],
            }),
            object: json!({
                "stored": holder.0,
                "has": has.map(held),
                "names": names(lexicon),
                "steps": objects.collect::<Vec<_>>(),
            }),
        }
    }

    /// The report on the steps of a trade, and on the holdings of both parties.
    pub(super) fn of_trade(
        (trade, held): (&Trade, &[[Inventory; 2]]),
        (sessions, lexicon): (&Sessions, &Lexicon),
        span: &Span,
    ) -> Self {
        let steps = trade.steps.iter().zip(held);
        let steps = steps.filter(|(step, _)| span.holds(&step.cited));
        let rows = |lexicon: &Lexicon| {
            let rows = steps.clone();
            rows.map(|(step, held)| of_step(step, held, sessions, lexicon.under(step.cited.schema)))
                .collect()
        };
        let objects = steps.clone().map(|(step, [proposer, partner])| {
            let sides = [
                ("proposer", side(&step.proposer, proposer)),
                ("partner", side(&step.partner, partner)),
            ];
            with(
                with(object(&step.cited, sessions), [("version", json!(step.version.0))]),
                sides,
            )
        });
        let (id, proposer, partner) = (trade.id, trade.proposer, trade.partner);
        let stage = trade.stage_within(span);
        let stands = stage.map_or_else(|| "not proposed yet".to_owned(), words::stage);
        let first = trade.steps.first();
        let terms = first.map_or_else(Terms::default, |step| lexicon.under(step.cited.schema));
        let parties = format!("{} with {}", terms.stored(proposer), terms.stored(partner));
        Self {
            said: vec![format!("trade {id} of {parties}: {stands}")],
            columns: TRADE_COLUMNS,
            rows: rows(lexicon),
            plain: Some(Plain {
                rows: rows(&Lexicon::default()),
                named: TRADE_NAMED,
            }),
            object: json!({
                "names": names(lexicon),
                "trade": id.to_string(),
                "proposer": proposer.0,
                "partner": partner.0,
                "stage": match stage {
                    // The outcome of the first step gives the reason.
                    Some(TradeStage::Refused(_)) => "refused",
                    _ => stands.as_str(),
                },
                "steps": objects.collect::<Vec<_>>(),
            }),
        }
    }

    /// The report on the client of a session.
    pub(super) fn of_session(session: SessionId, came: &[CameIn], span: &Span) -> Self {
        let within: Vec<&CameIn> = came.iter().filter(|came| span.covers(came.leaf, came.wall)).collect();
        let row = |came: &&CameIn| {
            let event = format!("{} #{}", came.at, came.event);
            vec![words::date(came.wall), event, came.said()]
        };
        Self {
            said: vec![format!("session {session}: whenever its client came in")],
            columns: &["when", "event", "who"],
            rows: within.iter().map(row).collect(),
            plain: None,
            object: json!({
                "session": session.0,
                "came_in": within.iter().map(|came| client(came)).collect::<Vec<_>>(),
            }),
        }
    }

    /// Prints the report, with the extent to which the archive was verified; without it, with a note that nothing was.
    pub(super) fn print(self, format: Format, extent: Option<&Extent>) -> io::Result<()> {
        let mut out = stdout().lock();
        let (verified, basis) = match extent {
            Some(extent) => (
                format!("verified: {}, {} entries of the ledger", verified(extent), extent.entry),
                basis(extent),
            ),
            None => (
                "not verified: these are records of the store, in no log and under no proof".to_owned(),
                Value::Null,
            ),
        };
        match format {
            Format::Table => {
                for line in &self.said {
                    writeln!(out, "{line}\n")?;
                }
                self.table(&mut out)?;
                writeln!(out, "\n{verified}")
            }
            Format::Json => {
                writeln!(out, "{:#}", with(self.object, [("verified", basis)]))
            }
            Format::Csv => {
                eprintln!("{verified}");
                let mut lines = csv::Writer::from_writer(out);
                let Some(Plain { rows, named }) = &self.plain else {
                    lines.write_record(self.columns)?;
                    for row in &self.rows {
                        lines.write_record(row)?;
                    }
                    return lines.flush();
                };
                let columns = self.columns.iter().map(|column| (*column).to_owned());
                lines.write_record(columns.chain(named.iter().map(|column| format!("{column}, named"))))?;
                let is_named = |column: &&str| named.contains(column);
                for (row, in_names) in rows.iter().zip(&self.rows) {
                    let in_names = self.columns.iter().zip(in_names);
                    let in_names = in_names.filter(|(column, _)| is_named(column)).map(|(_, cell)| cell);
                    lines.write_record(row.iter().chain(in_names))?;
                }
                lines.flush()
            }
        }
    }

    /// Prints one step per block: a step has more fields than fit into a line.
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

/// How many batches there are, and the root over those of each shard.
pub(super) fn batches(extent: &Extent) -> String {
    let trees = extent.trees.iter().map(|(shard, tree)| (shard, tree.size, tree.root));
    match trees.clone().collect::<Vec<_>>()[..] {
        [(_, size, root)] => format!("{size} batches with the root {root}"),
        _ => {
            let shards = trees.map(|(shard, size, root)| format!("shard {shard}: {size} with the root {root}"));
            format!(
                "{} batches ({})",
                extent.leaves(),
                shards.collect::<Vec<_>>().join("; ")
            )
        }
    }
}

/// To what extent the archive was verified.
fn verified(extent: &Extent) -> String {
    match extent.trees.values().collect::<Vec<_>>()[..] {
        [tree] => format!("{} batches of the archive, root {}", tree.size, tree.root),
        _ => format!("{} of {} archives", batches(extent), extent.trees.len()),
    }
}

fn basis(extent: &Extent) -> Value {
    let shards = extent.trees.iter().map(|(shard, tree)| {
        let of_shard = json!({ "batches": tree.size, "root": tree.root.to_string() });
        (shard.to_string(), of_shard)
    });
    let shards: Map<_, _> = shards.collect();
    let all = json!({ "batches": extent.leaves(), "entries": extent.entry.0, "shards": shards });
    match extent.trees.values().collect::<Vec<_>>()[..] {
        [tree] => with(all, [("root", json!(tree.root.to_string()))]),
        _ => all,
    }
}

/// One step of a trade.
fn of_step(step: &TradeStep, held: &[Inventory; 2], sessions: &Sessions, terms: Terms<'_>) -> Vec<String> {
    let mut row = cited(&step.cited, sessions, terms);
    row.push(step.version.to_string());
    for (side, held) in [&step.proposer, &step.partner].into_iter().zip(held) {
        let accepted = if side.accepted { ", accepted" } else { "" };
        row.push(format!("{}{accepted}", terms.slots(&side.table)));
        row.push(terms.slots(&held.before));
        row.push(terms.slots(&held.after));
    }
    row
}

/// Names for the numbers in the report: of kinds and slots, by the definitions under which a step was entered, and of
/// stored entities.
pub(super) fn names(lexicon: &Lexicon) -> Value {
    let schemas = lexicon.schemas().iter().map(|(fingerprint, names)| {
        let kinds = names.kinds().iter().map(|(kind, name)| (kind.to_string(), json!(name)));
        let slots = names.slots().iter().map(|(slot, name)| (slot.to_string(), json!(name)));
        let named = json!({
            "kinds": kinds.collect::<Map<_, _>>(),
            "slots": slots.collect::<Map<_, _>>(),
        });
        (fingerprint.to_string(), named)
    });
    let stored = lexicon.named_stored().iter();
    let stored = stored.map(|(stored, name)| (stored.to_string(), json!(name)));
    json!({ "schemas": schemas.collect::<Map<_, _>>(), "stored": stored.collect::<Map<_, _>>() })
}

fn cited(cited: &Cited, sessions: &Sessions, terms: Terms<'_>) -> Vec<String> {
    let mut asker = words::asker(cited);
    if let Some(came) = behind(cited, sessions) {
        asker = format!("{asker}; {}", came.said());
    }
    vec![
        cited.entry.number.to_string(),
        words::date(cited.entry.wall),
        terms.order(cited),
        words::outcome(cited.entry.outcome),
        asker,
    ]
}

fn object(cited: &Cited, sessions: &Sessions) -> Value {
    let asked = cited.asked.as_ref().map(|asked| {
        let call = asked.call.as_ref();
        let warrant = cited.entry.order.as_ref().and_then(Order::warrant);
        json!({
            "batch": asked.at.to_string(),
            "leaf": asked.leaf.leaf.0,
            "shard": asked.leaf.shard.0,
            "event": asked.event.0,
            "from": call.map(|call| call.from.to_string()),
            "call": call.map(|call| call.number.0),
            "client": behind(cited, sessions).map(client),
            "operator": warrant.map(operator),
        })
    });
    json!({
        "entry": cited.entry.number.0,
        "when": words::date(cited.entry.wall),
        "transfer": cited.entry.of.to_string(),
        "what": Terms::default().order(cited),
        "schema": cited.schema.to_string(),
        "outcome": words::outcome(cited.entry.outcome),
        "told": { "batch": cited.at.to_string(), "leaf": cited.leaf.leaf.0, "shard": cited.leaf.shard.0 },
        "asked": asked,
    })
}

/// An operator, and the id of the action.
pub(super) fn operator(warrant: &Warrant) -> Value {
    json!({
        "name": warrant.operator,
        "tool": warrant.tool,
        "action": warrant.action.to_string(),
        "why": warrant.reason,
    })
}

fn behind<'a>(cited: &Cited, sessions: &'a Sessions) -> Option<&'a CameIn> {
    let asked = cited.asked.as_ref()?;
    // The entry has the time of the batch that ordered it.
    sessions.behind(asked.call.as_ref()?, asked.leaf, cited.entry.wall)
}

/// The account that logged in, and its address.
pub(super) fn client(came: &CameIn) -> Value {
    let known = match &came.who {
        Behind::Known(known) => Some(known),
        Behind::Unwritten(_) | Behind::Redacted(_) | Behind::NoKey | Behind::Unreadable(_) => None,
    };
    let account = match &came.who {
        Behind::Known(Admission { account, .. }) | Behind::Unwritten(account) => account.as_deref(),
        Behind::Redacted(_) | Behind::NoKey | Behind::Unreadable(_) => None,
    };
    let redacted = match &came.who {
        Behind::Redacted(forgotten) => Some(json!({
            "since": words::date(WallTime(forgotten.at)),
            "leaves": forgotten.leaves.0,
            "by": forgotten.by,
            "reason": forgotten.reason,
        })),
        Behind::Known(_) | Behind::Unwritten(_) | Behind::NoKey | Behind::Unreadable(_) => None,
    };
    json!({
        "session": came.session.0,
        "stored": came.person.0,
        "account": account,
        "address": known.map(|known| &known.address),
        "redacted": redacted,
        "said": came.said(),
        "batch": came.at.to_string(),
        "leaf": came.leaf.leaf.0,
        "shard": came.leaf.shard.0,
        "event": came.event.0,
        "when": words::date(came.wall),
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
