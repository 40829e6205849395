//! Files and texts that a game sends to its players, over lost connections and a killed base.

use std::sync::Arc;

use annals_client::Event;
use annals_def::{DataType, Distribution, EntityType, Property, Schema};
use annals_event::{CallError, Outcome};
use annals_game::testing::{BASE, TestRealm};
use annals_ids::TypeId;
use annals_node::{Answer, Behaviour, Caller, Context};

const READER: TypeId = TypeId(0);

/// The continuation of each download.
const BOOK: u32 = 1;
const NEWS: u32 = 2;
const MISSING: u32 = 3;

const TIMEOUT_MS: u64 = 60_000;

/// Sends a book, the news and a book that does not exist to each player who comes.
struct Library;

fn reader() -> Arc<Schema> {
    let count = |name: &'static str| Property::new(name, DataType::UInt32, Distribution::BaseAndClient);
    let mut reader = EntityType::new("Reader");
    reader.properties = vec![count("read"), count("missing")];
    Arc::new(Schema::new(vec![reader], Vec::new(), Vec::new()))
}

fn add(context: &mut Context<'_>, property: &'static str) {
    let next = context.read::<u32>(property).unwrap() + 1;
    context.write(property, next).unwrap();
}

impl Behaviour for Library {
    fn client_attached(&self, context: &mut Context<'_>) {
        let then = |continuation| (continuation, Vec::new());
        for (book, continuation) in [("books/one", BOOK), ("books/none", MISSING)] {
            context
                .stream_file_to_client(book, book, TIMEOUT_MS, then(continuation))
                .unwrap();
        }
        let news = b"all is well".to_vec();
        context.stream_to_client("news", news, TIMEOUT_MS, then(NEWS)).unwrap();
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

    fn replied(&self, context: &mut Context<'_>, then: u32, _note: &[u8], outcome: &Outcome) {
        match (then, outcome) {
            (BOOK | NEWS, Ok(_)) => add(context, "read"),
            (MISSING, Err(CallError::Internal(why))) if why.contains("books/none") => add(context, "missing"),
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[test]
fn a_player_gets_what_the_game_sends_over_a_lost_connection_and_a_killed_base() {
    let mut realm = TestRealm::new(reader(), Arc::new(Library), READER);
    let book: Vec<u8> = (0..=u8::MAX).cycle().take(60_000).collect();
    realm.files.insert("books/one".to_owned(), book.clone());
    let player = realm.join();
    let progress = |realm: &TestRealm| {
        let events = realm.players[player].events.iter().rev();
        let mut received = events.filter_map(|event| match event {
            Event::DownloadProgressed { received, .. } => Some(*received),
            _ => None,
        });
        received.next().unwrap_or(0)
    };
    realm.until("a part is here", |realm| progress(realm) > 10_000);
    realm.cut_off(player);
    realm.pass(1_000);
    realm.reconnect(player);
    realm.until("more is here", |realm| progress(realm) > 30_000);
    realm.crash(BASE);
    let entity = realm.players[player].core.controls().unwrap().0;
    realm.until("everything is here", |realm| {
        realm.read::<u32>(player, entity, "read") == Some(2)
    });
    assert_eq!(realm.read::<u32>(player, entity, "missing"), Some(1));
    let mut arrived: Vec<(&str, &[u8])> = Vec::new();
    let mut newest = 0;
    for event in &realm.players[player].events {
        match event {
            Event::DownloadProgressed {
                description, received, ..
            } if description == "books/one" => {
                assert!(*received >= newest, "nothing is sent again");
                newest = *received;
            }
            Event::Downloaded {
                description, content, ..
            } => arrived.push((description, content)),
            _ => {}
        }
    }
    assert_eq!(arrived, [("books/one", &book[..]), ("news", b"all is well")]);
}
