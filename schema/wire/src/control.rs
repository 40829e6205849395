//! Requests between processes, apart from the links between owners: registration and grants, accounts, sessions.
//!
//! Protocol Buffers, so that processes of adjacent versions understand each other. Each request has one answer type; if
//! an answer is lost, the request is repeated.

mod accounts;
mod counts;
mod processes;
mod rooms;
mod upgrades;

use annals_ids::{BatchNumber, Epoch, Hash, OwnerId, OwnerKind, ProcessId, Shard, SpaceId};
use prost::Message;
use thiserror::Error;

use crate::{CellArea, Space, SpaceMap, load::WireLoad};

pub use accounts::{AccountFound, CheckOut, CheckedOut, CreateAccount, EndSessions, FindAccount, WireBan};
pub use counts::{CountList, CountNews, CountedKind, ListCounts, WireCount, WireCounted};
pub use processes::{DrainProcess, DrainStage, HandOver, ListProcesses, ListedProcess, ProcessList};
pub use rooms::{PlaceSession, RealmRoom, RoomSettled, SettleRoom, WirePlayed};
pub use upgrades::{ChangeDefinitions, DefinitionsChanged, UpgradeAction, UpgradeOrder, UpgradeRealm, UpgradeStage};

/// The version of the messages between processes. Processes of the same version work in one realm, whatever releases they
/// are of: what a release adds, others skip. A change after which that is not so raises the version, and processes of
/// another one are refused when they register.
pub const BUS_VERSION: u32 = 4;

/// Why a control message could not be decoded.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The bytes are not such a message.
    #[error("the message is not of the expected kind")]
    Shape(#[from] prost::DecodeError),
    /// A distance of a space is not finite, or negative.
    #[error("space {space}: the {what} is {metres} m, which is not a valid distance")]
    Distance {
        space: SpaceId,
        /// The name of the distance.
        what: &'static str,
        /// The value.
        metres: f32,
    },
    /// A load is not finite, or negative.
    #[error("invalid load: {0}")]
    Load(&'static str),
    /// An overview of a region contradicts itself.
    #[error("invalid overview: {0}")]
    Overview(&'static str),
    /// An area is empty, or has an edge that is NaN.
    #[error("space {space}: the area of {owner} is invalid")]
    Area { space: SpaceId, owner: OwnerId },
}

/// A request from a process to the director.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DirectorRequest {
    /// The request.
    #[prost(oneof = "DirectorAsk", tags = "1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13")]
    pub ask: Option<DirectorAsk>,
}

/// The requests to the director.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DirectorAsk {
    /// A process starts and asks for an id. Answer: [`Registered`].
    #[prost(message, tag = "1")]
    Register(Register),
    /// A heartbeat of a process, with the owners it holds. Answer: [`Orders`].
    #[prost(message, boxed, tag = "2")]
    Beat(Box<ProcessBeat>),
    /// A process needs entity ids. Answer: [`IdBlock`].
    #[prost(message, tag = "3")]
    MoreIds(MoreIds),
    /// Asks which owner is to take a new session. Answer: [`OwnerAddress`].
    #[prost(message, tag = "4")]
    PlaceSession(PlaceSession),
    /// Asks for the client address of this owner. Answer: [`OwnerAddress`].
    #[prost(message, tag = "5")]
    Locate(Locate),
    /// An operator stops the realm, or asks for the progress of that. Answer: [`StopStage`].
    #[prost(message, tag = "8")]
    Stop(StopRealm),
    /// An operator asks how spaces are divided. Answer: [`crate::cells::WireCellList`].
    #[prost(message, tag = "9")]
    Cells(ListCells),
    /// An operator drains a process, or asks for the progress of that. Answer: [`DrainStage`].
    #[prost(message, tag = "10")]
    Drain(DrainProcess),
    /// An operator asks for the live processes. Answer: [`ProcessList`].
    #[prost(message, tag = "11")]
    Processes(ListProcesses),
    /// An operator changes the realm's definitions while it runs, or asks for the progress of that. Answer:
    /// [`UpgradeStage`].
    #[prost(message, tag = "12")]
    Upgrade(UpgradeRealm),
    /// Room that a login process was given is used, or not needed any more. Answer: [`RoomSettled`].
    #[prost(message, tag = "13")]
    SettleRoom(SettleRoom),
}

