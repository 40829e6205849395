//! Reasons for denying an operation of behaviour.

use annals_def::{AccountView, ChangeError, Mismatch};
use annals_event::{
    CallError, GLOBAL_KEY_BYTES, GLOBAL_KEYS, GLOBAL_VALUE_BYTES, GlobalScope, MANUAL_LIMIT, SPACE_KEYS,
    SPACE_VALUE_BYTES,
    latest::value::MAX_DEPTH,
    ledger::{ORDERS_WAITING, RefusalReason},
    space_data::{FIRST_OWN_KEY, GEOMETRIES},
};
use annals_ids::{EntityId, Part, SpaceId};
use annals_wire::client::MAX_DESCRIPTION_BYTES;
use thiserror::Error;

use super::{FOUND_LIMIT, MAX_VALUE_BYTES};
use crate::{
    download::{MAX_DOWNLOADS, MAX_FILE_NAME, MAX_LOGGED_CONTENT},
    outbound::{MAX_OUTBOUND_BYTES, MAX_SERVICE_NAME},
};

/// Why an operation of behaviour was denied. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Denied {
    /// The type has no such member.
    #[error("{entity_type} has no {what}")]
    Unknown {
        /// The entity's type.
        entity_type: String,
        /// The name.
        what: String,
    },
    /// The property does not belong to the cell part.
    #[error("{entity_type}.{property} is not a property of the cell part")]
    NotOfCell {
        /// The entity's type.
        entity_type: String,
        property: String,
    },
    /// The property belongs to the other part.
    #[error(
        "{entity_type}.{property} ({flag}) is not a property of the {part} part; call a method of the part that has it"
    )]
    OtherPart {
        /// The entity's type.
        entity_type: String,
        property: String,
        /// Its distribution flag.
        flag: &'static str,
        /// The part that accessed it.
        part: Part,
    },
    /// The property shows a ledger account, and cannot be set.
    #[error(
        "{member} is a view of the ledger ({account}) and cannot be set: order a transfer, which changes it when it is \
         booked"
    )]
    Account {
        /// Type and member.
        member: String,
        account: AccountView,
    },
    /// The value does not fit. The old one stays.
    #[error("{member}: {source}")]
    Mismatch {
        /// Type and member, and the position in it.
        member: String,
        /// The mismatch.
        source: Box<Mismatch>,
    },
    /// There is no such position in the property. It is unchanged.
    #[error("{member}: {source}")]
    Change {
        /// Type and member.
        member: String,
        /// The error of the change.
        source: Box<ChangeError>,
    },
    /// The value exceeds the maximum size.
    #[error(
        "{member} would take {bytes} bytes; the limit is {MAX_VALUE_BYTES}: split it, or keep it elsewhere and store a \
         reference"
    )]
    TooLarge {
        /// Type and member.
        member: String,
        /// Its size in bytes.
        bytes: usize,
    },
    /// A personal member has its own read and write methods.
    #[error("{member} is personal: read and set it with `personal` and `set_personal`")]
    Personal {
        /// Type and member.
        member: String,
    },
    /// Personal data cannot be sealed.
    #[error(
        "{member} cannot be set: its entity has no personal key. The key is created with the first activation after \
         the entity was stored, and never for an erased person"
    )]
    NoKey {
        /// Type and member.
        member: String,
    },
    /// Personal data cannot be read.
    #[error("{member} cannot be read: {why}")]
    Sealed {
        /// Type and member.
        member: String,
        /// The reason.
        why: String,
    },
    /// The wrong number of arguments or return values.
    #[error("{method}: {wanted} values are declared, not {given}")]
    Arguments {
        /// Type and method.
        method: String,
        /// The declared number.
        wanted: usize,
        /// The given number.
        given: usize,
    },
    /// Only a base part can do it.
    #[error("only the base part can {what}; call one of its methods")]
    BaseOnly {
        /// The operation.
        what: &'static str,
    },
    /// Only a cell part can do it.
    #[error("only the cell part can {what}; call one of its methods")]
    CellOnly {
        /// The operation.
        what: &'static str,
    },
    /// The entity near which a cell part was to be created has no place.
    #[error("no cell part was created near entity {entity}: {why}")]
    NotLocated {
        /// The other entity.
        entity: EntityId,
        /// Why its place is not known.
        why: CallError,
    },
    /// A coordinate is invalid.
    #[error("a place has coordinates and angles that are finite numbers")]
    Place,
    /// A place is in another space than the part.
    #[error("the place is in another space than the part, which is in space {here}; only `teleport` leads there")]
    OtherSpace {
        /// The part's space.
        here: SpaceId,
    },
    /// No cell is responsible for a place.
    #[error(
        "no cell is responsible for that position in space {0}: the setting `spaces` has no such space, or no space \
         map has arrived yet"
    )]
    NoSpace(SpaceId),
    /// The operation is possible only where the entity is real.
    #[error(
        "entity {entity} cannot be asked to {what} from here: it is real on another owner, or has ended; call one of \
         its methods"
    )]
    Elsewhere {
        entity: EntityId,
        /// The operation.
        what: &'static str,
    },
    /// The entity is not known on this cell.
    #[error("entity {entity} is unknown here: it is too far away, in another space, or has ended")]
    UnknownHere { entity: EntityId },
    /// The client cannot be given to another entity.
    #[error("the client of entity {from} is not given to entity {to}: {why}")]
    ClientKept {
        /// The entity that has the client.
        from: EntityId,
        /// The entity that was to receive it.
        to: EntityId,
        /// The reason.
        why: String,
    },
    /// An entity has one cell part at a time.
    #[error("entity {entity} has a cell part already")]
    HasCell { entity: EntityId },
    /// It waits for a space in which its cell part is created.
    #[error("entity {entity} waits for a free space for its cell part already")]
    ClaimsSpace { entity: EntityId },
    /// All spaces of a range are claimed, or the realm has none of them.
    #[error(
        "no space from {first} to {last} is free, as far as is known here: the entities that claimed them have not ended, \
         or did a moment ago; or the setting `spaces` has none of them"
    )]
    NoFreeSpace { first: SpaceId, last: SpaceId },
    /// A claim of a space was refused.
    #[error("no space was claimed: {why}")]
    NotClaimed { why: String },
    /// Entities of this type have no cell part.
    #[error("entity {entity} is of a type without a cell part")]
    NoCellPart { entity: EntityId },
    /// The former cell part of an entity has ended, but calls of it are not delivered yet.
    #[error(
        "the former cell part of entity {entity} has calls under way: request the next one in `cell_lost` or later"
    )]
    CellEnding { entity: EntityId },
    /// The controller is invalid.
    #[error("invalid controller: {why}")]
    Controller {
        /// The reason.
        why: &'static str,
    },
    /// A top speed is not a number, infinite or negative.
    #[error("a top speed is a number of metres per second, or 0 for none")]
    Speed,
    /// A distance is not a number, infinite or negative.
    #[error("a radius, a range or a hysteresis is a number of metres, 0 or more")]
    Distance,
    /// The AoI would reach farther than others are known.
    #[error(
        "its area of interest would reach {reach} m, with the hysteresis, but in its space entities are known up to \
         {horizon} m only; the setting `spaces` can raise this (`horizon=`)"
    )]
    Horizon {
        /// The requested reach, metres.
        reach: f32,
        /// The largest possible reach, metres.
        horizon: f32,
    },
    /// The map was not received from the director yet, or has no such space.
    #[error("its space is not known yet; try again after `app_ready`")]
    NoMap,
    /// The definitions have no such zone.
    #[error("there is no zone {zone}: its file would be `zones/{zone}.xml`, beside `entities.xml`")]
    NoZone { zone: String },
    /// The key is not in the game's own range.
    #[error("a game's own space data has keys from {FIRST_OWN_KEY} to {}, and {key} is out of range", SPACE_KEYS - 1)]
    SpaceKey { key: u16 },
    /// A value of space data is too large.
    #[error(
        "space data takes values of at most {SPACE_VALUE_BYTES} bytes, and this one has {bytes}: keep it in properties"
    )]
    SpaceValue {
        /// Its size, bytes.
        bytes: usize,
    },
    /// The piece of geometry is invalid.
    #[error("the geometry of a space has a number from 0 to {} and finite coordinates", GEOMETRIES - 1)]
    Geometry,
    /// A time of day or its rate is not a number.
    #[error("a time of day and its rate are finite numbers of seconds")]
    TimeOfDay,
    /// The part's space was destroyed.
    #[error("its space was destroyed and cannot be written to; a base part can open it again")]
    SpaceGone,
    /// The part has no such global data, or may not write it.
    #[error(
        "this part cannot write global data of the scope {scope:?}: base parts write Realm and Bases, cell parts Realm \
         and Cells; the registry has `register_globally`"
    )]
    GlobalScope {
        /// The scope.
        scope: GlobalScope,
    },
    /// The key of global data is empty or too long.
    #[error("a key of global data has 1 to {GLOBAL_KEY_BYTES} bytes, not {bytes}")]
    GlobalKey {
        /// Its length.
        bytes: usize,
    },
    /// A value exceeds the maximum size of global data.
    #[error("the value would take {bytes} bytes; the limit of global data is {GLOBAL_VALUE_BYTES}: store a reference")]
    GlobalValue {
        /// Its size.
        bytes: usize,
    },
    /// A value of global data is nested too deep.
    #[error("the value is nested {depth} deep; the limit of global data is {MAX_DEPTH}")]
    GlobalDepth {
        /// Its depth.
        depth: usize,
    },
    /// No owner keeps the registry yet.
    #[error("the realm has not begun, and no owner keeps the registry of global bases yet; try again shortly")]
    NoRegistry,
    /// The scope has the maximum number of keys.
    #[error("{scope:?} has {GLOBAL_KEYS} keys, removed ones included; use a fixed set of keys")]
    GlobalKeys {
        /// The scope.
        scope: GlobalScope,
    },
    /// Some of the region is farther away than others are known.
    #[error(
        "part of that range is farther than {known} m outside the area of its cell, where no entities are known; the \
         setting `spaces` can raise this (`horizon=`)"
    )]
    Beyond {
        /// Distance up to which others are known, metres.
        known: f32,
    },
    /// The result exceeds the limit of a query.
    #[error("{found} entities match, and one query returns at most {FOUND_LIMIT}: query smaller ranges, or one type")]
    TooManyFound {
        /// Number of entities found.
        found: usize,
    },
    /// An entity cannot be in the manual AoI of its own client.
    #[error("the entity is always visible to its own client")]
    OwnView,
    /// The manual AoI is full.
    #[error(
        "its client already has {MANUAL_LIMIT} entities in view manually; remove those that are not needed, or have \
         ended"
    )]
    TooManyInView,
    /// Only entities with a base part are stored.
    #[error("entity {entity} has no base part, and only entities with one are stored")]
    NoBasePart { entity: EntityId },
    /// The definition says that entities of this type are not stored.
    #[error("entities of {entity_type} are not stored, as its definition says <Persistent> false </Persistent>")]
    NotPersistent {
        /// The entity's type.
        entity_type: String,
    },
    /// An outbound call has no valid name, or its body is too large.
    #[error(
        "the outbound call to {service:?} with {bytes} bytes is invalid: a name has 1 to {} bytes, a body at most {}",
        MAX_SERVICE_NAME,
        MAX_OUTBOUND_BYTES
    )]
    Outbound {
        /// The service's name, or its beginning.
        service: String,
        /// Size of the body.
        bytes: usize,
    },
    /// A download has no valid source or description.
    #[error(
        "the download with {bytes} bytes is invalid: content has at most {MAX_LOGGED_CONTENT} bytes, a file's name 1 to \
         {MAX_FILE_NAME}, and a description at most {MAX_DESCRIPTION_BYTES}; put larger content into a file"
    )]
    Download {
        /// Size of the content, or of the file's name.
        bytes: usize,
    },
    /// The entity has the maximum of downloads.
    #[error(
        "the entity has {MAX_DOWNLOADS} downloads, with those that wait for an earlier one to end; wait for one, or \
         cancel the first"
    )]
    TooManyDownloads,
    /// The definitions have no such service.
    #[error("there is no service {service:?} in services.xml")]
    NoService { service: String },
    /// No base owner is known, so there is no fragment to call.
    #[error("no base owner is known yet that has a fragment of service {service:?}; try again shortly")]
    NoFragment { service: String },
    /// A fragment can neither end nor have a client.
    #[error(
        "cannot {what}: entity {entity} is a fragment of a service, which exists as long as its owner, without a client"
    )]
    Fragment {
        entity: EntityId,
        /// The request.
        what: &'static str,
    },
    /// The present input has reached its limit of recorded bytes.
    #[error("an input cannot record {bytes} more bytes, only {room}: do the rest in a timer or another call")]
    Spent {
        /// Bytes to be recorded.
        bytes: usize,
        /// Bytes left.
        room: usize,
    },
    /// The ledger knows stored entities only.
    #[error("the entity is not stored, and only stored entities hold assets; store it first")]
    NotStored,
    /// The entity's holdings are not known yet.
    #[error("the holdings of the entity are not known yet; order after `holdings_known`")]
    HoldingsUnknown,
    /// The ledger would refuse the order whatever the holdings.
    #[error("the ledger would refuse the order: {0}")]
    Order(RefusalReason),
    /// The order is reserved for operators.
    #[error("only an operator can give this order")]
    OperatorsOrder,
    /// Too many orders are unanswered.
    #[error("{ORDERS_WAITING} orders of the entity already wait for the ledger; order again after `booked`")]
    TooManyOrders,
    /// All granted entity ids are used and the director has not sent more.
    #[error("no entity id is left; the director has been asked for more, try again shortly")]
    NoIds,
}

impl Denied {
    /// Converts the error of an invalid change of a member.
    pub(super) fn change(member: String, error: ChangeError) -> Self {
        match error {
            ChangeError::Mismatch { path, source } if path.0.is_empty() => Self::Mismatch { member, source },
            ChangeError::Mismatch { path, source } => Self::Mismatch {
                member: format!("{member}{path}"),
                source,
            },
            source => Self::Change {
                member,
                source: Box::new(source),
            },
        }
    }
}
