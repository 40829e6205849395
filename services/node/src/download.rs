//! Downloads: content that a base part sends to its entity's client, beside play.
//!
//! A download is a call on the link from the base part to [`DOWNLOADS`], so it is an event in the log before anything is
//! sent, is part of the state that a take-over carries, and ends once: when a client of the entity has all of it, or
//! with its deadline. The shell provides the content; the base's role sends it, on each connection from where the
//! client has it.

use annals_def::Value;
use annals_event::{Call, Link, Outcome};
use annals_ids::{Address, CallNumber, MemberId, OwnerId};
use annals_wire::client::DownloadId;

use crate::{around::Around, output::Output, owner_context::OwnerContext};

/// The address to which downloads are calls.
pub const DOWNLOADS: Address = Address::Owner(OwnerId::DOWNLOADS);

/// Maximum content of a download that is in the log, bytes. More is sent from a file.
pub const MAX_LOGGED_CONTENT: usize = 256 << 10;

/// Maximum length of a file's name, bytes.
pub const MAX_FILE_NAME: usize = 255;

/// Maximum downloads of an entity that are in its state: those that have not ended, and those that were requested after
/// one that has not.
pub const MAX_DOWNLOADS: usize = 16;

/// A download whose content is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    pub id: DownloadId,
    /// The description that the client receives.
    pub description: String,
    pub source: DownloadSource,
}

/// Where the content of a download is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownloadSource {
    /// In the log.
    Content(Vec<u8>),
    /// In a file, by its path in the folder of downloads that operators have configured.
    File(String),
}

impl DownloadSource {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Content(content) => content.len(),
            Self::File(name) => name.len(),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Content(content) => content.len() <= MAX_LOGGED_CONTENT,
            Self::File(name) => !name.is_empty() && name.len() <= MAX_FILE_NAME,
        }
    }
}

impl Download {
    /// The call as it is recorded.
    pub(crate) fn recorded(description: &str, source: DownloadSource) -> Call {
        let (file, content) = match source {
            DownloadSource::Content(content) => (String::new(), content),
            DownloadSource::File(name) => (name, Vec::new()),
        };
        Call::Method {
            method: MemberId(0),
            args: vec![
                Value::Unicode(description.to_owned()),
                Value::Unicode(file),
                Value::Bytes(content),
            ],
            wants_reply: true,
        }
    }

    /// The download that was recorded as a call.
    pub(crate) fn read(link: Link, number: CallNumber, call: Call) -> Option<Self> {
        let (entity, _) = link.from.entity()?;
        let Call::Method { args, .. } = call else { return None };
        let [Value::Unicode(description), Value::Unicode(file), Value::Bytes(content)] =
            <[Value; 3]>::try_from(args).ok()?
        else {
            return None;
        };
        let source = match file.is_empty() {
            true => DownloadSource::Content(content),
            false => DownloadSource::File(file),
        };
        Some(Self {
            id: DownloadId { entity, number },
            description,
            source,
        })
    }
}

/// The numbers of the downloads of an entity that have not ended, in order.
pub fn open_downloads(image: &annals_event::Image) -> impl Iterator<Item = CallNumber> {
    let awaiting = image.links.awaiting.range((DOWNLOADS, CallNumber(0))..);
    awaiting
        .take_while(|((to, _), _)| *to == DOWNLOADS)
        .map(|((_, number), _)| *number)
}

impl OwnerContext {
    /// Asks the shell for the content of a download. The role asks: it knows which client is to be sent it next.
    pub fn prepare_download(&mut self, id: DownloadId) {
        let link = Link {
            from: Address::Base(id.entity),
            to: DOWNLOADS,
        };
        let sent = self
            .state()
            .links(link.from)
            .and_then(|links| links.sent.get(&DOWNLOADS));
        let call = sent.and_then(|sent| sent.unconfirmed.get(&id.number)).cloned();
        if let Some(download) = call.and_then(|call| Download::read(link, id.number, call)) {
            self.emit(Output::Download(download));
        }
    }

    /// Confirms the downloads of an entity that has ended: its client gets none.
    pub(crate) fn settle_downloads_of_ended(&mut self, link: Link) {
        let is_here = link
            .from
            .entity()
            .is_some_and(|(entity, _)| self.image(entity).is_some());
        if let Some(sent) = self.state().links(link.from).and_then(|links| links.sent.get(&link.to))
            && !is_here
        {
            let last = sent.last;
            self.confirm(link, last);
        }
    }

    /// Whether a download has not ended.
    #[must_use]
    pub fn is_download_open(&self, id: DownloadId) -> bool {
        self.image(id.entity)
            .is_some_and(|image| image.links.awaiting.contains_key(&(DOWNLOADS, id.number)))
    }

    /// Ends a download: a client has all of it, or it cannot be sent. Does nothing if it has ended.
    pub fn end_download(&mut self, around: &dyn Around, id: DownloadId, outcome: &Outcome) {
        if self.is_download_open(id) {
            self.resume(around, id.entity, (DOWNLOADS, id.number), outcome);
        }
    }
}
