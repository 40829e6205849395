//! The checker: whether the archive contains everything that bots were shown, as it was shown.
//!
//! It reads the bots' files ([`crate::showings`]) and the archive, and nothing else: neither the realm's memory nor the
//! bots' state. It compares hashes of the encoded values that clients receive. What was shown and has since been
//! deleted by retention (rule F14) is counted and not checked, if the horizon and the thinned batches before it confirm
//! that.

mod driven;
mod floors;
mod following;
mod history;
mod report;
mod traces;

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use annals_def::Schema;
use annals_ids::{EntityId, Hash, HistoryNumber, MemberId, Part};
use annals_store::{Store, StoreError};
use thiserror::Error;

use crate::showings::{EXTENSION, Line, ParseLineError};
pub use annals_audit::archive::Fault;
pub use driven::{Driven, Share};
pub use following::Following;
use history::{Extent, Histories, History};
pub use report::{CheckReport, Lost, Why, Wrong};

/// Maximum attempts to read an archive while retention deletes from it: the horizon moves by segments.
const ATTEMPTS: u32 = 10;

/// Why the check could not run.
#[derive(Debug, Error)]
pub enum CheckError {
    /// A file or the folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
    /// There are no files to check.
    #[error("no .{EXTENSION} file in {}: name the folder that the bots wrote to", .0.display())]
    NoFiles(PathBuf),
    /// A line of a file is malformed.
    #[error("{}:{line}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The underlying error.
        #[source]
        source: ParseLineError,
    },
    /// The archive cannot be read.
    #[error("the archive cannot be read from the store")]
    Store(#[from] StoreError),
}

/// Compares every file in the folder `files` with the archive in `store`. The realm must have archived all its events:
/// events that are not archived yet count as lost. Reads files without yielding.
///
/// # Errors
/// When the files or the archive cannot be read at all; faults in either are in the report.
pub async fn check(files: &Path, store: &Store, schema: &Schema) -> Result<CheckReport, CheckError> {
    check_whole(files, store, schema).await.map(|(report, _)| report)
}

async fn check_whole(files: &Path, store: &Store, schema: &Schema) -> Result<(CheckReport, Histories), CheckError> {
    let paths = shown_files(files)?;
    let (mut report, histories) = read_whole(store, schema).await?;
    for path in paths {
        check_file(&path, &histories, schema, &mut report)?;
    }
    Ok((report, histories))
}

/// Reads the whole archive, again from the start if retention deletes what is being read.
async fn read_whole(store: &Store, schema: &Schema) -> Result<(CheckReport, Histories), StoreError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut report = CheckReport::default();
        let mut histories = Histories::default();
        match histories.read(store, schema, Extent::Whole, &mut report).await {
            Ok(()) => return Ok((report, histories)),
            Err(StoreError::Conflict) if attempts < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

/// The bots' files in a folder, by name.
fn shown_files(folder: &Path) -> Result<Vec<PathBuf>, CheckError> {
    let read = |source| CheckError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(CheckError::NoFiles(folder.to_owned()));
    }
    Ok(paths)
}

fn check_file(path: &Path, histories: &Histories, schema: &Schema, report: &mut CheckReport) -> Result<(), CheckError> {
    let read = |source| CheckError::Read {
        path: path.to_owned(),
        source,
    };
    let lines = BufReader::new(File::open(path).map_err(read)?).lines();
    for (number, line) in (1..).zip(lines) {
        check_line(path, number, &line.map_err(read)?, histories, schema, report)?;
    }
    report.files += 1;
    Ok(())
}

/// Checks one line of a file.
fn check_line(
    path: &Path,
    number: u64,
    line: &str,
    histories: &Histories,
    schema: &Schema,
    report: &mut CheckReport,
) -> Result<(), CheckError> {
    let line: Line = line.parse().map_err(|source| CheckError::Line {
        path: path.to_owned(),
        line: number,
        source,
    })?;
    if let Some((entity, part, event, why)) = examine(line, histories, schema, report) {
        report.lose(Lost {
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            line: number,
            entity,
            part,
            number: event,
            why,
        });
    }
    Ok(())
}

/// The losses among what a line says was shown.
fn examine(
    line: Line,
    histories: &Histories,
    schema: &Schema,
    report: &mut CheckReport,
) -> Option<(EntityId, Part, HistoryNumber, Why)> {
    let (entity, part, number, found) = match line {
        Line::Shown {
            entity,
            part,
            number,
            hash,
        } => {
            report.shown += 1;
            let found = find_shown(histories.get(entity, part), number, hash);
            (entity, part, number, found)
        }
        Line::Refreshed {
            entity,
            part,
            upto,
            properties,
        } => {
            report.refreshed += 1;
            report.properties += properties.len() as u64;
            let found = find_state(histories.get(entity, part), schema, upto, &properties);
            (entity, part, upto, found)
        }
        Line::Entered { .. }
        | Line::Left { .. }
        | Line::Connected { .. }
        | Line::Resumed { .. }
        | Line::Lost(_)
        | Line::Ended(_) => return None,
    };
    match found {
        EventLookup::AsShown => None,
        EventLookup::Deleted => {
            report.deleted += 1;
            None
        }
        EventLookup::Lost(why) if histories.lack(entity, part, &why) && histories.is_deleted(entity, part) => {
            report.deleted += 1;
            None
        }
        EventLookup::Lost(why) => Some((entity, part, number, why)),
    }
}

/// What the archive holds of a shown event or state.
enum EventLookup {
    AsShown,
    /// It lies before the horizon and was deleted by retention.
    Deleted,
    Lost(Why),
}

fn find_shown(history: Option<&History>, number: HistoryNumber, shown: Hash) -> EventLookup {
    let Some(history) = history else {
        return EventLookup::Lost(Why::UnknownEntity);
    };
    match history.shown(number) {
        None if number <= history.floor() => EventLookup::Deleted,
        None => {
            let newest = history.newest();
            EventLookup::Lost(Why::Absent { newest })
        }
        Some(Err(unreadable)) => EventLookup::Lost(Why::Unreadable(unreadable.0)),
        Some(Ok(hash)) if hash != shown => EventLookup::Lost(Why::Different),
        Some(Ok(_)) => EventLookup::AsShown,
    }
}

fn find_state(
    history: Option<&History>,
    schema: &Schema,
    upto: HistoryNumber,
    properties: &[(MemberId, Hash)],
) -> EventLookup {
    let Some(history) = history else {
        return EventLookup::Lost(Why::UnknownEntity);
    };
    if upto < history.floor() {
        return EventLookup::Deleted;
    }
    let newest = history.newest();
    if upto > newest {
        return EventLookup::Lost(Why::Absent { newest });
    }
    let is_other = |(member, hash): &&(MemberId, Hash)| history.value(schema, *member, upto) != Some(*hash);
    match properties.iter().find(is_other) {
        None => EventLookup::AsShown,
        Some(&(member, _)) => {
            let name = history.property_name(schema, member).map(str::to_owned);
            EventLookup::Lost(Why::Property { member, name })
        }
    }
}
