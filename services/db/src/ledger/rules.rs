//! The ledger's rules: orders, deadlines, activations that begin and end. Each is applied completely or not at all.

use std::collections::BTreeMap;

use annals_event::ledger::{Booking, Delivery, LedgerUpdate, Notice, Order, Outcome, Stage, Statement};
use annals_ids::{DatabaseId, EntityId, EntryNumber, LogPosition, NoticeNumber, TransferId, WallTime};
use annals_store::layout::ledger::Head;

use super::{
    books::{Books, Breach, Halt, HolderRow, Life, Once, Open, Row, Stop},
    entry_builder::EntryBuilder,
};

/// An order and its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Position of the batch that contains it.
    pub at: LogPosition,
    /// Wall time of that batch.
    pub wall: WallTime,
    /// Who asks, and the number of the order.
    pub of: TransferId,
    /// The stored entity of the asker; 0 if none.
    pub holder: DatabaseId,
    /// What is asked for.
    pub order: Order,
}

impl Ask {
    /// Identity under which a repeated execution is detected: the order's own id, or that of an operator's action.
    #[must_use]
    pub fn once(&self) -> Once {
        let warrant = self.order.warrant();
        warrant.map_or(Once::Order(self.of), |warrant| Once::Action(warrant.action))
    }

    /// Rows that the execution needs, as far as known in advance; others are requested with [`Halt::Needs`].
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![Row::Head, Row::Done(self.once()), Row::Holder(self.holder)];
        let parts = self.order.parts();
        let slots = || parts.from.into_iter().chain(parts.to);
        if let Some(goods) = parts.goods {
            let kinds = goods.units.keys().chain(goods.items.keys());
            rows.extend(kinds.map(|kind| Row::Supply(*kind)));
            for slot in slots() {
                rows.extend(goods.units.keys().map(|kind| Row::Account(self.holder, slot, *kind)));
            }
        }
        if let Some(assets) = parts.assets {
            for slot in slots() {
                rows.extend(assets.units.keys().map(|kind| Row::Account(self.holder, slot, *kind)));
            }
        }
        let items = parts.assets.iter().flat_map(|assets| assets.items.keys());
        let items = items.chain(parts.restored.into_iter().flat_map(BTreeMap::keys));
        rows.extend(items.map(|serial| Row::Item(*serial)));
        rows.extend(parts.party.map(Row::Holder));
        rows.extend(parts.open.map(|open| Row::Open(open.id())));
        rows
    }
}

impl Books {
    /// Executes or refuses an order; either adds an entry. A repeated order returns the first outcome.
    ///
    /// # Errors
    /// When a row is not loaded, or rows contradict each other; nothing is changed then.
    pub fn execute(&mut self, ask: &Ask) -> Result<(), Halt> {
        let executed = self.try_execute(ask);
        self.commit_or_discard(executed)
    }

