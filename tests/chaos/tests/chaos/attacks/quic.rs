//! Raw QUIC connections, which follow no protocol above QUIC.

use std::sync::Arc;

use annals_client::Trust;
use annals_wire::client::{FrameBuffer, MAX_DOWNSTREAM_FRAME, MAX_UPSTREAM_FRAME, put_frame};
use quinn::{RecvStream, crypto::rustls::QuicClientConfig};

/// QUIC to a server with that certificate, under one protocol.
pub(super) fn config(trust: &Trust, protocol: &[u8]) -> quinn::ClientConfig {
    let (mut tls, _) = trust.tls().expect("TLS is set up");
    tls.alpn_protocols = vec![protocol.to_vec()];
    let crypto = QuicClientConfig::try_from(tls).expect("it has the initial cipher suite");
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
