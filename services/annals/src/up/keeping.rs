//! A realm that is kept running: supervised until an order to stop, and controlled by orders meanwhile.

use std::{
    io,
    time::{Duration, Instant},
};

use annals_host::config::Service;
use thiserror::Error;
use tokio::{
    sync::{mpsc, oneshot},
    time::MissedTickBehavior,
};

use super::{
    GameBuild, Realm, Supervised, UpError,
    supervision::{MOST, WITHIN},
};

/// Interval between checks that everything still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Minimum time from a restart of a process until it may be killed on order. A process that ends too often is not
/// restarted, and ends the realm.
const KILL_PAUSE: Duration = Duration::from_secs(15);

const _: () = assert!(
    KILL_PAUSE.as_secs() * MOST as u64 >= WITHIN.as_secs(),
    "kills on order must not exceed the restarts that are allowed"
);

/// An order to a realm that is kept running.
#[derive(Debug)]
pub(crate) enum RealmOrder {
    /// List the processes.
    List(oneshot::Sender<Vec<Listed>>),
    /// Send SIGKILL to the base or cell of this name.
    Kill(String, oneshot::Sender<Result<(), NotKilled>>),
    /// Start a base, cell or login process of this name from this build, beside those that run. It is retiring until
    /// others are retired instead, so a build that fails at once is not restarted.
    Start(Service, String, GameBuild, oneshot::Sender<Result<(), UpError>>),
    /// Start what is not a base or a cell from this build, from now on.
    SetBuild(GameBuild, oneshot::Sender<()>),
    /// Retire these processes, and no others: they are not restarted when they end.
    Retire(Vec<String>, oneshot::Sender<()>),
    /// Send SIGTERM to the retiring processes.
    TerminateRetiring(oneshot::Sender<io::Result<()>>),
}

/// A process of the realm.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) service: Service,
    pub(crate) name: String,
    /// Its process id.
    pub(crate) process: u32,
}

/// Why a process was not killed.
#[derive(Debug, Error)]
pub(crate) enum NotKilled {
    #[error("there is no base or cell {0}")]
    Unknown(String),
    #[error("{name} was restarted less than {pause} s ago; wait until then", name = .0, pause = KILL_PAUSE.as_secs())]
    TooSoon(String),
    #[error("{0} cannot be killed")]
    Failed(String, #[source] io::Error),
}

impl Realm {
    /// Supervises the realm until `stop` completes or the realm is being stopped from elsewhere, and executes orders.
    /// Prints what was restarted.
    ///
    /// # Errors
    /// As [`Realm::supervise`].
    pub(crate) async fn keep(
        &mut self,
        stop: impl Future<Output = ()>,
        mut orders: mpsc::Receiver<RealmOrder>,
    ) -> Result<(), UpError> {
        tokio::pin!(stop);
        // An interval, so that orders do not delay the checks.
        let mut checks = tokio::time::interval(POLL_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                Some(order) = orders.recv() => self.execute(order),
                _ = checks.tick() => {
                    match self.supervise().await? {
                        Supervised::Running(restarted) => restarted.iter().for_each(|line| println!("{line}")),
                        Supervised::Closing => {
                            println!("the realm is stopping");
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// Executes an order. A caller that does not wait for the answer any more is no error.
    fn execute(&mut self, order: RealmOrder) {
        match order {
            RealmOrder::List(answer) => {
                let listed = self.members.iter().map(|member| Listed {
                    service: member.service,
                    name: member.name.clone(),
                    process: member.child.id(),
                });
                let _ = answer.send(listed.collect());
            }
            RealmOrder::Kill(name, answer) => {
                let _ = answer.send(self.kill_on_order(name));
            }
            RealmOrder::Start(service, name, build, answer) => {
                let started = self.start_beside(service, &name, &build);
                let _ = answer.send(started.map(|()| self.retire(&name)));
            }
            RealmOrder::SetBuild(build, answer) => {
                self.set_build(&build);
                let _ = answer.send(());
            }
            RealmOrder::Retire(names, answer) => {
                self.set_retiring(&names);
                let _ = answer.send(());
            }
            RealmOrder::TerminateRetiring(answer) => {
                let _ = answer.send(self.terminate_retiring());
            }
        }
    }

    fn kill_on_order(&mut self, name: String) -> Result<(), NotKilled> {
        let named = |member: &&mut super::Member| member.name == name && is_expendable(member.service);
        let Some(member) = self.members.iter_mut().find(named) else {
            return Err(NotKilled::Unknown(name));
        };
        let restarted = member.restarts.last(Instant::now());
        let has_ended = match member.child.ended() {
            Ok(ended) => ended.is_some(),
            Err(source) => return Err(NotKilled::Failed(name, source)),
        };
        if has_ended || restarted.is_some_and(|ago| ago < KILL_PAUSE) {
            return Err(NotKilled::TooSoon(name));
        }
        match member.child.kill() {
            Ok(_) => Ok(()),
            Err(source) => Err(NotKilled::Failed(name, source)),
        }
    }
}

/// Whether others take over what a process of this service holds, so that players lose nothing by its death.
pub(crate) fn is_expendable(service: Service) -> bool {
    matches!(service, Service::Base | Service::Cell)
}
