//! Orders of operators for entities that are activated on a base.

use annals_base::{BaseInput, OperatorOrder};
use annals_event::ledger::{Goods, LedgerUpdate, ORDERS_WAITING, Order, Outcome, Warrant};
use annals_ids::{ActionId, DatabaseId, EntityId, Slot, TransferId, TransferNumber};
use annals_node::NotOrdered;

use crate::{
    game::COIN,
    host::{Host, Mood},
    ledger::{Ledger, orders, statement},
    player::log_in,
};

const ACCOUNT: DatabaseId = DatabaseId(5);

pub(crate) fn grant(action: u128, operator: &str) -> Order {
    Order::Grant {
        slot: Slot(0),
        goods: Goods {
            units: [(COIN, 5)].into(),
            items: [].into(),
        },
        restored: [].into(),
        warrant: Box::new(Warrant {
            action: ActionId(action),
            operator: operator.to_owned(),
            tool: "a tool".to_owned(),
            reason: "case 7".to_owned(),
        }),
    }
}

fn ask(host: &mut Host, database: DatabaseId, order: Order) {
    host.role(BaseInput::Order(OperatorOrder {
        request: 9,
        database,
        order,
    }));
}

fn answered(host: &mut Host, database: DatabaseId, order: Order) -> Result<TransferId, NotOrdered> {
    ask(host, database, order);
    host.settle();
    let (request, ordered) = host.ordered.pop().expect("it is answered");
    assert_eq!((request, host.ordered.len()), (9, 0));
    ordered
}

fn of(asker: EntityId, number: u64) -> TransferId {
    let number = TransferNumber(number);
    TransferId { asker, number }
}

#[test]
fn an_order_is_confirmed_after_its_batch_and_recorded_once() {
    let mut host = Host::new();
    let entity = log_in(&mut host, ACCOUNT.0, 1).entity.unwrap().0;
    let mut ledger = Ledger::default();
    let refused = answered(&mut host, ACCOUNT, grant(1, "grace"));
    assert_eq!(refused, Err(NotOrdered::NotNow), "its holdings are not known");
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    host.settle();

    // No answer leaves before the log has acknowledged the order.
    host.mood = Mood::Withholds;
    ask(&mut host, ACCOUNT, grant(1, "grace"));
    host.pass(300);
    assert!(host.ordered.is_empty());
    host.answer_again();
    assert_eq!(host.ordered.pop(), Some((9, Ok(of(entity, 1)))));

    // Repeated, also to the next process, it is the same order as long as the ledger has not answered it.
    assert_eq!(answered(&mut host, ACCOUNT, grant(1, "grace")), Ok(of(entity, 1)));
    host.crash();
    assert_eq!(answered(&mut host, ACCOUNT, grant(1, "grace")), Ok(of(entity, 1)));
    assert_eq!(answered(&mut host, ACCOUNT, grant(2, "grace")), Ok(of(entity, 2)));
    let logged: Vec<Order> = orders(&host).into_iter().map(|(_, order)| order).collect();
    assert_eq!(logged, [grant(1, "grace"), grant(2, "grace")]);
    let booking = ledger.booking(of(entity, 1), Outcome::Posted);
    ledger.send(&mut host, entity, LedgerUpdate::Booking(Box::new(booking)));
    host.settle();
    let view = host.owner.cx().ledger(entity).expect("a base part");
    assert_eq!(view.orders.keys().map(|number| number.0).collect::<Vec<_>>(), [2]);
    assert_eq!(host.folded().hash(), host.owner.state().hash());
}

#[test]
fn forbidden_orders_are_not_recorded() {
    let mut host = Host::new();
    let entity = log_in(&mut host, ACCOUNT.0, 1).entity.unwrap().0;
    let mut ledger = Ledger::default();
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    host.settle();
    let nameless = answered(&mut host, ACCOUNT, grant(1, ""));
    assert!(matches!(nameless, Err(NotOrdered::Refused(_))), "{nameless:?}");
    let own = Order::Mint {
        slot: Slot(0),
        goods: Goods {
            units: [(COIN, 5)].into(),
            items: [].into(),
        },
        reason: "by nobody".to_owned(),
    };
    let own = answered(&mut host, ACCOUNT, own);
    assert!(matches!(own, Err(NotOrdered::Refused(_))), "{own:?}");
    let absent = answered(&mut host, DatabaseId(6), grant(1, "grace"));
    assert_eq!(absent, Err(NotOrdered::NotAlive));
    assert!(orders(&host).is_empty());
    for action in 0..ORDERS_WAITING as u128 {
        assert!(answered(&mut host, ACCOUNT, grant(action, "grace")).is_ok());
    }
    let full = answered(&mut host, ACCOUNT, grant(1_000, "grace"));
    assert_eq!(full, Err(NotOrdered::NotNow), "as many wait as may");
}
