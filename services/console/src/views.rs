//! Access log: a file to which a line is appended, and synced, before anything is shown.
//!
//! ```text
//! line = JSON object "\n"
//! ```
//! Each line has the hash of the one before it, so that a changed or removed line is detected. Truncation at the end is
//! not detected by the file alone, but by a [`Head`] that was kept elsewhere.

use std::{
    fmt,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use annals_evidence::words;
use annals_ids::{Hash, WallTime};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::cases::{Act, Case, CaseAct, CaseError, Cases};

/// Maximum bytes of a line. The address of a page has at most [`crate::serve::TARGET_BYTES`], each byte of which may
/// take six in a line.
const LINE_BYTES: u64 = 16 << 10;

/// Name used in lines that the console writes by itself.
const CONSOLE: &str = "(console)";

/// A view: one access by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Number of the view, from 1.
    pub number: u64,
    /// Time, by the console's clock.
    pub when: String,
    /// Name of the person.
    pub who: String,
    /// Role of the person.
    pub role: String,
    /// Source address.
    pub from: String,
    /// Method and address of the page; for a search, its results.
    pub what: String,
    /// Step in a case, if this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<CaseAct>,
    /// Hash of the line before; zeros in the first.
    pub before: String,
}

/// Data of a view, to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct ViewRecord<'a> {
    /// Name of the person.
    pub who: &'a str,
    /// Role of the person.
    pub role: &'a str,
    /// Source address.
    pub from: &'a str,
    /// What is viewed.
    pub what: &'a str,
}

/// Number of lines, and hash of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Number of lines.
    pub number: u64,
    /// Hash of the last line; zeros if there is none.
    pub hash: Hash,
}