/// The request [`DirectorAsk::Cells`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListCells {}

/// The request [`DirectorAsk::Stop`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct StopRealm {
    /// Whether to stop the realm; if not set, this only asks. Has no effect while the realm is stopping.
    #[prost(bool, tag = "1")]
    pub stop: bool,
    /// Time for the game before clients are disconnected (ms).
    #[prost(uint64, tag = "2")]
    pub delay: u64,
    /// The number of the stage to skip, without waiting for its processes; 0 for none.
    #[prost(uint32, tag = "3")]
    pub go_on: u32,
}

/// The answer to [`DirectorAsk::Stop`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct StopStage {
    /// The number of the stage; 0 unless the realm is stopping.
    #[prost(uint32, tag = "1")]
    pub stage: u32,
    /// The processes it waits for, with what each still has to do.
    #[prost(string, repeated, tag = "2")]
    pub waiting: Vec<String>,
    /// Whether the stage has taken too long.
    #[prost(bool, tag = "3")]
    pub overdue: bool,
}

/// The director's announcement that the realm is stopped and only db is left, so db is to end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StageAnnouncement {
    /// The number of the stage.
    #[prost(uint32, tag = "1")]
    pub stage: u32,
}

/// The request [`DirectorAsk::Register`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Register {
    /// The service: `base`, `cell`, `login`, `db`.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The fingerprint of the schema that the process was started with.
    #[prost(bytes = "vec", tag = "2")]
    pub schema: Vec<u8>,
    /// [`BUS_VERSION`] of the process.
    #[prost(uint32, tag = "3")]
    pub bus: u32,
}

/// The answer to [`DirectorAsk::Register`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Registered {
    /// The process's id.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// The game time (ms).
    #[prost(uint64, tag = "2")]
    pub world: u64,
    /// Why it was refused, for the reader; empty if it was registered.
    #[prost(string, tag = "3")]
    pub refused: String,
    /// The director's wall time (ms since 1970); 0 from releases that do not send it.
    #[prost(uint64, tag = "4")]
    pub wall: u64,
}

/// The request [`DirectorAsk::Beat`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessBeat {
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(string, tag = "2")]
    pub service: String,
    /// Its client address: `address certificate`, or empty.
    #[prost(string, tag = "3")]
    pub address: String,
    /// The owners it holds.
    #[prost(message, repeated, tag = "4")]
    pub holds: Vec<Holding>,
    /// Whether it takes no new owners.
    #[prost(bool, tag = "5")]
    pub draining: bool,
    /// The map version that it has.
    #[prost(uint64, tag = "6")]
    pub map: u64,
    /// Whether it stops after this heartbeat.
    #[prost(bool, tag = "7")]
    pub leaving: bool,
    /// The number of the stop stage that it was notified of; 0 while the realm runs.
    #[prost(uint32, tag = "8")]
    pub announced: u32,
    /// The number of the last stop stage that it has completed.
    #[prost(uint32, tag = "9")]
    pub done: u32,
    /// What it still has to do in the next stage, for an operator.
    #[prost(string, tag = "10")]
    pub waits: String,
    /// Its game time, milliseconds.
    #[prost(uint64, tag = "11")]
    pub world: u64,
    /// Its connection to the bus, by the name that a nats-server's reports give it.
    #[prost(string, tag = "12")]
    pub connection: String,
    /// The owners whose logs it follows, and could take over in a moment (rule D9).
    #[prost(uint32, repeated, tag = "13")]
    pub follows: Vec<u32>,
    /// The owners that it was granted and has released, while it drains or the definitions change.
    #[prost(uint32, repeated, tag = "14")]
    pub released: Vec<u32>,
    /// The fingerprint of the schema that the process was started with; empty: that of the realm.
    #[prost(bytes = "vec", tag = "15")]
    pub schema: Vec<u8>,
    /// Its wall clock, milliseconds since 1970; 0 in heartbeats of earlier releases.
    #[prost(uint64, tag = "16")]
    pub wall: u64,
    /// The owners whose logs it follows, and is not at the end of; never in heartbeats of earlier releases.
    #[prost(uint32, repeated, tag = "17")]
    pub behind: Vec<u32>,
}

