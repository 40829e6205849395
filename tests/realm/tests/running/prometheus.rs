//! A Prometheus that scrapes the processes of a realm, with the alerts of `ops`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use regex::Regex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::played::{Played, repository, within};

/// Maximum time for a query to have data, or an alert to fire.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Where the log says that a process serves its metrics.
const SERVING: &str = "serving probes and metrics address=";

/// A Prometheus, which ends with the test.
pub(crate) struct Prometheus {
    _process: Child,
    address: String,
}

/// Debian's program of this name, or the private one of `make setup`; `None` if there is none.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let private = repository().join("target/tools/prometheus/usr/bin");
    let folders = [private, PathBuf::from("/usr/bin")];
    folders
        .iter()
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
}

impl Prometheus {
    /// Starts one that scrapes processes once a second, by the addresses of their metrics, with the alerts of `ops`,
    /// which fire after seconds here. `None` if there is no Prometheus.
    pub(crate) async fn start(targets: &[String], folder: &Path) -> Option<Self> {
        let Some(binary) = program("prometheus") else {
            println!("SKIPPED: there is no Prometheus; `make setup` fetches it");
            return None;
        };
        let rules = fs::read_to_string(repository().join("ops/telemetry/alerts.yml")).expect("the alerts");
        let soon = Regex::new(r"for: \w+")
            .expect("a pattern")
            .replace_all(&rules, "for: 1s");
        fs::write(folder.join("alerts.yml"), soon.replace("[30s]", "[4s]")).expect("a file");
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
        Some(Self {
            _process: process,
            address,
        })
    }

    /// The data of an answer of its API, waiting until it answers: it reads its series before.
    pub(crate) async fn get(&self, path: &str) -> Value {
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
    pub(crate) async fn has_data(&self, query: &str) -> bool {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = self.get(&format!("query?query={encoded}")).await;
        let samples = data["result"].as_array().expect("a vector");
        samples.iter().any(|sample| {
            let value = sample["value"][1].as_str().and_then(|value| value.parse::<f64>().ok());
            value.is_some_and(f64::is_finite)
        })
    }

    /// The alerts that fire, by name.
    pub(crate) async fn firing(&self) -> Vec<String> {
        let data = self.get("alerts").await;
        let alerts = data["alerts"].as_array().expect("a list").iter();
        let firing = alerts.filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| alert["labels"]["alertname"].as_str().expect("a name").to_owned())
            .collect()
    }

    pub(crate) async fn wait_for_alert(&self, name: &str) {
        self.wait_until(name, true).await;
    }

    pub(crate) async fn wait_for_the_end_of(&self, name: &str) {
        self.wait_until(name, false).await;
    }

    async fn wait_until(&self, name: &str, is_firing: bool) {
        within(TIMEOUT, name, async {
            while self.is_firing(name).await != is_firing {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }

    pub(crate) async fn is_firing(&self, name: &str) -> bool {
        self.firing().await.iter().any(|firing| firing == name)
    }
}

/// The addresses on which the processes of a realm serve their metrics. Of one that is started again, another one.
pub(crate) fn targets(realm: &Played) -> Vec<String> {
    let names: Vec<&str> = realm.realm.members().map(|(name, _)| name).collect();
    names.into_iter().map(|name| serving(realm, name)).collect()
}

/// The setting that has each process serve its metrics.
pub(crate) fn serves_metrics() -> Vec<(&'static str, String)> {
    vec![("http", "127.0.0.1:0".to_owned())]
}

/// The address on which a process serves its metrics.
fn serving(realm: &Played, process: &str) -> String {
    let log = realm.log_of(process);
    let line = log.lines().rev().find_map(|line| line.split_once(SERVING));
    line.unwrap_or_else(|| panic!("{process} serves no metrics"))
        .1
        .trim()
        .to_owned()
}
