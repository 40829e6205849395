//! Downloads: continued over connections, whole once, and answered at a limited rate.

use annals_client::{DownloadId, Event};
use annals_def::split_mix;
use annals_ids::{CallNumber, EntityId};
use annals_wire::client::{
    CloseReason, DownloadBegun, DownloadChunk, DownloadProgress, ToClient, ToServer, value_hash,
};

use super::{Asked, OTHER, OWN, Table};

const ID: DownloadId = DownloadId {
    entity: OWN,
    number: CallNumber(3),
};

fn content() -> Vec<u8> {
    (0..=u8::MAX).cycle().take(1_000).collect()
}

fn begun_of(id: DownloadId, content: &[u8]) -> ToClient {
    ToClient::DownloadBegun(DownloadBegun {
        id,
        size: content.len() as u64,
        hash: value_hash(content),
        description: "map".to_owned(),
    })
}

fn chunk(content: &[u8], from: usize, to: usize) -> ToClient {
    ToClient::DownloadChunk(DownloadChunk {
        id: ID,
        offset: from as u64,
        content: content[from..to].to_vec(),
    })
}

fn progress(upto: u64) -> Vec<ToServer> {
    vec![ToServer::DownloadProgress(DownloadProgress { id: ID, upto })]
}

/// The bytes that events say are here, and the content, if it is whole.
fn arrived(events: &[Event]) -> (Vec<u64>, Vec<&[u8]>) {
    let mut found = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::DownloadProgressed { received, size, .. } => {
                assert_eq!(*size, 1_000);
                found.0.push(*received);
            }
            Event::Downloaded { content, .. } => found.1.push(&content[..]),
            other => panic!("{other:?}"),
        }
    }
    found
}

#[test]
fn a_download_continues_on_the_next_connection_and_is_whole_once() {
    let content = content();
    let mut table = Table::seeing();
    table.say(&begun_of(ID, &content));
    assert_eq!(table.frames(), progress(0));
    table.wait(20);
    table.say(&chunk(&content, 0, 300));
    assert_eq!(table.frames(), [], "answers are at most ten a second");
    table.wait(80);
    assert_eq!(table.frames(), progress(300));
    table.say(&chunk(&content, 100, 300));
    table.say(&chunk(&content, 300, 400));
    // The base of another epoch names it again.
    table.say(&begun_of(ID, &content));
    assert_eq!(table.frames(), progress(400));
    table.say(&chunk(&content, 400, 1_000));
    assert_eq!(table.frames(), progress(1_000));
    let events = table.events();
    assert_eq!(arrived(&events), (vec![0, 300, 400], vec![&content[..]]));
    // A base that had not recorded that begins it once more.
    table.say(&begun_of(ID, &content));
    assert_eq!((table.frames(), table.events()), (progress(1_000), vec![]));
}

#[test]
fn other_content_begins_again_and_content_that_does_not_fit_its_hash_is_not_delivered() {
    let content = content();
    let mut table = Table::seeing();
    table.say(&begun_of(ID, &vec![7; 1_000]));
    table.say(&chunk(&[7; 1_000], 0, 300));
    table.say(&begun_of(ID, &content));
    assert_eq!(table.frames(), [progress(0), progress(0)].concat());
    table.say(&chunk(&[7; 1_000], 0, 1_000));
    assert_eq!(table.frames(), progress(0), "it is wanted again");
    table.say(&chunk(&content, 0, 1_000));
    assert_eq!(table.frames(), progress(1_000));
    assert_eq!(arrived(&table.events()).1, [&content[..]]);
}

#[test]
fn a_chunk_that_contradicts_its_download_ends_the_connection() {
    let content = content();
    for wrong in [chunk(&[7; 2_000], 0, 1_001), chunk(&[7; 2_000], 900, 1_001)] {
        let mut table = Table::seeing();
        table.say(&chunk(&content, 0, 100));
        assert_eq!(table.asked(), [], "of a download that has ended");
        table.say(&begun_of(ID, &content));
        table.asked();
        table.say(&wrong);
        assert_eq!(table.asked()[0], Asked::Disconnect(CloseReason::Malformed));
        assert_eq!(table.core.counters().malformed, 1);
    }
}

#[test]
fn a_chunk_from_before_the_client_dropped_its_content_changes_nothing() {
    let content = content();
    let mut table = Table::seeing();
    table.say(&begun_of(ID, &content));
    table.say(&chunk(&content, 0, 300));
    // The client gets another entity and the first one back, while a chunk of the first is under way.
    for entity in [OTHER, OWN] {
        let type_id = annals_ids::TypeId(0);
        table.say(&ToClient::Reset { entity, type_id });
    }
    table.say(&begun_of(ID, &content));
    table.asked();
    table.events();
    table.say(&chunk(&content, 300, 600));
    table.wait(200);
    let answers = table.asked();
    let is_answer = |asked: &Asked| {
        matches!(
            asked,
            Asked::Frame(ToServer::DownloadProgress(_)) | Asked::Disconnect(_)
        )
    };
    assert!(!answers.iter().any(is_answer), "{answers:?}");
    table.say(&chunk(&content, 0, 1_000));
    assert_eq!(arrived(&table.events()).1, [&content[..]]);
}

#[test]
fn a_download_ends_when_the_base_says_so_or_another_entity_is_controlled() {
    let content = content();
    let other = DownloadId {
        entity: OTHER,
        number: CallNumber(1),
    };
    let ends = |last: ToClient| {
        let mut table = Table::seeing();
        table.say(&begun_of(ID, &content));
        table.say(&ToClient::DownloadEnded(other));
        table.events();
        table.say(&last);
        let events = table.events();
        events.contains(&Event::DownloadEnded(ID))
    };
    let reset = |entity: EntityId| ToClient::Reset {
        entity,
        type_id: annals_ids::TypeId(0),
    };
    assert!(ends(ToClient::DownloadEnded(ID)));
    assert!(ends(begun_of(other, &content)));
    assert!(ends(reset(OTHER)));
    assert!(!ends(reset(OWN)), "its cell part has ended");
}

#[test]
fn chunks_in_any_order_and_number_deliver_what_was_sent_or_nothing() {
    let content = content();
    for seed in 0..500 {
        let mut dice = split_mix(seed);
        let mut table = Table::seeing();
        let mut has = 0;
        for _ in 0..60 {
            match dice() % 8 {
                0 => table.say(&begun_of(ID, &content)),
                1 => table.wait(dice() % 200),
                2 if has > 0 => table.say(&chunk(&content, 0, has)),
                3 if has < 998 => table.say(&chunk(&content, has + 2, 1_000)),
                _ => {
                    let to = (has + 1 + usize::try_from(dice() % 50).unwrap()).min(1_000);
                    if has < to {
                        table.say(&chunk(&content, has, to));
                    }
                }
            }
            for asked in table.asked() {
                let Asked::Frame(ToServer::DownloadProgress(answer)) = asked else {
                    // Views begin again while time passes.
                    continue;
                };
                has = usize::try_from(answer.upto).unwrap();
            }
            let events = table.events();
            let whole = events.iter().filter_map(|event| match event {
                Event::Downloaded { content, .. } => Some(content),
                _ => None,
            });
            assert!(whole.into_iter().all(|found| *found == content), "seed {seed}");
        }
    }
}
