//! Waiting until the shards of a live realm have folded what their streams hold.
//!
//! A shard may have archived a batch before another one archived the batch whose call it consumed (rule T3), and a cut
//! has to leave it out then. After this wait the archives have everything that was logged before it (rule T6).

use std::{collections::BTreeMap, time::Duration};

use annals_db::read_cursor;
use annals_event::Header;
use annals_host::log_source::{Source, SourceError};
use annals_ids::{BatchNumber, OwnerId, Shard};
use tokio::time::{Instant, sleep};

/// How long the slowest shard is waited for. In a realm in order it takes a fraction of a second.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Interval of the checks.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until everything that the streams of a live realm of several shards hold now is archived. Returns a note if that
/// takes too long.
///
/// # Errors
/// When store or streams do not answer.
pub async fn wait_until_folded(source: &Source) -> Result<Option<String>, SourceError> {
    if source.live.is_none() || source.logs.len() < 2 {
        return Ok(None);
    }
    let mut ends = read_ends(source).await?;
    let began = Instant::now();
    loop {
        for (owner, (_, end)) in ends.clone() {
            if read_cursor(&source.store, owner).await?.batch >= end {
                ends.remove(&owner);
            }
        }
        let Some((owner, (shard, end))) = ends.first_key_value() else {
            return Ok(None);
        };
        if began.elapsed() >= TIMEOUT {
            return Ok(Some(format!(
                "the db of shard {shard} has not archived batch {end} of owner {owner} in {} s; a restore of this backup \
                 ends before everything that depends on what is missing",
                TIMEOUT.as_secs()
            )));
        }
        sleep(PAUSE).await;
    }
}

/// The last batch in the stream of each log.
async fn read_ends(source: &Source) -> Result<BTreeMap<OwnerId, (Shard, BatchNumber)>, SourceError> {
    let mut ends = BTreeMap::new();
    for (shard, history) in &source.logs {
        for owner in history.owners().await? {
            let last = history.last(owner).await?;
            // A message that is no batch is an alarm of db, and no log has to wait for it.
            let header = last.and_then(|last| Header::read(&last.bytes).ok());
            if let Some((header, _)) = header {
                ends.insert(owner, (*shard, header.number));
            }
        }
    }
    Ok(ends)
}
