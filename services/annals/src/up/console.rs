//! The console of a realm: a process beside it, at which an operator logs in by one-time links.

use std::{
    fs::{self, OpenOptions},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use annals_console::command::{self, ADDRESS, ConsoleError};
use annals_host::child::{self, Child};
use thiserror::Error;

use super::{POLL_INTERVAL, Realm, log_of, sibling, supervision::Restarts};

/// Name of the person whom the links log in.
const OPERATOR: &str = "operator";

/// Time for a console to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(30);

/// A console that runs.
#[derive(Debug)]
pub(super) struct RealmConsole {
    /// `None` once it has ended too often.
    child: Option<Child>,
    /// The configured address to listen on; after the first start, the one that it has.
    listen: SocketAddr,
    restarts: Restarts,
}

/// Why a realm has no console. The realm runs nevertheless.
#[derive(Debug, Error)]
pub enum NoConsole {
    /// Its program does not exist, or cannot be started.
    #[error("{program} cannot be started; build it first: cargo build --release", program = program.display())]
    Start {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Error with a file or folder.
    #[error("{path} cannot be used", path = path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The operator cannot be added, or no link can be made.
    #[error("no operator can log in")]
    Operator(#[from] ConsoleError),
    /// It ended.
    #[error("it ended with {status}; see {log}", log = log.display())]
    Ended { status: ExitStatus, log: PathBuf },
    /// It takes too long.
    #[error("it does not listen after {} s; see {log}", LISTENS_WITHIN.as_secs(), log = log.display())]
    Slow { log: PathBuf },
}

impl Realm {
    /// Starts the console, and waits until it listens. Returns a link with which an operator logs in once.
    ///
    /// # Errors
    /// The reason that there is none; the realm runs nevertheless.
    pub async fn start_console(&mut self, listen: SocketAddr) -> Result<String, NoConsole> {
        let folder = self.console_folder();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| NoConsole::File { path, source }
        };
        command::add_operator(&folder, OPERATOR)?;
        let log = log_of(&self.plan.data, "console");
        if log.exists() {
            fs::rename(&log, log.with_extension("log.before")).map_err(failed(&log))?;
        }
        let mut console = RealmConsole {
            child: Some(self.launch_console(listen)?),
            listen,
            restarts: Restarts::default(),
        };
        console.listen = self.wait_for_console(&mut console).await?;
        self.console = Some(console);
        Ok(command::sign_in_link(&folder, OPERATOR)?)
    }

    /// Waits until a console listens; returns where.
    async fn wait_for_console(&self, console: &mut RealmConsole) -> Result<SocketAddr, NoConsole> {
        let folder = self.console_folder();
        let log = log_of(&self.plan.data, "console");
        let patience = Instant::now() + LISTENS_WITHIN;
        loop {
            let ended = console.ended().map_err(|source| NoConsole::File {
                path: log.clone(),
                source,
            })?;
            if let Some(status) = ended {
                return Err(NoConsole::Ended { status, log });
            }
            let address = command::address(&folder);
            let address = address
                .as_deref()
                .and_then(|url| url.strip_prefix("http://")?.parse().ok());
            if let Some(address) = address {
                return Ok(address);
            }
            if Instant::now() >= patience {
                return Err(NoConsole::Slow { log });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Sends SIGTERM to the console, and waits for its end.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) async fn end_console(&mut self) -> io::Result<()> {
        match self.console.as_mut().and_then(|console| console.child.as_mut()) {
            Some(child) => child.stop().await.map(drop),
            None => Ok(()),
        }
    }

    /// Starts the console again where it listened, and waits until it listens there.
    ///
    /// # Errors
    /// The reason that there is none; the realm runs nevertheless.
    pub(crate) async fn start_console_again(&mut self) -> Result<(), NoConsole> {
        let Some(mut console) = self.console.take() else {
            return Ok(());
        };
        console.child = Some(self.launch_console(console.listen)?);
        console.listen = self.wait_for_console(&mut console).await?;
        self.console = Some(console);
        Ok(())
    }

    /// The process id of the console, if it runs.
    pub fn console(&self) -> Option<u32> {
        Some(self.console.as_ref()?.child.as_ref()?.id())
    }

    /// Restarts the console if it has ended; returns what happened, for the reader.
    pub(super) fn supervise_console(&mut self) -> Option<String> {
        let console = self.console.as_mut()?;
        let status = console.ended().ok().flatten()?;
        let may_restart = console.restarts.allow(Instant::now());
        let listen = console.listen;
        let log = log_of(&self.plan.data, "console");
        let restarted = match may_restart {
            true => self.launch_console(listen).map_err(|error| error.to_string()),
            false => Err(format!("it has ended too often; see {}", log.display())),
        };
        let (child, said) = match restarted {
            Ok(child) => {
                let said = format!(
                    "the console ended with {status} and was restarted; annals-console link {OPERATOR} --folder {} \
                     makes another sign-in link",
                    self.console_folder().display()
                );
                (Some(child), said)
            }
            Err(why) => (
                None,
                format!("the console ended with {status} and is not restarted: {why}"),
            ),
        };
        if let Some(console) = &mut self.console {
            console.child = child;
        }
        Some(said)
    }

    /// Stops the console: it asks services that are about to end.
    pub(super) async fn stop_console(&mut self) -> io::Result<()> {
        let child = self.console.take().and_then(|console| console.child);
        match child {
            Some(mut child) => child.stop().await.map(drop),
            None => Ok(()),
        }
    }

    fn console_folder(&self) -> PathBuf {
        self.plan.data.join("console")
    }

    fn launch_console(&self, listen: SocketAddr) -> Result<Child, NoConsole> {
        let folder = self.console_folder();
        let log = log_of(&self.plan.data, "console");
        let failed = |path: PathBuf| move |source| NoConsole::File { path, source };
        let output = OpenOptions::new().create(true).append(true).open(&log);
        let output = output.map_err(failed(log.clone()))?;
        let errors = output.try_clone().map_err(failed(log))?;
        // The address of an earlier run would be taken for this one's.
        let announced = folder.join(ADDRESS);
        if announced.exists() {
            fs::remove_file(&announced).map_err(failed(announced))?;
        }
        let program = sibling("annals-console");
        let mut command: Command = child::command(&program);
        command.args(["serve", "--realm", &self.plan.realm, "--nats", &self.nats.url()]);
        command.args(["--listen", &listen.to_string()]);
        command.arg("--folder").arg(&folder);
        // This console has no proxy.
        command.env_remove("ANNALS_CONSOLE_URL");
        command.stdout(output).stderr(errors);
        Child::spawn(command).map_err(|source| NoConsole::Start { program, source })
    }
}

impl RealmConsole {
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => child.ended(),
            None => Ok(None),
        }
    }
}
