//! `annals-console`: the command line for operators.

use std::{
    fs,
    io::{self, BufRead, IsTerminal, Write, stdin, stdout},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_audit::IndexError;
use annals_host::{
    clock,
    config::{LogFilter, LogFormat},
    log_source::{KeptRealm, NamedRealm, SourceError},
    process::{random, stop_signal},
    release,
    telemetry::Chain,
};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use thiserror::Error;
use tokio::net::TcpListener;

use crate::{
    casework::Casework,
    links::{self, LinkError, Links},
    people::{PASSWORD_BYTES, People, PeopleError, Role},
    serve::serve,
    sessions::Token,
    site::{Parts, site},
    views::{Head, ViewLog, ViewsError, check},
};

/// File of the console's persons, in its folder.
const PEOPLE: &str = "people.toml";

/// File with the address of the console for browsers, in its folder.
pub const ADDRESS: &str = "address";

/// The browser pages of a realm: the auditors' casework, and for operators the live realm.
#[derive(Debug, clap::Parser)]
#[command(name = "annals-console", version = release::text())]
pub struct Console {
    #[command(subcommand)]
    command: Commands,
    /// Folder of this console: its persons, its record of views, and its index of the archive
    #[arg(
        long,
        global = true,
        env = "ANNALS_CONSOLE_FOLDER",
        value_name = "DIR",
        default_value = "annals-console"
    )]
    folder: PathBuf,
    /// Log filter: a level, or levels by module
    #[arg(
        long,
        global = true,
        env = "ANNALS_LOG",
        value_name = "LEVELS",
        default_value = "info,async_nats=warn"
    )]
    pub log: LogFilter,
    /// Log format: text or json
    #[arg(
        long,
        global = true,
        env = "ANNALS_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: LogFormat,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Serve the pages until interrupted
    Serve(Box<Serving>),
    /// Manage the persons that may log in, and their roles
    #[command(subcommand)]
    Person(Persons),
    /// Print a link that logs a person in once, within ten minutes, at the console that runs in this folder
    Link {
        /// Log-in name of the person
        name: String,
    },
    /// Verify the record of views and print it; exit code 1: the record was changed
    Views {
        /// An earlier position of the record, as this command printed it: number of views and hash of the last; may be
        /// given several times
        #[arg(long, value_name = "NUMBER:HASH")]
        kept: Vec<Head>,
    },
}

#[derive(Debug, clap::Args)]
struct Serving {
    #[command(flatten)]
    named: NamedRealm,
    #[command(flatten)]
    kept: KeptRealm,
    /// Address to listen on; port 0 lets the system choose. Must be local, unless the console runs behind a TLS proxy
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7780")]
    listen: SocketAddr,
    /// The console runs behind a proxy that terminates TLS and appends to X-Forwarded-For; no other client may reach
    /// the console
    #[arg(long)]
    behind_proxy: bool,
    /// Address at which the proxy serves the pages, such as https://console.example.org; one-time links begin with it
    #[arg(long, env = "ANNALS_CONSOLE_URL", value_name = "URL", requires = "behind_proxy", value_parser = browser_address)]
    url: Option<String>,
}

/// An address that a link can begin with: scheme, host and port. The pages are at the root of their host, and their
/// cookies are sent over HTTPS only.
fn browser_address(text: &str) -> Result<String, String> {
    let address = text.strip_suffix('/').unwrap_or(text);
    match address.strip_prefix("https://") {
        Some(host) if is_host(host) => Ok(address.to_owned()),
        _ => Err("expected https:// with a host and no path, such as https://console.example.org".to_owned()),
    }
}

fn is_host(text: &str) -> bool {
    let is_of_host = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    !text.is_empty() && text.chars().all(is_of_host)
}

