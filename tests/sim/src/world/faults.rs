//! Large faults, one at a time: enough to take everything apart, never two that the fault budget does not allow together.

use annals_client::Input as ClientInput;
use annals_ids::{OwnerId, ProcessId};
use annals_wire::client::CloseReason;

use super::{Step, World, hosting::Service};
use crate::plan::Fault;

/// How long a paused process sleeps: longer than the director waits and the gate is fresh.
const PAUSE: (u64, u64) = (3_500_000, 8_000_000);

/// How long the log is away, unless all faults end before: longer than a client waits for its connection.
const OUTAGE: (u64, u64) = (2_000_000, 20_000_000);

impl World {
    pub(super) fn fault(&mut self) {
        if !self.is_playing() {
            return;
        }
        let choice = self.roll();
        let faults = self.plan.faults.clone();
        if let Some(&fault) = faults.get(usize::try_from(choice % faults.len().max(1) as u64).expect("few faults")) {
            *self.faults.entry(fault).or_default() += 1;
            self.strike(fault);
        }
        let pause = self.plan.fault_every_ms * 1_000;
        let next = self.between(pause / 2, pause * 3 / 2);
        self.after(next, Step::Fault);
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::CrashCell => self.crash(Service::Cell),
            Fault::CrashBase => self.crash(Service::Base),
            Fault::Pause => self.pause(),
            Fault::CrashDirector => {
                if self.director.take().is_some() {
                    self.note("the director dies");
                    let delay = self.between(100_000, 4_000_000);
                    self.after(delay, Step::StartDirector);
                }
            }
            Fault::CrashDb => {
                if self.db.take().is_some() {
                    self.note("db dies");
                    let delay = self.between(100_000, 3_000_000);
                    self.after(delay, Step::StartDb);
                }
            }
            Fault::LoseMessage => self.lose_message(),
            Fault::LoseTail => self.lose_tail(),
            Fault::Disconnect => self.disconnect(),
            Fault::LogAway => {
                let length = self.between(OUTAGE.0, OUTAGE.1);
                self.note(format_args!("the log is away for {} ms", length / 1_000));
                let until = (self.now + length).min(self.plan.play_ms * 1_000);
                self.log_away = self.log_away.max(until);
            }
        }
    }

    fn any_process(&mut self, service: Option<Service>) -> Option<ProcessId> {
        let able: Vec<ProcessId> = self
            .processes
            .iter()
            .filter(|(_, host)| host.paused.is_none() && service.is_none_or(|service| service == host.service))
            .map(|(process, _)| *process)
            .collect();
        let choice = self.roll();
        able.get(usize::try_from(choice % able.len().max(1) as u64).ok()?)
            .copied()
    }

    fn crash(&mut self, service: Service) {
        let Some(process) = self.any_process(Some(service)) else {
            return;
        };
        self.note(format_args!("{service:?} process {process} dies"));
        self.processes.remove(&process);
        let broken: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, found)| found.process == process)
            .map(|(id, _)| *id)
            .collect();
        for connection in broken {
            self.close(connection, CloseReason::Lost);
        }
        let delay = self.between(50_000, 5_000_000);
        self.after(delay, Step::Start { service });
    }

    fn pause(&mut self) {
        let Some(process) = self.any_process(None) else { return };
        let length = self.between(PAUSE.0, PAUSE.1);
        self.note(format_args!("process {process} stops for {} ms", length / 1_000));
        let until = self.now + length;
        if let Some(host) = self.processes.get_mut(&process) {
            host.paused = Some(until);
        }
        self.after(length, Step::Resume { process });
    }

    /// Whether somebody who runs keeps what an owner's log may lose: the fault budget.
    fn is_kept(&self, owner: OwnerId) -> bool {
        let live = self.processes.values().filter(|host| host.paused.is_none());
        let mut cores = live.filter_map(|host| host.owners.get(&owner)?.core.as_ref());
        cores.any(|core| core.stopped().is_none() && core.writer().opening().is_some())
    }

    /// A loss is within the budget while the writer of what is lost lives, or once db has archived it. Writers die in this
    /// world, so that nothing is lost while there is anything that only a dead writer could replace.
    fn may_lose(&self) -> bool {
        let settled = self.director.is_some() && self.db.is_some();
        let owners = annals_store::immediate(annals_director::read_owners(&self.store));
        settled && owners.is_ok_and(|owners| owners.keys().all(|owner| self.is_kept(*owner)))
    }

    fn lose_message(&mut self) {
        if self.may_lose() {
            let choice = self.roll();
            if let Some(owner) = self.stream.lose_one(choice) {
                self.note(format_args!(
                    "the stream loses a batch from the middle of owner {owner}'s log"
                ));
            }
        }
    }

    fn lose_tail(&mut self) {
        if self.may_lose() {
            let count = self.between(1, 4);
            let lost = self.stream.lose_tail(usize::try_from(count).expect("few"));
            self.note(format_args!("the stream loses its newest messages, of owners {lost:?}"));
        }
    }

    fn disconnect(&mut self) {
        let open: Vec<_> = self.connections.keys().copied().collect();
        let choice = self.roll();
        let Some(&connection) = open.get(usize::try_from(choice % open.len().max(1) as u64).expect("few")) else {
            return;
        };
        let Some(found) = self.connections.get(&connection).copied() else {
            return;
        };
        self.note(format_args!("client {}'s connection breaks", found.client));
        let input = ClientInput::Disconnected {
            attempt: found.attempt,
            reason: CloseReason::Lost,
        };
        self.after(
            0,
            Step::ToClient {
                client: found.client,
                input,
            },
        );
        let delay = self.between(1_000, 2_000_000);
        self.after(delay, Step::Hangup { connection });
    }
}
