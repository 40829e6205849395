//! Splits a stream into frames: a length as LEB128 number, followed by as many bytes.

use annals_event::put_number;
use thiserror::Error;

/// Size of the longest length prefix that any limit allows (bytes).
const LONGEST_LENGTH: usize = 4;
const _: () = assert!(super::MAX_DOWNSTREAM_FRAME < 1 << (7 * LONGEST_LENGTH));

/// A frame is longer than its receiver allows, or its length is not in its shortest form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a frame's length is malformed or above the limit of {limit} bytes; send less in one frame")]
pub struct FrameTooLarge {
    /// The receiver's limit (bytes).
    pub limit: usize,
}

/// Appends `body` as a frame.
///
/// # Errors
/// When it is longer than `limit`; `out` is then unchanged.
pub fn put_frame(out: &mut Vec<u8>, body: &[u8], limit: usize) -> Result<(), FrameTooLarge> {
    if body.len() > limit {
        return Err(FrameTooLarge { limit });
    }
    put_number(out, body.len() as u64);
    out.extend_from_slice(body);
    Ok(())
}

/// Collects the bytes of a stream and returns them as frames. It holds at most one incomplete frame and the bytes
/// pushed last; a length above the limit is rejected before a byte of its frame is stored.
///
/// Call [`FrameBuffer::push`] with the bytes read, then [`FrameBuffer::next_frame`] until it returns none. After an
/// error the stream cannot be read any further.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    taken: usize,
    limit: usize,
}

impl FrameBuffer {
    /// For frames of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            taken: 0,
            limit,
        }
    }

    /// Adds bytes from the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete frame's body, or `None` until more is pushed.
    ///
    /// # Errors
    /// When the next frame is longer than the limit.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameTooLarge> {
        let Some((length, start)) = self.length()? else {
            return Ok(None);
        };
        let Some(end) = start.checked_add(length).filter(|&end| end <= self.bytes.len()) else {
            return Ok(None);
        };
        self.taken = end;
        Ok(Some(&self.bytes[start..end]))
    }

    /// Whether the stream may end here: no frame is incomplete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// The next frame's length and the offset of its body, once the whole length has arrived.
    fn length(&self) -> Result<Option<(usize, usize)>, FrameTooLarge> {
        let wrong = FrameTooLarge { limit: self.limit };
        let mut length = 0;
        for (place, &byte) in self.bytes[self.taken..].iter().enumerate() {
            if place == LONGEST_LENGTH || (byte == 0 && place > 0) {
                return Err(wrong);
            }
            length |= usize::from(byte & 0x7f) << (7 * place);
            if length > self.limit {
                return Err(wrong);
            }
            if byte & 0x80 == 0 {
                return Ok(Some((length, self.taken + place + 1)));
            }
        }
        Ok(None)
    }
}
