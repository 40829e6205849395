//! `annals realm costs` on a realm of two simulated processes with the counts of real tallies.

use std::process::Output;

use annals_def::{DataType, Distribution, EntityType, Method, Property, Schema};
use annals_host::{
    config::Realm,
    health::{Announcement, Health, Readiness},
    nats::{Bus, Server, ServerOptions},
};
use annals_ids::{MemberId, TypeId};
use annals_node::{CostKind, Member, Tally};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::world::REALM;

fn schema() -> Schema {
    let mut avatar = EntityType::new("Avatar");
    avatar.properties = vec![
        Property::new("gold", DataType::Int64, Distribution::AllClients),
        Property::new("mood", DataType::Unicode, Distribution::Base),
    ];
    avatar.base_methods = vec![Method::new("pay", Vec::new())];
    Schema::new(vec![EntityType::new("Chest"), avatar], Vec::new(), Vec::new())
}

/// A process with these counts.
async fn process(server: &Server, service: &str, counted: &[(Member, CostKind, usize)]) -> Announcement {
    let bus = Bus::connect(&server.url(), service).await.unwrap();
    let health = Health::default();
    health.readiness.send_replace(Readiness::Ready);
    let (schema, realm) = (schema(), REALM.parse::<Realm>().unwrap());
    let tally = Tally::new(&schema);
    for (member, way, amount) in counted {
        tally.add(TypeId(1), *member, *way, *amount);
        // A tally that is collected twice is counted once.
        health.metrics.costs.collect(&schema, &tally);
    }
    Announcement::start(&bus, &realm, service, &health).await.unwrap()
}

async fn costs(server: &Server, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command.args(["realm", "costs", "--realm", REALM, "--nats", &server.url()]);
    let Output { status, stdout, stderr } = command.args(more).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_counts_of_all_processes_are_summed_and_sorted() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&ServerOptions::new(folder.path())).await.unwrap();
    let (gold, mood) = (Member::Property(MemberId(0)), Member::Property(MemberId(1)));
    let pay = Member::BaseMethod(MemberId(0));
    let cell = [
        (gold, CostKind::Changes, 7),
        (gold, CostKind::Log, 100),
        (gold, CostKind::Own, 20),
        (gold, CostKind::Others, 300),
        (gold, CostKind::Ghosts, 40),
    ];
    let base = [
        (gold, CostKind::Log, 11),
        (mood, CostKind::Changes, 9),
        (mood, CostKind::Log, 2_000),
        (pay, CostKind::Changes, 1),
        (pay, CostKind::Part, 5),
    ];
    let _cell = process(&server, "cell", &cell).await;
    let _base = process(&server, "base", &base).await;
    // db does not count costs of members.
    let _db = process(&server, "db", &[(gold, CostKind::Log, 1_000_000)]).await;

    let (code, said, _) = costs(&server, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    let expected = "\
type    member  kind         changes  bytes   log  own  others  ghosts  part
Avatar  mood    property           9   2000  2000    0       0       0     0
Avatar  gold    property           7    471   111   20     300      40     0
Avatar  pay     base method        1      5     0    0       0       0     5
3 of 3 members, 2476 bytes of all of them, counted by 2 processes since they started
";
    assert_eq!(said, expected);

    let (_, said, _) = costs(&server, &["--by", "others", "--limit", "1", "--format", "json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    let gold = json!({ "type": "Avatar", "member": "gold", "kind": "property", "changes": 7, "bytes": 471,
        "log": 111, "own": 20, "others": 300, "ghosts": 40, "part": 0 });
    assert_eq!(said, json!({ "processes": 2, "members": [gold] }));

    let (_, said, _) = costs(&server, &["--type", "Chest"]).await;
    assert!(said.contains("0 of 0 members"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_without_counts_is_reported() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&ServerOptions::new(folder.path())).await.unwrap();
    let (code, _, said) = costs(&server, &[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no base or cell of this realm answers"), "{said}");
    let (code, _, said) = costs(&server, &["--data", "somewhere"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("leave --data out"), "{said}");
}
