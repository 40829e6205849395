//! Alarms: conditions of a realm that need attention. The thresholds are those of `ops/telemetry/alerts.yml`.

use std::{collections::BTreeMap, time::Duration};

use annals_host::health::Instance;
use annals_store::{
    Page, ScanOrder, Store, StoreError, Transaction,
    layout::archive::{Hole, holes},
};

/// Maximum holes in logs listed.
const HOLES: usize = 20;

/// Services without which a realm does not work.
const REQUIRED: [&str; 5] = ["director", "db", "login", "base", "cell"];

/// Work of a tick beyond which a cell may soon be late: half of a tick.
const TICK_SLOW: Duration = Duration::from_millis(50);

/// Time of an append beyond which players notice it.
const APPEND_SLOW: Duration = Duration::from_millis(250);

/// A condition that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Description of the condition.
    pub what: String,
    /// Advice on what to do.
    pub advice: &'static str,
}

/// The holes that db has recorded.
pub(crate) async fn of_holes(store: &Store) -> Result<Vec<Alarm>, StoreError> {
    let read = |transaction: Transaction| async move {
        transaction
            .snapshot()
            .get_range(&holes(), HOLES, ScanOrder::Forward)
            .await
    };
    let page: Page = store.read(read).await?;
    let mut alarms = Vec::new();
    for (key, value) in &page.rows {
        let ((owner, first), hole) = (Hole::place(key)?, Hole::decode(value)?);
        alarms.push(Alarm {
            what: format!(
                "The log of owner {owner} has a hole: batch {first} is missing, and batch {} follows.",
                hole.until
            ),
            advice: "The missing batches are not in the archive. annals log verify has details, and an operator \
                decides.",
        });
    }
    Ok(alarms)
}

/// Alarms that auditors have to know of: from the status reports of processes.
pub(crate) fn of_processes(instances: &[Instance]) -> Vec<Alarm> {
    let mut alarms: Vec<Alarm> = instances.iter().filter_map(of_ledger).collect();
    alarms.extend(instances.iter().filter_map(of_readiness));
    alarms
}

/// Alarms for operators: those, services that are missing, and figures beyond their thresholds.
pub(crate) fn of_realm(instances: &[Instance]) -> Vec<Alarm> {
    let mut alarms = missing(instances);
    alarms.extend(of_processes(instances));
    for instance in instances {
        alarms.extend(of_figures(instance));
    }
    alarms
}

fn missing(instances: &[Instance]) -> Vec<Alarm> {
    let mut ready: BTreeMap<&str, usize> = REQUIRED.map(|service| (service, 0)).into();
    for instance in instances {
        if let Some(ready) = ready.get_mut(instance.service.as_str()) {
            *ready += usize::from(instance.report.ready);
        }
    }
    let missing = REQUIRED.into_iter().filter(|service| ready[service] == 0);
    missing
        .map(|service| Alarm {
            what: format!("No process of {service} is ready."),
            advice: match service {
                "login" => "Nobody can log in; players play on. Start one, or read the end of its log.",
                "db" => "Nobody can log in, and nothing is granted; players play on. Read the end of its log.",
                "director" => "Nothing is granted, and boundaries stay where they are. Read the end of its log.",
                _ => "Its entities pause until one is ready. Start one, or read the end of its log.",
            },
        })
        .collect()
}

fn of_ledger(process: &Instance) -> Option<Alarm> {
    let (service, findings) = (&process.service, process.report.metrics.ledger_findings);
    (findings > 0).then(|| Alarm {
        what: format!("The audit of the ledger, which {service} runs, has {findings} findings."),
        advice: "annals realm audit-ledger names them.",
    })
}

fn of_readiness(process: &Instance) -> Option<Alarm> {
    // A standby director is expected not to be ready.
    let is_expected = process.report.ready || process.service == "director";
    (!is_expected).then(|| Alarm {
        what: format!(
            "Process {} of {} is not working: {}.",
            process.report.pid, process.service, process.report.readiness
        ),
        advice: "Its log has details; notify the realm's operator.",
    })
}

