//! No mistake hides another: single mistakes in one member, combined in pairs, are each found.

use std::collections::BTreeMap;

use annals_def::{Rule, Tree, compile};

/// A mistake: the part of the good member that it replaces, and its text. `needs` are the parts without which it cannot
/// be recognised.
struct Mistake {
    part: &'static str,
    text: &'static str,
    needs: &'static [&'static str],
}

const fn mistake(part: &'static str, text: &'static str) -> Mistake {
    Mistake { part, text, needs: &[] }
}

const fn dependent(part: &'static str, text: &'static str, needs: &'static [&'static str]) -> Mistake {
    Mistake { part, text, needs }
}

/// A good member as its parts, in file order.
type Good = [(&'static str, &'static str)];

const PROPERTY: &Good = &[
    ("name", "health"),
    ("text", ""),
    ("type", "<Type> BLOB </Type>"),
    ("flags", "<Flags> ALL_CLIENTS </Flags>"),
    ("default", ""),
    ("persistent", ""),
    ("editable", ""),
    ("reliable", ""),
    ("latest", ""),
    ("utype", ""),
    ("level", ""),
    ("length", ""),
    ("index", ""),
    ("identifier", ""),
    ("other", ""),
];

const PROPERTY_MISTAKES: &[Mistake] = &[
    mistake("name", "my-health"),
    mistake("name", "position"),
    mistake("text", "well"),
    mistake("type", ""),
    mistake("type", "<Type/>"),
    mistake("type", "<Type> INT31 </Type>"),
    mistake("type", "<Type> ARRAY </Type>"),
    mistake("type", "<Type> ARRAY <of> INT8 </of> <size> 3a </size> </Type>"),
    mistake("type", "<Type> FIXED_DICT </Type>"),
    mistake("type", "<Type> USER_TYPE </Type>"),
    mistake("flags", ""),
    mistake("flags", "<Flags> ALL_KLIENTS </Flags>"),
    mistake("flags", "<Flags/>"),
    dependent("default", "<Default> not base-64! </Default>", &["type"]),
    mistake("persistent", "<Persistent> perhaps </Persistent>"),
    mistake("editable", "<Editable> perhaps </Editable>"),
    mistake("reliable", "<IsReliable> perhaps </IsReliable>"),
    dependent("reliable", "<IsReliable> false </IsReliable>", &["latest"]),
    mistake("latest", "<SendLatestOnly> perhaps </SendLatestOnly>"),
    mistake("utype", "<Utype> 3a </Utype>"),
    mistake("level", "<DetailLevel> NEAREST </DetailLevel>"),
    mistake("length", "<DatabaseLength> 3a </DatabaseLength>"),
    mistake("index", "<Indexed> true </Indexed>"),
    mistake("index", "<Indexed> perhaps </Indexed>"),
    mistake("index", "<Index> ONLY </Index>"),
    dependent("identifier", "<Identifier> true </Identifier>", &["index"]),
    mistake("identifier", "<Identifier> perhaps </Identifier>"),
    mistake("other", "<Colour> red </Colour>"),
];

const METHOD: &Good = &[
    ("name", "greet"),
    ("text", ""),
    ("exposed", "<Exposed/>"),
    ("args", "<Args> <first> INT8 </first> "),
    ("second", ""),
    ("third", ""),
    ("args end", "</Args>"),
    ("returns", ""),
    ("latest", ""),
    ("limit", ""),
    ("utype", ""),
    ("other", ""),
];

const METHOD_MISTAKES: &[Mistake] = &[
    mistake("name", "greet-all"),
    mistake("text", "well"),
    mistake("exposed", "<Exposed> EVERYBODY </Exposed>"),
    mistake("second", "<second> INT31 </second>"),
    mistake("second", "<second/>"),
    mistake("second", "<my-second> INT8 </my-second>"),
    mistake("second", "<first> INT8 </first>"),
    mistake("second", "<second> ARRAY </second>"),
    mistake("third", "<third> TUPLE <size> 3 </size> </third>"),
    dependent("third", "<third> MAILBOX </third>", &["exposed"]),
    dependent("third", "<third> PYTHON </third>", &["exposed"]),
    mistake("returns", "<ReturnValues> <answer> INT31 </answer> </ReturnValues>"),
    mistake("latest", "<SendLatestOnly> true </SendLatestOnly>"),
    mistake("limit", "<CallsPerMinute> 0 </CallsPerMinute>"),
    mistake("limit", "<CallsPerMinute> often </CallsPerMinute>"),
    mistake("utype", "<Utype> 3a </Utype>"),
    mistake("other", "<Colour> red </Colour>"),
];

/// A field of a FIXED_DICT.
const FIELD: &Good = &[
    ("name", "health"),
    ("text", ""),
    ("type", "<Type> INT32 </Type>"),
    ("persistent", ""),
    ("length", ""),
    ("other", ""),
];

