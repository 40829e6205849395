//! Designers' files: definitions and data files.

use annals_authoring::{to_json, to_sarif};
use annals_data::{Binary, Blob, Datum, Document, Matrix, Section, SectionMut, WideString};
use annals_def::{Diagnostic, Schema, Severity, Style, Tree, compile, render};

/// Start of the header line of a file in a world, before its path.
const HEAD: &[u8] = b"=== ";

/// A world: files with their paths as headers. Bytes without a header are the definition of its one type.
pub(crate) fn definitions(bytes: &[u8]) {
    let tree = world(bytes);
    let compiled = compile(&tree);
    let has_errors = compiled.diagnostics.iter().any(|d| d.severity == Severity::Error);
    assert_ne!(compiled.schema.is_some(), has_errors, "a schema, or at least one error");
    for diagnostic in &compiled.diagnostics {
        check_place(&tree, diagnostic);
    }
    // All diagnostics can be rendered.
    assert_eq!(
        render(&compiled.diagnostics, Style::Plain).is_empty(),
        compiled.diagnostics.is_empty()
    );
    assert!(!to_json(&compiled).is_empty());
    assert!(!to_sarif(&compiled.diagnostics, "world").is_empty());
    if let Some(schema) = compiled.schema {
        let stored = schema.encode();
        let read = Schema::decode(&stored).expect("a compiled schema can be stored and read");
        assert_eq!(read.encode(), stored);
        assert_eq!(read.fingerprint(), schema.fingerprint());
    }
}

fn world(bytes: &[u8]) -> Tree {
    let mut tree = Tree::new();
    let mut starts: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(HEAD)).collect();
    if starts.first() != Some(&0) {
        tree.insert("entities.xml", "<root> <A/> </root>");
        tree.insert("entity_defs/A.def", bytes);
        return tree;
    }
    starts.push(bytes.len());
    for file in starts.windows(2) {
        let file = &bytes[file[0] + HEAD.len()..file[1]];
        let end = file.iter().position(|&byte| byte == b'\n').unwrap_or(file.len());
        let path = String::from_utf8_lossy(&file[..end]);
        tree.insert(path, &file[(end + 1).min(file.len())..]);
    }
    tree
}

fn check_place(tree: &Tree, diagnostic: &Diagnostic) {
    for place in [&diagnostic.place]
        .into_iter()
        .chain(diagnostic.related.iter().map(|(place, _)| place))
    {
        assert!(
            place.line >= 1 && place.column >= 1 && place.width >= 1,
            "{diagnostic:?}"
        );
        let lines = tree.files().find(|(path, _)| *path == place.file);
        // A line end contains a byte of value 10 in every supported encoding.
        let lines = lines.map_or(1, |(_, bytes)| 1 + bytes.iter().filter(|&&byte| byte == b'\n').count());
        assert!(place.line as usize <= lines, "{diagnostic:?}");
    }
    assert!(!diagnostic.message.is_empty(), "{diagnostic:?}");
}

/// A data file: read, written, and read again.
pub(crate) fn data_file(bytes: &[u8]) {
    let Ok(mut document) = Document::parse("data.xml", bytes) else {
        return;
    };
    let written = document.to_xml();
    let again = Document::parse("data.xml", written.as_bytes()).expect("what was written can be read");
    assert_eq!(again.to_xml(), written);
    read_all(document.root());
    check_values(document.root());
    let copy: Binary = document.root().read().expect("every section is one");
    document.root_mut().write(&copy).expect("a section fits where it was");
    let mut root = document.root_mut();
    root.delete_children();
    assert_eq!(root.view().children().len(), 0);
}

/// Every section can be found, and its location reported.
fn read_all(section: Section<'_>) {
    let place = section.place();
    assert!(
        place.position.is_some_and(|(line, column)| line >= 1 && column >= 1),
        "{place}"
    );
    for (i, child) in section.children().enumerate() {
        let found = section.child(i).map(Section::name);
        assert_eq!(found, Some(child.name()));
        assert!(section.open(child.name()).is_ok(), "{}", child.place());
        read_all(child);
    }
}

/// A value that can be read can be written, and reads back equal.
fn check_values(section: Section<'_>) {
    check_value::<bool>(section);
    check_value::<i32>(section);
    check_value::<u32>(section);
    check_value::<i64>(section);
    check_value::<u64>(section);
    check_value::<f32>(section);
    check_value::<f64>(section);
    check_value::<[f32; 2]>(section);
    check_value::<[f32; 3]>(section);
    check_value::<[f32; 4]>(section);
    check_value::<Matrix>(section);
    check_value::<String>(section);
    check_value::<WideString>(section);
    check_value::<Blob>(section);
    section.children().for_each(check_values);
}

fn check_value<T: Datum + PartialEq + std::fmt::Debug>(section: Section<'_>) {
    let Ok(value) = section.read::<T>() else {
        return;
    };
    let mut copy = Document::new("copy.xml", "value").expect("a name");
    let mut root: SectionMut<'_> = copy.root_mut();
    root.write(&value).expect("what was read can be written");
    let copy = Document::parse("copy.xml", copy.to_xml().as_bytes()).expect("what was written can be read");
    assert_eq!(copy.root().read::<T>().as_ref(), Ok(&value));
}
