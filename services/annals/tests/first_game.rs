//! Follows "Your first game in 20 minutes" from an empty folder: every command on the page is run, and every change
//! made.
//!
//! The line before a block of `rust`, `xml`, `ts` or `html` says where it belongs: "`path`, before `text`:" is the line
//! above the first one with this text, and "`path`, at the end:" the end of the file. Commands of a block `sh` must
//! succeed, those of `sh fails` must not. Each line of a block `text` must be part of what the commands before it printed.
//! `sh realm` needs the binaries of the services beside this one, and is skipped if they are not built.
//!
//! The first run in a target folder compiles all dependencies of a game once more, for minutes: the game is a workspace
//! of its own, with fewer features of them. Later runs compile only what has changed.

use std::{
    env, fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Relative to the folder of this crate.
const REPOSITORY: &str = "../..";

/// The services of a realm that do not belong to the game.
const SERVICES: [&str; 4] = ["annals-db", "annals-director", "annals-login", "annals-signer"];

/// Maximum time for what a command is to print, on a machine that is busy with tests.
const WITHIN: Duration = Duration::from_secs(180);

/// Interval of looks at what a command has printed.
const POLL: Duration = Duration::from_millis(50);

/// A reader, who follows the page.
struct Reader {
    /// The folder that was empty at the beginning.
    begun_in: PathBuf,
    folder: PathBuf,
    /// What the last block of commands printed.
    printed: String,
}

impl Reader {
    /// Runs the commands of a block; `cd` holds for the blocks that follow.
    fn run(&mut self, commands: &str, succeeds: bool) {
        self.printed.clear();
        for command in commands.lines() {
            if let Some(folder) = command.strip_prefix("cd ") {
                self.folder.push(folder);
                continue;
            }
            println!("$ {command}");
            let output = self.shell(command).output().expect("sh runs");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            println!("{printed}");
            assert_eq!(output.status.success(), succeeds, "{command}:\n{printed}");
            self.printed.push_str(&printed);
        }
    }

    fn shell(&self, command: &str) -> Command {
        let annals = Path::new(env!("CARGO_BIN_EXE_annals"));
        let own = annals.parent().expect("a folder").to_owned();
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([own].into_iter().chain(env::split_paths(&others))).expect("folders");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("ANNALS", annals)
            .env("CARGO", env!("CARGO"))
            // A folder of its own: the game's binaries have the names of the sample's.
            .env("CARGO_TARGET_DIR", scratch("first-game"))
            .env("CARGO_NET_OFFLINE", "true")
            .envs([("DURATION", "15"), ("BOTS", "5")]);
        shell
    }

    /// Replaces the first of these texts in a file of the game.
    fn edit(&self, file: &str, before: &str, after: &str) {
        let path = self.folder.join(file);
        let text = fs::read_to_string(&path).expect("the game's");
        assert!(text.contains(before), "{file}: {before}");
        fs::write(path, text.replacen(before, after, 1)).expect("it can be written");
    }

    fn change(&self, caption: &str, content: &str) {
        let (path, place) = quoted(caption).unwrap_or_else(|| panic!("which file is this? {caption}"));
        let path = self.begun_in.join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let at = match place.strip_prefix(", before ").and_then(quoted) {
            Some((line, ":")) => {
                let found = text
                    .find(line)
                    .unwrap_or_else(|| panic!("{caption}: {line} is not there"));
                text[..found].rfind('\n').map_or(0, |end| end + 1)
            }
            _ if place == ", at the end:" => text.len(),
            _ => panic!("where in the file is this? {caption}"),
        };
        fs::write(path, [&text[..at], content, &text[at..]].concat()).expect("it can be written");
    }
}

/// A command that runs beside the reader; killed when it is dropped.
struct Running {
    child: Child,
    output: PathBuf,
    /// How much of the output was waited for.
    read: usize,
}

impl Running {
    fn start(reader: &Reader, command: &str, output: &str) -> Self {
        let output = reader.begun_in.join(output);
        let file = fs::File::create(&output).expect("a file");
        let mut shell = reader.shell(command);
        let child = shell.stdout(file).stdin(Stdio::null()).spawn().expect("sh runs");
        Self { child, output, read: 0 }
    }

    fn printed(&self) -> String {
        let bytes = fs::read(&self.output).expect("its output");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the output has a text after what was waited for before; returns what is before the text's end.
    fn wait_for(&mut self, text: &str) -> String {
        let until = Instant::now() + WITHIN;
        loop {
            let printed = self.printed();
            let new = &printed[self.read..];
            if let Some(found) = new.find(text) {
                self.read += found + text.len();
                return new[..found + text.len()].to_owned();
            }
            assert!(Instant::now() < until, "{text:?} is not printed:\n{printed}");
            let ended = self.child.try_wait().expect("it was started");
            assert!(ended.is_none(), "it has ended without {text:?}:\n{printed}");
            thread::sleep(POLL);
        }
    }

    /// Waits for its end.
    fn end(&mut self) -> (ExitStatus, String) {
        let until = Instant::now() + WITHIN;
        loop {
            if let Some(status) = self.child.try_wait().expect("it was started") {
                return (status, self.printed());
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.printed());
            thread::sleep(POLL);
        }
    }

    /// As Ctrl-C.
    fn interrupt(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text in back quotes at the beginning, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('`')?.split_once('`')
}

/// The blocks of a page: the line before each, its kind, and its content.
fn blocks(page: &str) -> Vec<(&str, &str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((before, block)) = rest.split_once("\n```") {
        let caption = before.lines().last().unwrap_or_default();
        let (kind, block) = block.split_once('\n').expect("a block has a kind");
        // An empty block has no line before its end.
        let end = block.find("```\n").expect("a block has an end");
        blocks.push((caption, kind, &block[..end]));
        rest = &block[end + 3..];
    }
    blocks
}

/// A folder of this test below the target folder.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn services_are_built() -> bool {
    let beside = |name| Path::new(env!("CARGO_BIN_EXE_annals")).with_file_name(name);
    SERVICES.into_iter().all(|name| beside(name).exists())
}

#[test]
#[ignore = "compiles a game and its dependencies, for minutes in a new target folder: make first-game"]
fn the_first_game_is_made_changed_tested_and_demonstrated() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join(REPOSITORY);
    let page = fs::read_to_string(repository.join("docs/first-game.md")).expect("the page is there");
    // Always the same folder: Cargo would keep the binaries of each one.
    let folder = scratch("first-game-page");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("that of the last run can be removed");
    }
    fs::create_dir_all(&folder).expect("an empty folder");
    let mut reader = Reader {
        begun_in: folder.clone(),
        folder,
        printed: String::new(),
    };
    let blocks = blocks(&page);
    assert!(blocks.len() > 10, "{} blocks were found", blocks.len());
    for (caption, kind, content) in blocks {
        match kind {
            "sh" => reader.run(content, true),
            "sh fails" => reader.run(content, false),
            "sh realm" if services_are_built() => reader.run(content, true),
            "sh realm" => println!("SKIPPED: the services' binaries are not built; `make test` builds them"),
            "text" => {
                let missing = content.lines().find(|line| !reader.printed.contains(line));
                assert!(missing.is_none(), "{missing:?} was not printed:\n{}", reader.printed);
            }
            "rust" | "xml" | "ts" | "html" => reader.change(caption, content),
            _ => panic!("no such block: {kind}"),
        }
    }
    reader.run("cargo fmt --check", true);
    if services_are_built() {
        develop(&reader);
    }
}

