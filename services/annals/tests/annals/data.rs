//! `annals data` on the command line: its output and exit codes.

use std::{fs, path::Path, process::Command};

const FILE: &str = "<root>
	<hero> Sir Manfred
		<age> 44 </age>
		<debts> -18446744073709551615 </debts>
		<share> 0.125 </share>
		<isAlive> TRUE </isAlive>
		<seal> AAEC/w== </seal>
		<home> 1 -2.5 3e2 </home>
		<at> <row0> 1 0 0 </row0> <row1> 0 1 0 </row1> <row2> 0 0 1 </row2> <row3> 5 6 7 </row3> </at>
	</hero>
</root>
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("data")).expect("a folder");
    fs::write(folder.path().join("data/heroes.xml"), FILE).expect("a file");
    folder
}

/// The exit code, and the output.
fn read(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    let output = command
        .args(["data", "read"])
        .arg(dir)
        .args(arguments)
        .output()
        .expect("the program runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("text"))
}

#[test]
fn every_kind_of_value_is_printed() {
    let folder = folder();
    for (path, kind, wanted) in [
        ("hero", "string", "Sir Manfred\n"),
        ("hero/age", "int", "44\n"),
        ("hero/age", "uint", "44\n"),
        ("hero/age", "int64", "44\n"),
        ("hero/age", "uint64", "44\n"),
        ("hero/share", "float", "0.125\n"),
        ("hero/share", "double", "0.125\n"),
        ("hero/isAlive", "bool", "true\n"),
        ("hero/seal", "blob", "000102ff\n"),
        ("hero/home", "vector3", "1 -2.5 300\n"),
        ("hero/at", "matrix", "1 0 0 0\n0 1 0 0\n0 0 1 0\n5 6 7 1\n"),
        ("hero/age", "xml", "<age> 44 </age>\n"),
    ] {
        let said = read(folder.path(), &[&format!("data/heroes.xml/{path}"), "--as", kind]);
        assert_eq!(said, (Some(0), wanted.to_owned()), "{path} as {kind}");
    }
    assert_eq!(
        read(folder.path(), &["data/heroes.xml/hero/home"]).1,
        "<home> 1 -2.5 3e2 </home>\n"
    );
}

#[test]
fn errors_are_reported_with_their_position() {
    let folder = folder();
    for (path, kind, wanted) in [
        (
            "data/heroes.xml/hero/age",
            "bool",
            "data/heroes.xml:3:4: `hero/age` holds `44`, which is not `true` or `false`\n",
        ),
        (
            "data/heroes.xml/hero/home",
            "vector2",
            "data/heroes.xml:8:4: `hero/home` holds `1 -2.5 3e2`, which is not 2 numbers",
        ),
        (
            "data/heroes.xml/hero/debts",
            "int64",
            "data/heroes.xml:4:4: `hero/debts` holds `-18446744073709551615`",
        ),
        (
            "data/heroes.xml/villain",
            "xml",
            "data/heroes.xml:1:2: the root has no section `villain`; it has `hero`\n",
        ),
        (
            "data/nobody.xml",
            "xml",
            "there is no `data/nobody.xml` in the resource folder",
        ),
        (
            "../data/heroes.xml",
            "xml",
            "`../data/heroes.xml` is no path of a resource",
        ),
    ] {
        let (code, said) = read(folder.path(), &[path, "--as", kind]);
        assert_eq!(code, Some(1), "{path}");
        assert!(said.starts_with(wanted), "{said}");
    }
    let (code, said) = read(&folder.path().join("nowhere"), &["a.xml"]);
    assert!(code == Some(1) && said.contains("nowhere"), "{said}");
}
