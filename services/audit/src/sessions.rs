//! Clients of sessions: account and address at each arrival, as far as they can be read.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_db::personal::{self, Person};
use annals_event::{Body, Consumed, Event};
use annals_evidence::{ShardLeaf, words};
use annals_ids::{Address, DatabaseId, EventNumber, LogPosition, SessionId, WallTime};
use annals_personal::{Admission, NotOpened, PersonalKey, open};
use annals_store::{Store, layout::personal::Forgotten};

use crate::{
    answer::AuditError,
    index::Index,
    rows::{self, Seat},
};

/// The arrival of a session's client, with its position in the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct CameIn {
    pub session: SessionId,
    /// The stored entity. If the record does not name it, the one that an earlier record names, or 0.
    pub person: DatabaseId,
    /// The batch.
    pub at: LogPosition,
    /// The batch's leaf.
    pub leaf: ShardLeaf,
    /// The latest time of a batch of its shard up to there: orders events of different shards.
    pub moment: WallTime,
    /// The event's number in its log.
    pub event: EventNumber,
    /// Number of events before it in the batch.
    pub place: u32,
    /// When the batch was closed, by its writer's clock.
    pub wall: WallTime,
    /// Account and address.
    pub who: Who,
}

/// What can be read about a client that came in.
#[derive(Clone, Debug, PartialEq)]
pub enum Who {
    /// All of it. The name is that with which the session was opened, which may be in an earlier record.
    Known(Admission),
    /// The address was not recorded: the process that took over the session had no key to seal it. The name is from an
    /// earlier record.
    Unwritten(Option<String>),
    /// Nothing, since the person was forgotten.
    Redacted(Forgotten),
    /// Nothing, because the store has no key of this person: it was not restored.
    NoKey,
    /// Nothing, because the sealed data is malformed.
    Unreadable(String),
}

/// The clients of the sessions that an answer names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sessions(BTreeMap<SessionId, Vec<CameIn>>);

impl Index {
    /// The arrivals of a session's client, in the order of the archive, and between shards by the writers' clocks.
    ///
    /// # Errors
    /// When no batch has one, or one is not what was verified.
    #[boxed]
    pub async fn session(&self, archive: &Store, session: SessionId) -> Result<Vec<CameIn>, AuditError> {
        let found = self.came_in(archive, session).await?;
        if found.is_empty() {
            return Err(AuditError::NoSession(session));
        }
        Ok(found)
    }

    /// The clients of the sessions that made these calls.
    ///
    /// # Errors
    /// When a batch is not what was verified.
    pub async fn sessions<'a>(
        &self,
        archive: &Store,
        calls: impl Iterator<Item = &'a Consumed>,
    ) -> Result<Sessions, AuditError> {
        let wanted: BTreeSet<SessionId> = calls.filter_map(session_of).collect();
        let mut sessions = BTreeMap::new();
        for session in wanted {
            sessions.insert(session, self.came_in(archive, session).await?);
        }
        Ok(Sessions(sessions))
    }

    pub(crate) async fn came_in(&self, archive: &Store, session: SessionId) -> Result<Vec<CameIn>, AuditError> {
        let mut found = Vec::new();
        let (mut name, mut known) = (None, DatabaseId(0));
        for (key, value) in self.rows(rows::session(session), usize::MAX).await? {
            let indexed = self.indexed_event(archive, &key, &value).await?;
            let (person, sealed) = match &indexed.event.body {
                Body::Admitted {
                    session: found,
                    person,
                    sealed,
                } if *found == session => (*person, sealed),
                _ => return Err(AuditError::Mislaid(indexed.at)),
            };
            let mut who = match sealed.as_slice() {
                [] => Who::Unwritten(None),
                sealed => read(archive, person, sealed).await?,
            };
            match &mut who {
                Who::Known(Admission { account, .. }) | Who::Unwritten(account) => {
                    name = account.take().or(name);
                    account.clone_from(&name);
                }
                Who::Redacted(_) | Who::NoKey | Who::Unreadable(_) => {}
            }
            // A returning client has the session's secret, so it is the one that the session was opened for.
            if person != DatabaseId(0) {
                known = person;
            }
            found.push(CameIn {
                session,
                person: known,
                at: indexed.at,
                leaf: indexed.seat.leaf,
                moment: indexed.seat.moment,
                event: indexed.number,
                place: indexed.place,
                wall: indexed.wall,
                who,
            });
        }
        Ok(found)
    }
}

/// An event that a row of the index points to.
pub(crate) struct IndexedEvent {
    pub(crate) at: LogPosition,
    pub(crate) seat: Seat,
    pub(crate) place: u32,
    pub(crate) number: EventNumber,
    pub(crate) wall: WallTime,
    pub(crate) event: Event,
}

impl Index {
    /// The event that a row of a session, of a life or of an end points to.
    pub(crate) async fn indexed_event(
        &self,
        archive: &Store,
        key: &[u8],
        value: &[u8],
    ) -> Result<IndexedEvent, AuditError> {
        let place = rows::place_of(key).map_err(AuditError::Index)?;
        let at = rows::decode_position(value).map_err(AuditError::Index)?;
        let (seat, batch) = self.batch(archive, at).await?.ok_or(AuditError::NoBatch(at))?;
        let event = batch.events.into_iter().nth(place as usize);
        Ok(IndexedEvent {
            at,
            seat,
            place,
            number: EventNumber(batch.header.first_event.0 + u64::from(place)),
            wall: batch.header.wall,
            event: event.ok_or(AuditError::Mislaid(at))?,
        })
    }
}

