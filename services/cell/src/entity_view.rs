//! The view of one entity by one client (BigWorld: entity cache): what the client has, and the items to send next.

use std::cmp::Ordering;

use annals_def::LodLevel;
use annals_event::{Body, Driver, Place};
use annals_ids::{EntityId, HistoryNumber, Position, SessionId};
use annals_node::{Showing, Viewer, shown_upto, time::Mono};
use annals_space::Priority;
use annals_wire::client::{Move, ViewItem};

use crate::{
    driving::Driving,
    known_entity::{KnowledgeView, KnownEntity},
    movement_encoder::{Parts, Sighting},
};

/// After this many history numbers that concerned only others, a client is sent an empty update, so that its stamp
/// stays within the kept history. Half of that history.
const QUIET: u64 = annals_event::HISTORY_KEPT as u64 / 2;

/// An entity in the view, or about to enter it.
#[derive(Clone, Debug)]
pub(crate) struct EntityView {
    pub(crate) entity: EntityId,
    /// Determines when its turn comes.
    pub(crate) priority: Priority,
    /// `None` until its first turn.
    pub(crate) client_state: Option<ClientState>,
}

/// What a client has of an entity.
#[derive(Clone, Debug)]
pub(crate) struct ClientState {
    /// The history number up to which the client has it.
    pub(crate) upto: HistoryNumber,
    /// The local tick at which its place was last sent; `None` if it was not sent in this view.
    pub(crate) sent_tick: Option<u64>,
    /// For each level of detail finer than the current one, the nearest first, the history number at which the client
    /// has the properties of that level.
    pub(crate) finer: Vec<HistoryNumber>,
    /// Where the client has it, if the client moves it, as far as it was sent that.
    pub(crate) driving: Option<Box<Driving>>,
}

impl ClientState {
    /// What a client reports that it has, before anything was sent in this view.
    pub(crate) fn from_report(now: Mono, upto: HistoryNumber, finer: Vec<HistoryNumber>, drives: bool) -> Self {
        Self {
            upto,
            sent_tick: None,
            finer,
            driving: drives.then(|| Box::new(Driving::begun(now))),
        }
    }

    /// Whether the client moves it, as far as the client was sent.
    pub(crate) fn drives(&self) -> bool {
        self.driving.is_some()
    }

    /// Whether the client, which moves the entity, has left it somewhere else than at `place`.
    fn has_strayed(&self, now: Mono, place: Place) -> bool {
        self.driving
            .as_ref()
            .is_some_and(|driving| driving.has_strayed(now, place))
    }

    /// Records that the client is sent the place of the entity.
    fn record_placement(&mut self, now: Mono, place: Place) {
        if let Some(driving) = &mut self.driving {
            driving.record_placement(now, place);
        }
    }

    /// The current level of detail.
    fn level(&self) -> u8 {
        u8::try_from(self.finer.len()).unwrap_or(u8::MAX)
    }
}

/// The client's own entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// Its id.
    pub(crate) entity: EntityId,
    /// The client's session.
    pub(crate) session: SessionId,
    /// Whether it was moved by something other than its client.
    pub(crate) displaced: bool,
    pub(crate) position: Option<Position>,
}

impl Own {
    /// The relation of the client to an entity.
    fn viewer_of(&self, entity: EntityId) -> Viewer {
        if entity == self.entity {
            Viewer::Own
        } else {
            Viewer::Others
        }
    }

    /// Whether the client moves an entity with this driver.
    fn drives(&self, entity: EntityId, driver: Driver) -> bool {
        match driver {
            Driver::Client => entity == self.entity,
            Driver::Server => false,
            Driver::ClientOf(other) => other == self.entity,
        }
    }
}

/// What a client is sent at one tick.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    /// Items that must arrive.
    pub(crate) items: Vec<ViewItem>,
    /// Movements that are worth having only now.
    pub(crate) moves: Vec<Sighting>,
}

impl Updates {
    /// Approximate size in bytes of the items from this index on.
    pub(crate) fn bytes_after(&self, items: usize) -> usize {
        self.items[items..].iter().map(ViewItem::about_bytes).sum()
    }
}

