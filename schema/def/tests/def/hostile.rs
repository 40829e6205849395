//! Hostile files, made to exhaust or to crash: each must end quickly with a diagnostic.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use annals_def::{
    Compiled, MAX_FILE_BYTES, MAX_FINDINGS, Rule, Service, Severity, Style, Tree, check_dir, compile, digest, render,
    split_mix,
};

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    for (path, text) in files {
        tree.insert(*path, *text);
    }
    tree
}

fn refused(tree: &Tree, rule: Rule) -> Compiled {
    let compiled = compile(tree);
    assert!(compiled.schema.is_none());
    let said = render(&compiled.diagnostics, Style::Plain);
    let is_said = compiled.diagnostics.iter().any(|d| d.rule == rule);
    assert!(
        is_said,
        "no {rule} in\n{}",
        said.chars().take(2_000).collect::<String>()
    );
    assert!(compiled.diagnostics.len() <= 4 * MAX_FINDINGS + 1, "of each severity");
    compiled
}

fn repeat(count: usize, mut part: impl FnMut(usize, &mut String)) -> String {
    let mut text = String::new();
    (0..count).for_each(|i| part(i, &mut text));
    text
}

#[test]
fn a_missing_folder_is_named() {
    let (schema, diagnostics) = check_dir(Path::new("/there/is/no/such/folder"));
    assert!(schema.is_none());
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].rule, Rule::Unreadable);
    assert!(
        diagnostics[0]
            .message
            .starts_with("`/there/is/no/such/folder` cannot be read: ")
    );
}

#[test]
fn a_huge_file_is_refused_without_reading_it() {
    let huge = " ".repeat(MAX_FILE_BYTES + 1);
    refused(&tree(&[("entity_defs/Avatar.def", &huge)]), Rule::TooLarge);
}

#[test]
fn deep_nesting_is_refused_at_the_limit() {
    let deep = "<a>".repeat(100_000);
    refused(&tree(&[("entity_defs/Avatar.def", &deep)]), Rule::TooDeep);
}

/// Files that repeat one thing as often as possible, with the expected rule; `None` if they load.
fn repetitions() -> Vec<(&'static str, String, Option<Rule>)> {
    let properties = repeat(30_000, |i, text| {
        let _ = write!(text, "<p{i}/>");
    });
    let attributes = repeat(100_000, |i, text| {
        let _ = write!(text, " a{i}=''");
    });
    let arguments = repeat(30_000, |i, text| {
        let _ = write!(text, "<a{i}> INT8 </a{i}>");
    });
    let inside = |content: &str| {
        format!("<root> <Properties> <p> <Type> {content} </Type> <Flags> BASE </Flags> </p> </Properties> </root>")
    };
    vec![
        (
            "properties",
            format!("<root> <Properties> {properties} </Properties> </root>"),
            Some(Rule::MissingType),
        ),
        (
            "attributes",
            format!("<root> <Properties {attributes}/> </root>"),
            Some(Rule::NotWellFormed),
        ),
        (
            "arguments",
            format!("<root> <CellMethods> <m> <Args> {arguments} </Args> </m> </CellMethods> </root>"),
            None,
        ),
        ("references", inside(&"&amp;".repeat(200_000)), Some(Rule::UnknownType)),
        (
            "text in pieces",
            inside(&"a<!-- -->".repeat(100_000)),
            Some(Rule::UnknownType),
        ),
        (
            "text behind elements",
            inside(&"<of/> a ".repeat(50_000)),
            Some(Rule::StrayText),
        ),
        (
            "a long text",
            inside(&"INT ".repeat(1_500_000)),
            Some(Rule::UnknownType),
        ),
        ("tags that begin", "<".repeat(4_000_000), Some(Rule::NotWellFormed)),
        (
            "references that begin",
            inside(&"&".repeat(4_000_000)),
            Some(Rule::NotWellFormed),
        ),
        (
            "comments that begin",
            format!("<root>{}", "<!--".repeat(1_000_000)),
            Some(Rule::NotWellFormed),
        ),
        (
            "quotes",
            format!("<root a=\"{}", "'".repeat(4_000_000)),
            Some(Rule::NotWellFormed),
        ),
        ("end tags", "</a>".repeat(1_000_000), Some(Rule::NotWellFormed)),
        ("blanks", " ".repeat(8_000_000), Some(Rule::NotWellFormed)),
        ("one tag", format!("<{}/>", "a".repeat(4_000_000)), None),
    ]
}

