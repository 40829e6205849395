//! Data files on disk: opened only within their folder, saved atomically.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use annals_data::{MAX_FILE_BYTES, OpenError, Resources, SaveError};
use tempfile::TempDir;

const CHARACTERS: &str = include_str!("../../test_data/characters.xml");

/// Environment variable for the child process whose disk is full: the folder that it saves in.
const FULL_DISK: &str = "ANNALS_TEST_FULL_DISK";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for tests");
    fs::create_dir_all(folder.path().join("scripts/data")).expect("a folder");
    fs::write(folder.path().join("scripts/data/characters.xml"), CHARACTERS).expect("a file");
    folder
}

fn resources(folder: &TempDir) -> Resources {
    Resources::at(folder.path()).expect("the folder is there")
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_path_can_lead_into_a_file() {
    let folder = folder();
    let resources = resources(&folder);
    let file = resources.open("scripts/data/characters.xml").expect("a file");
    assert_eq!(file.section().child(1).expect("a queen").text(), "Sofia");
    let section = resources
        .open("scripts/data/characters.xml/character/race")
        .expect("a section");
    assert_eq!(section.section().text(), "human");
    assert_eq!(
        section.section().place().to_string(),
        "scripts/data/characters.xml:5:4: `character/race`"
    );

    let error = |path: &str| resources.open(path).expect_err(path).to_string();
    assert_eq!(
        error("scripts/data/characters.xml/character/slaves"),
        "scripts/data/characters.xml:2:3: `character` has no section `slaves`; it has `description`, `modelName`, `race`, `gender`"
    );
    assert!(
        error("scripts/data/monsters.xml")
            .starts_with("there is no `scripts/data/monsters.xml` in the resource folder /")
    );
    assert_eq!(error("scripts/data"), "`scripts/data` is not a file");
}

#[test]
fn an_invalid_data_file_is_refused_with_its_position() {
    let folder = folder();
    let resources = resources(&folder);
    for (content, wanted) in [
        (
            "<root>\n <a>\n</root>",
            "a.xml:3:1: expected `</a>` to close `<a>`, found `</root>`",
        ),
        ("", "a.xml:1:1: the file has no root element"),
        (
            "<root> <a b=\"&c;\"/> </root>",
            "a.xml:1:9: the attribute `b` has an undefined entity reference",
        ),
        (
            "<root>\n<a>\u{1}</a></root>",
            "a.xml:2:2: `<a>` has the character U+0001 in it, which XML does not allow",
        ),
        (
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>",
            "a.xml:1:1: a document type with declarations is refused",
        ),
    ] {
        fs::write(folder.path().join("a.xml"), content).expect("a file");
        let error = resources.open("a.xml").expect_err(content).to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
    let bomb = "<a>".repeat(100_000);
    fs::write(folder.path().join("a.xml"), bomb).expect("a file");
    assert!(matches!(resources.open("a.xml"), Err(OpenError::Parse(_))));
    let many = format!("<root>{}</root>", "<a/>".repeat(annals_data::MAX_SECTIONS));
    fs::write(folder.path().join("a.xml"), many).expect("a file");
    let error = resources.open("a.xml").expect_err("too many").to_string();
    assert!(error.starts_with("a.xml has more than 500000 sections"), "{error}");
    fs::write(folder.path().join("a.xml"), vec![b' '; MAX_FILE_BYTES + 1]).expect("a file");
    assert!(matches!(resources.open("a.xml"), Err(OpenError::TooLarge(_))));
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let outside = folder();
    let folder = folder();
    let resources = resources(&folder);
    let there = outside.path().join("scripts/data/characters.xml");
    symlink(&there, folder.path().join("scripts/file.xml")).expect("a link");
    symlink(outside.path(), folder.path().join("scripts/folder")).expect("a link");
    symlink("data/characters.xml", folder.path().join("scripts/own.xml")).expect("a link");
    symlink("nowhere", folder.path().join("scripts/dangling.xml")).expect("a link");

    let absolute = there.to_string_lossy().into_owned();
    let up = format!(
        "scripts/../../{}/scripts/data/characters.xml",
        outside.path().file_name().expect("a name").to_string_lossy()
    );
    for path in [
        absolute.as_str(),
        &up,
        "..",
        ".",
        "",
        "scripts//data",
        "scripts/./data",
        "a\\b.xml",
        "a\0.xml",
    ] {
        assert!(matches!(resources.open(path), Err(OpenError::Path(_))), "{path:?}");
        assert!(matches!(resources.open_file(path), Err(OpenError::Path(_))), "{path:?}");
        assert!(
            matches!(resources.create_file(path, "root"), Err(OpenError::Path(_))),
            "{path:?}"
        );
    }
    for path in [
        "scripts/file.xml",
        "scripts/folder/scripts/data/characters.xml",
        "scripts/folder",
        "scripts/file.xml/character",
    ] {
        assert!(matches!(resources.open(path), Err(OpenError::Outside { .. })), "{path}");
        assert!(
            matches!(resources.open_file(path), Err(OpenError::Outside { .. })),
            "{path}"
        );
    }
    assert!(matches!(
        resources.create_file("scripts/folder/new.xml", "root"),
        Err(OpenError::Outside { .. })
    ));
    assert!(matches!(
        resources.create_file("scripts/dangling.xml", "root"),
        Err(OpenError::Exists(_))
    ));
    assert!(resources.open("scripts/own.xml").is_ok(), "a link within the folder");
}

#[test]
fn special_files_do_not_block() {
    let folder = folder();
    let pipe = folder.path().join("pipe.xml");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo runs")
            .success()
    );
    assert!(matches!(
        resources(&folder).open("pipe.xml"),
        Err(OpenError::NotAFile(_))
    ));
    assert!(matches!(Resources::at(&pipe), Err(OpenError::NotAFile(_))));
}

#[test]
fn only_a_whole_file_is_saved() {
    let folder = folder();
    let resources = resources(&folder);
    let error = resources
        .open_file("scripts/data/characters.xml/character")
        .expect_err("a section");
    assert_eq!(
        error.to_string(),
        "`character` is a section within scripts/data/characters.xml, and only whole files can be saved: open \
         `scripts/data/characters.xml` and navigate from its root"
    );
    let path = folder.path().join("scripts/data/characters.xml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("they can be set");
    let mut file = resources.open_file("scripts/data/characters.xml").expect("a file");
    file.root_mut()
        .child_mut(0)
        .expect("a knight")
        .set_text("Sir Lancelot")
        .expect("a text");
    file.save().expect("it can be saved");
    assert_eq!(
        fs::read_to_string(&path).expect("there"),
        CHARACTERS.replace("Sir Manfred", "Sir Lancelot")
    );
    assert_eq!(
        fs::metadata(&path).expect("there").permissions().mode() & 0o777,
        0o640,
        "the file mode is kept"
    );
    assert_eq!(
        names(&folder.path().join("scripts/data")),
        ["characters.xml"],
        "no other file is left"
    );
    file.root_mut()
        .child_mut(0)
        .expect("a knight")
        .set_text("Sir Galahad")
        .expect("a text");
    file.save().expect("and again");
    let again = resources.open("scripts/data/characters.xml/character").expect("there");
    assert_eq!(again.section().text(), "Sir Galahad");
}

#[test]
fn files_are_created_and_deleted() {
    let folder = folder();
    let resources = resources(&folder);
    let path = folder.path().join("scripts/new.xml");
    let mut file = resources.create_file("scripts/new.xml", "prices").expect("a name");
    assert!(!path.exists(), "not before it is saved");
    file.root_mut().write_at("sword", &120_i32).expect("a number");
    file.save().expect("it can be saved");
    assert_eq!(
        fs::read_to_string(&path).expect("there"),
        "<prices>\n\t<sword> 120 </sword>\n</prices>\n"
    );
    assert!(matches!(
        resources.create_file("scripts/new.xml", "prices"),
        Err(OpenError::Exists(_))
    ));
    assert!(matches!(
        resources.create_file("scripts/new/er.xml", "prices"),
        Err(OpenError::NotFound { .. })
    ));
    assert!(matches!(
        resources.create_file("scripts/er.xml", "1"),
        Err(OpenError::Root(_))
    ));
    file.delete().expect("it can be deleted");
    assert!(!path.exists());

    let mut first = resources.create_file("scripts/new.xml", "prices").expect("a name");
    let mut second = resources.create_file("scripts/new.xml", "other").expect("a name");
    first.save().expect("the first request");
    assert!(
        matches!(second.save(), Err(SaveError::Disk { .. })),
        "the name is taken"
    );
    assert_eq!(fs::read_to_string(&path).expect("there"), "<prices> </prices>\n");
}

#[test]
fn unread_text_is_not_lost() {
    let folder = folder();
    let path = folder.path().join("a.xml");
    let text = "<root> x <a/> left over </root>";
    fs::write(&path, text).expect("a file");
    let mut file = resources(&folder).open_file("a.xml").expect("it can be read");
    assert_eq!(file.document().warnings().len(), 1);
    let error = file.save().expect_err("text would be lost");
    assert_eq!(
        error.to_string(),
        "a.xml is not saved: 1:15: text after the children of `<root>` is not read, and would be lost"
    );
    assert_eq!(fs::read_to_string(&path).expect("there"), text);
}

#[test]
fn a_file_larger_than_can_be_read_is_not_saved() {
    let folder = folder();
    let resources = resources(&folder);
    let mut file = resources.create_file("a.xml", "root").expect("a name");
    file.root_mut()
        .set_text(&"<".repeat(MAX_FILE_BYTES / 2))
        .expect("a text");
    assert!(matches!(file.save(), Err(SaveError::TooLarge { .. })));
    assert_eq!(names(folder.path()), ["scripts"]);
}

#[test]
fn readers_find_the_old_content_or_the_new() {
    let folder = folder();
    let resources = resources(&folder);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !is_done.load(Ordering::Relaxed) {
                let file = resources.open("scripts/data/characters.xml").expect("always whole");
                let section = file.section();
                let names: Vec<_> = section.children().map(|child| child.text()).collect();
                assert!(names[0] == names[1] || names == ["Sir Manfred", "Sofia"], "{names:?}");
                seen += 1;
            }
            seen
        });
        let mut file = resources.open_file("scripts/data/characters.xml").expect("a file");
        for turn in 0..100 {
            for index in 0..2 {
                file.root_mut()
                    .child_mut(index)
                    .expect("there")
                    .set_text(&format!("Turn {turn}"))
                    .expect("a text");
            }
            file.save().expect("it can be saved");
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("no reader found half a file") > 0);
    });
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    if let Ok(folder) = std::env::var(FULL_DISK) {
        return save_on_a_full_disk(Path::new(&folder));
    }
    let folder = folder();
    // Files of the child process are limited to 8 blocks of 512 bytes. A write beyond fails, as on a full disk.
    let this = std::env::current_exe().expect("a test runs");
    let shell = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact files::a_full_disk_leaves_the_old_file";
    // Its output goes through pipes: a file that receives our own output may already exceed the limit.
    let output = Command::new("sh")
        .args(["-c", shell])
        .arg(this)
        .env(FULL_DISK, folder.path())
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(
        names(&folder.path().join("scripts/data")),
        ["characters.xml"],
        "no other file is left"
    );
    let text = fs::read_to_string(folder.path().join("scripts/data/characters.xml")).expect("there");
    assert_eq!(text, CHARACTERS);
}

fn save_on_a_full_disk(folder: &Path) {
    let resources = Resources::at(folder).expect("the folder is there");
    let mut file = resources.open_file("scripts/data/characters.xml").expect("a file");
    file.root_mut().set_text(&"long ".repeat(100_000)).expect("a text");
    let error = file.save().expect_err("there is no room");
    assert_eq!(
        error.to_string(),
        "scripts/data/characters.xml stays as it was: writing the new content failed"
    );
    assert!(matches!(error, SaveError::Disk { source, .. } if source.kind() == ErrorKind::FileTooLarge));
}
