//! Clients that arrive while a realm is starting.

use std::{
    fs::{self, File},
    path::Path,
    time::Duration,
};

use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};
use annals_host::world::compile;
use annals_host::{
    child::{Child, command},
    nats::{Server, ServerOptions},
};
use annals_ids::Part;
use annals_realm::Folder;

use crate::played::{are_built, binary, permit, repository, until, until_event};

/// Time that a client waits at the start.
const CLIENT_WAIT: Duration = Duration::from_secs(2);

/// Maximum time until a realm listens for log-ins.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(60);

fn spawn(service: &str, nats: &str, data: &Path, flags: &[&str]) -> Child {
    let mut command = command(binary(&format!("annals-{service}")).expect("it is built"));
    let log = File::create(data.join(format!("{service}.log"))).expect("a log");
    command
        .args(["--realm", "beginning", "--nats", nats, "--world"])
        .arg(repository().join("defs"))
        .args(flags)
        .stderr(log);
    // The others keep no files.
    if ["db", "base", "login"].contains(&service) {
        command.arg("--data").arg(data);
    }
    Child::spawn(command).expect("it starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_starting_realm_wait_and_then_enter_the_world() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let data = folder.path();
    let server = Server::start(&ServerOptions::new(data.join("nats")))
        .await
        .expect("a nats-server");
    let nats = server.url();
    let start = |service: &str, flags: &[&str]| spawn(service, &nats, data, flags);
    // The space is divided once both cells have registered.
    let _first = [
        start("db", &[]),
        start("director", &["--cells", "2"]),
        start("base", &["--listen", "127.0.0.1:0"]),
        start("cell", &[]),
        start("login", &["--listen", "127.0.0.1:0"]),
    ];
    let announced = data.join("login.address");
    let said = || fs::read_to_string(&announced).unwrap_or_default();
    until(LISTEN_TIMEOUT, "log-ins to be listened for", || said().contains(' ')).await;
    let said = said();
    let (address, certificate) = said.split_once(' ').expect("address and certificate");
    let login = address.parse().expect("an address");
    let mut client = Client::start(
        client_endpoint(login).expect("a socket"),
        Config {
            login,
            trust: Trust::Pinned(certificate.parse().expect("a fingerprint")),
            credentials: Credentials::password("early", "the password"),
            schema: compile(&repository().join("defs")).expect("the sample compiles"),
            seed: 7,
            reads: annals_client::Reads::Predicted,
        },
    );
    let early = tokio::time::timeout(CLIENT_WAIT, client.next()).await;
    assert!(early.is_err(), "an event before the world exists: {early:?}");
    let _second = start("cell", &[]);
    until_event(&mut client, "a log-in", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let entered = |event: &Event| matches!(event, Event::Entered { part: Part::Cell, .. });
    until_event(&mut client, "to see the world", entered).await;
}
