//! What must hold in every state.

use std::fmt;

/// A promise of the protocol. A model names the one that a state breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// What a player was shown is in the archive, or will be.
    ShownIsNeverLost,
    /// Every archived batch follows the one before it, number by number and hash by hash.
    ChainIsDense,
    /// A process whose owner was taken over by another shows nothing any more.
    ReplacedShowsNothing,
    /// A process whose owner was taken over by another appends nothing any more (while the log keeps what it has).
    ReplacedAppendsNothing,
    /// Each call that was made takes effect once, in the order in which they were made, unless its receiver is gone.
    CallsTakeEffectOnce,
    /// Each entity is real on one owner, or under way to one.
    OneReal,
    /// Each real entity stands in a space for which its owner is responsible.
    HeldWhereItStands,
    /// The archive, up to any place, has what its batches consumed from.
    ArchiveIsACut,
    /// Each transfer moves its unit at most once, so each unit has one owner.
    UnitsHaveOneOwner,
    /// The log `ledger` says of each transfer what it did once.
    LedgerSaysOnce,
    /// No item is held in what two bases know.
    HeldInOneView,
    /// Both sides of a trade get what they had accepted.
    TradedAsAccepted,
    /// What a ghost or a client sees is something that the entity was.
    SeenIsTrue,
    /// Who has a value of a space's data never has an older one after it.
    NothingAges,
    /// Of two values of a space's data the one that was written later stays.
    LastWordStays,
    /// What was in a space before it was opened anew does not come back.
    VoidStaysAway,
    /// Batches are folded, states held and stored entities read under the definitions that they are of.
    ReadAsWritten,
    /// Of every archived batch there is what its place in the Merkle tree rests upon.
    LeavesAreProved,
    /// The state of an owner that is taken over is the one that was written.
    RecoveredAsWritten,
    /// A realm that is restored from all that is archived is the one that was written.
    RestoredAsWritten,
    /// Nobody stops with an alarm because of the faults that the protocol is made for.
    AlarmsAreTrue,
    /// Ordinary steps can always lead to where nothing is owed to anybody.
    Progress,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ShownIsNeverLost => "what a player was shown is never lost",
            Self::ChainIsDense => "batches are dense and chained",
            Self::ReplacedShowsNothing => "a replaced process shows nothing",
            Self::ReplacedAppendsNothing => "a replaced process appends nothing",
            Self::CallsTakeEffectOnce => "each call takes effect once, in order",
            Self::OneReal => "each entity is real once, or under way",
            Self::HeldWhereItStands => "who is real stands where its owner is responsible",
            Self::ArchiveIsACut => "the archive up to any place is a consistent cut",
            Self::UnitsHaveOneOwner => "each unit has one owner: each transfer moves it once",
            Self::LedgerSaysOnce => "the log ledger says once what each transfer did",
            Self::HeldInOneView => "no item is in two views",
            Self::TradedAsAccepted => "each side of a trade gets what it has accepted",
            Self::SeenIsTrue => "what is seen of an entity is something that it was",
            Self::NothingAges => "what is known of a space never gets older",
            Self::LastWordStays => "what was written last stays",
            Self::VoidStaysAway => "what was before a space was opened anew does not come back",
            Self::ReadAsWritten => "everything is read under the definitions that it was written under",
            Self::LeavesAreProved => "every archived batch can be proved",
            Self::RecoveredAsWritten => "what is recovered is what was written",
            Self::RestoredAsWritten => "what is restored is what was written",
            Self::AlarmsAreTrue => "an alarm means a fault outside the budget",
            Self::Progress => "what is owed can always be settled",
        })
    }
}
