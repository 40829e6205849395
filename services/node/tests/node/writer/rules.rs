//! Each rule by hand: one situation, one expected action.

use std::time::Duration;

use annals_event::FrozenBatch;
use annals_ids::{BatchNumber, Epoch, Hash};
use annals_node::{
    time::Mono,
    writer::{
        Action, Chain, Durability, FRESHNESS, Found, HEARTBEAT, Input, KEPT_LIMIT, Opening, OpeningRefused, PACE,
        SECOND_READ_DELAY, Stop, Tip, Wanted, Writer,
    },
};

use crate::writer::{OWNER, batch_behind, tip_of};

const LATER: Duration = Duration::from_secs(2);

/// A writer, its clock, and the batches that it appended.
struct Bench {
    writer: Writer,
    now: Mono,
    marks: u64,
}

impl Bench {
    fn opening(epoch: Epoch, chain: Chain) -> Self {
        let writer = Writer::take_over(OWNER, epoch, Durability::Log, chain);
        Self {
            writer,
            now: Mono(1_000_000),
            marks: 1_000 * epoch.0,
        }
    }

    /// A writer of epoch 2 that took over batches 1 to 3 (sequences 11 to 13; batch 1 is archived), opened with batch 4
    /// at sequence 14, and has batch 5 in flight.
    fn in_flight() -> (Self, Vec<FrozenBatch>) {
        let mut log = run(Tip::default(), Epoch(1), 3);
        let mut bench = Self::opening(Epoch(2), chain(&log, 1, 13));
        log.push(bench.offer());
        assert_eq!(bench.ask(), Asked::Append { expect: 13, number: 4 });
        bench.answer(Input::Appended { sequence: 14 });
        bench.look_and_record(&log, 14);
        log.push(bench.offer());
        assert_eq!(bench.ask(), Asked::Append { expect: 14, number: 5 });
        (bench, log)
    }

    /// Closes and offers the batch that is wanted next.
    fn offer(&mut self) -> FrozenBatch {
        self.now = self.now.after(PACE);
        let opens = self.writer.wanted(self.now) == Wanted::Opening;
        self.marks += 1;
        let batch = batch_behind(self.writer.tip(), self.writer.epoch(), opens, self.marks);
        self.writer.offer(self.now, batch.clone());
        batch
    }

    /// Waits, answers the second look with an unchanged log that ends with the writer's `Open`, and records the
    /// opening.
    fn look_and_record(&mut self, log: &[FrozenBatch], sequence: u64) {
        self.wait(SECOND_READ_DELAY);
        assert_eq!(self.ask(), Asked::Look);
        self.answer(looked(log, sequence));
        assert_eq!(
            self.ask(),
            Asked::Record(opening(log.last().expect("a log is not empty")))
        );
        self.answer(Input::OpeningRecorded);
    }

    /// The writer's next action.
    fn ask(&mut self) -> Asked {
        match self.writer.poll(self.now) {
            None => Asked::Nothing,
            Some(Action::Append { expect, batch }) => Asked::Append {
                expect,
                number: batch.number.0,
            },
            Some(Action::ReadLast) => Asked::Last,
            Some(Action::LookAgain) => Asked::Look,
            Some(Action::RecordOpening(opening)) => Asked::Record(opening),
            Some(Action::ConfirmEpoch) => Asked::Confirm,
        }
    }

    fn answer(&mut self, input: Input) {
        self.writer.handle(self.now, input);
    }

    fn wait(&mut self, by: Duration) {
        self.now = self.now.after(by);
    }

    /// Rejects the append in flight, and answers the reading that must follow.
    fn reject_and_find(&mut self, last: Option<(u64, &FrozenBatch)>) {
        self.answer(Input::Rejected);
        assert_eq!(self.ask(), Asked::Last);
        self.answer(Input::Last(
            last.map(|(sequence, batch)| (sequence, batch.bytes.clone())),
        ));
    }
}

#[derive(Debug, PartialEq)]
enum Asked {
    Nothing,
    Append { expect: u64, number: u64 },
    Last,
    Look,
    Record(Opening),
    Confirm,
}

/// `count` batches of one epoch after `tip`, of which the first is its `Open`.
fn run(tip: Tip, epoch: Epoch, count: usize) -> Vec<FrozenBatch> {
    let mut batches: Vec<FrozenBatch> = Vec::new();
    for mark in 0..count {
        let tip = batches.last().map_or(tip, tip_of);
        batches.push(batch_behind(tip, epoch, mark == 0, mark as u64));
    }
    batches
}