/// Adds what is new of an entity to a client.
pub(crate) fn show(
    client_state: &mut Option<ClientState>,
    knowledge: &KnowledgeView<'_>,
    own: Own,
    (entity, state): (EntityId, &KnownEntity<'_>),
    updates: &mut Updates,
) {
    let viewer = own.viewer_of(entity);
    let Some(showing) = Showing::new(knowledge.cx.schema(), entity, state.entity_type.id, viewer) else {
        return;
    };
    let (now, place) = (knowledge.cx.now().mono, state.whereabouts.place);
    let away = distance(own.position, place.position);
    let showing = showing.seen_by(own.entity, own.session).from_afar(away);
    let showing = showing.counted_by(knowledge.cx.tally());
    let levels = match viewer {
        Viewer::Own => &[][..],
        Viewer::Others => &state.entity_type.lod_levels,
    };
    let Some(client_state) = client_state else {
        let level = level(levels, levels.len(), away);
        let finer = vec![HistoryNumber(0); level];
        let is_own = viewer == Viewer::Own;
        let entered = client_state.insert(ClientState::from_report(now, state.history, finer, is_own));
        entered.sent_tick = Some(knowledge.known.sampling.local_tick());
        enter(&showing.on_level(entered.level()), state, &mut updates.items);
        show_driver(now, own, (entity, state), entered, &mut updates.items);
        entered.record_placement(now, place);
        return;
    };
    let jumped = catch_up(&showing, state, client_state, &mut updates.items);
    let changed_driver = show_driver(now, own, (entity, state), client_state, &mut updates.items);
    let level = level(levels, client_state.finer.len(), away);
    change_level(&showing, knowledge, state, (client_state, level), &mut updates.items);
    let happened = (jumped, changed_driver);
    show_place(client_state, knowledge, own, (entity, state), happened, updates);
}

/// Adds the place of an entity that the client has, if it is due: as an item after it was teleported (`jumped`) or has
/// another driver, else as a movement.
fn show_place(
    client_state: &mut ClientState,
    knowledge: &KnowledgeView<'_>,
    own: Own,
    (entity, state): (EntityId, &KnownEntity<'_>),
    (jumped, changed_driver): (bool, bool),
    updates: &mut Updates,
) {
    let (local_tick, now) = (knowledge.known.sampling.local_tick(), knowledge.cx.now().mono);
    let (viewer, place) = (own.viewer_of(entity), state.whereabouts.place);
    let is_due = client_state
        .sent_tick
        .is_none_or(|sent_tick| sent_tick < state.whereabouts.last_due_tick(local_tick));
    let moved = match viewer {
        _ if jumped => true,
        // Movements that were lost will not be sent again.
        Viewer::Own if changed_driver && !client_state.drives() => true,
        // What an earlier view sent of it may be lost.
        Viewer::Own if client_state.sent_tick.is_none() && !client_state.drives() => true,
        Viewer::Own => own.displaced,
        // Who begins or ceases to move it does so where it is.
        Viewer::Others if changed_driver || client_state.has_strayed(now, place) => true,
        Viewer::Others => {
            let since = state.whereabouts.since;
            let is_unsent = client_state.sent_tick.is_none_or(|sent_tick| sent_tick < since);
            // Volatile movements are sent as datagrams below; those of other types as items, reliably.
            let is_sent_as_item = !state.entity_type.volatile.is_any();
            !client_state.drives() && (client_state.sent_tick.is_none() || (is_unsent && is_sent_as_item))
        }
    };
    if moved {
        updates.items.push(ViewItem::Placed {
            entity,
            position: place.position,
            direction: place.direction,
        });
        client_state.record_placement(now, place);
    }
    if moved || client_state.sent_tick.is_none() {
        client_state.sent_tick = Some(local_tick);
    } else if viewer == Viewer::Others
        && !client_state.drives()
        && is_due
        && state.is_acknowledged
        && let Some(parts) = Parts::due(state.entity_type, distance(own.position, place.position))
        && place.position.is_finite()
        && place.direction.is_finite()
    {
        client_state.sent_tick = Some(local_tick);
        let movement = Move {
            entity,
            position: place.position,
            direction: place.direction,
        };
        updates.moves.push(Sighting { movement, parts });
    }
}

/// Adds an item if the client moves an entity from now on, or does not move it any more. Returns whether it did.
fn show_driver(
    now: Mono,
    own: Own,
    (entity, state): (EntityId, &KnownEntity<'_>),
    client_state: &mut ClientState,
    items: &mut Vec<ViewItem>,
) -> bool {
    let drives = own.drives(entity, state.source.driver());
    let changes = client_state.drives() != drives;
    if changes {
        client_state.driving = drives.then(|| Box::new(Driving::begun(now)));
        items.push(ViewItem::Drives { entity, drives });
    }
    changes
}

/// Adds items for an entity that the client does not have.
fn enter(showing: &Showing<'_>, state: &KnownEntity<'_>, items: &mut Vec<ViewItem>) {
    let (entity, place) = (showing.entity(), state.whereabouts.place);
    items.push(ViewItem::Enter {
        entity,
        type_id: showing.client_type(),
        place: Some((place.position, place.direction)),
    });
    let refresh = showing.refresh(state.history, state.source.properties());
    let nothing = ViewItem::Refresh {
        entity,
        upto: HistoryNumber(0),
        level: 0,
        properties: Vec::new(),
    };
    if refresh != nothing {
        items.push(refresh);
    }
}

/// The level of detail at a distance, given the level `before`. Changes to a coarser one only beyond the hysteresis.
fn level(levels: &[LodLevel], before: usize, away: f32) -> usize {
    let mut level = before.min(levels.len());
    while level > 0 && away < levels[level - 1].radius {
        level -= 1;
    }
    while levels
        .get(level)
        .is_some_and(|found| away > found.radius + found.hysteresis)
    {
        level += 1;
    }
    level
}

/// Changes the level of detail to `wanted`, if it differs. For a finer one the client is sent what has changed since it
/// had the levels between.
fn change_level(
    showing: &Showing<'_>,
    knowledge: &KnowledgeView<'_>,
    state: &KnownEntity<'_>,
    (client_state, wanted): (&mut ClientState, usize),
    items: &mut Vec<ViewItem>,
) {
    let (entity, before) = (showing.entity(), client_state.level());
    let properties = match wanted.cmp(&client_state.finer.len()) {
        Ordering::Equal => return,
        Ordering::Greater => {
            client_state.finer.resize(wanted, client_state.upto);
            Vec::new()
        }
        Ordering::Less => {
            // Earlier changes of these properties are not sent after the new values.
            items.extend(pass_over(showing, state, client_state));
            let finer = client_state.finer.clone();
            client_state.finer.truncate(wanted);
            let is_news = |member, level: u8| {
                knowledge
                    .known
                    .property_history
                    .has_changed(entity, member, finer[usize::from(level)])
            };
            showing
                .on_level(client_state.level())
                .details(state.source.properties(), before, is_news)
        }
    };
    let level = client_state.level();
    items.push(ViewItem::Level {
        entity,
        level,
        properties,
    });
}

/// Advances the client's history number past events that do not concern it, if there are any.
fn pass_over(showing: &Showing<'_>, state: &KnownEntity<'_>, client_state: &mut ClientState) -> Option<ViewItem> {
    let from = client_state.upto;
    client_state.upto = from.max(state.history);
    (client_state.upto > from).then_some(ViewItem::Update {
        entity: showing.entity(),
        from,
        upto: client_state.upto,
        events: Vec::new(),
    })
}

/// Adds the events since `client_state.upto`, or the whole state if they are no longer known. Returns whether the
/// entity was placed elsewhere meanwhile.
fn catch_up(
    showing: &Showing<'_>,
    state: &KnownEntity<'_>,
    client_state: &mut ClientState,
    items: &mut Vec<ViewItem>,
) -> bool {
    let (newest, source) = (state.history, &state.source);
    if newest == client_state.upto {
        return false;
    }
    let showing = showing.on_level(client_state.level());
    let Some(events) = source.since(client_state.upto) else {
        items.push(showing.refresh(newest, source.properties()));
        client_state.upto = newest;
        client_state.finer.fill(HistoryNumber(0));
        return true;
    };
    let happened = events.iter().filter_map(|(_, event)| *event);
    let jumped = happened.into_iter().any(|event| matches!(event.body, Body::Moved(_)));
    let shown = showing.update(client_state.upto, events.into_iter());
    if let Some(last) = shown_upto(&shown) {
        client_state.upto = last;
    }
    items.extend(shown);
    if jumped || newest.0.saturating_sub(client_state.upto.0) >= QUIET {
        items.extend(pass_over(&showing, state, client_state));
    }
    jumped
}

/// Distance between two positions, metres; 0 if the first is unknown.
pub(crate) fn distance(from: Option<Position>, to: Position) -> f32 {
    from.map_or(0.0, |from| from.distance(to))
}
