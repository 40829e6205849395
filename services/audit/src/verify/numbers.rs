//! History numbers, and calls that were made and taken, across all logs: unique, and dense except where a log was cut at
//! an accepted hole (rules V1, C1, C2 and C13, F5).

use std::collections::BTreeMap;

use annals_event::{Batch, Body, Header, Link, OwnerState, Subject, Thinned};
use annals_ids::{Address, CallNumber, EntityId, EventNumber, HistoryNumber, LogPosition, OwnerId, Part};

use super::{
    report::{Finding, VerifyReport},
    spans::Spans,
};

/// Maximum calls that wait for the batch that made them. In archive order there are few, unless whole logs are missing.
const MAX_EARLY: usize = 1_000_000;

/// The numbers across logs seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    histories: BTreeMap<(EntityId, Part), Spans>,
    made: BTreeMap<Link, Spans>,
    taken: BTreeMap<Link, Spans>,
    /// Calls that were taken before a batch that made them was seen.
    early: Vec<Taken>,
    /// Calls up to which a receiver waits for none any more (rule C2).
    skipped: Vec<Taken>,
    /// Whether events of cell parts were deleted by retention: then the first numbers of a part without a floor may be
    /// gone.
    deleted: bool,
}

/// A call that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The batch that took it.
    pub at: LogPosition,
    /// The event after it, the first of its effects if it has any.
    pub event: EventNumber,
    pub link: Link,
    pub number: CallNumber,
}

impl Numbers {
    /// Takes a batch.
    pub(super) fn take(&mut self, owner: OwnerId, batch: &Batch, report: &mut VerifyReport) {
        self.note_made(owner, batch, report);
        for (entity, part, number) in histories(batch) {
            self.note_history(owner, batch, (entity, part, number), report);
        }
        self.note_taken(owner, &batch.header, report);
    }

    /// Takes a batch whose events were deleted by retention.
    pub(super) fn take_thinned(&mut self, owner: OwnerId, batch: &Thinned, report: &mut VerifyReport) {
        self.deleted = true;
        for &(link, number) in &batch.calls {
            // The exact event is no longer known.
            let made = Taken {
                at: LogPosition {
                    owner,
                    batch: batch.header.number,
                },
                event: batch.header.first_event,
                link,
                number,
            };
            self.note_one_made(made, report);
        }
        self.note_taken(owner, &batch.header, report);
    }

    /// Takes the state from which a log continues.
    pub(super) fn take_floor(&mut self, state: &OwnerState) {
        let departing = state.departing.values().map(|(entity, image)| (entity, image));
        let here = state.entities.iter().chain(&state.ending);
        for (entity, image) in here.chain(departing) {
            let spans = self.histories.entry((*entity, Part::Cell)).or_default();
            spans.seed(image.history.0, state.owner, state.tail.batch);
        }
    }

    fn note_taken(&mut self, owner: OwnerId, header: &Header, report: &mut VerifyReport) {
        let at = LogPosition {
            owner,
            batch: header.number,
        };
        for consumed in &header.consumed {
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            let taken = Taken {
                at,
                event: EventNumber(header.first_event.0 + u64::from(consumed.at)),
                link,
                number: consumed.number,
            };
            let spans = self.taken.entry(link).or_default();
            if let Some(before) = spans.insert(consumed.number.0, owner, at.batch) {
                report.find(Finding::TakenTwice { taken, before });
            }
            // A client's call is in no log before it is taken (rule C8).
            let by_client = matches!(consumed.from, Address::Client(_));
            if !by_client && !self.is_made(&taken) && self.early.len() < MAX_EARLY {
                self.early.push(taken);
            }
        }
    }

    /// Takes a batch that was appended while others were being read: only what those others depend on.
    pub(super) fn take_later(&mut self, owner: OwnerId, batch: &Batch, report: &mut VerifyReport) {
        self.note_made(owner, batch, report);
        for (entity, part, number) in histories(batch) {
            let spans = self.histories.get(&(entity, part));
            if spans.is_some_and(|spans| number.0 < spans.newest()) {
                self.note_history(owner, batch, (entity, part, number), report);
            }
        }
    }

