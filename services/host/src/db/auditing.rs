//! Continuous audit of the ledger while db runs: a slice of its entries at a time, then its rows, then from the start.

use std::sync::Arc;
use std::time::Duration;

use annals_db::ledger::{Audit, Progress};
use annals_node::ALARM;
use annals_store::Store;

use crate::telemetry::Metrics;

/// Pause between two slices: a million entries take half an hour, and folding does not notice.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause between two audits.
const REST: Duration = Duration::from_secs(60);

/// Maximum accounts and items that an audit within db counts, about 100 MB of them. A larger ledger is for
/// `annals realm audit-ledger`, which runs where there is enough memory.
const MOST_COUNTED: usize = 1_000_000;

/// Audits until it is dropped. Each finding is an alarm each time it is found.
pub(super) async fn audit_all(store: Store, metrics: Arc<Metrics>) {
    loop {
        audit_once(&store, &metrics).await;
        tokio::time::sleep(REST).await;
    }
}

async fn audit_once(store: &Store, metrics: &Metrics) {
    let mut audit = Audit::default();
    loop {
        match audit.step(store).await {
            Ok(Progress::Goes) if audit.counted() > MOST_COUNTED => {
                tracing::warn!(
                    counted = audit.counted(),
                    "the ledger is too large for the audit by db: run `annals realm audit-ledger`"
                );
                return;
            }
            Ok(Progress::Goes) => tokio::time::sleep(PAUSE).await,
            Ok(Progress::Done) => break,
            Err(error) => {
                tracing::warn!(%error, "the audit of the ledger failed; retrying");
                return;
            }
        }
    }
    let report = audit.report();
    for finding in &report.findings {
        tracing::error!(%finding, "{ALARM} of the ledger's audit");
    }
    metrics.ledger_audits.add(1);
    metrics.ledger_findings.add(report.found);
    metrics
        .ledger_entries
        .set(i64::try_from(report.entries.0).unwrap_or(i64::MAX));
    tracing::debug!(entries = %report.entries, findings = report.found, "the ledger was audited");
}
