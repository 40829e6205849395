//! The case library: disputes as players report them, acted out on a live realm, and settled with the auditor's
//! commands alone.
//!
//! Each case is a folder in `tests/realm/cases`: `complaint.md` is the player's report, `report.txt` has the auditor's
//! commands and their output, `verdict.md` is the reply. The output is compared with `report.txt`, in which every
//! number that varies from realm to realm is replaced ([`names`]); `UPDATE_EXPECT=1` rewrites the reports. The handbook
//! (`docs/auditors-handbook.md`) works through the same complaints, reports and verdicts.

mod names;
mod scripts;

use std::{fs, path::PathBuf, time::Instant};

use annals_host::nats::ServerCount;
use annals_realm::Folder;

use crate::{
    operators::Operator,
    played::{Played, are_built, repository},
};

/// A case: its folder and the auditor's commands.
pub(crate) struct Case {
    /// Its folder.
    name: &'static str,
    /// The commands, without the program's name.
    questions: Vec<Vec<String>>,
}

impl Case {
    fn new(name: &'static str, questions: &[&str]) -> Self {
        let words = |line: &&str| line.split('|').map(str::to_owned).collect();
        let questions = questions.iter().map(words).collect();
        Self { name, questions }
    }

    fn folder(&self) -> PathBuf {
        repository().join("tests/realm/cases").join(self.name)
    }

    /// Runs the commands, and compares the output with the report.
    async fn settle(&self, operator: &Operator<'_>) {
        let mut report = String::new();
        for question in &self.questions {
            let words: Vec<&str> = question.iter().map(String::as_str).collect();
            let answer = operator.run_expecting(0, &words).await;
            report.push_str(&format!("$ annals {}\n{answer}\n", shell(&words)));
        }
        let report = names::normalized(&report);
        let path = self.folder().join("report.txt");
        if std::env::var("UPDATE_EXPECT").is_ok() {
            fs::write(&path, &report).expect("the report can be written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            report == expected,
            "{}: the report differs from {}; UPDATE_EXPECT=1 rewrites it:\n{report}",
            self.name,
            path.display()
        );
        for beside in ["complaint.md", "verdict.md"] {
            let text = fs::read_to_string(self.folder().join(beside)).unwrap_or_default();
            assert!(!text.trim().is_empty(), "{} has no {beside}", self.name);
        }
    }
}

/// A command as typed in a shell.
fn shell(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| match word.contains(' ') {
        true => format!("\"{word}\""),
        false => (*word).to_owned(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handbook_commands_settle_every_case_of_the_library() {
    if !are_built() {
        return;
    }
    // A base that gets too little processor time is taken over, and then other addresses are unknown than in the
    // reports.
    let mut realm = Played::start_timed(ServerCount::One, &[]).await;
    let folder = Folder::create();
    let operator = Operator {
        folder: folder.path(),
        nats: realm.realm.nats(),
    };
    let began = Instant::now();
    // The case that has to wait goes first; the one that kills processes runs alone.
    let waiting = scripts::expired_escrow(&realm).await;
    let cases = futures::join!(
        scripts::swapped_offer(&realm),
        scripts::duplicated_sword(&realm),
        scripts::stolen_account(&realm, &operator),
        scripts::wrong_grant(&realm, &operator),
    );
    let crashed = scripts::lost_at_a_crash(&mut realm).await;
    println!("acted out: {:.1} s", began.elapsed().as_secs_f32());
    for case in [cases.0, cases.1, cases.2, cases.3, crashed] {
        case.settle(&operator).await;
    }
    let expired = waiting.after_expiry(&realm).await;
    expired.settle(&operator).await;
    println!("settled: {:.1} s", began.elapsed().as_secs_f32());
    realm.stop_and_verify().await;
}

/// Whether these parts occur in a text, in this order.
fn occur_in_order(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// The handbook has the complaints, answers and verdicts of all cases unchanged, with at least one answer of each case.
#[test]
fn the_handbook_quotes_complaints_answers_and_verdicts_unchanged() {
    let handbook = fs::read_to_string(repository().join("docs/auditors-handbook.md")).expect("there is one");
    let unquoted = handbook.replace("\n> ", "\n");
    let blocks: Vec<&str> = handbook.split("```text\n").skip(1).collect();
    let blocks: Vec<&str> = blocks
        .iter()
        .filter_map(|block| Some(block.split_once("\n```")?.0))
        .collect();
    let asked = |block: &&&str| block.starts_with("$ annals audit ");
    let mut known = 0;
    let cases = fs::read_dir(repository().join("tests/realm/cases")).expect("there are cases");
    for case in cases {
        let folder = case.expect("it can be read").path();
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("each case has it");
        for text in ["complaint.md", "verdict.md"] {
            let text = read(text);
            assert!(
                unquoted.contains(text.trim()),
                "{}: the handbook does not say: {text}",
                folder.display()
            );
        }
        let report = read("report.txt");
        let answers: Vec<&str> = report.split("$ annals ").skip(1).collect();
        let is_shown = |block: &&&str| {
            let parts: Vec<&str> = block
                .trim_start_matches("$ annals ")
                .split("…")
                .map(str::trim)
                .collect();
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            answers
                .iter()
                .any(|answer| answer.starts_with(parts[0]) && occur_in_order(answer, &parts))
        };
        let shown = blocks.iter().filter(asked).filter(is_shown).count();
        assert!(
            shown > 0,
            "{}: none of its answers is in the handbook",
            folder.display()
        );
        known += shown;
    }
    let all = blocks.iter().filter(asked).count();
    assert_eq!(
        known, all,
        "some answers in the handbook belong to no case or to several"
    );
}
