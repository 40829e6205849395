//! A second ledger, as simple as possible: holdings are a list, each order is tried on a copy, and the restrictions are
//! written down here once more. It processes the archive in order.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{
    Batch, Body, OwnerState, Subject,
    ledger::{AssetSlot, Assets, Goods, Holder, Order, Outcome, RefusalReason, Side},
};
use annals_ids::{
    ActionId, AssetKind, BatchNumber, DatabaseId, EntityId, OwnerId, OwnerKind, Serial, Slot, TradeId, TransferId,
    WallTime,
};

/// Places of units and items.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wealth {
    pub(crate) units: BTreeMap<(AssetSlot, AssetKind), i128>,
    pub(crate) items: BTreeMap<Serial, (AssetKind, AssetSlot)>,
}

#[derive(Clone, Debug)]
enum Open {
    Gift {
        from: u64,
        to: u64,
        at: AssetSlot,
    },
    Trade {
        sides: [u64; 2],
        version: u64,
        accepted: [bool; 2],
    },
}

/// Expected content of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) of: TransferId,
    pub(crate) outcome: Outcome,
}

#[derive(Default)]
pub(crate) struct Oracle {
    states: BTreeMap<OwnerId, OwnerState>,
    pub(crate) wealth: Wealth,
    open: BTreeMap<TransferId, (WallTime, Open)>,
    alive: BTreeMap<u64, EntityId>,
    known: BTreeSet<u64>,
    serials: u64,
    natures: BTreeMap<AssetKind, bool>,
    /// Operators' actions that were executed.
    pub(crate) acted: BTreeSet<ActionId>,
    /// Number of repeated actions.
    pub(crate) repeated: usize,
    /// Number of items restored.
    pub(crate) restored: usize,
    pub(crate) says: Vec<Said>,
    /// The batches at which something expired, if it is not at the first that could.
    pub(crate) expiring: Option<BTreeSet<(OwnerId, BatchNumber)>>,
}

fn stored(holder: u64, slot: Slot) -> AssetSlot {
    AssetSlot {
        holder: Holder::Stored(DatabaseId(holder)),
        slot,
    }
}

fn world() -> AssetSlot {
    AssetSlot {
        holder: Holder::World,
        slot: Slot(0),
    }
}

fn pending(id: TransferId, slot: Slot) -> AssetSlot {
    AssetSlot {
        holder: Holder::Pending(id),
        slot,
    }
}

fn table(id: TransferId, side: usize, slot: Slot) -> AssetSlot {
    AssetSlot {
        holder: Holder::Trade(TradeId(id), [Side::Proposer, Side::Partner][side]),
        slot,
    }
}

impl Wealth {
    /// All assets of a holder, by place.
    fn of(&self, is_its: impl Fn(&Holder) -> bool) -> Vec<(AssetSlot, Assets)> {
        let mut found: BTreeMap<AssetSlot, Assets> = BTreeMap::new();
        for ((place, kind), amount) in self.units.iter().filter(|((place, _), _)| is_its(&place.holder)) {
            let amount = u64::try_from(*amount).expect("nobody owes");
            found.entry(*place).or_default().units.insert(*kind, amount);
        }
        for (serial, (kind, place)) in self.items.iter().filter(|(_, (_, place))| is_its(&place.holder)) {
            found.entry(*place).or_default().items.insert(*serial, *kind);
        }
        found.into_iter().filter(|(_, assets)| !assets.is_empty()).collect()
    }

    fn shift(&mut self, from: AssetSlot, to: AssetSlot, assets: &Assets) -> Result<(), RefusalReason> {
        for (kind, amount) in &assets.units {
            let held = self.units.get(&(from, *kind)).copied().unwrap_or(0);
            if from.holder != Holder::World && held < i128::from(*amount) {
                return Err(RefusalReason::NotHeld);
            }
            *self.units.entry((from, *kind)).or_default() -= i128::from(*amount);
            *self.units.entry((to, *kind)).or_default() += i128::from(*amount);
        }
        for (serial, kind) in &assets.items {
            if self.items.get(serial) != Some(&(*kind, from)) {
                return Err(RefusalReason::NotHeld);
            }
            self.items.insert(*serial, (*kind, to));
        }
        self.units.retain(|_, amount| *amount != 0);
        Ok(())
    }
}

