//! Runs one base owner: a log that acknowledges on request, a store that grants, and time that advances on request.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use annals_base::{
    BaseInput, BaseRole, Begin, CheckedOut, DownloadContent, DuplicateLogin, OpenSession, PreparedDownload,
};
use annals_def::Schema;
use annals_event::{Batch, Call, FrozenBatch, Image, Imprint, Link, OwnerState};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, Epoch, MemberId, OwnerId, Part, SessionId, TransferId, WallTime,
    WorldTime,
};
use annals_node::{
    Beginning, Begun, ConnectionId, Input, NotOpened, NotOrdered, Output, Owner,
    download::{Download, DownloadSource},
    inquiry::{Answer, Answered, Inquiry},
    outbound::OutboundCall,
    time::{Mono, Now},
    writer::{self, Action, Chain, Durability},
};
use annals_personal::PersonalKey;
use annals_wire::{
    CellArea, Space, SpaceMap,
    bus::{CallMessage, Envelope, Message},
    client::{CloseReason, Rejection, Secret, value_hash},
};

use crate::game::{self, Game, PLACE};

pub(crate) const BASE: OwnerId = OwnerId(10);
pub(crate) const CELL: OwnerId = OwnerId(20);

/// Outputs of a base, except messages to other owners.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Out {
    Frame(ConnectionId, Vec<u8>),
    Datagram(ConnectionId, Vec<u8>),
    Close(ConnectionId, CloseReason),
    Reject(ConnectionId, Rejection),
}

/// What the log does with an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Accepts and acknowledges it.
    Answers,
    /// Accepts it without acknowledgement.
    Withholds,
    /// Loses it.
    Loses,
}

pub(crate) struct Host {
    pub(crate) schema: Arc<Schema>,
    pub(crate) game: Game,
    pub(crate) owner: Owner<BaseRole>,
    pub(crate) epoch: Epoch,
    /// The log, as appended.
    log: Vec<Vec<u8>>,
    pub(crate) mood: Mood,
    now: u64,
    secrets: u64,
    pub(crate) out: VecDeque<Out>,
    pub(crate) sent: VecDeque<(OwnerId, Envelope)>,
    pub(crate) opened: Vec<(u64, Result<SessionId, NotOpened>)>,
    pub(crate) begun: Vec<(u64, Result<Begun, NotOpened>)>,
    pub(crate) ordered: Vec<(u64, Result<TransferId, NotOrdered>)>,
    pub(crate) ended: Vec<(u64, u32)>,
    pub(crate) asked: VecDeque<(EntityId, CallNumber, Inquiry)>,
    pub(crate) outbound: VecDeque<OutboundCall>,
    /// The files that can be downloaded.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Whether no content of downloads comes.
    pub(crate) withholds_content: bool,
    /// When each background frame left, milliseconds, and its bytes.
    pub(crate) background: Vec<(u64, usize)>,
}

impl Host {
    pub(crate) fn new() -> Self {
        let mut host = Self::without_map();
        host.role(BaseInput::Map(map()));
        host
    }

    pub(crate) fn without_map() -> Self {
        Self::of(Game::default())
    }

    /// A host in a realm with this game, before there is a map.
    pub(crate) fn of(game: Game) -> Self {
        Self::of_schema(game::schema(), game)
    }

    /// The same with another schema.
    pub(crate) fn of_schema(schema: Arc<Schema>, game: Game) -> Self {
        let now = 1_000_000;
        let owner = take_over((&schema, &game), now, Epoch(1), (&[], 0));
        let mut host = Self {
            schema,
            game,
            owner,
            epoch: Epoch(1),
            log: Vec::new(),
            mood: Mood::Answers,
            now,
            secrets: 0,
            out: VecDeque::new(),
            sent: VecDeque::new(),
            opened: Vec::new(),
            begun: Vec::new(),
            ordered: Vec::new(),
            ended: Vec::new(),
            asked: VecDeque::new(),
            outbound: VecDeque::new(),
            files: BTreeMap::new(),
            withholds_content: false,
            background: Vec::new(),
        };
        host.pump();
        host
    }

