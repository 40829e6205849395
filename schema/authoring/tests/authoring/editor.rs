//! Editor support for unfinished definitions: at a `|` in a file of a small world, and at every position of files that
//! are broken in many ways.

use annals_authoring::editor::{Completion, Draft, Symbol};
use annals_def::{Dice, Tree, split_mix};

const AVATAR: &str = "\
<root>
	<Parent> Creature </Parent>
	<Implements> <Interface> Fighter </Interface> </Implements>
	<Components> <Bag> <name> left </name> </Bag> </Components>
	<LoDLevels>
		<level> 20 <label> NEAR </label> </level>
		<level> 100 <label> FAR </label> </level>
	</LoDLevels>
	<Properties>
		<!-- What it owns. -->
		<gold> <Type> GOLD </Type> <Flags> OWN_CLIENT </Flags> <Persistent> true </Persistent> </gold>
		<name> <Type> UNICODE_STRING </Type> <Flags> ALL_CLIENTS </Flags> <DetailLevel> FAR </DetailLevel> </name>
	</Properties>
	<CellMethods>
		<say> <Exposed/> <Args> <text> UNICODE_STRING </text> </Args> </say>
	</CellMethods>
</root>
";

/// A small world in which `file` has the content `text`.
fn world(file: &str, text: &str) -> Tree {
    let mut tree = Tree::new();
    tree.insert("scripts/entities.xml", "<root> <Avatar/> <Monster/> </root>");
    tree.insert("scripts/entity_defs/alias.xml", "<root> <GOLD> UINT32 </GOLD> <ITEM> FIXED_DICT <Properties> <id> <Type> INT32 </Type> </id> </Properties> </ITEM> \
         <NOTE> FIXED_DICT <Properties> <at> <Type> VECTOR3 </Type> </at> <said> <Type> STRING </Type> </said> </Properties> </NOTE> \
         <BAG> PYTHON </BAG> </root>");
    tree.insert("scripts/entity_defs/Avatar.def", AVATAR);
    tree.insert("scripts/entity_defs/Creature.def", "<root> </root>");
    tree.insert(
        "scripts/entity_defs/Monster.def",
        "<root> <Implements> <Interface> Fighter </Interface> </Implements> <Properties> <rage> <Type> UINT8 </Type> \
         <Flags> ALL_CLIENTS </Flags> </rage> </Properties> </root>",
    );
    tree.insert("scripts/entity_defs/interfaces/Fighter.def", FIGHTER);
    tree.insert(
        "scripts/component_defs/Bag.def",
        "<root> <Properties> <room> <Type> UINT8 </Type> <Flags> BASE </Flags> </room> </Properties> </root>",
    );
    tree.insert(file, text);
    tree
}

/// The draft of the small world with `text` in place of `file`, and the position of the `|` in it.
fn draft(file: &str, text: &str) -> (Draft, usize) {
    let at = text.find('|').expect("a cursor");
    let mut draft = Draft::new(world("scripts/unread.txt", ""));
    draft.write(file, text.replacen('|', "", 1));
    draft.check();
    (draft, at)
}

const FILE: &str = "scripts/entity_defs/Avatar.def";
const LIST: &str = "scripts/entities.xml";
const INTERFACE: &str = "scripts/entity_defs/interfaces/Fighter.def";
const ALIASES: &str = "scripts/entity_defs/alias.xml";

fn complete(file: &str, text: &str) -> Vec<Completion> {
    let (draft, at) = draft(file, text);
    draft.complete(file, at)
}

fn labels(completions: &[Completion]) -> Vec<&str> {
    completions.iter().map(|one| one.label.as_str()).collect()
}

/// The text after accepting the completion `label`, with `|` at the new cursor.
fn taken(text: &str, completions: &[Completion], label: &str) -> String {
    let one = completions
        .iter()
        .find(|one| one.label == label)
        .expect("it is offered");
    let text = text.replacen('|', "", 1);
    let (before, behind) = one.text.split_at(one.cursor);
    format!(
        "{}{before}|{behind}{}",
        &text[..one.range.start],
        &text[one.range.end..]
    )
}

