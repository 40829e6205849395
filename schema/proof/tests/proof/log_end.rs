//! The end of a log: one encoding, nothing else is read, and trust extends only along valid statements.

use annals_ids::{Hash, WallTime};
use annals_proof::{
    Checkpoint, KeyKind, KeyName, LogEnd, SignedNote, SignerKey, TreeHead,
    log_end::LogEndError,
    succession::{KeyRecord, NotNamed, naming},
};

const OLD: &str = "example.com/realm";
const NEW: &str = "example.com/realm-log2";

fn key(name: &str, seed: u8) -> SignerKey {
    SignerKey::from_seed(KeyName::new(name).expect("a name"), KeyKind::Note, &[seed; 32])
}

fn head(size: u64, fill: u8) -> TreeHead {
    let root = Hash([fill; 32]);
    TreeHead { size, root }
}

/// A change of keys of the old log.
fn rotation(old: &SignerKey, new: &SignerKey, size: u64) -> KeyRecord {
    let checkpoint = Checkpoint {
        origin: OLD.to_owned(),
        head: head(size, 3),
        extensions: vec![naming(&new.verifier())],
    };
    let mut note = SignedNote::new(checkpoint.to_string()).expect("a text");
    [old, new].iter().for_each(|key| note.sign(key, 0));
    KeyRecord {
        key: new.verifier(),
        change: Some(note),
    }
}

fn end(lost_keys: Vec<KeyRecord>) -> LogEnd {
    LogEnd {
        ended: KeyName::new(OLD).expect("a name"),
        signed: head(90, 1),
        continued: head(70, 2),
        next: key(NEW, 2).verifier(),
        adoption: (4, WallTime(1_795_308_600_000)),
        at: WallTime(1_795_308_600_500),
        operator: "ada".to_owned(),
        reason: "the cluster was restored to a backup".to_owned(),
        lost_keys,
    }
}

fn record(end: &LogEnd, signers: &[&SignerKey]) -> KeyRecord {
    let mut note = SignedNote::new(end.to_string()).expect("a text");
    signers.iter().for_each(|signer| note.sign(signer, 0));
    KeyRecord {
        key: end.next.clone(),
        change: Some(note),
    }
}

#[test]
fn a_statement_has_one_encoding() {
    let (first, second, third) = (key(OLD, 1), key(OLD, 5), key(OLD, 6));
    let lost = vec![rotation(&first, &second, 75), rotation(&second, &third, 80)];
    for end in [end(Vec::new()), end(lost)] {
        let text = end.to_string();
        assert_eq!(LogEnd::parse(&text), Ok(end.clone()));
        let record = record(&end, &[&third, &key(NEW, 2)]);
        assert_eq!(KeyRecord::parse(record.to_string().as_bytes()), Ok(record.clone()));
        assert_eq!(record.changed_at(), Ok(Some(end.continued)));
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            // A line that is missing, truncated, repeated, or has something else behind it.
            let required = at < 9;
            for (changed, is_other) in [
                (vec![], required),
                (vec![&line[..line.len() - 1]], at != 7 && at != 8),
                (vec![line, line], required),
                (vec![line, ""], true),
            ] {
                let lines = [&lines[..at], &changed[..], &lines[at + 1..]].concat();
                let parsed = LogEnd::parse(&format!("{}\n", lines.join("\n")));
                // A shorter name or time is another one, and one key fewer another statement.
                let may_be_read = !is_other || [1, 5, 6].contains(&at);
                let is_read = parsed.as_ref().is_ok_and(|read| *read != end);
                assert!(
                    parsed.is_err() || (may_be_read && is_read),
                    "{at}: {changed:?} {parsed:?}"
                );
            }
        }
        assert!(
            LogEnd::parse(&text[..text.len() - 1]).is_err(),
            "without the last line end"
        );
    }
    assert!(LogEnd::parse("").is_err());
}

#[test]
fn contradictory_statements_are_rejected() {
    let longer = LogEnd {
        continued: head(91, 2),
        ..end(Vec::new())
    };
    let (continued, signed) = (91, 90);
    assert_eq!(
        LogEnd::parse(&longer.to_string()),
        Err(LogEndError::Longer { continued, signed })
    );
    for (operator, reason) in [("", "why"), (" ", "why"), ("ada", "w\u{202e}hy")] {
        let unnamed = LogEnd {
            operator: operator.to_owned(),
            reason: reason.to_owned(),
            ..end(Vec::new())
        };
        assert_eq!(LogEnd::parse(&unnamed.to_string()), Err(LogEndError::Text));
    }
    let same = LogEnd {
        next: key(OLD, 2).verifier(),
        ..end(Vec::new())
    };
    assert_eq!(LogEnd::parse(&same.to_string()), Err(LogEndError::SameName));
}

#[test]
fn both_keys_must_have_signed_the_end() {
    let (old, new, other) = (key(OLD, 1), key(NEW, 2), key(OLD, 3));
    let end = end(Vec::new());
    let before = old.verifier();
    assert_eq!(record(&end, &[&old, &new]).follows(&before, OLD), Ok(71));
    for signers in [vec![], vec![&old], vec![&new], vec![&other, &new]] {
        let followed = record(&end, &signers).follows(&before, OLD);
        assert!(matches!(followed, Err(NotNamed::Unsigned { .. })), "{followed:?}");
    }
    let elsewhere = key("example.com/other", 1);
    let followed = record(&end, &[&elsewhere, &new]).follows(&elsewhere.verifier(), "example.com/other");
    assert!(matches!(followed, Err(NotNamed::OtherLog { .. })), "{followed:?}");
    let mut named = record(&end, &[&old, &new]);
    named.key = key(NEW, 9).verifier();
    assert!(matches!(named.follows(&before, OLD), Err(NotNamed::Other { .. })));
    // The signature of a changed statement.
    let signed = record(&end, &[&old, &new]).to_string();
    let changed = signed.replace("reason the", "reason a");
    let changed = KeyRecord::parse(changed.as_bytes()).expect("a record");
    assert!(matches!(changed.follows(&before, OLD), Err(NotNamed::Unsigned { .. })));
}

#[test]
fn keys_in_the_statement_are_followed_one_by_one() {
    let (first, second, third, new) = (key(OLD, 1), key(OLD, 5), key(OLD, 6), key(NEW, 2));
    let rotations = vec![rotation(&first, &second, 75), rotation(&second, &third, 80)];
    let before = first.verifier();
    let whole = end(rotations.clone());
    assert_eq!(record(&whole, &[&third, &new]).follows(&before, OLD), Ok(71));
    // The last of them must have signed, and each must follow from the one before it.
    assert!(record(&whole, &[&first, &new]).follows(&before, OLD).is_err());
    for lost in [
        vec![rotations[1].clone()],
        vec![rotations[1].clone(), rotations[0].clone()],
    ] {
        assert!(record(&end(lost), &[&third, &new]).follows(&before, OLD).is_err());
    }
    let alone = KeyRecord {
        key: third.verifier(),
        change: None,
    };
    let followed = record(&end(vec![alone]), &[&third, &new]).follows(&before, OLD);
    assert!(matches!(followed, Err(NotNamed::Alone { .. })), "{followed:?}");
}
