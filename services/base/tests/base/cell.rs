//! Stands in for a cell owner: takes calls in order, once each, and reports where its parts are.

use std::collections::BTreeMap;

use annals_event::{Call, ClientLink, Link};
use annals_ids::{Address, CallNumber, EntityId, Epoch, OwnerId, SpaceId};
use annals_wire::bus::{CallMessage, Envelope, Message, ViewMessage};

use crate::host::{BASE, Host};

#[derive(Default)]
pub(crate) struct Cell {
    owner: OwnerId,
    taken: BTreeMap<Link, CallNumber>,
    /// Reports of its parts to their homes that are not acknowledged.
    unconfirmed: BTreeMap<(EntityId, CallNumber), Option<OwnerId>>,
    last: BTreeMap<EntityId, CallNumber>,
    pub(crate) parts: BTreeMap<EntityId, Option<ClientLink>>,
    /// Clients' calls that were taken, in order.
    pub(crate) exposed: Vec<(Link, CallNumber, Vec<u8>)>,
    pub(crate) views: Vec<ViewMessage>,
    /// Number of parts ever created.
    pub(crate) made: usize,
    /// Spaces opened, each with the number of parts created before.
    pub(crate) opened: Vec<(SpaceId, usize)>,
}

impl Cell {
    pub(crate) fn new(owner: OwnerId) -> Self {
        Self {
            owner,
            ..Self::default()
        }
    }

    /// Handles all messages that the base sent here, and answers.
    pub(crate) fn work(&mut self, host: &mut Host) {
        for _ in 0..20 {
            if host.sent.is_empty() {
                return;
            }
            for (to, envelope) in std::mem::take(&mut host.sent) {
                assert_eq!(to, self.owner);
                for answer in self.hear(envelope.message) {
                    host.hear(answer);
                }
            }
            host.settle();
        }
        panic!("base and cell do not become idle");
    }

    /// Handles one message and returns its answers.
    pub(crate) fn hear(&mut self, message: Message) -> Vec<Envelope> {
        match message {
            Message::Call(call) => self.take(call),
            Message::Took { link, upto } => {
                let (entity, _) = link.from.entity().unwrap();
                self.unconfirmed
                    .retain(|(of, number), _| *of != entity || *number > upto);
                Vec::new()
            }
            Message::Gap { .. } => self.repeat(),
            Message::View(view) => {
                self.views.push(view);
                Vec::new()
            }
            Message::Gone { .. } => {
                self.unconfirmed.clear();
                Vec::new()
            }
            other => panic!("{other:?} is not sent to cells"),
        }
    }

    /// Resends the reports that are not acknowledged.
    pub(crate) fn repeat(&self) -> Vec<Envelope> {
        let said = self.unconfirmed.iter();
        said.map(|((entity, number), at)| self.placed(*entity, *number, *at))
            .collect()
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// The part has moved to another owner, which reports it.
    pub(crate) fn say_placed(&mut self, entity: EntityId, at: Option<OwnerId>) -> Envelope {
        let number = self.last.entry(entity).or_default().next();
        self.last.insert(entity, number);
        self.unconfirmed.insert((entity, number), at);
        self.placed(entity, number, at)
    }

    pub(crate) fn envelope(&self, message: Message) -> Envelope {
        Envelope {
            from: self.owner,
            epoch: Epoch(1),
            message,
        }
    }

    fn take(&mut self, message: CallMessage) -> Vec<Envelope> {
        let CallMessage { link, number, call, .. } = message;
        let here = match link.to {
            Address::Owner(owner) => owner == self.owner,
            Address::Cell(entity) => self.parts.contains_key(&entity) || self.taken.contains_key(&link),
            _ => false,
        };
        if !here {
            return Vec::new();
        }
        let taken = self.taken.entry(link).or_default();
        if number > taken.next() {
            let have = *taken;
            return vec![self.envelope(Message::Gap { link, have })];
        }
        let is_new = number == taken.next();
        *taken = number.max(*taken);
        let upto = *taken;
        let mut answers = if is_new {
            self.carry_out(link, number, call)
        } else {
            Vec::new()
        };
        answers.push(self.envelope(Message::Took { link, upto }));
        answers
    }

    fn carry_out(&mut self, link: Link, number: CallNumber, call: Call) -> Vec<Envelope> {
        match (call, link.to) {
            (Call::CreateCell(creation), _) => {
                self.made += 1;
                self.parts.insert(creation.entity, creation.client);
                vec![self.say_placed(creation.entity, Some(self.owner))]
            }
            (Call::OpenSpace(space), _) => {
                self.opened.push((space, self.made));
                Vec::new()
            }
            (Call::DestroyCell, Address::Cell(entity)) => {
                self.parts.remove(&entity);
                vec![self.say_placed(entity, None)]
            }
            (Call::Witness(client), Address::Cell(entity)) => {
                self.parts.insert(entity, client);
                Vec::new()
            }
            (Call::Exposed { message }, _) => {
                self.exposed.push((link, number, message[1..].to_vec()));
                Vec::new()
            }
            other => panic!("{other:?} is not sent to cells"),
        }
    }

    fn placed(&self, entity: EntityId, number: CallNumber, at: Option<OwnerId>) -> Envelope {
        self.envelope(Message::Call(CallMessage {
            link: Link {
                from: Address::Cell(entity),
                to: Address::Base(entity),
            },
            from_home: BASE,
            to_home: BASE,
            number,
            is_oldest: false,
            trace: [0; 16],
            call: Call::Placed(at),
        }))
    }
}
