//! Asking the login service where the base is while a connection is silent: the base's process may have died, and
//! another one hold its owner. The connection stays open meanwhile: a network that was slow for a moment loses nothing.

use annals_wire::client::{CloseReason, LoginAnswer};

use crate::{
    event::{Attempt, Event, Millis, Output},
    session::{ClientCore, doubled},
};

/// Milliseconds until the question is repeated; doubled each time.
const FIRST_REPEAT: u64 = 150;

/// Maximum time between two questions, milliseconds.
const LAST_REPEAT: u64 = 2_000;

/// The questions during one silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// The last question, until it is answered.
    asked: Option<Attempt>,
    /// The time of the next question.
    pub(crate) again_at: Millis,
    repeats: u32,
}

impl ClientCore {
    /// Nothing arrives on the connection: begins to ask where the base is.
    pub(crate) fn fallen_silent(&mut self, now: Millis) {
        if self.probe.is_none() {
            self.probe = Some(Probe {
                asked: None,
                again_at: now,
                repeats: 0,
            });
            self.ask_while_silent(now);
        }
    }

    /// Asks, if it is time.
    pub(crate) fn ask_while_silent(&mut self, now: Millis) {
        let Some(probe) = self.probe.filter(|probe| probe.again_at <= now) else {
            return;
        };
        let attempt = self.next_attempt();
        let Some(request) = self.where_is_the_base() else {
            return;
        };
        self.probe = Some(Probe {
            asked: Some(attempt),
            again_at: now.after(doubled(FIRST_REPEAT, probe.repeats, LAST_REPEAT)),
            repeats: probe.repeats + 1,
        });
        self.outputs.push_back(Output::Login { attempt, request });
    }

    /// An answer of the login service while the client plays: another holder is connected to.
    pub(crate) fn answered_while_silent(&mut self, now: Millis, attempt: Attempt, answer: Option<&LoginAnswer>) {
        let Some(probe) = self.probe.as_mut().filter(|probe| probe.asked == Some(attempt)) else {
            return;
        };
        probe.asked = None;
        if let Some(LoginAnswer::Located(located)) = answer
            && self.is_elsewhere(located)
        {
            self.outputs.push_back(Output::Disconnect(CloseReason::Lost));
            self.pause_views();
            self.events.push_back(Event::Lost(CloseReason::Silent));
            self.take_location(now, located);
        }
    }
}
