//! Why behaviour is refused something.

use annals_def::{AccountView, ChangeError, Mismatch};
use annals_event::{
    MANUAL_LIMIT, SPACE_KEYS, SPACE_VALUE_BYTES,
    ledger::{ORDERS_WAITING, RefusalReason},
    space_data::{FIRST_OWN_KEY, GEOMETRIES},
};
use annals_ids::{EntityId, Part, SpaceId};
use thiserror::Error;

use super::{FOUND_LIMIT, MAX_VALUE_BYTES};

/// Why something that behaviour wanted was not done. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Denied {
    /// The type has no such member.
    #[error("{entity_type} has no {what}")]
    Unknown {
        /// The entity's type.
        entity_type: String,
        /// What was named.
        what: String,
    },
    /// The property belongs to the other part.
    #[error(
        "{entity_type}.{property} ({flag}) is not held by the {part} part; call a method of the part that holds it"
    )]
    OtherPart {
        /// The entity's type.
        entity_type: String,
        /// Which property.
        property: String,
        /// Its distribution flag.
        flag: &'static str,
        /// The part that wanted it.
        part: Part,
    },
    /// The property shows what the ledger says, and is not to be set.
    #[error(
        "{member} is a view of the ledger ({account}) and cannot be set: order a transfer, and it changes when that is booked"
    )]
    Account {
        /// Type and member.
        member: String,
        /// What it shows.
        account: AccountView,
    },
    /// The value does not fit. The old one stays.
    #[error("{member}: {source}")]
    Mismatch {
        /// Type and member, and where in it.
        member: String,
        /// What does not fit.
        source: Box<Mismatch>,
    },
    /// There is no such place in the property. It stays as it was.
    #[error("{member}: {source}")]
    Change {
        /// Type and member.
        member: String,
        /// What is wrong with the change.
        source: Box<ChangeError>,
    },
    /// The value is larger than any may be.
    #[error(
        "{member} would take {bytes} bytes; at most {MAX_VALUE_BYTES} are possible: split it, or keep it elsewhere and store a reference"
    )]
    TooLarge {
        /// Type and member.
        member: String,
        /// Its size in bytes.
        bytes: usize,
    },
    /// A personal member is read and set by itself.
    #[error("{member} is personal: read and set it with `personal` and `set_personal`")]
    Personal {
        /// Type and member.
        member: String,
    },
    /// What is personal cannot be sealed.
    #[error(
        "{member} cannot be set: there is no key for its entity. One comes with the first life after it was stored, and none for \
         whoever was forgotten"
    )]
    NoKey {
        /// Type and member.
        member: String,
    },
    /// What is personal cannot be read.
    #[error("{member} cannot be read: {why}")]
    Sealed {
        /// Type and member.
        member: String,
        /// Why not.
        why: String,
    },
    /// The wrong number of arguments.
    #[error("{method} takes {wanted} arguments, not {given}")]
    Arguments {
        /// Type and method.
        method: String,
        /// How many it takes.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// Only a base part can do it.
    #[error("only the base part can {what}; call one of its methods")]
    BaseOnly {
        /// What was wanted.
        what: &'static str,
    },
    /// Only a cell part can do it.
    #[error("only the cell part can {what}; call one of its methods")]
    CellOnly {
        /// What was wanted.
        what: &'static str,
    },
    /// A place is not one.
    #[error("a place has coordinates and angles that are finite numbers")]
    Place,
    /// A place is in another space than the part.
    #[error("the place is in another space than the part, which is in space {here}; only `teleport` leads there")]
    OtherSpace {
        /// Where the part is.
        here: SpaceId,
    },
    /// Nobody is responsible for a place.
    #[error(
        "nobody is responsible for that place of space {0}: the setting `spaces` has no such space, or none was heard of yet"
    )]
    NoSpace(SpaceId),
    /// What is asked of an entity can be asked of it only where it is real.
    #[error(
        "entity {entity} cannot be asked to {what} from here: it is real on another owner, or is no more; call one of its methods"
    )]
    Elsewhere {
        /// Which entity.
        entity: EntityId,
        /// What it was to do.
        what: &'static str,
    },
    /// Nothing is known of an entity where the part is.
    #[error("nothing is known of entity {entity} here: it is too far away, in another space, or no more")]
    Unheard {
        /// Which entity.
        entity: EntityId,
    },
    /// A client stays with its entity.
    #[error("the client of entity {from} is not given to entity {to}: {why}")]
    ClientKept {
        /// Whose client.
        from: EntityId,
        /// Who was to have it.
        to: EntityId,
        /// Why not.
        why: &'static str,
    },
    /// An entity has one cell part in its life.
    #[error("entity {entity} has a cell part already")]
    HasCell {
        /// Which entity.
        entity: EntityId,
    },
    /// There can be no such controller.
    #[error("there can be no such controller: {why}")]
    Controller {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A top speed is no number, infinite or negative.
    #[error("a top speed is a number of metres per second, or 0 for none")]
    Speed,
    /// A distance is no number, infinite or negative.
    #[error("a radius, a range or a hysteresis is a number of metres, 0 or more")]
    Distance,
    /// It would see farther than others are known.
    #[error(
        "it would see {reach} m far, with the hysteresis, and in its space others are known up to {horizon} m only; \
         the setting `spaces` can say more (`horizon=`)"
    )]
    Horizon {
        /// How far it was to see, metres.
        reach: f32,
        /// How far it may.
        horizon: f32,
    },
    /// The director was not heard yet, or has no such space.
    #[error("nothing is known of its space yet; try again once `app_ready` was called")]
    NoMap,
    /// The key is none of the game's own.
    #[error("a game's own space data has keys from {FIRST_OWN_KEY} to {}, and {key} is none of them", SPACE_KEYS - 1)]
    SpaceKey {
        /// Which key was named.
        key: u16,
    },
    /// What was to be written into a space's data is too large.
    #[error(
        "space data takes values of at most {SPACE_VALUE_BYTES} bytes, and this one has {bytes}: keep it in properties"
    )]
    SpaceValue {
        /// How many bytes it has.
        bytes: usize,
    },
    /// There is no such piece of geometry.
    #[error("a space has geometry under the numbers 0 to {}, at coordinates that are numbers", GEOMETRIES - 1)]
    Geometry,
    /// A time of day or its rate is no number.
    #[error("a time of day is a number of seconds, and its rate another one")]
    TimeOfDay,
    /// Its space was destroyed.
    #[error("its space is gone, and nothing is written into one that is; a base part can open it again")]
    SpaceGone,
    /// Some of where it looks is farther away than others are known.
    #[error(
        "some of that lies farther than {known} m outside of what its cell is responsible for, and nothing is known of it there; \
         the setting `spaces` can say more (`horizon=`)"
    )]
    Beyond {
        /// How far others are known there, metres.
        known: f32,
    },
    /// More are there than one question may find.
    #[error(
        "{found} entities are there, and one question finds at most {FOUND_LIMIT}: ask for smaller parts, or for one type"
    )]
    TooManyFound {
        /// How many.
        found: usize,
    },
    /// Nobody is in the view of its own client by name.
    #[error("its own client sees the entity anyway")]
    OwnView,
    /// Too many are in view by name.
    #[error(
        "its client sees {MANUAL_LIMIT} entities wherever they are; remove those that are not needed, or are no more"
    )]
    TooManyInView,
    /// The definition says that entities of this type are not stored.
    #[error("entities of {entity_type} are not stored, as its definition says <Persistent> false </Persistent>")]
    NotPersistent {
        /// The entity's type.
        entity_type: String,
    },
    /// The present input has recorded as much as one may.
    #[error(
        "one input cannot record {bytes} bytes more, only {room}: do the rest later, when a timer fires or in another call"
    )]
    Spent {
        /// What was to be recorded.
        bytes: usize,
        /// What may be.
        room: usize,
    },
    /// The ledger knows entities of the database only.
    #[error("the entity is none of the database's, and only those hold assets; store it first")]
    NotStored,
    /// What it holds is not known to the entity yet.
    #[error("what the entity holds is not known yet; order once `holdings_known` was called")]
    HoldingsUnknown,
    /// The ledger would refuse the order whatever anybody holds.
    #[error("the ledger would refuse the order: {0}")]
    Order(RefusalReason),
    /// Behaviour has no warrant.
    #[error("the order is one that only an operator makes")]
    OperatorsOrder,
    /// Too many orders wait for what comes of them.
    #[error("{ORDERS_WAITING} orders of the entity wait for the ledger; order again once `booked` was called")]
    TooManyOrders,
    /// Every granted entity id is used and the director has not sent more.
    #[error("no entity id is left; the director has been asked for more, try again shortly")]
    NoIds,
}

impl Denied {
    /// For a change of the member that cannot be made.
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
