//! A realm on nats-servers that run exactly the configuration in `ops/nats`, with the secrets that its script makes:
//! every service is a user of its own, over TLS. Then each user tries what its service must not be able to do.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use annals_db::read_cursor;
use annals_director::{Stage, read_owners};
use annals_host::{
    health::discover,
    log::History,
    nats::{Bus, REPORTS, Reports},
    process::{FIRST_SHARD, remote_store, request},
    world::compile,
};
use annals_ids::BatchNumber;
use annals_wire::{
    Subjects,
    cells::{CellList, WireCellList},
    control::{DirectorAsk, DirectorRequest, ListCells, ListProcesses, ProcessList, StopRealm, StopStage},
    overview::{OverviewRequest, WireOverview},
};
use async_nats::{Client, ConnectOptions, Event};
use tokio::process::Command;

use crate::{
    browser::{self, Browser},
    deployed::{Deployed, REALM, Servers, TIMEOUT},
    operator_pages::{enter, until},
    played::{are_built, binary, permit, repository, run, within},
    playing::Playing,
};

/// Maximum time until the server reports a denial.
const DENIED_WITHIN: Duration = Duration::from_secs(10);

/// Bots that play.
const BOTS: usize = 4;

/// Events that they are shown.
const SHOWN: u64 = 60;

/// What the server writes to its log about a denial.
const VIOLATION: &str = "Violation";

/// What it writes about a denied answer.
const ANSWER: &str = "Publish Violation - Subject \"_INBOX.";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_can_do_its_work_and_nothing_else() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let mut realm = Deployed::start_sharded().await;
    let schema = compile(&repository().join("defs")).expect("the sample compiles");
    let mut playing = Playing::start(realm.login, &schema, BOTS, &realm.scratch());
    assert!(
        playing.wait_until_shown(SHOWN, TIMEOUT).await,
        "{}",
        realm.log_of("base-1")
    );

    // A killed process is noticed through the system account, and another takes over from its log.
    realm.kill("cell-1");
    assert!(
        playing.wait_until_shown(SHOWN, TIMEOUT).await,
        "{}",
        realm.log_of("cell-2")
    );
    assert_nothing_denied(&realm, |_| false);
    // A server that starts again has lost the consumers by which logs were read, and what it was asked before: an answer
    // to that is denied.
    realm.restart_server();
    assert!(
        playing.wait_until_shown(SHOWN, TIMEOUT).await,
        "{}",
        realm.log_of("base-1")
    );
    operate(&realm).await;
    ask_as_console(&realm).await;
    watch(&realm).await;
    playing.end().await;
    assert_nothing_denied(&realm, |denied| denied.contains(ANSWER));

    for user in USERS {
        Prober::connect(&realm.servers, user.name).await.probe(user).await;
    }
    assert!(
        realm.servers.log().contains(VIOLATION),
        "the server logs denials in these words"
    );
    check_reports(&realm.servers).await;
    command(&realm, &["realm", "stop"]).await;
    realm.all_end(&["cell-1"]).await;
}

/// Checks that neither the server nor any process has reported a denial, other than those of the server that may be.
fn assert_nothing_denied(realm: &Deployed, may_be: impl Fn(&str) -> bool) {
    let log = realm.servers.log();
    let denied = log.lines().filter(|line| line.contains(VIOLATION) && !may_be(line));
    let denied: Vec<&str> = denied.collect();
    assert!(denied.is_empty(), "{denied:#?}");
    for name in realm.names() {
        let log = realm.log_of(name);
        assert!(!log.contains("denies this process"), "{name}: {log}");
    }
}

/// Runs a command, which succeeds.
async fn command(realm: &Deployed, line: &[&str]) -> String {
    let mut command = Command::new("annals");
    command.args(line).envs(realm.operator());
    let (status, said) = run(&mut command).await;
    assert!(status.success(), "{}: {said}", line.join(" "));
    said
}

