//! Stands in for a cell owner: takes calls in order, once each, and reports where its parts are.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_event::{Call, ClientLink, FormerCell, Link, Links, Sent};
use annals_ids::{Address, CallNumber, EntityId, Epoch, HistoryNumber, MemberId, OwnerId, SpaceId};
use annals_wire::bus::{CallMessage, Envelope, Message, ViewMessage};

use crate::{
    game::AVATAR,
    host::{BASE, Host},
};

#[derive(Default)]
pub(crate) struct Cell {
    owner: OwnerId,
    taken: BTreeMap<Link, CallNumber>,
    /// Reports of its parts to their homes that are not acknowledged.
    unconfirmed: BTreeMap<(EntityId, CallNumber), Option<OwnerId>>,
    last: BTreeMap<EntityId, CallNumber>,
    /// Calls to the base owner that are not acknowledged.
    returned: BTreeMap<CallNumber, Call>,
    last_returned: CallNumber,
    /// The former cell parts that creations named, in order, and the properties that they were given.
    pub(crate) continued: Vec<Option<FormerCell>>,
    pub(crate) properties: BTreeMap<EntityId, BTreeMap<MemberId, Value>>,
    /// Whether the state of a part that has ended returns to its base part.
    pub(crate) withholds: bool,
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
                for answer in self.receive(envelope.message) {
                    host.receive(answer);
                }
            }
            host.settle();
        }
        panic!("base and cell do not become idle");
    }

    /// Handles one message and returns its answers.
    pub(crate) fn receive(&mut self, message: Message) -> Vec<Envelope> {
        match message {
            Message::Call(call) => self.take(call),
            Message::Took { link, upto } => {
                let Some((entity, _)) = link.from.entity() else {
                    self.returned.retain(|number, _| *number > upto);
                    return Vec::new();
                };
                let before = self.unconfirmed.len();
                self.unconfirmed
                    .retain(|(of, number), _| *of != entity || *number > upto);
                let is_settled = before > 0 && self.unconfirmed.keys().all(|(of, _)| *of != entity);
                let has_ended = is_settled && !self.parts.contains_key(&entity);
                let returns = has_ended && !self.withholds;
                returns.then(|| self.say_returned(entity)).into_iter().collect()
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
        let said = said.map(|((entity, number), at)| self.placed(*entity, *number, *at));
        let returned = self.returned.iter();
        said.chain(returned.map(|(number, call)| self.own(*number, call.clone())))
            .collect()
    }

    /// The state of a part that has ended returns to its base part.
    pub(crate) fn say_returned(&mut self, entity: EntityId) -> Envelope {
        let (base, cell) = (Address::Base(entity), Address::Cell(entity));
        let link = Link { from: base, to: cell };
        let mut links = Links::default();
        links.sent.insert(
            base,
            Sent {
                home: BASE,
                last: self.last.get(&entity).copied().unwrap_or_default(),
                unconfirmed: BTreeMap::new(),
            },
        );
        links.taken.extend(self.taken.get(&link).map(|taken| (base, *taken)));
        let former = FormerCell {
            history: HistoryNumber(39 + self.made as u64),
            links,
        };
        let call = Call::CellEnded {
            entity,
            type_id: AVATAR,
            former: Box::new(former),
            properties: self.properties.get(&entity).cloned().unwrap_or_default(),
        };
        self.last_returned = self.last_returned.next();
        self.returned.insert(self.last_returned, call.clone());
        self.own(self.last_returned, call)
    }

    fn own(&self, number: CallNumber, call: Call) -> Envelope {
        self.envelope(Message::Call(CallMessage {
            link: Link {
                from: Address::Owner(self.owner),
                to: Address::Owner(BASE),
            },
            from_home: self.owner,
            to_home: BASE,
            number,
            is_oldest: false,
            trace: [0; 16],
            call,
        }))
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.unconfirmed.is_empty() && self.returned.is_empty()
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
                self.properties
                    .insert(creation.entity, creation.properties.into_iter().collect());
                self.continued.push(creation.former.map(|former| *former));
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
