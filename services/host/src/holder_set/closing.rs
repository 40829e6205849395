//! A process's part in the stop of its realm (rule D6): notifies its owners of each moment, and reports their progress.

use std::sync::atomic::Ordering;

use annals_director::{Progress, Stage};
use annals_ids::OwnerId;
use annals_node::{Input, LifecycleEvent, Role, ShutDown};

use super::{Held, HolderSet};
use crate::holder::{self, Command};

/// The moment that owners are notified of in a stage, if any.
fn moment_of(stage: Stage) -> Option<LifecycleEvent> {
    match stage {
        Stage::Announced => Some(LifecycleEvent::ShuttingDown),
        Stage::Parting => Some(LifecycleEvent::ShutDown(ShutDown::Parting)),
        Stage::Writing => Some(LifecycleEvent::ShutDown(ShutDown::Writing)),
        Stage::Written => Some(LifecycleEvent::ShutDown(ShutDown::Written)),
        Stage::Running
        | Stage::Closing
        | Stage::EndingLogin
        | Stage::EndingBase
        | Stage::EndingCell
        | Stage::EndingDb => None,
    }
}

impl<I> Held<I> {
    /// Notifies the owner of every stage up to `stage` that it was not sent yet, as far as its holder's queue has room.
    fn send_stages(&mut self, stage: Stage) {
        for next in Stage::ALL {
            if next <= self.announced_stage || next > stage {
                continue;
            }
            let command = match moment_of(next) {
                Some(moment) => Some(Command::Core(Input::LifecycleEvent(moment))),
                None => (next == Stage::Closing).then_some(Command::Close),
            };
            if let Some(command) = command {
                let is_moment = matches!(command, Command::Core(_));
                if self.commands.try_send(command).is_err() {
                    // A holder whose queue is full is notified at the next beat.
                    return;
                }
                self.moments_sent += u64::from(is_moment);
            }
            self.announced_stage = next;
        }
    }

    /// What the owner has yet to do to complete `stage`.
    fn lacks(&self, owner: OwnerId, stage: Stage) -> Option<String> {
        if *self.stage.borrow() == holder::Stage::Taking {
            return Some(format!("owner {owner} is being taken over"));
        }
        if *self.stage.borrow() == holder::Stage::Stuck {
            return Some(format!("the log of owner {owner} is blocked"));
        }
        let is_announced =
            self.announced_stage >= stage && self.lifecycle_events.load(Ordering::Relaxed) >= self.moments_sent;
        if stage >= Stage::Closing {
            Some(format!("the log of owner {owner} is not folded to its end"))
        } else if is_announced {
            None
        } else {
            Some(format!("owner {owner} has not notified all its entities"))
        }
    }
}

impl<R> HolderSet<R>
where
    R: Role + Send + 'static,
    R::Input: Clone + Send + 'static,
{
    /// Enters the director's stage. It never goes back: a director that has just begun to lead learns the stage from
    /// us.
    pub(super) fn enter(&mut self, stage: Stage) {
        if stage > self.stage {
            tracing::info!(%stage, "the realm is stopping: entered a stage");
            self.stage = stage;
        }
    }

    /// Does what the stage asks for, and records the progress for the next beat.
    pub(super) fn follow_stop(&mut self) {
        if self.stage == Stage::Running {
            return;
        }
        for held in self.held.values_mut() {
            held.send_stages(self.stage);
        }
        let lacks: Vec<String> = self
            .held
            .iter()
            .filter_map(|(owner, held)| held.lacks(*owner, self.stage))
            .collect();
        let done = if lacks.is_empty() {
            self.stage
        } else {
            self.process.progress.borrow().done
        };
        self.process.progress.send_replace(Progress {
            announced: self.stage,
            done,
            waits: lacks.join(", "),
        });
    }

    /// Whether this process ends at the present stage.
    pub(super) fn ends(&self) -> bool {
        self.process.ends_at().is_some_and(|stage| self.stage >= stage)
    }
}