#[test]
fn repetitive_files_are_read_or_refused_in_one_pass() {
    for (what, text, rule) in repetitions() {
        let compiled = compile(&tree(&[("entity_defs/Avatar.def", &text)]));
        match rule {
            Some(rule) => assert!(compiled.diagnostics.iter().any(|found| found.rule == rule), "{what}"),
            None => assert!(compiled.schema.is_some(), "{what}"),
        }
    }
}

#[test]
fn diagnostics_of_a_file_are_bounded() {
    let tags = repeat(200_000, |i, text| {
        let _ = write!(text, "<Propertis{i}/>");
    });
    let tree = tree(&[(
        "entity_defs/Avatar.def",
        &format!("<root> {tags} <Volatile> <roll/> </Volatile> </root>"),
    )]);
    let compiled = refused(&tree, Rule::MoreFindings);
    // All on one line; each place shows only a part of it.
    assert!(
        compiled
            .diagnostics
            .iter()
            .all(|diagnostic| diagnostic.place.text.len() < 1_000)
    );
}

/// Many types, each with a hundred unknown tags, and the last one with a misspelling.
fn slip_behind_odd_tags(comment: &str) -> Tree {
    let mut tree = Tree::new();
    let list = repeat(60, |i, text| {
        let _ = write!(text, "<T{i:02}/>");
    });
    tree.insert("entities.xml", format!("<root> {list} </root>"));
    for i in 0..60 {
        let odd = repeat(100, |j, text| {
            let _ = write!(text, "<odd{i}_{j}/>");
        });
        let slip = if i == 59 { "INTT" } else { "INT8" };
        tree.insert(
            format!("entity_defs/T{i:02}.def"),
            format!("{comment}<root> {odd} <Properties> <p> <Type> {slip} </Type> <Flags> BASE </Flags> </p> </Properties> </root>"),
        );
    }
    tree
}

#[test]
fn warnings_never_hide_an_error() {
    let compiled = refused(&slip_behind_odd_tags(""), Rule::UnknownType);
    let count = |severity| compiled.diagnostics.iter().filter(|d| d.severity == severity).count();
    assert_eq!((count(Severity::Error), count(Severity::Warning)), (1, MAX_FINDINGS));
    let more = compiled.diagnostics.iter().find(|d| d.rule == Rule::MoreFindings);
    assert_eq!(
        more.map(|d| d.message.as_str()),
        Some("1000 more warnings are not shown")
    );
    // The findings that are kept are the first in the order of files.
    let last = compiled.diagnostics.iter().rfind(|d| d.severity == Severity::Warning);
    assert_eq!(last.map(|d| d.place.file.as_str()), Some("entity_defs/T49.def"));
}

#[test]
fn a_digest_limits_repetitions_and_ends_with_the_errors() {
    let mut tree = tree(&[(
        "entity_defs/Avatar.def",
        "<root> <Properties> <p> <Type> INTT </Type> <Flags> BASE </Flags> </p> </Properties> </root>",
    )]);
    for i in 0..40 {
        tree.insert(
            format!("entity_defs/T{i}.def"),
            "<root> <Properties/>\n\n<Properties/> </root>",
        );
    }
    let compiled = refused(&tree, Rule::UnknownType);
    let said = digest(&compiled.diagnostics, Style::Plain);
    assert_eq!(said.matches("warning[D0103]").count(), 3);
    assert!(
        said.contains("… and 37 more of D0103, in 37 files: `<Properties>` is repeated"),
        "{said}"
    );
    let (error, warning) = (said.find("error["), said.rfind("warning["));
    assert!(error > warning && error.is_some(), "{said}");
    assert!(said.ends_with("1 error, 40 warnings, 40 notes\n"), "{said}");
}

#[test]
fn allowed_diagnostics_do_not_count_towards_the_limit() {
    let mut tree = slip_behind_odd_tags("<!-- allow D0101: of the old tools -->");
    tree.insert("entity_defs/T58.def", "<root> <Propertis/> </root>");
    let compiled = refused(&tree, Rule::UnknownType);
    let rules: Vec<Rule> = compiled.diagnostics.iter().map(|d| d.rule).collect();
    assert_eq!(rules, [Rule::UnknownTag, Rule::UnknownType]);
}

