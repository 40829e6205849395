//! `annals dev`: runs a game while it is written. After each change of its files it is built, and processes of the new
//! build replace the others while players stay connected.

mod building;
mod replacing;
mod site;
mod sources;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    process::ExitCode,
};

use annals_db::present_schema;
use annals_host::{
    edge::{EdgeError, WebOrigins, bind_with_web},
    log_source::{KeptRealm, SourceError},
    nats::Access,
    process::{Settings, stop_signal, stopped},
    telemetry::Chain,
};
use annals_store::StoreError;
use thiserror::Error;
use tokio::sync::mpsc;

use crate::{
    play_command::page::{NotListening, listen},
    realm_command::{NotMigrated, migrate_to},
    up::{Realm, RealmPlan, UpError},
    up_command,
};
use building::{Build, Builder, NotBuilt};
use replacing::{NotReplaced, Replacer};
use site::{Page, Site};
use sources::{Digest, Sources};

/// Name of the realm.
const REALM: &str = "dev";

/// Maximum orders to the realm that wait.
const WAITING_ORDERS: usize = 16;

/// What a folder of a game has.
const PARTS: [&str; 5] = ["Cargo.toml", "Makefile", "defs", "src", "page"];

/// Run a game while it is written: build it after each change, and replace its processes while players stay connected.
#[derive(Debug, clap::Args)]
pub struct Dev {
    /// Folder of the game, as `annals new` writes it
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Data folder of the realm [default: dev, in Cargo's target folder]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Address on which clients log in
    #[arg(long, default_value = "127.0.0.1:7700")]
    listen: SocketAddr,
    /// Local address of the game's page
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7790")]
    page: SocketAddr,
}

/// Why the game does not run.
#[derive(Debug, Error)]
enum DevError {
    #[error("{} is no folder of a game: it has no {missing}. `annals new` makes one", dir.display())]
    NoGame { dir: PathBuf, missing: &'static str },
    #[error("changes of the game's files cannot be watched")]
    Watch(#[from] notify::Error),
    #[error(transparent)]
    Build(NotBuilt),
    #[error("the realm's data cannot be read")]
    Source(#[from] SourceError),
    #[error("the realm's data cannot be read")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Page(#[from] NotListening),
    #[error(transparent)]
    LogIn(#[from] EdgeError),
    #[error(transparent)]
    Up(#[from] UpError),
}

/// The game's files, and what is built from them.
struct Game {
    sources: Sources,
    builder: Builder,
    /// The files from which a build was last tried.
    tried: Option<Digest>,
}

impl Game {
    /// Waits until the files differ from those of the last try and can be built.
    ///
    /// # Errors
    /// When a build cannot be tried.
    async fn next_build(&mut self) -> Result<Build, DevError> {
        loop {
            self.sources.differ_from(self.tried).await;
            println!("dev: building");
            match self.builder.build(&self.sources).await {
                Ok((build, digest)) => {
                    self.tried = Some(digest);
                    return Ok(build);
                }
                Err(NotBuilt::Errors { digest, command }) => {
                    self.tried = Some(digest);
                    println!("dev: `{command}` has failed; waiting for a change");
                }
                Err(NotBuilt::World { digest, source }) => {
                    self.tried = Some(digest);
                    println!("dev: {source}; waiting for a change");
                }
                Err(error) => return Err(DevError::Build(error)),
            }
        }
    }
}

impl Dev {
    /// Runs the game until interrupted.
    pub async fn run(self) -> ExitCode {
        match self.develop().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("dev: {}", Chain(&error));
                ExitCode::FAILURE
            }
        }
    }

    async fn develop(self) -> Result<(), DevError> {
        if let Some(missing) = PARTS.into_iter().find(|part| !self.dir.join(part).exists()) {
            return Err(DevError::NoGame { dir: self.dir, missing });
        }
        self.check_addresses().await?;
        let target = target_folder(&self.dir);
        let data = self.data.clone().unwrap_or_else(|| target.join("dev"));
        let mut game = Game {
            sources: Sources::watch(&self.dir)?,
            builder: Builder::new(&self.dir, &target, &data),
            tried: None,
        };
        let stop = stopped(stop_signal());
        tokio::pin!(stop);
        let mut next = None;
        loop {
            let build = match next.take() {
                Some(build) => build,
                None => tokio::select! {
                    () = &mut stop => return Ok(()),
                    build = game.next_build() => build?,
                },
            };
            if !has_definitions(&data, &build).await? {
                println!("dev: no realm runs; waiting for a change");
                continue;
            }
            let site = Site::open(&self.dir, self.page).await?;
            let mut realm = match Realm::start(self.plan(&data, &build, &site)).await {
                Ok(realm) => realm,
                Err(error @ UpError::Ended { .. }) => {
                    println!("dev: {}; waiting for a change", Chain(&error));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            print(&realm, &site);
            match keep(&mut realm, build, (&mut game, site), stop.as_mut()).await {
                Ok(Ended::Stopped) => return Ok(up_command::stop(realm).await?),
                Ok(Ended::Restart(build)) => {
                    up_command::stop(realm).await?;
                    next = Some(build);
                }
                Err(DevError::Up(error @ UpError::Ended { .. })) => {
                    println!("dev: {}; waiting for a change", Chain(&error));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks that the addresses are free, as the first build takes minutes.
    async fn check_addresses(&self) -> Result<(), DevError> {
        listen(self.page).await?;
        // As login binds its own. Nothing is accepted on these.
        bind_with_web(self.listen, WebOrigins::Any)?;
        Ok(())
    }

    fn plan(&self, data: &Path, build: &Build, site: &Site) -> RealmPlan {
        RealmPlan {
            listen: self.listen,
            // The realm accepts the page's WebSockets and no others.
            settings: vec![("web_origins", site.origin())],
            build: build.game.clone(),
            ..RealmPlan::new(REALM, &build.game.world, data)
        }
    }
}

/// How a run of the realm ended.
enum Ended {
    /// The user has stopped it.
    Stopped,
    /// A running realm cannot change to the definitions of this build.
    Restart(Build),
}

/// Keeps a realm running, with the newest build that its game has.
async fn keep(
    realm: &mut Realm,
    first: Build,
    (game, site): (&mut Game, Site),
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, DevError> {
    let (orders, ordered) = mpsc::channel(WAITING_ORDERS);
    let page = site.serve(realm, orders.clone());
    let mut replacer = Replacer::new(realm, first, orders);
    let mut ended = Ok(Ended::Stopped);
    let until = async {
        tokio::select! {
            () = stop => {}
            followed = follow(game, &page, &mut replacer) => ended = followed.map(Ended::Restart),
        }
    };
    realm.keep(until, ordered).await?;
    ended
}

/// Replaces the realm's processes after each change of the game. Returns the build for which the realm must be stopped.
async fn follow(game: &mut Game, page: &Page, replacer: &mut Replacer) -> Result<Build, DevError> {
    loop {
        let build = game.next_build().await?;
        // Before the definitions change: a page that is refused loads itself again.
        let former = page.refresh();
        match replacer.replace(&build).await {
            Ok(done) => println!("dev: {done}"),
            Err(NotReplaced::NeedsStop(why)) => {
                println!("dev: this change is not possible while the realm runs: {why}. Restarting the realm");
                return Ok(build);
            }
            Err(error) => {
                println!("dev: the former build keeps running: {}", Chain(&error));
                page.restore(former);
            }
        }
        game.builder.delete_all_but(Some(replacer.running()));
    }
}

/// Whether the realm's data have the definitions of this build, or none. Data of others are migrated, if possible.
async fn has_definitions(data: &Path, build: &Build) -> Result<bool, DevError> {
    if !data.join("store").exists() {
        return Ok(true);
    }
    let kept = KeptRealm {
        data: Some(data.to_owned()),
        store: None,
    };
    let settings = Settings {
        realm: REALM.parse().expect("invariant: the name is valid"),
        // No nats-server is needed for a realm that does not run.
        nats: String::new(),
        access: Access::default(),
        replicas: 1,
    };
    let present = present_schema(&kept.stored(&settings).await?.store).await?;
    if present.is_none_or(|present| present.fingerprint() == build.schema.fingerprint()) {
        return Ok(true);
    }
    match migrate_to(&build.game.world, &kept, &settings).await {
        Ok(()) => Ok(true),
        Err(error) => {
            report(&error, data);
            Ok(false)
        }
    }
}

fn report(error: &NotMigrated, data: &Path) {
    println!("dev: the realm's data do not fit the definitions: {}", Chain(error));
    println!(
        "dev: change the definitions, or stop, remove {}, and begin anew",
        data.display()
    );
}

fn print(realm: &Realm, site: &Site) {
    let (address, certificate) = realm.login;
    // Not those of the build, which the next one replaces.
    let world = site.definitions();
    let world = world.display();
    println!("dev: the realm is up: clients log in at {address}. To run bots:");
    println!("  annals bots --login {address} --certificate {certificate} --world {world}");
    println!("nats {}, data in {}", realm.nats(), realm.plan().data.display());
    match site.has_page() {
        true => println!("play at {}/", site.origin()),
        false => println!("there is no page in {}: `make page` says why", site.folder().display()),
    }
    println!("Change the game's files, and it is replaced while players stay connected; Ctrl-C stops it");
}

/// Cargo's target folder of a game.
fn target_folder(dir: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        // Relative to the current folder, as for Cargo.
        Some(target) if !target.is_empty() => PathBuf::from(target),
        _ => dir.join("target"),
    }
}
