//! Stored entities in a live realm: bases that activate the same ones concurrently, a holder that crashes, and the
//! answers that each requester receives; and services outside the realm that an entity calls. Two base processes of the realm belong to this test, with a game that executes
//! the test's orders.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use annals::up::{Realm, RealmPlan};
use annals_db::{StoredEntity, accounts};
use annals_def::{Schema, Value};
use annals_director::read_owners;
use annals_event::{CallError, Place};
use annals_host::{
    base::{self, DownloadSettings},
    cell,
    front::Front,
    health::Health,
    nats::Bus,
    process::{Settings, connect, remote_store, request},
    world::compile,
};
use annals_ids::{DatabaseId, EntityId, Mailbox, MemberId, OwnerId, OwnerKind, Part, SpaceId, TimerId, TypeId};
use annals_node::{
    Answer, Behaviour, Caller, Context, Request,
    inquiry::{Known, Learned, Life, NotLearned, Wanted},
    outbound::read_answer,
    writer::Durability,
};
use annals_realm::Folder;
use annals_store::{Store, Transaction, layout::database};
use annals_wire::{
    Subjects,
    control::{BeginLife, CheckOut, CheckedOut, DbAsk, DbRequest, LifeBegun},
};
use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use crate::played::{are_built, connection_to, permit, repository, within};

/// The realm's name.
const REALM: &str = "lives";

/// Timeout of every step, on a machine that is busy with tests.
const TIMEOUT: Duration = Duration::from_secs(100);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Timeout of an entity's inquiry to the database, milliseconds. An inquiry whose entity is handed over, or whose process
/// ends, is answered then (P2), and repeated within [`TIMEOUT`].
const QUERY_TIMEOUT_MS: u64 = 20_000;

/// Entities that several bases activate concurrently.
const ENTITIES: u64 = 8;

/// Capacity for answers: more than are ever requested.
const ANSWER_CAPACITY: usize = 128;

/// Entities that are created, on each owner if it is named.
const CREATED: usize = 12;

/// The level of those entities.
const LEVEL: u64 = 77;

/// The level of an entity that its cell part has stored.
const STORED_LEVEL: u64 = 78;

/// What a service outside demands as authorization.
const SECRET: &str = "Bearer a secret";

/// File of the services that a base's game calls.
const SERVICES: &str = "outbound.toml";

/// The name of both requesting entities.
const TWIN: &str = "a twin";

/// An order to an entity.
enum Order {
    /// Only for the activation of this stored entity.
    Keep(DatabaseId),
    /// Find entities of this level.
    Find(u64),
    Begin(Wanted),
    /// Call this service outside the realm.
    Call(&'static str),
    /// Create an entity on the owner that the director names.
    Create,
    /// Create an entity on the home of this one.
    CreateBeside(Mailbox),
    /// Only for an avatar: create its cell part.
    CreateCell,
    /// Only for the cell part of an avatar: set its level, and request that it is stored.
    Store(u64),
    /// Only for the activation of this stored entity, once its holdings are known.
    Delete(DatabaseId),
}

type Outcome = Result<Learned, NotLearned>;

/// Behaviour that executes orders, during any entity's input.
struct Ordered {
    orders: Arc<Mutex<VecDeque<Order>>>,
    results: mpsc::Sender<Outcome>,
    answered: mpsc::Sender<annals_event::Outcome>,
}

impl Behaviour for Ordered {
    fn created(&self, context: &mut Context<'_>) {
        context.set_timer(0, POLL_INTERVAL.as_millis() as u64, 0);
    }

