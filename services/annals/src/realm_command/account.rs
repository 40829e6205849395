//! `annals realm account create`: an account that an operator creates, for realms in which players cannot.

use std::{
    fs,
    io::{self, Write, stdout},
    path::PathBuf,
    process::ExitCode,
};

use annals_db::{
    StoredEntity, accounts,
    bans::{self, BanRecord, Decision, NotDecided},
};
use annals_host::{
    clock,
    log_source::Source,
    passwords::{self, PasswordError},
    process::random,
};
use annals_store::layout::database;
use annals_wire::client::{MAX_NAME_BYTES, MAX_PASSWORD_BYTES};
use serde_json::json;
use thiserror::Error;

use super::{Format, RealmError, ban::DecisionArgs};

/// Create an account.
#[derive(Debug, clap::Args)]
pub(super) struct AccountCommand {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Create an account; recorded with operator and reason
    Create(Create),
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The name with which the account logs in
    name: String,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", required_unless_present = "without_password")]
    password_file: Option<PathBuf>,
    /// Create it without a password: a token or a service authenticates its player
    #[arg(long, conflicts_with = "password_file")]
    without_password: bool,
    #[command(flatten)]
    args: DecisionArgs,
}

/// Why no account was created.
#[derive(Debug, Error)]
pub(super) enum NotCreated {
    #[error(
        "no account can be called {0:?}: a name has 1 to {MAX_NAME_BYTES} bytes, no control characters, and does not \
         begin with {stored}",
        stored = accounts::STORED
    )]
    Name(String),
    #[error("there is an account of this name already")]
    Exists,
    #[error("the realm has no definitions yet: start it first")]
    NotBegun,
    #[error("the realm's definitions have no entity type that a client could log in as")]
    NoAccountType,
    #[error("{path} cannot be read", path = path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the first line of {path} must have 1 to {MAX_PASSWORD_BYTES} bytes", path = .0.display())]
    Password(PathBuf),
    #[error("the password cannot be hashed")]
    Hash(#[from] PasswordError),
    #[error("the account was created, but not the record of who did it")]
    NotRecorded(#[from] NotDecided),
}

impl AccountCommand {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        match self.command {
            Commands::Create(create) => create.run(source).await,
        }
    }
}

impl Create {
    async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        let store = &source.store;
        if !(1..=MAX_NAME_BYTES).contains(&self.name.len()) || !accounts::can_be_named(&self.name) {
            return Err(NotCreated::Name(self.name).into());
        }
        let password = self.hashed_password()?;
        let schema = source.about().await?.ok_or(NotCreated::NotBegun)?.schema;
        let entity_type = accounts::entity_type(&schema, &self.name).ok_or(NotCreated::NoAccountType)?;
        let entity = StoredEntity {
            entity_type: entity_type.name.clone(),
            ..StoredEntity::default()
        };
        let name_key = accounts::name_key(store, random()).await?;
        let name = database::hashed_name(&name_key, &self.name);
        if accounts::find(store, &name).await?.is_some() {
            return Err(NotCreated::Exists.into());
        }
        let created = accounts::create(store, &name, &password, &entity, &schema).await?;
        // A log-in may have created it meanwhile. Two hashes of one password differ.
        if created.password != password {
            return Err(NotCreated::Exists.into());
        }
        let record = BanRecord {
            at: clock::wall(),
            decision: Decision::Created,
            operator: self.args.by,
            reason: self.args.reason,
        };
        let recorded = bans::decide(store, created.database, &record).await;
        recorded.map_err(NotCreated::from)?;
        let stored = created.database;
        match self.args.format {
            Format::Table => println!("created: stored entity {stored}"),
            Format::Json => writeln!(stdout(), "{:#}", json!({ "stored": stored.0 }))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The hash of the password; empty if the account has none.
    fn hashed_password(&self) -> Result<String, NotCreated> {
        let Some(path) = &self.password_file else {
            return Ok(String::new());
        };
        let text = fs::read_to_string(path).map_err(|source| NotCreated::Unreadable {
            path: path.clone(),
            source,
        })?;
        let password = text.lines().next().unwrap_or_default();
        if !(1..=MAX_PASSWORD_BYTES).contains(&password.len()) {
            return Err(NotCreated::Password(path.clone()));
        }
        Ok(passwords::hash(password)?)
    }
}
