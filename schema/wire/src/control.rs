//! Requests between processes, beside the links between owners: registration and grants, accounts, sessions.
//!
//! Protocol Buffers, so that processes of neighbouring versions understand each other. Each request has one answer type;
//! an answer that is lost is asked for again.

use annals_ids::{BatchNumber, Epoch, Hash, OwnerId, OwnerKind, ProcessId, Shard, SpaceId};
use prost::Message;
use thiserror::Error;

use crate::{CellArea, Space, SpaceMap, load::WireLoad};

/// Why a control message was not understood.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The bytes are no such message.
    #[error("the message is not of the expected kind")]
    Shape(#[from] prost::DecodeError),
    /// A distance of a space is no number, without end, or below zero.
    #[error("space {space}: the {what} is {metres} m, which is no distance")]
    Distance {
        /// In which space.
        space: SpaceId,
        /// Which distance.
        what: &'static str,
        /// What it is said to be.
        metres: f32,
    },
    /// What is said of a load is no number, or is below zero.
    #[error("a load that is none: {0}")]
    Load(&'static str),
    /// Somebody's area holds no place, or has an edge that is no number.
    #[error("space {space}: the area of {owner} is none")]
    Area {
        /// In which space.
        space: SpaceId,
        /// Whose.
        owner: OwnerId,
    },
}

/// What a process asks the director.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DirectorRequest {
    /// The request.
    #[prost(oneof = "DirectorAsk", tags = "1, 2, 3, 4, 5, 8, 9")]
    pub ask: Option<DirectorAsk>,
}

/// The director's requests.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DirectorAsk {
    /// A process begins and wants an id. Answer: [`Registered`].
    #[prost(message, tag = "1")]
    Register(Register),
    /// A process lives, and says what it holds. Answer: [`Orders`].
    #[prost(message, tag = "2")]
    Beat(ProcessBeat),
    /// A process needs entity ids. Answer: [`IdBlock`].
    #[prost(message, tag = "3")]
    MoreIds(MoreIds),
    /// Which owner is to take a new session? Answer: [`Place`].
    #[prost(message, tag = "4")]
    PlaceSession(PlaceSession),
    /// Where do clients reach this owner? Answer: [`Place`].
    #[prost(message, tag = "5")]
    Locate(Locate),
    /// An operator stops the realm, or asks how far that is. Answer: [`StopStage`].
    #[prost(message, tag = "8")]
    Stop(StopRealm),
    /// An operator asks how spaces are divided. Answer: [`crate::cells::WireCellList`].
    #[prost(message, tag = "9")]
    Cells(ListCells),
}

/// See [`DirectorAsk::Cells`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListCells {}

/// See [`DirectorAsk::Stop`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct StopRealm {
    /// Whether the realm is to stop; without it this only asks. While it stops already it changes nothing.
    #[prost(bool, tag = "1")]
    pub stop: bool,
    /// What the game is left before clients are sent away, milliseconds.
    #[prost(uint64, tag = "2")]
    pub delay: u64,
    /// The number of the stage that is to be left without those that it waits for; 0 for none.
    #[prost(uint32, tag = "3")]
    pub go_on: u32,
}

/// The answer to [`DirectorAsk::Stop`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct StopStage {
    /// The number of the stage; 0 while the realm does not stop.
    #[prost(uint32, tag = "1")]
    pub stage: u32,
    /// For which processes it waits, and what they wait for.
    #[prost(string, repeated, tag = "2")]
    pub waiting: Vec<String>,
    /// Whether that has taken too long.
    #[prost(bool, tag = "3")]
    pub overdue: bool,
}

/// What the director announces when db is to end: that the realm is closed and nobody else is left.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CourseNews {
    /// The number of the stage.
    #[prost(uint32, tag = "1")]
    pub stage: u32,
}

/// See [`DirectorAsk::Register`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Register {
    /// The service: `base`, `cell`, `login`, `db`.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The fingerprint of the schema that the process was started with.
    #[prost(bytes = "vec", tag = "2")]
    pub schema: Vec<u8>,
}

