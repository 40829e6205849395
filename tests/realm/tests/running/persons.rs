//! Personal data in a live realm: names and addresses of log-ins are reported until the person is forgotten.

use std::{fs, path::Path, time::Duration};

use annals_host::nats::ServerCount;
use annals_realm::Folder;

use crate::{
    evidence::command,
    hands::Hand,
    played::{Played, are_built, within},
    trading::exchange,
};

/// Maximum time until an activation has ended and is folded: a session waits half a minute for its client.
const END_TIMEOUT: Duration = Duration::from_secs(90);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Whether some bytes occur in any file of a folder.
fn occurs_in(folder: &Path, text: &[u8]) -> bool {
    fs::read_dir(folder).expect("a folder").any(|found| {
        let path = found.expect("readable").path();
        if path.is_dir() {
            occurs_in(&path, text)
        } else {
            // Sockets, and files deleted meanwhile, are skipped.
            fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text))
        }
    })
}

/// A name that occurs nowhere else.
const NAME: &str = "ann-of-a-name-that-stands-nowhere";

/// A realm in which the person has traded, and commands on it.
struct Operator {
    folder: Folder,
    running: [String; 4],
    trade: String,
}

impl Operator {
    /// Runs a command on the realm; returns exit code and output.
    async fn says(&self, line: &[&str]) -> (Option<i32>, String) {
        let running = self.running.iter().map(String::as_str);
        let line: Vec<&str> = line.iter().copied().chain(running).collect();
        let (status, said) = command(self.folder.path(), &line).await;
        (status.code(), said)
    }

    /// The same for a command that must succeed.
    async fn answers(&self, line: &[&str]) -> String {
        let (code, said) = self.says(line).await;
        assert_eq!(code, Some(0), "{line:?}: {said}");
        said
    }

    async fn forget(&self) -> (Option<i32>, String) {
        let line = [
            "annals",
            "person",
            "forget",
            NAME,
            "--by",
            "olga",
            "--reason",
            "asked by letter",
        ];
        self.says(&line).await
    }

    /// Checks reports of the trade while the person is known.
    async fn check_reports(&self, stored: u64) {
        let said = self.answers(&["annals", "audit", "trade", &self.trade]).await;
        let known = format!("{NAME}, stored entity {stored}, from 127.0.0.1:");
        assert!(said.contains(&known) && said.contains("; bob, stored entity"), "{said}");
        let line = ["annals", "audit", "trade", &self.trade, "--format", "json"];
        let json = self.answers(&line).await;
        let session = json.split("\"session\": ").nth(1);
        let session = session.and_then(|rest| rest.split([',', '\n']).next());
        let session = session.expect("a client's session");
        let said = self.answers(&["annals", "audit", "session", session]).await;
        assert!(
            said.contains(", stored entity") && said.contains("from 127.0.0.1:"),
            "{said}"
        );
        let (code, said) = self.says(&["annals", "audit", "session", "1"]).await;
        assert!(
            code == Some(2) && said.contains("the archive has no client log-in of session"),
            "{said}"
        );
    }

    /// Checks reports of the trade after the person is forgotten.
    async fn check_reports_after_erasure(&self, stored: u64) {
        let said = self.answers(&["annals", "audit", "trade", &self.trade]).await;
        let redacted = format!("stored entity {stored}; name and address were redacted on ");
        assert!(
            said.contains(&redacted) && said.contains(" by olga: asked by letter"),
            "{said}"
        );
        assert!(!said.contains(NAME) && said.contains("; bob, stored entity"), "{said}");
        let line = ["annals", "audit", "trade", &self.trade, "--format", "json"];
        let json = self.answers(&line).await;
        assert!(
            json.contains("\"redacted\": {") && json.contains("\"by\": \"olga\""),
            "{json}"
        );
        let (code, said) = self.says(&["annals", "person", "show", NAME]).await;
        assert!(code == Some(2) && said.contains("no account of this realm"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_in_data_is_reported_until_the_person_is_forgotten() {
    if !are_built() {
        return;
    }
    let realm = Played::start(ServerCount::One, &[]).await;
    let (ann, bob) = (Hand::log_in(&realm, NAME).await, Hand::log_in(&realm, "bob").await);
    let (asker, number) = exchange(&ann, &bob).await;
    let named = ["--realm", "played", "--nats", &realm.realm.nats()];
    let operator = Operator {
        folder: Folder::create(),
        running: named.map(str::to_owned),
        trade: format!("{asker}/{number}"),
    };
    let stored = ann.id();
    operator.check_reports(stored).await;

    // A person who is online cannot be forgotten.
    let (code, said) = operator.forget().await;
    assert!(code == Some(1) && said.contains("is activated"), "{said}");
    operator.answers(&["annals", "person", "export", "before"]).await;
    ann.leave().await;
    within(END_TIMEOUT, "the activation to end", async {
        loop {
            match operator.forget().await {
                (Some(0), _) => break,
                (Some(1), _) => tokio::time::sleep(POLL_INTERVAL).await,
                (_, said) => panic!("{said}"),
            }
        }
    })
    .await;
    operator.check_reports_after_erasure(stored).await;

    // No proof has changed, and restored keys do not restore the personal data.
    operator.answers(&["annals", "log", "verify"]).await;
    let said = operator.answers(&["annals", "person", "import", "before"]).await;
    assert!(said.contains("0 keys brought back"), "{said}");
    let said = operator
        .answers(&["annals", "person", "show", &format!("stored:{stored}")])
        .await;
    assert!(said.contains("is forgotten since"), "{said}");

    let data = realm.data();
    realm.realm.stop().await.expect("it stops");
    for kept in ["store", "nats"] {
        assert!(
            !occurs_in(&data.join(kept), NAME.as_bytes()),
            "her name stands in {kept}"
        );
    }
}
