//! Input from outsiders: notes, keys, checkpoints, paths of tiles, proofs.

use std::fmt::Display;
use std::str::FromStr;

use annals_evidence::{Anchors, Bundle, Excerpt, Receipt, check, check_receipt, zip};
use annals_ids::Hash;
use annals_proof::{
    Checkpoint, Continuation, ProofFile, SignedNote, SignerKey, Tile, TreeHead, VerifierKey, succession::KeyRecord,
    tree, verify_consistency, verify_inclusion,
};

pub(crate) fn signed_note(bytes: &[u8]) {
    if let Ok(note) = SignedNote::parse(bytes) {
        assert_eq!(note.to_string().as_bytes(), bytes);
        // No key is trusted.
        assert!(note.verify(&[]).is_err());
        one_form::<Checkpoint>(note.text());
    }
    if let Ok(record) = KeyRecord::parse(bytes) {
        assert_eq!(record.to_string().as_bytes(), bytes);
        let named = record.follows(&record.key, "example.com/behind-the-sofa");
        assert!(named.is_err(), "it is unsigned");
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    one_form::<Checkpoint>(text);
    one_form::<VerifierKey>(text);
    one_form::<Tile>(text);
    if let Ok(key) = text.parse::<SignerKey>() {
        assert_eq!(key.to_secret_text(), text);
        one_form::<VerifierKey>(&key.verifier().to_string());
    }
}

pub(crate) fn proof_file(bytes: &[u8]) {
    if let Ok(file) = ProofFile::parse(bytes) {
        assert_eq!(file.to_string().as_bytes(), bytes);
    }
    if let Ok(continuation) = Continuation::parse(bytes) {
        assert_eq!(continuation.to_string().as_bytes(), bytes);
    }
}

/// A bundle, a receipt, or an event in one of them. Each has one form, and is written as it was read.
pub(crate) fn evidence(bytes: &[u8]) {
    if let Ok(files) = zip::read(bytes) {
        assert_eq!(zip::write(&files).as_deref(), Ok(bytes));
    }
    let anchors = Anchors::default();
    if check(bytes, &anchors).is_ok() {
        let (bundle, _) = Bundle::read(bytes).expect("it was checked");
        assert_eq!(bundle.write().as_deref(), Ok(bytes));
    }
    if check_receipt(bytes, &anchors).is_ok() {
        let receipt = Receipt::read(bytes).expect("it was checked");
        assert_eq!(receipt.write().expect("it was read").as_bytes(), bytes);
    }
    if let Ok(excerpt) = Excerpt::decode(bytes) {
        assert_eq!(excerpt.encode(), bytes);
    }
}

/// Two sizes, two roots, and the hashes of a proof: unrelated to each other, and so rejected unless there is nothing to
/// prove.
pub(crate) fn merkle_proof(bytes: &[u8]) {
    let (numbers, rest) = bytes.split_at(bytes.len().min(16));
    let mut numbers = numbers.chunks(8).map(|chunk| {
        let number = chunk.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        // Small numbers as often as large ones.
        number >> (number % 64)
    });
    let (first, second) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let (hashes, _) = rest.as_chunks::<32>();
    let hashes: Vec<Hash> = hashes.iter().copied().map(Hash).collect();
    let Some((&root, path)) = hashes.split_first() else {
        return;
    };
    let of = |size| TreeHead { size, root };
    let (inclusion, consistency) = (tree::inclusion(first, second), tree::consistency(first, second));
    let included = verify_inclusion(root, first, of(second), path);
    let continued = verify_consistency(of(first), of(second), path);
    assert_eq!(included.is_ok(), first == 0 && second == 1 && path.is_empty());
    // The root of the empty tree cannot be found by chance, only by hashing nothing.
    let is_empty = root == annals_proof::Frontier::new().root();
    let same = first == second && (first > 0 || is_empty);
    let from_nothing = first == 0 && is_empty;
    assert_eq!(continued.is_ok(), path.is_empty() && (same || from_nothing));
    assert_eq!(inclusion.is_ok(), first < second);
    assert_eq!(consistency.is_ok(), first <= second);
}

/// A text that can be parsed is written as it was.
fn one_form<T: FromStr + Display>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string(), text);
    }
}
