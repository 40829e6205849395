//! The base service: holds base owners, and terminates clients' connections.

mod downloads;
mod traced_calls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals_base::{
    BannedAccount, BaseInput, BaseRole, Begin, CheckedOut, Connections, DuplicateLogin, OpenSession, OperatorOrder,
};
use annals_def::Schema;
use annals_event::{Reader, latest::call::take_properties, ledger::Order};
use annals_ids::{DatabaseId, Epoch, OwnerId, SessionId, TransferId, TypeId};
use annals_node::{Begun, Behaviour, ConnectionId, NotOpened, NotOrdered, Output, writer::Durability};
use annals_personal::PersonalKey;
use annals_wire::{
    client::{CloseReason, Hello, HelloAnswer, Rejection, Secret, ToClient, ToServer},
    control::{self, BeginLife, EndSessions, LifeBegun, OperatorOrdered, SessionOpened},
};
use async_nats::Subject;
use futures::StreamExt;
use thiserror::Error;
use tokio::{sync::mpsc, time::Instant};

pub use downloads::DownloadSettings;

use downloads::Downloads;
use traced_calls::TracedCalls;

use crate::{
    edge::{Arrival, EdgeCommand, EdgeEvent, EdgeHandle, Serves, add_watched},
    front::{Front, FrontError},
    health::Health,
    holder::Notice,
    holder_set::{HolderSet, Holders, NotSent, OwnerSetup},
    inquiries::Inquiries,
    move_pace::moments,
    nats::Subscription,
    outbound::{Outbound, OutboundError},
    process::{self, JoinError, Process, Settings},
    violations::Violation,
};

/// Maximum client events that wait to be passed on; when the queue is full, clients are not read.
const EVENTS: usize = 1_024;

/// Maximum notices of holders that wait.
const NOTICES: usize = 4_096;

/// Maximum requests for sessions, activations and orders that wait for their answers.
const REQUESTS: usize = 10_000;

