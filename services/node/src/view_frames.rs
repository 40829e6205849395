//! Frames of a view: items for one client, packed and numbered (rule V3). Used by witnesses and proxies.

use annals_ids::{Part, Tick};
use annals_wire::client::{ToClient, ViewFrame, ViewItem};

/// Bytes of values after which a frame is closed and another begun, so that each frame stays far below the limit of
/// clients.
pub(crate) const FRAME_BYTES: usize = 256 << 10;

/// Frames of one view that a client has opened.
#[derive(Debug)]
pub struct ViewFrames {
    source: Part,
    view: u64,
    sequence: u64,
}

impl ViewFrames {
    /// A view under the number that the client chose.
    #[must_use]
    pub fn new(source: Part, view: u64) -> Self {
        Self {
            source,
            view,
            sequence: 0,
        }
    }

    /// The view's number, chosen by the client.
    #[must_use]
    pub fn view(&self) -> u64 {
        self.view
    }

    /// Packs items into frames, at least one: an empty frame says that the view has begun, or continues.
    #[must_use]
    pub fn of(&mut self, tick: Tick, items: Vec<ViewItem>) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for item in items {
            let more = item.about_bytes();
            if bytes > 0 && bytes + more > FRAME_BYTES {
                frames.push(self.frame(tick, std::mem::take(&mut gathered)));
                bytes = 0;
            }
            bytes += more;
            gathered.push(item);
        }
        frames.push(self.frame(tick, gathered));
        frames
    }

    fn frame(&mut self, tick: Tick, items: Vec<ViewItem>) -> Vec<u8> {
        self.sequence += 1;
        let frame = ViewFrame {
            source: self.source,
            view: self.view,
            sequence: self.sequence,
            tick,
            items,
        };
        let mut body = Vec::new();
        ToClient::View(frame).write(&mut body);
        body
    }
}
