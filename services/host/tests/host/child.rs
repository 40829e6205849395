//! Child processes on the real operating system.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use annals_host::child::{Child, command};

/// Set when this test program is the parent that will be killed.
const ROLE: &str = "ANNALS_TEST_PARENT";

/// A child that prints its process id, and then waits to be killed.
fn sleeper() -> Child {
    let mut shell = command("sh");
    shell
        .args(["-c", "echo child $$; exec sleep 600 >/dev/null 2>&1"])
        .stdin(Stdio::null());
    Child::spawn(shell).unwrap()
}

fn is_running(process: u32) -> bool {
    // A zombie has ended; it only waits for its parent to collect it.
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn ends(process: u32) -> bool {
    let patience = Instant::now() + Duration::from_secs(20);
    while is_running(process) {
        if Instant::now() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn a_child_dies_with_its_handle() {
    let child = sleeper();
    let process = child.id();
    assert!(is_running(process));
    drop(child);
    assert!(ends(process));
}

#[test]
fn a_child_dies_with_a_killed_parent() {
    if std::env::var_os(ROLE).is_some() {
        // Started by a thread that ends: the child must survive that thread.
        let child = std::thread::spawn(sleeper).join().unwrap();
        std::thread::sleep(Duration::from_secs(600));
        drop(child);
        return;
    }
    if !Path::new("/usr/bin/setpriv").exists() {
        eprintln!("skipped: this machine has no setpriv, so children are tied to their handles only");
        return;
    }
    let mut parent = Command::new(std::env::current_exe().unwrap());
    parent
        .args(["--exact", "child::a_child_dies_with_a_killed_parent", "--nocapture"])
        .env(ROLE, "1")
        .stdout(Stdio::piped());
    let mut parent = parent.spawn().unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let child = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("child ")?.1.parse::<u32>().unwrap()));
    let child = child.expect("the child says who it is");
    assert!(is_running(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(ends(child), "the child {child} outlived its parent");
}

#[test]
fn a_paused_child_stops_and_resumes() {
    let child = sleeper();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    };
    for _ in 0..100 {
        child.pause().unwrap();
        assert_eq!(state(), 'T', "stopped by the time that pausing returns");
        child.resume().unwrap();
    }
}

#[tokio::test]
async fn a_paused_child_can_be_killed() {
    let mut child = sleeper();
    child.pause().unwrap();
    assert!(child.ended().unwrap().is_none());
    child.kill().unwrap();
    assert!(child.pause().is_err(), "there is no process to pause");
    child.stop().await.expect("stopping what has ended is no error");
}