/// The answer to a request of a page to its server.
fn request(address: &str, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the page's server listens");
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The system chooses the ports, and the data begin empty in each run.
const DEV: &str = "exec \"$ANNALS\" dev . --data realm --listen 127.0.0.1:0 --page 127.0.0.1:0";

/// Makes builds whose bases end at once. The running build goes on, also for a process that is restarted.
fn fail_to_start(reader: &Reader, dev: &mut Running, address: Option<&str>) {
    let main = "annals_game::base(garden::game)";
    for code in ["7", "8"] {
        let broken = format!("ExitCode::from({code})");
        reader.edit("src/bin/annals-base.rs", main, &broken);
        dev.wait_for("dev: the former build keeps running: base-");
        reader.edit("src/bin/annals-base.rs", &broken, main);
        dev.wait_for("dev: the base and cell processes are not affected");
    }
    if let Some(address) = address {
        let killed = request(address, "POST", "kill/base-1");
        assert!(killed.starts_with("HTTP/1.1 204 "), "{killed}");
        dev.wait_for("base-1 ended with signal: 9 (SIGKILL) and was restarted");
    }
}

/// Changes the game while `annals dev` runs it and bots play.
fn develop(reader: &Reader) {
    let mut dev = Running::start(reader, DEV, "dev.log");
    dev.wait_for("To run bots:\n");
    let bots = dev.wait_for("defs\n");
    let bots = bots.trim().strip_prefix("annals").expect("a command");
    let with_page = dev.wait_for("Ctrl-C stops it\n");
    let address = with_page
        .split_once("play at http://")
        .and_then(|(_, rest)| rest.split_once('/'));
    let address = address.map(|(address, _)| address);
    match address {
        Some(address) => {
            for file in ["", "main.js", "world.js", "client/index.js"] {
                let answer = request(address, "GET", file);
                assert!(answer.starts_with("HTTP/1.1 200 "), "{file}: {answer}");
            }
        }
        None => println!("SKIPPED: there is no TypeScript compiler; `make setup` installs one where there is npm"),
    }
    assert_eq!(
        address.is_some(),
        reader.folder.join("target/page/main.js").exists(),
        "{with_page}"
    );
    let edit = |file: &str, before: &str, after: &str| reader.edit(file, before, after);
    fail_to_start(reader, &mut dev, address);
    let mut bots = Running::start(
        reader,
        &format!("exec \"$ANNALS\" {bots} --bots 4 --duration 40"),
        "bots.log",
    );
    bots.wait_for("4/4 bots play");
    edit("src/bush.rs", "RIPENS_MS: u64 = 5_000", "RIPENS_MS: u64 = \"5 s\"");
    dev.wait_for("`make build` has failed; waiting for a change");
    edit("src/bush.rs", "RIPENS_MS: u64 = \"5 s\"", "RIPENS_MS: u64 = 4_000");
    dev.wait_for("dev: the new build runs");
    let added = "<mood> <Type> INT32 </Type> <Flags> CELL_PRIVATE </Flags> </mood></Properties>";
    edit("defs/entity_defs/Bush.def", "</Properties>", added);
    dev.wait_for("dev: the realm has the new definitions");
    dev.wait_for("players stay connected");
    let (_, report) = bots.end();
    assert!(report.contains("log-ins 4, refused 0"), "{report}");
    assert!(report.contains("disconnects 0; sessions resumed 0"), "{report}");

    // No value of the property has a counterpart of this type.
    edit(
        "defs/entity_defs/Bush.def",
        "<mood> <Type> INT32 </Type>",
        "<mood> <Type> STRING </Type>",
    );
    dev.wait_for("Restarting the realm");
    dev.wait_for("migrated to schema");
    dev.wait_for("dev: the realm is up");
    dev.interrupt();
    let (status, said) = dev.end();
    assert!(status.success(), "{said}");
}

/// Runs `annals new` in a folder; returns the exit code, and what it printed.
fn new(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    let output = command.arg("new").args(arguments).current_dir(folder).output();
    let output = output.expect("it runs");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn a_refused_game_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("full")).expect("a folder");
    fs::write(folder.path().join("full/notes"), "mine").expect("a file");
    fs::write(folder.path().join("file"), "mine").expect("a file");
    for (arguments, said) in [
        (&["full"][..], "exists and is not an empty folder; name another folder"),
        (&["file"], "exists and is not an empty folder; name another folder"),
        (&["no/garden"], "does not exist; create it first"),
        (
            &["My Garden"],
            "it must begin with a lower-case letter; name another folder",
        ),
        (
            &["garden", "--annals", "full"],
            "has no services/game/Cargo.toml; name another one with --annals PATH",
        ),
    ] {
        let (code, printed) = new(folder.path(), arguments);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.starts_with("new: ") && printed.contains(said), "{printed}");
    }
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["file", "full"]);
}

