//! Requests of cores to log and store, and their answers.

use annals_event::Header;
use annals_ids::Epoch;
use annals_node::writer::{self, Action, Opening, OpeningRefused};
use annals_store::{immediate, layout::owners::OpeningRecord};

use super::{Step, World, directing::connection, hosting::Hold};
use crate::{fault::Trouble, stream::Appended};

/// A core's request to log or store.
#[derive(Debug)]
pub(crate) enum Question {
    /// Append a batch.
    Append { expect: u64, bytes: Vec<u8> },
    /// Read the last batch.
    ReadLast,
    /// Read the current log.
    Look,
    /// Record an opening.
    Record(Opening),
    /// Confirm that the epoch is still granted.
    Confirm,
}

impl Question {
    /// Whether the request goes to the log rather than the store.
    fn is_for_log(&self) -> bool {
        matches!(self, Self::Append { .. } | Self::ReadLast | Self::Look)
    }
}

impl World {
    /// A request reaches log or store; the answer may be lost.
    pub(super) fn ask(&mut self, hold: Hold, question: Question) {
        let patience = self.plan.shape.patience_us;
        let silent = Step::Answer {
            hold,
            input: writer::Input::Silent,
        };
        let away = question.is_for_log() && self.now < self.log_away;
        if away || self.cut_of(hold.process).log || self.befalls(Trouble::LostAppend) {
            self.after(patience, silent);
            return;
        }
        let slow = question.is_for_log() && self.now < self.disk_slow;
        let mut pause = if slow { self.between(0, 3 * patience) } else { 0 };
        if matches!(question, Question::Append { .. }) && self.befalls(Trouble::LateAppend) {
            pause = patience + self.between(0, 2_000_000);
        }
        if pause >= patience {
            if let Question::Append { expect, bytes } = question {
                let owner = hold.owner;
                self.after(pause, Step::LateAppend { owner, expect, bytes });
            }
            self.after(patience, silent);
            return;
        }
        let Some(epoch) = self.epoch_of(hold) else { return };
        let input = match question {
            Question::Append { expect, bytes } => match self.stream_of(hold.owner).append(hold.owner, expect, bytes) {
                Appended::At(sequence) => writer::Input::Appended { sequence },
                Appended::Rejected => writer::Input::Rejected,
                Appended::Torn => {
                    self.after(patience, silent);
                    return;
                }
            },
            Question::ReadLast => writer::Input::Last(self.stream_of(hold.owner).last(hold.owner)),
            Question::Look => writer::Input::Looked {
                batches: self.stream_of(hold.owner).read(hold.owner).0,
                last: self.stream_of(hold.owner).last(hold.owner),
            },
            Question::Record(opening) => self.record(hold, opening),
            Question::Confirm => match immediate(annals_director::openings::confirm(
                &self.store,
                hold.owner,
                epoch,
                &connection(hold.process),
            )) {
                Ok(true) => writer::Input::EpochConfirmed,
                Ok(false) => writer::Input::EpochLost,
                Err(_) => writer::Input::Silent,
            },
        };
        if self.befalls(Trouble::LostAnswer) {
            self.after(patience, silent);
        } else {
            let delay = pause + self.between(200, 1_500);
            self.after(delay, Step::Answer { hold, input });
        }
    }

    fn epoch_of(&mut self, hold: Hold) -> Option<Epoch> {
        self.held(hold).map(|held| held.epoch)
    }

    fn record(&self, hold: Hold, opening: Opening) -> writer::Input {
        use annals_director::openings::{Recorded, record};
        let Opening { epoch, number, hash } = opening;
        let records = [OpeningRecord { epoch, number, hash }];
        let hash_of = |bytes: &[u8]| Header::read(bytes).ok().map(|(_, hash)| hash);
        match immediate(record(
            &self.store,
            self.shard_of(hold.owner),
            hold.owner,
            &records,
            &connection(hold.process),
            hash_of,
        )) {
            Ok(Recorded::Yes) => writer::Input::OpeningRecorded,
            Ok(Recorded::Superseded) => writer::Input::OpeningRefused(OpeningRefused::Superseded),
            Ok(Recorded::CursorPassed) => writer::Input::OpeningRefused(OpeningRefused::CursorPassed),
            Err(_) => writer::Input::Silent,
        }
    }
}

pub(super) fn question(action: &Action<'_>) -> Question {
    match action {
        Action::Append { expect, batch } => Question::Append {
            expect: *expect,
            bytes: batch.bytes.clone(),
        },
        Action::ReadLast => Question::ReadLast,
        Action::LookAgain => Question::Look,
        Action::RecordOpening(opening) => Question::Record(*opening),
        Action::ConfirmEpoch => Question::Confirm,
    }
}
