//! Small disks that tests can fill.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Size of a small disk, bytes: enough for the test, and soon full.
const SIZE: &str = "48m";

/// The file that fills it.
const FILLER: &str = "filler";

/// A small disk in memory, mounted until it is dropped.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one; `None` if not permitted.
    pub(crate) fn mount(path: &Path) -> Option<Self> {
        fs::create_dir_all(path).expect("a folder to mount at");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("size={SIZE}"))
            .arg("annals-test")
            .arg(path)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self { path: path.to_owned() })
    }

    /// Writes until no byte of space is left.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.path.join(FILLER)).expect("a file on the small disk");
        for block in [1 << 20, 4 << 10, 1] {
            let block = vec![0x55; block];
            while let Ok(written) = file.write(&block)
                && written > 0
            {}
        }
        let full = file.write(&[0]).expect_err("it is full");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    /// Deletes the file that filled it.
    pub(crate) fn free(&self) {
        fs::remove_file(self.path.join(FILLER)).expect("the filler file is deleted");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Processes with open files there keep them until they exit.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.path).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.path.display());
        }
    }
}
