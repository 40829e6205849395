//! How a process and the nats-servers prove to each other who they are: files with credentials and certificates. They
//! are checked at the start, and read at every connection: a renewed file takes effect with the next one.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_nats::{Auth, AuthError, ConnectOptions};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use crate::clock::wall;
use crate::config::CertificateFiles;

/// Permissions that a file with a secret must not have: any of users other than its owner and group.
const OF_OTHERS: u32 = 0o007;

/// Prefix of the subjects on which answers to a process arrive. A user's name is appended, so that the server can keep
/// each user to its own.
const INBOX: &str = "_INBOX";

/// Files by which a process is admitted to the nats-servers; without any, it connects without credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// `USER:PASSWORD`.
    pub credentials: Option<PathBuf>,
    /// Certificates of the authorities that sign those of the nats-servers; TLS is required with it.
    pub authority: Option<PathBuf>,
    /// The certificate that is shown to the nats-servers.
    pub certificate: Option<CertificateFiles>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessProblem {
    #[error(
        "{setting}: {path} cannot be read ({source}); check the path, and that this process's user may read it",
        path = path.display()
    )]
    Unreadable {
        setting: &'static str,
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    #[error(
        "{setting}: every user of this machine may read {path} (mode {mode:03o}), and it holds a secret; chmod 600 it",
        path = path.display()
    )]
    Exposed {
        setting: &'static str,
        path: PathBuf,
        mode: u32,
    },
    #[error(
        "nats_credentials: the first line of {path} is not USER:PASSWORD, with a user of letters, digits, - or _",
        path = path.display()
    )]
    NoCredentials { path: PathBuf },
    #[error("{setting}: {path} holds no {what} in PEM form", path = path.display())]
    NotPem {
        setting: &'static str,
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    #[error(
        "{setting}: the certificate in {path} expired on {until}; replace the file with a renewed one",
        path = path.display()
    )]
    Expired {
        setting: &'static str,
        path: PathBuf,
        until: String,
    },
    #[error(
        "{setting}: the certificate in {path} is valid from {from} on; check the clock of this machine",
        path = path.display()
    )]
    NotYet {
        setting: &'static str,
        path: PathBuf,
        from: String,
    },
    #[error(
        "nats_key: {path} is not the key of the certificate in {chain} ({source})",
        path = path.display(),
        chain = chain.display()
    )]
    OtherKey {
        path: PathBuf,
        chain: PathBuf,
        source: rustls::Error,
    },
}

/// All files that cannot be used.
#[derive(Debug)]
pub struct AccessProblems(Vec<AccessProblem>);

impl std::error::Error for AccessProblems {}

impl fmt::Display for AccessProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the files for connecting to the nats-servers cannot be used:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

impl Access {
    /// Checks every file.
    ///
    /// # Errors
    /// All problems that a connection would meet.
    pub fn check(&self) -> Result<(), AccessProblems> {
        let checks = [
            self.credentials.as_deref().map(|path| read_credentials(path).map(drop)),
            self.authority.as_deref().map(check_authority),
            self.certificate.as_ref().map(check_certificate),
        ];
        let problems: Vec<_> = checks.into_iter().flatten().filter_map(Result::err).collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(AccessProblems(problems))
        }
    }

    /// Options with these credentials and certificates.
    ///
    /// # Errors
    /// When the credentials cannot be read.
    pub(super) fn options(&self) -> Result<ConnectOptions, AccessProblems> {
        let options = match &self.credentials {
            None => ConnectOptions::new(),
            Some(path) => {
                let (user, _) = read_credentials(path).map_err(|problem| AccessProblems(vec![problem]))?;
                let path = path.clone();
                let inbox = format!("{INBOX}.{user}");
                ConnectOptions::with_auth_callback(move |_| std::future::ready(authenticate(&path)))
                    .custom_inbox_prefix(inbox)
            }
        };
        Ok(self.secured(options))
    }

    /// These options, with the certificates.
    pub(super) fn secured(&self, mut options: ConnectOptions) -> ConnectOptions {
        if let Some(authority) = &self.authority {
            options = options.require_tls(true).add_root_certificates(authority.clone());
        }
        match &self.certificate {
            Some(files) => options
                .require_tls(true)
                .add_client_certificate(files.chain.clone(), files.key.clone()),
            None => options,
        }
    }
}

