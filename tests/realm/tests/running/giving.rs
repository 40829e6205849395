//! A client that is given from entity to entity, each on the other one of two base owners. Both base processes of the
//! realm belong to this test, with a game that gives the client away as soon as it comes.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use annals::up::{Realm, RealmPlan};
use annals_client::{Client, Config, Credentials, Event, Reads, Trust, client_endpoint};
use annals_def::Schema;
use annals_director::read_owners;
use annals_event::Place;
use annals_host::{
    base::{self, DownloadSettings},
    front::Front,
    health::Health,
    process::{Settings, connect, remote_store},
    world::compile,
};
use annals_ids::{EntityId, Mailbox, OwnerId, OwnerKind, Part, SpaceId, TypeId};
use annals_node::{
    Answer, Behaviour, Caller, Context, Denied, Request,
    inquiry::{Learned, NotLearned},
    writer::Durability,
};
use annals_realm::Folder;
use annals_store::Store;
use tokio::process::Command;

use crate::played::{are_built, binary, connection_to, permit, repository, until_event, within};

/// The realm's name.
const REALM: &str = "giving";

/// The account.
const NAME: &str = "hopper";

/// Timeout of every step, on a machine that is busy with tests.
const TIMEOUT: Duration = Duration::from_secs(100);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Timeout of an entity's request, milliseconds.
const REQUEST_TIMEOUT_MS: u64 = 90_000;

/// How often the client is given away: an odd number, so that the last entity is not on the account's owner.
const HOPS: u32 = 11;

/// The game: an entity that gets the client creates an avatar at the other owner, gives it the client, and ends if it is
/// an avatar itself.
struct Hopper {
    /// The two owners, once they are known.
    owners: OnceLock<[OwnerId; 2]>,
    hops: AtomicU32,
    account: TypeId,
}

impl Hopper {
    /// Any mailbox at the other owner.
    fn at_the_other(&self, context: &Context<'_>) -> Mailbox {
        let own = context.mailbox(Part::Base);
        let owners = self.owners.get().expect("the client comes after the owners are known");
        let home = *owners.iter().find(|owner| **owner != own.home).expect("there are two");
        Mailbox {
            entity: EntityId(1),
            home,
            ..own
        }
    }
}

impl Behaviour for Hopper {
    fn client_attached(&self, context: &mut Context<'_>) {
        let is_account = context.entity_type().id == self.account;
        if !is_account {
            let asked = context.request(Request::CreateCell {
                entity: context.entity(),
                place: Place {
                    space: SpaceId(1),
                    ..Place::default()
                },
                properties: Vec::new(),
            });
            asked.unwrap_or_else(|denied| panic!("{denied}"));
        }
        if self.hops.fetch_add(1, Ordering::Relaxed) < HOPS {
            let other = self.at_the_other(context);
            let asked = context.create_base_beside(other, "Avatar", Vec::new(), REQUEST_TIMEOUT_MS, (1, Vec::new()));
            asked.unwrap_or_else(|denied| panic!("{denied}"));
        }
    }

    fn learned(&self, context: &mut Context<'_>, _then: u32, _note: &[u8], outcome: &Result<Learned, NotLearned>) {
        let Ok(Learned::Created { mailbox: to }) = *outcome else {
            panic!("{outcome:?}")
        };
        let from = context.entity();
        let mut requests = vec![Request::GiveClient { from, to }];
        if context.entity_type().id != self.account {
            requests.push(Request::Destroy { entity: from });
        }
        for request in requests {
            context.request(request).unwrap_or_else(|denied| panic!("{denied}"));
        }
    }

    fn request_denied(&self, _context: &mut Context<'_>, request: &Request, why: &Denied) {
        panic!("{request:?}: {why}");
    }

    fn call(
        &self,
        _context: &mut Context<'_>,
        _method: annals_ids::MemberId,
        _args: &[annals_def::Value],
        _caller: &Caller,
    ) -> Answer {
        Answer::DONE
    }
}

