//! One run of a scenario: each player in one of the SDKs.

use std::{
    collections::{BTreeMap, VecDeque},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    sync::mpsc::{self, Receiver, Sender},
    time::timeout,
};

use super::{
    rust_runner::{Access, Runner},
    script::{REALM, Scenario, Step, What},
    transcript::{Names, canonical, is_watched},
};
use crate::{browser::Browser, played::within};

/// Maximum time for a step, and for what it has to show, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum lines that wait to be read: many more than are observed between two steps.
const MAX_WAITING: usize = 65_536;

/// Interval of looks at what a page has observed.
const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// A runner: steps go in, observations and answers come out, a line of JSON each.
pub(super) struct Player {
    steps: Sender<String>,
    lines: Receiver<String>,
    /// What it has observed, and no step has expected yet.
    observed: VecDeque<Map<String, Json>>,
    /// Ends with the player.
    _process: Option<Child>,
}

impl Player {
    fn new(steps: Sender<String>, lines: Receiver<String>, process: Option<Child>) -> Self {
        Self {
            steps,
            lines,
            observed: VecDeque::new(),
            _process: process,
        }
    }

    /// A player in this process. It has a thread of its own, as callbacks need not be `Send`.
    pub(super) fn in_rust(access: Access) -> Self {
        let (steps, taken) = mpsc::channel(MAX_WAITING);
        let (said, lines) = mpsc::channel(MAX_WAITING);
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("a runtime");
            runtime.block_on(Runner::new(access, said).run(taken));
        });
        Self::new(steps, lines, None)
    }

    /// A player in another process.
    pub(super) fn in_process(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it runs");
        let mut input = process.stdin.take().expect("it is piped");
        let mut output = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let (steps, mut taken) = mpsc::channel::<String>(MAX_WAITING);
        let (said, lines) = mpsc::channel(MAX_WAITING);
        tokio::spawn(async move {
            while let Some(step) = taken.recv().await {
                if input.write_all(format!("{step}\n").as_bytes()).await.is_err() {
                    // It has ended: its output ends, too, which the test notices.
                    break;
                }
            }
        });
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                if said.send(line).await.is_err() {
                    break;
                }
            }
        });
        Self::new(steps, lines, Some(process))
    }

    /// A player on a page that a browser has opened.
    pub(super) fn in_browser(browser: Arc<Browser>) -> Self {
        let (steps, mut taken) = mpsc::channel::<String>(MAX_WAITING);
        let (said, lines) = mpsc::channel(MAX_WAITING);
        tokio::spawn(async move {
            loop {
                match timeout(POLL_INTERVAL, taken.recv()).await {
                    Ok(Some(step)) => {
                        browser.ask(&format!("take({})", json!(step))).await;
                    }
                    Ok(None) => return,
                    Err(_) => {}
                }
                let observed = browser.ask("taken()").await;
                let observed = observed.as_array().into_iter().flatten().filter_map(Json::as_str);
                for line in observed {
                    if said.send(line.to_owned()).await.is_err() {
                        return;
                    }
                }
            }
        });
        Self::new(steps, lines, None)
    }

    /// The next line of the runner.
    async fn next(&mut self, what: &str) -> Json {
        let line = self.lines.recv().await;
        let line = line.unwrap_or_else(|| panic!("{what}: the runner has ended"));
        let line: Json = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{what}: {line}: {error}"));
        assert!(line.get("error").is_none(), "{what}: {}", line["error"]);
        line
    }

    /// Has the runner do a step alone; returns its answer or error.
    pub(super) async fn ask(&mut self, step: &Json) -> Result<Json, String> {
        self.steps.send(step.to_string()).await.expect("the runner runs");
        let line = within(TIMEOUT, "an answer", self.lines.recv()).await;
        let line: Json = serde_json::from_str(&line.expect("the runner runs")).expect("JSON");
        match line.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(line["answer"].clone()),
        }
    }
}

/// A run of a scenario.
pub(super) struct Run<'s> {
    scenario: &'s Scenario,
    /// Who plays in which language, for messages.
    title: String,
    players: BTreeMap<String, Player>,
    names: Names,
    transcript: Vec<String>,
}

impl<'s> Run<'s> {
    /// `accounts` has the account of each player.
    pub(super) fn new(
        scenario: &'s Scenario,
        title: String,
        players: BTreeMap<String, Player>,
        accounts: BTreeMap<String, String>,
    ) -> Self {
        Self {
            scenario,
            title,
            players,
            names: Names::new(accounts),
            transcript: Vec::new(),
        }
    }

