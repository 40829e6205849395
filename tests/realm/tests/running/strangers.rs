//! Clients that follow no protocol but QUIC.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use annals_wire::client::{CloseReason, FrameBuffer, MAX_DOWNSTREAM_FRAME, MAX_UPSTREAM_FRAME, put_frame};
use quinn::{Connection, ConnectionError, RecvStream, SendStream, crypto::rustls::QuicClientConfig};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::played::within;

/// Maximum time until a server reacts.
const REACTION_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection with a stream.
pub(crate) struct Stranger {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    receive: RecvStream,
    buffer: FrameBuffer,
    _endpoint: quinn::Endpoint,
}

impl Stranger {
    /// Connects to a port of the realm with this folder, and sends these bytes.
    pub(crate) async fn sending(to: SocketAddr, data: &Path, alpn: &[u8], bytes: &[u8]) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots(data))
            .with_no_client_auth();
        tls.alpn_protocols = vec![alpn.to_vec()];
        let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS for QUIC")));
        let endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
        let connecting = endpoint.connect_with(config, to, "localhost").expect("an address");
        let connection = within(REACTION_TIMEOUT, "a handshake", connecting)
            .await
            .expect("a connection");
        let (mut send, receive) = connection.open_bi().await.expect("a stream");
        send.write_all(bytes).await.expect("bytes can be sent");
        Self {
            connection,
            send,
            receive,
            buffer: FrameBuffer::new(MAX_DOWNSTREAM_FRAME),
            _endpoint: endpoint,
        }
    }

    /// Sends a frame with this body.
    pub(crate) async fn frame(&mut self, body: &[u8]) {
        self.send.write_all(&framed(body)).await.expect("bytes can be sent");
    }

    /// The body of the next frame received.
    pub(crate) async fn next(&mut self) -> Vec<u8> {
        within(REACTION_TIMEOUT, "a frame", async {
            loop {
                if let Some(body) = self.buffer.next_frame().expect("frames are within their limit") {
                    return body.to_vec();
                }
                let chunk = self
                    .receive
                    .read_chunk(64 << 10, true)
                    .await
                    .expect("the stream is open");
                self.buffer.push(&chunk.expect("the stream continues").bytes);
            }
        })
        .await
    }

    /// The reason with which the server closes the connection.
    pub(crate) async fn closed_for(&self) -> CloseReason {
        match within(
            REACTION_TIMEOUT,
            "the server to close the connection",
            self.connection.closed(),
        )
        .await
        {
            ConnectionError::ApplicationClosed(close) => CloseReason::from_code(close.error_code.into_inner()),
            other => panic!("unexpected end of the connection: {other}"),
        }
    }
}

/// A frame with this body.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, body, MAX_UPSTREAM_FRAME).expect("it is within the limit");
    bytes
}

/// The realm's certificate as a root.
fn roots(data: &Path) -> Arc<RootCertStore> {
    let pem = std::fs::read(data.join("development-certificate.pem")).expect("the realm's certificate");
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(&pem).expect("a certificate");
    roots.add(certificate).expect("an authority");
    Arc::new(roots)
}
