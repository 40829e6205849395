//! The targets under libFuzzer. The variable `FUZZ_TARGET` selects one; `make fuzz` sets it.
#![cfg_attr(fuzzing, no_main)]
#![allow(unexpected_cfgs, reason = "cargo-fuzz sets `fuzzing`")]

#[cfg(fuzzing)]
static CHOSEN: std::sync::LazyLock<&annals_fuzz::Target> = std::sync::LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    annals_fuzz::target(&name).unwrap_or_else(|| {
        let names: Vec<_> = annals_fuzz::TARGETS.iter().map(|target| target.name).collect();
        panic!("FUZZ_TARGET names no target; there are {}", names.join(", "))
    })
});

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (CHOSEN.run)(bytes));

#[cfg(not(fuzzing))]
fn main() {
    for target in annals_fuzz::TARGETS {
        println!("{}", target.name);
    }
}
