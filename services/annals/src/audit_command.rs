//! `annals audit`: questions about the past, answered from the archive alone.
//!
//! The archive is verified first, from where the last verification ended; the index that records this is in a folder of
//! the caller. If the evidence of an answer does not verify, there is no answer: exit code 1 and the first fault.

mod events;
mod lives;
mod report;
mod settings;
mod states;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
};

use annals_audit::{
    Astray, AuditError, EntityLog, Index, IndexError, Unclear, Who,
    evidence::{self, EvidenceError},
    holders_of,
    moment::{self, At, Moment, read_at},
    past::{Past, PastError},
};
use annals_def::{LedgerNames, Schema};
use annals_evidence::{Answer, Lexicon, Question, Span, Until, read_trade};
use annals_host::{
    log_source::{About, KeptRealm, NamedRealm, Source, SourceError},
    signer::{FolderError, read_note},
    telemetry::Chain,
};
use annals_ids::{DatabaseId, EntityId, Hash, Serial, SessionId, TradeId, WallTime};
use annals_proof::SignedNote;
use annals_store::{Store, StoreError};
use tempfile::TempDir;
use thiserror::Error;

use crate::progress::ArchiveBar;
use report::{Format, Report};
use states::Which;

/// Answer who owned what, when and why, from a realm's archive alone.
#[derive(Debug, clap::Args)]
pub struct Audit {
    #[command(subcommand)]
    question: Asked,
    #[command(flatten)]
    named: NamedRealm,
    #[command(flatten)]
    kept: KeptRealm,
    /// Folder of the index of this realm's archives; created if missing, may be removed at any time
    #[arg(long, global = true, default_value = "annals-audit")]
    index: PathBuf,
    /// Answer as of this moment, or as of the batch OWNER@BATCH and everything before it in the archive
    #[arg(long, global = true, value_parser = read_at, conflicts_with = "until")]
    at: Option<At>,
    /// Only changes from this moment on: HH:MM:SS since the start of the realm, @SECONDS since 1970, or
    /// 2026-11-23T10:00:00Z
    #[arg(long, global = true, value_parser = moment::read)]
    since: Option<Moment>,
    /// Only changes up to this moment
    #[arg(long, global = true, value_parser = moment::read)]
    until: Option<Moment>,
    /// Output format
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, clap::Subcommand)]
enum Asked {
    /// Trace an item: its creation, its holders, and the reason of each transfer
    Item {
        /// Its serial
        #[arg(value_parser = |text: &str| text.parse().map(Serial))]
        serial: Serial,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Trace the holdings of an account: its own orders and those of others
    Account {
        /// The name with which the account logs in, or stored:NUMBER for any stored entity
        who: Who,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Trace a trade step by step, with the inventories of both parties before and after each step
    Trade {
        /// The trade's number, ENTITY/NUMBER: the proposing entity and the number of its order
        id: TradeNumber,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Print a receipt of a trade for its parties: a text that proves the exchange and contains no other data
    Receipt {
        /// Its number, as above
        id: TradeNumber,
    },
    /// List the activations of a stored entity, and its client log-ins with their addresses
    Lives {
        /// The name with which the account logs in, or stored:NUMBER for any stored entity
        who: Who,
    },
    /// Identify a client session: the account, and the address of each connection
    Session {
        /// Its number
        #[arg(value_parser = |text: &str| text.parse().map(SessionId))]
        session: SessionId,
    },
    /// List the events of an entity, on all owners, with the call that caused each
    Entity {
        /// Its number
        #[arg(value_parser = |text: &str| text.parse().map(EntityId))]
        entity: EntityId,
        /// Only events of this kind, such as "client set"; may be given several times
        #[arg(long, value_name = "KIND")]
        kind: Vec<String>,
    },
    /// List the settings of running processes that operators changed with `annals realm watch --set`
    Settings,
    /// Rebuild the realm at the moment --at from the archive, with the hash of each owner's state
    Replay {
        #[command(flatten)]
        which: Which,
    },
    /// Check the index for completeness: build a second one from the archive and compare the two
    CheckIndex,
    /// Print the differences between two moments: entities, properties, and holdings of items and units
    Diff {
        /// The earlier moment, or the batch OWNER@BATCH and everything before it in the archive
        #[arg(value_parser = read_at)]
        before: At,
        /// The later moment, in the same form
        #[arg(value_parser = read_at)]
        after: At,
        #[command(flatten)]
        which: Which,
    },
}

/// The answer as evidence for somebody else.
#[derive(Debug, clap::Args)]
struct Wanted {
    /// Also write a bundle: a zip file with the answer and everything that annals-verify needs to check it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "since", "until"])]
    bundle: Option<PathBuf>,
    /// A checkpoint kept elsewhere, from which the bundle includes a consistency proof; may be given several times
    #[arg(long, value_name = "FILE", requires = "bundle")]
    kept: Vec<PathBuf>,
}

/// The text form of a trade's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TradeNumber(TradeId);

impl FromStr for TradeNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = read_trade(text).ok_or("write ENTITY/NUMBER, such as 1048580/3")?;
        Ok(Self(id))
    }
}

/// Why there is no answer.
#[derive(Debug, Error)]
enum NoAnswer {
    #[error("the archive cannot be opened")]
    Source(#[from] SourceError),
    #[error("the index cannot be opened; --index names another folder")]
    Index(#[from] IndexError),
    #[error("no account of this realm logs in as {0:?}")]
    NoAccount(String),
    #[error("the account cannot be found")]
    Unclear(#[from] Unclear),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("the data that the answer rests on was changed")]
    Found(#[source] AuditError),
    #[error("the question cannot be answered")]
    None(#[source] AuditError),
    #[error("the data that the answer rests on was changed")]
    PastFound(#[source] PastError),
    #[error("the index was changed: {0}")]
    Astray(Astray),
    #[error("a second index cannot be created in the temporary folder; TMPDIR names another one")]
    Temporary(#[source] io::Error),
    #[error("the question cannot be answered")]
    PastNone(#[source] PastError),
    #[error("{0}")]
    Span(&'static str),
    #[error("the kept checkpoint cannot be read")]
    Kept(#[from] FolderError),
    #[error("there is no checkpoint in {}", .0.display())]
    NoKept(PathBuf),
    #[error("no evidence was written: stored data was changed")]
    Wrong(#[source] EvidenceError),
    #[error("no evidence was written")]
    NoEvidence(#[source] EvidenceError),
    #[error("the bundle cannot be written to {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

impl From<AuditError> for NoAnswer {
    fn from(error: AuditError) -> Self {
        if error.is_finding() {
            Self::Found(error)
        } else {
            Self::None(error)
        }
    }
}

impl From<PastError> for NoAnswer {
    fn from(error: PastError) -> Self {
        if error.is_finding() {
            Self::PastFound(error)
        } else {
            Self::PastNone(error)
        }
    }
}

impl From<EvidenceError> for NoAnswer {
    fn from(error: EvidenceError) -> Self {
        if error.is_finding() {
            Self::Wrong(error)
        } else {
            Self::NoEvidence(error)
        }
    }
}

impl Audit {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match self.answer().await {
            Ok(()) => ExitCode::SUCCESS,
            // The reader closed the pipe: not an error.
            Err(NoAnswer::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                let is_finding = matches!(
                    error,
                    NoAnswer::Found(_) | NoAnswer::Astray(_) | NoAnswer::PastFound(_) | NoAnswer::Wrong(_)
                );
                ExitCode::from(if is_finding { 1 } else { 2 })
            }
        }
    }

    async fn answer(self) -> Result<(), NoAnswer> {
        let (is_from, is_to) = (self.since.is_some(), self.at.is_some() || self.until.is_some());
        match self.question {
            Asked::Replay { .. } if is_from || self.until.is_some() => {
                return Err(NoAnswer::Span(
                    "`replay` takes one moment: give --at, without --since and --until",
                ));
            }
            Asked::Diff { .. } if is_from || is_to => {
                return Err(NoAnswer::Span(
                    "`diff` takes its two moments as arguments: omit --at, --since and --until",
                ));
            }
            _ => {}
        }
        let source = self.kept.stored(&self.named.settings()).await?;
        if let Asked::Settings = self.question {
            return Ok(self.changed_settings(&source).await?.print(self.format, None)?);
        }
        let mut index = Index::open(&self.index).await?;
        if let Asked::CheckIndex = self.question {
            return check_index(&mut index, &source.store).await;
        }
        let bar = ArchiveBar::new();
        let extent = index
            .catch_up(&source.store, |progress| bar.show(progress.leaves, progress.of))
            .await?;
        bar.clear();
        let span = self.span(&source, &index).await?;
        let store = &source.store;
        let report = match self.question {
            Asked::Item { serial, wanted } => of_ledger(&index, &source, Question::Item(serial), wanted, &span).await?,
            Asked::Account { who, wanted } => {
                let holder = holder(&source, who).await?;
                of_ledger(&index, &source, Question::Account(holder), wanted, &span).await?
            }
            Asked::Trade { id, wanted } => of_ledger(&index, &source, Question::Trade(id.0), wanted, &span).await?,
            Asked::Receipt { id } => {
                let receipt = evidence::receipt(store, &index, id.0).await?;
                return Ok(write!(stdout(), "{receipt}")?);
            }
            Asked::Lives { who } => {
                let stored = holder(&source, who).await?;
                let steps = index.lives(store, stored).await?;
                let lexicon = lexicon(&index, &source, [stored].into()).await?;
                Report::of_lives(stored, &lexicon, &steps, &span)
            }
            Asked::Session { session } => Report::of_session(session, &index.session(store, session).await?, &span),
            Asked::CheckIndex | Asked::Settings => return Ok(()),
            Asked::Entity { entity, kind } => {
                let log = EntityLog::find(&index, store, entity).await?;
                let calls = log.events.iter().flat_map(|event| &event.calls);
                let sessions = index.sessions(store, calls).await?;
                Report::of_entity((&log, &sessions), (&span, &kind), &schemas(&source).await?)
            }
            Asked::Replay { which } => {
                let past = Past::at(&index, store, &index.cut(span.until.as_ref()).await?).await?;
                Report::of_past(&past, &schemas(&source).await?, which)
            }
            Asked::Diff { before, after, which } => differ(&source, &index, (before, after), which).await?,
        };
        report.print(self.format, Some(&extent))?;
        Ok(())
    }

    async fn span(&self, source: &Source, index: &Index) -> Result<Span, NoAnswer> {
        let began = began(source).await?;
        let until = match (self.at, self.until) {
            (Some(at), _) => Some(at.until(index, began).await?),
            (None, Some(moment)) => Some(Until::Wall(moment.wall(began))),
            (None, None) => None,
        };
        let since = self.since.map(|since| since.wall(began));
        Ok(Span { since, until })
    }
}

/// The report on what differs at the later of two moments.
async fn differ(source: &Source, index: &Index, (before, after): (At, At), which: Which) -> Result<Report, NoAnswer> {
    let (store, began) = (&source.store, began(source).await?);
    let (from, to) = (before.until(index, began).await?, after.until(index, began).await?);
    let (from, to) = (index.cut(Some(&from)).await?, index.cut(Some(&to)).await?);
    if !from.is_within(&to) {
        return Err(NoAnswer::Span("the first moment is later than the second: swap them"));
    }
    let before = Past::at(index, store, &from).await?;
    let mut after = before.clone();
    after.advance(index, store, &to).await?;
    Ok(Report::of_difference((&before, &after), &schemas(source).await?, which))
}

/// When the realm began.
async fn began(source: &Source) -> Result<WallTime, NoAnswer> {
    Ok(source.about().await?.map_or(WallTime(0), |about| about.began))
}

/// All definitions that the realm has had, by their fingerprints.
async fn schemas(source: &Source) -> Result<BTreeMap<Hash, Schema>, NoAnswer> {
    let about = source.about().await?;
    Ok(about.map(About::schemas).unwrap_or_default())
}

/// An answer from the ledger, on request also as evidence.
async fn of_ledger(
    index: &Index,
    source: &Source,
    question: Question,
    wanted: Wanted,
    span: &Span,
) -> Result<Report, NoAnswer> {
    let store = &source.store;
    let answer = index.answer(store, question).await?;
    if let Some(file) = wanted.bundle {
        let kept = wanted.kept.iter().map(|path| read_kept(path));
        let kept: Vec<SignedNote> = kept.collect::<Result<_, _>>()?;
        let bundle = evidence::bundle(store, index, (question, &answer), &kept).await?;
        match std::fs::write(&file, bundle) {
            Ok(()) => eprintln!("written as evidence: {}", file.display()),
            Err(source) => return Err(NoAnswer::Write { path: file, source }),
        }
    }
    let cited = answer.cited();
    let calls = cited.iter().filter_map(|cited| cited.asked.as_ref()?.call.as_ref());
    let sessions = index.sessions(store, calls).await?;
    let holders = cited.iter().flat_map(|cited| holders_of(&cited.entry)).collect();
    let known = (&sessions, &lexicon(index, source, holders).await?);
    Ok(match &answer {
        Answer::Item(item) => Report::of_item(item, known, span),
        Answer::Account(owned) => Report::of_owned(owned, known, span),
        Answer::Trade(trade) => Report::of_trade((trade, &index.inventories(store, trade).await?), known, span),
    })
}

/// Names of kinds and slots under all definitions, and of these stored entities.
async fn lexicon(index: &Index, source: &Source, stored: BTreeSet<DatabaseId>) -> Result<Lexicon, NoAnswer> {
    let schemas = schemas(source).await?;
    let called = index.called(&source.store, &schemas, stored).await?;
    Ok(Lexicon::new(ledger_names(&schemas)).with_stored(called))
}

/// The names of kinds and slots in these definitions.
fn ledger_names(schemas: &BTreeMap<Hash, Schema>) -> impl Iterator<Item = (Hash, LedgerNames)> {
    let names = schemas.iter();
    names.map(|(fingerprint, schema)| (*fingerprint, schema.ledger_names().clone()))
}

fn read_kept(path: &Path) -> Result<SignedNote, NoAnswer> {
    read_note(path)?.ok_or_else(|| NoAnswer::NoKept(path.to_owned()))
}

/// The stored entity that the command names.
async fn holder(source: &Source, who: Who) -> Result<DatabaseId, NoAnswer> {
    let found = who.find(&source.store).await?;
    found.ok_or_else(|| NoAnswer::NoAccount(who.to_string()))
}

/// Compares an index with one that is rebuilt. Faults of the archive itself are found by the rebuild.
async fn check_index(index: &mut Index, archive: &Store) -> Result<(), NoAnswer> {
    let folder = TempDir::with_prefix("annals-audit-").map_err(NoAnswer::Temporary)?;
    let mut anew = Index::open(folder.path()).await?;
    let bar = ArchiveBar::new();
    let extent = loop {
        let extent = anew
            .catch_up(archive, |progress| bar.show(progress.leaves, progress.of))
            .await?;
        // A fault that is not the archive's is the index's own; the comparison names it.
        match index.catch_up(archive, |_| {}).await {
            Ok(own) if own.leaves() > extent.leaves() => {}
            _ => break extent,
        }
    };
    bar.clear();
    match index.compare(archive, &anew).await? {
        Some(astray) => Err(NoAnswer::Astray(astray)),
        None => Ok(writeln!(
            stdout(),
            "the index is what the archive of {} comes to",
            report::batches(&extent)
        )?),
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::{EntityId, TransferId, TransferNumber};

    use super::*;

    #[test]
    fn trade_numbers_round_trip() {
        let id = TradeId(TransferId {
            asker: EntityId(1_048_580),
            number: TransferNumber(3),
        });
        assert_eq!(id.to_string().parse(), Ok(TradeNumber(id)));
        for wrong in ["", "3", "/3", "3/", "x/1", "1/2/3"] {
            assert!(wrong.parse::<TradeNumber>().is_err(), "{wrong:?}");
        }
    }
}
