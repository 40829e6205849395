//! The succession of a log's keys: trust in the first key extends to the last, and to no others.

use annals_ids::Hash;
use annals_proof::{
    Checkpoint, KeyKind, KeyName, SignedNote, SignerKey, TreeHead,
    succession::{KeyRecord, NotNamed, RecordError, naming},
};

const ORIGIN: &str = "example.com/realm";

fn key(seed: u8) -> SignerKey {
    SignerKey::from_seed(KeyName::new(ORIGIN).expect("a name"), KeyKind::Note, &[seed; 32])
}

fn change(origin: &str, named: Option<&SignerKey>, signers: &[&SignerKey]) -> SignedNote {
    let checkpoint = Checkpoint {
        origin: origin.to_owned(),
        head: TreeHead {
            size: 77,
            root: Hash([5; 32]),
        },
        extensions: named.iter().map(|key| naming(&key.verifier())).collect(),
    };
    let mut note = SignedNote::new(checkpoint.to_string()).expect("a text");
    signers.iter().for_each(|signer| note.sign(signer, 0));
    note
}

fn record(of: &SignerKey, change: Option<SignedNote>) -> KeyRecord {
    KeyRecord {
        key: of.verifier(),
        change,
    }
}

#[test]
fn a_key_is_trusted_if_its_predecessor_names_it() {
    let (old, new, other) = (key(1), key(2), key(3));
    let before = old.verifier();
    let named = record(&new, Some(change(ORIGIN, Some(&new), &[&old, &new])));
    assert_eq!(named.follows(&before, ORIGIN), Ok(77));
    assert!(matches!(
        named.follows(&other.verifier(), ORIGIN),
        Err(NotNamed::Change(_))
    ));
    assert!(matches!(
        named.follows(&before, "example.com/other"),
        Err(NotNamed::Change(_))
    ));
    let alone = record(&new, None);
    assert!(matches!(alone.follows(&before, ORIGIN), Err(NotNamed::Alone { .. })));
    // The old key names another key, or none, or has not signed; and a new key that has not signed.
    for (named, signers) in [(Some(&other), vec![&old, &new]), (None, vec![&old, &new])] {
        let wrong = record(&new, Some(change(ORIGIN, named, &signers)));
        assert!(matches!(wrong.follows(&before, ORIGIN), Err(NotNamed::Other { .. })));
    }
    for signers in [vec![&new], vec![&old], vec![&other, &new]] {
        let wrong = record(&new, Some(change(ORIGIN, Some(&new), &signers)));
        assert!(matches!(wrong.follows(&before, ORIGIN), Err(NotNamed::Change(_))));
    }
}

#[test]
fn a_record_has_one_encoding() {
    let (old, new) = (key(1), key(2));
    for record in [
        record(&old, None),
        record(&new, Some(change(ORIGIN, Some(&new), &[&old, &new]))),
    ] {
        let text = record.to_string();
        assert_eq!(KeyRecord::parse(text.as_bytes()), Ok(record));
        let end = text.find('\n').expect("a line");
        assert_eq!(KeyRecord::parse(&text.as_bytes()[..end]), Err(RecordError::Form));
        assert!(matches!(
            KeyRecord::parse(format!("{text}x").as_bytes()),
            Err(RecordError::Change(_))
        ));
        assert!(matches!(
            KeyRecord::parse(&text.as_bytes()[1..]),
            Err(RecordError::Key(_))
        ));
    }
    assert_eq!(KeyRecord::parse(b""), Err(RecordError::Form));
    assert_eq!(KeyRecord::parse(b"\xff\n"), Err(RecordError::Form));
}
