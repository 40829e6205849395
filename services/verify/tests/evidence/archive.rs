//! A generated game, archived, indexed and signed.

use annals_audit::{
    Index,
    evidence::{EvidenceError, bundle, receipt},
};
use annals_event::ledger::Stage;
use annals_evidence::{Anchors, Answer, Question, TradeStage, zip};
use annals_host::signer::{
    FOLDER, Folder, Signer, current_key, keep_note, make_key, make_next_key, make_next_log, newest,
};
use annals_ids::{DatabaseId, Hash, Serial, Shard, TradeId};
use annals_proof::{Checkpoint, KeyName, SignedNote, SignerKey, TreeHead, VerifierKey};
use annals_store::{Transaction, layout::adoptions};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::game::{Game, SHARD};

/// Name of the log.
pub(crate) const NAME: &str = "example.com/audited";

/// A generated game with its archive, index and signer.
pub(crate) struct Archive {
    pub(crate) game: Game,
    pub(crate) key: VerifierKey,
    index: Index,
    signer: Option<Signer>,
    /// The signers of the other shards, with their keys and folders.
    others: Vec<(Signer, VerifierKey, TempDir)>,
    old_key: Option<SignerKey>,
    data: TempDir,
    _index: TempDir,
}

impl Archive {
    /// The first game, from a seed on, with at least two exchanges.
    pub(crate) async fn play(seed: u64, steps: usize) -> Self {
        Self::play_on_shards(seed, steps, 1).await
    }

    /// The same, with its owners on so many shards, each with a signer of its own.
    pub(crate) async fn play_on_shards(seed: u64, steps: usize, shards: u16) -> Self {
        for seed in (seed..).step_by(10_000).take(50) {
            let game = Game::play_on_shards(seed, steps, shards).await;
            if exchanges(&game).len() > 1 {
                return Self::of(game, shards).await;
            }
        }
        panic!("nobody trades in {steps} steps of games from {seed} on")
    }

