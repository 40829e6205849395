//! The evidence bundle: an answer and everything that proves it, in one file.
//!
//! A zip of the form of [`crate::zip`], with these files in this order:
//!
//! | file | what |
//! |---|---|
//! | `report.txt` | the answer in words, for a reader who has to decide |
//! | `question.txt` | `annals evidence v1`, `v2` if the definitions name kinds or slots, or `v3` if events are on other shards than the ledger; and the [`Question`] |
//! | `checkpoint.txt` | a signed checkpoint of the archive, with its cosignatures |
//! | `keys/0001.txt` … | the log's keys up to the one that signed it, from the first on, as [`KeyRecord`]s |
//! | `consistency/SIZE.txt` … | proofs that it continues the tree of that size, as [`Continuation`]s, ascending |
//! | `shards/00001/checkpoint.txt` … | the same three kinds of files for each other shard that has events, ascending |
//! | `events/000001.tlog-proof` … | the events, each a C2SP tlog-proof whose `extra` is an [`Excerpt`] |
//! | `schemas/FINGERPRINT` … | the definitions under which their batches were written, as the realm stores them |
//! | `manifest.txt` | SHA-256 and name of each file before it, as `sha256sum` writes them |
//!
//! The events are, for each ledger entry that answers the question, in the order of their numbers: the entry, and the
//! order that it answers, if any. Each has the checkpoint of its own shard. The question is one line. Sizes in names have 20 digits. The encoding is
//! deterministic.

use std::collections::BTreeMap;

use annals_def::{LedgerNames, SchemaDecodeError};
use annals_ids::{Hash, LeafIndex, Shard};
use annals_proof::{
    Checkpoint, Continuation, ProofFile, SignedNote,
    checkpoint::CheckpointError,
    file::FileError,
    note::NoteError,
    succession::{KeyRecord, RecordError},
};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{
    Answer, ArchivedEvent, Cited, Contradiction, Excerpt, ExcerptError, Lexicon, NoQuestion, Question, ShardLeaf,
    report,
    zip::{self, File, TooMuch, ZipError},
};

/// Maximum number of events in a bundle. One takes some three kilobytes with its proof, and a report of this many steps
/// can still be read.
pub const EVENTS: usize = 10_000;

/// Maximum number of assets in an answer, each counted in each step in which it is held: every step lists all holdings,
/// so a few entries could otherwise require more memory than there is. This many take some hundred megabytes.
pub const MAX_ASSETS: usize = 500_000;

/// The first line of a question whose report has numbers only, of one whose report has names of kinds and slots, and of one
/// with events of several shards.
const FORMS: [&str; 3] = ["annals evidence v1\n", "annals evidence v2\n", "annals evidence v3\n"];
const REPORT: &str = "report.txt";
const QUESTION: &str = "question.txt";
const CHECKPOINT: &str = "checkpoint.txt";
const MANIFEST: &str = "manifest.txt";
const SHARDS: &str = "shards/";

/// The shard of the ledger's entries. The orders that they answer may be on others.
pub const LEDGER_SHARD: Shard = Shard(0);

/// The log of a shard's archive, as far as its events need it. Not verified.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardLog {
    /// The signed checkpoint whose tree contains the events.
    pub checkpoint: SignedNote,
    /// The log's keys, from the first one to the one that has signed the checkpoint.
    pub keys: Vec<KeyRecord>,
    /// Consistency proofs from earlier trees to the checkpoint's, by their sizes.
    pub continued: BTreeMap<u64, Vec<Hash>>,
}

/// An answer and everything that proves it. Not verified until [`crate::check()`].
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    pub question: Question,
    /// The log of the ledger's shard.
    pub log: ShardLog,
    /// The logs of the other shards that have events.
    pub others: BTreeMap<Shard, ShardLog>,
    /// Definitions by their fingerprints, as they are stored.
    pub schemas: BTreeMap<Hash, Vec<u8>>,
    /// The events: entries of the ledger, each followed by the order that it answers.
    pub events: Vec<Proven>,
}

