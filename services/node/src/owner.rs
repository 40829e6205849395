//! One owner at work: the contract between a core and its shell.
//!
//! A shell calls [`Owner::handle`] with one input, then drains [`Owner::poll_log`] and [`Owner::poll_output`], in this
//! order, and calls `handle` again at the latest at [`Owner::deadline`]. Nothing in this module waits.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use annals_def::{EntityType, Method, Schema};
use annals_event::{Body, Call, CallError, Event, Imprint, Link, OwnerState, Subject, Timer};
use annals_ids::{
    Address, BatchNumber, CallNumber, DatabaseId, EntityId, Hash, MemberId, OwnerId, OwnerKind, Part, SpaceId, Tick,
    WorldTime,
};
use annals_personal::PersonalKey;
use annals_wire::{
    SpaceMap,
    bus::{CallMessage, Envelope, GhostMessage, Message, SpaceMessage, ViewMessage},
    client::CallRefusal,
    load::Survey,
    overview::{Overview, OverviewRequest},
};

use crate::{
    around::{Around, Nowhere},
    behaviour::{Answer, Behaviour, Caller},
    call_links::Arrival,
    context::{SPACE_CLAIM, check_args},
    exposed,
    global_exchange::GlobalExchange,
    ids::IdBlocks,
    inquiry::Answered,
    journal::Journal,
    lifecycle_events::{LifecycleEvent, LifecycleEvents},
    outbound::OutboundAnswer,
    output::{Output, Played, Request},
    owner_context::{GlobalNotice, Local, OwnerContext, OwnerContextParts},
    panics::PanicPolicy,
    schedule::Due,
    tally::{CostKind, Member},
    time::{Mono, Now},
    trouble::OwnerError,
    writer::{self, Action, Chain, Durability, Wanted, Writer},
};

/// Maximum calls within the owner, and requests, caused by one input. Behaviour that exceeds it calls itself in a
/// circle.
const LOCAL_LIMIT: usize = 10_000;

/// Maximum due items of each kind per [`Input::Time`]. The rest is due at once, after other inputs that wait for the
/// owner.
const TURNS: usize = 1_000;

/// The part of an owner that depends on its kind.
pub trait Role {
    /// Inputs that only this role takes.
    type Input;

    /// The kind of its owners.
    const KIND: OwnerKind;

    /// Whether this input comes only once and is small, so that it is accepted even while other inputs are rejected
    /// because the owner is full.
    fn is_vital(_input: &Self::Input) -> bool {
        false
    }

    /// Handles one of the role's own inputs.
    fn handle(&mut self, cx: &mut OwnerContext, input: Self::Input);

    /// Handles a call that is not a method call. It is already recorded as consumed.
    fn handle_call(&mut self, cx: &mut OwnerContext, caller: &Caller, call: Call);

    /// Executes a request of the behaviour of entity `by`, or denies it ([`OwnerContext::deny`]).
    fn request(&mut self, cx: &mut OwnerContext, by: EntityId, request: Request);

    /// Handles another owner's message about ghosts.
    fn ghost(&mut self, cx: &mut OwnerContext, from: OwnerId, message: GhostMessage);

    /// Handles another owner's message about a space's data.
    fn space(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _space: SpaceId, _message: SpaceMessage) {}

    /// Handles a message between a witness and a proxy.
    fn view(&mut self, cx: &mut OwnerContext, from: OwnerId, message: ViewMessage);

    /// Handles a lifecycle event of the realm, after the entity's behaviour did.
    fn on_lifecycle(&mut self, _cx: &mut OwnerContext, _entity: EntityId, _moment: LifecycleEvent) {}

    /// Forwards the outcome of a client's calls to the client.
    fn to_client(&mut self, cx: &mut OwnerContext, status: ClientCallStatus);

    /// Another owner has confirmed calls of this one on a link.
    fn confirmed(&mut self, _cx: &mut OwnerContext, _link: Link) {}

    /// Publishes the events that the input recorded, to ghosts and clients. Called once at the end of each input.
    fn publish(&mut self, cx: &mut OwnerContext, recorded: &[Event]);

    /// Executes the next due item, as an input of its own; called until [`Role::deadline`] is in the future.
    fn tick(&mut self, cx: &mut OwnerContext);

