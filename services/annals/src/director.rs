//! Requests of an operator's commands to the realm's director.

use std::time::{Duration, Instant};

use annals_host::{
    nats::Bus,
    process::{AskError, ask_director},
};
use annals_wire::{Subjects, control::DirectorAsk};

/// Timeout of a request. A director that waits for the store answers nothing for up to 5 s, and a standby leads only
/// after a silence of 3 s: db and director may have died together.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// Pause between two attempts.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Sends a request to the director, again until one answers: a request that may be executed twice. The first failure is
/// reported on standard error.
///
/// # Errors
/// The last failure, when all attempts of 15 s have failed; at once, when an answer cannot be decoded.
pub(crate) async fn ask_until_answered<A: prost::Message + Default>(
    bus: &Bus,
    subjects: &Subjects,
    ask: DirectorAsk,
) -> Result<A, AskError> {
    let began = Instant::now();
    let mut is_reported = false;
    loop {
        let failure = match ask_director(bus, subjects, ask.clone()).await {
            Err(failure @ (AskError::Nobody { .. } | AskError::Silent { .. })) => failure,
            ended => return ended,
        };
        if began.elapsed() >= ANSWERED_WITHIN {
            return Err(failure);
        }
        if !is_reported {
            let limit = ANSWERED_WITHIN.as_secs();
            eprintln!("{failure}; asking again for up to {limit} s, since another director may be about to lead");
            is_reported = true;
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}
