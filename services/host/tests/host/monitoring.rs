//! Probes and metrics over HTTP, as an orchestrator and Prometheus read them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use annals_host::{
    certificates::Certificates,
    config::{CertificateFiles, Realm, Service},
    health::{Health, Readiness},
    monitoring::Monitoring,
    nats::Access,
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// More connections than the server holds at once.
const CROWD: usize = 64;

async fn start(service: Service) -> (Monitoring, Health) {
    start_with(service, Certificates::default()).await
}

async fn start_with(service: Service, certificates: Certificates) -> (Monitoring, Health) {
    let health = Health {
        certificates,
        ..Health::default()
    };
    let realm = "aldmoor".parse::<Realm>().unwrap();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let monitoring = Monitoring::start(any_port, (&realm, service), health.clone()).await;
    (monitoring.unwrap(), health)
}

/// A file with certificates that end in these years.
fn certificate(folder: &Path, name: &str, years: &[i32]) -> PathBuf {
    let one = |year: &i32| {
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(*year, 1, 1);
        parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    };
    let path = folder.join(name);
    fs::write(&path, years.iter().map(one).collect::<String>()).unwrap();
    path
}

fn files(chain: PathBuf) -> CertificateFiles {
    let key = chain.with_extension("key");
    CertificateFiles { chain, key }
}

/// Status, headers and body of the answer to a request line.
async fn ask(monitoring: &Monitoring, line: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(monitoring.address).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

/// The samples of a text in the format of OpenMetrics, by name and labels. Panics at a line that Prometheus would not
/// accept.
fn samples(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut described = Vec::new();
    let mut samples = BTreeMap::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.split(' ');
            let (kind, name) = (words.next().unwrap(), words.next().unwrap());
            assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
            described.push(name.to_owned());
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        assert!(
            described.iter().any(|known| family.starts_with(known.as_str())),
            "{line}"
        );
        assert!(
            samples.insert(name.to_owned(), value.parse().unwrap()).is_none(),
            "{line}"
        );
    }
    samples
}

#[tokio::test]
async fn a_process_is_alive_while_it_waits_and_ready_when_it_works() {
    let (monitoring, health) = start(Service::Base).await;
    for (readiness, status, said) in [
        (Readiness::Starting, 503, "starting\n"),
        (Readiness::Ready, 200, "ready\n"),
        (Readiness::Draining, 503, "draining\n"),
        (
            Readiness::Waiting {
                reason: "the store".to_owned(),
            },
            503,
            "waiting: the store\n",
        ),
    ] {
        health.readiness.send_replace(readiness);
        let (found, _, body) = ask(&monitoring, "GET /readyz").await;
        assert_eq!((found, body.as_str()), (status, said));
        assert_eq!(ask(&monitoring, "GET /livez").await.0, 200, "{said}");
    }
    let (status, _, body) = ask(&monitoring, "HEAD /livez").await;
    assert_eq!((status, body.as_str()), (200, ""));
    assert_eq!(ask(&monitoring, "GET /").await.0, 404);
    let (status, head, _) = ask(&monitoring, "POST /readyz").await;
    assert_eq!(status, 405);
    assert!(head.contains("allow: get, head"), "{head}");
}

#[tokio::test]
async fn each_service_has_its_metrics() {
    for service in Service::ALL {
        let (monitoring, _health) = start(service).await;
        let (status, head, body) = ask(&monitoring, "GET /metrics").await;
        assert_eq!(status, 200);
        assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
        let samples = samples(&body);
        let labels = format!("realm=\"aldmoor\",service=\"{}\"", service.name());
        assert!(samples.keys().all(|name| name.contains(&labels)), "{body}");
        let has = |name: &str| samples.keys().any(|sample| sample.starts_with(name));
        assert!(has("annals_build_info") && has("annals_ready"), "{body}");
        assert_eq!(has("annals_tick_duration_seconds_bucket"), service == Service::Cell);
        assert_eq!(has("annals_clients"), service == Service::Base);
        assert_eq!(has("annals_ledger_findings_total"), service == Service::Db);
    }
}

