//! Grants and seizures by operators in a live realm, by real processes and commands.

use std::{fs, path::Path};

use annals_host::nats::ServerCount;
use annals_realm::Folder;
use serde_json::Value;
use tokio::process::Command;

use crate::{
    evidence,
    hands::Hand,
    played::{Played, are_built, binary, run},
};

/// `annals` commands on the realm, run in a folder.
pub(crate) struct Operator<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) nats: String,
}

impl Operator<'_> {
    /// Runs a command; the exit code must be `code`.
    pub(crate) async fn run_expecting(&self, code: i32, line: &[&str]) -> String {
        let mut command = Command::new(binary("annals").expect("it is built"));
        command.args(line).args(["--realm", "played", "--nats", &self.nats]);
        let (status, said) = run(command.current_dir(self.folder)).await;
        assert_eq!(status.code(), Some(code), "{}: {said}", line.join(" "));
        said
    }

    /// The object that a command prints.
    pub(crate) async fn object(&self, code: i32, line: &[&str]) -> Value {
        let said = self.run_expecting(code, &[line, &["--format", "json"]].concat()).await;
        let from = said.find('{').expect("an object");
        let until = said.rfind('}').expect("an object");
        serde_json::from_str(&said[from..=until]).unwrap_or_else(|error| panic!("{error}: {said}"))
    }
}

