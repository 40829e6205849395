//! Encoding and folding of the log, on generated logs of one owner.

use std::collections::BTreeSet;

use annals_def::{Change, Located, Path, Value, split_mix};
use annals_event::{
    Audience, Awaiting, Batch, Body, Call, CallError, Cause, CellCreation, ClientLink, Controller, ControllerEvent,
    Driver, Ending, Event, Facing, FormerCell, Gait, Gathering, Header, Height, Image, Imprint, MovementControl,
    ORDINALS, OwnerState, Place, Reader, Rounds, Seat, Subject, Tail, Task, Timer,
};
use annals_ids::{
    Address, CallNumber, ControllerId, EntityId, Epoch, Hash, HistoryNumber, MemberId, OwnerId, Part, Position,
    SessionId, SpaceId, Tick, TimerId, TypeId, WallTime, WorldTime,
};

const OWNER: OwnerId = OwnerId(7);
const PEER: OwnerId = OwnerId(8);

/// A run of one cell owner: each step is one that its state allows, chosen by the seed.
struct Run {
    state: OwnerState,
    gathering: Gathering,
    tail: Tail,
    batches: Vec<Vec<u8>>,
    next_entity: u64,
    dice: Box<dyn FnMut() -> u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            state: OwnerState::new(OWNER, Part::Cell),
            gathering: Gathering::default(),
            tail: Tail::default(),
            batches: Vec::new(),
            next_entity: 1,
            dice: Box::new(split_mix(seed)),
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        (self.dice)() % sides
    }

    fn record(&mut self, subject: Subject, history: Option<HistoryNumber>, body: Body) {
        let cause = Cause(self.gathering.consumed());
        let event = Event {
            subject,
            cause,
            history,
            body,
        };
        self.gathering.record(&event);
        self.state.apply(&event).expect("the run does what its state allows");
    }

    fn freeze(&mut self) {
        let imprint = Imprint {
            realm: "test".into(),
            owner: OWNER,
            epoch: Epoch(1),
            schema: Hash([3; 32]),
        };
        let opens = self.batches.is_empty();
        let number = self.batches.len() as u64;
        let frozen = self
            .gathering
            .freeze(&imprint, &mut self.tail, Tick(number), WallTime(number), opens);
        self.batches.push(frozen.bytes);
    }

    fn step(&mut self) {
        let chosen = self.roll(self.state.entities.len().max(1) as u64);
        let real = self.state.entities.iter().nth(usize::try_from(chosen).expect("small"));
        let Some((&entity, image)) = real.filter(|_| chosen != 3) else {
            return self.create();
        };
        let (history, image) = (Some(image.history.next()), image.clone());
        let subject = Subject::Entity(entity, Part::Cell);
        let to = [
            Address::Base(EntityId(5)),
            Address::Owner(PEER),
            Address::Cell(EntityId(9)),
        ][self.roll(3) as usize];
        match self.roll(20) {
            0 => self.record(subject, history, changed(1, Value::Int(-5))),
            1 => self.change_within(subject, &image),
            2 => self.record(subject, history, invoked()),
            3 => self.record(subject, None, Body::Moved(place(self.batches.len() as f32))),
            4 => self.call(subject, to, &image),
            5 => self.confirm(subject, to, &image),
            6 => self.set_timer(subject, &image),
            7 => self.drop_timer(subject, &image),
            8 => self.consume(entity, &image),
            9 => self.hand_over(entity, image),
            10 => self.end(subject),
            11 => self.bootstrap(entity),
            12 | 13 => self.control(subject, &image),
            14 => self.movement_control(subject),
            15 => self.skip(subject, &image),
            16 => self.renumber(),
            17 | 18 => self.return_ended(),
            _ => self.freeze(),
        }
    }

    /// Changes an element, or grows or shrinks a slice.
    fn change_within(&mut self, subject: Subject, image: &Image) {
        let member = MemberId(2);
        let held = &image.properties[&member];
        let Value::Sequence(values) = held else {
            panic!("a sequence was given it")
        };
        let length = u32::try_from(values.len()).expect("small");
        let text = Value::Unicode("deep".into());
        let change = match self.roll(3) {
            0 if length > 0 => Change::part(Path(vec![length - 1]), text),
            1 => Change::splice(Path::WHOLE, length / 2, length - length / 2, Vec::new()),
            _ => Change::splice(Path::WHOLE, length, 0, vec![Value::None, text]),
        };
        let change = Located::new(change, held).expect("it has such a place");
        let history = Some(image.history.next());
        self.record(subject, history, Body::Changed { member, change });
    }

    fn call(&mut self, subject: Subject, to: Address, image: &Image) {
        let number = image.links.next_call(to);
        let call = Call::Method {
            method: MemberId(3),
            args: vec![Value::Opaque(vec![1])],
            wants_reply: true,
        };
        let called = Body::Called {
            to,
            home: PEER,
            number,
            call,
        };
        self.record(subject, None, called);
        let awaiting = Awaiting {
            deadline: WorldTime(9),
            then: 2,
            note: vec![4, 5],
        };
        self.record(subject, None, Body::Awaits { to, number, awaiting });
    }

    fn confirm(&mut self, subject: Subject, to: Address, image: &Image) {
        let Some(sent) = image.links.sent.get(&to) else {
            return self.freeze();
        };
        let confirmed = Body::Confirmed {
            to,
            upto: sent.last,
            lost: false,
        };
        self.record(subject, None, confirmed);
    }

    fn set_timer(&mut self, subject: Subject, image: &Image) {
        let timer = image.last_timer.next();
        let at = Timer {
            due: WorldTime(3),
            every: 100,
            tag: 1,
        };
        self.record(subject, None, Body::TimerSet { timer, at });
    }

    fn drop_timer(&mut self, subject: Subject, image: &Image) {
        let timer = image.last_timer;
        if !image.timers.contains_key(&timer) {
            return self.freeze();
        }
        self.record(subject, None, Body::TimerGone { timer });
    }

    /// Sets a controller, or changes an existing one.
    fn control(&mut self, subject: Subject, image: &Image) {
        let controllers = &image.cell().expect("it is a cell part").controllers;
        let chosen = self.roll(controllers.iter().len() as u64 + 1);
        let running = controllers.iter().nth(usize::try_from(chosen).expect("small"));
        let Some((controller, Controller { task, .. })) = running else {
            let task = self.task();
            let (tag, pace) = (9, 1.5);
            let what = ControllerEvent::Set(Box::new(Controller { tag, pace, task }));
            let controller = controllers.next();
            return self.record(subject, None, Body::Controlled { controller, what });
        };
        let pace = 2.5;
        let what = match (self.roll(4), task) {
            (0, _) => ControllerEvent::Gone,
            (_, Task::Follow { path, leg, .. }) => ControllerEvent::Advanced {
                leg: (leg + 1) % u32::try_from(path.len()).expect("small"),
                pace,
            },
            (_, Task::Chase { .. }) => ControllerEvent::Advanced { leg: 0, pace },
            (1, Task::Watch { inside, .. }) if !inside.is_empty() => {
                ControllerEvent::Released(*inside.first().expect("somebody"))
            }
            (_, Task::Watch { inside, .. }) => {
                ControllerEvent::Caught(EntityId(inside.last().map_or(3, |last| last.0 + 200)))
            }
            _ => ControllerEvent::Gone,
        };
        self.record(subject, None, Body::Controlled { controller, what });
    }

    fn movement_control(&mut self, subject: Subject) {
        let movement_control = MovementControl {
            driver: [Driver::Client, Driver::Server, Driver::ClientOf(EntityId(300))][self.roll(3) as usize],
            top_speed: [0.0, 6.5][self.roll(2) as usize],
            top_speed_y: [0.0, 20.0][self.roll(2) as usize],
        };
        self.record(subject, None, Body::ControlChanged(movement_control));
    }

    fn task(&mut self) -> Task {
        let gait = Gait {
            acceleration: 2.0,
            facing: [Facing::Ahead, Facing::Kept][self.roll(2) as usize],
            height: [Height::Kept, Height::Changed][self.roll(2) as usize],
            ending: [Ending::Halting, Ending::Running][self.roll(2) as usize],
            ..Gait::at(3.0)
        };
        match self.roll(5) {
            0 => Task::Follow {
                path: vec![place(1.0).position; 1 + self.roll(4) as usize],
                leg: 0,
                rounds: [Rounds::Once, Rounds::Endless][self.roll(2) as usize],
                gait,
            },
            1 => Task::Chase {
                target: EntityId(300),
                within: 2.0,
                gait,
            },
            2 => Task::Turn { yaw: -3.0, rate: 0.5 },
            3 => Task::Watch {
                range: 12.5,
                inside: BTreeSet::new(),
            },
            _ => Task::Ride {
                vehicle: EntityId(70_000),
                seat: Seat::default(),
            },
        }
    }

    fn consume(&mut self, entity: EntityId, image: &Image) {
        let from = Address::Client(SessionId(4));
        let number = image.links.taken.get(&from).map_or(CallNumber(1), |taken| taken.next());
        self.gathering.consume(from, Address::Cell(entity), number, [9; 16]);
        let consumed = annals_event::Consumed {
            at: 0,
            from,
            to: Address::Cell(entity),
            number,
            trace: [9; 16],
        };
        self.state.consume(&consumed).expect("the next number");
    }

    /// The receiver no longer waits for some calls.
    fn skip(&mut self, subject: Subject, image: &Image) {
        let from = Address::Client(SessionId(4));
        let taken = image.links.taken.get(&from).copied().unwrap_or_default();
        let upto = CallNumber(taken.0 + 1 + self.roll(9));
        self.record(subject, None, Body::CallsSkipped { from, upto });
    }

    /// The log was cut at a hole.
    fn renumber(&mut self) {
        let generation = self.state.links.generation + 1 + self.roll(3);
        self.record(Subject::Owner, None, Body::CallsRenumbered { generation });
    }

    fn end(&mut self, subject: Subject) {
        if self.roll(3) > 0 {
            self.record(subject, None, Body::CellEnding);
        }
        self.record(subject, None, Body::Destroyed);
    }

    /// Confirms calls of a cell part that has ended, or returns its state to its base part, which requests another one.
    fn return_ended(&mut self) {
        let Some((&entity, image)) = self.state.ending.first_key_value() else {
            return self.freeze();
        };
        let image = image.clone();
        let open = image.links.sent.iter().find(|(_, sent)| !sent.unconfirmed.is_empty());
        if let Some((to, _)) = open {
            return self.confirm(Subject::Entity(entity, Part::Cell), *to, &image);
        }
        let former = Box::new(FormerCell {
            history: image.history,
            links: image.links,
        });
        let call = Call::CellEnded {
            entity,
            type_id: image.type_id,
            former: former.clone(),
            properties: image.properties,
        };
        let to = Address::Owner(PEER);
        let called = Body::Called {
            to,
            home: PEER,
            number: self.state.links.next_call(to),
            call,
        };
        self.record(Subject::Owner, None, called);
        self.create_as(entity, Some(former));
        let created = &self.state.entities[&entity];
        assert_eq!(created.history, image.history.next());
        assert!(created.recent.is_empty(), "no event leads from the former part to it");
    }

    fn create(&mut self) {
        let entity = EntityId(self.next_entity);
        self.next_entity += 1;
        self.create_as(entity, None);
    }

    fn create_as(&mut self, entity: EntityId, former: Option<Box<FormerCell>>) {
        let creation = CellCreation {
            entity,
            type_id: TypeId(2),
            home: PEER,
            based: true,
            place: place(1.5),
            properties: vec![
                (MemberId(1), Value::Int(i64::MIN)),
                (
                    MemberId(2),
                    Value::Sequence(vec![Value::None, Value::Bytes(vec![0, 255])]),
                ),
            ],
            client: Some(ClientLink {
                session: SessionId(4),
                proxy: PEER,
            }),
            former,
        };
        let history = creation.former.as_ref().map(|former| former.history.next());
        self.record(
            Subject::Entity(entity, Part::Cell),
            history,
            Body::CellCreated(Box::new(creation)),
        );
    }

    fn bootstrap(&mut self, entity: EntityId) {
        if self.state.bootstrap.is_some() {
            return self.freeze();
        }
        self.record(Subject::Owner, None, Body::Bootstrapped { entity });
    }

    fn hand_over(&mut self, entity: EntityId, image: Image) {
        let number = self.state.links.next_call(Address::Owner(PEER));
        let subject = Subject::Entity(entity, Part::Cell);
        self.record(subject, None, Body::Offloaded { to: PEER, number });
        let call = Call::Onload {
            entity,
            image: Box::new(image),
        };
        self.record(
            Subject::Owner,
            None,
            Body::Called {
                to: Address::Owner(PEER),
                home: PEER,
                number,
                call,
            },
        );
        if self.roll(2) == 0 {
            self.record(subject, None, Body::Returned { to: PEER, number });
        }
    }
}

