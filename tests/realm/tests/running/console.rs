//! A dispute, from the complaint to the evidence bundle, in a browser: on a live realm, and on its offline data.

use std::{path::Path, process::Stdio, time::Duration};

use annals_evidence::{Anchors, check};
use annals_host::nats::ServerCount;
use annals_proof::{SignedNote, VerifierKey};
use annals_realm::Folder;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

use crate::{
    browser::{self, Browser, ENTER},
    evidence::{bundle, run_expecting},
    hands::Hand,
    played::{Played, are_built, binary, within},
    trading::exchange,
};

/// Maximum time for the console to start and to stop.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(60);

const PASSWORD: &str = "correct horse battery";

/// Keys, as the WebDriver protocol writes them.
const TAB: char = '\u{e004}';
/// A running console.
struct Console {
    process: Child,
    address: String,
}

impl Console {
    async fn serve(here: &Path, realm: &[&str]) -> Self {
        let mut command = Command::new(binary("annals-console").expect("it is built"));
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(realm)
            .current_dir(here);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let said = within(PROCESS_TIMEOUT, "the console", lines.next_line()).await;
        let said = said.expect("it can be read").expect("it says where it is");
        let address = said
            .strip_prefix("the console is at ")
            .and_then(|address| address.strip_suffix('/'));
        let address = address.expect("an address").to_owned();
        Self { process, address }
    }

    /// Stops it with a signal, and checks that it exits.
    async fn stop(mut self) {
        let id = self.process.id().expect("it runs").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(asked.expect("kill runs").success());
        let ended = within(PROCESS_TIMEOUT, "the console's end", self.process.wait()).await;
        assert!(ended.expect("it ended").success());
    }
}

/// Adds an auditor.
async fn add_iris(here: &Path) {
    let mut command = Command::new(binary("annals-console").expect("it is built"));
    command
        .args(["person", "add", "iris", "--role", "auditor"])
        .current_dir(here);
    let mut adding = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = adding.stdin.take().expect("piped");
    input
        .write_all(format!("{PASSWORD}\n").as_bytes())
        .await
        .expect("written");
    drop(input);
    assert!(adding.wait().await.expect("it ends").success());
}

async fn log_in(iris: &Browser, console: &Console) {
    iris.open(&console.address).await;
    iris.look("login").await;
    iris.write("#name", "iris").await;
    iris.write("#password", "a wrong password").await;
    iris.click_and_wait("main button").await;
    assert_eq!(iris.text("[role=alert]").await, "Name or password is wrong.");
    iris.write("#password", PASSWORD).await;
    iris.click_and_wait("main button").await;
    assert_eq!(iris.text("h1").await, "The auditor's desk");
    iris.look("desk").await;
}

/// From the name of the complaining player to the trade, by keyboard.
async fn find_the_trade(iris: &Browser, trade: &str) {
    assert_eq!(
        iris.ask("document.activeElement.id").await,
        "search",
        "one can begin to type"
    );
    iris.write("#search", "nobody of that name").await;
    iris.submit().await;
    assert_eq!(iris.text("h1").await, "Nothing found");
    iris.look("nothing").await;
    iris.write("#q", "ann").await;
    iris.submit().await;
    assert!(iris.text("h1").await.starts_with("ann stored entity "));
    iris.look("account").await;
    iris.follow(&format!("trade {trade}")).await;
    assert_eq!(iris.text("h1").await, format!("Trade {trade} settled"));
    iris.look("trade").await;
    iris.press(TAB).await;
    let focused = iris.ask("document.activeElement.textContent").await;
    assert_eq!(focused, "Skip to content");
    iris.press(ENTER).await;
    assert_eq!(iris.ask("document.activeElement.id").await, "main");
}

/// A case about the trade: opened with the complaint, annotated, found in the list, and closed.
async fn handle_case(iris: &Browser, trade: &str) {
    iris.click("#cases ~ details summary").await;
    iris.write("#text", "says that the offer was changed").await;
    iris.click_and_wait("#cases ~ details button").await;
    assert_eq!(iris.text("h1").await, "Case 1 open");
    iris.write("#text", "accepted by both, version 3").await;
    iris.click_and_wait("button[value=noted]").await;
    iris.look("case").await;
    iris.follow("Desk").await;
    let desk = iris.text("main").await;
    assert!(
        desk.contains(&format!("Case 1 about trade {trade}: says that the offer was changed")),
        "{desk}"
    );
    // Others trade meanwhile.
    let traded = iris.text("#trades ~ div tbody tr:last-child").await;
    let parties = traded.matches(" (stored entity ").count();
    assert!(traded.contains("trade ") && parties == 2, "{traded}");
    iris.look("desk-with-a-case").await;
    iris.follow("Case 1").await;
    iris.write("#text", "the trade stands").await;
    iris.click_and_wait("button[value=closed]").await;
    assert_eq!(iris.text("h1").await, "Case 1 closed");
    iris.follow(&format!("trade {}", trade)).await;
}

