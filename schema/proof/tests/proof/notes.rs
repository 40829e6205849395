//! Notes, keys, checkpoints, cosignatures and proof files: the examples of their specifications, and every change to
//! our own.

use annals_ids::Hash;
use annals_proof::{
    Checkpoint, Continuation, KeyKind, KeyName, ProofFile, SignedNote, SignerKey, TreeHead, Trust, VerifierKey,
    checkpoint::{CheckpointError, Untrusted},
    file::{FILE_BYTES, FileError, FileUnproven},
    key::KeyError,
    leaf_hash, node_hash,
    note::{NOTE_BYTES, NoteError, SIGNATURES},
};

/// The example of the specification of signed notes, and of golang.org/x/mod/sumdb/note, with its keys.
const GO_VERIFIER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const GO_SIGNER: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const GO_NOTE: &str = "If you think cryptography is the answer to your problem,\n\
    then you don't know what your problem is.\n\
    \n\
    \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

const ORIGIN: &str = "example.com/realm";

fn signer(name: &str, kind: KeyKind, seed: u8) -> SignerKey {
    SignerKey::from_seed(KeyName::new(name).expect("a name"), kind, &[seed; 32])
}

fn log_key() -> SignerKey {
    signer(ORIGIN, KeyKind::Note, 1)
}

fn witness(seed: u8) -> SignerKey {
    signer(&format!("witness{seed}.example"), KeyKind::Cosignature, seed)
}

fn trust(quorum: usize) -> Trust {
    Trust {
        origin: ORIGIN.to_owned(),
        keys: vec![log_key().verifier()],
        witnesses: vec![witness(11).verifier(), witness(12).verifier()],
        quorum,
    }
}

/// A tree of two leaves; the proofs are for the second.
fn head() -> TreeHead {
    let root = node_hash(leaf_hash(b"one"), leaf_hash(b"two"));
    TreeHead { size: 2, root }
}

fn checkpoint() -> SignedNote {
    let checkpoint = Checkpoint {
        origin: ORIGIN.to_owned(),
        head: head(),
        extensions: Vec::new(),
    };
    let mut note = SignedNote::new(checkpoint.to_string()).expect("a text");
    note.sign(&log_key(), 0);
    note
}

fn proof(extra: Option<Vec<u8>>) -> ProofFile {
    let mut checkpoint = checkpoint();
    checkpoint.sign(&witness(11), 1_700_000_000);
    checkpoint.sign(&witness(12), 1_700_000_007);
    ProofFile {
        extra,
        index: 1,
        path: vec![leaf_hash(b"one")],
        checkpoint,
    }
}

#[test]
fn published_keys_and_notes_round_trip() {
    let verifier: VerifierKey = GO_VERIFIER.parse().expect("a key");
    let signer: SignerKey = GO_SIGNER.parse().expect("a key");
    assert_eq!(signer.verifier(), verifier);
    assert_eq!(verifier.to_string(), GO_VERIFIER);
    assert_eq!(signer.to_secret_text(), GO_SIGNER);
    let note = SignedNote::parse(GO_NOTE.as_bytes()).expect("a note");
    assert_eq!(note.to_string(), GO_NOTE);
    let keys = [verifier];
    let signed = note.verify(&keys).expect("signed");
    assert_eq!(signed.len(), 1);
    // Ed25519 is deterministic: one signature of a text per key.
    let mut again = SignedNote::new(note.text().to_owned()).expect("a text");
    again.sign(&signer, 0);
    assert_eq!(again.to_string(), GO_NOTE);
}

