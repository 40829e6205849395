//! `annals checkpoint`: keys, signed checkpoints, and their cosignatures by witnesses (`docs/proofs.md`).

use std::{
    fs,
    io::{self, Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_db::{ProveError, Prover};
use annals_evidence::{Lineage, Wrong};
use annals_host::{
    clock,
    log_source::{KeptRealm, NamedRealm, Source, SourceError},
    process::Settings,
    signer::{
        FolderError, add_cosignatures, current_key, default_name, keep_note, key_records, make_key, make_key_file,
        make_next_key, make_next_log, newest, of_size, read_key, read_note,
    },
    telemetry::Chain,
};
use annals_ids::{Hash, Shard};
use annals_proof::{
    Frontier, KeyKind, KeyName, LogEnd, SignedNote, Tile, TreeHead, Trust, Trusted, VerifierKey, checkpoint::Untrusted,
    key::KeyError, succession::KeyRecord, tile::TILE_WIDTH, verify::Unproven, verify_consistency,
};
use annals_store::{Store, StoreError};
use thiserror::Error;

use crate::kept_checkpoints::{KeptError, declared_lost, trust_for};

/// Signed checkpoints of a realm's archive: its keys, what was signed, and who has witnessed it.
#[derive(Debug, clap::Args)]
pub struct Checkpoint {
    #[command(subcommand)]
    command: Commands,
    #[command(flatten)]
    named: NamedRealm,
    /// The shard of the realm: each has an archive and checkpoints of its own
    #[arg(long, global = true, value_name = "N", default_value = "0")]
    shard: u16,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Print the newest signed checkpoint as a signed note
    Show {
        /// Print the checkpoint of this size instead
        #[arg(long, value_name = "BATCHES")]
        size: Option<u64>,
        /// Print the log's keys instead, each with the archive size at its start
        #[arg(long, conflicts_with = "size")]
        keys: bool,
        /// Print the signed statements that earlier logs have ended instead, oldest first
        #[arg(long, conflicts_with_all = ["size", "keys"])]
        ended: bool,
        /// Also write the hashes of all its leaves to this file: with them, annals log verify can name the first
        /// changed batch
        #[arg(long, value_name = "FILE", conflicts_with_all = ["keys", "ended"])]
        leaves: Option<PathBuf>,
        #[command(flatten)]
        kept: KeptRealm,
    },
    /// Create a key of a signer or a witness, and print its verifier key
    Keygen {
        /// The data directory of the signer
        #[arg(long, default_value = "data")]
        data: PathBuf,
        /// Name of the key, such as example.com/aldmoor: the first line of all checkpoints; localhost/REALM if omitted
        #[arg(long)]
        name: Option<String>,
        /// Create a witness key in this file instead
        #[arg(long, value_name = "FILE", requires = "name", conflicts_with = "data")]
        witness: Option<PathBuf>,
    },
    /// Rotate the signer's key: both keys sign the next checkpoint, and the new one alone those after it
    Rotate {
        /// The data directory of the signer
        #[arg(long, default_value = "data")]
        data: PathBuf,
    },
    /// Begin another log in place of one that the archive no longer continues, after the realm has adopted its log: the
    /// signer signs, with both keys, what is lost and what is continued
    NewLog {
        /// The data directory of the signer
        #[arg(long, default_value = "data")]
        data: PathBuf,
        /// Name of the new log: no log of this realm may have had it; if omitted, that of the old one and a number
        #[arg(long)]
        name: Option<String>,
        /// Name of the operator, part of the signed statement
        #[arg(long)]
        by: String,
        /// Why what was signed is lost, part of the signed statement
        #[arg(long)]
        reason: String,
    },
    /// Cosign the newest checkpoint as a witness, if it continues the last cosigned one, and print it
    Cosign {
        /// The witness's key
        #[arg(long, value_name = "FILE")]
        witness: PathBuf,
        /// File in which the witness stores its last cosigned checkpoint
        #[arg(long, value_name = "FILE")]
        last: PathBuf,
        /// The log's verifier key, as printed by keygen and show --keys; several during key rotation
        #[arg(long, required = true, value_name = "KEY")]
        key: Vec<String>,
    },
    /// Add witness cosignatures to the checkpoint in the realm's store
    AddCosignature {
        /// A cosigned checkpoint
        file: PathBuf,
        /// Verifier key of a witness whose cosignature is added
        #[arg(long, required = true, value_name = "KEY")]
        witness: Vec<String>,
    },
    /// Check the signature of a kept checkpoint, and that the realm's archive continues it; exit code 1: it does not,
    /// 2: not checked
    Verify {
        /// The checkpoint
        file: PathBuf,
        /// A trusted verifier key of the log
        #[arg(long, required = true, value_name = "KEY")]
        key: Vec<String>,
        /// A trusted verifier key of a witness
        #[arg(long, value_name = "KEY")]
        witness: Vec<String>,
        /// Minimum number of witness cosignatures
        #[arg(long, default_value_t = 0)]
        quorum: usize,
        #[command(flatten)]
        kept: KeptRealm,
    },
}

/// Why a command failed.
#[derive(Debug, Error)]
enum CheckpointError {
    #[error("the realm cannot be opened")]
    Source(#[from] SourceError),
    #[error("the store cannot be read or written")]
    Store(#[from] StoreError),
    #[error("the archive's tree cannot be read")]
    Prove(#[from] ProveError),
    #[error("the file cannot be used")]
    File(#[from] FolderError),
    #[error("the key cannot be used")]
    Key(#[from] KeyError),
    #[error("the realm has no signed checkpoint{}; a signer signs one as the archive grows", of(*.0))]
    None(Option<u64>),
    #[error("file not found: {}", .0.display())]
    Missing(PathBuf),
    #[error("no key in {}: create one with annals checkpoint keygen, or start the signer", .0.display())]
    NoKey(PathBuf),
    #[error("the checkpoint cannot be trusted")]
    Untrusted(#[from] Untrusted),
    #[error("nothing was cosigned: the checkpoint has {found} batches, and the last cosigned one has {expected}")]
    Older { expected: u64, found: u64 },
    #[error("nothing was cosigned: no proof that the archive continues the last cosigned checkpoint")]
    Unproven(#[from] Unproven),
    #[error("nothing was added: none of these witnesses has cosigned it, or the realm does not keep that checkpoint")]
    NotAdded,
    #[error("{} cannot be written", .0.display())]
    Leaves(PathBuf, #[source] io::Error),
    #[error("the archive's first {0} batches differ from the signed ones; run annals log verify to find the change")]
    Otherwise(u64),
    #[error("the store's records of the log's keys cannot be trusted")]
    Records(#[from] Wrong),
    #[error("what was declared lost cannot be read")]
    Lost(#[from] KeptError),
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

fn of(size: Option<u64>) -> String {
    size.map_or_else(String::new, |size| format!(" of {size} batches"))
}

impl Checkpoint {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match work(self.command, &self.named.settings(), Shard(self.shard)).await {
            Ok(code) => code,
            // The reader closed the pipe: not an error.
            Err(CheckpointError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }
}

async fn work(command: Commands, settings: &Settings, shard: Shard) -> Result<ExitCode, CheckpointError> {
    match command {
        Commands::Show {
            size,
            keys,
            ended,
            leaves,
            kept,
        } => {
            let source = open(&kept, (settings, shard)).await?;
            match (keys, ended) {
                (true, _) => show_keys(&source.store, shard).await?,
                (_, true) => show_ended(&source.store, shard).await?,
                _ => show((&source.store, shard), size, leaves.as_deref()).await?,
            }
        }
        Commands::Keygen { data, name, witness } => {
            let name = match name {
                Some(name) => KeyName::new(&name)?,
                None => default_name(settings.realm.as_str(), shard)?,
            };
            let key = match witness {
                Some(file) => make_key_file(&file, name, KeyKind::Cosignature)?,
                None => make_key(&data, name)?,
            };
            writeln!(stdout(), "{}", key.verifier())?;
        }
        Commands::Rotate { data } => {
            let current = current_key(&data)?.ok_or_else(|| CheckpointError::NoKey(data.clone()))?;
            let next = make_next_key(&data, current.verifier().name().clone())?;
            writeln!(stdout(), "{}", next.verifier())?;
        }
        Commands::NewLog { data, name, by, reason } => {
            let current = current_key(&data)?.ok_or_else(|| CheckpointError::NoKey(data.clone()))?;
            let name = match name {
                Some(name) => KeyName::new(&name)?,
                None => next_name(current.verifier().name())?,
            };
            let next = make_next_log(&data, name, &by, &reason)?;
            writeln!(stdout(), "{}", next.verifier())?;
        }
        Commands::Cosign { witness, last, key } => {
            cosign((&witness, &last), &read_keys(&key)?, (settings, shard)).await?;
        }
        Commands::AddCosignature { file, witness } => add(&file, &read_keys(&witness)?, (settings, shard)).await?,
        Commands::Verify {
            file,
            key,
            witness,
            quorum,
            kept,
        } => {
            let note = read_file(&file)?;
            let trust = Trust {
                witnesses: read_keys(&witness)?,
                quorum,
                ..trust_for(&note, &read_keys(&key)?)
            };
            return verify(&note, &trust, &kept, (settings, shard)).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The store of a realm that has this shard.
async fn open(kept: &KeptRealm, (settings, shard): (&Settings, Shard)) -> Result<Source, SourceError> {
    let source = kept.stored(settings).await?;
    source.require_shard(shard).await?;
    Ok(source)
}

fn read_keys(lines: &[String]) -> Result<Vec<VerifierKey>, KeyError> {
    lines.iter().map(|line| line.trim().parse()).collect()
}

/// Default name of the log that continues this one: the same, with the next number.
fn next_name(name: &KeyName) -> Result<KeyName, KeyError> {
    let (base, number) = match name.as_str().rsplit_once("-log") {
        Some((base, number)) => (base, number.parse().ok()),
        None => (name.as_str(), Some(1)),
    };
    match number {
        Some(number) => KeyName::new(&format!("{base}-log{}", u32::saturating_add(number, 1))),
        None => KeyName::new(&format!("{name}-log2")),
    }
}

async fn show_keys(store: &Store, shard: Shard) -> Result<(), CheckpointError> {
    for (from, record) in key_records(store, shard).await? {
        writeln!(stdout(), "{from} {}", record.key)?;
    }
    Ok(())
}

async fn show_ended(store: &Store, shard: Shard) -> Result<(), CheckpointError> {
    let records: Vec<KeyRecord> = key_records(store, shard)
        .await?
        .into_iter()
        .map(|(_, record)| record)
        .collect();
    Lineage::verify(&records)?;
    let all = records.iter().flat_map(|record| record.with_lost().unwrap_or_default());
    let notes = all.filter_map(|record| record.change);
    for end in notes.filter(LogEnd::is_in) {
        writeln!(stdout(), "{end}")?;
    }
    Ok(())
}

async fn show(
    (store, shard): (&Store, Shard),
    size: Option<u64>,
    leaves: Option<&Path>,
) -> Result<(), CheckpointError> {
    let note = match size {
        Some(size) => of_size(store, shard, size).await?,
        None => newest(store, shard).await?.map(|(_, note)| note),
    };
    let note = note.ok_or(CheckpointError::None(size))?;
    if let Some(file) = leaves {
        let signed: annals_proof::Checkpoint = note.text().parse().map_err(Untrusted::Checkpoint)?;
        let hashes = leaf_hashes(store, shard, signed.head).await?;
        fs::write(file, Tile::encode(&hashes)).map_err(|source| CheckpointError::Leaves(file.to_owned(), source))?;
    }
    write!(stdout(), "{note}")?;
    Ok(())
}

/// The hashes of the leaves of a checkpoint.
async fn leaf_hashes(store: &Store, shard: Shard, head: TreeHead) -> Result<Vec<Hash>, CheckpointError> {
    let mut prover = Prover::begin(store.clone(), shard).await?;
    let mut tree = Frontier::new();
    let mut hashes = Vec::new();
    for index in 0..head.size.div_ceil(TILE_WIDTH.into()) {
        let tile = Tile::within(head.size, 0, index).expect("invariant: the tile has leaves of the tree");
        hashes.extend(prover.tile(tile).await?);
    }
    hashes.iter().for_each(|hash| tree.push(*hash));
    match tree.root() == head.root {
        true => Ok(hashes),
        false => Err(CheckpointError::Otherwise(head.size)),
    }
}

/// Cosigns as a witness: a checkpoint must extend the last one cosigned, and it is recorded before its cosignature is
/// given out.
async fn cosign(
    (witness, last): (&Path, &Path),
    keys: &[VerifierKey],
    (settings, shard): (&Settings, Shard),
) -> Result<(), CheckpointError> {
    let witness =
        read_key(witness, KeyKind::Cosignature)?.ok_or_else(|| CheckpointError::Missing(witness.to_owned()))?;
    let source = open(&KeptRealm::default(), (settings, shard)).await?;
    let (_, mut note) = newest(&source.store, shard).await?.ok_or(CheckpointError::None(None))?;
    let trust = trust_for(&note, keys);
    let new = trust.check(&note)?.checkpoint.head;
    if let Some(before) = read_note(last)? {
        let old = trust.check(&before)?.checkpoint.head;
        if new.size < old.size {
            let (expected, found) = (old.size, new.size);
            return Err(CheckpointError::Older { expected, found });
        }
        let mut prover = Prover::begin(source.store.clone(), shard).await?;
        let proof = prover.consistency(old.size, new.size).await?;
        verify_consistency(old, new, &proof)?;
    }
    note.sign(&witness, clock::wall().0 / 1_000);
    keep_note(last, &note)?;
    write!(stdout(), "{note}")?;
    Ok(())
}

async fn add(
    file: &Path,
    witnesses: &[VerifierKey],
    (settings, shard): (&Settings, Shard),
) -> Result<(), CheckpointError> {
    let note = read_file(file)?;
    if let Some(key) = witnesses.iter().find(|key| key.kind() != KeyKind::Cosignature) {
        let (name, role) = (key.name().clone(), "witness");
        return Err(Untrusted::Role { name, role }.into());
    }
    note.verify(witnesses).map_err(Untrusted::Note)?;
    let checkpoint: annals_proof::Checkpoint = note.text().parse().map_err(Untrusted::Checkpoint)?;
    let source = open(&KeptRealm::default(), (settings, shard)).await?;
    match add_cosignatures(&source.store, shard, checkpoint.head.size, &note, witnesses).await? {
        0 => Err(CheckpointError::NotAdded),
        count => Ok(writeln!(stdout(), "{count} cosignatures are in the store")?),
    }
}

fn read_file(file: &Path) -> Result<SignedNote, CheckpointError> {
    read_note(file)?.ok_or_else(|| CheckpointError::Missing(file.to_owned()))
}

async fn verify(
    note: &SignedNote,
    trust: &Trust,
    kept: &KeptRealm,
    (settings, shard): (&Settings, Shard),
) -> Result<ExitCode, CheckpointError> {
    let trusted = match trust.check(note) {
        Ok(trusted) => trusted,
        Err(error) => {
            writeln!(stdout(), "WRONG: {}", Chain(&error))?;
            return Ok(ExitCode::from(1));
        }
    };
    say(&trusted)?;
    let source = open(kept, (settings, shard)).await?;
    let TreeHead { size, root } = trusted.checkpoint.head;
    let mut prover = Prover::begin(source.store.clone(), shard).await?;
    let archive = prover.head();
    let there = archive.size;
    let whole = prover.root(there).await?;
    let wrong = match size > there {
        true => Some(format!("the archive has {there} batches: it was rolled back")),
        false => {
            let found = prover.root(size).await?;
            (found != root)
                .then(|| format!("the first {size} batches of the archive have the root {found}: they were changed"))
        }
    };
    if let Some(wrong) = wrong {
        match declared_lost((&source.store, shard), &trust.keys, &trusted.checkpoint).await? {
            Some(lost) => writeln!(stdout(), "LOST: {lost}")?,
            None => writeln!(stdout(), "WRONG: {wrong}")?,
        }
        return Ok(ExitCode::from(1));
    }
    if whole != archive.root {
        let stored = archive.root;
        writeln!(
            stdout(),
            "WRONG: the stored tree of {there} batches has the root {stored}, but its tiles and leaves have {whole}"
        )?;
        return Ok(ExitCode::from(1));
    }
    writeln!(
        stdout(),
        "the archive's tree of {there} batches begins with these; annals log verify holds each batch against it"
    )?;
    Ok(ExitCode::SUCCESS)
}

fn say(trusted: &Trusted) -> io::Result<()> {
    let TreeHead { size, root } = trusted.checkpoint.head;
    let mut out = stdout();
    writeln!(
        out,
        "{}: {size} batches with the root {root}",
        trusted.checkpoint.origin
    )?;
    for key in &trusted.signed {
        writeln!(out, "signed by {} ({})", key.name(), key.id())?;
    }
    for (name, time) in &trusted.cosigned {
        writeln!(out, "cosigned by {name} at @{time}")?;
    }
    Ok(())
}
