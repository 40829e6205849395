//! The requests that the leading director answers.

use std::time::Duration;

use annals_director::{GrantError, Upgrade};
use annals_ids::{OwnerId, ProcessId};
use annals_wire::control::{self, BUS_VERSION, DirectorAsk, DirectorRequest, IdBlock, Orders, Register, Registered};

use super::{ALL_REPORTS_AFTER, Leader, monotonic};
use crate::{clock, nats::Bus};

impl Leader {
    /// Answers a request, if it asks for an answer.
    pub(super) async fn reply(&mut self, bus: &Bus, request: async_nats::Message) -> Result<(), GrantError> {
        let Some(reply) = request.reply else { return Ok(()) };
        self.attend();
        if let Some(answer) = self.answer(&request.payload).await?
            && let Err(error) = bus.client().publish(reply, answer.into()).await
        {
            tracing::warn!(%error, "could not send an answer");
        }
        Ok(())
    }

    /// Answers a request for a list. Anything else gets no answer, and changes nothing.
    pub(super) async fn list(&self, bus: &Bus, request: async_nats::Message) {
        let Some(reply) = request.reply else { return };
        let asked = control::decode::<DirectorRequest>(&request.payload).map(|request| request.ask);
        let answer = match asked {
            Ok(Some(DirectorAsk::Cells(_))) => control::encode(&self.cells()),
            Ok(Some(DirectorAsk::Processes(_))) => control::encode(&self.processes()),
            Ok(_) => return tracing::warn!("ignored a request for lists that asks for something else"),
            Err(error) => return tracing::warn!(%error, "ignored a malformed request for lists"),
        };
        if let Err(error) = bus.client().publish(reply, answer.into()).await {
            tracing::warn!(%error, "could not send an answer");
        }
    }

    /// `None` if there is no answer yet, or the request cannot be decoded, which a message here reports.
    async fn answer(&mut self, payload: &[u8]) -> Result<Option<Vec<u8>>, GrantError> {
        let request: DirectorRequest = match control::decode(payload) {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(%error, "ignored a malformed request");
                return Ok(None);
            }
        };
        Ok(match request.ask {
            Some(DirectorAsk::Register(register)) => Some(control::encode(&self.register(&register).await?)),
            Some(DirectorAsk::Beat(beat)) if beat.leaving => {
                let process = ProcessId(beat.process);
                tracing::info!(%process, service = beat.service, "left");
                self.membership.leave(process);
                self.lifecycle.left(process);
                self.services.remove(&process);
                if self.drains.remove(&process) {
                    self.left.insert(process);
                }
                // Its owners can be granted without waiting for silence, unless another process may be planned.
                if self.grants_now() {
                    self.decide().await?;
                }
                Some(control::encode(&Orders::default()))
            }
            Some(DirectorAsk::Beat(beat)) => {
                if let Err(duplicate) = self.handle_beat(&beat) {
                    tracing::error!("{duplicate}");
                    return Ok(Some(control::encode(&Orders {
                        refused: duplicate.to_string(),
                        ..Orders::default()
                    })));
                }
                if !beat.released.is_empty() && self.grants_now() {
                    self.decide().await?;
                }
                Some(control::encode(&self.orders(&beat)))
            }
            Some(DirectorAsk::MoreIds(_)) => {
                let ids = self.grants.more_ids().await?;
                Some(control::encode(&IdBlock {
                    from: ids.start,
                    to: ids.end,
                }))
            }
            Some(DirectorAsk::PlaceSession(asked)) => Some(control::encode(&self.place(asked))),
            Some(DirectorAsk::SettleRoom(settled)) => Some(control::encode(&self.settle(settled))),
            Some(DirectorAsk::Locate(locate)) => Some(control::encode(&self.locate(Some(OwnerId(locate.owner))))),
            Some(DirectorAsk::Stop(ask)) => Some(control::encode(&self.stop(&ask))),
            Some(DirectorAsk::Cells(_)) => Some(control::encode(&self.cells())),
            Some(DirectorAsk::Drain(_) | DirectorAsk::Processes(_)) if !self.has_all_reports(monotonic()) => None,
            Some(DirectorAsk::Drain(ask)) => Some(control::encode(&self.drain(&ask))),
            Some(DirectorAsk::Processes(_)) => Some(control::encode(&self.processes())),
            Some(DirectorAsk::Upgrade(ask)) => Some(control::encode(&self.upgrade(&ask).await?)),
            None => {
                tracing::warn!("ignored a request of a newer release: upgrade the director first");
                None
            }
        })
    }

    /// Whether every live process has reported to it. Until then an operator's command asks again.
    pub(super) fn has_all_reports(&self, now: Duration) -> bool {
        now.saturating_sub(self.since) >= ALL_REPORTS_AFTER
    }

    async fn register(&self, register: &Register) -> Result<Registered, GrantError> {
        if register.bus != BUS_VERSION {
            let refused = format!(
                "its messages are of version {}, and those of the realm's director of version {BUS_VERSION}: releases \
                 between which the version changes cannot be mixed; stop the realm, and start it with one release",
                register.bus
            );
            return Ok(Registered {
                process: 0,
                world: 0,
                wall: 0,
                refused,
            });
        }
        let is_next = |upgrade: &Upgrade| register.schema == upgrade.to().0;
        if register.schema != self.realm.schema.0 && !self.upgrade.as_ref().is_some_and(is_next) {
            let refused = format!(
                "the realm runs on schema {}, and this {} was started with another: start it with the same definitions, \
                 or prepare the change with `annals realm upgrade`",
                self.realm.schema, register.service
            );
            return Ok(Registered {
                process: 0,
                world: 0,
                wall: 0,
                refused,
            });
        }
        let process = self.grants.register().await?;
        tracing::info!(%process, service = register.service, "registered");
        Ok(Registered {
            process: process.0,
            world: self.clock.now().world.0,
            wall: clock::wall().0,
            refused: String::new(),
        })
    }
}
