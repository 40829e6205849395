//! Raw QUIC connections, which trust any certificate and follow no protocol above QUIC.

use std::sync::Arc;

use annals_wire::client::{FrameBuffer, MAX_DOWNSTREAM_FRAME, MAX_UPSTREAM_FRAME, put_frame};
use quinn::{RecvStream, crypto::rustls::QuicClientConfig};
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// Accepts every certificate: an attacker does not care.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// TLS 1.3 with these protocols.
pub(super) fn tls(protocols: &[&[u8]]) -> rustls::ClientConfig {
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config
}

/// QUIC under one protocol.
pub(super) fn config(protocol: &[u8]) -> quinn::ClientConfig {
    let crypto = QuicClientConfig::try_from(tls(&[protocol])).expect("it has the initial cipher suite");
    quinn::ClientConfig::new(Arc::new(crypto))
}

/// A frame with this body.
pub(super) fn frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, body, MAX_UPSTREAM_FRAME).expect("a body of a test is short");
    bytes
}

/// The body of the first frame on a stream; `None` if the server closes before.
pub(super) async fn first_frame(stream: &mut RecvStream) -> Option<Vec<u8>> {
    let mut buffer = FrameBuffer::new(MAX_DOWNSTREAM_FRAME);
    let mut chunk = [0; 1_024];
    loop {
        if let Some(body) = buffer.next_frame().ok()? {
            return Some(body.to_vec());
        }
        let length = stream.read(&mut chunk).await.ok()??;
        buffer.push(&chunk[..length]);
    }
}
