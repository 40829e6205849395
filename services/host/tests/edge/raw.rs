//! A client that keeps to nothing but QUIC.

use std::{net::SocketAddr, path::Path, sync::Arc};

use annals_wire::client::CloseReason;
use quinn::{Connection, ConnectionError, RecvStream, SendStream, crypto::rustls::QuicClientConfig};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots(directory))
        .with_no_client_auth();
    // None at all is asked for by an empty one.
    tls.alpn_protocols = [alpn]
        .into_iter()
        .filter(|alpn| !alpn.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let endpoint = quinn::Endpoint::client(loopback()).unwrap();
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

/// Why the server closes the connection.
pub(crate) async fn closed_for(connection: &Connection) -> CloseReason {
    match within("the server to close the connection", connection.closed()).await {
        ConnectionError::ApplicationClosed(close) => CloseReason::from_code(close.error_code.into_inner()),
        other => panic!("the connection ended otherwise: {other}"),
    }
}
