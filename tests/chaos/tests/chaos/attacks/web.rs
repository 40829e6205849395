//! WebSockets by hand: frames of every wrong kind, and requests of foreign pages.

use std::sync::Arc;

use annals_def::split_mix;
use annals_ids::SessionId;
use annals_wire::client::{Proof, Secret};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

use super::target::{ATTACKER, PAGE, Target};

/// A key of 16 bytes, which the server answers with a hash.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

/// The mask of all frames.
const MASK: [u8; 4] = [1, 2, 3, 4];

/// Opcodes, RFC 6455.
mod opcode {
    pub(super) const CONTINUATION: u8 = 0;
    pub(super) const TEXT: u8 = 1;
    pub(super) const BINARY: u8 = 2;
    pub(super) const RESERVED: u8 = 3;
    pub(super) const CLOSE: u8 = 8;
    pub(super) const PING: u8 = 9;
    pub(super) const RESERVED_CONTROL: u8 = 11;
}

/// The first bit of a frame: it is the last of its message.
const LAST: u8 = 0x80;

/// Requests a WebSocket; returns the connection after the answer, with its status.
async fn request(target: &Target, origin: &str) -> std::io::Result<(TlsStream<TcpStream>, u16)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((ATTACKER, 0).into())?;
    let stream = socket.connect(target.base).await?;
    let (tls, name) = target.trust.tls().expect("TLS is set up");
    let connector = TlsConnector::from(Arc::new(tls));
    let name = ServerName::try_from(name.to_owned()).expect("it is a name");
    let mut stream = connector.connect(name, stream).await?;
    let request = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: {origin}\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Protocol: annals-play.1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < 4_096 {
        answer.push(stream.read_u8().await?);
    }
    let status = String::from_utf8_lossy(&answer);
    let status = status.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((stream, status.unwrap_or(0)))
}

/// A page of another origin is refused.
pub(super) async fn foreign_origin(target: Arc<Target>) {
    if let Ok((_, status)) = request(&target, "https://evil.example").await {
        assert_eq!(status, 403, "a page of another origin was let in");
    }
}

/// Sends one wrong frame, the next kind each time, and waits for the close.
pub(super) async fn wrong_frame(target: Arc<Target>, number: u64) {
    // The session does not exist; what is wrong is found before that.
    let hello = target.hello(SessionId(1), Proof::Resume(Secret([0; 32])));
    let Ok((mut stream, 101)) = request(&target, PAGE).await else {
        return;
    };
    if stream.write_all(&bytes(&hello, number)).await.is_ok() {
        let mut rest = [0; 256];
        while let Ok(1..) = stream.read(&mut rest).await {}
    }
}

/// A wrong frame, or some.
fn bytes(hello: &[u8], number: u64) -> Vec<u8> {
    let masked = |first: u8, content: &[u8]| frame(first, content, true);
    match number % 14 {
        0 => frame(LAST | opcode::BINARY, hello, false),
        1 => masked(LAST | 0x40 | opcode::BINARY, hello),
        2 => masked(LAST | opcode::RESERVED, hello),
        3 => masked(LAST | opcode::RESERVED_CONTROL, b""),
        4 => masked(LAST | opcode::TEXT, b"hello"),
        5 => masked(LAST | opcode::TEXT, &[0xff, 0xfe]),
        6 => masked(LAST | opcode::CONTINUATION, b"without a beginning"),
        7 => masked(opcode::PING, b"in parts"),
        8 => masked(LAST | opcode::PING, &[0; 200]),
        9 => [masked(opcode::BINARY, b"0"), masked(LAST | opcode::BINARY, b"1")].concat(),
        10 => masked(LAST | opcode::CLOSE, &[3]),
        // A length of 2^62 bytes.
        11 => vec![LAST | opcode::BINARY, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
        // A message of an unknown kind.
        12 => masked(LAST | opcode::BINARY, &[77]),
        _ => {
            let mut dice = split_mix(number);
            (0..200).map(|_| dice().to_le_bytes()[0]).collect()
        }
    }
}

/// A frame; short lengths alone are needed.
fn frame(first: u8, content: &[u8], is_masked: bool) -> Vec<u8> {
    let mask_bit = if is_masked { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match u8::try_from(content.len()) {
        Ok(short @ 0..=125) => bytes.push(mask_bit | short),
        _ => {
            let length = u16::try_from(content.len()).expect("contents here are short");
            bytes.push(mask_bit | 126);
            bytes.extend(length.to_be_bytes());
        }
    }
    if is_masked {
        bytes.extend(MASK);
        bytes.extend(content.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    } else {
        bytes.extend(content);
    }
    bytes
}
