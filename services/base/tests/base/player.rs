//! A client per `docs/client-protocol.md`: keeps its calls until they are acknowledged, and checks every frame of its
//! view.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use annals_def::{Argument, EntityType, Form, MessageRange, Schema, Value, apply, encode};
use annals_ids::{CallNumber, EntityId, Epoch, HistoryNumber, OwnerId, Part, SessionId, TypeId};
use annals_wire::client::{
    Call, CallRefusal, ClientMember, CloseReason, DownloadBegun, DownloadId, DownloadProgress, Hello, HelloAnswer,
    Movements, Proof, Reads, Rejection, Reply, Secret, Shown, ShownReader, Stamps, ToClient, ToServer, ViewFrame,
    ViewItem, Welcome, protocol_hash, read_properties, value_hash,
};

use crate::host::{BASE, FROM, Host, Out};
use annals_base::BaseInput;
use annals_node::ConnectionId;

/// Result of a connection's first frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    Waiting,
    Welcomed,
    Rejected(Rejection),
    /// The session is at this other owner.
    Given(OwnerId),
}

pub(crate) struct Player {
    schema: Arc<Schema>,
    pub(crate) session: SessionId,
    pub(crate) proof: Proof,
    pub(crate) connection: ConnectionId,
    pub(crate) entrance: Entrance,
    pub(crate) closed: Option<CloseReason>,
    /// The entity it controls and its type, as the base last said.
    pub(crate) entity: Option<(EntityId, TypeId)>,
    /// Per part: the last number used, and the calls not acknowledged yet.
    pub(crate) calls: BTreeMap<(Part, EntityId), (CallNumber, BTreeMap<CallNumber, Call>)>,
    pub(crate) refused: Vec<(CallNumber, CallRefusal)>,
    pub(crate) gone: Vec<(Part, EntityId)>,
    /// Number of the last view that a reset has ended.
    ended: u64,
    /// Number of the view and of its last frame, and what the client has of its entity.
    view: (u64, u64),
    pub(crate) has: Option<(EntityId, HistoryNumber, BTreeMap<ClientMember, Value>)>,
    /// All method calls it was shown, by history number.
    pub(crate) shown_calls: Vec<(HistoryNumber, String)>,
    /// Answers to its calls.
    pub(crate) replies: Vec<(HistoryNumber, Reply)>,
    pub(crate) frames: usize,
    /// Bytes of its views that carry properties and methods.
    pub(crate) weighed: usize,
    pub(crate) stamps_wanted: usize,
    /// The movement encodings that it says it reads, and the one that the base chose.
    pub(crate) reads: Reads,
    pub(crate) movements: Movements,
    /// What it has of the download that was begun last.
    pub(crate) partial: Option<(DownloadBegun, Vec<u8>)>,
    /// The downloads that it has whole, and those that ended otherwise.
    pub(crate) downloaded: Vec<(DownloadBegun, Vec<u8>)>,
    pub(crate) cancelled: Vec<DownloadId>,
    /// Whether it answers downloads.
    pub(crate) acknowledges: bool,
    /// Bytes of chunks that it was sent.
    pub(crate) chunk_bytes: usize,
    /// The owner at which its session continues, as it was notified.
    pub(crate) given: Option<OwnerId>,
}

impl Player {
    pub(crate) fn new(schema: &Arc<Schema>, session: SessionId, ticket: Secret) -> Self {
        Self {
            schema: Arc::clone(schema),
            session,
            proof: Proof::Ticket(ticket),
            connection: ConnectionId(0),
            entrance: Entrance::Waiting,
            closed: None,
            entity: None,
            calls: BTreeMap::new(),
            refused: Vec::new(),
            gone: Vec::new(),
            ended: 0,
            view: (0, 0),
            has: None,
            shown_calls: Vec::new(),
            replies: Vec::new(),
            frames: 0,
            weighed: 0,
            stamps_wanted: 0,
            reads: Reads::Plain,
            movements: Movements::Plain,
            partial: None,
            downloaded: Vec::new(),
            cancelled: Vec::new(),
            acknowledges: true,
            chunk_bytes: 0,
            given: None,
        }
    }

