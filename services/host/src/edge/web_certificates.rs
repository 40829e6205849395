//! Development certificates that browsers accept over WebTransport by their hash (`serverCertificateHashes`).
//!
//! Browsers require an ECDSA P-256 key, and at most 14 days from the first to the last moment of validity. So time is
//! divided into periods, and each has a certificate of its own, in a file of the data directory. It is created one
//! period ahead: a page that is given the hashes of the present and the next certificate can connect until the end of
//! the next period. Processes that share the directory have the same ones.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use annals_ids::Hash;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};

use super::identity::{Identity, IdentityError, create};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// How long each certificate is presented.
const PERIOD: Duration = DAY.saturating_mul(6);

/// Validity before the period: clocks of browsers may be behind.
const VALID_BEFORE: Duration = DAY;

/// Validity after the period: clocks may be ahead, and the next certificate may be missing for a while, as on a full
/// disk.
const VALID_AFTER: Duration = DAY.saturating_mul(6);

/// Maximum validity that browsers accept.
const ACCEPTED: Duration = DAY.saturating_mul(14);
const _: () = assert!(PERIOD.as_secs() + VALID_BEFORE.as_secs() + VALID_AFTER.as_secs() < ACCEPTED.as_secs());

/// Pause after a certificate could not be created.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The name of a certificate's file is this, the number of its period, and [`FILE_END`].
const FILE_START: &str = "web-certificate-";
const FILE_END: &str = ".pem";

/// The certificate that is presented, renewed when its period ends.
#[derive(Debug)]
pub(super) struct WebCertificates {
    directory: PathBuf,
    presented: Mutex<Presented>,
}

#[derive(Debug)]
struct Presented {
    period: u64,
    key: Arc<CertifiedKey>,
    /// When the next one may be looked for, after an error.
    retry_at: SystemTime,
}

impl WebCertificates {
    /// The certificates in `directory`; missing ones are created.
    pub(super) fn open(directory: &Path, now: SystemTime) -> Result<Self, IdentityError> {
        let period = period(now);
        let presented = Presented {
            period,
            key: load(directory, period)?.1,
            retry_at: now,
        };
        // In advance, as pages need its hash.
        load(directory, period + 1)?;
        Ok(Self {
            directory: directory.to_owned(),
            presented: Mutex::new(presented),
        })
    }

    /// The certificate to present at this time. The first handshake of a period reads its file. On an error, which is
    /// logged, the one before is presented, which stays valid for some days.
    pub(super) fn at(&self, now: SystemTime) -> Arc<CertifiedKey> {
        // It is consistent after any panic: each change is one assignment.
        let mut presented = self.presented.lock().unwrap_or_else(PoisonError::into_inner);
        if period(now) != presented.period && now >= presented.retry_at {
            match Self::open(&self.directory, now) {
                Ok(renewed) => {
                    *presented = renewed.presented.into_inner().unwrap_or_else(PoisonError::into_inner);
                    delete_before(&self.directory, presented.period);
                    tracing::info!("the development certificate for browsers was renewed");
                }
                Err(error) => {
                    presented.retry_at = now + RETRY_AFTER;
                    let error = crate::telemetry::Chain(&error).to_string();
                    tracing::error!(%error, "the development certificate for browsers cannot be renewed");
                }
            }
        }
        Arc::clone(&presented.key)
    }
}

/// The hashes of the development certificates in `directory` that browsers are to accept: the present one, and the
/// next. Missing ones are created.
///
/// # Errors
/// When a file cannot be read, written or parsed.
pub fn web_certificate_hashes(directory: &Path, now: SystemTime) -> Result<[Hash; 2], IdentityError> {
    let period = period(now);
    Ok([load(directory, period)?.0, load(directory, period + 1)?.0])
}

/// The number of the period of a time.
fn period(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / PERIOD.as_secs()
}