/// Why views cannot be recorded, or fail the check.
#[derive(Debug, Error)]
pub enum ViewsError {
    /// The file cannot be used.
    #[error("{} cannot be used", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Another console writes to the file.
    #[error("another console uses {}; give this one a separate folder with --folder", .0.display())]
    Taken(PathBuf),
    /// A line cannot be parsed.
    #[error("line {line} of the views is not valid: it was changed")]
    NoView {
        /// Line number.
        line: u64,
    },
    /// A line does not continue the one before.
    #[error(
        "line {line} of the views does not continue the one before it: one of the two was changed, or lines between \
         them were removed"
    )]
    Unchained {
        /// Line number.
        line: u64,
    },
    /// The last line is incomplete.
    #[error(
        "the last line of the views is incomplete: the console stopped while writing it, and truncates it at the \
         next start"
    )]
    Torn,
    /// A kept head is not among the lines.
    #[error("line {} of the views does not match the kept hash {}: the record was changed or \
        truncated", .0.number, .0.hash)]
    NotKept(Head),
    /// An earlier line could not be written.
    #[error("a view cannot be recorded, so no more are shown: check the disk, and restart the console")]
    Poisoned,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            when,
            who,
            role,
            from,
            what,
            ..
        } = self;
        write!(f, "{number} {when} {who}")?;
        if !role.is_empty() {
            write!(f, ", {role}, from {from}")?;
        }
        write!(f, ": {}", words::text(what))?;
        match &self.case {
            Some(act) => write!(f, ": {}", words::text(&act.text)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

impl FromStr for Head {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |text: &str| {
            let (number, hash) = text.split_once(':')?;
            Some(Self {
                number: number.parse().ok()?,
                hash: hash.parse().ok()?,
            })
        };
        read(text).ok_or("write NUMBER:HASH, as annals-console views printed it")
    }
}

/// The open file, and its head.
pub struct ViewLog {
    path: PathBuf,
    end: Mutex<End>,
    /// Locked last, so that readers of cases do not wait for the disk.
    cases: Mutex<Cases>,
}

struct End {
    file: File,
    head: Head,
    is_poisoned: bool,
}

impl ViewLog {
    /// Opens and checks the file, or creates it, readable by its owner only. An incomplete last line is cut off and the
    /// repair is recorded: no page was shown for it.
    ///
    /// # Errors
    /// If the file cannot be used, another console has it, or a line fails the check.
    pub fn open(path: &Path, now: WallTime) -> Result<Self, ViewsError> {
        let failed = |source| ViewsError::File {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ViewsError::Taken(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut walk = Walk::new(path, &file);
        let mut cases = Cases::default();
        while let Some(view) = walk.next()? {
            let line = view.number;
            cases.take(&view).ok_or(ViewsError::NoView { line })?;
        }
        if walk.torn > 0 {
            file.set_len(walk.bytes).map_err(failed)?;
        }
        let (head, torn) = (walk.head, walk.torn);
        let log = Self {
            path: path.to_owned(),
            end: Mutex::new(End {
                file,
                head,
                is_poisoned: false,
            }),
            cases: Mutex::new(cases),
        };
        if torn > 0 {
            let what = format!("{torn} bytes of an incomplete line were truncated");
            let seen = ViewRecord {
                who: CONSOLE,
                role: "",
                from: "",
                what: &what,
            };
            log.write(now, seen)?;
        }
        Ok(log)
    }

    /// Appends a view: it is on disk when this returns.
    ///
    /// # Errors
    /// If it cannot be written; later writes fail as well.
    pub fn write(&self, now: WallTime, seen: ViewRecord<'_>) -> Result<Head, ViewsError> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(&mut end, now, seen, None)
    }

    /// Opens a case, and returns its number. `seen.what` is ignored.
    ///
    /// # Errors
    /// If it cannot be opened or recorded.
    pub fn open_case(
        &self,
        now: WallTime,
        seen: ViewRecord<'_>,
        about: Option<&str>,
        text: &str,
    ) -> Result<u64, CaseError> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.cases().next();
        let act = CaseAct {
            number,
            act: Act::Opened,
            about: about.map(ToOwned::to_owned),
            text: text.to_owned(),
        };
        self.do_in_case(&mut end, now, seen, act)?;
        Ok(number)
    }

    /// Adds a note to a case, or closes it.
    ///
    /// # Errors
    /// If it is not open, or the step cannot be recorded.
    pub fn go_on_with_case(
        &self,
        now: WallTime,
        seen: ViewRecord<'_>,
        (number, act): (u64, Act),
        text: &str,
    ) -> Result<(), CaseError> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let act = CaseAct {
            number,
            act,
            about: None,
            text: text.to_owned(),
        };
        self.do_in_case(&mut end, now, seen, act)
    }

    /// Open cases, oldest first.
    #[must_use]
    pub fn open_cases(&self) -> Vec<Case> {
        self.cases().open().cloned().collect()
    }

    /// A case, open or closed; `None` if there is none with this number.
    ///
    /// # Errors
    /// If the file cannot be read, or a line fails the check.
    pub fn case(&self, number: u64) -> Result<Option<Case>, ViewsError> {
        if let Some(open) = self.cases().open().find(|case| case.number == number) {
            return Ok(Some(open.clone()));
        }
        let file = File::open(&self.path).map_err(|source| ViewsError::File {
            path: self.path.clone(),
            source,
        })?;
        let mut walk = Walk::new(&self.path, &file);
        let mut found: Option<Case> = None;
        while let Some(view) = walk.next()? {
            if view.case.as_ref().is_some_and(|act| act.number == number) {
                match &mut found {
                    None => found = Case::begun(&view),
                    Some(case) => case.go_on(&view),
                }
            }
        }
        Ok(found)
    }

    fn cases(&self) -> MutexGuard<'_, Cases> {
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn do_in_case(&self, end: &mut End, now: WallTime, seen: ViewRecord<'_>, act: CaseAct) -> Result<(), CaseError> {
        self.cases().allow(&act)?;
        let about = act.about.as_ref().map(|about| format!(", about {about}"));
        let what = format!("{} case {}{}", act.act, act.number, about.unwrap_or_default());
        self.put(end, now, ViewRecord { what: &what, ..seen }, Some(act))?;
        Ok(())
    }

    fn put(
        &self,
        end: &mut End,
        now: WallTime,
        seen: ViewRecord<'_>,
        case: Option<CaseAct>,
    ) -> Result<Head, ViewsError> {
        if end.is_poisoned {
            return Err(ViewsError::Poisoned);
        }
        let view = View {
            number: end.head.number + 1,
            when: words::date(now),
            who: seen.who.to_owned(),
            role: seen.role.to_owned(),
            from: seen.from.to_owned(),
            what: seen.what.to_owned(),
            case,
            before: end.head.hash.to_string(),
        };
        let failed = |source| ViewsError::File {
            path: self.path.clone(),
            source,
        };
        let line = serde_json::to_vec(&view).map_err(|error| failed(error.into()))?;
        let hash = hash(&line);
        end.is_poisoned = true;
        end.file.write_all(&[&line[..], b"\n"].concat()).map_err(failed)?;
        end.file.sync_data().map_err(failed)?;
        end.is_poisoned = false;
        end.head = Head {
            number: view.number,
            hash,
        };
        let line = view.number;
        self.cases().take(&view).ok_or(ViewsError::NoView { line })?;
        Ok(end.head)
    }
}

/// Reads and checks a file of views, and calls `each` for every view. All heads in `kept` must be among the lines.
///
/// # Errors
/// If it cannot be read, or for the first line that fails the check.
pub fn check(path: &Path, kept: &[Head], mut each: impl FnMut(&View)) -> Result<Head, ViewsError> {
    let file = File::open(path).map_err(|source| ViewsError::File {
        path: path.to_owned(),
        source,
    })?;
    let mut walk = Walk::new(path, &file);
    let mut open = kept.to_vec();
    open.retain(|kept| *kept != Head::default());
    while let Some(view) = walk.next()? {
        if let Some(other) = open
            .iter()
            .find(|kept| kept.number == view.number && **kept != walk.head)
        {
            return Err(ViewsError::NotKept(*other));
        }
        open.retain(|kept| kept.number != view.number);
        each(&view);
    }
    if walk.torn > 0 {
        return Err(ViewsError::Torn);
    }
    match open.first() {
        Some(beyond) => Err(ViewsError::NotKept(*beyond)),
        None => Ok(walk.head),
    }
}

/// Iterates over the lines of a file.
struct Walk<'a> {
    path: &'a Path,
    lines: BufReader<&'a File>,
    head: Head,
    /// Bytes in complete lines.
    bytes: u64,
    /// Bytes after the last complete line.
    torn: u64,
}

