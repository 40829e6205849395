//! The certificate that a process shows its clients.
//!
//! The development certificate of a data directory never changes, as clients are configured with its fingerprint.
//! Browsers accept no such certificate, so over WebTransport they are shown others, which change: those of
//! `web_certificates`.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use annals_ids::Hash;
use rustls::{
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::web_certificates::WebCertificates;
use crate::nats::{AccessProblem, check_validity};

/// File of the development certificate and its key, in a process's data directory.
const FILE: &str = "development-certificate.pem";

/// Readable by its owner only: the file holds a private key.
const PRIVATE: u32 = 0o600;

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The data directory of a development certificate; `None` if an authority has signed it.
    development: Option<PathBuf>,
}

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A file could not be read or written.
    #[error("the certificate in {} cannot be read or written; check the path and its permissions", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The development certificate is damaged.
    #[error(
        "{} holds no certificate with its private key in PEM form; restore the file, or remove it to generate a new \
         development certificate",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: pem::Error,
    },
    /// A configured file does not hold what it should.
    #[error("{} holds no {what} in PEM form; name a file that does", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// The cause.
        source: pem::Error,
    },
    /// A certificate is not valid now: no client would accept it.
    #[error("no client would accept it")]
    Validity(#[from] AccessProblem),
    /// The certificate could not be created.
    #[error("the development certificate could not be generated")]
    Made(#[from] rcgen::Error),
    /// The key of a development certificate is another's.
    #[error(
        "{} holds a certificate with the key of another; remove it to generate a new development certificate",
        path.display()
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
}

impl Identity {
    /// The file of the development certificate in `directory`.
    #[must_use]
    pub fn development_file(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    /// The development certificate in `directory`, created if missing. Processes that share the directory use the same
    /// one, even if they start at the same time.
    ///
    /// # Errors
    /// When the file cannot be read, written or parsed.
    pub fn development(directory: &Path) -> Result<Self, IdentityError> {
        let path = Self::development_file(directory);
        if !path.exists() {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
            create(directory, FILE, &(made.cert.pem() + &made.signing_key.serialize_pem()))?;
        }
        let identity = Self::read(&path, &path, true)?;
        Ok(Self {
            development: Some(directory.to_owned()),
            ..identity
        })
    }

    /// A certificate chain that an authority signed, with its key, both in PEM form.
    ///
    /// # Errors
    /// When the files cannot be read or parsed, or a certificate is not valid now.
    pub fn signed(chain: &Path, key: &Path) -> Result<Self, IdentityError> {
        let identity = Self::read(chain, key, false)?;
        for certificate in &identity.chain {
            check_validity("certificate", chain, certificate)?;
        }
        Ok(identity)
    }

    /// The fingerprint that clients must expect: of a certificate that no authority has signed.
    #[must_use]
    pub fn pinned(&self) -> Option<Hash> {
        let leaf = self.chain.first().filter(|_| self.development.is_some())?;
        Some(Hash(Sha256::digest(leaf).into()))
    }

    /// TLS configuration for one protocol with this certificate.
    pub(super) fn tls(&self, alpn: &[u8]) -> Result<rustls::ServerConfig, rustls::Error> {
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        tls.alpn_protocols = vec![alpn.to_vec()];
        Ok(tls)
    }

    /// The same for two protocols, of which browsers speak the second. They are shown this certificate if an authority
    /// has signed it, else one that they accept by its hash.
    pub(super) fn tls_with_web(&self, alpn: &[u8], web_alpn: &[u8]) -> Result<rustls::ServerConfig, TlsError> {
        let mut tls = self.tls(alpn)?;
        tls.alpn_protocols.push(web_alpn.to_vec());
        if let Some(directory) = &self.development {
            tls.cert_resolver = Arc::new(ByAlpn {
                alpn: alpn.to_vec(),
                own: Arc::new(self.certified_key()?),
                web: WebCertificates::open(directory, SystemTime::now())?,
            });
        }
        Ok(tls)
    }

    pub(super) fn certified_key(&self) -> Result<CertifiedKey, rustls::Error> {
        CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &provider())
    }

    /// Reads a certificate chain and its key. Errors are those of a development certificate if it is `self_made`.
    pub(super) fn read(chain_path: &Path, key_path: &Path, self_made: bool) -> Result<Self, IdentityError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| IdentityError::File {
                path: path.into(),
                source,
            })
        };
        let malformed = |path: &Path, what| {
            let path = path.into();
            move |source| match self_made {
                true => IdentityError::Damaged { path, source },
                false => IdentityError::Malformed { path, what, source },
            }
        };
        let chain = CertificateDer::pem_slice_iter(&read(chain_path)?)
            .collect::<Result<Vec<_>, _>>()
            .and_then(|chain| {
                if chain.is_empty() {
                    Err(pem::Error::NoItemsFound)
                } else {
                    Ok(chain)
                }
            })
            .map_err(malformed(chain_path, "certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(&read(key_path)?).map_err(malformed(key_path, "private key"))?;
        Ok(Self {
            chain,
            key,
            development: None,
        })
    }
}

/// Why there is no TLS configuration for browsers.
#[derive(Debug, Error)]
pub(super) enum TlsError {
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Chooses between two certificates by what the client speaks.
#[derive(Debug)]
struct ByAlpn {
    /// The protocol for which `own` is shown.
    alpn: Vec<u8>,
    own: Arc<CertifiedKey>,
    web: WebCertificates,
}

impl ResolvesServerCert for ByAlpn {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_own = hello.alpn()?.any(|offered| offered == self.alpn);
        Some(match is_own {
            true => Arc::clone(&self.own),
            false => self.web.at(SystemTime::now()),
        })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Creates a private file with this content in one step, unless another process has just created it.
pub(super) fn create(directory: &Path, name: &str, content: &str) -> Result<(), IdentityError> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let draft_number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(name);
    let draft = directory.join(format!("{name}.{}.{draft_number}", std::process::id()));
    let put = || {
        fs::create_dir_all(directory)?;
        // Left by a killed process that had the same id.
        let _ = fs::remove_file(&draft);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .open(&draft)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    let result = put();
    // The draft is not needed any more, in either case.
    let _ = fs::remove_file(&draft);
    result.map_err(|source| IdentityError::File { path, source })
}
