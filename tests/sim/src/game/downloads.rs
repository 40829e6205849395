//! Downloads of players: content that its description determines, so that a checker can compare what arrived.

use annals_def::Value;
use annals_event::Outcome;
use annals_node::Context;

/// Continuation number of a download.
pub(super) const STREAMED: u32 = 2;

/// Property of players that counts the downloads that arrived.
pub const FETCHED: &str = "fetched";

/// Game time within which a download has to arrive, milliseconds. Some are not in time, as a client may be away.
const TIMEOUT_MS: u64 = 15_000;

/// Maximum size of the content, bytes: several slots.
const MOST: u64 = 4_000;

/// The content of the download with this description.
///
/// # Panics
/// If the description is not one of this game.
#[must_use]
pub fn content(description: &str) -> Vec<u8> {
    let id: u64 = description.parse().expect("this game describes downloads by numbers");
    let mut dice = annals_def::split_mix(id);
    let size = dice() % MOST;
    (0..size).map(|_| dice().to_le_bytes()[0]).collect()
}

/// Sends something to the player's client.
pub(super) fn stream(context: &mut Context<'_>, id: u32) {
    let description = id.to_string();
    let content = content(&description);
    let note = id.to_le_bytes().to_vec();
    // A player whose client is away for long may have too many already.
    let _ = context.stream_to_client(&description, content, TIMEOUT_MS, (STREAMED, note));
}

/// A download of the player has ended.
pub(super) fn ended(context: &mut Context<'_>, outcome: &Outcome) {
    if outcome.is_err() {
        return;
    }
    let count = match context.get(FETCHED).as_deref() {
        Ok(Value::UInt(count)) => count + 1,
        other => panic!("it is a number: {other:?}"),
    };
    let set = context.set(FETCHED, Value::UInt(count));
    set.unwrap_or_else(|denied| panic!("{denied}"));
}
