//! A client that follows no protocol but QUIC, and one that does not even follow QUIC.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Condvar, Mutex},
};

use annals_wire::client::CloseReason;
use quinn::{Connection, ConnectionError, RecvStream, SendStream, crypto::rustls::QuicClientConfig};
use rustls::{
    DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::realm::{loopback, within};

/// The realm's certificate as an authority.
pub(crate) fn roots(directory: &Path) -> Arc<RootCertStore> {
    let pem = std::fs::read(directory.join("development-certificate.pem")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    Arc::new(roots)
}

pub(crate) async fn connect(to: SocketAddr, directory: &Path, alpn: &[u8]) -> Result<Connection, ConnectionError> {
    connect_from(loopback(), to, directory, alpn).await
}

/// Connects from an address of this machine.
pub(crate) async fn connect_from(
    from: SocketAddr,
    to: SocketAddr,
    directory: &Path,
    alpn: &[u8],
) -> Result<Connection, ConnectionError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots(directory))
        .with_no_client_auth();
    // An empty one requests no ALPN at all.
    tls.alpn_protocols = [alpn]
        .into_iter()
        .filter(|alpn| !alpn.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let endpoint = quinn::Endpoint::client(from).unwrap();
    endpoint.connect_with(config, to, "localhost").unwrap().await
}

/// Connects, and sends these bytes on the stream.
pub(crate) async fn send(
    to: SocketAddr,
    directory: &Path,
    alpn: &[u8],
    bytes: &[u8],
) -> (Connection, SendStream, RecvStream) {
    let connection = connect(to, directory, alpn).await.unwrap();
    let (mut send, receive) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    (connection, send, receive)
}

/// The reason with which the server closes the connection.
pub(crate) async fn closed_for(connection: &Connection) -> CloseReason {
    match within("the server to close the connection", connection.closed()).await {
        ConnectionError::ApplicationClosed(close) => CloseReason::from_code(close.error_code.into_inner()),
        other => panic!("the connection ended otherwise: {other}"),
    }
}

/// Clients that start their handshakes and do not complete them: each stops when it receives the certificate.
pub(crate) struct Stalled(Arc<Stop>);

#[derive(Debug, Default)]
struct Stop {
    /// How many have stopped, and whether they are to end.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Stalled {
    /// Starts `count` of them, from one address. Each has a thread to block in.
    pub(crate) fn start(count: usize, to: SocketAddr, alpn: &[u8]) -> Self {
        let stop = Arc::new(Stop::default());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&stop) as _)
            .with_no_client_auth();
        tls.alpn_protocols = vec![alpn.to_vec()];
        let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        for _ in 0..count {
            let config = config.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    let endpoint = quinn::Endpoint::client(loopback()).unwrap();
                    // It fails when the test has ended.
                    let _ = endpoint.connect_with(config, to, "localhost").unwrap().await;
                });
            });
        }
        Self(stop)
    }

    /// How many have stopped.
    pub(crate) fn count(&self) -> usize {
        self.0.state.lock().unwrap().0
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().1 = true;
        self.0.changed.notify_all();
    }
}

impl ServerCertVerifier for Stop {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        let _ended = self.changed.wait_while(state, |(_, ends)| !*ends).unwrap();
        Err(rustls::Error::General("the test has ended".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("not reached".to_owned()))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