/// Opens a sealed admission, as far as possible.
pub(crate) async fn read(archive: &Store, person: DatabaseId, sealed: &[u8]) -> Result<Who, AuditError> {
    let known = personal::person(archive, person).await.map_err(AuditError::Archive)?;
    Ok(match known {
        Person::Unknown => Who::NoKey,
        Person::Forgotten(forgotten) => Who::Redacted(forgotten),
        Person::Known(key) => opened(&key, person, sealed),
    })
}

fn opened(key: &PersonalKey, person: DatabaseId, sealed: &[u8]) -> Who {
    let plain = match open(key, person, sealed) {
        Ok(plain) => plain,
        Err(NotOpened::OtherKey(..)) => return Who::NoKey,
        Err(error) => return Who::Unreadable(error.to_string()),
    };
    Admission::decode(&plain).map_or_else(|error| Who::Unreadable(error.to_string()), Who::Known)
}

fn session_of(call: &Consumed) -> Option<SessionId> {
    match call.from {
        Address::Client(session) => Some(session),
        Address::Base(_) | Address::Cell(_) | Address::Owner(_) => None,
    }
}

impl Sessions {
    /// The client that made a call, which was taken in the batch of `leaf`, closed at `wall`: its last arrival before.
    /// If the call was taken on another shard than that of the arrival, the times of the two batches are compared.
    #[must_use]
    pub fn behind(&self, call: &Consumed, leaf: ShardLeaf, wall: WallTime) -> Option<&CameIn> {
        let came = self.0.get(&session_of(call)?)?;
        let is_before = |came: &&CameIn| match came.leaf.shard == leaf.shard {
            true => came.leaf.leaf < leaf.leaf || came.leaf == leaf && came.place < call.at,
            false => came.wall <= wall,
        };
        came.iter().rfind(is_before).or(came.first())
    }
}

impl CameIn {
    /// Account and address in words. Text entered by users appears as [`named`] writes it.
    #[must_use]
    pub fn said(&self) -> String {
        let person = self.person;
        let before = |account: &Option<String>| match account {
            Some(name) => format!("{}, ", named(name)),
            None => String::new(),
        };
        match &self.who {
            Who::Known(Admission { account, address }) => {
                format!(
                    "{}stored entity {person}, from {}",
                    before(account),
                    words::text(address)
                )
            }
            Who::Unwritten(account) => {
                let person = match person {
                    DatabaseId(0) => String::new(),
                    person => format!("stored entity {person}, "),
                };
                format!(
                    "{}{person}back from an address that was not written down",
                    before(account)
                )
            }
            Who::Redacted(Forgotten { at, by, reason, .. }) => {
                let (date, by, reason) = (words::date(WallTime(*at)), words::text(by), words::text(reason));
                format!("stored entity {person}; name and address were redacted on {date} by {by}: {reason}")
            }
            Who::NoKey => {
                format!("stored entity {person}; name and address are sealed, and this store does not have the key")
            }
            Who::Unreadable(why) => format!("stored entity {person}; name and address cannot be read: {why}"),
        }
    }
}

/// A login name, delimited from the surrounding text: one with other characters than letters, digits, `_`, `-`, `.` and
/// `@` is put in quotation marks, so that it ends where they do.
#[must_use]
pub fn named(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", words::text(name).replace('"', "\\u{22}")),
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::{BatchNumber, CallNumber, EntityId, LeafIndex, OwnerId, Shard};

    use super::*;

    #[test]
    fn a_client_call_has_the_address_of_the_last_log_in() {
        let session = SessionId(8);
        let seat = |shard, leaf| ShardLeaf {
            shard,
            leaf: LeafIndex(leaf),
        };
        let came = |leaf, place| CameIn {
            session,
            person: DatabaseId(1),
            at: LogPosition {
                owner: OwnerId(3),
                batch: BatchNumber(leaf),
            },
            leaf: seat(Shard(0), leaf),
            moment: WallTime(leaf),
            event: EventNumber(leaf * 10 + u64::from(place)),
            place,
            wall: WallTime(leaf),
            who: Who::NoKey,
        };
        let all = [came(4, 0), came(5, 3), came(7, 0)];
        let sessions = Sessions(BTreeMap::from([(session, all.to_vec())]));
        let call = |at| Consumed {
            at,
            from: Address::Client(session),
            to: Address::Base(EntityId(1)),
            number: CallNumber(1),
            trace: Default::default(),
        };
        for (leaf, at, expected) in [
            (3, 0, 0),
            (4, 1, 0),
            (5, 2, 0),
            (5, 3, 0),
            (5, 4, 1),
            (6, 0, 1),
            (9, 0, 2),
        ] {
            let found = sessions.behind(&call(at), seat(Shard(0), leaf), WallTime(0));
            assert_eq!(found, Some(&all[expected]), "leaf {leaf}, behind {at} events");
        }
        // On another shard, leaves say nothing about the order.
        for (wall, expected) in [(3, 0), (4, 0), (5, 1), (6, 1), (7, 2)] {
            let found = sessions.behind(&call(0), seat(Shard(1), 5), WallTime(wall));
            assert_eq!(found, Some(&all[expected]), "taken on another shard at {wall} ms");
        }
    }

    #[test]
    fn a_name_is_distinguished_from_surrounding_text() {
        for plain in ["gus", "Gus_2", "\u{416}\u{e9}-1.x@y", "\u{8b19}"] {
            assert_eq!(named(plain), plain);
        }
        assert_eq!(
            named("gus, stored entity 101, from 10.0.0.1:5"),
            "\"gus, stored entity 101, from 10.0.0.1:5\""
        );
        assert_eq!(named("a\" b"), "\"a\\u{22} b\"");
        assert_eq!(named("a\n\u{1b}[2J"), "\"a\\u{a}\\u{1b}[2J\"");
        assert_eq!(named(""), "\"\"");
    }
}