const REASON: [&str; 4] = ["--by", "Grace Hopper", "--reason", "case 7: lost at a crash"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_orders_take_effect_once_and_name_their_operator() {
    if !are_built() {
        return;
    }
    let realm = Played::start(ServerCount::One, &[]).await;
    let (ann, mut bob) = (Hand::log_in(&realm, "ann").await, Hand::log_in(&realm, "bob").await);
    let folder = Folder::create();
    let operator = Operator {
        folder: folder.path(),
        nats: realm.realm.nats(),
    };
    let granted = grant_once(&operator, &ann).await;
    let sword = ann.carried().items[0];
    bob = take_and_return(&operator, &realm, (&ann, bob), sword).await;
    check_reports(&operator, sword, &granted).await;
    check_evidence(&operator, sword).await;
    for hand in [ann, bob] {
        hand.leave().await;
    }
    realm.stop_and_verify().await;
}

/// A playing client sees a grant at once; a repeated request grants once.
async fn grant_once(operator: &Operator<'_>, ann: &Hand) -> Value {
    let coins = ann.carried().coins + 50;
    let unknown = ["realm", "grant", "ann", "--units", "coins=50"];
    let unknown = operator.run_expecting(2, &[&unknown[..], &REASON].concat()).await;
    assert!(
        unknown.contains(
            "name no kind \"coins\" (did you mean coin?); write its number, or one of these names: coin, sword"
        ),
        "{unknown}"
    );
    // A kind is given by name or by number.
    let grant = [
        "realm", "grant", "ann", "--units", "coin=50", "--new", "2=1", "--slot", "carried",
    ];
    let granted = operator.object(0, &[&grant[..], &REASON].concat()).await;
    ann.until("for what was granted", |hand| hand.carried().coins == coins)
        .await;
    let action = granted["action"].as_str().expect("it has a number");
    let again = [&grant[..], &REASON, &["--action", action]].concat();
    let again = operator.object(0, &again).await;
    assert_eq!(
        (&again["entry"], &again["wasBefore"]),
        (&granted["entry"], &Value::Bool(true))
    );
    let other = ["realm", "grant", "bob", "--units", "1=50", "--action", action];
    let other = operator.run_expecting(2, &[&other[..], &REASON].concat()).await;
    assert!(other.contains("was already used for another order"), "{other}");
    ann.settle().await;
    assert_eq!(ann.carried().coins, coins);
    granted
}

/// Taken from a player that is online, and given back to one that is not.
async fn take_and_return(operator: &Operator<'_>, realm: &Played, (ann, bob): (&Hand, Hand), sword: u64) -> Hand {
    let serial = sword.to_string();
    let take = ["realm", "take", "ann", "--item", &serial];
    let take = [&take[..], &REASON].concat();
    operator.run_expecting(0, &take).await;
    ann.until("for what was taken", |hand| !hand.carried().items.contains(&sword))
        .await;
    let gone = operator.run_expecting(2, &take).await;
    assert!(gone.contains("is not held by the account"), "{gone}");
    let id = bob.id();
    bob.leave().await;
    let back = ["realm", "grant", "bob", "--item", &serial];
    let back = operator.object(0, &[&back[..], &REASON].concat()).await;
    assert_eq!(back["stored"], id);
    let poor = ["realm", "take", "bob", "--units", "1=1000000"];
    let said = operator
        .run_expecting(
            1,
            &[
                &["realm", "take", "bob", "--units", "coin=1000000", "--slot", "0"][..],
                &REASON,
            ]
            .concat(),
        )
        .await;
    assert!(said.contains("refused"), "{said}");
    let poor = operator.object(1, &[&poor[..], &REASON].concat()).await;
    assert_eq!(poor["isRefused"], true, "{poor}");
    // An account that was activated only for the grant is at rest again, and its player finds what was given.
    let bob = Hand::log_in(realm, "bob").await;
    bob.until("for what came back", |hand| hand.carried().items.contains(&sword))
        .await;
    bob
}

/// Ownership can be proven to a person without access to the realm.
async fn check_evidence(operator: &Operator<'_>, sword: u64) {
    if binary("annals-verify").is_none() {
        return;
    }
    let running = ["--realm", "played", "--nats", &operator.nats];
    evidence::bundle(operator.folder, ["item", &sword.to_string()], &running).await;
    let keys = operator.run_expecting(0, &["checkpoint", "show", "--keys"]).await;
    let key = keys.trim().strip_prefix("0 ").expect("one key");
    evidence::run_expecting(operator.folder, 0, &["annals-verify", "item.zip", "--key", key]).await;
    let bundle = fs::read(operator.folder.join("item.zip")).expect("it was written");
    // The bundle is not compressed, and the report is what was checked.
    let report = String::from_utf8_lossy(&bundle);
    for said in [
        "given back by an operator: case 7: lost at a crash",
        "operator Grace Hopper with annals realm take, action ",
        "An operator is somebody who looks after the realm",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
}

async fn check_reports(operator: &Operator<'_>, sword: u64, granted: &Value) {
    let item = operator.run_expecting(0, &["audit", "item", &sword.to_string()]).await;
    for said in [
        "taken by an operator: case 7: lost at a crash",
        "given back by an operator: case 7: lost at a crash",
        "operator Grace Hopper with annals realm take, action ",
        "operator Grace Hopper with annals realm grant, action ",
    ] {
        assert!(item.contains(said), "{said}: {item}");
    }
    let operators = |said: &Value, list: &str, of: fn(&Value) -> &Value| -> Vec<Value> {
        let steps = said[list].as_array().expect("a list").iter().map(of);
        steps.filter(|by| !by.is_null()).cloned().collect()
    };
    let account = operator.object(0, &["audit", "account", "ann"]).await;
    let by = operators(&account, "steps", |step| &step["asked"]["operator"]);
    let (asker, _) = granted["order"]
        .as_str()
        .and_then(|order| order.split_once('/'))
        .expect("an order");
    let entity = operator.object(0, &["audit", "entity", asker]).await;
    assert_eq!(operators(&entity, "events", |event| &event["operator"]), by);
    let [grant, take] = &by[..] else { panic!("{account}") };
    assert_eq!(grant["action"], granted["action"]);
    for by in [grant, take] {
        assert_eq!(
            (&by["name"], &by["why"]),
            (&Value::from(REASON[1]), &Value::from(REASON[3]))
        );
    }
}