/// An owner that a process holds, and its load.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Holding {
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// Number of real entities there.
    #[prost(uint64, tag = "3")]
    pub entities: u64,
    /// Its load, if it is a cell.
    #[prost(message, optional, tag = "4")]
    pub load: Option<WireLoad>,
    /// Its sessions, if it is a base that is taken over.
    #[prost(message, optional, tag = "5")]
    pub played: Option<WirePlayed>,
}

/// The answer to a heartbeat: all owners that the process is to hold, and the map if the process has an older one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Orders {
    /// The owners to hold. The process gives up all others.
    #[prost(message, repeated, tag = "1")]
    pub grants: Vec<GrantOrder>,
    /// The map, if it is newer.
    #[prost(message, optional, tag = "2")]
    pub map: Option<WireMap>,
    /// The number of the stage of the realm's stop; 0 while the realm runs.
    #[prost(uint32, tag = "3")]
    pub stage: u32,
    /// The owners whose logs to follow (rule D9), each with kind, shard and epoch.
    #[prost(message, repeated, tag = "4")]
    pub follow: Vec<GrantOrder>,
    /// The owners to release: another process follows each.
    #[prost(message, repeated, tag = "5")]
    pub hand_over: Vec<HandOver>,
    /// Whether the process is to drain, as on SIGTERM.
    #[prost(bool, tag = "6")]
    pub drain: bool,
    /// Whether a draining process is to end without handing over the rest: no other process can follow it.
    #[prost(bool, tag = "7")]
    pub leave: bool,
    /// The process's part in a change of the realm's definitions: the number of an [`UpgradeOrder`].
    #[prost(enumeration = "UpgradeOrder", tag = "8")]
    pub upgrade: i32,
    /// The owners to release for it, each with the client address of the process that follows; empty if there is none.
    #[prost(message, repeated, tag = "9")]
    pub release: Vec<HandOver>,
    /// Why the process is to end at once, without another message, and what to do; empty if it is not.
    #[prost(string, tag = "10")]
    pub refused: String,
    /// The director's wall time (ms since 1970); 0 from releases that do not send it.
    #[prost(uint64, tag = "11")]
    pub wall: u64,
}

/// An owner to hold.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GrantOrder {
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The kind of owner, as [`OwnerKind::number`].
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// The shard of its log.
    #[prost(uint32, tag = "3")]
    pub shard: u32,
    #[prost(uint64, tag = "4")]
    pub epoch: u64,
    /// The first entity id of the epoch's block.
    #[prost(uint64, tag = "5")]
    pub ids_from: u64,
    /// The end of the block.
    #[prost(uint64, tag = "6")]
    pub ids_to: u64,
    /// Whether no former holder can receive an acknowledgement any more (rule E8).
    #[prost(bool, tag = "7")]
    pub former_ended: bool,
}

/// The request [`DirectorAsk::MoreIds`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct MoreIds {
    /// The owner that needs them.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
}

/// The answer to [`DirectorAsk::MoreIds`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct IdBlock {
    /// The first id.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The end.
    #[prost(uint64, tag = "2")]
    pub to: u64,
}

/// The request [`DirectorAsk::Locate`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Locate {
    #[prost(uint32, tag = "1")]
    pub owner: u32,
}

/// The client address of an owner.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OwnerAddress {
    /// The owner; 0 if there is none.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The address: `address certificate`; empty while it is not held.
    #[prost(string, tag = "3")]
    pub address: String,
    /// For a request of a login process, in a realm with a limit of players.
    #[prost(message, optional, tag = "4")]
    pub room: Option<RealmRoom>,
}

