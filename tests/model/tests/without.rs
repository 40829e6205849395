//! What fails without each rule: the shortest schedule, as `docs/schedules.md` has it.

use annals_model::exhibit::chapters;
use annals_model::rule::Rule;

fn fails_without(rule: Rule) {
    let exhibit = chapters()
        .into_iter()
        .flat_map(|(_, exhibits)| exhibits)
        .find(|exhibit| exhibit.rule == rule)
        .expect("every rule here has an exhibit");
    exhibit.assert_documented();
}

macro_rules! fails_without {
    ($($name:ident: $rule:ident),+ $(,)?) => {$(
        #[test]
        fn $name() {
            fails_without(Rule::$rule);
        }
    )+};
}

fails_without! {
    l2_chain: L2Chain,
    l3_one_in_flight: L3OneInFlight,
    l3_frozen: L3Frozen,
    l4_fence: L4Fence,
    l5_silence: L5Silence,
    l5_replaced: L5Replaced,
    l5_earlier_try: L5EarlierTry,
    l6_kept: L6Kept,
    l7_beat: L7Beat,
    g1_log_before_show: G1LogBeforeShow,
    g2_fresh: G2Fresh,
    g4_emptied: G4Emptied,
    e1_replaced: E1Replaced,
    e3_recorded: E3Recorded,
    e3_granted: E3Granted,
    e3_cursor: E3Cursor,
    e3_second_look: E3SecondLook,
    e3_whole_chain: E3WholeChain,
    e4_gate_after_record: E4GateAfterRecord,
    e5_void: E5Void,
    e6_confirmed: E6Confirmed,
    f2_openings_in_fold: F2OpeningsInFold,
    f2_only_recorded: F2OnlyRecorded,
    f4_filled: F4Filled,
    f4_hash: F4Hash,
    f6_newest_stays: F6NewestStays,
    f6_behind_archive: F6BehindArchive,
    f6_looked_up: F6LookedUp,
    c1_logged_first: C1LoggedFirst,
    c1_sender_moves: C1SenderMoves,
    c2_in_order: C2InOrder,
    c2_once: C2Once,
    c2_with_effects: C2WithEffects,
    c2_receiver_moves: C2ReceiverMoves,
    c2_oldest_skips: C2OldestSkips,
    c3_through_gate: C3ThroughGate,
    c4_resent: C4Resent,
    c5_queued: C5Queued,
    c6_gone_from_home: C6GoneFromHome,
    c7_awaiting: C7Awaiting,
    c9_calls_outlive: C9CallsOutlive,
    c13_renumbered: C13Renumbered,
    h1_logged: H1Logged,
    h1_one_input: H1OneInput,
    h2_resent: H2Resent,
    h3_answer_is_call: H3AnswerIsCall,
    h3_once: H3Once,
    h4_that_one: H4ThatOne,
    h4_returned: H4Returned,
    h4_only_refused: H4OnlyRefused,
    h6_ordered: H6Ordered,
    h9_one_input: H9OneInput,
    h9_old_place: H9OldPlace,
    h9_wait: H9Wait,
    h9_ends_wait: H9EndsWait,
    v1_continued: V1Continued,
    v2_gap: V2Gap,
    v2_beat: V2Beat,
    v3_frames: V3Frames,
    v3_beat: V3Beat,
    v3_stamps: V3Stamps,
    v3_refresh: V3Refresh,
    v5_restated: V5Restated,
    v5_one_batch: V5OneBatch,
    v5_newest: V5Newest,
    e7_lower_dropped: E7LowerDropped,
    s1_higher: S1Higher,
    s1_game_time: S1GameTime,
    s2_beat: S2Beat,
    s2_leaver: S2Leaver,
    s3_names: S3Names,
    s4_lives: S4Lives,
    f1_in_order: F1InOrder,
    f1_conditional: F1Conditional,
    f3_one_transaction: F3OneTransaction,
    f7_keyed: F7Keyed,
    f7_outbox_in_fold: F7OutboxInFold,
    f7_taken_once: F7TakenOnce,
    f10_escrow: F10Escrow,
    f11_version: F11Version,
    f12_cleared: F12Cleared,
    f13_post_after_result: F13PostAfterResult,
    f14_floor_first: F14FloorFirst,
    f14_two_areas: F14TwoAreas,
    f14_below: F14Below,
    f14_header: F14Header,
    f14_calls: F14Calls,
    f14_lasting: F14Lasting,
    f14_cell_parts: F14CellParts,
    f14_begin_again: F14BeginAgain,
    f17_compared: F17Compared,
    f17_openings: F17Openings,
    f17_adopted: F17Adopted,
    m1_with_its_open: M1WithItsOpen,
    m2_one_transaction: M2OneTransaction,
    m2_present_only: M2PresentOnly,
    m3_taker_converts: M3TakerConverts,
    m3_fold_converts: M3FoldConverts,
    m3_once_it_counts: M3OnceItCounts,
    m4_numbers_stay: M4NumbersStay,
    m5_generation: M5Generation,
    m5_present_rows: M5PresentRows,
}
