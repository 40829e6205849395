//! `annals audit`: what happened, answered from the archive alone.
//!
//! The archive is verified first, as far as that was not done before; the index that remembers it lies in a folder of whoever
//! asks. An answer whose evidence is not as it was is no answer: exit code 1 and the first thing that is not.

mod events;
mod report;
mod states;

use std::{
    collections::BTreeMap,
    io::{self, Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
};

use annals_audit::{AuditError, EntityLog, Index, IndexError};
use annals_db::accounts;
use annals_def::Schema;
use annals_evidence::{Answer, Question, Span, Until, read_trade};
use annals_host::{
    process::SHARD,
    signer::{FolderError, read_note},
    telemetry::Chain,
};
use annals_ids::{DatabaseId, EntityId, Hash, LogPosition, Serial, TradeId, WallTime};
use annals_proof::SignedNote;
use annals_store::{Store, StoreError};
use thiserror::Error;

use crate::{
    evidence::{self, EvidenceError},
    log_command::position,
    moment::{self, Moment},
    past::{Past, PastError},
    progress::ArchiveBar,
    source::{KeptRealm, NamedRealm, Source, SourceError},
};
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
    /// Folder of the index of this realm's archive; it is made, and may be removed at any time
    #[arg(long, global = true, default_value = "annals-audit")]
    index: PathBuf,
    /// Only as things stood then: a moment, or the batch OWNER@BATCH and all that the archive has before it
    #[arg(long, global = true, value_parser = at, conflicts_with = "until")]
    at: Option<At>,
    /// Only what was done from this moment on: HH:MM:SS since the realm began, @SECONDS since 1970, or 2026-11-23T10:00:00Z
    #[arg(long, global = true, value_parser = moment::read)]
    since: Option<Moment>,
    /// Only what was done up to this moment
    #[arg(long, global = true, value_parser = moment::read)]
    until: Option<Moment>,
    /// How to print it
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, clap::Subcommand)]
enum Asked {
    /// Where an item was made, who has had it since, and why it went from one to the other
    Item {
        /// Its serial
        #[arg(value_parser = |text: &str| text.parse().map(Serial))]
        serial: Serial,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// What somebody has had, what they did with it, and what others did
    Account {
        /// The name with which the account logs in, or stored:NUMBER for any stored entity
        who: Who,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// What was done in a trade, step by step, and what both parties had before and after each
    Trade {
        /// Its number, ENTITY/NUMBER: the entity that proposed it, and which of its orders that was
        id: TradeNumber,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// A receipt of a trade for those who have traded: a text that proves what was exchanged, and says nothing of anybody else
    Receipt {
        /// Its number, as above
        id: TradeNumber,
    },
    /// What happened to an entity: each event of its parts, wherever they were, and by whose call
    Entity {
        /// Its number
        #[arg(value_parser = |text: &str| text.parse().map(EntityId))]
        entity: EntityId,
    },
    /// The realm as it was at a moment, --at, rebuilt from the archive, with the hash of each owner's state
    Replay {
        #[command(flatten)]
        which: Which,
    },
    /// What is otherwise at one moment than at an earlier one: entities, their properties, and who has which items and units
    Diff {
        /// The earlier moment, or the batch OWNER@BATCH and all that the archive has before it
        #[arg(value_parser = at)]
        before: At,
        /// The later one
        #[arg(value_parser = at)]
        after: At,
        #[command(flatten)]
        which: Which,
    },
}

/// The answer as evidence for somebody else.
#[derive(Debug, clap::Args)]
struct Wanted {
    /// Write a bundle too: the answer and all that somebody needs to check it with annals-verify, in a zip file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "since", "until"])]
    bundle: Option<PathBuf>,
    /// A checkpoint that was kept elsewhere, to which the bundle is to lead; it may be given several times
    #[arg(long, value_name = "FILE", requires = "bundle")]
    kept: Vec<PathBuf>,
}

/// Whose account, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Named(String),
    Stored(DatabaseId),
}

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("stored:").map(str::parse) {
            None => Ok(Self::Named(text.to_owned())),
            Some(Ok(number)) => Ok(Self::Stored(DatabaseId(number))),
            Some(Err(_)) => Err("write stored: and the number of a stored entity, such as stored:17".to_owned()),
        }
    }
}

