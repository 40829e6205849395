//! Calls between addresses: sending, consuming, confirming and resending (rules C1 to C9).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_event::{Body, Call, Link, Links, Subject};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, Part};
use annals_wire::bus::{CallMessage, Message};

use crate::{
    behaviour::Caller,
    download::DOWNLOADS,
    outbound::{self, OUTSIDE, is_performed},
    output::Output,
    owner_context::{Local, OwnerContext},
    time::Mono,
};

/// Delay before an unconfirmed call is first resent; doubled each time.
const FIRST_RESEND: Duration = Duration::from_millis(500);

/// Maximum of that delay.
const LAST_RESEND: Duration = Duration::from_secs(8);

/// Maximum calls of one link that are resent at once.
const RESEND_BURST: usize = 64;

/// Minimum interval between two resends of a link that its receiver asked for. The receiver answers each of many
/// misplaced calls; if each answer resent all of them, answers would multiply.
const MIN_REQUESTED_RESEND: Duration = Duration::from_millis(50);

/// Maximum confirmations logged in one batch: some tens of bytes each.
const CONFIRMATIONS: usize = 4_096;

/// Attempts after which a cell part is looked up at its home again.
const ATTEMPTS_BEFORE_HOME: u32 = 2;

/// Call links with unconfirmed calls: when to resend them, and confirmations that are not logged yet.
#[derive(Debug, Default)]
pub(crate) struct CallLinks {
    links: BTreeMap<Link, Attempt>,
    due: BTreeSet<(Mono, Link)>,
    /// Received confirmations that are not logged yet; they wait for a batch that is closed anyway (rule C3).
    confirmed: BTreeMap<Link, CallNumber>,
    /// Number of links to each fragment on which calls were resent, because they are not confirmed.
    overdue: BTreeMap<Address, usize>,
    /// Links on which a call was consumed or repeated in the present input, and the owner to notify.
    taken: BTreeMap<Link, OwnerId>,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    due: Mono,
    made: u32,
    /// Time of the last resend that the receiver asked for.
    last_requested: Option<Mono>,
    /// Newest call at the last resend: more calls up to this one may have to be resent.
    behind: CallNumber,
}

impl Attempt {
    fn first(due: Mono) -> Self {
        Self {
            due,
            made: 0,
            last_requested: None,
            behind: CallNumber(0),
        }
    }
}

impl CallLinks {
    /// Tracks the calls of an address that has become real here; they are sent at once.
    pub(crate) fn adopt(&mut self, from: Address, links: &Links) {
        for (to, sent) in &links.sent {
            if !sent.unconfirmed.is_empty() {
                self.schedule(Link { from, to: *to }, Attempt::first(Mono(0)));
            }
        }
    }

    /// Stops tracking the calls of an address that was handed over.
    pub(crate) fn forget(&mut self, from: Address) {
        let gone: Vec<Link> = self.links.keys().filter(|link| link.from == from).copied().collect();
        for link in gone {
            self.stop(link);
        }
        self.confirmed.retain(|link, _| link.from != from);
    }

    /// Tracks a call that has just been sent.
    pub(crate) fn watch(&mut self, link: Link, now: Mono) {
        if !self.links.contains_key(&link) {
            self.schedule(link, Attempt::first(now.after(FIRST_RESEND)));
        }
    }

    /// When the next call has to be resent.
    pub(crate) fn next(&self) -> Option<Mono> {
        self.due.first().map(|(due, _)| *due)
    }

    fn schedule(&mut self, link: Link, attempt: Attempt) {
        self.stop(link);
        self.due.insert((attempt.due, link));
        self.links.insert(link, attempt);
        if is_overdue(link, attempt) {
            *self.overdue.entry(link.to).or_default() += 1;
        }
    }

