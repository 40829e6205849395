//! `annals bots`: bots that play in a running realm.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_bots::{
    bots::{self, BotPlan, BotsError, BotsReport, Reads},
    progress::Progress,
};
use annals_client::Trust;
use annals_def::Schema;
use annals_host::{
    telemetry::Chain,
    world::{WorldError, compile},
};
use annals_ids::Hash;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::watch;

use crate::progress::ProgressView;

/// The password of the bots' accounts.
pub(crate) const PASSWORD: &str = "a password for bots";

/// Who plays, where, and for how long.
#[derive(Debug, clap::Args)]
pub struct Bots {
    /// Address of the realm's login service
    #[arg(long, default_value = "127.0.0.1:7700")]
    login: SocketAddr,
    /// SHA-256 fingerprint of its certificate, as `annals up` prints it
    #[arg(long)]
    certificate: Hash,
    /// Folder of the realm's definitions
    #[arg(long, default_value = "defs")]
    world: PathBuf,
    /// Bots, as accounts bot0, bot1 and so on
    #[arg(long, default_value_t = 100)]
    bots: usize,
    /// Number of the first account, so that several runs of bots can share a realm
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Duration in seconds
    #[arg(long, default_value_t = 30)]
    duration: u64,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the record of what bots were shown, the input of `annals check`; created if missing
    #[arg(long, default_value = "target/bots")]
    files: PathBuf,
    /// Request plain movements only, to compare bytes
    #[arg(long)]
    plain_movements: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct Summary {
    bots: usize,
    has_played: bool,
    log_ins: u64,
    resumed: u64,
    /// By bot, why sessions ended that the bot did not end.
    ended: BTreeMap<String, Vec<String>>,
    calls: u64,
    in_view: f64,
    bytes_per_second: f64,
    moves_bytes_per_second: f64,
    round_trip_p50_us: u64,
    round_trip_p99_us: u64,
}

/// Why there is no report.
#[derive(Debug, Error)]
enum BotsCommandError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error("{path} cannot be created", path = path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the bots cannot run")]
    Bots(#[from] BotsError),
    #[error("the report cannot be encoded as JSON")]
    Json(#[from] serde_json::Error),
}

impl Bots {
    /// Lets bots play. The exit code is 0 if all logged in and none was disconnected by the server.
    pub async fn run(self) -> ExitCode {
        match self.play().await {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("bots: {}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }

    async fn play(self) -> Result<bool, BotsCommandError> {
        let schema = compile(&self.world)?;
        fs::create_dir_all(&self.files).map_err(|source| BotsCommandError::Folder {
            path: self.files.clone(),
            source,
        })?;
        let duration = Duration::from_secs(self.duration);
        let (_until, until) = watch::channel(Instant::now() + duration);
        let (_resting, resting) = watch::channel(false);
        let plan = BotPlan {
            login: self.login,
            trust: Trust::Pinned(self.certificate),
            password: PASSWORD.to_owned(),
            schema: Arc::clone(&schema),
            bots: self.bots,
            first: self.first,
            until,
            resting,
            seed: self.seed,
            files: self.files,
            reads: if self.plain_movements {
                Reads::Plain
            } else {
                Reads::Predicted
            },
        };
        let (sender, progress) = watch::channel(Progress::default());
        let view = ProgressView::new(duration);
        let (report, ()) = tokio::join!(bots::run(plan, sender), view.follow(progress));
        let report = report?;
        if self.json {
            println!("{}", serde_json::to_string(&summary(&report))?);
        } else {
            print_play(&report, &schema, self.bots);
            print_ends(&report);
        }
        let outside = report.total(|bot| u64::from(bot.log_ins == 0));
        if outside > 0 {
            eprintln!(
                "bots: {outside} bots never logged in; check that a realm of this world listens at {} and that \
                 --certificate is its fingerprint",
                self.login
            );
        }
        Ok(report.has_played())
    }
}

fn summary(report: &BotsReport) -> Summary {
    let (bytes_per_second, moves_bytes_per_second) = report.bytes_per_second();
    let trips = report.round_trips();
    let at = |quantile| {
        if trips.is_empty() {
            0
        } else {
            trips.value_at_quantile(quantile)
        }
    };
    Summary {
        bots: report.bots.len(),
        has_played: report.has_played(),
        log_ins: report.total(|bot| bot.log_ins),
        resumed: report.total(|bot| bot.resumed),
        ended: ended(report),
        calls: report.total(|bot| bot.calls),
        in_view: report.in_view(),
        bytes_per_second,
        moves_bytes_per_second,
        round_trip_p50_us: at(0.5),
        round_trip_p99_us: at(0.99),
    }
}

/// Prints the results of the bots.
pub(crate) fn print_play(report: &BotsReport, schema: &Schema, bots: usize) {
    let total = |figure: fn(&bots::BotReport) -> u64| report.total(figure);
    println!(
        "  log-ins {} of {bots}; calls {} ({} taken, {} refused); property changes shown {}, client methods {}",
        total(|bot| bot.log_ins),
        total(|bot| bot.calls),
        total(|bot| bot.confirmed),
        total(|bot| bot.refused.values().sum()),
        total(|bot| bot.changes),
        total(|bot| bot.invocations)
    );
    for (what, count) in report.refusals(schema) {
        println!("  refused {count} times: {what}");
    }
    let (bytes, moves) = report.bytes_per_second();
    println!(
        "  {:.0} others in view; {bytes:.0} bytes/s per client, {moves:.0} of them movements; sessions resumed {}; \
         views restarted {}",
        report.in_view(),
        total(|bot| bot.resumed),
        total(|bot| bot.holes)
    );
    let trips = report.round_trips();
    if !trips.is_empty() {
        let ms = |quantile| trips.value_at_quantile(quantile) as f64 / 1_000.0;
        println!(
            "  round trip bot → base → cell → bot: p50 {:.1} ms, p99 {:.1} ms",
            ms(0.5),
            ms(0.99)
        );
    }
    let exposed: usize = schema
        .types()
        .iter()
        .map(|found| found.exposed_base_methods().len() + found.exposed_cell_methods().len())
        .sum();
    let undriven = report.undriven(schema);
    let missing = if undriven.is_empty() {
        String::new()
    } else {
        format!("; not called: {}", undriven.join(", "))
    };
    println!(
        "  exposed methods driven {} of {exposed}{missing}",
        report.driven().len()
    );
}

/// Prints which sessions ended early, and why.
pub(crate) fn print_ends(report: &BotsReport) {
    for (name, ends) in ended(report) {
        println!("  {name} ended: {}", ends.join(", "));
    }
}

/// By bot, why sessions ended that the bot did not end.
fn ended(report: &BotsReport) -> BTreeMap<String, Vec<String>> {
    let ended = report.bots.iter().filter(|bot| !bot.ended.is_empty());
    ended
        .map(|bot| {
            let ends = bot.ended.iter().map(ToString::to_string).collect();
            (bot.name.clone(), ends)
        })
        .collect()
}
