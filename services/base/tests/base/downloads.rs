//! Downloads: recorded before they are sent, sent at a limited rate, continued where the client has them, and ended
//! once.

use std::num::NonZeroU32;

use annals_base::{BaseInput, DOWNLOAD_BITS};
use annals_def::split_mix;
use annals_event::Body;
use annals_ids::{CallNumber, EntityId, MemberId};
use annals_node::{
    Context, Denied,
    download::{DOWNLOADS, MAX_DOWNLOADS, MAX_FILE_NAME, MAX_LOGGED_CONTENT},
};
use annals_wire::client::{DownloadId, DownloadProgress, MAX_DESCRIPTION_BYTES, ToServer};

use crate::{
    game::{FETCHED, Game, NOTE, TIMEOUT_MS},
    host::{Host, Mood, map},
    lifecycle::trail,
    player::{Player, log_in},
};

const RUN_ERRAND: MemberId = MemberId(17);
const LEAVE: MemberId = MemberId(3);

/// Longer than the longest pause between two sends of a call.
const RESENT_MS: u64 = 9_000;

const ACCOUNT: u64 = 1;

/// A second and a half at the default rate.
const CONTENT_BYTES: usize = 18_000;

/// Bytes that a client is sent in a second, and in a slot of 100 ms.
const RATE: usize = DOWNLOAD_BITS.get() as usize / 8;
const SLOT_BYTES: usize = RATE / 10;

/// Bytes of a chunk's frame beside its content.
const AROUND_CHUNK: usize = 16;

fn content() -> Vec<u8> {
    let mut dice = split_mix(1);
    (0..CONTENT_BYTES).map(|_| dice().to_le_bytes()[0]).collect()
}

fn then() -> (u32, Vec<u8>) {
    (FETCHED, NOTE.to_vec())
}

fn stream(context: &mut Context<'_>) {
    context.stream_to_client("map", content(), TIMEOUT_MS, then()).unwrap();
}

fn stream_file(context: &mut Context<'_>) {
    context
        .stream_file_to_client("film", "intro/film.bin", TIMEOUT_MS, then())
        .unwrap();
}

