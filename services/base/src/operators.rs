//! Ledger orders of operators for entities that are activated here, recorded as orders of the entity, with the warrant.
//!
//! The ledger ensures that an action is done once, since an entity may end and be activated elsewhere before the order
//! is repeated. Here an action is only kept from being recorded twice while the ledger has not answered.

use annals_event::ledger::ORDERS_WAITING;
use annals_ids::TransferId;
use annals_node::{NotOrdered, Output, OwnerContext};

use crate::{input::OperatorOrder, role::BaseRole};

impl BaseRole {
    /// Handles an operator's order for a stored entity.
    pub(crate) fn order(&mut self, cx: &mut OwnerContext, wanted: &OperatorOrder) {
        let ordered = try_order(cx, wanted);
        self.counters.ordered += u64::from(ordered.is_ok());
        let request = wanted.request;
        cx.emit(Output::Ordered { request, ordered });
    }
}

fn try_order(cx: &mut OwnerContext, wanted: &OperatorOrder) -> Result<TransferId, NotOrdered> {
    let order = &wanted.order;
    let refused = |why: &str| NotOrdered::Refused(why.to_owned());
    let warrant = order.warrant().ok_or_else(|| refused("the order names no operator"))?;
    order.check().map_err(|reason| refused(&reason.to_string()))?;
    let entity = cx.state().databases.get(&wanted.database).copied();
    let (asker, view) = entity
        .and_then(|entity| Some((entity, cx.ledger(entity)?)))
        .ok_or(NotOrdered::NotAlive)?;
    let is_of_action = |waiting: &annals_event::ledger::Order| {
        let known = waiting.warrant();
        known.is_some_and(|known| known.action == warrant.action)
    };
    if let Some((number, _)) = view.orders.iter().find(|(_, waiting)| is_of_action(waiting)) {
        return Ok(TransferId { asker, number: *number });
    }
    if view.holdings.is_none() || view.orders.len() >= ORDERS_WAITING {
        return Err(NotOrdered::NotNow);
    }
    let mut bytes = Vec::new();
    order.write(&mut bytes);
    cx.needs(bytes.len()).map_err(|_| NotOrdered::NotNow)?;
    cx.order(asker, order.clone()).ok_or(NotOrdered::NotAlive)
}
