//! One suite of scenarios for all client SDKs: `tests/realm/scenarios`. Each is played by Rust and by TypeScript, and by
//! one of each, and each run has to observe the same.

mod rust_runner;
mod script;
mod stage;
mod transcript;
mod values;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use annals::up::{Realm, RealmPlan};
use annals_host::{edge::web_certificate_hashes, world::compile};
use annals_realm::Folder;
use serde_json::json;
use tokio::sync::Mutex;

use self::{
    rust_runner::Access,
    script::{Scenario, What, scenarios},
    stage::{Player, Run},
};
use crate::{
    browser::{self, Browser, Certificates},
    played::{are_built, permit, repository, within},
    typescript,
};

/// Maximum time for a page to be loaded, on a busy machine.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The bases that a scenario kills.
const BASES: [&str; 2] = ["base-1", "base-2"];

/// What a player is in.
#[derive(Clone, Copy, Debug)]
enum Language {
    Rust,
    /// In Node.
    TypeScript,
    /// The same in a browser.
    Page,
}

use Language::{Page, Rust, TypeScript};

/// The languages of the players of a scenario, in their order.
const CASTS: [[Language; 2]; 4] = [
    [Rust, Rust],
    [TypeScript, TypeScript],
    [Rust, TypeScript],
    [TypeScript, Rust],
];

/// A realm in which accounts are registered, and the built runner in TypeScript.
struct Stage {
    realm: Mutex<Realm>,
    access: Access,
    certificate: PathBuf,
    node: typescript::Node,
    folder: Folder,
    /// For players on a page.
    browser: Option<Arc<Browser>>,
}

impl Stage {
    /// `None`, with a message, if tools are missing.
    async fn start() -> Option<Self> {
        if !are_built() {
            return None;
        }
        let node = typescript::Node::find().await?;
        let folder = Folder::create();
        typescript::build(&node, folder.path()).await;
        let world = repository().join("defs");
        let schema = compile(&world).expect("the sample compiles");
        let data = folder.path().join("realm");
        let settings = vec![
            ("web_origins", "*".to_owned()),
            ("account_creation", "registration".to_owned()),
        ];
        let plan = RealmPlan {
            settings,
            ..RealmPlan::new("scenarios", &world, &data)
        };
        let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
        Some(Self {
            access: Access {
                login: realm.login,
                schema,
            },
            realm: Mutex::new(realm),
            certificate: data.join("development-certificate.pem"),
            node,
            folder,
            browser: None,
        })
    }

    /// URL of the login service.
    fn url(&self) -> String {
        format!("wss://localhost:{}", self.access.login.0.port())
    }

    fn player(&self, language: Language) -> Player {
        match language {
            Rust => Player::in_rust(self.access.clone()),
            TypeScript => {
                let url = self.url();
                let mut command = self.node.command(&self.folder.path().join("node.mjs"));
                Player::in_process(command.arg(url).env("NODE_EXTRA_CA_CERTS", &self.certificate))
            }
            Page => Player::in_browser(Arc::clone(self.browser.as_ref().expect("there is a browser"))),
        }
    }

    /// Plays a scenario with players in these languages; returns the transcript. Each cast has accounts of its own.
    async fn play(&self, scenario: &Scenario, (cast, languages): (usize, [Language; 2])) -> Vec<String> {
        let players = scenario.players.iter().zip(languages);
        let players = players.map(|(name, language)| (name.clone(), self.player(language)));
        let account = |name: &String| (name.clone(), format!("{name}-{cast}"));
        let accounts = scenario.players.iter().map(account).collect();
        let title = format!("{languages:?}");
        let run = Run::new(scenario, title, players.collect(), accounts);
        run.play(async |does| {
            assert_eq!(does, "kill the bases", "{}: what the realm does", scenario.name);
            let mut realm = self.realm.lock().await;
            for base in BASES {
                assert!(realm.kill(base).expect("it can be killed"), "there is {base}");
            }
            for base in BASES {
                assert!(realm.start_again(base).expect("it starts"), "there is {base}");
            }
        })
        .await
    }

