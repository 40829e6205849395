//! `annals realm audit-ledger`: audits the ledger, and traces the origin of its assets.
//!
//! ```text
//! kind KIND (NAME): made N, destroyed N, held N, in escrow N
//! FINDING: what is wrong
//! ledger: ENTRIES entries, KINDS kinds, FOUND findings
//! ```

use std::{
    io::{Write, stdout},
    process::ExitCode,
    str::FromStr,
};

use annals_db::ledger::{Report, audit, trace_account};
use annals_evidence::Terms;
use annals_host::log_source::Source;
use annals_ids::{AssetKind, DatabaseId, Slot};
use annals_store::Store;

use super::RealmError;

/// See the module.
#[derive(Debug, clap::Args)]
pub(super) struct AuditLedger {
    /// Trace the origin of this account's units instead: `account:DATABASE/SLOT/KIND`
    #[arg(long)]
    trace: Option<Traced>,
}

/// The account to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traced {
    holder: DatabaseId,
    slot: Slot,
    kind: AssetKind,
}

impl FromStr for Traced {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.strip_prefix("account:").and_then(|account| {
            let (holder, rest) = account.split_once('/')?;
            let (slot, kind) = rest.split_once('/')?;
            Some((holder.parse().ok()?, slot.parse().ok()?, kind.parse().ok()?))
        });
        let (holder, slot, kind) = parts
            .ok_or_else(|| format!("{text:?} is not account:DATABASE/SLOT/KIND; `annals audit item` traces an item"))?;
        Ok(Self {
            holder: DatabaseId(holder),
            slot: Slot(slot),
            kind: AssetKind(kind),
        })
    }
}

impl AuditLedger {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        let names = source.about().await?;
        let names = names
            .map(|about| about.schema.ledger_names().clone())
            .unwrap_or_default();
        match self.trace {
            None => {
                let report = audit(&source.store).await?;
                print(&report, Terms::of(&names))?;
                let is_clean = report.found == 0;
                Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
            Some(traced) => print_account(&source.store, traced, Terms::of(&names)).await,
        }
    }
}

fn print(report: &Report, terms: Terms<'_>) -> Result<(), RealmError> {
    let mut out = stdout().lock();
    for (kind, sum) in &report.sums {
        let name = terms.kind_name(*kind).map(|name| format!(" ({name})"));
        writeln!(
            out,
            "kind {kind}{}: made {}, destroyed {}, held {}, in escrow {}",
            name.unwrap_or_default(),
            sum.made,
            sum.destroyed,
            sum.held,
            sum.in_escrow
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

async fn print_account(store: &Store, traced: Traced, terms: Terms<'_>) -> Result<ExitCode, RealmError> {
    let Traced { holder, slot, kind } = traced;
    let lots = trace_account(store, holder, slot, kind).await?;
    let mut out = stdout().lock();
    for (amount, origin) in &lots {
        writeln!(
            out,
            "{}: made in entry {} at {} ms for entity {} of the database, for {:?}",
            terms.units(*amount, kind),
            origin.entry,
            origin.wall,
            origin.holder,
            origin.reason
        )?;
    }
    let total: u128 = lots.iter().map(|(amount, _)| u128::from(*amount)).sum();
    writeln!(
        out,
        "{total} of {} in {} of entity {holder} of the database",
        terms.kind(kind),
        terms.slot(slot)
    )?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traced_accounts_round_trip() {
        let account = Traced {
            holder: DatabaseId(7),
            slot: Slot(1),
            kind: AssetKind(30),
        };
        assert_eq!("account:7/1/30".parse(), Ok(account));
        for wrong in [
            "",
            "12",
            "serial:12",
            "account:7/1",
            "account:7/70000/1",
            "account:7/1/1/1",
        ] {
            assert!(wrong.parse::<Traced>().is_err(), "{wrong}");
        }
    }
}
