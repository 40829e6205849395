//! The cell service: holds cell owners.

use std::{num::NonZeroU32, path::Path, sync::Arc};

use annals_cell::{CellInput, CellRole};
use annals_def::Schema;
use annals_node::{Behaviour, Output, writer::Durability};
use thiserror::Error;
use tokio::sync::mpsc;

use crate::{
    health::Health,
    holder::Notice,
    holder_set::{HolderSet, OwnerSetup},
    inquiries::Inquiries,
    outbound::{Outbound, OutboundError},
    process::{self, JoinError, Process, Settings},
};

/// Maximum notices of holders that wait.
const NOTICES: usize = 1_024;

/// Why the service ended.
#[derive(Debug, Error)]
pub enum CellError {
    /// It could not join its realm.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The bus refused a subscription.
    #[error("cannot subscribe to the cell service's subjects on the bus")]
    Listen(#[from] async_nats::SubscribeError),
    /// The services of outbound calls are not valid.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
}

/// Runs the service until the process is asked to stop. Each client is sent at most `downstream` bits per second.
/// `outbound` is the file of the services that the game calls outside the realm.
///
/// # Errors
/// When it cannot join its realm.
pub async fn run(
    (settings, health): (&Settings, &Health),
    schema: Arc<Schema>,
    behaviour: Arc<dyn Behaviour>,
    durability: Durability,
    downstream: Option<NonZeroU32>,
    outbound: Option<&Path>,
) -> Result<(), CellError> {
    let stop = process::stop_signal();
    let outbound = Arc::new(Outbound::open(outbound)?);
    let joining = Process::join((settings, health), "cell", schema);
    let Some(process) = process::unless_stopped(&stop, joining).await else {
        return Ok(());
    };
    let process = Arc::new(process?);
    let (notices, notices_in) = mpsc::channel(NOTICES);
    let map = CellInput::Map;
    let setup = OwnerSetup {
        behaviour,
        durability,
        make: Arc::new(move |state, now| {
            let role = CellRole::take_over(state, now);
            match downstream {
                Some(bits) => role.with_downstream(bits),
                None => role,
            }
        }),
        map,
        address: String::new(),
        outbound,
    };
    let holder_set = HolderSet::new(Arc::clone(&process), setup, notices);
    let inquiries = Inquiries::new(process, holder_set.holders());
    let (kept, ()) = tokio::join!(holder_set.run(stop), carry_out(notices_in, inquiries));
    Ok(kept?)
}

/// Carries out what cells want besides messages to other owners: answers to inquiries.
async fn carry_out(mut notices: mpsc::Receiver<Notice>, inquiries: Inquiries<CellInput>) {
    while let Some(notice) = notices.recv().await {
        let Notice::Outputs(owner, outputs) = notice else {
            continue;
        };
        for output in outputs {
            if let Output::Inquire {
                entity,
                number,
                inquiry,
            } = output
            {
                inquiries.answer(owner, (entity, number), inquiry);
            }
        }
    }
}
