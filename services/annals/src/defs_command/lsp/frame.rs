//! Messages on a pipe, read and written by `lsp-server`.
//!
//! The reader of `lsp-server` allocates whatever size a header states, and ends at the first malformed message. So each
//! frame is bounded before that reader gets it, and after malformed input reading continues with the next frame: only
//! the end of the pipe ends the session.

use std::io::{self, BufRead, Read as _, Write};

use lsp_server::Message;
use serde::de::IgnoredAny;
use serde_json::json;

/// Maximum size of a message, bytes: an open file of 8 MiB with every character escaped.
pub(super) const MAX_MESSAGE: u64 = 64 << 20;

/// Maximum length of a header line, bytes.
const MAX_HEADER_LINE: u64 = 4_096;

/// Maximum lines of a header: the protocol defines two.
const MAX_HEADER_LINES: usize = 32;

/// The result of a read.
#[derive(Debug)]
pub(super) enum Frame {
    /// A message, and its size in bytes.
    Message { message: Message, bytes: u64 },
    /// Malformed input, and the reason.
    Malformed(Malformed),
}

/// Why input is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// Its header has no length.
    #[error("the header has no Content-Length")]
    NoLength,
    /// Its header does not end.
    #[error("the header has more than {MAX_HEADER_LINES} lines")]
    LongHeader,
    /// It exceeds the maximum size.
    #[error("the message is longer than {MAX_MESSAGE} bytes")]
    TooLong,
    /// It is not JSON.
    #[error("the message is not JSON")]
    NotJson,
    /// It is JSON, but neither a request nor a response nor a notification.
    #[error("the message is neither a request nor a response nor a notification")]
    NotMessage,
}

impl Malformed {
    /// The protocol's error code.
    fn code(self) -> i32 {
        match self {
            Self::NoLength | Self::LongHeader | Self::TooLong | Self::NotJson => {
                lsp_server::ErrorCode::ParseError as i32
            }
            Self::NotMessage => lsp_server::ErrorCode::InvalidRequest as i32,
        }
    }
}

/// The next message, or malformed input; `None` at the end.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Frame>> {
    let length = match read_header(input)? {
        Some(Ok(length)) => length,
        Some(Err(malformed)) => return Ok(Some(Frame::Malformed(malformed))),
        None => return Ok(None),
    };
    if length > MAX_MESSAGE {
        io::copy(&mut input.take(length), &mut io::sink())?;
        return Ok(Some(Frame::Malformed(Malformed::TooLong)));
    }
    let mut body = Vec::new();
    if input.take(length).read_to_end(&mut body)? as u64 != length {
        return Ok(None);
    }
    let header = format!("Content-Length: {length}\r\n\r\n");
    Ok(Some(match Message::read(&mut header.as_bytes().chain(&body[..])) {
        Ok(Some(message)) => Frame::Message { message, bytes: length },
        // It reads from memory, so every error is one of the message.
        Ok(None) | Err(_) => Frame::Malformed(match serde_json::from_slice::<IgnoredAny>(&body) {
            Ok(_) => Malformed::NotMessage,
            Err(_) => Malformed::NotJson,
        }),
    }))
}

/// The length in a header, or why there is none; `None` at the end.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<Result<u64, Malformed>>> {
    let mut length = Err(Malformed::NoLength);
    let mut lines = 0;
    loop {
        let mut line = Vec::new();
        input.take(MAX_HEADER_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok((lines > 0).then_some(length));
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim_end() {
            "" if lines > 0 => return Ok(Some(length)),
            // Blank lines between messages are ignored.
            "" => {}
            // The rest is read as a new header.
            _ if lines == MAX_HEADER_LINES => return Ok(Some(Err(Malformed::LongHeader))),
            line => {
                lines += 1;
                if let Some((name, value)) = line.split_once(':')
                    && name.trim().eq_ignore_ascii_case("Content-Length")
                {
                    length = value.trim().parse().map_err(|_| Malformed::NoLength);
                }
            }
        }
    }
}

/// Writes a message.
pub(super) fn write(output: &mut impl Write, message: &Message) -> io::Result<()> {
    message.write(output)
}

/// Answers malformed input, whose request id is unknown.
pub(super) fn refuse(output: &mut impl Write, malformed: Malformed) -> io::Result<()> {
    let error = json!({ "code": malformed.code(), "message": malformed.to_string() });
    let text = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_messages_are_skipped() {
        let good = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let good = format!("Content-Length: {}\r\n\r\n{good}", good.len());
        let bad = [
            ("Content-Length: 3\r\n\r\n{x}".to_owned(), Malformed::NotJson),
            ("Content-Length: 2\r\n\r\n[]".to_owned(), Malformed::NotMessage),
            ("Content-Length: 4\r\n\r\nnull".to_owned(), Malformed::NotMessage),
            ("Content-Length: 1\r\n\r\n\u{7f}".to_owned(), Malformed::NotJson),
            ("Content-Length: -1\r\n\r\n".to_owned(), Malformed::NoLength),
            ("nonsense\r\n\r\n".to_owned(), Malformed::NoLength),
            ("A: b\r\n".repeat(MAX_HEADER_LINES + 1), Malformed::LongHeader),
            (
                format!(
                    "Content-Length: {}\r\n\r\n{}",
                    MAX_MESSAGE + 1,
                    " ".repeat(MAX_MESSAGE as usize + 1)
                ),
                Malformed::TooLong,
            ),
        ];
        for (bad, expected) in bad {
            let text = format!("{bad}{good}");
            let mut input = text.as_bytes();
            match read(&mut input).expect("memory can be read") {
                Some(Frame::Malformed(found)) => assert_eq!(found, expected),
                other => panic!("{other:?}"),
            }
            match read(&mut input).expect("memory can be read") {
                Some(Frame::Message {
                    message: Message::Notification(exit),
                    bytes,
                }) => assert_eq!((exit.method.as_str(), bytes), ("exit", 33)),
                other => panic!("{other:?}"),
            }
            assert!(read(&mut input).expect("memory can be read").is_none());
        }
        assert!(
            read(&mut &b"Content-Length: 10\r\n\r\n{}"[..])
                .expect("memory can be read")
                .is_none()
        );
    }
}
