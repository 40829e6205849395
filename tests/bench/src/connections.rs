//! Memory of connected clients: by how much base and cell grow for each client that is logged in and does nothing.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_def::{Schema, check_dir};
use futures::{StreamExt, stream};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Figure,
    lean::{Means, Session, Transport},
    processes::{self, Process},
    realm::{Realm, Shape, WORLD},
};

/// The number of QUIC clients; another one can be set with this variable.
const CLIENTS: u64 = 800;
const CLIENTS_VARIABLE: &str = "BENCH_CLIENTS";

/// Share of the clients that log in before the first measurement: they pay for what all clients share.
const FIRST: u64 = 4;

/// Concurrent log-ins: each waits up to a second for its avatar.
const AT_ONCE: usize = 32;

/// Time until what a log-in leaves behind is archived and freed.
const REST: Duration = Duration::from_secs(4);

/// Maximum memory of a client in base and cell, bytes.
const GOAL: f64 = 60_000.0;

const GIB: f64 = (1_u64 << 30) as f64;

/// Measures QUIC clients, and beside them WebSocket clients.
///
/// # Panics
/// If the realm's binaries are not built, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    let clients = std::env::var(CLIENTS_VARIABLE).ok().map_or(CLIENTS, |text| {
        let number = text.trim().parse().ok().filter(|number| *number >= FIRST);
        number.unwrap_or_else(|| panic!("{CLIENTS_VARIABLE}={text} is not a number of clients from {FIRST} on"))
    });
    measure(clients, (clients / 2).min(CLIENTS / 2))
}

/// The same with these numbers of clients.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn measure(by_quic: u64, by_web_socket: u64) -> Vec<Figure> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = crate::scratch();
    runtime.block_on(async {
        let realm = Realm::start(directory.path(), &shape()).await;
        let schema = Arc::new(check_dir(Path::new(WORLD)).0.expect("the sample's definitions compile"));
        let mut crowd = Crowd::new(&realm, schema);
        let quic = crowd.growth(Transport::Quic, by_quic).await;
        let web_socket = crowd.growth(Transport::WebSocket, by_web_socket).await;
        drop(crowd);
        realm.stop().await;
        figures(&quic, &web_socket)
    })
}

/// One base and one cell. All avatars stand on one plaza; each sees those within a step, so that memory of views does
/// not grow with the number of clients.
fn shape() -> Shape {
    Shape {
        each: 1,
        settings: vec![
            ("ANNALS_SPACES".to_owned(), "1 radius=1 hysteresis=1 cells=1".to_owned()),
            ("ANNALS_WEB_ORIGINS".to_owned(), "*".to_owned()),
        ],
        ..Shape::default()
    }
}

/// Resident memory of the processes that serve clients, bytes.
#[derive(Clone, Copy, Debug)]
struct Resident {
    base: f64,
    cell: f64,
}

/// Memory that further clients took.
#[derive(Clone, Copy, Debug)]
struct Growth {
    clients: u64,
    /// Bytes for each client.
    each: Resident,
    log_ins_per_second: f64,
}

impl Growth {
    fn of_both(&self) -> f64 {
        self.each.base + self.each.cell
    }
}

/// Clients that stay connected until this is dropped.
struct Crowd<'a> {
    realm: &'a Realm,
    schema: Arc<Schema>,
    clients: u64,
    staying: JoinSet<()>,
}

impl<'a> Crowd<'a> {
    fn new(realm: &'a Realm, schema: Arc<Schema>) -> Self {
        Self {
            realm,
            schema,
            clients: 0,
            staying: JoinSet::new(),
        }
    }

    /// Lets so many further clients in; returns what all but the first of them took.
    async fn growth(&mut self, transport: Transport, clients: u64) -> Growth {
        let means = Means::new(self.realm, &self.schema, transport, clients);
        let first = clients / FIRST;
        self.let_in(&means, first).await;
        let before = self.resident().await;
        let (began, rest) = (Instant::now(), clients - first);
        self.let_in(&means, rest).await;
        let seconds = began.elapsed().as_secs_f64();
        let after = self.resident().await;
        let each = |before: f64, after: f64| (after - before) / rest as f64;
        Growth {
            clients: rest,
            each: Resident {
                base: each(before.base, after.base),
                cell: each(before.cell, after.cell),
            },
            log_ins_per_second: rest as f64 / seconds,
        }
    }

    async fn let_in(&mut self, means: &Means, clients: u64) {
        let numbers = self.clients..self.clients + clients;
        self.clients = numbers.end;
        let open = |number| async move { Session::open(means, number, &mut |_| {}).await };
        let mut opened = stream::iter(numbers).map(open).buffer_unordered(AT_ONCE);
        while let Some(session) = opened.next().await {
            self.staying.spawn(session.stay());
        }
    }

    /// Memory after a rest. All clients are still there.
    async fn resident(&mut self) -> Resident {
        sleep(REST).await;
        let ended = self.staying.try_join_next();
        assert!(ended.is_none(), "a client was lost: {ended:?}");
        let processes = processes::below(self.realm.id());
        let of = |name: &str| {
            let process = processes.iter().find(|process| process.name.contains(name));
            let (now, _) = process.and_then(Process::held).expect("the process runs");
            now * 1e6
        };
        Resident {
            base: of("annals-base"),
            cell: of("annals-cell"),
        }
    }
}

fn figures(quic: &Growth, web_socket: &Growth) -> Vec<Figure> {
    let note = format!(
        "resident memory of base and cell for each idle client by QUIC, by the growth over {} log-ins at {:.0}/s; one to a few others \
         in view; baseline: the goal",
        quic.clients, quic.log_ins_per_second
    );
    let of = |part: &str| format!("of that, the part of {part}; baseline: all");
    let web = format!(
        "the same by WebSocket, over {} log-ins ({:.0} in the base); baseline: by QUIC",
        web_socket.clients, web_socket.each.base
    );
    let connections =
        format!("such clients for each GiB of base and cell; baseline: the goal, with {GOAL:.0} bytes each");
    vec![
        Figure::against("client_bytes", quic.of_both(), GOAL, "bytes", note),
        Figure::against(
            "client_bytes_base",
            quic.each.base,
            quic.of_both(),
            "bytes",
            of("the base"),
        ),
        Figure::against(
            "client_bytes_cell",
            quic.each.cell,
            quic.of_both(),
            "bytes",
            of("the cell"),
        ),
        Figure::against(
            "client_bytes_web_socket",
            web_socket.of_both(),
            quic.of_both(),
            "bytes",
            web,
        ),
        Figure::against(
            "connections_per_gib",
            GIB / quic.of_both(),
            GIB / GOAL,
            "clients",
            connections,
        ),
    ]
}
