//! Watched values of the login service, and the pause of log-ins, which operators may set.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use annals_login::{Counters, Login};
use annals_wire::control::RealmRoom;
use tokio::sync::watch;

use crate::{
    config::Advice,
    edge::{EdgeHandle, add_watched},
    watched::{Nodes, Registration, Setting, Unit, Watched},
};

/// What the service reports.
#[derive(Debug, Default)]
pub(super) struct Figures {
    counters: Mutex<Counters>,
    attempts: AtomicU64,
    waiting: AtomicU64,
    room: Mutex<Option<RealmRoom>>,
    /// Whether operators have paused log-ins.
    pub(super) is_paused: watch::Sender<bool>,
}

impl Figures {
    /// Takes the figures of the core, and the director's newest about the realm.
    pub(super) fn count(&self, core: &Login, room: Option<RealmRoom>) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = core.counters();
        self.attempts.store(core.attempts() as u64, Ordering::Relaxed);
        self.waiting.store(core.waiting() as u64, Ordering::Relaxed);
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = room;
    }

    fn put(&self, nodes: &mut Nodes<'_>) {
        let counters = *self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = |path: &str, count: u64, about: &str| nodes.put(path, count, Unit::None, about);
        count(
            "in_progress",
            self.attempts.load(Ordering::Relaxed),
            "log-ins in progress",
        );
        count(
            "waiting",
            self.waiting.load(Ordering::Relaxed),
            "places in the queue of this process, since the realm is full",
        );
        if let Some(room) = *self.room.lock().unwrap_or_else(PoisonError::into_inner) {
            count(
                "players",
                room.players,
                "players of the realm, by the director's newest answer",
            );
            count("max_players", room.limit, "maximum players of the realm");
        }
        count("queued", counters.queued, "log-ins that had to wait in the queue");
        count("tickets", counters.tickets, "successful log-ins");
        count(
            "wrong",
            counters.wrong,
            "log-ins refused because the credentials were wrong",
        );
        count(
            "registered",
            counters.registered,
            "accounts that clients have registered",
        );
        count(
            "throttled",
            counters.throttled,
            "log-ins refused because a name or an address was tried too often",
        );
        count(
            "crowded",
            counters.crowded,
            "log-ins refused because too many passwords waited, or too many clients in the queue",
        );
        count(
            "banned",
            counters.banned,
            "log-ins refused because the account is banned",
        );
        count(
            "refused",
            counters.refused,
            "log-ins refused for another reason, such as a pause",
        );
    }
}

/// Adds the values of the service, and those of its edge.
pub(super) fn begin(watched: &Watched, edge: &EdgeHandle) -> (Vec<Registration>, Arc<Figures>) {
    let figures = Arc::default();
    let registrations = add_watched(watched, edge).into_iter().chain(add(watched, &figures));
    (registrations.collect(), figures)
}

fn add(watched: &Watched, figures: &Arc<Figures>) -> [Registration; 2] {
    let (counted, read, checked) = (Arc::clone(figures), Arc::clone(figures), Arc::clone(figures));
    let paused = Setting {
        path: "logins/paused",
        unit: Unit::None,
        about: "whether new log-ins are refused as busy; players who play are not affected",
        allowed: "true or false",
        read: Box::new(move || (*read.is_paused.borrow()).into()),
        check: Box::new(move |text| {
            let is_paused: bool = text
                .trim()
                .parse()
                .map_err(|_| Advice("write true or false".to_owned()))?;
            let figures = Arc::clone(&checked);
            let apply = move || {
                figures.is_paused.send_replace(is_paused);
            };
            Ok((is_paused.into(), Box::new(apply)))
        }),
    };
    [
        watched.add("logins", move |nodes| counted.put(nodes)),
        watched.add_setting(paused),
    ]
}