/// File, its text, and labels that must be offered at the `|` or, with a `-` before them, must not. A text without a
/// root element is placed inside a property of Avatar.
const OFFERED: &[(&str, &str, &str)] = &[
    // Words in complete, half-typed and unclosed elements.
    (
        FILE,
        "<Flags> | </Flags>",
        "BASE OWN_CLIENT ALL_CLIENTS -CELL_AND_CLIENT -UINT8",
    ),
    (FILE, "<Flags> ALL| </Flags>", "ALL_CLIENTS BASE"),
    (FILE, "<Flags> A|", "ALL_CLIENTS -Type"),
    (
        FILE,
        "<Type>|</Type>",
        "GOLD ITEM UINT8 UNICODE_STRING ARRAY -UNICODE -BASE",
    ),
    (FILE, "<Type> ARRAY <of> | </of> </Type>", "GOLD UINT8 -size"),
    (FILE, "<Type> ARRAY <|", "of size -Flags -implementedBy"),
    (FILE, "<Type> ARRAY <of> INT8 </of> | </Type>", "size -of -UINT8"),
    (
        FILE,
        "<Type> FIXED_DICT <Properties> <id> <| </id> </Properties> </Type>",
        "Type Persistent -Flags",
    ),
    (FILE, "<Type> FIXED_DICT <Parent> | </Parent> </Type>", "ITEM -GOLD"),
    (FILE, "<Persistent> | </Persistent>", "true false"),
    // Tags that a property does not have yet.
    (FILE, "<Type> INT8 </Type> <|", "Flags Persistent -Type -Widget -Args"),
    (FILE, "<Type> INT8 </Type> |", "Flags -Type"),
    (FILE, "<Fl|>ALL_CLIENTS</Fl>", "Flags"),
    (FILE, "<Type> INT8 </|", "Type -hp"),
    // Sections, methods, and the names that they refer to.
    (
        FILE,
        "<root> <| </root>",
        "Properties Implements LoDLevels -Interfaces -DetailLevels",
    ),
    (
        FILE,
        "<root> <CellMethods> <say> <| </say>",
        "Args Exposed -DetailDistance -Flags",
    ),
    (
        FILE,
        "<root> <ClientMethods> <say> <| </say>",
        "Args DetailDistance -Exposed",
    ),
    (FILE, "<root> <CellMethods> <say> <Args> <text> | </text>", "GOLD UINT8"),
    (
        FILE,
        "<root> <CellMethods> <say> <Exposed> | </Exposed>",
        "OWN_CLIENT ALL_CLIENTS",
    ),
    (
        FILE,
        "<root> <Implements> <Interface> | </Interface>",
        "Fighter -Avatar -Bag",
    ),
    (
        FILE,
        "<root> <Parent> | </Parent> </root>",
        "Creature Monster -Avatar -Fighter",
    ),
    (
        FILE,
        "<root> <ClientName>|</ClientName> </root>",
        "Creature Monster -Fighter",
    ),
    (FILE, "<root> <Components> <|", "Bag -Avatar"),
    (
        FILE,
        "<root> <LoDLevels> <level> 5 <label> L </label> </level> </LoDLevels> <Properties> <a> <DetailLevel> |",
        "L",
    ),
    (FILE, "|", "root"),
    // Other files.
    (
        LIST,
        "<root> <Avatar/> <| </root>",
        "Monster Creature ClientServerEntities -Avatar -Fighter",
    ),
    (LIST, "<root> <Avatar h|/> </root>", "hasBase hasCell hasClient"),
    (ALIASES, "<root> <X> | </X> </root>", "UINT8 ARRAY -Flags"),
    // Places without completions.
    (FILE, "<root> <!-- <| --> </root>", ""),
    ("scripts/readme.xml", "<root> <|", ""),
];

#[test]
fn valid_completions_are_offered_at_the_cursor() {
    for (file, text, expected) in OFFERED {
        let text = match text.contains("<root") || *text == "|" {
            true => (*text).to_owned(),
            false => format!("<root> <Properties> <hp> {text} </hp> </Properties> </root>"),
        };
        let found = complete(file, &text);
        let found = labels(&found);
        for label in expected.split_whitespace() {
            match label.strip_prefix('-') {
                Some(label) => assert!(!found.contains(&label), "{label} in {found:?}\n{text}"),
                None => assert!(found.contains(&label), "no {label} in {found:?}\n{text}"),
            }
        }
        assert_eq!(found.is_empty(), expected.is_empty(), "{found:?}\n{text}");
    }
}

#[test]
fn completions_follow_the_dialect() {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar hasCell=\"true\"/> </root>");
    let text = "<root> <Properties> <hp> <Flags> </Flags> </hp> </Properties>  </root>";
    tree.insert("entity_defs/Avatar.def", text);
    let draft = Draft::new(tree);
    let of = |before: &str| {
        let at = text.find(before).expect("there") + before.len();
        draft.complete("entity_defs/Avatar.def", at)
    };
    assert!(labels(&of("<Flags> ")).contains(&"CELL_AND_CLIENT"));
    let sections = of("</Properties> ");
    assert!(labels(&sections).contains(&"Interfaces") && !labels(&sections).contains(&"Implements"));
}