    async fn of(game: Game, shards: u16) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let name = KeyName::new(NAME).expect("a name");
        let key = make_key(data.path(), name).expect("a key");
        let verifier = key.verifier();
        let folder = Folder::take(data.path()).expect("its own");
        let signer = Signer::begin(game.store.clone(), SHARD, folder, key).expect("it begins");
        let others = (1..shards).map(|shard| {
            let data = tempfile::tempdir().expect("a folder");
            let name = KeyName::new(&format!("{NAME}/{shard}")).expect("a name");
            let key = make_key(data.path(), name).expect("a key");
            (Shard(shard), key, data)
        });
        let mut signers = Vec::new();
        for (shard, key, data) in others.collect::<Vec<_>>() {
            let (verifier, folder) = (key.verifier(), Folder::take(data.path()).expect("its own"));
            let signer = Signer::begin(game.store.clone(), shard, folder, key).expect("it begins");
            signers.push((signer, verifier, data));
        }
        let (own, index) = game.index().await;
        let mut archive = Self {
            game,
            key: verifier,
            index,
            signer: Some(signer),
            others: signers,
            old_key: None,
            data,
            _index: own,
        };
        archive.read().await;
        archive.sign().await;
        archive
    }

    /// Takes new batches into the index.
    pub(crate) async fn read(&mut self) {
        let read = self.index.catch_up(&self.game.store, |_| {}).await;
        read.expect("sound");
    }

    /// Continues the game, without signing the new batches.
    pub(crate) async fn go_on(&mut self, steps: usize) {
        self.game.play_on(steps).await;
        self.read().await;
    }

    pub(crate) async fn sign(&mut self) -> SignedNote {
        for (other, ..) in &mut self.others {
            other.turn().await.expect("it may be signed");
        }
        let signer = self.signer.as_mut().expect("it runs");
        signer.turn().await.expect("it may be signed").expect("it has grown")
    }

    /// Ends the log as if it had signed 50 batches more than the archive has, and the realm had adopted its log;
    /// returns the lost checkpoint, and the first key of the next log.
    pub(crate) async fn end_log(&mut self, next: &str) -> (SignedNote, VerifierKey) {
        let old = self.current_key();
        let newest: Checkpoint = self.newest().await.text().parse().expect("a checkpoint");
        let leaves = newest.head.size;
        let lost = Checkpoint {
            head: TreeHead {
                size: leaves + 50,
                root: Hash([5; 32]),
            },
            ..newest
        };
        let mut lost = SignedNote::new(lost.to_string()).expect("a text");
        lost.sign(&old, 0);
        self.signer = None;
        keep_note(&self.data.path().join(FOLDER).join("checkpoint"), &lost).expect("written");
        // The stored form of an adoption.
        let mut value: Vec<u8> = [1, leaves, 3, 30, 0]
            .iter()
            .flat_map(|number: &u64| number.to_be_bytes())
            .collect();
        value.extend([2, 0, 0, 0, 1, b'a', 0, 0, 0, 1, b'b']);
        let value = &value;
        let work = |transaction: Transaction| async move { transaction.set(&adoptions::key_of(0), value) };
        self.game.store.run_repeatable(work).await.expect("the store answers");
        let name = KeyName::new(next).expect("a name");
        let new = make_next_log(self.data.path(), name, "ada", "the cluster was restored");
        let new = new.expect("it is decided").verifier();
        let (folder, key) = (Folder::take(self.data.path()).expect("its own"), self.current_key());
        let mut signer = Signer::begin(self.game.store.clone(), SHARD, folder, key).expect("it begins");
        assert_eq!(signer.turn().await.expect("the log ends"), None);
        self.signer = Some(signer);
        self.old_key = Some(old);
        (lost, new)
    }

    /// The signer's key.
    pub(crate) fn current_key(&self) -> SignerKey {
        current_key(self.data.path()).expect("readable").expect("there is one")
    }

    /// The key of the ended log.
    pub(crate) fn old_key(&self) -> &SignerKey {
        self.old_key.as_ref().expect("a log has ended")
    }

    /// Replaces the signer's key, from the next checkpoint on.
    pub(crate) fn rotate(&mut self) -> VerifierKey {
        let name = KeyName::new(NAME).expect("a name");
        make_next_key(self.data.path(), name).expect("a key").verifier()
    }

    pub(crate) async fn newest(&self) -> SignedNote {
        let found = newest(&self.game.store, SHARD).await.expect("the store answers");
        found.expect("something was signed").1
    }

    pub(crate) async fn answer(&self, question: Question) -> Answer {
        let answer = self.index.answer(&self.game.store, question).await;
        answer.expect("an answer")
    }

    pub(crate) async fn try_bundle(&self, question: Question, kept: &[SignedNote]) -> Result<Vec<u8>, EvidenceError> {
        let answer = self.answer(question).await;
        bundle(&self.game.store, &self.index, (question, &answer), kept).await
    }

    /// A bundle for an answer given earlier.
    pub(crate) async fn try_bundle_of(&self, question: Question, answer: &Answer) -> Result<Vec<u8>, EvidenceError> {
        bundle(&self.game.store, &self.index, (question, answer), &[]).await
    }

    pub(crate) async fn bundle(&self, question: Question) -> Vec<u8> {
        self.try_bundle(question, &[]).await.expect("evidence")
    }

    pub(crate) async fn receipt(&self, id: TradeId) -> Result<String, EvidenceError> {
        receipt(&self.game.store, &self.index, id).await
    }

    /// All possible questions.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let mut questions: Vec<Question> = self.game.serials.iter().copied().map(Question::Item).collect();
        questions.extend(self.game.deals.iter().map(|deal| Question::Trade(deal.id)));
        questions.extend((100..103).map(|number| Question::Account(DatabaseId(number))));
        questions
    }

    /// Trades in which assets changed hands.
    pub(crate) fn settled(&self) -> Vec<TradeId> {
        exchanges(&self.game)
    }

    /// Anchors of a party that knows the log's first key.
    pub(crate) fn anchors(&self) -> Anchors {
        Anchors {
            keys: vec![self.key.clone()],
            ..Anchors::default()
        }
    }

    /// The same, who also knows the keys of the other shards' logs.
    pub(crate) fn anchors_of_all(&self) -> Anchors {
        let others = self.others.iter().map(|(_, key, _)| key.clone());
        Anchors {
            keys: others.chain([self.key.clone()]).collect(),
            ..Anchors::default()
        }
    }

    /// The newest checkpoint of a shard.
    pub(crate) async fn newest_of(&self, shard: Shard) -> SignedNote {
        let found = newest(&self.game.store, shard).await.expect("the store answers");
        found.expect("something was signed").1
    }

    /// A trade of several steps, and an item that has moved.
    pub(crate) fn trade(&self) -> Question {
        Question::Trade(self.settled()[0])
    }

    pub(crate) fn item(&self) -> Question {
        let moved = self.game.truths.iter().flat_map(|truth| &truth.entry.passages);
        let times = |serial: Serial| moved.clone().filter(|passage| passage.serial == serial).count();
        let most = self.game.serials.iter().copied().max_by_key(|serial| times(*serial));
        Question::Item(most.expect("an item"))
    }
}

/// Trades in which assets changed hands.
fn exchanges(game: &Game) -> Vec<TradeId> {
    let is_exchange = |deal: &&crate::game::Deal| {
        game.truths.iter().any(|truth| {
            let was = truth.deal.as_ref().filter(|was| was.id == deal.id);
            let is_settled = was.is_some_and(|was| was.stage == TradeStage::Begun(Stage::Settled));
            is_settled && !(truth.entry.postings.is_empty() && truth.entry.passages.is_empty())
        })
    };
    let settled = game.deals.iter().filter(is_exchange);
    settled.map(|deal| deal.id).collect()
}

/// A zip with a manifest that matches its files, as an attacker who changed them would write it.
pub(crate) fn pack(mut files: Vec<zip::File>) -> Vec<u8> {
    files.retain(|file| file.name != "manifest.txt");
    let line = |file: &zip::File| {
        let hash: String = Sha256::digest(&file.bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{hash}  {}\n", file.name)
    };
    let manifest: String = files.iter().map(line).collect();
    files.push(zip::File {
        name: "manifest.txt".to_owned(),
        bytes: manifest.into_bytes(),
    });
    zip::write(&files).expect("small")
}
