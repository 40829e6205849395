//! `annals-verify`: checks a bundle of evidence or a receipt, and states in plain words what is proven and what is not.
//!
//! Responsible for: reading files, and printing. The checks are in `annals-evidence`. It contacts no realm, store or
//! network, and is small enough to be read in full by those who trust nobody.

use std::{
    error::Error,
    fmt,
    fs::File,
    io::{self, Read, Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_evidence::{Anchors, Verdict, Wrong, check, check_receipt, zip::ZIP_BYTES};
use annals_proof::{SignedNote, note::NoteError};
use annals_verify::CommandLine;
use clap::Parser;

/// Columns of the output.
const WIDTH: usize = 100;

/// First bytes of a zip; any other file is read as a receipt.
const ZIP: &[u8] = b"PK";

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("{} cannot be read", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a checkpoint", path.display())]
    Note {
        path: PathBuf,
        #[source]
        source: NoteError,
    },
    #[error("{} cannot be checked", path.display())]
    NoVerdict {
        path: PathBuf,
        #[source]
        source: Box<Wrong>,
    },
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

fn main() -> ExitCode {
    match run(&CommandLine::parse()) {
        Ok(code) => code,
        // A closed pipe means that the reader has seen enough.
        Err(Unread::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", Chain(&error));
            ExitCode::from(2)
        }
    }
}

fn run(line: &CommandLine) -> Result<ExitCode, Unread> {
    let kept = line.checkpoint.iter().map(|path| read_note(path));
    let anchors = Anchors {
        keys: line.key.clone(),
        witnesses: line.witness.clone(),
        quorum: line.quorum,
        kept: kept.collect::<Result<_, _>>()?,
    };
    let bytes = read(&line.file)?;
    let checked = if bytes.starts_with(ZIP) {
        check(&bytes, &anchors)
    } else {
        check_receipt(&bytes, &anchors)
    };
    match checked {
        Ok(verdict) => {
            say(&verdict)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(source) if source.is_no_verdict() => {
            let (path, source) = (line.file.clone(), Box::new(source));
            Err(Unread::NoVerdict { path, source })
        }
        Err(wrong) => {
            writeln!(stdout(), "WRONG: {}", Chain(&wrong))?;
            Ok(ExitCode::from(1))
        }
    }
}

/// Reads a file, up to just above the size limit, which is enough to reject it.
fn read(path: &Path) -> Result<Vec<u8>, Unread> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(ZIP_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|source| Unread::File {
        path: path.to_owned(),
        source,
    })
}

fn read_note(path: &Path) -> Result<SignedNote, Unread> {
    SignedNote::parse(&read(path)?).map_err(|source| Unread::Note {
        path: path.to_owned(),
        source,
    })
}

fn say(verdict: &Verdict) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}\n{}", verdict.subject(), verdict.statement())?;
    for (title, sentences) in [("PROVEN", verdict.proven()), ("NOT PROVEN", verdict.open())] {
        writeln!(out, "\n{title}")?;
        for sentence in sentences {
            list(&mut out, &sentence)?;
        }
    }
    Ok(())
}

/// Prints a sentence as a list item, wrapped to a readable width.
fn list(out: &mut impl Write, sentence: &str) -> io::Result<()> {
    let mut line = String::from("-");
    for word in sentence.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.trim() != "-" {
            writeln!(out, "{line}")?;
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")
}

/// An error with its chain of sources.
struct Chain<'a>(&'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