    /// Loses the process and everything that was not in the log, and takes the owner over.
    pub(crate) fn crash(&mut self) {
        self.crash_with_snapshot(0);
    }

    /// The same, but the take-over begins with a snapshot of this many batches, which holds nothing of activations that
    /// ended in them.
    pub(crate) fn crash_with_snapshot(&mut self, batches: usize) {
        self.epoch = self.epoch.next();
        self.mood = Mood::Answers;
        self.out.clear();
        self.outbound.clear();
        self.owner = take_over((&self.schema, &self.game), self.now, self.epoch, (&self.log, batches));
        self.pass(2_000);
        self.role(BaseInput::Map(map()));
    }

    pub(crate) fn role(&mut self, input: BaseInput) {
        self.owner.handle(self.now(), Input::Role(input));
        self.pump();
    }

    /// Gives the answer to a query.
    pub(crate) fn inquired(&mut self, entity: EntityId, number: CallNumber, answer: Answer) {
        let answered = Answered { entity, number, answer };
        self.owner.handle(self.now(), Input::Inquired(answered));
        self.pump();
    }

    pub(crate) fn receive(&mut self, envelope: Envelope) {
        self.owner.handle(self.now(), Input::Bus(envelope));
        self.pump();
    }

    /// Activates a stored entity, which is an account.
    pub(crate) fn begin_account(&mut self, database: u64) -> EntityId {
        let entity = checked_out(self, database, 1);
        self.role(BaseInput::Begin(Begin { request: 3, entity }));
        self.settle();
        let (_, begun) = self.begun.pop().expect("it is answered");
        begun.expect("it begins").mailbox.entity
    }

    /// Lets an entity of another owner call a method without arguments.
    pub(crate) fn call(&mut self, entity: EntityId, method: MemberId) {
        self.call_numbered(entity, method, CallNumber(1));
    }

    /// A second call after [`Host::call`].
    pub(crate) fn call_again(&mut self, entity: EntityId, method: MemberId) {
        self.call_numbered(entity, method, CallNumber(2));
    }

    pub(crate) fn call_numbered(&mut self, entity: EntityId, method: MemberId, number: CallNumber) {
        let caller = OwnerId(11);
        let call = CallMessage {
            link: Link {
                from: Address::Base(EntityId(1)),
                to: Address::Base(entity),
            },
            from_home: caller,
            to_home: BASE,
            number,
            is_oldest: false,
            trace: [0; 16],
            call: Call::Method {
                method,
                args: Vec::new(),
                wants_reply: false,
            },
        };
        self.receive(Envelope {
            from: caller,
            epoch: Epoch(1),
            message: Message::Call(call),
        });
    }

