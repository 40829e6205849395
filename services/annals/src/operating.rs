//! Carries out an operator's order: requested until it succeeds, done once, and confirmed by the ledger.

use std::time::Duration;

use annals_db::{accounts, ledger::read_action};
use annals_event::ledger::{Entry, Order, Warrant};
use annals_host::{
    activation::{self, NotBegun},
    nats::Bus,
    process::{AskError, request},
};
use annals_ids::{ActionId, DatabaseId, OwnerId};
use annals_store::{Store, StoreError};
use annals_wire::{
    Subjects,
    control::{DirectorAsk, DirectorRequest, OperatorOrder, OperatorOrdered, OwnerAddress, PlaceSession},
};
use thiserror::Error;
use tokio::time::{Instant, sleep};

/// Total time of retries. A lost base is replaced within some seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the ledger may take after the order is logged, before the order is requested again.
const LEDGER: Duration = Duration::from_secs(5);

/// Interval between polls, and between requests.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the order is not known to be done.
#[derive(Debug, Error)]
pub(crate) enum NotDone {
    /// There is no such stored entity.
    #[error("the realm's database has no entity {0}")]
    NoEntity(DatabaseId),
    /// It was refused and will not be done.
    #[error("the action was refused: {0}")]
    Refused(String),
    /// The action id was used for another order.
    #[error("action {action} was already used for another order, entry {entry} of the ledger; give a new number")]
    Another {
        action: ActionId,
        /// The entry that it made.
        entry: u64,
    },
    /// The outcome is unknown.
    #[error(
        "no answer within {} s, so the outcome is unknown: repeat with --action {action}, which executes it at most \
         once{}",
        TIMEOUT.as_secs(), last.as_ref().map_or_else(String::new, |last| format!(" ({last})"))
    )]
    Late {
        action: ActionId,
        /// The last obstacle.
        last: Option<String>,
    },
    /// The store cannot be read.
    #[error("the realm's store cannot be read")]
    Store(#[from] StoreError),
}

/// A running realm, as an operator's tool reaches it.
pub(crate) struct Reached<'a> {
    pub(crate) bus: &'a Bus,
    pub(crate) subjects: &'a Subjects,
    pub(crate) store: &'a Store,
}

impl Reached<'_> {
    /// The outcome of an action, if it was carried out. It must have been this order for this entity.
    ///
    /// # Errors
    /// When it was another order, or the store cannot be read.
    pub(crate) async fn done(
        &self,
        holder: DatabaseId,
        (order, warrant): (&Order, &Warrant),
    ) -> Result<Option<Entry>, NotDone> {
        let action = warrant.action;
        let Some(entry) = read_action(self.store, action).await? else {
            return Ok(None);
        };
        if entry.holder == holder && entry.order.as_ref() == Some(order) {
            return Ok(Some(entry));
        }
        let entry = entry.number.0;
        Err(NotDone::Another { action, entry })
    }

    /// Lets a stored entity place an order with an operator's warrant, and waits for the ledger's outcome.
    ///
    /// # Errors
    /// When it is not known to be done.
    pub(crate) async fn carry_out(
        &self,
        holder: DatabaseId,
        (order, warrant): (&Order, &Warrant),
    ) -> Result<Entry, NotDone> {
        if accounts::load(self.store, holder).await?.is_none() {
            return Err(NotDone::NoEntity(holder));
        }
        let (begun, mut last) = (Instant::now(), None);
        while begun.elapsed() < TIMEOUT {
            match self.ask(holder, order).await? {
                Ok(()) => last = Some("the order is in the log, and the ledger has not answered".to_owned()),
                Err(why) => {
                    last = Some(why);
                    sleep(PAUSE).await;
                    continue;
                }
            }
            let asked = Instant::now();
            while asked.elapsed() < LEDGER {
                if let Some(entry) = self.done(holder, (order, warrant)).await? {
                    return Ok(entry);
                }
                sleep(PAUSE).await;
            }
        }
        let action = warrant.action;
        Err(NotDone::Late { action, last })
    }

    /// Has the order recorded by the entity's base, and activates the entity if it is not active. The inner error is
    /// for failures that may pass.
    async fn ask(&self, holder: DatabaseId, order: &Order) -> Result<Result<(), String>, NotDone> {
        let ask = DirectorRequest {
            ask: Some(DirectorAsk::PlaceSession(PlaceSession::default())),
        };
        let director = self.subjects.service("director");
        let place = match request::<OwnerAddress>(self.bus, "director", director, &ask).await {
            Ok(place) if place.owner > 0 => OwnerId(place.owner),
            Ok(_) => return Ok(Err("no base accepts entities at this moment".to_owned())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let home = match activation::begin(self.bus, self.subjects, holder, place).await {
            Ok(begun) => begun.mailbox.home,
            Err(NotBegun::Refused(why)) => return Err(NotDone::Refused(why)),
            Err(late @ NotBegun::Late) => return Ok(Err(late.to_string())),
        };
        let mut bytes = Vec::new();
        order.write(&mut bytes);
        let ask = OperatorOrder {
            database: holder.0,
            order: bytes,
            end_sessions: None,
        };
        let asked: Result<OperatorOrdered, AskError> =
            request(self.bus, "base", self.subjects.orders(home), &ask).await;
        match asked {
            Ok(OperatorOrdered { asker, .. }) if asker > 0 => Ok(Ok(())),
            Ok(OperatorOrdered {
                again: true, refused, ..
            }) => Ok(Err(refused)),
            Ok(OperatorOrdered { refused, .. }) => Err(NotDone::Refused(refused)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}
