//! Ten thousand generated cases of tampering, at every layer in which events are stored: each is found, given one
//! checkpoint that was kept elsewhere, and the report names what was changed first. The table of `docs/tampering.md` is
//! the output of this test.

mod archive;
mod beside;
mod bundles;
mod forging;
mod index;
mod realm;
mod stream;
mod table;

use crate::{evidence, game, world};

use std::{fs, future::Future, path::Path, sync::Mutex, thread};

use table::Table;

/// Some of the cases, to be run on a thread of their own.
type Cases = Box<dyn FnOnce() -> Table + Send>;

fn on_a_thread<F: Future<Output = Table>>(begin: impl FnOnce() -> F + Send + 'static) -> Cases {
    Box::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(begin())
    })
}

/// Runs cases on all processors, and sums their results.
fn run(cases: Vec<Cases>) -> Table {
    let (waiting, table) = (Mutex::new(cases), Mutex::new(Table::default()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(next) = { waiting.lock().unwrap().pop() } {
                    let done = next();
                    table.lock().unwrap().add(done);
                }
            });
        }
    });
    table.into_inner().unwrap()
}

#[test]
fn all_ten_thousand_tampering_cases_are_found_and_named() {
    let mut cases = Vec::new();
    for seed in 0..10 {
        let is_sealed = seed % 2 == 1;
        cases.push(on_a_thread(move || archive::cases(seed, 14, is_sealed, 144)));
        cases.push(on_a_thread(move || archive::bytes(100 + seed, 14, is_sealed, 260)));
        cases.push(on_a_thread(move || archive::rollbacks(200 + seed, 24, 30)));
        cases.push(on_a_thread(move || index::cases(300 + seed, 300)));
        cases.push(on_a_thread(move || bundles::cases(400 + seed, 120)));
        cases.push(on_a_thread(move || stream::cases(500 + seed, 150)));
        cases.push(on_a_thread(move || beside::checkpoints(600 + seed, 20, 110)));
    }
    for seed in 0..2 {
        cases.push(on_a_thread(move || archive::cases(700 + seed, 140, false, 36)));
        cases.push(on_a_thread(move || beside::tiles(800 + seed, 140, 100)));
    }
    let table = run(cases);
    println!("{table}\n{} cases", table.cases());
    assert!(table.cases() >= 10_000, "{}", table.cases());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tampering.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&table.to_string()), "docs/tampering.md has another table");
}
