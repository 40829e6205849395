//! The runbook, followed line by line: in a realm with each of five faults, the commands of its section are run as they
//! are written. The test stands for systemd, as which it starts and stops processes; everything else is run by a shell.

use std::fs;

use tokio::process::Command;

use crate::{
    deployed::Deployed,
    played::{are_built, permit, repository, run},
};

/// The commands of a section: those that look at a fault, whose exit code may be any, and those that act on it.
struct Section {
    checks: Vec<String>,
    actions: Vec<String>,
}

impl Section {
    fn read(name: &str) -> Self {
        let text = fs::read_to_string(repository().join("docs/runbook.md")).expect("the runbook");
        let heading = format!("\n## {name}\n");
        let (_, section) = text
            .split_once(&heading)
            .unwrap_or_else(|| panic!("there is no section {name}"));
        let section = section.split("\n## ").next().unwrap_or(section);
        let (checks, actions) = section.split_once("**What to do.**").expect("what to do");
        let section = Self {
            checks: commands(checks),
            actions: commands(actions),
        };
        assert!(
            !section.checks.is_empty() && !section.actions.is_empty(),
            "{name} has commands"
        );
        section
    }
}

/// The lines of all blocks of commands.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// Follows a section, with these values of its variables.
async fn follow(realm: &mut Deployed, name: &str, variables: &[(&str, String)]) -> String {
    let section = Section::read(name);
    for line in &section.checks {
        perform(realm, line, variables).await;
    }
    let mut said = String::new();
    for line in &section.actions {
        let (succeeded, output) = perform(realm, line, variables).await;
        assert!(succeeded, "{name}: {line}\n{output}");
        said = output;
    }
    said
}

/// Runs one line: whether it succeeded, and its output.
async fn perform(realm: &mut Deployed, line: &str, variables: &[(&str, String)]) -> (bool, String) {
    let mut line = line.to_owned();
    if line.starts_with("systemctl") || line.starts_with("journalctl") {
        for (variable, value) in variables {
            line = line.replace(&format!("\"${variable}\""), value);
        }
        return supervise(realm, &line).await;
    }
    let mut command = Command::new("sh");
    command.args(["-euc", &line]).envs(realm.operator());
    command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
    let (status, said) = run(&mut command).await;
    (status.success(), said)
}

/// What systemd does.
async fn supervise(realm: &mut Deployed, line: &str) -> (bool, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = |unit: &str| unit.strip_prefix("annals-").expect("one of ours").replace('@', "-");
    match words[..] {
        ["systemctl", "restart", "annals-nats"] => realm.restart_server(),
        ["systemctl", "restart", unit] => {
            let name = name(unit);
            realm.stop(&name).await;
            realm.launch(&name);
        }
        ["systemctl", "start", unit] => realm.launch(&name(unit)),
        ["systemctl", "status", _] => {}
        ["journalctl", "--unit", "annals-nats", ..] => return (true, realm.servers.log()),
        ["journalctl", "--unit", unit, ..] => return (true, realm.log_of(&name(unit))),
        _ => panic!("the test cannot stand for systemd in: {line}"),
    }
    (true, String::new())
}

/// The variables of an alert of this process.
fn alert_of(realm: &Deployed, name: &str, unit: &str) -> [(&'static str, String); 3] {
    [
        ("INSTANCE", realm.http(name)),
        ("UNIT", unit.to_owned()),
        ("NATS_MONITOR", realm.monitor()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_five_commonest_alerts_are_handled_as_the_runbook_says() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let mut realm = Deployed::start().await;

    realm.kill("cell-1");
    let alert = alert_of(&realm, "cell-1", "annals-cell@1");
    let said = follow(&mut realm, "AnnalsProcessDown", &alert).await;
    assert_eq!(said.matches(" cell ").count(), 2, "{said}");

    realm.kill("db");
    let alert = alert_of(&realm, "db", "annals-db");
    let said = follow(&mut realm, "AnnalsServiceNotReady", &alert).await;
    assert!(said.contains(" db "), "{said}");

    realm.kill_server();
    let alert = alert_of(&realm, "base-1", "annals-base@1");
    let said = follow(&mut realm, "AnnalsLogBlocked", &alert).await;
    assert!(said.contains("ready"), "{said}");

    // The third cell is the one that the section starts; its address is that of its own file of variables.
    realm.launch("cell-3");
    realm.kill("cell-3");
    let alert = alert_of(&realm, "cell-3", "annals-cell@3");
    let said = follow(&mut realm, "AnnalsTickSlow", &alert).await;
    assert_eq!(said.matches(" cell ").count(), 3, "{said}");

    let alert = alert_of(&realm, "cell-1", "annals-cell@1");
    let said = follow(&mut realm, "AnnalsOwnerErrors", &alert).await;
    assert!(said.contains("0 findings") || said.contains("balance"), "{said}");
}