fn host_with(errand: fn(&mut Context<'_>)) -> Host {
    let mut host = Host::of(Game {
        errand: Some(errand),
        ..Game::default()
    });
    host.role(BaseInput::Map(map()));
    host
}

/// A host whose game does this on request, and a player there.
fn playing(errand: fn(&mut Context<'_>)) -> (Host, Player, EntityId) {
    let mut host = host_with(errand);
    let player = log_in(&mut host, ACCOUNT, 1);
    let (entity, _) = player.entity.expect("it was welcomed");
    (host, player, entity)
}

/// How the downloads of an entity have ended, in order.
fn ends(host: &Host, entity: EntityId) -> String {
    let trail = trail(host, entity);
    trail.chars().filter(|letter| "dxi".contains(*letter)).collect()
}

/// Lets time pass while the player reads.
fn play(host: &mut Host, player: &mut Player, milliseconds: u64) {
    for _ in 0..milliseconds / 50 {
        host.pass(50);
        player.listen(host);
    }
}

/// Numbers of the downloads in the entity's state, ended or not.
fn kept(host: &Host, entity: EntityId) -> Vec<CallNumber> {
    let sent = host.image(entity).links.sent.get(&DOWNLOADS);
    sent.map(|sent| sent.unconfirmed.keys().copied().collect())
        .unwrap_or_default()
}

#[test]
fn a_download_is_sent_after_its_batch_at_the_limited_rate_and_ends_once() {
    let (mut host, mut player, entity) = playing(stream);
    host.mood = Mood::Withholds;
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 500);
    assert!(player.partial.is_none(), "nothing is sent before it is in the log");
    host.answer_again();
    play(&mut host, &mut player, 4_000);
    let (begun, bytes) = player.downloaded.pop().expect("it has arrived");
    assert_eq!((begun.description.as_str(), bytes), ("map", content()));
    assert_eq!(player.chunk_bytes, CONTENT_BYTES, "nothing was sent twice");
    for (from, _) in &host.background {
        let within = host
            .background
            .iter()
            .filter(|(at, _)| (*from..from + 1_000).contains(at));
        let bytes: usize = within.map(|(_, bytes)| bytes).sum();
        assert!(bytes <= RATE + 11 * AROUND_CHUNK, "{bytes} bytes in a second");
    }
    host.pass(2 * TIMEOUT_MS);
    assert_eq!(ends(&host, entity), "d");
    assert!(kept(&host, entity).is_empty());
}

#[test]
fn a_download_continues_on_the_next_connection_and_after_a_crash() {
    for crashes in [false, true] {
        let (mut host, mut player, entity) = playing(stream);
        host.call(entity, RUN_ERRAND);
        play(&mut host, &mut player, 1_000);
        let before = player.chunk_bytes;
        assert!(before > 0 && before < CONTENT_BYTES, "{before}");
        if crashes {
            host.crash();
        } else {
            host.role(BaseInput::Closed {
                connection: player.connection,
            });
            host.out.clear();
        }
        player.connect(&mut host, 2);
        play(&mut host, &mut player, 4_000);
        let (_, bytes) = player.downloaded.pop().expect("it has arrived");
        assert_eq!(bytes, content());
        assert_eq!(
            player.chunk_bytes, CONTENT_BYTES,
            "crash: {crashes}: it continued where the client was"
        );
        assert_eq!(ends(&host, entity), "d");
    }
}

#[test]
fn a_client_that_does_not_answer_is_sent_no_more_than_the_window() {
    let (mut host, mut player, entity) = playing(stream);
    player.acknowledges = false;
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 1_000);
    assert_eq!(player.chunk_bytes, 0, "it has not said what it has");
    let id = player.partial.as_ref().expect("it was begun").0.id;
    let answer = |upto| ToServer::DownloadProgress(DownloadProgress { id, upto });
    player.send(&mut host, &answer(0));
    play(&mut host, &mut player, 3_000);
    assert_eq!(player.chunk_bytes, 5 * SLOT_BYTES);
    // Answers that cannot be true change nothing; one that is behind is where it continues.
    player.send(&mut host, &answer(CONTENT_BYTES as u64 + 1));
    let other = DownloadId {
        entity: EntityId(entity.0 + 1),
        ..id
    };
    let wrong = DownloadProgress {
        id: other,
        upto: CONTENT_BYTES as u64,
    };
    player.send(&mut host, &ToServer::DownloadProgress(wrong));
    play(&mut host, &mut player, 1_000);
    assert_eq!((player.chunk_bytes, ends(&host, entity).as_str()), (5 * SLOT_BYTES, ""));
    host.pass(TIMEOUT_MS);
    player.listen(&mut host);
    assert_eq!((ends(&host, entity).as_str(), &player.cancelled[..]), ("x", &[id][..]));
    assert!(kept(&host, entity).is_empty());
}

#[test]
fn chunks_that_the_client_dropped_are_sent_again_from_its_next_answer() {
    let (mut host, mut player, entity) = playing(stream);
    player.acknowledges = false;
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 500);
    let id = player.partial.as_ref().expect("it was begun").0.id;
    let answer = ToServer::DownloadProgress(DownloadProgress { id, upto: 0 });
    // An answer from before, and what was sent for it, which comes before the beginning and is dropped.
    player.send(&mut host, &answer);
    play(&mut host, &mut player, 500);
    let dropped = std::mem::take(&mut player.partial.as_mut().expect("it was begun").1);
    assert!(!dropped.is_empty());
    player.acknowledges = true;
    player.send(&mut host, &answer);
    play(&mut host, &mut player, 4_000);
    let (_, bytes) = player.downloaded.pop().expect("it has arrived");
    assert_eq!(bytes, content());
}

