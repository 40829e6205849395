//! Counts of all login processes. Each notifies the others of what it counts, which nobody stores: a guess costs a
//! message, and a good log-in nothing. A process that starts asks one that runs.

use std::time::Duration;

use annals_ids::Hash;
use annals_login::{Counted, Host, Input};
use annals_wire::{
    Subjects,
    control::{self, CountList, CountNews, CountedKind, ListCounts, WireCount, WireCounted},
};
use async_nats::SubscribeError;

use crate::{
    nats::{Bus, Subscription},
    process::{AskError, Process, request},
};

/// Topic of the notifications.
const TOPIC: &str = "counts";

/// The service of requests for counts.
const SERVICE: &str = "login";

/// Where the counts of other processes come from, and go to.
pub(super) struct Counting {
    bus: Bus,
    subjects: Subjects,
    /// This process.
    process: u64,
    /// Notifications.
    pub(super) news: Subscription,
    /// Requests of processes that start.
    pub(super) requests: Subscription,
}

impl Counting {
    /// Begins to listen. Returns also what others have counted before.
    ///
    /// # Errors
    /// When the bus refuses a subscription.
    pub(super) async fn begin(process: &Process) -> Result<(Self, Input), SubscribeError> {
        let (bus, subjects) = (process.bus.clone(), process.subjects.clone());
        let news = bus.subscribe(subjects.news(TOPIC)).await?;
        // Before it can be asked itself.
        let listed: Result<CountList, AskError> =
            request(&bus, SERVICE, subjects.service(SERVICE), &ListCounts {}).await;
        let counts = match listed {
            Ok(list) => list.counts.iter().filter_map(read_count).collect(),
            Err(error) => {
                tracing::debug!(%error, "no other login process has sent its counts");
                Vec::new()
            }
        };
        let requests = bus
            .client()
            .queue_subscribe(subjects.service(SERVICE), SERVICE.to_owned());
        let counting = Self {
            requests: requests.await?.into(),
            process: process.id.0,
            bus,
            subjects,
            news,
        };
        Ok((counting, Input::Learned(counts)))
    }

    /// The input for a notification; `None` if it is of this process, or of a later release.
    pub(super) fn input_of(&self, notification: &[u8]) -> Option<Input> {
        let news: CountNews = control::decode(notification).ok()?;
        let counted = read(news.counted.as_ref()?).filter(|_| news.process != self.process)?;
        match counted {
            Counted::Name(name) if news.forgiven => Some(Input::Forgiven(name)),
            counted => (!news.forgiven).then_some(Input::Counted(counted)),
        }
    }

    /// Notifies the others.
    pub(super) fn publish(&self, counted: &Counted, forgiven: bool) {
        let news = CountNews {
            process: self.process,
            counted: Some(write(counted)),
            forgiven,
        };
        let (client, subject) = (self.bus.client().clone(), self.subjects.news(TOPIC));
        tokio::spawn(async move {
            if let Err(error) = client.publish(subject, control::encode(&news).into()).await {
                tracing::warn!(%error, "could not notify the other login processes of what was counted");
            }
        });
    }

    /// Answers a process that starts.
    pub(super) fn answer(&self, reply: async_nats::Subject, counts: &[(Counted, Duration)]) {
        let counts = counts.iter().map(|(counted, remaining)| WireCount {
            counted: Some(write(counted)),
            remaining: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
        });
        let list = CountList {
            counts: counts.collect(),
        };
        let client = self.bus.client().clone();
        tokio::spawn(async move {
            if let Err(error) = client.publish(reply, control::encode(&list).into()).await {
                tracing::warn!(%error, "could not send an answer");
            }
        });
    }
}

fn write(counted: &Counted) -> WireCounted {
    let bytes = |host: &Host| match host {
        Host::Four(address) => address.to_vec(),
        Host::Six(network) => network.to_vec(),
    };
    let (kind, key) = match counted {
        Counted::Name(name) => (CountedKind::Name, name.0.to_vec()),
        Counted::Host(host) => (CountedKind::Host, bytes(host)),
        Counted::Registration(host) => (CountedKind::Registration, bytes(host)),
    };
    WireCounted { kind: kind.into(), key }
}

fn read(counted: &WireCounted) -> Option<Counted> {
    let key = counted.key.as_slice();
    let host = || match key.len() {
        4 => key.try_into().ok().map(Host::Four),
        _ => key.try_into().ok().map(Host::Six),
    };
    match counted.kind() {
        CountedKind::Unknown => None,
        CountedKind::Name => key.try_into().ok().map(|name| Counted::Name(Hash(name))),
        CountedKind::Host => host().map(Counted::Host),
        CountedKind::Registration => host().map(Counted::Registration),
    }
}

fn read_count(count: &WireCount) -> Option<(Counted, Duration)> {
    Some((read(count.counted.as_ref()?)?, Duration::from_millis(count.remaining)))
}