/// The chain found in this log at a take-over, with `archived` batches in the archive.
fn chain(log: &[FrozenBatch], archived: usize, sequence: u64) -> Chain {
    let tip = archived
        .checked_sub(1)
        .map_or(Tip::default(), |last| tip_of(&log[last]));
    let mut chain = Chain::whole(tip, log[archived..].to_vec(), sequence);
    chain.openings = log.iter().filter(|batch| batch.opens).map(opening).collect();
    chain
}

/// The result of the second look: these messages, the last at `sequence`.
fn looked(log: &[FrozenBatch], sequence: u64) -> Input {
    Input::Looked {
        batches: log.iter().map(|batch| batch.bytes.clone()).collect(),
        last: log.last().map(|last| (sequence, last.bytes.clone())),
    }
}

fn opening(batch: &FrozenBatch) -> Opening {
    Opening {
        epoch: batch.epoch,
        number: batch.number,
        hash: batch.hash,
    }
}

#[test]
fn a_new_log_is_opened_recorded_and_only_then_fresh() {
    let mut bench = Bench::opening(Epoch(1), Chain::default());
    let open = bench.offer();
    assert!(open.opens);
    assert_eq!(bench.ask(), Asked::Append { expect: 0, number: 1 });
    assert_eq!(bench.ask(), Asked::Nothing, "an action is handed out once");
    bench.answer(Input::Appended { sequence: 1 });
    assert!(
        !bench.writer.is_fresh(bench.now),
        "E4: the gate opens when the store holds the opening"
    );
    assert_eq!(bench.ask(), Asked::Look, "there was no earlier holder: no need to wait");
    bench.answer(looked(std::slice::from_ref(&open), 1));
    assert_eq!(bench.ask(), Asked::Record(opening(&open)));
    assert_eq!(bench.writer.opening(), None);
    bench.answer(Input::OpeningRecorded);
    assert_eq!(bench.writer.opening(), Some(opening(&open)));
    assert_eq!(bench.writer.acknowledged(), BatchNumber(1));
    assert!(bench.writer.is_fresh(bench.now));
}

#[test]
fn batches_are_paced_and_an_idle_log_is_kept_fresh() {
    let (mut bench, _) = Bench::in_flight();
    let closed = bench.now;
    assert_eq!(
        bench.writer.wanted(bench.now.after(LATER)),
        Wanted::Nothing,
        "L3: one in flight"
    );
    bench.answer(Input::Appended { sequence: 15 });
    assert_eq!(bench.writer.wanted(closed), Wanted::Nothing);
    assert_eq!(bench.writer.deadline(closed), Some(closed.after(PACE)));
    assert_eq!(bench.writer.wanted(closed.after(PACE)), Wanted::Filled);
    assert_eq!(bench.writer.deadline(closed.after(PACE)), Some(closed.after(HEARTBEAT)));
    assert_eq!(bench.writer.wanted(closed.after(HEARTBEAT)), Wanted::Heartbeat);
    let instant = Duration::from_micros(1);
    assert!(bench.writer.is_fresh(closed.after(FRESHNESS - instant)));
    assert!(!bench.writer.is_fresh(closed.after(FRESHNESS)));
}

#[test]
fn an_append_in_flight_is_found_acknowledged() {
    let (mut bench, log) = Bench::in_flight();
    let sent = bench.now;
    bench.wait(Duration::from_millis(500));
    bench.answer(Input::Silent);
    assert_eq!(bench.ask(), Asked::Nothing, "what got no answer is asked after a pause");
    bench.wait(Duration::from_millis(100));
    assert_eq!(bench.ask(), Asked::Last);
    bench.answer(Input::Last(Some((15, log[4].bytes.clone()))));
    assert_eq!(bench.writer.acknowledged(), BatchNumber(5));
    assert!(
        bench.writer.is_fresh(sent.after(Duration::from_millis(999))),
        "as fresh as its sending was"
    );
    assert!(!bench.writer.is_fresh(sent.after(FRESHNESS)), "not as the answer is");
    bench.offer();
    assert_eq!(bench.ask(), Asked::Append { expect: 15, number: 6 });
}

