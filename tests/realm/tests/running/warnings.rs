//! What a failed test prints of its realm.

use std::fs;

use annals_realm::{Folder, last_warnings};

#[test]
fn a_failed_test_has_the_last_warnings_of_each_process() {
    let folder = Folder::create();
    let logs = folder.path().join("realm/logs");
    fs::create_dir_all(&logs).expect("a folder");
    let lines = (1..=9).map(|number| format!("12:00:0{number}  WARN annals_host: warning {number}\n"));
    let base = lines.collect::<String>() + "12:00:10  INFO annals_host: a WARNING of nothing\n";
    fs::write(logs.join("base-1.log"), base).expect("a file");
    fs::write(logs.join("db.log"), b"12:00:11 ERROR annals_host: \xff\n").expect("a file");
    fs::write(logs.join("cell-1.log"), "12:00:12  INFO annals_host: joined\n").expect("a file");
    fs::write(
        folder.path().join("realm/other.log"),
        "12:00:13  WARN not of a process\n",
    )
    .expect("a file");
    let expected: Vec<String> = (5..=9)
        .map(|number| format!("log of base-1: 12:00:0{number}  WARN annals_host: warning {number}"))
        .chain(["log of db: 12:00:11 ERROR annals_host: \u{fffd}".to_owned()])
        .collect();
    let printed = last_warnings(folder.path());
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}