    /// Advances time in steps in which a batch can be closed and a timer can fire.
    pub(crate) fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(STEP_MS) {
            self.now += STEP_MS * 1_000;
            self.owner.handle(self.now(), Input::Time);
            self.pump();
        }
    }

    /// Waits until all pending batches are in the log.
    pub(crate) fn settle(&mut self) {
        self.pass(5 * STEP_MS);
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            mono: Mono(self.now),
            wall: WallTime(self.now / 1_000),
            world: WorldTime(self.now / 1_000),
        }
    }

    pub(crate) fn secret(&mut self) -> Secret {
        self.secrets += 1;
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&self.secrets.to_le_bytes());
        Secret(secret)
    }

    /// Answers the writer's requests and takes out the outputs that may leave.
    fn pump(&mut self) {
        loop {
            let now = self.now();
            let Some(answer) = self.answer(now) else { break };
            self.owner.handle(now, Input::Log(answer));
        }
        while let Some(output) = self.owner.poll_output(self.now()) {
            match output {
                Output::Send { to: BASE, envelope } => self.owner.handle(self.now(), Input::Bus(envelope)),
                Output::Send { to, envelope } => self.sent.push_back((to, envelope)),
                Output::Frame { connection, bytes } => self.out.push_back(Out::Frame(connection, bytes)),
                Output::Datagram { connection, bytes } => self.out.push_back(Out::Datagram(connection, bytes)),
                Output::Close { connection, reason } => self.out.push_back(Out::Close(connection, reason)),
                Output::Reject { connection, rejection } => self.out.push_back(Out::Reject(connection, rejection)),
                Output::SessionOpened { request, opened } => self.opened.push((request, opened)),
                Output::Begun { request, begun } => self.begun.push((request, begun)),
                Output::Ordered { request, ordered } => self.ordered.push((request, ordered)),
                Output::SessionsEnded { request, ended } => self.ended.push((request, ended)),
                Output::Inquire {
                    entity,
                    number,
                    inquiry,
                } => self.asked.push_back((entity, number, inquiry)),
                Output::Outbound(call) => self.outbound.push_back(call),
                Output::Download(_) if self.withholds_content => {}
                Output::Download(download) => {
                    let prepared = self.prepare(download);
                    self.owner
                        .handle(self.now(), Input::Role(BaseInput::Download(prepared)));
                }
                Output::BackgroundFrame { connection, bytes } => {
                    self.background.push((self.now / 1_000, bytes.len()));
                    self.out.push_back(Out::Frame(connection, bytes));
                }
                Output::WantIds => {}
            }
        }
    }

    /// What a shell answers to a download.
    fn prepare(&self, download: Download) -> PreparedDownload {
        let content = match download.source {
            DownloadSource::Content(content) => Ok(content),
            DownloadSource::File(name) => self.files.get(&name).cloned().ok_or("no such file".to_owned()),
        };
        PreparedDownload {
            id: download.id,
            description: download.description,
            content: content.map(|bytes| DownloadContent {
                hash: value_hash(&bytes),
                bytes: bytes.into(),
            }),
        }
    }

    fn answer(&mut self, now: Now) -> Option<writer::Input> {
        Some(match self.owner.poll_log(now)? {
            Action::Append { expect, batch } => {
                assert_eq!(expect, self.log.len() as u64, "another process appended");
                if self.mood != Mood::Loses {
                    self.log.push(batch.bytes.clone());
                }
                if self.mood != Mood::Answers {
                    return None;
                }
                let sequence = self.log.len() as u64;
                writer::Input::Appended { sequence }
            }
            Action::RecordOpening(_) => writer::Input::OpeningRecorded,
            Action::ConfirmEpoch => writer::Input::EpochConfirmed,
            _ if self.mood != Mood::Answers => return None,
            Action::ReadLast => writer::Input::Last(self.last()),
            Action::LookAgain => writer::Input::Looked {
                batches: self.log.clone(),
                last: self.last(),
            },
        })
    }

    fn last(&self) -> Option<(u64, Vec<u8>)> {
        self.log.last().map(|bytes| (self.log.len() as u64, bytes.clone()))
    }

    /// Lets the log acknowledge again, including what it withheld.
    pub(crate) fn answer_again(&mut self) {
        self.mood = Mood::Answers;
        self.owner.handle(self.now(), Input::Log(writer::Input::Silent));
        self.settle();
    }

    /// The whole log, folded again.
    pub(crate) fn folded(&self) -> OwnerState {
        fold(&self.log, 0)
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = Batch> {
        self.log.iter().map(|bytes| Batch::read(bytes).unwrap())
    }

    pub(crate) fn image(&self, entity: annals_ids::EntityId) -> &Image {
        self.owner.cx().image(entity).expect("the entity is here")
    }
}

impl Host {
    /// Takes the calls that were sent to the other base owner, with their numbers.
    pub(crate) fn calls_to_other(&mut self) -> Vec<(CallNumber, Call)> {
        let sent = self.sent.drain(..).filter(|(to, _)| *to == OTHER);
        let calls = sent.filter_map(|(_, envelope)| match envelope.message {
            Message::Call(CallMessage { number, call, .. }) => Some((number, call)),
            _ => None,
        });
        calls.collect()
    }
}

/// The other base owner.
pub(crate) const OTHER: OwnerId = OwnerId(11);