#[test]
fn a_completion_writes_exactly_the_whole_tag() {
    let cases = [
        ("<root> <Pro|", "Properties", "<root> <Properties> | </Properties>"),
        (
            "<root> | </root>",
            "Properties",
            "<root> <Properties> | </Properties> </root>",
        ),
        (
            "<root> <P|> </P> </root>",
            "Properties",
            "<root> <Properties|> </P> </root>",
        ),
        (
            "<root> <Volatile> <pos| </Volatile>",
            "position",
            "<root> <Volatile> <position/>| </Volatile>",
        ),
        (
            "<root> <Volatile> </| </root>",
            "Volatile",
            "<root> <Volatile> </Volatile>| </root>",
        ),
        (
            "<root> <Parent> Cre|te </Parent>",
            "Creature",
            "<root> <Parent> Creature| </Parent>",
        ),
    ];
    for (text, label, expected) in cases {
        assert_eq!(taken(text, &complete(FILE, text), label), expected);
    }
}

/// The small world's file with the cursor in the middle of the first `word` after `behind`.
fn cursor_in(text: &str, behind: &str, word: &str) -> String {
    let from = text.find(behind).expect("there") + behind.len();
    let at = from + text[from..].find(word).expect("there") + 1;
    format!("{}|{}", &text[..at], &text[at..])
}

const FIGHTER: &str =
    "<root> <Properties> <hp> <Type> INT32 </Type> <Flags> ALL_CLIENTS </Flags> </hp> </Properties> </root>";

/// Hover cases: file, text to search after, word under the cursor, and texts that the hover must contain.
const HOVER_CASES: &[(&str, &str, &str, &[&str])] = &[
    (
        FILE,
        "<Properties>",
        "gold",
        &[
            "property **gold**",
            "What it owns.",
            "`UINT32`: 4 B",
            "OWN_CLIENT: cell, own client",
        ],
    ),
    (
        FILE,
        "<Properties>",
        "gold",
        &["stored: ", "in Avatar: wire id 1 of 3, 1 byte"],
    ),
    (
        FILE,
        "<Properties>",
        "name> <",
        &[
            "`UNICODE_STRING`: 1+ B",
            "other clients within 100 m (FAR)",
            "not stored",
        ],
    ),
    (
        FILE,
        "<CellMethods>",
        "say",
        &[
            "cell method **say**",
            "1+ B: the arguments",
            "every client that sees",
            "wire id 0 of 1",
        ],
    ),
    (
        INTERFACE,
        "",
        "hp",
        &[
            "`INT32`: 4 B",
            "in Avatar: wire id 0 of 3",
            "in Monster: wire id 1 of 2",
        ],
    ),
    (
        FILE,
        "<gold>",
        "GOLD",
        &["alias **GOLD** = `UINT32`, 4 B, begins as `0`"],
    ),
    (
        FILE,
        "<gold>",
        "OWN_CLIENT",
        &["**OWN_CLIENT**: It is on the cell and the own client."],
    ),
    (
        FILE,
        "<gold>",
        "Persistent",
        &["**Persistent**: Whether the property is stored"],
    ),
    (FILE, "<name>", "UNICODE_STRING", &["**UNICODE_STRING**: Text", "1+ B"]),
    (
        FILE,
        "<Interface>",
        "Fighter",
        &["interface **Fighter**", "of Avatar, Monster"],
    ),
    (FILE, "<DetailLevel>", "FAR", &["level of detail **FAR**: 100 m"]),
    (
        LIST,
        "",
        "Avatar",
        &["**Avatar**, type 0: base, cell, client", "own client: 3 properties"],
    ),
    (ALIASES, "", "GOLD", &["alias **GOLD**", "4 B"]),
    (ALIASES, "", "NOTE", &["alias **NOTE**", ", 13+ B, "]),
    (ALIASES, "", "BAG", &["alias **BAG**", ", 1+ B, begins as `None`"]),
];