    /// Does all steps; returns the transcript. `realm` does what a step has the realm do.
    pub(super) async fn play(mut self, mut realm: impl AsyncFnMut(&str)) -> Vec<String> {
        let scenario = self.scenario;
        for (number, Step { who, what }) in (1..).zip(&scenario.steps) {
            let title = format!("{}, {}, step {number} of {who}", scenario.name, self.title);
            match what {
                What::Does { step, .. } if who == REALM => {
                    realm(step["does"].as_str().expect("a step has a name")).await;
                }
                What::Does { step, gives } => {
                    let title = format!("{title}: does {}", Json::Object(step.clone()));
                    within(TIMEOUT, &title, self.order(&title, who, step, gives)).await;
                }
                What::Sees(expected) => {
                    let title = format!("{title}: sees {}", Json::Object(expected.clone()));
                    within(TIMEOUT, &title, self.see(&title, who, expected)).await;
                }
            }
        }
        self.assert_nothing_else();
        self.transcript
    }

    async fn order(&mut self, title: &str, who: &str, step: &Map<String, Json>, gives: &Json) {
        let player = self.players.get_mut(who).expect("the scenario has this player");
        let put = self.names.put(&Json::Object(step.clone()));
        player
            .steps
            .send(put.to_string())
            .await
            .unwrap_or_else(|_| panic!("{title}: the runner has ended"));
        let answer = loop {
            let line = player.next(title).await;
            match line.get("answer") {
                Some(answer) => break answer.clone(),
                None => receive(who, player, &mut self.names, line),
            }
        };
        assert!(
            self.names.accept(gives, &answer),
            "{title}: gives {answer} instead of {gives}"
        );
        let answer = canonical(gives, &answer);
        self.transcript
            .push(json!({ "who": who, "does": step["does"], "gives": answer }).to_string());
    }

    async fn see(&mut self, title: &str, who: &str, expected: &Map<String, Json>) {
        let written = Json::Object(expected.clone());
        let (names, watch) = (&mut self.names, &self.scenario.watch);
        let player = self.players.get_mut(who).expect("the scenario has this player");
        let is_new = names.names_new(expected).is_some();
        let found = loop {
            // Events of one entity are seen in their order, and those of none. The name may be new.
            let entity = expected.get("entity").map(|name| names.put(name));
            let is_next = |event: &Map<String, Json>| {
                if is_new {
                    names.accept_new(expected, event)
                } else {
                    is_watched(watch, event) && event.get("entity") == entity.as_ref()
                }
            };
            let found = player.observed.iter().position(is_next);
            match found.and_then(|at| player.observed.remove(at)) {
                Some(found) => break Json::Object(found),
                None => {
                    let line = player.next(title).await;
                    receive(who, player, names, line);
                }
            }
        };
        assert!(
            names.accept(&written, &shape(&written, &found)),
            "{title}: sees {found} instead"
        );
        let mut seen = canonical(&written, &found);
        seen["who"] = json!(who);
        self.transcript.push(seen.to_string());
    }

    /// Nothing that is watched has come that no step has expected.
    fn assert_nothing_else(&mut self) {
        for (who, player) in &mut self.players {
            while let Ok(line) = player.lines.try_recv() {
                let line: Json = serde_json::from_str(&line).expect("JSON");
                receive(who, player, &mut self.names, line);
            }
            let is_left =
                |event: &&Map<String, Json>| is_watched(&self.scenario.watch, event) && self.names.knows(event);
            let left: Vec<_> = player.observed.iter().filter(is_left).collect();
            assert!(
                left.is_empty(),
                "{}, {}: {who} also sees {left:?}",
                self.scenario.name,
                self.title
            );
        }
    }
}

/// Keeps what a player has observed.
fn receive(who: &str, player: &mut Player, names: &mut Names, line: Json) {
    if matches!(line["event"].as_str(), Some("connected" | "controls")) {
        names.controls(who, &line);
    }
    match line {
        Json::Object(event) => player.observed.push_back(event),
        other => panic!("{who} says {other}"),
    }
}

/// An event without the type of its entity, if the step does not ask for it: the name of the entity has it.
fn shape(expected: &Json, found: &Json) -> Json {
    let mut found = found.clone();
    if let (None, Json::Object(fields)) = (expected.get("type"), &mut found) {
        fields.remove("type");
    }
    found
}