/// Why the service ended.
#[derive(Debug, Error)]
pub enum BaseError {
    /// It could not join its realm.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The bus refused a subscription.
    #[error("cannot subscribe to the base service's subjects on the bus")]
    Listen(#[from] async_nats::SubscribeError),
    /// It cannot serve clients.
    #[error("the base service cannot serve clients")]
    Front(#[from] FrontError),
    /// The services of outbound calls are not valid.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
}

/// Runs the service until the process is asked to stop. `outbound` is the file of the services that the game calls outside
/// the realm.
///
/// # Errors
/// When it cannot join its realm or serve clients.
pub async fn run(
    (settings, health): (&Settings, &Health),
    schema: Arc<Schema>,
    behaviour: Arc<dyn Behaviour>,
    durability: Durability,
    front: &Front,
    (outbound, downloads): (Option<&Path>, DownloadSettings),
) -> Result<(), BaseError> {
    let stop = process::stop_signal();
    let DownloadSettings { folder, bits } = downloads;
    let outbound = Arc::new(Outbound::open(outbound)?);
    let door = front.open(Serves::Play).await?;
    let joining = Process::join((settings, health), "base", schema);
    let Some(process) = process::unless_stopped(&stop, joining).await else {
        return Ok(());
    };
    let process = Arc::new(process?);
    let (events, arrivals) = mpsc::channel(EVENTS);
    let (edge, address) = door.serve(events, process.metrics.violations.clone())?;
    tracing::info!(%address, "serving clients");
    let _watched = add_watched(&process.watched, &edge.handle());
    let (notices, notices_in) = mpsc::channel(NOTICES);
    let setup = OwnerSetup {
        behaviour,
        durability,
        make: Arc::new(move |state, now| BaseRole::take_over(state, now).with_download_bits(bits)),
        map: BaseInput::Map,
        address,
        outbound,
    };
    let holder_set = HolderSet::new(Arc::clone(&process), setup, notices);
    let holders = holder_set.holders();
    let requests = process.bus.subscribe(process.subjects.sessions_of_all()).await?;
    let lives = process.bus.subscribe(process.subjects.lives_of_all()).await?;
    let orders = process.bus.subscribe(process.subjects.orders_of_all()).await?;
    let service = Service {
        inquiries: Inquiries::new(Arc::clone(&process), holders.clone()),
        downloads: Downloads::new(folder, holders.clone()),
        calls: TracedCalls::new(process.traces.clone(), process.realm.clone()),
        process,
        edge: edge.handle(),
        holders,
        strangers: BTreeMap::new(),
        connections: Connections::default(),
        early: Vec::new(),
        asked: BTreeMap::new(),
        next: 1,
    };
    let (kept, ()) = tokio::join!(
        holder_set.run(stop),
        service.run(arrivals, notices_in, requests, lives, orders)
    );
    edge.shut_down().await;
    Ok(kept?)
}

/// Connects client connections, holders, the login service and the database.
struct Service {
    inquiries: Inquiries<BaseInput>,
    downloads: Downloads,
    calls: TracedCalls,
    process: Arc<Process>,
    edge: EdgeHandle,
    holders: Holders<BaseInput>,
    /// Addresses of connections that have not sent a hello.
    strangers: BTreeMap<ConnectionId, SocketAddr>,
    /// The connections whose hello has arrived.
    connections: Connections,
    /// The hellos of clients that connected before this process holds the owner, which it is to hold next.
    early: Vec<(ConnectionId, SocketAddr, Hello)>,
    /// Pending requests for a session, an activation or an order: the asker, and the epoch that was named.
    asked: BTreeMap<u64, (Subject, u64)>,
    next: u64,
}

impl Service {
    /// Serves until the holder set and its holders have ended and their last notice is passed on.
    async fn run(
        mut self,
        mut arrivals: mpsc::Receiver<EdgeEvent>,
        mut notices: mpsc::Receiver<Notice>,
        mut requests: Subscription,
        mut lives: Subscription,
        mut orders: Subscription,
    ) {
        loop {
            tokio::select! {
                Some(event) = arrivals.recv() => self.arrive(event),
                notice = notices.recv() => match notice {
                    Some(notice) => self.handle_notice(notice).await,
                    None => return,
                },
                Some(request) = requests.next() => self.open(request).await,
                Some(request) = lives.next() => self.begin(request).await,
                Some(request) = orders.next() => self.order(request).await,
            }
        }
    }

    fn arrive(&mut self, EdgeEvent { connection, what }: EdgeEvent) {
        match what {
            Arrival::Opened { from } => {
                self.process.metrics.clients.add(1);
                tracing::debug!(?connection, %from, "opened");
                self.strangers.insert(connection, from);
            }
            // An edge that serves play receives no log-ins.
            Arrival::LoginRequest(_) => {}
            Arrival::Hello(hello) => {
                // The core refuses a second hello, and does not use its address.
                let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
                let from = self.strangers.remove(&connection).unwrap_or(unspecified);
                if self.holders.is_next(hello.owner) {
                    self.early.push((connection, from, hello));
                } else {
                    self.greet(connection, from, hello);
                }
            }
            Arrival::Frame(frame) => {
                if matches!(frame, ToServer::Call(_)) {
                    self.process.metrics.client_calls.add(1);
                }
                let trace = self.calls.arrive(connection, &frame);
                self.forward(
                    connection,
                    BaseInput::Frame {
                        connection,
                        frame,
                        trace,
                    },
                );
            }
            Arrival::Datagram(datagram) => {
                // Movement is volatile: a holder that lags does without it.
                if let Some(owner) = self.connections.owner(connection) {
                    let _ = self.holders.send(owner, BaseInput::Datagram { connection, datagram });
                }
            }
            Arrival::Closed(reason) => {
                self.process.metrics.clients.add(-1);
                tracing::debug!(?connection, %reason, "closed");
                self.strangers.remove(&connection);
                self.calls.close(connection);
                self.early.retain(|(early, ..)| *early != connection);
                if let Some(owner) = self.connections.close(connection) {
                    // The next holder of the owner finds its clients disconnected.
                    let _ = self.holders.send(owner, BaseInput::Closed { connection });
                }
            }
        }
    }

    /// Passes a client's hello on to the owner of its session.
    fn greet(&mut self, connection: ConnectionId, from: SocketAddr, hello: Hello) {
        let owner = hello.owner;
        self.connections.greet(connection, owner);
        self.calls.greet(connection, &hello);
        let fresh_token = Secret(process::random());
        self.send_to_owner(
            connection,
            owner,
            BaseInput::Hello {
                connection,
                from,
                hello,
                fresh_token,
            },
        );
    }

    /// Passes on the hellos of clients that waited for the owner. If it is not held here, they are closed.
    fn greet_early(&mut self, owner: OwnerId) {
        let (of_it, others) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|(_, _, hello)| hello.owner == owner);
        self.early = others;
        for (connection, from, hello) in of_it {
            self.greet(connection, from, hello);
        }
    }

    /// Sends the clients of an owner, one after the other over this time, the address of its next holder.
    fn announce(&mut self, (owner, epoch): (OwnerId, Epoch), address: &str, spread: Duration) {
        let Some(located) = process::located(owner, epoch, address) else {
            return;
        };
        let mut body = Vec::new();
        ToClient::Moving(located).write(&mut body);
        let connections = self.connections.announce(owner, body.clone()).into_iter();
        let frames: Vec<EdgeCommand> = connections
            .map(|connection| EdgeCommand::Frame {
                connection,
                body: body.clone(),
            })
            .collect();
        let edge = self.edge.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            for (due, frame) in moments(frames.len(), spread).zip(frames) {
                tokio::time::sleep_until(began + due).await;
                edge.apply(frame);
            }
        });
    }

    fn forward(&mut self, connection: ConnectionId, input: BaseInput) {
        if let Some(owner) = self.connections.owner(connection) {
            self.send_to_owner(connection, owner, input);
        }
    }

    fn send_to_owner(&self, connection: ConnectionId, owner: OwnerId, input: BaseInput) {
        let reason = match self.holders.send(owner, input) {
            Ok(()) => return,
            Err(NotSent::NotHeld) => CloseReason::Moved,
            Err(NotSent::Full) => CloseReason::Full,
        };
        self.edge.apply(EdgeCommand::Close { connection, reason });
    }

    async fn handle_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Moving(owner, epoch, address, spread) => self.announce((owner, epoch), &address, spread),
            Notice::Staying(owner) => self.connections.forget_move(owner),
            Notice::Held(owner) => {
                self.connections.forget_move(owner);
                self.greet_early(owner);
            }
            Notice::Ended(owner) => {
                self.connections.forget_move(owner);
                self.greet_early(owner);
                for connection in self.connections.of(owner) {
                    self.edge.apply(EdgeCommand::Close {
                        connection,
                        reason: CloseReason::Moved,
                    });
                }
            }
            Notice::Outputs(owner, outputs) => self.carry_out(owner, outputs).await,
        }
    }

    /// Carries out outputs of an owner's core.
    async fn carry_out(&mut self, owner: OwnerId, outputs: Vec<Output>) {
        let mut commands = Vec::new();
        for output in outputs {
            match output {
                Output::Frame { connection, bytes } => {
                    if let Some(refusal) = ToClient::refusal(&bytes) {
                        self.edge.violated(connection, refusal.into());
                    }
                    self.calls.answer(connection, &bytes);
                    commands.push(EdgeCommand::Frame {
                        connection,
                        body: bytes,
                    });
                    if let Some(announcement) = self.connections.sent(connection) {
                        commands.push(EdgeCommand::Frame {
                            connection,
                            body: announcement.to_vec(),
                        });
                    }
                }
                Output::BackgroundFrame { connection, bytes } => commands.push(EdgeCommand::BackgroundFrame {
                    connection,
                    body: bytes,
                }),
                Output::Download(download) => self.downloads.prepare(owner, download),
                Output::Datagram { connection, bytes } => commands.push(EdgeCommand::Datagram { connection, bytes }),
                Output::Close { connection, reason } => commands.push(EdgeCommand::Close { connection, reason }),
                Output::Reject { connection, rejection } => commands.extend(self.reject(connection, rejection)),
                Output::SessionOpened { request, opened } => self.answer(request, opened).await,
                Output::Begun { request, begun } => self.say_begun(request, begun).await,
                Output::Ordered { request, ordered } => self.say_ordered(request, ordered).await,
                Output::SessionsEnded { request, ended } => self.say_ended(request, ended).await,
                Output::Inquire {
                    entity,
                    number,
                    inquiry,
                } => self.inquiries.answer(owner, (entity, number), inquiry),
                // The holder handles these itself.
                Output::Send { .. } | Output::Outbound(_) | Output::WantIds => {}
            }
        }
        self.edge.apply_all(commands);
    }

    /// The answer to a hello that was rejected.
    fn reject(&self, connection: ConnectionId, rejection: Rejection) -> [EdgeCommand; 2] {
        // The other reasons are those of clients that keep to the protocol.
        if rejection == Rejection::UnknownSession {
            self.edge.violated(connection, Violation::UnknownSession);
        }
        let mut body = Vec::new();
        HelloAnswer::Rejected(rejection).write(&mut body);
        let reason = CloseReason::Finished;
        [
            EdgeCommand::Frame { connection, body },
            EdgeCommand::Close { connection, reason },
        ]
    }

    /// A request of the login service for a session.
    async fn open(&mut self, request: async_nats::Message) {
        let Some(reply) = request.reply.clone() else { return };
        let wanted: control::OpenSession = match control::decode(&request.payload) {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::warn!(%error, "ignored a malformed session request");
                return;
            }
        };
        let (Some(owner), Some(open)) = (owner_of(&request), self.wanted(&wanted)) else {
            let refused = "the session request is malformed".to_owned();
            let refused = SessionOpened {
                refused,
                ..SessionOpened::default()
            };
            return self.send(reply, &refused).await;
        };
        let epoch = open.account.epoch.0;
        self.pass_on(owner, (reply, epoch), open.request, BaseInput::OpenSession(open));
    }

    /// A request of another base to activate a stored entity here.
    async fn begin(&mut self, request: async_nats::Message) {
        let Some(reply) = request.reply.clone() else { return };
        let wanted: BeginLife = match control::decode(&request.payload) {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::warn!(%error, "ignored a malformed activation request");
                return;
            }
        };
        let (Some(owner), Some(entity)) = (owner_of(&request), checked_out(&wanted)) else {
            let refused = LifeBegun {
                refused: "the activation request is malformed".to_owned(),
                ..LifeBegun::default()
            };
            return self.send(reply, &refused).await;
        };
        let request = self.number();
        self.pass_on(
            owner,
            (reply, wanted.epoch),
            request,
            BaseInput::Begin(Begin { request, entity }),
        );
    }

    /// An order request from an operator's tool.
    async fn order(&mut self, request: async_nats::Message) {
        let Some(reply) = request.reply.clone() else { return };
        let wanted: control::OperatorOrder = match control::decode(&request.payload) {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::warn!(%error, "ignored a malformed operator order");
                return;
            }
        };
        if let (Some(owner), Some(end)) = (owner_of(&request), &wanted.end_sessions) {
            return self.end_sessions(owner, reply, (DatabaseId(wanted.database), end));
        }
        let (Some(owner), Some(order)) = (owner_of(&request), read_order(&wanted.order)) else {
            let refused = OperatorOrdered {
                refused: "the order is malformed; use a tool of the realm's version".to_owned(),
                ..OperatorOrdered::default()
            };
            return self.send(reply, &refused).await;
        };
        let request = self.number();
        let order = OperatorOrder {
            request,
            database: DatabaseId(wanted.database),
            order,
        };
        self.pass_on(owner, (reply, 0), request, BaseInput::Order(order));
    }

    /// An operator has banned an account.
    fn end_sessions(&mut self, owner: OwnerId, reply: Subject, (account, end): (DatabaseId, &EndSessions)) {
        let request = self.number();
        let banned = BannedAccount {
            request,
            account,
            session: Some(SessionId(end.session)).filter(|session| session.0 > 0),
            ban: end.ban.clone().unwrap_or_default().into(),
        };
        self.pass_on(owner, (reply, 0), request, BaseInput::Ban(banned));
    }

    /// Another base process holds the owner and will answer: silence is no refusal.
    fn pass_on(&mut self, owner: OwnerId, asker: (Subject, u64), request: u64, input: BaseInput) {
        if self.holders.send(owner, input).is_ok() {
            self.asked.insert(request, asker);
            if self.asked.len() > REQUESTS {
                self.asked.pop_first();
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn wanted(&mut self, wanted: &control::OpenSession) -> Option<OpenSession> {
        Some(OpenSession {
            request: self.number(),
            account: checked_out(wanted.account.as_ref()?)?,
            ticket: wanted.ticket.as_slice().try_into().ok()?,
            name: wanted.name.clone(),
            duplicate: if wanted.refuse_duplicate {
                DuplicateLogin::Refuse
            } else {
                DuplicateLogin::Replace
            },
            replaces_only: wanted.replaces_only,
        })
    }

    async fn answer(&mut self, request: u64, opened: Result<SessionId, NotOpened>) {
        let Some((reply, epoch)) = self.asked.remove(&request) else {
            return;
        };
        let answer = match opened {
            Ok(session) => SessionOpened {
                session: session.0,
                epoch,
                ..SessionOpened::default()
            },
            Err(why) => SessionOpened {
                outdated: why == NotOpened::Outdated,
                in_use: why == NotOpened::InUse,
                no_session: why == NotOpened::NoSession,
                refused: why.to_string(),
                ..SessionOpened::default()
            },
        };
        self.send(reply, &answer).await;
    }

    async fn say_begun(&mut self, request: u64, begun: Result<Begun, NotOpened>) {
        let Some((reply, _)) = self.asked.remove(&request) else {
            return;
        };
        let answer = match begun {
            Ok(begun) => LifeBegun {
                entity: begun.mailbox.entity.0,
                was_active: begun.was_active,
                ..LifeBegun::default()
            },
            Err(why) => LifeBegun {
                outdated: why == NotOpened::Outdated,
                refused: why.to_string(),
                ..LifeBegun::default()
            },
        };
        self.send(reply, &answer).await;
    }

    async fn say_ordered(&mut self, request: u64, ordered: Result<TransferId, NotOrdered>) {
        let Some((reply, _)) = self.asked.remove(&request) else {
            return;
        };
        let answer = match ordered {
            Ok(TransferId { asker, number }) => OperatorOrdered {
                asker: asker.0,
                number: number.0,
                ..OperatorOrdered::default()
            },
            Err(why) => OperatorOrdered {
                again: !matches!(why, NotOrdered::Refused(_)),
                refused: why.to_string(),
                ..OperatorOrdered::default()
            },
        };
        self.send(reply, &answer).await;
    }

    async fn say_ended(&mut self, request: u64, ended: u32) {
        let Some((reply, _)) = self.asked.remove(&request) else {
            return;
        };
        let answer = OperatorOrdered {
            ended: true,
            sessions: ended,
            ..OperatorOrdered::default()
        };
        self.send(reply, &answer).await;
    }

    async fn send(&self, reply: Subject, answer: &impl prost::Message) {
        if let Err(error) = self
            .process
            .bus
            .client()
            .publish(reply, control::encode(answer).into())
            .await
        {
            tracing::warn!(%error, "could not send an answer");
        }
    }
}

/// Owner that a request is addressed to, by its subject.
fn owner_of(request: &async_nats::Message) -> Option<OwnerId> {
    let owner = request.subject.rsplit('.').next()?;
    owner.parse().ok().map(OwnerId)
}

fn read_order(bytes: &[u8]) -> Option<Order> {
    let mut reader = Reader::new(bytes);
    let order = Order::read(&mut reader).ok()?;
    reader.finish("end of order").ok()?;
    Some(order)
}

/// The check-out of a stored entity, as named in a request.
fn checked_out(life: &BeginLife) -> Option<CheckedOut> {
    Some(CheckedOut {
        epoch: Epoch(life.epoch),
        database: DatabaseId(life.database),
        checkout: life.checkout,
        type_id: TypeId(u16::try_from(life.type_id).ok()?),
        properties: take_properties(&mut Reader::new(&life.properties)).ok()?,
        key: match life.key.as_slice() {
            [] => None,
            key => Some(PersonalKey::new(key.try_into().ok()?)),
        },
    })
}
