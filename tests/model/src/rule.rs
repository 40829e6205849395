//! The rules that can be disabled, by the names that `docs/protocol.md` gives them.

/// A rule, or a part of one that can be disabled by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rule {
    /// L2: batches are compared by hash, not by number alone.
    L2Chain,
    /// L3: one append in flight.
    L3OneInFlight,
    /// L3: a resent batch is the same bytes.
    L3Frozen,
    /// L4: an append expects the last sequence that its writer has seen.
    L4Fence,
    /// L5: a missing answer does not count as success.
    L5Silence,
    /// L5: a writer that reads a higher epoch stops.
    L5Replaced,
    /// L5: an earlier attempt of the writer's own `Open` is void, not an alarm.
    L5EarlierTry,
    /// L6: batches are kept until they are archived.
    L6Kept,
    /// L7: an idle owner appends an empty batch.
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
    /// E3: only if the granted epoch has not changed.
    E3Granted,
    /// E3: only if the cursor is below the opening.
    E3Cursor,
    /// E3: only after the subject is read again, two freshness limits later.
    E3SecondLook,
    /// E3: the second read covers the whole chain, not only its last message.
    E3WholeChain,
    /// E4: the gate opens only after E3.
    E4GateAfterRecord,
    /// E5: void batches are skipped.
    E5Void,
    /// E6: freshness that has lapsed returns only once the epoch is confirmed.
    E6Confirmed,
    /// E6: a holder that was reconnected shows nothing before its epoch is confirmed.
    E6Reconnected,
    /// E8: the granting transaction compares the closed connection with that of the last holder.
    E8AtGrant,
    /// E8: an answer counts only on the connection over which the append was sent.
    E8SameConnection,
    /// F2: openings are read in the folding transaction.
    F2OpeningsInFold,
    /// F2: an `Open` is folded only when it is the store's opening of its epoch.
    F2OnlyRecorded,
    /// F4: a hole is filled by any process that has the batch.
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
    /// C2: the oldest unconfirmed call is taken even if numbers before it are missing.
    C2OldestSkips,
    /// C3: a confirmation leaves through the gate.
    C3ThroughGate,
    /// C4: unconfirmed calls are resent.
    C4Resent,
    /// C5: a call within an owner queues behind unconfirmed ones.
    C5Queued,
    /// C6: only the home reports that an entity is gone.
    C6GoneFromHome,
    /// C7: pending answers are part of the caller's state.
    C7Awaiting,
    /// C9: the calls of a destroyed entity stay until they are confirmed.
    C9CallsOutlive,
    /// C17: the next part of an entity continues the numbers of the former one.
    C17Continued,
    /// C17: the next part begins once all calls of the former one are confirmed.
    C17Confirmed,
    /// C20: the giving owner keeps the client until the other one expects it.
    C20Keeps,
    /// C20: an answer that names another token than the current one is not relied on.
    C20Token,
    /// C20: an answer that comes late is not relied on.
    C20InTime,
    /// C13: the calls of a log that was cut get numbers of a new generation.
    C13Renumbered,
    /// D9: a draining process hands an owner over once the process that follows it is at the end of the log.
    D9Ready,
    /// D9: an owner whose draining holder has left is granted to the planned process.
    D9Granted,
    /// D9: a new director lets processes follow until all of them have reported to it.
    D9Keeps,
    /// D9: a process that follows an owner is planned before any other, also by a new director.
    D9Found,
    /// D9: a process that follows an owner and is not at the end of its log reports that, and stays planned.
    D9Behind,
    /// D9: a new director plans a process that does not follow the owner once all processes have reported to it.
    D9Waits,
    /// D9: a new director grants a released owner to a process that does not follow it once all processes have
    /// reported to it.
    D9WaitsToGrant,
    /// H1: a hand-over is logged before the image leaves.
    H1Logged,
    /// H1: the entity leaves in the same input as the call that carries it.
    H1OneInput,
    /// H2: the image is resent until it is answered.
    H2Resent,
    /// H3: the answer is a call of its own, resent until it is confirmed.
    H3AnswerIsCall,
    /// H3: an image is taken once.
    H3Once,
    /// H4: an arrival ends the hand-over that it answers, and no other.
    H4ThatOne,
    /// H4: a refused entity becomes real again on the owner that it came from.
    H4Returned,
    /// H4: only a refusal brings an entity back.
    H4OnlyRefused,
    /// H6: the home receives places through calls of the entity's own link.
    H6Ordered,
    /// H9: the request to teleport and the departure are one input.
    H9OneInput,
    /// H9: the old place is kept until the new owner has taken the entity.
    H9OldPlace,
    /// H9: a call that teleports the entity is recorded as a wait in its state.
    H9Wait,
    /// H9: the wait ends, and behaviour is notified, in the input that ends the hand-over.
    H9EndsWait,
    /// F1: db reads the stream in order.
    F1InOrder,
    /// F1: a fold is conditional on what it read.
    F1Conditional,
    /// F3: cursor, archive and effects are one transaction.
    F3OneTransaction,
    /// F7: a transfer is keyed by its id.
    F7Keyed,
    /// F7: a transfer's result goes to the outbox in the same transaction.
    F7OutboxInFold,
    /// F7: the log `ledger` takes each entry of the outbox once.
    F7TakenOnce,
    /// F10: an offered item leaves its holder.
    F10Escrow,
    /// F11: an acceptance names the version of the offers that it saw.
    F11Version,
    /// F12: a change of the offers clears both acceptances.
    F12Cleared,
    /// F13: a reserved transfer is completed by the base that has recorded that it is reserved.
    F13PostAfterResult,
    /// F14: the floors are written before the horizon moves to them.
    F14FloorFirst,
    /// F14: the next floors go into the area that the horizon does not name.
    F14TwoAreas,
    /// F14: only events at or below the horizon are deleted.
    F14Below,
    /// F14: the header of every batch is kept.
    F14Header,
    /// F14: which calls a batch made is kept.
    F14Calls,
    /// F14: nothing of a base or of the ledger's owner is deleted.
    F14Lasting,
    /// F14: the cell parts that stored entities had are kept.
    F14CellParts,
    /// F14: a reader that reaches a batch without events begins again.
    F14BeginAgain,
    /// F17: the logs are compared with the store before anything is granted.
    F17Compared,
    /// F17: a batch after an opening that the store has not recorded shows that the store is older than the log.
    F17Openings,
    /// F17: an adoption records the openings that the log's chain proves.
    F17Adopted,
    /// F19: only an entity that holds nothing is deleted.
    F19Empty,
    /// F19: a deleted entity receives nothing.
    F19Closed,
    /// M1: a log changes to other definitions with an `Open` only.
    M1WithItsOpen,
    /// M2: definitions and the migration record change in one transaction.
    M2OneTransaction,
    /// M2: an owner is granted only to processes with the current definitions.
    M2PresentOnly,
    /// M3: a taker converts the state before it appends its `Open`.
    M3TakerConverts,
    /// M3: a process that folds a log converts the state before the `Open` that changes the definitions.
    M3FoldConverts,
    /// M3: until that `Open` counts, the log keeps its definitions.
    M3OnceItCounts,
    /// M4: a conversion keeps all numbers.
    M4NumbersStay,
    /// M5: a stored entity names its generation.
    M5Generation,
    /// M5: db writes only rows of the current generation.
    M5PresentRows,
    /// M7: a message names the definitions under which it was written.
    M7Named,
    /// T3: a db answers only what it has read before the part of its stream that it has folded.
    T3FoldedFirst,
    /// T4: when a base part has ended, all shards are asked before its check-out is returned.
    T4Asked,
    /// T4: the last shard to answer returns the check-out.
    T4LastReturns,
    /// T4: of several cell parts that have ended, the later one is kept.
    T4LaterStays,
    /// V1: history numbers continue across hand-overs and restarts.
    V1Continued,
    /// V2: a ghost that finds a gap asks the real entity.
    V2Gap,
    /// V2: ghosts periodically receive the newest history numbers.
    V2Beat,
    /// V3: frames of a view are numbered.
    V3Frames,
    /// V3: the newest frame number is sent periodically.
    V3Beat,
    /// V3: an update names the history number that it starts from.
    V3From,
    /// V3: a new view starts from what the client names.
    V3Stamps,
    /// V3: when the needed history has been trimmed, the whole state is sent.
    V3Refresh,
    /// V5: a changed value of an account view takes a history number.
    V5Restated,
    /// V5: it does so in the batch that holds the notice.
    V5OneBatch,
    /// V5: only the newest of these numbers is sent, with the current value.
    V5Newest,
    /// E7: messages of lower epochs are dropped.
    E7LowerDropped,
    /// S1: an entry replaces a copy only if its version is higher.
    S1Higher,
    /// S1: a stamp is not below the game time.
    S1GameTime,
    /// S2: owners periodically send their versions.
    S2Beat,
    /// S2: an owner that has lost its area continues until another owner has everything it holds.
    S2Leaver,
    /// S3: a client names the versions that it holds.
    S3Names,
    /// S4: a value of an earlier life of a space than the known one is void.
    S4Lives,
}