/// Holdings of both before and after the exchange, from the table of the last step.
async fn check_timeline(iris: &Browser, ann: &Hand, bob: &Hand) {
    let gave = iris.text(".gave").await;
    for (name, hand, coins) in [("ann", ann, 3), ("bob", bob, 1)] {
        let id = hand.id();
        assert!(
            gave.contains(&format!(
                "{name} (stored entity {id}) gave\nslot 0 (carried)\n{coins} coin (kind 1)"
            )),
            "{gave}"
        );
    }
    for (row, change) in [
        (1, "+ 1 coin (kind 1), slot 0 (carried)"),
        (2, "+ 3 coin (kind 1), slot 0 (carried)"),
    ] {
        let cell = format!(".steps > li:last-child tbody tr:nth-child({row}) td:last-child");
        let said = iris.text(&cell).await.replace('\u{2009}', " ");
        assert!(said.starts_with(change), "{said}");
    }
    let steps = iris.ask("document.querySelectorAll('.steps > li').length").await;
    assert_eq!(steps, 5, "proposed, two offers, accepted by both");
}

/// The player of the session that made the proposal, and its address.
async fn check_player_and_address(iris: &Browser, ann: &Hand) {
    let behind = format!("ann, stored entity {}, from 127.0.0.1", ann.id());
    let said = iris.text(".steps > li:first-child .client").await;
    assert!(said.starts_with(&behind), "{said}");
    iris.click_and_wait(".steps > li:first-child a[href^='/session/']")
        .await;
    assert!(iris.text("h1").await.starts_with("Client session "));
    assert!(iris.text("tbody").await.contains(&behind));
    iris.look("session").await;
    iris.back().await;
}

/// The page of the entity that proposed the trade: its coins when the first offer was made, event by event until they
/// change, and at moments typed in.
async fn check_entity_page(iris: &Browser, trade: &str) {
    let coins = async || {
        let find = "[...document.querySelectorAll('.properties tr')].find(row => row.cells[0].textContent == 'coins').cells[1].textContent";
        iris.ask(find)
            .await
            .as_str()
            .expect("text")
            .parse::<u64>()
            .expect("coins")
    };
    let (asker, _) = trade.split_once('/').expect("a trade");
    iris.click_and_wait(&format!(".steps a[href^='/entity/{asker}?']"))
        .await;
    assert!(iris.text("h1").await.starts_with(&format!("Entity {asker}")));
    iris.look("entity").await;
    let (before, first) = (coins().await, iris.address().await);
    let mut moved = 0;
    while coins().await == before {
        iris.follow("Next event →").await;
        moved += 1;
        assert!(moved < 20, "the offer leaves the slot");
    }
    assert_eq!(coins().await, before - 3);
    for _ in 0..moved {
        iris.follow("← Event before").await;
    }
    assert_eq!((coins().await, iris.address().await), (before, first));
    iris.write("#at", "00:00:00").await;
    iris.submit().await;
    assert!(
        iris.text("main")
            .await
            .contains("Nothing of it existed at that moment.")
    );
    iris.write("#at", "yesterday").await;
    iris.submit().await;
    assert_eq!(iris.text("h1").await, "That cannot be asked");
    iris.look("unclear").await;
}

/// Copies the newest checkpoint, submits it for comparison, and returns it.
async fn verify(iris: &Browser) -> SignedNote {
    iris.follow("Verification").await;
    iris.look("verification").await;
    iris.click("summary").await;
    let kept = format!("{}\n", iris.text("pre").await.trim_end());
    let note = SignedNote::parse(kept.as_bytes()).expect("a checkpoint");
    iris.write("#pasted", &kept).await;
    iris.click_and_wait("main button").await;
    let said = iris.text("#kept").await;
    assert!(said.starts_with("It continues the checkpoint that you kept"), "{said}");
    iris.look("kept").await;
    note
}

