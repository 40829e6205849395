//! The order of client numbers, against the test vectors for other implementations: `test_data/client_numbers.txt`.

use std::fmt::Write as _;

use annals_def::{EntityType, Schema, Severity, Tree, compile};
use annals_ids::MemberId;

/// Writes the content of a member: its types and its header.
type Write = fn(&mut String, &[&str], &str);

/// The names of members by client number.
type NamesOf = fn(&EntityType) -> Vec<String>;

/// A kind of members: where they are declared, how one is written, and their names by client number.
struct Kind {
    section: &'static str,
    write: Write,
    names: NamesOf,
}

fn kind(word: &str) -> Kind {
    let (section, write, names): (_, Write, NamesOf) = match word {
        "property" => ("Properties", write_property, |one| {
            named(one.client_properties(), |id| {
                one.property(id).expect("its own").name.clone()
            })
        }),
        "client" => ("ClientMethods", write_method, |one| {
            named(one.client_method_ids(), |id| {
                one.client_methods[usize::from(id.0)].name.clone()
            })
        }),
        "cell" => ("CellMethods", write_exposed, |one| {
            named(one.exposed_cell_methods(), |id| {
                one.cell_methods[usize::from(id.0)].name.clone()
            })
        }),
        "base" => ("BaseMethods", write_exposed, |one| {
            named(one.exposed_base_methods(), |id| {
                one.base_methods[usize::from(id.0)].name.clone()
            })
        }),
        other => panic!("no kind {other}"),
    };
    Kind { section, write, names }
}

fn named(ids: &[MemberId], name: impl Fn(MemberId) -> String) -> Vec<String> {
    ids.iter().map(|id| name(*id)).collect()
}

fn write_property(text: &mut String, types: &[&str], header: &str) {
    let _ = write!(
        text,
        "<Type> {} </Type> <Flags> ALL_CLIENTS </Flags> {header}",
        types[0]
    );
}

fn write_method(text: &mut String, types: &[&str], header: &str) {
    for data_type in types {
        let _ = write!(text, "<Arg> {data_type} </Arg> ");
    }
    text.push_str(header);
}

fn write_exposed(text: &mut String, types: &[&str], header: &str) {
    text.push_str("<Exposed/> ");
    write_method(text, types, header);
}

fn world(kind: &Kind, members: &str) -> Schema {
    let mut text = format!("<root> <{}>\n", kind.section);
    for member in members.split(',') {
        let (member, header) = member.split_once('/').unwrap_or((member, ""));
        let mut words = member.split_whitespace();
        let name = words.next().expect("a name");
        let header = match header.trim() {
            "" => String::new(),
            size => format!("<VariableLengthHeaderSize> {size} </VariableLengthHeaderSize>"),
        };
        let _ = write!(text, "<{name}> ");
        (kind.write)(&mut text, &words.collect::<Vec<_>>(), &header);
        let _ = writeln!(text, " </{name}>");
    }
    let _ = write!(text, "</{}> </root>", kind.section);
    let mut tree = Tree::new();
    tree.insert(
        "entities.xml",
        "<root> <ClientServerEntities> <Avatar/> </ClientServerEntities> </root>",
    );
    tree.insert("entity_defs/Avatar.def", text.as_str());
    let compiled = compile(&tree);
    let graver = compiled.diagnostics.iter().filter(|one| one.severity < Severity::Note);
    assert_eq!(
        graver.collect::<Vec<_>>(),
        Vec::<&annals_def::Diagnostic>::new(),
        "{text}"
    );
    compiled.schema.expect("nothing is wrong")
}

#[test]
fn members_have_the_order_in_the_file() {
    let lines = include_str!("../../test_data/client_numbers.txt").lines();
    let mut count = 0;
    for line in lines.filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [word, members, expected] = columns[..] else {
            panic!("three columns: {line}")
        };
        let kind = kind(word);
        let schema = world(&kind, members);
        let expected: Vec<&str> = expected.split(',').map(str::trim).collect();
        let names = |schema: &Schema| (kind.names)(schema.type_named("Avatar").expect("listed"));
        assert_eq!(names(&schema), expected, "{line}");
        let loaded = Schema::decode(&schema.encode()).expect("own bytes");
        assert_eq!(names(&loaded), expected, "stored: {line}");
        assert_eq!(loaded.client_fingerprint(), schema.client_fingerprint(), "{line}");
        count += 1;
    }
    assert_eq!(count, 9);
}

#[test]
fn a_header_size_affects_the_fingerprint_only_if_it_reorders() {
    let with = |header: &str| {
        let of_client = world(&kind("client"), &format!("big BLOB {header}, small BLOB"));
        let of_cell = world(&kind("cell"), &format!("big BLOB {header}, small BLOB"));
        let fixed = world(&kind("property"), &format!("level UINT8 {header}"));
        [of_client, of_cell, fixed]
    };
    let (plain, declared) = (with(""), with("/2"));
    assert_ne!(plain[0].fingerprint(), declared[0].fingerprint());
    assert_ne!(plain[0].client_fingerprint(), declared[0].client_fingerprint());
    assert_eq!(plain[0].fingerprint(), with("/1")[0].fingerprint());
    for (plain, declared) in plain.iter().zip(&declared).skip(1) {
        assert_eq!(plain.fingerprint(), declared.fingerprint());
    }
}