    fn stop(&mut self, link: Link) {
        let Some(old) = self.links.remove(&link) else { return };
        self.due.remove(&(old.due, link));
        if is_overdue(link, old)
            && let Some(count) = self.overdue.get_mut(&link.to)
        {
            *count -= 1;
            if *count == 0 {
                self.overdue.remove(&link.to);
            }
        }
    }

    /// Whether a fragment has not confirmed a call for a while.
    pub(crate) fn is_overdue(&self, fragment: Address) -> bool {
        self.overdue.contains_key(&fragment)
    }

    /// Whether to resend the calls of a link now because its receiver asks for it; if it did so a moment ago, they
    /// become due soon instead.
    fn may_resend(&mut self, link: Link, now: Mono) -> bool {
        let Some(attempt) = self.links.get(&link).copied() else {
            return false;
        };
        match attempt.last_requested.map(|last| last.after(MIN_REQUESTED_RESEND)) {
            Some(again) if now < again => {
                let due = attempt.due.min(again);
                self.schedule(link, Attempt { due, ..attempt });
                false
            }
            _ => {
                let last_requested = Some(now);
                self.schedule(
                    link,
                    Attempt {
                        last_requested,
                        ..attempt
                    },
                );
                true
            }
        }
    }

    /// The receiver's home has sent its location: try that before asking the home again.
    fn reset_attempts(&mut self, link: Link) {
        if let Some(attempt) = self.links.get(&link).copied() {
            self.schedule(link, Attempt { made: 0, ..attempt });
        }
    }

    /// Whether to resend more calls of a link, now that those up to `upto` are confirmed.
    fn may_continue(&mut self, link: Link, upto: CallNumber, now: Mono) -> bool {
        let attempt = self.links.get(&link).copied();
        let Some(attempt) = attempt.filter(|attempt| upto < attempt.behind) else {
            return false;
        };
        // A receiver that consumes calls is reachable: calls lost now are worth an early retry.
        let due = attempt.due.min(now.after(FIRST_RESEND));
        self.schedule(
            link,
            Attempt {
                due,
                made: 0,
                ..attempt
            },
        );
        self.may_resend(link, now)
    }

    fn pop(&mut self, now: Mono) -> Option<(Link, Attempt)> {
        let (due, link) = *self.due.first()?;
        if due > now {
            return None;
        }
        let attempt = self.links[&link];
        self.stop(link);
        Some((link, attempt))
    }
}

fn is_overdue(link: Link, attempt: Attempt) -> bool {
    let is_fragment = link.to.entity().is_some_and(|(entity, _)| entity.fragment().is_some());
    is_fragment && attempt.made > 0
}

/// Outcome of an arriving call.
pub(crate) enum Arrival {
    /// Consumed: execute it.
    Taken(Caller),
    /// A repetition, too early, or for a receiver that is not here.
    Settled,
}

impl OwnerContext {
    /// Sends a call that is already in the state: to the bus, to a receiver on this owner, or out of the realm.
    pub(crate) fn dispatch(&mut self, link: Link, number: CallNumber) {
        if link.to == DOWNLOADS {
            return self.settle_downloads_of_ended(link);
        }
        let Some((message, home)) = self.message(link, number) else {
            return;
        };
        if link.to == OUTSIDE {
            if let Some(call) = outbound::read(link, number, message.call) {
                self.emit(Output::Outbound(call));
            }
            return;
        }
        if self.is_here(link.to) || self.begin_called_fragment(link.to) {
            self.local.push_back(Local::Numbered(message));
        } else if let Some(to) = self.route(link.to, home) {
            self.send(to, Message::Call(message));
        }
    }

    /// Sends a one-way call within the owner without a number, if that keeps the order of calls (rule C5).
    pub(crate) fn call_direct(&mut self, from: EntityId, to: Address, call: &Call, caller: Caller) -> bool {
        let Some((receiver, _)) = to.entity().filter(|_| self.is_here(to)) else {
            return false;
        };
        let settled = self.is_settled(self.journal.address(from), to);
        if settled {
            self.local.push_back(Local::Direct {
                to: receiver,
                call: call.clone(),
                caller,
            });
        }
        settled
    }