    fn timer(&self, context: &mut Context<'_>, timer: TimerId, _tag: u32) {
        let own = context.database();
        let is_ready = context.ledger().is_some_and(|view| view.holdings.is_some());
        let is_for_it = |order: &Order| match order {
            Order::Keep(entity) => Some(*entity) == own,
            Order::Delete(entity) => Some(*entity) == own && is_ready,
            // Of the others, some can have no cell part.
            Order::CreateCell | Order::Store(_) => context.entity_type().name == "Avatar",
            _ => true,
        };
        let mut orders = self.orders.lock().expect("the lock is not poisoned");
        let order = orders
            .front()
            .is_some_and(is_for_it)
            .then(|| orders.pop_front())
            .flatten();
        drop(orders);
        let (then, note) = (5, b"what for".to_vec());
        let asked = match order {
            None => Ok(()),
            Some(Order::Keep(_)) => context.store_then(QUERY_TIMEOUT_MS, (then, note)).map(drop),
            Some(Order::Find(level)) => {
                let level = (Value::UInt(level), DatabaseId(0));
                context.find_stored(("Avatar", "level"), level, QUERY_TIMEOUT_MS, (then, note))
            }
            Some(Order::Call(service)) => {
                let body = b"one sword".to_vec();
                context.call_outside(service, body, QUERY_TIMEOUT_MS, (then, note))
            }
            Some(Order::Create) => context.create_base_anywhere("Avatar", Vec::new(), QUERY_TIMEOUT_MS, (then, note)),
            Some(Order::CreateBeside(other)) => {
                context.create_base_beside(other, "Avatar", Vec::new(), QUERY_TIMEOUT_MS, (then, note))
            }
            Some(Order::CreateCell) => context.request(Request::CreateCell {
                entity: context.entity(),
                place: Place {
                    space: SpaceId(1),
                    ..Place::default()
                },
                properties: Vec::new(),
            }),
            Some(Order::Store(level)) => {
                let entity = context.entity();
                let set = context.set("level", Value::UInt(level));
                set.and_then(|()| context.request(Request::Store { entity }))
            }
            Some(Order::Delete(_)) => {
                // An answer to a later order would not reach it.
                context.cancel_timer(timer);
                context.delete().map(drop)
            }
            Some(Order::Begin(wanted)) => context.begin_stored(wanted, QUERY_TIMEOUT_MS, (then, note)),
        };
        asked.unwrap_or_else(|denied| panic!("{denied}"));
    }

    fn learned(&self, _context: &mut Context<'_>, then: u32, note: &[u8], outcome: &Outcome) {
        assert_eq!((then, note), (5, &b"what for"[..]));
        // The test may have stopped listening.
        let _ = self.results.try_send(outcome.clone());
    }

    fn replied(&self, _context: &mut Context<'_>, then: u32, note: &[u8], outcome: &annals_event::Outcome) {
        assert_eq!((then, note), (5, &b"what for"[..]));
        let _ = self.answered.try_send(outcome.clone());
    }

    fn call(&self, _context: &mut Context<'_>, _method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        Answer::DONE
    }
}

/// The test's own cells: orders to their entities, and the answers they receive.
struct OwnCells {
    orders: Arc<Mutex<VecDeque<Order>>>,
    results: mpsc::Receiver<Outcome>,
}

impl OwnCells {
    fn order(&self, order: Order) {
        self.orders.lock().expect("the lock is not poisoned").push_back(order);
    }

    async fn ask(&mut self, order: Order) -> Outcome {
        self.order(order);
        let result = within(TIMEOUT, "an answer to a cell part", self.results.recv()).await;
        result.expect("the cells run")
    }

    /// Finds the entities of a level.
    async fn find(&mut self, level: u64) -> Vec<Known> {
        let asking = async {
            loop {
                match self.ask(Order::Find(level)).await {
                    Ok(Learned::Found(found)) => return found,
                    Err(NotLearned::Late) => {}
                    other => panic!("the index is there: {other:?}"),
                }
            }
        };
        within(TIMEOUT, "an answer that is not late", asking).await
    }
}

/// The test's own base: an owner, orders to its entities, and the answers they receive.
struct OwnBase {
    /// A stored entity that is active on it.
    asker: DatabaseId,
    orders: Arc<Mutex<VecDeque<Order>>>,
    results: mpsc::Receiver<Outcome>,
    answered: mpsc::Receiver<annals_event::Outcome>,
}

impl OwnBase {
    fn order(&self, order: Order) {
        self.orders.lock().expect("the lock is not poisoned").push_back(order);
    }

    async fn next_answer(&mut self) -> Outcome {
        let result = within(TIMEOUT, "an answer of the database", self.results.recv()).await;
        result.expect("the base runs")
    }

