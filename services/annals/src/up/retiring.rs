//! Processes that replace others while the realm runs: of a newer build of the game, or of other definitions.

use std::{io, net::SocketAddr};

use annals_host::config::Service;

use super::{GameBuild, Realm, UpError, front, is_of_game};

impl Realm {
    /// Starts a base, cell or login process beside those that run. Its definitions are the realm's, or those that the
    /// realm is to change to.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_beside(&mut self, service: Service, name: &str, build: &GameBuild) -> Result<(), UpError> {
        let flags = match service {
            Service::Base | Service::Login => front(
                SocketAddr::new(self.plan.listen.ip(), 0),
                self.plan.advertise.as_deref(),
            ),
            _ => Vec::new(),
        };
        self.add((service, build), name, flags)
    }

    /// Sets the build from which this process is started when it is started again.
    pub(crate) fn set_build_of(&mut self, name: &str, build: &GameBuild) {
        for member in self.members.iter_mut().filter(|member| member.name == name) {
            member.build.clone_from(build);
        }
    }

    /// Sets the build from which processes are started from now on, except bases and cells, which keep theirs.
    pub(super) fn set_build(&mut self, build: &GameBuild) {
        self.plan.build.clone_from(build);
        let others = |member: &&mut super::Member| !is_of_game(member.service);
        for member in self.members.iter_mut().filter(others) {
            member.build.clone_from(build);
        }
    }

    /// Retires these processes, and no others: a retiring process is not restarted when it ends.
    pub(super) fn set_retiring(&mut self, names: &[String]) {
        for member in &mut self.members {
            member.is_retiring = names.contains(&member.name);
        }
    }

    /// Retires one more process.
    pub(super) fn retire(&mut self, name: &str) {
        for member in self.members.iter_mut().filter(|member| member.name == name) {
            member.is_retiring = true;
        }
    }

    /// Sends SIGTERM to the retiring processes: others take over what they hold.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(super) fn terminate_retiring(&mut self) -> io::Result<()> {
        for member in self.members.iter_mut().filter(|member| member.is_retiring) {
            if member.child.ended()?.is_none() {
                member.child.terminate()?;
            }
        }
        Ok(())
    }

    /// Forgets the retiring processes that have ended.
    pub(super) fn forget_retired(&mut self) -> Result<(), UpError> {
        let mut index = 0;
        while index < self.members.len() {
            let has_retired = self.members[index].is_retiring && self.how_ended(index)?.is_some();
            if has_retired {
                self.members.remove(index);
            } else {
                index += 1;
            }
        }
        Ok(())
    }
}
