//! The reader and the tables of the grammar agree: all that a table has is read, all else is reported, and the reader
//! asks for nothing that no table has.

use std::{collections::BTreeSet, fs, path::Path};

use annals_def::{
    Rule, Tree, compile,
    grammar::{Content, DICT, Dialect, FLAGS, FileKind, Home, Noun, Occurs, SEQUENCE, SIMPLE, TYPES, Tag, Text, USER},
};

const DIALECTS: [Dialect; 2] = [Dialect::BigWorld, Dialect::KBEngine];

/// A place in a file: the text before and the text behind it.
#[derive(Clone)]
struct Spot {
    before: String,
    behind: String,
}

impl Spot {
    /// The place inside an element at this place, with the other content that the element requires.
    fn inside(&self, content: &Content, name: &str, text: &str) -> Self {
        let needed = content
            .tags
            .iter()
            .filter(|tag| tag.occurs == Occurs::Needed && tag.name != name);
        let needed: String = needed
            .map(|tag| format!("<{0}> {1} </{0}> ", tag.name, sample(tag.content)))
            .collect();
        Self {
            before: format!("{}{needed}<{name}> {text} ", self.before),
            behind: format!(" </{name}>{}", self.behind),
        }
    }

    /// The file with a line inserted here, and the number of that line.
    fn with(&self, what: &str) -> (String, u32) {
        (format!("{}\n{what}\n{}", self.before, self.behind), 2)
    }
}

/// A world of a certain dialect, with its files of a kind.
fn world(dialect: Dialect) -> Tree {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    tree.insert("entity_defs/Avatar.def", "<root> </root>");
    tree.insert(dialect.alias_file(), "<root> </root>");
    tree
}

fn path_of(kind: FileKind, dialect: Dialect) -> &'static str {
    match kind {
        FileKind::EntityList => "entities.xml",
        FileKind::ServiceList => "services.xml",
        FileKind::ObjectList => "user_data_objects.xml",
        FileKind::ComponentList => "components.xml",
        FileKind::Aliases => dialect.alias_file(),
        FileKind::Ledger => "ledger.xml",
        FileKind::Definition => "entity_defs/Avatar.def",
        FileKind::Service => "service_defs/Service.def",
        FileKind::Object => "user_data_object_defs/Object.def",
        FileKind::Zone => "zones/here.xml",
    }
}

/// All places for which a table defines the content, each table once.
fn places(kind: FileKind, dialect: Dialect) -> Vec<(Spot, &'static Content)> {
    let root = Spot {
        before: "<root> ".to_owned(),
        behind: " </root>".to_owned(),
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut left = vec![(root, kind.content())];
    while let Some((spot, content)) = left.pop() {
        if !seen.insert(std::ptr::from_ref(content) as usize) {
            continue;
        }
        let tags = content.tags.iter().filter(|tag| tag.is_offered(dialect));
        let children = tags.map(|tag| (tag.name, tag.content));
        for (name, child) in children.chain(content.named.map(|named| ("anything", named.content))) {
            if child.text == Text::Type {
                let shapes = [
                    (&SIMPLE, "UINT8"),
                    (&SEQUENCE, "ARRAY"),
                    (&DICT, "FIXED_DICT"),
                    (&USER, "USER_TYPE"),
                ];
                left.extend(shapes.map(|(shape, word)| (spot.inside(content, name, word), shape)));
            } else {
                left.push((spot.inside(content, name, sample(child)), child));
            }
        }
        found.push((spot, content));
    }
    found
}

/// A text that is valid.
fn sample(content: &Content) -> &'static str {
    match content.text {
        Text::Boolean | Text::BooleanOrNothing => "true",
        Text::Distance | Text::Reach | Text::Integer(..) => "10",
        Text::Word(words) | Text::WordOrNothing(words) => words[0].name,
        Text::Flags => "ALL_CLIENTS",
        Text::Type => "UINT8",
        Text::Value => "7",
        Text::Name(_) => "Avatar",
        Text::Nothing | Text::Free | Text::Anything => "",
    }
}

/// The rules that a line of a file breaks.
fn found(dialect: Dialect, kind: FileKind, text: &str, line: u32) -> Vec<Rule> {
    let path = path_of(kind, dialect);
    let mut tree = world(dialect);
    tree.insert(path, text);
    let found = compile(&tree).diagnostics;
    let here = found.iter().filter(|d| d.place.file == path && d.place.line == line);
    here.map(|d| d.rule).collect()
}