const FIELD_MISTAKES: &[Mistake] = &[
    mistake("name", "my-health"),
    mistake("text", "well"),
    mistake("type", ""),
    mistake("type", "<Type> INT31 </Type>"),
    mistake("type", "<Type> ARRAY </Type>"),
    mistake("type", "<Type> INT8 <Default> lots </Default> </Type>"),
    mistake("persistent", "<Persistent> perhaps </Persistent>"),
    mistake("length", "<DatabaseLength> 3a </DatabaseLength>"),
    mistake("other", "<Colour> red </Colour>"),
];

const SEQUENCE: &Good = &[
    ("of", "<of> INT8 </of>"),
    ("size", ""),
    ("blob", ""),
    ("default", ""),
    ("other", ""),
];

const SEQUENCE_MISTAKES: &[Mistake] = &[
    mistake("of", ""),
    mistake("of", "<of> INT31 </of>"),
    mistake("size", "<size> 3a </size>"),
    mistake("blob", "<persistAsBlob> perhaps </persistAsBlob>"),
    dependent("default", "<Default> <item> lots </item> </Default>", &["of"]),
    mistake("other", "<Colour> red </Colour>"),
];

/// The member with some of its parts replaced; its name is separate from the content.
fn member(good: &Good, mistakes: &[&Mistake]) -> (String, String) {
    let mut name = String::new();
    let mut content = String::new();
    for (part, text) in good {
        let mistake = mistakes.iter().find(|mistake| mistake.part == *part);
        let text = mistake.map_or(*text, |mistake| mistake.text);
        if *part == "name" {
            name = text.to_owned();
        } else {
            content.push_str(text);
            content.push('\n');
        }
    }
    (name, content)
}

fn with_property((name, content): (String, String)) -> String {
    format!("<root> <Properties> <{name}> {content} </{name}> </Properties> </root>")
}

fn with_method((name, content): (String, String)) -> String {
    format!("<root> <CellMethods> <{name}> {content} </{name}> </CellMethods> </root>")
}

fn with_field((name, content): (String, String)) -> String {
    let data_type = format!("FIXED_DICT <Properties> <{name}> {content} </{name}> </Properties>");
    with_property((
        "about".to_owned(),
        format!("<Type> {data_type} </Type> <Flags> BASE </Flags>"),
    ))
}

fn with_sequence((_, content): (String, String)) -> String {
    let data_type = format!("<Type> ARRAY {content} </Type>");
    with_property(("all".to_owned(), format!("{data_type} <Flags> BASE </Flags>")))
}

/// Number of violations of each rule in a game with only this definition.
fn broken(definition: &str) -> BTreeMap<Rule, usize> {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    tree.insert("entity_defs/Avatar.def", definition);
    tree.insert("entity_defs/alias.xml", "<root/>");
    let mut broken = BTreeMap::new();
    for diagnostic in compile(&tree).diagnostics {
        *broken.entry(diagnostic.rule).or_default() += 1;
    }
    broken
}

fn no_pair_hides_a_mistake(good: &Good, mistakes: &[Mistake], write: fn((String, String)) -> String) {
    let base = broken(&write(member(good, &[])));
    assert!(base.is_empty(), "{base:?}");
    let alone: Vec<_> = mistakes
        .iter()
        .map(|mistake| {
            let found = broken(&write(member(good, &[mistake])));
            assert!(!found.is_empty(), "`{}` is no mistake", mistake.text);
            found
        })
        .collect();
    let mut hidden = Vec::new();
    for (i, a) in mistakes.iter().enumerate() {
        for (j, b) in mistakes.iter().enumerate().skip(i + 1) {
            if a.part == b.part || a.needs.contains(&b.part) || b.needs.contains(&a.part) {
                continue;
            }
            let together = broken(&write(member(good, &[a, b])));
            let mut wanted = alone[i].clone();
            for (rule, times) in &alone[j] {
                *wanted.entry(*rule).or_default() += times;
            }
            let missing = wanted
                .iter()
                .filter(|(rule, times)| together.get(rule).unwrap_or(&0) < times);
            hidden.extend(missing.map(|(rule, _)| format!("{rule} of `{}` and `{}`", a.text, b.text)));
        }
    }
    assert!(hidden.is_empty(), "hidden:\n{}", hidden.join("\n"));
}

#[test]
fn no_mistake_in_a_property_hides_another() {
    no_pair_hides_a_mistake(PROPERTY, PROPERTY_MISTAKES, with_property);
}

#[test]
fn no_mistake_in_a_method_hides_another() {
    no_pair_hides_a_mistake(METHOD, METHOD_MISTAKES, with_method);
}

#[test]
fn no_mistake_in_a_field_hides_another() {
    no_pair_hides_a_mistake(FIELD, FIELD_MISTAKES, with_field);
}

#[test]
fn no_mistake_in_a_sequence_hides_another() {
    no_pair_hides_a_mistake(SEQUENCE, SEQUENCE_MISTAKES, with_sequence);
}
