//! Runs every target on its corpus, and on mutations of it, with its memory measured.
//!
//! `ANNALS_FUZZ_MUTATIONS` is the number per target, `ANNALS_FUZZ_SEED` the seed. A failure prints the input.

use std::{env, fs, path::PathBuf};

use annals_def::{Dice, split_mix};
use annals_fuzz::{TARGETS, Target};

mod memory;

/// Mutations of each target's corpus in a plain test run.
const MUTATIONS: u64 = 2_000;

/// Maximum size of a mutated input, bytes.
const LONGEST: usize = 8 << 10;

/// Numbers on either side of a limit.
const EDGES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xfe, 0xff, 0x20, b'<'];

#[test]
fn all_targets_pass_on_their_corpora() {
    for target in TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        make_ready(target);
        for input in &corpus {
            run(target, input, "a file of the corpus");
        }
    }
}

#[test]
fn all_targets_pass_on_mutated_corpora() {
    let number = |name, default| env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let (count, seed) = (
        number("ANNALS_FUZZ_MUTATIONS", MUTATIONS),
        number("ANNALS_FUZZ_SEED", 1),
    );
    for target in TARGETS {
        let corpus = corpus(target);
        make_ready(target);
        for i in 0..count {
            let seed = seed + i;
            let input = mutated(&corpus, &mut split_mix(seed));
            run(
                target,
                &input,
                &format!("ANNALS_FUZZ_SEED={seed} ANNALS_FUZZ_MUTATIONS=1"),
            );
        }
    }
}

#[test]
fn every_corpus_folder_has_a_target() {
    for folder in fs::read_dir(folder()).expect("the corpus") {
        let name = folder.expect("an entry").file_name();
        assert!(
            annals_fuzz::target(&name.to_string_lossy()).is_some(),
            "{}",
            name.display()
        );
    }
}

/// Runs a target once, so that its lazy initialisation is not attributed to an input.
fn make_ready(target: &Target) {
    (target.run)(&[]);
}

/// Runs a target, and reports the input on failure.
fn run(target: &Target, input: &[u8], from: &str) {
    let report = FailureReport { target, input, from };
    let peak = memory::peak(|| (target.run)(input));
    let allowed = target.memory.per_byte * input.len() + target.memory.besides;
    assert!(
        peak <= allowed,
        "{} bytes of input took {peak} of memory, more than {allowed}",
        input.len()
    );
    drop(report);
}

/// Prints the origin of a failure.
struct FailureReport<'a> {
    target: &'a Target,
    input: &'a [u8],
    from: &'a str,
}

impl Drop for FailureReport<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "target {}, {}: {:?}",
                self.target.name,
                self.from,
                String::from_utf8_lossy(self.input)
            );
            let hex: String = self.input.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("in hexadecimal: {hex}");
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The files of a target's corpus, in the order of their names.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = folder().join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut inputs: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("readable")).collect();
    if target.name == "client_frame" {
        inputs.extend(frame_vectors());
    }
    inputs
}

/// The vectors of the client protocol, one of each frame and more, as inputs of `client_frame`: the kind, and the frame.
fn frame_vectors() -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/wire/test_data/client");
    let kinds = [
        "login_request",
        "login_answer",
        "hello",
        "hello_answer",
        "to_server",
        "to_client",
        "to_server_datagram",
        "to_client_datagram",
    ];
    let mut inputs = Vec::new();
    for (kind, name) in (0..).zip(kinds) {
        let vectors = fs::read_to_string(folder.join(name).with_extension("txt")).expect("readable");
        // Each vector has three lines: its name, the frame in words, and its bytes.
        let frames = vectors.lines().skip(2).step_by(3).map(|line| unhex(line.trim()));
        let before = inputs.len();
        inputs.extend(frames.map(|frame| [&[kind], &frame[..]].concat()));
        assert!(inputs.len() > before, "{name} has vectors");
    }
    inputs
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("text");
        u8::from_str_radix(pair, 16).unwrap_or_else(|error| panic!("{digits}: {error}"))
    };
    pairs.map(byte).collect()
}

/// A file of the corpus with one to four changes, each of which may insert a part of another file.
fn mutated(corpus: &[Vec<u8>], dice: &mut Dice<'_>) -> Vec<u8> {
    let mut input = corpus[below(corpus.len(), dice)].clone();
    for _ in 0..=dice() % 4 {
        let at = below(input.len() + 1, dice);
        let end = (at + below(16, dice)).min(input.len());
        match dice() % 6 {
            0 if at < input.len() => input[at] ^= 1 << (dice() % 8),
            1 if at < input.len() => input[at] = EDGES[below(EDGES.len(), dice)],
            2 => drop(input.splice(at..end, [])),
            3 => {
                let again = input[at..end].repeat(1 + below(8, dice));
                input.splice(at..at, again);
            }
            4 => {
                let other = &corpus[below(corpus.len(), dice)];
                let from = below(other.len() + 1, dice);
                let to = (from + below(64, dice)).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            _ => input.truncate(at),
        }
    }
    input.truncate(LONGEST);
    input
}

fn below(count: usize, dice: &mut Dice<'_>) -> usize {
    (dice() % count.max(1) as u64) as usize
}
