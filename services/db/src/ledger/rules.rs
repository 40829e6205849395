//! What the ledger does: orders, deadlines, lives that begin and end. Each is done whole, or not at all.

use annals_event::ledger::{Assets, Booking, Delivery, News, Notice, Order, Outcome, Stage, Statement};
use annals_ids::{DatabaseId, EntityId, EntryNumber, LogPosition, NoticeNumber, Slot, TransferId, WallTime};
use annals_store::layout::ledger::Head;

use super::{
    books::{Books, Breach, Halt, HolderRow, Life, Once, Open, Row, Stop},
    entry_builder::EntryBuilder,
};

/// An order, and what is known of whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The batch that holds it.
    pub at: LogPosition,
    /// What that batch says of the time.
    pub wall: WallTime,
    /// Who asks, and which of its orders it is.
    pub of: TransferId,
    /// The entity of the database that the asker stood for; 0 if none.
    pub holder: DatabaseId,
    /// What is asked for.
    pub order: Order,
}

impl Ask {
    /// By what it is known whether it was executed before: its own id, or that of an operator's action.
    #[must_use]
    pub fn once(&self) -> Once {
        let warrant = self.order.warrant();
        warrant.map_or(Once::Order(self.of), |warrant| Once::Action(warrant.action))
    }

    /// Rows that executing it needs as far as that can be told before; the rest is asked for.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![Row::Head, Row::Done(self.once()), Row::Holder(self.holder)];
        let mut held = |slot: Slot, assets: &Assets| {
            let accounts = assets.units.keys().map(|kind| Row::Account(self.holder, slot, *kind));
            rows.extend(accounts);
            rows.extend(assets.items.keys().map(|serial| Row::Item(*serial)));
        };
        match &self.order {
            Order::Mint { slot, goods, .. } | Order::Grant { slot, goods, .. } => {
                let kinds = goods.units.keys().chain(goods.items.keys());
                rows.extend(kinds.map(|kind| Row::Supply(*kind)));
                rows.extend(goods.units.keys().map(|kind| Row::Account(self.holder, *slot, *kind)));
                if let Order::Grant { restored, .. } = &self.order {
                    rows.extend(restored.keys().map(|serial| Row::Item(*serial)));
                }
            }
            Order::Burn { slot, assets, .. } | Order::Take { slot, assets, .. } => held(*slot, assets),
            Order::Move { from, to, assets } => {
                held(*from, assets);
                held(*to, assets);
            }
            Order::Give { slot, to, assets, .. } => {
                held(*slot, assets);
                rows.push(Row::Holder(*to));
            }
            Order::Post { of } | Order::Void { of } => rows.push(Row::Open(*of)),
            Order::Propose { with, .. } => rows.push(Row::Holder(*with)),
            Order::Offer { trade, slot, assets } | Order::Withdraw { trade, slot, assets } => {
                held(*slot, assets);
                rows.push(Row::Open(trade.0));
            }
            Order::Accept { trade, .. } | Order::Cancel { trade } => rows.push(Row::Open(trade.0)),
        }
        rows
    }
}

impl Books {
    /// Executes an order, or says why nothing is done: an entry either way. Asked again, it tells the first outcome.
    ///
    /// # Errors
    /// When a row is missing, or they contradict one another; nothing is changed then.
    pub fn execute(&mut self, ask: &Ask) -> Result<(), Halt> {
        let executed = self.try_execute(ask);
        self.settle(executed)
    }

    /// Ends something whose time is over.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn expire(&mut self, at: LogPosition, wall: WallTime, id: TransferId) -> Result<(), Halt> {
        let expired = self.try_expire(at, wall, id);
        self.settle(expired)
    }

    /// Since when something may be due at that time. If so, the earliest deadline from then on is to be looked for: none is
    /// before.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn may_expire(&self, wall: WallTime) -> Result<Option<WallTime>, Halt> {
        Ok(self.head()?.due.filter(|due| *due <= wall))
    }

    /// No deadline is before this time: nothing need be looked for until then.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn look_again(&mut self, at: WallTime) -> Result<(), Halt> {
        let head = self.head()?;
        self.head.set((), Some(Head { due: Some(at), ..head }));
        self.keep();
        Ok(())
    }

    /// A life of an entity of the database begins. Whether it has anything that its statement must say: if not, the
    /// statement is written.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn begin(&mut self, holder: DatabaseId, life: Life) -> Result<bool, Halt> {
        let before = self.holder(holder)?.unwrap_or_default();
        if before.life.is_some_and(|held| held.checkout > life.checkout) {
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
            return self.settle(stated).map(|()| false);
        }
        self.keep();
        Ok(true)
    }

    /// Tells a life everything.
    ///
    /// # Errors
    /// As [`Books::execute`].
    pub fn state(&mut self, life: Life, statement: Statement) -> Result<(), Halt> {
        let stated = self.put_statement(life, statement);
        self.settle(stated)
    }

    /// A life of an entity of the database ends.
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

    /// The log `ledger` holds the notices after one up to another: the outbox need not. It holds none up to the first already.
    pub fn took(&mut self, after: NoticeNumber, upto: NoticeNumber) {
        let (begin, end) = self.taken.unwrap_or((after, upto));
        self.taken = Some((begin.min(after), end.max(upto)));
    }

    fn settle(&mut self, done: Result<(), Halt>) -> Result<(), Halt> {
        match done {
            Ok(()) => self.keep(),
            Err(_) => self.forget(),
        }
        done
    }

    fn try_execute(&mut self, ask: &Ask) -> Result<(), Halt> {
        if let Some(first) = self.done(ask.once())? {
            return self.tell_again(ask, first);
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

    fn tell_again(&mut self, ask: &Ask, first: EntryNumber) -> Result<(), Halt> {
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
            news: News::Booking(Box::new(booking)),
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
                why: "what is open does not hold what it says",
            }
            .into()),
        }
    }

    fn put_statement(&mut self, life: Life, statement: Statement) -> Result<(), Halt> {
        let delivery = Delivery {
            to: life.entity,
            home: life.home,
            news: News::Statement(Box::new(statement)),
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
