//! `annals audit`: what happened, answered from the archive alone.
//!
//! The archive is verified first, as far as that was not done before; the index that remembers it lies in a folder of whoever
//! asks. An answer whose evidence is not as it was is no answer: exit code 1 and the first thing that is not.

mod report;
mod words;

use std::{io, path::PathBuf, process::ExitCode, str::FromStr};

use annals_audit::{AuditError, Index, IndexError, Item, Owned, Span, Trade, Until};
use annals_db::accounts;
use annals_host::{process::SHARD, telemetry::Chain};
use annals_ids::{DatabaseId, EntityId, LogPosition, Serial, TradeId, TransferId, TransferNumber, WallTime};
use annals_store::StoreError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use thiserror::Error;

use crate::{
    log_command::position,
    moment::{self, Moment},
    source::{KeptRealm, NamedRealm, Source, SourceError},
};
use report::{Format, Report};

/// Answer who owned what, when and why, from a realm's archive alone.
#[derive(Debug, clap::Args)]
pub struct Audit {
    #[command(subcommand)]
    question: Question,
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
enum Question {
    /// Where an item was made, who has had it since, and why it went from one to the other
    Item {
        /// Its serial
        #[arg(value_parser = |text: &str| text.parse().map(Serial))]
        serial: Serial,
    },
    /// What somebody has had, what they did with it, and what others did
    Account {
        /// The name with which the account logs in, or stored:NUMBER for any stored entity
        who: Who,
    },
    /// What was done in a trade, step by step, and what both parties had before and after each
    Trade {
        /// Its number, ENTITY/NUMBER: the entity that proposed it, and which of its orders that was
        id: TradeNumber,
    },
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
        let parts = text
            .split_once('/')
            .and_then(|(asker, number)| Some((asker.parse().ok()?, number.parse().ok()?)));
        let (asker, number) = parts.ok_or("write ENTITY/NUMBER, such as 1048580/3")?;
        Ok(Self(TradeId(TransferId {
            asker: EntityId(asker),
            number: TransferNumber(number),
        })))
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

impl Audit {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match self.answer().await {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever reads has seen enough.
            Err(NoAnswer::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(if matches!(error, NoAnswer::Found(_)) { 1 } else { 2 })
            }
        }
    }

    async fn answer(self) -> Result<(), NoAnswer> {
        let source = self.kept.stored(&self.named.settings()).await?;
        let mut index = Index::open(&self.index, SHARD).await?;
        let bar = Bar::new();
        let extent = index.catch_up(&source.store, |progress| bar.show(progress)).await?;
        bar.clear();
        let span = self.span(&source, &index).await?;
        let report = match self.question {
            Question::Item { serial } => Report::of_item(&Item::find(&index, &source.store, serial).await?, &span),
            Question::Account { who } => {
                let holder = holder(&source, who).await?;
                Report::of_owned(&Owned::find(&index, &source.store, holder).await?, &span)
            }
            Question::Trade { id } => Report::of_trade(&Trade::find(&index, &source.store, id.0).await?, &span),
        };
        report.print(self.format, &extent)?;
        Ok(())
    }

    async fn span(&self, source: &Source, index: &Index) -> Result<Span, NoAnswer> {
        let began = source.about().await?.map_or(WallTime(0), |about| about.began);
        let until = match (self.at, self.until) {
            (Some(At::Batch(at)), _) => Some(index.until(at).await?),
            (Some(At::Moment(moment)), _) | (None, Some(moment)) => Some(Until::Wall(moment.wall(began))),
            (None, None) => None,
        };
        let since = self.since.map(|since| since.wall(began));
        Ok(Span { since, until })
    }
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

/// How far the archive is verified, on a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("verifying the archive {bar:24} {pos}/{len} batches");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    fn show(&self, progress: annals_audit::Progress) {
        self.0.set_length(progress.of);
        self.0.set_position(progress.leaves);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::{BatchNumber, OwnerId};

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
