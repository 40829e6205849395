//! The page of `annals play`: two people play a scene in browsers, beside bots, over the deaths of the processes that
//! serve them.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use annals_realm::Folder;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    sync::SemaphorePermit,
};

use crate::{
    browser::{self, Browser},
    played::{are_built, binary, repository, run, timed_permit, within},
    typescript::compiler,
};

/// Maximum time for a part of the scene, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Distance, metres, at which chat arrives for certain: it reaches 100 m, and who enters the world may be placed
/// farther from somebody else.
const NEAR: u32 = 50;

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A running `annals play`.
struct Play {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Address of the page, `http://IP:PORT/`.
    page: String,
    folder: Folder,
    _permit: SemaphorePermit<'static>,
}

impl Play {
    /// Compiles the page, and starts the realm with it; `None`, with a message, if tools are missing.
    async fn start() -> Option<Self> {
        if !are_built() || binary("annals-verify").is_none() || !browser::is_installed() {
            return None;
        }
        let Some(tsc) = compiler() else {
            println!("SKIPPED: no tsc; `make setup` installs it where there is npm");
            return None;
        };
        let permit = timed_permit().await;
        let folder = Folder::create();
        let files = folder.path().join("page");
        let mut compiling = Command::new(repository().join("ops/play-page.sh"));
        let (status, said) = run(compiling.arg(&files).env("TSC", tsc)).await;
        assert!(status.success(), "{said}");
        let mut command = Command::new(binary("annals").expect("it is built"));
        command.args(["play", "--bots", "3", "--page", "127.0.0.1:0", "--world"]);
        command.arg(repository().join("defs")).arg("--files").arg(files);
        command.arg("--data").arg(folder.path().join("realm"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let page = within(TIMEOUT, "the page to be served", async {
            loop {
                let line = lines.next_line().await.expect("text").expect("it has not ended");
                if let Some(page) = line.strip_prefix("play at ") {
                    break page.to_owned();
                }
            }
        })
        .await;
        Some(Self {
            process,
            lines,
            page,
            folder,
            _permit: permit,
        })
    }

    /// Interrupts it, and reads what it prints until it ends.
    async fn stop(mut self) -> (ExitStatus, String) {
        let id = self.process.id().expect("it runs").to_string();
        let signalled = std::process::Command::new("kill").args(["-INT", &id]).status();
        assert!(signalled.is_ok_and(|status| status.success()), "it is interrupted");
        let ended = async {
            let mut said = String::new();
            while let Some(line) = self.lines.next_line().await.expect("text") {
                said.push_str(&line);
                said.push('\n');
            }
            (self.process.wait().await.expect("it has ended"), said)
        };
        within(TIMEOUT, "the realm to stop", ended).await
    }

    /// The status with which the page's server answers a request with these headers.
    async fn status(&self, request: &str, headers: &[(&str, &str)]) -> u16 {
        let address = self.page.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!("{request} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut answer = String::new();
        within(TIMEOUT, "an answer", stream.read_to_string(&mut answer))
            .await
            .expect("text");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{answer}"))
    }
}

/// A person at the page.
struct Person {
    name: &'static str,
    browser: Browser,
    transport: Transport,
}

/// What carries the connections of a person's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    WebTransport,
    /// As in a browser without WebTransport.
    WebSocket,
}

impl Person {
    /// Logs in, and waits for an avatar in the world.
    async fn enter(play: &Play, name: &'static str, transport: Transport) -> Self {
        let browser = Browser::start().await;
        browser.open(&play.page).await;
        if transport == Transport::WebSocket {
            browser.ask("window.WebTransport = undefined").await;
        }
        browser.write("#name", name).await;
        browser.write("#password", "the password").await;
        browser.click("#enter button").await;
        let person = Self {
            name,
            browser,
            transport,
        };
        person.until("parseInt(text('#own-hp')) > 0").await;
        person.until("text('#own-coins') !== '–'").await;
        person
    }

    /// The value of an expression in the page; `text(SELECTOR)` is the text of an element.
    async fn ask(&self, expression: &str) -> Value {
        let text = "const text = (selector) => document.querySelector(selector)?.textContent ?? '';";
        self.browser
            .ask(&format!("(() => {{ {text} return {expression}; }})()"))
            .await
    }

    async fn is_so(&self, condition: &str) -> bool {
        self.ask(condition).await == Value::Bool(true)
    }

    /// Waits until a condition holds in the page; panics with what the page shows on timeout.
    async fn until(&self, condition: &str) {
        let holds = async {
            while !self.is_so(condition).await {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, holds).await.is_err() {
            let shown = self.ask("document.body.innerText").await;
            let lines = self.ask("text('#lines')").await;
            panic!(
                "{}: {condition}: not within {} s; the page shows: {shown}; its chat: {lines}",
                self.name,
                TIMEOUT.as_secs()
            );
        }
    }

    async fn click(&self, selector: &str) {
        self.browser.click(selector).await;
    }

    /// Presses a key of the game.
    async fn press(&self, key: char) {
        self.ask("document.querySelector('#scene').focus()").await;
        self.browser.press(key).await;
    }

    /// Walks in a direction, such as `north-east`, for so long that others see it.
    async fn walk(&self, direction: &str) {
        for (event, pause) in [("keydown", POLL_INTERVAL * 20), ("keyup", Duration::ZERO)] {
            for part in direction.split('-') {
                let code = match part {
                    "north" => "KeyW",
                    "south" => "KeyS",
                    "west" => "KeyA",
                    "east" => "KeyD",
                    other => panic!("{other} is no direction"),
                };
                self.ask(&format!(
                    "dispatchEvent(new KeyboardEvent('{event}', {{ code: '{code}' }}))"
                ))
                .await;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Walks towards somebody in view until they are near.
    async fn approach(&self, name: &str) {
        within(TIMEOUT, &format!("{} to be near {name}", self.name), async {
            loop {
                let line = self.sees(name).await;
                let (_, place) = line.rsplit_once(", ").expect("its place");
                let (metres, direction) = place.split_once(" m ").expect("distance and direction");
                if metres.parse::<u32>().expect("a number") <= NEAR {
                    return;
                }
                self.walk(direction).await;
            }
        })
        .await;
    }

    /// Selects a panel, which a small window shows alone.
    async fn select(&self, panel: &str) {
        self.ask(&format!("document.querySelector('#tabs [data-panel={panel}]').click()"))
            .await;
    }

    async fn say(&self, words: &str) {
        self.select("talk").await;
        self.browser.write("#words", words).await;
        self.click("#chat button").await;
    }

    /// Waits until somebody has said something.
    async fn expect_chat(&self, name: &str, words: &str) {
        self.until(&format!("text('#lines').includes('{name} {words}')")).await;
    }

    /// What the page lists of somebody in view, such as `Ann, 100 health, 12 m east`.
    async fn sees(&self, name: &str) -> String {
        let listed = "[...document.querySelectorAll('#seen li')].map((item) => item.textContent)";
        self.until(&format!("{listed}.some((line) => line.startsWith('{name}, '))"))
            .await;
        let line = self
            .ask(&format!("{listed}.find((line) => line.startsWith('{name}, ')) ?? ''"))
            .await;
        line.as_str().expect("text").to_owned()
    }

    /// Trades a coin with the nearest avatar, a bot, until a trade is settled: bots may be busy with one another.
    async fn trade(&self) {
        within(TIMEOUT, "a trade", async {
            loop {
                self.press('t').await;
                self.until("!document.querySelector('#table').hidden").await;
                self.browser.write("#coins", "1").await;
                self.click("#offer button").await;
                let is_open = "!document.querySelector('#table').hidden";
                while self.is_so(is_open).await {
                    let can_accept = "!document.querySelector('#accept').disabled && text('#theirs') !== 'nothing' \
                        && text('#mine') !== 'nothing' && (document.querySelector('#accept').click(), true)";
                    self.ask(can_accept).await;
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                if self.is_so("document.querySelector('#ended .receipt') !== null").await {
                    return;
                }
            }
        })
        .await;
    }

    /// Strikes the nearest monster until it is seen to be hurt.
    async fn fight(&self) {
        let is_hurt = "[...document.querySelectorAll('#seen li')].some(({ textContent }) => \
            /^Monster, [0-9]{1,2} health/.test(textContent))";
        within(TIMEOUT, "a monster to be hurt", async {
            while !self.is_so(is_hurt).await {
                self.press('f').await;
                tokio::time::sleep(POLL_INTERVAL * 5).await;
            }
        })
        .await;
    }

    /// Kills a process by its button, and waits until it was restarted.
    async fn kill(&self, name: &str) {
        self.select("realm").await;
        let button = format!("document.querySelector('#kill-{name}')");
        self.until(&format!("{button} !== null && !{button}.disabled")).await;
        let killed = self.ask("parseInt(text('#kills'))").await;
        self.click(&format!("#kill-{name}")).await;
        self.until(&format!("parseInt(text('#kills')) === {killed} + 1")).await;
        self.until(&format!("!{button}.disabled")).await;
    }

    /// Checks that nothing is lost, that further calls are answered, and over what.
    async fn plays_on(&self) {
        let answered = self.ask("parseInt(text('#answered'))").await;
        self.until(&format!("parseInt(text('#answered')) > {answered} + 3"))
            .await;
        self.until("text('#unconfirmed') === '0'").await;
        assert_eq!(self.ask("text('#lost')").await, "0", "{}", self.name);
        self.until(&format!("text('#transport') === '{:?}'", self.transport))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_play_in_browsers_over_the_deaths_of_bases_and_cells() {
    let Some(play) = Play::start().await else {
        return;
    };
    let ann = Person::enter(&play, "Ann", Transport::WebTransport).await;
    ann.plays_on().await;
    ann.until("document.querySelectorAll('#seen li').length > 3").await;
    ann.fight().await;
    ann.trade().await;
    ann.select("trade").await;
    ann.click("#ended .receipt").await;
    ann.until("text('#verdict') === 'accepted by annals-verify'").await;
    ann.browser.look_in_both("play-receipt").await;
    ann.click("#close-receipt").await;

    let bob = Person::enter(&play, "Bob", Transport::WebSocket).await;
    bob.plays_on().await;
    let before = bob.sees("Ann").await;
    within(TIMEOUT, "Ann to be seen elsewhere", async {
        // A short way across Bob's line of sight changes neither the direction nor the distance in metres.
        while bob.sees("Ann").await == before {
            ann.walk("east").await;
            // Under load Bob's page shows it later.
            for _ in 0..100 {
                if bob.sees("Ann").await != before {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    })
    .await;
    ann.approach("Bob").await;
    ann.say("hello Bob").await;
    bob.expect_chat("Ann", "hello Bob").await;

    // One of the bases serves Ann.
    for name in ["base-1", "base-2", "cell-1", "cell-2"] {
        ann.kill(name).await;
        ann.plays_on().await;
    }
    ann.until("parseInt(text('#interruptions')) > 0").await;
    bob.say("still here").await;
    ann.expect_chat("Bob", "still here").await;
    bob.plays_on().await;
    ann.browser.look_in_both("play").await;
    foreign_requests_are_refused(&play).await;
    for person in [&ann, &bob] {
        let interruptions = person.ask("text('#interruptions')").await;
        println!(
            "{} by {:?}: reconnections {interruptions}",
            person.name, person.transport
        );
    }

    for person in [ann, bob] {
        person.click("#leave").await;
        person.until("text('#why') === 'You have left.'").await;
        person.browser.look_in_both("play-enter").await;
    }
    let realm = play.folder.path().join("realm");
    assert!(has_receipt(&realm.join("play")), "the receipt is kept");
    let (status, said) = play.stop().await;
    assert!(status.success(), "{said}");
}

/// The server answers its own page only, and passes WebSockets on to processes of the realm only.
async fn foreign_requests_are_refused(play: &Play) {
    let own = play.page.trim_start_matches("http://").trim_end_matches('/');
    let origin = play.page.trim_end_matches('/');
    let elsewhere = ("Origin", "http://elsewhere.example");
    let (_, port) = own.rsplit_once(':').expect("a port");
    // The page's own port: what listens there does not show the realm's certificate.
    let to_other = format!("GET /base/{port}");
    for (request, headers, expected) in [
        ("GET /realm", &[("Host", own)][..], 200),
        ("GET /realm", &[("Host", "elsewhere.example")], 403),
        ("POST /kill/base-1", &[("Host", own)], 403),
        ("POST /kill/base-1", &[("Host", own), elsewhere], 403),
        ("POST /kill/db", &[("Host", own), ("Origin", origin)], 404),
        ("GET /login", &[("Host", own), ("Upgrade", "websocket"), elsewhere], 403),
        (
            to_other.as_str(),
            &[("Host", own), ("Origin", origin), ("Upgrade", "websocket")],
            502,
        ),
        ("GET /..%2f..%2fetc/passwd", &[("Host", own)], 404),
    ] {
        assert_eq!(play.status(request, headers).await, expected, "{request} {headers:?}");
    }
    // A process that ends too often would end the realm. The first request kills it unless it was killed just before.
    let kill = ("POST /kill/cell-1", &[("Host", own), ("Origin", origin)]);
    assert!(
        [204, 409].contains(&play.status(kill.0, kill.1).await),
        "it is killed, or was"
    );
    assert_eq!(play.status(kill.0, kill.1).await, 409, "not twice in a row");
}

fn has_receipt(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).expect("a folder");
    entries.any(|entry| {
        let name = entry.expect("readable").file_name();
        name.to_string_lossy().starts_with("receipt-")
    })
}
