//! A realm's archive in a store in memory, and a signer on real files.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use annals_event::{Gathering, Imprint, Tail};
use annals_host::signer::{Folder, SignError, Signer, current_key, default_name, make_key, newest};
use annals_ids::{Epoch, Hash, LeafIndex, OwnerId, Shard, Tick, WallTime};
use annals_proof::{Frontier, SignedNote, TreeHead, Trust, VerifierKey};
use annals_store::{
    MemoryStore, Store, StoreError, Transaction, immediate,
    layout::{
        archive::{Tree, leaf_key, tree_key},
        chunks,
    },
};
use tempfile::TempDir;

pub(crate) const SHARD: Shard = Shard(0);
pub(crate) const ORIGIN: &str = "localhost/sunken";

/// The hashes and bytes of a log's batches; from `changed` on they differ.
pub(crate) fn batches(count: u64, changed: u64) -> Vec<(Hash, Vec<u8>)> {
    let mut tail = Tail::default();
    let imprint = Imprint {
        realm: "sunken".into(),
        owner: OwnerId(1),
        epoch: Epoch(1),
        schema: Hash([3; 32]),
    };
    let freeze = |number: u64| {
        let wall = WallTime(if number < changed { number } else { number + 1 });
        let batch = Gathering::default().freeze(&imprint, &mut tail, Tick(number), wall, number == 0);
        (batch.hash, batch.bytes)
    };
    (0..count).map(freeze).collect()
}

pub(crate) fn head_of(batches: &[(Hash, Vec<u8>)]) -> (TreeHead, Vec<Hash>) {
    let mut tree = Frontier::new();
    batches.iter().for_each(|(hash, _)| tree.push(*hash));
    let head = TreeHead {
        size: tree.size(),
        root: tree.root(),
    };
    (head, tree.peaks().to_vec())
}

/// Writes an archive to a store, replacing any earlier one.
pub(crate) fn archive(store: &Store, batches: &[(Hash, Vec<u8>)]) -> TreeHead {
    let (head, peaks) = head_of(batches);
    let tree = &Tree { size: head.size, peaks };
    let work = |transaction: Transaction| async move {
        transaction.clear_range(&annals_store::layout::archive::leaves(SHARD))?;
        for (leaf, (_, bytes)) in (0..).zip(batches) {
            for (key, chunk) in chunks(&leaf_key(SHARD, LeafIndex(leaf)), bytes) {
                transaction.set(&key, chunk)?;
            }
        }
        transaction.set(&tree_key(SHARD), &tree.encode())?;
        Ok::<_, StoreError>(())
    };
    immediate(store.run_repeatable(work)).expect("the store answers");
    head
}

pub(crate) fn begin(store: &Store, data: &Path) -> Result<Signer, SignError> {
    let folder = Folder::take(data)?;
    let key = folder.key()?.expect("there is a key");
    Signer::begin(store.clone(), SHARD, folder, key)
}

/// A realm with a key and an empty store.
pub(crate) fn realm() -> (Store, TempDir) {
    let data = tempfile::tempdir().expect("a folder");
    make_key(data.path(), default_name("sunken", SHARD).expect("a name")).expect("a key");
    (MemoryStore::new().store(), data)
}

pub(crate) fn verifier(data: &Path) -> VerifierKey {
    current_key(data).expect("readable").expect("there is one").verifier()
}

pub(crate) fn head_signed(note: &SignedNote, key: &VerifierKey) -> TreeHead {
    let trust = Trust {
        origin: ORIGIN.into(),
        keys: vec![key.clone()],
        witnesses: vec![],
        quorum: 0,
    };
    trust.check(note).expect("signed by the key").checkpoint.head
}

pub(crate) fn turn(signer: &mut Signer) -> Result<Option<SignedNote>, SignError> {
    immediate(signer.turn())
}

pub(crate) fn sign(signer: &mut Signer) -> SignedNote {
    turn(signer).expect("nothing fails").expect("there is something new")
}

pub(crate) fn stored(store: &Store) -> Option<SignedNote> {
    immediate(newest(store, SHARD))
        .expect("the store answers")
        .map(|(_, note)| note)
}

pub(crate) fn remembered(data: &Path) -> String {
    fs::read_to_string(data.join("signer/checkpoint")).expect("a checkpoint")
}

/// Copies of the files of a signer's folder.
pub(crate) fn copies(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = data.join("signer");
    let records = fs::read_dir(folder.join("keys")).expect("records");
    let records = records.map(|entry| entry.expect("a file").path());
    let files = [folder.join("key"), folder.join("checkpoint")]
        .into_iter()
        .chain(records);
    files
        .map(|path| (path.clone(), fs::read(&path).expect("a file")))
        .collect()
}

/// Replaces the folder's content by these copies.
pub(crate) fn restore(data: &Path, copies: &[(PathBuf, Vec<u8>)]) {
    let folder = data.join("signer");
    fs::remove_dir_all(&folder).expect("it was there");
    fs::create_dir_all(folder.join("keys")).expect("a folder");
    for (path, bytes) in copies {
        fs::write(path, bytes).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("private");
    }
}
