//! Settings: which source wins, and how errors are reported.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use annals_host::config::{
    AccountCreation, Acknowledged, Age, Authentication, CertificateFiles, Config, DuplicateLogin, Flags, FoldedShards,
    LogFormat, Mistakes, Service, SpaceSetting, Spaces, StoreKind,
};
use annals_host::edge::WebOrigins;
use annals_host::nats::{Access, SyncPolicy};
use annals_host::store::{OpenError, open, open_to_fill};
use annals_ids::Shard;
use annals_store::{
    embedded::EmbeddedStore,
    layout::{
        lineage,
        mark::{self, OtherLayout},
    },
};
use tempfile::TempDir;

/// The flags of a service that has all of these.
fn flags(arguments: &[&str]) -> Flags {
    let matched = |service| {
        let arguments = std::iter::once("service").chain(arguments.iter().copied());
        Flags::matched(&Flags::command(service), arguments).ok()
    };
    let matches = Service::ALL.into_iter().find_map(matched);
    Flags::of(&matches.expect("a service has all of these flags"))
}

fn load(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, Mistakes> {
    let variables = variables
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Config::from_sources(&flags(arguments), variables)
}

fn file(text: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("annals.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

/// The error message for wrong settings.
fn complaint(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    load(arguments, variables).unwrap_err().to_string()
}

#[test]
fn defaults_are_a_realm_on_this_machine() {
    let config = load(
        &[],
        &[
            ("PATH", "/bin"),
            ("ANNALS_NATS_SERVER", "/x"),
            ("ANNALS_TEST_ROLE", "1"),
        ],
    )
    .unwrap();
    assert_eq!(config.realm.as_str(), "annals");
    assert_eq!(config.nats, "nats://127.0.0.1:4222");
    assert_eq!(config.certificate, None);
    assert_eq!(config.acknowledged, Acknowledged::Log);
    assert!(
        config.listen.ip().is_loopback(),
        "the default listen address is loopback"
    );
}

#[test]
fn every_setting_can_be_given_in_a_file() {
    let (_dir, path) = file(
        r#"
        realm = "aldmoor"
        nats = ["nats://a:4222", "nats://b:4222"]
        data = "/var/lib/annals"
        listen = "[::]:7700"
        advertise = "play.example.org:7700"
        certificate = "play.pem"
        key = "play.key"
        acknowledged = "archive"
        log = "debug"
        log_format = "json"
        "#,
    );
    for config in [
        load(&["--config", &path], &[]).unwrap(),
        load(&[], &[("ANNALS_CONFIG", &path)]).unwrap(),
    ] {
        assert_eq!(config.realm.as_str(), "aldmoor");
        assert_eq!(config.nats, "nats://a:4222,nats://b:4222");
        assert_eq!(config.data, PathBuf::from("/var/lib/annals"));
        assert_eq!(config.listen, "[::]:7700".parse().unwrap());
        assert_eq!(config.advertise.as_deref(), Some("play.example.org:7700"));
        let files = CertificateFiles {
            chain: PathBuf::from("play.pem"),
            key: PathBuf::from("play.key"),
        };
        assert_eq!(config.certificate, Some(files));
        assert_eq!(config.acknowledged, Acknowledged::Archive);
        assert_eq!(config.log_format, LogFormat::Json);
    }
}

#[test]
fn a_process_is_admitted_to_the_nats_servers_by_files() {
    let flags = ["--nats-credentials", "cell.credentials", "--nats-ca", "ca.pem"];
    let variables = [("ANNALS_NATS_CERTIFICATE", "cell.pem"), ("ANNALS_NATS_KEY", "cell.key")];
    let certificate = CertificateFiles {
        chain: PathBuf::from("cell.pem"),
        key: PathBuf::from("cell.key"),
    };
    let access = Access {
        credentials: Some(PathBuf::from("cell.credentials")),
        authority: Some(PathBuf::from("ca.pem")),
        certificate: Some(certificate),
    };
    assert_eq!(load(&flags, &variables).unwrap().access, access);
    assert_eq!(load(&[], &[]).unwrap().access, Access::default());
    let alone = complaint(&[], &[("ANNALS_NATS_KEY", "cell.key")]);
    assert!(
        alone.contains("nats_key is given") && alone.contains("nats_certificate is not"),
        "{alone}"
    );
}

#[test]
fn web_pages_are_admitted_by_their_origins() {
    assert_eq!(load(&[], &[]).unwrap().web_origins, None);
    let any = load(&["--web-origins", "*"], &[]).unwrap();
    assert_eq!(any.web_origins, Some(WebOrigins::Any));
    let (_dir, path) = file(r#"web_origins = ["https://a.example", "http://localhost:8080"]"#);
    let listed = load(&["--config", &path], &[]).unwrap();
    let origins = ["https://a.example", "http://localhost:8080"].map(str::to_owned);
    let origins = WebOrigins::Only(origins.into());
    for origins in [&origins, &WebOrigins::Any] {
        assert_eq!(origins.to_string().parse().as_ref(), Ok(origins));
    }
    assert_eq!(listed.web_origins, Some(origins));
    for (wrong, advice) in [
        ("", "write https://HOST"),
        ("a.example", "write https://HOST"),
        ("https://a.example/", "write https://a.example"),
        ("https://A.example:443", "write https://a.example"),
        ("https://a.example,*", "write https://HOST"),
    ] {
        let said = complaint(&["--web-origins", wrong], &[]);
        assert!(said.contains(advice), "{wrong}: {said}");
    }
}

#[test]
fn players_may_be_limited_and_accounts_exempt() {
    let (_dir, path) = file("max_players = 5000\nexempt_accounts = [\"gm-ann\", \"gm-bob\"]\n");
    let unlimited = load(&[], &[]).unwrap();
    assert_eq!((unlimited.max_players, unlimited.exempt_accounts.len()), (None, 0));
    let config = load(&["--config", &path], &[]).unwrap();
    assert_eq!(config.max_players.map(std::num::NonZeroU32::get), Some(5_000));
    assert!(config.exempt_accounts.contains("gm-ann") && config.exempt_accounts.len() == 2);
    assert_eq!(load(&["--max-players", "0"], &[]).unwrap().max_players, None);
    let said = complaint(
        &[],
        &[("ANNALS_MAX_PLAYERS", "many"), ("ANNALS_EXEMPT_ACCOUNTS", "a,,b")],
    );
    assert!(
        said.contains("number of players") && said.contains("separated by commas"),
        "{said}"
    );
}

#[test]
fn a_second_log_in_replaces_or_is_refused() {
    let (_dir, path) = file(r#"duplicate_login = "refuse""#);
    assert_eq!(load(&[], &[]).unwrap().duplicate_login, DuplicateLogin::Replace);
    for config in [
        load(&["--config", &path], &[]),
        load(&[], &[("ANNALS_DUPLICATE_LOGIN", "refuse")]),
        load(
            &["--duplicate-login", "refuse"],
            &[("ANNALS_DUPLICATE_LOGIN", "replace")],
        ),
    ] {
        assert_eq!(config.unwrap().duplicate_login, DuplicateLogin::Refuse);
    }
    let said = complaint(&["--duplicate-login", "fight"], &[]);
    assert!(said.contains("write replace") && said.contains("or refuse"), "{said}");
}

#[test]
fn players_are_authenticated_and_accounts_created_as_is_said() {
    let built_in = load(&[], &[]).unwrap();
    let is_open = (built_in.authentication, built_in.account_creation);
    assert_eq!(is_open, (Authentication::BuiltIn, AccountCreation::Open));
    let (_dir, path) = file("authentication = \"service:accounts.check\"\naccount_creation = \"closed\"\n");
    let elsewhere = load(&["--config", &path], &[]).unwrap();
    let service = Authentication::Service("accounts.check".to_owned());
    assert_eq!(elsewhere.authentication, service);
    assert_eq!(elsewhere.account_creation, AccountCreation::Closed);
    let tokens = load(&["--authentication", "tokens:/etc/tokens.toml"], &[]).unwrap();
    assert_eq!(tokens.authentication, Authentication::Tokens("/etc/tokens.toml".into()));
    for wrong in [
        "service",
        "service:",
        "service:a..b",
        "service:a.*",
        "tokens:",
        "ldap:host",
        "Built-in",
    ] {
        let said = complaint(&["--authentication", wrong, "--account-creation", "free"], &[]);
        assert!(
            said.contains("write built-in") && said.contains("write open"),
            "{wrong}: {said}"
        );
    }
    let said = complaint(&["--config", &path, "--account-creation", "registration"], &[]);
    assert!(
        said.contains("registration is for authentication = \"built-in\""),
        "{said}"
    );
}

#[test]
fn a_collector_and_what_it_is_sent_can_be_given() {
    let off = load(&[], &[]).unwrap().telemetry;
    assert_eq!((off.endpoint, off.trace_ratio.share()), (None, 0.01));
    let (_dir, path) = file(
        r#"
        otlp = "http://collector:4318/"
        trace_ratio = 0.25
        resource_attributes = ["host.name=a", "cloud.region=north=1"]
        "#,
    );
    let given = load(&["--config", &path], &[]).unwrap().telemetry;
    assert_eq!(given.endpoint.as_deref(), Some("http://collector:4318"));
    assert_eq!(given.trace_ratio.share(), 0.25);
    let attributes: Vec<(&str, &str)> = given
        .attributes
        .0
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(attributes, [("cloud.region", "north=1"), ("host.name", "a")]);
    for (flag, wrong, advice) in [
        ("--otlp", "collector:4318", "write the URL of a collector"),
        ("--otlp", "nats://collector", "write the URL of a collector"),
        ("--trace-ratio", "2", "write a share from 0 to 1"),
        ("--trace-ratio", "NaN", "write a share from 0 to 1"),
        ("--resource-attributes", "host", "write NAME=VALUE"),
    ] {
        let said = complaint(&[flag, wrong], &[]);
        assert!(said.contains(advice), "{wrong}: {said}");
    }
}

#[test]
fn shards_are_a_number_and_a_db_folds_all_or_some() {
    let config = load(&[], &[]).unwrap();
    assert_eq!(
        (config.shards, config.shard, &config.fold),
        (1, Shard(0), &FoldedShards::All)
    );
    assert_eq!(load(&["--shard", "63"], &[]).unwrap().shard, Shard(63));
    let config = load(&["--shards", "64", "--fold", "0, 63"], &[]).unwrap();
    assert_eq!(config.shards, 64);
    assert!(config.fold.contains(Shard(63)) && !config.fold.contains(Shard(1)));
    assert_eq!(config.fold.highest(), Some(Shard(63)));
    for (flag, wrong, advice) in [
        ("--shards", "0", "write a number from 1 to 64"),
        ("--shards", "65", "write a number from 1 to 64"),
        ("--shard", "64", "write a number from 0 to 63"),
        ("--fold", "", "write all, or numbers of shards from 0 to 63"),
        ("--fold", "0-3", "write all, or numbers of shards from 0 to 63"),
        ("--fold", "64", "write all, or numbers of shards from 0 to 63"),
    ] {
        let said = complaint(&[flag, wrong], &[]);
        assert!(said.contains(advice), "{flag} {wrong}: {said}");
    }
}

#[test]
fn a_base_or_cell_has_one_thread_unless_more_are_named() {
    let threads = |args: &[&str]| load(args, &[]).unwrap().threads.get();
    assert_eq!([threads(&[]), threads(&["--threads", "64"])], [1, 64]);
    for wrong in ["0", "65", "all", ""] {
        let said = complaint(&["--threads", wrong], &[]);
        assert!(said.contains("write a number of threads, 1 to 64"), "{wrong}: {said}");
    }
}

#[test]
fn only_cell_events_can_have_an_age() {
    let config = load(&[], &[]).unwrap();
    assert_eq!(config.keep_cell_events, Age::Forever);
    for (text, seconds) in [("90d", 7_776_000), ("12h", 43_200), ("30m", 1_800), ("45s", 45)] {
        let config = load(&["--keep-cell-events", text], &[]).unwrap();
        assert_eq!(config.keep_cell_events, Age::AtLeast(Duration::from_secs(seconds)));
    }
    for wrong in [
        "",
        "0d",
        "90",
        "d",
        "-1d",
        "1.5h",
        "90 d",
        "99999999999999999999d",
        "36526d",
    ] {
        let text = complaint(&[], &[("ANNALS_KEEP_CELL_EVENTS", wrong)]);
        assert!(text.contains("write forever, or a number with its unit"), "{text}");
    }
    for key in ["keep_base_events", "keep_ledger_events"] {
        let (_dir, path) = file(&format!("{key} = \"90d\"\n"));
        let text = complaint(&["--config", &path], &[]);
        assert!(
            text.contains(key) && text.contains("the ledger, stored entities and disputes"),
            "{text}"
        );
        let (_dir, path) = file(&format!("{key} = \"forever\"\n"));
        load(&["--config", &path], &[]).unwrap();
    }
}

#[test]
fn spaces_are_given_with_non_default_values() {
    let plain = load(&[], &[]).unwrap().spaces;
    let first = SpaceSetting {
        space: 1,
        extent: 200.0,
        radius: 80.0,
        hysteresis: 5.0,
        horizon: 0.0,
        cells: None,
    };
    assert_eq!(plain, Spaces(vec![first]));
    let (_folder, path) = file("spaces = ['1 radius=60', '7 extent=2000 hysteresis=0 horizon=300 cells=4']");
    let given = load(&["--config", &path], &[]).unwrap().spaces;
    let seventh = SpaceSetting {
        space: 7,
        extent: 2_000.0,
        hysteresis: 0.0,
        horizon: 300.0,
        cells: Some(4),
        ..first
    };
    assert_eq!(given, Spaces(vec![SpaceSetting { radius: 60.0, ..first }, seventh]));
    let ranged = load(&[], &[("ANNALS_SPACES", "1,11-13 radius=60 cells=1")])
        .unwrap()
        .spaces;
    let of_range = |space| SpaceSetting {
        space,
        radius: 60.0,
        cells: Some(1),
        ..first
    };
    assert_eq!(ranged, Spaces(vec![first, of_range(11), of_range(12), of_range(13)]));
    for (wrong, why) in [
        ("", "begins with its number"),
        ("0", "begins with its number"),
        ("extent=5", "begins with its number"),
        ("1 extent", "names with values"),
        ("1 extent=NaN", "0 to 100000 metres"),
        ("1 radius=inf", "0 to 100000 metres"),
        ("1 radius=-1", "0 to 100000 metres"),
        ("1 radius=0", "at least 1 metre"),
        ("1 cells=0", "1 to 1024"),
        (
            "1 depth=3",
            "the names are extent, radius, hysteresis, horizon and cells",
        ),
        ("1 cells=2 cells=3", "twice"),
        ("1,2,1", "two spaces have the same number"),
        ("1,3-5,4", "two spaces have the same number"),
        ("5-4", "a range of spaces"),
        ("5-", "a range of spaces"),
        ("5-6-7", "a range of spaces"),
        ("0-3", "begins with its number"),
        ("1-4294967295", "at most 64 spaces"),
    ] {
        let text = complaint(&[], &[("ANNALS_SPACES", wrong)]);
        assert!(text.contains(why), "{wrong:?}: {text}");
    }
}

#[test]
fn flags_precede_the_environment_which_precedes_the_file() {
    let (_dir, path) = file("realm = \"file\"\ndata = \"file\"\nnats = \"nats://file:1\"\n");
    let variables = [
        ("ANNALS_DATA", "variable"),
        ("ANNALS_NATS", "nats://variable:1"),
        ("ANNALS_CONFIG", &path),
    ];
    let config = load(&["--nats", "nats://flag:1"], &variables).unwrap();
    assert_eq!(config.realm.as_str(), "file");
    assert_eq!(config.data, PathBuf::from("variable"));
    assert_eq!(config.nats, "nats://flag:1");
}

#[test]
fn an_unknown_key_is_reported_with_a_suggestion() {
    let (_dir, path) = file("relam = \"a\"\n");
    let text = complaint(&["--config", &path], &[]);
    assert!(
        text.contains(&format!(
            "there is no setting \"relam\", given in {path}; did you mean \"realm\"?"
        )),
        "{text}"
    );

    let text = complaint(&[], &[("ANNALS_LISTNE", "x")]);
    assert!(
        text.contains("\"ANNALS_LISTNE\"") && text.contains("did you mean \"ANNALS_LISTEN\"?"),
        "{text}"
    );

    let text = complaint(&[], &[("ANNALS_COLOUR", "blue")]);
    assert!(
        text.contains("the settings are realm, nats, nats_credentials, nats_ca,"),
        "{text}"
    );
}

#[test]
fn all_mistakes_are_reported_at_once_each_with_its_origin() {
    let (_dir, path) = file("replicas = 2\nacknowledged = true\ncolour = \"blue\"\n[nested]\na = 1\n");
    let arguments = ["--config", &path, "--log-format", "xml", "--advertise", "nowhere"];
    let variables = [
        ("ANNALS_REALM", "a.b"),
        ("ANNALS_LISTEN", "everywhere"),
        ("ANNALS_LOG", "loud=="),
        ("ANNALS_NATS", "nats://["),
    ];
    let text = complaint(&arguments, &variables);
    for line in [
        "replicas cannot be \"2\", given in ",
        "acknowledged cannot be \"a boolean\", given in ",
        "there is no setting \"colour\", given in ",
        "there is no setting \"nested\", given in ",
        "log_format cannot be \"xml\", given as --log-format: write text or json",
        "advertise cannot be \"nowhere\", given as --advertise: write HOST:PORT",
        "realm cannot be \"a.b\", given in the environment as ANNALS_REALM",
        "listen cannot be \"everywhere\", given in the environment as ANNALS_LISTEN: write one address as IP:PORT",
        "log cannot be \"loud==\", given in the environment as ANNALS_LOG",
        "nats cannot be \"nats://[\", given in the environment as ANNALS_NATS",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert_eq!(
        text.lines().filter(|line| line.starts_with("  - ")).count(),
        10,
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let text = complaint(&["--config", "/nowhere/annals.toml"], &[]);
    assert!(
        text.contains("/nowhere/annals.toml cannot be read: No such file"),
        "{text}"
    );
    let (_dir, path) = file("realm = \n");
    let text = complaint(&["--config", &path], &[]);
    assert!(
        text.contains(&format!("{path} is not TOML: ")) && text.contains("line 1"),
        "{text}"
    );
}

#[test]
fn a_certificate_and_its_key_go_together() {
    let text = complaint(&["--certificate", "play.pem"], &[]);
    assert!(
        text.contains("certificate is given as --certificate, and key is not; give both, or neither"),
        "{text}"
    );
    let text = complaint(&[], &[("ANNALS_KEY", "play.key")]);
    assert!(
        text.contains("key is given in the environment as ANNALS_KEY, and certificate is not"),
        "{text}"
    );
    let text = complaint(&["--certificate", "", "--key", "play.key"], &[]);
    assert!(
        text.contains("certificate cannot be \"\", given as --certificate: name a file") && !text.contains("neither"),
        "{text}"
    );
    // The sources may differ.
    load(&["--certificate", "play.pem"], &[("ANNALS_KEY", "play.key")]).unwrap();
}

#[test]
fn a_store_is_embedded_or_on_the_cluster_of_a_file() {
    assert_eq!(load(&[], &[]).unwrap().store, StoreKind::Embedded);
    let cluster = StoreKind::FoundationDb(PathBuf::from("/etc/foundationdb/fdb.cluster"));
    let given = "fdb:/etc/foundationdb/fdb.cluster";
    let (_dir, path) = file(&format!("store = \"{given}\"\n"));
    for config in [
        load(&["--config", &path], &[]),
        load(&[], &[("ANNALS_STORE", given)]),
        load(&["--store", given], &[("ANNALS_STORE", "embedded")]),
    ] {
        let store = config.unwrap().store;
        assert_eq!(store, cluster);
        assert_eq!(store.to_string(), given, "it is handed on as it was given");
    }
    let text = complaint(&["--store", "fdb:"], &[]);
    assert!(
        text.contains(
            "store cannot be \"fdb:\", given as --store: write embedded (files in the data directory) or fdb:FILE"
        ),
        "{text}"
    );
}

#[test]
fn one_address_is_listened_on() {
    let (_dir, path) = file("listen = [\"0.0.0.0:7700\", \"[::]:7700\"]\n");
    let text = complaint(&["--config", &path], &[]);
    assert!(text.contains("listen cannot be \"0.0.0.0:7700,[::]:7700\""), "{text}");
}

#[test]
fn sync_intervals_have_bounds() {
    for bad in ["0ms", "0s", "121s", "-1s", "1m", "ms", "", "99999999999s", "1.5s"] {
        let error = bad.parse::<SyncPolicy>().unwrap_err();
        assert!(error.to_string().contains("1ms to 120s"), "{error}");
    }
    for good in [
        SyncPolicy::Always,
        SyncPolicy::Every(Duration::from_millis(1)),
        SyncPolicy::Every(Duration::from_secs(120)),
    ] {
        assert_eq!(good.to_string().parse(), Ok(good));
    }
    assert_eq!("120s".parse(), Ok(SyncPolicy::Every(Duration::from_secs(120))));
}

#[test]
fn the_documentation_lists_all_settings() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| `")).collect();
    // The error for an unknown key lists all keys.
    let complaint = complaint(&[], &[("ANNALS_COLOUR", "blue")]);
    let keys: Vec<_> = complaint
        .rsplit_once("the settings are ")
        .unwrap()
        .1
        .split(", ")
        .collect();
    assert_eq!(rows.len(), keys.len());
    for (key, row) in keys.iter().zip(rows) {
        let (upper, dashed) = (key.to_uppercase(), key.replace('_', "-"));
        let begins = format!("| `{key}` | `ANNALS_{upper}` | `--{dashed}` |");
        assert!(row.starts_with(&begins), "{row} is not the row of {key}");
    }
}

/// The output of db when it is started so, which ends it.
fn said_by_db(data: &std::path::Path, arguments: &[&str]) -> String {
    let world = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_annals-db"))
        .args(["--nats", "nats://127.0.0.1:9", "--world"])
        .arg(world)
        .arg("--data")
        .arg(data)
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn db_opens_the_configured_store() {
    let dir = tempfile::tempdir().unwrap();
    let said = said_by_db(dir.path(), &["--store", "fdb:nowhere/fdb.cluster"]);
    let advice = said.contains("build it with the feature `fdb`") || said.contains("fdb.cluster cannot be read");
    assert!(advice, "{said}");
    assert!(
        !dir.path().join("store").exists(),
        "and not the one in the data directory"
    );
}

#[tokio::test]
async fn a_store_of_another_layout_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let found = mark::LAYOUT + 1;
    let opened = EmbeddedStore::open(&dir.path().join("store")).unwrap();
    let transaction = opened.store().begin();
    transaction.set(&mark::layout_key(), &found.to_be_bytes()).unwrap();
    transaction.commit().await.unwrap();
    drop((transaction, opened));
    let said = said_by_db(dir.path(), &[]);
    let named = format!(
        "the store is of layout {found}, and this program reads layout {} alone",
        mark::LAYOUT
    );
    assert!(
        said.contains(&named) && said.contains("run the release that has written it"),
        "{said}"
    );
    let realm = "annals".parse().unwrap();
    // Commands open it as db does, or to fill it from a backup.
    for refused in [
        open(&StoreKind::Embedded, dir.path(), &realm).await,
        open_to_fill(&StoreKind::Embedded, dir.path(), &realm).await,
    ] {
        let refused = refused.err().expect("it is of another layout");
        assert!(
            matches!(refused, OpenError::Layout(OtherLayout { found: named }) if named == found),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn db_does_not_start_on_a_store_that_is_being_restored() {
    let dir = tempfile::tempdir().unwrap();
    let opened = EmbeddedStore::open(&dir.path().join("store")).unwrap();
    let transaction = opened.store().begin();
    transaction.set(&lineage::unfinished_key(), b"aldmoor-5").unwrap();
    transaction.commit().await.unwrap();
    drop((transaction, opened));
    // A child that another test has just forked holds the lock until it executes its program.
    let mut runs = (0..20).map(|_| said_by_db(dir.path(), &[]));
    let said = runs.find(|said| !said.contains("is held by process"));
    let said = said.expect("the lock is free");
    assert!(
        said.contains("restoring backup aldmoor-5 into it was begun and has not ended"),
        "{said}"
    );
}
