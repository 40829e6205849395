//! The server's side with all its faults: a base that is taken over, a witness that loses its state, a bus that loses,
//! duplicates and reorders, and connections that break.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

use annals_client::{Attempt, Input};
use annals_def::Dice;
use annals_ids::{CallNumber, EntityId, Epoch, OwnerId, Part, SessionId, Tick, TypeId};
use annals_wire::client::{
    Call, CloseReason, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal, LoginRequest, Movements, Proof,
    Rejection, Secret, Stamps, Ticket, ToClient, ToServer, ViewFrame, ViewItem, Welcome,
};

use crate::model::world::{OWN, World};

const OWNER: OwnerId = OwnerId(5);

/// Maximum queue of a client; one that lags further is closed, as an edge does.
const MAX_QUEUED: usize = 256;

/// One connection, as the network has it.
#[derive(Debug)]
struct Pipe {
    attempt: Attempt,
    /// The epoch of the process at its other end.
    epoch: Epoch,
    /// Whether the base has welcomed the client on it.
    welcomed: bool,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
}

/// The sender of a view.
#[derive(Debug, Default)]
struct Witness {
    /// The view that was started last, with the number of its last frame and what the client is assumed to have.
    view: Option<(u64, u64, BTreeMap<EntityId, u64>)>,
    quiet_steps: u32,
    /// It does not ask for stamps when it has none: the client must notice by itself.
    mute: bool,
}

pub(crate) struct Server {
    /// Whether faults occur.
    pub(crate) faulty: bool,
    epoch: Epoch,
    session: SessionId,
    tokens: u64,
    /// Secrets that are valid now.
    good: Vec<Proof>,
    pipe: Option<Pipe>,
    base: Witness,
    cell: Witness,
    /// Messages between cells and base, both ways.
    bus: VecDeque<Message>,
    /// Calls that were delivered on each link of the session.
    pub(crate) taken: BTreeMap<(Part, EntityId), Vec<Vec<u8>>>,
    ticks: u64,
    /// Number of faults of each kind, so that none is missed by accident.
    pub(crate) troubles: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug)]
enum Message {
    ToClient(ToClient),
    Stamps(Stamps),
    Call(Call),
}

fn secret(number: u64) -> Secret {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Secret(bytes)
}

