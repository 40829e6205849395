//! `annals play`: a realm, bots, and a web page in which people play beside them: of the sample world, or of another game.
//!
//! The page is TypeScript, for the sample in `services/play`: `make play` compiles it into a folder, and this command
//! reads it from there. It is not part of the program, because a build of the workspace must not need a TypeScript
//! compiler.

pub(crate) mod files;
pub(crate) mod page;
mod players;
pub(crate) mod receipts;
mod relay;

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use annals_host::{
    process::{stop_signal, stopped},
    telemetry::Chain,
    world::{WorldError, compile},
};
use thiserror::Error;
use tokio::sync::{mpsc, watch};

use crate::{
    up::{GameBuild, Realm, RealmPlan, UpError},
    up_command,
};
use files::{Files, FilesError};
use page::{NotListening, PageParts};
use players::Players;
use receipts::Receipts;

/// Name of the realm: that of `annals up`, which may run it another time.
const REALM: &str = "annals";

/// Maximum orders of the page to the realm that wait.
const WAITING_ORDERS: usize = 16;

/// What to run, and where.
#[derive(Debug, clap::Args)]
pub struct Play {
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
    /// Bots that walk about, talk and trade
    #[arg(long, default_value_t = 12)]
    bots: usize,
    /// Local address of the page
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7790")]
    page: SocketAddr,
    /// Folder of the compiled page, which `make play` makes
    #[arg(long, value_name = "DIR", default_value = "target/play/page")]
    files: PathBuf,
}

/// Why nobody can play.
#[derive(Debug, Error)]
enum PlayError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Listen(#[from] NotListening),
    #[error("the folder {} cannot be created", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Up(#[from] UpError),
}

impl Play {
    /// Runs the realm, the bots and the page until interrupted.
    pub async fn run(self) -> ExitCode {
        match self.play().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("play: {}", Chain(&error));
                ExitCode::FAILURE
            }
        }
    }

    async fn play(self) -> Result<(), PlayError> {
        let files = Files::read(&self.files)?;
        let schema = compile(&self.world)?;
        let (listener, address) = page::listen(self.page).await?;
        let folder = self.data.join("play");
        create(&folder)?;
        // The realm accepts the page's connections, and those of no other page.
        let plan = RealmPlan {
            settings: vec![("web_origins", page::origin(address))],
            build: GameBuild {
                world: self.world.clone(),
                binaries: self.game.clone(),
                release: None,
            },
            ..RealmPlan::new(REALM, &self.world, &self.data)
        };
        println!("starting a realm in {}", self.data.display());
        let mut realm = Realm::start(plan).await?;
        let players = Players::start(realm.login, &schema, self.bots, &folder);
        let (orders, ordered) = mpsc::channel(WAITING_ORDERS);
        let (stopping, stops) = watch::channel(false);
        let site = page::site(PageParts {
            address,
            files: watch::channel(Arc::new(files)).1,
            login: realm.login,
            data: self.data.clone(),
            orders,
            bots: players.progress(),
            receipts: Receipts::new(realm.settings(), folder),
        });
        let serving = tokio::spawn(annals_console::serve::serve(listener, site, stops));
        println!("nats {}, data in {}", realm.nats(), self.data.display());
        println!("play at {}/", page::origin(address));
        println!("Ctrl-C stops it");
        let kept = realm.keep(stopped(stop_signal()), ordered).await;
        stopping.send_replace(true);
        players.stop().await;
        serving.abort();
        kept?;
        Ok(up_command::stop(realm).await?)
    }
}

fn create(folder: &Path) -> Result<(), PlayError> {
    fs::create_dir_all(folder).map_err(|source| PlayError::Folder {
        path: folder.to_owned(),
        source,
    })
}
