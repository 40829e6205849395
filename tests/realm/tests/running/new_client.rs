//! A client that `annals new --lang typescript-client` has written, compiled and run in a live realm.

use annals::up::{Realm, RealmPlan};
use annals_realm::Folder;
use tokio::process::Command;

use crate::{
    played::{are_built, binary, permit, repository, run},
    typescript,
};

/// How long it plays, seconds: the sample gives a player an avatar after some of them.
const PLAYS: &str = "10";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_typescript_client_sees_the_world() {
    if !are_built() {
        return;
    }
    let Some(node) = typescript::Node::find().await else {
        return;
    };
    let _permit = permit().await;
    let folder = Folder::create();
    // The library is found in the folder above the client's.
    typescript::build(&node, folder.path()).await;
    let (world, client) = (repository().join("defs"), folder.path().join("watcher"));
    let mut new = Command::new(binary("annals").expect("it is built"));
    new.arg("new")
        .arg(&client)
        .args(["--lang", "typescript-client", "--world"]);
    let (status, said) = run(new.arg(&world)).await;
    assert!(status.success(), "{said}");
    node.compile(&client).await;

    let data = folder.path().join("realm");
    let plan = RealmPlan {
        settings: vec![("web_origins", "*".to_owned())],
        ..RealmPlan::new("watched", &world, &data)
    };
    let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
    let url = format!("wss://localhost:{}", realm.login.0.port());
    let mut playing = node.command(&client.join("dist/main.js"));
    playing.args([&url, "ann", "a password of ann", PLAYS]);
    let (status, said) = run(playing.env("NODE_EXTRA_CA_CERTS", data.join("development-certificate.pem"))).await;
    assert!(status.success(), "{said}");
    let expected = [
        "controls Account ",
        "over WebSocket",
        "controls Avatar ",
        "sees Monster ",
        "the session has ended: left",
    ];
    for line in expected {
        assert!(said.contains(line), "{line}:\n{said}");
    }
    let mut wrong = node.command(&client.join("dist/main.js"));
    let (status, said) = run(wrong.arg(&url)).await;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("Usage: npm start URL NAME PASSWORD"), "{said}");
}