#[tokio::test]
async fn alerts_and_documents_name_existing_metrics() {
    let mut series = BTreeSet::new();
    let folder = tempfile::tempdir().unwrap();
    let shown = files(certificate(folder.path(), "play.pem", &[2100]));
    for service in Service::ALL {
        let certificates = Certificates::new(&Access::default(), Some(&shown));
        let (monitoring, _health) = start_with(service, certificates).await;
        let text = ask(&monitoring, "GET /metrics").await.2;
        series.extend(
            samples(&text)
                .into_keys()
                .map(|name| name.split('{').next().unwrap().to_owned()),
        );
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let named = |text: &str| -> BTreeSet<String> {
        let is_name = |word: &&str| word.starts_with("annals_") || word.starts_with("process_");
        let words = text.split(|c| !is_part(c)).filter(is_name);
        words.map(str::to_owned).collect()
    };
    let dashboards = fs::read_dir(root.join("ops/telemetry/grafana")).unwrap();
    let dashboards = dashboards.map(|file| format!("ops/telemetry/grafana/{}", file.unwrap().file_name().display()));
    let alerts = ["ops/telemetry/alerts.yml", "ops/telemetry/alerts.test.yml"].map(str::to_owned);
    for file in dashboards.chain(alerts) {
        let names = named(&read(&file));
        let unknown: Vec<&String> = names.difference(&series).collect();
        assert!(!names.is_empty() && unknown.is_empty(), "{file} names {unknown:?}");
    }
    let documented = named(&read("docs/health.md"));
    for name in &documented {
        assert!(
            series.iter().any(|series| series.starts_with(name.as_str())),
            "{name} is documented"
        );
    }
    for series in &series {
        assert!(
            documented.iter().any(|name| series.starts_with(name.as_str())),
            "{series} is not documented"
        );
    }
}

#[test]
fn each_alert_has_a_section_in_the_runbook() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let (alerts, runbook) = (read("ops/telemetry/alerts.yml"), read("docs/runbook.md"));
    let mut count = 0;
    for alert in alerts.split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap().trim();
        let link = format!("runbook: docs/runbook.md#{}\n", name.to_lowercase());
        assert!(alert.contains(&link), "{name} lacks the annotation {link}");
        let (_, section) = runbook
            .split_once(&format!("\n## {name}\n"))
            .unwrap_or_else(|| panic!("the runbook has no section {name}"));
        let section = section.split("\n## ").next().unwrap();
        for part in ["**What to check.**", "**What to do.**", "```sh"] {
            assert!(section.contains(part), "{name} lacks {part}");
        }
        count += 1;
    }
    assert!(count > 0, "alerts are found");
}

#[tokio::test]
async fn certificates_have_the_end_that_matters() {
    const NAME: &str = "annals_certificate_end_timestamp_seconds";
    let folder = tempfile::tempdir().unwrap();
    let access = Access {
        credentials: None,
        // The authority of the next year was added; of a chain, the first to end ends it.
        authority: Some(certificate(folder.path(), "ca.pem", &[2000, 2002])),
        certificate: Some(files(certificate(folder.path(), "cell.pem", &[2001, 2003]))),
    };
    let shown = files(certificate(folder.path(), "play.pem", &[2004]));
    let certificates = Certificates::new(&access, Some(&shown));
    let (monitoring, _health) = start_with(Service::Base, certificates).await;
    let found = async || {
        let samples = samples(&ask(&monitoring, "GET /metrics").await.2);
        let of = |setting: &str| {
            let name =
                |sample: &&String| sample.starts_with(NAME) && sample.contains(&format!("setting=\"{setting}\""));
            samples.keys().find(name).map(|name| samples[name] as i64)
        };
        ["nats_ca", "nats_certificate", "certificate"].map(of)
    };
    let start_of = |year: i32| Some(date_time_ymd(year, 1, 1).unix_timestamp());
    assert_eq!(found().await, [2002, 2001, 2004].map(start_of));

    // Renewed files: those for the nats-servers are read at every connection, the one for clients at the start.
    certificate(folder.path(), "cell.pem", &[2010]);
    certificate(folder.path(), "play.pem", &[2010]);
    fs::write(folder.path().join("ca.pem"), "damaged").unwrap();
    assert_eq!(found().await, [None, start_of(2010), start_of(2004)]);

    let (monitoring, _health) = start(Service::Base).await;
    assert!(
        !ask(&monitoring, "GET /metrics").await.2.contains(NAME),
        "without certificates"
    );
}