/// Joins the realm with a base process.
fn join(settings: &Settings, schema: &Arc<Schema>, game: &Arc<Hopper>, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let front = Front {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: None,
        web_origins: None,
        certificate: None,
        directory: folder.to_owned(),
    };
    let (settings, schema, game) = (settings.clone(), Arc::clone(schema), Arc::clone(game));
    tokio::spawn(async move {
        let health = Health::default();
        let downloads = (None, DownloadSettings::default());
        let ended = base::run((&settings, &health), schema, game, Durability::Log, &front, downloads).await;
        ended.unwrap_or_else(|error| panic!("{error}"));
    });
}

/// Waits for the two base owners.
async fn owners(store: &Store) -> [OwnerId; 2] {
    let granted = async {
        loop {
            let owners = read_owners(store).await.expect("the store answers");
            let bases = owners.iter().filter(|(_, record)| record.kind == OwnerKind::Base);
            let bases: Vec<OwnerId> = bases.map(|(owner, _)| *owner).collect();
            if let [one, other] = bases[..] {
                return [one, other];
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    within(TIMEOUT, "two base owners", granted).await
}

/// An operator bans the account of a client, whichever owner the client is at.
async fn ban(realm: &Realm, client: &mut Client) {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command
        .args(["realm", "ban", NAME, "--by", "Grace Hopper", "--reason", "it hops"])
        .args(["--realm", REALM, "--nats", &realm.nats()]);
    let is_banned = |event: &Event| matches!(event, Event::Banned(_));
    let (output, _) = tokio::join!(command.output(), until_event(client, "the ban", is_banned));
    let output = output.expect("it runs");
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_goes_back_and_forth_between_two_base_owners_without_interruption() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let defs = repository().join("defs");
    let schema = compile(&defs).expect("the sample compiles");
    let plan = RealmPlan {
        bases: 0,
        cells: 1,
        ..RealmPlan::new(REALM, &defs, &folder.path().join("realm"))
    };
    let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
    let settings = connection_to(REALM, realm.nats());
    let (bus, subjects) = connect(&settings, "test").await.expect("the bus is there");
    let store = remote_store(&bus, &subjects);
    let account = schema.type_named("Account").expect("the sample has accounts").id;
    let game = Arc::new(Hopper {
        owners: OnceLock::new(),
        hops: AtomicU32::new(0),
        account,
    });
    for own in ["one", "other"] {
        join(&settings, &schema, &game, &folder.path().join(own));
    }
    game.owners.set(owners(&store).await).expect("it is set once");

    let (login, certificate) = realm.login;
    let config = Config {
        login,
        trust: Trust::Pinned(certificate),
        credentials: Credentials::password(NAME, "the password"),
        schema: Arc::clone(&schema),
        seed: 7,
        reads: Reads::Predicted,
    };
    let mut client = Client::start(client_endpoint(login).expect("a socket"), config);
    until_event(&mut client, "a log-in", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let mut controlled = Vec::new();
    while controlled.len() < HOPS as usize {
        let event = until_event(&mut client, "the client to be given away", |event| {
            matches!(event, Event::Controls { .. } | Event::Lost(_) | Event::Resumed { .. })
        })
        .await;
        match event {
            Event::Controls { entity, type_id } => {
                assert_ne!(type_id, account);
                controlled.push(entity);
            }
            other => panic!("an interruption after {} hops: {other:?}", controlled.len()),
        }
    }
    let mut distinct = controlled.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), controlled.len(), "each is another avatar");
    // The witness of the last one sends its views by way of the last owner.
    let last = controlled.last().copied().expect("it was given away");
    let is_in_world =
        |event: &Event| matches!(event, Event::Entered { part: Part::Cell, entity, .. } if *entity == last);
    until_event(&mut client, "the last avatar to enter the world", is_in_world).await;
    let counters = client.core().counters();
    assert_eq!((counters.moved, counters.resumed), (u64::from(HOPS), 0));
    ban(&realm, &mut client).await;
}