#[test]
fn batches_after_a_lost_tail_are_resent() {
    for (found, sequence) in [(1, 12), (2, 13), (3, 14)] {
        let (mut bench, log) = Bench::in_flight();
        bench.reject_and_find(Some((sequence, &log[found])));
        let mut expect = sequence;
        for next in &log[found + 1..] {
            assert_eq!(
                bench.ask(),
                Asked::Append {
                    expect,
                    number: next.number.0
                }
            );
            expect += 10;
            bench.answer(Input::Appended { sequence: expect });
        }
        assert_eq!(bench.ask(), Asked::Nothing);
        assert_eq!(bench.writer.acknowledged(), BatchNumber(5));
        assert_eq!(bench.writer.wanted(bench.now.after(PACE)), Wanted::Filled);
    }
}

#[test]
fn an_empty_subject_is_refilled_from_the_oldest_kept_batch() {
    let (mut bench, log) = Bench::in_flight();
    bench.reject_and_find(None);
    assert_eq!(bench.ask(), Asked::Append { expect: 0, number: 2 });

    // The same if only an archived batch is left.
    let (mut bench, _) = Bench::in_flight();
    bench.reject_and_find(Some((11, &log[0])));
    assert_eq!(bench.ask(), Asked::Append { expect: 11, number: 2 });
}

#[test]
fn a_void_batch_is_appended_after() {
    let (_, log) = Bench::in_flight();
    let late = batch_behind(tip_of(&log[2]), Epoch(1), false, 99);
    // Never recorded, and void although no opening in the chain is at its number or below.
    let dead_open = batch_behind(tip_of(&log[0]), Epoch(1), true, 98);
    // Sent before this epoch had to read again, and delayed.
    let given_up = batch_behind(tip_of(&log[1]), Epoch(2), true, 97);
    for void in [late, dead_open, given_up] {
        let (mut bench, _) = Bench::in_flight();
        bench.reject_and_find(Some((16, &void)));
        assert_eq!(
            bench.ask(),
            Asked::Append { expect: 16, number: 5 },
            "batch {}",
            void.number
        );
    }
}

#[test]
fn a_repeated_rejection_is_followed_by_a_pause() {
    let (_, log) = Bench::in_flight();
    let void = batch_behind(tip_of(&log[2]), Epoch(1), false, 99);
    let (mut bench, _) = Bench::in_flight();
    // The first one costs no time: another process may have appended just before.
    bench.reject_and_find(Some((16, &void)));
    assert_eq!(bench.ask(), Asked::Append { expect: 16, number: 5 });
    bench.answer(Input::Rejected);
    assert_eq!(
        bench.ask(),
        Asked::Nothing,
        "a log that rejects everything costs no processor"
    );
    let due = bench.writer.deadline(bench.now).expect("it tries again");
    assert!(due > bench.now);
    bench.now = due;
    assert_eq!(bench.ask(), Asked::Last);
}

