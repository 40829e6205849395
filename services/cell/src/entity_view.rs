//! The view of one entity by one client (BigWorld: entity cache): what the client has, and the items to send next.

use std::cmp::Ordering;

use annals_def::LodLevel;
use annals_event::Body;
use annals_ids::{EntityId, HistoryNumber, Position, SessionId};
use annals_node::{Showing, Viewer, shown_upto};
use annals_space::Priority;
use annals_wire::client::{Move, ViewItem};

use crate::{
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
}

impl ClientState {
    /// What a client reports that it has, before anything was sent in this view.
    pub(crate) fn from_report(upto: HistoryNumber, finer: Vec<HistoryNumber>) -> Self {
        Self {
            upto,
            sent_tick: None,
            finer,
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
    let (local_tick, place) = (knowledge.known.sampling.local_tick(), state.whereabouts.place);
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
        let (upto, sent_tick) = (state.history, Some(local_tick));
        let entered = client_state.insert(ClientState { upto, sent_tick, finer });
        enter(&showing.on_level(entered.level()), state, &mut updates.items);
        return;
    };
    let jumped = catch_up(&showing, state, client_state, &mut updates.items);
    let level = level(levels, client_state.finer.len(), away);
    change_level(&showing, knowledge, state, (client_state, level), &mut updates.items);
    let is_due = client_state
        .sent_tick
        .is_none_or(|sent_tick| sent_tick < state.whereabouts.last_due_tick(local_tick));
    let moved = match viewer {
        Viewer::Own => jumped || own.displaced,
        Viewer::Others => {
            let since = state.whereabouts.since;
            let is_unsent = client_state.sent_tick.is_none_or(|sent_tick| sent_tick < since);
            // Volatile movements are sent as datagrams below; those of other types as items, reliably.
            jumped || client_state.sent_tick.is_none() || (is_unsent && !state.entity_type.volatile.is_any())
        }
    };
    if moved {
        updates.items.push(ViewItem::Placed {
            entity,
            position: place.position,
            direction: place.direction,
        });
    }
    if moved || client_state.sent_tick.is_none() {
        client_state.sent_tick = Some(local_tick);
    } else if viewer == Viewer::Others
        && is_due
        && state.is_acknowledged
        && let Some(parts) = Parts::due(&state.entity_type.volatile, away)
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
