//! Checking files to which bots still write.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use annals_def::Schema;
use annals_store::{Store, StoreError};

use super::{ATTEMPTS, CheckError, CheckReport, Extent, Histories, check_line, check_whole, shown_files};

/// A folder of files that grow, how far each was checked, and how far the archive was read. What is checked is what was there
/// at the last look: the archive has to be given the time to hold that.
#[derive(Clone)]
pub struct Following {
    folder: PathBuf,
    files: BTreeMap<PathBuf, Place>,
    histories: Histories,
    checked: Checked,
}

/// How much was checked: events shown, states told, and properties that these told.
type Checked = [u64; 3];

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Bytes that were checked: whole lines.
    checked: u64,
    /// How many lines those are.
    lines: u64,
    /// Bytes there were at the last look.
    seen: u64,
}

impl Following {
    /// Nothing of this folder was checked.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
            histories: Histories::default(),
            checked: [0; 3],
        }
    }

    /// Reads another store of the same realm from now on, that is, the same one through another connection.
    pub fn forget_archive(&mut self) {
        self.histories = Histories::default();
    }

    /// Looks how long the files are.
    ///
    /// # Errors
    /// When they cannot be read, or there are none.
    pub fn look(&mut self) -> Result<(), CheckError> {
        for path in shown_files(&self.folder)? {
            let read = |source| CheckError::Read {
                path: path.clone(),
                source,
            };
            let seen = path.metadata().map_err(read)?.len();
            self.files.entry(path.clone()).or_default().seen = seen;
        }
        Ok(())
    }

    /// Holds what was there at the last look, and was not checked before, against the archive; and checks the numbers of what
    /// the archive has got since. A line that was not written whole yet is left for the next time. After a check that found
    /// something the next one begins from nothing.
    ///
    /// # Errors
    /// When the files or the archive cannot be read at all; what is wrong with either is in the report.
    pub async fn check(&mut self, store: &Store, schema: &Schema) -> Result<CheckReport, CheckError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.go_on(store, schema).await {
                // Retention let go of what was being read.
                Err(CheckError::Store(StoreError::Conflict)) if attempts < ATTEMPTS => {}
                checked => return checked,
            }
        }
    }

    async fn go_on(&mut self, store: &Store, schema: &Schema) -> Result<CheckReport, CheckError> {
        let beginning = Self {
            files: self
                .files
                .iter()
                .map(|(path, place)| (path.clone(), place.anew()))
                .collect(),
            ..Self::new(&self.folder)
        };
        let mut going = std::mem::replace(self, beginning);
        let mut report = CheckReport::default();
        going.histories.read(store, schema, Extent::SoFar, &mut report).await?;
        for (path, place) in &mut going.files {
            let text = read_part(path, place)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            for line in text[..whole].lines() {
                place.lines += 1;
                check_line(path, place.lines, line, &going.histories, schema, &mut report)?;
            }
            place.checked += whole as u64;
            report.files += 1;
        }
        if report.is_clean() {
            let checked = [report.shown, report.refreshed, report.properties];
            going
                .checked
                .iter_mut()
                .zip(checked)
                .for_each(|(sum, more)| *sum += more);
            *self = going;
        }
        Ok(report)
    }

    /// Holds all files against the archive, from their beginnings, and what was checked on the way against that.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub async fn check_whole(&self, store: &Store, schema: &Schema) -> Result<CheckReport, CheckError> {
        let (mut report, histories) = check_whole(&self.folder, store, schema).await?;
        report.otherwise = self.histories.otherwise_than(&histories);
        let all = [report.shown, report.refreshed, report.properties];
        report.passed_over = all
            .iter()
            .zip(self.checked)
            .map(|(all, checked)| all.abs_diff(checked))
            .sum();
        Ok(report)
    }
}

impl Place {
    /// As much was seen, and nothing checked.
    fn anew(&self) -> Self {
        Self {
            seen: self.seen,
            ..Self::default()
        }
    }
}

fn read_part(path: &Path, place: &Place) -> Result<String, CheckError> {
    let reading = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(place.checked))?;
        let mut bytes = Vec::new();
        file.take(place.seen - place.checked).read_to_end(&mut bytes)?;
        // What is cut off in the middle of a character is no whole line.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    reading().map_err(|source| CheckError::Read {
        path: path.to_owned(),
        source,
    })
}
