//! Restarts processes that ended unexpectedly, and nats-servers that stopped storing because of a full disk.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use annals_director::Stage;
use annals_host::{
    config::Service,
    room::{Room, room},
};

use super::{Realm, UpError, closing::is_clean};

/// Maximum restarts within [`WITHIN`].
pub(super) const MOST: usize = 5;

pub(super) const WITHIN: Duration = Duration::from_secs(60);

/// Interval between checks of whether nats-servers store.
const ASKED_EVERY: Duration = Duration::from_secs(2);

/// How long the JetStream of a running nats-server may be off before the server is restarted. The election of a leader
/// in a cluster takes less.
const OFF_FOR: Duration = Duration::from_secs(30);

/// The state of the disks of the nats-servers and of db.
#[derive(Debug, Default)]
pub(super) struct Disks {
    asked: Option<Instant>,
    servers: Vec<ServerDisk>,
    /// Whether db waits for disk space.
    db_waits: bool,
}

/// State of one nats-server. A server whose disk was full may answer as before and store nothing until it is restarted.
#[derive(Clone, Debug, Default)]
struct ServerDisk {
    was_full: bool,
    /// Since when its JetStream does not answer.
    off: Option<Instant>,
}

/// The times of recent restarts.
#[derive(Debug, Default)]
pub(super) struct Restarts(Vec<Instant>);

impl Restarts {
    /// Counts a restart; returns whether it is allowed.
    pub(super) fn allow(&mut self, now: Instant) -> bool {
        self.0.retain(|at| now.duration_since(*at) < WITHIN);
        self.0.push(now);
        self.0.len() <= MOST
    }

    /// How long ago the last restart was.
    pub(super) fn last(&self, now: Instant) -> Option<Duration> {
        self.0.last().map(|at| now.duration_since(*at))
    }
}

/// Result of one look at a realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supervised {
    /// The realm runs. A line for each process or server that was restarted, or waits for disk space.
    Running(Vec<String>),
    /// The realm is being stopped; nothing was restarted.
    Closing,
}

impl Realm {
    /// Looks at all processes and nats-servers once, and restarts those that ended, unless the realm is being stopped.
    ///
    /// A process that ended cleanly is restarted only if the director says that the realm runs: it may have been the
    /// realm's stop that ended it, and a process that is started then would run without a director.
    ///
    /// # Errors
    /// When something ends repeatedly, with the end of its log; when it cannot be started.
    pub async fn supervise(&mut self) -> Result<Supervised, UpError> {
        self.forget_retired()?;
        // What ends from here on belongs to the next look.
        let ended = self.ended_members()?;
        let runs = match ended.iter().any(|(_, ended)| is_clean(ended)) {
            true => match self.stage().await {
                Ok(stage) if stage > Stage::Running => return Ok(Supervised::Closing),
                Ok(_) => true,
                Err(_) if self.has_director_left()? => return Ok(Supervised::Closing),
                // The next look asks again.
                Err(_) => false,
            },
            false => false,
        };
        let mut restarted = Vec::from_iter(self.supervise_console());
        if let Err(ended) = self.nats.check() {
            if !self.nats_restarts.allow(Instant::now()) {
                return Err(ended.into());
            }
            let count = self.nats.restart_ended().await?;
            restarted.extend((0..count).map(|_| "the nats-server ended and was restarted".to_owned()));
        }
        self.restart_full_servers(&mut restarted).await?;
        for (index, ended) in ended {
            if is_clean(&ended) && !runs || self.waits_for_room(index, &mut restarted) {
                continue;
            }
            if !self.members[index].restarts.allow(Instant::now()) {
                return Err(ended);
            }
            if let UpError::Ended { service, status, .. } = &ended {
                restarted.push(format!("{service} ended with {status} and was restarted"));
            }
            let name = self.members[index].name.clone();
            self.start_again(&name)?;
        }
        Ok(Supervised::Running(restarted))
    }

    /// Whether a process that has ended is db and its disk is full: it is restarted when there is space.
    fn waits_for_room(&mut self, index: usize, said: &mut Vec<String>) -> bool {
        let store: PathBuf = self.plan.data.join("store");
        let waits = self.members[index].service == Service::Db && matches!(room(&store), Ok(Room::Full | Room::Little));
        if waits && !self.disks.db_waits {
            said.push(format!(
                "db ended because the disk of {} is full; it is restarted when there is space",
                store.display()
            ));
        }
        self.disks.db_waits = waits;
        waits
    }

    /// Restarts nats-servers that run and do not store, once their disks have space.
    async fn restart_full_servers(&mut self, said: &mut Vec<String>) -> Result<(), UpError> {
        let now = Instant::now();
        if self
            .disks
            .asked
            .is_some_and(|asked| now.duration_since(asked) < ASKED_EVERY)
        {
            return Ok(());
        }
        self.disks.asked = Some(now);
        let servers = self.nats.each();
        self.disks.servers.resize(servers.len(), ServerDisk::default());
        let mut restarted = false;
        for (server, disk) in servers.iter_mut().zip(&mut self.disks.servers) {
            // A disk whose free space is unknown is not waited for.
            let found = room(server.store()).unwrap_or(Room::Enough);
            if found == Room::Full && !disk.was_full {
                disk.was_full = true;
                said.push(format!(
                    "the disk of {} is full; its nats-server is restarted when there is space",
                    server.store().display()
                ));
            }
            disk.off = match server.answers().await {
                true => None,
                false => Some(disk.off.unwrap_or(now)),
            };
            let is_off = disk.off.is_some_and(|since| now.duration_since(since) >= OFF_FOR);
            if found == Room::Enough && (disk.was_full || is_off) {
                server.relaunch()?;
                said.push("a nats-server that stored nothing was restarted".to_owned());
                *disk = ServerDisk::default();
                restarted = true;
            }
        }
        if restarted {
            self.nats.ready().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_repeatedly_is_not_restarted() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut restarts = Restarts::default();
        assert!((0..5).all(|nth| restarts.allow(at(nth * 5))));
        assert!(!restarts.allow(at(30)));
        assert!(restarts.allow(at(85)), "those are long ago");
    }
}
