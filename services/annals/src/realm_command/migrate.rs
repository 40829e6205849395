//! `annals realm migrate`: changes the definitions of a stopped realm.
//!
//! ```text
//! TYPE: N stored entities
//! N parts of entities on N owners, N calls under way
//! NO PLACE: what has no counterpart, and why
//! N of N stored entities converted
//! migrated to schema FINGERPRINT
//! ```
//! A killed migration continues when the command is run again.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use annals_authoring::diff;
use annals_db::{
    Migrations, RecoveryError,
    migrating::{MigrateError, Preparation, Survey, convert_next},
    read_cursor,
};
use annals_def::{Rename, Renames, Schema};
use annals_director::read_owners;
use annals_host::{
    log::{ReadError, Reading},
    log_source::{BeyondError, KeptRealm, Source, SourceError},
    process::Settings,
    telemetry::Chain,
};
use annals_ids::OwnerId;
use annals_store::{Store, StoreError};
use thiserror::Error;

use crate::defs_command::world::{self, WorldError};

/// Interval between progress lines.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// How to migrate it.
#[derive(Debug, clap::Args)]
pub(super) struct Migrate {
    /// The new definitions: a world's folder, or a file that `annals defs compile` wrote
    #[arg(long)]
    defs: PathBuf,
    /// A rename: `Type.old=new` for a property or method, `Old=New` for an entity type
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<Rename>,
    /// Dry run: report the result and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Convert stored entities while the realm runs, and when they are loaded
    #[arg(long)]
    later: bool,
}

/// Why a realm was not migrated.
#[derive(Debug, Error)]
pub(crate) enum NotMigrated {
    #[error("the realm must be stopped for a migration: give its data directory with --data")]
    NoData,
    #[error("the realm cannot be read")]
    Source(#[from] SourceError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(
        "the log of owner {0} has batches that are not folded: start the realm on the old definitions and stop \
        it again"
    )]
    Unfolded(OwnerId),
    #[error("{0}")]
    World(WorldError),
    #[error("the log of owner {owner} cannot be read to its end")]
    Beyond {
        owner: OwnerId,
        #[source]
        source: BeyondError,
    },
    #[error("a log cannot be read")]
    Log(#[from] ReadError),
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    #[error("an owner's state cannot be rebuilt")]
    Recovery(#[from] RecoveryError),
    #[error("some data has no place under the new definitions; the realm was not changed")]
    NoPlace,
}

/// Migrates a stopped realm to the definitions in a folder.
///
/// # Errors
/// When it cannot be migrated; then it is unchanged.
pub(crate) async fn migrate_to(defs: &Path, kept: &KeptRealm, settings: &Settings) -> Result<(), NotMigrated> {
    let migrate = Migrate {
        defs: defs.to_owned(),
        rename: Vec::new(),
        dry_run: false,
        later: false,
    };
    let new = world::schema(defs).map_err(NotMigrated::World)?;
    migrate.migrate(new, kept, settings).await
}

impl Migrate {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> ExitCode {
        let new = match world::schema(&self.defs) {
            Ok(new) => new,
            Err(error) => return error.print(),
        };
        match self.migrate(new, kept, settings).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                match error {
                    NotMigrated::NoData | NotMigrated::Source(_) | NotMigrated::Store(_) => ExitCode::from(2),
                    _ => ExitCode::FAILURE,
                }
            }
        }
    }

    async fn migrate(self, new: Schema, kept: &KeptRealm, settings: &Settings) -> Result<(), NotMigrated> {
        if kept.data.is_none() {
            return Err(NotMigrated::NoData);
        }
        let source = kept.source(settings).await?;
        let to = new.fingerprint();
        let begun = Preparation::begin(source.store.clone(), new.clone(), self.rename.clone()).await;
        let preparation = match begun {
            Err(MigrateError::Unfinished(begun)) if begun == to && !self.dry_run => {
                println!("continuing a migration that was begun before");
                return finish(&source.store, &new).await;
            }
            begun => begun?,
        };
        if self.later {
            preparation.may_be_later()?;
        }
        is_folded(&source).await?;
        if let Some(note) = &source.note {
            println!("note: {note}");
        }
        if self.dry_run {
            self.explain(preparation.old(), &new);
        }
        let survey = preparation.survey().await?;
        print(&survey);
        if !survey.is_clean() {
            return Err(NotMigrated::NoPlace);
        }
        if self.dry_run {
            println!("everything has a place; nothing was changed");
            return Ok(());
        }
        preparation
            .decide(&survey, annals_host::clock::wall(), self.later)
            .await?;
        if self.later {
            println!("stored entities are converted while the realm runs");
            println!("migrated to schema {to}");
            return Ok(());
        }
        finish(&source.store, &new).await
    }

    /// Prints the changes, as `annals defs diff` does.
    fn explain(&self, old: &Schema, new: &Schema) {
        let renames = Renames::new(old, new, self.rename.iter().cloned()).unwrap_or_default();
        print!("{}", diff(old, new, &renames).to_text());
    }
}

/// Checks that the logs contain nothing that is not folded: otherwise the trial run is incomplete.
async fn is_folded(source: &Source) -> Result<(), NotMigrated> {
    for (owner, record) in read_owners(&source.store).await? {
        let mut reading = Reading::default();
        source.read_log((record.shard, owner), &mut reading).await?;
        let cursor = read_cursor(&source.store, owner).await?;
        let beyond = source.beyond(owner, cursor, &reading).await;
        let beyond = beyond.map_err(|source| NotMigrated::Beyond { owner, source })?;
        if !beyond.is_empty() {
            return Err(NotMigrated::Unfolded(owner));
        }
    }
    Ok(())
}

/// Converts all stored entities that are not converted yet.
async fn finish(store: &Store, present: &Schema) -> Result<(), NotMigrated> {
    let migrations = Migrations::read(store).await?;
    let mut said = Instant::now();
    let mut last = (0, 0);
    loop {
        let slice = convert_next(store, present, &migrations).await?;
        slice.taken.iter().for_each(|taken| println!("note: {taken}"));
        if slice.of > 0 {
            last = (slice.converted, slice.of);
        }
        if slice.is_done {
            break;
        }
        if said.elapsed() >= LINE_EVERY {
            println!("{} of {} stored entities converted", slice.converted, slice.of);
            said = Instant::now();
        }
    }
    println!("{} of {} stored entities converted", last.0, last.1);
    println!("migrated to schema {}", present.fingerprint());
    Ok(())
}

fn print(survey: &Survey) {
    for (entity_type, count) in &survey.stored {
        println!("{entity_type}: {count} stored entities");
    }
    println!(
        "{} parts of entities on {} owners, {} calls under way",
        survey.parts, survey.owners, survey.calls
    );
    for why in &survey.refused {
        println!("NO PLACE: {why}");
    }
    if survey.unnamed > 0 {
        println!("NO PLACE: {} more", survey.unnamed);
    }
}
