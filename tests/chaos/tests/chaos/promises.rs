//! The promises, and their checks.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use annals_audit::verify::{Verification, VerifyError, VerifyReport, verify_from};
use annals_bots::{
    checker::{CheckReport, Following},
    views::Views,
};
use annals_db::{
    ledger::{Audit, Report},
    read_cursor,
};
use annals_def::Schema;
use annals_host::{log_source::Source, process::request, telemetry::Chain};
use annals_ids::{BatchNumber, OwnerId};
use annals_node::ALARM;
use annals_store::Store;
use annals_wire::control::Inspected;
use tokio::time::sleep;

use crate::{
    fencing::{Resumed, source},
    times::{Phase, Times},
};

/// Maximum time for which owners may lack a responsive holder, and the archive may lack what they logged.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(60);

/// Interval between looks.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Verifications of a live realm before an error counts: a log that is being restored meanwhile has no hole.
const VERIFICATIONS: usize = 4;

/// Log messages of a process that failed, or found the log invalid.
const FAILURE_MESSAGES: [&str; 2] = ["panicked", ALARM];

/// Size of a realm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Entity parts that others may see.
    pub(crate) parts: u64,
    /// Batches that were ever logged.
    pub(crate) batches: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            parts,
            batches,
            bytes,
            events,
        } = self;
        let megabytes = *bytes as f64 / 1e6;
        write!(
            f,
            "{parts} parts, {batches} batches of {megabytes:.1} MB, {events} events"
        )
    }
}

/// The checks of one realm. Each check continues where the previous one ended; [`Self::check_all`] starts from the
/// beginning.
pub(crate) struct Proof {
    realm: &'static str,
    schema: Arc<Schema>,
    source: Option<(String, Source)>,
    following: Following,
    /// Results so far for what is read from that source.
    verification: Verification,
    ledger: Audit,
    views: Views,
    log_scan: LogScan,
    /// The process frozen in this round, and the state when it resumed.
    pub(crate) woken: Option<Resumed>,
    /// Time spent.
    pub(crate) times: Times,
}

impl Proof {
    pub(crate) fn begin(realm: &'static str, files: &Path, schema: Arc<Schema>) -> Self {
        Self {
            realm,
            following: Following::new(files),
            schema,
            source: None,
            verification: Verification::default(),
            ledger: Audit::default(),
            views: Views::default(),
            log_scan: LogScan::default(),
            woken: None,
            times: Times::default(),
        }
    }

    /// Runs all checks, or returns the first violation.
    pub(crate) async fn check_round(&mut self, nats: &str, logs: &Path) -> Result<Size, String> {
        let mut since = Instant::now();
        self.following.look().map_err(with_sources)?;
        self.connect(nats).await;
        let (_, source) = self.source.as_ref().expect("it was just made");
        archived(source).await?;
        if let Some(woken) = self.woken.take() {
            woken.check_fenced(source).await?;
        }
        self.times.lap(Phase::Archiving, &mut since);
        let verification = &mut self.verification;
        let report = verified(async || verification.look(source).await).await?;
        self.times.lap(Phase::Verifying, &mut since);
        let checked = self.following.check(&source.store, &self.schema).await;
        clean(&checked.map_err(with_sources)?)?;
        self.times.lap(Phase::Checking, &mut since);
        balanced(&source.store, &mut self.ledger, &mut self.views).await?;
        self.times.lap(Phase::Auditing, &mut since);
        self.log_scan.look(logs)?;
        self.times.lap(Phase::Reading, &mut since);
        let total = |figure: fn(&annals_audit::verify::OwnerReport) -> u64| report.owners.values().map(figure).sum();
        Ok(Size {
            parts: report.parts,
            batches: total(|owner| owner.batches),
            bytes: total(|owner| owner.bytes),
            events: total(|owner| owner.events),
        })
    }

    /// Checks everything from the beginning, and that the result equals that of the incremental checks of the rounds.
    pub(crate) async fn check_all(&mut self) -> Result<(), String> {
        let mut since = Instant::now();
        let (_, source) = self.source.as_ref().ok_or("nothing was proven")?;
        let report = verify_from(source, self.verification.checkpoint())
            .await
            .map_err(with_sources)?;
        if !report.is_clean() {
            return Err(format!(
                "verification from the first batch found faults in the log:\n{report}"
            ));
        }
        let checked = self.following.check_whole(&source.store, &self.schema).await;
        let checked = checked.map_err(with_sources)?;
        println!("{checked}");
        clean(&checked)?;
        if checked.shown == 0 {
            return Err("no event was shown".to_owned());
        }
        let (mut ledger, mut views) = (Audit::default(), Views::default());
        balanced(&source.store, &mut ledger, &mut views).await?;
        let report = views.report();
        println!("{report}");
        if report.compared == 0 {
            return Err("no ledger notice was delivered".to_owned());
        }
        let on_the_way = self.views.report();
        if report.compared < on_the_way.compared || report.exchanges < on_the_way.exchanges {
            return Err(format!("on the way more was known of the ledger:\n{on_the_way}"));
        }
        self.times.lap(Phase::ProvingAnew, &mut since);
        Ok(())
    }

