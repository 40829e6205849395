//! The way of authenticated clients into a realm that may be full: they ask the director for room, and wait in the
//! queue, whose first client asks again.

use std::time::Duration;

use annals_ids::{DatabaseId, OwnerId, SessionId};
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::{Located, LoginAnswer, LoginRefusal};

use super::{Front, Login};
use crate::{
    attempt::{Attempt, Entry, LOGIN_WITHIN, Step},
    input::{AskId, NotCheckedOut, Output, Placed, RoomId, Unavailable, Wish},
    places::{Place, PlaceNumber},
};

/// How often the first client of the queue asks for room. One request at a time costs the director little, and a player
/// who waits for minutes does not notice a quarter of a second.
pub const ROOM_EVERY: Duration = Duration::from_millis(250);

impl Login {
    /// An authenticated client: it takes the place that its account has in the queue, or the end of the queue, or asks
    /// for room.
    pub(super) fn enter(&mut self, now: Mono, mut attempt: Attempt, account: DatabaseId) {
        self.last_number += 1;
        attempt.entry.number = PlaceNumber(self.last_number);
        attempt.entry.since = now;
        let connection = attempt.connection;
        if let Some(number) = self.take_place(account, connection) {
            attempt.entry.number = number;
            return self.wait(now, attempt, account);
        }
        if self.places.len() > 0 && attempt.entry.waits {
            return self.find_no_room(now, attempt, account);
        }
        attempt.step = Step::Placing { account };
        self.ask(now, attempt);
    }

    /// The place that an account has in the queue, which goes to this connection. A client that has it is refused.
    fn take_place(&mut self, account: DatabaseId, connection: ConnectionId) -> Option<PlaceNumber> {
        let (number, before) = self.places.take_over(account, connection)?;
        if let Some(before) = before.and_then(|before| self.take(before)) {
            self.forget_wish(&before);
            self.refuse(before.connection, LoginRefusal::LoggedIn);
        }
        Some(number)
    }

    /// The request for room of an attempt. A repeated one is for the same room.
    pub(super) fn wish(&mut self, now: Mono, entry: &mut Entry) -> Wish {
        let room = entry.wish.unwrap_or_else(|| {
            self.last_room += 1;
            RoomId(self.last_room)
        });
        entry.wish = Some(room);
        let since = self.places.since(entry.number).filter(|_| entry.is_queued);
        Wish {
            room,
            waits: entry.waits,
            waited: since.map(|since| now.since(since)),
            waiting: self.places.len(),
        }
    }

    pub(super) fn placed(&mut self, now: Mono, ask: AskId, placed: Result<Placed, Unavailable>) {
        let is_wanted = |step: &Step| matches!(step, Step::Placing { .. });
        let Some(mut attempt) = self.take_asked(ask, is_wanted) else {
            return;
        };
        let Step::Placing { account } = attempt.step else {
            return;
        };
        match placed {
            Ok(Placed::Base { base, is_limited }) => {
                self.is_limited = is_limited;
                let room = attempt.entry.wish.take().filter(|_| is_limited);
                self.end_asking(attempt.connection);
                self.give_room(now, (attempt, account), base, room);
            }
            Ok(Placed::Full) => {
                self.is_limited = true;
                attempt.entry.wish = None;
                if attempt.entry.is_queued {
                    attempt.wait(account);
                    self.put(attempt);
                    self.front = Front::Pausing(now.after(ROOM_EVERY));
                } else {
                    self.find_no_room(now, attempt, account);
                }
            }
            Ok(Placed::None) | Err(Unavailable) => self.take_again(now, attempt),
        }
        self.ask_for_room(now);
    }

    /// Room was given to a client, which leaves it to the one that has waited longest, if that is another one.
    fn give_room(&mut self, now: Mono, (attempt, account): (Attempt, DatabaseId), base: Located, room: Option<RoomId>) {
        let first = self.places.first().filter(|first| first.number < attempt.entry.number);
        match first.and_then(|first| self.take(first.connection)) {
            Some(first) if attempt.entry.waits && room.is_some() => {
                self.forget_wish(&first);
                match first.account() {
                    Some(of_first) => self.admit(now, first, of_first, base, room),
                    None => self.put(first),
                }
                self.find_no_room(now, attempt, account);
            }
            first => {
                if let Some(first) = first {
                    self.put(first);
                }
                self.admit(now, attempt, account, base, room);
            }
        }
    }

    /// A client has room: it is checked out, and its session opened.
    fn admit(&mut self, now: Mono, mut attempt: Attempt, account: DatabaseId, base: Located, room: Option<RoomId>) {
        if std::mem::take(&mut attempt.entry.is_queued) {
            self.places.remove(attempt.entry.number);
            attempt.until = now.after(LOGIN_WITHIN);
        }
        attempt.entry.wish = None;
        attempt.entry.room = room;
        attempt.entry.replaces = false;
        attempt.step = Step::CheckingOut { account, base };
        self.ask(now, attempt);
    }

