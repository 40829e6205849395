//! `annals realm upgrade` with a director of prepared answers: cases that depend on timing in a real realm.

use std::{future::pending, path::PathBuf};

use annals_director::Grants;
use annals_host::{
    log::History,
    nats::{Bus, Server, ServerOptions},
    process::FIRST_SHARD,
    world::compile,
};
use annals_ids::{ProcessId, WallTime};
use annals_store::{MemoryStore, remote};
use annals_wire::{
    Subjects,
    control::{self, UpgradeStage},
};
use futures::StreamExt;
use tempfile::TempDir;
use tokio::process::Command;

const REALM: &str = "upgraded";

/// A realm of a store and of a director with prepared answers.
struct Realm {
    _folder: TempDir,
    server: Server,
    /// Fingerprints of the definitions that it has, and of the next ones.
    present: Vec<u8>,
    next: Vec<u8>,
    defs: PathBuf,
}

impl Realm {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let defs = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../defs"));
        let next = folder.path().join("next");
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(&defs)
            .arg(&next)
            .status();
        assert!(copied.unwrap().success());
        let account = next.join("entity_defs/Account.def");
        let text = std::fs::read_to_string(&account).unwrap();
        let added = "<note> <Type> STRING </Type> <Flags> BASE </Flags> </note></Properties>";
        std::fs::write(&account, text.replace("</Properties>", added)).unwrap();
        let (old, new) = (compile(&defs).unwrap(), compile(&next).unwrap());

        let server = Server::start(&ServerOptions::new(folder.path().join("nats")))
            .await
            .unwrap();
        let store = MemoryStore::new().store();
        let term = Grants::watch(&store).await.unwrap();
        let leading = Grants::lead(store.clone(), ProcessId(1 << 63), term, std::time::Duration::ZERO);
        let grants = leading.await.unwrap();
        let encoded = old.encode();
        let begun = grants.begin_realm(WallTime(1), old.fingerprint(), &encoded);
        begun.await.unwrap();
        let bus = Bus::connect(&server.url(), "db").await.unwrap();
        History::ensure(&bus, REALM, FIRST_SHARD, 1).await.unwrap();
        let (client, subject) = (bus.client().clone(), Subjects::new(REALM).service("store"));
        tokio::spawn(async move { remote::serve(client, subject, store, pending()).await.unwrap() });
        Self {
            _folder: folder,
            server,
            present: old.fingerprint().0.to_vec(),
            next: new.fingerprint().0.to_vec(),
            defs: next,
        }
    }

    /// Exit code and output of the command; the director gives these answers, in order.
    async fn upgrade(&self, arguments: &[&str], answers: Vec<UpgradeStage>) -> (Option<i32>, String) {
        let bus = Bus::connect(&self.server.url(), "director").await.unwrap();
        let mut requests = bus.subscribe(Subjects::new(REALM).service("director")).await.unwrap();
        bus.barrier().await.unwrap();
        let answering = async {
            for answer in answers {
                let reply = requests.next().await.unwrap().reply.unwrap();
                bus.client()
                    .publish(reply, control::encode(&answer).into())
                    .await
                    .unwrap();
            }
            pending::<()>().await;
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.args(["realm", "upgrade", "--realm", REALM, "--nats", &self.server.url()]);
        command.args(arguments).kill_on_drop(true);
        tokio::select! {
            () = answering => unreachable!("it does not end"),
            output = command.output() => {
                let output = output.unwrap();
                let said = [output.stdout, output.stderr].concat();
                (output.status.code(), String::from_utf8(said).unwrap())
            }
        }
    }

    /// The answer of a director whose realm has definitions, and a change to others prepared.
    fn stage(&self, is_changed: bool, next: &[u8]) -> UpgradeStage {
        UpgradeStage {
            present: if is_changed {
                self.next.clone()
            } else {
                self.present.clone()
            },
            next: next.to_vec(),
            ..UpgradeStage::default()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_another_operator_finishes_or_takes_back_is_reported_as_such() {
    let realm = Realm::start().await;
    let defs = realm.defs.display().to_string();
    let waiting = UpgradeStage {
        waiting: vec!["owner 3 is not followed yet".to_owned()],
        ..realm.stage(false, &realm.next)
    };
    for (last, code, says) in [
        (
            realm.stage(true, &[]),
            0,
            "another operator has finished the change meanwhile: the realm has definitions ",
        ),
        (realm.stage(false, &[]), 2, "what was prepared was taken back meanwhile"),
    ] {
        let answers = vec![waiting.clone(), waiting.clone(), last];
        let (ended, said) = realm.upgrade(&["apply", "--defs", &defs], answers).await;
        assert_eq!(ended, Some(code), "{said}");
        assert!(
            said.contains("waiting: owner 3 is not followed yet") && said.contains(says),
            "{said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_after_an_abandoned_change_is_a_failure() {
    let realm = Realm::start().await;
    let abandoned = UpgradeStage {
        refused: "the change was abandoned: db has not answered within 5 s".to_owned(),
        ..realm.stage(false, &realm.next)
    };
    for (stage, code, says) in [
        (realm.stage(false, &[]), 0, "no change is prepared"),
        (realm.stage(false, &realm.next), 0, "ready"),
        (
            abandoned,
            1,
            "the change was abandoned: db has not answered within 5 s; the realm goes on with the definitions that it has. \
             Prepare the change again with `annals realm upgrade apply`",
        ),
    ] {
        let (ended, said) = realm.upgrade(&["status"], vec![stage]).await;
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
