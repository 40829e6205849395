//! Builds a game by its Makefile, and keeps what processes are started from.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use annals_def::Schema;
use annals_host::world::{WorldError, compile};
use annals_ids::Hash;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::{process::Command, time::Instant};

use super::sources::{Digest, Sources};
use crate::up::GameBuild;

/// The game's binaries.
const BINARIES: [&str; 2] = ["annals-base", "annals-cell"];

/// A build of a game. Its files stay as they are while the next one is made: a process that is restarted has the
/// definitions and the binary that it had before.
#[derive(Clone)]
pub(super) struct Build {
    pub(super) game: GameBuild,
    pub(super) schema: Arc<Schema>,
    /// SHA-256 of the binaries.
    pub(super) binaries: Hash,
    /// How long it took.
    pub(super) took: Duration,
}

/// Why there is no build.
#[derive(Debug, Error)]
pub(super) enum NotBuilt {
    /// The game has errors, which the command has printed.
    #[error("`{command}` has failed")]
    Errors { digest: Digest, command: String },
    #[error("make cannot be started; install it")]
    Make(#[source] io::Error),
    #[error("the path of this program is unknown")]
    NoProgram(#[source] io::Error),
    #[error("{} cannot be copied to {}", from.display(), to.display())]
    Copy {
        from: PathBuf,
        to: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The definitions have changed since the command checked them.
    #[error("{source}")]
    World { digest: Digest, source: WorldError },
}

/// Builds a game.
pub(super) struct Builder {
    dir: PathBuf,
    /// The folder of the binaries that Cargo makes.
    made: PathBuf,
    /// The folder of the builds.
    builds: PathBuf,
    count: u64,
}

impl Builder {
    pub(super) fn new(dir: &Path, target: &Path, data: &Path) -> Self {
        let builder = Self {
            dir: dir.to_owned(),
            made: target.join("debug"),
            builds: data.join("builds"),
            count: 0,
        };
        // Those of an earlier run.
        builder.delete_all_but(None);
        builder
    }

    /// Deletes the files of all builds but the one that runs.
    pub(super) fn delete_all_but(&self, running: Option<&Build>) {
        let running = running.and_then(|build| build.game.binaries.as_deref());
        for entry in fs::read_dir(&self.builds).into_iter().flatten().flatten() {
            // What cannot be deleted is tried again after the next build.
            if running != Some(entry.path().as_path()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Builds the game: `make defs` and `make build`, whose output goes to the terminal. Returns the digest of the files
    /// that it was built from.
    ///
    /// # Errors
    /// When the game has errors, or the build cannot be kept.
    pub(super) async fn build(&mut self, sources: &Sources) -> Result<(Build, Digest), NotBuilt> {
        let began = Instant::now();
        // What this generates is among the files that are built.
        let before = sources.digest();
        self.make("defs", before).await?;
        let digest = sources.digest();
        self.count += 1;
        let to = self.builds.join(self.count.to_string());
        let world = to.join("defs");
        copy(&self.dir.join("defs"), &world)?;
        self.make("build", digest).await?;
        let mut hash = Sha256::new();
        for binary in BINARIES {
            let (from, to) = (self.made.join(binary), to.join(binary));
            copy(&from, &to)?;
            let content = fs::read(&to).map_err(|source| NotBuilt::Copy { from, to, source })?;
            hash.update(&content);
        }
        let build = Build {
            schema: compile(&world).map_err(|source| NotBuilt::World { digest, source })?,
            game: GameBuild {
                world,
                binaries: Some(to),
                release: None,
            },
            binaries: Hash(hash.finalize().into()),
            took: began.elapsed(),
        };
        Ok((build, digest))
    }

    async fn make(&self, goal: &str, digest: Digest) -> Result<(), NotBuilt> {
        let annals = env::current_exe().map_err(NotBuilt::NoProgram)?;
        let status = Command::new("make")
            .args(["--no-print-directory", goal])
            .current_dir(&self.dir)
            .env("ANNALS", annals)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .status();
        match status.await.map_err(NotBuilt::Make)?.success() {
            true => Ok(()),
            false => Err(NotBuilt::Errors {
                digest,
                command: format!("make {goal}"),
            }),
        }
    }
}

/// Copies a file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<(), NotBuilt> {
    let failed = |source| NotBuilt::Copy {
        from: from.to_owned(),
        to: to.to_owned(),
        source,
    };
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ()).map_err(failed);
    }
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
