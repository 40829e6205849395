//! Holding an owner: taking it over (rule E1) and driving its core for as long as this process is to hold it.

mod burst;
mod sending;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use annals_db::personal::{self, Person};
use annals_director::openings;
use annals_event::{Imprint, OwnerState};
use annals_ids::{BatchNumber, DatabaseId, Epoch, Hash, OwnerId, OwnerKind, Shard, Tick};
use annals_node::{
    Beginning, Behaviour, Input, Output, Owner, Played, Role,
    time::Mono,
    writer::{self, Action, Durability, Stop},
};
use annals_personal::PersonalKey;
use annals_store::{
    Store, StoreError, Transaction,
    layout::owners::{self, OwnerRecord},
};
use annals_wire::{
    bus::{Envelope, EnvelopeError, Packet},
    control::{self, Inspected},
    load::Load,
};
use burst::handle_burst;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::try_join_all};
use sending::send_outputs;
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    clock,
    following::{Following, KeptMessages, OwnerLog, Prepared, TakeError},
    gauge::Gauge,
    log::{Driver, History, LogCore},
    nats::Subscription,
    outbound::Outbound,
    overviews::Overviews,
    packets::Packets,
    process::Process,
    registry::StoreRegistry,
    telemetry::{Chain, Metrics, Span},
    traced_owner::TracedOwner,
    waiting::Wait,
};

const _: () = assert!(annals_node::journal::BATCH_LIMIT < crate::nats::MAX_PAYLOAD);

/// Pause before an incomplete take-over is tried again.
const PAUSE: Duration = Duration::from_millis(300);

/// Interval at which a closing holder checks whether its log is folded.
const FOLD_LOOK: Duration = Duration::from_millis(50);

/// Timeout of recording that a holder has ended: the time that it saves the next one.
const RELEASE_TIMEOUT: Duration = writer::SECOND_READ_DELAY;

/// Normal time until a log is folded.
const FOLDED_WITHIN: Duration = Duration::from_secs(2);

/// Maximum requests for the state's hash that wait until no batch is being gathered: more than there are operators.
/// Further ones get no answer.
const INSPECTIONS: usize = 64;

/// Capacity of a holder's command queue, beside the bus.
pub const COMMANDS: usize = 4_096;

/// Maximum personal keys read concurrently: a take-over of a base needs those of all its stored entities.
const KEYS_AT_ONCE: usize = 64;

/// Terms of a grant.
#[derive(Clone)]
pub struct Terms {
    pub owner: OwnerId,
    pub kind: OwnerKind,
    /// The stream of its log.
    pub shard: Shard,
    pub epoch: Epoch,
    /// The entity ids of that epoch.
    pub ids: Range<u64>,
    /// Whether no former holder can receive an acknowledgement any more (rule E8).
    pub former_ended: bool,
    /// The game.
    pub behaviour: Arc<dyn Behaviour>,
    /// When a batch counts as acknowledged.
    pub durability: Durability,
}

/// A notice of a holder to its service.
#[derive(Debug)]
pub enum Notice {
    /// Outputs of its core that are not for another owner, in order.
    Outputs(OwnerId, Vec<Output>),
    /// Another process, with this client address, is about to hold the owner, which is held in this epoch. The clients
    /// are notified over this time.
    Moving(OwnerId, Epoch, String, Duration),
    /// The owner stays here after all.
    Staying(OwnerId),
    /// It holds the owner, and clients can play.
    Held(OwnerId),
    /// It no longer holds or follows the owner.
    Ended(OwnerId),
}

/// The queue of notices.
pub type Notices = mpsc::Sender<Notice>;

/// A command to a holder.
#[derive(Clone, Debug)]
pub enum Command<I> {
    /// An input for the core.
    Core(Input<I>),
    /// db lacks batches from the first of these numbers to before the second: those that are kept are published again
    /// (rule F4). This shows nothing that the log has not held, so it bypasses the gate.
    Refill(Range<u64>),
    /// End in order: what has happened is logged and shown, and nothing more happens.
    Finish,
    /// As [`Command::Finish`], and then wait until db has folded everything: no process takes over before the realm
    /// starts again.
    Close,
}

/// Progress of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The owner is being taken over.
    Taking,
    /// It is held.
    Open,
    /// It is held, and its log has acknowledged nothing for so long that nothing is shown.
    Stuck,
}