#[test]
fn aliases_of_aliases_do_not_grow_exponentially() {
    let mut aliases = "<root> <A0> FIXED_DICT <Properties> <x> <Type> INT8 </Type> </x> </Properties> </A0>".to_owned();
    for i in 1..2_000 {
        let before = i - 1;
        let _ = write!(
            aliases,
            "<A{i}> FIXED_DICT <Properties> <x> <Type> A{before} </Type> </x> <y> <Type> A{before} </Type> </y> </Properties> </A{i}>"
        );
    }
    aliases.push_str("</root>");
    let tree = tree(&[
        ("entity_defs/alias.xml", &aliases),
        ("entity_defs/Avatar.def", &with_property("A1999")),
    ]);
    refused(&tree, Rule::TypeTooLarge);
}

#[test]
fn a_long_chain_of_aliases_is_refused() {
    let aliases = repeat(50_000, |i, text| {
        let _ = write!(text, "<A{i}> A{} </A{i}>", i + 1);
    });
    let tree = tree(&[
        ("entity_defs/alias.xml", &format!("<root> {aliases} </root>")),
        ("entity_defs/Avatar.def", &with_property("A0")),
    ]);
    refused(&tree, Rule::TypeTooLarge);
}

/// A definition that uses a type.
fn with_property(data_type: &str) -> String {
    format!("<root> <Properties> <p> <Type> {data_type} </Type> <Flags> BASE </Flags> </p> </Properties> </root>")
}

#[test]
fn copies_of_a_large_default_are_counted() {
    let alias = "<root> <BIG> ARRAY <of> INT32 </of> <size> 16000 </size> </BIG> </root>";
    let properties = repeat(2_000, |i, text| {
        let _ = write!(text, "<p{i}> <Type> BIG </Type> <Flags> BASE </Flags> </p{i}>");
    });
    let definition = format!("<root> <Properties> {properties} </Properties> </root>");
    let tree = tree(&[
        ("entity_defs/alias.xml", alias),
        ("entity_defs/Avatar.def", &definition),
    ]);
    refused(&tree, Rule::TypeTooLarge);
}

/// Short elements stand for long values: in a default, and in a zone.
#[test]
fn copies_of_an_element_default_are_counted() {
    let items = "<item/>".repeat(100_000);
    let row = "ARRAY <of> ARRAY <of> UINT8 </of> <size> 9000 </size> </of>";
    let declared = format!(
        "<root> <Properties> <rows> <Type> {row} </Type> <Flags> CELL_PRIVATE </Flags> <Default> {items} </Default> </rows> \
         </Properties> </root>"
    );
    refused(&tree(&[("entity_defs/Avatar.def", &declared)]), Rule::TypeTooLarge);

    let declared = format!(
        "<root> <Properties> <rows> <Type> {row} </Type> <Flags> CELL_PRIVATE </Flags> </rows> </Properties> </root>"
    );
    let zone = format!(
        "<root> <entity> <type> Avatar </type> <position> 0 0 0 </position> <properties> <rows> {items} </rows> \
         </properties> </entity> </root>"
    );
    let files = [("entity_defs/Avatar.def", declared.as_str()), ("zones/here.xml", &zone)];
    refused(&tree(&files), Rule::TypeTooLarge);
}

#[test]
fn defaults_of_placed_objects_are_counted() {
    let posts = repeat(2_000, |i, text| {
        let guid = format!("{:08x}.00000000.00000000.00000000", i + 1);
        let placed = format!("<type> Post </type> <guid> {guid} </guid> <position> 0 0 0 </position>");
        writeln!(text, "<UserDataObject> {placed} </UserDataObject>").expect("a string");
    });
    let zone = format!("<root> {posts} </root>");
    let row = "<row> <Type> ARRAY <of> UINT8 </of> <size> 9000 </size> </Type> </row>".to_owned();
    // A text of 200 kB counts by its length.
    let text = format!(
        "<text> <Type> STRING </Type> <Default> {} </Default> </text>",
        "x".repeat(200_000)
    );
    for property in [row, text] {
        let post = format!("<root> <Domain> CELL </Domain> <Properties> {property} </Properties> </root>");
        let files = [
            ("entity_defs/Avatar.def", "<root> </root>"),
            ("user_data_objects.xml", "<root> <Post/> </root>"),
            ("user_data_object_defs/Post.def", post.as_str()),
            ("zones/here.xml", zone.as_str()),
        ];
        refused(&tree(&files), Rule::TypeTooLarge);
    }
}

