//! `annals realm cells` on a realm whose director is simulated by the test.

use std::{process::Output, time::Duration};

use annals_host::nats::{Bus, Server, ServerOptions};
use annals_ids::{OwnerId, SpaceId};
use annals_wire::{
    CellArea, Subjects,
    cells::{CellList, CellReport, WireCellList},
    control::{self, DirectorAsk, DirectorRequest},
};
use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::world::REALM;

fn list() -> CellList {
    let west = CellArea {
        east: 12.5,
        north: -3.25,
        ..CellArea::everywhere(OwnerId(4))
    };
    let report = CellReport {
        space: SpaceId(1),
        area: west,
        load: 0.25,
        entities: 1_200,
        witnesses: 34,
        retires: false,
        unmoved: Some(Duration::from_millis(2_500)),
    };
    let retiring = CellReport {
        area: CellArea {
            west: 12.5,
            ..CellArea::everywhere(OwnerId(11))
        },
        load: 0.0625,
        entities: 7,
        witnesses: 0,
        retires: true,
        unmoved: None,
        ..report
    };
    let cells = vec![report, retiring];
    CellList { map: 9, cells }
}

/// A realm's bus; the director answers with this list, if there is one.
async fn bus(folder: &TempDir, director: Option<CellList>) -> Server {
    let server = Server::start(&ServerOptions::new(folder.path())).await.unwrap();
    if let Some(list) = director {
        direct(&server, list, 0).await;
    }
    server
}

/// Starts a director that leaves so many requests without an answer, as one that waits for the store does.
async fn direct(server: &Server, list: CellList, unanswered: usize) {
    let bus = Bus::connect(&server.url(), "director").await.unwrap();
    let subject = Subjects::new(REALM).service("director");
    let requests = bus.client().subscribe(subject).await.unwrap();
    bus.client().flush().await.unwrap();
    tokio::spawn(async move {
        let mut requests = requests.skip(unanswered);
        while let Some(request) = requests.next().await {
            let asked: DirectorRequest = control::decode(&request.payload).unwrap();
            assert!(matches!(asked.ask, Some(DirectorAsk::Cells(_))), "{asked:?}");
            let answer = control::encode(&WireCellList::from(&list));
            bus.client()
                .publish(request.reply.unwrap(), answer.into())
                .await
                .unwrap();
        }
    });
}

async fn cells(server: &Server, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command.args(["realm", "cells", "--realm", REALM, "--nats", &server.url()]);
    let Output { status, stdout, stderr } = command.args(more).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_has_a_line_for_each_cell_with_all_known_data() {
    let folder = TempDir::new().unwrap();
    let server = bus(&folder, Some(list())).await;
    let (code, said, _) = cells(&server, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    let expected = "\
space  owner  west  east  south  north   load  entities  clients      moved
    1      4     -  12.5      -   -3.2  0.250      1200       34  2.5 s ago
    1     11  12.5     -      -      -  0.062         7        0          -  is being retired
2 cells, average load 0.156, map 9
";
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_same_data_and_omits_infinite_edges() {
    let folder = TempDir::new().unwrap();
    let server = bus(&folder, Some(list())).await;
    let (code, said, _) = cells(&server, &["--format", "json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let expected = json!({ "map": 9, "cells": [
        { "space": 1, "owner": 4, "west": null, "east": 12.5, "south": null, "north": -3.25, "load": 0.25,
            "entities": 1_200, "clients": 34, "movedSecondsAgo": 2.5, "isRetiring": false },
        { "space": 1, "owner": 11, "west": 12.5, "east": null, "south": null, "north": null, "load": 0.0625,
            "entities": 7, "clients": 0, "movedSecondsAgo": null, "isRetiring": true },
    ] });
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_without_cells_or_director_or_process_is_reported() {
    let folders = [(); 2].map(|()| TempDir::new().unwrap());
    let server = bus(&folders[0], Some(CellList::default())).await;
    let (code, said, _) = cells(&server, &[]).await;
    assert_eq!((code, said.as_str()), (Some(0), "no space is divided yet\n"));
    let (code, _, said) = cells(&server, &["--data", "somewhere"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("leave --data out"), "{said}");
    let server = bus(&folders[1], None).await;
    let (code, _, said) = cells(&server, &[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("director was not reached"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_director_that_does_not_answer_is_asked_again() {
    let folder = TempDir::new().unwrap();
    let server = bus(&folder, None).await;
    direct(&server, list(), 2).await;
    let (code, said, warned) = cells(&server, &[]).await;
    assert_eq!(code, Some(0), "{warned}");
    assert!(said.contains("2 cells"), "{said}");
    assert_eq!(warned.matches("asking again").count(), 1, "{warned}");
}