impl Oracle {
    /// Processes the next batch of the archive.
    pub(crate) fn take(&mut self, owner: OwnerId, kind: OwnerKind, batch: &Batch) {
        let at = (owner, batch.header.number);
        // A batch without orders may leave it to a later one, if the shards are folded at the same time (rule T2).
        if self.expiring.as_ref().is_none_or(|expiring| expiring.contains(&at)) {
            self.expire(batch.header.wall);
        }
        let mut happened: Vec<(EntityId, u64, Body)> = Vec::new();
        let state = self.states.entry(owner).or_insert_with(|| OwnerState::new(owner, kind));
        let noted = state.fold_with(batch, |state, event| {
            if let Subject::Entity(entity, _) = event.subject {
                let base = state.entities.get(&entity).and_then(|image| image.base());
                happened.push((entity, base.map_or(0, |base| base.database.0), event.body.clone()));
            }
        });
        noted.expect("it was archived");
        for (entity, holder, body) in happened {
            match body {
                Body::BaseCreated(creation) if creation.database.0 != 0 => self.live(creation.database.0, entity),
                Body::Stored { database } if database.0 != holder => self.live(database.0, entity),
                Body::Destroyed if self.alive.get(&holder) == Some(&entity) => drop(self.alive.remove(&holder)),
                Body::Ordered { number, order } => {
                    let of = TransferId { asker: entity, number };
                    self.ask(of, holder, batch.header.wall, &order);
                }
                _ => {}
            }
        }
    }

    fn live(&mut self, holder: u64, entity: EntityId) {
        self.alive.insert(holder, entity);
        self.known.insert(holder);
    }

    fn expire(&mut self, wall: WallTime) {
        let mut due: Vec<(WallTime, TransferId)> = Vec::new();
        due.extend(self.open.iter().map(|(id, (deadline, _))| (*deadline, *id)));
        due.retain(|(deadline, _)| *deadline <= wall);
        due.sort_unstable();
        for (_, id) in due {
            self.give_back(id);
            let outcome = Outcome::Expired;
            self.says.push(Said { of: id, outcome });
        }
    }

    fn give_back(&mut self, id: TransferId) {
        let (_, open) = self.open.remove(&id).expect("it is open");
        let of_it = |holder: &Holder| match holder {
            Holder::Pending(of) => *of == id,
            Holder::Trade(of, _) => of.0 == id,
            _ => false,
        };
        for (place, assets) in self.wealth.of(of_it) {
            let whose = match (&open, place.holder) {
                (Open::Trade { sides, .. }, Holder::Trade(_, side)) => sides[usize::from(side == Side::Partner)],
                (Open::Gift { from, .. }, _) => *from,
                _ => unreachable!("a trade has tables"),
            };
            self.wealth
                .shift(place, stored(whose, place.slot), &assets)
                .expect("it is there");
        }
    }

    fn ask(&mut self, of: TransferId, holder: u64, wall: WallTime, order: &Order) {
        let action = match order {
            Order::Grant { warrant, .. } | Order::Take { warrant, .. } => Some(warrant.action),
            _ => None,
        };
        if action.is_some_and(|action| !self.acted.insert(action)) {
            self.repeated += 1;
            return;
        }
        let before = (
            self.wealth.clone(),
            self.open.clone(),
            self.serials,
            self.natures.clone(),
        );
        let outcome = self.carry_out(of, holder, wall, order).unwrap_or_else(|reason| {
            (self.wealth, self.open, self.serials, self.natures) = before;
            Outcome::Refused(reason)
        });
        self.says.push(Said { of, outcome });
    }