/// Inputs and outputs of a holder's task.
pub struct Wires<I> {
    pub commands: mpsc::Receiver<Command<I>>,
    /// A sender of commands to itself, for answers that arrive later.
    pub own: mpsc::Sender<Command<I>>,
    /// The queue of notices.
    pub notices: Notices,
    /// What performs calls of behaviour to services outside the realm.
    pub outbound: Arc<Outbound>,
    /// Number of real entities here, for the director.
    pub entities: Arc<AtomicU64>,
    /// Load of the owner, if it is balanced.
    pub load: watch::Sender<Option<Load>>,
    /// Its sessions, once it is taken over, if its kind has clients.
    pub played: watch::Sender<Option<Played>>,
    /// Number of lifecycle events that all parts here were notified of.
    pub lifecycle_events: Arc<AtomicU64>,
    /// Progress of the holder.
    pub stage: watch::Sender<Stage>,
    /// Notified when the owner is taken over: the director sends clients its address once it knows it.
    pub changed: Arc<Notify>,
}

/// An owner and its clock, as the log's driver uses it.
struct Held<R: Role> {
    owner: Owner<R>,
    clock: clock::Clock,
    epoch: Epoch,
    metrics: Arc<Metrics>,
    /// Time of the due work since the newest tick began, once there was one.
    tick: Option<Duration>,
    traced: TracedOwner,
    /// The entities that the process's metrics count, once they count this owner.
    counted: Option<i64>,
    packets: Packets,
}

impl<R: Role> LogCore for Held<R> {
    fn owner(&self) -> OwnerId {
        self.owner.state().owner
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn poll_log(&mut self) -> Option<Action<'_>> {
        self.owner.poll_log(self.clock.now())
    }

    fn handle_log(&mut self, input: writer::Input) {
        self.owner.handle(self.clock.now(), Input::Log(input));
    }

    fn log_deadline(&self) -> Option<Mono> {
        self.owner.writer().deadline(self.clock.now().mono)
    }

    fn stopped(&self) -> Option<&Stop> {
        self.owner.stopped()
    }

    fn spans(&mut self, batch: &[u8]) -> Vec<Span> {
        self.traced.append(batch)
    }

    fn appended(&mut self, after: Duration) {
        self.metrics.append.record(after);
        self.metrics.batches.add(1);
    }
}

impl<R: Role> Drop for Held<R> {
    fn drop(&mut self) {
        self.collect();
        if let Some(entities) = self.counted {
            self.metrics.owners.add(-1);
            self.metrics.entities.add(-entities);
        }
    }
}

impl<R: Role> Held<R> {
    /// Adds the costs of members of entity types to the process's metrics.
    fn collect(&self) {
        let cx = self.owner.cx();
        self.metrics.costs.collect(cx.schema(), cx.tally());
    }

    /// Counts the owner and its entities in the process's metrics.
    fn count(&mut self) {
        let entities = i64::try_from(self.owner.state().entities.len()).unwrap_or(i64::MAX);
        match self.counted.replace(entities) {
            Some(before) => self.metrics.entities.add(entities - before),
            None => {
                self.metrics.owners.add(1);
                self.metrics.entities.add(entities);
            }
        }
    }

    /// Gives the core an input, and measures the time it takes.
    fn handle(&mut self, input: Input<R::Input>) {
        let is_time = matches!(input, Input::Time);
        let (began, before) = (clock::mono(), self.owner.ticks());
        self.owner.handle(self.clock.now(), input);
        if is_time {
            self.worked(before, clock::mono().since(began));
        } else {
            self.metrics.inputs.add(1);
        }
    }

    /// Records the time that the due work took. A tick may take several inputs, so all due work between the starts of
    /// two ticks counts for the first: controllers, timers and the writer's deadlines too.
    fn worked(&mut self, before: Tick, took: Duration) {
        if self.owner.ticks() == before {
            self.tick = self.tick.map(|so_far| so_far + took);
        } else if let Some(whole) = self.tick.replace(took) {
            self.metrics.tick.record(whole);
        }
    }
}

