//! The rules that can be taken out, by the names that `docs/protocol.md` gives them.

/// A rule, or the part of one that can be missing by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rule {
    /// L2: batches are compared by hash, not by number alone.
    L2Chain,
    /// L3: one append in flight.
    L3OneInFlight,
    /// L3: what is sent again is the same bytes.
    L3Frozen,
    /// L4: an append expects the sequence its writer saw last.
    L4Fence,
    /// L5: silence is not success.
    L5Silence,
    /// L5: who reads a higher epoch stops.
    L5Replaced,
    /// L5: an earlier try of one's own `Open` is void, not an alarm.
    L5EarlierTry,
    /// L6: batches are kept until archived.
    L6Kept,
    /// L7: an owner with nothing to say appends an empty batch.
    L7Beat,
    /// G1: an output waits for the acknowledgement of the batch that holds its cause.
    G1LogBeforeShow,
    /// G2: nothing leaves unless the owner is fresh.
    G2Fresh,
    /// G4: a failed append empties the gate.
    G4Emptied,
    /// E1: a taker that reads a higher epoch stops.
    E1Replaced,
    /// E3: the opening is recorded in the store.
    E3Recorded,
    /// E3: only if the granted epoch is still this one.
    E3Granted,
    /// E3: only if the cursor is below it.
    E3Cursor,
    /// E3: only after a second look at the log, two freshness limits later.
    E3SecondLook,
    /// E3: the second look reads the chain again, not only its last message.
    E3WholeChain,
    /// E4: the gate opens only after E3.
    E4GateAfterRecord,
    /// E5: void batches are skipped.
    E5Void,
    /// E6: freshness that has lapsed comes back only with the epoch confirmed.
    E6Confirmed,
    /// F2: openings are read in the folding transaction.
    F2OpeningsInFold,
    /// F2: an `Open` is folded only when it is the store's opening of its epoch.
    F2OnlyRecorded,
    /// F4: holes are filled by whoever has the batch.
    F4Filled,
    /// F4: a fill is accepted by its hash.
    F4Hash,
    /// F6: the newest archived batch stays on the subject.
    F6NewestStays,
    /// F6: only archived batches are trimmed.
    F6BehindArchive,
    /// F6: the sequence to trim to is looked up again before trimming.
    F6LookedUp,
    /// C1: a call is logged before it is sent.
    C1LoggedFirst,
    /// C1: the sending end of a link moves with its entity.
    C1SenderMoves,
    /// C2: a call is taken only after the one before it.
    C2InOrder,
    /// C2: a call is taken once.
    C2Once,
    /// C2: a call is recorded as taken in the batch that holds its effects.
    C2WithEffects,
    /// C2: the receiving end of a link moves with its entity.
    C2ReceiverMoves,
    /// C3: a confirmation leaves through the gate.
    C3ThroughGate,
    /// C4: unconfirmed calls are sent again.
    C4Resent,
    /// C5: a call within an owner queues behind unconfirmed ones.
    C5Queued,
    /// C6: only the home says that an entity is gone.
    C6GoneFromHome,
    /// C7: what waits for an answer is part of the caller's state.
    C7Awaiting,
    /// C9: the calls of a destroyed entity stay until they are confirmed.
    C9CallsOutlive,
    /// H1: a hand-over is logged before the image leaves.
    H1Logged,
    /// H1: the entity leaves in the same input as the call that carries it.
    H1OneInput,
    /// H2: the image is sent again until it is answered.
    H2Resent,
    /// H3: the answer is a call of its own, sent again until it is confirmed.
    H3AnswerIsCall,
    /// H3: an image is taken once.
    H3Once,
    /// H4: an arrival ends the hand-over that it answers, and nothing else.
    H4ThatOne,
    /// H4: what is refused is real again where it was.
    H4Returned,
    /// H4: nothing but a refusal brings an entity back.
    H4OnlyRefused,
    /// H6: the home hears of places by calls of the entity's own link.
    H6Ordered,
}