    fn carry_out(
        &mut self,
        of: TransferId,
        holder: u64,
        wall: WallTime,
        order: &Order,
    ) -> Result<Outcome, RefusalReason> {
        if holder == 0 {
            return Err(RefusalReason::NotStored);
        }
        if self.alive.get(&holder) != Some(&of.asker) {
            return Err(RefusalReason::NotAlive);
        }
        order.check()?;
        let lasts = |deadline: &WallTime| *deadline > wall;
        match order {
            Order::Mint { slot, goods, .. } => {
                let assets = self.make(goods)?;
                self.wealth.shift(world(), stored(holder, *slot), &assets)?;
            }
            Order::Grant {
                slot, goods, restored, ..
            } => self.grant(stored(holder, *slot), goods, restored)?,
            Order::Burn { slot, assets, .. } | Order::Take { slot, assets, .. } => {
                self.wealth.shift(stored(holder, *slot), world(), assets)?;
            }
            Order::Move { from, to, assets } => {
                self.wealth.shift(stored(holder, *from), stored(holder, *to), assets)?;
            }
            Order::Give {
                slot,
                to,
                assets,
                expires,
            } => {
                self.meet(holder, to.0, expires, wall)?;
                self.wealth.shift(stored(holder, *slot), pending(of, *slot), assets)?;
                let gift = Open::Gift {
                    from: holder,
                    to: to.0,
                    at: pending(of, *slot),
                };
                self.open.insert(of, (*expires, gift));
                return Ok(Outcome::Pending);
            }
            Order::Post { of } => {
                let Some((deadline, Open::Gift { from, to, at })) = self.open.get(of).cloned() else {
                    return Err(RefusalReason::NotOpen);
                };
                if from != holder {
                    return Err(RefusalReason::NotParty);
                }
                assert!(lasts(&deadline), "what is due has expired");
                let assets = self.wealth.of(|holder| *holder == at.holder).remove(0).1;
                self.wealth.shift(at, stored(to, Slot(0)), &assets)?;
                self.open.remove(of);
            }
            Order::Void { of } => match self.open.get(of) {
                Some((_, Open::Gift { from, to, .. })) if [*from, *to].contains(&holder) => {
                    self.give_back(*of);
                    return Ok(Outcome::Voided);
                }
                Some((_, Open::Gift { .. })) => return Err(RefusalReason::NotParty),
                _ => return Err(RefusalReason::NotOpen),
            },
            trading => return self.trade(of, holder, wall, trading),
        }
        Ok(Outcome::Posted)
    }

    fn trade(&mut self, of: TransferId, holder: u64, wall: WallTime, order: &Order) -> Result<Outcome, RefusalReason> {
        match order {
            Order::Propose { with, expires } => {
                self.meet(holder, with.0, expires, wall)?;
                let trade = Open::Trade {
                    sides: [holder, with.0],
                    version: 0,
                    accepted: [false; 2],
                };
                self.open.insert(of, (*expires, trade));
                return Ok(Outcome::Pending);
            }
            Order::Offer { trade, slot, assets } => {
                let side = self.side(trade.0, holder)?;
                self.wealth
                    .shift(stored(holder, *slot), table(trade.0, side, *slot), assets)?;
                self.renew(trade.0);
            }
            Order::Withdraw { trade, slot, assets } => {
                let side = self.side(trade.0, holder)?;
                self.wealth
                    .shift(table(trade.0, side, *slot), stored(holder, *slot), assets)?;
                self.renew(trade.0);
            }
            Order::Accept { trade, version } => self.accept(trade.0, holder, version.0)?,
            Order::Cancel { trade } => {
                self.side(trade.0, holder)?;
                self.give_back(trade.0);
                return Ok(Outcome::Voided);
            }
            _ => unreachable!("all others are done with"),
        }
        Ok(Outcome::Posted)
    }

    fn grant(
        &mut self,
        to: AssetSlot,
        goods: &Goods,
        restored: &BTreeMap<Serial, AssetKind>,
    ) -> Result<(), RefusalReason> {
        let gone = |(serial, kind): (&Serial, &AssetKind)| self.wealth.items.get(serial) == Some(&(*kind, world()));
        if !restored.iter().all(gone) {
            return Err(RefusalReason::NotHeld);
        }
        let mut assets = self.make(goods)?;
        assets.items.extend(restored);
        self.wealth.shift(world(), to, &assets)?;
        self.restored += restored.len();
        Ok(())
    }

