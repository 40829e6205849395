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
