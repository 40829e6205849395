//! Bots without a realm: their behaviour, and the files that they leave.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_bots::{
    bots::{BotPlan, BotsError, Conduct, Gap, run},
    progress::Progress,
};
use annals_client::Trust;
use annals_def::check_dir;
use annals_ids::Hash;
use tempfile::TempDir;
use tokio::sync::watch;

/// The plan of three bots for a login service that does not answer, and the socket that keeps its port taken.
fn plan(files: &Path) -> (BotPlan, UdpSocket) {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let login: SocketAddr = silent.local_addr().unwrap();
    let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let plan = BotPlan {
        login,
        trust: Trust::Pinned(Hash::ZERO),
        password: "secret".into(),
        schema: Arc::new(check_dir(&defs).0.expect("the sample compiles")),
        bots: 3,
        conduct: Conduct::default(),
        first: 0,
        until: watch::channel(Instant::now() + Duration::from_millis(600)).1,
        resting: watch::channel(false).1,
        seed: 1,
        files: files.to_owned(),
        prefix: String::new(),
        reads: annals_bots::bots::Reads::Predicted,
    };
    (plan, silent)
}

#[tokio::test]
async fn bots_that_cannot_log_in_end_on_time_and_report_it() {
    let folder = TempDir::new().unwrap();
    let (plan, _silent) = plan(folder.path());
    let (progress, updates) = watch::channel(Progress::default());
    let report = run(plan, progress).await.unwrap();
    assert_eq!((report.bots.len(), report.total(|bot| bot.log_ins)), (3, 0));
    assert_eq!((updates.borrow().bots, updates.borrow().connected), (3, 0));
    assert!(report.elapsed < Duration::from_secs(5), "{:?}", report.elapsed);
    assert_eq!(report.bytes_per_second(), (0.0, 0.0));
    assert!(report.bots.iter().all(|bot| bot.gap_after(Instant::now()) == Gap::None));
    for bot in &report.bots {
        assert_eq!(fs::read_to_string(&bot.file).unwrap(), "");
    }
}

#[tokio::test]
async fn a_missing_folder_ends_the_run_and_is_named() {
    let folder = TempDir::new().unwrap();
    let (plan, _silent) = plan(&folder.path().join("missing"));
    let (progress, _) = watch::channel(Progress::default());
    let error = run(plan, progress).await.unwrap_err();
    assert!(matches!(&error, BotsError::Write { .. }));
    assert!(error.to_string().contains("missing"), "{error}");
}