/// Holds an owner until it is replaced or its inputs end. `following` has read its log, if this process followed it.
pub(crate) async fn hold<R>(
    process: Arc<Process>,
    terms: Terms,
    make: impl Fn(&OwnerState, Mono) -> R,
    mut wires: Wires<R::Input>,
    following: Option<Following>,
) where
    R: Role,
    R::Input: Clone + Send + 'static,
{
    let Terms { owner, epoch, .. } = terms;
    let prepared = match following {
        Some(following) => following.finish().await,
        None => Prepared::default(),
    };
    let Some((mut driver, mut messages)) = open(&process, &terms, &make, prepared).await else {
        return;
    };
    tracing::info!(%owner, %epoch, entities = driver.core().owner.state().entities.len(), "took over the owner");
    wires.stage.send_replace(Stage::Open);
    wires.changed.notify_one();
    let mut inspections = Inspections::listen(&process, owner).await;
    let mut overviews = Overviews::listen(&process, owner, R::KIND).await;
    let mut troubles = Troubles::default();
    let mut gauge = Gauge::new();
    let mut command_after = None;
    let definitions = process.schema.fingerprint();
    loop {
        let poll = |held: &mut Held<R>| held.owner.poll_output(process.clock.now());
        send_outputs(&process, driver.core_mut(), &wires, |held| gauge.during(|| poll(held))).await;
        if let Some(stop) = driver.core().stopped() {
            tracing::info!(%owner, %epoch, %stop, "no longer holds the owner");
            troubles.report_all(driver.core_mut());
            return;
        }
        troubles.report(driver.core_mut());
        if let Some(settled) = inspections.is_asked().then(|| driver.core().owner.settled()).flatten() {
            inspections.answer(&process, settled).await;
        }
        driver.core_mut().count();
        report(&driver, &mut gauge, &wires);
        let deadline = driver.core().owner.deadline(process.clock.now());
        let packets_due = driver.core().packets.deadline();
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => gauge.during(|| handle_messages(&mut driver, &mut messages, (message, definitions))),
                None => return,
            },
            command = next_command(&mut command_after, &mut wires.commands) => match command {
                Some(Command::Core(input)) => {
                    command_after = gauge.during(|| take_inputs(driver.core_mut(), input, &mut wires.commands));
                }
                Some(Command::Refill(missing)) => refill(driver.history(), driver.core().owner.writer(), missing).await,
                Some(command @ (Command::Finish | Command::Close)) => {
                    end(&process, &mut driver, &mut wires, (&mut troubles, matches!(command, Command::Close))).await;
                    return;
                }
                None => return,
            },
            () = driver.step() => {}
            () = inspections.wait() => {}
            asked = overviews.next() => {
                asked.answer(&process, gauge.during(|| driver.core().owner.overview(&asked.region))).await;
            }
            () = clock::until(packets_due) => {}
            () = clock::until(deadline) => gauge.during(|| driver.core_mut().handle(Input::Time)),
        }
    }
}

/// The next command; first the one that followed the last inputs. Cancel-safe.
async fn next_command<I>(
    after: &mut Option<Command<I>>,
    commands: &mut mpsc::Receiver<Command<I>>,
) -> Option<Command<I>> {
    match after.take() {
        Some(command) => Some(command),
        None => commands.recv().await,
    }
}

/// Gives the core an input and those that wait after it. Returns the first command that is not an input.
fn take_inputs<R: Role>(
    held: &mut Held<R>,
    first: Input<R::Input>,
    commands: &mut mpsc::Receiver<Command<R::Input>>,
) -> Option<Command<R::Input>> {
    let mut after = None;
    let arrived = || match commands.try_recv() {
        Ok(Command::Core(input)) => Some(input),
        Ok(other) => {
            after = Some(other);
            None
        }
        Err(_) => None,
    };
    handle_burst(first, arrived, |input| {
        held.handle(input);
        1
    });
    after
}

/// Reports the stage and the load.
fn report<R: Role>(driver: &Driver<Held<R>>, gauge: &mut Gauge, wires: &Wires<R::Input>) {
    let owner = &driver.core().owner;
    let stage = if driver.stands_still() {
        Stage::Stuck
    } else {
        Stage::Open
    };
    wires
        .stage
        .send_if_modified(|known| std::mem::replace(known, stage) != stage);
    wires
        .entities
        .store(owner.state().entities.len() as u64, Ordering::Relaxed);
    wires.played.send_replace(owner.played());
    wires
        .lifecycle_events
        .store(owner.lifecycle_events(), Ordering::Relaxed);
    if let Some((busy, micros)) = gauge.read() {
        driver.core().collect();
        driver.core().metrics.busy.add(micros);
        let survey = owner.survey();
        wires.load.send_replace(survey.map(|survey| Load { busy, survey }));
    }
}