#[test]
fn the_rate_is_a_setting() {
    let mut host = Host::of(Game {
        errand: Some(stream),
        download_bits: NonZeroU32::new(10_000_000),
        ..Game::default()
    });
    host.role(BaseInput::Map(map()));
    let mut player = log_in(&mut host, ACCOUNT, 1);
    let (entity, _) = player.entity.expect("it was welcomed");
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 300);
    assert_eq!(player.downloaded.len(), 1, "several chunks leave at once");
}

#[test]
fn a_client_that_comes_later_gets_what_waits_for_it_and_a_file_that_is_missing_is_an_error() {
    let mut host = host_with(stream_file);
    let entity = host.begin_account(ACCOUNT);
    host.call(entity, RUN_ERRAND);
    host.pass(3_000);
    assert_eq!(ends(&host, entity), "", "there is no client");
    let mut player = log_in(&mut host, ACCOUNT, 1);
    play(&mut host, &mut player, 2_000);
    assert_eq!(ends(&host, entity), "i", "there is no such file");
    host.files.insert("intro/film.bin".to_owned(), content());
    host.call_again(entity, RUN_ERRAND);
    play(&mut host, &mut player, 4_000);
    let (begun, bytes) = player.downloaded.pop().expect("it has arrived");
    assert_eq!((begun.description.as_str(), bytes), ("film", content()));
    assert_eq!(ends(&host, entity), "id");
}

#[test]
fn what_was_dropped_is_requested_again_and_later_downloads_wait() {
    let (mut host, mut player, entity) = playing(|context| {
        stream_file(context);
        context
            .stream_to_client("news", b"n".to_vec(), TIMEOUT_MS, then())
            .unwrap();
    });
    host.files.insert("intro/film.bin".to_owned(), content());
    host.withholds_content = true;
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 1_000);
    assert!(player.partial.is_none(), "the second waits for the first");
    host.withholds_content = false;
    // The answer to the beginning is lost, as one that a full owner drops.
    player.acknowledges = false;
    play(&mut host, &mut player, 1_500);
    assert!(player.partial.is_some() && player.chunk_bytes == 0);
    player.acknowledges = true;
    play(&mut host, &mut player, 2_500);
    assert!(player.chunk_bytes > 0, "the client is asked again");
    play(&mut host, &mut player, 2_500);
    let descriptions = player.downloaded.iter().map(|(begun, _)| begun.description.as_str());
    assert_eq!(descriptions.collect::<Vec<_>>(), ["film", "news"]);
    assert_eq!(player.cancelled, []);
}

#[test]
fn a_file_that_has_changed_is_sent_from_its_beginning() {
    let (mut host, mut player, entity) = playing(stream_file);
    host.files.insert("intro/film.bin".to_owned(), vec![7; CONTENT_BYTES]);
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 1_000);
    assert!(player.chunk_bytes > 0);
    host.files.insert("intro/film.bin".to_owned(), content());
    host.crash();
    player.connect(&mut host, 2);
    play(&mut host, &mut player, 4_000);
    assert_eq!(player.downloaded.pop().expect("it has arrived").1, content());
}

#[test]
fn a_download_ends_with_its_cancellation_and_with_its_entity() {
    let (mut host, mut player, entity) = playing(|context| {
        let first = context.stream_to_client("map", content(), TIMEOUT_MS, then()).unwrap();
        let second = context.stream_to_client("", Vec::new(), TIMEOUT_MS, then()).unwrap();
        let third = context.stream_to_client("map", content(), TIMEOUT_MS, then()).unwrap();
        context.cancel_download(first).unwrap();
        context.cancel_download(CallNumber(third.0 + 1)).unwrap();
        assert!(first < second && second < third);
    });
    host.call(entity, RUN_ERRAND);
    play(&mut host, &mut player, 1_000);
    let descriptions: Vec<&str> = player
        .downloaded
        .iter()
        .map(|(begun, _)| begun.description.as_str())
        .collect();
    assert_eq!((descriptions, ends(&host, entity).as_str()), (vec![""], "d"));
    let id = player.partial.as_ref().expect("the third was begun").0.id;
    host.call_again(entity, LEAVE);
    host.pass(RESENT_MS);
    assert!(
        host.owner.state().estates.is_empty(),
        "{:?}",
        host.owner.state().estates
    );
    assert!(!host.owner.cx().is_download_open(id));
    host.crash();
}

