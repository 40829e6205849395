//! A login service and bases without anything behind them: the servers of the edge's clients in these tests.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};
use annals_def::{Argument, DataType, Distribution, EntityType, Exposure, Method, Property, Schema, Value};
use annals_host::{
    edge::{Arrival, Edge, EdgeCommand, EdgeEvent, EdgeHandle, Identity, Serves, bind},
    violations::Violations,
};
use annals_ids::{
    CallNumber, Direction, EntityId, Epoch, HistoryNumber, OwnerId, Part, Position, SessionId, Tick, TypeId,
};
use annals_node::ConnectionId;
use annals_wire::client::{
    Call, ClientMember, CloseReason, DownloadProgress, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal,
    LoginRequest, Move, Moved, Movements, Moves, Proof, Rejection, Secret, ShownWriter, Stamps, Ticket, ToClient,
    ToServer, ToServerDatagram, ViewFrame, ViewItem, Welcome,
};
use tokio::sync::mpsc;

pub(crate) const OWNER: OwnerId = OwnerId(9);
pub(crate) const SESSION: SessionId = SessionId(77);
pub(crate) const AVATAR: EntityId = EntityId(1_048_576);
pub(crate) const NAME: &str = "Ann";
pub(crate) const PASSWORD: &str = "right";
pub(crate) const HEALTH: ClientMember = ClientMember(0);
const TICKET: Secret = Secret([1; 32]);
const TOKEN: Secret = Secret([2; 32]);
const TIMEOUT: Duration = Duration::from_secs(60);

/// One type: `health` (all clients) and the exposed cell method `hit(amount)`.
pub(crate) fn schema() -> Arc<Schema> {
    let mut avatar = EntityType::new("Avatar");
    avatar.properties = vec![Property::new("health", DataType::Int32, Distribution::AllClients)];
    let mut hit = Method::new("hit", vec![Argument::new("amount", DataType::Int32)]);
    hit.exposed = Exposure::OwnClient;
    avatar.cell_methods = vec![hit];
    Arc::new(Schema::new(vec![avatar], Vec::new(), Vec::new()))
}

/// State of the realm's bases; it outlives each of them, as their log would.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// The epoch of the holder, and its address.
    pub(crate) holder: Option<Located>,
    /// The avatar's health after each history event.
    pub(crate) health: Vec<i32>,
    /// Arguments of the calls that were delivered, in order.
    pub(crate) taken: Vec<(CallNumber, Vec<u8>)>,
    /// Whether `Took` is withheld, as if the log did not answer.
    pub(crate) withholds: bool,
    /// The stamps that arrived, in order.
    pub(crate) stamps: Vec<Stamps>,
    pub(crate) moved: Option<Moved>,
    /// What the client said that it has of downloads, in order.
    pub(crate) progress: Vec<DownloadProgress>,
    pub(crate) closed: Vec<CloseReason>,
    /// The base and the connection on which the session plays. Connections of several bases have the same numbers.
    playing: Option<(Epoch, ConnectionId, EdgeHandle)>,
    /// Its cell view: number, frames sent, history shown.
    view: (u64, u64, u64),
    said_bye: bool,
}

/// A realm of one account.
pub(crate) struct Realm {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) login: Edge,
    pub(crate) identity: Identity,
    pub(crate) directory: tempfile::TempDir,
}

