//! Handlers of the operators' pages, and of the events that keep them current.

use std::{convert::Infallible, sync::Arc};

use annals_host::{process::stopped, telemetry::Chain};
use annals_ids::SpaceId;
use axum::{
    Extension,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{
        IntoResponse, Redirect, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::stream;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{NO_NUMBER, Site, unclear};
use crate::{
    access::{self, Visitor},
    pages::{Page, logs, map, problem, processes},
    watching::{Edges, Frame, Topic, Watched},
};

/// Address of the script of the map.
const MAP: &str = "/map.js";

/// Address of the script of pages of figures.
const LIVE: &str = "/live.js";

/// Address of the script of the slider of an entity's page.
pub(super) const MOMENT: &str = "/moment.js";

/// The scripts, by their addresses.
pub(super) const SCRIPTS: [(&str, &str); 3] = [
    (MAP, include_str!("../scripts/map.js")),
    (LIVE, include_str!("../scripts/live.js")),
    (MOMENT, include_str!("../scripts/moment.js")),
];

/// Number of an entity, from the box in the head of a page.
#[derive(Deserialize)]
pub(super) struct Typed {
    #[serde(default)]
    number: String,
}

/// Edges of the region to watch.
#[derive(Deserialize)]
pub(super) struct Region {
    west: Option<i32>,
    east: Option<i32>,
    south: Option<i32>,
    north: Option<i32>,
}

impl Region {
    fn edges(&self) -> Option<Edges> {
        Some(Edges {
            west: self.west?,
            east: self.east?,
            south: self.south?,
            north: self.north?,
        })
    }
}

/// Redirects to the page of an entity.
pub(super) async fn find(Extension(visitor): Extension<Visitor>, Query(typed): Query<Typed>) -> Response {
    match typed.number.trim().parse::<u64>() {
        Ok(number) => Redirect::to(&format!("/entity/{number}")).into_response(),
        Err(_) => unclear(&visitor, NO_NUMBER),
    }
}

/// Redirects to the first space.
pub(super) async fn spaces(State(site): State<Arc<Site>>, Extension(visitor): Extension<Visitor>) -> Response {
    let Some(live) = site.casework.live() else {
        return offline(&visitor);
    };
    match live.cells().await {
        Ok(list) => {
            let space = list.cells.first().map_or(SpaceId(1), |cell| cell.space);
            Redirect::to(&format!("/map/{space}")).into_response()
        }
        Err(error) => silent(&visitor, &Chain(&error).to_string()),
    }
}

/// The map of a space.
pub(super) async fn space(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(space): Path<String>,
) -> Response {
    let Some(live) = site.casework.live() else {
        return offline(&visitor);
    };
    let Ok(space) = space.parse().map(SpaceId) else {
        return unclear(&visitor, NO_NUMBER);
    };
    match site.watching.map(live, Watched::new(space, None)).await {
        Ok(frame) => {
            let page = Page::new(format!("Space {space}"), Some(&visitor)).scripted(MAP);
            page.show(StatusCode::OK, &map::page(&frame))
        }
        Err(error) => silent(&visitor, &Chain(&error).to_string()),
    }
}

/// The processes.
pub(super) async fn processes(State(site): State<Arc<Site>>, Extension(visitor): Extension<Visitor>) -> Response {
    let Some(live) = site.casework.live() else {
        return offline(&visitor);
    };
    match site.watching.processes(live).await {
        Ok(report) => {
            let page = Page::new("Processes", Some(&visitor)).scripted(LIVE);
            page.show(StatusCode::OK, &processes::page(&report))
        }
        Err(error) => silent(&visitor, &Chain(&error).to_string()),
    }
}

/// The logs.
pub(super) async fn logs(State(site): State<Arc<Site>>, Extension(visitor): Extension<Visitor>) -> Response {
    let Some(live) = site.casework.live() else {
        return offline(&visitor);
    };
    let report = site.watching.logs(live).await;
    let page = Page::new("Logs", Some(&visitor)).scripted(LIVE);
    page.show(StatusCode::OK, &logs::page(&report))
}

/// Events of the map of a space.
pub(super) async fn space_events(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(space): Path<String>,
    Query(region): Query<Region>,
    headers: HeaderMap,
) -> Response {
    match space.parse() {
        Ok(space) => {
            let watched = Watched::new(SpaceId(space), region.edges());
            events(&site, (&visitor, headers), Topic::Map(watched))
        }
        Err(_) => unclear(&visitor, NO_NUMBER),
    }
}

/// Events of the page of processes.
pub(super) async fn process_events(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    events(&site, (&visitor, headers), Topic::Processes)
}

/// Events of the page of logs.
pub(super) async fn log_events(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    events(&site, (&visitor, headers), Topic::Logs)
}

/// A script.
pub(super) async fn script(request: Request) -> Response {
    let path = request.uri().path();
    let found = SCRIPTS.iter().find(|(address, _)| *address == path);
    let Some((_, text)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kept = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=300"),
    ];
    (kept, *text).into_response()
}

/// A stream of events, and what ends it.
struct Stream {
    site: Arc<Site>,
    frames: watch::Receiver<Frame>,
    /// With the cookie of the session.
    headers: HeaderMap,
    _permit: OwnedSemaphorePermit,
}

impl Stream {
    /// The next event; `None` when the session or the console ends, as nobody may see more then.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            tokio::select! {
                changed = self.frames.changed() => changed.ok()?,
                () = stopped(self.site.stop.clone()) => return None,
            }
            let frame = self.frames.borrow_and_update().clone();
            let Some(frame) = frame else { continue };
            if !access::is_admitted(&self.site, &self.headers).await {
                return None;
            }
            return Some((Ok(Event::default().data(&*frame)), self));
        }
    }
}

fn events(site: &Arc<Site>, (visitor, headers): (&Visitor, HeaderMap), topic: Topic) -> Response {
    let Some(live) = site.casework.live() else {
        return offline(visitor);
    };
    let busy = |what: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{what}\n")).into_response();
    let Ok(permit) = Arc::clone(&site.streams).try_acquire_owned() else {
        return busy("too many pages are watched; close some");
    };
    let Ok(frames) = site.watching.watch(live, topic) else {
        return busy("too many regions of maps are watched; zoom out in some");
    };
    let stream = Stream {
        site: Arc::clone(site),
        frames,
        headers,
        _permit: permit,
    };
    let events = stream::unfold(stream, Stream::next);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn offline(visitor: &Visitor) -> Response {
    let page = Page::new("No live realm", Some(visitor));
    page.show(StatusCode::NOT_FOUND, &problem::offline())
}

fn silent(visitor: &Visitor, why: &str) -> Response {
    let page = Page::new("No answer", Some(visitor));
    page.show(StatusCode::SERVICE_UNAVAILABLE, &problem::no_live_answer(why))
}