    /// Whether no call from one address to another is unconfirmed, so that a further one can bypass the link.
    #[must_use]
    pub fn is_settled(&self, from: Address, to: Address) -> bool {
        let sent = self.state().links(from).and_then(|links| links.sent.get(&to));
        sent.is_none_or(|sent| sent.unconfirmed.is_empty())
    }

    /// Learns from a call where the cell part that sent it is. Its home is notified by [`Call::Placed`], and that the part
    /// ended: a late call must not restore the route there. The owner of a part that has ended resends its last calls
    /// under its own name as home, so a sender that is the home needs no route.
    fn follow_sender(&mut self, sender: OwnerId, message: &CallMessage) {
        let Address::Cell(entity) = message.link.from else {
            return;
        };
        if message.from_home == sender {
            self.routes.forget(entity);
        } else if message.from_home != self.owner() {
            self.routes.moved(entity, sender);
        }
    }

    /// Consumes a call from `sender`, if no earlier one on its link can follow (rule C2).
    pub(crate) fn arrive(&mut self, sender: OwnerId, message: &CallMessage) -> Arrival {
        let link = message.link;
        if !self.is_here(link.to) && !self.begin_called_fragment(link.to) {
            self.absent(sender, message);
            return Arrival::Settled;
        }
        self.follow_sender(sender, message);
        let taken = self
            .state()
            .links(link.to)
            .and_then(|links| links.taken.get(&link.from));
        let taken = taken.copied().unwrap_or_default();
        if message.number <= taken {
            self.call_links.taken.insert(link, sender);
            return Arrival::Settled;
        }
        if message.number > taken.next() {
            if !message.is_oldest {
                self.send(sender, Message::Gap { link, have: taken });
                return Arrival::Settled;
            }
            // The sender has no earlier calls any more. If they are not taken here, they were taken in batches that are
            // void since the log was cut at a hole; or the sender's log was cut, and its numbers continue higher up.
            let skipped = Body::CallsSkipped {
                from: link.from,
                upto: CallNumber(message.number.0 - 1),
            };
            self.record(subject_of(link.to), false, skipped);
        }
        self.journal.consume(link, message.number, message.trace);
        self.trace = message.trace;
        self.call_links.taken.insert(link, sender);
        // The method of an exposed call is known once its message is read.
        let (wants_reply, method) = match message.call {
            Call::Method {
                wants_reply, method, ..
            } => (wants_reply, Some(method)),
            Call::Locate => (true, None),
            _ => (false, None),
        };
        Arrival::Taken(Caller {
            link,
            home: message.from_home,
            number: message.number,
            wants_reply,
            method,
        })
    }

    /// Ends an input: confirms consumed calls to their senders.
    pub(crate) fn confirm_taken(&mut self) -> Vec<(Link, CallNumber)> {
        let mut clients = Vec::new();
        for (link, sender) in std::mem::take(&mut self.call_links.taken) {
            let taken = self
                .state()
                .links(link.to)
                .and_then(|links| links.taken.get(&link.from))
                .copied();
            let Some(upto) = taken else { continue };
            if sender != self.owner() {
                self.send(sender, Message::Took { link, upto });
            } else if matches!(link.from, Address::Client(_)) {
                clients.push((link, upto));
            } else {
                self.confirm(link, upto);
            }
        }
        clients
    }

