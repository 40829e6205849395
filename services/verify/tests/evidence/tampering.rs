//! Changed bundles: single bytes, whole files, and changes in which everything that can be recomputed is consistent.

use annals_event::{
    Body,
    ledger::{Order, Outcome},
};
use annals_evidence::{Anchors, Bundle, BundleError, Wrong, check, zip};

use crate::{
    archive::{Archive, pack},
    game::Dice,
};

/// Single-byte changes tried per bundle.
const CHANGES: usize = 1_500;

/// Asserts that a changed bundle is rejected, even without a known key.
fn refused(bytes: &[u8], said: &str) -> Wrong {
    match check(bytes, &Anchors::default()) {
        Ok(verdict) => panic!("{said}: accepted as {}", verdict.subject()),
        Err(wrong) => wrong,
    }
}

#[tokio::test]
async fn a_changed_byte_is_found_wherever_it_is() {
    for seed in 0..2 {
        let archive = Archive::play(400 + seed, 120).await;
        for question in [archive.trade(), archive.item()] {
            let bytes = archive.bundle(question).await;
            let mut dice = Dice(seed);
            for _ in 0..CHANGES {
                let place = dice.below(bytes.len());
                let mut changed = bytes.clone();
                changed[place] ^= 1 << dice.below(8);
                refused(&changed, &format!("seed {seed}, {question}, byte {place}"));
            }
        }
    }
}

#[tokio::test]
async fn a_changed_file_is_named() {
    let archive = Archive::play(410, 120).await;
    let bytes = archive.bundle(archive.trade()).await;
    let mut begin = 0;
    for file in zip::read(&bytes).expect("a zip") {
        let local = 30 + file.name.len();
        let mut changed = bytes.clone();
        changed[begin + local + file.bytes.len() / 2] ^= 1;
        let wrong = refused(&changed, &file.name);
        let said = format!("{:?}", wrong);
        assert!(said.contains(&file.name), "{}: {said}", file.name);
        begin += local + file.bytes.len();
    }
}

#[tokio::test]
async fn a_file_that_differs_from_the_manifest_is_named() {
    let archive = Archive::play(415, 120).await;
    let bytes = archive.bundle(archive.trade()).await;
    let files = zip::read(&bytes).expect("a zip");
    for at in 0..files.len() - 1 {
        // The checksum is recomputed; the manifest is the old one.
        let mut changed = files.clone();
        let middle = changed[at].bytes.len() / 2;
        changed[at].bytes[middle] ^= 1;
        let name = files[at].name.clone();
        let wrong = refused(&zip::write(&changed).expect("small"), &name);
        assert_eq!(wrong, Wrong::Bundle(BundleError::Changed { name }));
    }
}

#[tokio::test]
async fn a_changed_byte_is_found_even_if_all_hashes_are_recomputed() {
    for seed in 0..2 {
        let archive = Archive::play(420 + seed, 120).await;
        let files = zip::read(&archive.bundle(archive.trade()).await).expect("a zip");
        let mut dice = Dice(seed);
        for round in 0..CHANGES {
            // The manifest is recomputed each time.
            let which = dice.below(files.len() - 1);
            let mut changed = files.clone();
            let bytes = &mut changed[which].bytes;
            let place = dice.below(bytes.len());
            bytes[place] ^= 1 << dice.below(8);
            let name = &files[which].name;
            refused(
                &pack(changed),
                &format!("seed {seed}, round {round}, {name}, byte {place}"),
            );
        }
    }
}

#[tokio::test]
async fn missing_duplicate_and_foreign_files_are_found() {
    let archive = Archive::play(430, 150).await;
    let other = Archive::play(431, 150).await;
    let files = zip::read(&archive.bundle(archive.trade()).await).expect("a zip");
    let others = zip::read(&other.bundle(other.trade()).await).expect("a zip");
    let of_item = zip::read(&archive.bundle(archive.item()).await).expect("a zip");
    for (at, file) in files.iter().enumerate() {
        let name = &file.name;
        if name == "manifest.txt" {
            continue;
        }
        let mut fewer = files.clone();
        fewer.remove(at);
        refused(&pack(fewer.clone()), &format!("without {name}"));
        refused(
            &zip::write(&fewer).expect("small"),
            &format!("without {name}, which the manifest has"),
        );
        let mut more = files.clone();
        more.insert(at, file.clone());
        assert!(
            matches!(
                refused(&pack(more), name),
                Wrong::Bundle(BundleError::Zip(zip::ZipError::Twice { .. }))
            ),
            "{name} twice"
        );
        let mut renamed = file.clone();
        renamed.name = "events/000999.tlog-proof".to_owned();
        let mut strange = files.clone();
        strange.insert(at + 1, renamed);
        refused(&pack(strange), &format!("{name} under another name"));
        for (from, whose) in [(&others, "another realm's"), (&of_item, "another question's")] {
            let Some(swapped) = from
                .iter()
                .find(|other| other.name == *name && other.bytes != file.bytes)
            else {
                continue;
            };
            let mut mixed = files.clone();
            mixed[at] = swapped.clone();
            refused(&pack(mixed), &format!("{whose} {name}"));
        }
        if at > 0 {
            let mut reordered = files.clone();
            reordered.swap(at - 1, at);
            refused(&pack(reordered), &format!("{name} before the one before"));
        }
    }
    refused(&pack(Vec::new()), "nothing but a manifest");
}

