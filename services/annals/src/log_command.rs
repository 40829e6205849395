//! `annals log`: inspects the log of a running or stopped realm, and accepts losses in it.

use std::{
    io::{self, Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use annals_audit::{
    moment::position,
    replay::{Extent, ReplayError, owners, replay},
    verify::{Kept, SweepProgress, UNANCHORED, VerifiedPrefix, VerifyError, find_first, sweep, verify_against},
};
use annals_db::{AcceptError, accept_hole};
use annals_director::read_owners;
use annals_host::{
    log_source::{KeptRealm, NamedRealm, Source, SourceError},
    process::{AskError, FIRST_SHARD, request},
    telemetry::Chain,
};
use annals_ids::{BatchNumber, EntityId, LogPosition, OwnerId, OwnerKind, Shard, WallTime};
use annals_store::{StoreError, layout::shards};
use annals_wire::control::Inspected;
use thiserror::Error;

use crate::{
    kept_checkpoints::{KeptCheckpoints, KeptError},
    progress::ArchiveBar,
    segments::Segments,
    tail::{Tail, TailError, TailPlan},
};

/// Interval between writes of the progress of a verification.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Read a realm's log.
#[derive(Debug, clap::Args)]
pub struct Log {
    #[command(subcommand)]
    command: Commands,
    #[command(flatten)]
    named: NamedRealm,
    #[command(flatten)]
    kept: KeptRealm,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Check that the log is complete, chained and replays; exit code 1: faults found, 2: not checked
    Verify {
        /// Check only the archive's hashes, numbers, seals, chains, tree, tiles and checkpoints, at read speed; not the
        /// folded states, the calls, or the log beyond the archive. Stops at the first fault
        #[arg(long)]
        hashes: bool,
        /// Progress file; if it exists, the check continues from there
        #[arg(long, value_name = "FILE", requires = "hashes")]
        resume: Option<PathBuf>,
        #[command(flatten)]
        kept: KeptCheckpoints,
    },
    /// Print the newest events, one per line
    Tail {
        /// Number of events
        #[arg(short = 'n', long = "events", default_value_t = 20)]
        events: usize,
        /// Only events of this owner's log; may be given several times
        #[arg(long, value_parser = |text: &str| text.parse().map(OwnerId))]
        owner: Vec<OwnerId>,
        /// Only events of this entity
        #[arg(long, value_parser = |text: &str| text.parse().map(EntityId))]
        entity: Option<EntityId>,
        /// Follow new events until interrupted
        #[arg(long, short = 'f')]
        follow: bool,
    },
    /// List the sealed segments of the archive
    Segments,
    /// Give up a hole in the log and everything logged after it, so that the owner can continue from before the hole
    AcceptHole {
        /// Owner and first missing batch, OWNER@BATCH, as named by `annals log verify`
        #[arg(value_parser = position)]
        at: LogPosition,
        /// Accept a hole in the log of a base or of the ledger too: lost calls block the links to that owner, and in
        /// time the ledger's links to all owners
        #[arg(long)]
        though_calls_are_lost: bool,
    },
    /// Fold the whole log in this process, and print each owner's state hash
    Replay {
        /// Stop at this position, OWNER@BATCH; fold all owners to their ends if omitted
        #[arg(long, value_parser = position)]
        at: Vec<LogPosition>,
        /// For a live realm: include its log beyond the archive; always done for a data directory
        #[arg(long)]
        beyond: bool,
    },
}

/// Why a command failed.
#[derive(Debug, Error)]
enum LogError {
    #[error("the log cannot be opened")]
    Source(#[from] SourceError),
    #[error("the kept checkpoint or leaf hashes cannot be used")]
    Kept(#[from] KeptError),
    #[error("the log was not verified")]
    Verify(#[from] VerifyError),
    #[error("the log was not replayed")]
    Replay(#[from] ReplayError),
    #[error("the hole was not accepted")]
    Accept(#[from] AcceptError),
    #[error(
        "the hole was not accepted: owner {0} is a {1}, and calls to and from it that are lost in the hole are never \
         repeated; restore a backup instead, or add --though-calls-are-lost to accept the loss"
    )]
    Calls(OwnerId, OwnerKind),
    #[error(
        "the hole was not accepted: a process holds owner {0} and may still fill the hole; stop that process \
        first"
    )]
    Held(OwnerId),
    #[error(
        "the hole was not accepted: the holder of owner {0} is alive, did not answer and may still fill the hole; \
         stop that process, or try again"
    )]
    Unclear(OwnerId, #[source] AskError),
    #[error(
        "the hole was not accepted: the holder of its owner is unknown without db; start db, and omit --data and \
         --store"
    )]
    OnCluster,
    #[error("the log was not printed")]
    Tail(#[from] TailError),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

impl Log {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        // An unreadable log is an error; a log that does not replay is a finding.
        match self.read().await {
            Ok(code) => code,
            // The reader closed the pipe: not an error.
            Err(LogError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error @ (LogError::Replay(_) | LogError::Tail(_) | LogError::Verify(VerifyError::Changed { .. }))) => {
                eprintln!("{}", Chain(&error));
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }

    async fn read(self) -> Result<ExitCode, LogError> {
        if matches!(self.command, Commands::AcceptHole { .. }) && self.kept.is_on_cluster()? {
            return Err(LogError::OnCluster);
        }
        let source = self.kept.source(&self.named.settings()).await?;
        let code = match self.command {
            Commands::Verify {
                hashes,
                resume,
                kept: notes,
            } => {
                let kept = notes.read()?;
                let is_clean = if hashes {
                    verify_all_hashes(&source, resume.as_deref(), (notes.shard(), &kept)).await?
                } else {
                    let report = verify_against(&source, notes.shard(), &kept).await?;
                    writeln!(stdout(), "{report}")?;
                    report.is_clean()
                };
                for lost in notes.declared_lost(&source.store).await? {
                    writeln!(stdout(), "LOST: {lost}")?;
                }
                say_first(&source, (notes.shard(), &kept), is_clean).await?
            }
            Commands::Tail {
                events,
                owner,
                entity,
                follow,
            } => {
                let plan = TailPlan {
                    events,
                    owners: owner,
                    entity,
                };
                if follow && self.kept.data.is_some() {
                    return Err(TailError::NothingToFollow.into());
                }
                print_tail(&source, plan, follow).await?;
                ExitCode::SUCCESS
            }
            Commands::Segments => {
                print_segments(&source).await?;
                ExitCode::SUCCESS
            }
            Commands::AcceptHole {
                at,
                though_calls_are_lost,
            } => {
                accept(&source, at, though_calls_are_lost).await?;
                ExitCode::SUCCESS
            }
            Commands::Replay { at, beyond } => {
                let extent = if beyond || self.kept.data.is_some() {
                    Extent::Log
                } else {
                    Extent::Archive
                };
                replay_all(&source, at, extent).await?;
                ExitCode::SUCCESS
            }
        };
        if let Some(note) = &source.note {
            writeln!(stdout(), "note: {note}")?;
        }
        Ok(code)
    }
}

/// Verifies the archives of all shards without folding them. Each shard but the first has a file of its own, named after
/// that of the first.
async fn verify_all_hashes(
    source: &Source,
    file: Option<&Path>,
    (kept_of, kept): (Shard, &Kept),
) -> Result<bool, LogError> {
    let mut is_clean = true;
    for shard in shards::all(source.shards().await.map_err(SourceError::from)?) {
        let file = file.map(|file| match shard {
            FIRST_SHARD => file.to_owned(),
            Shard(other) => file.with_added_extension(format!("shard-{other}")),
        });
        let none = Kept::default();
        let kept = if shard == kept_of { kept } else { &none };
        is_clean &= verify_hashes((source, shard), file.as_deref(), kept).await?;
    }
    Ok(is_clean)
}

/// Verifies the archive of a shard without folding it, beyond the prefix in a file if there is one, and records the progress there.
async fn verify_hashes((source, shard): (&Source, Shard), file: Option<&Path>, kept: &Kept) -> Result<bool, LogError> {
    let prefix = file
        .map(VerifiedPrefix::read)
        .transpose()
        .map_err(VerifyError::from)?
        .flatten();
    let bar = ArchiveBar::new();
    let mut written = Instant::now();
    let reached = |prefix: &VerifiedPrefix, progress: SweepProgress| {
        bar.show(progress.leaves, progress.of);
        match file.filter(|_| written.elapsed() >= WRITE_EVERY) {
            Some(file) => {
                written = Instant::now();
                Ok(prefix.write(file)?)
            }
            None => Ok(()),
        }
    };
    let prefix = prefix.unwrap_or_else(|| VerifiedPrefix::begin(shard)).against(kept);
    let swept = sweep(&source.store, prefix, reached).await?;
    bar.clear();
    writeln!(stdout(), "{swept}")?;
    if !swept.findings.is_empty() {
        return Ok(false);
    }
    if let Some(file) = file {
        swept.prefix.write(file).map_err(VerifyError::from)?;
    }
    Ok(true)
}

/// Reports the first event that differs from the original, if something is wrong, and what follows from the kept
/// checkpoints.
async fn say_first(source: &Source, (kept_of, kept): (Shard, &Kept), is_clean: bool) -> Result<ExitCode, LogError> {
    if !is_clean {
        let count = source.shards().await.map_err(SourceError::from)?;
        for shard in shards::all(count) {
            let none = Kept::default();
            let kept = if shard == kept_of { kept } else { &none };
            if count > 1 {
                writeln!(stdout(), "shard {shard}:")?;
            }
            writeln!(stdout(), "{}", find_first(&source.store, shard, kept).await?)?;
        }
        return Ok(ExitCode::FAILURE);
    }
    match kept.size() {
        0 => writeln!(stdout(), "{UNANCHORED}")?,
        size => writeln!(stdout(), "the archive continues the kept checkpoint of {size} batches")?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn print_segments(source: &Source) -> Result<(), LogError> {
    let began = source.about().await?.map_or(WallTime(0), |about| about.began);
    let count = source.shards().await.map_err(SourceError::from)?;
    for shard in shards::all(count) {
        if count > 1 {
            writeln!(stdout(), "shard {shard}:")?;
        }
        writeln!(stdout(), "{}", Segments::list(&source.store, shard, began).await?)?;
    }
    Ok(())
}

async fn print_tail(source: &Source, plan: TailPlan, follow: bool) -> Result<(), LogError> {
    let mut tail = Tail::read(source, plan).await?;
    for line in tail.lines() {
        writeln!(stdout(), "{line}")?;
    }
    if !follow {
        return Ok(());
    }
    loop {
        for line in tail.follow(source).await? {
            writeln!(stdout(), "{line}")?;
        }
    }
}

/// Accepts a hole in the log of an owner without a holder; unless the owner is a cell, only if `with_calls`.
async fn accept(source: &Source, at: LogPosition, with_calls: bool) -> Result<(), LogError> {
    let owners = read_owners(&source.store).await?;
    let kind = owners
        .iter()
        .find(|(owner, _)| **owner == at.owner)
        .map(|(_, record)| record.kind);
    if let Some(kind) = kind.filter(|kind| *kind != OwnerKind::Cell && !with_calls) {
        return Err(LogError::Calls(at.owner, kind));
    }
    if let Some((bus, subjects)) = &source.live {
        match request::<Inspected>(bus, "the owner's holder", subjects.inspect(at.owner), &()).await {
            Err(AskError::Nobody { .. }) => {}
            Ok(_) => return Err(LogError::Held(at.owner)),
            Err(unclear) => return Err(LogError::Unclear(at.owner, unclear)),
        }
    }
    let accepted = accept_hole(&source.store, at.owner, at.batch).await?;
    writeln!(
        stdout(),
        "owner {}: the log is valid up to batch {}; batch {} and those after it are void. The director grants the \
         owner again, and it continues from there",
        at.owner,
        accepted.stands,
        accepted.until
    )?;
    Ok(())
}

async fn replay_all(source: &Source, at: Vec<LogPosition>, extent: Extent) -> Result<(), LogError> {
    let wanted: Vec<(OwnerId, Option<BatchNumber>)> = if at.is_empty() {
        let owners = owners(&source.store).await?;
        owners.into_iter().map(|owner| (owner, None)).collect()
    } else {
        at.into_iter().map(|at| (at.owner, Some(at.batch))).collect()
    };
    for (owner, until) in wanted {
        let replayed = replay(source, owner, until, extent).await?;
        write!(
            stdout(),
            "{} {} {} events",
            replayed.at,
            replayed.state,
            replayed.events
        )?;
        if replayed.archived < replayed.at.batch {
            write!(stdout(), ", archived up to batch {}", replayed.archived)?;
        }
        writeln!(stdout())?;
    }
    Ok(())
}