/// Every command of an operator that has a subject of its own.
async fn operate(realm: &Deployed) {
    let said = command(realm, &["realm", "processes"]).await;
    assert!(said.contains("cell"), "{said}");
    command(realm, &["realm", "cells"]).await;
    command(realm, &["realm", "costs"]).await;
    command(realm, &["realm", "query", "Account"]).await;
    command(realm, &["realm", "audit-ledger"]).await;
    assert_shards_are_used(realm).await;
    let grant = ["realm", "grant", "bot0", "--units", "coin=5", "--slot", "carried"];
    let by = ["--by", "Grace Hopper", "--reason", "case 7"];
    command(realm, &[&grant[..], &by].concat()).await;
    let said = command(realm, &["log", "tail"]).await;
    assert!(!said.is_empty(), "the log can be read");
    command(realm, &["log", "verify"]).await;
}

/// Both shards have owners, and their dbs fold them.
async fn assert_shards_are_used(realm: &Deployed) {
    let bus = Bus::connect(realm.servers.address("operator"), "test")
        .await
        .expect("the user exists");
    let store = remote_store(&bus, &Subjects::new(REALM));
    let folded = async {
        loop {
            let owners = read_owners(&store).await.expect("the store answers");
            let mut shards = BTreeSet::new();
            for (owner, record) in &owners {
                let cursor = read_cursor(&store, *owner).await.expect("the store answers");
                shards.extend((cursor.batch > BatchNumber(0)).then_some(record.shard));
            }
            if shards.len() == 2 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(TIMEOUT, "both shards to be folded", folded).await;
}

/// What the user `console` may ask for: lists, overviews and health. Nothing stops the realm.
async fn ask_as_console(realm: &Deployed) {
    let bus = Bus::connect(realm.servers.address("console"), "test")
        .await
        .expect("the user exists");
    let listing = Subjects::new(REALM).listing();
    let ask = |ask| DirectorRequest { ask: Some(ask) };
    let asked = ask(DirectorAsk::Processes(ListProcesses {}));
    let listed: ProcessList = request(&bus, "director", listing.clone(), &asked)
        .await
        .expect("the director answers");
    assert!(listed.processes.len() > 3, "{listed:?}");
    let asked = ask(DirectorAsk::Stop(StopRealm {
        stop: true,
        ..StopRealm::default()
    }));
    let refused = request::<StopStage>(&bus, "director", listing.clone(), &asked).await;
    assert!(refused.is_err(), "{refused:?}");
    let operator = Bus::connect(realm.servers.address("operator"), "test")
        .await
        .expect("the user exists");
    let (director, asked) = (Subjects::new(REALM).service("director"), StopRealm::default());
    let stage: StopStage = request(&operator, "director", director, &ask(DirectorAsk::Stop(asked)))
        .await
        .expect("the director answers");
    assert_eq!(stage.stage, Stage::Running.number(), "nothing has stopped");
    let asked = ask(DirectorAsk::Cells(ListCells {}));
    let cells: WireCellList = request(&bus, "director", listing, &asked)
        .await
        .expect("the director answers");
    let cell = CellList::try_from(&cells).expect("a list").cells[0];
    let asked = OverviewRequest::of_space(cell.space);
    let overview = Subjects::new(REALM).overview(cell.area.owner);
    let overview = request::<WireOverview>(&bus, "cell", overview, &asked).await;
    overview.expect("the cell answers");
    let name = REALM.parse().expect("a name");
    let found = discover(&bus, &name, Duration::from_secs(5), |found| found.len() > 5).await;
    assert!(found.as_ref().is_ok_and(|found| found.len() > 5), "{found:?}");
}

/// The operators' pages of a console that is the user `console`.
async fn watch(realm: &Deployed) {
    let folder = realm.scratch().join("console");
    let console = |line: &[&str]| {
        let mut command = Command::new(binary("annals-console").expect("it is built"));
        command
            .envs(realm.servers.environment("console"))
            .env("ANNALS_CONSOLE_FOLDER", &folder)
            .args(line)
            .kill_on_drop(true);
        command
    };
    let mut serving = console(&["serve", "--listen", "127.0.0.1:0"]);
    let serving = serving.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _serving = serving.expect("it starts, though nobody can log in yet");
    within(TIMEOUT, "the console", async {
        while !folder.join("address").exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let (status, said) = run(&mut console(&[
        "person",
        "add",
        "otto",
        "--role",
        "operator",
        "--by-link",
    ]))
    .await;
    assert!(status.success(), "{said}");
    let (status, link) = run(&mut console(&["link", "otto"])).await;
    assert!(status.success(), "{link}");
    if !browser::is_installed() {
        return;
    }
    let link = link.lines().find(|line| line.starts_with("http://")).expect("a link");
    let otto = Browser::start().await;
    enter(&otto, link).await;
    let live = "document.getElementById('live-state').textContent === 'Live'";
    until(&otto, "entities", "dots.size > 0").await;
    for (page, content) in [("Processes", "signer"), ("Logs", "no log is blocked")] {
        otto.follow(page).await;
        until(&otto, page, live).await;
        let text = otto.text("main").await;
        assert!(text.contains(content), "{page}: {text}");
    }
}

/// What a user must not be able to do.
struct User {
    name: &'static str,
    publishes: &'static [&'static str],
    subscribes: &'static [&'static str],
}

/// What is denied to every user: administration of streams, the subjects of others, the system.
const DENIED_TO_ALL: [&str; 7] = [
    "$JS.API.STREAM.DELETE.annals_annals_history_0",
    "$JS.API.STREAM.UPDATE.annals_annals_history_0",
    "$JS.API.STREAM.MSG.DELETE.annals_annals_history_0",
    "$SYS.REQ.SERVER.PING",
    "annals.annals.news.other",
    "annals.annals.log",
    "_INBOX.other.answer",
];

/// What no user may read: everything, the logs, the system, what others are answered.
const SUBSCRIBED_BY_NONE: [&str; 6] = [
    ">",
    "annals.>",
    "annals.annals.log.0.*",
    "annals.annals.fill.0.*",
    REPORTS,
    "_INBOX.>",
];

const USERS: [User; 8] = [
    User {
        name: "director",
        publishes: &[
            "annals.annals.log.0.1",
            "annals.annals.orders.1",
            "annals.annals.owner.1",
            "annals.annals.sessions.1",
            "annals.annals.news.cursors",
            "$JS.API.STREAM.MSG.GET.annals_annals_history_0",
            "$JS.API.CONSUMER.CREATE.annals_annals_history_0.any",
        ],
        subscribes: &["annals.annals.service.store", "annals.annals.owner.*", "_INBOX.db.>"],
    },
    User {
        name: "db",
        publishes: &[
            "annals.annals.orders.1",
            "annals.annals.sessions.1",
            "annals.annals.lives.1",
            "annals.annals.news.course",
            "annals.annals.summons.1",
        ],
        subscribes: &[
            "annals.annals.service.director",
            "annals.annals.sessions.*",
            "_INBOX.base.>",
        ],
    },
    User {
        name: "login",
        publishes: &[
            "annals.annals.log.0.1",
            "annals.annals.fill.0.1",
            "annals.annals.orders.1",
            "annals.annals.owner.1",
            "$JS.API.STREAM.CREATE.annals_annals_history_0",
            "$JS.API.STREAM.PURGE.annals_annals_history_0",
            "$JS.API.STREAM.MSG.GET.annals_annals_history_0",
            "$JS.API.DIRECT.GET.annals_annals_history_0",
            "$JS.API.CONSUMER.CREATE.annals_annals_history_0.any",
            "$JS.API.CONSUMER.MSG.NEXT.annals_annals_history_0.any",
        ],
        subscribes: &["annals.annals.service.db", "annals.annals.sessions.*", "_INBOX.db.>"],
    },
    User {
        name: "base",
        publishes: &[
            "annals.annals.log.other",
            "annals.annals.change.base",
            "annals.annals.orders.1",
            "annals.annals.sessions.1",
            "annals.annals.news.cursors",
            "annals.annals.news.course",
            "annals.annals.summons.1",
            "$JS.API.STREAM.CREATE.other",
            "$JS.API.STREAM.PURGE.annals_annals_history_0",
        ],
        subscribes: &[
            "annals.annals.service.db",
            "annals.annals.service.store",
            "_INBOX.login.>",
        ],
    },
    User {
        name: "cell",
        publishes: &[
            // A change of a setting by `annals realm watch`.
            "annals.annals.change.cell",
            // An order of `annals realm grant`.
            "annals.annals.orders.1",
            "annals.annals.sessions.1",
            "annals.annals.lives.1",
            "annals.annals.service.db",
            "annals.annals.news.cursors",
            "annals.annals.summons.1",
            "$JS.API.STREAM.CREATE.other",
            "$JS.API.STREAM.PURGE.annals_annals_history_0",
        ],
        subscribes: &["annals.annals.orders.*", "annals.annals.sessions.*", "_INBOX.base.>"],
    },
    User {
        name: "signer",
        publishes: &[
            "annals.annals.log.0.1",
            "annals.annals.service.director",
            "annals.annals.service.db",
            "annals.annals.orders.1",
            "$JS.API.STREAM.INFO.annals_annals_history_0",
        ],
        subscribes: &["annals.annals.service.store", "_INBOX.db.>"],
    },
    User {
        name: "console",
        publishes: &[
            "annals.annals.log.0.1",
            "annals.annals.service.director",
            "annals.annals.service.db",
            "annals.annals.orders.1",
            "annals.annals.owner.1",
            "annals.annals.change.cell",
            "annals.annals.inspect.1",
        ],
        subscribes: &[
            "annals.annals.service.store",
            "annals.annals.listing",
            "annals.annals.overview.*",
            "_INBOX.operator.>",
        ],
    },
    User {
        name: "operator",
        publishes: &[
            "annals.annals.log.0.1",
            "annals.annals.fill.0.1",
            "annals.annals.owner.1",
            "annals.annals.news.course",
            "$JS.API.STREAM.CREATE.other",
            "$JS.API.STREAM.PURGE.annals_annals_history_0",
        ],
        subscribes: &["annals.annals.service.db", "annals.annals.owner.*", "_INBOX.db.>"],
    },
];

/// A connection as one user, with the denials that the server reports to it.
struct Prober {
    client: Client,
    denials: Arc<Mutex<Vec<String>>>,
}

impl Prober {
    async fn connect(servers: &Servers, user: &str) -> Self {
        let credentials = servers.file(&format!("services/{user}.credentials"));
        let text = fs::read_to_string(credentials).expect("it was made");
        let (name, password) = text.trim().split_once(':').expect("a user and a password");
        Self::connect_as(servers, (name, password), user).await
    }

    async fn connect_as(servers: &Servers, (name, password): (&str, &str), certificate: &str) -> Self {
        let denials = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&denials);
        let of = |kind: &str| servers.file(&format!("services/{certificate}.{kind}"));
        let options = ConnectOptions::with_user_and_password(name.to_owned(), password.to_owned())
            .add_root_certificates(servers.file("services/ca.pem"))
            .add_client_certificate(of("pem"), of("key"))
            .custom_inbox_prefix(format!("_INBOX.{name}"))
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    reported.lock().expect("it is not poisoned").push(error.to_string());
                }
                std::future::ready(())
            });
        let client = options.connect(servers.url()).await.expect("the user exists");
        Self { client, denials }
    }

    async fn probe(&self, user: User) {
        for subject in DENIED_TO_ALL.iter().chain(user.publishes) {
            self.assert_cannot_publish(user.name, subject).await;
        }
        for subject in SUBSCRIBED_BY_NONE.iter().chain(user.subscribes) {
            self.assert_cannot_subscribe(user.name, subject).await;
        }
    }

    async fn assert_cannot_publish(&self, user: &str, subject: &str) {
        self.client
            .publish(subject.to_owned(), "x".into())
            .await
            .expect("it is sent");
        self.assert_denied(user, "publish to", subject).await;
    }

    async fn assert_cannot_subscribe(&self, user: &str, subject: &str) {
        let _subscription = self.client.subscribe(subject.to_owned()).await.expect("it is sent");
        self.assert_denied(user, "subscription to", subject).await;
    }

    async fn assert_denied(&self, user: &str, what: &str, subject: &str) {
        self.client.flush().await.expect("the server answers");
        let wanted = format!("permissions violation for {what} \"{subject}\"").to_lowercase();
        let is_denied = || {
            let denials = self.denials.lock().expect("it is not poisoned");
            denials.iter().any(|denial| denial.to_lowercase().contains(&wanted))
        };
        let denied = async {
            while !is_denied() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(DENIED_WITHIN, &format!("{user} to be denied: {what} {subject}"), denied).await;
    }
}