/// Every rule: where `docs/protocol.md` states it, and a summary in half a sentence.
const STATED: [(Rule, &str, &str); 125] = [
    (Rule::L2Chain, "L2", "batches are compared by hash, not by number alone"),
    (Rule::L3OneInFlight, "L3", "one append is in flight at a time"),
    (Rule::L3Frozen, "L3", "a resent batch is the same bytes"),
    (
        Rule::L4Fence,
        "L4",
        "an append expects the last sequence that its writer has seen",
    ),
    (Rule::L5Silence, "L5", "a missing answer does not count as success"),
    (Rule::L5Replaced, "L5", "a writer that reads a higher epoch stops"),
    (
        Rule::L5EarlierTry,
        "L5",
        "an earlier attempt of the writer's own `Open` is void, not an alarm",
    ),
    (Rule::L6Kept, "L6", "batches are kept until they are archived"),
    (Rule::L7Beat, "L7", "an idle owner appends an empty batch"),
    (
        Rule::G1LogBeforeShow,
        "G1",
        "an output waits for the acknowledgement of the batch that holds its cause",
    ),
    (Rule::G2Fresh, "G2", "nothing leaves unless the owner is fresh"),
    (Rule::G4Emptied, "G4", "a failed append empties the gate"),
    (Rule::E1Replaced, "E1", "a taker that reads a higher epoch stops"),
    (Rule::E3Recorded, "E3", "the opening is recorded in the store"),
    (
        Rule::E3Granted,
        "E3",
        "the opening is recorded only if the granted epoch has not changed",
    ),
    (
        Rule::E3Cursor,
        "E3",
        "the opening is recorded only if the cursor is below it",
    ),
    (
        Rule::E3SecondLook,
        "E3",
        "the opening is recorded only after a second read of the subject, two freshness limits later",
    ),
    (
        Rule::E3WholeChain,
        "E3",
        "the second read covers the whole chain, not only its last message",
    ),
    (Rule::E4GateAfterRecord, "E4", "the gate opens only after E3"),
    (Rule::E5Void, "E5", "void batches are skipped"),
    (
        Rule::E6Confirmed,
        "E6",
        "freshness that has lapsed returns only once the epoch is confirmed",
    ),
    (
        Rule::E6Reconnected,
        "E6",
        "a holder that was reconnected shows nothing before its epoch is confirmed",
    ),
    (
        Rule::E8AtGrant,
        "E8",
        "the granting transaction compares the closed connection with that of the last holder",
    ),
    (
        Rule::E8SameConnection,
        "E8",
        "an answer counts only on the connection over which the append was sent",
    ),
    (
        Rule::F2OpeningsInFold,
        "F2",
        "openings are read in the folding transaction",
    ),
    (
        Rule::F2OnlyRecorded,
        "F2",
        "an `Open` is folded only when it is the store's opening of its epoch",
    ),
    (
        Rule::F4Filled,
        "F4",
        "a hole is filled by any process that has the batch",
    ),
    (Rule::F4Hash, "F4", "a fill is accepted by its hash"),
    (
        Rule::F6NewestStays,
        "F6",
        "the newest archived batch stays on the subject",
    ),
    (Rule::F6BehindArchive, "F6", "only archived batches are trimmed"),
    (
        Rule::F6LookedUp,
        "F6",
        "the sequence to trim to is looked up again before trimming",
    ),
    (Rule::C1LoggedFirst, "C1", "a call is logged before it is sent"),
    (
        Rule::C1SenderMoves,
        "C1",
        "the sending end of a link moves with its entity",
    ),
    (Rule::C2InOrder, "C2", "a call is taken only after the one before it"),
    (Rule::C2Once, "C2", "a call is taken once"),
    (
        Rule::C2WithEffects,
        "C2",
        "a call is recorded as taken in the batch that holds its effects",
    ),
    (
        Rule::C2ReceiverMoves,
        "C2",
        "the receiving end of a link moves with its entity",
    ),
    (
        Rule::C2OldestSkips,
        "C2",
        "the oldest unconfirmed call is taken even if numbers before it are missing",
    ),
    (Rule::C3ThroughGate, "C3", "a confirmation leaves through the gate"),
    (Rule::C4Resent, "C4", "unconfirmed calls are resent"),
    (
        Rule::C5Queued,
        "C5",
        "a call within an owner queues behind unconfirmed ones",
    ),
    (
        Rule::C6GoneFromHome,
        "C6",
        "only the home reports that an entity is gone",
    ),
    (Rule::C7Awaiting, "C7", "pending answers are part of the caller's state"),
    (
        Rule::C9CallsOutlive,
        "C9",
        "the calls of a destroyed entity stay until they are confirmed",
    ),
    (
        Rule::C17Continued,
        "C17",
        "the next part of an entity continues the numbers of the former one",
    ),
    (
        Rule::C17Confirmed,
        "C17",
        "the next part begins once all calls of the former one are confirmed",
    ),
    (
        Rule::C20Keeps,
        "C20",
        "the giving owner keeps the client until the other one expects it",
    ),
    (
        Rule::C20Token,
        "C20",
        "an answer that names another token than the current one is not relied on",
    ),
    (Rule::C20InTime, "C20", "an answer that comes late is not relied on"),
    (
        Rule::C13Renumbered,
        "C13",
        "the calls of a log that was cut get numbers of a new generation",
    ),
    (
        Rule::D9Ready,
        "D9",
        "an owner is handed over once its follower is at the end of the log",
    ),
    (
        Rule::D9Granted,
        "D9",
        "an owner whose draining holder has left is granted to the planned process",
    ),
    (
        Rule::D9Keeps,
        "D9",
        "a new director lets processes follow until all of them have reported to it",
    ),
    (
        Rule::D9Found,
        "D9",
        "a process that follows an owner is planned before any other",
    ),
    (
        Rule::D9Waits,
        "D9",
        "a new director plans another process once all processes have reported to it",
    ),
    (
        Rule::D9WaitsToGrant,
        "D9",
        "a new director grants a released owner to another process once all processes have reported to it",
    ),
    (
        Rule::D9Behind,
        "D9",
        "a process that is not at the end of a log that it follows reports that, and stays planned",
    ),
    (Rule::H1Logged, "H1", "a hand-over is logged before the image leaves"),
    (
        Rule::H1OneInput,
        "H1",
        "the entity leaves in the same input as the call that carries it",
    ),
    (Rule::H2Resent, "H2", "the image is resent until it is answered"),
    (
        Rule::H3AnswerIsCall,
        "H3",
        "the answer is a call of its own, resent until it is confirmed",
    ),
    (Rule::H3Once, "H3", "an image is taken once"),
    (
        Rule::H4ThatOne,
        "H4",
        "an arrival ends the hand-over that it answers, and no other",
    ),
    (
        Rule::H4Returned,
        "H4",
        "a refused entity becomes real again on the owner that it came from",
    ),
    (Rule::H4OnlyRefused, "H4", "only a refusal brings an entity back"),
    (
        Rule::H6Ordered,
        "H6",
        "the home receives places through calls of the entity's own link",
    ),
    (
        Rule::H9OneInput,
        "H9",
        "the request to teleport and the departure are one input",
    ),
    (
        Rule::H9OldPlace,
        "H9",
        "the old place is kept until the new owner has taken the entity",
    ),
    (
        Rule::H9Wait,
        "H9",
        "a call that teleports the entity is recorded as a wait in its state",
    ),
    (
        Rule::H9EndsWait,
        "H9",
        "the wait ends, and behaviour is notified, in the input that ends the hand-over",
    ),
    (Rule::F1InOrder, "F1", "db reads the stream in order"),
    (Rule::F1Conditional, "F1", "a fold is conditional on what it read"),
    (
        Rule::F3OneTransaction,
        "F3",
        "cursor, archive and effects are one transaction",
    ),
    (Rule::F7Keyed, "F7", "a transfer is keyed by its id"),
    (
        Rule::F7OutboxInFold,
        "F7",
        "a transfer's result goes to the outbox in the same transaction",
    ),
    (
        Rule::F7TakenOnce,
        "F7",
        "the log `ledger` takes each entry of the outbox once",
    ),
    (Rule::F10Escrow, "F10", "an offered item leaves its holder"),
    (
        Rule::F11Version,
        "F11",
        "an acceptance names the version of the offers that it saw",
    ),
    (
        Rule::F12Cleared,
        "F12",
        "a change of the offers clears both acceptances",
    ),
    (
        Rule::F13PostAfterResult,
        "F13",
        "a reserved transfer is completed by the base that has recorded that it is reserved",
    ),
    (
        Rule::F14FloorFirst,
        "F14",
        "the floors are written before the horizon moves to them",
    ),
    (
        Rule::F14TwoAreas,
        "F14",
        "the next floors go into the area that the horizon does not name",
    ),
    (Rule::F14Below, "F14", "only events at or below the horizon are deleted"),
    (Rule::F14Header, "F14", "the header of every batch is kept"),
    (Rule::F14Calls, "F14", "which calls a batch made is kept"),
    (
        Rule::F14Lasting,
        "F14",
        "nothing of a base or of the ledger's owner is deleted",
    ),
    (
        Rule::F14CellParts,
        "F14",
        "the cell parts that stored entities had are kept",
    ),
    (
        Rule::F14BeginAgain,
        "F14",
        "a reader that reaches a batch without events begins again",
    ),
    (
        Rule::F17Compared,
        "F17",
        "the logs are compared with the store before anything is granted",
    ),
    (
        Rule::F17Openings,
        "F17",
        "a batch after an opening that the store has not recorded shows that the store is older than the log",
    ),
    (
        Rule::F17Adopted,
        "F17",
        "an adoption records the openings that the log's chain proves",
    ),
    (
        Rule::F19Empty,
        "F19",
        "only an entity that holds nothing and has nothing open is deleted",
    ),
    (Rule::F19Closed, "F19", "a deleted entity receives nothing"),
    (
        Rule::M1WithItsOpen,
        "M1",
        "a log changes to other definitions with an `Open` only",
    ),
    (
        Rule::M2OneTransaction,
        "M2",
        "definitions and the migration record change in one transaction",
    ),
    (
        Rule::M2PresentOnly,
        "M2",
        "an owner is granted only to processes with the current definitions",
    ),
    (
        Rule::M3TakerConverts,
        "M3",
        "a taker converts the state before it appends its `Open`",
    ),
    (
        Rule::M3FoldConverts,
        "M3",
        "a process that folds a log converts the state before the `Open` that changes the definitions",
    ),
    (
        Rule::M3OnceItCounts,
        "M3",
        "until that `Open` counts, the log keeps its definitions",
    ),
    (Rule::M4NumbersStay, "M4", "a conversion keeps all numbers"),
    (Rule::M5Generation, "M5", "a stored entity names its generation"),
    (
        Rule::M5PresentRows,
        "M5",
        "db writes only rows of the current generation",
    ),
    (
        Rule::T3FoldedFirst,
        "T3",
        "a db answers after it has folded its stream up to the end that it has after the requests were read",
    ),
    (
        Rule::T4Asked,
        "T4",
        "all shards are asked before a check-out is returned",
    ),
    (
        Rule::T4LastReturns,
        "T4",
        "the last shard to answer returns the check-out",
    ),
    (
        Rule::T4LaterStays,
        "T4",
        "of several cell parts that have ended, the later one is kept",
    ),
    (
        Rule::M7Named,
        "M7",
        "a message names the definitions under which it was written",
    ),
    (
        Rule::V1Continued,
        "V1",
        "history numbers continue across hand-overs and restarts",
    ),
    (Rule::V2Gap, "V2", "a ghost that finds a gap asks the real entity"),
    (
        Rule::V2Beat,
        "V2",
        "ghosts periodically receive the newest history numbers",
    ),
    (Rule::V3Frames, "V3", "frames of a view are numbered"),
    (Rule::V3Beat, "V3", "the newest frame number is sent periodically"),
    (
        Rule::V3From,
        "V3",
        "an update names the history number that it starts from",
    ),
    (Rule::V3Stamps, "V3", "a new view starts from what the client names"),
    (
        Rule::V3Refresh,
        "V3",
        "when the needed history has been trimmed, the whole state is sent",
    ),
    (
        Rule::V5Restated,
        "V5",
        "a changed value of an account view takes a history number",
    ),
    (
        Rule::V5OneBatch,
        "V5",
        "that history number is in the batch that holds the notice",
    ),
    (
        Rule::V5Newest,
        "V5",
        "only the newest of these history numbers is sent, with the current value",
    ),
    (Rule::E7LowerDropped, "E7", "messages of lower epochs are dropped"),
    (
        Rule::S1Higher,
        "S1",
        "an entry replaces a copy only if its version is higher",
    ),
    (Rule::S1GameTime, "S1", "a stamp is not below the game time"),
    (Rule::S2Beat, "S2", "owners periodically send their versions"),
    (
        Rule::S2Leaver,
        "S2",
        "an owner that has lost its area continues until another owner has everything it holds",
    ),
    (Rule::S3Names, "S3", "a client names the versions that it holds"),
    (
        Rule::S4Lives,
        "S4",
        "a value of an earlier life of a space than the known one is void",
    ),
];

impl Rule {
    /// Every rule.
    pub fn all() -> impl Iterator<Item = Self> {
        STATED.iter().map(|(rule, ..)| *rule)
    }

    /// The section of `docs/protocol.md` that states it: "L4".
    pub fn number(self) -> &'static str {
        self.stated().0
    }

    /// A summary, in half a sentence.
    pub fn says(self) -> &'static str {
        self.stated().1
    }

    fn stated(self) -> (&'static str, &'static str) {
        let found = STATED.iter().find(|(rule, ..)| *rule == self);
        found
            .map(|(_, number, says)| (*number, *says))
            .expect("invariant: every rule is stated")
    }

    const fn bit(self) -> u128 {
        1 << self as u8
    }
}

/// The rules in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    out: u128,
}

impl Rules {
    /// All rules: the protocol as written.
    pub const ALL: Self = Self { out: 0 };

    /// The same rules except `rule`.
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