/// The answer to [`DirectorAsk::Register`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Registered {
    /// The process's id.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// The game time, milliseconds.
    #[prost(uint64, tag = "2")]
    pub world: u64,
    /// Why not, for the reader; empty if it was registered.
    #[prost(string, tag = "3")]
    pub refused: String,
}

/// See [`DirectorAsk::Beat`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessBeat {
    /// Which process.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// The service.
    #[prost(string, tag = "2")]
    pub service: String,
    /// Where clients reach it: `address certificate`, or empty.
    #[prost(string, tag = "3")]
    pub address: String,
    /// What it holds.
    #[prost(message, repeated, tag = "4")]
    pub holds: Vec<Holding>,
    /// Whether it takes no new owners.
    #[prost(bool, tag = "5")]
    pub draining: bool,
    /// The map's version that it has.
    #[prost(uint64, tag = "6")]
    pub map: u64,
    /// It stops after this beat.
    #[prost(bool, tag = "7")]
    pub leaving: bool,
    /// The number of the stage of the realm's stop that it was told; 0 while the realm runs.
    #[prost(uint32, tag = "8")]
    pub told: u32,
    /// The number of the last stage that it is through with.
    #[prost(uint32, tag = "9")]
    pub done: u32,
    /// What it waits for in the stage after that, for an operator.
    #[prost(string, tag = "10")]
    pub waits: String,
}

/// An owner held, and how much is on it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Holding {
    /// Which owner.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// Under which epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// How many entities are real there.
    #[prost(uint64, tag = "3")]
    pub entities: u64,
    /// How much is on it, if it is a cell.
    #[prost(message, optional, tag = "4")]
    pub load: Option<WireLoad>,
}

/// The answer to a beat: all that the process is to hold, and the map if it has an older one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Orders {
    /// What it is to hold. What it holds beside this it gives up.
    #[prost(message, repeated, tag = "1")]
    pub grants: Vec<GrantOrder>,
    /// The map, if it is newer.
    #[prost(message, optional, tag = "2")]
    pub map: Option<WireMap>,
    /// The number of the stage of the realm's stop; 0 while it runs.
    #[prost(uint32, tag = "3")]
    pub stage: u32,
}

/// One owner to hold.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GrantOrder {
    /// Which owner.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// [`OwnerKind::number`]: what it holds.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// The stream of its log.
    #[prost(uint32, tag = "3")]
    pub shard: u32,
    /// The epoch.
    #[prost(uint64, tag = "4")]
    pub epoch: u64,
    /// The first entity id of the epoch's block.
    #[prost(uint64, tag = "5")]
    pub ids_from: u64,
    /// The end of the block.
    #[prost(uint64, tag = "6")]
    pub ids_to: u64,
}

/// See [`DirectorAsk::MoreIds`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct MoreIds {
    /// For which owner.
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

/// See [`DirectorAsk::PlaceSession`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct PlaceSession {}

/// See [`DirectorAsk::Locate`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Locate {
    /// Which owner.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
}

/// Where an owner is reached.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Place {
    /// Which owner; 0 if there is none.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// Its epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// Where clients reach it: `address certificate`; empty while it is not held.
    #[prost(string, tag = "3")]
    pub address: String,
}

/// The map of spaces.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireMap {
    /// Its version.
    #[prost(uint64, tag = "1")]
    pub version: u64,
    /// The spaces.
    #[prost(message, repeated, tag = "2")]
    pub spaces: Vec<WireSpace>,
    /// The base owner on which the realm begins; 0 if that is open.
    #[prost(uint32, tag = "3")]
    pub bootstrap: u32,
    /// How the director came to the areas. For itself alone: it is in what is stored, and not in what is sent to others.
    #[prost(message, repeated, tag = "4")]
    pub trees: Vec<WireTree>,
}

/// The tree by which a space is divided: each cut divides an area into two.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireTree {
    /// Of which space.
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// The number that the next cut gets.
    #[prost(uint32, tag = "2")]
    pub next: u32,
    /// From the root on: each cut, then all that lies west or south of it, then all that lies east or north of it.
    #[prost(message, repeated, tag = "3")]
    pub nodes: Vec<WireNode>,
}

