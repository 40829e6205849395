//! Interoperability with another implementation (the crates `tlog_tiles` and `signed_note`): each side reads what the
//! other writes.

use annals_ids::Hash;
use annals_proof::{
    Checkpoint, Frontier, KeyKind, KeyName, SignedNote, SignerKey, Span, Tile, Tiles, TreeHead, Trust, VerifierKey,
    leaf_hash, tile,
    tree::{consistency, inclusion},
    verify_consistency, verify_inclusion,
};
use signed_note::Verifiers as _;
use tlog_tiles::HashReader;

const ORIGIN: &str = "example.com/realm";

/// Three full tiles of leaves and a part of one; a part of the level above.
const LEAVES: u64 = 900;

fn record(i: u64) -> Vec<u8> {
    format!("record {i}").into_bytes()
}

/// A log as the other implementation stores it: all hashes, in its order.
#[derive(Default)]
struct Theirs(Vec<tlog_tiles::Hash>);

impl HashReader for Theirs {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::Error> {
        let found = indexes
            .iter()
            .map(|index| self.0.get(usize::try_from(*index).ok()?).copied());
        found.collect::<Option<_>>().ok_or(tlog_tiles::Error::IndexesNotInTree)
    }
}

impl Theirs {
    fn of(leaves: u64) -> Self {
        let mut log = Self::default();
        for i in 0..leaves {
            let hashes = tlog_tiles::stored_hashes(i, &record(i), &log).expect("appended");
            log.0.extend(hashes);
        }
        log
    }

    fn root(&self, size: u64) -> Hash {
        ours(tlog_tiles::tree_hash(size, self).expect("a root"))
    }
}

/// A log in our form: tiles, as in files.
struct Ours {
    files: Vec<(Tile, Vec<u8>)>,
}

impl Ours {
    fn of(size: u64) -> Self {
        let mut levels = vec![(0..size).map(|i| leaf_hash(&record(i))).collect::<Vec<Hash>>()];
        while let Some(above) = levels
            .last()
            .map(|below| below.chunks_exact(256).map(tile::root_of).collect::<Vec<_>>())
            && !above.is_empty()
        {
            levels.push(above);
        }
        let contents = |tile: Tile| {
            let from = usize::try_from(tile.index() * 256).expect("small");
            Tile::encode(&levels[usize::from(tile.level())][from..from + usize::from(tile.width())])
        };
        let files = Tile::all(size).map(|tile| (tile, contents(tile))).collect();
        Self { files }
    }

    fn hashes(&self, spans: &[Span]) -> Vec<Hash> {
        let mut tiles = Tiles::default();
        for (tile, bytes) in &self.files {
            tiles.insert(*tile, tile.decode(bytes).expect("a tile"));
        }
        tiles.hash_all(spans).expect("all tiles are there")
    }
}

impl tlog_tiles::TileReader for Ours {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, wanted: &[tlog_tiles::Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let read = |wanted: &tlog_tiles::Tile| {
            let ours: Tile = path_of(wanted).parse().expect("their path is one of ours");
            let (tile, bytes) = self
                .files
                .iter()
                .find(|(tile, _)| (tile.level(), tile.index()) == (ours.level(), ours.index()))
                .expect("a tile of the tree");
            assert!(tile.width() >= ours.width());
            bytes[..usize::from(ours.width()) * 32].to_vec()
        };
        Ok(wanted.iter().map(read).collect())
    }

    fn save_tiles(&self, _: &[tlog_tiles::Tile], _: &[Vec<u8>]) {}
}

/// Their path without the height, which is always 8 in C2SP.
fn path_of(tile: &tlog_tiles::Tile) -> String {
    tile.path().replacen("tile/8/", "tile/", 1)
}

fn ours(hash: tlog_tiles::Hash) -> Hash {
    Hash(hash.0)
}

fn theirs(hash: Hash) -> tlog_tiles::Hash {
    tlog_tiles::Hash(hash.0)
}

fn all_ours(hashes: &[tlog_tiles::Hash]) -> Vec<Hash> {
    hashes.iter().copied().map(ours).collect()
}

fn all_theirs(hashes: &[Hash]) -> Vec<tlog_tiles::Hash> {
    hashes.iter().copied().map(theirs).collect()
}

