//! The client's core against a generated world and a server with all faults: in any schedule each visible event is
//! shown once or covered by a refresh, each call is delivered once and in order, and in the end the client has the
//! actual state.

mod server;
mod world;

use std::collections::BTreeMap;

use annals_client::{ClientCore, Credentials, Event, Input, Millis, Output};
use annals_def::{Value, split_mix};
use annals_ids::{EntityId, Part};

use server::Server;
use world::{OWN, World, schema};

const SEEDS: u64 = 60;
const STEPS: u64 = 1_500;
/// Steps without faults after which everything must have recovered.
const QUIET_STEPS: u64 = 400;

struct Run {
    seed: u64,
    dice: Box<dyn FnMut() -> u64>,
    now: Millis,
    core: ClientCore,
    world: World,
    server: Server,
    /// Up to where each part was shown, by the events.
    shown: BTreeMap<(Part, EntityId), u64>,
    /// Calls that were made, in order.
    called: BTreeMap<(Part, EntityId), Vec<Vec<u8>>>,
    plays: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let credentials = Credentials::password("Ann", "secret");
        let mut core = ClientCore::new(schema(), credentials, seed);
        core.start(Millis(0));
        Self {
            seed,
            dice: Box::new(split_mix(seed)),
            now: Millis(0),
            core,
            world: World::new(6),
            server: Server::new(),
            shown: BTreeMap::new(),
            called: BTreeMap::new(),
            plays: false,
        }
    }

    fn step(&mut self) {
        self.now = self.now.after((self.dice)() % 300);
        for _ in 0..(self.dice)() % 4 {
            self.world.happen(&mut *self.dice);
        }
        if (self.dice)().is_multiple_of(12) {
            let wanderer = EntityId(OWN.0 + 1 + (self.dice)() % (self.world.around.len() as u64 - 1));
            let inside = self.world.around.get_mut(&wanderer).unwrap();
            *inside = !*inside;
        }
        if (self.dice)().is_multiple_of(3) {
            self.call();
        }
        for input in self.server.step(&self.world, &mut *self.dice) {
            self.give(input);
        }
        if self.core.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.core.tick(self.now);
        }
        self.carry_out();
    }

    fn give(&mut self, input: Input) {
        self.core.handle(self.now, input);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Login { attempt, request } => {
                    let answer = self.server.log_in(&request, &mut *self.dice);
                    self.core.handle(self.now, Input::LoginAnswered { attempt, answer });
                }
                Output::Connect { attempt, address, .. } => {
                    self.server.hang_up();
                    if let Some(input) = self.server.connect(attempt, address, &mut *self.dice) {
                        self.core.handle(self.now, input);
                    }
                }
                Output::Frame(body) => self.server.write(body),
                Output::Datagram(_) => panic!("no entity moves in this test"),
                Output::Disconnect(_) => self.server.hang_up(),
                Output::Prepare { .. } | Output::Greet(_) | Output::Switch | Output::Abandon => {
                    panic!("this server announces no move")
                }
            }
        }
        while let Some(event) = self.core.poll_event() {
            self.check(event);
        }
    }

    fn call(&mut self) {
        let seen: Vec<EntityId> = self.core.view(Part::Cell).entities().keys().copied().collect();
        let (part, entity, method) = match seen.get(((self.dice)() % 8) as usize) {
            Some(&entity) => (Part::Cell, entity, "hit"),
            None => (Part::Base, OWN, "buy"),
        };
        let amount = u32::try_from((self.dice)() >> 32).unwrap();
        // Refused while too much is unconfirmed, and before the first session.
        if self
            .core
            .call(self.now, entity, part, method, &[Value::UInt(amount.into())])
            .is_ok()
        {
            self.called
                .entry((part, entity))
                .or_default()
                .push(amount.to_le_bytes().to_vec());
        }
    }

    fn check(&mut self, event: Event) {
        let seed = self.seed;
        match event {
            Event::Connected { .. } => {
                assert!(
                    !self.plays,
                    "seed {seed}: a second session though the first was welcomed"
                );
                self.plays = true;
            }
            Event::Resumed { .. } | Event::Lost(_) => assert!(self.plays, "seed {seed}: resumed what never played"),
            Event::Entered { part, entity, .. } => {
                let before = self.shown.insert((part, entity), 0);
                assert_eq!(before, None, "seed {seed}: {entity} entered the {part} view twice");
            }
            Event::Left { part, entity } => {
                let before = self.shown.remove(&(part, entity));
                assert!(
                    before.is_some(),
                    "seed {seed}: {entity} left the {part} view without being there"
                );
            }
            Event::Refreshed { part, entity, upto, .. } => {
                let before = self
                    .shown
                    .insert((part, entity), upto.0)
                    .expect("refreshed without being in view");
                assert!(before <= upto.0, "seed {seed}: {entity} was refreshed into the past");
            }
            Event::Shown(showing) => {
                let key = (showing.part, showing.entity);
                let (from, number) = (self.shown[&key], showing.number.0);
                let place = format!("seed {seed}: {} of {}, number {number}", showing.part, showing.entity);
                assert!(number > from, "{place}: shown twice, everything up to {from} was shown");
                let history = &self.world.parts[&key].history;
                let between = &history[usize::try_from(from).unwrap()..usize::try_from(number).unwrap() - 1];
                assert!(
                    between.iter().all(Option::is_none),
                    "{place}: something after {from} was left out"
                );
                let truth = history[usize::try_from(number).unwrap() - 1]
                    .as_ref()
                    .expect("what is hidden is not shown");
                assert_eq!(
                    showing.hash,
                    self.world.hash(truth),
                    "{place}: something else was shown"
                );
                self.shown.insert(key, number);
            }
            other => panic!("seed {seed}: unexpected {other:?}"),
        }
    }

    /// The final state is as if there had been no fault.
    fn check_end(&self) {
        let seed = self.seed;
        assert!(self.core.is_playing(), "seed {seed}: the client does not play");
        assert_eq!(
            self.core.unconfirmed_calls(),
            0,
            "seed {seed}: calls were not confirmed"
        );
        assert_eq!(
            self.server.taken, self.called,
            "seed {seed}: calls were not taken once each, in order"
        );
        for source in [Part::Base, Part::Cell] {
            let seen = self.core.view(source).entities();
            let real = self
                .world
                .parts
                .iter()
                .filter(|((part, entity), _)| *part == source && self.world.is_visible(source, *entity));
            let real: BTreeMap<EntityId, &world::Real> = real.map(|(&(_, entity), real)| (entity, real)).collect();
            let (seen_ids, real_ids): (Vec<_>, Vec<_>) = (seen.keys().collect(), real.keys().collect());
            assert_eq!(
                seen_ids, real_ids,
                "seed {seed}: other entities are in the {source} view"
            );
            for (entity, real) in real {
                let seen = &seen[&entity];
                assert_eq!(
                    seen.upto.0,
                    real.history.len() as u64,
                    "seed {seed}: {source} of {entity} lags behind"
                );
                for (value, member) in real.properties.iter().zip(0..) {
                    let member = annals_wire::client::ClientMember(member);
                    assert_eq!(
                        seen.property(member),
                        Some(value),
                        "seed {seed}: {source} of {entity}, {member}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_client_view_is_correct_and_calls_take_effect_once() {
    let mut troubles: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut gaps, mut resumed, mut old_epochs, mut resent, mut calls) = (0, 0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut run = Run::new(seed);
        for _ in 0..STEPS {
            run.step();
        }
        run.server.faulty = false;
        for _ in 0..QUIET_STEPS {
            run.step();
        }
        // Nothing new happens any more; what is in flight arrives.
        for _ in 0..QUIET_STEPS {
            run.now = run.now.after(150);
            for input in run.server.step(&run.world, &mut *run.dice) {
                run.give(input);
            }
            run.core.tick(run.now);
            run.carry_out();
        }
        run.check_end();
        for (what, count) in &run.server.troubles {
            *troubles.entry(what).or_default() += count;
        }
        let counters = run.core.counters();
        gaps += counters.view_gaps;
        resumed += counters.resumed;
        old_epochs += counters.old_epochs;
        resent += counters.resent;
        calls += run.called.values().map(Vec::len).sum::<usize>();
        assert_eq!(counters.malformed, 0, "seed {seed}");
    }
    println!(
        "{calls} calls, {resent} sent again; {gaps} gaps in views, {resumed} resumed, {old_epochs} old epochs; {troubles:?}"
    );
    for (what, count) in [
        ("gaps", gaps),
        ("resumed", resumed),
        ("old epochs", old_epochs),
        ("resent", resent),
    ] {
        assert!(
            count > SEEDS,
            "{what}: only {count}, so the test tests less than it should"
        );
    }
}