    /// Connects and sends its hello; the answers are read by [`Player::listen`].
    pub(crate) fn connect(&mut self, host: &mut Host, connection: u64) {
        self.connection = ConnectionId(connection);
        (self.entrance, self.closed) = (Entrance::Waiting, None);
        let fresh_token = host.secret();
        let hello = self.hello(host.epoch);
        host.role(BaseInput::Hello {
            connection: self.connection,
            from: FROM,
            hello,
            fresh_token,
        });
        host.settle();
    }

    pub(crate) fn hello(&self, epoch: Epoch) -> Hello {
        Hello {
            protocol: protocol_hash(),
            schema: self.schema.client_fingerprint(),
            owner: BASE,
            epoch,
            session: self.session,
            proof: self.proof.clone(),
            reads: self.reads,
        }
    }

    pub(crate) fn send(&self, host: &mut Host, frame: &ToServer) {
        host.role(BaseInput::Frame {
            connection: self.connection,
            frame: frame.clone(),
            trace: [7; 16],
        });
    }

    /// Begins the base's view again from what it has.
    pub(crate) fn begin_view(&mut self, host: &mut Host) {
        self.view = (self.view.0 + 1, 0);
        let known = self.has.iter().map(|(entity, upto, _)| (*entity, *upto)).collect();
        let stamps = Stamps {
            source: Part::Base,
            view: self.view.0,
            known,
        };
        self.send(host, &ToServer::Stamps(stamps));
    }

    /// Calls an exposed method of its own entity and keeps the call.
    pub(crate) fn call(&mut self, host: &mut Host, part: Part, method: &str, args: &[Value]) -> CallNumber {
        let (entity, _) = self.entity.expect("it was welcomed");
        let call = self.make(part, entity, method, args);
        let number = call.number;
        self.send(host, &ToServer::Call(call));
        number
    }

    /// Creates a call and keeps it, but does not send it.
    pub(crate) fn make(&mut self, part: Part, entity: EntityId, method: &str, args: &[Value]) -> Call {
        let (_, type_id) = self.entity.expect("it was welcomed");
        let entity_type = self.schema.entity_type(type_id).unwrap();
        let found = match part {
            Part::Base => entity_type.base_method_named(method),
            Part::Cell => entity_type.cell_method_named(method),
        };
        let found = found.unwrap();
        let range = MessageRange::of_calls(entity_type, part);
        let mut message = Vec::new();
        range.put(found.client_id.expect("it is exposed"), &mut message);
        message.extend(arguments(&found.args, args));
        let (last, kept) = self.calls.entry((part, entity)).or_default();
        *last = last.next();
        let call = Call {
            entity,
            part,
            number: *last,
            is_oldest: false,
            message,
        };
        kept.insert(*last, call.clone());
        call
    }

    /// Resends every call that is not acknowledged.
    pub(crate) fn repeat(&self, host: &mut Host) {
        for (_, kept) in self.calls.values() {
            for call in kept.values() {
                self.send(host, &ToServer::Call(call.clone()));
            }
        }
    }

    /// Whether all its calls are acknowledged.
    pub(crate) fn is_settled(&self) -> bool {
        self.calls.values().all(|(_, kept)| kept.is_empty())
    }

    /// Reads the outputs for its connection.
    pub(crate) fn listen(&mut self, host: &mut Host) {
        let connection = self.connection;
        let (own, others) = std::mem::take(&mut host.out).into_iter().partition(|out| match out {
            Out::Frame(to, _) | Out::Datagram(to, _) | Out::Close(to, _) | Out::Reject(to, _) => *to == connection,
        });
        host.out = others;
        let own: VecDeque<Out> = own;
        for out in own {
            self.receive(host, &out);
        }
    }

    /// Reads one output; public so that a test may lose or delay some.
    pub(crate) fn receive(&mut self, host: &mut Host, out: &Out) {
        assert_eq!(self.closed, None, "{out:?} came after the connection was closed");
        match out {
            Out::Frame(_, bytes) if self.entrance == Entrance::Waiting => match HelloAnswer::read(bytes).unwrap() {
                HelloAnswer::Welcome(welcome) => self.enter(welcome),
                HelloAnswer::Rejected(rejection) => panic!("{rejection} is an output of its own"),
                HelloAnswer::Given(owner) => self.entrance = Entrance::Given(owner),
            },
            Out::Frame(_, bytes) => self.take(host, ToClient::read(bytes).unwrap()),
            Out::Datagram(..) => {}
            Out::Close(_, reason) => self.closed = Some(*reason),
            Out::Reject(_, rejection) => {
                self.entrance = Entrance::Rejected(*rejection);
                self.closed = Some(CloseReason::Finished);
            }
        }
    }

