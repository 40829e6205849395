//! `annals realm grant` and `annals realm take`: creates assets for an account, returns assets to it, or takes them
//! from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, Write, stdout},
    process::ExitCode,
    str::FromStr,
};

use annals_audit::{Unclear, Who};
use annals_db::ledger::read_item;
use annals_def::{LedgerNames, nearest};
use annals_event::ledger::{AssetSlot, Assets, Entry, Goods, Holder, Order, Outcome, Warrant};
use annals_evidence::{Terms, words};
use annals_host::{
    log_source::{KeptRealm, Source, SourceError},
    nats::ConnectError,
    process::{self, Settings, connect, remote_store},
    telemetry::Chain,
};
use annals_ids::{ActionId, AssetKind, Serial, Slot};
use annals_store::StoreError;
use serde_json::json;
use thiserror::Error;

use super::Format;
use crate::operating::{NotDone, Reached};

/// Make units and items for an account, or give items back that exist no more.
#[derive(Debug, clap::Args)]
pub(super) struct Grant {
    /// The name with which the account logs in, or stored:NUMBER for any stored entity
    who: Who,
    /// KIND=AMOUNT: units of a counted kind, given by number or name; may be given several times, once for each kind
    #[arg(long, value_name = "KIND=AMOUNT", value_parser = counted::<u64>)]
    units: Vec<(Numbered, u64)>,
    /// KIND=COUNT: new items of a kind, each with a new serial; may be given several times, once for each kind
    #[arg(long, value_name = "KIND=COUNT", value_parser = counted::<u32>)]
    new: Vec<(Numbered, u32)>,
    /// An item that was destroyed or taken, to restore under its serial; may be given several times
    #[arg(long, value_name = "SERIAL", value_parser = |text: &str| text.parse().map(Serial))]
    item: Vec<Serial>,
    #[command(flatten)]
    args: ActionArgs,
}

/// Take units and items from an account: they exist no more, and an item can be granted again.
#[derive(Debug, clap::Args)]
pub(super) struct Take {
    /// The name with which the account logs in, or stored:NUMBER for any stored entity
    who: Who,
    /// KIND=AMOUNT: units of a kind, given by number or name; may be given several times, once for each kind
    #[arg(long, value_name = "KIND=AMOUNT", value_parser = counted::<u64>)]
    units: Vec<(Numbered, u64)>,
    /// An item in that slot of the account; may be given several times
    #[arg(long, value_name = "SERIAL", value_parser = |text: &str| text.parse().map(Serial))]
    item: Vec<Serial>,
    #[command(flatten)]
    args: ActionArgs,
}