/// Ends in order, and releases the owner; if it `closes`, waits until db has folded everything.
async fn end<R>(
    process: &Arc<Process>,
    driver: &mut Driver<Held<R>>,
    wires: &mut Wires<R::Input>,
    (troubles, closes): (&mut Troubles, bool),
) where
    R: Role,
    R::Input: Send + 'static,
{
    let (owner, epoch) = (driver.core().owner.state().owner, driver.core().epoch);
    let tip = finish(process, driver, wires).await;
    troubles.report_all(driver.core_mut());
    if let Some(tip) = tip {
        release(process, owner, epoch).await;
        if closes {
            folded(process, owner, tip).await;
        }
    }
}

/// Ends in order: gets what has happened into the log and shows it, and takes no input except the log's. Returns the
/// last batch, or `None` if the writer stopped before.
async fn finish<R>(
    process: &Arc<Process>,
    driver: &mut Driver<Held<R>>,
    wires: &mut Wires<R::Input>,
) -> Option<BatchNumber>
where
    R: Role,
    R::Input: Send + 'static,
{
    loop {
        let poll = |held: &mut Held<R>| held.owner.poll_output(process.clock.now());
        send_outputs(process, driver.core_mut(), wires, poll).await;
        if driver.core().owner.is_at_rest() {
            return Some(driver.core().owner.writer().tip().number);
        }
        if driver.core().owner.stopped().is_some() {
            return None;
        }
        tokio::select! {
            () = driver.step() => {}
            command = wires.commands.recv() => match command {
                Some(Command::Core(input @ Input::Log(_))) => driver.core_mut().handle(input),
                // Calls are resent to the next holder of the owner; the rest is not worth keeping.
                Some(Command::Core(_) | Command::Refill(_) | Command::Finish | Command::Close) => {}
                None => return None,
            },
        }
    }
}

/// Records that this holder has ended, so that the next one need not wait until it cannot be fresh (rule E8). If the
/// store does not answer, the next one waits.
async fn release(process: &Process, owner: OwnerId, epoch: Epoch) {
    let releasing = openings::release(&process.store, owner, epoch);
    match tokio::time::timeout(RELEASE_TIMEOUT, releasing).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%owner, %error, "the release of the owner could not be recorded"),
        Err(_) => tracing::warn!(%owner, "the release of the owner could not be recorded: the store does not answer"),
    }
}

/// Waits until db has folded a log up to `tip`. Reads the store, since db's notifications may be lost.
async fn folded(process: &Process, owner: OwnerId, tip: BatchNumber) {
    let mut wait = Wait::new(
        format!("db to fold the log of owner {owner}"),
        "the stop of the realm waits for it; check that annals-db runs, and read its log",
    )
    .after(FOLDED_WITHIN);
    loop {
        let read = |transaction: Transaction| async move { transaction.get(&owners::cursor_key(owner)).await };
        let cursor = wait
            .during(process.store.read(read))
            .await
            .and_then(|value| owners::Cursor::decode(value.as_deref()));
        match cursor {
            Ok(cursor) if cursor.batch >= tip => return wait.ends(),
            Ok(cursor) => wait.lasts(format_args!("batch {} of {tip} is folded", cursor.batch)),
            Err(error) => wait.lasts(error),
        }
        tokio::time::sleep(FOLD_LOOK).await;
    }
}

/// Reports an owner's errors in the process's log: at most once a second, so that a recurring error does not fill it.
/// The metric counts all of them.
#[derive(Default)]
struct Troubles {
    counted: u64,
    last_logged: Option<Mono>,
}

impl Troubles {
    fn report<R: Role>(&mut self, held: &mut Held<R>) {
        const EVERY: Duration = Duration::from_secs(1);
        self.count(held);
        let now = clock::mono();
        if self.last_logged.is_none_or(|last| now.since(last) >= EVERY) {
            self.report_all(held);
        }
    }

    fn count<R: Role>(&mut self, held: &Held<R>) {
        let count = held.owner.troubles();
        held.metrics.troubles.add(count - self.counted);
        self.counted = count;
    }

    /// Reports what is left: the holder ends.
    fn report_all<R: Role>(&mut self, held: &mut Held<R>) {
        self.count(held);
        while let Some(trouble) = held.owner.poll_trouble() {
            self.last_logged = Some(clock::mono());
            tracing::error!(owner = %held.owner.state().owner, %trouble, "the owner reported an error");
        }
    }
}

/// Requests for the state's hash at a batch: received over the bus, answered as soon as no batch is being gathered.
struct Inspections {
    requests: Option<Subscription>,
    waiting: Vec<async_nats::Subject>,
}