#[test]
fn copies_to_derived_types_are_counted() {
    let text = "x".repeat(1 << 20);
    let interface = format!(
        "<root> <Properties> <motto> <Type> STRING </Type> <Flags> BASE </Flags> <Default> {text} </Default> </motto> </Properties> </root>"
    );
    let mut tree = Tree::new();
    let mut list = String::new();
    for i in 0..1_000 {
        let _ = write!(list, "<T{i}/>");
        tree.insert(
            format!("entity_defs/T{i}.def"),
            "<root> <Implements> <I> Motto </I> </Implements> </root>",
        );
    }
    tree.insert("entities.xml", format!("<root> {list} </root>"));
    tree.insert("entity_defs/interfaces/Motto.def", interface);
    refused(&tree, Rule::TypeTooLarge);
}

#[test]
fn an_inheritance_chain_of_a_thousand_is_refused() {
    let mut tree = tree(&[("entity_defs/Avatar.def", "<root> <Parent> P0 </Parent> </root>")]);
    for i in 0..1_000 {
        tree.insert(
            format!("entity_defs/P{i}.def"),
            format!("<root> <Parent> P{} </Parent> </root>", i + 1),
        );
    }
    refused(&tree, Rule::Cycle);
}

#[test]
fn more_members_than_ids_are_refused() {
    let methods = repeat(usize::from(u16::MAX) + 1, |i, text| {
        let _ = write!(text, "<m{i}/>");
    });
    let definition = format!("<root> <CellMethods> {methods} </CellMethods> </root>");
    refused(&tree(&[("entity_defs/Avatar.def", &definition)]), Rule::TooMany);
}

#[test]
fn two_services_of_the_same_number_are_refused() {
    let mut slots = BTreeMap::new();
    let mut names = (0..10_000).map(|number| format!("Service{number}"));
    let (first, second) = names
        .find_map(|name| {
            let service = Service {
                name: name.clone(),
                methods: Vec::new(),
            };
            Some((slots.insert(service.slot(), name.clone())?, name))
        })
        .expect("of so many names, two have the same 20 bits");
    let list = |names: &[&String]| {
        let tags = names.iter().map(|name| format!("<{name}/>"));
        format!("<root>{}</root>", tags.collect::<String>())
    };
    let files = |list: &str| {
        let mut files = tree(&[("entity_defs/Avatar.def", "<root/>"), ("services.xml", list)]);
        for name in [&first, &second] {
            files.insert(format!("service_defs/{name}.def"), "<root/>");
        }
        files
    };
    refused(&files(&list(&[&first, &second])), Rule::TooMany);
    assert!(compile(&files(&list(&[&second]))).schema.is_some());
}

#[test]
fn damaged_files_never_panic() {
    let alias = include_str!("../../test_data/ok/defaults.case");
    let inherit = include_str!("../../test_data/ok/inheritance.case");
    for seed in 0..500 {
        let mut dice = split_mix(seed);
        let case = if dice().is_multiple_of(2) { alias } else { inherit };
        let mut tree = Tree::new();
        for section in case.split("=== ").skip(1) {
            let (path, content) = section.split_once('\n').expect("a line with the path");
            let mut bytes = content.as_bytes().to_vec();
            for _ in 0..dice() % 4 {
                damage(&mut bytes, &mut dice);
            }
            tree.insert(path, bytes);
        }
        let compiled = compile(&tree);
        let has_error = compiled.diagnostics.iter().any(|d| d.severity == Severity::Error);
        assert_eq!(compiled.schema.is_none(), has_error, "seed {seed}");
        let said = render(&compiled.diagnostics, Style::Coloured);
        assert_eq!(said.is_empty(), compiled.diagnostics.is_empty(), "seed {seed}");
    }
}

fn damage(bytes: &mut Vec<u8>, dice: &mut impl FnMut() -> u64) {
    let at = dice() as usize % bytes.len().max(1);
    match dice() % 5 {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => bytes[at] ^= 1 << (dice() % 8),
        2 if !bytes.is_empty() => {
            bytes.remove(at);
        }
        3 => bytes.insert(at.min(bytes.len()), b"<>/&\"'\xff\0 a"[dice() as usize % 10]),
        _ => {
            let end = (at + dice() as usize % 40).min(bytes.len());
            let part = bytes[at.min(end)..end].to_vec();
            bytes.splice(at.min(end)..at.min(end), part);
        }
    }
}