fn invoked() -> Body {
    Body::Invoked {
        method: MemberId(0),
        args: vec![Value::Float32(f32::NAN), Value::Vector3([1.0, -0.0, 3.0])],
        audience: Audience::All,
    }
}

fn changed(member: u16, value: Value) -> Body {
    Body::Changed {
        member: MemberId(member),
        change: Located::whole(value),
    }
}

fn place(x: f32) -> Place {
    Place {
        space: SpaceId(1),
        position: Position { x, y: 0.0, z: -x },
        ..Place::default()
    }
}

fn runs() -> impl Iterator<Item = (u64, Run)> {
    (0..60).map(|seed| {
        let mut run = Run::new(seed);
        run.freeze();
        (0..150).for_each(|_| run.step());
        run.freeze();
        (seed, run)
    })
}

#[test]
fn replay_of_the_bytes_gives_the_live_state() {
    for (seed, run) in runs() {
        let mut replayed = OwnerState::new(OWNER, Part::Cell);
        for bytes in &run.batches {
            let batch = Batch::read(bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(
                Header::read(bytes),
                Ok((batch.header.clone(), batch.hash)),
                "seed {seed}"
            );
            replayed
                .fold(&batch)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        let mut live = run.state.clone();
        (live.epoch, live.tail, live.tick) = (replayed.epoch, replayed.tail, replayed.tick);
        live.schema = replayed.schema;
        // Compared as bytes, because the generated values include NaN.
        assert_eq!(written(&replayed), written(&live), "seed {seed}");
        assert_eq!(replayed.hash(), live.hash(), "seed {seed}");
        assert_eq!(replayed.tail, run.tail, "seed {seed}");
    }
}

#[test]
fn a_snapshot_equals_the_state() {
    for (seed, run) in runs() {
        let mut own = Vec::new();
        run.state.write_own(&mut own);
        let mut restored = OwnerState::read_own(&own).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for (entity, image) in &run.state.entities {
            let mut bytes = Vec::new();
            image.write(&mut bytes);
            let mut reader = Reader::new(&bytes);
            restored.restore(
                *entity,
                Image::read(&mut reader).unwrap_or_else(|error| panic!("seed {seed}: {error}")),
            );
            assert_eq!(reader.remaining(), 0, "seed {seed}");
        }
        assert_eq!(written(&restored), written(&run.state), "seed {seed}");
    }
}

#[test]
fn no_flipped_bit_and_no_cut_goes_unnoticed() {
    for (seed, run) in runs().take(1) {
        for (original, bytes) in run
            .batches
            .iter()
            .map(|bytes| (Batch::read(bytes).expect("intact"), bytes))
        {
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                if let Ok(batch) = Batch::read(&flipped) {
                    assert_ne!(batch.hash, original.hash, "seed {seed}: bit {bit}");
                }
            }
            for cut in 0..bytes.len() {
                assert!(Batch::read(&bytes[..cut]).is_err(), "seed {seed}: cut at {cut}");
            }
        }
    }
}

#[test]
fn a_batch_of_an_unknown_release_is_refused_with_what_to_do() {
    let (_, run) = runs().next().expect("there is one");
    let mut bytes = run.batches[0].clone();
    bytes[0] += 1;
    let said = Batch::read(&bytes).expect_err("it has another version").to_string();
    assert!(
        said.contains("run that one again, and upgrade one release at a time"),
        "{said}"
    );
}

#[test]
fn numbers_without_a_predecessor_or_successor_are_refused() {
    let imprint = Imprint {
        realm: "test".into(),
        owner: OwnerId(1),
        epoch: Epoch(1),
        schema: Hash::ZERO,
    };
    let first = Gathering::default().freeze(&imprint, &mut Tail::default(), Tick(1), WallTime(1), true);
    // Version, flags, the realm's name after its length, owner and epoch come before the two numbers.
    let number = 2 + 1 + imprint.realm.len() + 4 + 8;
    for (place, bad) in [(number, 0), (number, u64::MAX), (number + 8, 0)] {
        let mut bytes = first.bytes.clone();
        bytes[place..place + 8].copy_from_slice(&bad.to_le_bytes());
        assert!(Batch::read(&bytes).is_err(), "{bad} at byte {place}");
        assert!(Header::read(&bytes).is_err(), "{bad} at byte {place}");
    }
    assert!(Batch::read(&first.bytes).is_ok());
}

#[test]
fn unreachable_sequence_numbers_are_refused() {
    let mut run = Run::new(1);
    run.create();
    let (&entity, sound) = run.state.entities.first_key_value().expect("it was created");
    let to = Address::Owner(PEER);
    let events = |number: u64, timer: u32| {
        let (call, timer) = (CallNumber(number), TimerId(timer));
        let mut images = vec![sound.clone(); 4];
        images[0].history = HistoryNumber(number);
        images[1].last_timer = timer;
        images[2].links.taken.insert(to, call);
        images[3].links.sent.entry(to).or_default().last = call;
        let onloaded = images.into_iter().map(|image| Body::Onloaded {
            from: PEER,
            number: CallNumber(1),
            image: Box::new(image),
        });
        let at = Timer {
            due: WorldTime(1),
            every: 0,
            tag: 0,
        };
        let called = Body::Called {
            to,
            home: PEER,
            number: call,
            call: Call::DestroyCell,
        };
        let confirmed = Body::Confirmed {
            to,
            upto: call,
            lost: false,
        };
        let bodies = [
            called,
            confirmed,
            Body::TimerSet { timer, at },
            Body::Controlled {
                controller: ControllerId(timer.0),
                what: ControllerEvent::Gone,
            },
            Body::Departed { to: PEER, number: call },
        ];
        bodies.into_iter().chain(onloaded).map(|body| Event {
            subject: Subject::Entity(entity, Part::Cell),
            cause: Cause(0),
            history: None,
            body,
        })
    };
    let read = |event: &Event| {
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        Event::read(&bytes)
    };
    for event in events(ORDINALS - 1, u32::MAX / 2) {
        assert_eq!(read(&event).as_ref(), Ok(&event));
    }
    for event in events(ORDINALS, u32::MAX / 2 + 1).chain(events(u64::MAX, u32::MAX)) {
        assert!(read(&event).is_err(), "{event:?}");
    }
}

#[test]
fn a_realm_begins_once_with_an_existing_entity() {
    let begins = |entity| Event {
        subject: Subject::Owner,
        cause: Cause(0),
        history: None,
        body: Body::Bootstrapped {
            entity: EntityId(entity),
        },
    };
    let mut run = Run::new(1);
    run.create();
    let mut state = run.state;
    assert!(state.clone().apply(&begins(2)).is_err(), "there is no entity 2");
    state.apply(&begins(1)).expect("entity 1 is there");
    assert_eq!(state.bootstrap, Some(EntityId(1)));
    let subject = Subject::Entity(EntityId(1), Part::Cell);
    let destroyed = Event {
        subject,
        body: Body::Destroyed,
        ..begins(1)
    };
    state.apply(&destroyed).expect("it is there");
    assert_eq!(
        state.bootstrap,
        Some(EntityId(1)),
        "that it began is not forgotten with it"
    );
    let again = state.apply(&begins(1)).expect_err("it has begun");
    assert!(again.to_string().contains("begun already"), "{again}");
}

fn of_owner(body: Body) -> Event {
    Event {
        subject: Subject::Owner,
        cause: Cause(0),
        history: None,
        body,
    }
}

#[test]
fn a_generation_of_call_numbers_applies_to_all_parts_and_moves_with_them() {
    let mut run = Run::new(1);
    run.create();
    let (entity, peer) = (EntityId(1), Address::Owner(PEER));
    let old = run.state.entities[&entity].clone();
    run.call(Subject::Entity(entity, Part::Cell), peer, &old);
    let mut state = run.state;
    let renumbered = |generation| of_owner(Body::CallsRenumbered { generation });
    state.apply(&renumbered(3)).expect("it is higher");
    let first = CallNumber(CallNumber::floor(3).0 + 1);
    assert_eq!(state.links.next_call(peer), first);
    assert_eq!(state.entities[&entity].links.next_call(peer), first);
    assert_eq!((first.generation(), CallNumber(1).generation()), (3, 0));
    for lower in [2, 3] {
        let error = state.apply(&renumbered(lower)).expect_err("it is in use");
        assert!(error.to_string().contains("of this generation already"), "{error}");
    }

    let arrives = |image: Image| Event {
        subject: Subject::Entity(entity, Part::Cell),
        ..of_owner(Body::Onloaded {
            from: PEER,
            number: CallNumber(1),
            image: Box::new(image),
        })
    };
    let arrived = |above: u64, image: &Image| {
        let mut other = OwnerState::new(PEER, Part::Cell);
        if above > 0 {
            other.apply(&renumbered(above)).expect("it is higher");
        }
        other.apply(&arrives(image.clone())).expect("it is elsewhere");
        other.entities[&entity].links.generation
    };
    let image = state.entities[&entity].clone();
    assert_eq!(
        (
            arrived(0, &image),
            arrived(5, &image),
            arrived(5, &old),
            arrived(0, &old)
        ),
        (3, 5, 5, 0),
        "the higher one of the part's and the owner's"
    );
    let restored = OwnerState::read_own(&{
        let mut bytes = Vec::new();
        state.write_own(&mut bytes);
        bytes
    });
    assert_eq!(restored.expect("it can be read").links.generation, 3);
}

#[test]
fn skipped_calls_are_waited_for_no_longer() {
    let mut run = Run::new(1);
    run.create();
    let (entity, from) = (EntityId(1), Address::Owner(PEER));
    let to = Address::Cell(entity);
    let mut state = run.state;
    let skipped = |upto| Event {
        subject: Subject::Entity(entity, Part::Cell),
        ..of_owner(Body::CallsSkipped {
            from,
            upto: CallNumber(upto),
        })
    };
    let consumed = |number| annals_event::Consumed {
        at: 0,
        from,
        to,
        number: CallNumber(number),
        trace: [0; 16],
    };
    state.apply(&skipped(4)).expect("none was taken");
    assert!(state.consume(&consumed(4)).is_err(), "it was skipped");
    assert!(state.consume(&consumed(6)).is_err(), "it is not the next");
    state.consume(&consumed(5)).expect("it is the next");
    assert!(state.apply(&skipped(5)).is_err(), "it was taken");
}

#[test]
fn impossible_events_are_refused() {
    let mut state = OwnerState::new(OWNER, Part::Cell);
    let subject = Subject::Entity(EntityId(1), Part::Cell);
    let event = |history, body| Event {
        subject,
        cause: Cause(0),
        history,
        body,
    };
    let unknown = state
        .apply(&event(None, Body::Destroyed))
        .expect_err("there is no entity 1");
    assert_eq!(
        unknown.to_string(),
        "owner 7: \"destroyed\" of cell of entity 1 cannot follow event 0: there is no such entity"
    );

    let mut run = Run::new(1);
    run.create();
    state = run.state;
    let gap = event(Some(HistoryNumber(2)), changed(1, Value::Int(1)));
    assert!(state.apply(&gap).is_err(), "history number 2 before 1");
    assert!(
        state
            .clone()
            .apply(&event(None, Body::TimerGone { timer: TimerId(1) }))
            .is_err()
    );
    let within = |member, parts: usize, change: Change| {
        let held = Value::Sequence(vec![Value::None; parts]);
        let change = Located::new(change, &held).expect("it has such a place");
        let member = MemberId(member);
        event(None, Body::Changed { member, change })
    };
    let first = || Change::part(Path(vec![0]), Value::Int(1));
    let append = |at| Change::splice(Path::WHOLE, at, 0, vec![Value::Int(1)]);
    let before = written(&state);
    for (impossible, why) in [
        (within(1, 1, first()), "into an integer"),
        (within(2, 3, first()), "into a sequence that was longer"),
        (within(2, 1, append(1)), "behind a sequence that was shorter"),
        (within(3, 1, first()), "into a property that is not held"),
    ] {
        assert!(state.apply(&impossible).is_err(), "{why}");
        assert_eq!(written(&state), before, "{why}");
    }
    state.clone().apply(&within(2, 2, append(2))).expect("behind its end");
    let skipped = Call::Reply {
        of: CallNumber(1),
        outcome: Err(CallError::NoReply),
    };
    let to = Address::Owner(PEER);
    let body = Body::Called {
        to,
        home: PEER,
        number: CallNumber(2),
        call: skipped,
    };
    assert!(state.apply(&event(None, body)).is_err(), "call 2 before 1");
}

fn written(state: &OwnerState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.write_own(&mut bytes);
    for (entity, image) in &state.entities {
        bytes.extend(entity.0.to_le_bytes());
        image.write(&mut bytes);
    }
    bytes
}