#[test]
fn proofs_interoperate() {
    let (log, tiles) = (Theirs::of(LEAVES), Ours::of(LEAVES));
    let mut tree = Frontier::new();
    (0..LEAVES).for_each(|i| tree.push(leaf_hash(&record(i))));
    let root = log.root(LEAVES);
    assert_eq!(tree.root(), root);
    assert_eq!(tiles.hashes(&[Span::whole(LEAVES)]), [root]);
    let head = TreeHead { size: LEAVES, root };
    for index in (0..LEAVES).step_by(7).chain([255, 256, LEAVES - 1]) {
        let leaf = leaf_hash(&record(index));
        let their_proof = tlog_tiles::prove_record(LEAVES, index, &log).expect("a proof");
        let our_proof = tiles.hashes(&inclusion(index, LEAVES).expect("inside"));
        assert_eq!(
            verify_inclusion(leaf, index, head, &all_ours(&their_proof)),
            Ok(()),
            "leaf {index}"
        );
        tlog_tiles::check_record(&all_theirs(&our_proof), LEAVES, theirs(root), index, theirs(leaf))
            .unwrap_or_else(|error| panic!("leaf {index}: {error}"));
    }
    for old in (1..=LEAVES).step_by(11).chain([255, 256, 512, 768, LEAVES]) {
        let old_root = log.root(old);
        let their_proof = tlog_tiles::prove_tree(LEAVES, old, &log).expect("a proof");
        let our_proof = tiles.hashes(&consistency(old, LEAVES).expect("in order"));
        let old_head = TreeHead {
            size: old,
            root: old_root,
        };
        assert_eq!(
            verify_consistency(old_head, head, &all_ours(&their_proof)),
            Ok(()),
            "from {old}"
        );
        tlog_tiles::check_tree(&all_theirs(&our_proof), LEAVES, theirs(root), old, theirs(old_root))
            .unwrap_or_else(|error| panic!("from {old}: {error}"));
    }
}

#[test]
fn tiles_interoperate() {
    for size in [1, 200, 256, 257, 512, LEAVES] {
        let (log, tiles) = (Theirs::of(size), Ours::of(size));
        let root = log.root(size);
        // They verify each tile that they read against the root.
        let reader = tlog_tiles::TileHashReader::new(size, theirs(root), &tiles);
        for index in [0, size / 2, size - 1] {
            let proof = tlog_tiles::prove_record(size, index, &reader).expect("a proof from our tiles");
            let leaf = theirs(leaf_hash(&record(index)));
            assert!(tlog_tiles::check_record(&proof, size, theirs(root), index, leaf).is_ok());
        }
        let written = tlog_tiles::Tile::new_tiles(8, 0, size);
        assert_eq!(written.len(), tiles.files.len(), "{size} leaves");
        for tile in written {
            let contents = tile.read_data(&log).expect("a tile");
            let path = path_of(&tile);
            let (found, bytes) = tiles
                .files
                .iter()
                .find(|(ours, _)| ours.to_string() == path)
                .unwrap_or_else(|| panic!("{path}"));
            assert_eq!(*bytes, contents, "{path}");
            assert_eq!(path.parse(), Ok(*found));
        }
    }
}

#[test]
fn notes_interoperate() {
    let key = SignerKey::from_seed(KeyName::new(ORIGIN).expect("a name"), KeyKind::Note, &[9; 32]);
    let their_signer = signed_note::StandardSigner::new(&key.to_secret_text()).expect("our key");
    let our_verifier = key.verifier();
    let their_verifier = signed_note::StandardVerifier::new(&our_verifier.to_string()).expect("our key");
    let theirs_again =
        signed_note::new_ed25519_verifier_key(ORIGIN, &ed25519_dalek::SigningKey::from_bytes(&[9; 32]).verifying_key());
    assert_eq!(theirs_again.parse::<VerifierKey>().as_ref(), Ok(&our_verifier));
    let verifiers = signed_note::VerifierList::new(vec![Box::new(their_verifier)]);
    assert!(
        verifiers
            .verifier(ORIGIN, u32::from_be_bytes(our_verifier.id().0))
            .is_ok()
    );

    let root = Theirs::of(5).root(5);
    let checkpoint = Checkpoint {
        origin: ORIGIN.to_owned(),
        head: TreeHead { size: 5, root },
        extensions: Vec::new(),
    };
    let their_checkpoint = tlog_tiles::Checkpoint::new(ORIGIN, 5, theirs(root), "").expect("a checkpoint");
    assert_eq!(checkpoint.to_string().into_bytes(), their_checkpoint.to_bytes());
    let read = tlog_tiles::Checkpoint::from_bytes(checkpoint.to_string().as_bytes()).expect("our checkpoint");
    assert_eq!(read, their_checkpoint);

    let mut our_note = SignedNote::new(checkpoint.to_string()).expect("a text");
    our_note.sign(&key, 0);
    // A witness that they do not know.
    let witness = SignerKey::from_seed(
        KeyName::new("witness.example").expect("a name"),
        KeyKind::Cosignature,
        &[8; 32],
    );
    our_note.sign(&witness, 1_700_000_000);
    let read = signed_note::Note::from_bytes(our_note.to_string().as_bytes()).expect("our note");
    let (known, unknown) = read.verify(&verifiers).expect("signed by our key");
    assert_eq!((known.len(), unknown.len()), (1, 1));
    assert_eq!(read.text(), checkpoint.to_string().as_bytes());

    let mut their_note = signed_note::Note::new(&their_checkpoint.to_bytes(), &[]).expect("a note");
    their_note.add_sigs(&[&their_signer]).expect("signed");
    let trust = Trust {
        origin: ORIGIN.to_owned(),
        keys: vec![our_verifier],
        witnesses: Vec::new(),
        quorum: 0,
    };
    let trusted = trust.open(&their_note.to_bytes()).expect("their note");
    assert_eq!(trusted.checkpoint, checkpoint);
    let changed = String::from_utf8(their_note.to_bytes())
        .expect("text")
        .replace("\n5\n", "\n6\n");
    assert!(trust.open(changed.as_bytes()).is_err());
}
