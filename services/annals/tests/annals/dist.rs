//! `ops/dist.sh` packs a release so that the same files give the same bytes, and notices whatever is wrong with one. The
//! programs here are scripts: the release that `make dist` builds is verified by the same commands.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;

const NAME: &str = "annals-1.2.3-test";

/// The time of the files in the archive, seconds since 1970.
const SECONDS: &str = "1700000000";

fn dist(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/dist.sh");
    Command::new("bash").arg(script).args(arguments).output().unwrap()
}

fn pack(folder: &Path) -> PathBuf {
    let packed = dist(&["pack", folder.to_str().unwrap(), SECONDS]);
    assert!(packed.status.success(), "{packed:?}");
    folder.with_file_name(format!("{NAME}.tar.gz"))
}

/// What `verify` says of an archive with programs of version 1.2.3, and whether it accepts it.
fn verify(archive: &Path) -> (bool, String) {
    let verified = dist(&["verify", archive.to_str().unwrap(), "1.2.3 (commit abc"]);
    let said = [verified.stdout, verified.stderr].concat();
    (verified.status.success(), String::from_utf8(said).unwrap())
}

fn program(path: &Path, version: &str) {
    let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo \"$(basename \"$0\") {version}\"\n");
    fs::write(path, text).unwrap();
}

/// A folder like that of a release. The order in which files are made, and their times and modes, differ with `variant`.
fn stage(parent: &Path, variant: u64) -> PathBuf {
    let folder = parent.join(NAME);
    let mut files = [
        "LICENSE",
        "ops/nats/secrets.sh",
        "share/man/man1/annals.1",
        "sbom/a b.json",
    ];
    if variant % 2 == 1 {
        files.reverse();
    }
    for name in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("contents of {name}\n")).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 * (variant + 1));
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600 + 0o44 * (variant as u32 % 2))).unwrap();
    }
    fs::create_dir_all(folder.join("bin")).unwrap();
    for name in ["annals", "annals-cell"] {
        program(&folder.join("bin").join(name), "1.2.3 (commit abc, schema 00)");
    }
    folder
}

fn tar(arguments: &[&str], archive: &Path) -> String {
    let listed = Command::new("tar")
        .args(arguments)
        .arg(archive)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn the_same_files_are_packed_into_the_same_bytes() {
    let parents = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let archives = [0, 1].map(|variant| pack(&stage(parents[variant as usize].path(), variant)));
    let [one, other] = archives.each_ref().map(|archive| fs::read(archive).unwrap());
    assert_eq!(one, other, "order, times or modes of files are in the archive");
    let folder = parents[0].path().join(NAME);
    assert_eq!(fs::read(pack(&folder)).unwrap(), one, "packing again changes it");

    let listed = tar(
        &["--list", "--verbose", "--numeric-owner", "--gzip", "--file"],
        &archives[0],
    );
    let mut paths: Vec<&str> = Vec::new();
    for line in listed.lines() {
        assert!(line.contains(" 0/0 ") && line.contains("2023-11-14 22:13"), "{line}");
        let is_program = line.contains("/bin/annals") || line.ends_with(".sh");
        let mode = if line.starts_with('d') || is_program {
            "rwxr-xr-x"
        } else {
            "rw-r--r--"
        };
        assert_eq!(&line[1..10], mode, "{line}");
        paths.push(&line[line.find(NAME).unwrap()..]);
    }
    assert!(paths.is_sorted(), "{paths:?}");
    let (is_whole, said) = verify(&archives[0]);
    assert!(
        is_whole && said.contains("6 files have the sums") && said.contains("2 programs run"),
        "{said}"
    );
}

#[test]
fn a_wrong_archive_is_refused_with_the_reason() {
    let parent = TempDir::new().unwrap();
    let folder = stage(parent.path(), 0);
    let refused = |archive: &Path, reason: &str| {
        let (is_whole, said) = verify(archive);
        assert!(!is_whole && said.contains(reason), "{said}");
    };
    // One bit, as a download may lose it.
    let archive = pack(&folder);
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    refused(&archive, "is not what its .sha256 says");

    // A file that was changed, or added, after the sums were written, with a checksum of the archive that fits.
    let repack = |change: &dyn Fn()| {
        let archive = pack(&folder);
        change();
        tar(
            &[
                "--create",
                "--gzip",
                "-C",
                parent.path().to_str().unwrap(),
                NAME,
                "--file",
            ],
            &archive,
        );
        let mut sum = Command::new("sha256sum");
        let sum = sum
            .arg(format!("{NAME}.tar.gz"))
            .current_dir(parent.path())
            .output()
            .unwrap();
        fs::write(parent.path().join(format!("{NAME}.tar.gz.sha256")), sum.stdout).unwrap();
        archive
    };
    let license = folder.join("LICENSE");
    refused(
        &repack(&|| fs::write(&license, "none").unwrap()),
        "are not what its SHA256SUMS says",
    );
    let added = folder.join("bin/extra");
    refused(
        &repack(&|| program(&added, "1.2.3 (commit abc)")),
        "that its SHA256SUMS does not name",
    );
    fs::remove_file(&added).unwrap();

    // Programs of another build, and one that does not run.
    let cell = folder.join("bin/annals-cell");
    program(&cell, "1.2.3 (commit def)");
    refused(&pack(&folder), "bin/annals-cell");
    fs::write(&cell, "#!/bin/sh\nexit 1\n").unwrap();
    refused(&pack(&folder), "does not run");

    fs::remove_dir_all(folder.join("bin")).unwrap();
    let packed = dist(&["pack", folder.to_str().unwrap(), SECONDS]);
    let said = String::from_utf8(packed.stderr).unwrap();
    assert!(!packed.status.success() && said.contains("has no folder bin"), "{said}");
}

/// A link would be followed on one machine and not on another.
#[test]
fn links_are_not_packed() {
    let parent = TempDir::new().unwrap();
    let folder = stage(parent.path(), 0);
    symlink("annals", folder.join("bin/other")).unwrap();
    let packed = dist(&["pack", folder.to_str().unwrap(), SECONDS]);
    let said = String::from_utf8(packed.stderr).unwrap();
    assert!(!packed.status.success() && said.contains("bin/other"), "{said}");
}