#[test]
fn an_empty_folder_becomes_the_game() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("my-garden")).expect("a folder");
    let (code, printed) = new(folder.path(), &["my-garden"]);
    assert_eq!(code, Some(0), "{printed}");
    let manifest = fs::read_to_string(folder.path().join("my-garden/Cargo.toml")).expect("it is there");
    assert!(manifest.contains("name = \"my-garden\""), "{manifest}");
    let base = fs::read_to_string(folder.path().join("my-garden/src/bin/annals-base.rs")).expect("it is there");
    assert!(base.contains("annals_game::base(my_garden::game)"), "{base}");
}

#[test]
fn a_game_that_is_not_built_is_named_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, printed) = new(folder.path(), &["garden"]);
    assert_eq!(code, Some(0), "{printed}");
    let output = Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(["up", "--world", "garden/defs", "--game", "garden/target/debug"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let said = "garden/target/debug/annals-base is missing; build the game (`cargo build --bins`), and name the folder";
    assert!(printed.starts_with(said), "{printed}");
    assert!(!folder.path().join("data").exists());
}

#[test]
fn a_taken_address_is_named_before_anything_is_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, printed) = new(folder.path(), &["garden"]);
    assert_eq!(code, Some(0), "{printed}");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let udp = (udp.local_addr().expect("it is bound").to_string(), udp);
    let tcp = (tcp.local_addr().expect("it is bound").to_string(), tcp);
    let reader = Reader {
        begun_in: folder.path().to_owned(),
        folder: folder.path().join("garden"),
        printed: String::new(),
    };
    let free = "127.0.0.1:0";
    for (listen, page, said) in [
        (&*udp.0, free, format!("dev: cannot listen on {}; another", udp.0)),
        (&*tcp.0, free, format!("dev: cannot listen on TCP port {} for", tcp.0)),
        (free, &*tcp.0, format!("dev: cannot listen on {}; another", tcp.0)),
    ] {
        // A build would fail at once, and `annals dev` wait for a change.
        let command = format!("CARGO=false exec \"$ANNALS\" dev . --listen {listen} --page {page}");
        let (status, printed) = Running::start(&reader, &command, "dev.log").end();
        assert_eq!(status.code(), Some(1), "{printed}");
        assert!(printed.starts_with(&said), "{printed}");
    }
}
