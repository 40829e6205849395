//! The change to another process that is about to serve the session: its connection is opened while the present one is
//! still used, and takes its place when it has welcomed the session. And the change to another owner, to which the client
//! was given.

use annals_ids::OwnerId;
use annals_wire::client::{CloseReason, HelloAnswer, Located};

use crate::{
    event::{Attempt, Event, Input, Millis, Output},
    session::{ClientCore, MOVED_WITHIN, Next},
};

/// The connection that is opened beside the present one.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    pub(crate) attempt: Attempt,
    pub(crate) located: Located,
    /// Whether the hello is sent.
    pub(crate) is_connected: bool,
    /// When it is given up.
    pub(crate) until: Millis,
}

/// Timeout of the other process, milliseconds: what is announced happens within some hundred milliseconds.
const ANNOUNCED_WITHIN: u64 = 5_000;

/// Maximum announcements that are followed between two welcomes: more are of a base that is out of order.
const MOST_ANNOUNCEMENTS: u32 = 8;

impl ClientCore {
    /// The base announced that another process will serve the session.
    pub(crate) fn prepare(&mut self, now: Millis, located: Located) {
        let is_own = self.session_owner() == Some(located.owner);
        let is_known = |next: &Successor| next.located.address == located.address;
        if !is_own || self.next.as_ref().is_some_and(is_known) || self.announcements >= MOST_ANNOUNCEMENTS {
            return;
        }
        // Another process than the one before.
        self.abandon_next();
        self.announcements += 1;
        let attempt = self.next_attempt();
        let (address, certificate) = (located.address, located.certificate);
        self.next = Some(Successor {
            attempt,
            located,
            is_connected: false,
            until: now.after(ANNOUNCED_WITHIN),
        });
        self.outputs.push_back(Output::Prepare {
            attempt,
            address,
            certificate,
        });
    }

    /// The session continues at another owner, with an entity there: connects to it. That is an interruption only if it
    /// does not succeed in time: the owner may be on its way to another process, and not be found by the first attempt.
    pub(crate) fn follow(&mut self, now: Millis, owner: OwnerId) {
        self.set_owner(owner);
        self.pause_views();
        self.downloads.pause();
        self.is_moving = true;
        self.retries_until = now.after(MOVED_WITHIN);
        self.try_next(now, Next::Locate);
    }

    /// A base that was to welcome the client has given it to another owner. If the base itself was handed over at the same
    /// time, that is no interruption yet, but owners that go on like that are one.
    pub(crate) fn goes_to(&mut self, now: Millis, owner: OwnerId) {
        self.set_owner(owner);
        if self.is_moving && self.failures == 0 {
            self.retries_until = now.after(MOVED_WITHIN);
        }
    }

    /// A change to another process or owner has failed. It is an interruption, unless there is still time to try again.
    pub(crate) fn end_move(&mut self, now: Millis, reason: CloseReason) {
        if self.is_moving && now >= self.retries_until {
            self.is_moving = false;
            self.events.push_back(Event::Lost(reason));
        }
    }

    /// Gives up the connection that was opened beside the present one.
    pub(crate) fn abandon_next(&mut self) {
        if self.next.take().is_some() {
            self.outputs.push_back(Output::Abandon);
        }
    }

    /// Handles an input of the prepared connection; returns whether it was one.
    pub(crate) fn handle_next(&mut self, now: Millis, input: &Input) -> bool {
        let Some(next) = &mut self.next else { return false };
        match input {
            Input::Connected { attempt } if *attempt == next.attempt => {
                next.is_connected = true;
                if let Some(body) = self.hello() {
                    self.outputs.push_back(Output::Greet(body));
                }
            }
            Input::Frame { attempt, body } if *attempt == next.attempt => match HelloAnswer::read(body) {
                Ok(HelloAnswer::Welcome(welcome)) => {
                    let attempt = next.attempt;
                    if self.is_welcome(&welcome) {
                        self.take_next();
                        self.welcomed(now, attempt, welcome);
                    } else {
                        self.counters.old_epochs += 1;
                        self.abandon_next();
                    }
                }
                // The present connection will be closed, and the base be asked for.
                Ok(HelloAnswer::Rejected(_) | HelloAnswer::Given(_)) => self.abandon_next(),
                Err(_) => {
                    self.counters.malformed += 1;
                    self.abandon_next();
                }
            },
            Input::Disconnected { attempt, .. } if *attempt == next.attempt => self.abandon_next(),
            _ => return false,
        }
        true
    }

    /// The prepared connection takes the place of the present one.
    pub(crate) fn take_next(&mut self) -> Option<Successor> {
        let next = self.next.take()?;
        self.is_moving = true;
        self.outputs.push_back(Output::Switch);
        self.set_address(next.located.address, next.located.certificate);
        Some(next)
    }
}