#[test]
fn downloads_that_have_ended_behind_an_open_one_count() {
    let (mut host, _, entity) = playing(|context| {
        context.stream_to_client("", Vec::new(), TIMEOUT_MS, then()).unwrap();
        for _ in 1..MAX_DOWNLOADS {
            let next = context.stream_to_client("", Vec::new(), TIMEOUT_MS, then()).unwrap();
            context.cancel_download(next).unwrap();
        }
        let more = context.stream_to_client("", Vec::new(), TIMEOUT_MS, then());
        assert_eq!(more, Err(Denied::TooManyDownloads));
    });
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert_eq!(kept(&host, entity).len(), MAX_DOWNLOADS);
}

#[test]
fn limits_are_denied_by_name() {
    let (mut host, _, entity) = playing(|context| {
        let long = "d".repeat(MAX_DESCRIPTION_BYTES + 1);
        let denied = [
            context.stream_to_client(&long, Vec::new(), TIMEOUT_MS, then()),
            context.stream_to_client("", vec![0; MAX_LOGGED_CONTENT + 1], TIMEOUT_MS, then()),
            context.stream_file_to_client("", "", TIMEOUT_MS, then()),
            context.stream_file_to_client("", &"f".repeat(MAX_FILE_NAME + 1), TIMEOUT_MS, then()),
        ];
        for denied in denied {
            assert!(matches!(denied, Err(Denied::Download { .. })), "{denied:?}");
        }
        for _ in 0..MAX_DOWNLOADS {
            context.stream_to_client("", Vec::new(), TIMEOUT_MS, then()).unwrap();
        }
        let more = context.stream_to_client("", Vec::new(), TIMEOUT_MS, then());
        assert_eq!(more, Err(Denied::TooManyDownloads));
    });
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert_eq!(kept(&host, entity).len(), MAX_DOWNLOADS);
}

/// Downloads, lost connections, crashes and time in any order: each download ends once, and each that ended with the
/// client having it arrived whole.
#[test]
fn each_download_ends_once_whatever_happens() {
    for seed in 0..40 {
        let mut dice = split_mix(seed);
        let (mut host, mut player, entity) = playing(stream);
        let (mut made, mut connection) = (0, 1);
        for _ in 0..30 {
            match dice() % 6 {
                0 => {
                    made += 1;
                    host.call_numbered(entity, RUN_ERRAND, CallNumber(made));
                    host.settle();
                }
                1 => {
                    host.settle();
                    host.crash();
                    connection += 1;
                    player.connect(&mut host, connection);
                }
                2 => {
                    host.role(BaseInput::Closed {
                        connection: player.connection,
                    });
                    host.out.clear();
                    connection += 1;
                    player.connect(&mut host, connection);
                }
                _ => play(&mut host, &mut player, dice() % 2_000),
            }
            player.listen(&mut host);
        }
        play(&mut host, &mut player, 2 * TIMEOUT_MS);
        let trail = ends(&host, entity);
        let ended = |letter| trail.chars().filter(|found| *found == letter).count();
        assert_eq!((ended('d') + ended('x')) as u64, made, "seed {seed}: {trail}");
        assert!(player.downloaded.len() >= ended('d'), "seed {seed}: {trail}");
        assert!(
            player.downloaded.iter().all(|(_, bytes)| *bytes == content()),
            "seed {seed}"
        );
        assert!(kept(&host, entity).is_empty(), "seed {seed}");
        let calls = host.batches().flat_map(|batch| batch.events);
        let logged = calls.filter(|event| matches!(event.body, Body::Called { to: DOWNLOADS, .. }));
        assert_eq!(logged.count() as u64, made, "seed {seed}");
    }
}
