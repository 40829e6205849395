//! Sections are read, edited and written in memory.

use annals_data::{Binary, Blob, Datum, Document, EditError, MAX_XML_DEPTH, Matrix, ReadError, WideString};

const CHARACTERS: &str = include_str!("../../test_data/characters.xml");

fn parsed(text: &str) -> Document {
    Document::parse("a.xml", text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Writes the value into a section, and reads it back from the resulting file.
fn through_a_file<T: Datum>(value: &T) -> T {
    let mut document = Document::new("a.xml", "root").expect("a name");
    document
        .root_mut()
        .write_at("deep/value", value)
        .expect("it can be written");
    parsed(&document.to_xml())
        .root()
        .read_at("deep/value")
        .expect("it reads back")
}

#[test]
fn a_document_is_read_by_number_by_name_and_by_path() {
    let document = parsed(CHARACTERS);
    let root = document.root();
    assert_eq!(root.child(0).expect("a knight").text(), "Sir Manfred");
    assert_eq!(
        root.child(0).expect("a knight").read_at("description"),
        Ok("White knight".to_owned())
    );
    assert_eq!(root.child(0).expect("a knight").read_at("gender"), Ok(0_i32));
    assert!(root.child(2).is_none());

    let names: Vec<_> = root.all("character").map(|character| character.text()).collect();
    assert_eq!(names, ["Sir Manfred", "Sofia"], "several of one name, in order");
    let queen = root.child(1).expect("a queen");
    assert_eq!(queen.open("slaves/character/race").expect("there").text(), "undead");
    assert_eq!(queen.find("slaves").expect("there").children().len(), 2);
    assert_eq!(queen.find("").expect("itself").text(), "Sofia");
    for path in [
        "Slaves",
        "slaves/",
        "/slaves",
        "slaves//character",
        "slaves/character/race/x",
        "..",
        "/",
    ] {
        assert!(queen.find(path).is_none(), "{path}");
    }
    assert_eq!(document.to_xml(), CHARACTERS, "it is written as it was");
}

#[test]
fn document_changes_match_the_predecessors() {
    let mut document = parsed(CHARACTERS);
    let mut root = document.root_mut();
    assert!(root.delete("character"), "the first of that name goes");
    let mut king = root.create("character").expect("a name");
    king.set_text("King Arthur").expect("a text");
    for name in ["description", "modelName", "race", "gender", "slaves"] {
        king.create(name).expect("a name");
    }
    king.write_at("description", &"The King of Camelot".to_owned())
        .expect("a text");
    king.write_at("modelName", &"sets/main/character/knight.model".to_owned())
        .expect("a text");
    king.write_at("race", &"human".to_owned()).expect("a text");
    king.write_at("gender", &0_i32).expect("a number");
    assert_eq!(document.to_xml(), include_str!("../../test_data/characters_after.xml"));
}

#[test]
fn each_kind_of_value_reads_back_as_it_was_written() {
    for value in [i32::MIN, -1, 0, i32::MAX] {
        assert_eq!(through_a_file(&value), value);
    }
    assert_eq!(through_a_file(&u32::MAX), u32::MAX);
    assert_eq!(through_a_file(&i64::MIN), i64::MIN);
    assert_eq!(through_a_file(&u64::MAX), u64::MAX);
    for value in [true, false] {
        assert_eq!(through_a_file(&value), value);
    }
    for value in [0.0, -0.0, 0.1, f32::MIN_POSITIVE, f32::MAX, 1e-45] {
        assert_eq!(through_a_file(&value).to_bits(), value.to_bits());
    }
    for value in [0.1, f64::MIN_POSITIVE, f64::MAX, 5e-324] {
        assert_eq!(through_a_file(&value).to_bits(), value.to_bits());
    }
    assert_eq!(through_a_file(&[0.1_f32, -2.0]), [0.1, -2.0]);
    assert_eq!(through_a_file(&[0.1_f32, 1e30, 3.0]), [0.1, 1e30, 3.0]);
    assert_eq!(through_a_file(&[1.0_f32, 2.0, 3.0, 1e-9]), [1.0, 2.0, 3.0, 1e-9]);
    let matrix = Matrix {
        rows: [
            [0.0, 1.0, 0.5],
            [-1.0, 0.0, 0.25],
            [0.1, 0.2, 0.3],
            [100.5, 0.0, -7.125],
        ],
    };
    assert_eq!(through_a_file(&matrix), matrix);
    assert_eq!(matrix.whole()[3], [100.5, 0.0, -7.125, 1.0]);
    for text in ["", "a", "龙 <&>\"' ]]> 🐉", "two\nlines\tand\rmore", "a  b"] {
        assert_eq!(through_a_file(&text.to_owned()), text);
        let wide = WideString(text.encode_utf16().collect());
        assert_eq!(through_a_file(&wide), wide);
    }
    assert_eq!(
        through_a_file(&"\n  blanks around it \u{3000}".to_owned()),
        "blanks around it"
    );
    for bytes in [&[][..], &[0], &[0, 1, 2, 255], &[7; 1000]] {
        assert_eq!(through_a_file(&Blob(bytes.to_vec())), Blob(bytes.to_vec()));
    }
}

#[test]
fn a_section_travels_as_the_bytes_of_a_file() {
    let document = parsed(CHARACTERS);
    let bytes: Binary = document.root().read_at("character").expect("always a section");
    assert!(
        bytes.0.starts_with(b"<character> Sir Manfred\n"),
        "{}",
        String::from_utf8_lossy(&bytes.0)
    );
    let mut copy = Document::new("b.xml", "root").expect("a name");
    copy.root_mut().write_at("hero", &bytes).expect("it is XML");
    assert_eq!(copy.root().read_at("hero/race"), Ok("human".to_owned()));
    assert_eq!(copy.root().open("hero").expect("there").text(), "Sir Manfred");
    let refused = copy.root_mut().write_at("hero", &Binary(b"<a>".to_vec()));
    assert!(matches!(refused, Err(EditError::Xml(_))), "{refused:?}");
    assert_eq!(
        copy.root().read_at("hero/race"),
        Ok("human".to_owned()),
        "what was there stays"
    );
}

#[test]
fn an_invalid_text_is_an_error_with_its_position_or_a_default() {
    let document = parsed("<root>\n  <age> many </age>\n  <at> 1 2 </at>\n  <key> A-B </key>\n</root>");
    let root = document.root();
    let error = root.read_at::<i32>("age").expect_err("no number");
    assert_eq!(
        error.to_string(),
        "a.xml:2:4: `age` holds `many`, which is not an integer from -2147483648 to 2147483647"
    );
    let error = root.read_at::<[f32; 3]>("at").expect_err("too few");
    assert_eq!(
        error.to_string(),
        "a.xml:3:4: `at` holds `1 2`, which is not 3 numbers with blanks between them"
    );
    let error = root.read_at::<Blob>("key").expect_err("not base 64");
    assert_eq!(error.to_string(), "a.xml:4:4: `key` holds `A-B`, which is not base 64");
    let error = root.read_at::<bool>("alive").expect_err("not there");
    assert!(matches!(error, ReadError::Missing { .. }));
    assert_eq!(
        error.to_string(),
        "a.xml:1:2: the root has no section `alive`; it has `age`, `at`, `key`"
    );
    let error = root.read::<Matrix>().expect_err("no rows");
    assert!(
        error
            .to_string()
            .starts_with("a.xml:1:2: the root holds nothing, which is not a matrix"),
        "{error}"
    );

    assert_eq!(root.read_at_or("age", 7), 7);
    assert!(root.read_at_or("alive", true));
    assert_eq!(
        root.open("key").expect("there").read_or(Blob::default()),
        Blob::default()
    );
    for (text, number) in [
        ("0x1F", Some(31)),
        ("-5", Some(-5)),
        ("5.0", None),
        ("2147483648", None),
        ("", None),
    ] {
        assert_eq!(
            parsed(&format!("<root> {text} </root>")).root().read::<i32>().ok(),
            number,
            "{text}"
        );
    }
    for (text, truth) in [("TRUE", Some(true)), ("False", Some(false)), ("1", None), ("yes", None)] {
        assert_eq!(
            parsed(&format!("<root> {text} </root>")).root().read::<bool>().ok(),
            truth,
            "{text}"
        );
    }
    for text in ["nan", "inf", "1e39", "1,5"] {
        assert!(
            parsed(&format!("<root> {text} </root>")).root().read::<f32>().is_err(),
            "{text}"
        );
    }
}

#[test]
fn values_that_no_file_can_hold_are_refused() {
    let mut document = Document::new("a.xml", "root").expect("a name");
    let mut root = document.root_mut();
    root.write_at("a", &"old".to_owned()).expect("a text");
    let old = document.to_xml();
    let mut root = document.root_mut();
    for text in ["\0", "bell \u{7}", "\u{1b}[0m", "\u{fffe}", "\u{ffff}"] {
        let refused = root.write_at("a", &text.to_owned());
        assert!(matches!(refused, Err(EditError::Character(_))), "{text:?}");
    }
    assert!(matches!(
        root.write_at("a", &WideString(vec![0xd800])),
        Err(EditError::Character(0xd800))
    ));
    assert!(matches!(root.write_at("a", &f32::NAN), Err(EditError::NotFinite)));
    assert!(matches!(
        root.write_at("a", &[0.0, f32::INFINITY]),
        Err(EditError::NotFinite)
    ));
    let matrix = Matrix {
        rows: [[f32::NAN; 3]; 4],
    };
    assert!(matches!(root.write_at("a", &matrix), Err(EditError::NotFinite)));
    for name in ["", "1a", "a b", "a<", "-a", "a:b", "a/", "/a", "new/1", "é\u{0}"] {
        assert!(matches!(root.create(name), Err(EditError::Name(_))), "{name:?}");
    }
    assert!(matches!(root.set_attribute("a b", "c"), Err(EditError::Name(_))));
    assert_eq!(document.to_xml(), old);
}

#[test]
fn depth_is_limited_where_sections_are_made() {
    let mut document = Document::new("a.xml", "root").expect("a name");
    let path = vec!["a"; MAX_XML_DEPTH - 1].join("/");
    document.root_mut().create(&path).expect("as deep as can be");
    let mut root = document.root_mut();
    assert!(matches!(root.create(&format!("{path}/a")), Err(EditError::TooDeep)));
    let deep = Binary(parsed(CHARACTERS).to_xml().into_bytes());
    assert!(matches!(root.write_at(&path, &deep), Err(EditError::TooDeep)));
    assert!(root.find_mut(&path).expect("there").view().children().len() == 0);
    let text = document.to_xml();
    assert_eq!(parsed(&text).to_xml(), text, "what can be made can be read");
}

#[test]
fn sections_are_deleted_with_their_contents() {
    let mut document = parsed("<root> <a> 1 <b/> </a> <c/> <a> 2 </a> </root>");
    let mut root = document.root_mut();
    assert!(root.delete("a/b") && !root.delete("a/b"));
    assert!(!root.delete("") && !root.delete("c/d") && !root.delete("d"));
    assert!(root.delete_child(1) && !root.delete_child(2));
    assert!(root.delete("a"));
    assert_eq!(root.view().read_at("a"), Ok(2_i32));
    root.create("new/er").expect("names");
    assert_eq!(
        root.view().find("new/er").expect("made").children().len(),
        0,
        "nothing of what was deleted"
    );
    root.delete_children();
    assert_eq!(document.to_xml(), "<root> </root>\n");
}

#[test]
fn attributes_and_comments_stay() {
    let text = "<!-- of all -->\n<root>\n\t<!-- first -->\n\t<a b=\"1 &lt; 2 &amp; &quot;3&quot;\"> x </a>\n\t<!-- last -->\n</root>\n<!-- end -->\n";
    let mut document = parsed(text);
    assert_eq!(document.to_xml(), text);
    assert_eq!(
        document.root().open("a").expect("there").attribute("b"),
        Some("1 < 2 & \"3\"")
    );
    let mut root = document.root_mut();
    let mut a = root.find_mut("a").expect("there");
    a.set_attribute("b", "4\n5").expect("a name");
    a.set_attribute("c", "'").expect("a name");
    let written = document.to_xml();
    let attributes: Vec<_> = document.root().open("a").expect("there").attributes().collect();
    assert_eq!(attributes, [("b", "4\n5"), ("c", "'")]);
    assert_eq!(
        parsed(&written).root().open("a").expect("there").attribute("b"),
        Some("4\n5")
    );
}