#[test]
fn changed_keys_are_refused() {
    let changes = [
        ("", "form"),
        ("PeterNeumann", "form"),
        ("PeterNeumann+c74f20a3", "form"),
        (
            "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "form",
        ),
        (
            "PeterNeumann+c74f20a+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "form",
        ),
        (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T",
            "form",
        ),
        (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n",
            "form",
        ),
        ("PeterNeumann+c74f20a3+AQ==", "form"),
        ("PeterNeumann+c74f20a3+", "form"),
        (
            "PeterNeumann+c74f20a3+ApWpYHKgkjoHTPw23jwNN1Apy0o5qlM2Eyz2CGWQKMZR",
            "kind",
        ),
        (
            "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "id",
        ),
        (
            "peterneumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "id",
        ),
        (
            "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "name",
        ),
        ("+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "name"),
        // The neutral element, for which any signature is valid.
        ("x+00000000+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "weak"),
    ];
    for (text, why) in changes {
        let found = match text.parse::<VerifierKey>() {
            Ok(_) => "fine",
            Err(KeyError::Form { .. }) => "form",
            Err(KeyError::Kind(2)) => "kind",
            Err(KeyError::Id { .. }) => "id",
            Err(KeyError::Name { .. }) => "name",
            Err(KeyError::Weak | KeyError::Kind(_)) => "weak",
        };
        assert_eq!(found, why, "{text}");
    }
    assert!(GO_VERIFIER.parse::<SignerKey>().is_err());
    assert!(GO_SIGNER.parse::<VerifierKey>().is_err());
    assert!(format!("{GO_SIGNER}=").parse::<SignerKey>().is_err());
    assert!(KeyName::new(&"x".repeat(255)).is_ok() && KeyName::new(&"x".repeat(256)).is_err());
    assert!(KeyName::new("drachentöter.example/龍").is_ok());
    // Invisible characters, or those that look like blanks, would let a name look like several words.
    for unseen in
        "\0\n\u{ad}\u{34f}\u{115f}\u{1160}\u{200b}\u{200e}\u{202e}\u{2066}\u{2800}\u{3000}\u{3164}\u{fe0f}\u{ffa0}"
            .chars()
    {
        let refused = KeyName::new(&format!("example.com/{unseen}realm"));
        let said = refused.expect_err("no name").to_string();
        assert!(unseen == '\u{3000}' || !said.contains(unseen), "{unseen:?}");
    }
}

#[test]
fn every_changed_bit_of_a_signed_note_is_found() {
    let keys = [log_key().verifier()];
    let note = checkpoint().to_string().into_bytes();
    assert!(SignedNote::parse(&note).expect("a note").verify(&keys).is_ok());
    for at in 0..note.len() {
        for bit in 0..8 {
            let mut changed = note.clone();
            changed[at] ^= 1 << bit;
            let verdict = SignedNote::parse(&changed).and_then(|note| note.verify(&keys).map(|_| ()));
            assert!(verdict.is_err(), "bit {bit} of byte {at}");
        }
        let cut = SignedNote::parse(&note[..at]).and_then(|note| note.verify(&keys).map(|_| ()));
        assert!(cut.is_err(), "the first {at} bytes");
    }
}

#[test]
fn malformed_notes_are_refused_with_a_reason() {
    let parse = |text: &str| SignedNote::parse(text.as_bytes());
    let line = "\u{2014} x AAAAAAA=\n";
    assert!(parse(&format!("text\n\n{line}")).is_ok());
    assert!(parse(&format!("text\n\nmore\n\n{line}")).is_ok_and(|note| note.text() == "text\n\nmore\n"));
    assert_eq!(parse(""), Err(NoteError::Form));
    assert_eq!(parse("text\n"), Err(NoteError::Form));
    assert_eq!(parse("text\n\n"), Err(NoteError::Form));
    assert_eq!(parse(&format!("text\n{line}")), Err(NoteError::Form));
    assert_eq!(parse(&format!("text\n\n{}", line.trim_end())), Err(NoteError::Form));
    assert_eq!(
        parse(&format!("te\rxt\n\n{line}")),
        Err(NoteError::Characters { at: 2 })
    );
    assert_eq!(SignedNote::parse(b"te\xffxt\n\n"), Err(NoteError::Characters { at: 2 }));
    let second = |second: &str| parse(&format!("text\n\n{line}{second}"));
    let malformed = Err(NoteError::Signature { line: 2 });
    assert_eq!(second("- x AAAAAAA=\n"), malformed);
    assert_eq!(second("\u{2014} x\n"), malformed);
    assert_eq!(second("\u{2014} x AAAAAAA\n"), malformed);
    assert_eq!(second("\u{2014} x AAAAAA==\n"), malformed, "an id and no signature");
    assert_eq!(second("\u{2014} x AAAAAAA= \n"), malformed);
    assert!(matches!(
        second("\u{2014} x+y AAAAAAA=\n"),
        Err(NoteError::Name { line: 2, .. })
    ));
    assert!(matches!(
        second("\u{2014}  AAAAAAA=\n"),
        Err(NoteError::Name { line: 2, .. })
    ));
    assert!(parse(&format!("text\n\n{}", line.repeat(SIGNATURES))).is_ok());
    assert_eq!(
        parse(&format!("text\n\n{}", line.repeat(SIGNATURES + 1))),
        Err(NoteError::Many)
    );
    let long = "x".repeat(NOTE_BYTES);
    assert!(matches!(
        parse(&format!("{long}\n\n{line}")),
        Err(NoteError::Size { .. })
    ));
    assert_eq!(SignedNote::new("text".to_owned()), Err(NoteError::Form));
    assert!(SignedNote::new("te\txt\n".to_owned()).is_err());
}

#[test]
fn signatures_of_unknown_keys_are_ignored_and_of_known_ones_verified() {
    let mut note = checkpoint();
    // The same name with another key, another name with the same key.
    note.sign(&signer(ORIGIN, KeyKind::Note, 2), 0);
    note.sign(&signer("example.com/other", KeyKind::Note, 1), 0);
    assert_eq!(note.signatures().len(), 3);
    let note = SignedNote::parse(note.to_string().as_bytes()).expect("a note");
    let keys = [log_key().verifier()];
    assert_eq!(note.verify(&keys).map(|signed| signed.len()), Ok(1));
    let both = [log_key().verifier(), signer(ORIGIN, KeyKind::Note, 2).verifier()];
    assert_eq!(note.verify(&both).map(|signed| signed.len()), Ok(2));
    let nobody = [signer("nobody.example", KeyKind::Note, 3).verifier()];
    assert!(matches!(note.verify(&nobody), Err(NoteError::Unsigned { others }) if others.contains(ORIGIN)));

    // A wrong signature in the name of a known key invalidates the note, even if other keys have signed.
    let mut other = SignedNote::new("another text\n".to_owned()).expect("a text");
    other.sign(&signer(ORIGIN, KeyKind::Note, 2), 0);
    let mut spoiled = checkpoint();
    spoiled.add(other.signatures()[0].clone());
    assert!(spoiled.verify(&keys).is_ok());
    assert!(matches!(spoiled.verify(&both), Err(NoteError::Forged { .. })));
    // Signing twice with a key leaves one signature.
    note.clone().sign(&log_key(), 0);
    let mut again = note.clone();
    again.sign(&log_key(), 0);
    assert_eq!(again.signatures().len(), 3);
}

#[test]
fn a_checkpoint_has_one_encoding() {
    let text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    let found: Checkpoint = text.parse().expect("the example of the specification");
    assert_eq!(
        (found.origin.as_str(), found.head.size),
        ("example.com/behind-the-sofa", 20_852_163)
    );
    assert_eq!(found.to_string(), text);
    let extended = format!("{text}one\ntwo\n");
    let found: Checkpoint = extended.parse().expect("with extensions");
    assert_eq!((found.extensions.len(), found.to_string()), (2, extended));

    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    let refused = |text: String| text.parse::<Checkpoint>().expect_err(&text);
    assert_eq!(refused(String::new()), CheckpointError::Missing { line: 1 });
    assert_eq!(refused(format!("\n1\n{root}\n")), CheckpointError::Missing { line: 1 });
    assert_eq!(refused("log\n1\n".to_owned()), CheckpointError::Missing { line: 3 });
    assert_eq!(refused(format!("log\n1\n{root}")), CheckpointError::Missing { line: 3 });
    assert_eq!(
        refused(format!("log\n1\n{root}\n\n")),
        CheckpointError::Missing { line: 4 }
    );
    for size in ["01", "+1", "-1", "1 ", "", "18446744073709551616", "0x1"] {
        let expected = if size.is_empty() {
            CheckpointError::Missing { line: 2 }
        } else {
            CheckpointError::Size
        };
        assert_eq!(refused(format!("log\n{size}\n{root}\n")), expected);
    }
    for root in [
        "x",
        &root[..40],
        &format!("{root}A"),
        "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=",
    ] {
        assert_eq!(refused(format!("log\n1\n{root}\n")), CheckpointError::Root, "{root}");
    }
}

#[test]
fn a_checkpoint_needs_the_log_signature_and_enough_cosignatures() {
    let mut note = checkpoint();
    let open = |note: &SignedNote, quorum| trust(quorum).open(note.to_string().as_bytes());
    assert_eq!(open(&note, 0).expect("signed").checkpoint.head, head());
    assert_eq!(open(&note, 1), Err(Untrusted::Quorum { cosigned: 0, quorum: 1 }));
    note.sign(&witness(13), 5);
    assert!(open(&note, 1).is_err(), "a witness that nobody knows");
    note.sign(&witness(12), 1_700_000_000);
    let trusted = open(&note, 1).expect("cosigned");
    assert_eq!(
        trusted.cosigned,
        [(witness(12).verifier().name().clone(), 1_700_000_000)]
    );
    assert_eq!(trusted.signed, [log_key().verifier()]);
    // A later signature replaces an earlier one.
    note.sign(&witness(12), 1_700_000_060);
    assert_eq!(open(&note, 1).expect("cosigned").cosigned[0].1, 1_700_000_060);
    assert_eq!(open(&note, 2), Err(Untrusted::Quorum { cosigned: 1, quorum: 2 }));
    note.sign(&witness(11), 1_700_000_061);
    assert_eq!(open(&note, 2).expect("cosigned").cosigned.len(), 2);

    // Witnesses alone do not make a checkpoint.
    let mut unsigned = SignedNote::new(checkpoint().text().to_owned()).expect("a text");
    unsigned.sign(&witness(11), 1);
    unsigned.sign(&witness(12), 1);
    assert!(matches!(
        open(&unsigned, 2),
        Err(Untrusted::Note(NoteError::Unsigned { .. }))
    ));
    let other = Trust {
        origin: "example.com/other".to_owned(),
        ..trust(0)
    };
    assert!(matches!(other.check(&note), Err(Untrusted::Origin { .. })));
    let confused = Trust {
        witnesses: vec![log_key().verifier()],
        ..trust(0)
    };
    assert!(matches!(
        confused.check(&note),
        Err(Untrusted::Role { role: "witness", .. })
    ));
    let confused = Trust {
        keys: vec![witness(11).verifier()],
        ..trust(0)
    };
    assert!(matches!(
        confused.check(&note),
        Err(Untrusted::Role { role: "log", .. })
    ));
    let mut text = SignedNote::new("not a checkpoint\n".to_owned()).expect("a text");
    text.sign(&log_key(), 0);
    assert!(matches!(trust(0).check(&text), Err(Untrusted::Checkpoint(_))));
}

#[test]
fn a_cosignature_covers_its_time() {
    let mut note = checkpoint();
    note.sign(&witness(11), 1_700_000_000);
    let witnesses = [witness(11).verifier()];
    let text = note.to_string();
    let line = text.lines().last().expect("a signature").to_owned();
    let bytes = |bytes: &[u8]| {
        use base64ct::{Base64, Encoding};
        text.replace(
            &line,
            &format!("\u{2014} witness11.example {}", Base64::encode_string(bytes)),
        )
    };
    let signature = {
        use base64ct::{Base64, Encoding};
        Base64::decode_vec(line.rsplit(' ').next().expect("base64")).expect("base64")
    };
    assert_eq!(signature.len(), 4 + 8 + 64);
    assert_eq!(signature[4..12], 1_700_000_000u64.to_be_bytes());
    assert_eq!(bytes(&signature), text);
    for at in 4..signature.len() {
        let mut changed = signature.clone();
        changed[at] ^= 1;
        let note = SignedNote::parse(bytes(&changed).as_bytes()).expect("a note");
        assert!(
            matches!(note.verify(&witnesses), Err(NoteError::Forged { .. })),
            "byte {at}"
        );
        assert!(
            trust(0).check(&note).is_err(),
            "byte {at}: a known witness must be right"
        );
    }
    for length in 5..signature.len() {
        let note = SignedNote::parse(bytes(&signature[..length]).as_bytes()).expect("a note");
        assert!(
            matches!(note.verify(&witnesses), Err(NoteError::Forged { .. })),
            "{length} bytes"
        );
    }
    // A time beyond the range of a signed 64-bit number.
    let mut late = checkpoint();
    late.sign(&witness(11), 1 << 63);
    assert!(matches!(late.verify(&witnesses), Err(NoteError::Forged { .. })));
}

#[test]
fn a_proof_file_round_trips_and_proves_its_leaf() {
    for extra in [None, Some(b"two".to_vec())] {
        let file = proof(extra.clone());
        let text = file.to_string();
        let expected = if extra.is_some() {
            "c2sp.org/tlog-proof@v1\nextra dHdv\nindex 1\n"
        } else {
            "c2sp.org/tlog-proof@v1\nindex 1\n"
        };
        assert!(text.starts_with(expected), "{text}");
        let read = ProofFile::parse(text.as_bytes()).expect("a proof");
        assert_eq!(read, file);
        assert_eq!(read.to_string(), text);
        let trusted = read.verify(leaf_hash(b"two"), &trust(2)).expect("proven");
        assert_eq!(trusted.checkpoint.head, head());
        let other = read.verify(leaf_hash(b"one"), &trust(2));
        assert!(matches!(other, Err(FileUnproven::Inclusion { index: 1, .. })));
        assert!(matches!(
            read.verify(leaf_hash(b"two"), &trust(3)),
            Err(FileUnproven::Checkpoint(_))
        ));
    }
}

#[test]
fn every_changed_bit_of_a_proof_file_outside_extra_data_is_found() {
    let text = proof(None).to_string().into_bytes();
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            let proven = ProofFile::parse(&changed).is_ok_and(|file| file.verify(leaf_hash(b"two"), &trust(2)).is_ok());
            assert!(!proven, "bit {bit} of byte {at}");
        }
        let proven = ProofFile::parse(&text[..at]).is_ok_and(|file| file.verify(leaf_hash(b"two"), &trust(2)).is_ok());
        assert!(!proven, "the first {at} bytes");
    }
}

