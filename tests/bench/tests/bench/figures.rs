//! The groups that need a realm of processes run in small form, and yield their figures. No figure is compared with a time.

use std::{collections::BTreeMap, path::Path, sync::Once, time::Duration};

use annals_bench::{Figure, connections, login, realm, round_trip, sdk, traffic};

static AT_ROOT: Once = Once::new();

/// Whether the realm's programs are built; prints a message if not. Paths of the bench begin at the repository's root.
fn is_ready() -> bool {
    AT_ROOT.call_once(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::env::set_current_dir(root).expect("the repository is there");
    });
    if !realm::is_built() {
        println!("SKIPPED: the services' binaries are not built; `make test` builds them");
    }
    realm::is_built()
}

/// The figures by name; each value is a number above zero, and so is each baseline.
fn by_name(figures: Vec<Figure>) -> BTreeMap<String, Figure> {
    for figure in &figures {
        println!("{}: {} {}", figure.name, figure.value, figure.unit);
        assert!(figure.value.is_finite(), "{figure:?}");
        assert!(figure.baseline.is_none_or(|baseline| baseline > 0.0), "{figure:?}");
    }
    figures
        .into_iter()
        .map(|figure| (figure.name.clone(), figure))
        .collect()
}

#[test]
fn log_ins_are_compared_with_hashing_alone() {
    if !is_ready() {
        return;
    }
    let figures = by_name(login::repeat(20, 4));
    assert!(figures["login_per_second"].ratio.is_some());
    assert!(figures["login_rss_mb"].value > 1.0);
}

#[test]
fn a_round_trip_is_compared_with_its_parts() {
    if !is_ready() {
        return;
    }
    let figures = by_name(round_trip::repeat(3));
    for at in ["p50", "p99"] {
        let value = |name: &str| figures[&format!("{name}_{at}")].value;
        let parts = value("bare_nats_request") + 2.0 * value("bare_jetstream_publish") + value("bare_quic_echo");
        let baseline = figures[&format!("round_trip_and_its_parts_{at}")].baseline;
        assert!((baseline.expect("it has a baseline") - parts).abs() < 1e-6);
    }
}

#[test]
fn idle_clients_take_memory_of_base_and_cell() {
    if !is_ready() {
        return;
    }
    let figures = by_name(connections::measure(80, 40));
    let value = |name: &str| figures[name].value;
    assert!(value("client_bytes") > 1_000.0);
    let parts = value("client_bytes_base") + value("client_bytes_cell");
    assert!((value("client_bytes") - parts).abs() < 1e-6);
    assert!(value("connections_per_gib") > 0.0);
}

#[test]
fn all_that_a_client_is_sent_is_of_some_kind() {
    if !is_ready() {
        return;
    }
    let figures = by_name(traffic::measure(6, (Duration::from_secs(1), Duration::from_secs(4))));
    let of = |kinds: &[&str]| {
        kinds
            .iter()
            .map(|kind| figures[&format!("client_traffic_{kind}")].value)
            .sum::<f64>()
    };
    let content = ["movements", "changes", "calls", "states", "framing", "answers"];
    let all = &figures["client_traffic"];
    assert!((of(&content) - all.baseline.expect("it has a baseline")).abs() < 1e-6);
    assert!((of(&content) + of(&["quic", "udp"]) - all.value).abs() < 1e-6);
    assert!(of(&["movements"]) > 0.0, "bots walk");
    assert!(of(&["changes", "calls"]) > 0.0, "bots call");
    assert!(of(&["quic"]) > 0.0, "packets have headers");
}

#[test]
fn the_typescript_client_decodes_a_recorded_session_and_its_bundle_is_small() {
    if !is_ready() {
        return;
    }
    if !sdk::has_tools() {
        println!("SKIPPED: no node, tsc or esbuild; `make setup` installs the last two where there is npm");
        return;
    }
    let figures = by_name(sdk::measure(4, Duration::from_secs(2)));
    assert!(figures["sdk_decode_time"].value > 0.0);
    let size = &figures["sdk_bundle_size"];
    assert!(size.ratio.expect("it has a limit") <= 1.0, "{size:?}");
}
