//! What must hold in every state.

use std::fmt;

/// A guarantee of the protocol. A model names the one that a state violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// What a player was shown is in the archive, or will be.
    ShownIsNeverLost,
    /// Every archived batch follows the one before it, number by number and hash by hash.
    ChainIsDense,
    /// A process whose owner another process has taken over shows nothing more.
    ReplacedShowsNothing,
    /// A process whose owner another process has taken over appends nothing more (while the log loses nothing).
    ReplacedAppendsNothing,
    /// Each call takes effect once, in the order in which the calls were made, unless its receiver is gone.
    CallsTakeEffectOnce,
    /// A client is admitted by one of the owners that it is given between.
    ClientIsAdmitted,
    /// A client that a draining process has sent to the next holder is served there.
    MovedIsServed,
    /// Each entity is real on one owner, or in flight to one.
    OneReal,
    /// Each real entity is in a space for which its owner is responsible.
    HeldWhereItStands,
    /// Every prefix of the archive contains everything that its batches consumed.
    ArchiveIsACut,
    /// Each transfer moves its unit at most once, so each unit has one owner.
    UnitsHaveOneOwner,
    /// The log `ledger` reports the result of each transfer once.
    LedgerSaysOnce,
    /// No two bases both believe that they hold the same item.
    HeldInOneView,
    /// Both sides of a trade get what they accepted.
    TradedAsAccepted,
    /// An entity that was deleted from the database has no assets.
    DeletedHoldNothing,
    /// What a ghost or a client sees is a state that the entity had.
    SeenIsTrue,
    /// A copy of a value of a space's data is never replaced by an older one.
    NothingAges,
    /// Of two writes to a value of a space's data, the later one wins.
    LastWordStays,
    /// Values from before a space was opened anew do not come back.
    VoidStaysAway,
    /// Batches are folded, states held and stored entities read under the definitions with which they were written.
    ReadAsWritten,
    /// For every archived batch, the data from which its leaf in the Merkle tree is computed exists.
    LeavesAreProved,
    /// The state of an owner after a take-over is the one that was written.
    RecoveredAsWritten,
    /// A realm restored from the whole archive is the one that was written.
    RestoredAsWritten,
    /// An activation of a stored entity begins with what the one before it has logged.
    BegunAsEnded,
    /// No process stops with an alarm because of faults that the protocol tolerates.
    AlarmsAreTrue,
    /// From every state, ordinary steps can lead to one in which no work is outstanding.
    Progress,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ShownIsNeverLost => "changes shown to a player are never lost",
            Self::ChainIsDense => "batches are dense and chained",
            Self::ReplacedShowsNothing => "a replaced process shows nothing",
            Self::ReplacedAppendsNothing => "a replaced process appends nothing",
            Self::CallsTakeEffectOnce => "each call takes effect once, in order",
            Self::ClientIsAdmitted => "a client that is given away is admitted",
            Self::MovedIsServed => "a client that is sent to the next holder is served there",
            Self::OneReal => "each entity is real on one owner, or in transit to one",
            Self::HeldWhereItStands => "each real entity is in a space of its owner",
            Self::ArchiveIsACut => "every prefix of the archive is a consistent cut",
            Self::UnitsHaveOneOwner => "each unit has one owner: each transfer moves it once",
            Self::LedgerSaysOnce => "the log `ledger` reports each transfer once",
            Self::HeldInOneView => "no item is in two views",
            Self::TradedAsAccepted => "each side of a trade gets what it accepted",
            Self::DeletedHoldNothing => "a deleted entity holds nothing",
            Self::SeenIsTrue => "a view shows only states that the entity had",
            Self::NothingAges => "a copy of space data is never replaced by an older one",
            Self::LastWordStays => "the last write to space data wins",
            Self::VoidStaysAway => "values from before a space was opened anew do not return",
            Self::ReadAsWritten => "data is read under the definitions under which it was written",
            Self::LeavesAreProved => "every archived batch can be proved",
            Self::RecoveredAsWritten => "a recovered state is the written one",
            Self::RestoredAsWritten => "a restored realm is the written one",
            Self::BegunAsEnded => "an activation begins with everything that the one before has logged",
            Self::AlarmsAreTrue => "an alarm means a fault outside the budget",
            Self::Progress => "outstanding work can always be completed",
        })
    }
}