impl<'a> Walk<'a> {
    fn new(path: &'a Path, file: &'a File) -> Self {
        Self {
            path,
            lines: BufReader::new(file),
            head: Head::default(),
            bytes: 0,
            torn: 0,
        }
    }

    fn next(&mut self) -> Result<Option<View>, ViewsError> {
        let number = self.head.number + 1;
        let mut line = Vec::new();
        let mut limited = io::Read::take(&mut self.lines, LINE_BYTES);
        let read = limited
            .read_until(b'\n', &mut line)
            .map_err(|source| ViewsError::File {
                path: self.path.to_owned(),
                source,
            })? as u64;
        if line.pop_if(|last| *last == b'\n').is_none() {
            if read == LINE_BYTES {
                return Err(ViewsError::NoView { line: number });
            }
            self.torn = read;
            return Ok(None);
        }
        let view: View = serde_json::from_slice(&line).map_err(|_| ViewsError::NoView { line: number })?;
        if view.number != number || view.before != self.head.hash.to_string() {
            return Err(ViewsError::Unchained { line: number });
        }
        self.bytes += read;
        self.head = Head {
            number,
            hash: hash(&line),
        };
        Ok(Some(view))
    }
}

fn hash(line: &[u8]) -> Hash {
    Hash(Sha256::digest(line).into())
}