#[test]
fn malformed_proof_files_are_refused_with_a_reason() {
    let text = proof(Some(vec![7; 9])).to_string();
    let parse = |text: &str| ProofFile::parse(text.as_bytes());
    assert!(parse(&text).is_ok());
    assert_eq!(parse(""), Err(FileError::Kind));
    assert_eq!(parse(&text.replace("@v1", "@v2")), Err(FileError::Kind));
    let line_of = |changed: &str| match parse(changed) {
        Err(FileError::Line { line, .. }) => Some(line),
        _ => None,
    };
    assert_eq!(line_of(&text.replace("extra ", "extra")), Some(2));
    assert_eq!(
        line_of(&text.replace("extra BwcHBwcHBwcH", "extra ")),
        Some(2),
        "without anything that is extra"
    );
    assert_eq!(line_of(&text.replace("index 1", "index 01")), Some(3));
    assert_eq!(line_of(&text.replace("index 1", "index")), Some(3));
    assert_eq!(line_of(&text.replace("index 1\n", "index 1\nAAAA\n")), Some(4));
    let hash = format!("{}=\n", "A".repeat(43));
    let many = text.replace("index 1\n", &format!("index 1\n{}", hash.repeat(65)));
    assert_eq!(line_of(&many), Some(4 + 65));
    assert!(matches!(
        parse(&text.replace(ORIGIN, "\u{7}")),
        Err(FileError::Checkpoint(_))
    ));
    let long = [text.as_bytes(), &vec![b'x'; 3 << 20]].concat();
    assert!(matches!(ProofFile::parse(&long), Err(FileError::Size { .. })));
    assert!(
        ProofFile {
            path: vec![Hash::ZERO; 65],
            ..proof(None)
        }
        .verify(leaf_hash(b"two"), &trust(0))
        .is_err()
    );
}

