//! Definitions of a large game in the style of designers: 2,000 types with comments, blanks and line ends, interfaces,
//! aliases of aliases, defaults, and every section of the language.

use std::fmt::Write as _;

use annals_def::{Tree, split_mix};

/// Entity types.
const TYPES: usize = 2_000;

/// Interfaces that the types share; each adds [`INTERFACE_PROPERTIES`] properties to the types that implement it.
const INTERFACES: usize = 60;

/// Aliases, each a dictionary, a sequence or another name.
const ALIASES: usize = 300;

/// Properties of a type itself. With its methods a definition has about 5 kB.
const PROPERTIES: usize = 17;

const INTERFACE_PROPERTIES: usize = 6;

/// Methods of each part of a type.
const METHODS: usize = 5;

const SIMPLE: [(&str, &str); 12] = [
    ("UINT8", "1"),
    ("INT32", "-7"),
    ("UINT32", "100000"),
    ("INT64", "0"),
    ("FLOAT", "1.5"),
    ("STRING", "none"),
    ("UNICODE_STRING", "Nobody in particular"),
    ("VECTOR3", "0 1.5 -3"),
    ("BLOB", "SGVsbG8="),
    ("UINT16", "47"),
    ("INT8", "-1"),
    ("FLOAT64", "0.25"),
];

const FLAGS: [&str; 8] = [
    "BASE",
    "BASE_AND_CLIENT",
    "CELL_PRIVATE",
    "CELL_PUBLIC",
    "CELL_PUBLIC_AND_OWN",
    "OWN_CLIENT",
    "ALL_CLIENTS",
    "OTHER_CLIENTS",
];

const WORDS: [&str; 16] = [
    "health", "armour", "target", "owner", "quest", "stamina", "rank", "guild", "mount", "bag", "spawn", "reward",
    "aggro", "speech", "trade", "faction",
];

/// The files of the game, the same on every machine.
pub(super) fn tree() -> Tree {
    let mut dice = split_mix(2_000);
    let mut below = move |bound: usize| (dice() % bound as u64) as usize;
    let mut tree = Tree::new();
    let mut list = "<root>\n\t<ClientServerEntities>\n".to_owned();
    for i in 0..TYPES {
        let _ = writeln!(list, "\t\t<Thing{i}/>");
        tree.insert(format!("entity_defs/Thing{i}.def"), entity(i, &mut below));
    }
    tree.insert("entities.xml", list + "\t</ClientServerEntities>\n</root>\n");
    tree.insert("entity_defs/alias.xml", aliases(&mut below));
    for i in 0..INTERFACES {
        let properties = properties(&format!("shared{i}_"), INTERFACE_PROPERTIES, &mut below);
        tree.insert(
            format!("entity_defs/interfaces/Shared{i}.def"),
            format!("<root>\n{properties}</root>\n"),
        );
    }
    tree
}

fn aliases(below: &mut impl FnMut(usize) -> usize) -> String {
    let mut text = "<root>\n".to_owned();
    for i in 0..ALIASES {
        let (simple, _) = SIMPLE[below(SIMPLE.len())];
        let _ = match i % 6 {
            0 | 1 => writeln!(text, "\t<ALIAS{i}> {simple} </ALIAS{i}>"),
            2 => writeln!(text, "\t<ALIAS{i}> ARRAY <of> ALIAS{} </of> </ALIAS{i}>", i - 1),
            3 => writeln!(
                text,
                "	<ALIAS{i}> TUPLE <of> {simple} </of> <size> 3 </size> </ALIAS{i}>"
            ),
            _ => write!(
                text,
                "\t<!-- What one of them has -->\n\t<ALIAS{i}>\tFIXED_DICT\n\t\t<Properties>\n\t\t\t<id>\n\t\t\t\t<Type>\tUINT32\t</Type>\n\t\t\t</id>\n\t\t\t<name>\n\t\t\t\t<Type>\tUNICODE_STRING\t</Type>\n\t\t\t</name>\n\t\t\t<value>\n\t\t\t\t<Type>\tALIAS{}\t</Type>\n\t\t\t</value>\n\t\t</Properties>\n\t</ALIAS{i}>\n",
                i - 4
            ),
        };
    }
    text + "</root>\n"
}

fn entity(i: usize, below: &mut impl FnMut(usize) -> usize) -> String {
    let mut text = format!("<root>\n\t<!-- Thing {i}: made for measuring, written as designers write. -->\n");
    let _ = write!(
        text,
        "\t<Volatile>\n\t\t<position/>\n\t\t<yaw>\t100\t</yaw>\n\t</Volatile>\n\t<Implements>\n\t\t<Interface>\tShared{}\t</Interface>\n\t</Implements>\n",
        below(INTERFACES)
    );
    text += &properties("", PROPERTIES, below);
    for section in ["BaseMethods", "CellMethods", "ClientMethods"] {
        let _ = writeln!(text, "\t<{section}>");
        for n in 0..METHODS {
            let word = WORDS[below(WORDS.len())];
            let name = format!("on{section}{word}{n}");
            let exposed = if section != "ClientMethods" && below(2) == 0 {
                "\t\t\t<Exposed/>\n"
            } else {
                ""
            };
            let (first, _) = SIMPLE[below(SIMPLE.len())];
            let second = below(ALIASES);
            let _ = write!(
                text,
                "\t\t<{name}>\n{exposed}\t\t\t<Args>\n\t\t\t\t<{word}>\t{first}\t</{word}>\n\t\t\t\t<amount>\tALIAS{second}\t</amount>\n\t\t\t</Args>\n\t\t</{name}>\n",
            );
        }
        let _ = writeln!(text, "\t</{section}>");
    }
    text + "</root>\n"
}

fn properties(prefix: &str, count: usize, below: &mut impl FnMut(usize) -> usize) -> String {
    let mut text = "\t<Properties>\n".to_owned();
    for n in 0..count {
        let word = WORDS[below(WORDS.len())];
        let flags = FLAGS[below(FLAGS.len())];
        let (simple, default) = SIMPLE[below(SIMPLE.len())];
        let kind = below(6);
        let declared = match kind {
            0 => format!("ALIAS{}", below(ALIASES)),
            1 => format!("ARRAY <of> ALIAS{} </of>", below(ALIASES)),
            _ => simple.to_owned(),
        };
        let _ = write!(
            text,
            "\t\t<{prefix}{word}{n}>\n\t\t\t<Type>\t\t\t{declared}\t</Type>\n\t\t\t<Flags>\t\t\t{flags}\t</Flags>\n"
        );
        if kind > 2 {
            let _ = writeln!(text, "\t\t\t<Default>\t\t{default}\t</Default>");
        }
        if below(2) == 0 {
            text += "\t\t\t<Persistent>\ttrue\t</Persistent>\n";
        }
        if below(8) == 0 {
            text += "\t\t\t<Editable>\t\ttrue\t</Editable> <!-- in the world editor -->\n";
        }
        let _ = writeln!(text, "\t\t</{prefix}{word}{n}>");
    }
    text + "\t</Properties>\n"
}
