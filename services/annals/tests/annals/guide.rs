//! Executes the designer's guide: every file in it is written, every command run, and the output compared with the
//! page.
//!
//! A block of `xml` is for the file that the line above it names: the whole file, an addition at the end of a section,
//! or the replacement of one; a line can also remove a section. In a block of `console`, commands follow `$`, each with
//! its output, in which a line of `…` stands for any lines, and `…` in a line for any text. `console realm` needs the
//! binaries of the services beside this one, and is skipped if they are not built.
//!
//! With `UPDATE_EXPECT` set, the output is written into the page.

mod page;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use page::{Block, Edit, Kind, Typed, What};

/// Relative to the folder of this crate.
const PAGE: &str = "../../docs/designers-guide.md";

/// Wildcard for any lines, and in a line for any text.
const ANY: &str = "…";

/// The processes of a realm.
const SERVICES: [&str; 5] = [
    "annals-base",
    "annals-cell",
    "annals-db",
    "annals-director",
    "annals-login",
];

#[test]
fn the_guide_commands_print_the_quoted_output() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = fs::read_to_string(&page).expect("the guide is there");
    let folder = tempfile::tempdir().expect("a folder to begin with");
    let mut written = String::new();
    let mut wrong = Vec::new();
    for block in page::blocks(&text) {
        if matches!(block.kind, Kind::Console { .. }) {
            written.push_str(&console(&block, folder.path(), &mut wrong));
            continue;
        }
        written.push_str(block.whole);
        if let Kind::Xml(edit) = block.kind {
            change(folder.path(), edit, block.content);
        } else {
            let edits = block.whole.lines().filter_map(page::edit);
            let removals = edits.filter(|edit| matches!(edit.what, What::TakeAway(_)));
            removals.for_each(|edit| change(folder.path(), edit, ""));
        }
    }
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&page, written).expect("the guide can be written");
    } else {
        assert!(
            wrong.is_empty(),
            "{}\nUPDATE_EXPECT=1 writes what was printed into the guide",
            wrong.join("\n")
        );
    }
}

fn change(folder: &Path, edit: Edit<'_>, content: &str) {
    let path = folder.join(edit.path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let new = page::edited(&old, edit.what, content).unwrap_or_else(|| panic!("{edit:?} is not there:\n{old}"));
    fs::write(path, new).expect("a file can be written");
}

/// Runs the commands of a block; returns the block as it should be.
fn console(block: &Block<'_>, folder: &Path, wrong: &mut Vec<String>) -> String {
    if matches!(block.kind, Kind::Console { needs_realm: true }) && !SERVICES.iter().all(|name| beside(name).exists()) {
        println!("SKIPPED: the services' binaries are not built; `make test` builds them");
        return block.whole.to_owned();
    }
    let mut lines = format!("{}\n", block.head);
    for Typed { command, wanted } in page::typed(block.content) {
        let printed = run(command, folder);
        lines.push_str(&format!("$ {command}\n"));
        if matches(&wanted, &printed.lines().collect::<Vec<_>>()) {
            wanted.iter().for_each(|line| lines.push_str(&format!("{line}\n")));
        } else {
            lines.push_str(&printed);
            wrong.push(format!(
                "$ {command}\nshould print\n{}\nand printed\n{printed}",
                wanted.join("\n")
            ));
        }
    }
    lines.push_str("```\n");
    lines
}

/// Runs a command in the folder; returns its output.
fn run(command: &str, folder: &Path) -> String {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_annals"));
    let own = own.parent().expect("a folder").as_os_str().to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([own.into()].into_iter().chain(env::split_paths(&others))).expect("folders");
    let shell = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("ANNALS_NATS_SERVER", nats_server())
        .output();
    let printed = String::from_utf8(shell.expect("sh runs").stdout).expect("text");
    if printed.is_empty() || printed.ends_with('\n') {
        printed
    } else {
        printed + "\n"
    }
}

/// The server that `make setup` has found; otherwise a name that is looked up on the path.
fn nats_server() -> PathBuf {
    let private = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nats-server");
    match env::var_os("ANNALS_NATS_SERVER") {
        Some(chosen) => chosen.into(),
        None if private.exists() => private,
        None => "nats-server".into(),
    }
}

/// A binary beside that of the command line.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_annals")).with_file_name(name)
}

/// Whether the printed lines match the wanted ones.
fn matches(wanted: &[&str], printed: &[&str]) -> bool {
    match wanted {
        [] => printed.is_empty(),
        [first, rest @ ..] if first.trim() == ANY => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => printed.first().is_some_and(|line| is_line(first, line)) && matches(rest, &printed[1..]),
    }
}

/// Whether the line matches the wanted one.
fn is_line(wanted: &str, line: &str) -> bool {
    match wanted.split_once(ANY) {
        None => wanted == line,
        Some((begin, rest)) => line.strip_prefix(begin).is_some_and(|line| {
            let mut ends = (0..=line.len()).filter(|&at| line.is_char_boundary(at));
            ends.any(|at| is_line(rest, &line[at..]))
        }),
    }
}

#[test]
fn a_guide_that_differs_from_the_output_is_detected() {
    assert!(matches(&["a", "…", "c"], &["a", "b", "b", "c"]) && matches(&["…"], &[]));
    assert!(!matches(&["a", "…", "c"], &["a", "b"]) && !matches(&["a"], &["a", "b"]) && !matches(&[], &["a"]));
    assert!(matches(&["a … c … e"], &["a b c d e"]) && !matches(&["a … c"], &["a b c d"]));
    let folder = tempfile::tempdir().expect("a folder");
    let text = "```console\n$ echo one; echo two >&2\none\n```\n";
    let mut wrong = Vec::new();
    let blocks: Vec<_> = page::blocks(text).collect();
    assert_eq!(
        console(&blocks[0], folder.path(), &mut wrong),
        "```console\n$ echo one; echo two >&2\none\ntwo\n```\n"
    );
    assert_eq!(wrong.len(), 1);
}
