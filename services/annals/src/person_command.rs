//! `annals person`: what is stored about a person, forgetting it, and the keys under which it is sealed
//! (docs/personal-data.md).

mod file;

use std::{
    collections::BTreeSet,
    io::{self, Write, stdout},
    path::PathBuf,
    process::ExitCode,
};

use annals_audit::{Unclear, Who};
use annals_db::personal::{self, Imported, NotForgotten, Person as Known};
use annals_evidence::words;
use annals_host::{
    clock,
    log_source::{KeptRealm, NamedRealm, SourceError},
    process::FIRST_SHARD,
    telemetry::Chain,
};
use annals_ids::{DatabaseId, WallTime};
use annals_store::{
    Store, StoreError,
    layout::personal::{Forgotten, TEXT_LIMIT},
};
use thiserror::Error;

use file::KeyFileError;

/// Say what is known of a person, have it forgotten, and keep the keys under which it is sealed.
#[derive(Debug, clap::Args)]
pub struct Person {
    #[command(subcommand)]
    command: Commands,
    #[command(flatten)]
    named: NamedRealm,
    #[command(flatten)]
    kept: KeptRealm,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Show whether a person has a key, or when, by whom and why the person was forgotten
    Show {
        /// The name with which the account logs in, or stored:NUMBER for any stored entity
        who: Who,
    },
    /// Forget a person: delete the key of the person's sealed data and the account, and free its name. Irreversible
    Forget {
        /// The name with which the account logs in, or stored:NUMBER for any stored entity
        who: Who,
        /// Name of the operator, recorded with the action
        #[arg(long, value_name = "NAME", value_parser = text)]
        by: String,
        /// Reason, recorded with the action
        #[arg(long, value_name = "TEXT", value_parser = text)]
        reason: String,
    },
    /// Export all keys and the list of forgotten persons to a new file; keep it apart from backups
    Export {
        /// Output file
        file: PathBuf,
    },
    /// Import keys into a restored realm, and forget again the persons that were forgotten
    Import {
        /// File written by export
        file: PathBuf,
    },
}

fn text(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("say something".to_owned()),
        length if length > TEXT_LIMIT => Err(format!("the text has {length} bytes; the limit is {TEXT_LIMIT}")),
        _ => Ok(text.to_owned()),
    }
}

#[derive(Debug, Error)]
enum Failed {
    #[error("the realm cannot be opened")]
    Source(#[from] SourceError),
    #[error("no account of this realm logs in as {0}")]
    NoAccount(Who),
    #[error("the account cannot be found")]
    Unclear(#[from] Unclear),
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotForgotten(#[from] NotForgotten),
    #[error(
        "not forgotten again, because they live: stored entities {}; import the file again when they have ended; if \
         the realm is stopped, start it first, so that they can end",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Living(BTreeSet<DatabaseId>),
    #[error(transparent)]
    File(#[from] KeyFileError),
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

impl Person {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match self.done().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                let lives = matches!(error, Failed::NotForgotten(NotForgotten::Lives(_)) | Failed::Living(_));
                // A person that is in use is the store's refusal, exit code 1; every other error gives 2.
                ExitCode::from(if lives { 1 } else { 2 })
            }
        }
    }

    async fn done(self) -> Result<(), Failed> {
        let source = self.kept.stored(&self.named.settings()).await?;
        let store = &source.store;
        let mut out = stdout().lock();
        match self.command {
            Commands::Show { who } => {
                let person = find(store, who).await?;
                writeln!(out, "{}", said(person, &personal::person(store, person).await?))?;
            }
            Commands::Forget { who, by, reason } => {
                let person = find(store, who).await?;
                let now = clock::wall().0;
                let forgotten = personal::forget(store, FIRST_SHARD, person, (now, &by, &reason)).await?;
                writeln!(out, "{}", said(person, &Known::Forgotten(forgotten)))?;
            }
            Commands::Export { file } => {
                let persons = personal::export(store).await?;
                file::write(&file, &persons)?;
                writeln!(
                    out,
                    "{} persons written to {}: keep it apart from backups",
                    persons.len(),
                    file.display()
                )?;
            }
            Commands::Import { file } => {
                let imported = personal::import(store, &file::read(&file)?).await?;
                say_imported(&mut out, &imported)?;
                if !imported.living.is_empty() {
                    return Err(Failed::Living(imported.living));
                }
            }
        }
        Ok(())
    }
}

fn say_imported(out: &mut impl Write, imported: &Imported) -> io::Result<()> {
    let Imported {
        keys,
        forgotten,
        differing,
        living: _,
    } = imported;
    writeln!(out, "{keys} keys brought back, {forgotten} persons forgotten again")?;
    if *differing > 0 {
        writeln!(
            out,
            "{differing} persons have a newer key, which is kept: data sealed under the exported key cannot be read"
        )?;
    }
    Ok(())
}

async fn find(store: &Store, who: Who) -> Result<DatabaseId, Failed> {
    who.find(store).await?.ok_or(Failed::NoAccount(who))
}

fn said(person: DatabaseId, known: &Known) -> String {
    match known {
        Known::Unknown => format!("stored entity {person} has no key: none of its sealed data can be read"),
        Known::Known(_) => format!("stored entity {person} has a key: its sealed data can be read"),
        Known::Forgotten(Forgotten { at, leaves, by, reason }) => format!(
            "stored entity {person} is forgotten since {}, by {by}: {reason}; its sealed data in the {leaves} \
             batches that the archive had then, and in batches not yet archived, cannot be read",
            words::date(WallTime(*at))
        ),
    }
}
