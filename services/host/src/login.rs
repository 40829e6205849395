//! The login service: answers log-ins by requests to db, director and bases; compares passwords.

mod accounts;
mod counting;
mod rooms;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals_base::DuplicateLogin;
use annals_db::accounts as stored_accounts;
use annals_def::Schema;
use annals_director::{Progress, Stage};
use annals_ids::{DatabaseId, Epoch, Hash, OwnerId, SessionId, TypeId};
use annals_login::{
    Checkout, Counted, Counters, Host, Input, Login, NotCheckedOut, Opened, Output, Refused, Unavailable, Wanted,
};
use annals_node::ConnectionId;
use annals_store::{StoreError, layout::database};
use annals_wire::{
    client::{CloseReason, Located, LoginAnswer, LoginRequest, Secret},
    control::{
        BeginLife, CheckOut, CheckedOut, DbAsk, DbRequest, DirectorAsk, Locate, OpenSession, OwnerAddress, RealmRoom,
        SessionOpened, UpgradeOrder,
    },
};
use futures::StreamExt;
use thiserror::Error;
use tokio::sync::{mpsc, watch};

use counting::Counting;
use watching::Figures;

use crate::{
    authentication::{AuthenticationError, Authenticator},
    clock,
    config::{AccountCreation, Config},
    edge::{Arrival, EdgeCommand, EdgeEvent, EdgeHandle, Serves},
    front::{Front, FrontError},
    health::{Health, Readiness},
    passwords::Passwords,
    process::{self, AskError, JoinError, Presence, Process, Report, Settings, request},
    waiting::Wait,
};

/// Maximum client events that wait; when the queue is full, no client is read.
const EVENTS: usize = 1_024;

/// Maximum answers to requests that wait for the core.
const ANSWERS: usize = 4_096;