impl Rule {
    const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// Where `docs/protocol.md` states it: "L4".
    pub const fn number(self) -> &'static str {
        self.stated().0
    }

    /// What it says, in half a sentence.
    pub const fn says(self) -> &'static str {
        self.stated().1
    }

    const fn stated(self) -> (&'static str, &'static str) {
        match self {
            Self::L2Chain => ("L2", "batches are compared by hash, not by number alone"),
            Self::L3OneInFlight => ("L3", "one append in flight"),
            Self::L3Frozen => ("L3", "what is sent again is the same bytes"),
            Self::L4Fence => ("L4", "an append expects the sequence its writer saw last"),
            Self::L5Silence => ("L5", "silence is not success"),
            Self::L5Replaced => ("L5", "who reads a higher epoch stops"),
            Self::L5EarlierTry => ("L5", "an earlier try of one's own `Open` is void, not an alarm"),
            Self::L6Kept => ("L6", "batches are kept until archived"),
            Self::L7Beat => ("L7", "an owner with nothing to say appends an empty batch"),
            Self::G1LogBeforeShow => (
                "G1",
                "an output waits for the acknowledgement of the batch that holds its cause",
            ),
            Self::G2Fresh => ("G2", "nothing leaves unless the owner is fresh"),
            Self::G4Emptied => ("G4", "a failed append empties the gate"),
            Self::E1Replaced => ("E1", "a taker that reads a higher epoch stops"),
            Self::E3Recorded => ("E3", "the opening is recorded in the store"),
            Self::E3Granted => ("E3", "only if the granted epoch is still this one"),
            Self::E3Cursor => ("E3", "only if the cursor is below it"),
            Self::E3SecondLook => ("E3", "only after a second look at the log, two freshness limits later"),
            Self::E3WholeChain => ("E3", "the second look reads the chain again, not only its last message"),
            Self::E4GateAfterRecord => ("E4", "the gate opens only after E3"),
            Self::E5Void => ("E5", "void batches are skipped"),
            Self::E6Confirmed => (
                "E6",
                "freshness that has lapsed comes back only with the epoch confirmed",
            ),
            Self::F2OpeningsInFold => ("F2", "openings are read in the folding transaction"),
            Self::F2OnlyRecorded => (
                "F2",
                "an `Open` is folded only when it is the store's opening of its epoch",
            ),
            Self::F4Filled => ("F4", "holes are filled by whoever has the batch"),
            Self::F4Hash => ("F4", "a fill is accepted by its hash"),
            Self::F6NewestStays => ("F6", "the newest archived batch stays on the subject"),
            Self::F6BehindArchive => ("F6", "only archived batches are trimmed"),
            Self::F6LookedUp => ("F6", "the sequence to trim to is looked up again before trimming"),
            Self::C1LoggedFirst => ("C1", "a call is logged before it is sent"),
            Self::C1SenderMoves => ("C1", "the sending end of a link moves with its entity"),
            Self::C2InOrder => ("C2", "a call is taken only after the one before it"),
            Self::C2Once => ("C2", "a call is taken once"),
            Self::C2WithEffects => ("C2", "a call is recorded as taken in the batch that holds its effects"),
            Self::C2ReceiverMoves => ("C2", "the receiving end of a link moves with its entity"),
            Self::C3ThroughGate => ("C3", "a confirmation leaves through the gate"),
            Self::C4Resent => ("C4", "unconfirmed calls are sent again"),
            Self::C5Queued => ("C5", "a call within an owner queues behind unconfirmed ones"),
            Self::C6GoneFromHome => ("C6", "only the home says that an entity is gone"),
            Self::C7Awaiting => ("C7", "what waits for an answer is part of the caller's state"),
            Self::C9CallsOutlive => ("C9", "the calls of a destroyed entity stay until they are confirmed"),
            Self::H1Logged => ("H1", "a hand-over is logged before the image leaves"),
            Self::H1OneInput => ("H1", "the entity leaves in the same input as the call that carries it"),
            Self::H2Resent => ("H2", "the image is sent again until it is answered"),
            Self::H3AnswerIsCall => (
                "H3",
                "the answer is a call of its own, sent again until it is confirmed",
            ),
            Self::H3Once => ("H3", "an image is taken once"),
            Self::H4ThatOne => ("H4", "an arrival ends the hand-over that it answers, and nothing else"),
            Self::H4Returned => ("H4", "what is refused is real again where it was"),
            Self::H4OnlyRefused => ("H4", "nothing but a refusal brings an entity back"),
            Self::H6Ordered => ("H6", "the home hears of places by calls of the entity's own link"),
        }
    }
}

/// The rules in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    out: u64,
}

impl Rules {
    /// The protocol as it is written.
    pub const ALL: Self = Self { out: 0 };

    /// The same without `rule`.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Self {
        Self {
            out: self.out | rule.bit(),
        }
    }

    /// Whether `rule` is in force.
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.out & rule.bit() == 0
    }
}