#[tokio::test]
async fn unrelated_events_are_found() {
    let archive = Archive::play(440, 200).await;
    let trades = archive.settled();
    let read = async |question| Bundle::read(&archive.bundle(question).await).expect("a bundle").0;
    let first = read(annals_evidence::Question::Trade(trades[0])).await;
    let second = read(annals_evidence::Question::Trade(trades[1])).await;
    // Events of another trade, appended, and in place of an own one.
    let mut more = first.clone();
    more.events.extend(second.events.clone());
    assert!(
        matches!(more.write(), Err(BundleError::Stray { .. })),
        "{:?}",
        more.write()
    );
    let mut mixed = first.clone();
    mixed.events[0] = second.events[0].clone();
    assert!(mixed.write().is_err());
    // Steps left out from within: later steps would then be impossible. An order that was refused leaves no trace.
    let mut found = 0;
    for at in (0..first.events.len() - 2).step_by(2) {
        let mut fewer = first.clone();
        fewer.events.drain(at..at + 2);
        let has_changed = matches!(
            &first.events[at].excerpt.event().body,
            Body::Entered { entry: Some(entry), .. } if matches!(
                (&entry.order, entry.outcome),
                (Some(Order::Propose { .. } | Order::Offer { .. } | Order::Withdraw { .. }), Outcome::Posted | Outcome::Pending)
            )
        );
        if has_changed {
            found += 1;
            let written = fewer.write();
            assert!(written.is_err(), "without the events {at} and {}", at + 1);
        }
    }
    assert!(found > 1, "{found}");
    // Left out at the end: the trade is still open.
    let mut fewer = first.clone();
    fewer.events.truncate(first.events.len() - 2);
    let open = check(&fewer.write().expect("it fits together"), &archive.anchors()).expect("so it was");
    assert!(!open.statement().contains("settled"), "{}", open.statement());
    // The question of the other trade.
    let mut other = first.clone();
    other.question = second.question;
    assert!(matches!(other.write(), Err(BundleError::Stray { .. })));
}

#[tokio::test]
async fn another_checkpoint_of_the_same_log_is_refused() {
    let mut archive = Archive::play(450, 120).await;
    let (question, old) = (archive.trade(), archive.newest().await);
    let bundle = Bundle::read(&archive.bundle(question).await).expect("a bundle").0;
    archive.go_on(60).await;
    let new = archive.sign().await;
    for checkpoint in [old.clone(), new.clone()] {
        let mut moved = bundle.clone();
        moved.log.checkpoint = checkpoint.clone();
        let checked = check(&moved.write().expect("it fits together"), &archive.anchors());
        if checkpoint == old {
            checked.expect("its own");
        } else {
            assert!(matches!(checked, Err(Wrong::Event { .. })), "{checked:?}");
        }
    }
    // Later events under an earlier checkpoint.
    let late = archive.bundle(*archive.questions().last().expect("one")).await;
    let mut late = Bundle::read(&late).expect("a bundle").0;
    late.log.checkpoint = old;
    let checked = check(&late.write().expect("it fits together"), &archive.anchors());
    assert!(matches!(checked, Err(Wrong::Event { .. })), "{checked:?}");
}

#[tokio::test]
async fn truncated_and_invalid_bundles_are_refused() {
    let archive = Archive::play(460, 120).await;
    let bytes = archive.bundle(archive.trade()).await;
    let mut dice = Dice(460);
    for cut in (0..40).chain((0..300).map(|_| dice.below(bytes.len()))) {
        refused(&bytes[..cut], &format!("cut at {cut}"));
    }
    let mut longer = bytes.clone();
    longer.push(0);
    refused(&longer, "a byte more");
    assert!(refused(b"MZ", "something else").is_no_verdict());
    assert!(refused(&vec![0; zip::ZIP_BYTES + 1], "too long").is_no_verdict());
    // The same files, packed by another program.
    let mut other = ::zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for file in zip::read(&bytes).expect("a zip") {
        use std::io::Write as _;
        let options = ::zip::write::SimpleFileOptions::default().compression_method(::zip::CompressionMethod::Stored);
        other.start_file(file.name, options).expect("a file");
        other.write_all(&file.bytes).expect("written");
    }
    refused(
        &other.finish().expect("a zip").into_inner(),
        "packed by another program",
    );
}