#[test]
fn hover_shows_meaning_and_cost() {
    for (file, behind, word, parts) in HOVER_CASES {
        let whole = Draft::new(world("scripts/unread.txt", ""));
        let text = cursor_in(whole.text(file).expect("a file"), behind, word);
        let (draft, at) = draft(file, &text);
        let hover = draft
            .hover(file, at)
            .unwrap_or_else(|| panic!("nothing is said\n{text}"));
        for part in *parts {
            assert!(hover.text.contains(part), "no {part:?} in\n{}\n{text}", hover.text);
        }
        assert!(hover.range.start <= at && at <= hover.range.end, "{text}");
    }
}

#[test]
fn the_reported_cost_of_an_id_is_its_length() {
    // With this many methods, properties have 127 slots left, enough for 32 511 of them in two bytes.
    for (properties, bytes) in [(300, 2), (32_511, 2), (32_512, 3)] {
        let property = |i| format!("<p{i}> <Type> INT8 </Type> <Flags> ALL_CLIENTS </Flags> </p{i}>\n");
        let mut declared: String = (0..properties - 1).map(property).collect();
        declared.push_str("<la|st> <Type> INT8 </Type> <Flags> ALL_CLIENTS </Flags> </last>");
        let methods: String = (0..200).map(|i| format!("<m{i}/>\n")).collect();
        let text = format!(
            "<root>\n<Properties>\n{declared}\n</Properties>\n<ClientMethods>\n{methods}</ClientMethods>\n</root>"
        );
        let (draft, at) = draft(FILE, &text);
        let said = draft.hover(FILE, at).expect("something is said").text;
        let id = format!("wire id {} of {properties}, {bytes} bytes", properties - 1);
        assert!(said.contains(&id), "no {id:?} in {said}");
    }
}

#[test]
fn costs_are_shown_for_files_with_errors() {
    let text = cursor_in(AVATAR, "<Properties>", "gold").replace("</CellMethods>", "<oops");
    let (draft, at) = draft(FILE, &text);
    assert!(!draft.diagnostics().is_empty());
    assert!(draft.hover(FILE, at).expect("something").text.contains("`UINT32`: 4 B"));
}

#[test]
fn names_lead_to_their_declarations() {
    let monster = "<root> <ClientName> Cre|ature </ClientName> </root>";
    let cases = [
        (FILE, cursor_in(AVATAR, "<gold>", "GOLD"), ALIASES, "GOLD"),
        (
            FILE,
            cursor_in(AVATAR, "<Parent>", "Creature"),
            "scripts/entity_defs/Creature.def",
            "root",
        ),
        (
            FILE,
            cursor_in(AVATAR, "<Interface>", "Fighter"),
            "scripts/entity_defs/interfaces/Fighter.def",
            "root",
        ),
        (
            FILE,
            cursor_in(AVATAR, "<Components>", "Bag"),
            "scripts/component_defs/Bag.def",
            "root",
        ),
        (FILE, cursor_in(AVATAR, "<DetailLevel>", "FAR"), FILE, "FAR"),
        (
            LIST,
            "<root> <Mon|ster/> </root>".to_owned(),
            "scripts/entity_defs/Monster.def",
            "root",
        ),
        (
            "scripts/entity_defs/Monster.def",
            monster.to_owned(),
            "scripts/entity_defs/Creature.def",
            "root",
        ),
    ];
    for (file, text, expected, name) in cases {
        let (draft, at) = draft(file, &text);
        let target = draft
            .target(file, at)
            .unwrap_or_else(|| panic!("it leads nowhere\n{text}"));
        assert_eq!(target.file, expected, "{text}");
        assert_eq!(&draft.text(expected).expect("a file")[target.name], name, "{text}");
    }
    let (draft, at) = draft(FILE, "<root> <Parent> No|body </Parent> </root>");
    assert_eq!(draft.target(FILE, at), None);
}

fn outline(symbols: &[Symbol], depth: usize, out: &mut Vec<String>) {
    for symbol in symbols {
        let line = format!(
            "{}{} {:?} {}",
            " ".repeat(depth),
            symbol.name,
            symbol.kind,
            symbol.detail
        );
        out.push(line.trim_end().to_owned());
        outline(&symbol.children, depth + 1, out);
    }
}