fn authenticate(path: &Path) -> Result<Auth, AuthError> {
    let (user, password) = read_credentials(path).map_err(AuthError::new)?;
    let mut auth = Auth::new();
    auth.username = Some(user);
    auth.password = Some(password);
    Ok(auth)
}

fn read_credentials(path: &Path) -> Result<(String, String), AccessProblem> {
    let bytes = read_secret("nats_credentials", path)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim();
    // The user is a token of subjects.
    let is_name = |user: &str| {
        !user.is_empty()
            && user
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    match line.split_once(':') {
        Some((user, password)) if is_name(user) && !password.is_empty() => Ok((user.to_owned(), password.to_owned())),
        _ => Err(AccessProblem::NoCredentials { path: path.to_owned() }),
    }
}

fn check_authority(path: &Path) -> Result<(), AccessProblem> {
    const SETTING: &str = "nats_ca";
    // Authorities may be replaced by adding the next before the former ends: one that is valid suffices.
    let mut outcome = Ok(());
    for certificate in read_chain(SETTING, path)? {
        outcome = check_validity(SETTING, path, &certificate);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn check_certificate(files: &CertificateFiles) -> Result<(), AccessProblem> {
    const SETTING: &str = "nats_certificate";
    let chain = read_chain(SETTING, &files.chain)?;
    chain
        .iter()
        .try_for_each(|certificate| check_validity(SETTING, &files.chain, certificate))?;
    let bytes = read_secret("nats_key", &files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| AccessProblem::NotPem {
        setting: "nats_key",
        path: files.key.clone(),
        what: "private key",
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(RootCertStore::empty()))
        .and_then(|builder| builder.with_client_auth_cert(chain, key));
    config.map(drop).map_err(|source| AccessProblem::OtherKey {
        path: files.key.clone(),
        chain: files.chain.clone(),
        source,
    })
}

fn read_chain(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, AccessProblem> {
    let bytes = read(setting, path)?;
    match CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>() {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        _ => Err(not_pem(setting, path)),
    }
}

fn not_pem(setting: &'static str, path: &Path) -> AccessProblem {
    AccessProblem::NotPem {
        setting,
        path: path.to_owned(),
        what: "certificate",
    }
}

/// Checks that a certificate of this file is valid now.
pub(crate) fn check_validity(
    setting: &'static str,
    path: &Path,
    certificate: &CertificateDer<'_>,
) -> Result<(), AccessProblem> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| not_pem(setting, path))?;
    let validity = parsed.validity();
    let seconds = i64::try_from(wall().0 / 1_000).unwrap_or(i64::MAX);
    let now = ASN1Time::from_timestamp(seconds).map_err(|_| not_pem(setting, path))?;
    let path = path.to_owned();
    if now > validity.not_after {
        let until = validity.not_after.to_string();
        return Err(AccessProblem::Expired { setting, path, until });
    }
    if now < validity.not_before {
        let from = validity.not_before.to_string();
        return Err(AccessProblem::NotYet { setting, path, from });
    }
    Ok(())
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, AccessProblem> {
    fs::read(path).map_err(|source| AccessProblem::Unreadable {
        setting,
        path: path.to_owned(),
        source,
    })
}

fn read_secret(setting: &'static str, path: &Path) -> Result<Vec<u8>, AccessProblem> {
    let unreadable = |source| AccessProblem::Unreadable {
        setting,
        path: path.to_owned(),
        source,
    };
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & OF_OTHERS != 0 {
        return Err(AccessProblem::Exposed {
            setting,
            path: path.to_owned(),
            mode,
        });
    }
    read(setting, path)
}