/// Interval of the line in the process's log about log-ins that were refused: one line, however many there are.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Why the service ended.
#[derive(Debug, Error)]
pub enum LoginError {
    /// It could not join its realm.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It cannot authenticate clients.
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    /// It cannot serve clients.
    #[error("the login service cannot serve clients")]
    Front(#[from] FrontError),
    /// The key of account names could not be read from the store.
    #[error("the key for the look-up of account names could not be read from the store; check that db runs")]
    NameKey(#[source] StoreError),
    /// It cannot share its counts.
    #[error("the counts of wrong passwords cannot be shared with other login processes")]
    Counting(#[source] async_nats::SubscribeError),
    /// The schema has no type for accounts.
    #[error("the world has no entity type that a client could log in as: give one a base part, and call it Account")]
    NoAccountType,
    /// The file with its address cannot be written.
    #[error("{path} cannot be written", path = path.display())]
    Announce {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Runs the service until the process is asked to stop. Its address is written to `login.address` in the front's
/// folder, for others to read.
///
/// # Errors
/// When it cannot join its realm or serve clients.
pub async fn run(
    (settings, health): (&Settings, &Health),
    schema: Arc<Schema>,
    front: &Front,
    config: &Config,
) -> Result<(), LoginError> {
    let authenticator = Authenticator::open(&config.authentication)?;
    let stop = process::stop_signal();
    if stored_accounts::entity_type(&schema, "").is_none() {
        return Err(LoginError::NoAccountType);
    }
    let door = front.open(Serves::Login).await?;
    let Some(joined) = process::unless_stopped(&stop, join((settings, health), schema)).await else {
        return Ok(());
    };
    let (process, name_key) = joined?;
    if !is_turn(&process, &stop).await {
        return Ok(());
    }
    let (events, mut arrivals) = mpsc::channel(EVENTS);
    let (edge, address) = door.serve(events, process.metrics.violations.clone())?;
    announce(&front.directory, &address)?;
    process.readiness.send_replace(Readiness::Ready);
    tracing::info!(%address, "answering log-ins");
    let asker = Arc::new(Asker::new(process, name_key, (authenticator, config)));
    let (_watched, figures) = watching::begin(&asker.process.watched, &edge.handle());
    let (answers, mut answered) = mpsc::channel(ANSWERS);
    let counting = Counting::begin(&asker.process).await;
    let (counting, learned) = counting.map_err(LoginError::Counting)?;
    let mut service = Service {
        core: Login::new(),
        edge: edge.handle(),
        asker: Arc::clone(&asker),
        answers,
        hosts: BTreeMap::new(),
        counting,
        figures,
        summarised: Counters::default(),
    };
    service.handle(learned);
    serve(&mut service, (&mut arrivals, &mut answered), stop).await;
    asker.process.readiness.send_replace(Readiness::Draining);
    let with_realm = *asker.stage.borrow() > Stage::Running;
    service.handle(Input::ShutDown { with_realm });
    edge.shut_down().await;
    asker.leave().await;
    Ok(())
}

/// Answers log-ins until the process is asked to stop, the realm stops, or its definitions change.
async fn serve(
    service: &mut Service,
    (arrivals, answered): (&mut mpsc::Receiver<EdgeEvent>, &mut mpsc::Receiver<Input>),
    stop: watch::Receiver<bool>,
) {
    let mut beat = tokio::time::interval(process::BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut summary = tokio::time::interval(SUMMARY_EVERY);
    summary.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let asker = Arc::clone(&service.asker);
    let mut paused = service.figures.is_paused.subscribe();
    let mut stages = asker.stage.subscribe();
    let mut former = asker.is_former.subscribe();
    let mut link = asker.process.bus.state();
    let mut stopped = std::pin::pin!(process::stopped(stop));
    loop {
        let deadline = service.core.deadline();
        tokio::select! {
            Some(event) = arrivals.recv() => service.arrive(event),
            Some(input) = answered.recv() => service.handle(input),
            () = clock::until(deadline) => service.handle(Input::Time),
            Some(news) = service.counting.news.next() => service.handle_notification(&news),
            Some(request) = service.counting.requests.next() => service.send_counts(request),
            _ = beat.tick() => asker.beat(),
            _ = summary.tick() => service.summarise(),
            Ok(()) = link.changed() => beat.reset_immediately(),
            Ok(()) = paused.changed() => {
                let is_paused = *paused.borrow_and_update();
                service.handle(Input::Pause(is_paused));
            }
            Ok(()) = stages.changed() => {
                let stage = *stages.borrow_and_update();
                if stage > Stage::Running {
                    service.handle(Input::ShutDown { with_realm: true });
                }
                asker.process.progress.send_replace(all_done(stage));
                if asker.process.ends_at().is_some_and(|end| stage >= end) {
                    break;
                }
            }
            Ok(_) = former.wait_for(|is_former| *is_former) => {
                tracing::info!("the realm does not have the definitions of this process, which ends");
                break;
            }
            () = &mut stopped => break,
        }
    }
}

/// Waits until the realm has the definitions of this process. Returns whether it is to serve; if not, it is to end.
async fn is_turn(process: &Process, stop: &watch::Receiver<bool>) -> bool {
    loop {
        let beat = process.beat(Report::without_owners(Presence::Stays));
        let Some(orders) = process::unless_stopped(stop, beat).await else {
            return false;
        };
        match orders.map(|orders| orders.upgrade()) {
            Ok(UpgradeOrder::Wait) => {
                process.readiness.send_replace(Readiness::Waiting {
                    reason: "the realm is to change to the definitions of this process, which serves nothing before"
                        .to_owned(),
                });
            }
            Ok(UpgradeOrder::End) => {
                tracing::info!("the realm does not have the definitions of this process, which ends");
                return false;
            }
            Ok(UpgradeOrder::None | UpgradeOrder::Release) => return true,
            // Without a director there are no log-ins anyway.
            Err(error) => tracing::debug!(%error, "no orders from the director"),
        }
        if process::unless_stopped(stop, tokio::time::sleep(process::BEAT))
            .await
            .is_none()
        {
            return false;
        }
    }
}

/// Writes the address at which log-ins are answered.
fn announce(folder: &Path, address: &str) -> Result<(), LoginError> {
    let path = folder.join("login.address");
    crate::announcing::announce(&path, address).map_err(|source| LoginError::Announce { path, source })
}

/// The wait for a director that does not answer.
fn director_wait() -> Wait {
    Wait::new(
        "the director",
        "log-ins are refused as the realm is busy; check that annals-director runs",
    )
}

/// Joins the realm, and reads the key under which account names are looked up.
async fn join(started: (&Settings, &Health), schema: Arc<Schema>) -> Result<(Process, [u8; 32]), LoginError> {
    let process = Process::join(started, "login", schema).await?;
    let mut wait = Wait::new(
        "the store",
        "no client can log in until it answers; check that annals-db runs",
    );
    let name_key = wait
        .during(stored_accounts::name_key(&process.store, process::random()))
        .await
        .map_err(LoginError::NameKey)?;
    wait.ends();
    Ok((process, name_key))
}

struct Service {
    core: Login,
    edge: EdgeHandle,
    asker: Arc<Asker>,
    answers: mpsc::Sender<Input>,
    /// Hosts of connections that have not sent a request.
    hosts: BTreeMap<ConnectionId, Host>,
    /// Counts of the other login processes.
    counting: Counting,
    figures: Arc<Figures>,
    /// The counters when refused log-ins were summarised last.
    summarised: Counters,
}

impl Service {
    fn arrive(&mut self, EdgeEvent { connection, what }: EdgeEvent) {
        match what {
            Arrival::Opened { from } => drop(self.hosts.insert(connection, Host::from(from.ip()))),
            Arrival::LoginRequest(request) => {
                // At most one request per connection, after `Opened`.
                let Some(host) = self.hosts.remove(&connection) else {
                    return;
                };
                let name = match &request {
                    LoginRequest::LogIn { credentials, .. } => credentials.name(),
                    LoginRequest::Locate { .. } => None,
                };
                let name = name.map(|name| database::hashed_name(&self.asker.name_key, name));
                let name = name.and_then(|name| name.try_into().ok()).map(Hash);
                let ticket = Secret(process::random());
                self.handle(Input::Request {
                    connection,
                    host,
                    request,
                    name,
                    ticket,
                });
            }
            Arrival::Closed(_) => {
                self.hosts.remove(&connection);
                self.handle(Input::Closed(connection));
            }
            // An edge that serves log-ins receives no play.
            Arrival::Hello(_) | Arrival::Frame(_) | Arrival::Datagram(_) => {}
        }
    }

    /// A notification of another login process.
    fn handle_notification(&mut self, news: &async_nats::Message) {
        if let Some(input) = self.counting.input_of(&news.payload) {
            self.handle(input);
        }
    }

    /// Another login process starts.
    fn send_counts(&self, request: async_nats::Message) {
        if let Some(reply) = request.reply {
            self.counting.answer(reply, &self.core.counts(clock::mono()));
        }
    }

    /// Says how many log-ins were refused since the last time, if any were.
    fn summarise(&mut self) {
        let now = self.core.counters();
        let before = std::mem::replace(&mut self.summarised, now);
        if let Some(refused) = Refused::between(&before, &now) {
            tracing::info!(
                seconds = SUMMARY_EVERY.as_secs(),
                wrong = refused.wrong,
                throttled = refused.throttled,
                banned = refused.banned,
                crowded = refused.crowded,
                other = refused.other,
                "log-ins were refused"
            );
        }
    }

    fn handle(&mut self, input: Input) {
        self.core.handle(clock::mono(), input);
        self.figures.count(&self.core, *self.asker.room.borrow());
        let waiting = i64::try_from(self.core.waiting()).unwrap_or(i64::MAX);
        self.asker.process.metrics.log_ins_waiting.set(waiting);
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Answer { connection, answer } => {
                    let metrics = &self.asker.process.metrics;
                    match answer {
                        LoginAnswer::Ticket(_) => metrics.log_ins.add(1),
                        LoginAnswer::Refused(_) | LoginAnswer::Banned(_) => metrics.log_ins_refused.add(1),
                        LoginAnswer::Located(_) | LoginAnswer::Queued(_) => {}
                    }
                    let mut body = Vec::new();
                    answer.write(&mut body);
                    self.edge.apply(EdgeCommand::Frame { connection, body });
                    self.edge.apply(EdgeCommand::Close {
                        connection,
                        reason: CloseReason::Finished,
                    });
                }
                Output::Queued { connection, queued } => {
                    let mut body = Vec::new();
                    LoginAnswer::Queued(queued).write(&mut body);
                    self.edge.apply(EdgeCommand::Frame { connection, body });
                }
                Output::Counted(counted) => self.counting.publish(&counted, false),
                Output::Forgiven(name) => self.counting.publish(&Counted::Name(name), true),
                question => {
                    let (asker, answers) = (Arc::clone(&self.asker), self.answers.clone());
                    tokio::spawn(async move {
                        if let Some(input) = asker.ask(question).await {
                            // If the service has ended, no answer is needed.
                            let _ = answers.send(input).await;
                        }
                    });
                }
            }
        }
    }
}

/// Sends the core's requests to the services that answer them.
struct Asker {
    process: Process,
    /// Names are looked up by a hash under this key, which all login processes of the realm read from the store.
    name_key: [u8; 32],
    passwords: Passwords,
    authenticator: Authenticator,
    /// How accounts come into being.
    creation: AccountCreation,
    /// Policy at a log-in to an account that has a client.
    duplicate: DuplicateLogin,
    /// Names of accounts that do not wait when the realm is full.
    exempt: BTreeSet<String>,
    /// The director's newest answer about the realm's room, in a realm with a limit.
    room: watch::Sender<Option<RealmRoom>>,
    /// The stage of the realm's stop, by the director.
    stage: watch::Sender<Stage>,
    /// Whether the realm has other definitions by now than this process.
    is_former: watch::Sender<bool>,
    /// The wait while the director does not answer.
    director: Mutex<Wait>,
}

/// The progress of login: it only refuses log-ins while the realm stops, so every stage is done at once.
fn all_done(stage: Stage) -> Progress {
    Progress {
        announced: stage,
        done: stage,
        waits: String::new(),
    }
}

impl Asker {
    fn new(process: Process, name_key: [u8; 32], (authenticator, config): (Authenticator, &Config)) -> Self {
        Self {
            process,
            name_key,
            passwords: Passwords::default(),
            authenticator,
            creation: config.account_creation,
            duplicate: config.duplicate_login,
            exempt: config.exempt_accounts.clone(),
            room: watch::Sender::new(None),
            stage: watch::Sender::new(Stage::Running),
            is_former: watch::Sender::new(false),
            director: Mutex::new(director_wait()),
        }
    }

    /// Reports to the director that the process is alive.
    fn beat(self: &Arc<Self>) {
        let asker = Arc::clone(self);
        tokio::spawn(async move {
            match asker.process.beat(Report::without_owners(Presence::Stays)).await {
                Ok(orders) => {
                    asker.director.lock().unwrap_or_else(PoisonError::into_inner).ends();
                    asker.enter(Stage::of_number(orders.stage));
                    asker.is_former.send_replace(orders.upgrade() == UpgradeOrder::End);
                }
                Err(error) => asker
                    .director
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .lasts(error),
            }
        });
    }

    /// Enters the director's stage of the realm's stop; it never goes back.
    fn enter(&self, stage: Stage) {
        self.stage.send_if_modified(|known| {
            let later = stage > *known;
            *known = stage.max(*known);
            later
        });
    }

    /// Reports to the director that the process ends.
    async fn leave(&self) {
        let said = self.process.beat(Report::without_owners(Presence::Leaves)).await;
        if let Err(error) = said {
            tracing::debug!(%error, "could not notify the director that the process leaves");
        }
    }

    async fn ask(&self, question: Output) -> Option<Input> {
        Some(match question {
            Output::Verify { ask, credentials } => Input::Verified(ask, self.verify(credentials).await),
            Output::Place { ask, wish } => Input::Placed(ask, self.place(wish).await),
            Output::Settle { room, session } => {
                self.settle(room, session).await;
                return None;
            }
            Output::LookUp { ask, account } => Input::LookedUp(ask, self.look_up(account).await),
            Output::Locate { ask, owner } => Input::Located(ask, self.locate(owner).await),
            Output::CheckOut {
                ask,
                account,
                preferred,
            } => Input::CheckedOut(ask, self.check_out(account, preferred).await),
            Output::Open { ask, wanted } => Input::Opened(ask, self.open(wanted).await),
            Output::Answer { .. } | Output::Queued { .. } | Output::Counted(_) | Output::Forgiven(_) => return None,
        })
    }

    async fn locate(&self, owner: OwnerId) -> Result<Option<Located>, Unavailable> {
        let answer = self
            .process
            .ask::<OwnerAddress>(DirectorAsk::Locate(Locate { owner: owner.0 }))
            .await;
        let located =
            |address: OwnerAddress| process::located(OwnerId(address.owner), Epoch(address.epoch), &address.address);
        answer.map(located).map_err(unavailable)
    }

    async fn check_out(&self, account: DatabaseId, preferred: OwnerId) -> Result<Checkout, NotCheckedOut> {
        let ask = DbAsk::CheckOut(CheckOut {
            database: account.0,
            preferred: preferred.0,
            plays: true,
            only_active: false,
        });
        let answer = self.db::<CheckedOut>(ask).await;
        let answer = answer.map_err(|Unavailable| NotCheckedOut::Unavailable)?;
        if let Some(ban) = answer.ban {
            tracing::info!(%account, "refused a log-in: the account is banned");
            return Err(NotCheckedOut::Banned(ban.into()));
        }
        if !answer.failed.is_empty() {
            tracing::warn!(account = %account, reason = answer.failed, "could not check out the account");
            return Err(NotCheckedOut::Unavailable);
        }
        Ok(Checkout {
            owner: OwnerId(answer.owner),
            number: answer.checkout,
            type_id: TypeId(u16::try_from(answer.type_id).map_err(|_| NotCheckedOut::Unavailable)?),
            properties: answer.properties,
            key: answer.key,
        })
    }

    async fn open(&self, wanted: Wanted) -> Result<Opened, Unavailable> {
        let account = BeginLife {
            database: wanted.account.0,
            checkout: wanted.checkout.number,
            type_id: u32::from(wanted.checkout.type_id.0),
            properties: wanted.checkout.properties,
            epoch: wanted.epoch.0,
            key: wanted.checkout.key,
        };
        let ask = OpenSession {
            account: Some(account),
            ticket: wanted.ticket.0.to_vec(),
            name: wanted.name,
            refuse_duplicate: self.duplicate == DuplicateLogin::Refuse,
            replaces_only: wanted.replaces_only,
        };
        let subject = self.process.subjects.sessions(wanted.owner);
        let opened: SessionOpened = request(&self.process.bus, "base", subject, &ask)
            .await
            .map_err(unavailable)?;
        Ok(match opened {
            SessionOpened { session, epoch, .. } if session != 0 => Opened::Session {
                session: SessionId(session),
                epoch: Epoch(epoch),
            },
            SessionOpened { outdated: true, .. } => Opened::Outdated,
            SessionOpened { in_use: true, .. } => Opened::InUse,
            SessionOpened { no_session: true, .. } => Opened::NoSession,
            SessionOpened { refused, .. } => {
                tracing::warn!(account = %wanted.account, reason = refused, "could not open a session");
                Opened::Refused
            }
        })
    }

    async fn db<A: prost::Message + Default>(&self, ask: DbAsk) -> Result<A, Unavailable> {
        let subject = self.process.subjects.service("db");
        request(&self.process.bus, "db", subject, &DbRequest { ask: Some(ask) })
            .await
            .map_err(unavailable)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
fn unavailable(error: AskError) -> Unavailable {
    tracing::debug!(%error, "no answer");
    Unavailable
}
