//! Until when the certificates of a process are valid, for its metrics.

use std::path::{Path, PathBuf};

use rustls::pki_types::{CertificateDer, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::{CertificateFiles, Config};
use crate::nats::Access;

/// The certificates of a process, by the settings that name their files.
#[derive(Debug, Clone, Default)]
pub struct Certificates {
    /// Files that are read at every connection: so is their end, at every question.
    chain: Option<PathBuf>,
    authority: Option<PathBuf>,
    /// The end of the certificate that is shown to clients. Its file is read at the start.
    shown: Option<i64>,
}

/// The end of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateEnd {
    /// The setting that names its file.
    pub setting: &'static str,
    /// Seconds since 1970.
    pub end: i64,
}

impl Certificates {
    /// Those in the settings of a process. One that login and base generate for development has no end worth a metric.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self::new(&config.access, config.certificate.as_ref())
    }

    /// Those by which a process is admitted to the nats-servers, and that which it shows to clients.
    #[must_use]
    pub fn new(access: &Access, shown: Option<&CertificateFiles>) -> Self {
        Self {
            chain: access.certificate.as_ref().map(|files| files.chain.clone()),
            authority: access.authority.clone(),
            shown: shown.and_then(|files| ends(&files.chain).into_iter().min()),
        }
    }

    /// The end of each at this moment. A file that cannot be read has none: the log names it at the next connection.
    #[must_use]
    pub fn ends(&self) -> Vec<CertificateEnd> {
        let first = |path: &PathBuf| ends(path).into_iter().min();
        // Authorities are replaced by adding the next one: the last to end is decisive.
        let last = |path: &PathBuf| ends(path).into_iter().max();
        let found = [
            ("nats_certificate", self.chain.as_ref().and_then(first)),
            ("nats_ca", self.authority.as_ref().and_then(last)),
            ("certificate", self.shown),
        ];
        let found = found.into_iter();
        found
            .filter_map(|(setting, end)| Some(CertificateEnd { setting, end: end? }))
            .collect()
    }
}

/// The ends of all certificates in a file, seconds since 1970; none if one cannot be read.
fn ends(path: &Path) -> Vec<i64> {
    let read = CertificateDer::pem_file_iter(path).ok().and_then(|certificates| {
        let ends = certificates.map(|certificate| end(&certificate.ok()?));
        ends.collect::<Option<Vec<i64>>>()
    });
    read.unwrap_or_default()
}

fn end(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}