    /// Connects to a realm whose address has changed. Incremental reading continues only on the connection it began
    /// with, so all checks start from the beginning.
    async fn connect(&mut self, nats: &str) {
        if self.source.as_ref().is_none_or(|(at, _)| at != nats) {
            self.source = Some((nats.to_owned(), source(self.realm, nats).await));
            self.following.forget_archive();
            self.verification = Verification::default();
            self.ledger = Audit::default();
            self.views = Views::default();
        }
    }
}

fn clean(checked: &CheckReport) -> Result<(), String> {
    if checked.is_clean() {
        Ok(())
    } else {
        Err(format!("a shown event is lost:\n{checked}"))
    }
}

/// Checks that no player's holdings were lost, duplicated or reported wrongly.
async fn balanced(store: &Store, ledger: &mut Audit, views: &mut Views) -> Result<(), String> {
    let audited: Report = ledger.look(store).await.map_err(with_sources)?;
    if audited.found > 0 {
        let findings: Vec<String> = audited.findings.iter().map(ToString::to_string).collect();
        return Err(format!("the ledger is not balanced: {}", findings.join("; ")));
    }
    let known = views.look(store).await.map_err(with_sources)?;
    if known.found > 0 {
        return Err(format!("a holdings view contradicts the ledger:\n{known}"));
    }
    Ok(())
}

/// Waits until the archive holds everything logged before this call.
async fn archived(source: &Source) -> Result<(), String> {
    let deadline = Instant::now() + ARCHIVED_WITHIN;
    let owners = annals_audit::replay::owners(&source.store).await;
    for owner in owners.map_err(with_sources)? {
        let mut logged = None;
        loop {
            if logged.is_none() {
                logged = inspect(source, owner).await;
            }
            if let Some(logged) = logged {
                let cursor = read_cursor(&source.store, owner).await.map_err(with_sources)?;
                if cursor.batch >= logged {
                    break;
                }
            }
            if Instant::now() > deadline {
                return Err(match logged {
                    Some(logged) => format!("owner {owner}: batch {logged} is not archived in time"),
                    None => format!("owner {owner}: no holder"),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

async fn inspect(source: &Source, owner: OwnerId) -> Option<BatchNumber> {
    let (bus, subjects) = source.live.as_ref()?;
    let inspected = request::<Inspected>(bus, "the owner's holder", subjects.inspect(owner), &()).await;
    Some(BatchNumber(inspected.ok()?.batch))
}

/// Verifies all logs, and that every holder's state was compared.
async fn verified(mut look: impl AsyncFnMut() -> Result<VerifyReport, VerifyError>) -> Result<VerifyReport, String> {
    let mut tries = 1;
    loop {
        let report = match look().await {
            Ok(report) => report,
            // The queried server may have just lost the leadership.
            Err(error) if tries < VERIFICATIONS => {
                println!("verified again: {}", Chain(&error));
                tries += 1;
                sleep(POLL_INTERVAL * 10).await;
                continue;
            }
            Err(error) => return Err(with_sources(error)),
        };
        let compared = report.owners.values().all(|owner| owner.compared);
        if report.is_clean() && compared {
            return Ok(report);
        }
        if tries == VERIFICATIONS {
            return Err(format!(
                "verification found faults in the log (all compared: {compared}):\n{report}"
            ));
        }
        println!("verified again: {report}");
        tries += 1;
        sleep(POLL_INTERVAL * 10).await;
    }
}

/// Process logs, as far as they were read.
#[derive(Default)]
struct LogScan {
    read: BTreeMap<PathBuf, u64>,
}

impl LogScan {
    /// Reads on, and checks that no process has failed.
    fn look(&mut self, logs: &Path) -> Result<(), String> {
        for entry in fs::read_dir(logs).map_err(with_sources)? {
            let path = entry.map_err(with_sources)?.path();
            let (mut file, read) = (
                File::open(&path).map_err(with_sources)?,
                self.read.entry(path.clone()).or_default(),
            );
            // A log file that was truncated is read from the start.
            if file.metadata().map_err(with_sources)?.len() < *read {
                *read = 0;
            }
            file.seek(SeekFrom::Start(*read)).map_err(with_sources)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(with_sources)?;
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let text = String::from_utf8_lossy(&bytes[..whole]);
            let found = text
                .lines()
                .find(|line| FAILURE_MESSAGES.iter().any(|message| line.contains(message)));
            if let Some(line) = found {
                return Err(format!("{} says: {line}", path.display()));
            }
            *read += whole as u64;
        }
        Ok(())
    }
}

/// An error with all its sources.
fn with_sources(error: impl std::error::Error + 'static) -> String {
    Chain(&error).to_string()
}