impl Inspections {
    async fn listen(process: &Process, owner: OwnerId) -> Self {
        let listening = process.bus.subscribe(process.subjects.inspect(owner)).await;
        let requests = listening
            .map_err(|error| tracing::warn!(%owner, %error, "cannot subscribe to inspections of the owner"))
            .ok();
        Self {
            requests,
            waiting: Vec::new(),
        }
    }

    /// Waits for a request.
    async fn wait(&mut self) {
        match &mut self.requests {
            Some(requests) => match requests.next().await {
                Some(request) if self.waiting.len() < INSPECTIONS => self.waiting.extend(request.reply),
                Some(_) => {}
                None => self.requests = None,
            },
            None => std::future::pending().await,
        }
    }

    fn is_asked(&self) -> bool {
        !self.waiting.is_empty()
    }

    async fn answer(&mut self, process: &Process, (batch, hash): (BatchNumber, Hash)) {
        let answer = control::encode(&Inspected {
            batch: batch.0,
            state: hash.0.to_vec(),
        });
        for reply in self.waiting.drain(..) {
            if let Err(error) = process.bus.client().publish(reply, answer.clone().into()).await {
                tracing::debug!(%error, "could not send an answer");
            }
        }
    }
}

/// Handles messages written under these definitions. Those of other definitions are dropped: their senders have ended,
/// and the next holders resend what must arrive (rule M7).
fn handle_messages<R: Role>(
    driver: &mut Driver<Held<R>>,
    messages: &mut KeptMessages,
    (first, definitions): (async_nats::Message, Hash),
) {
    let held = driver.core_mut();
    let arrived = || messages.next().now_or_never().flatten();
    handle_burst(first, arrived, |message| {
        let handled = match Packet::decode(&message.payload, definitions) {
            Ok(packet) => {
                let messages = packet.messages.len();
                take(held, packet, message.headers.as_ref());
                messages
            }
            Err(error @ EnvelopeError::OtherDefinitions) => {
                tracing::debug!(subject = %message.subject, %error, "dropped a message");
                0
            }
            Err(error) => {
                tracing::warn!(subject = %message.subject, %error, "dropped a malformed message");
                0
            }
        };
        1 + handled
    });
}

/// Passes messages to the core, each in the spans of the traced calls that it belongs to.
fn take<R: Role>(held: &mut Held<R>, packet: Packet, headers: Option<&async_nats::HeaderMap>) {
    held.packets.arrived(&packet);
    let Packet { from, epoch, .. } = packet;
    for message in packet.messages {
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(owner = %from, %error, "dropped a malformed message");
                continue;
            }
        };
        let spans = held.traced.arrive(&message, headers);
        let logged = spans.first().map(|span| span.of_log().entered());
        held.handle(Input::Bus(Envelope { from, epoch, message }));
        drop(logged);
        spans.into_iter().for_each(Span::end);
    }
}

async fn refill(history: &History, writer: &writer::Writer, missing: Range<u64>) {
    let owner = writer.owner();
    for batch in writer.kept_within(missing) {
        let verdict = history.fill(owner, Bytes::copy_from_slice(&batch.bytes)).await;
        tracing::warn!(%owner, batch = %batch.number, ?verdict, "filled a hole in the log");
    }
}