/// A bundle that leads to the stored checkpoint, checked as its recipient does.
async fn download_bundle(iris: &Browser, (here, key): (&Path, &str), trade: &str, kept: SignedNote) {
    iris.write("#q", trade).await;
    iris.submit().await;
    iris.fetch("Download the bundle").await;
    let file = format!("trade-{}.zip", trade.replace('/', "-"));
    let bundle = iris.downloaded(&file).await;
    let key: VerifierKey = key.parse().expect("a key");
    let anchors = Anchors {
        keys: vec![key.clone()],
        ..Anchors::default()
    };
    let verdict = check(&bundle, &anchors).expect("it verifies");
    assert!(
        verdict.statement().contains(&format!("Trade {trade} of stored entity")),
        "{}",
        verdict.statement()
    );
    std::fs::write(here.join("downloaded.zip"), &bundle).expect("written");
    run_expecting(here, 0, &["annals-verify", "downloaded.zip", "--key", &key.to_string()]).await;
    iris.click(".evidence summary").await;
    iris.write("#pasted", &kept.to_string()).await;
    iris.click(".evidence form button").await;
    let again = iris.downloaded(&file.replace(".zip", " (1).zip")).await;
    let anchors = Anchors {
        kept: vec![kept],
        ..anchors
    };
    check(&again, &anchors).expect("it leads to what was kept");
    iris.fetch("Download the receipt").await;
    let receipt = iris
        .downloaded(&format!("receipt-{}.txt", trade.replace('/', "-")))
        .await;
    std::fs::write(here.join("receipt"), receipt).expect("written");
    run_expecting(here, 0, &["annals-verify", "receipt", "--key", &key.to_string()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispute_can_be_settled_in_a_browser() {
    let commands = ["annals-console", "annals-verify"];
    if !are_built() || commands.iter().any(|name| binary(name).is_none()) || !browser::is_installed() {
        return;
    }
    let realm = Played::start(ServerCount::One, &[]).await;
    let (ann, bob) = (Hand::log_in(&realm, "ann").await, Hand::log_in(&realm, "bob").await);
    let (asker, number) = exchange(&ann, &bob).await;
    let (trade, nats) = (format!("{asker}/{number}"), realm.realm.nats());
    let folder = Folder::create();
    let here = folder.path();
    let running = ["--realm", "played", "--nats", &nats];
    // The signer signs within seconds, and there is no evidence before that.
    bundle(here, ["trade", &trade], &running).await;
    let keys = [&["annals", "checkpoint", "show", "--keys"][..], &running].concat();
    let keys = run_expecting(here, 0, &keys).await;
    let key = keys.trim().strip_prefix("0 ").expect("one key").to_owned();

    add_iris(here).await;
    let console = Console::serve(here, &running).await;
    let iris = Browser::start().await;
    log_in(&iris, &console).await;
    find_the_trade(&iris, &trade).await;
    check_timeline(&iris, &ann, &bob).await;
    handle_case(&iris, &trade).await;
    check_player_and_address(&iris, &ann).await;
    check_entity_page(&iris, &trade).await;
    let kept = verify(&iris).await;
    download_bundle(&iris, (here, &key), &trade, kept).await;
    iris.click_and_wait(".leave button").await;
    assert_eq!(iris.text("h1").await, "Log in");
    console.stop().await;
    let views = run_expecting(here, 0, &["annals-console", "views"]).await;
    for looked in [
        ": logged in",
        ": GET /search, which found nothing",
        ": GET /search, which led to /account/",
        &format!(": GET /trade/{trade}/bundle"),
        ": POST /logout",
        &format!(": opened case 1, about /trade/{trade}: says that the offer was changed"),
        ": closed case 1: the trade stands",
    ] {
        assert!(views.contains(looked), "{looked}: {views}");
    }
    assert!(!views.contains("=ann"), "no name is written down: {views}");

    // The same on the offline data.
    let data = realm.data();
    realm.realm.stop().await.expect("it stops");
    let console = Console::serve(here, &["--realm", "played", "--data", data.to_str().expect("a path")]).await;
    log_in(&iris, &console).await;
    find_the_trade(&iris, &trade).await;
    check_timeline(&iris, &ann, &bob).await;
    console.stop().await;
    drop(iris);
}