/// The certificate of a period, created if missing, and its hash.
fn load(directory: &Path, period: u64) -> Result<(Hash, Arc<CertifiedKey>), IdentityError> {
    let name = format!("{FILE_START}{period}{FILE_END}");
    let path = directory.join(&name);
    if !path.exists() {
        create(directory, &name, &make(period)?)?;
    }
    let identity = Identity::read(&path, &path, true)?;
    let key = identity
        .certified_key()
        .map_err(|source| IdentityError::Mismatch { path, source })?;
    let hash = key.cert.first().map(|leaf| Hash(Sha256::digest(leaf).into()));
    Ok((hash.unwrap_or(Hash::ZERO), Arc::new(key)))
}

/// A new certificate of a period with its key, both in PEM form.
fn make(period: u64) -> Result<String, IdentityError> {
    let start = date_time_ymd(1970, 1, 1) + Duration::from_secs(period.saturating_mul(PERIOD.as_secs()));
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params.not_before = start - VALID_BEFORE;
    params.not_after = start + PERIOD + VALID_AFTER;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    Ok(params.self_signed(&key)?.pem() + &key.serialize_pem())
}

/// Deletes the certificates of periods before the one before this: no clock is so far behind.
fn delete_before(directory: &Path, period: u64) {
    let Ok(files) = fs::read_dir(directory) else {
        return;
    };
    for file in files.flatten() {
        let name = file.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(FILE_START)?.strip_suffix(FILE_END));
        let number = number.and_then(|number| number.parse::<u64>().ok());
        if number.is_some_and(|number| number + 1 < period) {
            // Another process may have deleted it just now; a file that stays is harmless.
            let _ = fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    fn hash(key: &CertifiedKey) -> Hash {
        Hash(Sha256::digest(&key.cert[0]).into())
    }

    fn numbered(directory: &Path) -> usize {
        fs::read_dir(directory).expect("it exists").count()
    }

    #[test]
    fn a_certificate_is_renewed_while_the_one_before_is_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path();
        let start = UNIX_EPOCH + PERIOD * 3_000;
        let certificates = WebCertificates::open(directory, start).expect("created");
        let another = WebCertificates::open(directory, start).expect("read");
        let first = certificates.at(start);
        let known = web_certificate_hashes(directory, start).expect("read");
        assert_eq!(known[0], hash(&first));
        let last = start + PERIOD - Duration::from_secs(1);
        assert_eq!(hash(&certificates.at(last)), known[0], "until the end of its period");
        for period in 1..5 {
            let now = start + PERIOD * period;
            let before = web_certificate_hashes(directory, now - PERIOD).ok();
            let (presented, of_another) = (certificates.at(now), another.at(now));
            assert_eq!(hash(&presented), hash(&of_another), "processes of one directory agree");
            if let Some(before) = before {
                assert_eq!(hash(&presented), before[1], "pages had its hash one period ahead");
            }
            assert_eq!(
                web_certificate_hashes(directory, now).expect("read")[0],
                hash(&presented)
            );
        }
        let (_, parsed) = X509Certificate::from_der(&first.cert[0]).expect("a certificate");
        let validity = parsed.validity();
        let seconds = |time: SystemTime| i64::try_from(time.duration_since(UNIX_EPOCH).expect("later").as_secs());
        assert!(validity.not_before.timestamp() <= seconds(start - VALID_BEFORE).expect("small"));
        assert!(validity.not_after.timestamp() >= seconds(start + PERIOD + VALID_AFTER).expect("small"));
        let length = validity.not_after.timestamp() - validity.not_before.timestamp();
        assert!(length <= 14 * 24 * 3_600, "{length}");
        assert_eq!(numbered(directory), 3, "old ones are deleted");
    }

    #[test]
    fn the_certificate_before_is_presented_while_none_can_be_created() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = UNIX_EPOCH + PERIOD * 3_000;
        let certificates = WebCertificates::open(folder.path(), start).expect("created");
        let first = hash(&certificates.at(start));
        let now = start + PERIOD;
        let next = folder.path().join(format!("{FILE_START}3001{FILE_END}"));
        let intact = fs::read(&next).expect("created in advance");
        fs::write(&next, "nonsense").expect("written");
        assert_eq!(hash(&certificates.at(now)), first);
        fs::write(&next, intact).expect("written");
        assert_eq!(hash(&certificates.at(now)), first, "not at every handshake");
        assert_ne!(hash(&certificates.at(now + RETRY_AFTER)), first);
    }
}
