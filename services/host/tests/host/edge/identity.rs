//! The certificate, and the address.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use annals_host::{
    edge::{Identity, bind},
    telemetry::Chain,
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::edge::realm::loopback;

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
fn a_signed_certificate_that_is_not_valid_now_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let made = |name: &str, years: (i32, i32)| {
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_before = date_time_ymd(years.0, 1, 1);
        parameters.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, certificate.pem() + &key.serialize_pem()).unwrap();
        path
    };
    let said = |path: &Path| {
        let error = Identity::signed(path, path).unwrap_err();
        Chain(&error).to_string()
    };
    let expired = said(&made("expired.pem", (2000, 2001)));
    for part in [
        "no client would accept it",
        "expired.pem expired on ",
        "replace the file with a renewed one",
    ] {
        assert!(expired.contains(part), "{part}: {expired}");
    }
    let early = said(&made("early.pem", (2100, 2101)));
    assert!(early.contains("check the clock of this machine"), "{early}");
    let valid = made("valid.pem", (2000, 2100));
    assert!(Identity::signed(&valid, &valid).is_ok());
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = bind(loopback()).unwrap();
    let address = taken.address().unwrap();
    let error = bind(address).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "cannot listen on {address}; another process may use it, or the address is not of this machine; --listen names another address"
        )
    );
}
