//! Handling of frames and datagrams while a session plays.

use annals_ids::{EntityId, Part, TypeId};
use annals_wire::client::{CloseReason, ToClient, ToClientDatagram, ToServer, ViewFrame, volatile::KIND};

use crate::{
    downloads::WrongChunk,
    event::{EndReason, Event, Millis, Output},
    session::{ClientCore, Next, is_final},
    view::{Taken, ViewGap},
};

impl ClientCore {
    /// The client controls another entity: both views belong to the former one, and are cleared.
    pub(crate) fn controls_another(&mut self, entity: EntityId, type_id: TypeId) {
        self.views.base.clear(&mut self.events);
        self.views.cell.clear(&mut self.events);
        self.downloads.controls(entity, &mut self.events);
        self.sent_moves.clear();
        // The entity may have no cell part, and so no view that could be silent.
        self.update_gaps.closed();
        self.events.push_back(Event::Controls { entity, type_id });
    }

    pub(crate) fn begin_view(&mut self, now: Millis, source: Part) {
        let own = self.controls().map(|(entity, _)| entity);
        let near = own
            .and_then(|entity| self.views.cell.entities().get(&entity)?.place)
            .map(|(position, _)| position)
            .unwrap_or_default();
        if source == Part::Cell {
            self.held_ack.discard();
        }
        let view = self.views.get_mut(source);
        let stamps = view.begin(now, (own, near), &mut self.events);
        self.send(&ToServer::Stamps(stamps));
    }

    pub(crate) fn take_frame(&mut self, now: Millis, body: &[u8]) {
        self.count(body);
        match ToClient::read(body) {
            Ok(ToClient::Took { entity, part, upto }) => {
                self.calls.took(now, entity, part, upto);
                for call in self.calls.sendable(now, entity, part) {
                    self.send(&ToServer::Call(call));
                }
            }
            Ok(ToClient::Gap { entity, part, have }) => {
                for call in self.calls.gap(now, entity, part, have) {
                    self.send(&ToServer::Call(call));
                }
            }
            Ok(ToClient::Gone { entity, part }) => {
                let numbers = self.calls.gone(entity, part);
                if !numbers.is_empty() {
                    self.events.push_back(Event::CallsLost { entity, part, numbers });
                }
            }
            Ok(ToClient::Refused {
                entity,
                part,
                number,
                reason,
            }) => {
                self.events.push_back(Event::CallRefused {
                    entity,
                    part,
                    number,
                    reason,
                });
            }
            Ok(ToClient::View(frame)) => self.take_view_frame(now, frame),
            Ok(ToClient::StampsWanted { source }) => self.begin_view(now, source),
            Ok(ToClient::Reset { entity, type_id }) => {
                if let Some(session) = &mut self.session {
                    session.controls = Some((entity, type_id));
                }
                self.controls_another(entity, type_id);
                self.begin_view(now, Part::Base);
                self.begin_view(now, Part::Cell);
            }
            Ok(ToClient::RateWarned) => self.events.push_back(Event::RateWarned),
            Ok(ToClient::Moving(located)) => self.prepare(now, located),
            Ok(ToClient::Banned(ban)) => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Finished));
                self.banned(ban);
            }
            Ok(ToClient::DownloadBegun(begun)) => self.download_begun(now, begun),
            Ok(ToClient::DownloadChunk(chunk)) => match self.download_chunk(now, &chunk) {
                Ok(()) => {}
                Err(WrongChunk) => self.take_malformed(now),
            },
            Ok(ToClient::DownloadEnded(id)) => self.downloads.ended(id, &mut self.events),
            Ok(ToClient::Given(owner)) => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Moved));
                self.follow(now, owner);
            }
            Err(_) => self.take_malformed(now),
        }
    }

    /// The base has sent what it must not: the client connects again.
    fn take_malformed(&mut self, now: Millis) {
        self.counters.malformed += 1;
        self.outputs.push_back(Output::Disconnect(CloseReason::Malformed));
        self.lost(now, CloseReason::Lost);
    }

    fn take_view_frame(&mut self, now: Millis, frame: ViewFrame) {
        let source = frame.source;
        match self
            .views
            .get_mut(source)
            .apply(now, &self.schema, frame, &mut self.events)
        {
            Ok(Taken::Applied) if source == Part::Cell => self.update_gaps.received(now),
            Ok(Taken::Applied) => {}
            Ok(Taken::Stale) => self.counters.stale += 1,
            Err(ViewGap) => {
                self.counters.view_gaps += 1;
                self.begin_view(now, source);
            }
        }
    }

    pub(crate) fn take_datagram(&mut self, now: Millis, bytes: &[u8]) {
        self.count(bytes);
        self.counters.moves_bytes += bytes.len() as u64;
        let Some((own, _)) = self.controls() else {
            return;
        };
        let taken = if bytes.first() == Some(&KIND) {
            let taken = self.views.cell.apply_predicted(bytes, own);
            taken.ok().map(|(taken, ack)| {
                let view = self.views.cell.number();
                ack.into_iter().for_each(|ack| self.held_ack.hold(now, view, ack));
                taken
            })
        } else {
            let read = ToClientDatagram::read(bytes);
            read.ok()
                .map(|ToClientDatagram::Moves(moves)| self.views.cell.apply_moves(&moves, own))
        };
        match taken {
            Some(Taken::Applied) => self.update_gaps.received(now),
            Some(Taken::Stale) => self.counters.stale += 1,
            None => self.counters.malformed += 1,
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.counters.received += 1;
        self.counters.received_bytes += bytes.len() as u64;
    }

    /// The connection on which the client played was lost.
    pub(crate) fn lost(&mut self, now: Millis, reason: CloseReason) {
        if is_final(reason) {
            return self.end(EndReason::Closed(reason));
        }
        self.pause_views();
        self.downloads.pause();
        if let Some(next) = self.take_next() {
            return self.wait_for(now, &next);
        }
        self.events.push_back(Event::Lost(reason));
        self.try_next(now, Next::Locate);
    }

    /// Nothing arrives for the views until they begin again.
    pub(crate) fn pause_views(&mut self) {
        self.views.base.pause();
        self.views.cell.pause();
        self.held_ack.discard();
    }

    pub(crate) fn send(&mut self, frame: &ToServer) {
        let mut body = Vec::new();
        frame.write(&mut body);
        self.outputs.push_back(Output::Frame(body));
    }
}
