//! What browsers send before and around frames: messages of a WebSocket, and HTTP/3 of WebTransport.

use annals_wire::client::WebSocketMessage;
use futures::FutureExt;
use web_transport_proto::{Capsule, ConnectRequest, Http3CapsuleReader, Settings};

/// What a read of a slice yields: it never waits.
fn ready<T>(reading: impl Future<Output = T>) -> T {
    reading.now_or_never().expect("all bytes are there")
}

/// A binary message of a WebSocket.
pub(crate) fn web_socket_message(bytes: &[u8]) {
    if let Some(message) = WebSocketMessage::read(bytes) {
        assert_eq!(message.bytes(), bytes);
    }
}

/// The settings of a WebTransport client, as they arrive on its control stream.
pub(crate) fn web_transport_settings(bytes: &[u8]) {
    if let Ok(settings) = ready(Settings::read(&mut &bytes[..])) {
        let mut encoded = Vec::new();
        settings.encode(&mut encoded);
        let again = ready(Settings::read(&mut &encoded[..])).expect("what was encoded can be decoded");
        assert_eq!(*again, *settings);
    }
}

/// The request that begins a WebTransport session.
pub(crate) fn web_transport_request(bytes: &[u8]) {
    let Ok(request) = ready(ConnectRequest::read(&mut &bytes[..])) else {
        return;
    };
    let mut encoded = Vec::new();
    // A header that is not text can be read, and not written.
    if request.encode(&mut encoded).is_ok() {
        let again = ready(ConnectRequest::read(&mut &encoded[..])).expect("what was encoded can be decoded");
        // A fragment is read, ignored, and not written.
        assert_eq!(again.url.path(), request.url.path());
    }
}

/// What follows the request on its stream, until the session ends.
pub(crate) fn web_transport_capsules(bytes: &[u8]) {
    let mut capsules = Http3CapsuleReader::new(bytes);
    while let Ok(Some(capsule)) = ready(capsules.read()) {
        if matches!(capsule, Capsule::CloseWebTransportSession { .. }) {
            return;
        }
    }
}
