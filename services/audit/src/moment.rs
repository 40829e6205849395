//! Parses moments and positions of the archive as users write them.

use async_recursion::async_recursion as boxed;
use std::time::UNIX_EPOCH;

use annals_evidence::Until;
use annals_ids::{BatchNumber, LogPosition, OwnerId, WallTime};

use crate::{AuditError, Index};

/// A moment, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Since the realm was created.
    World(u64),
    /// Since 1970.
    Wall(u64),
}

impl Moment {
    /// As wall time, in a realm created at `began`.
    pub fn wall(self, began: WallTime) -> WallTime {
        match self {
            Moment::World(ms) => WallTime(began.0.saturating_add(ms)),
            Moment::Wall(ms) => WallTime(ms),
        }
    }
}

/// Upper bound of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Moment(Moment),
    /// A batch, with everything archived before it.
    Batch(LogPosition),
}

impl At {
    /// The bound in a realm created at `began`.
    ///
    /// # Errors
    /// When the verified archive has no such batch.
    #[boxed]
    pub async fn until(self, index: &Index, began: WallTime) -> Result<Until, AuditError> {
        match self {
            At::Batch(at) => index.until(at).await,
            At::Moment(moment) => Ok(Until::Wall(moment.wall(began))),
        }
    }
}

/// Parses a moment, or a batch as [`position`] does.
///
/// # Errors
/// What to write instead.
pub fn read_at(text: &str) -> Result<At, String> {
    if text.contains('@') && !text.starts_with('@') {
        return position(text).map(At::Batch);
    }
    read(text).map(At::Moment)
}

/// Parses a batch: `OWNER@BATCH`.
///
/// # Errors
/// What to write instead.
pub fn position(text: &str) -> Result<LogPosition, String> {
    let parts = text
        .split_once('@')
        .and_then(|(owner, batch)| Some((owner.parse().ok()?, batch.parse().ok()?)));
    let (owner, batch) = parts.ok_or("write OWNER@BATCH, such as 3@120")?;
    Ok(LogPosition {
        owner: OwnerId(owner),
        batch: BatchNumber(batch),
    })
}

/// Parses a moment: as printed by `annals log tail`, as `@` and seconds since 1970, or with its date.
///
/// # Errors
/// What to write instead.
pub fn read(text: &str) -> Result<Moment, String> {
    let wrong = || {
        "write HH:MM:SS since the start of the realm, @SECONDS since 1970, or 2026-11-23T10:00:00Z; milliseconds may \
         follow after a point"
            .to_owned()
    };
    if let Some(seconds) = text.strip_prefix('@') {
        return milliseconds(seconds).map(Moment::Wall).ok_or_else(wrong);
    }
    if text.contains('T') {
        let date = humantime::parse_rfc3339(text).ok();
        let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        let ms = since.and_then(|since| u64::try_from(since.as_millis()).ok());
        return ms.map(Moment::Wall).ok_or_else(wrong);
    }
    let parts: Vec<&str> = text.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return Err(wrong());
    };
    let (hours, minutes) = (
        hours.parse::<u64>().ok(),
        minutes.parse::<u64>().ok().filter(|it| *it < 60),
    );
    let ms = || {
        let seconds = milliseconds(seconds).filter(|it| *it < 60_000)?;
        hours?.checked_mul(3_600_000)?.checked_add(minutes? * 60_000 + seconds)
    };
    ms().map(Moment::World).ok_or_else(wrong)
}

/// Parses seconds with at most three decimals, as milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 3 {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_round_trip() {
        assert_eq!(read("00:10:02.350"), Ok(Moment::World(602_350)));
        assert_eq!(read("26:00:00"), Ok(Moment::World(93_600_000)));
        assert_eq!(read("@1795301400.5"), Ok(Moment::Wall(1_795_301_400_500)));
        assert_eq!(read("2026-11-22T00:50:00.5Z"), Ok(Moment::Wall(1_795_308_600_500)));
        for wrong in [
            "",
            "10:02",
            "00:60:00",
            "00:00:60",
            "00:00:01.",
            "00:00:01.0001",
            "@",
            "@x",
            "-1:00:00",
            "2026-11-23",
            "2026-11-23T25:00:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
    #[test]
    fn batches_and_moments_are_distinguished() {
        let batch = LogPosition {
            owner: OwnerId(3),
            batch: BatchNumber(120),
        };
        assert_eq!(read_at("3@120"), Ok(At::Batch(batch)));
        assert_eq!(read_at("@120"), Ok(At::Moment(Moment::Wall(120_000))));
        assert_eq!(read_at("00:02:00"), Ok(At::Moment(Moment::World(120_000))));
        assert!(read_at("3@").is_err() && read_at("yesterday").is_err());
    }
}
