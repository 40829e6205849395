#!/usr/bin/env bash
# Feeds every target of tests/fuzz with inputs that libFuzzer finds by coverage, FUZZ_SECONDS each (default 60), starting
# from the corpus. TARGETS="event image" chooses some. What is found new stays in target/fuzz/, what fails in
# target/fuzz/failed/. An input that broke something goes into tests/fuzz/corpus/ as found-…, with the fix.
#
# cargo-fuzz needs switches of the compiler that a stable one keeps to itself, hence RUSTC_BOOTSTRAP.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

readonly CARGO_FUZZ=0.13.1
readonly SECONDS_EACH=${FUZZ_SECONDS:-60}
readonly LONGEST=4096
readonly FOUND=$PWD/target/fuzz

if ! command -v cargo-fuzz >/dev/null && [ ! -x target/tools/bin/cargo-fuzz ]; then
    echo "fuzz: installing cargo-fuzz $CARGO_FUZZ into target/tools"
    cargo install --quiet --locked --version "$CARGO_FUZZ" --root target/tools --target-dir target/tools/build cargo-fuzz
    rm -rf target/tools/build
fi
PATH=$PWD/target/tools/bin:$PATH
command -v c++ >/dev/null || { echo "fuzz: libFuzzer needs a C++ compiler: sudo apt-get install g++"; exit 1; }

failed=()
for target in ${TARGETS:-$(cargo run --locked --quiet -p annals-fuzz)}; do
    export FUZZ_TARGET=$target
    mkdir -p "$FOUND/$target" "$FOUND/failed/$target" "tests/fuzz/corpus/$target"
    echo "fuzz: $target for $SECONDS_EACH s"
    # Nothing in the targets is unsafe, so that no sanitizer would find more.
    RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none annals-fuzz \
        "$FOUND/$target" "tests/fuzz/corpus/$target" -- -max_total_time="$SECONDS_EACH" -max_len="$LONGEST" -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix="$FOUND/failed/$target/" \
        >"$FOUND/$target.log" 2>&1 ||
        { failed+=("$target"); tail -n 30 "$FOUND/$target.log"; continue; }
    sed -n 's/^stat::number_of_executed_units: /fuzz:   inputs tried: /p' "$FOUND/$target.log"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: failed: ${failed[*]}; the inputs are in $FOUND/failed"
    exit 1
fi