/// An event with the proof that it is in the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Proven {
    /// The event.
    pub excerpt: Excerpt,
    /// The leaf of its batch.
    pub leaf: ShardLeaf,
    /// The inclusion proof of that leaf in the checkpoint's tree.
    pub path: Vec<Hash>,
}

/// Why bytes are not a bundle, or a bundle contradicts itself. Names the first file with an error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// The zip is malformed.
    #[error("the bundle is not intact")]
    Zip(#[from] ZipError),
    /// The zip would be too large.
    #[error("the bundle would be too large")]
    TooMuch(#[from] TooMuch),
    /// There are too many events.
    #[error("the answer rests on {events} events, and a bundle has at most {EVENTS}")]
    Events {
        /// Number of events.
        events: usize,
    },
    /// Too many assets are held in too many steps.
    #[error("the holdings of all steps have more than {MAX_ASSETS} assets, which is the limit of a bundle")]
    TooManyAssets,
    /// A file is missing, or another one is in its place.
    #[error("{name} is not at its place in the bundle: it was removed, or another file was inserted")]
    Missing {
        /// The expected file.
        name: String,
    },
    /// A file does not match the manifest.
    #[error("{name} does not match {MANIFEST}: one of the two was changed")]
    Changed {
        /// The file.
        name: String,
    },
    /// The question cannot be read.
    #[error("{QUESTION} is not a question that this bundle format supports")]
    Question(#[from] NoQuestion),
    /// A checkpoint cannot be read.
    #[error("{name} is not a signed note")]
    Note {
        /// The file.
        name: String,
        /// The reason.
        source: NoteError,
    },
    /// No event is on the shard, or the files are in another order.
    #[error("{name} does not belong there: no event needs it, or it is not at its place")]
    Idle {
        /// The file.
        name: String,
    },
    /// The note is not a checkpoint.
    #[error("a signed note in the bundle is not a checkpoint")]
    Checkpoint(#[from] CheckpointError),
    /// A key's record cannot be read.
    #[error("{name} is not the record of a key")]
    Key {
        /// The file.
        name: String,
        /// The reason.
        source: RecordError,
    },
    /// A proof cannot be read.
    #[error("{name} is not a proof")]
    Proof {
        /// The file.
        name: String,
        /// The reason.
        source: FileError,
    },
    /// The event in a proof is not shown to be in its batch.
    #[error("the event in {name} was changed, or the batch that it is said to be of")]
    Excerpt {
        /// The file.
        name: String,
        /// The reason.
        source: ExcerptError,
    },
    /// A proof has another checkpoint.
    #[error("{name} is of another checkpoint than those in the bundle: it belongs to another bundle")]
    OtherCheckpoint {
        /// The file.
        name: String,
    },
    /// An entry is unrelated to the question.
    #[error("entry {entry} of the ledger, in {name}, is not about {question}: it was inserted")]
    Stray {
        /// The file.
        name: String,
        /// The number of the entry.
        entry: u64,
        question: String,
    },
    /// An event is in the wrong place.
    #[error("the event in {name} does not belong there: {why}")]
    Misplaced {
        /// The file.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The events contradict one another.
    #[error("the event in {name} and those before it contradict one another")]
    Contradiction {
        /// The file.
        name: String,
        /// The contradiction.
        source: Contradiction,
    },
    /// The events contradict one another as a whole.
    #[error("the events contradict one another")]
    Contradictory(#[source] Contradiction),
    /// The events give no answer.
    #[error("the events do not answer the question: the first of them are missing")]
    Unanswered,
    /// Definitions cannot be read.
    #[error("{name} cannot be read by this version: check the bundle with the annals-verify of the realm's version")]
    Schema {
        /// The file.
        name: String,
        /// The reason.
        source: SchemaDecodeError,
    },
    /// The report differs from the one that follows from the events.
    #[error("{REPORT} does not follow from the events: it was forged or changed")]
    Report,
}

impl Proven {
    /// The event with its place in the archive.
    pub(crate) fn found(&self) -> ArchivedEvent<'_> {
        ArchivedEvent {
            leaf: self.leaf,
            header: self.excerpt.header(),
            place: self.excerpt.place(),
            event: self.excerpt.event(),
        }
    }

    /// The file that encodes it.
    #[must_use]
    pub fn file(&self, checkpoint: &SignedNote) -> ProofFile {
        ProofFile {
            extra: Some(self.excerpt.encode()),
            index: self.leaf.leaf.0,
            path: self.path.clone(),
            checkpoint: checkpoint.clone(),
        }
    }

    /// Reads the file that encodes it, as an event on the ledger's shard, and the checkpoint in that file.
    pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<(Self, SignedNote), BundleError> {
        let proof = |source| BundleError::Proof {
            name: name.to_owned(),
            source,
        };
        let file = ProofFile::parse(bytes).map_err(proof)?;
        let excerpt = Excerpt::decode(&file.extra.unwrap_or_default());
        let excerpt = excerpt.map_err(|source| BundleError::Excerpt {
            name: name.to_owned(),
            source,
        })?;
        let leaf = ShardLeaf {
            shard: LEDGER_SHARD,
            leaf: LeafIndex(file.index),
        };
        let path = file.path;
        Ok((Self { excerpt, leaf, path }, file.checkpoint))
    }
}

impl Bundle {
    /// The answer that follows from its events.
    ///
    /// # Errors
    /// The first event that does not belong there, or contradicts those before it; or that there is no answer.
    pub fn answer(&self) -> Result<Answer, BundleError> {
        let mut entries: Vec<Cited> = Vec::new();
        let mut sieve = self.question.sieve();
        let mut at = 0;
        while let Some(event) = self.events.get(at) {
            let found = event.found();
            let name = event_name(at);
            let entry = found.entry().map_err(|source| contradiction(&name, source))?;
            if !sieve.takes(entry) {
                let (entry, question) = (entry.number.0, self.question.to_string());
                return Err(BundleError::Stray { name, entry, question });
            }
            let asked = match entry.order {
                Some(_) => Some(self.asked(at + 1)?),
                None => None,
            };
            let cited =
                Cited::of(&found, asked.as_ref()).map_err(|source| contradiction(&event_name(at + 1), source))?;
            let misplaced = |why| BundleError::Misplaced { name, why };
            if let Some(before) = entries.last() {
                if before.entry.number >= cited.entry.number {
                    return Err(misplaced("entries have ascending numbers"));
                }
                if before.at.owner != cited.at.owner {
                    return Err(misplaced("all entries are in one log"));
                }
            }
            if cited.leaf.shard != LEDGER_SHARD {
                return Err(misplaced("all entries are on the ledger's shard"));
            }
            at += 1 + usize::from(asked.is_some());
            entries.push(cited);
        }
        self.of_one_realm()?;
        if self.question.count_assets(&entries, MAX_ASSETS) > MAX_ASSETS {
            return Err(BundleError::TooManyAssets);
        }
        let answer = self.question.answer(entries).map_err(BundleError::Contradictory)?;
        answer.ok_or(BundleError::Unanswered)
    }

    fn asked(&self, at: usize) -> Result<ArchivedEvent<'_>, BundleError> {
        let missing = || BundleError::Missing { name: event_name(at) };
        self.events.get(at).map(Proven::found).ok_or_else(missing)
    }

    fn of_one_realm(&self) -> Result<(), BundleError> {
        let realm = self.realm();
        let other = self
            .events
            .iter()
            .position(|event| event.excerpt.header().realm != realm);
        other.map_or(Ok(()), |at| {
            Err(BundleError::Misplaced {
                name: event_name(at),
                why: "it is of another realm than the first one",
            })
        })
    }

    /// The realm's name, as in its batches.
    #[must_use]
    pub fn realm(&self) -> &str {
        self.events.first().map_or("", |event| &event.excerpt.header().realm)
    }

    /// The logs of all shards that it rests on.
    pub fn logs(&self) -> impl Iterator<Item = (Shard, &ShardLog)> {
        let others = self.others.iter().map(|(shard, log)| (*shard, log));
        std::iter::once((LEDGER_SHARD, &self.log)).chain(others)
    }

    fn log_of(&self, shard: Shard) -> &ShardLog {
        self.others.get(&shard).unwrap_or(&self.log)
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// When the events give no answer, or are too many.
    pub fn write(&self) -> Result<Vec<u8>, BundleError> {
        if self.events.len() > EVENTS {
            return Err(BundleError::Events {
                events: self.events.len(),
            });
        }
        let mut files = vec![file(REPORT, self.report(&self.answer()?)?)];
        files.push(file(QUESTION, format!("{}{}\n", self.form()?, self.question)));
        self.logs().for_each(|(shard, log)| files.extend(log.files(shard)));
        files.extend((0..).zip(&self.events).map(|(at, event)| {
            let checkpoint = &self.log_of(event.leaf.shard).checkpoint;
            file(&event_name(at), event.file(checkpoint).to_string())
        }));
        files.extend(
            self.schemas
                .iter()
                .map(|(fingerprint, bytes)| file(&schema_name(*fingerprint), bytes.clone())),
        );
        files.push(file(MANIFEST, manifest(&files)));
        Ok(zip::write(&files)?)
    }

    /// The first line of the question, which determines the wording of the report.
    fn form(&self) -> Result<&'static str, BundleError> {
        Ok(match self.others.is_empty() {
            true => FORMS[usize::from(!self.lexicon()?.schemas().is_empty())],
            false => FORMS[2],
        })
    }

    fn report(&self, answer: &Answer) -> Result<String, BundleError> {
        let names = (0..self.events.len()).map(event_name);
        let logs: Result<BTreeMap<Shard, Checkpoint>, BundleError> =
            self.logs().map(|(shard, log)| Ok((shard, log.claimed()?))).collect();
        Ok(report::render((answer, &self.lexicon()?), self, &logs?, names))
    }

    /// The names of kinds and slots in its definitions.
    pub(crate) fn lexicon(&self) -> Result<Lexicon, BundleError> {
        let named = self.schemas.iter().map(|(fingerprint, bytes)| {
            let names = LedgerNames::of_stored(bytes).map_err(|source| BundleError::Schema {
                name: schema_name(*fingerprint),
                source,
            })?;
            Ok((*fingerprint, names))
        });
        Ok(Lexicon::new(named.collect::<Result<Vec<_>, BundleError>>()?))
    }

    /// Reads the file: checks that it is complete and can be decoded, and that it agrees with its manifest and events.
    /// Proofs and signatures are not checked.
    ///
    /// # Errors
    /// The first error found.
    pub fn read(bytes: &[u8]) -> Result<(Self, Answer), BundleError> {
        let mut files = zip::read(bytes)?;
        check_manifest(&files)?;
        files.pop();
        let mut files = Files {
            rest: files.into_iter().peekable(),
        };
        let report = files.take(REPORT)?;
        let (form, question) = read_question(&files.take(QUESTION)?)?;
        let log = files.log(LEDGER_SHARD)?;
        let others = files.others()?;
        let mut bundle = Self {
            question,
            events: files.events(&log, &others)?,
            log,
            others,
            schemas: BTreeMap::new(),
        };
        bundle.schemas = files.schemas();
        let is_needed = |shard: &Shard| bundle.events.iter().any(|event| event.leaf.shard == *shard);
        if let Some(shard) = bundle.others.keys().find(|shard| !is_needed(shard)) {
            return Err(BundleError::Idle {
                name: checkpoint_name(*shard),
            });
        }
        if let Some(other) = files.rest.next() {
            return Err(BundleError::Missing { name: other.name });
        }
        if bundle.form()? != form {
            return Err(NoQuestion.into());
        }
        let answer = bundle.answer()?;
        if bundle.report(&answer)?.as_bytes() != report {
            return Err(BundleError::Report);
        }
        Ok((bundle, answer))
    }
}

impl ShardLog {
    /// The content of the checkpoint, not verified.
    ///
    /// # Errors
    /// When the note is not a checkpoint.
    pub fn claimed(&self) -> Result<Checkpoint, CheckpointError> {
        self.checkpoint.text().parse()
    }

    fn files(&self, shard: Shard) -> Vec<File> {
        let mut files = vec![file(&checkpoint_name(shard), self.checkpoint.to_string())];
        let keys = (0..).zip(&self.keys);
        files.extend(keys.map(|(at, record)| file(&key_name(shard, at), record.to_string())));
        files.extend(self.continued.iter().map(|(&old, path)| {
            let (path, checkpoint) = (path.clone(), self.checkpoint.clone());
            file(
                &continuation_name(shard, old),
                Continuation { old, path, checkpoint }.to_string(),
            )
        }));
        files
    }
}

/// The files that remain to be read.
struct Files {
    rest: std::iter::Peekable<std::vec::IntoIter<File>>,
}

impl Files {
    fn take(&mut self, name: &str) -> Result<Vec<u8>, BundleError> {
        let found = self.rest.next_if(|file| file.name == name);
        found
            .map(|file| file.bytes)
            .ok_or_else(|| BundleError::Missing { name: name.to_owned() })
    }

    fn log(&mut self, shard: Shard) -> Result<ShardLog, BundleError> {
        let name = checkpoint_name(shard);
        let checkpoint = SignedNote::parse(&self.take(&name)?);
        let checkpoint = checkpoint.map_err(|source| BundleError::Note { name, source })?;
        Ok(ShardLog {
            keys: self.keys(shard)?,
            continued: self.continued(shard, &checkpoint)?,
            checkpoint,
        })
    }

    /// The logs of other shards, ascending.
    fn others(&mut self) -> Result<BTreeMap<Shard, ShardLog>, BundleError> {
        let mut others = BTreeMap::new();
        while let Some(shard) = self.rest.peek().and_then(|file| shard_of(&file.name)) {
            let last = others.last_key_value().map_or(LEDGER_SHARD, |(last, _)| *last);
            if shard <= last {
                return Err(BundleError::Idle {
                    name: checkpoint_name(shard),
                });
            }
            others.insert(shard, self.log(shard)?);
        }
        Ok(others)
    }

    fn keys(&mut self, shard: Shard) -> Result<Vec<KeyRecord>, BundleError> {
        let mut keys = Vec::new();
        while let Some(file) = self.rest.next_if(|file| file.name == key_name(shard, keys.len())) {
            let name = file.name;
            keys.push(KeyRecord::parse(&file.bytes).map_err(|source| BundleError::Key { name, source })?);
        }
        match keys.is_empty() {
            true => Err(BundleError::Missing {
                name: key_name(shard, 0),
            }),
            false => Ok(keys),
        }
    }

    fn continued(&mut self, shard: Shard, own: &SignedNote) -> Result<BTreeMap<u64, Vec<Hash>>, BundleError> {
        let mut continued = BTreeMap::new();
        let folder = format!("{}consistency/", folder(shard));
        while let Some(file) = self.rest.next_if(|file| file.name.starts_with(&folder)) {
            let name = file.name;
            let read = Continuation::parse(&file.bytes);
            let Continuation { old, path, checkpoint } = read.map_err(|source| BundleError::Proof {
                name: name.clone(),
                source,
            })?;
            if checkpoint != *own {
                return Err(BundleError::OtherCheckpoint { name });
            }
            let ascends = continued.last_key_value().is_none_or(|(before, _)| *before < old);
            if continuation_name(shard, old) != name || !ascends {
                return Err(BundleError::Missing {
                    name: continuation_name(shard, old),
                });
            }
            continued.insert(old, path);
        }
        Ok(continued)
    }

    fn events(&mut self, own: &ShardLog, others: &BTreeMap<Shard, ShardLog>) -> Result<Vec<Proven>, BundleError> {
        let shard_of = |note: &SignedNote| match *note == own.checkpoint {
            true => Some(LEDGER_SHARD),
            false => others
                .iter()
                .find(|(_, log)| log.checkpoint == *note)
                .map(|(shard, _)| *shard),
        };
        let mut events = Vec::new();
        while let Some(file) = self.rest.next_if(|file| file.name == event_name(events.len())) {
            if events.len() == EVENTS {
                return Err(BundleError::Events { events: EVENTS + 1 });
            }
            let (mut event, checkpoint) = Proven::read(&file.name, &file.bytes)?;
            let Some(shard) = shard_of(&checkpoint) else {
                return Err(BundleError::OtherCheckpoint { name: file.name });
            };
            event.leaf.shard = shard;
            events.push(event);
        }
        Ok(events)
    }

    fn schemas(&mut self) -> BTreeMap<Hash, Vec<u8>> {
        let mut schemas = BTreeMap::new();
        let mut last = None;
        while let Some(file) = self.rest.next_if(|file| {
            let fingerprint = hash_of(&file.bytes);
            file.name == schema_name(fingerprint) && last < Some(fingerprint)
        }) {
            let fingerprint = hash_of(&file.bytes);
            last = Some(fingerprint);
            schemas.insert(fingerprint, file.bytes);
        }
        schemas
    }
}

/// Checks that the last file lists each of the others, with its hash.
fn check_manifest(files: &[File]) -> Result<(), BundleError> {
    let missing = || BundleError::Missing {
        name: MANIFEST.to_owned(),
    };
    let (last, others) = files.split_last().ok_or_else(missing)?;
    if last.name != MANIFEST {
        return Err(missing());
    }
    let listed = String::from_utf8_lossy(&last.bytes);
    let mut lines = listed.split_inclusive('\n');
    for file in others {
        let line = lines.next().unwrap_or_default();
        if line == manifest_line(file) {
            continue;
        }
        let name = file.name.clone();
        return Err(match line.trim_end().rsplit_once("  ") {
            Some((_, listed)) if listed != name => BundleError::Missing {
                name: crate::words::text(listed),
            },
            _ => BundleError::Changed { name },
        });
    }
    match lines.next() {
        None => Ok(()),
        Some(more) => Err(BundleError::Missing {
            name: crate::words::text(more.trim_end().rsplit("  ").next().unwrap_or_default()),
        }),
    }
}

fn manifest(files: &[File]) -> String {
    files.iter().map(manifest_line).collect()
}

fn manifest_line(file: &File) -> String {
    format!("{}  {}\n", hash_of(&file.bytes), file.name)
}

fn read_question(bytes: &[u8]) -> Result<(&'static str, Question), NoQuestion> {
    let text = str::from_utf8(bytes).map_err(|_| NoQuestion)?;
    let form = FORMS
        .into_iter()
        .find(|form| text.starts_with(form))
        .ok_or(NoQuestion)?;
    let question = text[form.len()..].strip_suffix('\n').ok_or(NoQuestion)?;
    Ok((form, question.parse()?))
}

fn contradiction(name: &str, source: Contradiction) -> BundleError {
    BundleError::Contradiction {
        name: name.to_owned(),
        source,
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

fn file(name: &str, bytes: impl Into<Vec<u8>>) -> File {
    File {
        name: name.to_owned(),
        bytes: bytes.into(),
    }
}

/// The folder of the files about a shard's log; none for the ledger's.
fn folder(shard: Shard) -> String {
    match shard {
        LEDGER_SHARD => String::new(),
        Shard(other) => format!("{SHARDS}{other:05}/"),
    }
}

/// The shard, other than the ledger's, about whose log a file is.
fn shard_of(name: &str) -> Option<Shard> {
    let (shard, _) = name.strip_prefix(SHARDS)?.split_once('/')?;
    shard
        .parse()
        .ok()
        .map(Shard)
        .filter(|found| name.starts_with(&folder(*found)))
}

pub(crate) fn checkpoint_name(shard: Shard) -> String {
    format!("{}{CHECKPOINT}", folder(shard))
}

pub(crate) fn key_name(shard: Shard, at: usize) -> String {
    format!("{}keys/{:04}.txt", folder(shard), at + 1)
}

pub(crate) fn continuation_name(shard: Shard, old: u64) -> String {
    format!("{}consistency/{old:020}.txt", folder(shard))
}

pub(crate) fn event_name(at: usize) -> String {
    format!("events/{:06}.tlog-proof", at + 1)
}

pub(crate) fn schema_name(fingerprint: Hash) -> String {
    format!("schemas/{fingerprint}")
}
