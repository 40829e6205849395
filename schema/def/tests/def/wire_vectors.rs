//! Packed paths and message ids, against the test vectors for other implementations: `test_data/packed_paths.txt` and
//! `test_data/message_ids.txt`.

use annals_def::{Change, Located, MessageRange, Path, Value, unpack_path};

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("hexadecimal");
    (0..hexadecimal.len()).step_by(2).map(digit).collect()
}

fn columns(text: &'static str) -> impl Iterator<Item = (&'static str, [&'static str; 3])> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        (line, columns.try_into().expect("three columns"))
    })
}

fn numbers(text: &str) -> Vec<u32> {
    let words = text.split(['/', ' ']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn packed_paths_have_the_bits_in_the_file() {
    let mut count = 0;
    for (line, [steps, slice, expected]) in columns(include_str!("../../test_data/packed_paths.txt")) {
        let steps: Vec<(u32, u32)> = numbers(steps).chunks(2).map(|step| (step[0], step[1])).collect();
        let [property, within @ ..] = &steps[..] else {
            panic!("no property: {line}")
        };
        let path = Path(within.iter().map(|(index, _)| *index).collect());
        let mut parts: Vec<u32> = within.iter().map(|(_, parts)| *parts).collect();
        let change = match numbers(slice)[..] {
            [start, end, length] => {
                parts.push(length);
                Change::splice(path.clone(), start, end - start, Vec::new())
            }
            _ => Change::part(path.clone(), Value::None),
        };
        let located = Located::with_parts(change, parts.clone()).expect("it fits its numbers of parts");
        let mut written = Vec::new();
        located.pack(*property, &mut written);
        assert_eq!(written, bytes(expected), "{line}");

        // A value of that shape.
        let held = parts.iter().enumerate().rev();
        let held = held.fold(Value::None, |inside, (step, length)| {
            let mut values = vec![Value::None; *length as usize];
            if let Some(index) = path.0.get(step) {
                values[*index as usize] = inside;
            }
            Value::Sequence(values)
        });
        let mut rest = written.as_slice();
        let read = unpack_path(&mut rest, !slice.is_empty(), property.1, |_| Some(&held)).expect("it leads somewhere");
        assert_eq!((read.property, read.path, rest), (property.0, path, &[][..]), "{line}");
        if let ([start, end, _], Some(read)) = (&numbers(slice)[..], read.slice) {
            assert_eq!(read, *start..*end, "{line}");
        }
        count += 1;
    }
    assert_eq!(count, 15);
}

#[test]
fn members_have_the_ids_in_the_file() {
    let mut count = 0;
    for (line, [range, member, expected]) in columns(include_str!("../../test_data/message_ids.txt")) {
        let narrow = |number: u32| u16::try_from(number).expect("narrow");
        let (range, member) = match range.strip_prefix("shown ") {
            Some(shown) => {
                let shown = numbers(shown);
                let (properties, methods) = MessageRange::shared_by(narrow(shown[0]), narrow(shown[1]));
                match member.split_once(' ').expect("a kind and a number") {
                    ("property", number) => (properties, numbers(number)[0]),
                    (_, number) => (methods, numbers(number)[0]),
                }
            }
            None => {
                let range = numbers(range);
                let first = u8::try_from(range[0]).expect("a byte");
                (
                    MessageRange::new(first, narrow(range[1]), narrow(range[2])),
                    numbers(member)[0],
                )
            }
        };
        let mut written = Vec::new();
        range.put(narrow(member), &mut written);
        assert_eq!(written, bytes(expected), "{line}");
        assert!(range.contains(written[0]), "{line}");
        assert_eq!(range.take(&written), Some((narrow(member), &[][..])), "{line}");
        count += 1;
    }
    assert_eq!(count, 40);
}

#[test]
fn member_ids_are_unique_and_other_ids_are_rejected() {
    let sizes = [
        0, 1, 2, 125, 126, 127, 128, 253, 254, 255, 256, 257, 509, 510, 511, 5_000, 32_639, 65_535,
    ];
    let check = |range: &MessageRange, members: u16, place: &str| {
        let mut seen = std::collections::BTreeSet::new();
        let mut single = 0;
        for member in 0..members {
            let mut id = Vec::new();
            range.put(member, &mut id);
            single += usize::from(id.len() == 1);
            assert_eq!(range.id_length(member), id.len(), "{place}: member {member}");
            assert_eq!(range.take(&id), Some((member, &[][..])), "{place}");
            assert!(seen.insert(id), "{place}: member {member}");
        }
        assert_eq!(range.single_byte(), single, "{place}");
        for first in 0..=u8::MAX {
            for second in [0, 1, 254, 255] {
                let message = [first, second, 255];
                let Some((member, rest)) = range.take(&message) else {
                    continue;
                };
                let mut id = Vec::new();
                range.put(member, &mut id);
                assert_eq!(id, message[..3 - rest.len()], "{place}");
            }
        }
    };
    for properties in sizes {
        check(&MessageRange::new(0, 256, properties), properties, "calls");
        for methods in [0, 10, 126, 127, 300] {
            let ranges = MessageRange::shared_by(properties, methods);
            let place = format!("{properties} properties and {methods} methods");
            check(&ranges.0, properties, &place);
            check(&ranges.1, methods, &place);
            for id in 0..=u8::MAX {
                assert!(!(ranges.0.contains(id) && ranges.1.contains(id)), "{place}: {id}");
                assert!(
                    id > 2 || !ranges.0.contains(id) && !ranges.1.contains(id),
                    "{place}: {id}"
                );
            }
        }
    }
}