    /// When [`Role::tick`] has work again.
    fn deadline(&self) -> Option<Mono>;

    /// The owner's tick, for its batches.
    fn ticks(&self) -> Tick;

    /// The known surroundings of this owner's entities: lent to behaviour while it runs.
    fn around(&self) -> &dyn Around {
        &Nowhere
    }

    /// The owner's load and its distribution, for the director; `None` for a kind that is not balanced by load.
    fn survey(&self, _cx: &OwnerContext) -> Option<Survey> {
        None
    }

    /// The owner's sessions, for the director; `None` for a kind that has no clients.
    fn played(&self) -> Option<Played> {
        None
    }

    /// The newest map that was received.
    fn map(&self) -> Option<&SpaceMap> {
        None
    }

    /// An overview of a region, for operators; `None` for a kind whose entities are in no space.
    fn overview(&self, _cx: &OwnerContext, _asked: &OverviewRequest) -> Option<Overview> {
        None
    }
}

/// Outcome of calls that a client made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCallStatus {
    /// Calls up to this number were consumed.
    Took(Link, CallNumber),
    /// Calls after this number are missing.
    Gap(Link, CallNumber),
    /// The receiver does not exist.
    Gone(Link),
    /// One call was consumed, but not executed.
    Refused(Link, CallNumber, CallRefusal),
}

/// An input of an owner.
#[derive(Clone, Debug)]
pub enum Input<R> {
    /// From the log's driver.
    Log(writer::Input),
    /// From another owner.
    Bus(Envelope),
    /// A further block of entity ids.
    Ids(Range<u64>),
    /// For the role.
    Role(R),
    /// The answer to [`Output::Outbound`].
    Outbound(OutboundAnswer),
    /// The answer to [`Output::Inquire`].
    Inquired(Answered),
    /// A lifecycle event of the realm.
    LifecycleEvent(LifecycleEvent),
    /// Time has passed.
    Time,
}

/// Initial state of an owner.
pub struct Beginning {
    /// The state at the end of the log (rule E1).
    pub state: OwnerState,
    /// The generation of its call numbers, in its record (rule C13).
    pub call_generation: u64,
    /// Batches that are not archived yet.
    pub chain: Chain,
    /// Header fields that all its batches share, including the new epoch.
    pub imprint: Imprint,
    /// When a batch counts as acknowledged.
    pub durability: Durability,
    /// The ids granted with the epoch.
    pub ids: Range<u64>,
    pub schema: Arc<Schema>,
    /// The game.
    pub behaviour: Arc<dyn Behaviour>,
    /// What to do when it panics.
    pub panics: PanicPolicy,
    /// Source of random numbers.
    pub dice: Box<dyn FnMut() -> u64 + Send>,
    /// Keys of the stored entities that are active in `state` (rule P5).
    pub keys: BTreeMap<DatabaseId, PersonalKey>,
}

/// One owner: its context, role and writer. Driven as the module describes.
pub struct Owner<R: Role> {
    cx: OwnerContext,
    role: R,
    writer: Writer,
    lifecycle_events: LifecycleEvents,
    global_exchange: GlobalExchange,
}

impl<R: Role> Owner<R> {
    /// Takes an owner over. `onRestore` runs for every entity that is real in `beginning.state`; its effects are not
    /// shown before the epoch is open.
    pub fn take_over(now: Now, role: R, beginning: Beginning) -> Self {
        let Beginning {
            state,
            call_generation,
            chain,
            imprint,
            durability,
            ids,
            schema,
            behaviour,
            panics,
            dice,
            keys,
        } = beginning;
        assert_eq!(state.kind, R::KIND, "owner {} is of another kind", state.owner);
        let writer = Writer::take_over(state.owner, imprint.epoch, durability, chain);
        let restored: Vec<EntityId> = state.entities.keys().copied().collect();
        let journal = Journal::new(state, imprint);
        let cx = OwnerContext::new(OwnerContextParts {
            schema,
            behaviour,
            panics,
            journal,
            ids: IdBlocks::new(ids),
            dice,
            keys,
        });
        let lifecycle_events = LifecycleEvents::default();
        let mut owner = Self {
            cx,
            role,
            writer,
            lifecycle_events,
            global_exchange: GlobalExchange::default(),
        };
        owner.begin(now);
        if owner.cx.state().links.generation < call_generation {
            let generation = call_generation;
            owner
                .cx
                .record(Subject::Owner, false, Body::CallsRenumbered { generation });
        }
        for entity in restored {
            let cx = &mut owner.cx;
            cx.run(entity, owner.role.around(), |behaviour, context| {
                behaviour.restored(context);
            });
            owner.run_input();
        }
        owner
    }