#[derive(Debug, clap::Subcommand)]
enum Persons {
    /// Add a person; the password is read from the terminal, or from standard input
    Add {
        /// Log-in name
        name: String,
        /// Role: auditor or operator
        #[arg(long)]
        role: Role,
        /// Add the person without a password: they log in by one-time links only
        #[arg(long)]
        by_link: bool,
    },
    /// Remove a person; their sessions end at the next request
    Remove {
        /// Log-in name
        name: String,
    },
    /// List the persons and their roles
    List,
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum ConsoleError {
    #[error("the folder {} cannot be used", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the archive cannot be opened")]
    Source(#[from] SourceError),
    #[error("the index cannot be opened; --folder names another folder")]
    Index(#[from] IndexError),
    #[error("the record of views cannot be written")]
    Views(#[from] ViewsError),
    #[error(transparent)]
    People(#[from] PeopleError),
    #[error(
        "{0} is reachable from other machines and passwords would be sent unencrypted: run it behind a TLS proxy \
         with --behind-proxy"
    )]
    Open(SocketAddr),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the address of the console is not known: start it in this folder first")]
    NeverRan,
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the server failed")]
    Serve(#[source] io::Error),
    #[error("no password was given")]
    Password(#[source] io::Error),
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

impl Console {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match self.work().await {
            Ok(()) => ExitCode::SUCCESS,
            // A closed pipe means that the reader has seen enough.
            Err(ConsoleError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                let is_finding = matches!(
                    &error,
                    ConsoleError::Views(
                        ViewsError::NoView { .. } | ViewsError::Unchained { .. } | ViewsError::NotKept(_)
                    )
                );
                ExitCode::from(if is_finding { 1 } else { 2 })
            }
        }
    }

    async fn work(self) -> Result<(), ConsoleError> {
        let (people, views) = (self.folder.join(PEOPLE), self.folder.join("views.log"));
        match self.command {
            Commands::Views { kept } => {
                let mut out = io::BufWriter::new(stdout().lock());
                let mut printed = Ok(());
                let head = check(&views, &kept, |view| {
                    if printed.is_ok() {
                        printed = writeln!(out, "{view}");
                    }
                });
                printed?;
                out.flush()?;
                let head = head?;
                eprintln!(
                    "{} views, each as it was written; to be kept elsewhere: {head}",
                    head.number
                );
            }
            Commands::Person(Persons::List) => {
                for person in People::read(&people)?.all() {
                    writeln!(stdout(), "{} {}", person.name, person.role)?;
                }
            }
            Commands::Person(Persons::Add { name, role, by_link }) => {
                make(&self.folder)?;
                let mut all = People::read(&people)?;
                match by_link {
                    true => all.add_without_password(&name, role)?,
                    false => all.add(&name, role, &password().map_err(ConsoleError::Password)?)?,
                }
                all.write(&people)?;
            }
            Commands::Link { name } => {
                let link = sign_in_link(&self.folder, &name)?;
                writeln!(stdout(), "{link}")?;
                eprintln!("works once, within {} minutes", links::LIFETIME.as_secs() / 60);
            }
            Commands::Person(Persons::Remove { name }) => {
                let mut all = People::read(&people)?;
                all.remove(&name)?;
                all.write(&people)?;
            }
            Commands::Serve(serving) => {
                make(&self.folder)?;
                if People::read(&people)?.all().next().is_none() {
                    // It serves all the same: where it runs in a container, persons are added from within that.
                    tracing::warn!(
                        "nobody can log in yet: add a person with annals-console person add NAME --role auditor"
                    );
                }
                let views = ViewLog::open(&views, clock::wall())?;
                serving.run(self.folder, people, views).await?;
            }
        }
        Ok(())
    }
}

impl Serving {
    async fn run(self, folder: PathBuf, people: PathBuf, views: ViewLog) -> Result<(), ConsoleError> {
        let address = self.listen;
        if !address.ip().is_loopback() && !self.behind_proxy {
            return Err(ConsoleError::Open(address));
        }
        let stop = stop_signal();
        let source = self.kept.stored(&self.named.settings()).await?;
        let casework = Casework::open(source, &folder.join("index")).await?;
        let failed = |source| ConsoleError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let pages = site(Parts {
            casework,
            people,
            views,
            links: Links::of(&folder),
            behind_proxy: self.behind_proxy,
            stop: stop.clone(),
        });
        let url = self.url.unwrap_or_else(|| format!("http://{address}"));
        announce(&folder, &url)?;
        writeln!(stdout(), "the console is at http://{address}/")?;
        serve(listener, pages, stop).await.map_err(ConsoleError::Serve)
    }
}

/// Creates the console's folder, accessible to its owner only.
fn make(folder: &Path) -> Result<(), ConsoleError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| ConsoleError::Folder {
        path: folder.to_owned(),
        source,
    })
}

/// Adds an operator who logs in by links only, unless there is a person with this name. Creates the folder if necessary.
///
/// # Errors
/// If the file of persons cannot be read or written.
pub fn add_operator(folder: &Path, name: &str) -> Result<(), ConsoleError> {
    make(folder)?;
    let path = folder.join(PEOPLE);
    let mut people = People::read(&path)?;
    if people.named(name).is_none() {
        people.add_without_password(name, Role::Operator)?;
        people.write(&path)?;
    }
    Ok(())
}

/// Writes the address of the console for browsers to its folder, for [`sign_in_link`].
fn announce(folder: &Path, url: &str) -> Result<(), ConsoleError> {
    let path = folder.join(ADDRESS);
    let written = annals_host::announcing::announce(&path, url);
    written.map_err(|source| ConsoleError::Folder { path, source })
}

/// The address for browsers of the console that runs in a folder, once it listens.
pub fn address(folder: &Path) -> Option<String> {
    let url = fs::read_to_string(folder.join(ADDRESS)).ok()?;
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    is_host(host).then(|| url.clone())
}

/// Makes a one-time sign-in link for a person of the console that runs in a folder.
///
/// # Errors
/// If there is no such person, no console has run there, or the link cannot be stored.
pub fn sign_in_link(folder: &Path, name: &str) -> Result<String, ConsoleError> {
    if People::read(&folder.join(PEOPLE))?.named(name).is_none() {
        return Err(PeopleError::Unknown(name.to_owned()).into());
    }
    let address = address(folder).ok_or(ConsoleError::NeverRan)?;
    let token = Token::new(random());
    Links::of(folder).make(clock::wall(), name, &token)?;
    Ok(format!("{address}/enter/{}", token.text()))
}

/// Reads a password; a terminal does not echo it.
fn password() -> io::Result<String> {
    let input = stdin();
    let read = || {
        let mut line = String::new();
        io::Read::take(stdin().lock(), PASSWORD_BYTES as u64 + 2).read_line(&mut line)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    };
    if !input.is_terminal() {
        return read();
    }
    eprint!("password: ");
    let shown = tcgetattr(&input)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &hidden)?;
    let line = read();
    tcsetattr(&input, OptionalActions::Flush, &shown)?;
    eprintln!();
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_begins_with_an_address_for_browsers() {
        for (text, url) in [
            ("https://console.example.org", "https://console.example.org"),
            ("https://console.example.org/", "https://console.example.org"),
            ("https://[::1]:7780", "https://[::1]:7780"),
        ] {
            assert_eq!(browser_address(text).as_deref(), Ok(url));
        }
        let wrong = [
            "",
            "console.example.org",
            "https://",
            "https:///",
            "http://a",
            "ftp://a",
            "https://a b",
        ];
        for text in wrong
            .into_iter()
            .chain(["https://a?b", "https://a\"b", "https://a/console"])
        {
            assert!(browser_address(text).is_err(), "{text:?}");
        }
    }
}
