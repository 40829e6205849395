//! A realm that is measured from outside.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use annals_bots::{
    bots::{self, BotPlan, BotsReport, Conduct, Reads},
    progress::Progress,
};
use annals_client::Trust;
use annals_def::check_dir;
use annals_host::child::{self, Child};
use annals_ids::Hash;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

/// Its name.
pub(crate) const REALM: &str = "bench";

/// The world, relative to the root of the repository: the sample, whose avatars echo a number through base and cell.
pub(crate) const WORLD: &str = "defs";

/// Timeout of every step of a measurement.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Deviations from the default.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Number of base processes, and of cell processes.
    pub(crate) each: usize,
    /// The only core on which it runs.
    pub(crate) core: Option<usize>,
    /// Settings, as environment variables.
    pub(crate) settings: Vec<(String, String)>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            each: 2,
            core: None,
            settings: Vec::new(),
        }
    }
}

/// A realm of separate processes, as `annals up` runs it.
pub(crate) struct Realm {
    up: Child,
    /// The login address and its certificate hash.
    pub(crate) login: (SocketAddr, Hash),
    pub(crate) nats: String,
}

impl Realm {
    /// Bots that play there until that time, and write what they are shown below the folder.
    fn bots(&self, bots: usize, until: watch::Receiver<Instant>, directory: &Path) -> BotPlan {
        let (login, certificate) = self.login;
        let files = directory.join("shown");
        fs::create_dir_all(&files).expect("a folder is made");
        BotPlan {
            login,
            trust: Trust::Pinned(certificate),
            password: "a bot's password".to_owned(),
            schema: Arc::new(check_dir(Path::new(WORLD)).0.expect("the sample compiles")),
            bots,
            conduct: Conduct::default(),
            first: 0,
            until,
            resting: watch::channel(false).1,
            seed: 1,
            files,
            prefix: String::new(),
            reads: Reads::Predicted,
        }
    }

    /// Lets bots play while `meanwhile` runs, which begins once all of them are connected. They write what they are shown
    /// below the folder.
    pub(crate) async fn among_bots<T>(
        &self,
        bots: usize,
        directory: &Path,
        meanwhile: impl Future<Output = T>,
    ) -> (BotsReport, T) {
        let (ends, until) = watch::channel(Instant::now() + TIMEOUT * 10);
        let (sender, mut progress) = watch::channel(Progress::default());
        let plan = self.bots(bots, until, directory);
        let watching = async {
            let all = |progress: &Progress| progress.connected >= bots as u64;
            let begun = tokio::time::timeout(TIMEOUT, progress.wait_for(all)).await;
            begun.expect("all bots play in time").expect("bots run");
            let done = meanwhile.await;
            // The bots' end is awaited below.
            let _ = ends.send(Instant::now());
            done
        };
        let (report, done) = tokio::join!(bots::run(plan, sender), watching);
        (report.expect("bots run"), done)
    }

    /// Starts it, with its data in that folder.
    pub(crate) async fn start(directory: &Path, shape: &Shape) -> Self {
        let said = directory.join("said");
        let file = File::create(&said).expect("a file is made");
        let program = beside("annals");
        let mut command = on_core(shape.core, &program);
        command
            .args(["up", "--realm", REALM, "--world", WORLD, "--listen", "127.0.0.1:0"])
            .args(["--bases", &shape.each.to_string(), "--cells", &shape.each.to_string()])
            .envs(shape.settings.iter().map(|(name, value)| (name, value)))
            .arg("--data")
            .arg(directory.join("realm"))
            .stdin(Stdio::null())
            .stderr(file.try_clone().expect("a file handle can be cloned"))
            .stdout(file);
        let mut up = Child::spawn(command).unwrap_or_else(|error| {
            panic!(
                "{} cannot be started ({error}); `make bench` builds it",
                program.display()
            )
        });
        let patience = Instant::now() + TIMEOUT;
        loop {
            let text = fs::read_to_string(&said).expect("what it said can be read");
            if let Some((login, nats)) = addresses(&text) {
                return Self { up, login, nats };
            }
            let ended = up.ended().expect("its status can be read");
            assert!(
                ended.is_none() && Instant::now() < patience,
                "the realm did not come up:\n{text}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The process id of `annals up`.
    pub(crate) fn id(&self) -> u32 {
        self.up.id()
    }

    pub(crate) async fn stop(mut self) {
        let process = i32::try_from(self.up.id()).ok().and_then(Pid::from_raw);
        kill_process(process.expect("a process has an id"), Signal::INT).expect("it runs");
        let patience = Instant::now() + TIMEOUT;
        while self.up.ended().expect("its status can be read").is_none() {
            assert!(Instant::now() < patience, "the realm did not stop");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Login address, certificate hash, and address of the nats-server, from the output of `annals up`.
fn addresses(said: &str) -> Option<((SocketAddr, Hash), String)> {
    let (_, login) = said.split_once("log in at ")?;
    let address = login.lines().next()?;
    let (_, certificate) = login.split_once("fingerprint: ")?;
    let certificate = certificate.lines().next()?;
    let (_, nats) = said.split_once("\nnats ")?;
    let (nats, _) = nats.split_once(", data in ")?;
    Some(((address.parse().ok()?, certificate.parse().ok()?), nats.to_owned()))
}

/// A program of the same build. Cargo puts tests into a folder below that of programs.
pub(crate) fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program knows where it is");
    let beside = own.with_file_name(name);
    match own.parent().and_then(Path::parent) {
        Some(above) if own.parent().is_some_and(|folder| folder.ends_with("deps")) => above.join(name),
        _ => beside,
    }
}

/// Whether the programs of a realm are built.
#[must_use]
pub fn is_built() -> bool {
    let services = ["", "-base", "-cell", "-db", "-director", "-login"];
    services.iter().all(|name| beside(&format!("annals{name}")).exists())
}

/// A command restricted to one core, with all its children.
pub(crate) fn on_core(core: Option<usize>, program: &Path) -> Command {
    let Some(core) = core else {
        return child::command(program);
    };
    let mut command = child::command(Path::new("taskset"));
    command.args(["--cpu-list", &core.to_string()]).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_only_when_complete() {
        let hash = Hash([7; 32]);
        let said = format!(
            "realm bench is up: clients log in at 127.0.0.1:7\nfingerprint: {hash}\nnats nats://127.0.0.1:4222"
        );
        assert_eq!(addresses(&said), None);
        let said = format!("{said}, data in x\n");
        let expected = (
            ("127.0.0.1:7".parse().unwrap(), hash),
            "nats://127.0.0.1:4222".to_owned(),
        );
        assert_eq!(addresses(&said), Some(expected));
    }
}