    fn enter(&mut self, welcome: Welcome) {
        assert_eq!(welcome.session, self.session);
        self.entrance = Entrance::Welcomed;
        self.entity = Some((welcome.entity, welcome.type_id));
        if self.has.as_ref().is_some_and(|(entity, ..)| *entity != welcome.entity) {
            self.has = None;
        }
        self.movements = welcome.movements;
        self.proof = Proof::Resume(welcome.token);
    }

    fn take(&mut self, host: &mut Host, frame: ToClient) {
        match frame {
            ToClient::Took { entity, part, upto } => {
                let (_, kept) = self.calls.get_mut(&(part, entity)).expect("it called there");
                *kept = kept.split_off(&upto.next());
            }
            ToClient::Gap { entity, part, have } => {
                let (_, kept) = &self.calls[&(part, entity)];
                let missing: Vec<Call> = kept.range(have.next()..).map(|(_, call)| call.clone()).collect();
                for call in missing {
                    self.send(host, &ToServer::Call(call));
                }
            }
            ToClient::Gone { entity, part } => {
                self.gone.push((part, entity));
                if let Some((_, kept)) = self.calls.get_mut(&(part, entity)) {
                    kept.clear();
                }
            }
            ToClient::Refused { number, reason, .. } => self.refused.push((number, reason)),
            ToClient::View(frame) => self.look(frame),
            ToClient::StampsWanted { source } => {
                assert_eq!(source, Part::Cell);
                self.stamps_wanted += 1;
            }
            ToClient::Reset { entity, type_id } => {
                self.entity = Some((entity, type_id));
                (self.has, self.ended) = (None, self.view.0);
                self.begin_view(host);
            }
            ToClient::Banned(_) => {}
            ToClient::RateWarned => panic!("the base does not measure rates"),
            ToClient::Moving(_) => panic!("the shell announces moves"),
            ToClient::DownloadBegun(begun) => {
                let kept = self.partial.take().filter(|(before, _)| *before == begun);
                self.partial = Some(kept.unwrap_or((begun, Vec::new())));
                self.acknowledge(host);
            }
            ToClient::DownloadChunk(chunk) => {
                self.chunk_bytes += chunk.content.len();
                let (begun, content) = self.partial.as_mut().expect("it was begun");
                assert_eq!(
                    (begun.id, content.len() as u64),
                    (chunk.id, chunk.offset),
                    "in order, without gaps"
                );
                content.extend(&chunk.content);
                self.acknowledge(host);
            }
            ToClient::DownloadEnded(id) => {
                self.partial = None;
                self.cancelled.push(id);
            }
            ToClient::Given(owner) => self.given = Some(owner),
        }
    }

    fn acknowledge(&mut self, host: &mut Host) {
        let (begun, content) = self.partial.as_ref().expect("it was begun");
        let (id, upto) = (begun.id, content.len() as u64);
        if upto == begun.size && self.downloaded.last().is_none_or(|(before, _)| before.id != id) {
            assert_eq!(begun.hash, value_hash(content));
            self.downloaded.push((begun.clone(), content.clone()));
        }
        if self.acknowledges {
            self.send(host, &ToServer::DownloadProgress(DownloadProgress { id, upto }));
        }
    }

    fn look(&mut self, frame: ViewFrame) {
        assert!(
            self.ended == 0 || frame.view > self.ended,
            "a frame of a view that was reset"
        );
        if frame.source != Part::Base || frame.view != self.view.0 {
            return;
        }
        self.frames += 1;
        assert_eq!(frame.sequence, self.view.1 + 1, "a frame is missing");
        self.view.1 = frame.sequence;
        for item in frame.items {
            self.see(item);
        }
    }