#[test]
fn a_file_has_an_outline() {
    let draft = Draft::new(world("scripts/unread.txt", ""));
    let mut lines = Vec::new();
    outline(&draft.symbols(FILE), 0, &mut lines);
    let expected = [
        "Implements Section",
        " Interface Definition Fighter",
        "Components Section",
        " Bag Definition",
        "Properties Section",
        " gold Property GOLD OWN_CLIENT",
        " name Property UNICODE_STRING ALL_CLIENTS",
        "CellMethods Section",
        " say Method",
        "  Args Section",
        "   text Argument UNICODE_STRING",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn fixes_are_machine_applicable() {
    let cases = [
        ("<Flags> ALL_CLIENT </Flags>", "<Flags> ALL_CLIENTS </Flags>"),
        ("<Persistant> true </Persistant>", "<Persistent> true </Persistent>"),
        ("<editable> true </editable>", "<Editable> true </Editable>"),
        (
            "<Default> 1 </Default> <Persistent> ture </Persistent>",
            "<Default> 1 </Default> <Persistent> true </Persistent>",
        ),
    ];
    for (wrong, right) in cases {
        let flags = if wrong.contains("Flags") {
            ""
        } else {
            "<Flags> BASE </Flags>"
        };
        let file = |inner: &str| {
            format!(
                "<root> <Properties> <怪> <Type> INT8 </Type> </怪> <hp> <Type> INT8 </Type> {flags} {inner} </hp> </Properties> </root>"
            )
        };
        let (mut draft, _) = draft(FILE, &format!("|{}", file(wrong)));
        let fix = draft.diagnostics().iter().find_map(|diagnostic| {
            let fix = draft.fix(diagnostic)?;
            (draft.text(FILE)?[fix.changes[0].range.clone()].is_ascii()).then_some(fix)
        });
        let fix = fix.unwrap_or_else(|| panic!("no fix: {:#?}", draft.diagnostics()));
        let mut text = draft.text(FILE).expect("a file").to_owned();
        for change in fix.changes.iter().rev() {
            text.replace_range(change.range.clone(), &change.text);
        }
        assert_eq!(text, file(right), "{}", fix.title);
        let before = draft.diagnostics().len();
        draft.write(FILE, text);
        draft.check();
        assert!(draft.diagnostics().len() < before, "{wrong}");
    }
}

/// The text after a random edit: text typed, pasted or deleted at a random position.
fn broken(text: &str, dice: &mut Dice<'_>) -> String {
    let at = text.floor_char_boundary(dice() as usize % (text.len() + 1));
    let end = text.floor_char_boundary((at + dice() as usize % 40).min(text.len()));
    let pieces = [
        "<",
        "</",
        ">",
        "\"",
        "<!--",
        "&",
        "<Type",
        "</root>",
        "怪😀",
        " <Flags> ",
        "\r",
    ];
    let piece = pieces[dice() as usize % pieces.len()];
    match dice() % 3 {
        0 => format!("{}{}", &text[..at], &text[end..]),
        1 => format!("{}{piece}{}", &text[..at], &text[at..]),
        _ => format!("{}{piece}", &text[..at]),
    }
}

#[test]
fn no_input_causes_a_panic() {
    let seed = 0x5eed_ed17;
    let mut dice = split_mix(seed);
    for round in 0..120 {
        let mut text = AVATAR.to_owned();
        for _ in 0..1 + dice() % 4 {
            text = broken(&text, &mut dice);
        }
        let mut draft = Draft::new(world("scripts/unread.txt", ""));
        draft.write(FILE, text.clone());
        draft.check();
        for at in (0..text.len() + 2).step_by(1 + (dice() % 7) as usize) {
            for one in draft.complete(FILE, at) {
                let inside = text.get(one.range.clone());
                assert!(
                    inside.is_some() && one.text.is_char_boundary(one.cursor),
                    "{seed} {round} {at}\n{text}"
                );
            }
            let hover = draft.hover(FILE, at);
            assert!(
                hover.is_none_or(|hover| text.get(hover.range).is_some()),
                "{seed} {round} {at}\n{text}"
            );
            let _ = draft.target(FILE, at);
        }
        let _ = draft.symbols(FILE);
        for diagnostic in draft.diagnostics() {
            assert!(draft.fix(diagnostic).is_none_or(|fix| !fix.changes.is_empty()));
            assert!(
                draft
                    .range(&diagnostic.place)
                    .is_none_or(|range| text.get(range).is_some() || diagnostic.place.file != FILE)
            );
        }
    }
}

#[test]
fn unbounded_nesting_is_refused_quickly() {
    for piece in ["<Type> ARRAY <of> ", "<a>", "<a", "</a>", "<", "<!--", "\""] {
        let text = format!("<root> <Properties> <hp> {}", piece.repeat(50_000));
        let mut draft = Draft::new(world("scripts/unread.txt", ""));
        draft.write(FILE, text.clone());
        draft.check();
        let _ = (
            draft.complete(FILE, text.len()),
            draft.hover(FILE, text.len() / 2),
            draft.symbols(FILE),
        );
    }
}
