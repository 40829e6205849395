//! Evidence: changed bundles, in which everything else was adapted as far as possible. The checkpoint kept elsewhere is
//! the one with which the bundle was made.

use annals_evidence::{Anchors, Bundle, check, zip};
use annals_ids::WallTime;

use crate::tampering::{
    evidence::{Archive, pack},
    game::Dice,
    table::{Named, Table},
};

pub(crate) async fn cases(seed: u64, count: usize) -> Table {
    let archive = Archive::play(seed, 100).await;
    let other = Archive::play(seed + 50, 100).await;
    let bytes = archive.bundle(archive.trade()).await;
    let whole = Bundle::read(&bytes).unwrap().0;
    let anchors = Anchors {
        kept: vec![archive.newest().await],
        ..archive.anchors()
    };
    check(&bytes, &anchors).expect("as it was made");
    let strange = zip::read(&other.bundle(other.trade()).await).unwrap();
    let files = zip::read(&bytes).unwrap();
    let mut dice = Dice(seed);
    let mut table = Table::default();
    for number in 0..count {
        let (kind, changed, name) = change(&files, &strange, &whole, &mut dice);
        if changed == bytes {
            continue;
        }
        let said = format!("seed {seed}, case {number}, {kind}, {name:?}");
        let wrong = match check(&changed, &anchors) {
            Err(wrong) => annals_host::telemetry::Chain(&wrong).to_string(),
            Ok(verdict) => panic!("{said}: accepted as {}", verdict.subject()),
        };
        let is_event = name.as_ref().is_some_and(|name| name.starts_with("events/"));
        let named = match name {
            Some(name) if wrong.contains(&name) && is_event => Named::Event,
            _ => Named::Nothing,
        };
        let without = check(&changed, &Anchors::default());
        table.count("bundle", kind, named, without.is_err());
    }
    table
}

type Changed = (&'static str, Vec<u8>, Option<String>);

/// A changed bundle, and the file that was changed.
fn change(files: &[zip::File], strange: &[zip::File], whole: &Bundle, dice: &mut Dice) -> Changed {
    let events: Vec<usize> = (0..files.len())
        .filter(|at| files[*at].name.starts_with("events/"))
        .collect();
    let at = events[dice.below(events.len())];
    let name = Some(files[at].name.clone());
    let mut changed = files.to_vec();
    match dice.below(8) {
        0 => {
            // A byte of any file; the manifest is kept.
            let at = dice.below(files.len());
            let place = dice.below(files[at].bytes.len());
            changed[at].bytes[place] ^= 1 << dice.below(8);
            (
                "a byte edited",
                zip::write(&changed).unwrap(),
                Some(files[at].name.clone()),
            )
        }
        1 => {
            let at = dice.below(files.len() - 1);
            let place = dice.below(files[at].bytes.len());
            changed[at].bytes[place] ^= 1 << dice.below(8);
            (
                "a byte edited, and the manifest",
                pack(changed),
                Some(files[at].name.clone()),
            )
        }
        2 => {
            changed.remove(at);
            ("an event dropped", pack(changed), name)
        }
        3 => {
            let other = events[dice.below(events.len())];
            let bytes = changed[at].bytes.clone();
            changed[at].bytes = std::mem::replace(&mut changed[other].bytes, bytes);
            (
                "events reordered",
                pack(changed),
                Some(files[at.min(other)].name.clone()),
            )
        }
        4 => {
            let from: Vec<&zip::File> = strange.iter().filter(|file| file.name.starts_with("events/")).collect();
            let mut put_in = from[dice.below(from.len())].clone();
            put_in.name = format!("events/{:06}.tlog-proof", events.len() + 1);
            let behind = events[events.len() - 1] + 1;
            let name = put_in.name.clone();
            changed.insert(behind, put_in);
            ("an event inserted", pack(changed), Some(name))
        }
        5 => {
            let bytes = zip::write(files).unwrap();
            let cut = dice.below(bytes.len());
            ("truncated", bytes[..cut].to_vec(), None)
        }
        6 => {
            let cut = dice.below(files[at].bytes.len());
            changed[at].bytes.truncate(cut);
            ("an event truncated", pack(changed), name)
        }
        _ => match dated(whole, dice) {
            Some((written, name)) => ("back-dated", written, Some(name)),
            None => change(files, strange, whole, dice),
        },
    }
}

/// A bundle with another wall time in the header of an event's batch, and everything derived from it recomputed; `None`
/// if it cannot be written. Also returns the file of that event.
fn dated(whole: &Bundle, dice: &mut Dice) -> Option<(Vec<u8>, String)> {
    let event = dice.below(whole.events.len());
    let mut dated = whole.clone();
    let wall = dated.events[event].excerpt.header().wall;
    let mut bytes = dated.events[event].excerpt.encode();
    let earlier = WallTime(wall.0 - 1 - dice.roll() % 50).0.to_le_bytes();
    let place = bytes.windows(8).position(|bytes| bytes == wall.0.to_le_bytes())?;
    bytes[place..place + 8].copy_from_slice(&earlier);
    dated.events[event].excerpt = annals_evidence::Excerpt::decode(&bytes).ok()?;
    let written = dated.write().ok()?;
    Some((written, format!("events/{:06}.tlog-proof", event + 1)))
}
