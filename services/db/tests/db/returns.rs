//! The ledger's owner: notices in the outbox are delivered once and in order, whichever process holds the owner and
//! whatever is lost.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use annals_db::{LedgerInput, LedgerRole, UNCONFIRMED_LIMIT, no_behaviour};
use annals_def::{Schema, split_mix};
use annals_event::{
    Batch, Body, Call, FrozenBatch, Imprint, OwnerState,
    ledger::{Delivery, LedgerUpdate, Notice, Statement},
};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, Epoch, NoticeNumber, OwnerId, OwnerKind, WallTime, WorldTime,
};
use annals_node::{
    Beginning, Input, Output, Owner,
    time::{Mono, Now},
    writer::{self, Action, Chain, Durability},
};
use annals_wire::bus::{Envelope, Message};

const LEDGER: OwnerId = OwnerId(7);
const HOMES: [OwnerId; 2] = [OwnerId(1), OwnerId(2)];

/// The ledger's owner on a log that may lose appends before it acknowledges them.
struct Host {
    owner: Owner<LedgerRole>,
    epoch: Epoch,
    log: Vec<Vec<u8>>,
    loses: bool,
    now: u64,
    /// Calls that base owners took, by owner.
    taken: BTreeMap<OwnerId, Vec<(CallNumber, EntityId, LedgerUpdate)>>,
    /// Whether base owners confirm them.
    confirms: bool,
}

impl Host {
    fn new() -> Self {
        let mut host = Self {
            owner: take_over(1_000_000, Epoch(1), &[]),
            epoch: Epoch(1),
            log: Vec::new(),
            loses: false,
            now: 1_000_000,
            taken: BTreeMap::new(),
            confirms: true,
        };
        host.pass(100);
        host
    }

    fn crash(&mut self) {
        self.epoch = self.epoch.next();
        self.loses = false;
        self.owner = take_over(self.now, self.epoch, &self.log);
        self.pass(3_000);
    }

    fn give(&mut self, notices: &[(NoticeNumber, Notice)]) {
        let input = Input::Role(LedgerInput::Notices(notices.to_vec()));
        self.owner.handle(self.now(), input);
        self.pump();
    }

    fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(10) {
            self.now += 10_000;
            self.owner.handle(self.now(), Input::Time);
            self.pump();
        }
    }

    fn now(&self) -> Now {
        Now {
            mono: Mono(self.now),
            wall: WallTime(self.now / 1_000),
            world: WorldTime(self.now / 1_000),
        }
    }

    fn pump(&mut self) {
        loop {
            let now = self.now();
            let Some(answer) = self.answer(now) else { break };
            self.owner.handle(now, Input::Log(answer));
        }
        while let Some(output) = self.owner.poll_output(self.now()) {
            let Output::Send { to, envelope } = output else {
                continue;
            };
            let Message::Call(message) = envelope.message else {
                continue;
            };
            let Call::Ledger { to: entity, update } = message.call else {
                panic!("{:?}", message.call)
            };
            assert_eq!(message.link.to, Address::Owner(to));
            let taken = self.taken.entry(to).or_default();
            // As a base does (rule C2).
            let last = taken.last().map_or(CallNumber(0), |(number, ..)| *number);
            assert!(
                message.number <= last.next(),
                "no call is lost between two entities of this owner"
            );
            if message.number == last.next() {
                taken.push((message.number, entity, update));
            }
            if self.confirms {
                let upto = message.number;
                let took = Message::Took {
                    link: message.link,
                    upto,
                };
                let envelope = Envelope {
                    from: to,
                    epoch: Epoch(1),
                    message: took,
                };
                self.owner.handle(self.now(), Input::Bus(envelope));
            }
        }
    }

    fn answer(&mut self, now: Now) -> Option<writer::Input> {
        let last = || self.log.last().map(|bytes| (self.log.len() as u64, bytes.clone()));
        Some(match self.owner.poll_log(now)? {
            Action::Append { batch, .. } if !self.loses => {
                self.log.push(batch.bytes.clone());
                let sequence = self.log.len() as u64;
                writer::Input::Appended { sequence }
            }
            Action::Append { .. } => return None,
            Action::RecordOpening(_) => writer::Input::OpeningRecorded,
            Action::ConfirmEpoch => writer::Input::EpochConfirmed,
            _ if self.loses => return None,
            Action::ReadLast => writer::Input::Last(last()),
            Action::LookAgain => writer::Input::Looked {
                batches: self.log.clone(),
                last: last(),
            },
        })
    }

    /// The log's present state, folded from the beginning.
    fn folded(&self) -> OwnerState {
        fold(&self.log)
    }
}

fn fold(log: &[Vec<u8>]) -> OwnerState {
    let mut state = OwnerState::new(LEDGER, OwnerKind::Ledger);
    for bytes in log {
        state.fold(&Batch::read(bytes).unwrap()).unwrap();
    }
    state
}