fn address(epoch: Epoch) -> SocketAddr {
    ([127, 0, 0, 1], 1_000 + u16::try_from(epoch.0).unwrap()).into()
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            faulty: true,
            epoch: Epoch(1),
            session: SessionId(0),
            tokens: 0,
            good: Vec::new(),
            pipe: None,
            base: Witness::default(),
            cell: Witness::default(),
            bus: VecDeque::new(),
            taken: BTreeMap::new(),
            ticks: 0,
            troubles: BTreeMap::new(),
        }
    }

    /// Whether a fault occurs now, one time in `odds`.
    fn trouble(&mut self, what: &'static str, odds: u64, dice: &mut Dice<'_>) -> bool {
        let comes = self.faulty && dice().is_multiple_of(odds);
        if comes {
            *self.troubles.entry(what).or_default() += 1;
        }
        comes
    }

    fn located(&self, epoch: Epoch) -> Located {
        Located {
            owner: OWNER,
            epoch,
            address: address(epoch),
            certificate: None,
        }
    }

    /// The login service's answer; `None` if it cannot be reached.
    pub(crate) fn log_in(&mut self, request: &LoginRequest, dice: &mut Dice<'_>) -> Option<LoginAnswer> {
        if self.trouble("login unreachable", 5, dice) {
            return None;
        }
        if self.trouble("not held", 6, dice) {
            return Some(LoginAnswer::Refused(LoginRefusal::NotHeld));
        }
        if self.trouble("old location", 6, dice) && self.epoch.0 > 1 {
            return Some(LoginAnswer::Located(self.located(Epoch(self.epoch.0 - 1))));
        }
        Some(match request {
            LoginRequest::Locate { owner, session } => {
                assert_eq!((*owner, *session), (OWNER, self.session));
                LoginAnswer::Located(self.located(self.epoch))
            }
            LoginRequest::LogIn { .. } => {
                self.session = self.session.next();
                self.taken.clear();
                self.tokens += 1;
                self.good = vec![Proof::Ticket(secret(self.tokens))];
                LoginAnswer::Ticket(Ticket {
                    session: self.session,
                    secret: secret(self.tokens),
                    base: self.located(self.epoch),
                })
            }
        })
    }

    /// A connection attempt. `None`: there is no answer, not even a refusal.
    pub(crate) fn connect(&mut self, attempt: Attempt, to: SocketAddr, dice: &mut Dice<'_>) -> Option<Input> {
        let epoch = (1..=self.epoch.0)
            .map(Epoch)
            .find(|&epoch| address(epoch) == to)
            .unwrap();
        if self.trouble("no answer", 10, dice) {
            return None;
        }
        // A process that was replaced may be alive and not know it.
        let alive = epoch == self.epoch || self.trouble("the replaced base answers", 2, dice);
        if !alive || self.trouble("connection refused", 8, dice) {
            return Some(Input::Disconnected {
                attempt,
                reason: CloseReason::Lost,
            });
        }
        self.pipe = Some(Pipe {
            attempt,
            epoch,
            welcomed: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
        });
        Some(Input::Connected { attempt })
    }

    /// The client writes on the connection that it has, or believes to have.
    pub(crate) fn write(&mut self, body: Vec<u8>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.up.push_back(body);
        }
    }

    pub(crate) fn hang_up(&mut self) {
        self.pipe = None;
    }

    /// One step of time, bus, base, cells and connection.
    pub(crate) fn step(&mut self, world: &World, dice: &mut Dice<'_>) -> Vec<Input> {
        self.ticks += 1;
        let mut inputs = Vec::new();
        if self.trouble("take-over", 120, dice) {
            self.epoch = self.epoch.next();
            self.base = Witness::default();
        }
        if self.trouble("cell dies", 80, dice) {
            let mute = self.trouble("cell does not ask", 3, dice);
            self.cell = Witness {
                mute,
                ..Witness::default()
            };
        }
        let replaced = self.pipe.as_ref().is_some_and(|pipe| pipe.epoch != self.epoch);
        if (replaced && !self.faulty) || self.trouble("connection breaks", 60, dice) {
            let reason = if dice().is_multiple_of(2) {
                CloseReason::Lost
            } else {
                CloseReason::Moved
            };
            inputs.extend(self.pipe.take().map(|pipe| Input::Disconnected {
                attempt: pipe.attempt,
                reason,
            }));
        }
        while let Some(body) = self.pipe.as_mut().and_then(|pipe| pipe.up.pop_front()) {
            self.read(&body, world, dice);
        }
        self.carry_bus(world, dice);
        for source in [Part::Base, Part::Cell] {
            self.show(source, world, dice);
        }
        if let Some(pipe) = &mut self.pipe {
            let attempt = pipe.attempt;
            let count = (dice() % 64) as usize;
            let bodies = pipe.down.drain(..count.min(pipe.down.len()));
            inputs.extend(bodies.map(|body| Input::Frame { attempt, body }));
        }
        if self.pipe.as_ref().is_some_and(|pipe| pipe.down.len() > MAX_QUEUED) {
            let reason = CloseReason::TooSlow;
            inputs.extend(self.pipe.take().map(|pipe| Input::Disconnected {
                attempt: pipe.attempt,
                reason,
            }));
        }
        inputs
    }

    fn read(&mut self, body: &[u8], world: &World, dice: &mut Dice<'_>) {
        let pipe = self.pipe.as_ref().unwrap();
        if !pipe.welcomed {
            let hello = Hello::read(body).unwrap();
            return self.greet(&hello, dice);
        }
        if pipe.epoch != self.epoch {
            // Whatever a replaced base does with it has no effect.
            return;
        }
        // The client has received the welcome: the secrets before it are used up.
        self.good.drain(..self.good.len() - 1);
        match ToServer::read(body).unwrap() {
            ToServer::Stamps(stamps) if stamps.source == Part::Base => self.begin(&stamps, world),
            ToServer::Stamps(stamps) => self.bus.push_back(Message::Stamps(stamps)),
            ToServer::Call(call) if call.part == Part::Base => {
                let answer = self.take(&call);
                self.send(&answer);
            }
            ToServer::Call(call) => self.bus.push_back(Message::Call(call)),
            ToServer::DownloadProgress(_) => panic!("this server sends no downloads"),
            ToServer::Bye => panic!("no client leaves in this test"),
        }
    }

    fn greet(&mut self, hello: &Hello, dice: &mut Dice<'_>) {
        let pipe_epoch = self.pipe.as_ref().unwrap().epoch;
        let answer = if self.trouble("busy", 20, dice) {
            HelloAnswer::Rejected(Rejection::Busy)
        } else if pipe_epoch < hello.epoch && dice().is_multiple_of(2) {
            HelloAnswer::Rejected(Rejection::Elsewhere)
        } else if pipe_epoch != self.epoch {
            // It does not know that it was replaced. A new token would have to be logged before it is sent, which a
            // replaced base cannot do any more; so at most it repeats what was valid before.
            let Proof::Resume(token) = &hello.proof else {
                return;
            };
            self.welcome(hello, token.clone(), pipe_epoch)
        } else if hello.session != self.session || !self.good.contains(&hello.proof) {
            HelloAnswer::Rejected(Rejection::UnknownSession)
        } else {
            self.tokens += 1;
            // The ticket and the token before stay valid until a message of the client arrives.
            self.good.retain(|proof| *proof == hello.proof);
            self.good.push(Proof::Resume(secret(self.tokens)));
            self.base = Witness::default();
            self.welcome(hello, secret(self.tokens), pipe_epoch)
        };
        let mut body = Vec::new();
        answer.write(&mut body);
        let pipe = self.pipe.as_mut().unwrap();
        pipe.welcomed = matches!(answer, HelloAnswer::Welcome(_));
        pipe.down.push_back(body);
    }

    fn welcome(&self, hello: &Hello, token: Secret, epoch: Epoch) -> HelloAnswer {
        let (session, entity, type_id) = (hello.session, OWN, TypeId(0));
        HelloAnswer::Welcome(Welcome {
            session,
            epoch,
            entity,
            type_id,
            token,
            movements: Movements::Plain,
        })
    }

    fn send(&mut self, frame: &ToClient) {
        if let Some(pipe) = self
            .pipe
            .as_mut()
            .filter(|pipe| pipe.welcomed && pipe.epoch == self.epoch)
        {
            let mut body = Vec::new();
            frame.write(&mut body);
            pipe.down.push_back(body);
        }
    }

    fn carry_bus(&mut self, world: &World, dice: &mut Dice<'_>) {
        if self.bus.len() > 1 && self.trouble("bus reorders", 10, dice) {
            let at = (dice() % (self.bus.len() as u64 - 1)) as usize;
            self.bus.swap(at, at + 1);
        }
        for _ in 0..dice() % 24 {
            let Some(message) = self.bus.pop_front() else {
                return;
            };
            if self.trouble("bus loses", 15, dice) {
                continue;
            }
            if self.trouble("bus repeats", 15, dice) {
                self.bus.push_back(message.clone());
            }
            match message {
                Message::ToClient(frame) => self.send(&frame),
                Message::Stamps(stamps) => self.begin(&stamps, world),
                Message::Call(call) => {
                    let answer = self.take(&call);
                    self.bus.push_back(Message::ToClient(answer));
                }
            }
        }
    }

    /// Accepts a call by the rules of the receiving end.
    fn take(&mut self, call: &Call) -> ToClient {
        let taken = self.taken.entry((call.part, call.entity)).or_default();
        let have = taken.len() as u64;
        if call.number.0 == have + 1 {
            taken.push(call.message[1..].to_vec());
        }
        let (entity, part) = (call.entity, call.part);
        if call.number.0 > have + 1 {
            ToClient::Gap {
                entity,
                part,
                have: CallNumber(have),
            }
        } else {
            ToClient::Took {
                entity,
                part,
                upto: CallNumber(taken.len() as u64),
            }
        }
    }

    fn witness(&mut self, source: Part) -> &mut Witness {
        match source {
            Part::Base => &mut self.base,
            Part::Cell => &mut self.cell,
        }
    }

    /// A view restarts from what the client has.
    fn begin(&mut self, stamps: &Stamps, world: &World) {
        let witness = self.witness(stamps.source);
        if witness.view.as_ref().is_some_and(|(view, ..)| *view >= stamps.view) {
            return;
        }
        let known = stamps
            .known
            .seen
            .iter()
            .map(|stamp| (stamp.entity, stamp.upto.0))
            .collect();
        witness.view = Some((stamps.view, 0, known));
        // The first frame may be empty, but must be sent.
        self.frame(stamps.source, world);
    }

    /// Sends what is new, or an empty frame.
    fn show(&mut self, source: Part, world: &World, dice: &mut Dice<'_>) {
        let asks = self.ticks.is_multiple_of(10);
        let witness = self.witness(source);
        witness.quiet_steps += 1;
        let due = witness.quiet_steps > 5;
        match witness.view {
            Some(_) if due || dice().is_multiple_of(3) => self.frame(source, world),
            Some(_) => {}
            None if asks && source == Part::Cell && !witness.mute => {
                self.bus.push_back(Message::ToClient(ToClient::StampsWanted { source }));
            }
            None => {}
        }
    }

    fn frame(&mut self, source: Part, world: &World) {
        let tick = Tick(self.ticks);
        let witness = self.witness(source);
        witness.quiet_steps = 0;
        let Some((view, sequence, has)) = &mut witness.view else {
            return;
        };
        *sequence += 1;
        let mut items = Vec::new();
        has.retain(|&entity, _| {
            let stays = world.is_visible(source, entity);
            if !stays {
                items.push(ViewItem::Leave { entity });
            }
            stays
        });
        for (&(_, entity), real) in world.parts.iter().filter(|((part, _), _)| *part == source) {
            if !world.is_visible(source, entity) {
                continue;
            }
            let upto = real.history.len() as u64;
            match has.insert(entity, upto) {
                Some(from) => items.extend(world.update(source, entity, from)),
                None => {
                    items.push(ViewItem::Enter {
                        entity,
                        type_id: TypeId(0),
                        place: None,
                    });
                    items.push(world.refresh(source, entity));
                }
            }
        }
        let frame = ToClient::View(ViewFrame {
            source,
            view: *view,
            sequence: *sequence,
            tick,
            items,
        });
        match source {
            Part::Base => self.send(&frame),
            Part::Cell => self.bus.push_back(Message::ToClient(frame)),
        }
    }
}