pub(crate) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl Realm {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let identity = Identity::development(directory.path()).unwrap();
        let world = Arc::new(Mutex::new(World::default()));
        let (events, taken) = mpsc::channel(64);
        let login = start_edge(&identity, Serves::Login, events);
        tokio::spawn(serve_logins(taken, login.handle(), Arc::clone(&world)));
        Self {
            world,
            login,
            identity,
            directory,
        }
    }

    /// A base that holds the owner from now on, under a higher epoch than any before.
    pub(crate) fn start_base(&self) -> Edge {
        let (events, taken) = mpsc::channel(64);
        let edge = start_edge(&self.identity, Serves::Play, events);
        let epoch = {
            let mut world = self.world();
            let epoch = Epoch(world.holder.as_ref().map_or(0, |holder| holder.epoch.0) + 1);
            let (owner, address, certificate) = (OWNER, edge.address(), self.identity.pinned());
            world.holder = Some(Located {
                owner,
                epoch,
                address,
                certificate,
            });
            world.playing = None;
            epoch
        };
        tokio::spawn(serve_sessions(taken, edge.handle(), epoch, Arc::clone(&self.world)));
        edge
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            login: self.login.address(),
            trust: Trust::Pinned(self.identity.pinned().unwrap()),
            credentials: Credentials::password(NAME, PASSWORD),
            schema: schema(),
            seed: 1,
            reads: annals_client::Reads::Predicted,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::start(client_endpoint(loopback()).unwrap(), self.config())
    }

    /// Changes the avatar's health: a history event, shown to the client that plays.
    pub(crate) fn set_health(&self, health: i32) {
        let mut world = self.world();
        world.health.push(health);
        world.show();
    }

    /// Closes the client's connection, after what was sent.
    pub(crate) fn close(&self, reason: CloseReason) {
        let world = self.world();
        let (_, connection, edge) = world.playing.as_ref().expect("it plays");
        edge.apply(EdgeCommand::Close {
            connection: *connection,
            reason,
        });
    }

    /// Waits until the condition holds for the world.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        within(what, async {
            while !holds(&self.world()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until the condition holds for the counters of an edge.
    pub(crate) async fn until_counted(&self, edge: &Edge, what: &str, holds: impl Fn(&Edge) -> bool) {
        within(what, async {
            while !holds(edge) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// Starts an edge on a port of loopback.
pub(crate) fn start_edge(identity: &Identity, serves: Serves, events: mpsc::Sender<EdgeEvent>) -> Edge {
    let sockets = bind(loopback()).unwrap();
    Edge::start(sockets, identity, (serves, Violations::default()), events).unwrap()
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(value) => value,
        Err(_) => panic!("timed out waiting: {what}"),
    }
}

/// Drives the client until an event of this kind arrives, and returns all events up to it.
pub(crate) async fn until_event(client: &mut Client, what: &str, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    within(what, async {
        let mut seen = Vec::new();
        loop {
            let event = client
                .next()
                .await
                .unwrap_or_else(|| panic!("ended while waiting: {what}; saw {seen:?}"));
            let found = wanted(&event);
            seen.push(event);
            if found {
                return seen;
            }
        }
    })
    .await
}

/// Drives the client for a while, or until the condition holds for the world.
pub(crate) async fn drive(
    client: &mut Client,
    realm: &Realm,
    what: &str,
    holds: impl Fn(&World) -> bool,
) -> Vec<Event> {
    let mut seen = Vec::new();
    let done = realm.until(what, holds);
    tokio::pin!(done);
    loop {
        tokio::select! {
            () = &mut done => return seen,
            event = client.next() => seen.push(event.unwrap_or_else(|| panic!("ended while waiting: {what}"))),
        }
    }
}

async fn serve_logins(mut events: mpsc::Receiver<EdgeEvent>, edge: EdgeHandle, world: Arc<Mutex<World>>) {
    while let Some(EdgeEvent { connection, what }) = events.recv().await {
        let Arrival::LoginRequest(request) = what else {
            continue;
        };
        let holder = world.lock().unwrap().holder.clone();
        let answer = match (request, holder) {
            (LoginRequest::LogIn { credentials, .. }, _) if credentials != Credentials::password(NAME, PASSWORD) => {
                LoginAnswer::Refused(LoginRefusal::WrongPassword)
            }
            (_, None) => LoginAnswer::Refused(LoginRefusal::NotHeld),
            (LoginRequest::LogIn { .. }, Some(base)) => LoginAnswer::Ticket(Ticket {
                session: SESSION,
                secret: TICKET,
                base,
            }),
            (LoginRequest::Locate { owner, session }, Some(located)) => {
                assert_eq!((owner, session), (OWNER, SESSION));
                LoginAnswer::Located(located)
            }
        };
        let mut body = Vec::new();
        answer.write(&mut body);
        edge.apply(EdgeCommand::Frame { connection, body });
        edge.apply(EdgeCommand::Close {
            connection,
            reason: CloseReason::Finished,
        });
    }
}

async fn serve_sessions(
    mut events: mpsc::Receiver<EdgeEvent>,
    edge: EdgeHandle,
    epoch: Epoch,
    world: Arc<Mutex<World>>,
) {
    while let Some(EdgeEvent { connection, what }) = events.recv().await {
        let mut world = world.lock().unwrap();
        match what {
            Arrival::Opened { .. } => {}
            Arrival::LoginRequest(_) => panic!("a base received a log-in request"),
            Arrival::Hello(hello) => world.greet(&edge, connection, epoch, &hello),
            // What a base that was replaced receives has no effect.
            Arrival::Frame(_) if !world.plays_on(epoch, connection) => {}
            Arrival::Frame(frame) => world.take(frame),
            Arrival::Datagram(ToServerDatagram::Moved(moved)) => world.follow(moved),
            Arrival::Datagram(other) => panic!("the client has no reason to send {other:?}"),
            Arrival::Closed(reason) => {
                world.closed.push(reason);
                if world.plays_on(epoch, connection) {
                    world.playing = None;
                }
            }
        }
    }
}

impl World {
    fn greet(&mut self, edge: &EdgeHandle, connection: ConnectionId, epoch: Epoch, hello: &Hello) {
        let known = hello.session == SESSION && [Proof::Ticket(TICKET), Proof::Resume(TOKEN)].contains(&hello.proof);
        let answer = if !known {
            HelloAnswer::Rejected(Rejection::UnknownSession)
        } else if hello.schema != schema().client_fingerprint() {
            HelloAnswer::Rejected(Rejection::WrongSchema)
        } else {
            self.playing = Some((epoch, connection, edge.clone()));
            self.view = (0, 0, 0);
            let (session, entity, type_id, token) = (SESSION, AVATAR, TypeId(0), TOKEN);
            HelloAnswer::Welcome(Welcome {
                session,
                epoch,
                entity,
                type_id,
                token,
                movements: Movements::Plain,
            })
        };
        let mut body = Vec::new();
        answer.write(&mut body);
        edge.apply(EdgeCommand::Frame { connection, body });
    }

    fn plays_on(&self, epoch: Epoch, connection: ConnectionId) -> bool {
        let playing = self.playing.as_ref();
        playing.is_some_and(|(base, playing, _)| (*base, *playing) == (epoch, connection))
    }

    pub(crate) fn send(&self, frame: &ToClient) {
        if let Some((_, connection, edge)) = &self.playing {
            let mut body = Vec::new();
            frame.write(&mut body);
            edge.apply(EdgeCommand::Frame {
                connection: *connection,
                body,
            });
        }
    }

    /// Sends a frame in the background.
    pub(crate) fn send_background_frame(&self, frame: &ToClient) {
        if let Some((_, connection, edge)) = &self.playing {
            let mut body = Vec::new();
            frame.write(&mut body);
            edge.apply(EdgeCommand::BackgroundFrame {
                connection: *connection,
                body,
            });
        }
    }

    fn take(&mut self, frame: ToServer) {
        match frame {
            ToServer::Call(Call {
                entity,
                part,
                number,
                message,
                ..
            }) => {
                if number.0 == self.taken.len() as u64 + 1 {
                    self.taken.push((number, message[1..].to_vec()));
                }
                if !self.withholds {
                    self.send(&ToClient::Took {
                        entity,
                        part,
                        upto: CallNumber(self.taken.len() as u64),
                    });
                }
            }
            ToServer::Stamps(stamps) => {
                self.stamps.push(stamps.clone());
                self.begin(&stamps);
            }
            ToServer::DownloadProgress(progress) => self.progress.push(progress),
            ToServer::Bye => self.said_bye = true,
        }
    }

    pub(crate) fn said_bye(&self) -> bool {
        self.said_bye
    }

    pub(crate) fn is_played(&self) -> bool {
        self.playing.is_some() && self.view.0 > 0
    }

    fn begin(&mut self, stamps: &Stamps) {
        let (source, view) = (stamps.source, stamps.view);
        if source == Part::Base {
            self.send(&ToClient::View(ViewFrame {
                source,
                view,
                sequence: 1,
                tick: Tick(0),
                items: Vec::new(),
            }));
            return;
        }
        let known = stamps
            .known
            .seen
            .iter()
            .find(|stamp| stamp.entity == AVATAR)
            .map(|stamp| stamp.upto.0);
        self.view = (view, 0, known.unwrap_or(0));
        let place = Some((Position::default(), Direction::default()));
        let enter = ViewItem::Enter {
            entity: AVATAR,
            type_id: TypeId(0),
            place,
        };
        let mut items: Vec<ViewItem> = known.is_none().then_some(enter).into_iter().collect();
        items.extend(self.update());
        self.frame(items);
    }

    fn show(&mut self) {
        if self.view.0 > 0 {
            let items = self.update().into_iter().collect();
            self.frame(items);
        }
    }

    fn frame(&mut self, items: Vec<ViewItem>) {
        self.view.1 += 1;
        let (view, sequence, _) = self.view;
        self.send(&ToClient::View(ViewFrame {
            source: Part::Cell,
            view,
            sequence,
            tick: Tick(sequence),
            items,
        }));
    }

    fn update(&mut self) -> Option<ViewItem> {
        let (from, upto) = (self.view.2, self.health.len() as u64);
        let schema = schema();
        let mut writer = ShownWriter::new(&schema.types()[0], HistoryNumber(from));
        for i in from..upto {
            let health = Value::Int(self.health[usize::try_from(i).unwrap()].into());
            let change = annals_def::Located::whole(health);
            writer.change(HistoryNumber(i + 1), HEALTH, &change).unwrap();
        }
        self.view.2 = upto;
        let update = ViewItem::Update {
            entity: AVATAR,
            from: HistoryNumber(from),
            upto: HistoryNumber(upto),
            events: writer.finish(),
        };
        (upto > from).then_some(update)
    }

    /// Shows the avatar's movement for a bystander: the same position, as a datagram about another entity.
    fn follow(&mut self, moved: Moved) {
        self.moved = Some(moved);
        if let Some((_, connection, edge)) = &self.playing {
            let movement = Move {
                entity: AVATAR,
                position: moved.position,
                direction: moved.direction,
            };
            let moves = Moves {
                view: self.view.0,
                tick: Tick(1_000 + moved.sequence),
                moves: vec![movement],
            };
            for bytes in moves.datagrams() {
                edge.apply(EdgeCommand::Datagram {
                    connection: *connection,
                    bytes,
                });
            }
        }
    }
}