/// Operator and reason of an action, and what both kinds of action have in common.
#[derive(Debug, clap::Args)]
struct ActionArgs {
    /// Name of the operator, recorded with the action
    #[arg(long, value_name = "NAME")]
    by: String,
    /// Reason, recorded with the action
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The slot of the account, by its number or name; 0 is the inventory
    #[arg(long, default_value = "0")]
    slot: Numbered,
    /// Number of the action, to repeat one that had no answer: it is executed once
    #[arg(long, value_name = "NUMBER")]
    action: Option<ActionId>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Why the order is not known to be done.
#[derive(Debug, Error)]
enum OperatorFailed {
    #[error("kind {kind} is named more than once with {flag}: give each kind once, with the total")]
    KindAgain { flag: &'static str, kind: String },
    #[error(
        "the realm's definitions name no {what} {name:?}{}; write its number, or one of these names: {}",
        meant.as_ref().map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default(),
        if known.is_empty() { "there are none" } else { known }
    )]
    NoSuchName {
        what: &'static str,
        name: String,
        meant: Option<String>,
        known: String,
    },
    #[error("the realm's definitions cannot be read")]
    Definitions(#[from] SourceError),
    #[error("item {0} is named more than once")]
    ItemAgain(Serial),
    #[error("the realm must be live: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("no account of this realm logs in as {0}")]
    NoAccount(Who),
    #[error("the account cannot be found")]
    Unclear(#[from] Unclear),
    #[error("there is no item {0}")]
    NoItem(Serial),
    #[error("item {serial} is not held by the account: {at}")]
    Elsewhere { serial: Serial, at: String },
    #[error("the order is not valid: {0}")]
    Order(#[from] annals_event::ledger::RefusalReason),
    #[error("the realm's store cannot be read")]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotDone(#[from] NotDone),
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

/// The wanted order and its account. Anything named twice is refused, because it is ambiguous whether it is meant once
/// or twice.
struct Wanted {
    who: Who,
    what: Typed,
    items: BTreeSet<Serial>,
    args: ActionArgs,
}

/// The wanted assets besides existing items.
enum What {
    /// These are created, and the items are returned.
    Grant(Goods),
    /// These are taken, and the items too.
    Take(BTreeMap<AssetKind, u64>),
}

/// The same before names of kinds are looked up.
enum Typed {
    Grant(Vec<(Numbered, u64)>, Vec<(Numbered, u32)>),
    Take(Vec<(Numbered, u64)>),
}

/// A kind or a slot as an operator writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbered {
    Number(u32),
    Name(String),
}

impl Grant {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> ExitCode {
        ended(match self.wanted() {
            Ok(wanted) => wanted.try_run(kept, settings).await,
            Err(error) => Err(error),
        })
    }

    fn wanted(self) -> Result<Wanted, OperatorFailed> {
        let (units, items) = (each_once("--units", self.units)?, each_once("--new", self.new)?);
        Wanted::of(self.who, Typed::Grant(units, items), self.item, self.args)
    }
}

impl Take {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> ExitCode {
        ended(match self.wanted() {
            Ok(wanted) => wanted.try_run(kept, settings).await,
            Err(error) => Err(error),
        })
    }

    fn wanted(self) -> Result<Wanted, OperatorFailed> {
        let units = each_once("--units", self.units)?;
        Wanted::of(self.who, Typed::Take(units), self.item, self.args)
    }
}

/// Checks that no kind is written twice.
fn each_once<N>(flag: &'static str, counted: Vec<(Numbered, N)>) -> Result<Vec<(Numbered, N)>, OperatorFailed> {
    for (place, (kind, _)) in counted.iter().enumerate() {
        if counted[..place].iter().any(|(before, _)| before == kind) {
            let kind = kind.to_string();
            return Err(OperatorFailed::KindAgain { flag, kind });
        }
    }
    Ok(counted)
}

/// The kinds by number; each may be written by number or by name.
fn kinds<N>(
    flag: &'static str,
    counted: Vec<(Numbered, N)>,
    names: &LedgerNames,
) -> Result<BTreeMap<AssetKind, N>, OperatorFailed> {
    let mut once = BTreeMap::new();
    for (written, count) in counted {
        let kind = match &written {
            Numbered::Number(number) => AssetKind(*number),
            Numbered::Name(name) => names
                .kind_named(name)
                .ok_or_else(|| no_name("kind", name, names.kinds().values()))?,
        };
        if once.insert(kind, count).is_some() {
            let kind = written.to_string();
            return Err(OperatorFailed::KindAgain { flag, kind });
        }
    }
    Ok(once)
}

/// The slot by number.
fn slot(written: &Numbered, names: &LedgerNames) -> Result<Slot, OperatorFailed> {
    match written {
        Numbered::Number(number) => u16::try_from(*number)
            .map(Slot)
            .map_err(|_| no_name("slot", &number.to_string(), names.slots().values())),
        Numbered::Name(name) => names
            .slot_named(name)
            .ok_or_else(|| no_name("slot", name, names.slots().values())),
    }
}

fn no_name<'n>(what: &'static str, name: &str, known: impl Iterator<Item = &'n String> + Clone) -> OperatorFailed {
    OperatorFailed::NoSuchName {
        what,
        name: name.to_owned(),
        meant: nearest(name, known.clone().map(String::as_str)).map(str::to_owned),
        known: known.cloned().collect::<Vec<_>>().join(", "),
    }
}

fn ended(done: Result<Outcome, OperatorFailed>) -> ExitCode {
    match done {
        Ok(outcome) => ExitCode::from(u8::from(matches!(outcome, Outcome::Refused(_)))),
        Err(OperatorFailed::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", Chain(&error));
            ExitCode::from(2)
        }
    }
}

impl Wanted {
    fn of(who: Who, what: Typed, named: Vec<Serial>, args: ActionArgs) -> Result<Self, OperatorFailed> {
        let mut items = BTreeSet::new();
        match named.into_iter().find(|serial| !items.insert(*serial)) {
            Some(again) => Err(OperatorFailed::ItemAgain(again)),
            None => Ok(Self { who, what, items, args }),
        }
    }

    async fn try_run(self, kept: &KeptRealm, settings: &Settings) -> Result<Outcome, OperatorFailed> {
        if kept.data.is_some() {
            return Err(OperatorFailed::Stopped);
        }
        let (bus, subjects) = connect(settings, "operator").await?;
        let store = remote_store(&bus, &subjects);
        let holder = self
            .who
            .find(&store)
            .await?
            .ok_or(OperatorFailed::NoAccount(self.who))?;
        let about = Source::archive(store.clone()).about().await?;
        let names = about
            .map(|about| about.schema.ledger_names().clone())
            .unwrap_or_default();
        let (terms, slot) = (Terms::of(&names), slot(&self.args.slot, &names)?);
        let what = self.what.resolved(&names)?;
        let mut items = BTreeMap::new();
        let mut elsewhere = None;
        for serial in self.items {
            let item = read_item(&store, serial).await?.ok_or(OperatorFailed::NoItem(serial))?;
            let is_there = match what {
                What::Grant(_) => item.place.holder == Holder::World,
                What::Take(_) => {
                    item.place
                        == AssetSlot {
                            holder: Holder::Stored(holder),
                            slot,
                        }
                }
            };
            if !is_there {
                let at = terms.place(item.place);
                elsewhere = Some(OperatorFailed::Elsewhere { serial, at });
            }
            items.insert(serial, item.kind);
        }
        let action = self.args.action;
        let action = action.unwrap_or_else(|| ActionId(u128::from_le_bytes(process::random())));
        let warrant = Warrant {
            action,
            operator: self.args.by,
            tool: what.tool().to_owned(),
            reason: self.args.reason,
        };
        let order = what.order(slot, items, Box::new(warrant.clone()));
        order.check()?;
        let reached = Reached {
            bus: &bus,
            subjects: &subjects,
            store: &store,
        };
        let before = reached.done(holder, (&order, &warrant)).await?;
        let was_before = before.is_some();
        let entry = match (before, elsewhere) {
            (Some(entry), _) => entry,
            (None, Some(elsewhere)) => return Err(elsewhere),
            (None, None) => {
                // Printed before anything is requested, so an interrupted operator can ask again.
                eprintln!("action {action}: repeated with --action, it is executed once");
                reached.carry_out(holder, (&order, &warrant)).await?
            }
        };
        match self.args.format {
            Format::Table => print_text(&entry, action, was_before, terms)?,
            Format::Json => writeln!(stdout(), "{:#}", to_json(&entry, action, was_before))?,
        }
        Ok(entry.outcome)
    }
}

impl Typed {
    fn resolved(self, names: &LedgerNames) -> Result<What, OperatorFailed> {
        Ok(match self {
            Self::Grant(units, items) => What::Grant(Goods {
                units: kinds("--units", units, names)?,
                items: kinds("--new", items, names)?,
            }),
            Self::Take(units) => What::Take(kinds("--units", units, names)?),
        })
    }
}

impl What {
    /// The name of the tool in the records.
    fn tool(&self) -> &'static str {
        match self {
            Self::Grant(_) => "annals realm grant",
            Self::Take(_) => "annals realm take",
        }
    }

    fn order(self, slot: Slot, items: BTreeMap<Serial, AssetKind>, warrant: Box<Warrant>) -> Order {
        match self {
            Self::Grant(goods) => Order::Grant {
                slot,
                goods,
                restored: items,
                warrant,
            },
            Self::Take(units) => Order::Take {
                slot,
                assets: Assets { units, items },
                warrant,
            },
        }
    }
}

fn print_text(entry: &Entry, action: ActionId, was_before: bool, terms: Terms<'_>) -> io::Result<()> {
    let mut out = stdout();
    let before = if was_before {
        ", as it was before it was asked again"
    } else {
        ""
    };
    let outcome = words::outcome(entry.outcome);
    writeln!(out, "{outcome}{before}: {}", terms.moved(entry))?;
    let Entry { number, of, at, .. } = entry;
    writeln!(
        out,
        "entry {number} of the ledger, order {of} in batch {at}, action {action}"
    )
}

fn to_json(entry: &Entry, action: ActionId, was_before: bool) -> serde_json::Value {
    let items = entry.passages.iter();
    let items = items.map(|passage| json!({ "serial": passage.serial.0, "kind": passage.kind.0 }));
    json!({
        "action": action.to_string(),
        "entry": entry.number.0,
        "order": entry.of.to_string(),
        "batch": entry.at.to_string(),
        "when": words::date(entry.wall),
        "stored": entry.holder.0,
        "outcome": words::outcome(entry.outcome),
        "isRefused": matches!(entry.outcome, Outcome::Refused(_)),
        "wasBefore": was_before,
        "moved": Terms::default().moved(entry),
        "items": items.collect::<Vec<_>>(),
    })
}

/// A kind, and its amount.
fn counted<N: FromStr>(text: &str) -> Result<(Numbered, N), String> {
    let counted = text.split_once('=').and_then(|(kind, count)| {
        let (kind, count) = (kind.trim().parse().ok()?, count.trim().parse().ok()?);
        Some((kind, count))
    });
    counted.ok_or_else(|| {
        "write KIND=NUMBER, such as 1=50 for fifty of kind 1; the definitions may name the kind: gold=50".to_owned()
    })
}

impl FromStr for Numbered {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |text: &str| {
            let mut letters = text.chars();
            letters
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
                && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) if is_name(text) => Ok(Self::Name(text.to_owned())),
            Err(_) => Err("write a number, or a name that the world's ledger.xml gives"),
        }
    }
}

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}