    /// Plays a scenario with all casts: side by side, unless it does something to the realm.
    async fn play_with_all(&self, scenario: &Scenario) -> Vec<Vec<String>> {
        let casts = CASTS.into_iter().enumerate();
        if scenario.steps.iter().all(|step| step.who != script::REALM) {
            return futures::future::join_all(casts.map(|cast| self.play(scenario, cast))).await;
        }
        let mut transcripts = Vec::new();
        for cast in casts {
            transcripts.push(self.play(scenario, cast).await);
        }
        transcripts
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_is_observed_alike_in_rust_and_in_typescript() {
    let _permit = permit().await;
    let Some(stage) = Stage::start().await else {
        return;
    };
    for scenario in scenarios() {
        println!("{}", scenario.name);
        let transcripts = stage.play_with_all(&scenario).await;
        for (cast, transcript) in CASTS.iter().zip(&transcripts) {
            let title = format!("{}: {:?} and {cast:?}", scenario.name, CASTS[0]);
            assert_eq!(transcripts[0].len(), transcript.len(), "{title}");
            for (first, other) in transcripts[0].iter().zip(transcript) {
                assert_eq!(first, other, "{title}");
            }
        }
    }
}

/// WebTransport fails, as the page knows the hash of another certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_is_observed_in_a_browser_by_web_socket() {
    let hashes = |_: &Path| vec!["ab".repeat(32)];
    play_in_a_browser("WebSocket", Certificates::AnyAccepted, hashes).await;
}

/// The certificate is accepted by its hash alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_is_observed_in_a_browser_by_web_transport() {
    let hashes = |data: &Path| {
        let hashes = web_certificate_hashes(data, SystemTime::now()).expect("certificates");
        hashes.iter().map(ToString::to_string).collect()
    };
    play_in_a_browser("WebTransport", Certificates::Checked, hashes).await;
}

/// Plays all scenarios with the first player in a browser. `hashes` is what its page knows of certificates.
async fn play_in_a_browser(transport: &str, certificates: Certificates, hashes: impl Fn(&Path) -> Vec<String>) {
    if !browser::is_installed() {
        return;
    }
    let _permit = permit().await;
    let Some(mut stage) = Stage::start().await else {
        return;
    };
    let (_server, port) = typescript::serve(stage.folder.path()).await;
    let browser = Arc::new(Browser::start_with(certificates).await);
    stage.browser = Some(Arc::clone(&browser));
    let data = stage.folder.path().join("realm");
    let fragment = [vec![stage.url()], hashes(&data)].concat().join(",");
    for (number, scenario) in scenarios().iter().enumerate() {
        println!("{}", scenario.name);
        // An address that differs in its fragment alone would not load the page again.
        let page = format!("http://127.0.0.1:{port}/index.html?{number}#{fragment}");
        browser.open(&page).await;
        within(LOAD_TIMEOUT, "the page to be loaded", async {
            while browser.ask("typeof take").await != "function" {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
        stage.play(scenario, (0, [Page, Rust])).await;
        assert_eq!(
            browser.ask("transports()").await,
            json!([transport]),
            "{}",
            scenario.name
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_runners_know_the_same_steps_and_scenarios_use_each() {
    let scenarios = scenarios();
    let used = scenarios.iter().flat_map(|scenario| &scenario.steps);
    let used = used.filter_map(|step| match &step.what {
        What::Does { step: does, .. } if step.who != script::REALM => does["does"].as_str(),
        _ => None,
    });
    let mut used: BTreeSet<&str> = used.collect();
    let name_the_steps = json!({ "does": "name the steps" });
    used.extend(name_the_steps["does"].as_str());
    let (_permit, stage) = (permit().await, Stage::start().await);
    let Some(stage) = stage else { return };
    for language in [Rust, TypeScript] {
        let mut player = stage.player(language);
        let known = player.ask(&name_the_steps).await.expect("they are named");
        assert_eq!(known, json!(used), "{language:?}");
        let refused = player
            .ask(&json!({ "does": "dance" }))
            .await
            .expect_err("it is unknown");
        assert!(refused.contains("unknown step dance"), "{language:?}: {refused}");
    }
}
