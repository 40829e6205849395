//! Dashboards and alerts on a Prometheus that scrapes a live realm: no panel is empty, no alert fires in calm, and
//! alerts fire under their faults.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use annals_realm::Folder;

use regex::Regex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::played::{Played, are_built, repository, run, within};

/// Maximum time for a query to have data, or an alert to fire.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Where the log says that a process serves its metrics.
const SERVING: &str = "serving probes and metrics address=";

/// A Prometheus of this test.
struct Prometheus {
    _process: Child,
    address: String,
}

/// Debian's program of this name, or the private one of `make setup`; `None` if there is none.
fn program(name: &str) -> Option<PathBuf> {
    let private = repository().join("target/tools/prometheus/usr/bin");
    let folders = [private, PathBuf::from("/usr/bin")];
    folders
        .iter()
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
}

impl Prometheus {
    /// Scrapes the realm's processes once a second, with the alerts of `ops`, which fire after seconds here.
    async fn start(binary: &Path, realm: &Played, folder: &Path) -> Self {
        let rules = fs::read_to_string(repository().join("ops/telemetry/alerts.yml")).expect("the alerts");
        let soon = Regex::new(r"for: \w+")
            .expect("a pattern")
            .replace_all(&rules, "for: 1s");
        fs::write(folder.join("alerts.yml"), soon.replace("[30s]", "[4s]")).expect("a file");
        let names: Vec<String> = realm.realm.members().map(|(name, _)| name.to_owned()).collect();
        let targets: Vec<String> = names.iter().map(|name| serving(realm, name)).collect();
        let configuration = serde_json::json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [{"job_name": "annals", "static_configs": [{"targets": targets}]}],
        });
        // JSON is YAML.
        fs::write(folder.join("prometheus.yml"), configuration.to_string()).expect("a file");
        let mut process = Command::new(binary)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("series").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let listening = Regex::new(r#"msg="Listening on" address=(\S+)"#).expect("a pattern");
        let address = within(TIMEOUT, "Prometheus to listen", async {
            loop {
                let line = lines.next_line().await.expect("it can be read").expect("it runs");
                if let Some(found) = listening.captures(&line) {
                    return found[1].to_owned();
                }
            }
        })
        .await;
        // It must not wait for a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            _process: process,
            address,
        }
    }

    /// The data of an answer of its API, waiting until it answers: it reads its series before.
    async fn get(&self, path: &str) -> Value {
        let answer = within(TIMEOUT, path, async {
            loop {
                if let Some(body) = self.ask(path).await {
                    return body;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"));
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// The body of an answer; `None` if it is not ready.
    async fn ask(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).await.expect("it listens");
        let request = format!("GET /api/v1/{path} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("it answers");
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        (!head.contains(" 503 ")).then(|| body.to_owned())
    }

    /// Whether a query has a number as its result.
    async fn has_data(&self, query: &str) -> bool {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = self.get(&format!("query?query={encoded}")).await;
        let samples = data["result"].as_array().expect("a vector");
        samples.iter().any(|sample| {
            let value = sample["value"][1].as_str().and_then(|value| value.parse::<f64>().ok());
            value.is_some_and(f64::is_finite)
        })
    }

    /// The alerts that fire, by name.
    async fn firing(&self) -> Vec<String> {
        let data = self.get("alerts").await;
        let alerts = data["alerts"].as_array().expect("a list").iter();
        let firing = alerts.filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| alert["labels"]["alertname"].as_str().expect("a name").to_owned())
            .collect()
    }

    async fn wait_for_alert(&self, name: &str) {
        within(TIMEOUT, name, async {
            while !self.firing().await.iter().any(|firing| firing == name) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }
}

/// The address on which a process serves its metrics.
fn serving(realm: &Played, process: &str) -> String {
    let log = realm.log_of(process);
    let line = log.lines().find_map(|line| line.split_once(SERVING));
    line.unwrap_or_else(|| panic!("{process} serves no metrics"))
        .1
        .trim()
        .to_owned()
}

/// The queries of all dashboards, as Grafana would send them: dashboard, panel and query.
fn queries() -> Vec<(String, String, String)> {
    let folder = repository().join("ops/telemetry/grafana");
    let mut queries = Vec::new();
    for file in fs::read_dir(folder).expect("the dashboards") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a dashboard");
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        let title = dashboard["title"].as_str().expect("a title");
        for panel in dashboard["panels"].as_array().expect("panels") {
            let targets = panel["targets"].as_array().expect("queries");
            assert!(!targets.is_empty(), "{title}: {panel}");
            for target in targets {
                let query = target["expr"].as_str().expect("a query");
                let query = query.replace("\"$realm\"", "\"played\"");
                let query = query
                    .replace("=\"$instance\"", "=~\".+\"")
                    .replace("$__rate_interval", "5s");
                let panel = panel["title"].as_str().expect("a title").to_owned();
                queries.push((title.to_owned(), panel, query));
            }
        }
    }
    queries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_panel_is_empty_and_alerts_fire_under_faults_only() {
    let (Some(prometheus), Some(promtool)) = (program("prometheus"), program("promtool")) else {
        return println!("SKIPPED: there is no Prometheus; `make setup` fetches it");
    };
    if !are_built() {
        return;
    }
    let mut checking = Command::new(promtool);
    checking
        .args(["test", "rules", "ops/telemetry/alerts.test.yml"])
        .current_dir(repository());
    let (status, said) = run(&mut checking).await;
    assert!(status.success(), "{said}");
    let mut realm = Played::start_with(vec![("http", "127.0.0.1:0".to_owned())]).await;
    let folder = Folder::create();
    let prometheus = Prometheus::start(&prometheus, &realm, folder.path()).await;
    let queries = queries();
    assert!(queries.len() > 40, "{queries:?}");
    for (dashboard, panel, query) in &queries {
        within(TIMEOUT, &format!("{dashboard}: {panel}: {query}"), async {
            while !prometheus.has_data(query).await {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }
    let rules = prometheus.get("rules").await;
    for rule in rules["groups"][0]["rules"].as_array().expect("the alerts") {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    assert!(prometheus.firing().await.is_empty(), "{:?}", prometheus.firing().await);
    realm.assert_playing("a calm time").await;
    realm.kill("login");
    prometheus.wait_for_alert("AnnalsProcessDown").await;
    prometheus.wait_for_alert("AnnalsServiceNotReady").await;
    realm.start_again("login");
    realm.realm.nats_servers().each()[0].pause().expect("it runs");
    prometheus.wait_for_alert("AnnalsLogBlocked").await;
    realm.realm.nats_servers().each()[0].resume().expect("it is paused");
    realm.assert_playing("a pause of the log").await;
    realm.stop_and_verify().await;
}