/// The map of spaces.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireMap {
    #[prost(uint64, tag = "1")]
    pub version: u64,
    #[prost(message, repeated, tag = "2")]
    pub spaces: Vec<WireSpace>,
    /// The base owner on which the realm begins; 0 if not decided yet.
    #[prost(uint32, tag = "3")]
    pub bootstrap: u32,
    /// How the areas were divided. For the director alone: stored, but not sent to other processes.
    #[prost(message, repeated, tag = "4")]
    pub trees: Vec<WireTree>,
    /// All base owners, ascending.
    #[prost(uint32, repeated, tag = "5")]
    pub bases: Vec<u32>,
    /// All cell owners, ascending.
    #[prost(uint32, repeated, tag = "6")]
    pub cells: Vec<u32>,
}

/// The tree that divides a space: each cut divides an area into two.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireTree {
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// The number of the next cut.
    #[prost(uint32, tag = "2")]
    pub next: u32,
    /// In preorder: each cut, then everything west or south of it, then everything east or north of it.
    #[prost(message, repeated, tag = "3")]
    pub nodes: Vec<WireNode>,
}

/// A cut, or a cell.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct WireNode {
    /// The owner of the cell; 0 for a cut.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The number of the cut, which it keeps when it moves.
    #[prost(uint32, tag = "2")]
    pub cut: u32,
    /// Whether it divides south from north, rather than west from east.
    #[prost(bool, tag = "3")]
    pub along_z: bool,
    /// Its coordinate (m).
    #[prost(float, tag = "4")]
    pub at: f32,
}

/// A space.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireSpace {
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// In metres.
    #[prost(float, tag = "2")]
    pub aoi_radius: f32,
    /// In metres.
    #[prost(float, tag = "3")]
    pub aoi_hysteresis: f32,
    /// In metres.
    #[prost(float, tag = "4")]
    pub ghost_distance: f32,
    #[prost(message, repeated, tag = "5")]
    pub cells: Vec<WireCell>,
}

/// A cell.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct WireCell {
    /// The responsible owner.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// West edge.
    #[prost(float, tag = "2")]
    pub west: f32,
    /// East edge.
    #[prost(float, tag = "3")]
    pub east: f32,
    /// South edge.
    #[prost(float, tag = "4")]
    pub south: f32,
    /// North edge.
    #[prost(float, tag = "5")]
    pub north: f32,
}

/// A request from a process to db.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DbRequest {
    /// The request.
    #[prost(oneof = "DbAsk", tags = "1, 2, 3, 4")]
    pub ask: Option<DbAsk>,
}

/// The requests to db.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DbAsk {
    /// Finds the account of this name. Answer: [`AccountFound`].
    #[prost(message, tag = "1")]
    FindAccount(FindAccount),
    /// Creates an account. Answer: [`AccountFound`], which may be an account that another request created first.
    #[prost(message, tag = "2")]
    CreateAccount(CreateAccount),
    /// Checks an entity out, and reads its stored data. Answer: [`CheckedOut`].
    #[prost(message, tag = "3")]
    CheckOut(CheckOut),
    /// The director changes the realm's definitions: all owners are released. Answer: [`DefinitionsChanged`].
    #[prost(message, tag = "4")]
    ChangeDefinitions(ChangeDefinitions),
}

/// A request from login to the holder of a base owner: open a session. Answer: [`SessionOpened`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpenSession {
    /// The account's entity, which is activated if it is not active.
    #[prost(message, optional, tag = "1")]
    pub account: Option<BeginLife>,
    /// SHA-256 of the ticket that the client will present.
    #[prost(bytes = "vec", tag = "2")]
    pub ticket: Vec<u8>,
    /// The name with which the client logged in.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Whether the log-in is refused while another client of the account is connected, instead of replacing that
    /// client.
    #[prost(bool, tag = "4")]
    pub refuse_duplicate: bool,
    /// The realm is full: whether a session is opened only in the place of one that the account has.
    #[prost(bool, tag = "5")]
    pub replaces_only: bool,
}

/// The answer to [`OpenSession`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionOpened {
    /// The session; 0 if there is none.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The epoch in which it was opened.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The check-out is out of date: check out again.
    #[prost(bool, tag = "3")]
    pub outdated: bool,
    /// Why there is none, for the reader.
    #[prost(string, tag = "4")]
    pub refused: String,
    /// Another client of the account is connected, and no second one is admitted.
    #[prost(bool, tag = "5")]
    pub in_use: bool,
    /// The account has no session to replace.
    #[prost(bool, tag = "6")]
    pub no_session: bool,
}

