//! Hosts on one machine: network namespaces that a bridge joins. They belong to processes of this program, and end with
//! it, however it ends: nothing is left on the machine.

use std::{
    ffi::OsStr,
    fs, io,
    net::Ipv4Addr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use annals_host::child::{self, Child};
use thiserror::Error;

/// Set to the network namespace that this program was started in, once it has entered one of its own.
const OUTSIDE: &str = "CLUSTER_DEMO_OUTSIDE";

/// The network namespace of a process that reads this.
const OWN_NAMESPACE: &str = "/proc/self/ns/net";

/// The bridge, in the namespace of the players.
const BRIDGE: &str = "hosts";

/// Number of the players' address in the network of the hosts.
const PLAYERS: u8 = 254;

/// Timeout for a process to enter a namespace of its own.
const ENTERED_WITHIN: Duration = Duration::from_secs(10);

/// Why there are no hosts.
#[derive(Debug, Error)]
pub(crate) enum HostsError {
    #[error(
        "{program} cannot be run; it makes the network namespaces that stand for hosts: install iproute2 and util-linux"
    )]
    Tool { program: String, source: io::Error },
    #[error(
        "hosts are network namespaces, which need root and a kernel with veth and bridge: `{command}` failed: {said}. \
         Run this as root (sudo make cluster), outside of a container that forbids it"
    )]
    Refused { command: String, said: String },
    #[error("the network namespace of a host was not made within {} s", ENTERED_WITHIN.as_secs())]
    Slow,
    #[error("{path} cannot be read", path = path.display())]
    File { path: PathBuf, source: io::Error },
}

/// A host of the cluster.
#[derive(Debug)]
pub(crate) struct Host {
    number: u8,
    /// Keeps the namespace until a service runs in it.
    keeper: Child,
}

impl Host {
    pub(crate) fn address(&self) -> Ipv4Addr {
        address(self.number)
    }

    /// A command that runs a program on this host.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = child::command("nsenter");
        command.arg(self.entry()).arg("--").arg(program);
        command
    }

    /// Takes the host's cable out: packets vanish, and no connection is closed.
    ///
    /// # Errors
    /// When the system refuses it.
    pub(crate) fn cut_off(&self) -> Result<(), HostsError> {
        ip(&["link", "set", &self.port(), "down"])
    }

    /// Puts it in again.
    ///
    /// # Errors
    /// When the system refuses it.
    pub(crate) fn join(&self) -> Result<(), HostsError> {
        ip(&["link", "set", &self.port(), "up"])
    }

    /// Its port of the bridge.
    fn port(&self) -> String {
        format!("port{}", self.number)
    }

    fn entry(&self) -> String {
        format!("--net=/proc/{}/ns/net", self.keeper.id())
    }

    fn begin(number: u8) -> Result<Self, HostsError> {
        let mut command = child::command("unshare");
        command.args(["--net", "--", "sleep", "infinity"]);
        let keeper = Child::spawn(command).map_err(|source| HostsError::Tool {
            program: "unshare".to_owned(),
            source,
        })?;
        let host = Self { number, keeper };
        host.wait_for_namespace()?;
        let (port, process) = (host.port(), host.keeper.id().to_string());
        ip(&[
            "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &process,
        ])?;
        ip(&["link", "set", &port, "master", BRIDGE, "up"])?;
        let entry = host.entry();
        let address = format!("{}/24", host.address());
        for inside in [
            &["link", "set", "lo", "up"][..],
            &["address", "add", &address, "dev", "eth0"],
            &["link", "set", "eth0", "up"],
        ] {
            run("nsenter", &[&[entry.as_str(), "--", "ip"], inside].concat())?;
        }
        Ok(host)
    }

    fn wait_for_namespace(&self) -> Result<(), HostsError> {
        let own = namespace(Path::new(OWN_NAMESPACE))?;
        let its = PathBuf::from(format!("/proc/{}/ns/net", self.keeper.id()));
        let patience = Instant::now() + ENTERED_WITHIN;
        while namespace(&its)? == own {
            if Instant::now() > patience {
                return Err(HostsError::Slow);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// Starts this program again in a network namespace of its own, unless it is in one already.
///
/// # Errors
/// When the system forbids it, or lacks a tool.
pub(crate) fn enter() -> Result<(), HostsError> {
    let present = namespace(Path::new(OWN_NAMESPACE))?;
    if std::env::var_os(OUTSIDE).is_some_and(|outside| outside != present.as_os_str()) {
        return Ok(());
    }
    for (program, arguments) in [
        ("ip", &["-Version"][..]),
        ("nsenter", &["--version"]),
        (
            "unshare",
            &["--net", "--", "ip", "link", "add", BRIDGE, "type", "bridge"],
        ),
    ] {
        run(program, arguments)?;
    }
    let own = std::env::current_exe().map_err(|source| HostsError::File {
        path: "/proc/self/exe".into(),
        source,
    })?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--"]).arg(own).args(std::env::args_os().skip(1));
    // Returns only if it fails.
    let source = command.env(OUTSIDE, present).exec();
    Err(HostsError::Tool {
        program: "unshare".to_owned(),
        source,
    })
}

/// Makes hosts, and the bridge that joins them with one another and with the players, who are in the namespace of this
/// program.
///
/// # Errors
/// When the system refuses it.
pub(crate) fn build(count: u8) -> Result<Vec<Host>, HostsError> {
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["address", "add", &format!("{}/24", address(PLAYERS)), "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])?;
    (1..=count).map(Host::begin).collect()
}

/// A private address: no packet leaves the namespaces.
fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 83, 0, number)
}

fn namespace(path: &Path) -> Result<PathBuf, HostsError> {
    fs::read_link(path).map_err(|source| HostsError::File {
        path: path.to_owned(),
        source,
    })
}

fn ip(arguments: &[&str]) -> Result<(), HostsError> {
    run("ip", arguments)
}

fn run(program: &str, arguments: &[impl AsRef<OsStr>]) -> Result<(), HostsError> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|source| HostsError::Tool {
        program: program.to_owned(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = arguments.iter().map(|argument| argument.as_ref().to_string_lossy());
    let command = words.fold(program.to_owned(), |command, word| command + " " + &word);
    Err(HostsError::Refused {
        command,
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