    /// Lets the entity call a service; returns status and body of the answer, or the error.
    async fn call(&mut self, service: &'static str) -> Result<(u16, Vec<u8>), CallError> {
        self.order(Order::Call(service));
        let outcome = within(TIMEOUT, "an answer from outside", self.answered.recv()).await;
        let outcome = outcome.expect("the base runs");
        read_answer(&outcome).map(|(status, body)| (status, body.to_vec()))
    }

    async fn ask(&mut self, order: Order) -> Outcome {
        self.order(order);
        self.next_answer().await
    }
}

/// The test's access to the realm.
struct World {
    settings: Settings,
    schema: Arc<Schema>,
    bus: Bus,
    subjects: Subjects,
    store: Store,
}

impl World {
    async fn base_owners(&self) -> BTreeSet<OwnerId> {
        self.owners(OwnerKind::Base).await
    }

    async fn owners(&self, kind: OwnerKind) -> BTreeSet<OwnerId> {
        let owners = read_owners(&self.store).await.expect("the store answers");
        let of_kind = owners.iter().filter(|(_, record)| record.kind == kind);
        of_kind.map(|(owner, _)| *owner).collect()
    }

    /// Joins the realm with a cell process, and waits until it holds an owner.
    async fn join_as_cell(&self) -> OwnCells {
        let before = self.owners(OwnerKind::Cell).await;
        let orders = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, results) = mpsc::channel(ANSWER_CAPACITY);
        let (answers, _) = mpsc::channel(ANSWER_CAPACITY);
        let game = Ordered {
            orders: Arc::clone(&orders),
            results: sender,
            answered: answers,
        };
        let (settings, schema) = (self.settings.clone(), Arc::clone(&self.schema));
        tokio::spawn(async move {
            let health = Health::default();
            let ended = cell::run(
                (&settings, &health),
                schema,
                Arc::new(game),
                Durability::Log,
                None,
                None,
            )
            .await;
            ended.unwrap_or_else(|error| panic!("{error}"));
        });
        let joining = async {
            while self.owners(OwnerKind::Cell).await == before {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        within(TIMEOUT, "a cell owner to be granted", joining).await;
        OwnCells { orders, results }
    }

    /// Joins the realm with a base process, and waits until it holds an owner.
    async fn join(&self, folder: &Path, asker: DatabaseId) -> OwnBase {
        let before = self.base_owners().await;
        let orders = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, results) = mpsc::channel(ANSWER_CAPACITY);
        let (answers, answered) = mpsc::channel(ANSWER_CAPACITY);
        let game = Ordered {
            orders: Arc::clone(&orders),
            results: sender,
            answered: answers,
        };
        let front = Front {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: None,
            web_origins: None,
            certificate: None,
            directory: folder.to_owned(),
        };
        let (settings, schema) = (self.settings.clone(), Arc::clone(&self.schema));
        tokio::spawn(async move {
            let ended = base::run(
                (&settings, &Health::default()),
                schema,
                Arc::new(game),
                Durability::Log,
                &front,
                (Some(&front.directory.join(SERVICES)), DownloadSettings::default()),
            )
            .await;
            ended.unwrap_or_else(|error| panic!("{error}"));
        });
        let joining = async {
            loop {
                if let Some(owner) = self.base_owners().await.difference(&before).next() {
                    return *owner;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let owner = within(TIMEOUT, "an owner to be granted", joining).await;
        self.begin_on(owner, asker).await;
        OwnBase {
            asker,
            orders,
            results,
            answered,
        }
    }

    /// Creates a stored entity, with the properties of avatars.
    async fn make(&self, entity_type: &str, account: &str, name: &str) -> DatabaseId {
        let level = if name == TWIN { 1 } else { LEVEL };
        let properties = [("name", Value::Unicode(name.to_owned())), ("level", Value::UInt(level))];
        let entity = StoredEntity {
            entity_type: entity_type.to_owned(),
            properties: properties.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        let made = accounts::create(&self.store, account.as_bytes(), "-", &entity, &self.schema).await;
        made.expect("the store answers").database
    }

    /// Checks an entity out to an owner, through db.
    async fn check_out(&self, owner: OwnerId, database: DatabaseId) -> CheckedOut {
        let ask = DbAsk::CheckOut(CheckOut {
            database: database.0,
            preferred: owner.0,
            plays: false,
            only_active: false,
        });
        let (subject, ask) = (self.subjects.service("db"), DbRequest { ask: Some(ask) });
        let checked_out: CheckedOut = request(&self.bus, "db", subject, &ask).await.expect("db answers");
        assert_eq!((checked_out.owner, &checked_out.failed[..]), (owner.0, ""));
        checked_out
    }

    /// Requests an activation on an owner, as a process that has checked the entity out there does.
    async fn begin_on(&self, owner: OwnerId, database: DatabaseId) -> LifeBegun {
        let checked_out = self.check_out(owner, database).await;
        let asking = async {
            loop {
                let owners = read_owners(&self.store).await.expect("the store answers");
                let wanted = BeginLife {
                    database: database.0,
                    checkout: checked_out.checkout,
                    type_id: checked_out.type_id,
                    properties: checked_out.properties.clone(),
                    epoch: owners[&owner].epoch.0,
                    key: checked_out.key.clone(),
                };
                match request::<LifeBegun>(&self.bus, "base", self.subjects.lives(owner), &wanted).await {
                    Ok(begun) if begun.entity != 0 => return begun,
                    // The owner is being taken over.
                    Ok(_) | Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
                }
            }
        };
        within(TIMEOUT, "an activation to begin", asking).await
    }
}

fn begun(outcome: Outcome) -> (DatabaseId, Mailbox, bool) {
    match outcome {
        Ok(Learned::Begun {
            database,
            mailbox,
            was_active,
        }) => (database, mailbox, was_active),
        other => panic!("it lives: {other:?}"),
    }
}

fn named(schema: &Schema, name: &str) -> Order {
    Order::Begin(Wanted::Named {
        type_id: schema.type_named("Avatar").expect("the sample has avatars").id,
        identifier: Value::Unicode(name.to_owned()),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_entities_have_one_activation_despite_races_and_crashes() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let defs = repository().join("defs");
    let mut realm = Realm::start(RealmPlan::new(REALM, &defs, &folder.path().join("realm")))
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let settings = connection_to(REALM, realm.nats());
    let (bus, subjects) = connect(&settings, "test").await.expect("the bus is there");
    let store = remote_store(&bus, &subjects);
    let world = World {
        settings,
        schema: compile(&defs).expect("the sample compiles"),
        bus,
        subjects,
        store,
    };
    let founded = async {
        while world.base_owners().await.len() < 2 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    within(TIMEOUT, "the realm's own bases", founded).await;
    let theirs = world.base_owners().await;
    let shop = Shop::open(&world.bus).await;
    let mut bases = Vec::new();
    for number in 0..2 {
        let own = folder.path().join(format!("own-{number}"));
        std::fs::create_dir_all(&own).expect("a folder");
        shop.write_services(&own.join(SERVICES));
        let asker = world.make("Avatar", &format!("asker {number}"), TWIN).await;
        bases.push(world.join(&own, asker).await);
    }
    let lives = activate_concurrently(&world, &mut bases).await;
    check_look_ups(&world, &mut bases, &lives).await;
    call_services(&shop, &mut bases[0]).await;
    create_anywhere(&mut bases[0]).await;
    delete(&mut realm, &world, &mut bases[0]).await;
    crash_holder(&mut realm, &world, &mut bases[0], &theirs).await;
    ask_on_a_cell(&mut realm, &world, &bases[0]).await;
}

/// Two bases activate the same entities concurrently: each gets one activation, and both bases receive the same answer.
async fn activate_concurrently(world: &World, bases: &mut [OwnBase]) -> BTreeMap<DatabaseId, Mailbox> {
    let mut wanted = BTreeSet::new();
    for number in 0..ENTITIES {
        let name = format!("anna {number}");
        let database = world.make("Avatar", &format!("account {number}"), &name).await;
        wanted.insert(database);
        bases[0].order(Order::Begin(Wanted::Id(database)));
        bases[1].order(named(&world.schema, &name));
    }
    let mut answers: BTreeMap<DatabaseId, Vec<(Mailbox, bool)>> = BTreeMap::new();
    for base in bases {
        for _ in 0..ENTITIES {
            let (database, mailbox, was_active) = begun(base.next_answer().await);
            answers.entry(database).or_default().push((mailbox, was_active));
        }
    }
    assert!(answers.keys().eq(&wanted), "{answers:?}");
    let once = answers.into_iter().map(|(database, answers)| {
        let [(one, first), (two, second)] = answers[..] else {
            panic!("not exactly two answers for {database}: {answers:?}");
        };
        assert!(
            one == two && first != second,
            "not one activation of {database}: {answers:?}"
        );
        (database, one)
    });
    once.collect()
}

/// Look-ups return the entities' states, and writes are reported as done.
async fn check_look_ups(world: &World, bases: &mut [OwnBase], lives: &BTreeMap<DatabaseId, Mailbox>) {
    let offline = world.make("Avatar", "offline", "nobody plays her").await;
    // A new activation is folded shortly afterwards.
    let looking = async {
        loop {
            let Ok(Learned::Found(found)) = bases[1].ask(Order::Find(LEVEL)).await else {
                panic!("the index is there");
            };
            let found: BTreeMap<DatabaseId, Life> = found.iter().map(|known| (known.database, known.life)).collect();
            let mut expected: BTreeMap<DatabaseId, Life> = lives
                .iter()
                .map(|(id, mailbox)| (*id, Life::Active(*mailbox)))
                .collect();
            expected.insert(offline, Life::Offline);
            assert!(found.keys().eq(expected.keys()), "{found:?}");
            assert_eq!(found[&offline], Life::Offline);
            if found == expected {
                return;
            }
        }
    };
    within(TIMEOUT, "the activations to be folded", looking).await;
    for absent in [
        named(&world.schema, "who is this"),
        Order::Begin(Wanted::Id(DatabaseId(u64::MAX >> 1))),
    ] {
        assert_eq!(bases[0].ask(absent).await, Err(NotLearned::Absent));
    }
    // Both requesting entities have the same name, and the first is found by it.
    for (base, taken) in bases.iter_mut().zip([&[][..], &["name".to_owned()]]) {
        let (database, taken) = (base.asker, taken.to_vec());
        let written = base.ask(Order::Keep(database)).await;
        assert_eq!(written, Ok(Learned::Written { database, taken }));
    }
}

/// The mailbox of an entity that was created.
fn created(outcome: Outcome) -> Mailbox {
    match outcome {
        Ok(Learned::Created { mailbox }) => mailbox,
        other => panic!("it is created: {other:?}"),
    }
}

/// Entities are created on several owners, each where the director finds the fewest.
async fn create_anywhere(base: &mut OwnBase) {
    let mut homes: BTreeMap<OwnerId, BTreeSet<EntityId>> = BTreeMap::new();
    for _ in 0..CREATED {
        let mailbox = created(base.ask(Order::Create).await);
        homes.entry(mailbox.home).or_default().insert(mailbox.entity);
    }
    assert_eq!(homes.values().map(BTreeSet::len).sum::<usize>(), CREATED);
    assert!(homes.len() > 1, "{homes:?}");
}

/// A cell part looks entities up, has base parts created, and has its entity stored. The test's cell process takes over the space of the realm's.
async fn ask_on_a_cell(realm: &mut Realm, world: &World, base: &OwnBase) {
    let mut cells = world.join_as_cell().await;
    for name in ["cell-1", "cell-2"] {
        assert!(realm.kill(name).expect("it can be killed"), "there is a {name}");
    }
    base.order(Order::CreateCell);
    let found = cells.find(LEVEL).await;
    assert!(found.len() as u64 >= ENTITIES, "{found:?}");
    let one = created(cells.ask(Order::Create).await);
    let other = created(cells.ask(Order::CreateBeside(one)).await);
    assert_eq!(one.home, other.home);
    assert_ne!(one.entity, other.entity);
    // Its entity is in the database with what the cell part has set before.
    cells.order(Order::Store(STORED_LEVEL));
    let stored = async {
        while cells.find(STORED_LEVEL).await.len() != 1 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    within(TIMEOUT, "the entity to be stored for its cell part", stored).await;
}

/// A stored entity is deleted although the store is killed; nothing finds or activates it any more.
async fn delete(realm: &mut Realm, world: &World, base: &mut OwnBase) {
    let database = world.make("Avatar", "short", "a short life").await;
    let (_, _, was_active) = begun(base.ask(Order::Begin(Wanted::Id(database))).await);
    assert!(!was_active);
    base.order(Order::Delete(database));
    assert!(realm.kill("db").expect("it can be killed"), "there is one");
    assert!(realm.start_again("db").expect("it starts"));
    let ended = async {
        loop {
            match base.ask(Order::Begin(Wanted::Id(database))).await {
                Ok(Learned::Begun { was_active: true, .. }) => {}
                Err(NotLearned::Late) => {}
                Err(NotLearned::Absent) => break,
                other => panic!("it is active or deleted: {other:?}"),
            }
        }
        let key = database::checkout_key(database);
        let held = || {
            world.store.read(|transaction: Transaction| {
                let key = key.clone();
                async move { transaction.get(&key).await }
            })
        };
        while held().await.expect("the store answers").is_some() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    within(TIMEOUT, "the entity to be deleted", ended).await;
    assert_eq!(
        base.ask(named(&world.schema, "a short life")).await,
        Err(NotLearned::Absent)
    );
    let Ok(Learned::Found(found)) = base.ask(Order::Find(LEVEL)).await else {
        panic!("the index is there");
    };
    assert!(found.iter().all(|known| known.database != database), "{found:?}");
    let checked_out = accounts::check_out(&world.store, database, OwnerId(1)).await;
    assert_eq!(checked_out.expect("the store answers"), None);
}

/// Calls outside are repeated while a service is not there, each time with the same key, and are answered once.
async fn call_services(shop: &Shop, base: &mut OwnBase) {
    assert_eq!(base.call("shop").await, Ok((200, b"sold".to_vec())));
    let sold = shop.taken();
    assert_eq!(sold.len(), 3, "two attempts fail: {sold:?}");
    let first = &sold[0];
    assert!(first.len() == 32 && sold.iter().all(|key| key == first), "{sold:?}");
    assert_eq!(base.call("shop").await, Ok((200, b"sold".to_vec())));
    assert_ne!(shop.taken().last(), Some(first), "another call has another key");
    assert_eq!(base.call("bus").await, Ok((200, b"sold over the bus".to_vec())));
    assert_eq!(base.call("secret").await, Ok((200, SECRET.as_bytes().to_vec())));
    // Answers that no repetition would change, a redirect among them.
    for (service, status) in [("poor", 402), ("moved", 302)] {
        assert_eq!(base.call(service).await, Ok((status, b"no".to_vec())));
    }
    let large = base.call("large").await;
    assert!(
        matches!(&large, Err(CallError::Internal(text)) if text.contains("more than 262144 bytes")),
        "{large:?}"
    );
    let unknown = base.call("nobody").await;
    assert!(
        matches!(&unknown, Err(CallError::Internal(text)) if text.contains("no service nobody")),
        "{unknown:?}"
    );
}

/// A shop outside the realm, over HTTP and on its nats-server. At first it is overloaded.
struct Shop {
    address: SocketAddr,
    /// The keys of all requests over HTTP.
    keys: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    async fn open(bus: &Bus) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let keys = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&keys);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                serve(stream, &noted).await;
            }
        });
        let mut requests = bus.client().subscribe("shop.requests").await.expect("the bus is there");
        let client = bus.client().clone();
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                let reply = request.reply.expect("an answer is wanted");
                client
                    .publish(reply, "sold over the bus".into())
                    .await
                    .expect("the bus is there");
            }
        });
        Self { address, keys }
    }

    fn write_services(&self, path: &Path) {
        let secret = path.with_file_name("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).expect("a file");
        let mut text = "[bus]\nsubject = \"shop.requests\"\n".to_owned();
        for service in ["shop", "secret", "poor", "moved", "large"] {
            text += &format!("[{service}]\nurl = \"http://{}/{service}\"\n", self.address);
            if service == "secret" {
                text += &format!("authorization = {:?}\n", secret.display().to_string());
            }
        }
        std::fs::write(path, text).expect("a file");
    }

    fn taken(&self) -> Vec<String> {
        self.keys.lock().expect("the lock is not poisoned").clone()
    }
}

/// Answers one request.
async fn serve(mut stream: TcpStream, keys: &Mutex<Vec<String>>) {
    let mut request = String::new();
    while !request.ends_with("one sword") {
        let mut part = [0; 1024];
        let read = stream.read(&mut part).await.expect("a request");
        assert!(read > 0, "{request}");
        request.push_str(std::str::from_utf8(&part[..read]).expect("text"));
    }
    let header = |name: &str| request.lines().find_map(|line| line.strip_prefix(name));
    let target = request.strip_prefix("POST ").and_then(|rest| rest.split(' ').next());
    let large = "x".repeat(300 << 10);
    let (status, body) = match target.expect("a POST") {
        "/shop" => {
            let mut keys = keys.lock().expect("the lock is not poisoned");
            keys.push(header("idempotency-key: ").expect("a key").to_owned());
            match keys.len() {
                1 => ("503 Service Unavailable", "busy"),
                2 => ("429 Too Many Requests", "busy"),
                _ => ("200 OK", "sold"),
            }
        }
        "/secret" => ("200 OK", header("authorization: ").unwrap_or("none")),
        "/poor" => ("402 Payment Required", "no"),
        "/moved" => ("302 Found\r\nLocation: /shop", "no"),
        "/large" => ("200 OK", &*large),
        other => panic!("{other}: {request}"),
    };
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    // The caller stops reading an answer that is too large.
    let _ = stream.write_all(answer.as_bytes()).await;
}

fn base_part(home: OwnerId, entity: u64) -> Mailbox {
    Mailbox {
        entity: EntityId(entity),
        home,
        type_id: TypeId(0),
        part: Part::Base,
    }
}

/// The holder of an owner crashes: entities are created there once, its activations continue, and an entity that was checked out there but not activated
/// is activated by the new holder.
async fn crash_holder(realm: &mut Realm, world: &World, base: &mut OwnBase, theirs: &BTreeSet<OwnerId>) {
    let mut lost = BTreeMap::new();
    for (number, owner) in theirs.iter().enumerate() {
        let living = world.make("Account", &format!("living {number}"), "").await;
        let entity = world.begin_on(*owner, living).await.entity;
        let waiting = world.make("Account", &format!("waiting {number}"), "").await;
        world.check_out(*owner, waiting).await;
        lost.insert(*owner, (living, entity, waiting));
    }
    let beside: Vec<Mailbox> = lost
        .iter()
        .map(|(owner, (_, entity, _))| base_part(*owner, *entity))
        .collect();
    for _ in 0..CREATED {
        beside.iter().for_each(|other| base.order(Order::CreateBeside(*other)));
    }
    assert!(realm.kill("base-1").expect("it can be killed"), "there is one");
    let mut homes: BTreeMap<OwnerId, BTreeSet<EntityId>> = BTreeMap::new();
    for _ in 0..CREATED * beside.len() {
        let mailbox = created(base.next_answer().await);
        assert!(
            homes.entry(mailbox.home).or_default().insert(mailbox.entity),
            "{mailbox:?}"
        );
    }
    assert!(
        homes.keys().eq(lost.keys()) && homes.values().all(|made| made.len() == CREATED),
        "{homes:?}"
    );
    for (owner, (living, entity, waiting)) in lost {
        let (_, mailbox, was_active) = begun(base.ask(Order::Begin(Wanted::Id(living))).await);
        assert_eq!((mailbox.home, mailbox.entity.0, was_active), (owner, entity, true));
        let (_, first, was_active) = begun(base.ask(Order::Begin(Wanted::Id(waiting))).await);
        assert_eq!((first.home, was_active), (owner, false));
        let (_, again, was_active) = begun(base.ask(Order::Begin(Wanted::Id(waiting))).await);
        assert_eq!((again, was_active), (first, true));
    }
}
