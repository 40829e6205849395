//! The promises, and whether they were kept.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use annals::{
    checker::{CheckReport, Following, check},
    source::Source,
    verify::{VerifyReport, verify},
    views::Views,
};
use annals_db::{ledger::audit, read_cursor};
use annals_def::Schema;
use annals_host::{process::request, telemetry::Chain};
use annals_ids::{BatchNumber, OwnerId};
use annals_store::Store;
use annals_wire::control::Inspected;
use tokio::time::sleep;

use crate::fencing::{Woken, source};

/// How long owners may be without a holder that answers, and the archive without what they logged.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(60);

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(200);

/// How often a realm that runs is verified before what is wrong counts: a log that is put back meanwhile is no hole.
const VERIFICATIONS: usize = 4;

/// What a process says that has come to grief, or has found the log to be what it must not be.
const GRIEF: [&str; 3] = ["panicked", "the log is not as it should be", "stopped with an alarm"];

/// How large a realm was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Entity parts that others may see.
    pub(crate) parts: u64,
    /// Bytes of all batches that were ever logged.
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parts, bytes, events } = self;
        write!(
            f,
            "{parts} parts, {:.1} MB of log, {events} events",
            *bytes as f64 / 1e6
        )
    }
}

/// See the module.
pub(crate) struct Proof {
    realm: &'static str,
    files: PathBuf,
    schema: Arc<Schema>,
    following: Following,
    source: Option<(String, Source)>,
    /// What bases knew of the ledger, as far as it was read from that source.
    views: Views,
    /// Who was frozen in this round, and what stood there when it woke.
    pub(crate) woken: Option<Woken>,
}

impl Proof {
    pub(crate) fn begin(realm: &'static str, files: PathBuf, schema: Arc<Schema>) -> Self {
        Self {
            realm,
            following: Following::new(&files),
            files,
            schema,
            source: None,
            views: Views::default(),
            woken: None,
        }
    }

    /// Proves that everything stands as it has to, or says what does not.
    pub(crate) async fn after_a_round(&mut self, nats: &str, logs: &Path) -> Result<Size, String> {
        self.following.look().map_err(told)?;
        let woken = self.woken.take();
        let source = self.source(nats).await;
        archived(source).await?;
        if let Some(woken) = woken {
            woken.harmed_nothing(source).await?;
        }
        let report = verified(source).await?;
        let (store, schema) = (source.store.clone(), Arc::clone(&self.schema));
        let checked = self.following.check(&store, &schema).await;
        clean(&checked.map_err(told)?)?;
        balanced(&store, &mut self.views).await?;
        without_grief(logs)?;
        let total = |figure: fn(&annals::verify::OwnerReport) -> u64| report.owners.values().map(figure).sum();
        Ok(Size {
            parts: report.parts,
            bytes: total(|owner| owner.bytes),
            events: total(|owner| owner.events),
        })
    }

    /// Holds all files against the archive, from their beginnings.
    pub(crate) async fn whole(&self, schema: &Schema) -> Result<(), String> {
        let (_, source) = self.source.as_ref().ok_or("nothing was proven")?;
        let checked = check(&self.files, &source.store, schema).await;
        let checked = checked.map_err(told)?;
        println!("{checked}");
        clean(&checked)?;
        if checked.shown == 0 {
            return Err("nobody was shown anything".to_owned());
        }
        let mut views = Views::default();
        balanced(&source.store, &mut views).await?;
        let report = views.report();
        println!("{report}");
        if report.compared == 0 {
            return Err("the ledger told nobody anything".to_owned());
        }
        Ok(())
    }

    async fn source(&mut self, nats: &str) -> &Source {
        if self.source.as_ref().is_none_or(|(at, _)| at != nats) {
            self.source = Some((nats.to_owned(), source(self.realm, nats).await));
            // What was read is read through the connection that it was begun with.
            self.views = Views::default();
        }
        &self.source.as_ref().expect("it was just made").1
    }
}

fn clean(checked: &CheckReport) -> Result<(), String> {
    if checked.is_clean() {
        Ok(())
    } else {
        Err(format!("something that was shown is lost:\n{checked}"))
    }
}

/// Nothing of what players hold was lost, made twice, or told otherwise than it is.
async fn balanced(store: &Store, views: &mut Views) -> Result<(), String> {
    let audited = audit(store).await.map_err(told)?;
    if audited.found > 0 {
        let findings: Vec<String> = audited.findings.iter().map(ToString::to_string).collect();
        return Err(format!("the ledger is not balanced: {}", findings.join("; ")));
    }
    let known = views.look(store).await.map_err(told)?;
    if known.found > 0 {
        return Err(format!("somebody knows of the ledger what is not so:\n{known}"));
    }
    Ok(())
}

/// Waits until the archive holds all that was logged up to here.
async fn archived(source: &Source) -> Result<(), String> {
    let patience = Instant::now() + ARCHIVED_WITHIN;
    let owners = annals::replay::owners(&source.store).await;
    for owner in owners.map_err(told)? {
        let mut logged = None;
        loop {
            if logged.is_none() {
                logged = inspect(source, owner).await;
            }
            if let Some(logged) = logged {
                let cursor = read_cursor(&source.store, owner).await.map_err(told)?;
                if cursor.batch >= logged {
                    break;
                }
            }
            if Instant::now() > patience {
                return Err(match logged {
                    Some(logged) => format!("owner {owner}: batch {logged} is not archived in time"),
                    None => format!("owner {owner}: nobody holds it"),
                });
            }
            sleep(AGAIN).await;
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
async fn verified(source: &Source) -> Result<VerifyReport, String> {
    let mut tries = 1;
    loop {
        let report = match verify(source).await {
            Ok(report) => report,
            // The server that was asked may have just become another.
            Err(error) if tries < VERIFICATIONS => {
                println!("verified again: {}", Chain(&error));
                tries += 1;
                sleep(AGAIN * 10).await;
                continue;
            }
            Err(error) => return Err(told(error)),
        };
        let compared = report.owners.values().all(|owner| owner.compared);
        if report.is_clean() && compared {
            return Ok(report);
        }
        if tries == VERIFICATIONS {
            return Err(format!(
                "the log is not as it should be (all compared: {compared}):\n{report}"
            ));
        }
        tries += 1;
        sleep(AGAIN * 10).await;
    }
}

fn without_grief(logs: &Path) -> Result<(), String> {
    for entry in fs::read_dir(logs).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let found = text.lines().find(|line| GRIEF.iter().any(|grief| line.contains(grief)));
        if let Some(line) = found {
            return Err(format!("{} says: {line}", path.display()));
        }
    }
    Ok(())
}

/// All that an error says.
fn told(error: impl std::error::Error + 'static) -> String {
    Chain(&error).to_string()
}