/// A request from a base to the holder of a base owner: activate a stored entity. Answer: [`LifeBegun`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct BeginLife {
    /// The stored entity.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The number of its check-out.
    #[prost(uint64, tag = "2")]
    pub checkout: u64,
    #[prost(uint32, tag = "3")]
    pub type_id: u32,
    /// The stored properties of both parts, in the log's encoding.
    #[prost(bytes = "vec", tag = "4")]
    pub properties: Vec<u8>,
    /// The epoch of the base owner, as the director named it before the check-out was made or read.
    #[prost(uint64, tag = "5")]
    pub epoch: u64,
    /// The key that seals this person's data; empty if it was destroyed.
    #[prost(bytes = "vec", tag = "6")]
    pub key: Vec<u8>,
}

/// The answer to [`BeginLife`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct LifeBegun {
    /// The entity; 0 if there is none.
    #[prost(uint64, tag = "1")]
    pub entity: u64,
    /// Whether it was active before the request.
    #[prost(bool, tag = "2")]
    pub was_active: bool,
    /// The check-out is out of date: check out again.
    #[prost(bool, tag = "3")]
    pub outdated: bool,
    /// Why there is none, for the reader.
    #[prost(string, tag = "4")]
    pub refused: String,
}

/// A request from an operator's tool to the holder of a base owner: an active stored entity is to send an order to the
/// ledger, or the sessions of an account are to end. Answer: [`OperatorOrdered`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorOrder {
    /// The stored entity.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The order, in the log's encoding, including the operator's warrant.
    #[prost(bytes = "vec", tag = "2")]
    pub order: Vec<u8>,
    /// If it is set, there is no order: the stored entity is an account whose sessions are to end.
    #[prost(message, optional, tag = "3")]
    pub end_sessions: Option<EndSessions>,
}

/// The answer to [`OperatorOrder`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorOrdered {
    /// The entity whose log has the order; 0 if it was not recorded.
    #[prost(uint64, tag = "1")]
    pub asker: u64,
    /// The number of the order.
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// It may succeed later: retry once the entity is active.
    #[prost(bool, tag = "3")]
    pub again: bool,
    /// Why it was not recorded, for the reader.
    #[prost(string, tag = "4")]
    pub refused: String,
    /// No session of the account is left.
    #[prost(bool, tag = "5")]
    pub ended: bool,
    /// Number of sessions that were ended.
    #[prost(uint32, tag = "6")]
    pub sessions: u32,
}

/// The state of an owner at a batch, as its holder has it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Inspected {
    #[prost(uint64, tag = "1")]
    pub batch: u64,
    /// The state's hash.
    #[prost(bytes = "vec", tag = "2")]
    pub state: Vec<u8>,
}

/// Notification from db: the logs' cursors (rule F6).
#[derive(Clone, PartialEq, prost::Message)]
pub struct CursorAnnouncement {
    /// The cursors that have advanced.
    #[prost(message, repeated, tag = "1")]
    pub cursors: Vec<CursorMoved>,
}

/// A log's cursor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CursorMoved {
    /// The owner of the log.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The newest archived batch.
    #[prost(uint64, tag = "2")]
    pub batch: u64,
    #[prost(bytes = "vec", tag = "3")]
    pub hash: Vec<u8>,
    #[prost(uint64, tag = "4")]
    pub epoch: u64,
}

/// Notification from db: batches are missing, and a process that has them is to publish them to the log's fill subject
/// (rule F4).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Want {
    /// The owner of the log.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The first missing batch.
    #[prost(uint64, tag = "2")]
    pub first: u64,
    /// The first batch after the gap.
    #[prost(uint64, tag = "3")]
    pub until: u64,
}

/// Encodes a control message.
#[must_use]
pub fn encode(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}

/// Decodes a control message.
///
/// # Errors
/// When the bytes are not such a message.
pub fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, ControlError> {
    Ok(M::decode(bytes)?)
}

