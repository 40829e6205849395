//! The outputs of a test realm's owners, carried out as shells would.

use annals_base::{BaseInput, DownloadContent, PreparedDownload};
use annals_client::Input as ClientInput;
use annals_event::Call;
use annals_ids::OwnerId;
use annals_node::{
    ConnectionId, Input, Output,
    download::{Download, DownloadSource},
    inquiry::Answered,
};
use annals_wire::{
    bus::{CallMessage, Message},
    client::{CloseReason, HelloAnswer, Rejection, value_hash},
};

use super::{ASKER, BASE, TestRealm, database::LEDGER};

impl TestRealm {
    /// Performs an owner's outputs, as its shell would.
    pub(super) fn carry_out(&mut self, from: OwnerId, outputs: Vec<Output>) {
        let now = self.now();
        for output in outputs {
            match output {
                Output::Send { to, envelope } if to == BASE => {
                    let out = self.base.give(now, Input::Bus(envelope));
                    self.carry_out(BASE, out);
                }
                Output::Send { to: ASKER, envelope } => {
                    if let Message::Call(CallMessage {
                        call: Call::Reply { outcome, .. },
                        ..
                    }) = envelope.message
                        && self.answers.is_empty()
                    {
                        self.answers.push(outcome);
                    }
                }
                Output::Send { to: LEDGER, envelope } => {
                    let out = self.database.ledger.give(now, Input::Bus(envelope));
                    self.carry_out(LEDGER, out);
                }
                Output::Send { to, envelope } => self.give_cell(to, Input::Bus(envelope)),
                Output::Frame {
                    connection,
                    bytes: body,
                } => {
                    self.give_player(connection, |attempt| ClientInput::Frame { attempt, body });
                }
                Output::Datagram { connection, bytes } => {
                    self.give_player(connection, |attempt| ClientInput::Datagram { attempt, bytes });
                }
                Output::Close { connection, reason } => {
                    if let Some(player) = self.player_on(connection) {
                        self.disconnect(player, reason);
                    }
                }
                Output::Reject { connection, rejection } => self.reject(connection, rejection),
                Output::SessionOpened { request, opened } => self.opened(request, &opened),
                Output::WantIds => panic!("owner {from} has a million ids"),
                Output::Outbound(call) => self.outbound.push(call),
                Output::Download(download) => self.download(download),
                Output::BackgroundFrame {
                    connection,
                    bytes: body,
                } => {
                    self.give_player(connection, |attempt| ClientInput::Frame { attempt, body });
                }
                Output::Inquire {
                    entity,
                    number,
                    inquiry,
                } => self.database.ask(from, (entity, number), inquiry),
                Output::Begun { request, begun } => {
                    if let Some(answer) = self.database.begun(request, begun) {
                        self.give_answer(BASE, answer);
                    }
                }
                Output::Ordered { .. } | Output::SessionsEnded { .. } => {
                    unreachable!("a realm in a test has no operator")
                }
            }
        }
    }

    /// Gives an owner the answer to a query of one of its entities.
    pub(super) fn give_answer(&mut self, owner: OwnerId, answered: Answered) {
        if owner != BASE {
            return self.give_cell(owner, Input::Inquired(answered));
        }
        let now = self.now();
        let out = self.base.give(now, Input::Inquired(answered));
        self.carry_out(BASE, out);
    }

    /// Answers a client's hello, and closes its connection.
    fn reject(&mut self, connection: ConnectionId, rejection: Rejection) {
        let mut body = Vec::new();
        HelloAnswer::Rejected(rejection).write(&mut body);
        self.give_player(connection, |attempt| ClientInput::Frame { attempt, body });
        if let Some(player) = self.player_on(connection) {
            self.disconnect(player, CloseReason::Finished);
        }
    }

    /// Gives the base the content of a download.
    fn download(&mut self, download: Download) {
        let Download {
            id,
            description,
            source,
        } = download;
        let content = match source {
            DownloadSource::Content(content) => Ok(content),
            DownloadSource::File(name) => self
                .files
                .get(&name)
                .cloned()
                .ok_or_else(|| format!("the test has no file {name:?}")),
        };
        let content = content.map(|bytes| DownloadContent {
            hash: value_hash(&bytes),
            bytes: bytes.into(),
        });
        self.give_base(BaseInput::Download(PreparedDownload {
            id,
            description,
            content,
        }));
    }
}