/// The user of the system account sees closed connections, and can do nothing else; no other user is in that account.
async fn check_reports(servers: &Servers) {
    let system = servers.file("services/director.system");
    let text = fs::read_to_string(&system).expect("it was made");
    let (_, rest) = text.split_once("reports:").expect("a user");
    let (password, _) = rest.split_once('@').expect("a password");
    let prober = Prober::connect_as(servers, ("reports", password), "director").await;
    for subject in [
        "$SYS.REQ.SERVER.PING",
        "$SYS.REQ.ACCOUNT.ANNALS.CONNZ",
        "annals.annals.orders.1",
    ] {
        prober.assert_cannot_publish("reports", subject).await;
    }
    for subject in ["$SYS.>", "$SYS.ACCOUNT.*.CONNECT", ">"] {
        prober.assert_cannot_subscribe("reports", subject).await;
    }
    let mut reports = Reports::listen(&system, &servers.address("director").access)
        .await
        .expect("the file names a user");
    // Connections are closed until the subscription is seen to work.
    let reported = async {
        loop {
            let closed = Bus::connect(servers.address("signer"), "test")
                .await
                .expect("it is admitted");
            let name = closed.connection();
            drop(closed);
            if tokio::time::timeout(Duration::from_millis(200), reports.closed()).await == Ok(name) {
                return;
            }
        }
    };
    within(TIMEOUT, "a closed connection to be reported", reported).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_keep_a_log_together_and_refuse_a_stranger() {
    let servers = Servers::start(3).await;
    let bus = Bus::connect(servers.address("db"), "test")
        .await
        .expect("it is admitted");
    let history = History::ensure(&bus, REALM, FIRST_SHARD, 3)
        .await
        .expect("the stream has three replicas");
    let info = history.stream().get_info().await.expect("the stream has a leader");
    let replicas = info.cluster.expect("it is in a cluster").replicas.len();
    assert_eq!(replicas, 2, "beside the leader");

    let mut wrong = servers.address("cell");
    let credentials = write(&servers, "wrong", "cell:not the password", 0o600);
    wrong.access.credentials = Some(credentials);
    let refused = Bus::connect(wrong, "test")
        .await
        .expect_err("the password is wrong")
        .to_string();
    assert!(refused.contains("check that nats_credentials"), "{refused}");

    let mut stranger = servers.address("cell");
    stranger.access.certificate = None;
    let refused = Bus::connect(stranger, "test")
        .await
        .expect_err("it shows no certificate")
        .to_string();
    assert!(refused.contains("nats_certificate"), "{refused}");
}

fn write(servers: &Servers, name: &str, text: &str, mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = servers.file(name);
    fs::write(&path, text).expect("it is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode is set");
    path
}
