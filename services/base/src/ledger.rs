//! The ledger's notices to base parts: recorded, followed up, and passed on to behaviour.

use annals_event::{
    Body,
    ledger::{Booking, LedgerUpdate, LedgerView, Order, Outcome, Stage},
};
use annals_ids::{EntityId, MemberId, TransferId};
use annals_node::{Nowhere, OwnerContext, OwnerError};

use crate::role::BaseRole;

impl BaseRole {
    /// Applies a ledger notice to an entity. One that has ended needs none: its next activation begins with a
    /// statement.
    pub(crate) fn booked(&mut self, cx: &mut OwnerContext, entity: EntityId, update: LedgerUpdate) {
        let Some(view) = cx.ledger(entity) else { return };
        // Check before recording: a defect elsewhere may cost this entity its view, but must not crash the process.
        let mut after = view.clone();
        if after.book(entity, &update).is_err() {
            let what = "the ledger notices do not continue those that the base part received before";
            return cx.report(OwnerError::Impossible { entity, what });
        }
        let answered = match &update {
            LedgerUpdate::Booking(booking) if booking.of.asker == entity => {
                view.orders.get(&booking.of.number).cloned()
            }
            _ => None,
        };
        let restated = restated(cx, entity, &after);
        cx.record_for(entity, false, Body::Booked(update.clone()));
        for member in restated {
            cx.record_for(entity, true, Body::Restated { member });
        }
        for of in to_post(cx, entity, &update) {
            cx.order(entity, Order::Post { of });
        }
        match update {
            LedgerUpdate::Statement(_) => {
                cx.run(entity, &Nowhere, |behaviour, context| behaviour.holdings_known(context));
            }
            LedgerUpdate::Booking(booking) => {
                cx.run(entity, &Nowhere, |behaviour, context| {
                    behaviour.booked(context, &booking, answered.as_ref());
                });
                // Its row is gone, in the transaction that executed the order.
                if (answered, booking.outcome) == (Some(Order::Delete), Outcome::Posted) {
                    self.destroy(cx, entity);
                }
            }
        }
    }
}

/// The account views that clients see and that change with this new ledger view.
fn restated(cx: &OwnerContext, entity: EntityId, after: &LedgerView) -> Vec<MemberId> {
    let (Some(before), Some(entity_type)) = (cx.ledger(entity), cx.entity_type(entity)) else {
        return Vec::new();
    };
    let shown = entity_type
        .properties
        .iter()
        .filter(|property| property.distribution.is_shown());
    let differs = |account| before.value(account) != after.value(account);
    let changed = shown.filter(|property| property.account.is_some_and(differs));
    changed.map(|property| property.index).collect()
}

/// The reserved transfers that the entity completes now: they are recorded as having left it, so no one can see their
/// assets with it any more. A statement lists those that an earlier activation left behind.
fn to_post(cx: &OwnerContext, entity: EntityId, update: &LedgerUpdate) -> Vec<TransferId> {
    match update {
        LedgerUpdate::Booking(booking) => reserved(booking, entity).into_iter().collect(),
        LedgerUpdate::Statement(statement) => {
            let ordered = cx.ledger(entity).map(|view| &view.orders);
            let is_posted = |of: &TransferId| {
                let mut orders = ordered.into_iter().flat_map(|orders| orders.values());
                orders.any(|order| matches!(order, Order::Post { of: posted } if posted == of))
            };
            let gifts = statement.gifts.values();
            let open = gifts.filter(|gift| gift.stage == Stage::Open && gift.from == statement.holder);
            open.map(|gift| gift.id).filter(|of| !is_posted(of)).collect()
        }
    }
}

fn reserved(booking: &Booking, entity: EntityId) -> Option<TransferId> {
    let gift = booking.gift.as_ref()?;
    let is_new = booking.outcome == Outcome::Pending && gift.stage == Stage::Open;
    (is_new && booking.of == gift.id && gift.id.asker == entity).then_some(gift.id)
}