    /// Removes early calls whose batch has since been seen.
    pub(super) fn forget_made(&mut self) {
        let mut early = std::mem::take(&mut self.early);
        early.retain(|taken| !self.is_made(taken));
        self.early = early;
    }

    /// Whether a finding may be explained by batches that were appended during the reading.
    pub(super) fn is_unsettled(&self) -> bool {
        self.early.iter().any(|taken| !self.is_made(taken)) || self.gaps().next().is_some()
    }

    /// Reports what is missing at the end.
    pub(super) fn finish(&self, report: &mut VerifyReport) {
        report.parts = self.histories.len() as u64;
        for (entity, part, (first, until)) in self.gaps() {
            report.find(Finding::HistoryHole {
                entity,
                part,
                first: HistoryNumber(first),
                until: HistoryNumber(until),
            });
        }
        for &taken in self.early.iter().filter(|taken| !self.is_made(taken)) {
            report.find(Finding::Unmade(taken));
        }
        for &skipped in &self.skipped {
            let Some(made) = self.made.get(&skipped.link) else {
                continue;
            };
            let none = Spans::default();
            let taken = self.taken.get(&skipped.link).unwrap_or(&none);
            if let Some(number) = made.first_beyond(taken).filter(|number| *number <= skipped.number.0) {
                report.find(Finding::Skipped {
                    number: CallNumber(number),
                    at: skipped,
                });
            }
        }
    }

    /// The first gap of each part that has one.
    fn gaps(&self) -> impl Iterator<Item = (EntityId, Part, (u64, u64))> {
        self.histories.iter().filter_map(|(&(entity, part), spans)| {
            let may_begin_late = self.deleted && part == Part::Cell;
            let from = if may_begin_late { spans.oldest() } else { 1 };
            Some((entity, part, spans.first_gap(from)?))
        })
    }

    fn is_made(&self, taken: &Taken) -> bool {
        self.made
            .get(&taken.link)
            .is_some_and(|spans| spans.contains(taken.number.0))
    }

    fn note_made(&mut self, owner: OwnerId, batch: &Batch, report: &mut VerifyReport) {
        for (event, body) in (batch.header.first_event.0..).zip(&batch.events) {
            let this = match body.subject {
                Subject::Owner => Address::Owner(owner),
                Subject::Entity(entity, part) => Address::of(entity, part),
            };
            let (link, number, skips) = match body.body {
                Body::Called { to, number, .. } => (Link { from: this, to }, number, false),
                Body::CallsSkipped { from, upto } => (Link { from, to: this }, upto, true),
                _ => continue,
            };
            let named = Taken {
                at: LogPosition {
                    owner,
                    batch: batch.header.number,
                },
                event: EventNumber(event),
                link,
                number,
            };
            if !skips {
                self.note_one_made(named, report);
            } else if self.skipped.len() < MAX_EARLY {
                self.skipped.push(named);
            }
        }
    }

    fn note_one_made(&mut self, made: Taken, report: &mut VerifyReport) {
        let spans = self.made.entry(made.link).or_default();
        if let Some(before) = spans.insert(made.number.0, made.at.owner, made.at.batch) {
            report.find(Finding::MadeTwice { made, before });
        }
    }

    fn note_history(
        &mut self,
        owner: OwnerId,
        batch: &Batch,
        (entity, part, number): (EntityId, Part, HistoryNumber),
        report: &mut VerifyReport,
    ) {
        let spans = self.histories.entry((entity, part)).or_default();
        if let Some(before) = spans.insert(number.0, owner, batch.header.number) {
            report.find(Finding::HistoryTwice {
                entity,
                part,
                number,
                at: LogPosition {
                    owner,
                    batch: batch.header.number,
                },
                before,
            });
        }
    }
}

/// The history numbers of a batch.
fn histories(batch: &Batch) -> impl Iterator<Item = (EntityId, Part, HistoryNumber)> {
    batch.events.iter().filter_map(|event| match event.subject {
        Subject::Entity(entity, part) => Some((entity, part, event.history?)),
        Subject::Owner => None,
    })
}
