//! Tests the parser against quick-xml: what it accepts, quick-xml accepts too, with the same elements.

use quick_xml::{Reader, events::Event};

use super::*;
use crate::{generate::split_mix, source::Section};

/// An element as both parsers can describe it.
#[derive(Debug, Default, PartialEq)]
struct Element {
    name: String,
    text: String,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
}

fn ours(text: &str) -> Option<Element> {
    let document = parse(FileId(0), text, &mut Findings::default());
    document.root().map(element)
}

fn element(section: Section<'_>) -> Element {
    let attributes = section.attributes().iter();
    Element {
        name: section.name.to_owned(),
        text: section.text().to_owned(),
        attributes: attributes.map(|a| (a.name.to_owned(), a.value.to_owned())).collect(),
        children: section.children().map(element).collect(),
    }
}

/// The elements according to quick-xml; an error if it rejects the text.
fn theirs(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    // The innermost last; the first is a holder for the root.
    let mut open = vec![Element::default()];
    // Whether further text continues the last one, for each open element.
    let mut in_text = vec![false];
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let piece = match event {
            Event::Eof => break,
            Event::Start(tag) => {
                open.push(started(&tag)?);
                in_text.push(false);
                continue;
            }
            Event::Empty(tag) => {
                let child = started(&tag)?;
                add_child(&mut open, &mut in_text, child);
                continue;
            }
            Event::End(_) => {
                let mut child = open.pop().expect("quick-xml checks that tags match");
                in_text.pop();
                child.text = child.text.trim().to_owned();
                add_child(&mut open, &mut in_text, child);
                continue;
            }
            Event::Text(text) => text.xml10_content().into_owned(),
            Event::CData(text) => text.xml10_content().into_owned(),
            Event::GeneralRef(name) => meaning(&name).ok_or("an entity")?.to_string(),
            Event::DocType(_) | Event::Decl(_) | Event::PI(_) | Event::Comment(_) => continue,
        };
        let (element, in_text) = (
            open.last_mut().expect("the root's place"),
            in_text.last_mut().expect("as many"),
        );
        if *in_text || element.text.is_empty() && !piece.trim().is_empty() {
            element.text.push_str(&piece);
            *in_text = true;
        }
    }
    let mut outside = open.pop().expect("the root's place").children;
    match (open.len(), outside.len(), outside.pop()) {
        (0, 1, Some(root)) => Ok(root),
        _ => Err("not one root".to_owned()),
    }
}

fn add_child(open: &mut [Element], in_text: &mut [bool], child: Element) {
    open.last_mut().expect("the root's place").children.push(child);
    *in_text.last_mut().expect("as many") = false;
}

fn started(tag: &quick_xml::events::BytesStart<'_>) -> Result<Element, String> {
    let mut element = Element {
        name: tag.name().as_ref().to_owned(),
        ..Element::default()
    };
    for attribute in tag.attributes().with_checks(false) {
        // Malformed attributes are skipped with a warning.
        let Ok(attribute) = attribute else { break };
        let (name, value) = (attribute.key.as_ref().to_owned(), attribute.value.into_owned());
        if element.attributes.iter().all(|(known, _)| *known != name) {
            element.attributes.push((name, value));
        }
    }
    Ok(element)
}

fn meaning(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => character(name.strip_prefix('#')?),
    }
}

/// Golden cases that cover all XML features.
const CASES: [&str; 9] = [
    include_str!("../../../test_data/ok/0008_stray_text.case"),
    include_str!("../../../test_data/ok/0009_attribute.case"),
    include_str!("../../../test_data/ok/0101_schema_location.case"),
    include_str!("../../../test_data/ok/defaults.case"),
    include_str!("../../../test_data/ok/inheritance.case"),
    include_str!("../../../test_data/ok/methods.case"),
    include_str!("../../../test_data/ok/types_with_blanks_and_comments.case"),
    include_str!("../../../test_data/err/0005_two_roots.case"),
    include_str!("../../../test_data/err/0007_entity.case"),
];

/// The files of the cases.
fn samples() -> Vec<String> {
    let files = CASES.iter().flat_map(|case| case.split("=== ").skip(1));
    let contents = files.filter_map(|file| file.split_once('\n'));
    contents.map(|(_, content)| content.to_owned()).collect()
}

/// Pieces at which something begins or ends.
const PIECES: [&str; 20] = [
    "<",
    ">",
    "/",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?x ",
    "?>",
    "&amp;",
    "&#65;",
    "&",
    ";",
    " a=\"b\"",
    "'",
    "\"",
    "\r\n",
    " ",
    "\u{3000}",
    "<b/>",
];

#[test]
fn what_is_accepted_is_what_another_parser_sees() {
    let samples = samples();
    let mut accepted = 0;
    for seed in 0..20_000 {
        let mut dice = split_mix(seed);
        let mut text = samples[dice() as usize % samples.len()].clone();
        for _ in 0..dice() % 4 {
            let at = text.floor_char_boundary(dice() as usize % (text.len() + 1));
            let piece = PIECES[dice() as usize % PIECES.len()];
            if dice().is_multiple_of(2) {
                text.insert_str(at, piece);
            } else {
                let end = text.ceil_char_boundary((at + dice() as usize % 5).min(text.len()));
                text.replace_range(at..end, piece);
            }
        }
        if let Some(ours) = ours(&text) {
            accepted += 1;
            assert_eq!(Ok(ours), theirs(&text), "seed {seed}:\n{text}");
        }
    }
    assert!(accepted > 5_000, "{accepted}");
}

#[test]
fn what_is_well_formed_is_accepted() {
    for text in samples() {
        assert_eq!(ours(&text).is_some(), theirs(&text).is_ok(), "{text}");
    }
}
