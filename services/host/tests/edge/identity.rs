//! The certificate, and the address.

use std::os::unix::fs::PermissionsExt;

use annals_host::edge::{Identity, bind};

use crate::realm::loopback;

#[test]
fn the_development_certificate_is_made_once_and_kept_private() {
    let directory = tempfile::tempdir().unwrap();
    let nested = directory.path().join("data");
    let made: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..4).map(|_| scope.spawn(|| Identity::development(&nested))).collect();
        racers
            .into_iter()
            .map(|racer| racer.join().unwrap().unwrap().pinned().unwrap())
            .collect()
    });
    let again = Identity::development(&nested).unwrap().pinned().unwrap();
    assert!(
        made.iter().all(|fingerprint| *fingerprint == again),
        "all that began at once agree"
    );
    let files: Vec<_> = std::fs::read_dir(&nested).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(files.len(), 1, "no drafts are left: {files:?}");
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let path = files[0].path();
    let signed = Identity::signed(&path, &path).unwrap();
    assert_eq!(signed.pinned(), None, "a signed certificate needs no fingerprint");
}

#[test]
fn a_broken_certificate_error_has_advice() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("development-certificate.pem"), "nonsense").unwrap();
    let error = Identity::development(directory.path()).unwrap_err().to_string();
    assert!(
        error.contains("development-certificate.pem") && error.contains("remove it"),
        "{error}"
    );
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = bind(loopback()).unwrap();
    let address = taken.address().unwrap();
    let error = bind(address).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("cannot listen on {address}; another process may use it, or the address is not of this machine")
    );
}
