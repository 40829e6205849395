//! `annals bots` on a live realm.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use annals::up::{Realm, RealmPlan};
use annals_bots::scenario::{PhaseReport, ScenarioReport};
use annals_ids::Hash;
use annals_realm::Folder;
use tokio::{process::Command, time::sleep};

use crate::played::{are_built, binary, permit, repository, run};

const REALM: &str = "strolled";

/// A folder for a realm, the bots' records and their report.
struct Place(Folder);

impl Place {
    fn new() -> Self {
        Self(Folder::create())
    }

    async fn realm(&self) -> Realm {
        let world = repository().join("defs");
        let realm = Realm::start(RealmPlan::new(REALM, &world, &self.0.path().join("realm"))).await;
        realm.unwrap_or_else(|error| panic!("{error}"))
    }

    fn files(&self) -> PathBuf {
        self.0.path().join("shown")
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report.json")
    }

    fn annals(&self, command: &str) -> Command {
        let mut annals = Command::new(binary("annals").expect("it is built"));
        annals.arg(command);
        annals.arg("--world").arg(repository().join("defs"));
        annals.arg("--files").arg(self.files());
        annals
    }

    fn bots(&self, realm: &Realm, certificate: Hash) -> Command {
        let mut command = self.annals("bots");
        command
            .args(["--login", &realm.login.0.to_string()])
            .args(["--certificate", &certificate.to_string()])
            .arg("--report")
            .arg(self.report());
        command
    }

    /// Three bots for four seconds.
    fn few(&self, realm: &Realm, certificate: Hash) -> Command {
        let mut command = self.bots(realm, certificate);
        command.args(["--bots", "3", "--duration", "4"]);
        command
    }

    fn phases(&self) -> Vec<PhaseReport> {
        read(&self.report()).phases
    }

    /// What they wrote is the input of `annals check`, once the archive has the events.
    async fn assert_checks(&self, realm: &Realm) {
        let mut checked = (false, String::new());
        for _ in 0..40 {
            if checked.0 {
                break;
            }
            sleep(Duration::from_millis(250)).await;
            let mut check = self.annals("check");
            let (status, said) = run(check.args(["--realm", REALM, "--nats", &realm.nats()])).await;
            checked = (status.success(), said);
        }
        assert!(checked.0, "{}", checked.1);
    }
}

fn read(path: &Path) -> ScenarioReport {
    ScenarioReport::read(path).unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bots_play_in_a_live_realm_and_report_what_they_were_shown() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let place = Place::new();
    let realm = place.realm().await;
    let (status, said) = run(&mut place.few(&realm, realm.login.1)).await;
    assert!(status.success(), "{said}");
    let phase = &place.phases()[0];
    assert_eq!((phase.bots, phase.has_played, phase.log_ins), (3, true, 3), "{said}");
    assert!(phase.in_view > 0.5, "they see one another: {said}");
    assert!(phase.round_trips.p50_us > 0 && phase.log_in_times.count == 3, "{said}");
    place.assert_checks(&realm).await;

    // An earlier run with far more calls: this one is worse, and only in that.
    let earlier = place.0.path().join("earlier.json");
    let mut report = read(&place.report());
    report.phases[0].calls_taken *= 1_000;
    fs::write(&earlier, serde_json::to_vec(&report).expect("it is encoded")).expect("it is written");
    let mut compared = place.few(&realm, realm.login.1);
    let (status, said) = run(compared.arg("--compare").arg(&earlier).args(["--tolerance", "900"])).await;
    assert_eq!(status.code(), Some(3), "{said}");
    let worse: Vec<&str> = said.lines().filter(|line| line.ends_with("WORSE")).collect();
    assert!(
        worse.iter().any(|line| line.trim().starts_with("calls taken")),
        "{said}"
    );

    // A client with the wrong certificate hash is refused, and the error names possible causes.
    let (status, said) = run(&mut place.few(&realm, Hash::ZERO)).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(!place.phases()[0].has_played);
    assert!(said.contains("3 bots never logged in"), "{said}");
    assert_eq!(fs::read_dir(place.files()).expect("the folder is there").count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scenario_of_all_kinds_is_played_and_reported_phase_by_phase() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let place = Place::new();
    let realm = place.realm().await;
    let mut bots = place.bots(&realm, realm.login.1);
    bots.arg("--scenario").arg(repository().join("ops/bots/short.toml"));
    let (status, said) = run(&mut bots).await;
    assert!(status.success(), "{said}");
    let phases = place.phases();
    let kinds: Vec<&str> = phases.iter().map(|phase| phase.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["log-in-storm", "walk", "crowd", "trade-fair", "market", "idle"],
        "{said}"
    );
    for phase in &phases {
        assert!(phase.has_played && phase.never_logged_in == 0, "{said}");
        assert_eq!(
            (phase.disconnects, phase.log_ins_refused, phase.resumed),
            (0, 0, 0),
            "{said}"
        );
        assert_eq!(phase.log_in_times.count, phase.log_ins, "{said}");
        assert!(phase.bytes_per_second > 0.0, "{said}");
        assert!(
            said.contains(&format!("{} (", phase.name)),
            "its progress is shown: {said}"
        );
    }
    let [storm, walk, crowd, fair, _market, idle] = &phases[..] else {
        panic!("six phases: {said}");
    };
    assert!(storm.log_ins > storm.bots, "they log in again and again: {said}");
    assert!(walk.exposed_called > crowd.exposed_called, "{said}");
    assert!(walk.round_trips.count > 0 && crowd.round_trips.count > 0, "{said}");
    assert!(fair.trades.settled > 0, "{said}");
    assert_eq!(idle.trades.settled, 0, "{said}");
    place.assert_checks(&realm).await;

    // A mistake is refused before anything is played, and a report of other phases is not compared.
    let wrong = place.0.path().join("wrong.toml");
    fs::write(&wrong, "[[phase]]\nname = \"a\"\nkind = \"dance\"\n").expect("it is written");
    let (status, said) = run(place.bots(&realm, realm.login.1).arg("--scenario").arg(&wrong)).await;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("wrong.toml:3: there is no kind \"dance\""), "{said}");
}
