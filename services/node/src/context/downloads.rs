//! Downloads to the entity's client, by behaviour.

use annals_ids::CallNumber;
use annals_wire::client::{DownloadId, MAX_DESCRIPTION_BYTES};

use super::{Context, Denied};
use crate::download::{DOWNLOADS, Download, DownloadSource, MAX_DOWNLOADS};

impl Context<'_> {
    /// Sends content to the entity's client beside play (`streamStringToClient`), and calls
    /// [`Behaviour::replied`](crate::Behaviour::replied) with `then` and `note` once the client has all of it, with an
    /// empty list, or else after `timeout_ms`, with [`CallError::NoReply`](annals_event::CallError::NoReply).
    ///
    /// The description says what it is, for the client. Downloads of an entity are sent one after the other, at a
    /// limited rate. A download outlives the connection and the process: it continues where the client has it, and if
    /// the entity has another client by then, that one gets it from the beginning. Returns its number, for
    /// [`Context::cancel_download`].
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// const NEWS: u32 = 1;
    /// own.context.stream_to_client("news", b"It rains.".to_vec(), 60_000, (NEWS, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(2_000);
    /// # assert_eq!(scene.called(), ["replied 1 Ok([])"]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on the cell part; [`Denied::Fragment`] of a service; [`Denied::Download`] if the
    /// description has more than [`MAX_DESCRIPTION_BYTES`] or the content more than
    /// [`MAX_LOGGED_CONTENT`](crate::download::MAX_LOGGED_CONTENT); [`Denied::TooManyDownloads`] if the entity has
    /// [`MAX_DOWNLOADS`] already.
    pub fn stream_to_client(
        &mut self,
        description: &str,
        content: Vec<u8>,
        timeout_ms: u64,
        continuation: (u32, Vec<u8>),
    ) -> Result<CallNumber, Denied> {
        self.download(description, DownloadSource::Content(content), timeout_ms, continuation)
    }

    /// As [`Context::stream_to_client`], of a file in the folder of downloads that operators have configured, of at
    /// most [`MAX_DOWNLOAD_BYTES`](annals_wire::client::MAX_DOWNLOAD_BYTES) (`streamFileToClient`). If it cannot be
    /// read, [`Behaviour::replied`](crate::Behaviour::replied) gets
    /// [`CallError::Internal`](annals_event::CallError::Internal) with the reason.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.realm.files.insert("maps/north.png".to_owned(), vec![7; 1_000]);
    /// # scene.on_base(|own| {
    /// const MAP: u32 = 1;
    /// own.context.stream_file_to_client("map", "maps/north.png", 60_000, (MAP, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(2_000);
    /// # assert_eq!(scene.called(), ["replied 1 Ok([])"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::stream_to_client`]; also [`Denied::Download`] if the path is empty or has more than
    /// [`MAX_FILE_NAME`](crate::download::MAX_FILE_NAME) bytes.
    pub fn stream_file_to_client(
        &mut self,
        description: &str,
        file: &str,
        timeout_ms: u64,
        continuation: (u32, Vec<u8>),
    ) -> Result<CallNumber, Denied> {
        let source = DownloadSource::File(file.to_owned());
        self.download(description, source, timeout_ms, continuation)
    }

    fn download(
        &mut self,
        description: &str,
        source: DownloadSource,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<CallNumber, Denied> {
        self.needs_base("stream to a client")?;
        let entity = self.entity;
        if entity.fragment().is_some() {
            let what = "stream to a client";
            return Err(Denied::Fragment { what, entity });
        }
        if description.len() > MAX_DESCRIPTION_BYTES || !source.is_valid() {
            return Err(Denied::Download { bytes: source.bytes() });
        }
        if then == crate::near::LOCATED {
            return Err(self.unknown(format!("continuation {then}: the highest is {}", then - 1)));
        }
        let image = self.image();
        let kept = image
            .links
            .sent
            .get(&DOWNLOADS)
            .map_or(0, |sent| sent.unconfirmed.len());
        let home = image.home;
        if kept >= MAX_DOWNLOADS {
            return Err(Denied::TooManyDownloads);
        }
        let bytes = source.bytes() + description.len() + note.len();
        self.cx.needs(bytes)?;
        let call = Download::recorded(description, source);
        let number = self.cx.call(self.address(), DOWNLOADS, home, call);
        self.await_reply(DOWNLOADS, number, timeout_ms, (then, note));
        Ok(number)
    }

    /// Ends a download of this entity, if it has not ended: [`Behaviour::replied`](crate::Behaviour::replied) is not
    /// called for it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// let news = own.context.stream_to_client("news", b"It rains.".to_vec(), 60_000, (1, Vec::new()))?;
    /// own.context.cancel_download(news)?;
    /// # Ok(()) });
    /// # scene.pass(2_000);
    /// # assert!(scene.called().is_empty());
    /// ```
    ///
    /// # Errors
    /// [`Denied::Spent`] if too much has been recorded in this call.
    pub fn cancel_download(&mut self, number: CallNumber) -> Result<(), Denied> {
        self.cx.needs(0)?;
        let id = DownloadId {
            entity: self.entity,
            number,
        };
        if self.cx.is_download_open(id) {
            self.cx.end_wait(self.entity, (DOWNLOADS, number));
        }
        Ok(())
    }
}
