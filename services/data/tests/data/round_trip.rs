//! Random documents are written, and read back unchanged by this reader and by another.

use annals_data::{Document, Section, SectionMut};
use annals_def::{Dice, split_mix};

const RUNS: u64 = 2_000;

/// Pieces of text that are prone to errors.
const PIECES: [&str; 16] = [
    "a", "7", " ", "\n", "\t", "\r", "&", "<", ">", "\"", "'", "]]>", "<!--", "é", "龙", "\u{a0}",
];

const NAMES: [&str; 5] = ["a", "item", "B-2.c", "_", "名字"];

/// A section as expected.
#[derive(Debug, PartialEq)]
struct Model {
    name: String,
    text: String,
    attributes: Vec<(String, String)>,
    children: Vec<Model>,
}

fn model(section: Section<'_>) -> Model {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Model {
        name: section.name().to_owned(),
        text: section.text().to_owned(),
        attributes: section.attributes().map(owned).collect(),
        children: section.children().map(model).collect(),
    }
}

fn text(dice: &mut Dice<'_>) -> String {
    let pieces = dice() % 6;
    (0..pieces)
        .map(|_| PIECES[(dice() % PIECES.len() as u64) as usize])
        .collect()
}

fn grow(section: &mut SectionMut<'_>, levels: u64, dice: &mut Dice<'_>) {
    section.set_text(&text(dice)).expect("XML can write each piece");
    if dice().is_multiple_of(4) {
        section
            .set_attribute("kind", &text(dice))
            .expect("XML can write each piece");
    }
    if levels == 0 {
        return;
    }
    for _ in 0..dice() % 4 {
        let name = NAMES[(dice() % NAMES.len() as u64) as usize];
        grow(&mut section.create(name).expect("a name"), levels - 1, dice);
    }
    if dice().is_multiple_of(8) {
        section.delete(NAMES[0]);
    }
}

#[test]
fn random_documents_read_back_as_they_were_written() {
    for seed in 0..RUNS {
        let mut dice = split_mix(seed);
        let mut document = Document::new("a.xml", "root").expect("a name");
        grow(&mut document.root_mut(), 4, &mut dice);
        let written = document.to_xml();
        let again =
            Document::parse("a.xml", written.as_bytes()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{written}"));
        assert_eq!(model(again.root()), model(document.root()), "seed {seed}:\n{written}");
        assert_eq!(again.to_xml(), written, "seed {seed}");
        assert!(again.warnings().is_empty(), "seed {seed}: {:?}", again.warnings());
        assert!(is_well_formed(&written), "seed {seed}:\n{written}");
    }
}

/// Whether another parser reads the whole text.
fn is_well_formed(text: &str) -> bool {
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
