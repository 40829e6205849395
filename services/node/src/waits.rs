//! Ends of waits: answers, deadlines, and receivers that are gone.

use annals_event::{Body, Call, CallError, Link, Outcome, Subject};
use annals_ids::{Address, CallNumber, EntityId, Part};

use crate::{
    around::Around,
    inquiry::{DATABASE, NotLearned},
    near::LOCATED,
    outbound::{OUTSIDE, OutboundAnswer, is_performed},
    owner_context::OwnerContext,
};

impl OwnerContext {
    /// Ends a wait of an entity, and notifies its behaviour.
    pub(crate) fn resume(
        &mut self,
        around: &dyn Around,
        entity: EntityId,
        (to, number): (Address, CallNumber),
        outcome: &Outcome,
    ) {
        let awaiting = self
            .image(entity)
            .and_then(|image| image.links.awaiting.get(&(to, number)))
            .cloned();
        let Some(awaiting) = awaiting else {
            return self.resume_ended(entity, (to, number));
        };
        if to == DATABASE {
            return self.inform(around, (entity, number), &Err(NotLearned::Late));
        }
        self.end_wait(entity, (to, number));
        if awaiting.then == LOCATED {
            return self.located(entity, around, (to, &awaiting.note), outcome);
        }
        self.run(entity, around, |behaviour, context| {
            behaviour.replied(context, awaiting.then, &awaiting.note, outcome);
        });
    }

    /// Records the end of a wait, without notifying behaviour.
    pub(crate) fn end_wait(&mut self, entity: EntityId, (to, number): (Address, CallNumber)) {
        self.record_for(entity, false, Body::Resumed { to, number });
        if is_performed(to) {
            self.settle_performed(self.journal.address(entity), to);
        }
    }

    /// Ends a wait of a cell part that has ended: its outbound calls are performed until they are answered, or their
    /// deadlines pass.
    fn resume_ended(&mut self, entity: EntityId, (to, number): (Address, CallNumber)) {
        let ended = self
            .state()
            .ending
            .get(&entity)
            .filter(|_| self.image(entity).is_none());
        if ended.is_some_and(|image| image.links.awaiting.contains_key(&(to, number))) {
            let subject = Subject::Entity(entity, Part::Cell);
            self.record(subject, false, Body::Resumed { to, number });
            self.settle_performed(Address::Cell(entity), OUTSIDE);
        }
    }

    /// Takes the answer to an outbound call. If its part is elsewhere now, it is performed again from there.
    pub(crate) fn take_answer(&mut self, around: &dyn Around, answer: &OutboundAnswer) {
        let OutboundAnswer { from, number, outcome } = answer;
        let Some((entity, part)) = from.entity() else { return };
        let is_ending = part == Part::Cell && self.state().ending.contains_key(&entity);
        if self.is_here(*from) || is_ending {
            self.resume(around, entity, (OUTSIDE, *number), outcome);
            // Confirmations of a former holder may have been lost.
            self.settle_performed(*from, OUTSIDE);
        } else {
            self.settle_outbound_of_ended(*from, *number);
        }
    }

    /// The receiver of calls is gone for good: notifies the callers.
    pub(crate) fn fail_link(&mut self, around: &dyn Around, link: Link) {
        let (asked, lost) = self.give_up(link);
        self.notify_of_lost(around, link, asked, &lost);
    }

    /// A cell part has ended after it took the calls of a link up to a number: the others are not for the next one.
    pub fn end_link(&mut self, around: &dyn Around, link: Link, taken: CallNumber) {
        let sent = self.state().links(link.from).and_then(|links| links.sent.get(&link.to));
        let Some(sent) = sent else { return };
        // Requests of the base part itself are not known to behaviour.
        let is_of_behaviour = |call: &Call| matches!(call, Call::Method { .. } | Call::InvokeFor { .. });
        let lost = sent.unconfirmed.range(taken.next()..);
        let lost = lost.filter(|(_, call)| is_of_behaviour(call));
        let lost: Vec<CallNumber> = lost.map(|(number, _)| *number).collect();
        if sent.unconfirmed.range(..=taken).next().is_some()
            && let Some((entity, part)) = link.from.entity()
        {
            let (to, upto) = (link.to, taken);
            let confirmed = Body::Confirmed { to, upto, lost: false };
            self.record(Subject::Entity(entity, part), false, confirmed);
        }
        let (asked, _) = self.give_up(link);
        self.notify_of_lost(around, link, asked, &lost);
    }

    /// Notifies a caller: each wait ends with an error, and of other lost calls it is notified once.
    fn notify_of_lost(&mut self, around: &dyn Around, link: Link, asked: Vec<CallNumber>, lost: &[CallNumber]) {
        let Some((entity, _)) = link.from.entity() else { return };
        let has_others = lost.iter().any(|number| !asked.contains(number));
        let why: Outcome = Err(Self::no_such(link.to));
        for number in asked {
            self.resume(around, entity, (link.to, number), &why);
        }
        if has_others {
            self.run(entity, around, |behaviour, context| {
                behaviour.calls_lost(context, link.to);
            });
        }
    }

    /// The error for a call whose receiver does not exist.
    fn no_such(to: Address) -> CallError {
        match to {
            Address::Cell(_) => CallError::NoSuchCellEntity,
            _ => CallError::NoSuchEntity,
        }
    }
}