/// A trade as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TradeNumber(TradeId);

impl FromStr for TradeNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = read_trade(text).ok_or("write ENTITY/NUMBER, such as 1048580/3")?;
        Ok(Self(id))
    }
}

/// Up to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Moment(Moment),
    Batch(LogPosition),
}

fn at(text: &str) -> Result<At, String> {
    if text.contains('@') && !text.starts_with('@') {
        return position(text).map(At::Batch);
    }
    moment::read(text).map(At::Moment)
}

/// Why there is no answer.
#[derive(Debug, Error)]
enum NoAnswer {
    #[error("there is no archive to ask")]
    Source(#[from] SourceError),
    #[error("there is no index to ask by; with --index it lies in another folder")]
    Index(#[from] IndexError),
    #[error("no account of this realm logs in as {0:?}")]
    NoAccount(String),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("what the answer rests on is not as it was")]
    Found(#[source] AuditError),
    #[error("there is no answer")]
    None(#[source] AuditError),
    #[error("what the answer rests on is not as it was")]
    PastFound(#[source] PastError),
    #[error("there is no answer")]
    PastNone(#[source] PastError),
    #[error("{0}")]
    Span(&'static str),
    #[error("the checkpoint that was kept cannot be read")]
    Kept(#[from] FolderError),
    #[error("there is no checkpoint in {}", .0.display())]
    NoKept(PathBuf),
    #[error("no evidence was written: something is not as it was")]
    Wrong(#[source] EvidenceError),
    #[error("no evidence was written")]
    NoEvidence(#[source] EvidenceError),
    #[error("the bundle cannot be written to {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("nobody takes what is printed")]
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
            // Whoever reads has seen enough.
            Err(NoAnswer::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                let is_finding = matches!(error, NoAnswer::Found(_) | NoAnswer::PastFound(_) | NoAnswer::Wrong(_));
                ExitCode::from(if is_finding { 1 } else { 2 })
            }
        }
    }

    async fn answer(self) -> Result<(), NoAnswer> {
        let (is_from, is_to) = (self.since.is_some(), self.at.is_some() || self.until.is_some());
        match self.question {
            Asked::Replay { .. } if is_from || self.until.is_some() => {
                return Err(NoAnswer::Span("a state is that of one moment: name it with --at alone"));
            }
            Asked::Diff { .. } if is_from || is_to => {
                return Err(NoAnswer::Span(
                    "diff is given its two moments: leave out --at, --since and --until",
                ));
            }
            _ => {}
        }
        let source = self.kept.stored(&self.named.settings()).await?;
        let mut index = Index::open(&self.index, SHARD).await?;
        let bar = ArchiveBar::new();
        let extent = index
            .catch_up(&source.store, |progress| bar.show(progress.leaves, progress.of))
            .await?;
        bar.clear();
        let span = self.span(&source, &index).await?;
        let store = &source.store;
        let report = match self.question {
            Asked::Item { serial, wanted } => of_ledger(&index, store, Question::Item(serial), wanted, &span).await?,
            Asked::Account { who, wanted } => {
                let holder = holder(&source, who).await?;
                of_ledger(&index, store, Question::Account(holder), wanted, &span).await?
            }
            Asked::Trade { id, wanted } => of_ledger(&index, store, Question::Trade(id.0), wanted, &span).await?,
            Asked::Receipt { id } => {
                let receipt = evidence::receipt(store, &index, id.0).await?;
                return Ok(write!(stdout(), "{receipt}")?);
            }
            Asked::Entity { entity } => {
                let log = EntityLog::find(&index, store, entity).await?;
                Report::of_entity(&log, &span, &schemas(&source).await?)
            }
            Asked::Replay { which } => {
                let past = Past::at(&index, store, index.leaves_until(span.until).await?).await?;
                Report::of_past(&past, &schemas(&source).await?, which)
            }
            Asked::Diff { before, after, which } => {
                let began = began(&source).await?;
                let (from, to) = (until(&index, before, began).await?, until(&index, after, began).await?);
                let (from, to) = (
                    index.leaves_until(Some(from)).await?,
                    index.leaves_until(Some(to)).await?,
                );
                if from > to {
                    return Err(NoAnswer::Span(
                        "the first moment is the later one: name them in their order",
                    ));
                }
                let before = Past::at(&index, store, from).await?;
                let mut after = before.clone();
                after.advance(&index, store, to).await?;
                Report::of_difference((&before, &after), &schemas(&source).await?, which)
            }
        };
        report.print(self.format, &extent)?;
        Ok(())
    }

    async fn span(&self, source: &Source, index: &Index) -> Result<Span, NoAnswer> {
        let began = began(source).await?;
        let until = match (self.at, self.until) {
            (Some(at), _) => Some(until(index, at, began).await?),
            (None, Some(moment)) => Some(Until::Wall(moment.wall(began))),
            (None, None) => None,
        };
        let since = self.since.map(|since| since.wall(began));
        Ok(Span { since, until })
    }
}

/// When the realm began.
async fn began(source: &Source) -> Result<WallTime, NoAnswer> {
    Ok(source.about().await?.map_or(WallTime(0), |about| about.began))
}

/// All definitions that the realm has had, by their fingerprints.
async fn schemas(source: &Source) -> Result<BTreeMap<Hash, Schema>, NoAnswer> {
    let about = source.about().await?;
    let all = about
        .into_iter()
        .flat_map(|about| about.former.into_iter().chain([about.schema]));
    Ok(all.map(|schema| (schema.fingerprint(), schema)).collect())
}

async fn until(index: &Index, at: At, began: WallTime) -> Result<Until, NoAnswer> {
    match at {
        At::Batch(at) => Ok(index.until(at).await?),
        At::Moment(moment) => Ok(Until::Wall(moment.wall(began))),
    }
}

/// An answer from the ledger, also as evidence where that is wanted.
async fn of_ledger(
    index: &Index,
    store: &Store,
    question: Question,
    wanted: Wanted,
    span: &Span,
) -> Result<Report, NoAnswer> {
    let answer = index.answer(store, question).await?;
    if let Some(file) = wanted.bundle {
        let kept = wanted.kept.iter().map(|path| read_kept(path));
        let kept: Vec<SignedNote> = kept.collect::<Result<_, _>>()?;
        let bundle = evidence::bundle(store, index, (question, &answer), &kept).await?;
        std::fs::write(&file, bundle).map_err(|source| NoAnswer::Write { path: file, source })?;
    }
    Ok(match &answer {
        Answer::Item(item) => Report::of_item(item, span),
        Answer::Account(owned) => Report::of_owned(owned, span),
        Answer::Trade(trade) => Report::of_trade(trade, &index.inventories(store, trade).await?, span),
    })
}

fn read_kept(path: &Path) -> Result<SignedNote, NoAnswer> {
    read_note(path)?.ok_or_else(|| NoAnswer::NoKept(path.to_owned()))
}

/// The stored entity that is meant.
async fn holder(source: &Source, who: Who) -> Result<DatabaseId, NoAnswer> {
    match who {
        Who::Stored(holder) => Ok(holder),
        Who::Named(name) => match accounts::named(&source.store, &name).await? {
            Some(account) => Ok(account.database),
            None => Err(NoAnswer::NoAccount(name)),
        },
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::{BatchNumber, EntityId, OwnerId, TransferId, TransferNumber};

    use super::*;

    #[test]
    fn what_is_asked_about_is_read_as_it_is_printed() {
        let id = TradeId(TransferId {
            asker: EntityId(1_048_580),
            number: TransferNumber(3),
        });
        assert_eq!(id.to_string().parse(), Ok(TradeNumber(id)));
        assert_eq!("stored:17".parse(), Ok(Who::Stored(DatabaseId(17))));
        assert_eq!("merlin".parse(), Ok(Who::Named("merlin".to_owned())));
        assert!("stored:merlin".parse::<Who>().is_err());
        for wrong in ["", "3", "/3", "3/", "x/1", "1/2/3"] {
            assert!(wrong.parse::<TradeNumber>().is_err(), "{wrong:?}");
        }
        let batch = LogPosition {
            owner: OwnerId(3),
            batch: BatchNumber(120),
        };
        assert_eq!(at("3@120"), Ok(At::Batch(batch)));
        assert_eq!(at("@120"), Ok(At::Moment(Moment::Wall(120_000))));
        assert_eq!(at("00:02:00"), Ok(At::Moment(Moment::World(120_000))));
        assert!(at("3@").is_err() && at("yesterday").is_err());
    }
}