    fn see(&mut self, item: ViewItem) {
        match item {
            ViewItem::Enter { entity, type_id, place } => {
                assert_eq!((Some((entity, type_id)), place), (self.entity, None));
                self.has = Some((entity, HistoryNumber(0), BTreeMap::new()));
            }
            ViewItem::Leave { entity } => assert_ne!(Some(entity), self.entity.map(|(own, _)| own)),
            ViewItem::Refresh {
                entity,
                upto,
                level,
                properties,
            } => {
                self.weighed += properties.len();
                assert_eq!(level, 0, "a base part is shown in every detail");
                let values = read_properties(self.own_type(), &properties)
                    .unwrap()
                    .into_iter()
                    .collect();
                let (known, has, held) = self.has.as_mut().expect("it was entered");
                assert_eq!(*known, entity);
                assert!(upto >= *has, "shown {upto} after {has}");
                (*has, *held) = (upto, values);
            }
            ViewItem::Update {
                entity,
                from,
                upto,
                events,
            } => {
                let (known, has, _) = self.has.as_ref().expect("it was entered");
                assert_eq!((*known, *has), (entity, from), "a hole or a repetition");
                self.weighed += events.len();
                let own = self.own_type().clone();
                let mut reader = ShownReader::new(&own, (from, upto), &events);
                while let Some((number, event)) = reader.next_event(&self.held()).unwrap() {
                    self.apply(number, event);
                }
                self.has.as_mut().expect("it was entered").1 = upto;
            }
            ViewItem::Placed { .. }
            | ViewItem::Space { .. }
            | ViewItem::SpaceData { .. }
            | ViewItem::Drives { .. }
            | ViewItem::Level { .. }
            | ViewItem::Return { .. } => {
                panic!("a base part has no position")
            }
        }
    }

    /// By client number, as the reader of events needs them.
    fn held(&self) -> Vec<Value> {
        let (_, _, held) = self.has.as_ref().expect("it was entered");
        let members = (0..).map(ClientMember).take(self.own_type().client_properties().len());
        let value = |member| held.get(&member).unwrap_or(&self.property(member).default).clone();
        members.map(value).collect()
    }

    fn apply(&mut self, number: HistoryNumber, event: Shown) {
        match event {
            Shown::Property { member, change } => {
                let property = self.property(member).clone();
                let (_, _, held) = self.has.as_mut().expect("it was entered");
                let slot = held.entry(member).or_insert_with(|| property.default.clone());
                apply(&property.data_type, slot, &change).unwrap();
            }
            Shown::Method { args, .. } => self.shown_calls.push((number, crate::game::text(&args[0]))),
            Shown::Reply(reply) => self.replies.push((number, reply)),
        }
    }

    /// A property as it was shown, or its default.
    pub(crate) fn property_value(&self, name: &str) -> Value {
        let property = self.own_type().property_named(name).unwrap();
        let id = ClientMember(property.client_id.unwrap());
        let (_, _, held) = self.has.as_ref().expect("it was entered");
        held.get(&id).unwrap_or(&property.default).clone()
    }

    fn property(&self, member: ClientMember) -> &annals_def::Property {
        let own = self.own_type();
        own.property(own.client_properties()[usize::from(member.0)]).unwrap()
    }

    fn own_type(&self) -> &EntityType {
        let (_, type_id) = self.entity.expect("it was welcomed");
        self.schema.entity_type(type_id).unwrap()
    }
}

pub(crate) fn arguments(declared: &[Argument], values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (argument, value) in declared.iter().zip(values) {
        encode(&argument.data_type, value, Form::Whole, &mut bytes).unwrap();
    }
    bytes
}

/// Logs an account in, connects on connection `connection` and begins its view.
pub(crate) fn log_in(host: &mut Host, account: u64, connection: u64) -> Player {
    let mut player = with_ticket(host, account, connection);
    player.connect(host, connection);
    player.listen(host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    player.begin_view(host);
    host.settle();
    player.listen(host);
    player
}

/// Opens a session for an account, without connecting. The check-out has the account's number.
pub(crate) fn with_ticket(host: &mut Host, account: u64, request: u64) -> Player {
    let ticket = host.secret();
    let wanted = crate::host::open(host, request, account, account, &ticket);
    host.role(BaseInput::OpenSession(wanted));
    host.settle();
    let (answered, opened) = host.opened.pop().expect("the request is answered");
    assert_eq!(answered, request);
    let session = opened.expect("the session is opened");
    Player::new(&host.schema, session, ticket)
}
