//! Operators watch a realm: overviews of its cells over the bus, and the console's pages in a browser.

use std::{net::SocketAddr, time::Duration};

use annals_host::{
    nats::ServerCount,
    process::{AskError, request},
};
use annals_ids::{EntityId, OwnerId};
use annals_wire::{
    HANDOVER_DEPTH, Subjects,
    cells::{CellList, WireCellList},
    control::{DirectorAsk, DirectorRequest, ListCells},
    overview::{Overview, OverviewRequest, WireOverview},
};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    browser::{self, Browser, ENTER},
    played::{Played, are_built, binary, within},
};

/// Maximum time for what should take a second, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The same of a cell, which answers four times per second.
const OVERVIEW_INTERVAL: Duration = Duration::from_millis(350);

/// An address on a port that the system chooses.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

async fn cells(realm: &Played) -> CellList {
    let (bus, subjects, _) = realm.bus();
    let ask = DirectorRequest {
        ask: Some(DirectorAsk::Cells(ListCells {})),
    };
    let list: WireCellList = request(&bus, "director", subjects.service("director"), &ask)
        .await
        .expect("the director answers");
    CellList::try_from(&list).expect("a list")
}

async fn overview(realm: &Played, owner: OwnerId, asked: &OverviewRequest) -> Result<Overview, AskError> {
    let (bus, subjects, _): (_, Subjects, _) = realm.bus();
    let answer: WireOverview = request(&bus, "cell", subjects.overview(owner), asked).await?;
    Ok(Overview::try_from(&answer).expect("an overview"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_answer_with_overviews_of_their_entities() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let list = cells(&realm).await;
    assert!(list.cells.len() >= 2, "{list:?}");
    // Counts of the director are of the last heartbeats, so the two agree once nobody has crossed a boundary meanwhile.
    within(TIMEOUT, "overviews that agree with the director", async {
        loop {
            let list = cells(&realm).await;
            let mut agree = true;
            for cell in &list.cells {
                let asked = OverviewRequest::of_space(cell.space);
                let found = overview(&realm, cell.area.owner, &asked).await.expect("it answers");
                assert_eq!(found.schema, realm.schema.fingerprint());
                assert_eq!(found.sample.len() as u64, found.entities, "few enough to be sent all");
                let with_client = found.sample.iter().filter(|seen| seen.has_client).count();
                assert_eq!(with_client as u64, found.clients);
                for seen in &found.sample {
                    let place = annals_ids::Position {
                        x: seen.x,
                        y: 0.0,
                        z: seen.z,
                    };
                    // Beyond that it waits for its hand-over, as when a boundary has just been moved across it.
                    agree &= cell.area.distance(place) < HANDOVER_DEPTH + 20.0;
                }
                agree &= (found.entities, found.clients) == (cell.entities, cell.witnesses) && found.clients > 0;
            }
            tokio::time::sleep(OVERVIEW_INTERVAL).await;
            if agree {
                return;
            }
        }
    })
    .await;
    // Frequent requests are answered a few times per second, and the cell works on.
    let cell = list.cells[0].area.owner;
    let asked = OverviewRequest::of_space(list.cells[0].space);
    let answers = join_all((0..100).map(|_| overview(&realm, cell, &asked))).await;
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    // They wait for two seconds, in which three seconds may begin.
    assert!((1..=12).contains(&answered), "{answered} of 100");
    realm.assert_playing("a hundred overviews at once").await;
    realm.stop_and_verify().await;
}

/// Waits until a script's answer is true.
pub(crate) async fn until(otto: &Browser, what: &str, script: &str) {
    within(TIMEOUT, what, async {
        while otto.ask(script).await != json!(true) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Logs in by the link, which works once.
pub(crate) async fn enter(otto: &Browser, link: &str) {
    otto.open(link).await;
    otto.look("enter").await;
    otto.press(ENTER).await;
    until(otto, "the map", "location.pathname === '/map/1'").await;
}

/// The map shows the cells, and entities that move; it can be operated with the keyboard alone.
async fn watch_the_map(otto: &Browser) {
    until(
        otto,
        "the first frame",
        "document.getElementById('live-state').textContent === 'Live'",
    )
    .await;
    until(
        otto,
        "entities",
        "dots.size > 0 && [...dots.values()].some((dot) => dot.hasClient)",
    )
    .await;
    assert_eq!(otto.ask("document.querySelectorAll('#cells tbody tr').length").await, 2);
    assert!(
        otto.text("#legend").await.contains("Avatar: "),
        "types have their names"
    );
    otto.ask("window.before = new Map([...dots].map(([id, dot]) => [id, dot.x + dot.z]))")
        .await;
    let moves = "[...dots].some(([id, dot]) => before.has(id) && before.get(id) !== dot.x + dot.z)";
    until(otto, "movement", moves).await;
    // Something is drawn.
    let painted = "(() => { const all = pen.getImageData(0, 0, canvas.width, canvas.height).data; \
        const colours = new Set(); for (let at = 0; at < all.length; at += 4) colours.add(all.slice(at, at + 4).join()); \
        return colours.size > 4; })()";
    assert_eq!(otto.ask(painted).await, true);
    otto.look_in_both("map").await;
    otto.ask("canvas.focus()").await;
    let before = otto.ask("view.scale").await.as_f64().expect("a number");
    otto.press('+').await;
    let closer = otto.ask("view.scale").await.as_f64().expect("a number");
    assert!(closer > before, "{before} {closer}");
    let west = otto.ask("view.x").await.as_f64().expect("a number");
    otto.press('\u{e014}').await;
    let east = otto.ask("view.x").await.as_f64().expect("a number");
    assert!(east > west, "the right arrow moves the view east");
    otto.press('0').await;
    otto.click("summary").await;
    until(
        otto,
        "the table",
        "document.querySelectorAll('#entities tbody tr').length > 0",
    )
    .await;
}

/// A region can be watched by itself, and four at a time.
async fn watch_regions(otto: &Browser) {
    let watch = |east: i32| {
        let address = format!("/map/1/events?west=0&east={east}&south=-100000&north=100000");
        let read = "held.push(answer); return answer.body.getReader().read()";
        let take = "new TextDecoder().decode(chunk.value)";
        format!(
            "fetch('{address}').then((answer) => {{ if (answer.status !== 200) return answer.status; {read}\
             .then((chunk) => {take}); }})"
        )
    };
    otto.ask("window.held = []").await;
    for east in [100_000, 200_000, 300_000] {
        let said = otto.ask(&watch(east)).await;
        let said = said.as_str().and_then(|said| said.trim_end().strip_prefix("data: "));
        let frame: Value = serde_json::from_str(said.expect("an event")).expect("JSON");
        let entities = frame["entities"].as_array().expect("a list");
        assert!(entities.iter().all(|entity| entity[2].as_f64() >= Some(0.0)), "{frame}");
        let cells = frame["cells"].as_array().expect("a list");
        let there: u64 = cells.iter().filter_map(|cell| cell["inRegion"].as_u64()).sum();
        assert!(cells.len() == 2 && there == entities.len() as u64, "{frame}");
    }
    assert_eq!(otto.ask(&watch(400_000)).await, 503, "the map itself is the fourth");
}

/// From the map to an entity, and through its past with the slider.
async fn inspect_an_entity(otto: &Browser) {
    let id = "[...dots.values()].find((dot) => dot.hasClient).id";
    let id = otto
        .ask(id)
        .await
        .as_str()
        .expect("an id")
        .parse()
        .map(EntityId)
        .expect("a number");
    otto.write("#q", &id.to_string()).await;
    otto.submit().await;
    until(otto, "the entity", "!document.title.startsWith('Being verified')").await;
    assert!(otto.text("h1").await.starts_with(&format!("Entity {id}")));
    let page = otto.text("main").await;
    assert!(
        page.contains("stored entity ") || page.contains("Its cell part"),
        "{page}"
    );
    assert!(!page.contains("from 127.0.0.1"), "who plays it is for auditors: {page}");
    let count = otto.ask("Number(document.getElementById('event').max)").await;
    assert!(count.as_u64().is_some_and(|count| count > 1), "{count}");
    otto.look_in_both("inspector").await;
    // If a realm is busy, a moment takes long enough to verify for a page of its own, which the browser loads as a
    // whole, without the focus. Once verified, the moment is there at once.
    let mut keeps_focus = false;
    for event in [0, 1, 0, 1, 0] {
        move_to(otto, event).await;
        keeps_focus = otto.ask("document.activeElement.id").await == "event";
        if keeps_focus && event == 0 {
            break;
        }
    }
    assert!(keeps_focus, "the slider keeps the focus");
    let then = otto.text("main").await;
    assert!(then.contains("Nothing of it existed at that moment."), "{then}");
}

/// Moves the slider of an entity's page to an event, and waits for the page of that moment.
async fn move_to(otto: &Browser, event: u64) {
    let moved = format!(
        "(() => {{ const slider = document.getElementById('event'); slider.value = {event}; \
         slider.dispatchEvent(new Event('change', {{ bubbles: true }})); return true; }})()"
    );
    otto.ask(&moved).await;
    let shown = format!("location.search === '?event={event}' && !document.title.startsWith('Being verified')");
    until(otto, "the past", &shown).await;
}

/// Pages that an operator may not see, and a link that was used.
async fn check_limits(otto: &Browser, (address, link): (&str, &str)) {
    otto.open(&format!("{address}/verification")).await;
    assert_eq!(otto.text("h1").await, "Not for your role");
    otto.click_and_wait(".leave button").await;
    otto.open(link).await;
    otto.press(ENTER).await;
    until(otto, "an answer", "document.querySelector('[role=alert]') !== null").await;
    assert!(otto.text("[role=alert]").await.starts_with("This link was used"));
}

/// All of that is in the record of views.
fn check_record(realm: &Played) {
    let views = realm.data().join("console").join("views.log");
    let views = std::fs::read_to_string(views).expect("text");
    for looked in [
        "logged in by link",
        "GET /map/1",
        "GET /map/1/events",
        "GET /processes",
        "GET /logs",
        "?event=0",
    ] {
        let is_logged = |line: &str| {
            let view: Value = serde_json::from_str(line).unwrap_or_default();
            view["who"] == "operator" && view.to_string().contains(looked)
        };
        assert!(views.lines().any(is_logged), "{looked}: {views}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_watches_a_realm_in_a_browser() {
    if !are_built() || binary("annals-console").is_none() || !browser::is_installed() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let link = realm.realm.start_console(ANY_PORT).await.expect("a console");
    let process = realm.realm.console().expect("it runs");
    let (address, _) = link.split_once("/enter/").expect("a link");
    let otto = Browser::start().await;
    enter(&otto, &link).await;
    watch_the_map(&otto).await;
    watch_regions(&otto).await;
    inspect_an_entity(&otto).await;
    otto.follow("Processes").await;
    until(
        &otto,
        "figures",
        "document.getElementById('live-state').textContent === 'Live'",
    )
    .await;
    let services = otto.text("main").await;
    for service in ["base", "cell", "db", "director", "login", "signer"] {
        assert!(services.contains(service), "{service}: {services}");
    }
    assert!(
        services.contains(&format!("of release {}.", env!("CARGO_PKG_VERSION"))),
        "{services}"
    );
    otto.look_in_both("processes").await;
    otto.follow("Logs").await;
    until(
        &otto,
        "figures",
        "document.getElementById('live-state').textContent === 'Live'",
    )
    .await;
    let logs = otto.text("main").await;
    assert!(
        logs.contains("None: no log is blocked") && logs.contains("ledger"),
        "{logs}"
    );
    otto.look_in_both("logs").await;
    // A process that is missing is an alarm.
    realm.kill("login");
    otto.follow("Processes").await;
    let alarm = "document.querySelector('.alarms')?.textContent.includes('No process of login is ready.') ?? false";
    until(&otto, "the alarm", alarm).await;
    otto.look_in_both("alarm").await;
    realm.start_again("login");
    check_limits(&otto, (address, &link)).await;
    drop(otto);
    check_record(&realm);
    // The console ends with the realm.
    realm.stop_and_verify().await;
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
}