#[test]
fn a_cosigner_signs_the_specified_bytes() {
    let text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    let mut note = SignedNote::new(text.to_owned()).expect("a text");
    note.sign(&witness(11), 1_679_315_147);
    let line = note.to_string().lines().last().expect("a signature").to_owned();
    let message = format!("cosignature/v1\ntime 1679315147\n{text}");
    let key = ed25519_dalek::SigningKey::from_bytes(&[11; 32]);
    let signature = ed25519_dalek::Signer::sign(&key, message.as_bytes()).to_bytes();
    let signed = {
        use base64ct::{Base64, Encoding};
        Base64::decode_vec(line.rsplit(' ').next().expect("base64")).expect("base64")
    };
    assert_eq!(signed[12..], signature);
    // The example's own line has the form of ours; its public key is not published.
    let example = "\u{2014} witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n";
    let both = format!("{note}{example}");
    let read = SignedNote::parse(both.as_bytes()).expect("a note");
    assert_eq!(read.to_string(), both);
    assert_eq!(
        read.verify(&[witness(11).verifier()])
            .map(|signed| signed[0].statement.time),
        Ok(Some(1_679_315_147))
    );
}

#[test]
fn an_overlong_file_is_refused_before_it_is_read() {
    for bytes in [FILE_BYTES + 1, FILE_BYTES * 2] {
        let file = vec![b'x'; bytes];
        assert_eq!(ProofFile::parse(&file), Err(FileError::Size { bytes }));
        assert_eq!(Continuation::parse(&file), Err(FileError::Size { bytes }));
    }
    let longest = vec![b'x'; FILE_BYTES];
    assert_eq!(ProofFile::parse(&longest), Err(FileError::Kind));
    let read = Continuation::parse(&longest);
    assert!(
        !matches!(read, Err(FileError::Size { .. })),
        "it is refused for what it is"
    );
    assert!(read.is_err());
}