fn take_over(now: u64, epoch: Epoch, log: &[Vec<u8>]) -> Owner<LedgerRole> {
    let state = fold(log);
    let beyond = log
        .iter()
        .map(|bytes| FrozenBatch::read(bytes.clone()).unwrap())
        .collect();
    let chain = Chain::whole(writer::Tip::default(), beyond, log.len() as u64);
    let schema = Arc::new(Schema::new(Vec::new(), Vec::new(), Vec::new()));
    let role = LedgerRole::take_over(&state, Mono(now));
    let beginning = Beginning {
        state,
        call_generation: 0,
        chain,
        imprint: Imprint {
            realm: "test".into(),
            owner: LEDGER,
            epoch,
            schema: schema.fingerprint(),
        },
        durability: Durability::Log,
        ids: 0..1,
        schema,
        behaviour: no_behaviour(),
        panics: annals_node::PanicPolicy::Propagate,
        dice: Box::new(split_mix(1)),
        keys: std::collections::BTreeMap::new(),
    };
    let now = Now {
        mono: Mono(now),
        wall: WallTime(now / 1_000),
        world: WorldTime(now / 1_000),
    };
    Owner::take_over(now, role, beginning)
}

/// A statement for one entity on each of some home owners.
fn notice(number: u64, homes: &[OwnerId]) -> (NoticeNumber, Notice) {
    let update = |holder| {
        LedgerUpdate::Statement(Box::new(Statement {
            holder: DatabaseId(holder),
            ..Statement::default()
        }))
    };
    let deliveries = homes.iter().map(|home| Delivery {
        to: EntityId(number),
        home: *home,
        update: update(number),
    });
    let notice = Notice {
        entry: None,
        deliveries: deliveries.collect(),
    };
    (NoticeNumber(number), notice)
}

/// Entities about which an owner was notified, in order.
fn notified(host: &Host, home: OwnerId) -> Vec<u64> {
    let taken = host.taken.get(&home);
    taken.map_or_else(Vec::new, |taken| taken.iter().map(|(_, entity, _)| entity.0).collect())
}

#[test]
fn each_notice_is_delivered_once_and_in_order_despite_loss_and_repetition() {
    for seed in 1..=200 {
        let mut roll = split_mix(seed);
        let mut below = |most: u64| roll() % most;
        let homes: Vec<Vec<OwnerId>> = (0..30)
            .map(|_| HOMES.into_iter().filter(|_| below(2) == 0).collect())
            .collect();
        let outbox: Vec<_> = (1..).zip(&homes).map(|(number, homes)| notice(number, homes)).collect();
        let mut host = Host::new();
        for _ in 0..60 {
            match below(8) {
                0 => host.crash(),
                1 => host.loses = true,
                2 => host.confirms = !host.confirms,
                _ => {
                    // The shell gives what it finds: from any position after the folded part, any number of times.
                    let from = below(outbox.len() as u64) as usize;
                    let upto = from + below((outbox.len() - from) as u64 + 1) as usize;
                    host.give(&outbox[from..upto]);
                }
            }
            host.pass(below(4) * 10);
        }
        host.crash();
        host.confirms = true;
        host.give(&outbox);
        host.pass(12_000);
        for home in HOMES {
            let expected: Vec<u64> = (1..)
                .zip(&homes)
                .filter(|(_, homes)| homes.contains(&home))
                .map(|(number, _)| number)
                .collect();
            assert_eq!(notified(&host, home), expected, "seed {seed}");
        }
        let folded = host.folded();
        assert_eq!(folded.ledger.notice, NoticeNumber(30), "seed {seed}");
        assert!(folded.links.is_settled(), "seed {seed}: every notice was confirmed");
    }
}

#[test]
fn no_notice_precedes_its_batch() {
    let mut host = Host::new();
    host.loses = true;
    host.give(&[notice(1, &HOMES)]);
    host.pass(200);
    assert!(host.taken.is_empty());
    host.crash();
    assert!(host.taken.is_empty(), "the log had lost it, and no sender repeated it");
    host.give(&[notice(1, &HOMES)]);
    host.pass(200);
    assert_eq!(notified(&host, HOMES[0]), [1]);
}

#[test]
fn unconsumed_notices_wait_in_the_outbox() {
    let mut host = Host::new();
    host.confirms = false;
    let outbox: Vec<_> = (1..=UNCONFIRMED_LIMIT as u64 + 10)
        .map(|number| notice(number, &HOMES[..1]))
        .collect();
    for _ in 0..40 {
        host.give(&outbox);
        host.pass(50);
    }
    assert_eq!(host.owner.state().ledger.notice, NoticeNumber(UNCONFIRMED_LIMIT as u64));
    host.confirms = true;
    host.pass(60_000);
    host.give(&outbox);
    host.pass(1_000);
    assert_eq!(
        host.owner.state().ledger.notice,
        NoticeNumber(UNCONFIRMED_LIMIT as u64 + 10)
    );
}

#[test]
fn notices_are_recorded_with_their_calls() {
    let mut host = Host::new();
    host.give(&[notice(1, &HOMES)]);
    host.pass(100);
    let batches: Vec<Batch> = host.log.iter().map(|bytes| Batch::read(bytes).unwrap()).collect();
    let entered = |batch: &&Batch| {
        batch
            .events
            .iter()
            .any(|event| matches!(event.body, Body::Entered { .. }))
    };
    let batch = batches.iter().find(entered).unwrap();
    let called = batch
        .events
        .iter()
        .filter(|event| matches!(event.body, Body::Called { .. }));
    assert_eq!(called.count(), HOMES.len());
}
