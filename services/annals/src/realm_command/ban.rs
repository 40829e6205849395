//! `annals realm ban`, `unban` and `bans`: accounts that may not play.
//!
//! A ban is a record in the store. What is left then is to end the sessions of the account: every base is asked until it
//! confirms.

use std::{
    io::{self, Write, stdout},
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use annals_audit::{Unclear, Who};
use annals_db::{
    MAX_NAME_BYTES, MAX_REASON_BYTES, accounts,
    bans::{self, BanRecord, Decision, NotDecided},
};
use annals_director::read_owners;
use annals_evidence::words;
use annals_host::{
    clock,
    log_source::Source,
    nats::Bus,
    process::{AskError, request},
};
use annals_ids::{DatabaseId, OwnerId, OwnerKind, WallTime};
use annals_store::{Store, StoreError};
use annals_wire::{
    Subjects,
    client::Ban as SentBan,
    control::{EndSessions, OperatorOrder, OperatorOrdered, WireBan},
};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::{
    Format, RealmError,
    table::{self, Align},
};

/// Total time in which a base has to confirm that no session is left. A lost base is replaced within some seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between requests.
const PAUSE: Duration = Duration::from_millis(50);

/// Ban an account: its log-ins are refused, and its session ends; recorded with operator and reason.
#[derive(Debug, clap::Args)]
pub(super) struct Ban {
    #[command(flatten)]
    decided: Decided,
    /// When the ban ends, such as 2027-01-31T18:00:00Z; without it and --for, it does not end by itself
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "duration")]
    until: Option<WallTime>,
    /// How long the ban lasts, such as 7days or 12h
    #[arg(long = "for", id = "duration", value_name = "DURATION", value_parser = humantime::parse_duration)]
    lasts: Option<Duration>,
}

/// Lift the ban of an account; recorded with operator and reason.
#[derive(Debug, clap::Args)]
pub(super) struct Unban {
    #[command(flatten)]
    decided: Decided,
}

