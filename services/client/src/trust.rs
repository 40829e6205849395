//! Which certificates the client accepts.

use std::sync::Arc;

use annals_ids::Hash;
use annals_wire::client::value_hash;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::{
    DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// Which certificates the client accepts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Only the one with this SHA-256 fingerprint: that of a development realm's login service.
    Pinned(Hash),
    /// Those that one of these authorities has signed for this name.
    Signed {
        /// The authorities.
        roots: Arc<RootCertStore>,
        /// The name in the certificates of the realm's services.
        server_name: String,
    },
}

/// Why no connection can be attempted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// The base's certificate is signed by an authority, and the client has no authorities.
    #[error("the base shows a signed certificate, but the client has no certificate authorities to verify it")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// TLS cannot be used for QUIC.
    #[error("TLS cannot be used for QUIC")]
    Quic(#[from] quinn::crypto::rustls::NoInitialCipherSuite),
}

/// The server name used where the certificate is pinned and its name does not matter.
const ANY_NAME: &str = "localhost";

impl Trust {
    /// The trust in a base, by the login service's description of its certificate.
    pub(crate) fn in_base(&self, certificate: Option<Hash>) -> Result<Trust, TrustError> {
        match (certificate, self) {
            (Some(fingerprint), _) => Ok(Trust::Pinned(fingerprint)),
            (None, Trust::Signed { .. }) => Ok(self.clone()),
            (None, Trust::Pinned(_)) => Err(TrustError::NoRoots),
        }
    }

    /// QUIC configuration for one protocol, and the server name to use.
    pub(crate) fn quic(&self, alpn: &[u8]) -> Result<(QuicClientConfig, &str), TrustError> {
        let (mut tls, name) = self.tls()?;
        tls.alpn_protocols = vec![alpn.to_vec()];
        Ok((QuicClientConfig::try_from(tls)?, name))
    }

    /// TLS configuration without an application protocol, and the server name to use.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn tls(&self) -> Result<(rustls::ClientConfig, &str), rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        Ok(match self {
            Trust::Pinned(fingerprint) => {
                let verifier = Arc::new(Pinned {
                    fingerprint: *fingerprint,
                    provider,
                });
                (
                    builder
                        .dangerous()
                        .with_custom_certificate_verifier(verifier)
                        .with_no_client_auth(),
                    ANY_NAME,
                )
            }
            Trust::Signed { roots, server_name } => (
                builder.with_root_certificates(Arc::clone(roots)).with_no_client_auth(),
                server_name.as_str(),
            ),
        })
    }
}

/// Accepts exactly one certificate. Its name and dates do not matter: the source of the fingerprint vouches for it.
#[derive(Debug)]
struct Pinned {
    fingerprint: Hash,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if value_hash(end_entity) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::ApplicationVerificationFailure,
            ))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