#[test]
fn a_higher_epoch_ends_the_writer() {
    let (mut bench, log) = Bench::in_flight();
    bench.reject_and_find(Some((16, &batch_behind(tip_of(&log[3]), Epoch(3), true, 0))));
    assert_eq!(
        bench.writer.stopped(),
        Some(&Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
    assert!(!bench.writer.is_fresh(bench.now));
    assert_eq!(bench.ask(), Asked::Nothing);
    assert_eq!(bench.writer.wanted(bench.now.after(LATER)), Wanted::Nothing);
}

#[test]
fn any_other_message_is_an_alarm() {
    let (_, log) = Bench::in_flight();
    let other = batch_behind(tip_of(&log[3]), Epoch(2), false, 77);
    let (mut bench, _) = Bench::in_flight();
    bench.reject_and_find(Some((16, &other)));
    assert!(bench.writer.stopped().is_some_and(Stop::is_alarm));
    let (mut bench, _) = Bench::in_flight();
    bench.answer(Input::Rejected);
    assert_eq!(bench.ask(), Asked::Last);
    bench.answer(Input::Last(Some((16, b"no batch".to_vec()))));
    let found = Found::Stranger { sequence: 16 };
    assert_eq!(
        bench.writer.stopped(),
        Some(&Stop::Contradicted {
            owner: OWNER,
            epoch: Epoch(2),
            found
        })
    );
}

#[test]
fn batches_appended_before_the_opening_are_part_of_the_chain() {
    let log = run(Tip::default(), Epoch(1), 3);
    let late = batch_behind(tip_of(&log[2]), Epoch(1), false, 9);
    let mut bench = Bench::opening(Epoch(2), chain(&log, 0, 3));
    bench.offer();
    assert_eq!(bench.ask(), Asked::Append { expect: 3, number: 4 });
    bench.reject_and_find(Some((4, &late)));
    assert_eq!(
        bench.writer.stopped(),
        Some(&Stop::ReadAgain {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
}

#[test]
fn the_store_decides_on_an_opening() {
    for (refused, stop) in [
        (
            OpeningRefused::Superseded,
            Stop::Replaced {
                owner: OWNER,
                epoch: Epoch(1),
            },
        ),
        (
            OpeningRefused::CursorPassed,
            Stop::ReadAgain {
                owner: OWNER,
                epoch: Epoch(1),
            },
        ),
    ] {
        let mut bench = Bench::opening(Epoch(1), Chain::default());
        let open = bench.offer();
        assert!(matches!(bench.ask(), Asked::Append { .. }));
        bench.answer(Input::Appended { sequence: 1 });
        assert_eq!(bench.ask(), Asked::Look);
        bench.answer(looked(&[open], 1));
        assert!(matches!(bench.ask(), Asked::Record(_)));
        bench.answer(Input::Silent);
        bench.wait(LATER);
        assert!(
            matches!(bench.ask(), Asked::Record(_)),
            "an unknown outcome is asked again"
        );
        bench.answer(Input::OpeningRefused(refused));
        assert_eq!(bench.writer.stopped(), Some(&stop));
    }
}

#[test]
fn a_successor_reads_again_after_the_predecessor_expires() {
    let (log, mut bench, open) = opened();
    assert_eq!(bench.ask(), Asked::Nothing);
    assert_eq!(
        bench.writer.deadline(bench.now),
        Some(bench.now.after(SECOND_READ_DELAY))
    );
    bench.wait(SECOND_READ_DELAY - Duration::from_micros(1));
    assert_eq!(bench.ask(), Asked::Nothing);
    bench.wait(Duration::from_micros(1));
    assert_eq!(bench.ask(), Asked::Look);
    bench.answer(Input::Silent);
    bench.wait(LATER);
    assert_eq!(bench.ask(), Asked::Look, "no answer says nothing");
    bench.answer(looked(&[log, vec![open.clone()]].concat(), 4));
    assert_eq!(bench.ask(), Asked::Record(opening(&open)));
}

#[test]
fn after_a_holder_that_has_ended_the_opening_is_recorded_at_once() {
    let log = run(Tip::default(), Epoch(1), 3);
    let read = Chain {
        former_ended: true,
        ..chain(&log, 1, 13)
    };
    let mut bench = Bench::opening(Epoch(2), read);
    let open = bench.offer();
    assert_eq!(bench.ask(), Asked::Append { expect: 13, number: 4 });
    bench.answer(Input::Appended { sequence: 14 });
    assert!(
        !bench.writer.is_fresh(bench.now),
        "the store does not have the opening yet"
    );
    assert_eq!(bench.ask(), Asked::Record(opening(&open)));
    bench.answer(Input::OpeningRecorded);
    assert!(bench.writer.is_fresh(bench.now));
}

#[test]
fn a_changed_second_read_restarts_the_opening() {
    let (log, _, open) = opened();
    let late = batch_behind(tip_of(&log[2]), Epoch(1), false, 40);
    let with = |batches: &[&FrozenBatch]| log.iter().chain(batches.iter().copied()).cloned().collect::<Vec<_>>();
    let finds = |batches: &[FrozenBatch], sequence| {
        let (_, mut bench, _) = opened();
        bench.wait(SECOND_READ_DELAY);
        assert_eq!(bench.ask(), Asked::Look);
        bench.answer(looked(batches, sequence));
        bench.writer.stopped().cloned()
    };
    let again = Some(Stop::ReadAgain {
        owner: OWNER,
        epoch: Epoch(2),
    });
    assert_eq!(finds(&with(&[&open]), 4), None);
    assert_eq!(finds(&with(&[&open]), 5), again, "the same message elsewhere");
    assert_eq!(finds(&with(&[]), 3), again, "the opening is lost");
    assert_eq!(
        finds(&with(&[&late]), 4),
        again,
        "another batch is where the opening was"
    );
    assert_eq!(finds(&with(&[&late, &open]), 5), again, "something came in between");
    assert_eq!(
        finds(&[log[0].clone(), log[1].clone(), open.clone()], 4),
        again,
        "the chain before it has a hole"
    );
    let higher = batch_behind(tip_of(&open), Epoch(3), true, 41);
    assert_eq!(
        finds(&with(&[&open, &higher]), 5),
        Some(Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
}

/// A log of three batches, and a writer of epoch 2 whose `Open` was acknowledged after them at sequence 4.
fn opened() -> (Vec<FrozenBatch>, Bench, FrozenBatch) {
    let log = run(Tip::default(), Epoch(1), 3);
    let mut bench = Bench::opening(Epoch(2), chain(&log, 0, 3));
    let open = bench.offer();
    assert_eq!(bench.ask(), Asked::Append { expect: 3, number: 4 });
    bench.answer(Input::Appended { sequence: 4 });
    (log, bench, open)
}

#[test]
fn only_the_store_renews_expired_freshness() {
    let (mut bench, log) = Bench::in_flight();
    let confirmed = bench.now;
    bench.wait(LATER);
    bench.answer(Input::Appended { sequence: 15 });
    assert!(
        !bench.writer.is_fresh(bench.now),
        "G2: this acknowledgement comes too late"
    );
    assert_eq!(bench.writer.acknowledged(), BatchNumber(5));
    assert_eq!(bench.ask(), Asked::Confirm);
    let asked = bench.now;
    bench.wait(Duration::from_millis(600));
    bench.answer(Input::EpochConfirmed);
    assert!(
        bench.writer.is_fresh(asked.after(FRESHNESS - Duration::from_micros(1))),
        "E6: from when it asked"
    );
    assert!(!bench.writer.is_fresh(asked.after(FRESHNESS)));
    assert!(asked > confirmed && log.len() == 5);
}

#[test]
fn an_existing_opening_of_this_epoch_is_accepted() {
    let log = run(Tip::default(), Epoch(1), 1);
    let own = opening(&log[0]);
    let mut bench = Bench::opening(Epoch(1), chain(&log, 0, 1));
    assert_eq!(bench.writer.wanted(bench.now), Wanted::Nothing);
    assert_eq!(bench.ask(), Asked::Record(own));
    bench.answer(Input::OpeningRecorded);
    assert!(
        bench.writer.is_fresh(bench.now),
        "the store has just said that the epoch holds"
    );
    assert_eq!(bench.writer.wanted(bench.now), Wanted::Heartbeat);
}

#[test]
fn a_chain_with_a_higher_epoch_cannot_be_taken() {
    let log = run(Tip::default(), Epoch(3), 1);
    let bench = Bench::opening(Epoch(2), chain(&log, 0, 1));
    assert_eq!(
        bench.writer.stopped(),
        Some(&Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
}

#[test]
fn an_owner_of_which_the_store_has_a_higher_opening_cannot_be_taken() {
    // The situation after an accepted hole: the epoch is recorded, and no batch of it was ever written.
    let log = run(Tip::default(), Epoch(1), 1);
    let mut chain = chain(&log, 0, 1);
    chain.openings.push(Opening {
        epoch: Epoch(3),
        number: BatchNumber(2),
        hash: Hash::ZERO,
    });
    let replaced = |epoch| Stop::Replaced { owner: OWNER, epoch };
    let stopped = |epoch| Bench::opening(epoch, chain.clone()).writer.stopped().cloned();
    assert_eq!(stopped(Epoch(2)), Some(replaced(Epoch(2))));
    assert_eq!(stopped(Epoch(4)), None);
}

#[test]
fn a_reconnection_invalidates_the_answer_and_the_epoch() {
    let (mut bench, log) = Bench::in_flight();
    bench.answer(Input::Disconnected);
    assert!(!bench.writer.is_fresh(bench.now));
    bench.answer(Input::Appended { sequence: 15 });
    assert_eq!(
        bench.writer.acknowledged(),
        BatchNumber(4),
        "L5: not believed across a reconnection"
    );
    bench.wait(LATER);
    assert_eq!(bench.ask(), Asked::Nothing, "there is no owner to ask");
    bench.answer(Input::Reconnected);
    assert_eq!(bench.ask(), Asked::Last);
    bench.answer(Input::Last(Some((15, log[4].bytes.clone()))));
    assert_eq!(bench.writer.acknowledged(), BatchNumber(5));
    assert!(!bench.writer.is_fresh(bench.now), "E6");
    assert_eq!(bench.ask(), Asked::Confirm);
    bench.answer(Input::EpochConfirmed);
    bench.offer();
    assert!(matches!(bench.ask(), Asked::Append { number: 6, .. }));
    bench.answer(Input::Appended { sequence: 16 });
    assert!(bench.writer.is_fresh(bench.now));

    // With nothing in flight, only the epoch has to be confirmed.
    bench.answer(Input::Disconnected);
    bench.answer(Input::Reconnected);
    assert_eq!(bench.ask(), Asked::Confirm);
    bench.answer(Input::EpochLost);
    assert_eq!(
        bench.writer.stopped(),
        Some(&Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
}

#[test]
fn batches_are_kept_until_they_are_archived() {
    let (mut bench, log) = Bench::in_flight();
    assert_eq!(bench.writer.kept(BatchNumber(1)), None, "archived before");
    assert!((2..=4).all(|number| bench.writer.kept(BatchNumber(number)).is_some()));
    assert_eq!(
        bench.writer.kept(BatchNumber(5)),
        None,
        "not in the log yet: it fills no hole"
    );
    bench.answer(Input::Appended { sequence: 15 });
    bench.answer(Input::Archived {
        upto: tip_of(&log[3]),
        epoch: Epoch(2),
    });
    assert_eq!(bench.writer.kept(BatchNumber(4)), None);
    assert_eq!(
        bench.writer.kept(BatchNumber(5)).map(|batch| batch.hash),
        Some(log[4].hash)
    );
    bench.answer(Input::Archived {
        upto: tip_of(&log[2]),
        epoch: Epoch(1),
    });
    assert!(bench.writer.stopped().is_none(), "an old announcement says nothing");
}

#[test]
fn a_diverged_archive_ends_the_writer() {
    let ends = |epoch, number: usize| {
        let (mut bench, log) = Bench::in_flight();
        let other = batch_behind(tip_of(&log[number - 2]), epoch, true, 66);
        bench.answer(Input::Archived {
            upto: tip_of(&other),
            epoch,
        });
        bench.writer.stopped().cloned()
    };
    assert_eq!(
        ends(Epoch(3), 4),
        Some(Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
    assert_eq!(
        ends(Epoch(3), 6),
        Some(Stop::Replaced {
            owner: OWNER,
            epoch: Epoch(2)
        })
    );
    assert!(ends(Epoch(2), 4).is_some_and(|stop| stop.is_alarm()));
}

#[test]
fn archive_acknowledgement_requires_the_archive() {
    let mut writer = Writer::take_over(OWNER, Epoch(1), Durability::Archive, Chain::default());
    let now = Mono(1);
    let open = batch_behind(Tip::default(), Epoch(1), true, 0);
    writer.offer(now, open.clone());
    assert!(writer.poll(now).is_some());
    writer.handle(now, Input::Appended { sequence: 1 });
    assert!(matches!(writer.poll(now), Some(Action::LookAgain)));
    writer.handle(now, looked(std::slice::from_ref(&open), 1));
    assert!(matches!(writer.poll(now), Some(Action::RecordOpening(_))));
    writer.handle(now, Input::OpeningRecorded);
    assert_eq!(writer.acknowledged(), BatchNumber(0));
    writer.handle(
        now,
        Input::Archived {
            upto: tip_of(&open),
            epoch: Epoch(1),
        },
    );
    assert_eq!(writer.acknowledged(), BatchNumber(1));
}

#[test]
fn too_many_unarchived_batches_stop_the_input() {
    let (mut bench, mut log) = Bench::in_flight();
    bench.answer(Input::Appended { sequence: 15 });
    let mut sequence = 15;
    while !bench.writer.is_full() {
        bench.now = bench.now.after(PACE);
        let mut batch = batch_behind(bench.writer.tip(), Epoch(2), false, 0);
        batch.bytes = vec![0; 8 << 20];
        bench.writer.offer(bench.now, batch.clone());
        assert!(matches!(bench.ask(), Asked::Append { .. }));
        sequence += 1;
        bench.answer(Input::Appended { sequence });
        log.push(batch);
        assert!((log.len() - 6) << 23 < KEPT_LIMIT, "the limit was passed unnoticed");
    }
    let newest = tip_of(log.last().unwrap());
    bench.answer(Input::Archived {
        upto: newest,
        epoch: Epoch(2),
    });
    assert!(!bench.writer.is_full());
}
