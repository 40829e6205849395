//! Encoding of changes: `test_data/changes.txt`, generated changes, and hostile bytes.

use annals_def::{Change, Located, Path, Value, generate, generate_change, generate_type, split_mix};
use annals_event::{
    Reader,
    latest::change::{put_change, take_change},
};

const SEEDS: u64 = 2_000;

fn written(located: &Located) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_change(&mut bytes, located);
    bytes
}

fn read(bytes: &[u8]) -> Option<Located> {
    let mut reader = Reader::new(bytes);
    let located = take_change(&mut reader).ok()?;
    reader.finish("end of change").ok()?;
    Some(located)
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: String = hexadecimal.split_whitespace().collect();
    let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(digit).collect()
}

#[test]
fn changes_have_the_bytes_in_the_file() {
    let mut count = 0;
    let text = include_str!("../../test_data/changes.txt");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [steps, what, expected] = columns[..] else {
            panic!("three columns: {line}")
        };
        let steps = steps
            .split_whitespace()
            .map(|step| step.split_once('/').expect("index/parts"));
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let (path, mut parts): (Vec<u32>, Vec<u32>) = steps.map(|(index, of)| (number(index), number(of))).unzip();
        let int = |text: &&str| Value::Int(text.parse().expect("a number"));
        let words: Vec<&str> = what.split_whitespace().collect();
        let change = match words[..] {
            ["set", value] => Change::part(Path(path), int(&value)),
            ["splice", at, removed, of, ref inserted @ ..] => {
                parts.push(number(of));
                let inserted = inserted.iter().map(int).collect();
                Change::splice(Path(path), number(at), number(removed), inserted)
            }
            _ => panic!("neither set nor splice: {line}"),
        };
        let located = Located::with_parts(change, parts).expect("it fits its numbers of parts");
        assert_eq!(written(&located), bytes(expected), "{line}");
        assert_eq!(read(&bytes(expected)), Some(located), "{line}");
        count += 1;
    }
    assert_eq!(count, 7);
}

#[test]
fn only_canonical_changes_are_decoded() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = generate_type(4, &mut dice);
        let value = generate(&data_type, &mut dice);
        let located = Located::new(generate_change(&data_type, &value, &mut dice), &value).expect("it fits");
        let good = written(&located);
        assert_eq!(read(&good).as_ref(), Some(&located), "seed {seed}");
        let cut = dice() as usize % good.len();
        assert_eq!(read(&good[..cut]), None, "seed {seed}");
        let mut flipped = good.clone();
        let bit = dice() as usize % (good.len() * 8);
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Some(other) = read(&flipped) {
            assert_eq!(written(&other), flipped, "seed {seed}");
        }
    }
}

#[test]
fn an_index_beyond_the_parts_is_refused() {
    for (refused, why) in [
        ("01 06 06 00 00", "element 6 of 6"),
        ("00 01 05 05 01 00", "elements 5 to 6 of 5"),
        ("00 01 05 06 00 00", "behind the end"),
        ("00 02 00", "neither set nor splice"),
        ("ff ff ff ff 0f 00 00", "fewer steps than the count"),
    ] {
        assert_eq!(read(&bytes(refused)), None, "{why}");
    }
}