/// A call of the other base owner to this one.
pub(crate) fn call_of_other(number: u64, call: Call) -> Envelope {
    let call = CallMessage {
        link: Link {
            from: Address::Owner(OTHER),
            to: Address::Owner(BASE),
        },
        from_home: OTHER,
        to_home: BASE,
        number: CallNumber(number),
        is_oldest: false,
        trace: [0; 16],
        call,
    };
    Envelope {
        from: OTHER,
        epoch: Epoch(1),
        message: Message::Call(call),
    }
}

/// Milliseconds per step of time.
const STEP_MS: u64 = 10;

pub(crate) fn map() -> SpaceMap {
    let space = Space {
        cells: vec![CellArea::everywhere(CELL)],
        aoi_radius: 100.0,
        aoi_hysteresis: 5.0,
        ghost_distance: 110.0,
    };
    SpaceMap {
        version: 1,
        spaces: [(PLACE.space, space)].into(),
        bootstrap: Some(BASE),
        bases: [BASE].into(),
        cells: [CELL].into(),
    }
}

pub(crate) fn open(host: &Host, request: u64, account: u64, checkout: u64, ticket: &Secret) -> OpenSession {
    OpenSession {
        request,
        account: checked_out(host, account, checkout),
        ticket: ticket.digest().0,
        name: name(account),
        duplicate: DuplicateLogin::Replace,
        replaces_only: false,
    }
}

/// A stored account, checked out to this base in its current epoch.
pub(crate) fn checked_out(host: &Host, database: u64, checkout: u64) -> CheckedOut {
    CheckedOut {
        epoch: host.epoch,
        database: DatabaseId(database),
        checkout,
        type_id: game::ACCOUNT,
        properties: Vec::new(),
        key: Some(key(DatabaseId(database))),
    }
}

fn fold(log: &[Vec<u8>], snapshot: usize) -> OwnerState {
    let mut state = OwnerState::new(BASE, Part::Base);
    for (number, bytes) in log.iter().enumerate() {
        if number == snapshot {
            state.ended.clear();
        }
        state.fold(&Batch::read(bytes).unwrap()).unwrap();
    }
    if log.len() <= snapshot {
        state.ended.clear();
    }
    state
}

fn take_over(
    (schema, game): (&Arc<Schema>, &Game),
    now: u64,
    epoch: Epoch,
    (log, snapshot): (&[Vec<u8>], usize),
) -> Owner<BaseRole> {
    let state = fold(log, snapshot);
    let beyond = log
        .iter()
        .map(|bytes| FrozenBatch::read(bytes.clone()).unwrap())
        .collect();
    let chain = Chain::whole(writer::Tip::default(), beyond, log.len() as u64);
    let role = BaseRole::take_over(&state, Mono(now));
    let role = match game.download_bits {
        Some(bits) => role.with_download_bits(bits),
        None => role,
    };
    let seed = annals_def::split_mix(epoch.0);
    let now = Now {
        mono: Mono(now),
        wall: WallTime(now / 1_000),
        world: WorldTime(now / 1_000),
    };
    let keys = state.databases.keys().map(|&person| (person, key(person))).collect();
    let beginning = Beginning {
        state,
        call_generation: 0,
        chain,
        imprint: Imprint {
            realm: "test".into(),
            owner: BASE,
            epoch,
            schema: schema.fingerprint(),
        },
        durability: Durability::Log,
        ids: epoch.0 << 20..(epoch.0 + 1) << 20,
        schema: Arc::clone(schema),
        behaviour: Arc::new(game.clone()),
        panics: annals_node::PanicPolicy::Propagate,
        dice: Box::new(seed),
        keys,
    };
    Owner::take_over(now, role, beginning)
}

/// The key of a stored entity.
pub(crate) fn key(person: DatabaseId) -> PersonalKey {
    PersonalKey::new([person.0 as u8; 32])
}

/// The name that an account logs in with.
pub(crate) fn name(account: u64) -> String {
    format!("player {account}")
}

/// Address of all clients.
pub(crate) const FROM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4_711);