    /// The receiver has consumed calls of this owner.
    pub(crate) fn confirm(&mut self, link: Link, upto: CallNumber) {
        let Some(sent) = self.state().links(link.from).and_then(|links| links.sent.get(&link.to)) else {
            return;
        };
        let Some((&oldest, _)) = sent.unconfirmed.first_key_value() else {
            return;
        };
        let (last, upto) = (sent.last, upto.min(sent.last));
        if upto < oldest {
            return;
        }
        let confirmed = self.call_links.confirmed.entry(link).or_default();
        *confirmed = upto.max(*confirmed);
        let is_whole = *confirmed == last;
        if let Some((entity, Part::Cell)) = link.from.entity()
            && self.state().ending.contains_key(&entity)
        {
            // Its base part waits for this.
            self.log_confirmations();
        }
        if is_whole {
            self.call_links.stop(link);
            return;
        }
        if self.call_links.is_overdue(link.to) {
            // The fragment answers: only its newest calls are unconfirmed.
            self.call_links.reset_attempts(link);
        }
        if self.call_links.may_continue(link, upto, self.now.mono) {
            self.repeat(link, upto.next());
        }
    }

    /// Whether a call that `matches` is not confirmed. Confirmations count once they are received; they are
    /// logged later.
    pub fn has_unconfirmed(&self, link: Link, matches: impl FnMut(&Call) -> bool) -> bool {
        let Some(sent) = self.state().links(link.from).and_then(|links| links.sent.get(&link.to)) else {
            return false;
        };
        let confirmed = self.call_links.confirmed.get(&link).copied().unwrap_or_default();
        sent.unconfirmed
            .range(confirmed.next()..)
            .map(|(_, call)| call)
            .any(matches)
    }

    /// Logs received confirmations, as many as fit into a batch; the others wait for the next one. Call it before a
    /// batch is closed, and before an entity leaves.
    pub fn log_confirmations(&mut self) {
        for _ in 0..CONFIRMATIONS {
            let Some((link, upto)) = self.call_links.confirmed.pop_first() else {
                return;
            };
            let known = self.state().links(link.from).and_then(|links| links.sent.get(&link.to));
            if known.is_some_and(|sent| sent.unconfirmed.range(..=upto).next().is_some()) {
                self.record(
                    subject_of(link.from),
                    false,
                    Body::Confirmed {
                        to: link.to,
                        upto,
                        lost: false,
                    },
                );
            }
        }
    }

    /// The receiver lacks this owner's calls after `have`.
    pub(crate) fn fill_gap(&mut self, link: Link, have: CallNumber) {
        if self.call_links.may_resend(link, self.now.mono) {
            self.repeat(link, CallNumber(have.0.saturating_add(1)));
        }
    }

    /// `from` reports a cell part on another owner: calls to it follow, unless this owner is its home, which knows
    /// better.
    pub(crate) fn redirect(&mut self, from: OwnerId, entity: EntityId, to: OwnerId) {
        if to == self.owner() {
            return;
        }
        let before: Vec<(Link, Option<OwnerId>)> = self
            .links_to(entity)
            .into_iter()
            .map(|link| (link, self.way(link)))
            .collect();
        if before.is_empty() {
            return self.routes.moved_for_clients(entity, to);
        }
        // The home is notified by the cell part itself: a hint would outlive the part.
        if before.iter().any(|(link, _)| self.home(*link) == Some(self.owner())) {
            return;
        }
        self.routes.moved(entity, to);
        for (link, way) in before {
            if self.way(link) == way {
                continue;
            }
            if self.home(link) == Some(from) {
                self.call_links.reset_attempts(link);
            }
            if self.call_links.may_resend(link, self.now.mono) {
                self.repeat(link, CallNumber(0));
            }
        }
    }

    /// A cell part has reported its location to its home, which is here: calls that wait for it are sent at once.
    pub(crate) fn follow(&mut self, entity: EntityId) {
        for link in self.links_to(entity) {
            self.repeat(link, CallNumber(0));
        }
    }

    /// The links to a cell part with waiting calls.
    fn links_to(&self, entity: EntityId) -> Vec<Link> {
        let links = self.call_links.links.keys();
        links.filter(|link| link.to == Address::Cell(entity)).copied().collect()
    }

    /// The owner to which the calls of a link are sent.
    fn way(&self, link: Link) -> Option<OwnerId> {
        self.route(link.to, self.home(link)?)
    }