#[test]
fn tags_in_a_table_are_read_and_others_are_reported() {
    let mut tried = 0;
    for dialect in DIALECTS {
        for kind in FileKind::ALL {
            for (spot, content) in places(kind, dialect) {
                for tag in content.tags {
                    let (text, line) = spot.with(&format!("<{0}>{1}</{0}>", tag.name, sample(tag.content)));
                    let rules = found(dialect, kind, &text, line);
                    assert!(!rules.contains(&Rule::UnknownTag), "{dialect:?} {rules:?}\n{text}");
                    assert_eq!(
                        rules.contains(&Rule::NotUsed),
                        tag.occurs == Occurs::Unused,
                        "{dialect:?} {rules:?}\n{text}"
                    );
                    tried += 1;
                }
                // With an unknown type, the rest is unknown too.
                let is_open = matches!(content.text, Text::Value | Text::Anything | Text::Name(Noun::DictAlias));
                let is_closed = content.named.is_none() && !is_open;
                if is_closed {
                    let (text, line) = spot.with("<Stray9/>");
                    let rules = found(dialect, kind, &text, line);
                    assert_ne!(rules, [], "{dialect:?}\n{text}");
                }
            }
        }
    }
    assert!(tried > 250, "{tried}");
}

#[test]
fn misplaced_tags_are_reported() {
    for dialect in DIALECTS {
        for (spot, content) in places(FileKind::Definition, dialect) {
            for tag in content.tags.iter().filter(|tag| tag.occurs == Occurs::Misplaced) {
                let (text, line) = spot.with(&format!("<{0}>{1}</{0}>", tag.name, sample(tag.content)));
                assert_ne!(found(dialect, FileKind::Definition, &text, line), [], "{text}");
            }
        }
    }
}

#[test]
fn every_keyword_of_the_tables_is_read_as_specified() {
    for dialect in DIALECTS {
        let member = |of_type: &str, flag: &str| {
            let text = format!(
                "<root> <Properties> <it>\n<Type>{of_type}<of>INT8</of></Type> <Flags>{flag}</Flags>\n</it> \
                 </Properties> </root>"
            );
            found(dialect, FileKind::Definition, &text, 2)
        };
        for word in TYPES {
            let rules = member(word.name, "BASE");
            for rule in [Rule::UnknownType, Rule::TypeCase] {
                assert!(!rules.contains(&rule), "{}: {rules:?}", word.name);
            }
        }
        for flag in FLAGS {
            let rules = member("ARRAY", flag.name);
            assert!(!rules.contains(&Rule::UnknownFlags), "{}: {rules:?}", flag.name);
            let is_foreign = matches!(flag.home, Home::Only(home) if home != dialect);
            assert_eq!(
                rules.contains(&Rule::OtherDialect),
                is_foreign,
                "{}: {rules:?}",
                flag.name
            );
        }
        assert!(member("UINT9", "BASE").contains(&Rule::UnknownType));
        assert!(member("ARRAY", "EVERYBODY").contains(&Rule::UnknownFlags));
    }
}

/// All tags of all tables.
fn all_tags() -> Vec<&'static Tag> {
    let places = DIALECTS
        .into_iter()
        .flat_map(|dialect| FileKind::ALL.map(|kind| places(kind, dialect)));
    places.flatten().flat_map(|(_, content)| content.tags).collect()
}

#[test]
fn the_reader_uses_only_tags_of_the_tables() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/read");
    let files = folder
        .read_dir()
        .expect("readable")
        .map(|entry| entry.expect("readable").path());
    let source: String = files.map(|path| fs::read_to_string(path).expect("text")).collect();
    let mut asked = BTreeSet::new();
    for (at, _) in source.match_indices("ields.get(\"") {
        let name = source[at..].split('"').nth(1).expect("a literal");
        asked.insert(name);
        assert!(all_tags().iter().any(|tag| tag.name == name), "`{name}` is in no table");
    }
    assert!(asked.len() > 20, "{asked:?}");
    // Tags of a list are looked up by that list.
    let listed = ["level", "Interface", "interface", "Type", "type", "Arg"];
    let by_position = ["NEAR", "MEDIUM", "FAR", "ClientServerEntities", "ServerOnlyEntities"];
    for tag in all_tags() {
        let is_read = !matches!(tag.occurs, Occurs::Unused);
        let is_known = listed.contains(&tag.name) || by_position.contains(&tag.name);
        assert!(
            !is_read || is_known || source.contains(&format!("\"{}\"", tag.name)),
            "nothing reads `{}`",
            tag.name
        );
    }
}

#[test]
fn every_keyword_has_a_description() {
    let tags = all_tags().into_iter().map(|tag| (tag.name, tag.says));
    let types = TYPES.iter().map(|word| (word.name, word.says));
    let flags = FLAGS.iter().map(|flag| (flag.name, flag.says()));
    for (name, says) in tags.chain(types).chain(flags) {
        assert!(says.ends_with('.') && says.len() > 8, "{name}: {says}");
    }
}
