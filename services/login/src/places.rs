//! The queue of log-ins that wait until the realm has room: places in their order, each of one account.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_ids::DatabaseId;
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::Queued;

use crate::turns::Host;

/// Maximum places: half of the connections of an edge, so that there are some left for log-ins that begin.
pub const MAX_WAITING: usize = 4_096;

/// How long the place of a client without a connection is kept: a restart of the client, or a change of its network.
pub const PLACE_KEPT: Duration = Duration::from_secs(30);

/// Minimum time between two notifications of a client.
pub const NEWS_EVERY: Duration = Duration::from_secs(2);

/// Maximum time between two notifications of a client, so that it knows that it still waits.
pub const NEWS_AT_LEAST: Duration = Duration::from_secs(10);

/// Number of a place: those with lower ones are admitted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlaceNumber(pub(crate) u64);

/// A place, of one account.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) account: DatabaseId,
    /// The host of the client that has taken it.
    pub(crate) host: Host,
    /// When the client was authenticated.
    pub(crate) since: Mono,
    client: Client,
    /// What the client was sent last, and when.
    last_sent: Option<(Queued, Mono)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Here(ConnectionId),
    /// It has no connection, and may return.
    Away {
        /// When the place is given up.
        until: Mono,
    },
}

impl Place {
    pub(crate) fn new(account: DatabaseId, host: Host, since: Mono, connection: ConnectionId) -> Self {
        Self {
            account,
            host,
            since,
            client: Client::Here(connection),
            last_sent: None,
        }
    }
}

/// The first place whose client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) number: PlaceNumber,
    pub(crate) connection: ConnectionId,
}

/// All places of a process.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: BTreeMap<PlaceNumber, Place>,
    accounts: BTreeMap<DatabaseId, PlaceNumber>,
    /// Number of places per host.
    hosts: BTreeMap<Host, usize>,
    /// When the places of clients without a connection are given up.
    kept: BTreeSet<(Mono, PlaceNumber)>,
    /// When clients may be notified next.
    news_at: Mono,
}

impl Places {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Number of places whose client is connected.
    pub(crate) fn here(&self) -> usize {
        self.places.len() - self.kept.len()
    }

    pub(crate) fn since(&self, number: PlaceNumber) -> Option<Mono> {
        self.places.get(&number).map(|place| place.since)
    }

    /// Adds a place. A host may take half of the room that is left, so that later hosts always find some.
    ///
    /// # Errors
    /// When its host has its share already.
    pub(crate) fn join(&mut self, number: PlaceNumber, place: Place) -> Result<(), Crowded> {
        let of_host = self.hosts.get(&place.host).copied().unwrap_or_default();
        if of_host >= MAX_WAITING.saturating_sub(self.len()).div_ceil(2) {
            return Err(Crowded);
        }
        self.hosts.insert(place.host, of_host + 1);
        self.accounts.insert(place.account, number);
        self.places.insert(number, place);
        Ok(())
    }

    /// The place of an account goes to this connection. Returns also the connection that had it.
    pub(crate) fn take_over(
        &mut self,
        account: DatabaseId,
        connection: ConnectionId,
    ) -> Option<(PlaceNumber, Option<ConnectionId>)> {
        let number = *self.accounts.get(&account)?;
        let place = self.places.get_mut(&number)?;
        place.last_sent = None;
        match std::mem::replace(&mut place.client, Client::Here(connection)) {
            Client::Here(before) => Some((number, Some(before))),
            Client::Away { until } => {
                self.kept.remove(&(until, number));
                Some((number, None))
            }
        }
    }

    /// The client of a place has no connection any more.
    pub(crate) fn leave(&mut self, now: Mono, number: PlaceNumber) {
        if let Some(place) = self.places.get_mut(&number)
            && let Client::Here(_) = place.client
        {
            let until = now.after(PLACE_KEPT);
            place.client = Client::Away { until };
            self.kept.insert((until, number));
        }
    }

    /// Removes a place: its client was admitted or refused.
    pub(crate) fn remove(&mut self, number: PlaceNumber) {
        let Some(place) = self.places.remove(&number) else {
            return;
        };
        if let Client::Away { until } = place.client {
            self.kept.remove(&(until, number));
        }
        self.accounts.remove(&place.account);
        if let Some(of_host) = self.hosts.get_mut(&place.host) {
            *of_host -= 1;
            if *of_host == 0 {
                self.hosts.remove(&place.host);
            }
        }
    }

    /// Gives up the places whose clients have not returned.
    pub(crate) fn expire(&mut self, now: Mono) {
        while let Some(&(until, number)) = self.kept.first()
            && until <= now
        {
            self.remove(number);
        }
    }

    pub(crate) fn first(&self) -> Option<First> {
        self.places.iter().find_map(|(number, place)| match place.client {
            Client::Here(connection) => Some(First {
                number: *number,
                connection,
            }),
            Client::Away { .. } => None,
        })
    }

    /// What the client of a place is sent when it comes.
    pub(crate) fn position_of(&mut self, now: Mono, number: PlaceNumber) -> Option<Queued> {
        let queued = Queued {
            position: self.places.range(..=number).count() as u64,
            length: self.len() as u64,
        };
        self.places.get_mut(&number)?.last_sent = Some((queued, now));
        if self.news_at < now {
            // No client was here to be notified.
            self.news_at = now.after(NEWS_EVERY);
        }
        Some(queued)
    }

    /// The clients that are due to be sent their positions: those for whom something has changed, or that were sent
    /// nothing for long.
    pub(crate) fn news(&mut self, now: Mono) -> Vec<(ConnectionId, Queued)> {
        if now < self.news_at {
            return Vec::new();
        }
        self.news_at = now.after(NEWS_EVERY);
        let length = self.len() as u64;
        let numbered = (1_u64..).zip(self.places.values_mut());
        let news = numbered.filter_map(|(position, place)| {
            let Client::Here(connection) = place.client else {
                return None;
            };
            let queued = Queued { position, length };
            let is_due = place.last_sent.is_none_or(|(sent, at)| {
                let since = now.since(at);
                since >= NEWS_AT_LEAST || (sent != queued && since >= NEWS_EVERY)
            });
            is_due.then(|| {
                place.last_sent = Some((queued, now));
                (connection, queued)
            })
        });
        news.collect()
    }

    /// When [`Places::expire`] or [`Places::news`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let news = (self.here() > 0).then_some(self.news_at);
        let kept = self.kept.first().map(|(until, _)| *until);
        news.into_iter().chain(kept).min()
    }
}

/// There is no room for a further place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowded;