    /// The home of a link's receiver.
    fn home(&self, link: Link) -> Option<OwnerId> {
        Some(self.state().links(link.from)?.sent.get(&link.to)?.home)
    }

    /// The receiver is gone for good. Returns the calls that wait for a reply, and those that may not have been
    /// taken.
    pub(crate) fn give_up(&mut self, link: Link) -> (Vec<CallNumber>, Vec<CallNumber>) {
        let Some(links) = self.state().links(link.from) else {
            return (Vec::new(), Vec::new());
        };
        let Some(sent) = links.sent.get(&link.to) else {
            return (Vec::new(), Vec::new());
        };
        let asked: Vec<CallNumber> = links
            .awaiting
            .range((link.to, CallNumber(0))..)
            .take_while(|((to, _), _)| *to == link.to)
            .map(|((_, n), _)| *n)
            .collect();
        let lost: Vec<CallNumber> = sent.unconfirmed.keys().copied().collect();
        let upto = sent.last;
        self.call_links.stop(link);
        self.call_links.confirmed.remove(&link);
        if !lost.is_empty() {
            self.record(
                subject_of(link.from),
                false,
                Body::Confirmed {
                    to: link.to,
                    upto,
                    lost: true,
                },
            );
        }
        (asked, lost)
    }

    /// Resends calls that have been unconfirmed for long enough, as far as the gate has room. Returns the first link
    /// whose receiver does not exist, according to its home.
    pub(crate) fn send_due(&mut self) -> Option<Link> {
        while !self.gate.is_full()
            && let Some((link, attempt)) = self.call_links.pop(self.now.mono)
        {
            let home = self
                .state()
                .links(link.from)
                .and_then(|links| links.sent.get(&link.to))
                .map(|sent| sent.home);
            let at_home = home == Some(self.owner()) && link.to.entity().is_some();
            if at_home
                && !self.is_here(link.to)
                && self.route(link.to, self.owner()).is_none_or(|to| to == self.owner())
            {
                return Some(link);
            }
            if attempt.made >= ATTEMPTS_BEFORE_HOME
                && let Address::Cell(entity) = link.to
            {
                self.routes.forget(entity);
            }
            let pause = FIRST_RESEND.saturating_mul(1 << attempt.made.min(4)).min(LAST_RESEND);
            if let Some(behind) = self.send_again(link, CallNumber(0)) {
                let next = Attempt {
                    due: self.now.mono.after(pause),
                    made: attempt.made.saturating_add(1),
                    last_requested: Some(self.now.mono),
                    behind,
                };
                self.call_links.schedule(link, next);
            }
        }
        None
    }

    /// Whether an address is real here.
    #[must_use]
    pub fn is_here(&self, address: Address) -> bool {
        match address {
            Address::Owner(owner) => owner == self.owner(),
            Address::Client(_) => false,
            Address::Base(entity) | Address::Cell(entity) => {
                self.image(entity).is_some() && self.journal.address(entity) == address
            }
        }
    }

    /// Resends calls of a tracked link, and remembers up to which call that has to continue.
    fn repeat(&mut self, link: Link, from: CallNumber) {
        if let Some(behind) = self.send_again(link, from)
            && let Some(attempt) = self.call_links.links.get_mut(&link)
        {
            attempt.behind = behind;
        }
    }

    /// Resends the first unconfirmed calls from `from` on. Returns the link's newest call, if any is unconfirmed.
    fn send_again(&mut self, link: Link, from: CallNumber) -> Option<CallNumber> {
        let first = self
            .call_links
            .confirmed
            .get(&link)
            .map_or(from, |confirmed| from.max(confirmed.next()));
        let sent = self.state().links(link.from).and_then(|links| links.sent.get(&link.to));
        let sent = sent.filter(|sent| !sent.unconfirmed.is_empty())?;
        let newest = sent.last;
        let numbers: Vec<CallNumber> = sent
            .unconfirmed
            .range(first..)
            .map(|(n, _)| *n)
            .filter(|number| !self.is_answered(link, *number))
            .take(RESEND_BURST)
            .collect();
        for number in numbers {
            self.dispatch(link, number);
        }
        Some(newest)
    }