    /// The realm is full. A session that the account has can be replaced all the same; otherwise the client waits.
    fn find_no_room(&mut self, now: Mono, mut attempt: Attempt, account: DatabaseId) {
        if attempt.entry.is_queued {
            return self.wait(now, attempt, account);
        }
        if attempt.entry.is_looked_up {
            return self.queue_up(now, attempt, account);
        }
        attempt.entry.is_looked_up = true;
        attempt.step = Step::LookingUp { account };
        self.ask(now, attempt);
    }

    pub(super) fn looked_up(&mut self, now: Mono, ask: AskId, found: Result<Option<OwnerId>, NotCheckedOut>) {
        let is_wanted = |step: &Step| matches!(step, Step::LookingUp { .. });
        let Some(mut attempt) = self.take_asked(ask, is_wanted) else {
            return;
        };
        let Step::LookingUp { account } = attempt.step else {
            return;
        };
        match found {
            Ok(None) => self.queue_up(now, attempt, account),
            Ok(Some(owner)) => {
                attempt.entry.replaces = true;
                let account = Some(account);
                attempt.step = Step::Locating { account, owner };
                self.ask(now, attempt);
            }
            Err(NotCheckedOut::Banned(ban)) => self.refuse_banned(attempt.connection, ban),
            Err(NotCheckedOut::Unavailable) => self.take_again(now, attempt),
        }
    }

    /// A client takes the end of the queue, or the place that was taken for its account meanwhile.
    pub(super) fn queue_up(&mut self, now: Mono, mut attempt: Attempt, account: DatabaseId) {
        let connection = attempt.connection;
        attempt.entry.replaces = false;
        if let Some(number) = self.take_place(account, connection) {
            attempt.entry.number = number;
            return self.wait(now, attempt, account);
        }
        let place = Place::new(account, attempt.host, attempt.entry.since, connection);
        if self.places.join(attempt.entry.number, place).is_err() {
            self.counters.crowded += 1;
            return self.answer(connection, LoginAnswer::Refused(LoginRefusal::Busy));
        }
        self.counters.queued += 1;
        self.wait(now, attempt, account);
    }

    /// A client waits at its place, and is sent its position.
    fn wait(&mut self, now: Mono, mut attempt: Attempt, account: DatabaseId) {
        let connection = attempt.connection;
        let queued = self.places.position_of(now, attempt.entry.number);
        attempt.entry.is_queued = true;
        attempt.wait(account);
        self.put(attempt);
        self.outputs
            .extend(queued.map(|queued| Output::Queued { connection, queued }));
        self.ask_for_room(now);
    }

    /// Has the first client of the queue ask for room, if it is time.
    pub(super) fn ask_for_room(&mut self, now: Mono) {
        let is_time = match self.front {
            Front::Idle => true,
            Front::Asking(_) => false,
            Front::Pausing(at) => at <= now,
        };
        if self.is_paused || !is_time {
            return;
        }
        self.front = Front::Idle;
        let Some(first) = self.places.first() else { return };
        let Some(mut attempt) = self.take(first.connection) else {
            return;
        };
        let Some(account) = attempt.account() else {
            return self.put(attempt);
        };
        self.front = Front::Asking(first.connection);
        attempt.step = Step::Placing { account };
        self.ask(now, attempt);
    }

    pub(super) fn pass_time_in_queue(&mut self, now: Mono) {
        self.places.expire(now);
        let news = self.places.news(now);
        let news = news
            .into_iter()
            .map(|(connection, queued)| Output::Queued { connection, queued });
        self.outputs.extend(news);
        self.ask_for_room(now);
    }

    /// A client has disconnected. Its place in the queue is kept for a while.
    pub(super) fn closed(&mut self, now: Mono, connection: ConnectionId) {
        let Some(mut attempt) = self.take(connection) else {
            return;
        };
        if std::mem::take(&mut attempt.entry.is_queued) {
            self.places.leave(now, attempt.entry.number);
        }
        self.leave(&attempt, None);
        self.ask_for_room(now);
    }

    /// An attempt ends: gives back its place, and the room that no session has or will have.
    pub(super) fn leave(&mut self, attempt: &Attempt, session: Option<(OwnerId, SessionId)>) {
        if attempt.entry.is_queued {
            self.places.remove(attempt.entry.number);
        }
        self.forget_wish(attempt);
        let entry = &attempt.entry;
        // A base that was asked may still open a session: then the room is counted until it expires at the director.
        if let Some(room) = entry.room
            && (session.is_some() || !entry.may_open)
        {
            self.outputs.push_back(Output::Settle { room, session });
        }
    }

    /// An attempt needs the room no longer that it has asked for.
    fn forget_wish(&mut self, attempt: &Attempt) {
        self.end_asking(attempt.connection);
        if let Some(room) = attempt.entry.wish
            && self.is_limited
        {
            let session = None;
            self.outputs.push_back(Output::Settle { room, session });
        }
    }

    fn end_asking(&mut self, connection: ConnectionId) {
        if self.front == Front::Asking(connection) {
            self.front = Front::Idle;
        }
    }
}

impl Attempt {
    /// The account of an attempt in the queue.
    fn account(&self) -> Option<DatabaseId> {
        let step = match &self.step {
            Step::Pausing(next) => next,
            step => step,
        };
        match step {
            Step::Waiting { account } | Step::Placing { account } => Some(*account),
            _ => None,
        }
    }
}