    /// Ends a trade or reserved transfer whose deadline has passed.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn expire(&mut self, at: LogPosition, wall: WallTime, id: TransferId) -> Result<(), Halt> {
        let expired = self.try_expire(at, wall, id);
        self.commit_or_discard(expired)
    }

    /// Returns the time from which on something may be due, if that is not after `wall`. The caller must then look up
    /// the earliest deadline from that time on; there is none before it.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn may_expire(&self, wall: WallTime) -> Result<Option<WallTime>, Halt> {
        Ok(self.head()?.due.filter(|due| *due <= wall))
    }

    /// Records that no deadline is before this time, so that no lookup is needed until then.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn set_next_deadline(&mut self, at: WallTime) -> Result<(), Halt> {
        let head = self.head()?;
        self.head.set((), Some(Head { due: Some(at), ..head }));
        self.keep();
        Ok(())
    }

    /// Begins an activation of a stored entity. Returns whether it has holdings that its statement must include; if
    /// not, the statement is written.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn begin(&mut self, holder: DatabaseId, life: Life) -> Result<bool, Halt> {
        let before = self.holder(holder)?.unwrap_or_default();
        if before.deleted || before.life.is_some_and(|held| held.checkout > life.checkout) {
            return Ok(false);
        }
        let after = HolderRow {
            life: Some(life),
            ..before
        };
        self.holders.set(holder, Some(after));
        let has_something = before.held > 0 || before.open > 0;
        if !has_something {
            let mut statement = Statement {
                holder,
                ..Statement::default()
            };
            statement.holdings.version = before.version;
            let stated = self.put_statement(life, statement);
            return self.commit_or_discard(stated).map(|()| false);
        }
        self.keep();
        Ok(true)
    }

    /// Sends an activation its statement.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn state(&mut self, life: Life, statement: Statement) -> Result<(), Halt> {
        let stated = self.put_statement(life, statement);
        self.commit_or_discard(stated)
    }

    /// Ends an activation of a stored entity.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn end(&mut self, holder: DatabaseId, entity: EntityId) -> Result<(), Halt> {
        let Some(before) = self.holder(holder)? else {
            return Ok(());
        };
        if before.life.is_some_and(|life| life.entity == entity) {
            let after = HolderRow { life: None, ..before };
            self.holders.set(holder, Some(after));
            self.keep();
        }
        Ok(())
    }

    /// Records that the log `ledger` contains the notices after `after`, up to and including `upto`, which the outbox
    /// may drop. Those up to `after` were dropped already.
    pub fn took(&mut self, after: NoticeNumber, upto: NoticeNumber) {
        let (begin, end) = self.taken.unwrap_or((after, upto));
        self.taken = Some((begin.min(after), end.max(upto)));
    }

    fn commit_or_discard(&mut self, done: Result<(), Halt>) -> Result<(), Halt> {
        match done {
            Ok(()) => self.keep(),
            Err(_) => self.forget(),
        }
        done
    }

    fn try_execute(&mut self, ask: &Ask) -> Result<(), Halt> {
        if let Some(first) = self.done(ask.once())? {
            return self.resend_outcome(ask, first);
        }
        let mut entry = EntryBuilder::of(self, ask);
        let number = match entry.carry_out(ask) {
            Ok(outcome) => entry.finish(Some(ask.order.clone()), outcome)?,
            Err(Stop::Refused(reason)) => {
                self.forget();
                EntryBuilder::of(self, ask).finish(Some(ask.order.clone()), Outcome::Refused(reason))?
            }
            Err(Stop::Halt(halt)) => return Err(halt),
        };
        self.done.set(ask.once(), Some(number));
        Ok(())
    }

    fn resend_outcome(&mut self, ask: &Ask, first: EntryNumber) -> Result<(), Halt> {
        let outcome = self.entry(first)?.outcome;
        let booking = Booking {
            entry: first,
            of: ask.of,
            outcome,
            change: None,
            trade: None,
            gift: None,
        };
        let delivery = Delivery {
            to: ask.of.asker,
            home: ask.at.owner,
            update: LedgerUpdate::Booking(Box::new(booking)),
        };
        self.put_notice(Notice {
            entry: None,
            deliveries: vec![delivery],
        })
    }

    fn try_expire(&mut self, at: LogPosition, wall: WallTime, id: TransferId) -> Result<(), Halt> {
        let row = Row::Open(id);
        let open = self.opened(id)?.cloned().ok_or(Breach {
            row,
            why: "it has a deadline and is not open",
        })?;
        let holder = match &open {
            Open::Gift(gift) => gift.from,
            Open::Trade(trade) => trade.proposer.holder,
        };
        let mut entry = EntryBuilder::new(self, at, wall, id, holder);
        let ended = match open {
            Open::Gift(gift) => entry.return_gift(gift, Stage::Expired),
            Open::Trade(trade) => entry.return_trade(trade, Stage::Expired),
        };
        match ended {
            Ok(()) => entry.finish(None, Outcome::Expired).map(drop),
            Err(Stop::Halt(halt)) => Err(halt),
            Err(Stop::Refused(_)) => Err(Breach {
                row,
                why: "the open transfer does not hold its assets",
            }
            .into()),
        }
    }

    fn put_statement(&mut self, life: Life, statement: Statement) -> Result<(), Halt> {
        let delivery = Delivery {
            to: life.entity,
            home: life.home,
            update: LedgerUpdate::Statement(Box::new(statement)),
        };
        self.put_notice(Notice {
            entry: None,
            deliveries: vec![delivery],
        })
    }

    pub(super) fn put_notice(&mut self, notice: Notice) -> Result<(), Halt> {
        let mut head = self.head()?;
        head.notice = head.notice.next();
        self.notices.set(head.notice, Some(notice));
        self.head.set((), Some(head));
        Ok(())
    }
}
