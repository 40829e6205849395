//! Downloads: content that a base sends beside play. There is one at a time.

use std::collections::VecDeque;

use annals_ids::{EntityId, Hash};
use annals_wire::client::{DownloadBegun, DownloadChunk, DownloadId, DownloadProgress, ToServer};
use sha2::{Digest, Sha256};

use crate::{
    event::{Event, Millis},
    session::ClientCore,
};

/// Minimum time between two answers to chunks, milliseconds. Chunks come in slots of that length.
const ANSWERED_EVERY: u64 = 100;

/// Maximum whole downloads that are remembered: more than a client gets while one base after the other dies.
const MAX_WHOLE: usize = 16;

/// A chunk that contradicts its download: content beyond the download's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongChunk;

/// The download that comes, and those that came last.
#[derive(Debug, Default)]
pub(crate) struct Downloads {
    partial: Option<Partial>,
    /// The newest whole ones: the base may begin one again if it did not learn that it is whole.
    whole: VecDeque<DownloadBegun>,
}

#[derive(Debug)]
struct Partial {
    begun: DownloadBegun,
    content: Vec<u8>,
    /// Of the content, as it came: the whole is too long to be hashed at once.
    hasher: Sha256,
    answered: Millis,
    /// When the next answer is due, if chunks came after the last one.
    answer_due: Option<Millis>,
}

impl Partial {
    fn has_all(&self) -> bool {
        self.content.len() as u64 == self.begun.size
    }

    fn answer(&mut self, now: Millis) -> DownloadProgress {
        (self.answered, self.answer_due) = (now, None);
        DownloadProgress {
            id: self.begun.id,
            upto: self.content.len() as u64,
        }
    }

    fn progressed(&self) -> Event {
        Event::DownloadProgressed {
            id: self.begun.id,
            description: self.begun.description.clone(),
            received: self.content.len() as u64,
            size: self.begun.size,
        }
    }
}

impl Downloads {
    /// Takes the beginning of a download on this connection; returns the answer.
    pub(crate) fn begun(
        &mut self,
        now: Millis,
        begun: DownloadBegun,
        events: &mut VecDeque<Event>,
    ) -> DownloadProgress {
        let id = begun.id;
        if self.whole.contains(&begun) {
            let upto = begun.size;
            return DownloadProgress { id, upto };
        }
        let before = self.partial.take();
        let ended = before
            .as_ref()
            .map(|before| before.begun.id)
            .filter(|before| *before != id);
        events.extend(ended.map(Event::DownloadEnded));
        // Content that has changed meanwhile has another hash, and begins again.
        let kept = before.filter(|before| before.begun == begun);
        let mut partial = kept.unwrap_or_else(|| Partial {
            begun,
            content: Vec::new(),
            hasher: Sha256::new(),
            answered: now,
            answer_due: None,
        });
        let answer = partial.answer(now);
        events.push_back(partial.progressed());
        self.partial = Some(partial);
        self.finish(now, events).unwrap_or(answer)
    }

    /// Takes a chunk; returns an answer if one is due.
    pub(crate) fn take(
        &mut self,
        now: Millis,
        chunk: &DownloadChunk,
        events: &mut VecDeque<Event>,
    ) -> Result<Option<DownloadProgress>, WrongChunk> {
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.begun.id == chunk.id) else {
            // It was under way when another download began.
            return Ok(None);
        };
        if chunk.offset + chunk.content.len() as u64 > partial.begun.size {
            return Err(WrongChunk);
        }
        if chunk.offset != partial.content.len() as u64 {
            // Chunks are not in order with other frames. After content was dropped with its entity, a chunk may come
            // that was sent before the base had the answer to the new beginning. That answer says what is missing.
            return Ok(None);
        }
        partial.content.extend_from_slice(&chunk.content);
        partial.hasher.update(&chunk.content);
        partial.answer_due.get_or_insert(partial.answered.after(ANSWERED_EVERY));
        Ok(self.finish(now, events).or_else(|| self.answer(now, events)))
    }

    /// Ends the download if all of it is here; returns the answer.
    fn finish(&mut self, now: Millis, events: &mut VecDeque<Event>) -> Option<DownloadProgress> {
        let mut partial = self.partial.take_if(|partial| partial.has_all())?;
        if Hash(partial.hasher.finalize_reset().into()) != partial.begun.hash {
            // What was kept does not continue what came: it is sent again, from the beginning.
            partial.content.clear();
            let answer = partial.answer(now);
            self.partial = Some(partial);
            return Some(answer);
        }
        let answer = partial.answer(now);
        let Partial { begun, content, .. } = partial;
        events.push_back(Event::Downloaded {
            id: begun.id,
            description: begun.description.clone(),
            content,
        });
        self.whole.push_back(begun);
        if self.whole.len() > MAX_WHOLE {
            self.whole.pop_front();
        }
        Some(answer)
    }

    /// The answer to chunks, if it is due.
    pub(crate) fn answer(&mut self, now: Millis, events: &mut VecDeque<Event>) -> Option<DownloadProgress> {
        let partial = self.partial.as_mut()?;
        partial.answer_due.filter(|due| *due <= now)?;
        let answer = partial.answer(now);
        events.push_back(partial.progressed());
        Some(answer)
    }

    /// When an answer is due.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.partial.as_ref()?.answer_due
    }

    /// The connection is lost: nothing is said before the base names the download again.
    pub(crate) fn pause(&mut self) {
        if let Some(partial) = &mut self.partial {
            partial.answer_due = None;
        }
    }

    /// The base sends no more of it.
    pub(crate) fn ended(&mut self, id: DownloadId, events: &mut VecDeque<Event>) {
        let ended = self.partial.take_if(|partial| partial.begun.id == id);
        events.extend(ended.map(|_| Event::DownloadEnded(id)));
    }

    /// The client controls this entity from now on, and gets its downloads.
    pub(crate) fn controls(&mut self, entity: EntityId, events: &mut VecDeque<Event>) {
        let ended = self.partial.take_if(|partial| partial.begun.id.entity != entity);
        events.extend(ended.map(|partial| Event::DownloadEnded(partial.begun.id)));
    }
}

impl ClientCore {
    pub(crate) fn download_begun(&mut self, now: Millis, begun: DownloadBegun) {
        let answer = self.downloads.begun(now, begun, &mut self.events);
        self.send(&ToServer::DownloadProgress(answer));
    }

    /// Takes a chunk.
    ///
    /// # Errors
    /// If it contradicts its download.
    pub(crate) fn download_chunk(&mut self, now: Millis, chunk: &DownloadChunk) -> Result<(), WrongChunk> {
        if let Some(answer) = self.downloads.take(now, chunk, &mut self.events)? {
            self.send(&ToServer::DownloadProgress(answer));
        }
        Ok(())
    }

    /// Answers chunks, if that is due.
    pub(crate) fn answer_download(&mut self, now: Millis) {
        if let Some(answer) = self.downloads.answer(now, &mut self.events) {
            self.send(&ToServer::DownloadProgress(answer));
        }
    }
}