/// A cut, or a cell.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct WireNode {
    /// Whose cell it is; 0 for a cut.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The number of the cut, which it keeps wherever it goes.
    #[prost(uint32, tag = "2")]
    pub cut: u32,
    /// Whether it divides south from north, instead of west from east.
    #[prost(bool, tag = "3")]
    pub along_z: bool,
    /// Where it is, metres.
    #[prost(float, tag = "4")]
    pub at: f32,
}

/// A space.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireSpace {
    /// Which.
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// Metres.
    #[prost(float, tag = "2")]
    pub aoi_radius: f32,
    /// Metres.
    #[prost(float, tag = "3")]
    pub aoi_hysteresis: f32,
    /// Metres.
    #[prost(float, tag = "4")]
    pub ghost_distance: f32,
    /// Its cells.
    #[prost(message, repeated, tag = "5")]
    pub cells: Vec<WireCell>,
}

/// A cell.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct WireCell {
    /// Who is responsible.
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

/// What a process asks db.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DbRequest {
    /// The request.
    #[prost(oneof = "DbAsk", tags = "1, 2, 3")]
    pub ask: Option<DbAsk>,
}

/// db's requests.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DbAsk {
    /// The account of this name. Answer: [`AccountFound`].
    #[prost(message, tag = "1")]
    FindAccount(FindAccount),
    /// Make an account. Answer: [`AccountFound`], which may be another's who came first.
    #[prost(message, tag = "2")]
    CreateAccount(CreateAccount),
    /// Check an entity out, and what is stored of it. Answer: [`CheckedOut`].
    #[prost(message, tag = "3")]
    CheckOut(CheckOut),
}

/// See [`DbAsk::FindAccount`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct FindAccount {
    /// The keyed hash of the name.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
}

/// See [`DbAsk::CreateAccount`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateAccount {
    /// The keyed hash of the name.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// The password's hash, as a PHC string.
    #[prost(string, tag = "2")]
    pub password: String,
    /// The name of the account entity's type.
    #[prost(string, tag = "3")]
    pub entity_type: String,
}

/// An account, if there is one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AccountFound {
    /// Its entity in the database; 0 if there is no such account.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The password's hash, as a PHC string.
    #[prost(string, tag = "2")]
    pub password: String,
    /// Why there is no answer, for the reader; empty if there is one.
    #[prost(string, tag = "3")]
    pub failed: String,
}

/// See [`DbAsk::CheckOut`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct CheckOut {
    /// Which entity of the database.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// Where it is to live if it does not live yet.
    #[prost(uint32, tag = "2")]
    pub preferred: u32,
}

/// The answer to [`DbAsk::CheckOut`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct CheckedOut {
    /// Where it lives or is to.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The number of the check-out.
    #[prost(uint64, tag = "2")]
    pub checkout: u64,
    /// The type.
    #[prost(uint32, tag = "3")]
    pub type_id: u32,
    /// The stored properties of both parts, as the log writes properties.
    #[prost(bytes = "vec", tag = "4")]
    pub properties: Vec<u8>,
    /// Why there is no answer, for the reader; empty if there is one.
    #[prost(string, tag = "5")]
    pub failed: String,
    /// The key under which what is known of this person is sealed; empty if it was forgotten.
    #[prost(bytes = "vec", tag = "6")]
    pub key: Vec<u8>,
}

/// What login asks the holder of a base owner: open a session. Answer: [`SessionOpened`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpenSession {
    /// The account's entity, which begins to live unless it does.
    #[prost(message, optional, tag = "1")]
    pub account: Option<BeginLife>,
    /// SHA-256 of the ticket with which the client will come.
    #[prost(bytes = "vec", tag = "2")]
    pub ticket: Vec<u8>,
    /// The name with which the client logged in.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Whether it is refused while another client of the account is connected, instead of taking its place.
    #[prost(bool, tag = "4")]
    pub refuse_duplicate: bool,
}

/// The answer to [`OpenSession`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionOpened {
    /// The session; 0 if there is none.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The epoch under which it was opened.
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
}

