//! A child process: started in its own process group, killed when its handle is dropped, and when this process dies for
//! any reason. Used for the private nats-server, for the services of `annals up`, and by fault tests, which pause and
//! kill.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// How long [`Child::stop`] waits for a process to end by itself before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Poll interval while a process ends.
const POLL: Duration = Duration::from_millis(10);

/// Path on Debian and its derivatives of the tool that ties a child to its parent.
const SETPRIV: &str = "/usr/bin/setpriv";

/// A command that runs `program` so that it is killed when this process ends, by SIGKILL too (except within the
/// millisecond that the start itself takes). On a machine without util-linux it is the plain program. Add arguments,
/// environment and stdio, then pass it to [`Child::spawn`].
pub fn command(program: impl AsRef<OsStr>) -> Command {
    if !Path::new(SETPRIV).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// A running process, or one that has ended and was not restarted.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
}

impl Child {
    /// Starts `command` in its own process group, so that a Ctrl-C at the terminal reaches only this process, which
    /// decides what to stop and in which order.
    ///
    /// # Errors
    /// The operating system's error when it cannot be started.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let (answer, wait) = sync_channel(1);
        spawner()
            .send((command, answer))
            .map_err(|_| io::Error::other("the thread that starts processes has ended"))?;
        let process = wait
            .recv()
            .map_err(|_| io::Error::other("the thread that starts processes has ended"))??;
        Ok(Self { process })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its exit status; `None` while it runs (a paused process runs).
    ///
    /// # Errors
    /// The operating system's error.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Freezes the process with SIGSTOP, which it cannot observe. On return all of its threads have stopped, which on a
    /// busy machine takes a while after the signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        // NOWAIT leaves an exit status for `ended` and `kill` to collect.
        let look = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.process)), look)?;
        Ok(())
    }

    /// Continues the process with SIGCONT.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills the process with SIGKILL, and waits until it is gone. A process that has ended already is no error.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.process.kill()?;
        self.process.wait()
    }

    /// Stops the process with SIGTERM, and waits until it is gone; after ten seconds SIGKILL.
    ///
    /// # Errors
    /// The operating system's error.
    pub async fn stop(&mut self) -> io::Result<ExitStatus> {
        if self.ended()?.is_none() {
            self.signal(Signal::TERM)?;
        }
        let patience = Instant::now() + STOP_GRACE;
        while Instant::now() < patience {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL).await;
        }
        self.kill()
    }

    /// Asks it to stop with SIGTERM, without waiting for that.
    ///
    /// # Errors
    /// When it does not run.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.process), signal)?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            tracing::warn!(process = self.id(), %error, "a child process could not be killed");
        }
    }
}

type SpawnRequest = (Command, SyncSender<io::Result<std::process::Child>>);

/// The one thread that starts processes. The kernel ties a child to the *thread* that made it, so that thread must live
/// as long as this process does; a worker of the async runtime need not.
fn spawner() -> &'static SyncSender<SpawnRequest> {
    static SPAWNER: OnceLock<SyncSender<SpawnRequest>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (orders, inbox) = sync_channel::<SpawnRequest>(1);
        std::thread::spawn(move || {
            for (mut command, answer) in inbox {
                // The requester may be gone; then the child is dropped here, and the requester's own error stands.
                drop(answer.send(command.spawn()));
            }
        });
        orders
    })
}