#[tokio::test]
async fn metrics_have_the_values_at_the_time_of_the_scrape() {
    let (monitoring, health) = start(Service::Cell).await;
    let metrics = &health.metrics;
    metrics.batches.add(41);
    metrics.inputs.add(1_000);
    for (micros, times) in [(200, 3), (300, 2), (4_000, 1), (20_000_000, 1)] {
        (0..times).for_each(|_| metrics.tick.record(Duration::from_micros(micros)));
    }
    health.readiness.send_replace(Readiness::Ready);
    let found = samples(&ask(&monitoring, "GET /metrics").await.2);
    let value = |name: &str, label: &str| {
        let of_name = |sample: &&String| sample.split('{').next() == Some(name) && sample.contains(label);
        found[found.keys().find(of_name).unwrap()]
    };
    assert_eq!(value("annals_ready", ""), 1.0);
    assert_eq!(value("annals_batches_total", ""), 41.0);
    assert_eq!(value("annals_inputs_total", ""), 1_000.0);
    let buckets = [
        ("0.00025", 3.0),
        ("0.0005", 5.0),
        ("0.0025", 5.0),
        ("0.005", 6.0),
        ("10.0", 6.0),
        ("+Inf", 7.0),
    ];
    for (bound, count) in buckets {
        let label = format!("le=\"{bound}\"");
        assert_eq!(value("annals_tick_duration_seconds_bucket", &label), count, "{bound}");
    }
    assert_eq!(value("annals_tick_duration_seconds_count", ""), 7.0);
    let sum = value("annals_tick_duration_seconds_sum", "");
    assert!((sum - 20.005_2).abs() < 0.02, "{sum}");
    metrics.batches.add(1);
    assert!(ask(&monitoring, "GET /metrics").await.2.contains("} 42\n"), "read anew");
}

#[tokio::test]
async fn buckets_are_consistent_whatever_was_recorded() {
    let (monitoring, health) = start(Service::Cell).await;
    let mut recorded = 0;
    for micros in (1..=60_000_000_u64)
        .step_by(997_001)
        .chain((0..26).flat_map(|bit| [1 << bit, (1 << bit) + 1]))
    {
        for near in [micros, micros / 1_000 * 1_000, 2_500, 2_501, 100_000, 100_001] {
            health.metrics.tick.record(Duration::from_micros(near));
            recorded += 1;
        }
        let found = samples(&ask(&monitoring, "GET /metrics").await.2);
        let bound_of = |name: &str| {
            let bound = name.split("le=\"").nth(1)?.split('"').next()?;
            (name.starts_with("annals_tick")).then(|| bound.parse().unwrap_or(f64::INFINITY))
        };
        let mut buckets: Vec<(f64, f64)> = found
            .iter()
            .filter_map(|(name, count)| Some((bound_of(name)?, *count)))
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
        assert_eq!(buckets.last().unwrap().1, f64::from(recorded));
    }
}

#[tokio::test]
async fn hostile_connections_are_refused_and_end_with_the_server() {
    let (monitoring, _health) = start(Service::Login).await;
    for nonsense in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET /livez HTTP/9\r\n\r\n"] {
        let mut stream = TcpStream::connect(monitoring.address).await.unwrap();
        stream.write_all(nonsense.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // It answers with an error, or closes the connection.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{nonsense:?}");
    }
    let long = format!("GET /{}", "a".repeat(64 << 10));
    let mut stream = TcpStream::connect(monitoring.address).await.unwrap();
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"));

    // Silent clients take all connections; when they leave, others are answered.
    let mut silent = Vec::new();
    for _ in 0..CROWD {
        silent.push(TcpStream::connect(monitoring.address).await.unwrap());
    }
    drop(silent);
    assert_eq!(ask(&monitoring, "GET /livez").await.0, 200);
    let mut last = TcpStream::connect(monitoring.address).await.unwrap();
    drop(monitoring);
    let mut rest = Vec::new();
    let _ = last.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let (first, health) = start(Service::Db).await;
    let realm = "aldmoor".parse::<Realm>().unwrap();
    let error = Monitoring::start(first.address, (&realm, Service::Db), health)
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&first.address.to_string()), "{error}");
}