    /// Handles one input completely.
    pub fn handle(&mut self, now: Now, input: Input<R::Input>) {
        self.begin(now);
        match input {
            Input::Log(input) => self.writer.handle(now.mono, input),
            Input::Ids(granted) => self.cx.ids.add(granted),
            Input::LifecycleEvent(event) => self.lifecycle_events.enqueue(event),
            // A full owner stands still, like a frozen process, and catches up afterwards.
            Input::Time if self.is_full() => {}
            Input::Time => self.pass_time(),
            // Reliable messages are resent; the others are not worth the memory.
            Input::Bus(_) if self.is_full() => {}
            Input::Role(input) if self.is_full() && !R::is_vital(&input) => {}
            // The call is performed again; the wait for the answer passes.
            Input::Outbound(_) | Input::Inquired(_) if self.is_full() => {}
            Input::Outbound(answer) => self.cx.take_answer(self.role.around(), &answer),
            Input::Inquired(answered) => self.cx.take_inquired(self.role.around(), answered),
            Input::Bus(envelope) => self.receive(envelope),
            Input::Role(input) => self.role.handle(&mut self.cx, input),
        }
        self.finish();
    }

    /// Next action for the log's driver, each answered by one [`Input::Log`].
    pub fn poll_log(&mut self, now: Now) -> Option<Action<'_>> {
        self.close_batch(now);
        self.writer.poll(now.mono)
    }

    /// Next output that may leave now. Drain it after each input.
    pub fn poll_output(&mut self, now: Now) -> Option<Output> {
        let fresh = self.writer.is_fresh(now.mono);
        self.cx.gate.release(self.writer.acknowledged(), fresh)
    }

    /// Latest time for the next [`Input::Time`].
    #[must_use]
    pub fn deadline(&self, now: Now) -> Option<Mono> {
        if self.is_full() {
            return self.writer.deadline(now.mono);
        }
        if self.lifecycle_events.is_busy() || self.cx.has_ended_cell() {
            return Some(now.mono);
        }
        let world = self.cx.schedule.next().map(|due| now.in_mono(due));
        let due = [
            self.writer.deadline(now.mono),
            self.cx.call_links.next(),
            world,
            self.role.deadline(),
            self.global_exchange.deadline(&self.cx),
        ];
        due.into_iter().flatten().min()
    }

    /// Why the owner stopped writing, if it did.
    #[must_use]
    pub fn stopped(&self) -> Option<&writer::Stop> {
        self.writer.stopped()
    }

    /// Next error for the process log, once the batch that it depends on is acknowledged. Drain it after each input.
    pub fn poll_trouble(&mut self) -> Option<OwnerError> {
        self.cx.troubles.pop(self.writer.acknowledged())
    }

    /// Number of errors since the take-over that [`Self::poll_trouble`] returns or has returned.
    #[must_use]
    pub fn troubles(&self) -> u64 {
        self.cx.troubles.count(self.writer.acknowledged())
    }

    /// The folded state, for inspection.
    #[must_use]
    pub fn state(&self) -> &OwnerState {
        self.cx.state()
    }

    /// The newest closed batch and the hash of the state after it; `None` while events are gathered behind it.
    #[must_use]
    pub fn settled(&self) -> Option<(BatchNumber, Hash)> {
        let state = self.cx.state();
        (self.cx.journal.is_empty() && state.tail.batch.0 > 0).then(|| (state.tail.batch, state.hash()))
    }

    /// Whether all batches are acknowledged and all outputs have left: a take-over now finds everything.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let acknowledged = self.writer.acknowledged() >= self.writer.tip().number;
        self.cx.journal.is_empty() && acknowledged && self.cx.gate.waiting() == 0
    }

    /// Number of lifecycle events that every part here has received.
    #[must_use]
    pub fn lifecycle_events(&self) -> u64 {
        self.lifecycle_events.delivered()
    }

    /// The newest tick begun; constant for a role that never ticks.
    #[must_use]
    pub fn ticks(&self) -> Tick {
        self.role.ticks()
    }

    /// The owner context, for inspection.
    #[must_use]
    pub fn cx(&self) -> &OwnerContext {
        &self.cx
    }

    /// The owner's load and its distribution, if the director places its kind by load.
    #[must_use]
    pub fn survey(&self) -> Option<Survey> {
        self.role.survey(&self.cx)
    }

    /// The owner's sessions, if its kind has clients.
    #[must_use]
    pub fn played(&self) -> Option<Played> {
        self.role.played()
    }

    /// An overview of a region, if its entities are in spaces.
    #[must_use]
    pub fn overview(&self, asked: &OverviewRequest) -> Option<Overview> {
        self.role.overview(&self.cx, asked)
    }

    /// The writer, for inspection.
    #[must_use]
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The role, for inspection.
    #[must_use]
    pub fn role(&self) -> &R {
        &self.role
    }

    /// Whether the owner stands still until batches are appended or archived, or outputs have left: it takes no inputs
    /// and its time does not pass.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.writer.is_full() || self.writer.stopped().is_some() || self.cx.gate.is_full() || self.cx.journal.is_full()
    }

    /// Bytes recorded in batches that are not closed yet.
    #[must_use]
    pub fn gathered(&self) -> usize {
        self.cx.journal.length()
    }

    fn begin(&mut self, now: Now) {
        self.cx.now = now;
        self.cx.trace = annals_event::Trace::default();
        self.cx.acknowledged = self.writer.acknowledged();
        self.cx.journal.begin();
    }

    /// Ends an input, and begins another one at the same time.
    fn run_input(&mut self) {
        self.finish();
        self.begin(self.cx.now);
    }

    /// Ends an input: executes calls within the owner and requests of behaviour, confirms calls, and publishes events.
    fn finish(&mut self) {
        let mut changes = Vec::new();
        for done in 0.. {
            if self.cx.is_idle() {
                break;
            }
            if done == LOCAL_LIMIT || self.cx.room() == 0 {
                self.abort_input();
            } else if let Some(local) = self.cx.local.pop_front() {
                self.take_local(local);
            } else if let Some((by, request)) = self.cx.requests.pop_front() {
                self.role.request(&mut self.cx, by, request);
            } else if let Some(notice) = self.cx.global_notices.pop_front() {
                self.notify_followers(&notice);
                if let GlobalNotice::Changed(scope, entry) = notice {
                    changes.push((scope, entry));
                }
            }
        }
        for (link, upto) in self.cx.confirm_taken() {
            self.role.to_client(&mut self.cx, ClientCallStatus::Took(link, upto));
        }
        let recorded = self.cx.take_recorded();
        if !recorded.is_empty() {
            self.role.publish(&mut self.cx, &recorded);
        }
        self.global_exchange.learn(&mut self.cx, self.role.map());
        self.global_exchange.note(&mut self.cx, changes, &recorded);
        if self.writer.stopped().is_some() {
            self.cx.gate.shut();
        }
    }

    /// Calls behaviour of parts that follow global data.
    fn notify_followers(&mut self, notice: &GlobalNotice) {
        let call = |cx: &mut OwnerContext, role: &R, entity, scope, key: &str| {
            cx.run(entity, role.around(), |behaviour, context| {
                behaviour.global_changed(context, scope, key);
            });
        };
        match notice {
            GlobalNotice::Changed(scope, entry) => {
                for follower in self.cx.followers.clone() {
                    call(&mut self.cx, &self.role, follower, *scope, &entry.key);
                }
            }
            GlobalNotice::Arrived(entity) => {
                let globals = self.cx.state().globals.iter();
                let keys = globals.flat_map(|(scope, data)| data.entries().map(|entry| (*scope, entry.key)));
                for (scope, key) in keys.collect::<Vec<_>>() {
                    call(&mut self.cx, &self.role, *entity, scope, &key);
                }
            }
        }
    }

    /// Drops the remaining work of the input. Numbered calls in it are resent by the call links.
    fn abort_input(&mut self) {
        let calls = self.cx.local.drain(..).count();
        let requests = self.cx.requests.drain(..).count();
        let notices = self.cx.global_notices.drain(..).count();
        let left = self.cx.room();
        self.cx.report(OwnerError::Cut {
            calls,
            requests,
            notices,
            left,
        });
    }

    fn close_batch(&mut self, now: Now) {
        let opens = match self.writer.wanted(now.mono) {
            Wanted::Nothing => return,
            Wanted::Filled if self.cx.journal.is_empty() => return,
            // Events of the take-over itself go into the batch after the `Open`, which is empty.
            Wanted::Opening => true,
            Wanted::Filled | Wanted::Heartbeat => {
                self.cx.now = now;
                self.cx.journal.begin();
                self.cx.log_confirmations();
                false
            }
        };
        let frozen = self.cx.journal.freeze(self.role.ticks(), now.wall, opens);
        self.writer.offer(now.mono, frozen);
    }

    /// Executes due items. Each is an input of its own, so that the log can hold any number of them.
    fn pass_time(&mut self) {
        self.run_each(Self::deliver_lifecycle_event);
        self.run_each(Self::fail_next_link);
        self.run_each(|owner| owner.cx.return_ended_cell());
        self.run_each(Self::run_next_due);
        if !self.is_full() && self.global_exchange.is_due(&self.cx) {
            self.global_exchange.tick(&mut self.cx);
            self.run_input();
        }
        let is_due = |role: &R, now: Now| role.deadline().is_some_and(|due| due <= now.mono);
        for _ in 0..TURNS {
            if self.is_full() || !is_due(&self.role, self.cx.now) {
                break;
            }
            self.role.tick(&mut self.cx);
            self.run_input();
        }
    }

    /// Executes items while there are any, each as an input of its own.
    fn run_each(&mut self, next: impl Fn(&mut Self) -> bool) {
        for _ in 0..TURNS {
            if self.is_full() || !next(self) {
                break;
            }
            self.run_input();
        }
    }

    /// Delivers a lifecycle event to the next part, if one is pending.
    fn deliver_lifecycle_event(&mut self) -> bool {
        let state = self.cx.state();
        let Some((event, entity)) = self.lifecycle_events.next(|| state.entities.keys().copied().collect()) else {
            return false;
        };
        // The entity may have been destroyed since the event was queued.
        if self.cx.image(entity).is_some() {
            self.cx.run(entity, self.role.around(), |behaviour, context| {
                event.dispatch(behaviour, context);
            });
            self.role.on_lifecycle(&mut self.cx, entity, event);
        }
        true
    }

    /// Resends due calls, and gives up the first link whose receiver does not exist, if there is one.
    fn fail_next_link(&mut self) -> bool {
        let lost = self.cx.send_due();
        if let Some(link) = lost {
            self.cx.fail_link(self.role.around(), link);
        }
        lost.is_some()
    }

    /// Executes the next item that is due in game time, if any.
    fn run_next_due(&mut self) -> bool {
        let due = self.cx.schedule.pop(self.cx.now.world);
        match due {
            Some(Due::Timer(entity, timer)) => self.fire(entity, timer),
            Some(Due::Reply(entity, to, number)) => {
                let late = Err(CallError::NoReply);
                self.cx.resume(self.role.around(), entity, (to, number), &late);
            }
            None => return false,
        }
        true
    }

    fn fire(&mut self, entity: EntityId, timer: annals_ids::TimerId) {
        let Some(at) = self
            .cx
            .image(entity)
            .and_then(|image| image.timers.get(&timer))
            .copied()
        else {
            return;
        };
        match self.cx.now.world.0.saturating_sub(at.due.0).checked_div(at.every) {
            None => self.cx.record_for(entity, false, Body::TimerGone { timer }),
            // A timer that missed several firings fires once and keeps its period.
            Some(missed) => {
                let past = at.every.saturating_mul(missed.saturating_add(1));
                let due = WorldTime(at.due.0.saturating_add(past));
                let at = Timer { due, ..at };
                self.cx.record_for(entity, false, Body::TimerSet { timer, at });
            }
        }
        self.cx.run(entity, self.role.around(), |behaviour, context| {
            behaviour.timer(context, timer, at.tag);
        });
    }

    fn receive(&mut self, envelope: Envelope) {
        let Envelope { from, epoch, message } = envelope;
        if from != self.cx.owner() && !self.cx.routes.admits(from, epoch) {
            return;
        }
        match message {
            Message::Call(message) => self.take_call(from, message),
            Message::Took { link, upto } => match link.from {
                Address::Client(_) => self.role.to_client(&mut self.cx, ClientCallStatus::Took(link, upto)),
                _ => {
                    self.cx.confirm(link, upto);
                    self.role.confirmed(&mut self.cx, link);
                }
            },
            Message::Gap { link, have } => match link.from {
                Address::Client(_) => self.role.to_client(&mut self.cx, ClientCallStatus::Gap(link, have)),
                _ => self.cx.fill_gap(link, have),
            },
            Message::Moved { entity, to } => self.cx.redirect(from, entity, to),
            Message::Gone { link } => match link.from {
                Address::Client(_) => self.role.to_client(&mut self.cx, ClientCallStatus::Gone(link)),
                _ => self.cx.fail_link(self.role.around(), link),
            },
            Message::Refused { link, number, reason } => {
                let status = ClientCallStatus::Refused(link, number, reason);
                self.role.to_client(&mut self.cx, status);
            }
            Message::Ghost(message) => self.role.ghost(&mut self.cx, from, message),
            Message::Space(space, message) => self.role.space(&mut self.cx, from, space, message),
            Message::Global(scope, message) => self.global_exchange.take(&mut self.cx, from, (scope, message)),
            Message::View(message) => self.role.view(&mut self.cx, from, message),
        }
    }

    fn take_local(&mut self, local: Local) {
        match local {
            Local::Numbered(message) => self.take_call(self.cx.owner(), message),
            Local::Direct { to, call, caller } => {
                if let Call::Method { method, args, .. } = call {
                    self.run_method(to, method, &args, &caller);
                }
            }
        }
    }

    fn take_call(&mut self, sender: OwnerId, message: CallMessage) {
        let Arrival::Taken(caller) = self.cx.arrive(sender, &message) else {
            return;
        };
        self.count_call(sender, &message.call, &caller);
        match (message.call, caller.link.to.entity()) {
            (Call::Method { method, args, .. }, Some((entity, _))) => self.run_method(entity, method, &args, &caller),
            (Call::Exposed { message }, Some((entity, _))) => self.run_exposed(sender, entity, &message, &caller),
            (Call::Reply { of, outcome }, Some((entity, _))) => {
                self.cx
                    .resume(self.role.around(), entity, (caller.link.from, of), &outcome);
            }
            (Call::Locate, Some((entity, _))) => {
                let outcome = self.cx.whereabouts(entity);
                self.cx.reply(&caller, outcome);
            }
            (Call::Register { by, of, key, type_id }, None) => self.cx.register(&caller, (by, of), &key, type_id),
            (call @ Call::Registered { of: SPACE_CLAIM, .. }, _) => self.role.handle_call(&mut self.cx, &caller, call),
            (Call::Registered { by, of, outcome }, None) => self.cx.take_registration((by, of), outcome),
            (Call::Deregister { entity, key }, None) => self.cx.end_registration(entity, &key),
            (call, _) => self.role.handle_call(&mut self.cx, &caller, call),
        }
    }

    /// Counts a call of a method, and the bytes that brought it here.
    fn count_call(&self, sender: OwnerId, call: &Call, caller: &Caller) {
        let Some((entity, part)) = caller.link.to.entity() else {
            return;
        };
        let Some(entity_type) = self.cx.entity_type(entity) else {
            return;
        };
        let method = match call {
            Call::Method { method, .. } => Some(*method),
            Call::Exposed { message } => exposed::method(self.cx.schema(), entity_type, part, message),
            _ => None,
        };
        let Some(method) = method else { return };
        let member = match part {
            Part::Base => Member::BaseMethod(method),
            Part::Cell => Member::CellMethod(method),
        };
        let tally = self.cx.tally();
        tally.add(entity_type.id, member, CostKind::Changes, 1);
        if sender != self.cx.owner() {
            let bytes = tally.weigh(|scale| call.write(scale));
            tally.add(entity_type.id, member, CostKind::Part, bytes);
        }
    }

    fn run_method(&mut self, entity: EntityId, method: MemberId, args: &[annals_def::Value], caller: &Caller) {
        let answer = match self.admit(entity, method, args, caller) {
            Ok(()) => self.cx.run(entity, self.role.around(), |behaviour, context| {
                behaviour.call(context, method, args, caller)
            }),
            Err(error) => Some(Answer::Fail(error)),
        };
        self.answer(caller, answer);
    }

    /// Answers a call with what its method returned. The entity existed, so only a panic leaves no answer.
    fn answer(&mut self, caller: &Caller, answer: Option<Answer>) {
        let answer = answer.unwrap_or_else(|| Answer::Fail(CallError::Internal("the method panicked".to_owned())));
        if let Some(outcome) = answer.outcome() {
            self.cx.reply(caller, outcome);
        }
    }

    /// Runs a client's call, if it is allowed; `sender` holds its proxy.
    fn run_exposed(&mut self, sender: OwnerId, entity: EntityId, message: &[u8], caller: &Caller) {
        let read = self.read_exposed(entity, message, caller);
        let read = read.and_then(|(method, args)| self.limit(entity, method, caller).map(|()| (method, args)));
        match read {
            Ok((method, args)) => {
                let found = self.cx.entity_type(entity).and_then(|found| self.method(found, method));
                let caller = &Caller {
                    wants_reply: found.is_some_and(Method::is_two_way),
                    method: Some(method),
                    ..*caller
                };
                let answer = self.cx.run(entity, self.role.around(), |behaviour, context| {
                    behaviour.call(context, method, &args, caller)
                });
                self.answer(caller, answer);
            }
            Err(reason) if sender == self.cx.owner() => {
                let status = ClientCallStatus::Refused(caller.link, caller.number, reason);
                self.role.to_client(&mut self.cx, status);
            }
            Err(reason) => {
                let (link, number) = (caller.link, caller.number);
                self.cx.send(sender, Message::Refused { link, number, reason });
            }
        }
    }

    fn read_exposed(
        &self,
        entity: EntityId,
        message: &[u8],
        caller: &Caller,
    ) -> Result<(MemberId, Vec<annals_def::Value>), CallRefusal> {
        let image = self.cx.image(entity).ok_or(CallRefusal::NoSuchMethod)?;
        let entity_type = self.cx.entity_type(entity).ok_or(CallRefusal::NoSuchMethod)?;
        let session = caller.client().ok_or(CallRefusal::NotAllowed)?;
        let own = image.client.is_some_and(|client| client.session == session);
        exposed::read(self.cx.schema(), entity_type, (self.cx.journal.part(), own), message)
    }

    /// A method of the parts that this owner holds.
    fn method<'t>(&self, entity_type: &'t EntityType, method: MemberId) -> Option<&'t Method> {
        let methods = match self.cx.journal.part() {
            Part::Base => &entity_type.base_methods,
            Part::Cell => &entity_type.cell_methods,
        };
        methods.get(usize::from(method.0))
    }

    /// Counts a client's call of a method, and refuses it if the client calls the method more often than it may.
    fn limit(&mut self, entity: EntityId, method: MemberId, caller: &Caller) -> Result<(), CallRefusal> {
        let found = self.cx.entity_type(entity).and_then(|found| self.method(found, method));
        let found = found.ok_or(CallRefusal::NoSuchMethod)?;
        let (Some(calls), Some(session)) = (found.calls_per_minute, caller.client()) else {
            return Ok(());
        };
        let now = self.cx.now().mono;
        if self.cx.call_limits.admit(now, (entity, session, method), calls) {
            Ok(())
        } else {
            Err(CallRefusal::TooOften)
        }
    }

    /// Whether a call may reach behaviour: it does not come from a client, the method exists, and the arguments fit.
    fn admit(
        &self,
        entity: EntityId,
        method: MemberId,
        args: &[annals_def::Value],
        caller: &Caller,
    ) -> Result<(), CallError> {
        let entity_type = self.cx.entity_type(entity).ok_or(CallError::NoSuchEntity)?;
        let found = self.method(entity_type, method);
        let found = found.ok_or_else(|| CallError::InvalidArgs(format!("{} has no such method", entity_type.name)))?;
        if caller.client().is_some() {
            let text = format!(
                "{}.{} is called by clients in their own way",
                entity_type.name, found.name
            );
            return Err(CallError::Authenticate(text));
        }
        check_args(entity_type, found, args).map_err(|denied| OwnerContext::denied(&denied))
    }
}