fn of_figures(process: &Instance) -> Vec<Alarm> {
    let (name, metrics) = (
        format!("{} process {}", process.service, process.report.pid),
        &process.report.metrics,
    );
    let is_slow = |took: u64, limit: Duration| Duration::from_micros(took) > limit;
    let mut alarms = Vec::new();
    if is_slow(metrics.tick.p99, TICK_SLOW) {
        alarms.push(Alarm {
            what: format!(
                "One tick in a hundred of {name} has taken more than {} of its 100 ms.",
                milliseconds(metrics.tick.p99)
            ),
            advice: "Counted since it started. If it goes on, start another cell process: spaces are divided by load.",
        });
    }
    if is_slow(metrics.append.p99, APPEND_SLOW) {
        alarms.push(Alarm {
            what: format!(
                "One append in a hundred of {name} has taken more than {}.",
                milliseconds(metrics.append.p99)
            ),
            advice: "Counted since it started. Players see everything later by that: look at the disks of the \
                nats-servers, and at the network between them.",
        });
    }
    if metrics.troubles > 0 {
        alarms.push(Alarm {
            what: format!(
                "Owners of {name} have reported {} errors since it started.",
                metrics.troubles
            ),
            advice: "Search its log for \"the owner reported an error\"; if it says ALARM, keep the realm's data, and \
                run annals log verify.",
        });
    }
    alarms
}

/// A duration in microseconds, for the reader.
pub(crate) fn milliseconds(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{:.1} ms", micros as f64 / 1_000.0),
        _ => format!("{} ms", micros / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use annals_host::{
        health::{Readiness, Report},
        telemetry::Snapshot,
    };

    use super::*;

    fn instance(service: &str, change: impl FnOnce(&mut Report)) -> Instance {
        let mut report = Report {
            ready: true,
            readiness: Readiness::Ready,
            process: None,
            pid: 7,
            metrics: Snapshot::default(),
        };
        change(&mut report);
        Instance {
            service: service.to_owned(),
            id: "id".to_owned(),
            version: "0.1.0".to_owned(),
            report,
        }
    }

    fn said(instances: &[Instance]) -> Vec<String> {
        of_realm(instances).into_iter().map(|alarm| alarm.what).collect()
    }

    #[test]
    fn a_healthy_realm_has_no_alarms() {
        let mut realm: Vec<Instance> = REQUIRED.map(|service| instance(service, |_| {})).into();
        // A standby.
        realm.push(instance("director", |report| {
            report.ready = false;
            report.readiness = Readiness::Waiting {
                reason: "another leads".to_owned(),
            };
        }));
        assert_eq!(said(&realm), Vec::<String>::new());
    }

    /// A service, a fault of one of its processes, and a part of its alarm.
    type Fault = (&'static str, fn(&mut Report), &'static str);

    #[test]
    fn each_fault_is_an_alarm() {
        let faults: [Fault; 5] = [
            ("cell", |report| report.metrics.tick.p99 = 50_001, "50 ms of its 100 ms"),
            ("base", |report| report.metrics.append.p99 = 251_000, "251 ms"),
            ("cell", |report| report.metrics.troubles = 3, "3 errors"),
            ("db", |report| report.metrics.ledger_findings = 2, "2 findings"),
            (
                "login",
                |report| {
                    report.readiness = Readiness::Waiting {
                        reason: "the store".to_owned(),
                    };
                },
                "waiting: the store",
            ),
        ];
        for (service, fault, expected) in faults {
            let mut realm: Vec<Instance> = REQUIRED.map(|service| instance(service, |_| {})).into();
            realm.push(instance(service, |report| {
                fault(report);
                report.ready = report.readiness == Readiness::Ready;
            }));
            let said = said(&realm);
            assert!(said.len() == 1 && said[0].contains(expected), "{service}: {said:?}");
        }
        let rest: Vec<Instance> = REQUIRED[1..].iter().map(|service| instance(service, |_| {})).collect();
        assert_eq!(said(&rest), ["No process of director is ready."]);
    }
}
