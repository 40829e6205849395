//! Each service's command line: its description, and its flags.

use std::collections::BTreeSet;
use std::process::Command;

use annals_host::config::{Flags, Service};

/// The settings that each service uses, beside those of all.
const USED: [(Service, &[&str]); 6] = [
    (
        Service::Base,
        &[
            "outbound",
            "acknowledged",
            "advertise",
            "certificate",
            "data",
            "download-bandwidth",
            "downloads",
            "key",
            "listen",
            "replicas",
            "threads",
            "trace-ratio",
            "web-origins",
            "world",
        ],
    ),
    (
        Service::Cell,
        &[
            "acknowledged",
            "client-bandwidth",
            "outbound",
            "replicas",
            "threads",
            "trace-ratio",
            "world",
        ],
    ),
    (
        Service::Db,
        &[
            "archive-period",
            "data",
            "fold",
            "keep-base-events",
            "keep-cell-events",
            "keep-ledger-events",
            "replicas",
            "shards",
            "store",
            "trace-ratio",
            "world",
        ],
    ),
    (Service::Director, &["max-players", "nats-system", "spaces", "world"]),
    (
        Service::Login,
        &[
            "advertise",
            "certificate",
            "authentication",
            "account-creation",
            "duplicate-login",
            "exempt-accounts",
            "data",
            "key",
            "listen",
            "replicas",
            "web-origins",
            "world",
        ],
    ),
    (Service::Signer, &["data", "shard"]),
];

/// The settings of all services, and the flags of every command line.
const OF_ALL: [&str; 14] = [
    "config",
    "realm",
    "nats",
    "nats-ca",
    "nats-certificate",
    "nats-credentials",
    "nats-key",
    "http",
    "otlp",
    "resource-attributes",
    "log",
    "log-format",
    "help",
    "version",
];

fn help(service: Service) -> String {
    Flags::command(service).render_long_help().to_string()
}

/// The long flags that a help text lists.
fn explained(help: &str) -> BTreeSet<&str> {
    let words = help.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("-h, ").trim_start_matches("-V, ");
        line.strip_prefix("--")
    });
    words
        .map(|rest| rest.split([' ', '=']).next().unwrap_or(rest))
        .collect()
}

#[test]
fn each_service_has_its_own_heading_and_the_flags_that_it_uses() {
    let headings: BTreeSet<String> = Service::ALL
        .into_iter()
        .map(|service| help(service).lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(headings.len(), Service::ALL.len(), "{headings:?}");
    for (service, used) in USED {
        let help = help(service);
        let wanted: BTreeSet<&str> = used.iter().copied().chain(OF_ALL).collect();
        assert_eq!(explained(&help), wanted, "{help}");
        assert!(help.contains(&format!("Usage: annals-{}", service.name())), "{help}");
        assert!(help.contains("Waits for nats-server"), "it says what it needs: {help}");
    }
}

#[test]
fn a_flag_of_another_service_is_refused_with_its_services() {
    let refused = |service, arguments: &[&str]| {
        let arguments = std::iter::once("program").chain(arguments.iter().copied());
        let matched = Flags::matched(&Flags::command(service), arguments);
        matched.expect_err("it has no such flag").to_string()
    };
    for arguments in [["--store", "embedded"].as_slice(), &["--store=embedded"]] {
        let said = refused(Service::Cell, arguments);
        let wanted = "--store is a setting of db, and annals-cell does not use it: leave it out, or give it to all services alike \
                      as ANNALS_STORE";
        assert!(said.contains(wanted), "{said}");
    }
    let said = refused(Service::Signer, &["--listen", "127.0.0.1:1"]);
    assert!(
        said.contains("--listen is a setting of base, login, and annals-signer"),
        "{said}"
    );
    let said = refused(Service::Db, &["--colour", "blue"]);
    assert!(said.contains("unexpected argument '--colour'"), "{said}");
}

#[test]
fn the_binaries_refuse_flags_of_other_services() {
    for (program, service) in [
        (env!("CARGO_BIN_EXE_annals-db"), Service::Db),
        (env!("CARGO_BIN_EXE_annals-director"), Service::Director),
        (env!("CARGO_BIN_EXE_annals-login"), Service::Login),
        (env!("CARGO_BIN_EXE_annals-signer"), Service::Signer),
    ] {
        let output = Command::new(program).arg("--help").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let heading = help(service).lines().next().unwrap_or_default().to_owned();
        assert!(output.status.success() && said.starts_with(&heading), "{said}");
        let counts = said.contains("--bases <COUNT>") && said.contains("--cells <COUNT>");
        assert_eq!(counts, service == Service::Director, "{said}");
    }
}