    /// Whether an outbound call or a download has ended, and only waits for an earlier one to be confirmed.
    fn is_answered(&self, link: Link, number: CallNumber) -> bool {
        let part = link.from.entity().filter(|_| is_performed(link.to));
        let image = part.and_then(|(entity, _)| self.image(entity).or_else(|| self.state().ending.get(&entity)));
        image.is_some_and(|image| !image.links.awaiting.contains_key(&(link.to, number)))
    }

    /// The first call of a link of which no confirmation has come.
    pub(crate) fn oldest_unconfirmed(&self, link: Link) -> Option<CallNumber> {
        let sent = self.state().links(link.from)?.sent.get(&link.to)?;
        let confirmed = self.call_links.confirmed.get(&link).copied().unwrap_or_default();
        sent.unconfirmed
            .range(confirmed.next()..)
            .next()
            .map(|(number, _)| *number)
    }

    fn message(&self, link: Link, number: CallNumber) -> Option<(CallMessage, OwnerId)> {
        let sent = self.state().links(link.from)?.sent.get(&link.to)?;
        let call = sent.unconfirmed.get(&number)?.clone();
        let oldest = self.oldest_unconfirmed(link);
        let from_home = match link.from.entity() {
            Some((entity, _)) => self.image(entity).map_or(self.owner(), |image| image.home),
            None => self.owner(),
        };
        let message = CallMessage {
            link,
            from_home,
            to_home: sent.home,
            number,
            is_oldest: oldest == Some(number),
            trace: self.trace,
            call,
        };
        Some((message, sent.home))
    }

    /// The owner to which a call for an address is sent; `None` while it is unknown.
    fn route(&self, to: Address, home: OwnerId) -> Option<OwnerId> {
        match to {
            Address::Owner(owner) => Some(owner),
            Address::Base(_) => Some(home),
            Address::Client(_) => None,
            Address::Cell(entity) if home == self.owner() => self.placed(entity),
            Address::Cell(entity) => Some(self.routes.cell(entity).unwrap_or(home)),
        }
    }

    /// Location of a cell part: exact if this owner is its home, else the last known one.
    #[must_use]
    fn placed(&self, entity: EntityId) -> Option<OwnerId> {
        if let Some(base) = self.image(entity).and_then(|image| image.base()) {
            return base.cell;
        }
        let elsewhere = self.state().placed.get(&entity).copied();
        elsewhere.or_else(|| self.routes.cell(entity))
    }

    /// Where a client's call for a cell part is passed on to: its location, or the last known one.
    #[must_use]
    pub fn placed_for_client(&self, entity: EntityId) -> Option<OwnerId> {
        let elsewhere = self.state().placed.get(&entity).copied();
        elsewhere.or_else(|| self.routes.of_client(entity))
    }

    /// Answers a call for a receiver that is not here.
    fn absent(&mut self, sender: OwnerId, message: &CallMessage) {
        let link = message.link;
        let Some((entity, _)) = link.to.entity() else { return };
        if self
            .state()
            .departing
            .values()
            .any(|(departing, _)| *departing == entity)
        {
            return;
        }
        let is_home = message.to_home == self.owner();
        let known = match link.to {
            Address::Cell(_) if is_home => self.placed(entity),
            Address::Cell(_) => self.routes.cell(entity),
            _ => None,
        };
        match known {
            Some(owner) if owner != self.owner() => self.send(sender, Message::Moved { entity, to: owner }),
            _ if is_home => self.send(sender, Message::Gone { link }),
            _ => {}
        }
    }
}

pub(crate) fn subject_of(address: Address) -> Subject {
    address
        .entity()
        .map_or(Subject::Owner, |(entity, part)| Subject::Entity(entity, part))
}
