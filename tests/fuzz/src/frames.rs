//! Frames and datagrams between clients and realm.

use annals_wire::client::{
    FrameBuffer, Hello, HelloAnswer, LoginAnswer, LoginRequest, MAX_DATAGRAM, ToClient, ToClientDatagram, ToServer,
    ToServerDatagram,
};

/// A frame or datagram of the kind that the first byte selects.
pub(crate) fn client_frame(bytes: &[u8]) {
    let Some((&kind, frame)) = bytes.split_first() else {
        return;
    };
    if let Some(written) = rewritten(kind % 8, frame) {
        assert_eq!(written, frame, "kind {}", kind % 8);
    }
}

/// The frame decoded and encoded again, if it is valid.
fn rewritten(kind: u8, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match kind {
        0 => LoginRequest::read(frame).ok()?.write(&mut out),
        1 => LoginAnswer::read(frame).ok()?.write(&mut out),
        2 => Hello::read(frame).ok()?.write(&mut out),
        3 => HelloAnswer::read(frame).ok()?.write(&mut out),
        4 => ToServer::read(frame).ok()?.write(&mut out),
        5 => ToClient::read(frame).ok()?.write(&mut out),
        6 => ToServerDatagram::read(frame).ok()?.write(&mut out),
        _ => {
            let ToClientDatagram::Moves(moves) = ToClientDatagram::read(frame).ok()?;
            // Items longer than a datagram are sent as several.
            if frame.len() > MAX_DATAGRAM {
                return None;
            }
            out = moves.datagrams().concat();
        }
    }
    Some(out)
}

/// Maximum bytes of a frame in [`client_stream`].
const LIMIT: usize = 100;

/// A stream of frames. Its first byte is the size of the pieces in which it arrives.
pub(crate) fn client_stream(bytes: &[u8]) {
    let Some((&piece, stream)) = bytes.split_first() else {
        return;
    };
    let whole = frames(stream, stream.len().max(1));
    assert_eq!(frames(stream, usize::from(piece).max(1)), whole, "however it is cut");
}

/// The frames of a stream, until one is too large.
fn frames(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut buffer = FrameBuffer::new(LIMIT);
    let mut frames = Vec::new();
    for piece in stream.chunks(piece) {
        buffer.push(piece);
        loop {
            match buffer.next_frame() {
                Ok(Some(frame)) => {
                    assert!(frame.len() <= LIMIT);
                    frames.push(frame.to_vec());
                }
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}
