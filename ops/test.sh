#!/usr/bin/env bash
# Builds every test, then runs two groups side by side: realms of real processes, which wait for a third of their time,
# and all others, which mostly compute. Each command selects the whole workspace, and so the same features of each
# crate: nothing is built twice.
#
#   ops/test.sh        with ANNALS_SIM_SEEDS seeds of the simulation
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CARGO=${CARGO:-cargo}
# More than permits for realms (MAX_CONCURRENT in played.rs), so that a test that waits for a permit holds up no other.
readonly REALM_THREADS=8
# Realms of the chaos tests that run at once.
readonly CHAOS_THREADS=2

echo "test: building"
"$CARGO" test --locked --workspace --no-run --quiet

# Runs the tests of realms, all of them even if some fail.
test_realms() {
    local status=0
    "$CARGO" test --locked --workspace --test chaos -- --test-threads "$CHAOS_THREADS" || status=$?
    "$CARGO" test --locked --workspace --test running -- --test-threads "$REALM_THREADS" || status=$?
    return "$status"
}

output=$(mktemp)
# A job of its own process group, so that an interrupt ends its realms too.
set -m
realms=
end() {
    [ -z "$realms" ] || kill -TERM -- "-$realms" 2>/dev/null || true
    rm -f "$output"
}
trap end EXIT
trap 'exit 130' INT TERM

echo "test: realms of real processes, beside all other tests; their output follows at the end"
test_realms >"$output" 2>&1 &
realms=$!
set +m

status=0
"$CARGO" test --locked --no-fail-fast --workspace --exclude annals-chaos --exclude annals-realm || status=$?
others=$SECONDS
wait "$realms" || status=$?
realms=

echo "test: realms of real processes ($((SECONDS - others)) s after the others)"
cat "$output"

# By itself: it compiles a game, and realms beside it would wait for the processor.
echo "test: the page of the first game"
"$CARGO" test --locked --workspace --test first_game -- --ignored || status=$?

if [ "$status" -ne 0 ]; then
    echo "test: panics of realms of real processes, and what their processes warned of, as above"
    grep -E -A 2 '^thread .* panicked at |^log of ' "$output" || true
fi
exit "$status"
