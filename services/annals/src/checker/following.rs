//! Checking files to which bots still write.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use annals_def::Schema;
use annals_store::Store;

use super::{CheckError, CheckReport, Extent, Histories, check_line, shown_files};

/// A folder of files that grow, and how far each was checked. What is checked is what was there at the last look: the archive
/// has to be given the time to hold that.
#[derive(Debug)]
pub struct Following {
    folder: PathBuf,
    files: BTreeMap<PathBuf, Place>,
}

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
        }
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

    /// Holds what was there at the last look, and was not checked before, against the archive; and checks the archive's own
    /// numbers. A line that was not written whole yet is left for the next time.
    ///
    /// # Errors
    /// When the files or the archive cannot be read at all; what is wrong with either is in the report.
    pub async fn check(&mut self, store: &Store, schema: &Schema) -> Result<CheckReport, CheckError> {
        let mut report = CheckReport::default();
        let histories = Histories::read(store, schema, Extent::SoFar, &mut report).await?;
        for (path, place) in &mut self.files {
            let text = read_part(path, place)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            for line in text[..whole].lines() {
                place.lines += 1;
                check_line(path, place.lines, line, &histories, schema, &mut report)?;
            }
            place.checked += whole as u64;
            report.files += 1;
        }
        Ok(report)
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
