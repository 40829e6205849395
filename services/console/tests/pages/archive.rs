//! Test console over an archive, with people who may log in.

use std::path::PathBuf;

use annals_audit::Index;
use annals_console::{
    casework::Casework,
    links::Links,
    people::{People, Role},
    site::{Parts, site},
    views::{View, ViewLog, check},
};
use annals_host::{
    log_source::Source,
    signer::{FOLDER, Folder, Signer, current_key, keep_note, make_key, make_next_log},
};
use annals_ids::{DatabaseId, WallTime};
use annals_proof::{KeyName, SignedNote, SignerKey, VerifierKey};
use annals_store::{
    Store,
    layout::{adoptions, database},
};
use axum::Router;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::game::{Game, SHARD, commit};

/// Password of all people.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A hostile player name.
pub(crate) const NAME: &str = "<img src=x onerror=alert(1)>\"'&";

/// A console over a store, with its people and its access log.
pub(crate) struct Console {
    pub(crate) site: Router,
    pub(crate) folder: TempDir,
}

impl Console {
    /// A console over a store.
    pub(crate) async fn over(store: &Store) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let views = folder.path().join("views.log");
        let log = ViewLog::open(&views, WallTime(0)).expect("a new log");
        Self::writing(store, folder, log).await
    }

    /// The same, with an access log given.
    pub(crate) async fn writing(store: &Store, folder: TempDir, views: ViewLog) -> Self {
        let mut people = People::default();
        people.add("iris", Role::Auditor, PASSWORD).expect("new");
        people.add("otto", Role::Operator, PASSWORD).expect("new");
        let file = folder.path().join("people.toml");
        people.write(&file).expect("written");
        let casework = Casework::open(Source::archive(store.clone()), &folder.path().join("index")).await;
        let site = site(Parts {
            casework: casework.expect("an index"),
            people: file,
            views,
            links: Links::of(folder.path()),
            behind_proxy: false,
            stop: watch::channel(false).1,
        });
        Self { site, folder }
    }

    pub(crate) fn people(&self) -> PathBuf {
        self.folder.path().join("people.toml")
    }

    /// All views recorded.
    pub(crate) fn views(&self) -> Vec<View> {
        let mut views = Vec::new();
        let path = self.folder.path().join("views.log");
        check(&path, &[], |view| views.push(view.clone())).expect("as it was written");
        views
    }
}

/// A game with an account of that name, and a signer.
pub(crate) struct Signed {
    pub(crate) game: Game,
    pub(crate) verifier: VerifierKey,
    pub(crate) key: SignerKey,
    /// `None` while its folder is changed.
    signer: Option<Signer>,
    data: TempDir,
}

impl Signed {
    /// The first game, from a seed on, in which assets were exchanged.
    pub(crate) async fn play(seed: u64, steps: usize) -> Self {
        Self::play_on_shards(seed, steps, 1).await
    }

    /// The same, with its owners on so many shards. Only the shard of the ledger is signed.
    pub(crate) async fn play_on_shards(seed: u64, steps: usize, shards: u16) -> Self {
        let game = Game::play_on_shards(seed, steps, shards).await;
        let key = [7; 32];
        let account = database::Account {
            database: DatabaseId(100),
            password: String::new(),
        };
        commit(&game.store, |transaction| {
            transaction.set(&database::name_key_key(), &key)?;
            let hashed = database::hashed_name(&key, NAME);
            transaction.set(&database::account_key(&hashed), &account.encode())
        })
        .await;
        let data = tempfile::tempdir().expect("a folder");
        let name = || KeyName::new("example.com/audited").expect("a name");
        let key = make_key(data.path(), name()).expect("a key");
        let verifier = key.verifier();
        let again = current_key(data.path()).expect("read").expect("there");
        let folder = Folder::take(data.path()).expect("its own");
        let signer = Signer::begin(game.store.clone(), SHARD, folder, key).expect("it begins");
        let mut signed = Self {
            game,
            verifier,
            key: again,
            signer: Some(signer),
            data,
        };
        signed.sign().await;
        signed
    }

    pub(crate) async fn sign(&mut self) -> SignedNote {
        let signer = self.signer.as_mut().expect("it runs");
        let signed = signer.turn().await.expect("it may be signed");
        signed.expect("it has grown")
    }

    /// Ends the log after `lost` was signed, as if the store had been restored to its present state and the realm had
    /// adopted its log.
    pub(crate) async fn end_log(&mut self, lost: &SignedNote) {
        self.signer = None;
        let data = self.data.path();
        keep_note(&data.join(FOLDER).join("checkpoint"), lost).expect("written");
        // The stored form of an adoption.
        let leaves = self.game.leaves.len() as u64;
        let numbers = [1, leaves, 3, 30, 0];
        let mut adoption: Vec<u8> = numbers.iter().flat_map(|number: &u64| number.to_be_bytes()).collect();
        adoption.extend([2, 0, 0, 0, 1, b'a', 0, 0, 0, 1, b'b']);
        commit(&self.game.store, |transaction| {
            transaction.set(&adoptions::key_of(0), &adoption)
        })
        .await;
        let name = KeyName::new("example.com/continued").expect("a name");
        make_next_log(data, name, "otto", "the cluster was restored").expect("it is decided");
        let key = current_key(data).expect("read").expect("there");
        let folder = Folder::take(data).expect("its own");
        let signer = Signer::begin(self.game.store.clone(), SHARD, folder, key).expect("it begins");
        let signer = self.signer.insert(signer);
        assert_eq!(signer.turn().await.expect("the log ends"), None);
    }

    /// An independent index, from which tests derive what a page must say.
    pub(crate) async fn index(&self) -> (TempDir, Index) {
        let (folder, mut index) = self.game.index().await;
        index.catch_up(&self.game.store, |_| {}).await.expect("sound");
        (folder, index)
    }
}