/// What a base asks the holder of a base owner: let an entity of the database live. Answer: [`LifeBegun`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct BeginLife {
    /// Which entity of the database.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The number of its check-out.
    #[prost(uint64, tag = "2")]
    pub checkout: u64,
    /// Its type.
    #[prost(uint32, tag = "3")]
    pub type_id: u32,
    /// The stored properties of both parts, as the log writes properties.
    #[prost(bytes = "vec", tag = "4")]
    pub properties: Vec<u8>,
    /// The epoch of the base owner, as the director named it before the check-out was made or read.
    #[prost(uint64, tag = "5")]
    pub epoch: u64,
    /// The key under which what is known of this person is sealed; empty if it was forgotten.
    #[prost(bytes = "vec", tag = "6")]
    pub key: Vec<u8>,
}

/// The answer to [`BeginLife`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct LifeBegun {
    /// The entity; 0 if there is none.
    #[prost(uint64, tag = "1")]
    pub entity: u64,
    /// Whether it lived before it was asked for.
    #[prost(bool, tag = "2")]
    pub was_active: bool,
    /// The check-out is out of date: check out again.
    #[prost(bool, tag = "3")]
    pub outdated: bool,
    /// Why there is none, for the reader.
    #[prost(string, tag = "4")]
    pub refused: String,
}

/// What an operator's tool asks the holder of a base owner: have an entity of the database that lives there order something of
/// the ledger. Answer: [`OperatorOrdered`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorOrder {
    /// Which entity of the database.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The order, as the log writes orders, with the operator's warrant in it.
    #[prost(bytes = "vec", tag = "2")]
    pub order: Vec<u8>,
}

/// The answer to [`OperatorOrder`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorOrdered {
    /// The entity in whose log the order is; 0 if it is not.
    #[prost(uint64, tag = "1")]
    pub asker: u64,
    /// Which of its orders it is.
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// It may be another time: ask again, once the entity lives.
    #[prost(bool, tag = "3")]
    pub again: bool,
    /// Why it is not, for the reader.
    #[prost(string, tag = "4")]
    pub refused: String,
}

/// The state of an owner at a batch, as its holder has it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Inspected {
    /// Which batch.
    #[prost(uint64, tag = "1")]
    pub batch: u64,
    /// The state's hash.
    #[prost(bytes = "vec", tag = "2")]
    pub state: Vec<u8>,
}

/// News from db: the logs' cursors (rule F6).
#[derive(Clone, PartialEq, prost::Message)]
pub struct CursorNews {
    /// Those that have moved on.
    #[prost(message, repeated, tag = "1")]
    pub cursors: Vec<CursorMoved>,
}

/// A log's cursor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CursorMoved {
    /// Whose log.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The newest archived batch.
    #[prost(uint64, tag = "2")]
    pub batch: u64,
    /// Its hash.
    #[prost(bytes = "vec", tag = "3")]
    pub hash: Vec<u8>,
    /// Its epoch.
    #[prost(uint64, tag = "4")]
    pub epoch: u64,
}

/// News from db: a batch is missing, and whoever has it is to publish it to the log's fill subject (rule F4).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Want {
    /// Whose log.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The first that is missing.
    #[prost(uint64, tag = "2")]
    pub first: u64,
    /// The first that is there again.
    #[prost(uint64, tag = "3")]
    pub until: u64,
}

/// The bytes of a control message.
#[must_use]
pub fn encode(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}

/// Reads a control message.
///
/// # Errors
/// When the bytes are no such message.
pub fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, ControlError> {
    Ok(M::decode(bytes)?)
}

impl GrantOrder {
    /// What is granted: owner, kind, shard, epoch; `None` if this process does not know such a kind.
    #[must_use]
    pub fn terms(&self) -> Option<(OwnerId, OwnerKind, Shard, Epoch)> {
        let kind = OwnerKind::of_number(u8::try_from(self.kind).ok()?)?;
        // A shard's number never exceeds 16 bits; a larger one is another realm's.
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
    /// Owner, batch, hash and epoch; `None` if the hash is none.
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
    /// An area of this space. It has to hold a place: comparing with an edge that is no number finds none.
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