/// List the accounts that are banned, or everything that operators have decided about accounts.
#[derive(Debug, clap::Args)]
pub(super) struct Bans {
    /// The account; all accounts if omitted
    who: Option<Who>,
    /// List every decision: bans, liftings, and accounts that operators created
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// About whom something was decided, by whom, and why.
#[derive(Debug, clap::Args)]
struct Decided {
    /// The name with which the account logs in, or stored:NUMBER for its stored entity
    who: Who,
    #[command(flatten)]
    args: DecisionArgs,
}

/// Operator and reason of a decision, and how it is printed.
#[derive(Debug, clap::Args)]
pub(super) struct DecisionArgs {
    /// Name of the operator, recorded with the decision
    #[arg(long, value_name = "NAME", value_parser = |text: &str| bounded(text, MAX_NAME_BYTES))]
    pub(super) by: String,
    /// Reason, recorded with the decision; the player receives the reason for a ban
    #[arg(long, value_name = "TEXT", value_parser = |text: &str| bounded(text, MAX_REASON_BYTES))]
    pub(super) reason: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
}

/// Why nothing was decided, or nothing is listed.
#[derive(Debug, Error)]
pub(super) enum NotBanned {
    #[error("no account of this realm logs in as {0}")]
    NoAccount(Who),
    #[error("the account cannot be found")]
    Unclear(#[from] Unclear),
    #[error("the ban would have ended already, at {}: give a later time", words::date(*.0))]
    Past(WallTime),
    #[error(transparent)]
    NotDecided(#[from] NotDecided),
}

/// What became of the sessions of a banned account.
enum Sessions {
    /// None is left; so many were ended.
    Ended(u32),
    /// Not all bases have confirmed that none is left. The last obstacle.
    Unconfirmed(String),
}

fn bounded(text: &str, most: usize) -> Result<String, String> {
    if text.trim().is_empty() || text.len() > most {
        return Err(format!("write 1 to {most} bytes"));
    }
    Ok(text.to_owned())
}

fn moment(text: &str) -> Result<WallTime, String> {
    let time = humantime::parse_rfc3339_weak(text).map_err(|error| format!("{error}; write 2027-01-31T18:00:00Z"))?;
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(wall(since))
}

fn wall(since: Duration) -> WallTime {
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Ban {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        let now = clock::wall();
        let after = |lasts: Duration| WallTime(now.0.saturating_add(wall(lasts).0));
        let until = self.until.or(self.lasts.map(after));
        if let Some(past) = until.filter(|until| *until <= now) {
            return Err(NotBanned::Past(past).into());
        }
        let decided = self.decided;
        let account = decided.record(&source.store, now, Decision::Banned(until)).await?;
        let sent = SentBan {
            until,
            reason: decided.args.reason.clone(),
        };
        let sessions = match &source.live {
            Some((bus, subjects)) => end_sessions(&source.store, (bus, subjects), (account, &sent)).await?,
            // A realm that does not run has no sessions: its clients were closed when it stopped.
            None => Sessions::Ended(0),
        };
        let end = end_of(until);
        match decided.args.format {
            Format::Table => println!("stored entity {account} is banned {end}"),
            Format::Json => {
                let ended = match &sessions {
                    Sessions::Ended(ended) => Some(*ended),
                    Sessions::Unconfirmed(_) => None,
                };
                let until = until.map(words::date);
                writeln!(
                    stdout(),
                    "{:#}",
                    json!({ "stored": account.0, "until": until, "sessionsEnded": ended })
                )?;
            }
        }
        Ok(match sessions {
            Sessions::Ended(_) => ExitCode::SUCCESS,
            Sessions::Unconfirmed(last) => {
                eprintln!(
                    "log-ins are refused, but no base has confirmed within {} s that the account has no session left \
                     ({last}): repeat the command",
                    TIMEOUT.as_secs()
                );
                ExitCode::from(1)
            }
        })
    }
}

impl Unban {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        let decided = self.decided;
        let account = decided.record(&source.store, clock::wall(), Decision::Lifted).await?;
        match decided.args.format {
            Format::Table => println!("stored entity {account} is not banned any more"),
            Format::Json => writeln!(stdout(), "{:#}", json!({ "stored": account.0 }))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Decided {
    /// Records a decision. Returns the account.
    async fn record(&self, store: &Store, at: WallTime, decision: Decision) -> Result<DatabaseId, NotBanned> {
        let account = find(store, &self.who).await?;
        let record = BanRecord {
            at,
            decision,
            operator: self.args.by.clone(),
            reason: self.args.reason.clone(),
        };
        bans::decide(store, account, &record).await?;
        Ok(account)
    }
}

async fn find(store: &Store, who: &Who) -> Result<DatabaseId, NotBanned> {
    let no_account = || NotBanned::NoAccount(who.clone());
    let account = who.find(store).await?.ok_or_else(no_account)?;
    let is_stored = accounts::load(store, account)
        .await
        .map_err(NotDecided::from)?
        .is_some();
    is_stored.then_some(account).ok_or_else(no_account)
}

/// Asks all bases to end the account's sessions, each until it confirms: a client may have been given to an entity at any
/// of them.
async fn end_sessions(
    store: &Store,
    bus: (&Bus, &Subjects),
    banned: (DatabaseId, &SentBan),
) -> Result<Sessions, StoreError> {
    let begun = Instant::now();
    let mut ended = 0;
    // A log-in that comes to an owner of a base later finds the ban.
    let owners = read_owners(store).await?;
    for (owner, _) in owners.iter().filter(|(_, record)| record.kind == OwnerKind::Base) {
        match end_sessions_on(store, bus, banned, (*owner, begun)).await? {
            Sessions::Ended(sessions) => ended += sessions,
            unconfirmed @ Sessions::Unconfirmed(_) => return Ok(unconfirmed),
        }
    }
    Ok(Sessions::Ended(ended))
}

async fn end_sessions_on(
    store: &Store,
    (bus, subjects): (&Bus, &Subjects),
    (account, sent): (DatabaseId, &SentBan),
    (owner, begun): (OwnerId, Instant),
) -> Result<Sessions, StoreError> {
    loop {
        let session = bans::session_on(store, account, owner).await?;
        let end = EndSessions {
            session: session.map_or(0, |session| session.0),
            ban: Some(WireBan::from(sent)),
        };
        let ask = OperatorOrder {
            database: account.0,
            order: Vec::new(),
            end_sessions: Some(end),
        };
        let asked: Result<OperatorOrdered, AskError> = request(bus, "base", subjects.orders(owner), &ask).await;
        let last = match asked {
            Ok(answer) if answer.ended => return Ok(Sessions::Ended(answer.sessions)),
            Ok(answer) => answer.refused,
            Err(error) => error.to_string(),
        };
        if begun.elapsed() >= TIMEOUT {
            return Ok(Sessions::Unconfirmed(last));
        }
        sleep(PAUSE).await;
    }
}

impl Bans {
    pub(super) async fn run(self, source: &Source) -> Result<ExitCode, RealmError> {
        let account = match &self.who {
            Some(who) => Some(find(&source.store, who).await?),
            None => None,
        };
        let mut records = bans::records(&source.store, account).await?;
        if !self.all {
            // The newest record of an account is the last one.
            let now = clock::wall();
            let newest: Vec<bool> = (0..records.len())
                .map(|at| records.get(at + 1).is_none_or(|(next, ..)| *next != records[at].0))
                .collect();
            let mut newest = newest.into_iter();
            records.retain(|(_, _, record)| newest.next() == Some(true) && record.ban(now).is_some());
        }
        match self.format {
            Format::Table => print_table(&records)?,
            Format::Json => {
                let records: Vec<Value> = records.iter().map(to_json).collect();
                writeln!(stdout(), "{:#}", json!({ "bans": records }))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_table(records: &[(DatabaseId, u32, BanRecord)]) -> io::Result<()> {
    let headings = ["stored", "at", "decision", "by", "reason"].map(|heading| (heading, Align::Left));
    let rows = records.iter().map(|(account, _, record)| {
        let decision = match record.decision {
            Decision::Banned(until) => format!("banned {}", end_of(until)),
            Decision::Lifted => "lifted".to_owned(),
            Decision::Created => "created".to_owned(),
        };
        let (by, reason) = (record.operator.clone(), record.reason.clone());
        [account.to_string(), words::date(record.at), decision, by, reason]
    });
    table::write(&mut stdout(), headings, &rows.collect::<Vec<_>>())
}

fn to_json((account, number, record): &(DatabaseId, u32, BanRecord)) -> Value {
    let (decision, until) = match record.decision {
        Decision::Banned(until) => ("banned", until.map(words::date)),
        Decision::Lifted => ("lifted", None),
        Decision::Created => ("created", None),
    };
    json!({
        "stored": account.0,
        "number": number,
        "at": words::date(record.at),
        "decision": decision,
        "until": until,
        "by": record.operator,
        "reason": record.reason,
    })
}

fn end_of(until: Option<WallTime>) -> String {
    until.map_or_else(
        || "for ever".to_owned(),
        |until| format!("until {}", words::date(until)),
    )
}
