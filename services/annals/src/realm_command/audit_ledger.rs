//! `annals realm audit-ledger`: whether the ledger is what it should be, and where what is in it comes from.
//!
//! ```text
//! kind KIND: made N, destroyed N, held N, in escrow N
//! FINDING: what is wrong
//! ledger: ENTRIES entries, KINDS kinds, FOUND findings
//! ```

use std::{
    io::{Write, stdout},
    process::ExitCode,
    str::FromStr,
};

use annals_db::ledger::{Report, Step, audit, trace_account, trace_item};
use annals_event::ledger::{Holder, Place, Side};
use annals_ids::{AssetKind, DatabaseId, Serial, Slot};
use annals_store::Store;

use super::RealmError;
use crate::source::Source;

/// See the module.
#[derive(Debug, clap::Args)]
pub(super) struct AuditLedger {
    /// Say where this comes from instead: `serial:N`, or `account:DATABASE/SLOT/KIND`
    #[arg(long)]
    trace: Option<Traced>,
}

/// What is to be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traced {
    Item(Serial),
    Account(DatabaseId, Slot, AssetKind),
}

impl FromStr for Traced {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let usage = || format!("{text:?} is neither serial:N nor account:DATABASE/SLOT/KIND");
        match text.split_once(':').ok_or_else(usage)? {
            ("serial", number) => number
                .parse()
                .map(|number| Traced::Item(Serial(number)))
                .map_err(|_| usage()),
            ("account", account) => {
                let mut parts = account.splitn(3, '/');
                let mut part = || parts.next().ok_or_else(usage);
                let holder = part()?.parse().map_err(|_| usage())?;
                let slot = part()?.parse().map_err(|_| usage())?;
                let kind = part()?.parse().map_err(|_| usage())?;
                Ok(Traced::Account(DatabaseId(holder), Slot(slot), AssetKind(kind)))
            }
            _ => Err(usage()),
        }
    }
}

impl AuditLedger {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        match self.trace {
            None => {
                let report = audit(&source.store).await?;
                print(&report)?;
                let is_clean = report.found == 0;
                Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
            Some(Traced::Item(serial)) => print_item(&source.store, serial).await,
            Some(Traced::Account(holder, slot, kind)) => print_account(&source.store, holder, slot, kind).await,
        }
    }
}

fn print(report: &Report) -> Result<(), RealmError> {
    let mut out = stdout().lock();
    for (kind, sum) in &report.sums {
        writeln!(
            out,
            "kind {kind}: made {}, destroyed {}, held {}, in escrow {}",
            sum.made, sum.destroyed, sum.held, sum.in_escrow
        )?;
    }
    for finding in &report.findings {
        writeln!(out, "{finding}")?;
    }
    writeln!(
        out,
        "ledger: {} entries, {} kinds, {} findings",
        report.entries,
        report.sums.len(),
        report.found
    )?;
    Ok(())
}

async fn print_item(store: &Store, serial: Serial) -> Result<ExitCode, RealmError> {
    let steps = trace_item(store, serial).await?;
    let mut out = stdout().lock();
    for step in &steps {
        let Step { entry, wall, of, .. } = step;
        let (from, to) = (name(step.from), name(step.to));
        let why = if step.reason.is_empty() {
            String::new()
        } else {
            format!(", for {:?}", step.reason)
        };
        writeln!(
            out,
            "entry {entry} at {wall} ms, transfer {of}: item {serial} of kind {} from {from} to {to}{why}",
            step.kind
        )?;
    }
    if steps.is_empty() {
        writeln!(out, "there is no item {serial}")?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn print_account(store: &Store, holder: DatabaseId, slot: Slot, kind: AssetKind) -> Result<ExitCode, RealmError> {
    let lots = trace_account(store, holder, slot, kind).await?;
    let mut out = stdout().lock();
    for (amount, origin) in &lots {
        writeln!(
            out,
            "{amount} of kind {kind}: made in entry {} at {} ms for entity {} of the database, for {:?}",
            origin.entry, origin.wall, origin.holder, origin.reason
        )?;
    }
    let total: u128 = lots.iter().map(|(amount, _)| u128::from(*amount)).sum();
    writeln!(
        out,
        "{total} of kind {kind} in slot {slot} of entity {holder} of the database"
    )?;
    Ok(ExitCode::SUCCESS)
}

fn name(place: Place) -> String {
    let slot = place.slot;
    match place.holder {
        Holder::World => "the world".to_owned(),
        Holder::Stored(holder) => format!("entity {holder} of the database, slot {slot}"),
        Holder::Pending(transfer) => format!("reserved transfer {transfer}"),
        Holder::Trade(trade, Side::Proposer) => format!("trade {trade}, the proposer's side"),
        Holder::Trade(trade, Side::Partner) => format!("trade {trade}, the partner's side"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_traced_is_read_as_it_is_written() {
        let account = Traced::Account(DatabaseId(7), Slot(1), AssetKind(30));
        assert_eq!("account:7/1/30".parse(), Ok(account));
        assert_eq!("serial:12".parse(), Ok(Traced::Item(Serial(12))));
        for wrong in [
            "",
            "12",
            "serial:",
            "serial:x",
            "account:7/1",
            "account:7/70000/1",
            "account:7/1/1/1",
        ] {
            assert!(wrong.parse::<Traced>().is_err(), "{wrong}");
        }
    }
}