/// Rules E1 to E3: an owner's core once the store holds its opening; `None` when the owner has been granted to another
/// process since.
///
/// The former holder may still be appending. What it appends in between is read too, and the take-over retried: the
/// first `Open` that is appended ends that. Until it is recorded, all inputs for the owner wait.
async fn open<R: Role>(
    process: &Arc<Process>,
    terms: &Terms,
    make: impl Fn(&OwnerState, Mono) -> R,
    mut prepared: Prepared,
) -> Option<(Driver<Held<R>>, KeptMessages)> {
    let Terms { owner, epoch, .. } = terms;
    let registry = Arc::new(StoreRegistry::new(process.store.clone(), terms.shard));
    let mut wait = Wait::new(
        format!("owner {owner}, which is taken over under epoch {epoch}"),
        "its entities are paused until then; retrying; check that annals-db and the nats-server run",
    );
    let history = wait_for_stream(process, terms.shard, &mut wait).await;
    loop {
        let taking = take_over(process, terms, &make, &mut prepared);
        let (held, recovered) = match wait.during(taking).await {
            Ok(taken) => {
                wait.ends();
                taken
            }
            // What was followed does not lead to the end of the log: it is read from the beginning.
            Err(TakeError::Changed(_)) => {
                prepared.read_anew();
                continue;
            }
            Err(error) => {
                wait.lasts(Chain(&error));
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let mut driver = Driver::new(held, history.clone(), Arc::clone(&registry) as _);
        while driver.core().owner.writer().opening().is_none() && driver.core().owner.stopped().is_none() {
            let deadline = driver.core().owner.deadline(process.clock.now());
            tokio::select! {
                () = driver.step() => {}
                () = clock::until(deadline) => driver.core_mut().handle(Input::Time),
            }
        }
        match driver.core().owner.stopped() {
            None => {
                recovered.into_iter().for_each(Span::end);
                return prepared.into_messages().map(|messages| (driver, messages));
            }
            Some(Stop::ReadAgain { .. }) => {
                tracing::debug!(%owner, %epoch, "the log has grown; taking over again");
                let writer = driver.core().owner.writer();
                if writer.kept(writer.tip().number).is_some() {
                    // The second read differs from the first, which may be outdated: start from the beginning.
                    prepared.read_anew();
                }
            }
            Some(stop) => {
                tracing::info!(%owner, %epoch, %stop, "did not take over the owner");
                return None;
            }
        }
    }
}

/// The stream of a shard. One that cannot be used is reported, and tried again: an operator may repair it.
async fn wait_for_stream(process: &Process, shard: Shard, wait: &mut Wait) -> History {
    loop {
        match wait.during(process.logs.of(shard)).await {
            Ok(history) => return history,
            Err(error) => {
                wait.lasts(Chain(&error));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Rule E1, and the core at the end of what was read, with the spans of traced calls that db had not folded. A retry
/// reads on from where the previous try was.
async fn take_over<R: Role>(
    process: &Process,
    terms: &Terms,
    make: impl Fn(&OwnerState, Mono) -> R,
    prepared: &mut Prepared,
) -> Result<(Held<R>, Vec<Span>), TakeError> {
    let &Terms {
        owner,
        kind,
        shard,
        epoch,
        ..
    } = terms;
    let (state, mut chain) = prepared.take(process, OwnerLog { owner, kind, shard }).await?;
    chain.former_ended = terms.former_ended;
    let traced = TracedOwner::new(process.traces.clone(), owner);
    let recovered = traced.recover(&chain.beyond);
    let imprint = Imprint {
        realm: process.realm.clone(),
        owner,
        epoch,
        schema: process.schema.fingerprint(),
    };
    let keys = read_keys(&process.store, &state).await?;
    let call_generation = read_call_generation(&process.store, owner).await?;
    let clock = process.clock.clone();
    let now = clock.now();
    let role = make(&state, now.mono);
    let beginning = Beginning {
        state,
        call_generation,
        chain,
        imprint,
        durability: terms.durability,
        ids: terms.ids.clone(),
        schema: Arc::clone(&process.schema),
        behaviour: Arc::clone(&terms.behaviour),
        panics: annals_node::PanicPolicy::Report,
        dice: crate::process::dice(),
        keys,
    };
    let held = Held {
        owner: Owner::take_over(now, role, beginning),
        clock,
        epoch,
        metrics: Arc::clone(&process.metrics),
        tick: None,
        traced,
        counted: None,
        packets: Packets::new(owner, epoch, process.schema.fingerprint()),
    };
    Ok((held, recovered))
}

/// The keys of all active stored entities in a state (rule P5).
async fn read_keys(store: &Store, state: &OwnerState) -> Result<BTreeMap<DatabaseId, PersonalKey>, StoreError> {
    let persons: Vec<DatabaseId> = state.databases.keys().copied().collect();
    let mut keys = BTreeMap::new();
    for some in persons.chunks(KEYS_AT_ONCE) {
        let found = some.iter().map(|person| personal::person(store, *person));
        for (person, found) in some.iter().zip(try_join_all(found).await?) {
            if let Person::Known(key) = found {
                keys.insert(*person, key);
            }
        }
    }
    Ok(keys)
}

/// The generation of the owner's call numbers (rule C13): it changes only while the owner has no holder.
async fn read_call_generation(store: &Store, owner: OwnerId) -> Result<u64, StoreError> {
    let read = |transaction: Transaction| async move { transaction.get(&owners::owner_key(owner)).await };
    let record = store
        .read(read)
        .await?
        .map(|value| OwnerRecord::decode(&value))
        .transpose()?;
    Ok(record.map_or(0, |record| record.call_generation))
}
