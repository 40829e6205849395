//! Checking definitions: everything that `annals defs check` does with a large game, compared with only reading its
//! XML.

mod world;

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use annals_def::{Tree, compile};
use quick_xml::{Reader, events::Event};

use crate::Figure;

/// Measurements of each side, alternating, so that a disturbance affects both; the fastest counts.
const ROUNDS: usize = 15;

/// Measures the check of 2,000 generated types, from bytes to diagnostics and the schema, against quick-xml reading the
/// events of the same bytes, both on one thread; and the peak memory of the check.
///
/// # Panics
/// If the generated world compiles with diagnostics: then something else would be measured.
#[must_use]
pub fn run() -> Vec<Figure> {
    let tree = world::tree();
    let bytes: usize = tree.files().map(|(_, bytes)| bytes.len()).sum();
    let memory = memory_of_a_check(&tree);
    let (mut check, mut bare, mut events) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        events = read_events(&tree);
        bare = bare.min(begin.elapsed());
        let begin = Instant::now();
        let compiled = compile(black_box(&tree));
        check = check.min(begin.elapsed());
        assert!(
            compiled.diagnostics.is_empty(),
            "the world is clean: {:?}",
            compiled.diagnostics.first()
        );
        black_box(compiled);
    }
    let megabytes = bytes as f64 / 1e6;
    let mut figures = vec![Figure::against(
        "def_check_vs_quick_xml",
        check.as_secs_f64() * 1e3,
        bare.as_secs_f64() * 1e3,
        "ms",
        format!(
            "2,000 types, {megabytes:.1} MB, one thread, from bytes to the schema, fastest of {ROUNDS}; \
             baseline: quick-xml reads the {events} events of the same bytes"
        ),
    )];
    if let Some(memory) = memory {
        figures.push(Figure::against(
            "def_check_memory",
            memory as f64 / 1e6,
            megabytes,
            "MB",
            "most memory while checking, beyond the files' bytes; baseline: those bytes".to_owned(),
        ));
    }
    figures
}

/// The work of quick-xml alone: every event of every file.
fn read_events(tree: &Tree) -> usize {
    let mut events = 0;
    for (_, bytes) in tree.files() {
        let mut reader = Reader::from_reader(black_box(bytes));
        loop {
            match reader.read_event().expect("the generated files are well formed") {
                Event::Eof => break,
                event => {
                    black_box(&event);
                    events += 1;
                }
            }
        }
    }
    events
}

/// Peak growth of the process during a check; `None` if the system does not report it. Memory that was used and freed
/// before is not counted, so this runs first.
fn memory_of_a_check(tree: &Tree) -> Option<usize> {
    // Resets the peak.
    fs::write("/proc/self/clear_refs", "5").ok()?;
    let before = resident("VmRSS")?;
    black_box(compile(tree));
    Some(resident("VmHWM")?.saturating_sub(before))
}

/// A line of the process's status, in bytes.
fn resident(line: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status
        .lines()
        .find_map(|known| known.strip_prefix(line)?.strip_prefix(':'))?;
    let kilobytes: usize = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}
