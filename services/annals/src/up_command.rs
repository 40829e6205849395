//! `annals up`: runs a whole realm on this machine until it is interrupted.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use annals_host::{
    config::StoreKind,
    edge::{Identity, WebOrigins},
    nats::{ServerCount, SyncPolicy},
    process::{stop_signal, stopped},
    telemetry::Chain,
};
use annals_store::layout::shards::SHARDS;
use tokio::sync::mpsc;

use crate::up::{GameBuild, Realm, RealmPlan, UpError};

/// What to run, and where.
#[derive(Debug, clap::Args)]
pub struct Up {
    /// Name of the realm
    #[arg(long, default_value = "annals")]
    realm: String,
    /// Folder of the world's definitions
    #[arg(long, default_value = "defs")]
    world: PathBuf,
    /// Folder of the binaries annals-base and annals-cell of a game of its own [default: those with the sample game,
    /// beside this program]
    #[arg(long, value_name = "DIR")]
    game: Option<PathBuf>,
    /// Data folder of the realm
    #[arg(long, default_value = "data")]
    data: PathBuf,
    /// Backend of the realm's store: embedded, or fdb:FILE for the FoundationDB cluster of a cluster file
    #[arg(long, env = "ANNALS_STORE", value_name = "WHERE", default_value_t)]
    store: StoreKind,
    /// Base processes
    #[arg(long, default_value_t = 2)]
    bases: usize,
    /// Cell processes
    #[arg(long, default_value_t = 2)]
    cells: usize,
    /// Director processes: one leads, the others stand by
    #[arg(long, default_value_t = 1)]
    directors: usize,
    /// Minimum number of the realm's shards: a realm that has fewer gets more
    #[arg(long, env = "ANNALS_SHARDS", default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(SHARDS)))]
    shards: u16,
    /// Db processes, at most one for each shard: they divide the folding, and the first serves the store
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    dbs: u16,
    /// Private nats-servers, 1 or 3, each of which keeps every log
    #[arg(long, default_value_t)]
    nats_servers: ServerCount,
    /// Address on which clients log in
    #[arg(long, default_value = "127.0.0.1:7700")]
    listen: SocketAddr,
    /// Host name or address that clients connect to, if it differs from the listening address
    #[arg(long)]
    advertise: Option<String>,
    /// Accept WebTransport and WebSockets, from pages of these origins: *, or a list such as https://game.example
    #[arg(long, env = "ANNALS_WEB_ORIGINS", value_name = "ORIGINS")]
    web_origins: Option<WebOrigins>,
    /// Sync interval of the private nats-server: always, or an interval such as 100ms
    #[arg(long, default_value = "always")]
    sync: SyncPolicy,
    /// Start no signer, if checkpoints are signed elsewhere or not at all
    #[arg(long)]
    no_signer: bool,
    /// Local address of the console, the web pages for operators; by default the system chooses the port
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    console: SocketAddr,
    /// Start no console
    #[arg(long, conflicts_with = "console")]
    no_console: bool,
}

impl Up {
    /// Runs the realm until it is interrupted.
    pub async fn run(self) -> ExitCode {
        let Up {
            realm,
            world,
            game,
            data,
            store,
            bases,
            cells,
            directors,
            shards,
            dbs,
            nats_servers,
            listen,
            advertise,
            web_origins,
            sync,
            no_signer,
            console,
            no_console,
        } = self;
        if dbs > shards {
            eprintln!("--dbs {dbs} is more than --shards {shards}: a db folds at least one shard");
            return ExitCode::from(2);
        }
        let plan = RealmPlan {
            realm,
            build: GameBuild {
                world,
                binaries: game,
                release: None,
            },
            data,
            store,
            shards,
            dbs,
            bases,
            cells,
            directors,
            nats_servers,
            sync,
            listen,
            advertise,
            signer: !no_signer,
            settings: web_origins
                .iter()
                .map(|origins| ("web_origins", origins.to_string()))
                .collect(),
        };
        match keep(plan, (!no_console).then_some(console)).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::FAILURE
            }
        }
    }
}

async fn keep(plan: RealmPlan, console: Option<SocketAddr>) -> Result<(), UpError> {
    let mut realm = Realm::start(plan).await?;
    let (address, certificate) = realm.login;
    println!("realm {} is up: clients log in at {address}", realm.plan().realm);
    println!("log-in certificate, SHA-256 fingerprint: {certificate}");
    let world = realm.plan().build.world.display();
    println!("  for clients, which trust only this certificate. To run bots:");
    println!("  annals bots --login {address} --certificate {certificate} --world {world}");
    if realm.plan().settings.iter().any(|(key, _)| *key == "web_origins") {
        let certificate = Identity::development_file(&realm.plan().data);
        // The development certificate names this host.
        let at = match address.ip().is_loopback() {
            true => format!("localhost:{}", address.port()),
            false => address.to_string(),
        };
        let certificate = certificate.display();
        println!("clients by WebSocket: wss://{at}, with the certificate {certificate}");
        let hashed = realm.plan().data.join("web-certificate-*.pem");
        println!(
            "web pages by WebTransport: https://{address}, with the hashes of {}",
            hashed.display()
        );
    }
    println!("nats {}, data in {}", realm.nats(), realm.plan().data.display());
    for (name, id) in realm.members() {
        println!("  {name}: process {id}");
    }
    if let Some(listen) = console {
        match realm.start_console(listen).await {
            Ok(link) => {
                if let Some(id) = realm.console() {
                    println!("  console: process {id}");
                }
                println!("console for operators; this link logs in once, within ten minutes:");
                println!("  {link}");
            }
            Err(error) => println!("there is no console: {}", Chain(&error)),
        }
    }
    println!("Ctrl-C stops it");
    // Nothing but the signal controls it.
    let (_, orders) = mpsc::channel(1);
    realm.keep(stopped(stop_signal()), orders).await?;
    stop(realm).await
}

/// Stops a realm in order, and prints each stage.
pub(crate) async fn stop(realm: Realm) -> Result<(), UpError> {
    let (name, nats) = (realm.plan().realm.clone(), realm.nats());
    println!("stopping; `annals realm stop --realm {name} --nats {nats}` reports progress");
    realm.close(|line| println!("  {line}")).await
}
