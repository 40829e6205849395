//! A bare echo over QUIC: what the transport alone takes of a round trip.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use annals_client::Trust;
use annals_ids::Hash;
use annals_wire::client::value_hash;
use quinn::{
    ClientConfig, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt,
    crypto::rustls::QuicClientConfig,
};
use tokio::task::JoinSet;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Bytes of one read.
const READ_SIZE: usize = 16 << 10;

/// An endpoint that returns what it receives on each stream. It ends when this is dropped.
#[derive(Debug)]
pub struct EchoServer {
    address: SocketAddr,
    certificate: Hash,
    _serving: JoinSet<()>,
}

impl EchoServer {
    /// The address and the hash of the certificate.
    #[must_use]
    pub fn address(&self) -> (SocketAddr, Hash) {
        (self.address, self.certificate)
    }
}

/// Starts an endpoint. Must be called within a tokio runtime.
///
/// # Panics
/// If that fails.
#[must_use]
pub fn serve() -> EchoServer {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate is made");
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let hash = value_hash(&certificate);
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("the key is one");
    let mut config = ServerConfig::with_single_cert(vec![certificate], key).expect("they belong together");
    // As few streams as an edge: QUIC keeps a place for each that a client may open.
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    let address = endpoint.local_addr().expect("it is bound");
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(incoming) = endpoint.accept().await {
            connections.spawn(async move {
                let connection = incoming.await.expect("a handshake is completed");
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    // Either ends with the connection.
                    while let Ok(Some(chunk)) = receive.read_chunk(READ_SIZE, true).await {
                        if send.write_chunk(chunk.bytes).await.is_err() {
                            break;
                        }
                    }
                }
            });
        }
    });
    EchoServer {
        address,
        certificate: hash,
        _serving: serving,
    }
}

/// A stream to such an endpoint.
#[derive(Debug)]
pub(crate) struct QuicEcho {
    send: SendStream,
    receive: RecvStream,
}

impl QuicEcho {
    /// Connects from an endpoint.
    ///
    /// # Panics
    /// If that fails.
    pub(crate) async fn connect(endpoint: &Endpoint, (address, certificate): (SocketAddr, Hash)) -> Self {
        let trust = Trust::Pinned(certificate);
        let (tls, name) = trust.tls().expect("TLS is set up");
        let crypto = QuicClientConfig::try_from(tls).expect("TLS is that of QUIC");
        let connecting = endpoint.connect_with(ClientConfig::new(Arc::new(crypto)), address, name);
        let connection = connecting
            .expect("it can be connected to")
            .await
            .expect("it is accepted");
        let (send, receive) = connection.open_bi().await.expect("a stream is opened");
        Self { send, receive }
    }

    /// Sends bytes, and waits until they are back.
    ///
    /// # Panics
    /// If the connection is lost.
    pub(crate) async fn echo(&mut self, bytes: &[u8]) {
        self.send.write_all(bytes).await.expect("it is sent");
        let mut back = vec![0; bytes.len()];
        self.receive.read_exact(&mut back).await.expect("it comes back");
        assert_eq!(back, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_comes_back() {
        let server = serve();
        let endpoint = annals_client::client_endpoint(server.address().0).expect("a socket");
        let mut stream = QuicEcho::connect(&endpoint, server.address()).await;
        stream.echo(b"first").await;
        stream.echo(&vec![7; 3 * READ_SIZE]).await;
    }
}
