//! Reads and writes values in the form of the predecessors: `test_data/text_vectors.txt`.

use annals_data::{Blob, Datum, Document, Section, SectionMut, WideString};
use serde_json::{Value, json};

#[test]
fn every_vector_reads_as_its_value_and_is_written_as_its_text() {
    let mut count = 0;
    for line in include_str!("../../test_data/text_vectors.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split(" | ").collect();
        let [kind, value, text] = parts[..] else {
            panic!("not a vector: {line}")
        };
        let value: Value = serde_json::from_str(value).expect("the value is JSON");
        let document = Document::parse("vector.xml", text.as_bytes()).expect(line);
        assert_eq!(read(kind, document.root()), as_kind(kind, &value), "read: {line}");

        let mut document = Document::new("vector.xml", "value").expect("a name");
        write(kind, &value, &mut document.root_mut());
        let blanks_apart = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(blanks_apart(&document.to_xml()), blanks_apart(text), "written: {line}");
        count += 1;
    }
    assert_eq!(count, 34);
}

/// The value of the section, as JSON.
fn read(kind: &str, section: Section<'_>) -> Value {
    match kind {
        "BLOB" | "PYTHON" => json!(hex(&section.read::<Blob>().expect(kind).0)),
        "INT8" | "INT16" | "INT32" => json!(section.read::<i32>().expect(kind)),
        "UINT8" | "UINT16" | "UINT32" => json!(section.read::<u32>().expect(kind)),
        "INT64" => json!(section.read::<i64>().expect(kind)),
        "UINT64" => json!(section.read::<u64>().expect(kind)),
        "FLOAT32" => json!(section.read::<f32>().expect(kind)),
        "FLOAT64" => json!(section.read::<f64>().expect(kind)),
        "STRING" => json!(section.read::<String>().expect(kind)),
        "UNICODE_STRING" => json!(String::from_utf16_lossy(&section.read::<WideString>().expect(kind).0)),
        "VECTOR2" => json!(section.read::<[f32; 2]>().expect(kind)),
        "VECTOR3" => json!(section.read::<[f32; 3]>().expect(kind)),
        "VECTOR4" => json!(section.read::<[f32; 4]>().expect(kind)),
        _ => match fields(kind) {
            Some(_) if section.children().len() == 0 => Value::Null,
            Some(fields) => {
                let field = |(name, kind): (&str, &str)| (name.to_owned(), read(kind, section.open(name).expect(name)));
                Value::Object(fields.into_iter().map(field).collect())
            }
            None => section.all("item").map(|item| read(element(kind), item)).collect(),
        },
    }
}

/// The value in the precision of the kind: numbers of 32 bits differ from those in JSON.
fn as_kind(kind: &str, value: &Value) -> Value {
    let short = |value: &Value| json!(value.as_f64().expect("a number") as f32);
    match kind {
        "FLOAT32" => short(value),
        "VECTOR2" | "VECTOR3" | "VECTOR4" => value.as_array().expect("numbers").iter().map(short).collect(),
        _ => value.clone(),
    }
}

fn write(kind: &str, value: &Value, section: &mut SectionMut<'_>) {
    let float = |value: &Value| value.as_f64().expect("a number") as f32;
    let vector = |i: usize| float(&value[i]);
    match kind {
        "BLOB" | "PYTHON" => put(&Blob(unhex(value.as_str().expect("hexadecimal"))), section),
        "INT8" | "INT16" | "INT32" => put(&i32::try_from(value.as_i64().expect(kind)).expect(kind), section),
        "UINT8" | "UINT16" | "UINT32" => put(&u32::try_from(value.as_u64().expect(kind)).expect(kind), section),
        "INT64" => put(&value.as_i64().expect(kind), section),
        "UINT64" => put(&value.as_u64().expect(kind), section),
        "FLOAT32" => put(&float(value), section),
        "FLOAT64" => put(&value.as_f64().expect(kind), section),
        "STRING" => put(&value.as_str().expect(kind).to_owned(), section),
        "UNICODE_STRING" => put(
            &WideString(value.as_str().expect(kind).encode_utf16().collect()),
            section,
        ),
        "VECTOR2" => put(&[vector(0), vector(1)], section),
        "VECTOR3" => put(&[vector(0), vector(1), vector(2)], section),
        "VECTOR4" => put(&[vector(0), vector(1), vector(2), vector(3)], section),
        _ => match fields(kind) {
            Some(_) if value.is_null() => {}
            Some(fields) => {
                for (name, kind) in fields {
                    write(kind, &value[name], &mut section.create(name).expect("a name"));
                }
            }
            None => {
                for item in value.as_array().expect("elements") {
                    write(element(kind), item, &mut section.create("item").expect("a name"));
                }
            }
        },
    }
}

fn put<T: Datum>(value: &T, section: &mut SectionMut<'_>) {
    section.write(value).expect("every vector can be written");
}

/// The fields of `{name KIND, …}`.
fn fields(kind: &str) -> Option<Vec<(&str, &str)>> {
    let inner = kind.strip_prefix('{')?.strip_suffix('}')?;
    inner.split(", ").map(|field| field.split_once(' ')).collect()
}

/// The kind of the elements of `[KIND]`.
fn element(kind: &str) -> &str {
    kind.strip_prefix('[')
        .and_then(|kind| kind.strip_suffix(']'))
        .expect("a list")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal"))
        .collect()
}
