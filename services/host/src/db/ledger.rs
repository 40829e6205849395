//! Holding the ledger's owner: passes the notices that folding puts into the outbox to its role, until folding has
//! removed them again (rule F7).

use std::sync::Arc;
use std::time::Duration;

use annals_db::{LedgerInput, LedgerRole, adopting::read_unlogged_adoptions, ledger::Outbox, no_behaviour};
use annals_node::writer::Durability;
use annals_store::{Store, StoreError, Transaction, layout::ledger::head_key};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use crate::{
    holder_set::{HolderSet, Holders, OwnerSetup},
    process::Process,
    telemetry::Chain,
    waiting::Wait,
};

/// Time without new notices after which those in the outbox are passed to the role again: it refuses what it has no
/// room for, and an owner that was just taken over has received nothing.
const AGAIN: Duration = Duration::from_millis(500);

/// Maximum notices passed at a time: nearly all are some hundred bytes.
const AT_ONCE: usize = 256;

/// Holds the ledger's owner if the director grants it to this process, until it is asked to stop.
///
/// # Errors
/// When the bus refuses a subscription.
pub(super) async fn hold(process: Process, stop: watch::Receiver<bool>) -> Result<(), async_nats::SubscribeError> {
    let store = process.store.clone();
    // It has outputs for other owners only.
    let (notices, mut unused) = mpsc::channel(1);
    let setup = OwnerSetup {
        behaviour: no_behaviour(),
        // Nothing is sent that could still be lost.
        durability: Durability::Archive,
        make: Arc::new(LedgerRole::take_over),
        map: LedgerInput::Map,
        address: String::new(),
        outbound: Arc::default(),
    };
    let holder_set = HolderSet::new(Arc::new(process), setup, notices);
    let holders = holder_set.holders();
    let unread = async { while unused.recv().await.is_some() {} };
    let keeping = async { tokio::join!(holder_set.run(stop), unread).0 };
    tokio::select! {
        kept = keeping => kept,
        () = carry(&store, &holders) => Ok(()),
    }
}

/// Passes the outbox to the holder, for as long as the process runs.
async fn carry(store: &Store, holders: &Holders<LedgerInput>) {
    let mut outbox = Outbox::default();
    let key = head_key();
    let mut wait = Wait::new(
        "the store",
        "notices of the ledger are delayed until then; check the disk of db",
    );
    loop {
        let carried = match read_head(store).await {
            Ok(head) => carry_some(store, holders, &mut outbox).await.map(|any| (head, any)),
            Err(error) => Err(error),
        };
        match carried {
            Ok((_, true)) => wait.ends(),
            Ok((head, false)) => {
                wait.ends();
                tokio::select! {
                    // An outbox that cannot be watched is polled.
                    Ok(()) = store.watch(&key, head) => {}
                    () = tokio::time::sleep(AGAIN) => {
                        outbox.give_again();
                        send_adoptions(store, holders).await;
                    }
                }
            }
            Err(error) => {
                wait.lasts(Chain(&error));
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Notifies the holder of adopted logs that no log mentions yet (rule F17). Repeated until db has folded that.
async fn send_adoptions(store: &Store, holders: &Holders<LedgerInput>) {
    let Some(owner) = holders.owners().into_iter().next() else {
        return;
    };
    match read_unlogged_adoptions(store).await {
        Ok(adoptions) if adoptions.is_empty() => {}
        Ok(adoptions) => {
            // A holder whose queue is full gets them the next time.
            let _ = holders.send(owner, LedgerInput::Adoptions(adoptions));
        }
        Err(error) => tracing::warn!(error = %Chain(&error), "could not read the adoptions of logs; retrying"),
    }
}

/// Passes the next notices to the holder, if it is here; returns whether there were any.
async fn carry_some(store: &Store, holders: &Holders<LedgerInput>, outbox: &mut Outbox) -> Result<bool, StoreError> {
    let Some(owner) = holders.owners().into_iter().next() else {
        return Ok(false);
    };
    let notices = outbox.read(store, AT_ONCE).await?;
    let Some(last) = notices.last().map(|(number, _)| *number) else {
        return Ok(false);
    };
    if holders.send(owner, LedgerInput::Notices(notices)).is_ok() {
        outbox.give(last);
        Ok(true)
    } else {
        // Its queue is full: it gets them later.
        Ok(false)
    }
}

async fn read_head(store: &Store) -> Result<Option<Bytes>, StoreError> {
    let read = |transaction: Transaction| async move { transaction.get(&head_key()).await };
    store.read(read).await
}