    fn make(&mut self, goods: &Goods) -> Result<Assets, RefusalReason> {
        let natures = goods.units.keys().map(|kind| (*kind, false));
        for (kind, is_items) in natures.chain(goods.items.keys().map(|kind| (*kind, true))) {
            if *self.natures.entry(kind).or_insert(is_items) != is_items {
                return Err(RefusalReason::OtherNature);
            }
        }
        let mut assets = Assets {
            units: goods.units.clone(),
            ..Assets::default()
        };
        for (kind, count) in &goods.items {
            for _ in 0..*count {
                self.serials += 1;
                self.wealth.items.insert(Serial(self.serials), (*kind, world()));
                assets.items.insert(Serial(self.serials), *kind);
            }
        }
        Ok(assets)
    }

    fn meet(&self, holder: u64, other: u64, expires: &WallTime, wall: WallTime) -> Result<(), RefusalReason> {
        if holder == other {
            return Err(RefusalReason::Oneself);
        }
        if !self.known.contains(&other) {
            return Err(RefusalReason::UnknownHolder);
        }
        if *expires <= wall || expires.0 - wall.0 > annals_event::ledger::LONGEST_OPEN {
            return Err(RefusalReason::BadDeadline);
        }
        let involved = |holder: u64| {
            let is_in = |open: &&(WallTime, Open)| match &open.1 {
                Open::Gift { from, .. } => *from == holder,
                Open::Trade { sides, .. } => sides.contains(&holder),
            };
            self.open.values().filter(is_in).count()
        };
        assert!(
            involved(holder) < 32 && involved(other) < 32,
            "the play opens less than that"
        );
        Ok(())
    }

    fn side(&self, trade: TransferId, holder: u64) -> Result<usize, RefusalReason> {
        match self.open.get(&trade) {
            Some((_, Open::Trade { sides, .. })) => {
                let side = sides.iter().position(|side| *side == holder);
                side.ok_or(RefusalReason::NotParty)
            }
            _ => Err(RefusalReason::NotOpen),
        }
    }

    fn renew(&mut self, trade: TransferId) {
        if let Some((_, Open::Trade { version, accepted, .. })) = self.open.get_mut(&trade) {
            *version += 1;
            *accepted = [false; 2];
        }
    }

    fn accept(&mut self, id: TransferId, holder: u64, seen: u64) -> Result<(), RefusalReason> {
        let side = self.side(id, holder)?;
        let Some((
            _,
            Open::Trade {
                sides,
                version,
                accepted,
            },
        )) = self.open.get_mut(&id)
        else {
            unreachable!("it has sides")
        };
        if *version != seen {
            return Err(RefusalReason::Stale);
        }
        accepted[side] = true;
        if !accepted.iter().all(|accepted| *accepted) {
            return Ok(());
        }
        let sides = *sides;
        for (side, other) in [(0, 1), (1, 0)] {
            let on_table = table(id, side, Slot(0)).holder;
            for (place, assets) in self.wealth.of(|holder| *holder == on_table) {
                self.wealth.shift(place, stored(sides[other], Slot(0)), &assets)?;
            }
        }
        self.open.remove(&id);
        Ok(())
    }

    /// Whether nothing is reserved or in a trade.
    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }
}

/// Outcomes that every set of generated plays must have.
pub(crate) const EXPECTED_OUTCOMES: [&str; 6] = [
    "Posted",
    "Pending",
    "Voided",
    "Expired",
    "Refused(NotHeld)",
    "Refused(Stale)",
];

/// Each of these outcomes must have occurred more than ten times, or the plays do not test it.
pub(crate) fn assert_frequent(outcomes: &BTreeMap<String, usize>, expected: &[&str]) {
    for often in expected {
        assert!(
            outcomes.get(*often).is_some_and(|times| *times > 10),
            "{often} is rare in {outcomes:?}"
        );
    }
}
