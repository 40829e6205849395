//! The encoding of values against vectors in the predecessors' format, `test_data/stream_vectors.txt`, declared in the
//! language.

use annals_def::{DataType, Form, Tree, Value, check, compile, decode_all, encode};

/// The type and value of a declaration.
fn declared(data_type: &str, value: &str) -> (DataType, Value) {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    let definition = format!(
        "<root> <Properties> <it>
            <Type> {data_type} </Type> <Flags> BASE </Flags> <Default> {value} </Default>
        </it> </Properties> </root>"
    );
    tree.insert("entity_defs/Avatar.def", definition);
    let compiled = compile(&tree);
    assert_eq!(compiled.diagnostics, [], "{data_type} | {value}");
    let schema = compiled.schema.expect("nothing is wrong");
    let property = schema.types()[0].properties[0].clone();
    (property.data_type, property.default)
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<char> = hexadecimal.chars().collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal"))
        .collect()
}

#[test]
fn every_value_has_the_recorded_bytes() {
    let text = include_str!("../../test_data/stream_vectors.txt");
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [form, data_type, value, expected] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}");
        };
        let form = match form {
            "whole" => Form::Whole,
            "stored" => Form::Stored,
            other => panic!("unknown form {other}"),
        };
        let (data_type, value) = match value.strip_prefix('=') {
            Some(opaque) => (declared(data_type, "").0, Value::Opaque(bytes(opaque))),
            None => declared(data_type, value),
        };
        assert_eq!(check(&data_type, &value), Ok(()), "{line}");
        let expected = bytes(expected);
        let mut written = Vec::new();
        encode(&data_type, &value, form, &mut written).expect("the value fits");
        assert_eq!(written, expected, "{line}");
        assert_eq!(decode_all(&data_type, form, &expected), Ok(value), "{line}");
        if let (Form::Whole, Some(size)) = (form, data_type.stream_size()) {
            assert_eq!(size, expected.len(), "{line}");
        }
        count += 1;
    }
    assert_eq!(count, 91);
}