impl GrantOrder {
    /// The granted owner, kind, shard and epoch; `None` if this process does not know the kind.
    #[must_use]
    pub fn terms(&self) -> Option<(OwnerId, OwnerKind, Shard, Epoch)> {
        let kind = OwnerKind::of_number(u8::try_from(self.kind).ok()?)?;
        // A shard's number never exceeds 16 bits; a larger one is of another realm.
        let shard = Shard(u16::try_from(self.shard).unwrap_or(u16::MAX));
        Some((OwnerId(self.owner), kind, shard, Epoch(self.epoch)))
    }
}

impl Registered {
    /// The process's id.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        ProcessId(self.process)
    }
}

impl CursorMoved {
    /// Owner, batch, hash and epoch; `None` if the hash is malformed.
    #[must_use]
    pub fn position(&self) -> Option<(OwnerId, BatchNumber, Hash, Epoch)> {
        let hash = Hash(self.hash.as_slice().try_into().ok()?);
        Some((OwnerId(self.owner), BatchNumber(self.batch), hash, Epoch(self.epoch)))
    }
}

impl From<&SpaceMap> for WireMap {
    fn from(map: &SpaceMap) -> Self {
        let spaces = map.spaces.iter().map(|(id, space)| WireSpace {
            space: id.0,
            aoi_radius: space.aoi_radius,
            aoi_hysteresis: space.aoi_hysteresis,
            ghost_distance: space.ghost_distance,
            cells: space.cells.iter().map(WireCell::from).collect(),
        });
        WireMap {
            version: map.version,
            spaces: spaces.collect(),
            bootstrap: map.bootstrap.map_or(0, |owner| owner.0),
            trees: Vec::new(),
            bases: map.bases.iter().map(|owner| owner.0).collect(),
            cells: map.cells.iter().map(|owner| owner.0).collect(),
        }
    }
}

impl TryFrom<&WireMap> for SpaceMap {
    type Error = ControlError;

    fn try_from(wire: &WireMap) -> Result<Self, ControlError> {
        let spaces = wire.spaces.iter().map(WireSpace::space);
        Ok(SpaceMap {
            version: wire.version,
            spaces: spaces.collect::<Result<_, _>>()?,
            bootstrap: Some(OwnerId(wire.bootstrap)).filter(|owner| owner.0 > 0),
            bases: wire.bases.iter().copied().map(OwnerId).collect(),
            cells: wire.cells.iter().copied().map(OwnerId).collect(),
        })
    }
}

impl WireSpace {
    fn space(&self) -> Result<(SpaceId, Space), ControlError> {
        let id = SpaceId(self.space);
        let distance = |metres: f32, what| {
            let is_one = metres.is_finite() && metres >= 0.0;
            let space = id;
            is_one
                .then_some(metres)
                .ok_or(ControlError::Distance { space, what, metres })
        };
        let space = Space {
            cells: self.cells.iter().map(|cell| cell.read(id)).collect::<Result<_, _>>()?,
            aoi_radius: distance(self.aoi_radius, "radius of interest")?,
            aoi_hysteresis: distance(self.aoi_hysteresis, "hysteresis of interest")?,
            ghost_distance: distance(self.ghost_distance, "ghost distance")?,
        };
        Ok((id, space))
    }
}

impl From<&CellArea> for WireCell {
    fn from(area: &CellArea) -> Self {
        Self {
            owner: area.owner.0,
            west: area.west,
            east: area.east,
            south: area.south,
            north: area.north,
        }
    }
}

impl WireCell {
    /// Decodes an area of this space. It must not be empty: comparisons with an edge that is NaN are never true.
    pub(crate) fn read(&self, space: SpaceId) -> Result<CellArea, ControlError> {
        let area = CellArea {
            owner: OwnerId(self.owner),
            west: self.west,
            east: self.east,
            south: self.south,
            north: self.north,
        };
        let holds = area.west < area.east && area.south < area.north;
        holds.then_some(area).ok_or(ControlError::Area {
            space,
            owner: area.owner,
        })
    }
}
