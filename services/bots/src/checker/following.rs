//! Checking files that bots still write.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use annals_def::Schema;
use annals_store::{Store, StoreError};

use super::{ATTEMPTS, CheckError, CheckReport, Extent, Histories, check_line, check_whole, shown_files};

/// A folder of growing files, how far each was checked, and how far the archive was read. Only what was there at the
/// last look is checked, so that the archive has time to receive it.
#[derive(Clone)]
pub struct Following {
    folder: PathBuf,
    files: BTreeMap<PathBuf, FileProgress>,
    histories: Histories,
    checked: Checked,
}

/// Numbers checked: events shown, states sent, and properties in these states.
type Checked = [u64; 3];

#[derive(Clone, Copy, Debug, Default)]
struct FileProgress {
    /// Bytes that were checked: whole lines.
    checked: u64,
    /// Number of those lines.
    lines: u64,
    /// File size at the last look, in bytes.
    seen: u64,
}

impl Following {
    /// Nothing of this folder is checked yet.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
            histories: Histories::default(),
            checked: [0; 3],
        }
    }

    /// Switches to a new connection to the same store.
    pub fn forget_archive(&mut self) {
        self.histories = Histories::default();
    }

    /// Records the current sizes of the files.
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

    /// Compares what was there at the last look, and was not checked before, with the archive; and checks the numbers
    /// of new archived events. An incomplete line is left for the next check. After a check with findings the next one
    /// starts from the beginning.
    ///
    /// # Errors
    /// When the files or the archive cannot be read at all; faults in either are in the report.
    pub async fn check(&mut self, store: &Store, schema: &Schema) -> Result<CheckReport, CheckError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.go_on(store, schema).await {
                // Retention deleted what was being read.
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

    /// Compares all files with the archive from the beginning, and the results of the incremental checks with that.
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

impl FileProgress {
    /// A copy with the same sizes and nothing checked.
    fn anew(&self) -> Self {
        Self {
            seen: self.seen,
            ..Self::default()
        }
    }
}

fn read_part(path: &Path, place: &FileProgress) -> Result<String, CheckError> {
    let reading = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(place.checked))?;
        let mut bytes = Vec::new();
        file.take(place.seen - place.checked).read_to_end(&mut bytes)?;
        // A character cut in half is not part of a complete line.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    reading().map_err(|source| CheckError::Read {
        path: path.to_owned(),
        source,
    })
}
